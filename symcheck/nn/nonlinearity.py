"""Nonlinearities that commute with a representation; all others are rejected.

A nonlinear function applied to each entry commutes with permutations, with sign changes only if it is odd, and never
with general rotations. Scaling a vector by a function of its norm, or by an invariant number (a gate), commutes with
every orthogonal representation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn

from symcheck.errors import SymcheckError, suggestion
from symcheck.nn.field_type import EquivariantModule, FieldType, check_channels, require_match
from symcheck.representations import constructors, operations
from symcheck.representations.representation import (
    Representation,
    SignedPermutationRepresentation,
    require_representation,
    same,
)

NAMED: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "leaky_relu": nn.LeakyReLU,
    "elu": nn.ELU,
    "celu": nn.CELU,
    "selu": nn.SELU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "mish": nn.Mish,
    "softplus": nn.Softplus,
    "sigmoid": nn.Sigmoid,
    "relu6": nn.ReLU6,
    "hardswish": nn.Hardswish,
    "hardsigmoid": nn.Hardsigmoid,
    "logsigmoid": nn.LogSigmoid,
    "tanh": nn.Tanh,
    "softsign": nn.Softsign,
    "tanhshrink": nn.Tanhshrink,
    "softshrink": nn.Softshrink,
    "hardshrink": nn.Hardshrink,
    "identity": nn.Identity,
}
"""Pointwise functions."""
Activation = str | nn.Module | type[nn.Module] | Callable[[Tensor], Tensor]
ODD = (nn.Tanh, nn.Softsign, nn.Tanhshrink, nn.Softshrink, nn.Hardshrink, nn.Identity)
"""The odd functions among them, with f(-x) = -f(x)."""
ALTERNATIVES = (
    "Use NormNonlinearity or GatedNonlinearity, which commute with every orthogonal representation, "
    "or the regular representation for hidden layers."
)


def is_pointwise(module: nn.Module) -> bool:
    """Whether a torch module is known to apply one function to each entry separately.

    Args:
        module: any module.

    Returns:
        True for the classes of `NAMED`, and for PReLU with one parameter.

    Example:
        >>> is_pointwise(nn.ReLU()), is_pointwise(nn.Softmax(-1))
        (True, False)
    """
    # A single slope acts on all entries in the same way; a slope per channel would not.
    if isinstance(module, nn.PReLU):
        return module.num_parameters == 1
    return isinstance(module, tuple(NAMED.values()))


def check_commutes(rho: Representation, activation: nn.Module, *, where: str) -> None:
    """Reject a pointwise function that does not commute with a representation.

    Args:
        rho: the representation.
        activation: the module.
        where: how messages name the place.

    Raises:
        SymcheckError: the module is not known to be pointwise or does not commute; the message gives the reason and
            alternatives.

    Example:
        >>> from symcheck.groups import cyclic
        >>> check_commutes(constructors.regular(cyclic(4)), nn.ReLU(), where="example")
    """
    name = type(activation).__name__
    if not is_pointwise(activation):
        raise SymcheckError(
            f"{name} is not known to act entrywise.",
            where=where,
            remedy=f"Known: {', '.join(NAMED)}.",
        )
    # The identity commutes with every matrix, including those that are not signed permutations.
    if isinstance(activation, nn.Identity):
        return
    # f(M x) = M f(x) for an elementwise f requires that every row of M has a single entry.
    if not isinstance(rho, SignedPermutationRepresentation):
        raise SymcheckError(
            f"{name} does not commute with {rho.name}, because its matrices mix components.",
            where=where,
            remedy=ALTERNATIVES,
        )
    # A change of sign requires f(-x) = -f(x).
    if not rho.is_permutation and not isinstance(activation, ODD):
        raise SymcheckError(
            f"{name} does not commute with {rho.name}, because the group changes signs and {name} is not odd.",
            where=where,
            remedy=f"Use an odd function such as tanh. {ALTERNATIVES}",
        )


class PointwiseNonlinearity(EquivariantModule):
    """Applies the same function to every entry; rejects functions that do not commute with the representation.

    Args:
        rho: the representation on the component axis.
        activation: a name ("relu", "tanh", ...), a torch function (`torch.relu`) or a pointwise torch module.

    Raises:
        SymcheckError: unknown, not pointwise, or it does not commute with rho.

    Example:
        >>> from symcheck.groups import cyclic
        >>> PointwiseNonlinearity(constructors.regular(cyclic(4)), "relu")(torch.tensor([-1.0, 2.0])).tolist()
        [0.0, 2.0]
    """

    def __init__(self, rho: Representation, activation: Activation = "relu") -> None:
        super().__init__()
        require_representation(rho, "PointwiseNonlinearity(rho)")
        self.rho = rho
        self.activation = named_activation(activation)
        check_commutes(rho, self.activation, where="PointwiseNonlinearity")

    def forward(self, x: Tensor) -> Tensor:
        """Applies the function to every entry."""
        return cast(Tensor, self.activation(x))

    def propagate(self, given: FieldType) -> FieldType:
        """The same type."""
        require_match(given, FieldType(self.rho, given.channels, given.spatial, flat=given.flat), where=str(self))
        return given

    def materialize(self) -> nn.Module:
        """The torch module itself."""
        return self.activation


def named_activation(activation: Activation) -> nn.Module:
    """A torch activation given by name, function, class or module.

    Raises:
        SymcheckError: an unknown name.

    Example:
        >>> named_activation(torch.tanh), named_activation(nn.ReLU)
        (Tanh(), ReLU())
    """
    if isinstance(activation, nn.Module):
        return activation
    if isinstance(activation, type):
        # A class, instantiated with its defaults.
        return cast(nn.Module, activation())
    if callable(activation):
        # A function such as torch.relu is identified by its name.
        activation = str(getattr(activation, "__name__", activation))
    if activation not in NAMED:
        remedy = suggestion(str(activation), NAMED)
        raise SymcheckError(f"no activation is called {activation!r}.", where="activation", remedy=remedy)
    return NAMED[activation]()


def require_orthogonal(rho: Representation, where: str) -> None:
    """Reject representations that do not preserve norms.

    Raises:
        SymcheckError: some matrix is not orthogonal.
    """
    require_representation(rho, where)
    # The norm nonlinearity is a function of |x|, which only orthogonal matrices preserve.
    if not rho.is_orthogonal:
        raise SymcheckError(
            f"{rho.name} is not orthogonal, so norms are not invariant.",
            where=where,
            remedy="Change to a basis in which the matrices are orthogonal.",
        )


class NormNonlinearity(EquivariantModule):
    """The map x -> x relu(|x| + b) / |x|, with one learned b per channel; it changes norms and preserves directions.

    Args:
        rho: an orthogonal representation.
        channels: number of copies of the representation.

    Raises:
        SymcheckError: not orthogonal, or a number of channels below 1.

    Example:
        >>> from symcheck.groups import cyclic
        >>> NormNonlinearity(constructors.rotation(cyclic(3)), 2)(torch.ones(1, 2, 2)).shape
        torch.Size([1, 2, 2])
    """

    def __init__(self, rho: Representation, channels: int) -> None:
        super().__init__()
        require_orthogonal(rho, "NormNonlinearity")
        self.rho = rho
        self.channels = check_channels(channels, "NormNonlinearity(channels)")
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        """Maps (batch, channels, dim, ...) to the same shape."""
        # The smallest normal number keeps the gradient at x = 0 finite.
        length = x.square().sum(dim=2, keepdim=True).clamp_min(torch.finfo(x.dtype).tiny).sqrt()
        # One bias per channel, broadcast over components and pixels.
        bias = self.bias.reshape(1, self.channels, *(1,) * (x.ndim - 2))
        return x * (torch.relu(length + bias) / length)

    def propagate(self, given: FieldType) -> FieldType:
        """The same type."""
        require_match(given, FieldType(self.rho, self.channels, given.spatial), where="NormNonlinearity")
        return given

    def materialize(self) -> nn.Module:
        """Not available: there is no plain torch counterpart on flat activations.

        Raises:
            SymcheckError: always.
        """
        raise SymcheckError("a norm nonlinearity has no plain torch counterpart.", where="NormNonlinearity")


class GatedNonlinearity(EquivariantModule):
    """The map (s, x) -> sigmoid(s) x: an invariant scalar per channel gates its vector.

    The input transforms by `input_representation`, the direct sum of the trivial representation and rho; the output
    transforms by rho.

    Args:
        rho: any representation.

    Example:
        >>> from symcheck.groups import cyclic
        >>> gate = GatedNonlinearity(constructors.rotation(cyclic(3)))
        >>> gate.input_representation.dim, gate(torch.zeros(1, 4, 3)).shape
        (3, torch.Size([1, 4, 2]))
    """

    def __init__(self, rho: Representation) -> None:
        super().__init__()
        self.rho = rho
        # One invariant component for the gate, then the vector that it scales.
        self.input_representation = operations.direct_sum(constructors.trivial(rho.group), rho)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (batch, channels, 1 + dim, ...) to (batch, channels, dim, ...)."""
        # (batch, channels, 1, ...) broadcasts over the components.
        return x[:, :, 1:] * torch.sigmoid(x[:, :, :1])

    def propagate(self, given: FieldType) -> FieldType:
        """The same channels and pixels, with rho."""
        if not same(given.rho, self.input_representation) or given.flat:
            wanted = FieldType(self.input_representation, given.channels, given.spatial)
            require_match(given, wanted, where="GatedNonlinearity")
        return FieldType(self.rho, given.channels, given.spatial, given.size)

    def materialize(self) -> nn.Module:
        """Not available: there is no plain torch counterpart on flat activations.

        Raises:
            SymcheckError: always.
        """
        raise SymcheckError("a gated nonlinearity has no plain torch counterpart.", where="GatedNonlinearity")
