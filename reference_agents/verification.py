"""Is the network equivariant, before training and after?

Every network that claims to be is asked, with the engine behind `verify-net`: the plain module, with nothing of the
stacked program left in it, is followed layer by layer from its weights and tried on samples. A user's own
network is asked too. Baselines that make no claim are not: their failure would say nothing.
"""

from __future__ import annotations

import torch

from reference_agents.catalog import NetworkPlan, Task
from reference_agents.record import Verification
from reference_agents.symmetries import task_symmetry

SAMPLES = 1_000
NOT_CLAIMED = Verification(None, "makes no claim to be equivariant")
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
    if not (network.claims_equivariance or network.basis == "user"):
        return NOT_CLAIMED
    import symcheck_properties  # noqa: F401 - registers the properties that a network is checked for
    from symcheck.engine.net_options import NetOptions
    from symcheck.engine.net_runner import run_net

    options = NetOptions(samples=SAMPLES, input_shape=task.observation_shape, outputs=("action", "invariant"))
    result = run_net(module, task_symmetry(task), options=options, target=network.name)
    decisive = [item for item in result.properties if item.verdict == result.verdict]
    chosen = decisive[0 if result.verdict == "failed" else -1]
    return Verification(result.verdict, f"{chosen.name}: {chosen.detail}")
