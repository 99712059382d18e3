"""Environments: targets, state access, and the atlas of known symmetries."""
