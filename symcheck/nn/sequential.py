"""Networks from equivariant modules, checked when built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast

from torch import Tensor, nn

from symcheck.errors import SymcheckError
from symcheck.nn.field_type import EquivariantModule, FieldType
from symcheck.nn.nonlinearity import check_commutes, is_pointwise


class EquivariantSequential(EquivariantModule):
    """A chain of modules; the output type of each must be the input type of the next.

    Plain pointwise torch activations (`torch.nn.ReLU()`, ...) between modules are allowed and are checked too.

    Args:
        *modules: equivariant modules and pointwise activations; the first must declare its input type.
        input_size: height and width of the images, if known; strides are then checked.

    Raises:
        SymcheckError: no module, a module that is not equivariant, or types that do not match; the message gives the
            position.

    Example:
        >>> import torch
        >>> from symcheck.groups import cyclic
        >>> from symcheck.nn.linear import BasisLinear
        >>> from symcheck.representations import regular, signed_permutation
        >>> C2 = cyclic(2)
        >>> net = EquivariantSequential(
        ...     BasisLinear(signed_permutation(C2, [[-1, -1]]), regular(C2), 1, 8),
        ...     torch.nn.ReLU(),
        ...     BasisLinear(regular(C2), regular(C2), 8, 1),
        ... )
        >>> net(torch.zeros(5, 1, 2)).shape
        torch.Size([5, 1, 2])
    """

    def __init__(self, *modules: nn.Module, input_size: tuple[int, int] | None = None) -> None:
        super().__init__()
        first = getattr(modules[0], "input_type", None) if modules else None
        if first is None:
            raise SymcheckError(
                "the first module must declare its input type.",
                where="EquivariantSequential",
                remedy="Start with SplitChannels, BasisLinear or BasisConv2d.",
            )
        self.layers = nn.ModuleList(modules)
        start = first if input_size is None else replace(first, size=input_size)
        self.input_type = start
        # Every pair of neighbours is checked here, before any data.
        self.output_type = self.propagate(start)

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, position: int) -> nn.Module:
        return self.layers[position]

    def __iter__(self) -> Iterator[nn.Module]:
        return iter(self.layers)

    def forward(self, x: Tensor) -> Tensor:
        """Applies the modules in order."""
        for layer in self.layers:
            x = layer(x)
        return x

    def propagate(self, given: FieldType) -> FieldType:
        """The output type, computed module by module."""
        for position, layer in enumerate(self.layers):
            given = step_type(layer, given, where=f"EquivariantSequential[{position}]")
        return given

    def materialize(self) -> nn.Sequential:
        """Plain torch modules on flat activations; modules that split or merge channels are dropped."""
        plain = (layer.materialize() if isinstance(layer, EquivariantModule) else layer for layer in self.layers)
        # Identities in the plain network would each cost a call.
        return nn.Sequential(*(module for module in plain if not isinstance(module, nn.Identity)))


def step_type(layer: nn.Module, given: FieldType, *, where: str) -> FieldType:
    """The type after one module.

    Raises:
        SymcheckError: the module is not equivariant, or has a different input type.
    """
    if isinstance(layer, EquivariantModule):
        try:
            return layer.propagate(given)
        except SymcheckError as error:
            # Prefix the layer's message with its place in the network.
            inner = f"{where}: {error.where}" if error.where else where
            raise SymcheckError(error.problem, where=inner, remedy=error.remedy) from error
    if not is_pointwise(layer):
        raise SymcheckError(
            f"{type(layer).__name__} is not known to be equivariant.",
            where=where,
            remedy="Use the modules of symcheck.nn and pointwise torch activations.",
        )
    check_commutes(given.rho, layer, where=where)
    return given


class EquivariantHeads(EquivariantModule):
    """A body with several heads, for instance for a policy and a value.

    Args:
        body: the shared network.
        heads: modules by name, each applied to the output of the body.

    Returns a tuple with one output per head, in the order given. The size of images is the body's `input_size`.

    Raises:
        SymcheckError: no head, or types that do not fit.

    Example:
        >>> import torch
        >>> from symcheck.groups import cyclic
        >>> from symcheck.nn.linear import BasisLinear
        >>> from symcheck.representations import regular, trivial
        >>> C2 = cyclic(2)
        >>> body = EquivariantSequential(BasisLinear(regular(C2), regular(C2), 1, 8), torch.nn.ReLU())
        >>> net = EquivariantHeads(body, {"action": BasisLinear(regular(C2), regular(C2), 8, 1),
        ...                               "value": BasisLinear(regular(C2), trivial(C2), 8, 1)})
        >>> [output.shape for output in net(torch.zeros(5, 1, 2))]
        [torch.Size([5, 1, 2]), torch.Size([5, 1, 1])]
    """

    def __init__(self, body: EquivariantModule, heads: Mapping[str, EquivariantModule]) -> None:
        super().__init__()
        if not heads or body.input_type is None:
            raise SymcheckError(
                "the body must declare its input type, and at least one head is needed.", where="EquivariantHeads"
            )
        self.body = body
        self.heads = nn.ModuleDict(heads)
        self.input_type = body.input_type
        # All heads take the body's output type.
        between = body.propagate(body.input_type)
        self.output_types = {
            name: step_type(head, between, where=f"EquivariantHeads[{name!r}]") for name, head in heads.items()
        }

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """One output per head, in order."""
        hidden = self.body(x)
        return tuple(head(hidden) for head in self.heads.values())

    def propagate(self, given: FieldType) -> FieldType:
        """Not available: several outputs have no single type.

        Raises:
            SymcheckError: always.
        """
        raise SymcheckError("a module with several heads must be the last one.", where="EquivariantHeads")

    def materialize(self) -> PlainHeads:
        """Plain torch modules on flat activations."""
        heads = {name: _alone(cast(EquivariantModule, head).materialize()) for name, head in self.heads.items()}
        return PlainHeads(self.body.materialize(), heads)


def _alone(module: nn.Module) -> nn.Module:
    """The only module of a sequence, which saves a microsecond per call; other modules are returned unchanged."""
    return module[0] if isinstance(module, nn.Sequential) and len(module) == 1 else module


class PlainHeads(nn.Module):
    """A plain body with several plain heads; returns a tuple with one output per head.

    Args:
        body: any module.
        heads: modules by name, each applied to the output of the body.
    """

    def __init__(self, body: nn.Module, heads: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self.body = body
        self.heads = nn.ModuleDict(heads)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """One output per head, in order."""
        hidden = self.body(x)
        return tuple(head(hidden) for head in self.heads.values())
