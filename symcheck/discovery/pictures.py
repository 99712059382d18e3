"""The search over pictures where states cannot be set: turns and reflections, and the actions that go with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from symcheck.array_types import Floats
from symcheck.discovery.blocks import blocks_of, layout_of, lift_picture, picture_elements, turn_picture, upright
from symcheck.discovery.by_states import Proposals
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.maps import Candidate, SignedMap, apply_square
from symcheck.discovery.matching import match_effects
from symcheck.discovery.result import Trial
from symcheck.discovery.rollouts import Rollouts, refutes_whatever_the_actions
from symcheck.entries.forms import SPATIAL_OPERATORS

_FORM = "rotations and reflections of the image"
_SMALL_PICTURE = 24  # pixels a side
WHATEVER = "episodes differ from their images, whatever the action map"


def propose_pictures(lab: Laboratory, rollouts: Rollouts) -> Proposals:
    """Candidates: the turns and reflections that keep the picture's shape, with the action maps that fit best.

    Args:
        lab: the environment.
        rollouts: its steps.

    Returns:
        Candidates for verification; what episodes refute by themselves is refused.
    """
    elements = picture_elements(lab.observation_space)[1:]
    proposals = Proposals(space=(str(len(elements)), _FORM), structured=len(elements))
    before, after = small_pictures(rollouts.before, lab), small_pictures(rollouts.after, lab)
    (block,) = blocks_of(lab.observation_space)
    effects = [*_list_effects(lab, before, after, rollouts.actions)]
    for name in elements:
        proposals.tried += 1
        picture = lift_picture(name, block, block.size)
        if _is_refuted(name, rollouts, before, after, lab.alpha / len(elements)):
            trial = Trial(name, "", picture.order, "refused", WHATEVER, kind=WHATEVER, form=_FORM)
            proposals.refused.append(trial)
            continue
        fitting = [_match(lab, name, rows, shape) for rows, shape in effects]
        maps = [*_own_cells(lab, name), *(action_map for action_map, _ in fitting)]
        # K must repeat when the picture does: L^n = 1 asks for K^n = 1.
        maps = [each for each in dict.fromkeys(maps) if picture.order % (each.order or picture.order + 1) == 0]
        if maps:
            proposals.candidates.append(
                Candidate(
                    picture,
                    maps[0],
                    picture,
                    residual=fitting[0][1],
                    label=_spoken(name),
                    form=_FORM,
                    others=tuple(maps[1:]),
                    guessed=True,
                )
            )
        else:
            worst = list(fitting[0][0].index)
            why = f"the best-fitting action map, {worst}, does not have the order of the map of images"
            kind = "no action map was found for it"
            trial = Trial(name, "", picture.order, "undecided", why, fitting[0][1], kind=kind, form=_FORM)
            proposals.refused.append(trial)
    return proposals


def _is_refuted(name: str, rollouts: Rollouts, before: Floats, after: Floats, level: float) -> bool:
    shape, n = before.shape[1:], len(before)

    def move(rows: Floats) -> Floats:
        return np.asarray(apply_square(name, rows.reshape(n, *shape)).reshape(n, -1))

    return refutes_whatever_the_actions(rollouts, before.reshape(n, -1), after.reshape(n, -1), move, level)


def _own_cells(lab: Laboratory, name: str) -> Iterator[SignedMap]:
    """Where there is an action for each pixel: the map that moves actions as it moves pixels."""
    shape = lab.observation_space.shape or (1, 1)
    sides = shape[:2] if layout_of(lab.observation_space) == "last" else shape[-2:]
    if lab.values is not None and lab.values.single and lab.values.total == sides[0] * sides[1]:
        yield SignedMap.of(turn_picture(name, (sides[0], sides[1]), "first"))


def _spoken(name: str) -> str:
    """What an element is called where its entry is a list of numbers; "" where the entry is its name."""
    return "" if name in SPATIAL_OPERATORS else name


def small_pictures(flat: Floats, lab: Laboratory) -> Floats:
    """Pictures averaged over channels and blocks of pixels, centred, so that few numbers are left.

    Args:
        flat: flattened observations, shape (n, dim).
        lab: knows their shape.

    Returns:
        Shape (n, height, width) with at most 24 pixels a side; blocks tile a margin-free centre, so that rotations and
        reflections act on the small picture as on the large.
    """
    space = lab.observation_space
    pictures = upright(flat.reshape(len(flat), *(space.shape or (1, 1))), layout_of(space) or "first")
    stacked = pictures.reshape(len(flat), -1, *pictures.shape[-2:])
    # Channels may hold one another's complement, whose mean shows nothing: unequal weights tell them apart.
    weights = np.linspace(1.0, 2.0, stacked.shape[1])
    pictures = np.tensordot(stacked, weights / weights.sum(), axes=(1, 0))
    for axis in (1, 2):
        size = pictures.shape[axis]
        block = -(-size // _SMALL_PICTURE)
        margin = (size % block) // 2
        kept = size - size % block
        pictures = np.take(pictures, range(margin, margin + kept), axis=axis)
        shape = list(pictures.shape)
        shape[axis : axis + 1] = [kept // block, block]
        pictures = pictures.reshape(shape).mean(axis=axis + 1)
    return np.asarray(pictures)


def _list_effects(
    lab: Laboratory, before: Floats, after: Floats, actions: Floats
) -> list[tuple[Floats, Sequence[int]]]:
    """What each action does to pictures, in two ways, the one that repeats better first: rows over actions, and shape.

    The mean change of every pixel tells actions on cells apart; products of pixels before and after a step say where an
    action moves things wherever these are. What all actions have in common says nothing about any of them.
    """
    n, shape = len(before), before.shape[1:]
    flat, step = (before - before.mean(axis=0)).reshape(n, -1), (after - before).reshape(n, -1)
    following = (after - after.mean(axis=0)).reshape(n, -1)
    halves = [np.arange(n) % 2 == 0, np.arange(n) % 2 == 1]
    made = []
    for of, sides in ((_mean_change, shape), (_mean_products, (*shape, *shape))):
        parts = [of(lab, flat[half], step[half], following[half], actions[half]) for half in halves]
        agreement = float(np.corrcoef(parts[0].ravel(), parts[1].ravel())[0, 1]) if parts[0].std() > 0 else 0.0
        made.append((agreement, (parts[0] + parts[1]) / 2, sides))
    made.sort(key=lambda each: -each[0])
    return [(rows, sides) for _, rows, sides in made]


def _mean_change(lab: Laboratory, before: Floats, step: Floats, after: Floats, actions: Floats) -> Floats:
    return _by_action(lab, actions, lambda weight: (step * weight[:, None]).mean(axis=0))


def _mean_products(lab: Laboratory, before: Floats, step: Floats, after: Floats, actions: Floats) -> Floats:
    # Rows are shape (pixels after, pixels before), flattened.
    return _by_action(lab, actions, lambda weight: ((after * weight[:, None]).T @ before / len(before)).ravel())


def _by_action(lab: Laboratory, actions: Floats, of: object) -> Floats:
    rows = np.stack([of(weight) for weight in actions.T])  # type: ignore[operator]
    return lab.values.centre(rows) if lab.values is not None else rows


def _match(lab: Laboratory, name: str, rows: Floats, shape: Sequence[int]) -> tuple[SignedMap, float]:
    """The action map under which what actions do, seen through the map of the picture, is what actions do."""
    size = len(rows)
    turned = apply_square(name, rows.reshape(size, *shape))
    if len(shape) == 4:  # the map acts on the pixels before a step, then on those after it
        turned = np.moveaxis(apply_square(name, np.moveaxis(turned, (1, 2), (3, 4))), (3, 4), (1, 2))
    turned, plain = turned.reshape(size, -1), rows
    if lab.values is None:
        turned, plain = (np.repeat(part, 2, axis=0) * np.tile([1.0, -1.0], size)[:, None] for part in (turned, plain))
    scale = np.full(1, float(np.abs(plain).mean()) or 1.0)
    return match_effects(turned, plain, scale, lab.values, lab.action_space)
