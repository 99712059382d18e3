"""Layers whose weight is a linear combination of basis matrices; the parameters are the coefficients.

The state dict contains the coefficients and a fingerprint of the bases. A checkpoint for different bases is rejected.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from symcheck.errors import OptionError, SymcheckError, suggestion
from symcheck.intertwiners.basis import IntertwinerBasis
from symcheck.nn.expansion import BiasExpansion, Expansion
from symcheck.nn.field_type import EquivariantModule
from symcheck.nn.kept import Kept

Init = Literal["xavier", "he"]
INITS: tuple[Init, ...] = ("xavier", "he")


def is_tracing() -> bool:
    """Whether `torch.jit.trace` is recording; shapes must not be examined then."""
    return bool(torch.jit.is_tracing())  # type: ignore[attr-defined, no-untyped-call]


class BasisLayer(EquivariantModule):
    """The base class of `BasisLinear` and `BasisConv2d`: coefficients, the weight, its cache and its checkpoint.

    Under `torch.no_grad` the weight is cached until the coefficients change. On the CPU a change is detected by value,
    so assignments through `.data` are detected; on other devices the weight is cached only in eval mode, and a change
    is detected by the version counter.
    """

    weight_coefficients: nn.Parameter
    bias_coefficients: nn.Parameter | None
    fingerprint: Tensor
    weight_gather: Tensor | None
    weight_factors: Tensor | None
    bias_gather: Tensor | None
    bias_factors: Tensor | None

    def __init__(self, weights: Expansion, biases: BiasExpansion | None, *, init: Init) -> None:
        super().__init__()
        if init not in INITS:
            raise OptionError(f"no initialiser is called {init!r}.", where="init", remedy=suggestion(str(init), INITS))
        self.init: Init = init
        self._weights, self._biases = weights, biases
        self.weight_coefficients = nn.Parameter(torch.zeros(weights.stored_shape))
        parameter = None if biases is None else nn.Parameter(torch.zeros(biases.stored_shape))
        self.register_parameter("bias_coefficients", parameter)
        # Buffers take the parameter's dtype and device, so create it first.
        self._refresh()
        self._kept: Kept | None = None
        self.reset_parameters()

    @property
    def coefficients(self) -> Tensor:
        """The coefficients, (channels_out, channels_in, rank): a view of the parameter, to be changed in place."""
        return self._weights.by_channel(self.weight_coefficients)

    @property
    def basis(self) -> IntertwinerBasis:
        """The basis of the weight."""
        return self._weights.basis

    @property
    def bias_basis(self) -> IntertwinerBasis | None:
        """The basis of the bias; None if the layer has no bias."""
        return None if self._biases is None else self._biases.basis

    def _refresh(self) -> None:
        """Creates the constant tensors from the float64 bases, with the coefficients' dtype and device."""
        marks = self._weights.basis.fingerprint + (b"" if self._biases is None else self._biases.basis.fingerprint)
        # A buffer, so that checkpoints contain it.
        mark = torch.tensor(list(marks), dtype=torch.uint8, device=self.weight_coefficients.device)
        self.register_buffer("fingerprint", mark)
        for name, expansion in (("weight", self._weights), ("bias", self._biases)):
            gather, factors = (None, None) if expansion is None else expansion.constants()
            device, dtype = self.weight_coefficients.device, self.weight_coefficients.dtype
            # Not persistent: constants follow from the bases and would only enlarge checkpoints.
            self.register_buffer(f"{name}_gather", None if gather is None else gather.to(device), persistent=False)
            factors = None if factors is None else factors.to(device=device, dtype=dtype)
            self.register_buffer(f"{name}_factors", factors, persistent=False)

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> BasisLayer:
        """Moves and casts; constants are recreated from the float64 bases, so that `.double()` is exact."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        # The cached weight may have a different dtype or device now.
        self._kept = None
        # Parameters on "meta" have no memory, so constants cannot be created.
        if not self.weight_coefficients.is_meta:
            self._refresh()
        return self

    def reset_parameters(self, *, gain: float = 1.0, generator: torch.Generator | None = None) -> None:
        """Draws the coefficients so that the resulting weight has the initialiser's variance; biases become 0.

        Args:
            gain: a factor on the standard deviation, for instance 0.01 for a policy head.
            generator: source of randomness; torch's own by default.
        """
        fan_in, fan_out = self._fans()
        variance = 2.0 / (fan_in + fan_out) if self.init == "xavier" else 2.0 / fan_in
        # Per basis matrix, so that the entries of the weight have the requested variance.
        deviations = self._weights.standard_deviations(variance * gain**2)
        with torch.no_grad():
            # Standard normal in storage order first, then scaled per basis matrix.
            self.weight_coefficients.normal_(generator=generator)
            self.coefficients.mul_(deviations.to(self.weight_coefficients))
            if self.bias_coefficients is not None:
                self.bias_coefficients.zero_()

    def _fans(self) -> tuple[int, int]:
        rows, columns, *pixels = self._weights.plain_shape
        return columns * math.prod(pixels), rows * math.prod(pixels)

    def _expand(self) -> tuple[Tensor, Tensor | None]:
        constants = self._buffers  # a plain dictionary, because attribute access on modules takes half a microsecond
        weight = self._weights.expand(self.weight_coefficients, constants["weight_gather"], constants["weight_factors"])
        return weight, self._expand_bias()

    def _expand_bias(self) -> Tensor | None:
        biases = self._biases
        # There is no invariant bias, so the bias is None.
        if biases is None or not biases.rank:
            return None
        constants = self._buffers
        coefficients = cast(nn.Parameter, self.bias_coefficients)
        return biases.expand(coefficients, constants["bias_gather"], constants["bias_factors"])

    def keep_weight(self) -> Kept | None:
        """The plain layer's weight and bias, cached until the coefficients change; None while autograd records.

        Returns:
            The weight of `materialize`, or None if it cannot be cached: under autograd, in compiled or traced code, and
            in train mode on devices other than the CPU.
        """
        if torch.is_grad_enabled() or torch.compiler.is_compiling():
            return None
        # not by attribute access, which takes half a microsecond on modules
        kept, parameters = self._kept, self._parameters
        if kept is not None and kept.holds(parameters.get("weight_coefficients"), parameters.get("bias_coefficients")):
            return kept
        coefficients, biases = self.weight_coefficients, self.bias_coefficients
        if not self._may_keep(coefficients) or (biases is not None and not self._may_keep(biases)):
            return None
        weight, bias = self._expand()
        self._kept = Kept.of(self._for_product(weight), bias, coefficients, biases)
        return self._kept

    def _for_product(self, weight: Tensor) -> Tensor:
        """The weight in the form in which the forward pass uses a cached one."""
        return self._weights.to_plain(weight)

    def _may_keep(self, coefficients: Tensor) -> bool:
        # Inference tensors have no version counter, and a tracer must record the computation of the weight.
        if type(coefficients) is not nn.Parameter or coefficients.is_inference() or is_tracing():
            return False
        # On accelerators, comparing values would wait for the device; versions are compared instead, in eval mode only.
        return coefficients.is_contiguous() and (coefficients.device.type == "cpu" or not self.training)

    @torch.no_grad()
    def _plain_weight(self) -> tuple[Tensor, Tensor | None]:
        """Weight and bias computed in float64 and cast once."""
        weight = self._weights.plain(self.weight_coefficients)
        if self._biases is None or self.bias_coefficients is None or not self._biases.rank:
            return weight, None
        return weight, self._biases.plain(self.bias_coefficients)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        given = state_dict.get(f"{prefix}fingerprint")
        if given is not None and not torch.equal(given.cpu(), self.fingerprint.cpu()):
            raise SymcheckError(
                "the checkpoint was written for other bases: its fingerprint is "
                f"{_hex(given)}, this layer's is {_hex(self.fingerprint)}.",
                where=prefix.rstrip(".") or type(self).__name__,
                remedy=(
                    "Build the layer with the same representations, kind of basis and kernel size as when it was saved."
                ),
            )
        super()._load_from_state_dict(state_dict, prefix, *rest)
        # Loading coefficients invalidates the cached weight.
        self._kept = None

    def __getstate__(self) -> dict[str, Any]:
        # A copy or pickle recomputes its weight: the cached one refers to the memory of this layer's parameters.
        return {**self.__dict__, "_kept": None}

    def extra_repr(self) -> str:
        """The representations of the layer, and its number of coefficients per pair of channels."""
        basis = self.basis
        return (
            f"{basis.rho_in.name} x {self._weights.channels_in} -> "
            f"{basis.rho_out.name} x {self._weights.channels_out}, {basis.kind}, rank {basis.rank}"
        )


def _hex(mark: Tensor) -> str:
    return bytes(mark.cpu().reshape(-1).tolist()[:8]).hex()
