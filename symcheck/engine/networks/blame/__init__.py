"""Blame: following the action from layer to layer, to the layer, unit or weight that violates it."""
