"""Gymnasium wrappers that put a symmetry to use, for any agent library."""
