"""Checks of networks: trace a group action through the layers, test it on samples, and locate violations."""
