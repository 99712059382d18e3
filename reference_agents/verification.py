"""Verifies networks before and after training.

Every network that claims equivariance, and every user's own network, is verified with the engine of `verify-net`, as a
plain module without the stacked program, by its weights and on samples. Baselines make no claim and are not verified.
If a network has an equivariant convolutional trunk below ordinary layers, only the trunk is verified; the policy on top
of it makes no claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from reference_agents.catalog import NetworkPlan, Task
from reference_agents.export import PolicyValueNetwork
from reference_agents.networks.build import image_size
from reference_agents.record import Verification
from reference_agents.symmetries import spatial_operators, task_symmetry
from symcheck.engine.results import PropertyResult
from symcheck.representations import constructors as representations
from symcheck.representations import grids, operations
from symcheck.representations.representation import Representation
from symcheck.statements.statement import as_paragraph
from symcheck.verdict import Verdict

SAMPLES = 1_000
NOT_CLAIMED = Verification(None, "makes no claim to be equivariant", skipped="not_claimed")
DIVERGED = Verification(None, "diverged, so there is no network to verify", skipped="diverged")


def verify(module: torch.nn.Module, network: NetworkPlan, task: Task) -> Verification:
    """Verify a network under the symmetry of its task.

    Args:
        module: maps observations to (logits, values).
        network: the description of the network, which says whether it makes a claim.
        task: the task, which gives the symmetry and the shape of an observation.

    Returns:
        The verdict and its evidence.
    """
    # A user's own network may be equivariant under the task's symmetry, if there is one.
    if network.claims_equivariance or (network.basis == "user" and task.symmetry):
        verdict, decisive = _run_verify_net(module, network.name, task, ("action", "invariant"))
        return Verification(verdict, f"{decisive.name}: {decisive.detail}")
    if network.basis == "equivariant" and network.free_layers and isinstance(module, PolicyValueNetwork):
        features, rho = _features(module, task, network)
        verdict, decisive = _run_verify_net(features, f"the features of {network.name}", task, (rho,))
        evidence = decisive.detail if verdict == "failed" else _first_sentence(decisive)
        free = "the layers after them are unconstrained, so the policy is not equivariant"
        detail = f"features {verdict} ({decisive.name}: {evidence}); {free}"
        return Verification("failed" if verdict == "failed" else None, detail, features=verdict)
    return NOT_CLAIMED


def _first_sentence(result: PropertyResult) -> str:
    """The reason of the verdict, or otherwise the first statement of its evidence."""
    statements = [*([result.reason] if result.reason is not None else []), *result.notes]
    return as_paragraph(statements[:1]).rstrip(".")


def _run_verify_net(
    module: torch.nn.Module, name: str, task: Task, outputs: Sequence[Any]
) -> tuple[Verdict, PropertyResult]:
    """The verdict and the property that decides it."""
    import symcheck_properties  # noqa: F401 - registers the properties that a network is checked for
    from symcheck.engine.networks.options import NetOptions
    from symcheck.engine.networks.runner import run_net

    options = NetOptions(samples=SAMPLES, input_shape=task.observation_shape, outputs=outputs)
    result = run_net(module, task_symmetry(task), options=options, target=name)
    decisive = [item for item in result.properties if item.verdict == result.verdict]
    # Take the first failed property, where the action is lost; among passes the last one, on the outputs, is the
    # strongest.
    return result.verdict, decisive[0 if result.verdict == "failed" else -1]


def _features(module: PolicyValueNetwork, task: Task, network: NetworkPlan) -> tuple[torch.nn.Module, Representation]:
    """The claim on the flattened output of the last convolution: by channel, component and position."""
    # The trunk up to its first linear layer.
    layers = list(module.trunk)
    first = next(at for at, layer in enumerate(layers) if isinstance(layer, torch.nn.Linear))
    group, (height, width) = task_symmetry(task).group, image_size(task, network)
    channels = representations.trivial(group, network.channels[len(network.convolutions) - 1])
    positions = grids.image_grid(group, height, width, spatial_operators(task) or ())
    # The order of torch's Flatten: channel, component, row and column.
    rho = operations.tensor(channels, representations.regular(group), positions)
    return torch.nn.Sequential(*layers[:first]), rho
