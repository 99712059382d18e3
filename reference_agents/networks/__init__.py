"""Actor-critic networks of many runs at once."""
