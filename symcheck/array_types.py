"""Names for the types of arrays; shapes are given in docstrings."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
"""Arrays of any dtype."""
Floats = npt.NDArray[np.float64]
"""Float64, the dtype of all mathematics."""
Complexes = npt.NDArray[np.complex128]
"""Complex arrays, such as eigenvectors of rotations."""
Singles = npt.NDArray[np.float32]
"""Float32, the common dtype of environments and deployed networks."""
Ints = npt.NDArray[np.int64]
"""Exact integers: signed permutations, counts, actions."""
Indices = npt.NDArray[np.intp]
"""Indices of rows and columns of other arrays."""
Bools = npt.NDArray[np.bool_]
"""Masks."""
Bytes = npt.NDArray[np.uint8]
"""Pixels and codes."""
Hashes = npt.NDArray[np.uint64]
"""Hashes of rows."""
