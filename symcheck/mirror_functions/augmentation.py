"""Reads a symmetry from the mirror function of a robot-learning library.

Such a function returns |G| copies of a batch, transformed by each element of a group. Data augmentation and mirror
losses use it, and any mistake in it is trained into the policy. This module compares its blocks with the group, on the
function's own device and in whole batches, and recovers the maps of the generators as data if they are linear or affine
(`affine_recovery`). `verify_env` then checks whether an environment has this symmetry.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from symcheck.array_types import Floats
from symcheck.entries.forms import Entry, FunctionEntry
from symcheck.errors import SkippedCheckWarning, SpecError
from symcheck.groups.element import Element
from symcheck.groups.group import Group
from symcheck.mirror_functions import affine_recovery, block_checks, last_action
from symcheck.mirror_functions.batched_function import (
    WHERE,
    BatchedFunction,
    accepts,
    choose_library,
    close,
    columns_where,
    precise,
)
from symcheck.mirror_functions.batched_values import Layout, layout_of_space, layout_of_value, to_array
from symcheck.mirror_functions.block_checks import Samples
from symcheck.statements.statement import Statement, state

_SAMPLES = 8  # number of random pairs: one pair shows a wrong column; eight exclude coincidences
_SEED = 0


class ReadMirror(NamedTuple):
    """The maps recovered from a mirror function.

    Attributes:
        name: the name of the function.
        observation: one entry per generator.
        action: one entry per generator.
        notes: the checks that were skipped.
    """

    name: str
    observation: list[Entry]
    action: list[Entry]
    notes: tuple[Statement, ...] = ()


def read_augmentation(
    fn: Callable[..., Any],
    *,
    env: Any,
    group: Group,
    convention: str = "rsl_rl",
    elements: Sequence[Element] | None = None,
    last_action_slot: Any = None,
    observation_group: str | None = None,
    name: str | None = None,
) -> ReadMirror:
    """Check a batched mirror function and recover its maps; see `Symmetry.from_augmentation`."""
    if convention != "rsl_rl":
        raise SpecError(f"expected 'rsl_rl', got {convention!r}.", where=f"{WHERE}, convention")
    if not callable(fn):
        raise SpecError(f"expected a function fn(env, obs, actions), got {type(fn).__name__}.", where=f"{WHERE}, fn")
    env = _make_environment(env)
    listed = _list_elements(group, elements)
    observation, action = _layouts(env, observation_group)
    extra: dict[str, Any] = {}
    if observation_group is not None and accepts(fn, "obs_type"):
        extra = {"obs_type": observation_group}
        observation = _without_path(observation)
    rng = np.random.default_rng(_SEED)
    samples = Samples(observation.sample(rng, _SAMPLES), action.sample(rng, _SAMPLES))
    candidate = BatchedFunction(fn, env, observation, action, group.order, device=_device(env), extra=extra)
    function = choose_library(candidate, samples.observations, samples.actions)
    _check_repeatable(function, samples)
    block_checks.check_identity_first(function, samples)
    block_checks.check_something_moves(function, samples)
    block_checks.check_agreement(function, samples, group, listed)
    depends = _check_halves(function, samples)
    slots = _slots(last_action_slot, function, rng)
    last_action.check_slots(function, samples, slots or [], group, listed)
    called = name or str(getattr(fn, "__name__", "augmentation"))
    notes = () if slots is not None else (state("last_action_unchecked", function=called),)
    for note in notes:
        warnings.warn(note.text, SkippedCheckWarning, stacklevel=3)
    blocks = [listed.index(g) for g in group.generators]
    return ReadMirror(
        called,
        _observation_entries(function, group, blocks, samples, observation_group if not extra else None),
        _action_entries(function, group, blocks, samples, depends=depends),
        notes,
    )


def _make_environment(env: Any) -> Any:
    if isinstance(env, str):
        import gymnasium

        return gymnasium.make(env)
    # Call a factory, but not a callable environment, which has spaces.
    described = ("observation_space", "single_observation_space", "get_observations")
    if callable(env) and not any(hasattr(env, name) for name in described):
        return env()
    return env


def _list_elements(group: Group, elements: Sequence[Element] | None) -> tuple[Element, ...]:
    listed = group.elements() if elements is None else tuple(elements)
    # Compare as sets, so that an element listed twice is detected.
    if len(listed) != group.order or set(listed) != set(group.elements()):
        raise SpecError(
            f"expected each of the {group.order} elements of {group.name} once, got {len(listed)}: {listed!r}.",
            where=f"{WHERE}, elements",
            remedy="Omit elements to use the order of group.elements().",
        )
    if not listed[0].is_identity:
        raise SpecError("expected the identity first.", where=f"{WHERE}, elements")
    return listed


def _layouts(env: Any, group: str | None) -> tuple[Layout, Layout]:
    """Sizes from the declared spaces of one environment or of one slot of a batch, otherwise from its observations."""
    bare = getattr(env, "unwrapped", env)
    # Vector environments first, where "observation_space" means the whole batch.
    for owner, prefix in ((env, "single_"), (bare, "single_"), (env, ""), (bare, "")):
        observed = getattr(owner, f"{prefix}observation_space", None)
        acted = getattr(owner, f"{prefix}action_space", None)
        if observed is not None and acted is not None:
            return _choose_group(layout_of_space("observation", observed), group), layout_of_space("action", acted)
    # Environments of rsl_rl have no spaces: take sizes from a batch that they return.
    if hasattr(env, "get_observations") and hasattr(env, "num_actions"):
        shown = env.get_observations()
        shown = shown[0] if isinstance(shown, tuple) else shown
        width = int(env.num_actions)
        acting = layout_of_value("action", np.zeros((1, width)))
        return _choose_group(layout_of_value("observation", shown), group), acting
    raise SpecError(
        f"expected an environment with observation_space and action_space (or single_..., or get_observations() and "
        f"num_actions), got {type(env).__name__}.",
        where=f"{WHERE}, env",
        remedy="Sizes are read from the environment, which is also passed to the function.",
    )


def _choose_group(layout: Layout, group: str | None) -> Layout:
    if group is None:
        return layout
    leaves = [leaf for leaf in layout.leaves if leaf.path[:1] == (group,)]
    if not leaves:
        known = sorted({str(leaf.path[0]) for leaf in layout.leaves if leaf.path})
        raise SpecError(f"no observation group {group!r}; there are {known}.", where=f"{WHERE}, observation_group")
    # Columns are counted from the start of the observation group.
    first = leaves[0].start
    return Layout(layout.name, tuple(replace(leaf, start=leaf.start - first) for leaf in leaves))


def _without_path(layout: Layout) -> Layout:
    return Layout(layout.name, tuple(replace(leaf, path=leaf.path[1:]) for leaf in layout.leaves))


def _device(env: Any) -> Any:
    device = getattr(env, "device", None) or getattr(getattr(env, "unwrapped", None), "device", None)
    return "cpu" if device is None else device


def _slots(declared: Any, function: BatchedFunction, rng: np.random.Generator) -> list[last_action.Slot] | None:
    if declared is False:
        return []
    if declared is None:
        return last_action.seen_slots(function.env, function.observation, function.action, rng)
    return last_action.declared_slots(declared, function.observation, function.action)


def _check_repeatable(function: BatchedFunction, samples: Samples) -> None:
    first = block_checks.joint_images(function, samples)
    again = block_checks.joint_images(function, samples)
    # Compare bit by bit: a deterministic function repeats exactly.
    if not np.array_equal(first, again):
        differs = block_checks.words(function, columns_where(first != again))
        raise SpecError(
            f"the function returns a different result on the second call, in {differs}.",
            where=WHERE,
            remedy="A symmetry is a fixed map: remove noise and running statistics.",
        )


def _check_halves(function: BatchedFunction, samples: Samples) -> bool:
    """Check that each half alone (None for the other) gives the same images.

    Return whether actions need observations.
    """
    observed, acted = function.blocks(samples.observations, samples.actions)
    # Observations alone first: if the actions' presence changes them, the halves are not independent maps.
    alone, _ = function.blocks(samples.observations, None)
    _refuse_difference(function.observation, observed, alone, "actions are")
    # The same actions with other observations: a difference means that K depends on the state.
    _, elsewhere = function.blocks(samples.observations[::-1], samples.actions)
    if acted is not None and elsewhere is not None and not close(acted, elsewhere).all():
        return True
    _, alone = function.blocks(None, samples.actions)
    _refuse_difference(function.action, acted, alone, "obs is")
    return False


def _refuse_difference(layout: Layout, both: Floats | None, alone: Floats | None, missing: str) -> None:
    if both is None or alone is None or close(both, alone).all():
        return
    # Report the first block that differs.
    k = int(np.argmax(~close(both, alone).all(axis=(1, 2))))
    differs = layout.words(columns_where(~close(both[k], alone[k])))
    raise SpecError(
        f"block {k} of the {layout.name}s depends on whether {missing} None: {differs} differ.",
        where=WHERE,
        remedy="Transform observations and actions in the same way whether or not both are given.",
    )


def _observation_entries(
    function: BatchedFunction, group: Group, blocks: Sequence[int], samples: Samples, chosen: str | None
) -> list[Entry]:
    moved = _moving(function, samples, "observation")
    layout = function.observation
    entries = _recover_entries(moved, layout, group, blocks, samples.observations)
    if entries is not None:
        return entries
    # Not affine: keep it as a callable, on float64 if the function accepts it.
    exact = precise(function, samples.observations, None)

    def entry(block: int) -> FunctionEntry:
        def move(obs: Any) -> Any:
            images, _ = exact.blocks(layout.table(_batch_of_one(obs)), None)
            return _one_of(layout, images, block, obs)

        move.__name__ = f"block {block} of {getattr(function.function, '__name__', 'fn')}"
        return FunctionEntry(move)

    return [entry(block) for block in blocks]


def _action_entries(
    function: BatchedFunction, group: Group, blocks: Sequence[int], samples: Samples, *, depends: bool
) -> list[Entry]:
    layout = function.action
    if not depends:
        entries = _recover_entries(_moving(function, samples, "action"), layout, group, blocks, samples.actions)
        if entries is not None:
            return entries

    def entry(block: int) -> FunctionEntry:
        def move(action: Any, obs: Any) -> Any:
            # Pass observations only if the images of actions depend on them.
            observed = function.observation.table(_batch_of_one(obs)) if depends else None
            _, images = function.blocks(observed, layout.table(_batch_of_one(action)))
            return _one_of(layout, images, block, action)

        move.__name__ = f"block {block} of {getattr(function.function, '__name__', 'fn')}"
        return FunctionEntry(move)

    return [entry(block) for block in blocks]


def _moving(function: BatchedFunction, samples: Samples, half: str) -> affine_recovery.Images:
    """One half of the function alone, on floats as precise as it accepts."""
    # Convert integer columns to floats too, otherwise fractional probes would be rounded.
    floats = replace(function, all_floating=all(leaf.is_vector for leaf in function.observation.leaves))
    if half == "observation":
        exact = precise(floats, samples.observations, None)
        return lambda table: _present(exact.blocks(table, None)[0])
    exact = replace(function, floating="float32")
    wide = replace(exact, floating="float64")
    try:
        # Use float64 only if the function returns the same values in both precisions.
        same = close(_present(wide.blocks(None, samples.actions)[1]), _present(exact.blocks(None, samples.actions)[1]))
        exact = wide if same.all() else exact
    except SpecError:
        pass
    return lambda table: _present(exact.blocks(None, table)[1])


def _present(table: Floats | None) -> Floats:
    if table is None:  # pragma: no cover  (blocks returns the halves that it was given)
        raise SpecError("expected values, got None.", where=WHERE)
    return table


def _recover_entries(
    images: affine_recovery.Images, layout: Layout, group: Group, blocks: Sequence[int], samples: Floats
) -> list[Entry] | None:
    """The entries as data, if the function also accepts values outside the space."""
    try:
        # Values of a Discrete space can be permuted, but not added.
        if not layout.leaves[0].is_vector and layout.is_one_array:
            return list(affine_recovery.permuted_values(images, layout.leaves[0], blocks) or []) or None
        if not all(leaf.is_vector for leaf in layout.leaves):
            return None
        affine = affine_recovery.recover(images, group, blocks, samples)
    except SpecError:  # it raises on zeros or basis vectors, or makes them infinite
        return None
    if affine is None:
        return None
    entries = [affine_recovery.by_leaf(entry, layout.leaves) for entry in affine]
    whole = [entry for entry in entries if entry is not None]
    # All generators as data, or none: a mixture has no representation.
    return whole if len(whole) == len(entries) else None


def _batch_of_one(value: Any) -> Any:
    # One sample, with a batch axis in front.
    if hasattr(value, "keys"):
        return {key: _batch_of_one(item) for key, item in value.items()}
    return to_array(value)[None]


def _one_of(layout: Layout, images: Floats | None, block: int, given: Any) -> Any:
    arrays = layout.arrays(_present(images)[block], np.float64)
    return _cast_like(arrays, given)


def _cast_like(arrays: Any, given: Any) -> Any:
    if isinstance(arrays, dict):
        return {key: _cast_like(item, given[key]) for key, item in arrays.items()}
    # The dtype of the input, which the environment expects.
    return arrays[0].astype(to_array(given).dtype)
