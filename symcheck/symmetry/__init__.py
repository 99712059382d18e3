"""Symmetries: how a group acts on the observations, actions and states of one environment.

`entries` reads a user's entry for one generator, `symmetry` gathers entries into a checked `Symmetry`, `bound` fits one
to the spaces of an environment, `spec` reads symmetries from data, `text` describes their actions in words.
"""

from symcheck.symmetry.bound import BoundSymmetry
from symcheck.symmetry.symmetry import Symmetry

__all__ = ["BoundSymmetry", "Symmetry"]
