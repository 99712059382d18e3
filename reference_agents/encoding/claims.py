"""Encodes a claimed symmetry: its action on encoded observations and on the outputs of a policy.

Each part of an observation is a block of the encoded vector. The action of a generator on it is determined by applying
its map to 0 and to the unit vectors, for any form of entry, including callables; random points then test whether the
map is affine. Affine maps become linear around a common fixed point.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from gymnasium import spaces

from reference_agents.encoding.actions import ActionEncoder
from reference_agents.encoding.observations import Leaf, ObservationEncoder
from symcheck.array_types import Floats
from symcheck.entries.forms import SPATIAL_OPERATORS, Entry, IdentityEntry, TreeEntry
from symcheck.errors import SpecError
from symcheck.representations import constructors as representations
from symcheck.symmetry.action_bounds import check_corners
from symcheck.symmetry.choices import action_permutation, choice_permutation, depends_on_state
from symcheck.symmetry.space_maps import SpaceMap, fit
from symcheck.symmetry.symmetry import Symmetry

# Layers over the flattened numbers of an observation have a basis of this many elements for each channel.
MOST_NUMBERS = 2048
# Hidden layers have one component for each element of the group.
MOST_ELEMENTS = 512
_INSTEAD = "Train a plain network (--network mlp, or cnn for images), or give a network of your own (file.py:factory)."


@dataclass(frozen=True)
class _Affine:
    """The map x -> matrix @ x + offset."""

    matrix: Floats
    offset: Floats


def encode_claim(
    symmetry: Symmetry, observation: ObservationEncoder, action: ActionEncoder, space: spaces.Space[Any]
) -> Symmetry:
    """The claim on encoded observations and on the outputs of a policy.

    Args:
        symmetry: the claim on the environment's own spaces.
        observation: the encoder of observations; its `centre` is set if maps have offsets.
        action: the encoder of actions.
        space: the space of the observations.

    Returns:
        The claim that equivariant networks are built for and verified against.

    Raises:
        SpecError: a continuous group, or a map that is not linear in the encoding.
        RepresentationError: maps that violate a relation of the group.
    """
    if symmetry.is_continuous:
        raise SpecError(
            f"expected a finite group, got {symmetry.group.name} of {symmetry.name!r}.",
            where="--symmetry",
            remedy="Name a finite subgroup in the SPEC, for instance C4 of SO(2). " + _INSTEAD,
        )
    if symmetry.group.order > MOST_ELEMENTS:
        raise SpecError(
            f"expected a group of at most {MOST_ELEMENTS} elements, got {symmetry.group.name} of order "
            f"{symmetry.group.order}.",
            where="--symmetry",
            remedy=_INSTEAD,
        )
    acting = _center_action(symmetry, _action_maps(symmetry, action, space), action)
    if len(observation.shape) == 3:
        seen: Any = spatial_names(symmetry, space, last=observation.channels_last)
    else:
        seen = _center_observation(symmetry, observation)
    return Symmetry(symmetry.name, symmetry.group, seen, acting, initial=symmetry.initial)


def spatial_names(symmetry: Symmetry, space: spaces.Space[Any], *, last: bool) -> list[str] | None:
    """The spatial operator that each generator applies to an image; None if a generator has none.

    Args:
        symmetry: the claim on the images.
        space: the space of the images.
        last: whether the channels are the last axis.
    """
    if not isinstance(space, spaces.Box | spaces.MultiBinary):
        return None
    shape = space.shape or ()
    height, width = shape[:2] if last else shape[-2:]
    labels = np.arange(1.0, np.prod(shape) + 1.0).reshape(shape)
    known = {"identity": lambda image: image, **SPATIAL_OPERATORS}
    names = []
    for entry in symmetry.observation:
        image = _apply(fit(entry, _as_floats(space), "observation"), labels)
        for name, operator in known.items():
            if name in ("rot90", "transpose") and height != width:
                continue
            wanted = np.moveaxis(operator(np.moveaxis(labels, 2, 0)), 0, 2) if last else operator(labels)
            if image is not None and np.array_equal(image, wanted):
                names.append(name)
                break
        else:
            return None
    return names


def _apply(space_map: SpaceMap, value: Floats) -> Floats | None:
    try:
        return np.asarray(space_map.image(value), dtype=np.float64)
    except SpecError:
        return None


def _as_floats(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """The space without bounds and rounding, so that it contains unit vectors and labels."""
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        return spaces.Box(-np.inf, np.inf, space.shape, np.float64)
    return space


def _center_observation(symmetry: Symmetry, encoder: ObservationEncoder) -> Any:
    """The representation on encoded vectors, around the point that is set as the encoder's centre."""
    size = encoder.shape[0]
    if size > MOST_NUMBERS:
        raise SpecError(
            f"an observation must have at most {MOST_NUMBERS:,} numbers, or be a single image on which "
            f"spatial operators act; got {size:,} numbers.",
            where="--symmetry",
            remedy=_INSTEAD,
        )
    maps = [_join(list(_leaf_maps(symmetry, encoder.leaves, i))) for i in range(len(symmetry.observation))]
    encoder.centre = _fixed_point(symmetry, maps)
    return representations.from_matrices(symmetry.group, [part.matrix for part in maps], name="encoded observation")


def _leaf_maps(symmetry: Symmetry, leaves: Sequence[Leaf], generator: int) -> Iterator[_Affine]:
    for leaf in leaves:
        entry, where = symmetry.observation[generator], f"observation[{generator}]"
        for key in leaf.path:
            entry, where = _child(entry, key, where), f"{where}[{key!r}]"
        yield _read_leaf(entry, leaf, where)


def _child(entry: Entry, key: Any, where: str) -> Entry:
    if isinstance(entry, IdentityEntry):
        return entry
    if not isinstance(entry, TreeEntry):
        raise SpecError(
            "expected one entry for each key of the observation, got a single entry.",
            where=where,
            remedy="Write a mapping of keys to entries, as on the page about Dict observations. " + _INSTEAD,
        )
    # Positions of a Tuple are strings in a TOML file.
    return entry.children.get(key, entry.children.get(str(key), IdentityEntry()))


def _read_leaf(entry: Entry, leaf: Leaf, where: str) -> _Affine:
    space = leaf.space
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        return _Affine(choice_permutation(fit(entry, space, where).image, space, where, _INSTEAD), np.zeros(leaf.size))
    fit(entry, space, where)  # raises with its own message if entries do not fit
    affine = _read_affine(fit(entry, _as_floats(space), where), space.shape or (), where)
    if isinstance(space, spaces.MultiBinary):
        # With e = 2 x - 1: x' = M x + o becomes e' = M e + M 1 + 2 o - 1.
        return _Affine(affine.matrix, affine.matrix.sum(1) + 2.0 * affine.offset - 1.0)
    return _Affine(affine.matrix, affine.offset * leaf.scale)


def _read_affine(space_map: SpaceMap, shape: tuple[int, ...], where: str) -> _Affine:
    """The matrix and the offset of a map, after random points have shown that it is affine."""
    size = int(np.prod(shape))
    points = np.random.default_rng(0).standard_normal((4, size))
    inputs = np.concatenate([np.zeros((1, size)), np.eye(size), points]).reshape(-1, *shape)
    images = np.asarray(space_map.batch(inputs), dtype=np.float64).reshape(len(inputs), size)
    offset, matrix = images[0], (images[1 : size + 1] - images[0]).T
    # Callables may compute in float32: rounding errors are 1e-7 per operation for numbers of order one.
    if not np.allclose(images[size + 1 :], points @ matrix.T + offset, rtol=1e-5, atol=1e-5):
        raise SpecError(
            "layers can represent only linear and affine maps, but this callable is neither.",
            where=where,
            remedy=_INSTEAD,
        )
    exact = np.rint(matrix)
    return _Affine(exact if np.allclose(matrix, exact, rtol=0.0, atol=1e-6) else matrix, offset)


class _AtObservation:
    """A map of actions at one observation, which is passed to callables."""

    def __init__(self, space_map: SpaceMap, observation: Any) -> None:
        self._map, self._observation = space_map, observation

    def image(self, value: Any, context: Any = None) -> Any:
        return self._map.image(value, self._observation)

    def batch(self, values: Any, contexts: Any = None) -> Any:
        return np.stack([self.image(value) for value in values])


def _action_maps(symmetry: Symmetry, encoder: ActionEncoder, space: spaces.Space[Any]) -> list[_Affine]:
    """The action of each generator on the policy outputs; it must be the same at a few random observations."""
    drawn = copy.deepcopy(space)
    drawn.seed(0)
    observations = [drawn.sample() for _ in range(3)]
    return [_read_action(entry, encoder.space, observations, f"action[{i}]") for i, entry in enumerate(symmetry.action)]


def _read_action(entry: Entry, space: spaces.Space[Any], observations: Sequence[Any], where: str) -> _Affine:
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        matrix = action_permutation(entry, space, observations, where, _INSTEAD)
        return _Affine(matrix, np.zeros(len(matrix)))
    fit(entry, space, where)  # raises with its own message if entries do not fit
    space_map = fit(entry, _as_floats(space), where)
    acts = [_AtObservation(space_map, observation) for observation in observations]
    first, *others = (_read_affine(act, space.shape or (), where) for act in acts)
    if not all(np.allclose(first.matrix, o.matrix) and np.allclose(first.offset, o.offset) for o in others):
        raise depends_on_state(where, _INSTEAD)
    check_corners(acts[0].batch, space, where)  # binding checks data; a callable is known to be affine at this point
    return first


def _center_action(symmetry: Symmetry, maps: Sequence[_Affine], encoder: ActionEncoder) -> Any:
    """The representation on the policy outputs; the units of real-valued actions are chosen to commute with it."""
    if encoder.continuous:
        fixed = _fixed_point(symmetry, maps)
        moved = [np.abs(part.matrix @ encoder.centre + part.offset - encoder.centre).max() for part in maps]
        # The middle of the bounds, unless the claim moves it; then the fixed point of the claim.
        if max(moved, default=0.0) > 1e-6:
            encoder.centre = np.zeros_like(encoder.centre) if fixed is None else fixed
        turned = [np.abs(np.abs(part.matrix) @ encoder.scale - encoder.scale).max() for part in maps]
        # Coordinates that are exchanged need the same unit; if bounds differ or coordinates mix, use one unit for all.
        if max(turned, default=0.0) > 1e-6:
            encoder.scale = np.full_like(encoder.scale, float(encoder.scale.mean()))
    return representations.from_matrices(symmetry.group, [part.matrix for part in maps], name="encoded action")


def _join(parts: Sequence[_Affine]) -> _Affine:
    size = sum(len(part.offset) for part in parts)
    matrix, at = np.zeros((size, size)), 0
    for part in parts:
        end = at + len(part.offset)
        matrix[at:end, at:end] = part.matrix
        at = end
    return _Affine(matrix, np.concatenate([part.offset for part in parts]))


def _fixed_point(symmetry: Symmetry, maps: Sequence[_Affine]) -> Floats | None:
    """The mean of the images of 0 under all elements, which every element fixes; None if it is 0."""
    if not any(np.abs(part.offset).max(initial=0.0) > 0 for part in maps):
        return None
    images = [
        # The last letter of a word acts first.
        reduce(lambda point, i: maps[i].matrix @ point + maps[i].offset, reversed(symmetry.group.word(g)), _zero(maps))
        for g in symmetry.group.elements()
    ]
    return np.asarray(np.mean(images, axis=0))


def _zero(maps: Sequence[_Affine]) -> Floats:
    return np.zeros(len(maps[0].offset))
