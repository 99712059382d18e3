"""Environments: what a user may name as one, how its state is set, and the atlas of known symmetries."""
