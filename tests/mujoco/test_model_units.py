"""The parts that read and mirror models, each by itself: poses, masses, grids, drives, names and differences."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from symcheck.errors import SpecError, TargetError
from symcheck.mujoco import actuation, pairing
from symcheck.mujoco.differences import Difference, difference
from symcheck.mujoco.isometry import reflection, rotation
from symcheck.mujoco.layouts import grids
from symcheck.mujoco.maps import Affine, block_diagonal, checked_part, inertia_block, linear, per_body, spatial_block
from symcheck.mujoco.mjcf import shapes
from symcheck.mujoco.mjcf.drives import _Law
from symcheck.mujoco.mjcf.poses import Pose, onto_z
from symcheck.mujoco.names import are_mirrored, mirrored_names

RNG = np.random.default_rng(0)


# --- poses and masses


def test_a_pose_inside_another_is_the_product_of_both() -> None:
    turns = Rotation.random(2, random_state=0).as_matrix()
    outer, inner = Pose(RNG.normal(size=3), turns[0]), Pose(RNG.normal(size=3), turns[1])
    point = RNG.normal(size=3)
    whole = outer.inside(inner)
    inside = inner.rotation @ point + inner.position
    np.testing.assert_allclose(whole.rotation @ point + whole.position, outer.rotation @ inside + outer.position)


@pytest.mark.parametrize(
    "direction", [[0, 0, 1], [0, 0, -1], [1, 0, 0], [0, -1, 0], [0.6, 0, 0.8], [2 / 3, -2 / 3, 1 / 3]]
)
def test_the_shortest_turn_takes_z_to_a_direction(direction: list[float]) -> None:
    turn = onto_z(np.array(direction, dtype=float))
    np.testing.assert_allclose(turn[:, 2], direction, atol=1e-12)
    np.testing.assert_allclose(turn.T @ turn, np.eye(3), atol=1e-12)
    assert np.linalg.det(turn) > 0
    cosine = (np.trace(turn) - 1) / 2
    assert cosine == pytest.approx(direction[2], abs=1e-12)  # no more than the angle between the two
    if direction[2] == -1:
        np.testing.assert_allclose(turn, np.diag([1, -1, -1]), atol=1e-12)  # about x, as MuJoCo's compiler turns


def sampled(kind: int, size: np.ndarray, count: int = 300_000) -> tuple[float, np.ndarray]:
    """Volume and moments of inertia per unit of mass, by counting points of the bounding box."""
    a, b, c = size
    box = {
        shapes.SPHERE: (a, a, a), shapes.ELLIPSOID: (a, b, c), shapes.BOX: (a, b, c),
        shapes.CYLINDER: (a, a, b), shapes.CAPSULE: (a, a, a + b),
    }[kind]  # fmt: skip
    x, y, z = points = (np.random.default_rng(1).uniform(-1, 1, size=(count, 3)) * box).T
    round_ = x**2 + y**2
    inside = {
        shapes.SPHERE: round_ + z**2 <= a * a,
        shapes.ELLIPSOID: (x / a) ** 2 + (y / max(b, 1e-9)) ** 2 + (z / max(c, 1e-9)) ** 2 <= 1,
        shapes.BOX: np.ones(count, bool),
        shapes.CYLINDER: round_ <= a * a,
        shapes.CAPSULE: round_ + np.maximum(np.abs(z) - b, 0) ** 2 <= a * a,
    }[kind]
    x, y, z = points[:, inside]
    moments = np.array([(y * y + z * z).mean(), (x * x + z * z).mean(), (x * x + y * y).mean()])
    return float(8 * np.prod(box) * inside.mean()), moments


@pytest.mark.parametrize("size", [[0.5, 0.3, 0.8], [0.2, 0.9, 0.4]])
@pytest.mark.parametrize("kind", [shapes.SPHERE, shapes.ELLIPSOID, shapes.BOX, shapes.CYLINDER, shapes.CAPSULE])
def test_solids_have_the_volume_and_moments_of_their_points(kind: int, size: list[float]) -> None:
    volume, moments = shapes._solid(kind, np.array(size))
    found_volume, found_moments = sampled(kind, np.array(size))
    # 300,000 points in the box, at least a fifth of them inside: a share is known to 1%, a mean square to 2%.
    assert volume == pytest.approx(found_volume, rel=0.015)
    np.testing.assert_allclose(moments, found_moments, rtol=0.02)
    shape = shapes.Shape(kind, np.array(size), Pose(np.zeros(3), np.eye(3)))
    a, b, c = size
    reach = {
        shapes.SPHERE: a, shapes.ELLIPSOID: max(size), shapes.BOX: math.sqrt(a * a + b * b + c * c),
        shapes.CYLINDER: math.sqrt(a * a + b * b), shapes.CAPSULE: a + b,
    }[kind]  # fmt: skip
    assert shape.reach == pytest.approx(reach)


def test_masses_are_joined_as_their_points_are() -> None:
    parts, points, weights = [], [], []
    for k in range(3):
        some, w = RNG.normal(size=(20, 3)) + k, RNG.uniform(0.5, 2, 20)
        centre = (w[:, None] * some).sum(axis=0) / w.sum()
        off = some - centre
        inertia = sum(m * (o @ o * np.eye(3) - np.outer(o, o)) for m, o in zip(w, off, strict=True))
        parts.append(shapes.Mass(float(w.sum()), centre, np.asarray(inertia)))
        points.append(some)
        weights.append(w)
    every, w = np.concatenate(points), np.concatenate(weights)
    centre = (w[:, None] * every).sum(axis=0) / w.sum()
    inertia = sum(
        m * ((p - centre) @ (p - centre) * np.eye(3) - np.outer(p - centre, p - centre))
        for m, p in zip(w, every, strict=True)
    )
    whole = shapes.join_masses(parts)
    assert whole.mass == pytest.approx(w.sum())
    np.testing.assert_allclose(whole.centre, centre)
    np.testing.assert_allclose(whole.inertia, inertia)
    nothing = shapes.join_masses([])
    assert (nothing.mass, nothing.centre.any(), nothing.inertia.any()) == (0.0, False, False)


# --- maps


def test_affine_maps_compose_and_stand_side_by_side() -> None:
    first = Affine(RNG.normal(size=(2, 2)), RNG.normal(size=2))
    second = linear(np.diag([-1.0, 1.0, -1.0]))
    both = block_diagonal([first, second])
    value = RNG.normal(size=5)
    np.testing.assert_allclose(
        both.matrix @ value + both.offset,
        np.concatenate([first.matrix @ value[:2] + first.offset, second.matrix @ value[2:]]),
    )
    moved = value[:2]
    for k in range(4):
        power = first.power(k)
        np.testing.assert_allclose(power.matrix @ value[:2] + power.offset, moved)
        moved = first.matrix @ moved + first.offset
    assert both.dim == 5
    assert isinstance(first.entry(), dict)
    assert second.entry() is second.matrix
    kept = checked_part(both, slice(0, 2), "front", SpecError)
    np.testing.assert_array_equal(kept.matrix, first.matrix)
    np.testing.assert_array_equal(kept.offset, first.offset)
    with pytest.raises(SpecError, match=r"back is not mapped to itself: the images of components \[1\]"):
        checked_part(both, slice(1, 5), "back", SpecError)


@pytest.mark.parametrize("isometry", [reflection("xz"), reflection([1, 2, 2]), rotation("z", 3), rotation("x", 4)])
def test_stored_inertias_and_spatial_vectors_move_as_tensors_and_vectors(isometry: Any) -> None:
    pairing: Any = SimpleNamespace(isometry=isometry, bodies=np.array([0, 2, 1]))
    M, sign = isometry.matrix, round(np.linalg.det(isometry.matrix))
    tensor = RNG.normal(size=(3, 3))
    tensor, offset = tensor + tensor.T, RNG.normal(size=3)
    pairs = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    stored = np.array([*(tensor[p] for p in pairs), *offset, 7.0])
    moved = M @ tensor @ M.T
    np.testing.assert_allclose(
        inertia_block(pairing) @ stored, [*(moved[p] for p in pairs), *(M @ offset), 7.0], atol=1e-12
    )
    vector = RNG.normal(size=6)
    np.testing.assert_allclose(
        spatial_block(pairing) @ vector, [*(sign * M @ vector[:3]), *(M @ vector[3:])], atol=1e-12
    )
    rows = RNG.normal(size=(3, 3))
    expected = np.zeros((3, 3))
    for body, image in enumerate(pairing.bodies):
        expected[image] = M @ rows[body]
    table = per_body(None, pairing, M)
    np.testing.assert_allclose(table.matrix @ rows.ravel(), expected.ravel(), atol=1e-12)


# --- grids


def term(**arguments: Any) -> Any:
    return SimpleNamespace(arguments=arguments, where="scan")


@pytest.mark.parametrize("order", ["xy", "yx"])
@pytest.mark.parametrize(
    "isometry", [reflection("xz"), reflection("yz"), rotation("z", 2), rotation("z", 4)], ids=lambda i: i.name
)
def test_heights_move_with_their_points(order: str, isometry: Any) -> None:
    rows, cols = (3, 3) if isometry.order == 4 else (3, 4)
    written = term(rows=rows, cols=cols, order=order)
    matrix = grids.scan_matrix(written, isometry.matrix).toarray()

    def point(row: int, col: int) -> np.ndarray:
        inner, outer = col - (cols - 1) / 2, row - (rows - 1) / 2
        return np.array([inner, outer, 0.0]) if order == "xy" else np.array([outer, inner, 0.0])

    places = list(itertools.product(range(rows), range(cols)))
    for column, place in enumerate(places):
        moved = isometry.polar(point(*place))
        (image,) = [k for k, other in enumerate(places) if np.allclose(point(*other), moved)]
        np.testing.assert_array_equal(matrix[:, column], np.eye(len(places))[image])
    assert grids.scan_labels(written)[:2] == ["[0,0]", "[0,1]"]
    assert len(grids.scan_labels(written)) == rows * cols


def test_grids_that_an_isometry_does_not_map_to_themselves_are_refused() -> None:
    quarter, eighth = rotation("z", 4).matrix, rotation("z", 8).matrix
    with pytest.raises(SpecError, match="the grid is not mapped to itself"):
        grids.scan_matrix(term(rows=3, cols=4), quarter)
    with pytest.raises(SpecError, match="the grid is not mapped to itself"):
        grids.scan_matrix(term(rows=3, cols=3), eighth)
    grids.scan_matrix(term(rows=1, cols=1), eighth)
    with pytest.raises(SpecError, match="does not map the image to itself"):
        grids.image_matrix(term(shape=[3, 4], axes="xy"), quarter)
    # Every pixel of the inner four has an integer nearest to its image, but lies between pixels.
    for shape in ([2, 2], [4, 4], [5, 5]):
        with pytest.raises(SpecError, match="smaller rotations move pixels to positions between pixels"):
            grids.image_matrix(term(shape=shape, axes="xy"), eighth)
        turned = grids.image_matrix(term(shape=shape, axes="xy"), quarter).toarray()
        assert (turned.sum(axis=0) == 1).all()
        assert (turned.sum(axis=1) == 1).all()
    for wrong in ({"order": "zx"}, {"origin": "corner"}):
        with pytest.raises(SpecError, match="expected o"):
            grids.scan_labels(term(rows=2, cols=2, **wrong))


@pytest.mark.parametrize("isometry", [reflection("xz"), reflection("yz"), rotation("z", 2), rotation("z", 4)])
def test_maps_from_above_move_with_their_points_and_keep_their_channels(isometry: Any) -> None:
    for axes, shape in (("cxy", (2, 3, 3)), ("yxc", (3, 3, 2)), ("xy", (4, 4))):
        matrix = grids.image_matrix(term(shape=list(shape), axes=axes), isometry.matrix).toarray()
        image = RNG.normal(size=shape)
        moved = (matrix @ image.ravel()).reshape(shape)
        for place in np.ndindex(*shape):
            at = dict(zip(axes, place, strict=True))
            size = shape[axes.index("x")]
            point = isometry.polar(np.array([2 * at["x"] - size + 1, 2 * at["y"] - size + 1, 0.0]))
            to = {**at, "x": round((point[0] + size - 1) / 2), "y": round((point[1] + size - 1) / 2)}
            assert moved[tuple(to[letter] for letter in axes)] == image[place]


def test_a_camera_is_mirrored_in_its_width_alone() -> None:
    image = RNG.normal(size=(2, 3, 4))
    matrix = grids.image_matrix(term(shape=[2, 3, 4]), reflection("xz").matrix)
    np.testing.assert_array_equal((matrix @ image.ravel()).reshape(2, 3, 4), image[:, :, ::-1])
    flat = grids.image_matrix(term(shape=[3, 4]), reflection("xz").matrix)
    np.testing.assert_array_equal((flat @ image[0].ravel()).reshape(3, 4), image[0][:, ::-1])
    for other in (reflection("yz"), rotation("z", 2)):
        with pytest.raises(SpecError, match="only by the mirror in the xz plane"):
            grids.image_matrix(term(shape=[3, 4]), other.matrix)
    assert grids.image_labels(term(shape=[1, 2, 2]))[-1] == "[0,1,1]"


@pytest.mark.parametrize(
    ("shape", "axes"),
    [([2], "h"), ([2, 2, 2, 2], "chwx"),
     ([2, 2], "hh"), ([2, 2], "hx"), ([2, 2], "ch"), ([2, 2], "cx"), ([2, 2], "chw"),
     ([2, 2, 2], "xyw"), (3, "hw"), ([2, 2], 5), ([300, 300], "hw")],
)  # fmt: skip
def test_shapes_and_axes_that_do_not_go_together_are_refused(shape: Any, axes: Any) -> None:
    with pytest.raises(SpecError):
        grids.image_labels(term(shape=shape, axes=axes))
    assert len(grids.image_labels(term(shape=[256, 256], axes=["h", "w"]))) == 65_536


# --- drives


@pytest.mark.parametrize(
    ("tag", "values", "gain", "bias", "kinds"),
    [
        ("motor", {}, [1], [], ("fixed", "none", "none")),
        ("position", {"kp": "5"}, [5], [0, -5, 0], ("fixed", "affine", "none")),
        ("position", {"kp": "5", "kv": "2"}, [5], [0, -5, -2], ("fixed", "affine", "none")),
        ("position", {"kp": "5", "dampratio": "1"}, [5], [0, -5, 1], ("fixed", "affine", "none")),
        ("position", {"timeconst": "0.5"}, [1], [0, -1, 0], ("fixed", "affine", "filterexact")),
        ("position", {"timeconst": "0"}, [1], [0, -1, 0], ("fixed", "affine", "none")),
        ("intvelocity", {"kp": "3"}, [3], [0, -3, 0], ("fixed", "affine", "integrator")),
        ("velocity", {"kv": "4"}, [4], [0, 0, -4], ("fixed", "affine", "none")),
        ("damper", {"kv": "4"}, [0, 0, -4], [], ("affine", "none", "none")),
        ("adhesion", {"gain": "6"}, [6], [], ("fixed", "none", "none")),
        ("cylinder", {"area": "2", "bias": "1 2 3"}, [2], [1, 2, 3], ("fixed", "affine", "filter")),
        ("cylinder", {"diameter": "2"}, [math.pi], [], ("fixed", "affine", "filter")),
        (
            "general", {"gainprm": "7 8", "biastype": "affine", "biasprm": "1 2"}, [7, 8], [1, 2],
            ("fixed", "affine", "none"),
        ),
    ],
)  # fmt: skip
def test_short_forms_of_actuators_set_their_gains(
    tag: str, values: dict[str, str], gain: list[float], bias: list[float], kinds: tuple[str, str, str]
) -> None:
    law = _Law()
    law.apply(tag, values, "actuator")
    for numbers, wanted in ((law.gain, gain), (law.bias, bias)):
        np.testing.assert_allclose(numbers, [*wanted, *[0] * (10 - len(wanted))])
    assert (law.gain_type, law.bias_type, law.dynamics) == kinds
    if tag == "cylinder":
        assert law.dynamics_numbers[0] == 1.0


def test_muscles_are_equal_if_all_their_parameters_are() -> None:
    one, other = _Law(), _Law()
    one.apply("muscle", {"force": "5", "vmax": "2"}, "")
    other.apply("muscle", {"force": "5", "vmax": "3"}, "")
    assert not np.array_equal(one.gain, other.gain)
    assert np.array_equal(one.gain, one.bias)
    assert (one.gain_type, one.bias_type, one.dynamics) == ("muscle", "muscle", "muscle")
    with pytest.raises(TargetError):
        one.apply("position", {"kp": "five"}, "actuator 'a'")


# --- paths and wrenches


@pytest.mark.parametrize(
    ("wanted", "path", "sign"),
    [
        ({(1, 0): 1.0, (1, 1): -2.0}, {(1, 0): 3.0, (1, 1): -4.0}, 1),
        ({(1, 0): 1.0, (1, 1): -2.0}, {(1, 0): -1.0, (1, 1): 2.0}, -1),
        ({(1, 0): 1.0, (1, 1): -2.0}, {(1, 0): 1.0, (1, 1): 2.0}, 0),
        ({(1, 0): 1.0}, {(1, 1): 1.0}, 0),
        ({(1, 0): 1.0}, {(1, 0): 1.0, (1, 1): 1.0}, 0),
        ({(3, 0): 1.0}, {(1, 0): 1.0}, 0),
    ],
)
def test_one_sign_fits_a_whole_path_or_none(wanted: Any, path: Any, sign: int) -> None:
    assert actuation._same_path(wanted, path) == sign


@pytest.mark.parametrize("length", [1e-2, 1.0, 1e4])
@pytest.mark.parametrize(
    ("cosine", "sign"), [(1.0, 1), (0.91, 1), (0.89, 0), (0.0, 0), (-0.89, 0), (-0.91, -1), (-1.0, -1)]
)
def test_forces_are_images_where_they_are_parallel_up_to_a_cosine(cosine: float, sign: int, length: float) -> None:
    image, actual = np.zeros(6), np.zeros(6)
    image[0] = length
    actual[:2] = 3 * cosine, 3 * math.sqrt(1 - cosine**2)
    assert actuation._wrench_sign(image, actual) == sign
    assert actuation._wrench_sign(image, np.zeros(6)) == 0


def test_pulleys_are_numbered_along_a_tendon() -> None:
    model = SimpleNamespace(
        tendon_adr=[1], tendon_num=[5], wrap_type=[9, 3, 2, 3, 2, 1], wrap_objid=[9, 4, -1, 5, -1, 6],
        wrap_prm=[9, 7, 2, 7, 3, -1.5],
    )  # fmt: skip
    assert actuation.path_of(model, 0) == {(3, 4): 1.0, (2, -1): 2.0, (3, 5): 1.0, (2, -2): 3.0, (1, 6): -1.5}


# --- names and differences


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("left_hip", "right_hip"), ("LEFT_HIP", "RIGHT_HIP"), ("LeftHip", "RightHip"), ("l_hip", "r_hip"),
        ("FL_hip", "FR_hip"), ("rl_hip", "rr_hip"), ("LH_KFE", "RH_KFE"), ("hip.r", "hip.l"), ("larm1", "rarm1"),
        ("bl/foot", "br/foot"), ("ml_leg", "mr_leg"),
    ],
)  # fmt: skip
def test_sides_are_exchanged_in_the_case_of_the_name(name: str, first: str) -> None:
    assert mirrored_names(name)[0] == first
    assert are_mirrored(name, first)
    assert are_mirrored(first, name)
    assert not are_mirrored(name, name)


def test_a_name_without_a_side_has_no_image_and_one_side_may_be_unmarked() -> None:
    for name in ("torso", "hip_1", "", "leftover", "lefty"):
        assert mirrored_names(name) == ()
    assert mirrored_names("thigh_left") == ("thigh_right", "thigh")
    assert mirrored_names("Left_thigh") == ("Right_thigh", "thigh")
    assert are_mirrored("thigh", "thigh_left")
    assert not are_mirrored("thigh", "thigh_front")


@pytest.mark.parametrize("quantity", ["mass", "inertia", "armature", "armature of the drive"])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e4])
def test_masses_are_compared_relative_to_themselves_and_lengths_to_a_metre(quantity: str, size: float) -> None:
    for part, found in ((0.9e-9, 0), (1.1e-9, 1)):
        assert len(list(difference("a", "b", quantity, size, size * (1 + part)))) == found
        other = max(1.0, size) * part
        assert len(list(difference("a", "b", "position", [0.0, size], [0.0, size + other]))) == found
    assert list(difference("a", "b", quantity, [], [])) == []
    assert len(list(difference("a", "b", quantity, math.nan, 1.0))) == 1


def test_a_difference_says_what_differs_by_how_much() -> None:
    both = Difference("geom 'a'", "geom 'b'", "size", (0.1, 0.2), (0.1, 0.25))
    assert both.size == pytest.approx(0.05)
    assert both.relative == pytest.approx(0.2)
    assert Difference("a", "b", "position", (0.1,), (0.2,), scale=2.0).relative == pytest.approx(0.05)
    assert Difference("a", "b", "margin", (0.0,), (0.0,)).relative == 0.0
    assert str(both) == "size of geom 'b': (0.1, 0.25), but the image of geom 'a' has (0.1, 0.2)"
    assert str(Difference("a", "a", "mass", (1.0,), (2.0,))) == "mass of a: 2, but its image is 1"
    missing = Difference("a", "body 'c'", "pose", (1.0,), ())
    assert (missing.size, missing.relative) == (math.inf, math.inf)
    assert str(missing) == "a has no image on body 'c': its pose would be 1"
    assert str(Difference("a", "b", "", (), ())) == "a has no image: b is missing"


# --- pairing


@pytest.mark.parametrize("seed", range(12))
def test_rows_are_assigned_at_the_least_total_cost(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = (int(n) for n in rng.integers(1, 5, size=2))
    cost = np.where(rng.random((rows, columns)) < 0.3, np.inf, rng.uniform(size=(rows, columns)))
    bounded = np.where(np.isfinite(cost), cost, 1e6)
    count = min(rows, columns)
    best = min(
        sum(bounded[i, j] for i, j in zip(some, order, strict=True))
        for some in itertools.combinations(range(rows), count)
        for order in itertools.permutations(range(columns), count)
    )
    matched = pairing._assign_rows(cost)
    assert len(set(matched.values())) == len(matched)
    assert all(np.isfinite(cost[i, j]) for i, j in matched.items())
    total = sum(cost[i, j] for i, j in matched.items()) + 1e6 * (count - len(matched))
    assert total == pytest.approx(best)
    assert pairing._assign_rows(np.zeros((0, 3))) == {}


def test_an_involution_takes_the_nearest_pairs_first_and_needs_both_directions() -> None:
    greedy = pairing._Bodies._greedy
    cost = np.array([[9.0, 1.0, 4.0], [1.0, 9.0, 2.0], [4.0, 2.0, 3.0]])
    assert greedy(cost) == {0: 1, 1: 0, 2: 2}
    one_way = np.array([[5.0, 1.0], [8.0, 5.0]])  # there in 1, back in 8
    assert greedy(one_way) == {0: 0, 1: 1}
    assert greedy(np.array([[np.inf, np.inf], [1.0, 2.0]])) == {1: 1}


@pytest.mark.parametrize(("cosine", "sign"), [(1.0, 1), (0.91, 1), (0.89, 0), (-0.89, 0), (-0.91, -1)])
@pytest.mark.parametrize("kind", [2, 3])
def test_axes_of_a_pair_are_parallel_up_to_a_cosine_with_their_sign(kind: int, cosine: float, sign: int) -> None:
    mirror = reflection("xz")
    moved = np.array([cosine, 0.0, math.sqrt(1 - cosine**2)])
    axes = np.array([[1.0, 0.0, 0.0], moved])
    if kind == 3:  # hinges turn about axial vectors: the mirror keeps y alone
        axes[1] = -moved
    model = SimpleNamespace(
        body_jntadr=[0, 1], body_jntnum=[1, 1], jnt_type=[kind, kind], jnt_bodyid=[0, 1],
        names={"body": ["a", "b"], "joint": ["j", "k"]},
    )  # fmt: skip
    pairs: Any = SimpleNamespace(
        isometry=mirror,
        reference=SimpleNamespace(axis=axes),
        joints=np.full(2, -1),
        joint_signs=np.zeros(2, int),
        unpaired=[],
    )
    pairing._pair_joints(model, pairs, 0, 1)
    assert (pairs.joints.tolist(), pairs.joint_signs.tolist()) == ([1 if sign else -1, -1], [sign, 0])
    assert (pairs.unpaired == []) == (sign != 0)
    if not sign:
        assert pairs.unpaired[0].startswith("joint 'j': joint 'k' rotates about another axis")
    model.jnt_type = [kind, 5 - kind]
    pairing._pair_joints(model, pairs, 0, 1)
    assert pairs.unpaired[-1] == "joint 'j': joint 'k' has another type"
    model.body_jntnum = [1, 0]
    pairing._pair_joints(model, pairs, 0, 1)
    assert pairs.unpaired[-1] == "the joints of body 'a': body 'b' has different joints"


@pytest.mark.parametrize(("off", "near"), [(0.19, True), (0.21, False)])
@pytest.mark.parametrize("extent", [2.0])
def test_geoms_are_images_within_a_tenth_of_the_extent(off: float, extent: float, near: bool) -> None:
    places = np.array([[0.0, 1.0, 0.0], [off, -1.0, 0.0]])
    reference = SimpleNamespace(
        geom_position=places, geom_rotation=np.array([np.eye(3)] * 2), extent=extent, body_position=places
    )
    model = SimpleNamespace(
        geom_type=[2, 2], geom_size=np.array([[0.1, 0, 0], [0.3, 0, 0]]), geom_contype=[1, 1], geom_conaffinity=[1, 1],
        names={"geom": ["foot", "toe"]},
    )  # fmt: skip
    pairs: Any = SimpleNamespace(isometry=reflection("xz"), reference=reference)
    cost = pairing._geom_cost(model, pairs, 0, 1)
    assert np.isfinite(cost) == near
    if near:
        assert cost == pytest.approx(off + 0.2)
        model.geom_contype = [1, 0]
        assert pairing._geom_cost(model, pairs, 0, 1) == pytest.approx(off + 0.2 + extent)
        model.geom_contype, model.names = [1, 1], {"geom": ["left_foot", "right_foot"]}
        assert pairing._geom_cost(model, pairs, 0, 1) == pytest.approx(off + 0.2 - 1e-8, abs=1e-12)
    model.geom_type = [0, 0]  # planes: the distance along the normal, here z
    assert pairing._geom_cost(model, pairs, 0, 1) < 0.21
    places[1, 2] = 0.15
    assert pairing._geom_cost(model, pairs, 0, 1) == pytest.approx(0.15 + 0.2, abs=1e-7)
    model.geom_type = [2, 3]
    assert pairing._geom_cost(model, pairs, 0, 1) == np.inf
