"""Runs over a robot's mirror: a mirror function against the mirror that is derived from the model, or the model alone."""
