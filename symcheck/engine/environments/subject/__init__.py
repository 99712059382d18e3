"""The environment under test: stepping, setting states, values as vectors, and images of states."""
