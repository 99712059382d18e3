"""The convolution over a basis of filters that rotate with the image."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from symcheck.errors import SymcheckError
from symcheck.intertwiners.basis import Kind
from symcheck.intertwiners.build import conv_intertwiner_basis, read_kernel_size
from symcheck.nn.basis_layer import BasisLayer, Init, is_tracing
from symcheck.nn.expansion import FilterExpansion
from symcheck.nn.field_type import FieldType, check_channels, exchanges_axes, moving, require_match
from symcheck.nn.linear import bias_expansion
from symcheck.representations.representation import Representation


class BasisConv2d(BasisLayer):
    """A convolution f with f(g x) = g f(x), where g acts on pixels and components together.

    Shapes: (batch, channels_in, dim_in, height, width) to (batch, channels_out, dim_out, height', width').

    The stride must be symmetric on the image: (size + 2 padding - kernel) must be divisible by the stride along each
    axis that the group moves. The stride is checked if the size is known (`input_size`, or in `EquivariantSequential`).

    Args:
        rho_in: the representation on the input's component axis.
        rho_out: the representation on the output's component axis, of the same group.
        channels_in: number of copies of the input representation.
        channels_out: number of copies of the output representation.
        kernel_size: height and width of the filter; one number for a square.
        spatial: one spatial operator per generator, for instance ["rot90"].
        stride: the stride of the convolution; equal along both axes if the group exchanges them.
        padding: number of zeros on each side of the image; equal along both axes if the group exchanges them.
        bias: whether to add a bias.
        basis: "equivariant", or the controls "nullspace" and "random".
        init: "xavier" or "he": the variance of the materialised filter.
        input_size: height and width of the images, if known.

    Raises:
        SymcheckError: the basis does not exist (see `conv_intertwiner_basis`), or the stride, padding or size breaks
            equivariance.

    Example:
        >>> import torch
        >>> from symcheck.groups import cyclic
        >>> from symcheck.representations import regular, trivial
        >>> C4 = cyclic(4)
        >>> layer = BasisConv2d(trivial(C4), regular(C4), 1, 8, 7, spatial=["rot90"], stride=2, input_size=(21, 21))
        >>> layer(torch.randn(2, 1, 1, 21, 21)).shape
        torch.Size([2, 8, 4, 8, 8])

    Source: E. van der Pol et al., "MDP Homomorphic Networks" (2020), section 4 and appendix.
    """

    def __init__(
        self,
        rho_in: Representation,
        rho_out: Representation,
        channels_in: int,
        channels_out: int,
        kernel_size: int | tuple[int, int],
        *,
        spatial: Sequence[str],
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] = 0,
        bias: bool = True,
        basis: Kind = "equivariant",
        init: Init = "he",
        input_size: tuple[int, int] | None = None,
    ) -> None:
        channels_in = check_channels(channels_in, "channels_in")
        channels_out = check_channels(channels_out, "channels_out")
        filters = conv_intertwiner_basis(rho_in, rho_out, kernel_size, spatial=spatial, kind=basis)
        biases = bias_expansion(rho_out, channels_out, basis) if bias else None
        super().__init__(FilterExpansion(filters, channels_out, channels_in), biases, init=init)
        self.kernel_size = read_kernel_size(kernel_size)
        self.stride = _pair(stride, "stride", least=1)
        self.padding = _pair(padding, "padding", least=0)
        self.spatial = tuple(spatial)
        # Stride and padding that differ along the axes do not commute with exchanging them.
        self._check_isotropic()
        self.input_type: FieldType = FieldType(rho_in, channels_in, self.spatial, input_size)
        self._in, self._out = (channels_in, rho_in.dim), (channels_out, rho_out.dim)
        # If the size is known, fail here and not in the first forward pass.
        if input_size is not None:
            self.output_size(input_size)

    def _check_isotropic(self) -> None:
        if not exchanges_axes(self.spatial):
            return
        for name, value in (("stride", self.stride), ("padding", self.padding)):
            if value[0] != value[1]:
                raise SymcheckError(
                    f"{name} {value} breaks equivariance: the group exchanges height and width.",
                    where=f"BasisConv2d({name})",
                    remedy="Use the same value along both axes.",
                )

    def output_size(self, size: tuple[int, int]) -> tuple[int, int]:
        """Height and width of the output.

        Args:
            size: height and width of the input.

        Returns:
            Height and width of the output.

        Raises:
            SymcheckError: the stride does not commute with the group at this size, or the filter does not fit.
        """
        if exchanges_axes(self.spatial) and size[0] != size[1]:
            raise SymcheckError(
                f"the group exchanges height and width, so images must be square; got {size[0]} x {size[1]}.",
                where="BasisConv2d(input size)",
            )
        moved = moving(self.spatial)
        return (self._output_axis(size[0], 0, moved[0]), self._output_axis(size[1], 1, moved[1]))

    def _output_axis(self, size: int, axis: int, moved: bool) -> int:
        kernel, stride, padding = self.kernel_size[axis], self.stride[axis], self.padding[axis]
        room = size + 2 * padding - kernel
        if room < 0:
            raise SymcheckError(
                f"the filter ({kernel}) is larger than the padded image ({size + 2 * padding}).",
                where="BasisConv2d(input size)",
            )
        # The filter's positions must be symmetric in the image; a remainder would leave a margin on one side only.
        if moved and room % stride:
            # Nearby valid sizes, for the message.
            near = [n for n in range(size - stride, size + stride + 1) if (n + 2 * padding - kernel) % stride == 0]
            raise SymcheckError(
                f"stride {stride} does not commute with {', '.join(self.spatial)} at size {size}: "
                f"({size} + 2 * {padding} - {kernel}) is not divisible by {stride}.",
                where="BasisConv2d(input size)",
                remedy=f"Sizes that work: {', '.join(str(n) for n in near)}.",
            )
        return room // stride + 1

    def forward(self, x: Tensor) -> Tensor:
        """Maps (batch, channels_in, dim_in, height, width) to (batch, channels_out, dim_out, height', width')."""
        # Shapes must not be examined while a tracer records, so check only plain tensors.
        if type(x) is Tensor and not is_tracing() and (x.ndim != 5 or x.shape[1:3] != self._in):
            self._refuse(x)
        kept = self.keep_weight()
        weight, bias = self._expand() if kept is None else (kept.weight, kept.bias)
        # conv2d on (batch, channels_in * dim_in, height, width).
        planes = functional.conv2d(x.flatten(1, 2), weight, bias, self.stride, self.padding)
        return torch.unflatten(planes, 1, self._out)

    def _refuse(self, x: Tensor) -> None:
        raise SymcheckError(
            f"expected images of shape (batch, {self._in[0]}, {self._in[1]}, height, width), got {tuple(x.shape)}.",
            where=f"BasisConv2d({self.extra_repr()})",
            remedy="Start with SplitChannels to read flat (batch, channels * dim, height, width) images.",
        )

    def propagate(self, given: FieldType) -> FieldType:
        """The type and size of the output; raises for a different input type or a size that breaks equivariance."""
        wanted = self.input_type
        require_match(given, wanted, where=f"BasisConv2d({self.extra_repr()})")
        size = given.size or wanted.size
        return FieldType(
            self.basis.rho_out, self._out[0], self.spatial, None if size is None else self.output_size(size)
        )

    def materialize(self) -> nn.Conv2d:
        """The equivalent plain convolution on channel-major flat images.

        Returns:
            A `torch.nn.Conv2d` from channels_in * dim_in to channels_out * dim_out planes with its own copy of the
            weight.
        """
        weight, bias = self._plain_weight()
        # On "meta", to allocate no memory for weights that are replaced below.
        plain = nn.Conv2d(
            weight.shape[1],
            weight.shape[0],
            self.kernel_size,
            stride=self.stride,
            padding=self.padding,
            bias=bias is not None,
            device="meta",
            dtype=weight.dtype,
        )
        plain.weight = nn.Parameter(weight)
        if bias is not None:
            plain.bias = nn.Parameter(bias)
        return plain.train(self.training)

    def extra_repr(self) -> str:
        """Types, kernel size, stride and padding as text."""
        return f"{super().extra_repr()}, kernel {self.kernel_size}, stride {self.stride}, padding {self.padding}"


def _pair(value: int | tuple[int, int], name: str, *, least: int) -> tuple[int, int]:
    both = tuple(value) if hasattr(value, "__iter__") else (value, value)
    if len(both) != 2 or not all(isinstance(n, int) and n >= least for n in both):
        raise SymcheckError(f"expected one or two integers of at least {least}, got {value!r}.", where=name)
    return both[0], both[1]
