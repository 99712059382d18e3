"""Encodes observations, actions and claims on any spaces as arrays for networks."""
