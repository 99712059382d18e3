"""A weight kept between changes of what it was made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Words = npt.NDArray[np.uint8] | npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """A weight, with what it was made of.

    On the CPU the coefficients' bytes are compared, because assignments through `.data` leave no other trace;
    elsewhere, where comparing would wait for the device, version and place must do.
    """

    parameters: tuple[Tensor | None, ...]
    weight: Tensor
    bias: Tensor | None
    versions: tuple[tuple[int, int, torch.dtype], ...]
    memory: tuple[tuple[Words, bytes], ...]

    @staticmethod
    def of(weight: Tensor, bias: Tensor | None, *parameters: Tensor | None) -> Kept:
        """Keeps a weight that was just made of these parameters."""
        words = [_words(p) for p in parameters if p is not None and p.device.type == "cpu"]
        return Kept(parameters, weight, bias, _versions(parameters), tuple((live, live.tobytes()) for live in words))

    def holds(self, *parameters: Tensor | None) -> bool:
        """Whether the parameters are still those that the weight was made of."""
        for given, own in zip(parameters, self.parameters, strict=True):
            if given is not own:
                return False
        if _versions(parameters) != self.versions:
            return False
        # bytes are copied and compared faster than arrays are compared: 0.7 us against 1.7 us for 32 kB
        for live, copied in self.memory:  # noqa: SIM110  (a generator costs as much as the comparison)
            if live.tobytes() != copied:
                return False
        return True


def _versions(parameters: Iterable[Tensor | None]) -> tuple[tuple[int, int, torch.dtype], ...]:
    """Moves with every change that torch counts, with the memory and with the dtype."""
    return tuple([(p._version, p.data_ptr(), p.dtype) for p in parameters if p is not None])


def _words(parameter: Tensor) -> Words:
    """The parameter's memory as integers: a view, not a copy."""
    memory = parameter.detach().reshape(-1).view(torch.uint8).numpy()
    return memory.view(np.uint64) if memory.size % 8 == 0 else memory
