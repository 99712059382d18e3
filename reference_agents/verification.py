"""Is the network equivariant, before training and after?

Every network that claims to be is asked, with the engine behind `verify-net`: the plain module, with nothing of the
stacked program left in it, is followed layer by layer from its weights and tried on samples. A user's own
network is asked too. Baselines that make no claim are not: their failure would say nothing. Of a network with an
equivariant trunk of convolutions under ordinary layers the trunk is asked alone; the policy on top of it makes no
claim, whatever comes out.
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
from symcheck.engine.verdict import Verdict
from symcheck.representations import constructors as representations
from symcheck.representations import grids, operations
from symcheck.representations.representation import Representation

SAMPLES = 1_000
NOT_CLAIMED = Verification(None, "makes no claim to be equivariant")
FEATURES = "features"
"""The first word of what is said about a trunk alone; its verdict follows."""
DIVERGED = Verification(None, "diverged, so there is no network to verify")


def verify(module: torch.nn.Module, network: NetworkPlan, task: Task) -> Verification:
    """What `verify-net` says about a network under its task's symmetry.

    Args:
        module: observations to (logits, values).
        network: whether it claims anything.
        task: names the symmetry and the shape of an observation.

    Returns:
        The verdict, and on what evidence.
    """
    if network.claims_equivariance or network.basis == "user":
        return Verification(*_judged(module, network.name, task, ("action", "invariant")))
    if network.basis == "equivariant" and network.free_layers and isinstance(module, PolicyValueNetwork):
        features, rho = _features(module, task, network)
        verdict, detail = _judged(features, f"the features of {network.name}", task, (rho,))
        evidence = detail if verdict == "failed" else detail.partition(". ")[0].rstrip(".")
        said = f"{FEATURES} {verdict} ({evidence}); the layers on top are free, so the policy is not equivariant"
        return Verification("failed" if verdict == "failed" else None, said)
    return NOT_CLAIMED


def _judged(module: torch.nn.Module, name: str, task: Task, outputs: Sequence[Any]) -> tuple[Verdict, str]:
    import symcheck_properties  # noqa: F401 - registers the properties that a network is checked for
    from symcheck.engine.networks.options import NetOptions
    from symcheck.engine.networks.runner import run_net

    options = NetOptions(samples=SAMPLES, input_shape=task.observation_shape, outputs=outputs)
    result = run_net(module, task_symmetry(task), options=options, target=name)
    decisive = [item for item in result.properties if item.verdict == result.verdict]
    chosen = decisive[0 if result.verdict == "failed" else -1]
    return result.verdict, f"{chosen.name}: {chosen.detail}"


def _features(module: PolicyValueNetwork, task: Task, network: NetworkPlan) -> tuple[torch.nn.Module, Representation]:
    """What the last convolution gives, flattened, and how it is claimed to move: by channel, component, position."""
    # The trunk up to its first linear layer.
    layers = list(module.trunk)
    first = next(at for at, layer in enumerate(layers) if isinstance(layer, torch.nn.Linear))
    group, (height, width) = task_symmetry(task).group, image_size(task, network)
    channels = representations.trivial(group, network.channels[len(network.convolutions) - 1])
    positions = grids.image_grid(group, height, width, spatial_operators(task) or ())
    # The order of torch's Flatten: channel, component, row and column.
    rho = operations.tensor(channels, representations.regular(group), positions)
    return torch.nn.Sequential(*layers[:first]), rho
