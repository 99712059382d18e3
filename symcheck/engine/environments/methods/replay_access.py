"""State access for deterministic black boxes with common starts: a state is the action sequence that led to it.

If no state can be set, an episode can still be replayed: with the same actions, from a copy of the environment taken
right after a reset. The image of such a state is replayed too: with the images of the actions, from the image of the
start. Thus the paired method compares every action sequence with its image, provided that

* resets produce few distinct starts, and the image of each is one of them;
* the observation at the start determines everything that follows: copies from resets with other seeds behave in the
  same way.

The verdict covers these starts only. Environments that are random, that sample a hidden quantity at reset, or that
start anywhere in a box cannot be tested in this way; for them whole episodes are compared.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from symcheck.engine.environments.cases.pairs import Pairs
from symcheck.engine.environments.cases.pool import Pool, roll_out
from symcheck.engine.environments.cases.workbench import Workbench
from symcheck.engine.environments.subject.placement import Placement, Situation, Word
from symcheck.engine.equations import Part
from symcheck.envs.replayed import ReplayedEnv, ReplayedSymmetry, Starts, start_key
from symcheck.envs.seeding import reset_seed
from symcheck.envs.state_access.record import Origin, StateAccess
from symcheck.envs.stepping.refusals import number_of
from symcheck.envs.stepping.stepper import Stepper
from symcheck.spaces.coordinates import finite
from symcheck.statements.statement import Statement
from symcheck.symmetry.bound import BoundSymmetry

_RESETS = 64
_MOST_STARTS = 16  # maximum number of starts: a continuous set would show more in these resets
_COVERED = 0.9  # required fraction of resets whose start can be replayed and mapped
_SEQUENCES, _STEPS = 6, 25  # number of steps played from two copies of each start
_MOST_STATES, _MOST_PAIRS = 400, 2000
# Rounding accumulates over an episode of up to 40 steps, and no state can be nudged to measure it. 1e-6 of the values'
# scale is 1e10 units of float64, and leaves a factor of ten for float32.
_DRIFT = 1e-6


def replay_episodes(bench: Workbench) -> Workbench | Statement:
    """Make a black box testable by replaying its episodes, if possible.

    Args:
        bench: an environment whose state cannot be set; it is not changed.

    Returns:
        The workbench over replayed episodes, or the reason why there is none.
    """
    stepper, bound = bench.pairs.stepper, bench.pairs.bound
    if not isinstance(stepper.env.observation_space, gym.spaces.Box | gym.spaces.Discrete):
        return Statement("replay_not_arrays")
    rng = bench.rng("replays")
    starts = _copy_starts(stepper, bound, bench.words, rng)
    if isinstance(starts, Statement):
        return starts
    env = ReplayedEnv(starts, rng, stepper.codec.flatten)
    if not _copies_agree(starts, stepper, rng):
        return Statement("replay_differs")
    env.action_space = stepper.env.action_space
    access = StateAccess(
        lambda base, history: base.play(history),
        "its only start" if len(starts.copies) == 1 else f"its {len(starts.copies)} starts",
        Origin.REPLAYED,
        get=lambda base: base.history,
        from_report=env.read_history,
    )
    mapped: Any = ReplayedSymmetry(bound, stepper.codec.flatten)
    again = Stepper(env, access, stepper.label, seed=reset_seed(bench.options.seed))
    again.codec, again.action_codec = stepper.codec, stepper.action_codec
    placement = Placement(again, mapped)
    pool = _gather_reproducible(bench, again, placement)
    if not pool.situations:
        return Statement("replay_leads_elsewhere")
    scale = max(1.0, float(np.abs(finite(np.stack([visit.step.flat for visit in pool.visits]))).max()))
    parts: tuple[Part, ...] = ("transition", "reward")
    return dataclasses.replace(
        bench,
        pairs=Pairs(again, placement, mapped),
        pool=pool,
        options=dataclasses.replace(bench.options, samples=min(bench.options.samples, _MOST_PAIRS)),
        noise=dict.fromkeys(parts, np.full(1, _DRIFT * scale)),
    )


def _copy_starts(
    stepper: Stepper, bound: BoundSymmetry, words: Sequence[Word], rng: np.random.Generator
) -> Starts | Statement:
    """The starts whose images are starts, with copies; or the reason why there are none."""
    copies: dict[bytes, list[gym.Env[Any, Any]]] = defaultdict(list)
    shown: dict[bytes, Any] = {}
    for _ in range(_RESETS):
        obs = stepper.reset(seed=int(rng.integers(2**31)))
        key = start_key(stepper.codec.flatten(obs))
        try:
            # An environment may contain anything: try to copy it.
            copies[key].append(copy.deepcopy(stepper.env))
        except Exception as error:  # an environment may contain anything
            return Statement("replay_not_copied", {"error": f"{type(error).__name__}: {error}"})
        shown[key] = obs
        if len(copies) > _MOST_STARTS:
            counts = {"starts": len(copies), "resets": sum(map(len, copies.values()))}
            return Statement("replay_many_starts", counts)
    # At least two copies, to test that the observation of a start determines the rest of the episode.
    kept = {key for key, same in copies.items() if len(same) > 1}
    images = {
        key: {start_key(stepper.codec.flatten(bound.observation(word, shown[key]))) for word in words} for key in kept
    }
    while True:
        # Dropping a start may leave another without its image: repeat until nothing is dropped.
        closed = {key for key in kept if images[key] <= kept}
        if closed == kept:
            break
        kept = closed
    if sum(len(copies[key]) for key in kept) < _COVERED * _RESETS:
        return Statement("replay_image_no_start")
    return Starts({key: copies[key] for key in copies if key in kept}, {key: shown[key] for key in kept})


def _copies_agree(starts: Starts, stepper: Stepper, rng: np.random.Generator) -> bool:
    """Whether copies of one start, from resets with different seeds, respond equally to the same actions."""
    for copies in starts.copies.values():
        for _ in range(_SEQUENCES):
            # Copies from different resets: hidden quantities would differ between them.
            picked = rng.choice(len(copies), size=2, replace=False)
            pair = [copy.deepcopy(copies[int(i)]) for i in picked]
            for _ in range(_STEPS):
                action = stepper.env.action_space.sample()
                returned, other_returned = (side.step(copy.deepcopy(action)) for side in pair)
                flat, other = stepper.codec.flatten(returned[0]), stepper.codec.flatten(other_returned[0])
                rewards = [number_of(side[1], stepper.label) for side in (returned, other_returned)]
                paid = np.array_equal(rewards[:1], rewards[1:], equal_nan=True)
                if not (np.array_equal(flat, other, equal_nan=True) and paid and returned[2:4] == other_returned[2:4]):
                    return False
                if returned[2] or returned[3]:
                    break
    return True


def _gather_reproducible(bench: Workbench, stepper: Stepper, placement: Placement) -> Pool:
    """States along episodes whose images lead to the image; a difference before that is a violation there."""
    pool = Pool()
    roll_out(stepper, placement, _MOST_STATES, pool, lambda: bench.in_time(0.3))
    coordinates = stepper.codec.coordinates
    kept = []
    for situation in pool.situations:
        if not bench.in_time(0.5):
            break
        # If the two replays diverge earlier, the violation is reported at that earlier step.
        if all(_leads_to_image(stepper, placement, word, situation, coordinates) for word in bench.words):
            kept.append(situation)
    pool.situations = kept
    return pool


def _leads_to_image(stepper: Stepper, placement: Placement, word: Word, situation: Situation, coordinates: Any) -> bool:
    image = placement.image(word, situation)
    stepper.poke(image.state)
    base: Any = stepper.base
    shown, wanted = stepper.codec.flatten(base.shown), stepper.codec.flatten(image.obs)
    gap = coordinates.residual(wanted, shown)
    return bool((gap <= _DRIFT * (coordinates.epsilon > 0) * (1.0 + np.abs(finite(wanted)))).all())
