"""Runs over a robot's mirror: a mirror function compared with the model's mirror, or the model alone."""
