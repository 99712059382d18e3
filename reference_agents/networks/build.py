"""From a network's description to its layers.

Hidden layers carry the regular representation. Basis matrices are scaled to norm 1, as the singular vectors of the
paper's Algorithm 1 are: the optimiser's steps are per coefficient, so the scale of the basis is part of what a learning
rate means.
"""

from __future__ import annotations

from itertools import pairwise
from typing import cast

import numpy as np

from reference_agents.catalog import NetworkPlan, Task
from reference_agents.networks.actor_critic import ActorCriticPlan
from reference_agents.networks.layers import Basis, LinearPlan
from reference_agents.symmetries import task_symmetry
from symcheck.intertwiners.basis import Kind
from symcheck.intertwiners.build import intertwiner_basis
from symcheck.representations import constructors as representations
from symcheck.representations.representation import Representation

_DENSE: Basis = np.ones((1, 1, 1))


def build_plan(task: Task, network: NetworkPlan) -> ActorCriticPlan:
    """The layers of a network for a task.

    Args:
        task: gives the observation and action representations.
        network: gives widths and the kind of basis.

    Returns:
        The trunk, the policy head and the value head.
    """
    symmetry = task_symmetry(task)
    inputs, actions = symmetry.observation_representation, symmetry.action_representation
    if network.basis == "dense":
        return _dense_plan(inputs.dim, network.channels, actions.dim)
    kind = cast(Kind, network.basis)
    hidden, one = representations.regular(symmetry.group), representations.trivial(symmetry.group)
    widths, spaces = (1, *network.channels), (inputs, *(hidden for _ in network.channels))
    trunk = tuple(
        _basis_layer(f"hidden{depth}", between, channels, kind, seed=depth)
        for depth, (between, channels) in enumerate(zip(pairwise(spaces), pairwise(widths), strict=True))
    )
    depth = len(trunk)
    return ActorCriticPlan(
        trunk,
        _basis_layer("policy", (spaces[-1], actions), (widths[-1], 1), kind, seed=depth),
        _basis_layer("value", (spaces[-1], one), (widths[-1], 1), kind, seed=depth + 1),
    )


def _dense_plan(inputs: int, channels: tuple[int, ...], actions: int) -> ActorCriticPlan:
    widths = (inputs, *channels)
    trunk = [LinearPlan(f"hidden{depth}", *units, _DENSE, _DENSE) for depth, units in enumerate(pairwise(widths))]
    policy, value = (
        LinearPlan(name, widths[-1], units, _DENSE, _DENSE) for name, units in (("policy", actions), ("value", 1))
    )
    return ActorCriticPlan(tuple(trunk), policy, value)


def _basis_layer(
    name: str, between: tuple[Representation, Representation], channels: tuple[int, int], kind: Kind, *, seed: int
) -> LinearPlan:
    rho_in, rho_out = between
    one = representations.trivial(rho_in.group)
    weight, bias = (unit_basis(rho, rho_out, kind, seed=seed) for rho in (rho_in, one))
    return LinearPlan(name, *channels, weight, bias)


def unit_basis(rho_in: Representation, rho_out: Representation, kind: Kind, *, seed: int = 0) -> Basis:
    """The basis of intertwiners with every matrix scaled to norm 1, shape (rank, dim_out, dim_in)."""
    basis = intertwiner_basis(rho_in, rho_out, kind=kind, seed=seed)
    scaled: Basis = basis.matrices() / np.sqrt(basis.squared_norms)[:, None, None]
    return scaled
