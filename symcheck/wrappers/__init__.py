"""Gymnasium wrappers that exploit a symmetry, for any agent library.

With `Quotient`, the agent observes one representative of each orbit. With `RandomSymmetry`, every episode is
transformed by a random group element. Both wrappers map actions back. `VectorQuotient` and `VectorRandomSymmetry` are
the same wrappers for vector environments. `lifted_network` converts a network trained on a quotient into a network on
the environment's own observations.
"""

from symcheck.wrappers.lifted import lifted_network
from symcheck.wrappers.quotient import Quotient
from symcheck.wrappers.random_symmetry import RandomSymmetry
from symcheck.wrappers.vector import VectorQuotient, VectorRandomSymmetry

__all__ = ["Quotient", "RandomSymmetry", "VectorQuotient", "VectorRandomSymmetry", "lifted_network"]
