"""The parameters of many runs in one flat buffer, so that an optimiser step is a single operation.

Row r of the buffer contains all parameters of run r; layers use views of it, of shape (runs, *shape). Rows are padded
to whole cache lines. A vectorised kernel then processes a given parameter in the same way in every run, so the results
of a run do not depend on the other runs, bit for bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch

ALIGNMENT = 16  # float32 values in one 64-byte cache line: whole registers of every processor


@dataclass
class Layout:
    """The position of each named parameter in the row of a run."""

    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)
    used: int = 0

    def add(self, name: str, shape: tuple[int, ...]) -> None:
        """Append a parameter; each starts on a cache line."""
        self.shapes[name] = shape
        self.offsets[name] = self.used
        # Rounded up to whole cache lines; the gap stays zero and has no gradient.
        self.used += math.ceil(math.prod(shape) / ALIGNMENT) * ALIGNMENT

    @property
    def parameters(self) -> int:
        """The number of trainable parameters of one run, without padding."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    def views(self, buffer: torch.Tensor) -> dict[str, torch.Tensor]:
        """Views of a buffer of shape (runs, used) by name, each of shape (runs, *shape)."""
        return {
            name: buffer[:, self.offsets[name] : self.offsets[name] + math.prod(shape)].view(len(buffer), *shape)
            for name, shape in self.shapes.items()
        }


class StackedParameters:
    """Values and gradients of every parameter of every run.

    Args:
        layout: the parameters of one run.
        runs: number of runs.
        device: the device of the buffers.

    Attributes:
        values: shape (runs, layout.used), float32.
        gradients: the same shape.
    """

    def __init__(self, layout: Layout, runs: int, device: torch.device) -> None:
        self.layout = layout
        self.values = torch.zeros(runs, layout.used, device=device)
        self.gradients = torch.zeros(runs, layout.used, device=device)

    def of_run(self, run: int) -> dict[str, torch.Tensor]:
        """Copies of one run's parameters by name, on the CPU."""
        return {name: view[run].detach().cpu().clone() for name, view in self.layout.views(self.values).items()}
