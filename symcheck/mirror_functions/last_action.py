"""Checks that the last action inside an observation transforms like the action.

Many observations contain the previous action. A mirror function that omits this slot still satisfies all relations of
the group; only a comparison of the slot with the action detects the mistake.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.errors import RepresentationError, SpecError
from symcheck.groups.element import Element
from symcheck.groups.group import Group
from symcheck.mirror_functions.batched_function import WHERE, BatchedFunction, close
from symcheck.mirror_functions.batched_values import Layout, Leaf
from symcheck.mirror_functions.block_checks import Samples

_STEPS = 12  # number of random actions: a column does not equal all of them by chance
_LAGS = 3  # maximum lag, because histories also contain earlier actions


@dataclass(frozen=True)
class Slot:
    """The columns of the observation that contain an action.

    Attributes:
        leaf: the array that contains it.
        start: its first column within that array.
        stop: one past its last column.
    """

    leaf: Leaf
    start: int
    stop: int

    @property
    def columns(self) -> slice:
        """The columns of the last action in the table of observations."""
        return slice(self.leaf.start + self.start, self.leaf.start + self.stop)


def declared_slots(declared: Any, observation: Layout, action: Layout) -> list[Slot]:
    """Read `last_action`: columns (start, stop), or a dictionary from observation group to such columns.

    Raises:
        SpecError: not of that form, or not as wide as the action.
    """
    if not isinstance(declared, Mapping):
        return [_slot((), declared, observation, action)]
    return [_slot((key,), columns, observation, action) for key, columns in declared.items()]


def _slot(path: tuple[Any, ...], columns: Any, observation: Layout, action: Layout) -> Slot:
    if isinstance(columns, slice):
        columns = (columns.start or 0, columns.stop)
    pair = tuple(columns) if isinstance(columns, Sequence) and not isinstance(columns, str) else ()
    # The observation array given by the path; () if the observation is not a dictionary.
    leaf = next((leaf for leaf in observation.leaves if leaf.path == path), None)
    whole = len(pair) == 2 and all(isinstance(n, int) and not isinstance(n, bool) for n in pair)
    if leaf is None or not whole:
        groups = [list(leaf.path) for leaf in observation.leaves]
        raise SpecError(
            f"expected columns (start, stop) of an observation array (there are {groups}), got {columns!r}.",
            where="last_action",
            remedy='For instance last_action=(36, 48), or last_action={"policy": (36, 48)}.',
        )
    # Must be as wide as the action.
    if not 0 <= pair[0] < pair[1] <= leaf.size or pair[1] - pair[0] != action.width:
        raise SpecError(
            f"the action has {action.width} components, so the last action must be {action.width} of the "
            f"{leaf.size} columns of {observation.describe(leaf)}; got {pair[0]} to {pair[1]} (exclusive).",
            where="last_action",
        )
    return Slot(leaf, pair[0], pair[1])


def seen_slots(env: Any, observation: Layout, action: Layout, rng: np.random.Generator) -> list[Slot] | None:
    """Find the slots by stepping a copy of the environment with random actions.

    Args:
        env: any environment; it is stepped only if it is a single `gymnasium.Env` that can be copied.
        observation: the table layout of its observations.
        action: the table layout of its actions; only Box actions are searched for.
        rng: draws the actions.

    Returns:
        The columns that show the action, at most `_LAGS` steps late; None if the environment could not be stepped.
    """
    # Integer actions may equal other columns by chance; batched environments must not be stepped here.
    floats = all(np.issubdtype(leaf.dtype, np.floating) and leaf.is_vector for leaf in action.leaves)
    if not floats or not action.is_one_array or action.width > observation.width:
        return []  # no slot could be identified, or none is wide enough for an action
    if hasattr(env, "num_envs") or not hasattr(env, "step"):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ignore warnings of environment checkers
            shown, taken = _rollout(copy.deepcopy(env), observation, action, rng)
    except Exception:  # the environment cannot be copied or stepped; the caller may name the slot
        return None
    return [slot for leaf in observation.leaves for slot in _windows(leaf, shown, taken)]


def _rollout(env: Any, observation: Layout, action: Layout, rng: np.random.Generator) -> tuple[Floats, Floats]:
    env.reset(seed=0)
    # Random actions differ between steps, unlike a constant column.
    actions = action.sample(rng, _STEPS)
    rows = []
    for row in actions:
        shown, _, terminated, truncated, _ = env.step(action.arrays(row[None], action.leaves[0].dtype)[0])
        rows.append(observation.table(_add_batch_axis(shown))[0])
        if terminated or truncated:
            break
    return np.array(rows), actions[: len(rows)]


def _add_batch_axis(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _add_batch_axis(item) for key, item in value.items()}
    return np.asarray(value)[None]


def _windows(leaf: Leaf, shown: Floats, taken: Floats) -> list[Slot]:
    width = taken.shape[1]
    part = shown[:, leaf.columns]
    slots = []
    # Every window of the action's width, for histories at any position.
    for start in range(leaf.size - width + 1):
        window = part[:, start : start + width]
        # At lag k, the column shows the action k steps earlier.
        lagged = range(min(_LAGS, len(taken) - 3))  # at least four steps must agree
        # Actions and observations are float32: equal up to one rounding.
        if any(np.allclose(window[lag:], taken[: len(taken) - lag], rtol=1e-6, atol=1e-7) for lag in lagged):
            slots.append(Slot(leaf, start, start + width))
    return slots


def check_slots(
    function: BatchedFunction, samples: Samples, slots: Sequence[Slot], group: Group, elements: Sequence[Element]
) -> None:
    """Check that each slot transforms like the action, in every block.

    Args:
        function: the mirror function.
        samples: random pairs.
        slots: the slots.
        group: the group, for the names of the blocks.
        elements: its elements in the order of the blocks.

    Raises:
        RepresentationError: a slot does not; the message names the first such block and the columns that differ.
    """
    for slot in slots:
        observations = samples.observations.copy()
        # Fill each slot with the action that is mapped in the same call.
        observations[:, slot.columns] = samples.actions
        observed, acted = function.blocks(observations, samples.actions)
        if observed is None or acted is None:  # pragma: no cover  (blocks returns the halves that it was given)
            continue
        for k, g in enumerate(elements):
            # The slot's image must be the action's image, block by block.
            equal = close(observed[k][:, slot.columns], acted[k]).all(axis=0)
            if not equal.all():
                mask = np.zeros(function.observation.width, dtype=bool)
                mask[slot.columns] = ~equal
                whole = np.zeros_like(mask)
                whole[slot.columns] = True
                raise RepresentationError(
                    f"the last action, {function.observation.words(whole)}, does not transform like the action: in "
                    f"block {k} ({group.element_name(g)}) {function.observation.words(mask)} differ from the "
                    f"transformed action.",
                    where=WHERE,
                    remedy="Apply the action's map to the last action too; last_action=False skips this check.",
                )
