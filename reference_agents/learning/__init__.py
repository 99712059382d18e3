"""Returns, losses and the optimiser, for many runs at once."""
