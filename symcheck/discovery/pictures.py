"""The search over image observations if states cannot be set: rotations and reflections, and their action maps."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import numpy as np

from symcheck.array_types import Floats
from symcheck.discovery.action_effects import mean_changes, mean_products
from symcheck.discovery.blocks import sides_of, turn_picture
from symcheck.discovery.by_states import Proposals, state_text
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.maps import Candidate, SignedMap, apply_square
from symcheck.discovery.matching import match_effects
from symcheck.discovery.picture_parts import Parts
from symcheck.discovery.result import Trial
from symcheck.discovery.rollouts import Rollouts, refutes_whatever_the_actions
from symcheck.discovery.witnesses import Witnesses
from symcheck.entries.forms import SPATIAL_OPERATORS

_FORM = "rotations and reflections of the image"
_FORM_OF_PARTS = "rotations and reflections of all images, signed permutations of the other components"
_SEARCHING = 0.4  # of the time budget; the rest is for verification
WHATEVER = "episodes differ from their images for every action map"


def propose_pictures(lab: Laboratory, rollouts: Rollouts) -> Proposals:
    """Candidates: the rotations and reflections that preserve image shapes, with the best-fitting action maps.

    All images rotate together; if there are few other components, all their signed permutations are tested.

    Args:
        lab: the environment.
        rollouts: its steps, with observations reduced by `Parts.reduce`.

    Returns:
        Candidates for verification; those that episodes refute are rejected.
    """
    parts = Parts.of(lab.observation_space)
    maps, listed = parts.list_maps()
    form = _FORM if len(parts.blocks) == 1 else _FORM_OF_PARTS
    proposals = Proposals(space=(str(len(maps)), form), structured=len(maps), complete=listed, forms={form: listed})
    (before, pictures), (after, next_pictures) = map(parts.split, (rollouts.before, rollouts.after))
    effects = _list_effects(lab, pictures, next_pictures, rollouts.actions)
    witnesses = Witnesses(lab, parts.shrink, with_steps=False)
    for name, beside in maps:
        whole = parts.lift(name, beside)
        proposals.tried += 1
        if not lab.in_time(_SEARCHING):
            proposals.complete = proposals.forms[form] = False
            proposals.remarks.append(f"the time budget left {len(maps) - proposals.tried + 1} maps untried")
            break
        moves = name if len(parts.blocks) == 1 else state_text(whole, "o")
        if refutes_whatever_the_actions(
            rollouts, before, after, functools.partial(parts.move, name, beside), lab.alpha / len(maps)
        ):
            trial = Trial(moves, "", whole.order, "rejected", WHATEVER, kind=WHATEVER, form=form)
            proposals.refused.append(trial)
            continue
        fitting = [_match(lab, name, rows, shape) for rows, shape in effects]
        choices = [
            *_own_cells(lab, name, sides_of(parts.pictures[0].space)),
            *(action_map for action_map, _ in fitting),
        ]
        # The order of K must divide that of L: L^n = 1 requires K^n = 1.
        choices = [each for each in dict.fromkeys(choices) if whole.order % (each.order or whole.order + 1) == 0]
        if choices:
            candidate = Candidate(
                whole,
                choices[0],
                whole,
                residual=fitting[0][1],
                label=_spoken(name) if len(parts.blocks) == 1 else "",
                form=form,
                others=tuple(choices[1:]),
                guessed=True,
            )
            witnesses.hear(candidate, moves, functools.partial(parts.move, name, beside), proposals)
        else:
            worst = list(fitting[0][0].index)
            why = f"the best-fitting action map, {worst}, does not have the order of the map of images"
            kind = "no action map was found for this map of images"
            trial = Trial(moves, "", whole.order, "undecided", why, fitting[0][1], kind=kind, form=form)
            proposals.refused.append(trial)
    witnesses.conclude(proposals)
    return proposals


def _own_cells(lab: Laboratory, name: str, sides: tuple[int, int]) -> Iterator[SignedMap]:
    """If there is one action per pixel, the action map that permutes actions like pixels."""
    if lab.values is not None and lab.values.single and lab.values.total == sides[0] * sides[1]:
        yield SignedMap.of(turn_picture(name, sides, "first"))


def _spoken(name: str) -> str:
    """The name of an element whose entry is a list of numbers; "" if the entry is its name."""
    return "" if name in SPATIAL_OPERATORS else name


def _list_effects(
    lab: Laboratory, before: Floats, after: Floats, actions: Floats
) -> list[tuple[Floats, Sequence[int]]]:
    """The effect of each action on images in two forms, the more repeatable first: rows over actions, and their shape.

    The mean change of every pixel distinguishes actions on cells; products of pixels before and after a step show the
    direction in which an action moves objects, wherever they are. The part that all actions share is removed.
    """
    n, shape = len(before), before.shape[1:]
    flat, step = (before - before.mean(axis=0)).reshape(n, -1), (after - before).reshape(n, -1)
    following = (after - after.mean(axis=0)).reshape(n, -1)
    halves = [np.arange(n) % 2 == 0, np.arange(n) % 2 == 1]
    changes = [mean_changes(step[half], actions[half]) for half in halves]
    products = [mean_products(flat[half], following[half], actions[half]) for half in halves]
    made = []
    for parts, sides in ((changes, shape), (products, (*shape, *shape))):
        first, second = (_without_common(lab, each.reshape(len(each), -1)) for each in parts)
        agreement = float(np.corrcoef(first.ravel(), second.ravel())[0, 1]) if first.std() > 0 else 0.0
        made.append((agreement, (first + second) / 2, sides))
    made.sort(key=lambda each: -each[0])
    return [(rows, sides) for _, rows, sides in made]


def _without_common(lab: Laboratory, rows: Floats) -> Floats:
    """Rows over actions without the part that all actions share."""
    return lab.values.centre(rows) if lab.values is not None else rows


def _match(lab: Laboratory, name: str, rows: Floats, shape: Sequence[int]) -> tuple[SignedMap, float]:
    """The action map that matches the transformed effects of actions with effects of actions."""
    size = len(rows)
    turned = apply_square(name, rows.reshape(size, *shape))
    if len(shape) == 4:  # the map acts on the pixels before a step, then on those after it
        turned = np.moveaxis(apply_square(name, np.moveaxis(turned, (1, 2), (3, 4))), (3, 4), (1, 2))
    turned, plain = turned.reshape(size, -1), rows
    if lab.values is None:
        turned, plain = (np.repeat(part, 2, axis=0) * np.tile([1.0, -1.0], size)[:, None] for part in (turned, plain))
    scale = np.full(1, float(np.abs(plain).mean()) or 1.0)
    return match_effects(turned, plain, scale, lab.values, lab.action_space)
