"""Convolutions over large images on a CPU: run by run through torch's own kernels, channels before rows.

A screen of 80 x 80 has as many windows as would fill memory if each were written out; torch's kernels do not write them
out, and are six times as fast there. Each run is its own call, so that a run in company and the same run alone agree
bit for bit. Images are (runs, batch, units, height, width); units are component-major, as everywhere.
"""

from __future__ import annotations

from typing import Any

import torch

from reference_agents.networks.layers import StackedLinear


class PlanarConvRelu:
    """The same function as `blocks.ConvRelu`, of images with their units first.

    Args:
        layer: from the units of a window, pixel by pixel, to the units of one output position.
        kernel: height and width of a window.
        stride: pixels between two windows.
    """

    def __init__(self, layer: StackedLinear, *, kernel: int, stride: int) -> None:
        self._layer, self._kernel, self._stride = layer, kernel, stride
        self._built_of: torch.Tensor | None = None
        self._weights = torch.empty(0)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """(runs, batch, inputs, height, width) to (runs, batch, outputs, height', width')."""
        weights, stride = self._kernels(), self._stride
        offsets = self._layer.offset[:, 0]
        runs = [torch.nn.functional.conv2d(*one, stride=stride) for one in zip(x, weights, offsets, strict=True)]
        y = torch.relu_(_together(runs))
        return y, (x, y)

    def backward(self, tape: Any, d_y: torch.Tensor, *, to_input: bool) -> torch.Tensor | None:
        """As `Block.backward`."""
        x, y = tape
        d_y = d_y.mul_(y > 0)
        parts = [self._derivatives(*one, to_input=to_input) for one in zip(d_y, x, self._kernels(), strict=True)]
        d_weight = _together([part[1] for part in parts])
        d_matrix = d_weight.permute(0, 3, 4, 2, 1).reshape(len(y), -1, d_weight.shape[1])
        self._layer.write_gradients(d_matrix, _together([part[2] for part in parts]).unsqueeze(1))
        return _together([part[0] for part in parts]) if to_input else None

    def _kernels(self) -> torch.Tensor:
        """The layer's matrix as filters, (runs, outputs, inputs, kernel, kernel)."""
        matrix, kernel = self._layer.matrix, self._kernel
        if self._built_of is not matrix:
            split = matrix.reshape(len(matrix), kernel, kernel, -1, matrix.shape[2])
            self._weights, self._built_of = split.permute(0, 4, 3, 1, 2).contiguous(), matrix
        return self._weights

    def _derivatives(
        self, d_y: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, *, to_input: bool
    ) -> tuple[torch.Tensor, ...]:
        """By the input (where asked for), the filters and the offset."""
        found: tuple[torch.Tensor, ...] = torch.ops.aten.convolution_backward(
            d_y.contiguous(), x, weight, [len(weight)], [self._stride] * 2, [0, 0], [1, 1], False, [0, 0], 1,
            [to_input, True, True],
        )  # fmt: skip
        return found


class PlanarFlatten:
    """Every unit of every position, position by position."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Size]:
        """(runs, batch, units, height, width) to (runs, batch, height * width * units)."""
        return x.permute(0, 1, 3, 4, 2).flatten(2), x.shape

    def backward(self, tape: torch.Size, d_y: torch.Tensor, *, to_input: bool) -> torch.Tensor | None:
        """As `Block.backward`."""
        if not to_input:
            return None
        runs, batch, units, height, width = tape
        return d_y.reshape(runs, batch, height, width, units).permute(0, 1, 4, 2, 3).contiguous()


def _together(runs: list[torch.Tensor]) -> torch.Tensor:
    """One tensor of all runs, without a copy where there is one."""
    return runs[0].unsqueeze(0) if len(runs) == 1 else torch.stack(runs)
