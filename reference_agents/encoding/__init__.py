"""Encodes observations, actions and claims on arbitrary spaces as arrays for networks."""
