"""Whether a seed determines an episode: the same seed and the same actions, before and after other episodes."""

from __future__ import annotations

import copy
from typing import Any, Literal

import numpy as np

from symcheck.envs.state_access.generators import generators_kept, reset_seeded
from symcheck.envs.stepping.stepper import Step, Stepper

_SEEDS, _STEPS = 3, 20

Differing = Literal["transition", "reward", "termination"]


def reset_all(stepper: Stepper, seed: int) -> Any:
    """Reset with a seed for every generator, and return the observation."""
    return reset_seeded(stepper.env, seed, lambda: stepper.reset(seed=seed))


def first_difference(stepper: Stepper, rng: np.random.Generator) -> tuple[Differing, int] | None:
    """The first outcome that differs between two episodes with the same seed, start and actions.

    Args:
        stepper: the environment; its generators are restored at the end, and it must be reset afterwards.
        rng: draws seeds.

    Returns:
        The part of the outcome and the step number, counted from 1. None if all agree, or if seeds do not even
        determine the start.
    """
    with generators_kept(stepper.env):
        for seed in (int(seed) for seed in rng.integers(0, 2**30, size=_SEEDS)):
            # Use a copy, because the actions of the run are drawn from the space itself.
            space = copy.deepcopy(stepper.env.action_space)
            space.seed(seed)
            actions = [space.sample() for _ in range(_STEPS)]
            start, steps = _play(stepper, seed, actions)
            _play(stepper, seed + 1, actions)  # another episode, which may have lasting effects
            again, repeated = _play(stepper, seed, actions)
            if start != again:
                return None
            for number, (step, other) in enumerate(zip(steps, repeated, strict=False), start=1):
                part = _differing(step, other)
                if part is not None:
                    return part, number
    return None


def _play(stepper: Stepper, seed: int, actions: list[Any]) -> tuple[bytes, list[Step]]:
    """An episode under a seed: the start as bytes, and its steps."""
    start = stepper.codec.flatten(reset_all(stepper, seed)).tobytes()
    steps: list[Step] = []
    for action in actions:
        steps.append(stepper.step(action))
        if steps[-1].terminated or steps[-1].truncated:
            break
    return start, steps


def _differing(step: Step, other: Step) -> Differing | None:
    """The part in which two outcomes of the same (s, a) differ; rewards and terminations are compared first."""
    if not np.array_equal([step.reward], [other.reward], equal_nan=True):
        return "reward"
    if (step.terminated, step.truncated) != (other.terminated, other.truncated):
        return "termination"
    return None if np.array_equal(step.flat, other.flat, equal_nan=True) else "transition"
