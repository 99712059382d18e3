"""Layers whose weight is a combination of basis matrices: the free numbers are the coefficients.

For orbit bases the weight is a gather, `weight[e] = sign[e] * coefficients[orbit of e]`; for other bases a product with
the basis rows. The state dict holds the coefficients and a fingerprint of the bases, so that a checkpoint either means
the same function or is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor, nn

from symcheck.errors import OptionError, SymcheckError, suggestion
from symcheck.intertwiners.basis import IntertwinerBasis
from symcheck.intertwiners.orbit_basis import OrbitBasis
from symcheck.nn.field_type import EquivariantModule

Init = Literal["xavier", "he"]
INITS: tuple[Init, ...] = ("xavier", "he")
DENSE_LIMIT = 50_000_000
"""Largest rank * size of a basis that is kept as dense rows."""


def is_tracing() -> bool:
    """Whether `torch.jit.trace` is recording, when shapes must not be looked at."""
    return bool(torch.jit.is_tracing())  # type: ignore[attr-defined, no-untyped-call]


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """A weight, with what it was made of.

    On the CPU the coefficients' values are compared, because assignments through `.data` leave no other trace;
    elsewhere, where comparing would wait for the device, their version and place.
    """

    coefficients: Tensor
    biases: Tensor | None
    weight: Tensor
    bias: Tensor | None
    marks: tuple[object, ...]
    snapshots: tuple[Tensor, Tensor | None] | None

    @staticmethod
    def of(coefficients: Tensor, biases: Tensor | None, weight: Tensor, bias: Tensor | None) -> Kept:
        """Keeps a weight that was just made."""
        snapshots = None
        if coefficients.device.type == "cpu":
            snapshots = (coefficients.detach().clone(), None if biases is None else biases.detach().clone())
        return Kept(coefficients, biases, weight, bias, _marks(coefficients, biases), snapshots)

    def holds(self, coefficients: Tensor, biases: Tensor | None) -> bool:
        """Whether the coefficients are still those that the weight was made of."""
        if coefficients is not self.coefficients or biases is not self.biases:
            return False
        if self.snapshots is None:
            return _marks(coefficients, biases) == self.marks
        first, second = self.snapshots
        if coefficients.dtype is not first.dtype or not torch.equal(coefficients, first):
            return False
        return biases is None or second is None or torch.equal(biases, second)


def _marks(coefficients: Tensor, biases: Tensor | None) -> tuple[object, ...]:
    return tuple((p._version, p.data_ptr(), p.dtype) for p in (coefficients, biases) if p is not None)


class Expansion:
    """How coefficients (channels_out, channels_in, rank) become a weight (channels_out, out, channels_in, *rest).

    Args:
        basis: the basis of matrices of shape (out, *rest).
        channels_out: copies of the output representation.
        channels_in: copies of the input representation; 1 for biases.
    """

    def __init__(self, basis: IntertwinerBasis, channels_out: int, channels_in: int) -> None:
        self.basis = basis
        self.coefficient_shape = (channels_out, channels_in, basis.rank)
        self.block_shape = (channels_out, basis.shape[0], channels_in, *basis.shape[1:])
        if not isinstance(basis, OrbitBasis) and basis.rank * basis.size > DENSE_LIMIT:
            raise SymcheckError(
                f"the {basis.kind} basis has {basis.rank:,} matrices of {basis.size:,} entries, too many to keep.",
                where="basis",
                remedy="Use fewer components, or the equivariant basis of signed permutations.",
            )

    def buffers(self) -> tuple[Tensor | None, Tensor | None]:
        """A gather index over the flat coefficients and signs; or None and dense rows in float64."""
        basis = self.basis
        if not isinstance(basis, OrbitBasis):
            return None, torch.from_numpy(np.array(basis.matrices(), dtype=np.float64).reshape(basis.rank, basis.size))
        channels_out, channels_in, rank = self.coefficient_shape
        orbit = basis.orbits.index.reshape(basis.shape[0], 1, -1)
        channel = np.arange(channels_out)[:, None] * channels_in + np.arange(channels_in)
        index = (channel[:, None, :, None] * rank + orbit).ravel()
        signs = basis.orbits.sign.astype(np.float64).reshape(basis.shape[0], 1, *basis.shape[1:])
        gather = torch.from_numpy(index.astype(np.int64))  # torch gathers faster by int64 than by int32
        return gather, None if (signs == 1).all() else torch.from_numpy(signs)

    def expand(self, coefficients: Tensor, gather: Tensor | None, factors: Tensor | None) -> Tensor:
        """The weight in the coefficients' dtype; its entries in the order (channels_out, out, channels_in, *rest)."""
        channels_out, out, channels_in, *rest = self.block_shape
        if not self.basis.rank:
            return coefficients.new_zeros(self.block_shape)
        if gather is not None:
            flat = coefficients.view(-1).index_select(0, gather)
            return flat if factors is None else flat.view(self.block_shape) * factors
        rows = cast(Tensor, factors)
        dense = coefficients.reshape(channels_out * channels_in, -1) @ rows
        return dense.view(channels_out, channels_in, out, *rest).transpose(1, 2)

    def standard_deviations(self, variance: float) -> Tensor:
        """(rank,): of independent coefficients that give the weight's entries the mean variance asked for.

        Every entry that an orbit basis does not force to vanish gets the same variance; other bases get the same
        variance in every direction of their span.
        """
        norms = self.basis.squared_norms
        if isinstance(self.basis, OrbitBasis):
            variances = np.full(self.basis.rank, variance * self.basis.size / max(norms.sum(), 1.0))
        else:
            variances = variance * self.basis.size / (max(self.basis.rank, 1) * norms)
        return torch.from_numpy(np.sqrt(variances))


class BasisLayer(EquivariantModule):
    """What `BasisLinear` and `BasisConv2d` share: coefficients, the weight made of them, its cache, its checkpoint.

    Under `torch.no_grad` the weight is kept until the coefficients change. On the CPU a change is noticed by value, so
    that assignments through `.data` count; elsewhere only in eval mode, by version.
    """

    coefficients: nn.Parameter
    bias_coefficients: nn.Parameter | None
    fingerprint: Tensor
    weight_gather: Tensor | None
    weight_factors: Tensor | None
    bias_gather: Tensor | None
    bias_factors: Tensor | None

    def __init__(self, weights: Expansion, biases: Expansion | None, *, init: Init) -> None:
        super().__init__()
        if init not in INITS:
            raise OptionError(f"no initialiser is called {init!r}.", where="init", remedy=suggestion(str(init), INITS))
        self.init: Init = init
        self._weights, self._biases = weights, biases
        channels_out, out, channels_in, inputs, *pixels = weights.block_shape
        self._plain_shape = (channels_out * out, channels_in * inputs, *pixels)
        self.coefficients = nn.Parameter(torch.zeros(weights.coefficient_shape))
        parameter = None if biases is None else nn.Parameter(torch.zeros(biases.coefficient_shape))
        self.register_parameter("bias_coefficients", parameter)
        self._refresh()
        self._kept: Kept | None = None
        self.reset_parameters()

    @property
    def basis(self) -> IntertwinerBasis:
        """The basis of the weight."""
        return self._weights.basis

    @property
    def bias_basis(self) -> IntertwinerBasis | None:
        """The basis of the bias; None without one."""
        return None if self._biases is None else self._biases.basis

    def _refresh(self) -> None:
        """Makes the constant tensors from the float64 bases, in the coefficients' dtype and place."""
        marks = self._weights.basis.fingerprint + (b"" if self._biases is None else self._biases.basis.fingerprint)
        mark = torch.tensor(list(marks), dtype=torch.uint8, device=self.coefficients.device)
        self.register_buffer("fingerprint", mark)
        for name, expansion in (("weight", self._weights), ("bias", self._biases)):
            gather, factors = (None, None) if expansion is None else expansion.buffers()
            device, dtype = self.coefficients.device, self.coefficients.dtype
            self.register_buffer(f"{name}_gather", None if gather is None else gather.to(device), persistent=False)
            factors = None if factors is None else factors.to(device=device, dtype=dtype)
            self.register_buffer(f"{name}_factors", factors, persistent=False)

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> BasisLayer:
        """Moves and casts; constants are made again from the float64 bases, so that `.double()` is exact."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._kept = None
        if not self.coefficients.is_meta:
            self._refresh()
        return self

    def reset_parameters(self, *, gain: float = 1.0, generator: torch.Generator | None = None) -> None:
        """Draws the coefficients so that the materialised weight has the initialiser's variance; biases become 0.

        Args:
            gain: a factor on the standard deviation, for instance 0.01 for a policy head.
            generator: source of randomness; torch's own by default.
        """
        fan_in, fan_out = self._fans()
        variance = 2.0 / (fan_in + fan_out) if self.init == "xavier" else 2.0 / fan_in
        deviations = self._weights.standard_deviations(variance * gain**2)
        with torch.no_grad():
            self.coefficients.normal_(generator=generator)
            self.coefficients.mul_(deviations.to(self.coefficients))
            if self.bias_coefficients is not None:
                self.bias_coefficients.zero_()

    def _fans(self) -> tuple[int, int]:
        channels_out, out, channels_in, *rest = self._weights.block_shape
        pixels = math.prod(rest[1:])
        return channels_in * rest[0] * pixels, channels_out * out * pixels

    def _expand(self) -> tuple[Tensor, Tensor | None]:
        weight = self._weights.expand(self.coefficients, self.weight_gather, self.weight_factors)
        return self._shaped(weight), self._expanded_bias()

    def _shaped(self, block: Tensor) -> Tensor:
        """The block (channels_out, out, channels_in, in, *pixels) as a plain layer's weight."""
        return block.reshape(self._plain_shape)

    def _expanded_bias(self) -> Tensor | None:
        if self._biases is None or self.bias_coefficients is None or not self._biases.basis.rank:
            return None
        return self._biases.expand(self.bias_coefficients, self.bias_gather, self.bias_factors).reshape(-1)

    def weight_and_bias(self) -> tuple[Tensor, Tensor | None]:
        """The weight and bias of the plain layer; kept between changes of the coefficients outside autograd.

        Returns:
            The weight (channels_out * dim_out, channels_in * dim_in, *kernel) and the bias (channels_out * dim_out,)
            or None.
        """
        if torch.is_grad_enabled() or torch.compiler.is_compiling():
            return self._expand()
        coefficients, biases, kept = self.coefficients, self.bias_coefficients, self._kept
        if kept is not None and kept.holds(coefficients, biases):
            return kept.weight, kept.bias
        weight, bias = self._expand()
        if self._may_keep(coefficients):
            self._kept = Kept.of(coefficients, biases, weight, bias)
        return weight, bias

    def _may_keep(self, coefficients: Tensor) -> bool:
        if type(coefficients) is not nn.Parameter or coefficients.is_inference() or is_tracing():
            return False
        return coefficients.device.type == "cpu" or not self.training

    @torch.no_grad()
    def _materialized(self) -> tuple[Tensor, Tensor | None]:
        """Weight and bias computed in float64 and cast once."""
        weight = self._weights.basis.combine(self.coefficients.double().cpu().numpy())
        weight = np.moveaxis(weight, 2, 1)  # (channels_out, out, channels_in, ...)
        shaped = self._shaped(torch.from_numpy(np.ascontiguousarray(weight)))
        bias = None
        if self._biases is not None and self.bias_coefficients is not None and self._biases.basis.rank:
            values = self._biases.basis.combine(self.bias_coefficients.double().cpu().numpy())
            bias = torch.from_numpy(values.reshape(-1)).to(self.coefficients)
        return shaped.to(self.coefficients), bias

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        given = state_dict.get(f"{prefix}fingerprint")
        if given is not None and not torch.equal(given.cpu(), self.fingerprint.cpu()):
            raise SymcheckError(
                "the checkpoint was written for other bases: its fingerprint is "
                f"{_hex(given)}, this layer's is {_hex(self.fingerprint)}.",
                where=prefix.rstrip(".") or type(self).__name__,
                remedy="Build the layer with the same representations, kind of basis and kernel size as when saving.",
            )
        super()._load_from_state_dict(state_dict, prefix, *rest)
        self._kept = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": None}

    def extra_repr(self) -> str:
        """What the layer maps, and how many free numbers per channel pair it has."""
        basis = self.basis
        return (
            f"{basis.rho_in.name} x {self._weights.coefficient_shape[1]} -> "
            f"{basis.rho_out.name} x {self._weights.coefficient_shape[0]}, {basis.kind}, rank {basis.rank}"
        )


def _hex(mark: Tensor) -> str:
    return bytes(mark.cpu().reshape(-1).tolist()[:8]).hex()
