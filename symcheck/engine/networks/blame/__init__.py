"""Blame: trace the action layer by layer until a layer, unit or weight violates it."""
