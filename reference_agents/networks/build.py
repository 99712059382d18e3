"""Builds the layers of a network from its description.

Hidden layers carry the regular representation. Basis matrices are scaled to norm 1, like the singular vectors in the
paper's Algorithm 1. The optimiser updates coefficients, so the effect of a learning rate depends on the scale of the
basis.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import numpy as np

from reference_agents.catalog import Convolution, NetworkPlan, Task
from reference_agents.networks.bodies import separate_bodies
from reference_agents.networks.plans import (
    ActorCriticPlan,
    ConvPlan,
    FlattenPlan,
    GlobalAveragePoolPlan,
    GlobalMaxPoolPlan,
    HiddenPlan,
    Init,
    LinearPlan,
    PoolPlan,
)
from reference_agents.symmetries import spatial_operators, task_symmetry
from symcheck.array_types import Floats
from symcheck.errors import SpecError
from symcheck.intertwiners.basis import IntertwinerBasis, Kind
from symcheck.intertwiners.build import conv_intertwiner_basis, intertwiner_basis
from symcheck.representations import constructors as representations
from symcheck.representations import grids, operations
from symcheck.representations.coordinates import mixed_coordinates
from symcheck.representations.representation import Representation, SignedPermutationRepresentation

# One basis element, the 1 x 1 identity: its coefficients are the weights.
_DENSE: Floats = np.ones((1, 1, 1))


def build_plan(task: Task, network: NetworkPlan) -> ActorCriticPlan:
    """The layers of a network for a task.

    Args:
        task: the task, which gives the representations on observations and actions.
        network: the description, which gives widths and the kind of basis.

    Returns:
        The trunk, the policy head and the value head.
    """
    builder = _DenseBuilder(network) if network.basis == "dense" else _BasisBuilder(task, network)
    widths = (task.channels_in(dense=network.basis == "dense"), *network.channels)
    trunk: list[HiddenPlan] = []
    # (channels in, channels out) of each hidden layer.
    for depth, channels in enumerate(pairwise(widths)):
        if depth < len(network.convolutions):
            trunk.append(builder.convolution(depth, channels, network.convolutions[depth]))
        # The first layer after convolutions without a pool reads the flattened image.
        elif depth == len(network.convolutions) > 0 and network.pool == "none":
            size = image_size(task, network)
            trunk.append(builder.flat(depth, channels, size, free=depth >= len(network.channels) - network.free_layers))
        else:
            trunk.append(builder.linear(depth, channels))
        if depth == len(network.convolutions) - 1:
            trunk.append(_POOLS[network.pool])
    depth = len(network.channels)
    plan = ActorCriticPlan(
        tuple(trunk),
        # `depth` seeds the random bases, so each layer has a different one.
        dataclasses.replace(builder.policy(depth, widths[-1], task.actions), gain=network.policy_gain),
        builder.value(depth + 1, widths[-1]),
        builder.deviation(task.actions) if task.continuous else None,
        network.input_scale,
        task.masked,
        network.initial_deviation,
    )
    return separate_bodies(plan) if network.separate_bodies else plan


_POOLS: dict[str, PoolPlan] = {"max": GlobalMaxPoolPlan(), "average": GlobalAveragePoolPlan(), "none": FlattenPlan()}


def image_size(task: Task, network: NetworkPlan) -> tuple[int, int]:
    """Height and width of the output of the last convolution.

    Example:
        >>> from reference_agents.catalog import find_network, find_task
        >>> image_size(find_task("pong"), find_network(find_task("pong"), "cnn"))
        (8, 8)
    """
    height, width = task.observation_shape[-2:]
    for window in network.convolutions:
        # A convolution without padding: floor((side - kernel) / stride) + 1.
        height, width = ((side - window.kernel) // window.stride + 1 for side in (height, width))
    return height, width


def _init(network: NetworkPlan) -> Init:
    """The initial weights that a network's description requires."""
    # ReLU convolutions start with He's variance, vector networks with Xavier's.
    return cast(Init, network.init or ("he" if network.convolutions else "xavier"))


class _DenseBuilder:
    """Layers without a basis: every weight is a parameter."""

    def __init__(self, network: NetworkPlan) -> None:
        self._init, self._gain = _init(network), network.bias_gain

    def _layer(self, name: str, units_in: int, units_out: int) -> LinearPlan:
        return LinearPlan(name, units_in, units_out, _DENSE, _DENSE, self._init, bias_gain=self._gain)

    def linear(self, depth: int, channels: tuple[int, int]) -> LinearPlan:
        return self._layer(f"hidden{depth}", *channels)

    def flat(self, depth: int, channels: tuple[int, int], size: tuple[int, int], *, free: bool) -> LinearPlan:
        return free_linear(f"hidden{depth}", channels, self._init, self._gain, pixels=size[0] * size[1])

    def convolution(self, depth: int, channels: tuple[int, int], window: Convolution) -> ConvPlan:
        units_in = window.kernel**2 * channels[0]
        return ConvPlan(self._layer(f"hidden{depth}", units_in, channels[1]), window.kernel, window.stride, 1)

    def policy(self, depth: int, channels: int, actions: int) -> LinearPlan:
        return self._layer("policy", channels, actions)

    def value(self, depth: int, channels: int) -> LinearPlan:
        return self._layer("value", channels, 1)

    def deviation(self, actions: int) -> Floats:
        return np.eye(actions)[:, :, None]


class _BasisBuilder:
    """Layers spanned by a basis between the task's representations and the regular one."""

    def __init__(self, task: Task, network: NetworkPlan) -> None:
        symmetry = task_symmetry(task)
        self._kind = cast(Kind, network.basis)
        self._free_heads, self._free_layers = network.free_heads, network.free_layers
        self._init, self._gain = _init(network), network.bias_gain
        self._one = representations.trivial(symmetry.group)
        self._hidden = representations.regular(symmetry.group)
        self._spatial = spatial_operators(task)
        self._input = self._one if self._spatial else symmetry.observation_representation
        self._actions = symmetry.action_representation

    def _layer(
        self, name: str, channels: tuple[int, int], rho_out: Representation, weight: Floats, depth: int
    ) -> LinearPlan:
        # A bias is an intertwiner from the trivial representation: an invariant vector.
        bias = unit_basis(intertwiner_basis(self._one, rho_out, kind=self._kind, seed=depth))
        return LinearPlan(name, *channels, weight, bias if len(bias) else None, self._init, bias_gain=self._gain)

    def _between(self, rho_in: Representation, rho_out: Representation, depth: int) -> Floats:
        return unit_basis(intertwiner_basis(rho_in, rho_out, kind=self._kind, seed=depth))

    def _free_head(self, name: str, channels: int, outputs: int) -> LinearPlan:
        # After free layers, features are plain numbers; otherwise each channel has one number per group element.
        dim = 1 if self._free_layers else self._hidden.dim
        return free_linear(name, (channels, outputs), self._init, self._gain, dim=dim)

    def linear(self, depth: int, channels: tuple[int, int]) -> LinearPlan:
        rho_in = self._hidden if depth else self._input
        return self._layer(f"hidden{depth}", channels, self._hidden, self._between(rho_in, self._hidden, depth), depth)

    def flat(self, depth: int, channels: tuple[int, int], size: tuple[int, int], *, free: bool) -> LinearPlan:
        pixels = size[0] * size[1]
        if free:
            return free_linear(f"hidden{depth}", channels, self._init, self._gain, pixels=pixels, dim=self._hidden.dim)
        rho_in = flat_representation(self._hidden, self._spatial or (), size)
        weight = self._between(rho_in, self._hidden, depth)
        layer = self._layer(f"hidden{depth}", channels, self._hidden, weight, depth)
        return dataclasses.replace(layer, pixels=pixels)

    def convolution(self, depth: int, channels: tuple[int, int], window: Convolution) -> ConvPlan:
        rho_in = self._hidden if depth else self._input
        basis = unit_basis(
            conv_intertwiner_basis(
                rho_in, self._hidden, window.kernel, spatial=self._spatial or (), kind=self._kind, seed=depth
            )
        )
        # (rank, out, in, height, width) to (rank, out, height * width * in): pixels before components
        pixels_first = basis.transpose(0, 1, 3, 4, 2).reshape(*basis.shape[:2], -1)
        layer = self._layer(f"hidden{depth}", channels, self._hidden, pixels_first, depth)
        return ConvPlan(layer, window.kernel, window.stride, rho_in.dim)

    def policy(self, depth: int, channels: int, actions: int) -> LinearPlan:
        if self._free_heads:
            return self._free_head("policy", channels, actions)
        weight = self._between(self._hidden, self._actions, depth)
        return self._layer("policy", (channels, 1), self._actions, weight, depth)

    def value(self, depth: int, channels: int) -> LinearPlan:
        if self._free_heads:
            return self._free_head("value", channels, 1)
        weight = self._between(self._hidden, self._one, depth)
        return self._layer("value", (channels, 1), self._one, weight, depth)

    def deviation(self, actions: int) -> Floats:
        # Without equivariance every coordinate has its own deviation.
        if self._kind != "equivariant" or self._free_heads:
            return np.eye(actions)[:, :, None]
        if not isinstance(self._actions, SignedPermutationRepresentation):
            return _tied_deviations(self._actions)
        # An invariant vector of the permutations: coordinates that are exchanged share a deviation.
        return unit_basis(intertwiner_basis(self._one, _without_signs(self._actions)))


def free_linear(
    name: str, channels: tuple[int, int], init: Init, gain: float, *, pixels: int = 1, dim: int = 1
) -> LinearPlan:
    """An ordinary layer on top of channels with several components, or with several positions of an image."""
    components = pixels * dim
    return LinearPlan(name, channels[0] * components, channels[1], _DENSE, _DENSE, init, components, gain, pixels)


def flat_representation(rho: Representation, spatial: Sequence[str], size: tuple[int, int]) -> Representation:
    """The representation on the flattened image: positions and components transform together.

    Args:
        rho: the representation on the components.
        spatial: the operator of each generator.
        size: height and width.

    Returns:
        A representation of dimension height * width * rho.dim.
    """
    return operations.tensor(grids.image_grid(rho.group, *size, spatial), rho)


def _tied_deviations(rho: Representation) -> Floats:
    """One deviation for each set of coordinates that the group mixes, shape (blocks, coordinates, 1).

    A Gaussian with one deviation is unchanged by rotations and reflections, so the maps must be orthogonal.

    Raises:
        SpecError: the maps are not orthogonal.
    """
    matrices = [np.asarray(rho.matrix(g), dtype=float) for g in rho.group.generators]
    # Entries of SPEC files have the digits of a float64.
    if any(not np.allclose(matrix @ matrix.T, np.eye(rho.dim), atol=1e-9) for matrix in matrices):
        raise SpecError(
            "actions may only be permuted, negated or rotated, but these maps change norms.",
            where="action",
            remedy="A Gaussian policy has no equivariant standard deviation under these maps: rescale the actions.",
        )
    labels = mixed_coordinates(rho)
    basis = (labels[None, :] == np.arange(labels.max() + 1)[:, None]).astype(float)
    scaled: Floats = (basis / np.linalg.norm(basis, axis=1, keepdims=True))[:, :, None]
    return scaled


def _without_signs(rho: SignedPermutationRepresentation) -> Representation:
    """The representation on deviations: coordinates are permuted like actions, without signs."""
    return representations.permutation(rho.group, [image.index.tolist() for image in rho.images])


def unit_basis(basis: IntertwinerBasis) -> Floats:
    """The matrices of a basis, each scaled to norm 1, shape (rank, *shape)."""
    matrices = basis.matrices()
    scaled: Floats = matrices / np.sqrt(basis.squared_norms).reshape(-1, *(1,) * (matrices.ndim - 1))
    return scaled
