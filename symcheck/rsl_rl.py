"""A hook for training with rsl_rl that logs the policy's symmetry residual next to the trainer's own scalars.

The trainer's symmetry loss uses the mirror function that training uses, so it cannot reveal a mistake in that function.
The hook compares the policy with a symmetry derived from the robot's model. The hook works with rsl_rl 2 and later,
because it needs only `runner.alg.update`, the storage and the policy.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from symcheck.engine.policies.residuals import measure_residual, random_rows
from symcheck.errors import OptionError, TargetError
from symcheck.symmetry.symmetry import Symmetry


def log_residual(
    runner: Any,
    symmetry: Symmetry,
    *,
    every: int = 10,
    group: str = "policy",
    prefix: str = "Symmetry",
    log: Callable[[str, float, int], None] | None = None,
) -> None:
    """Log |pi(g s) - g pi(s)| of a policy in training, on the states of each rollout.

    Scalars are `<prefix>/residual_max`, `<prefix>/residual_mean` and `<prefix>/residual_relative` (the mean divided by
    the standard deviation of the actions). They are written by the runner's own writer (such as TensorBoard), and to an
    active Weights & Biases run unless the writer already forwards them.

    Args:
        runner: an `OnPolicyRunner` of rsl_rl, before `learn`.
        symmetry: the robot's symmetry, for instance `sc.mujoco.mirror(model, layout=...)`; its observation is the group
            `group`.
        every: the number of updates between two measurements, at least 1.
        group: the observation group of the policy, if observations come in groups.
        prefix: the prefix of the scalars' names.
        log: a function that is called with name, value and iteration instead of the writer.

    Raises:
        OptionError: `every` is not an integer of at least 1.
        TargetError: the runner has no algorithm with `update` and a storage.

    Example:
        >>> log_residual(object(), None)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        symcheck.errors.TargetError: runner: expected a runner of rsl_rl with alg.update and alg.storage, got ...
    """
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise OptionError(f"expected a whole number, 1 or more, got {every!r}.", where="every")
    algorithm: Any = getattr(runner, "alg", None)
    if not hasattr(algorithm, "update") or not hasattr(algorithm, "storage"):
        raise TargetError(
            f"expected a runner of rsl_rl with alg.update and alg.storage, got {type(runner).__name__}.",
            where="runner",
            remedy="Build the OnPolicyRunner first, then attach the hook, then call learn.",
        )
    update = algorithm.update
    updates, first = 0, 0

    def update_and_measure(*arguments: Any, **options: Any) -> Any:
        nonlocal updates, first
        if updates == 0:
            # Read once, because runners set it before the update of an iteration, or after it (rsl_rl 2).
            first = int(getattr(runner, "current_learning_iteration", 0))
        # Before the update, which clears the storage.
        states = _states(algorithm.storage, group) if updates % every == 0 else None
        result = update(*arguments, **options)
        if states is not None:
            policy, states = _behind_normaliser(runner, _policy(algorithm), states)
            for name, value in measure_residual(policy, symmetry, states, group).items():
                _write(runner, f"{prefix}/{name}", value, first + updates, log)
        updates += 1
        return result

    algorithm.update = update_and_measure


def _states(storage: Any, group: str) -> Any:
    """A random selection of the observations of the last rollout, with steps and environments on one axis."""
    import torch

    held = storage.observations
    if isinstance(held, torch.Tensor):
        flat = held.reshape(-1, held.shape[-1])
        return flat[random_rows(len(flat)).to(flat.device)].clone()
    names = list(held.keys())
    tables = {name: held[name].reshape(-1, *held[name].shape[2:]) for name in names}
    rows = random_rows(len(tables[group])).to(tables[group].device)
    chosen = {name: table[rows].clone() for name, table in tables.items()}
    if isinstance(held, Mapping) and isinstance(held, dict):
        return chosen
    from symcheck.mirror_functions.tensor_groups import tensor_groups

    return tensor_groups(chosen, len(rows))


def _policy(algorithm: Any) -> Callable[[Any], Any]:
    """The function for a policy's mean action: `actor` from rsl_rl 5 on, `policy` or `actor_critic` before."""
    for name in ("policy", "actor_critic"):
        model = getattr(algorithm, name, None)
        if hasattr(model, "act_inference"):
            return model.act_inference  # type: ignore[no-any-return, union-attr]
    actor = getattr(algorithm, "actor", None)
    if actor is None:
        raise TargetError("the algorithm has neither a policy with act_inference nor an actor.", where="runner.alg")
    return actor  # type: ignore[no-any-return]


def _behind_normaliser(runner: Any, policy: Callable[[Any], Any], states: Any) -> tuple[Callable[[Any], Any], Any]:
    """The policy as a function of observations: rsl_rl 2 normalises them outside of it, and stores them normalised.

    The symmetry acts on raw observations. On normalised observations it would be a different map if the statistics are
    not symmetric.
    """
    import torch

    normaliser: Any = getattr(runner, "obs_normalizer", None)
    if not isinstance(states, torch.Tensor) or not hasattr(normaliser, "inverse"):
        return policy, states
    # A copy in evaluation mode, so that the measurement does not update the statistics.
    frozen = copy.deepcopy(normaliser).eval()
    with torch.no_grad():
        observations = frozen.inverse(states)
    return lambda seen: policy(frozen(seen)), observations


def _write(runner: Any, name: str, value: float, iteration: int, log: Callable[[str, float, int], None] | None) -> None:
    if log is not None:
        log(name, value, iteration)
        return
    # rsl_rl 5 stores its writer in a logger.
    writer = getattr(runner, "writer", None) or getattr(getattr(runner, "logger", None), "writer", None)
    if writer is not None:
        writer.add_scalar(name, value, iteration)
    import sys

    wandb = sys.modules.get("wandb")
    run = getattr(wandb, "run", None)
    # rsl_rl's own W&B writers, WandbSummaryWriter and WandbLogWriter, forward scalars.
    passed_on = "wandb" in type(writer).__name__.lower() or getattr(
        getattr(run, "settings", None), "sync_tensorboard", False
    )
    if wandb is not None and run is not None and not passed_on:
        wandb.log({name: value}, step=iteration)
