"""The hidden layers of a stacked network, with hand-written backward passes.

Vectors are (runs, batch, units), images (runs, batch, height, width, units); units are component-major. `forward`
returns the output and the data for `backward`; `backward` writes the parameters' gradients and, on request, returns the
gradient of the input.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch

from reference_agents.networks.layers import Lifting, StackedLinear


class Block(Protocol):
    """One hidden layer of every run."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """The output, and the data for `backward`."""

    def backward(self, tape: Any, d_y: torch.Tensor, *, to_input: bool) -> torch.Tensor | None:
        """Write the parameters' gradients; return the gradient of the input on request. May overwrite `d_y`."""


class LinearRelu:
    """y = max(0, x W + b)."""

    def __init__(self, layer: StackedLinear) -> None:
        self._layer = layer

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        """(runs, batch, inputs) to (runs, batch, outputs)."""
        y = torch.relu_(torch.baddbmm(self._layer.offset, x, self._layer.matrix))
        return y, (x, y)

    def backward(
        self, tape: tuple[torch.Tensor, torch.Tensor], d_y: torch.Tensor, *, to_input: bool
    ) -> torch.Tensor | None:
        """As `Block.backward`."""
        x, y = tape
        # The ReLU passes the gradient where its output is positive; in place, because d_y is not used elsewhere.
        d_y.mul_(y > 0)
        self._layer.write_gradients(torch.bmm(x.transpose(1, 2), d_y), d_y.sum(1, keepdim=True))
        return torch.bmm(d_y, self._layer.matrix.transpose(1, 2)) if to_input else None


class LiftedLinearRelu:
    """The same function as `LinearRelu`, for layers into the regular representation, without building the weight.

    Args:
        layer: the layer, with its coefficients and the buffers of their gradients.
        lifting: the lifting of the layer.
    """

    def __init__(self, layer: StackedLinear, lifting: Lifting) -> None:
        self._layer, self._lifting = layer, lifting

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        """(runs, batch, inputs) to (runs, batch, outputs)."""
        lifted, lifting = self._lifting.lift(x), self._lifting
        bias = self._layer.bias
        # (runs, 1, channels_out) coefficients of the only basis element of the bias.
        offset = lifted.new_zeros(()) if bias is None else bias[:, 0]
        # beta and alpha hold the one value of all entries of the two bases.
        y = torch.baddbmm(offset, lifted, self._coefficients(), beta=lifting.bias_value, alpha=lifting.value)
        # Concatenate the rows of an observation, one per group element: the regular representation.
        y = torch.relu_(y).view(*x.shape[:2], -1)
        return y, (lifted, y)

    def backward(
        self, tape: tuple[torch.Tensor, torch.Tensor], d_y: torch.Tensor, *, to_input: bool
    ) -> torch.Tensor | None:
        """As `Block.backward`."""
        lifted, y = tape
        # (runs, batch * dim_out, channels_out): each observation has dim_out rows.
        d_rows = d_y.mul_(y > 0).view(len(y), lifted.shape[1], -1)
        if self._layer.bias_gradient is not None:
            # The transpose of adding one bias to every row.
            self._layer.bias_gradient.copy_(d_rows.sum(1).mul_(self._lifting.bias_value)[:, None, None])
        d_rows.mul_(self._lifting.value)
        d_weight = torch.bmm(lifted.transpose(1, 2), d_rows)
        self._layer.weight_gradient.copy_(d_weight.view(self._layer.weight_gradient.shape))
        if not to_input:
            return None
        return self._lifting.lower(torch.bmm(d_rows, self._coefficients().transpose(1, 2)))

    def _coefficients(self) -> torch.Tensor:
        """(runs, rank * channels_in, channels_out), a view of the parameters."""
        return self._layer.weight.flatten(1, 2)


class ConvRelu:
    """A convolution without padding, then a ReLU, as one product over all windows of all images.

    Args:
        layer: the linear layer from the units of a window, pixel by pixel, to the units of one output position.
        kernel: height and width of a window.
        stride: the number of pixels between two windows.
    """

    def __init__(self, layer: StackedLinear, *, kernel: int, stride: int) -> None:
        self._layer, self._kernel, self._stride = layer, kernel, stride

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """(runs, batch, height, width, inputs) to (runs, batch, height', width', outputs)."""
        k, s = self._kernel, self._stride
        # (runs, batch, height', width', kernel, kernel, inputs).
        windows = x.unfold(2, k, s).unfold(3, k, s).permute(0, 1, 2, 3, 5, 6, 4)
        runs, batch, height, width = windows.shape[:4]
        # One row for each window: the convolution is a matrix product.
        columns = windows.reshape(runs, batch * height * width, -1)
        y = torch.relu_(torch.baddbmm(self._layer.offset, columns, self._layer.matrix))
        return y.view(runs, batch, height, width, -1), (columns, y, x.shape)

    def backward(self, tape: Any, d_y: torch.Tensor, *, to_input: bool) -> torch.Tensor | None:
        """As `Block.backward`."""
        columns, y, shape = tape
        height, width = d_y.shape[2:4]
        d_y = d_y.reshape(y.shape).mul_(y > 0)
        self._layer.write_gradients(torch.bmm(columns.transpose(1, 2), d_y), d_y.sum(1, keepdim=True))
        if not to_input:
            return None
        d_columns = torch.bmm(d_y, self._layer.matrix.transpose(1, 2))
        k, s = self._kernel, self._stride
        # (runs, batch, height', width', kernel, kernel, inputs).
        d_windows = d_columns.view(*shape[:2], height, width, k, k, shape[4])
        d_x = d_y.new_zeros(shape)
        # Windows overlap: each kernel position adds its gradient to a strided grid of pixels.
        for row in range(k):
            for column in range(k):
                rows, columns_ = slice(row, row + s * height, s), slice(column, column + s * width, s)
                d_x[:, :, rows, columns_].add_(d_windows[:, :, :, :, row, column])
        return d_x


class GlobalMaxPool:
    """The maximum of every unit over all positions; if several positions share it, the first gets the gradient."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Size]]:
        """(runs, batch, height, width, units) to (runs, batch, units)."""
        y, where = x.flatten(2, 3).max(2)
        return y, (where, x.shape)

    def backward(
        self, tape: tuple[torch.Tensor, torch.Size], d_y: torch.Tensor, *, to_input: bool
    ) -> torch.Tensor | None:
        """As `Block.backward`."""
        where, shape = tape
        if not to_input:
            return None
        d_x = d_y.new_zeros(*shape[:2], shape[2] * shape[3], shape[4])
        # Only the position of the maximum gets a gradient.
        return d_x.scatter_(2, where.unsqueeze(2), d_y.unsqueeze(2)).view(shape)


class Flatten:
    """Flattens the units of all positions, position by position."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Size]:
        """(runs, batch, height, width, units) to (runs, batch, height * width * units)."""
        return x.flatten(2), x.shape

    def backward(self, tape: torch.Size, d_y: torch.Tensor, *, to_input: bool) -> torch.Tensor | None:
        """As `Block.backward`."""
        return d_y.reshape(tape) if to_input else None


class GlobalAveragePool:
    """The average of every unit over all positions."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Size]:
        """(runs, batch, height, width, units) to (runs, batch, units)."""
        return x.mean((2, 3)), x.shape

    def backward(self, tape: torch.Size, d_y: torch.Tensor, *, to_input: bool) -> torch.Tensor | None:
        """As `Block.backward`."""
        if not to_input:
            return None
        # Every position has the same weight in the average.
        return (d_y / (tape[2] * tape[3]))[:, :, None, None, :].expand(tape).contiguous()
