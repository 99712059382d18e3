"""Gives policy and value hidden layers of their own, within one stack of layers.

Every component of a hidden representation is doubled, one copy for the policy and one for the value, and no basis
element connects the two. No other code depends on this: the network is one trunk whose basis is block-diagonal.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from reference_agents.networks.plans import ActorCriticPlan, LinearPlan
from symcheck.array_types import Floats

# The component of a pair (policy, value) that the policy head and the value head read.
_READERS = np.eye(2)


def separate_bodies(plan: ActorCriticPlan) -> ActorCriticPlan:
    """The same network with hidden layers for the policy and others of the same widths for the value.

    Args:
        plan: a network of vectors.

    Returns:
        The plan, with twice as many hidden units.

    Example:
        >>> from reference_agents.catalog import find_network, find_task
        >>> from reference_agents.networks.build import build_plan
        >>> task = find_task("cartpole")
        >>> plan = build_plan(task, find_network(task, "mlp"))
        >>> plan.trunk[1].outputs, separate_bodies(plan).trunk[1].outputs
        (128, 256)
    """
    first, *later = (layer.linear for layer in plan.trunk if isinstance(layer, LinearPlan))
    column, blocks = _READERS[:, :, None], [np.diag(reader) for reader in _READERS]
    trunk = (_between_pairs(first, column, column), *(_between_pairs(layer, blocks, column) for layer in later))
    policy, value = (
        _between_pairs(_by_components(head), [reader[None]], None)
        for head, reader in zip((plan.policy, plan.value), _READERS, strict=True)
    )
    return dataclasses.replace(plan, trunk=trunk, policy=policy, value=value)


def _by_components(head: LinearPlan) -> LinearPlan:
    """A head that reads the components of the last hidden layer; unconstrained heads read them as channels."""
    pieces = head.components_in
    return dataclasses.replace(
        head, channels_in=head.channels_in // pieces, components_in=1, weight_basis=np.eye(pieces)[:, None]
    ) if pieces > 1 else head  # fmt: skip


def _between_pairs(layer: LinearPlan, weight: list[Floats] | Floats, bias: Floats | None) -> LinearPlan:
    """A layer whose components come in pairs; each matrix says which half of a pair is mapped to which."""
    # The pair is the inner index, so that a representation's components stay the blocks that they were.
    paired = np.concatenate([np.stack([np.kron(element, part) for element in layer.weight_basis]) for part in weight])
    offset = layer.bias_basis
    if offset is not None and bias is not None:
        offset = np.concatenate([np.stack([np.kron(element, part) for element in offset]) for part in bias])
    return dataclasses.replace(layer, weight_basis=paired, bias_basis=offset)
