"""Isometries and quaternions against their definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from symcheck.errors import SpecError
from symcheck.mujoco.isometry import matrix_of, quaternion_map, quaternion_of, reflection, rotation, whole

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("plane", "axis"), [("xz", 1), ("zx", 1), ("yz", 0), ("zy", 0), ("xy", 2), ("yx", 2)])
def test_a_reflection_negates_what_is_across_its_plane(plane: str, axis: int) -> None:
    mirror, points = reflection(plane, through=(1.0, 2.0, 3.0)), RNG.normal(size=(5, 3))
    sign = np.where(np.arange(3) == axis, -1.0, 1.0)
    centre = np.array([1.0, 2.0, 3.0])
    assert (mirror.determinant, mirror.order, mirror.name) == (-1, 2, f"mirror in the {plane} plane")
    np.testing.assert_allclose(mirror.point(points), (points - centre) * sign + centre)
    np.testing.assert_allclose(mirror.polar(points), points * sign)
    np.testing.assert_allclose(mirror.axial(points), -points * sign)
    np.testing.assert_allclose(mirror.point(mirror.point(points)), points)


def test_a_reflection_across_any_normal_fixes_its_plane() -> None:
    for normal in RNG.normal(size=(4, 3)) * 7.0:
        mirror = reflection(normal.tolist())
        unit = normal / np.linalg.norm(normal)
        inside = np.cross(unit, [0.3, -0.2, 0.9])
        np.testing.assert_allclose(mirror.polar(unit), -unit, atol=1e-12)
        np.testing.assert_allclose(mirror.polar(inside), inside, atol=1e-12)
    assert reflection([0, 3, 4]).name == "mirror across (0, 0.6, 0.8)"


@pytest.mark.parametrize("axis", ["x", "y", "z"])
@pytest.mark.parametrize("order", [2, 3, 4, 8])
def test_a_rotation_turns_counter_clockwise_by_its_part_of_a_turn(axis: str, order: int) -> None:
    turn = rotation(axis, order, through=(0.5, 0.0, -1.0))
    place = "xyz".index(axis)
    expected = Rotation.from_rotvec(2 * math.pi / order * np.eye(3)[place]).as_matrix()
    np.testing.assert_allclose(turn.matrix, expected, atol=1e-12)
    points = RNG.normal(size=(5, 3))
    np.testing.assert_allclose(turn.axial(points), turn.polar(points))
    moved = points
    for k in range(order):
        assert k == 0 or not np.allclose(moved, points)
        moved = turn.point(moved)
    np.testing.assert_allclose(moved, points, atol=1e-12)
    assert (turn.determinant, turn.order, turn.name) == (1, order, f"rotation by 1/{order} turn about {axis}")
    if order in (2, 4):
        assert np.array_equal(turn.matrix, np.round(turn.matrix))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: reflection("zz"), "expected a plane"),
        (lambda: reflection([0, 0, 0]), "expected a normal vector"),
        (lambda: reflection([1, 0]), "expected a normal vector"),
        (lambda: reflection([1, 0, np.nan]), "a normal vector"),
        (lambda: reflection("xz", through=(0, 0)), "expected a point"),
        (lambda: reflection("xz", through=(0, 0, np.inf)), "expected a point"),
        (lambda: rotation("w", 2), "expected an axis"),
        (lambda: rotation("z", 1), "at least 2, got 1"),
        (lambda: rotation("z", 2.0), "at least 2, got 2.0"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_what_is_no_isometry_is_refused(make: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        make()


def test_values_are_whole_up_to_a_billionth() -> None:
    made = whole(np.array([1 + 0.9e-9, 1 + 1.1e-9, -0.9e-9, -2 - 0.5e-9]))
    assert made.tolist() == [1.0, 1 + 1.1e-9, 0.0, -2.0]
    assert not np.signbit(made[2])


def test_quaternions_are_the_rotations_that_they_name() -> None:
    for _ in range(10):
        left, right, q = (Rotation.random(rng=RNG) for _ in range(3))
        l, r, m = (quaternion_of(item.as_matrix()) for item in (left, right, q))
        np.testing.assert_allclose(matrix_of(3.0 * m), q.as_matrix(), atol=1e-12)
        assert m[np.flatnonzero(np.abs(m) > 1e-9)[0]] > 0
        product = matrix_of(quaternion_map(l, r) @ m)
        np.testing.assert_allclose(product, (left * q * right.inv()).as_matrix(), atol=1e-12)
    for axis in np.eye(3):
        turned = quaternion_of(Rotation.from_rotvec(math.pi * axis).as_matrix())
        assert turned.tolist() == [0.0, *axis]
