"""The pool of tested states (situations), and how it is gathered.

Random rollouts alone miss faults at walls, goals and thresholds. The pool therefore also holds start states, states
reached by exploration (which repeatedly sets the most extreme state so far and steps on), states proposed by a
registered `sample`, and uniform points of a box, if every point of the box is a state. A box is never sampled
otherwise, because most of its points are not states (one-hot images, cosine and sine).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.environments.cases.exploring import explore_together
from symcheck.engine.environments.subject.placement import Placement, Situation
from symcheck.envs.stepping.slots import SlotStepper
from symcheck.envs.stepping.stepper import Step, Stepper
from symcheck.errors import TargetError
from symcheck.spaces.coordinates import SpaceCodec, finite
from symcheck.spaces.values import short_text
from symcheck.statements.statement import Statement, state

# maximum number of coordinates; beyond it, directions in observation space carry little information about the state
_WIDEST_EXPLORED = 64
_ROLLOUT_SHARE = 0.25  # fraction of the requested samples; rollouts, exploration and box share the rest equally
_STARTS = 32  # if fewer episodes have begun, short ones are added
_SHORTEST = 10  # steps after such a start
_FEWEST, _MOST = 200, 4000  # minimum number of steps per source, for any number of samples


class Visit(NamedTuple):
    """One step of a rollout: the situation, the action and the outcome."""

    situation: Situation
    action: Any
    step: Step


@dataclass
class Pool:
    """The situations to test.

    Attributes:
        situations: all of them.
        visits: the rollout steps among them, for the set-versus-reached check.
        ends: steps that ended an episode, in rollouts and in exploration.
        episodes: the number of episodes begun in rollouts.
    """

    situations: list[Situation] = field(default_factory=list)
    visits: list[Visit] = field(default_factory=list)
    ends: list[Visit] = field(default_factory=list)
    episodes: int = 0

    def region(self) -> Statement:
        """The origins of the situations.

        Example:
            >>> str(Pool([Situation(0, 0, "rollout"), Situation(1, 1, "start")]).region())
            '2 states: 1 from uniform-policy rollouts, 1 from starts of episodes'
        """
        origins = dict(Counter(situation.origin for situation in self.situations))
        return state("region_states", count=len(self.situations), origins=origins)

    def silent_coordinates(self, codec: SpaceCodec, *, starts: bool = False) -> tuple[str, ...]:
        """Names of observed coordinates that were never finite: after steps, or at starts of episodes."""
        silent: Any = True
        for visit in self.visits:
            if visit.situation.origin == "start" or not starts:
                silent = silent & ~np.isfinite(codec.flatten(visit.situation.obs) if starts else visit.step.flat)
            if not np.any(silent):
                return ()
        return tuple(codec.coordinates.names[j] for j in np.flatnonzero(silent)) if self.visits else ()


def gather(
    stepper: Stepper,
    placement: Placement,
    samples: int,
    rng: np.random.Generator,
    in_time: Callable[[], bool] = lambda: True,
) -> Pool:
    """Fill a pool for a run with a given number of samples.

    Args:
        stepper: the environment.
        placement: how states are read and set.
        samples: the number of pairs that will be checked.
        rng: the random generator.
        in_time: whether the time budget allows another step.

    Returns:
        A pool with at least one situation.
    """
    share = int(np.clip(samples * _ROLLOUT_SHARE, _FEWEST, _MOST))
    pool = Pool()
    roll_out(stepper, placement, share, pool, in_time)
    if placement.kind is None:
        return pool
    if placement.access.sample is not None:
        _propose(stepper, placement, share, rng, pool, in_time)
    if not placement.access.box:
        _explore(stepper, placement, share, rng, pool, in_time)
    return pool


def roll_out(
    stepper: Stepper, placement: Placement, steps: int, pool: Pool, in_time: Callable[[], bool] = lambda: True
) -> None:
    """Add the states of uniform-policy episodes, starts included; at least one state.

    Episodes run to their end, so that late events occur. A single endless episode would use all steps; therefore, if
    few episodes have begun, further ones are started and left after a few steps.
    """
    taken = 0
    while taken < steps and (not taken or in_time()):
        taken += _play_episode(stepper, placement, steps - taken, pool, in_time)
    # At most 50% more steps.
    beginnings = min(_STARTS, steps // (2 * _SHORTEST))
    while pool.episodes < beginnings and in_time():
        _play_episode(stepper, placement, max(_SHORTEST, steps // (2 * _STARTS)), pool, in_time)


def _play_episode(stepper: Stepper, placement: Placement, most: int, pool: Pool, in_time: Callable[[], bool]) -> int:
    """Add the states of one episode, or of its first steps; return their number."""
    played = stepper.play(most, in_time, read=placement.reads_states)
    pool.episodes += 1
    for i, (action, step) in enumerate(zip(played.actions, played.steps, strict=True)):
        # The origin "start" also marks that this visit does not follow the previous one.
        situation = placement.visited_situation(played.seen[i], played.states[i], "rollout" if i else "start")
        pool.situations.append(situation)
        pool.visits.append(Visit(situation, action, step))
        pool.ends += pool.visits[-1:] if step.terminated or step.truncated else []
    return len(played.steps)


def _propose(
    stepper: Stepper,
    placement: Placement,
    count: int,
    rng: np.random.Generator,
    pool: Pool,
    in_time: Callable[[], bool],
) -> None:
    proposed = _call_sample(placement, count, rng)
    # Uniform draws are never exactly on an edge or at zero, where faults are common.
    states = move_to_edges(np.asarray(proposed), rng) if placement.access.box else proposed
    origin = "box" if placement.access.box else "sample"
    for held in states:
        if placement.access.ended(held):
            continue
        if not in_time():
            break
        situation = placement.at(held, origin)
        if situation is None:  # the observation is known only after a step
            step = stepper.outcome(held, stepper.env.action_space.sample())
            situation = None if step.terminated or step.truncated else placement.current_situation(step.obs, origin)
        if situation is not None:
            pool.situations.append(situation)


def _call_sample(placement: Placement, count: int, rng: np.random.Generator) -> list[Any]:
    """The states that the registered `sample` proposes.

    Raises:
        TargetError: `sample` raised, or returned something that is not a state.
    """
    access = placement.access
    if access.sample is None:
        return []
    where = f"state access ({access.source}), sample"
    try:
        proposed = list(access.sample(rng, count))
    except Exception as error:
        raise TargetError(
            f"sample(rng, {count}) raised {type(error).__name__}: {error}.",
            where=where,
            remedy="sample receives a numpy.random.Generator and a number n, and must return n states.",
        ) from error
    if proposed and (wrong := placement.not_a_state(proposed[0])):
        raise TargetError(
            f"sample(rng, {count}) proposed the state {short_text(proposed[0])}, {wrong}.",
            where=where,
            remedy="sample must return states in the form that `set` accepts.",
        )
    return proposed


def move_to_edges(states: Floats, rng: np.random.Generator) -> Floats:
    """Move some coordinates of every fourth box state to an extreme of the box or to zero.

    Args:
        states: drawn from the box, shape (n, dim).
        rng: selects coordinates and edges.

    Returns:
        Shape (n, dim).
    """
    low, high = states.min(axis=0), states.max(axis=0)
    choices = np.stack([np.broadcast_to(edge, states.shape) for edge in (low, high, np.clip(0.0, low, high))])
    picked = np.take_along_axis(choices, rng.integers(0, 3, size=(1, *states.shape)), axis=0)[0]
    moved = (rng.random((len(states), 1)) < 0.25) & (rng.random(states.shape) < 0.4)
    return np.where(moved, picked, states)


def _explore(
    stepper: Stepper,
    placement: Placement,
    steps: int,
    rng: np.random.Generator,
    pool: Pool,
    in_time: Callable[[], bool],
) -> None:
    """Reach states that random rollouts miss: set an extreme or rarely visited state, repeat one action, continue."""
    if stepper.codec.coordinates.dim > _WIDEST_EXPLORED or not pool.situations:
        return
    # At most 500 initial states, because the frontier search compares all of them.
    archive = list(pool.situations[:: max(1, len(pool.situations) // 500)])
    if isinstance(stepper, SlotStepper) and stepper.explores_together:
        for explored in explore_together(stepper, placement, archive, steps, rng, _rim_index):
            if explored.reached is not None:
                pool.situations.append(explored.reached)
            else:
                pool.ends.append(Visit(explored.visited, explored.action, explored.step))
            if not in_time():
                break
        return
    flats = [stepper.codec.flatten(situation.obs) for situation in archive]
    taken, counts_steps = 0, False
    while taken < steps and in_time():
        at = _rim_index(finite(np.stack(flats)), rng)
        visited = archive[at]
        if counts_steps:
            stepper.reset()
        stepper.poke(visited.state)
        action = stepper.env.action_space.sample()
        # Runs of five steps on average: short enough to restart often, long enough to leave the neighbourhood.
        for _ in range(int(rng.geometric(0.2))):
            step = stepper.step(action)
            taken += 1
            if step.terminated or step.truncated:
                pool.ends.append(Visit(visited, action, step))
            # A counter that setting a state does not reset would truncate every further run.
            counts_steps |= step.truncated and not step.terminated
            if step.terminated or step.truncated or taken >= steps:
                break
            visited = placement.current_situation(step.obs, "exploration")
            archive.append(visited)
            flats.append(step.flat)
    pool.situations.extend(situation for situation in archive if situation.origin == "exploration")


def _rim_index(flats: Floats, rng: np.random.Generator) -> int:
    """Index of an extreme state of the archive: along an axis, along a random direction, or nearest to a target."""
    # In units of spread, so that the choice does not depend on units.
    scale = flats.std(axis=0)
    centred = (flats - flats.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    kind = rng.random()
    if kind < 0.25:
        axis = int(rng.integers(flats.shape[1]))
        sign = rng.choice([-1.0, 1.0])
        return int(np.argmax(sign * centred[:, axis] + 0.1 * rng.gumbel(size=len(flats))))
    if kind < 0.5:
        direction = rng.normal(size=flats.shape[1])
        return int(np.argmax(centred @ direction + 0.1 * rng.gumbel(size=len(flats))))
    low, high = centred.min(axis=0), centred.max(axis=0)
    target = rng.uniform(low - 0.5 * (high - low), high + 0.5 * (high - low))
    return int(np.argmin(((centred - target) ** 2).sum(axis=1)))
