"""Blame: the action followed from layer to layer, and the layer, unit or weight at which it breaks."""
