"""Gymnasium wrappers that exploit a symmetry, for any agent library.

`Quotient` shows the agent one representative of each orbit, `RandomSymmetry` shows every episode through a random group
element; both map actions back. `VectorQuotient` and `VectorRandomSymmetry` are the same for vector environments.
`lifted_network` converts a network trained on a quotient into a network on the environment's own observations.
"""

from symcheck.wrappers.lifted import lifted_network
from symcheck.wrappers.quotient import Quotient
from symcheck.wrappers.random_symmetry import RandomSymmetry
from symcheck.wrappers.vector import VectorQuotient, VectorRandomSymmetry

__all__ = ["Quotient", "RandomSymmetry", "VectorQuotient", "VectorRandomSymmetry", "lifted_network"]
