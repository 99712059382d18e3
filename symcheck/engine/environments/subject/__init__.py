"""The environment under test: stepped, put into states, its values as vectors, and the images of its states."""
