"""Parallel exploration, for environments whose copies are identical and independent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.environments.subject.placement import Placement, Situation
from symcheck.envs.stepping.slots import SlotStepper
from symcheck.envs.stepping.stepper import Step
from symcheck.spaces.coordinates import finite

# number of runs that start together; small enough that later runs start from states reached by earlier ones
_TOGETHER = 100
_LONGEST = 12  # maximum number of steps per run: one drawn length in fourteen is longer


class Explored(NamedTuple):
    """One step of the exploration.

    Attributes:
        visited: the situation before the step.
        action: the action.
        step: the outcome.
        reached: the situation after the step; None if the episode ended.
    """

    visited: Situation
    action: Any
    step: Step
    reached: Situation | None


def explore_together(
    stepper: SlotStepper,
    placement: Placement,
    situations: Sequence[Situation],
    steps: int,
    rng: np.random.Generator,
    begin: Callable[[Floats, np.random.Generator], int],
) -> Iterator[Explored]:
    """Reach states that random rollouts miss: set extreme states, repeat one action, many runs in parallel.

    Args:
        stepper: the stepper of a pure environment.
        placement: reads and sets states.
        situations: the starting points of the first runs.
        steps: the total number of steps.
        rng: draws everything.
        begin: maps the observations so far, (n, dim), to the index of the situation from which a run begins.

    Yields:
        Every step taken.
    """
    archive = list(situations)
    flats = [stepper.codec.flatten(situation.obs) for situation in archive]
    taken = 0
    while taken < steps:
        seen = finite(np.stack(flats))
        running = [archive[begin(seen, rng)] for _ in range(min(_TOGETHER, steps - taken))]
        actions = [stepper.env.action_space.sample() for _ in running]
        # Runs of five steps on average, as in sequential exploration.
        left = np.minimum(rng.geometric(0.2, size=len(running)), _LONGEST)
        while running:
            outcomes = stepper.steps_from([situation.state for situation in running], actions)
            taken += len(running)
            going: list[tuple[Situation, Any, int]] = []
            for visited, action, step, more in zip(running, actions, outcomes, left - 1, strict=True):
                over = step.terminated or step.truncated
                reached = None if over else placement.visited_situation(step.obs, step.state, "exploration")
                yield Explored(visited, action, step, reached)
                if reached is not None:
                    archive.append(reached)
                    flats.append(step.flat)
                    going += [(reached, action, more)] if more else []
            running, actions = [item[0] for item in going], [item[1] for item in going]
            left = np.array([item[2] for item in going])
