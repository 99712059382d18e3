"""The wrong weight of a layer: all weights of an orbit must be equal, so their values show which one differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.networks.blame.matching import ULPS, ulp32
from symcheck.engine.networks.subject.values import SignedPermutation

_LONGEST = 64  # maximum number of weights of an orbit that are compared


@dataclass(frozen=True)
class TiedWeights:
    """The weights [W, b] of a layer whose units and inputs are both permuted.

    Attributes:
        rows: [W, b], shape (units, inputs + 1).
        units: how each generator permutes units.
        inputs: how each generator permutes inputs.
    """

    rows: Floats
    units: Sequence[SignedPermutation]
    inputs: Sequence[SignedPermutation]

    def blame(self, unit: int, column: int) -> list[tuple[int, int]]:
        """The weights of an orbit to name for an observed difference at one weight.

        The weight that differs from the majority of its orbit; both if the orbit has two weights; none if the values do
        not decide.

        Args:
            unit: the row of the weight.
            column: the column of the weight; the last one is the bias.

        Example:
            >>> swap = SignedPermutation(np.array([1, 0]), np.array([1, 1]))
            >>> TiedWeights(np.array([[1.0, 2.0, 0.0], [2.5, 1.0, 0.0]]), [swap], [swap]).blame(1, 0)
            [(1, 0), (0, 1)]
        """
        orbit = self._orbit(unit, column)
        values = np.array([sign * self.rows[place] for place, sign in orbit.items()])
        allowed = ULPS * float(ulp32(np.abs(values)).max())  # the published level of rounding
        if len(orbit) == 2 and abs(values[0] - values[1]) > allowed:
            return list(orbit)
        apart = np.abs(values - np.median(values)) > allowed
        if len(orbit) > 2 and apart.sum() == 1:
            return [list(orbit)[int(np.argmax(apart))]]
        return []

    def _orbit(self, unit: int, column: int) -> dict[tuple[int, int], int]:
        """The weights that must equal the given one up to sign, with that sign; at most `_LONGEST`."""
        orbit = {(unit, column): 1}
        for (i, j), sign in (waiting := list(orbit.items())):
            for units, inputs in zip(self.units, self.inputs, strict=True):
                # W[i, j] = sign W[units(i), inputs(j)]; the bias stays in its column.
                further, turned = (j, 1) if j == inputs.size else (int(inputs.index[j]), int(inputs.sign[j]))
                image = (int(units.index[i]), further)
                if image not in orbit and len(orbit) < _LONGEST:
                    orbit[image] = sign * turned * int(units.sign[i])
                    waiting.append((image, orbit[image]))
        return orbit


def name_weights(kind: str, places: Sequence[tuple[int, int]], inputs: int) -> str:
    """Weights in words.

    Args:
        kind: "unit" or "output".
        places: rows and columns of [W, b].
        inputs: the number of columns of W.

    Example:
        >>> name_weights("unit", [(3, 5), (2, 4)], 8)
        'unit 3, weight from input 5, or its image unit 2, weight from input 4'
    """
    named = [f"{kind} {row}, {'bias' if column == inputs else f'weight from input {column}'}" for row, column in places]
    return ", or its image ".join(named)
