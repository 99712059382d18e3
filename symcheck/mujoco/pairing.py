"""Pairs every element with its image: bodies first, down the tree, then the elements attached to them.

Geometry decides, and names break ties: in the reference configuration, an image must be at the position that the
isometry gives. If several bodies are there (the legs of a planar walker coincide), the one whose name exchanges left
and right is chosen. All elements without a counterpart are reported at once, with the nearest candidate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from symcheck.array_types import Floats
from symcheck.errors import SpecError
from symcheck.mujoco.actuation import pair_actuators, pair_tendons
from symcheck.mujoco.elements import name_of, title
from symcheck.mujoco.images import Pairing
from symcheck.mujoco.isometry import ROUNDING, Isometry
from symcheck.mujoco.names import are_mirrored, mirrored_names
from symcheck.mujoco.reference import Reference, reference_of

_NEAR = (
    # largest distance of an image from its counterpart, as a fraction of the model's extent; the difference is reported
    0.05
)
_BONUS = 0.02  # weight of a matching name, as a fraction of the extent
_PARALLEL = 0.9  # smallest cosine between the axes of a pair


def pair_model(model: Any, isometry: Isometry, given: Mapping[str, str], *, by_frames: bool = False) -> Pairing:
    """The pairing in the file's configuration or with sliding bodies centred, whichever pairs more elements.

    Args:
        model: a `mujoco.MjModel`.
        isometry: a reflection or a rotation.
        given: names of bodies that are each other's images.
        by_frames: whether bodies are paired by their frames alone, regardless of their centres of mass.

    Raises:
        SpecError: `given` names bodies that do not exist.
    """
    as_written = pair_elements(model, isometry, reference_of(model, isometry), given, by_frames=by_frames)
    if not as_written.unpaired:
        return as_written
    # A body that slides in the world may have any position in the file: its symmetric position may pair more elements.
    slid = pair_elements(model, isometry, reference_of(model, isometry, slide_home=True), given, by_frames=by_frames)
    return slid if len(slid.unpaired) < len(as_written.unpaired) else as_written


def pair_elements(
    model: Any, isometry: Isometry, reference: Reference, given: Mapping[str, str], *, by_frames: bool = False
) -> Pairing:
    """Find the image of every body, joint, geom, tendon and actuator.

    Args:
        model: a `mujoco.MjModel`.
        isometry: a reflection or a rotation.
        reference: `reference_of(model, isometry)`.
        given: names of bodies that are each other's images; they override the geometry.
        by_frames: as in `pair_model`.

    Returns:
        The pairing, including the elements that could not be paired.

    Raises:
        SpecError: `given` names bodies that do not exist.
    """
    bodies = _Bodies(model, isometry, reference, _read_pairs(model, given, isometry), by_frames=by_frames)
    bodies.match(0, 0)
    pairing = Pairing(
        isometry,
        reference,
        bodies.image,
        np.full(model.njnt, -1),
        np.zeros(model.njnt, dtype=np.int64),
        np.full(model.ngeom, -1),
        unpaired=bodies.unpaired,
        markers=bodies.markers,
        ambiguous=bodies.ambiguous,
    )
    # Joints and geoms are compared between a body and its image only.
    for body, image in enumerate(pairing.bodies):
        if image >= 0:
            _pair_joints(model, pairing, body, int(image))
            _pair_geoms(model, pairing, body, int(image))
    # Tendons after joints, actuators after tendons: each step needs the images of the previous one.
    pair_tendons(model, pairing)
    pair_actuators(model, pairing)
    return pairing


def _read_pairs(model: Any, given: Mapping[str, str], isometry: Isometry) -> dict[int, int]:
    if not isinstance(given, Mapping):
        raise SpecError(f"expected a mapping of names of bodies to names of bodies, got {given!r}.", where="pairs")
    known = {name_of(model, "body", i): i for i in range(model.nbody)}
    missing = [name for pair in given.items() for name in pair if name not in known]
    if missing:
        raise SpecError(f"the pairs name bodies that the model does not have: {', '.join(missing)}.", where="pairs")
    images = {known[source]: known[target] for source, target in given.items()}
    # A reflection is an involution, so the other direction follows.
    if isometry.order == 2:
        images.update({target: source for source, target in list(images.items())})
    return images


class _Bodies:
    """Matches bodies down the tree: children of a body to children of its image."""

    def __init__(
        self, model: Any, isometry: Isometry, reference: Reference, given: Mapping[int, int], *, by_frames: bool
    ) -> None:
        self._model = model
        self._by_frames = by_frames
        self._isometry = isometry
        self._given = given
        self._reference = reference
        self._moved = isometry.point(reference.body_position), isometry.point(reference.centre)
        self.image = np.full(model.nbody, -1)
        # The world is its own image.
        self.image[0] = 0
        self.unpaired: list[str] = []
        self.markers: list[str] = []
        self.ambiguous: list[str] = []

    def match(self, body: int, image: int) -> None:
        """Match the children of `body` to those of `image`, recursively."""
        sources, targets = self._children(body), self._children(image)
        if not sources:
            return
        # (sources, targets).
        cost = np.array([[self._cost(source, target) for target in targets] for source in sources]).reshape(
            len(sources), -1
        )
        # Children of a body that is its own image must be paired as an involution under a reflection.
        matched = self._greedy(cost) if body == image and self._isometry.order == 2 else _assign_rows(cost)
        for i, source in enumerate(sources):
            j = matched.get(i)
            if j is None or not np.isfinite(cost[i, j]):
                (self.markers if self._is_marker(source) else self.unpaired).append(self._why(source, targets))
                continue
            self.image[source] = targets[j]
            # Neither position nor name distinguishes two candidates: both are possible.
            as_near = [k for k in range(len(targets)) if k != j and abs(cost[i, k] - cost[i, j]) <= ROUNDING]
            if as_near and self._moves(source):
                names = (
                    f"{title(self._model, 'body', targets[j])} and {title(self._model, 'body', targets[as_near[0]])}"
                )
                self.ambiguous.append(f"{title(self._model, 'body', source)}: {names}")
        # Recurse: children of a pair are matched with each other.
        for source in sources:
            if self.image[source] >= 0:
                self.match(source, int(self.image[source]))

    def _moves(self, body: int) -> bool:
        """Whether a body or one of its descendants has a joint."""
        return bool(self._model.body_jntnum[body]) or any(self._moves(child) for child in self._children(body))

    def _is_marker(self, body: int) -> bool:
        """Whether a body and all its descendants are frames only: a camera, an IMU, a tool tip."""
        model = self._model
        first, count = int(model.body_geomadr[body]), int(model.body_geomnum[body])
        collides = any(model.geom_contype[i] or model.geom_conaffinity[i] for i in range(first, first + count))
        bare = not model.body_mass[body] and not model.body_jntnum[body] and not collides
        return bare and all(self._is_marker(child) for child in self._children(body))

    def _children(self, body: int) -> list[int]:
        return [i for i in range(1, self._model.nbody) if self._model.body_parentid[i] == body]

    def _frame_distance(self, body: int, other: int) -> float:
        return float(np.linalg.norm(self._moved[0][body] - self._reference.body_position[other]))

    def distance(self, body: int, other: int) -> float:
        """The distance of a body's image from another body, in metres: the maximum over frames and centres of mass."""
        reference = self._reference
        frames = self._frame_distance(body, other)
        centres = float(np.linalg.norm(self._moved[1][body] - reference.centre[other]))
        return max(frames, centres)

    def _cost(self, body: int, other: int) -> float:
        model = self._model
        if body in self._given or other in self._given.values():
            # Pairs given by the user cost nothing; all other pairs of these bodies are excluded.
            return -1.0 if self._given.get(body) == other else np.inf
        if model.body_jntnum[body] != model.body_jntnum[other]:
            return float(np.inf)
        if not all(model.jnt_type[i] == model.jnt_type[j] for i, j in zip(*self._joints(body, other), strict=True)):
            return float(np.inf)
        distance = self.distance(body, other)
        if (self._frame_distance(body, other) if self._by_frames else distance) > _NEAR * self._reference.extent:
            return float(np.inf)
        heavier = max(float(model.body_mass[body]), float(model.body_mass[other]), 1e-12)
        # Relative difference of the masses, between 0 and 1.
        unlike = abs(float(model.body_mass[body] - model.body_mass[other])) / heavier
        named = self._isometry.order == 2 and are_mirrored(name_of(model, "body", body), name_of(model, "body", other))
        # In metres: a matching name outweighs small differences of position, but not large ones.
        return distance + _BONUS * self._reference.extent * (0.25 * unlike - named)

    def _joints(self, body: int, other: int) -> tuple[range, range]:
        model = self._model
        first, second = int(model.body_jntadr[body]), int(model.body_jntadr[other])
        # Joints of one body are consecutive.
        count = int(model.body_jntnum[body])
        return range(first, first + count), range(second, second + count)

    @staticmethod
    def _greedy(cost: Floats) -> dict[int, int]:
        """An involution, built greedily: take and remove the nearest pair (or body that is its own image); repeat."""
        # Both directions must fit: use the larger of the two costs.
        cost = np.maximum(cost, cost.T)
        partner: dict[int, int] = {}
        for flat in np.argsort(cost, axis=None, kind="stable"):
            # Convert the position in the flattened matrix to row and column.
            i, j = (int(k) for k in np.unravel_index(flat, cost.shape))
            if i not in partner and j not in partner and np.isfinite(cost[i, j]):
                partner[i], partner[j] = j, i
        return partner

    def _why(self, body: int, targets: list[int]) -> str:
        model, element = self._model, title(self._model, "body", body)
        wanted = mirrored_names(name_of(model, "body", body))
        # The most likely counterpart is the body with the mirrored name, otherwise the nearest one.
        named = [i for i in range(model.nbody) if name_of(model, "body", i) in wanted]
        near = named or sorted(targets, key=lambda other: self.distance(body, other))
        if not near:
            return f"{element}: there is no body at the position of its image"
        other = near[0]
        if other == body:
            own = self.distance(body, body)
            return f"{element}: no counterpart, and it is not its own image, which lies {own:.3g} m away"
        text = f"{element}: the nearest is {title(model, 'body', other)}, "
        text += f"{self.distance(body, other):.3g} m from its image"
        if model.body_jntnum[body] != model.body_jntnum[other]:
            count = int(model.body_jntnum[other])
            text += f" and with {count} {'joint' if count == 1 else 'joints'} instead of {model.body_jntnum[body]}"
        return text


def _assign_rows(cost: Floats) -> dict[int, int]:
    """The assignment of least total cost; rows without any finite cost are left out."""
    if not cost.size:
        return {}
    # 1e6 stands for "impossible": linear_sum_assignment accepts no infinities.
    bounded = np.where(np.isfinite(cost), cost, 1e6)
    rows, columns = linear_sum_assignment(bounded)
    # A pair with the cost of an impossible one is not assigned.
    return {int(i): int(j) for i, j in zip(rows, columns, strict=True) if np.isfinite(cost[i, j])}


def _pair_joints(model: Any, pairing: Pairing, body: int, image: int) -> None:
    first, second = int(model.body_jntadr[body]), int(model.body_jntadr[image])
    if model.body_jntnum[body] != model.body_jntnum[image]:
        pairing.unpaired.append(
            f"the joints of {title(model, 'body', body)}: {title(model, 'body', image)} has different joints"
        )
        return
    for step in range(int(model.body_jntnum[body])):
        # Joints of a body and its image correspond in order.
        joint, other = first + step, second + step
        if model.jnt_type[joint] != model.jnt_type[other]:
            pairing.unpaired.append(f"{title(model, 'joint', joint)}: {title(model, 'joint', other)} has another type")
            continue
        if model.jnt_type[joint] in (0, 1):  # free, ball
            pairing.joints[joint] = other
            continue
        cosine = _cosine(model, pairing, joint, other)
        if abs(cosine) < _PARALLEL:
            pairing.unpaired.append(
                f"{title(model, 'joint', joint)}: {title(model, 'joint', other)} rotates about another axis "
                f"(or the joints of the two bodies are in another order)"
            )
            continue
        pairing.joints[joint] = other
        pairing.joint_signs[joint] = 1 if cosine > 0 else -1


def _cosine(model: Any, pairing: Pairing, joint: int, other: int) -> float:
    axes, isometry = pairing.reference.axis, pairing.isometry
    slide = model.jnt_type[joint] == 2  # mjJNT_SLIDE
    moved = isometry.polar(axes[joint]) if slide else isometry.axial(axes[joint])
    # Axes have length 1: the product is the cosine.
    return float(moved @ axes[other])


def _pair_geoms(model: Any, pairing: Pairing, body: int, image: int) -> None:
    sources = range(int(model.body_geomadr[body]), int(model.body_geomadr[body] + model.body_geomnum[body]))
    targets = range(int(model.body_geomadr[image]), int(model.body_geomadr[image] + model.body_geomnum[image]))
    if not len(sources) or not len(targets):
        return
    cost = np.array([[_geom_cost(model, pairing, i, j) for j in targets] for i in sources])
    matched = _Bodies._greedy(cost) if body == image and pairing.isometry.order == 2 else _assign_rows(cost)
    for i, j in matched.items():
        pairing.geoms[sources[i]] = targets[j]


def _geom_cost(model: Any, pairing: Pairing, i: int, j: int) -> float:
    if model.geom_type[i] != model.geom_type[j]:
        return float(np.inf)
    reference = pairing.reference
    moved = pairing.isometry.point(reference.geom_position[i])
    offset = moved - reference.geom_position[j]
    if model.geom_type[i] == 0:  # planes are infinite: only the distance along the normal matters
        offset = offset @ reference.geom_rotation[j][:, 2]
    distance = float(np.linalg.norm(offset))
    # Geoms may be positioned less exactly than bodies: allow twice the distance.
    if distance > 2 * _NEAR * reference.extent:
        return float(np.inf)
    unlike = float(np.abs(model.geom_size[i] - model.geom_size[j]).max())
    visible = model.geom_contype[i] == model.geom_contype[j] and model.geom_conaffinity[i] == model.geom_conaffinity[j]
    named = are_mirrored(name_of(model, "geom", i), name_of(model, "geom", j))
    # A colliding geom is not the image of a non-colliding one; names only decide between equal geoms.
    return distance + unlike + (0.0 if visible else reference.extent) - (10 * ROUNDING if named else 0.0)
