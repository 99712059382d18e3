"""Layers whose weight is a combination of basis matrices: the free numbers are the coefficients.

For orbit bases the weight is a gather, `weight[e] = sign[e] * coefficients[orbit of e]`; for other bases a product with
the basis rows. The state dict holds the coefficients and a fingerprint of the bases, so that a checkpoint either means
the same function or is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from symcheck.errors import OptionError, SymcheckError, suggestion
from symcheck.intertwiners.basis import IntertwinerBasis
from symcheck.intertwiners.orbit_basis import OrbitBasis
from symcheck.nn.field_type import EquivariantModule

Init = Literal["xavier", "he"]
Words = npt.NDArray[np.uint8] | npt.NDArray[np.uint64]
INITS: tuple[Init, ...] = ("xavier", "he")
DENSE_LIMIT = 50_000_000
"""Largest rank * size of a basis that is kept as dense rows."""


def is_tracing() -> bool:
    """Whether `torch.jit.trace` is recording, when shapes must not be looked at."""
    return bool(torch.jit.is_tracing())  # type: ignore[attr-defined, no-untyped-call]


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
    memory: tuple[tuple[Words, Words], ...]

    @staticmethod
    def of(weight: Tensor, bias: Tensor | None, *parameters: Tensor | None) -> Kept:
        """Keeps a weight that was just made of these parameters."""
        words = [_words(p) for p in parameters if p is not None and p.device.type == "cpu"]
        return Kept(parameters, weight, bias, _versions(parameters), tuple((live, live.copy()) for live in words))

    def holds(self, *parameters: Tensor | None) -> bool:
        """Whether the parameters are still those that the weight was made of."""
        for given, own in zip(parameters, self.parameters, strict=True):
            if given is not own:
                return False
        if _versions(parameters) != self.versions:
            return False
        return all(not (live != copied).any() for live, copied in self.memory)


def _versions(parameters: Iterable[Tensor | None]) -> tuple[tuple[int, int, torch.dtype], ...]:
    """Moves with every change that torch counts, with the memory and with the dtype."""
    return tuple([(p._version, p.data_ptr(), p.dtype) for p in parameters if p is not None])


def _words(parameter: Tensor) -> Words:
    """The parameter's memory as integers: a view, not a copy."""
    memory = parameter.detach().reshape(-1).view(torch.uint8).numpy()
    return memory.view(np.uint64) if memory.size % 8 == 0 else memory


class Expansion:
    """How coefficients (channels_out, channels_in, rank) become a weight (channels_out, out, channels_in, *rest).

    Args:
        basis: the basis of matrices of shape (out, *rest).
        channels_out: copies of the output representation.
        channels_in: copies of the input representation; 1 for biases.
        is_bias: whether the weight is a vector, (channels_out * out,).
    """

    def __init__(self, basis: IntertwinerBasis, channels_out: int, channels_in: int, *, is_bias: bool = False) -> None:
        self.basis = basis
        self.rank, self.is_bias = basis.rank, is_bias
        self.coefficient_shape = (channels_out, channels_in, basis.rank)
        self.block_shape = (channels_out, basis.shape[0], channels_in, *basis.shape[1:])
        rows, columns, pixels = channels_out * basis.shape[0], channels_in * basis.shape[1], basis.shape[2:]
        self.plain_shape: tuple[int, ...] = (rows,) if is_bias else (rows, columns, *pixels)
        if not isinstance(basis, OrbitBasis) and basis.rank * basis.size > DENSE_LIMIT:
            raise SymcheckError(
                f"the {basis.kind} basis has {basis.rank:,} matrices of {basis.size:,} entries, too many to keep.",
                where="basis",
                remedy="Use fewer components, or the equivariant basis of signed permutations.",
            )

    def buffers(self) -> tuple[Tensor | None, Tensor | None]:
        """A gather index over the flat coefficients and signs; or None and dense rows in float64."""
        basis = self.basis
        if not basis.rank:
            return None, None
        if not isinstance(basis, OrbitBasis):
            return None, torch.from_numpy(np.array(basis.matrices(), dtype=np.float64).reshape(basis.rank, basis.size))
        channels_out, channels_in, rank = self.coefficient_shape
        orbit = basis.orbits.index.reshape(basis.shape[0], 1, -1)
        channel = np.arange(channels_out)[:, None] * channels_in + np.arange(channels_in)
        index = (channel[:, None, :, None] * rank + orbit).ravel()
        signs = basis.orbits.sign.astype(np.float64).reshape(1, basis.shape[0], 1, *basis.shape[1:])
        gather = torch.from_numpy(index.astype(np.int64))  # torch gathers faster by int64 than by int32
        if (signs == 1).all():
            return gather, None
        everywhere = np.broadcast_to(signs, self.block_shape).reshape(self.plain_shape)
        return gather, torch.from_numpy(np.ascontiguousarray(everywhere))

    def expand(self, coefficients: Tensor, gather: Tensor | None, factors: Tensor | None) -> Tensor:
        """The plain layer's weight, of shape `plain_shape`, in the coefficients' dtype.

        As few operations as possible: at small batches they, and not the arithmetic, take the time.
        """
        if gather is not None and factors is None:
            if self.is_bias:
                return torch.take(coefficients, gather)
            return coefficients.reshape(-1).index_select(0, gather).view(self.plain_shape)
        if not self.rank:
            return coefficients.new_zeros(self.plain_shape)
        channels_out, out, channels_in, *rest = self.block_shape
        signs_or_rows = cast(Tensor, factors)
        if gather is not None:
            return coefficients.reshape(-1).index_select(0, gather).view(self.plain_shape) * signs_or_rows
        dense = coefficients.reshape(channels_out * channels_in, -1) @ signs_or_rows
        return dense.view(channels_out, channels_in, out, *rest).transpose(1, 2).reshape(self.plain_shape)

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
        constants = self._buffers  # a plain dictionary: attributes of modules take half a microsecond each
        weight = self._weights.expand(self.coefficients, constants["weight_gather"], constants["weight_factors"])
        biases = self._biases
        if biases is None or not biases.rank:
            return weight, None
        coefficients = cast(nn.Parameter, self.bias_coefficients)
        return weight, biases.expand(coefficients, constants["bias_gather"], constants["bias_factors"])

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
            self._kept = Kept.of(weight, bias, coefficients, biases)
        return weight, bias

    def _may_keep(self, coefficients: Tensor) -> bool:
        if type(coefficients) is not nn.Parameter or coefficients.is_inference() or is_tracing():
            return False
        return coefficients.is_contiguous() and (coefficients.device.type == "cpu" or not self.training)

    @torch.no_grad()
    def _materialized(self) -> tuple[Tensor, Tensor | None]:
        """Weight and bias computed in float64 and cast once."""
        weight = _combined(self._weights, self.coefficients)
        if self._biases is None or self.bias_coefficients is None or not self._biases.rank:
            return weight, None
        return weight, _combined(self._biases, self.bias_coefficients)

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


def _combined(expansion: Expansion, coefficients: Tensor) -> Tensor:
    """The plain weight, worked out in float64 on the CPU and cast once."""
    block = expansion.basis.combine(coefficients.detach().double().cpu().numpy())
    weight = np.ascontiguousarray(np.moveaxis(block, 2, 1)).reshape(expansion.plain_shape)
    return torch.from_numpy(weight).to(coefficients)


def _hex(mark: Tensor) -> str:
    return bytes(mark.cpu().reshape(-1).tolist()[:8]).hex()
