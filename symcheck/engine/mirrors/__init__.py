"""Runs over a robot's mirror: a mirror function against the mirror that the model has, or the model alone."""
