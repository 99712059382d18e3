"""The parts of a claim one by one: limits from both sides, columns of blocks, compositions, words, formulas."""

from __future__ import annotations

import itertools
import math
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from scipy.linalg import expm

from symcheck import groups
from symcheck import representations as reps
from symcheck.entries.forms import AffineEntry, FunctionEntry, IdentityEntry, SpatialEntry, TreeEntry, parse_entry
from symcheck.entries.lie_forms import LieEntry, LieFunctionEntry, parse_lie_entry
from symcheck.errors import RepresentationError, SpecError
from symcheck.spaces.coordinates import SpaceCodec
from symcheck.symmetry import action_bounds, compositions, elements, exits, lie_claims, lie_spaces
from symcheck.symmetry.altered import AlteredSymmetry, affine, permuting, signing
from symcheck.symmetry.blocks import (
    Block,
    check_columns,
    frame_entry,
    is_blocks,
    joined_entry,
    labels_of,
    parse_blocks,
)
from symcheck.symmetry.bound import UNIFORM, group_by_word, pooled
from symcheck.symmetry.claimed_maps import corner_images, read_agents, signed_images
from symcheck.symmetry.exact_images import images_are_exact
from symcheck.symmetry.space_maps import fit
from symcheck.symmetry.spec import parse_group, symmetry_from_mapping
from symcheck.symmetry.symmetry import Symmetry
from symcheck.symmetry.tested import BoundTested, concrete_claim
from symcheck.symmetry.text import describe

C2, C3, C4, S3 = (groups.named(n) for n in ("C2", "C3", "C4", "S3"))
EPS32 = float(np.finfo(np.float32).eps)
BOX = spaces.Box(-1, 1, (2,), np.float32)


# --- blocks


@pytest.mark.parametrize("layout", ["frames", "components"])
@pytest.mark.parametrize(("history", "count"), [(1, 2), (2, 3), (3, 2), (4, 1)])
def test_a_block_acts_on_each_frame_alone(layout: str, history: int, count: int) -> None:
    rng = np.random.default_rng(history)
    images = [int(s * (i + 1)) for s, i in zip(rng.choice([-1, 1], count), rng.permutation(count), strict=True)]
    written: list[Any] = [
        [f"{k:+d}" for k in images],
        {"matrix": rng.normal(size=(count, count)).tolist(), "offset": rng.normal(size=count).tolist()},
        {"signs": rng.choice([-1, 1], count).tolist(), "offset": [0.5] * count},
    ]
    for entry in written:
        (block,) = parse_blocks([Block("b", [entry], size=count, history=history, layout=layout)], "state", 1)
        value = rng.normal(size=history * count)
        frames = value.reshape(history, count) if layout == "frames" else value.reshape(count, history).T
        moved = np.stack([parse_entry(entry, "").apply(frame) for frame in frames])
        expected = moved.ravel() if layout == "frames" else moved.T.ravel()
        whole = frame_entry(block, 0)
        assert isinstance(whole, AffineEntry)
        np.testing.assert_allclose(whole.apply(value), expected, atol=1e-14)
        labels = block.labels()
        assert len(labels) == history * count == block.width
        if history > 1:
            first = [f"b[{j}], frame {k}" for k in range(history) for j in range(count)]
            assert sorted(labels) == sorted(first)
            assert (labels == tuple(first)) == (layout == "frames" or count == 1)
        else:
            assert labels == tuple(f"b[{j}]" for j in range(count))


def test_joined_blocks_do_not_mix_and_stay_permutations_where_all_are() -> None:
    p, q = {"signs": [1, -1], "offset": [0.0, 2.0]}, ["+3", "-1", "+2"]
    dense = {"matrix": [[0.6, 0.8], [0.8, -0.6]]}
    value = np.arange(1.0, 6.0)
    for first in (p, dense):
        blocks = parse_blocks([Block("p", [first], size=2), Block("q", [q], size=3)], "state", 1)
        whole = joined_entry(blocks, 0)
        assert isinstance(whole, AffineEntry)
        assert whole.is_signed_permutation == (first is not dense and whole.offset is None)
        expected = np.concatenate([parse_entry(first, "").apply(value[:2]), parse_entry(q, "").apply(value[2:])])
        np.testing.assert_allclose(whole.apply(value), expected)
        assert (whole.offset is not None) == (first is p)
    plain = joined_entry(parse_blocks([Block("q", [q], size=3), Block("n", ["identity"], size=2)], "state", 1), 0)
    assert isinstance(plain, AffineEntry)
    assert plain.is_signed_permutation
    assert plain.offset is None
    np.testing.assert_array_equal(plain.apply(value), [*parse_entry(q, "").apply(value[:3]), 4, 5])


def test_a_callable_beside_data_gets_a_copy_of_its_columns_and_the_context() -> None:
    seen: list[Any] = []

    def reverse(part: np.ndarray, *context: Any) -> np.ndarray:
        seen.append(context)
        image = part[::-1].copy()
        part[:] = 99
        return image

    blocks = parse_blocks([Block("f", [reverse], size=2, history=2), Block("q", [[-1]], size=1)], "action", 1)
    whole = joined_entry(blocks, 0)
    assert isinstance(whole, FunctionEntry)
    value = np.arange(5, dtype=np.float32).reshape(5, 1)
    image = whole.function(value, "context")
    assert image.shape == (5, 1)
    assert image.dtype == np.float32
    np.testing.assert_array_equal(image.ravel(), [3, 2, 1, 0, -4])
    np.testing.assert_array_equal(value.ravel(), range(5))
    assert seen == [("context",)]


@pytest.mark.parametrize(
    ("sizes", "size", "told"),
    [
        ((2, 3), 7, r"have 5 columns, but the space has 7: columns 5 to 6 are left over \(b0: columns 0 to 1; "),
        ((2, 3), 6, r"column 5 is left over .*b1: columns 2 to 4"),
        ((2, 3), 4, "the last block ends 1 columns beyond the vector"),
    ],
)
def test_columns_without_a_block_are_counted(sizes: tuple[int, ...], size: int, told: str) -> None:
    blocks = [Block(f"b{i}", [[1] * n], size=n) for i, n in enumerate(sizes)]
    with pytest.raises(SpecError, match=told):
        check_columns(blocks, size, "observation")
    check_columns(blocks, sum(sizes), "observation")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "  "}, "expected a name"),
        ({"names": ["a", "a"], "size": None}, "distinct names"),
        ({"names": [], "size": None}, "distinct names"),
        ({"names": [1, 2], "size": None}, "distinct names"),
        ({"shape": (2,), "size": None}, "shape = "),
        ({"shape": (1, 1, 1, 2), "size": None}, "shape = "),
        ({"shape": (2, 0), "size": None}, "shape = "),
        ({"size": 0}, "size of 1 or more"),
        ({"size": True}, "size of 1 or more"),
        ({"size": 2.0}, "size of 1 or more"),
        ({"size": None}, "no size, no names and no shape"),
        ({"names": ["a", "b", "c"]}, "size 2, but its names or shape give 3"),
        ({"names": ["a", "b"], "shape": (1, 2)}, "only one of them"),
        ({"history": 0}, "history of 1 frame or more"),
        ({"history": 5_000_001}, "at most 10,000,000 columns, got 10,000,002"),
        ({"layout": "frame"}, "'frames' or 'components'"),
    ],
)
def test_every_field_of_a_block_is_checked_by_name(changes: dict[str, Any], message: str) -> None:
    fields = {"name": "b", "map": [[1, -1]], "size": 2, **changes}
    with pytest.raises(SpecError, match=message):
        parse_blocks([Block(**fields)], "observation", 1)


def test_one_column_one_frame_and_grids_of_one_row_are_blocks() -> None:
    for fields in ({"size": 1}, {"names": ["a"]}, {"shape": (1, 1)}, {"shape": (1, 1, 1)}, {"size": 1, "history": 1}):
        (block,) = parse_blocks([Block("b", [[-1]], **fields)], "observation", 1)
        assert (block.count, block.width) == (1, 1)


@pytest.mark.parametrize("operator", ["rot90", "flip_ud", "flip_lr", "transpose"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 2, 3)])
def test_a_grid_of_names_moves_as_an_image_does(operator: str, shape: tuple[int, ...]) -> None:
    (block,) = parse_blocks([Block("grid", [operator], shape=shape)], "observation", 1)
    numbers = np.random.default_rng(0).normal(size=shape)
    axes = {
        "rot90": np.rot90, "flip_ud": lambda f: f[::-1], "flip_lr": lambda f: f[:, ::-1],
        "transpose": lambda f: f.swapaxes(0, 1),
    }  # fmt: skip
    np.testing.assert_array_equal(block.map[0].apply(numbers.ravel()), axes[operator](numbers).ravel())
    assert block.labels()[-1] == f"grid[{','.join(str(n - 1) for n in shape)}]"


def test_grids_that_are_not_square_are_not_turned_but_flipped() -> None:
    for shape, sides in (((2, 3), "2x3"), ((3, 2, 2), "3x2")):
        with pytest.raises(SpecError, match=f"'rot90' needs a square grid; the block has {sides}"):
            parse_blocks([Block("grid", ["rot90"], shape=shape)], "observation", 1)
        parse_blocks([Block("grid", ["flip_lr"], shape=shape)], "observation", 1)
    with pytest.raises(SpecError, match="no shape"):
        parse_blocks([Block("grid", ["rot90"], size=4)], "observation", 1)


def test_names_are_sent_to_names_with_signs() -> None:
    written = {"a": "-b", "b": "+a", "c": "-c"}
    (block,) = parse_blocks([Block("n", [written], names=["a", "b", "c", "d"])], "observation", 1)
    np.testing.assert_array_equal(block.map[0].apply(np.array([1.0, 2.0, 3.0, 4.0])), [2.0, -1.0, -3.0, 4.0])
    with pytest.raises(SpecError, match=r"several components to b, d"):
        parse_blocks([Block("n", [{"a": "b", "c": "d"}], names=["a", "b", "c", "d"])], "observation", 1)
    with pytest.raises(SpecError, match="uses the name 'e'"):
        parse_blocks([Block("n", [{"e": "a"}], names=["a", "b"])], "observation", 1)
    with pytest.raises(SpecError, match="uses names, but the block has none"):
        parse_blocks([Block("n", [{"a": "b"}], size=2)], "observation", 1)


def test_blocks_are_recognised_by_their_form() -> None:
    block = Block("b", [[1]], size=1)
    assert is_blocks({"blocks": []})
    assert is_blocks([block])
    assert not is_blocks([])
    assert not is_blocks([block, [1]])
    assert not is_blocks({"block": [block]})
    with pytest.raises(SpecError, match="fields besides its blocks: other"):
        parse_blocks({"blocks": [block], "other": 1}, "state", 1)
    for empty in ([], {"blocks": []}, {"blocks": "b"}):
        with pytest.raises(SpecError, match="expected a list of blocks"):
            parse_blocks(empty, "state", 1)
    with pytest.raises(SpecError, match=r"one entry per generator, 2 in all, got 1"):
        parse_blocks([block], "state", 2)
    assert labels_of([block, Block("n", [[1, 1]], names=["x", "y"])]) == ("b[0]", "n x", "n y")


# --- bounds of actions


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("bound", [1.0, 1e4, 1e-2])
@pytest.mark.parametrize(("units", "refused"), [(3.5, False), (4.5, True)])
def test_images_of_actions_may_leave_by_four_roundings(sign: int, bound: float, units: float, refused: bool) -> None:
    space = spaces.Box(-bound, bound, (2,), np.float32)
    high = float(space.high[0])
    flat = np.array([[0.0, sign * (high + units * EPS32 * max(1.0, bound))]])
    coordinates = SpaceCodec(space, "action").coordinates
    if refused:
        with pytest.raises(SpecError, match=r"here: the action map leaves the action space: a = .* goes to "):
            action_bounds.refuse_exits(space, coordinates, [np.zeros(2)], flat, flat, "here")
    else:
        action_bounds.refuse_exits(space, coordinates, [np.zeros(2)], flat, flat)
    bounds = exits.stay_inside(coordinates, np.zeros((1, 2)), flat)
    assert bounds.tolist() == [not refused]


def test_the_first_action_that_leaves_is_named() -> None:
    flat = np.array([[0.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
    coordinates = SpaceCodec(BOX, "action").coordinates
    with pytest.raises(SpecError, match=r"a = \[0\.5, 0\.5\] goes to \[2\.0, 0\.0\]"):
        action_bounds.refuse_exits(BOX, coordinates, np.array([[0, 0], [0.5, 0.5], [1, 1]]), flat, flat)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8])
def test_whole_numbers_may_not_leave_at_all(dtype: type[np.generic]) -> None:
    space = spaces.Box(0, 3, (1,), dtype)  # type: ignore[type-var]
    coordinates = SpaceCodec(space, "action").coordinates
    inside, outside = np.array([[3.0]]), np.array([[3.0 + 1e-7]])
    action_bounds.refuse_exits(space, coordinates, [np.zeros(1)], inside, inside)
    with pytest.raises(SpecError, match="leaves"):
        action_bounds.refuse_exits(space, coordinates, [np.zeros(1)], outside, outside)
    assert exits.stay_inside(coordinates, np.zeros((1, 1)), outside).tolist() == [False]


def _corner_images(matrix: np.ndarray, offset: np.ndarray, space: spaces.Box) -> bool:
    corners = np.array(list(itertools.product(*zip(space.low, space.high, strict=True))))
    images = corners @ matrix.T + offset
    return bool(((images >= space.low - 1e-6) & (images <= space.high + 1e-6)).all())


@pytest.mark.parametrize("seed", range(40))
def test_corners_decide_whether_an_affine_map_stays(seed: int) -> None:
    rng = np.random.default_rng(seed)
    low = rng.uniform(-2, 0, 3).round(2)
    space = spaces.Box(low.astype(np.float32), np.float32(rng.uniform(0.1, 2, 3).round(2)), dtype=np.float32)
    matrix, offset = rng.normal(size=(3, 3)) * rng.choice([0.2, 0.6]), rng.normal(size=3) * 0.2
    stays = _corner_images(matrix, offset, space)
    with nullcontext() if stays else pytest.raises(SpecError, match=r"action\[0\]: .* leaves the action space"):
        action_bounds.check_corners(lambda a: a @ matrix.T + offset, space, "action[0]")


def test_unbounded_coordinates_may_mix_and_bounded_ones_may_not_take_from_them() -> None:
    space = spaces.Box(np.array([-np.inf, -1, -np.inf], np.float32), np.array([np.inf, 1, np.inf], np.float32))
    action_bounds.check_corners(lambda a: a[:, [2, 1, 0]] * [1, -1, 1] + [100, 0, 5], space, "action[0]")
    for matrix in (np.eye(3) + 1e-3 * np.eye(3)[[1]].T @ np.eye(3)[[0]], np.diag([1, 1.1, 1])):
        with pytest.raises(SpecError, match="leaves"):
            action_bounds.check_corners(lambda a, m=matrix: a @ np.asarray(m).T, space, "action[0]")
    half = spaces.Box(np.array([0], np.float32), np.array([np.inf], np.float32))
    with pytest.raises(SpecError, match="leaves"):
        action_bounds.check_corners(lambda a: -a, half, "action[0]")
    action_bounds.check_corners(lambda a: 2 * a, half, "action[0]")
    action_bounds.check_corners(lambda a: 1 / 0, spaces.Discrete(3), "action[0]")  # not called


# --- points that leave


@pytest.mark.parametrize("value", [np.nan, 0.0, 1.0, -1.0])
def test_points_inside_stay_and_those_that_began_outside_are_not_counted(value: float) -> None:
    coordinates = SpaceCodec(BOX, "observation").coordinates
    inside = np.array([[value, 0.0]])
    outside = np.array([[0.0, 1.5], [-1.5, 0.0]])
    assert exits.stay_inside(coordinates, inside, inside).tolist() == [True]
    assert exits.stay_inside(coordinates, np.zeros((2, 2)), outside).tolist() == [False, False]
    assert exits.stay_inside(coordinates, outside, outside[::-1]).tolist() == [True, True]
    assert exits.stay_inside(coordinates, outside, np.zeros((2, 2))).tolist() == [True, True]


@pytest.mark.parametrize(("value", "side", "bound"), [(1.5, "above", 1.0), (-1.5, "below", -1.0)])
def test_an_excess_names_its_coordinate_and_its_side(value: float, side: str, bound: float) -> None:
    codec = SpaceCodec(BOX, "observation")
    excess = exits.find_excess(np.array([0.0, value], np.float32), codec)
    assert excess is not None
    assert (excess.value, excess.bound, excess.side) == (value, bound, side)
    assert excess.coordinate == codec.coordinates.names[1]
    assert str(excess) == f"{excess.coordinate} = {value} is {side} {bound:g}"
    assert exits.find_excess(np.array([1.0, -1.0], np.float32), codec) is None
    for relative, beyond in ((0.9e-5, False), (1.2e-5, True)):
        large = SpaceCodec(spaces.Box(-1e4, 1e4, (1,), np.float64), "observation")
        assert (exits.find_excess(np.array([1e4 * (1 + relative)]), large) is not None) == beyond
        assert (exits.find_excess(np.array([-1e4 * (1 + relative)]), large) is not None) == beyond
    both = exits.find_excess(np.array([-2.0, 3.0]), codec)
    assert both is not None
    assert both.value == -2.0


@pytest.mark.parametrize("seed", range(20))
def test_components_that_rotations_mix_are_the_connected_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mixed = rng.uniform(size=(7, 7)) < 0.15
    mixed = np.triu(mixed, 1)
    mixed = mixed | mixed.T
    reach = np.linalg.matrix_power(mixed.astype(int) + np.eye(7, dtype=int), 7) > 0
    expected = {tuple(np.flatnonzero(row)) for row in reach if row.sum() > 1}
    assert {tuple(int(i) for i in some) for some in exits.connected(mixed)} == expected


def test_actions_are_uniform_in_balls_that_fit_and_uniform_elsewhere() -> None:
    space = spaces.Box(np.array([-1, -3, -5], np.float32), np.array([2, 0.5, 5], np.float32))
    turn = Symmetry("turn", groups.so(2), ["identity"], [{"rotate": [[0, 1]]}])
    box = exits.invariant_box(turn, space)
    assert box is not None
    box.seed(0)
    drawn = np.array([box.sample() for _ in range(2_000)])
    radii = np.linalg.norm(drawn[:, :2], axis=1)
    assert radii.max() <= 0.5 * (1 + EPS32)
    # Uniform in a disc of radius 1/2: the squared radius is uniform, and the angle too; 4 deviations of the mean.
    deviation = 4 / np.sqrt(12 * len(drawn))
    assert abs((radii**2 / 0.25).mean() - 0.5) < deviation
    assert abs((drawn[:, 0] > 0).mean() - 0.5) < 4 * 0.5 / np.sqrt(len(drawn))
    assert abs(((drawn[:, 2] + 5) / 10).mean() - 0.5) < deviation
    assert (np.abs(drawn[:, 2]) > 4.5).any()


def test_no_ball_is_drawn_where_no_rotation_of_bounded_components_is_known() -> None:
    so2 = groups.so(2)
    turn = Symmetry("turn", so2, ["identity"], [{"rotate": [[0, 1]]}])
    assert exits.invariant_box(turn, spaces.Discrete(2)) is None
    assert exits.invariant_box(turn, spaces.Box(-np.inf, np.inf, (2,))) is None
    assert exits.invariant_box(turn, spaces.Box(0, 1, (2,))) is None
    skewed = Symmetry("skewed", so2, ["identity"], [{"algebra": [[1, -2], [1, -1]]}])
    assert exits.invariant_box(skewed, BOX) is None
    still = Symmetry("still", so2, ["identity"], ["identity"])
    assert exits.invariant_box(still, BOX) is None
    mirror = Symmetry("mirror", C2, [[-1, -1]], [[-1, -1]])
    assert exits.invariant_box(mirror, BOX) is None

    class Env:
        action_space = BOX

    env = Env()
    with exits.invariant_actions(env, turn):
        assert isinstance(env.action_space, exits.InvariantBox)
    assert env.action_space is BOX
    with pytest.raises(RuntimeError), exits.invariant_actions(env, turn):
        raise RuntimeError
    assert env.action_space is BOX
    with exits.invariant_actions(env, mirror):
        assert env.action_space is BOX


# --- corrected claims


def test_an_altered_claim_changes_one_generator_only() -> None:
    klein = groups.product(C2, C2)
    bound = Symmetry("k", klein, [[-1, 1], [1, -1]], [[-1, 1], [1, -1]], state=[[-1, 1], [1, -1]]).bind(BOX, BOX)
    maps = {
        "observation": lambda obs: obs + 10,
        "action": lambda action, obs: action + obs,
        "state": lambda held: held + 20,
    }
    altered = AlteredSymmetry(bound, 1, maps)
    value, obs = np.array([1.0, 2.0]), np.array([5.0, 5.0])
    np.testing.assert_array_equal(altered.observation((1,), value), [11, 12])
    np.testing.assert_array_equal(altered.observation((0,), value), [-1, 2])
    np.testing.assert_array_equal(altered.observation((1, 1), value), [1, 2])
    np.testing.assert_array_equal(altered.observation_batch((1,), np.stack([value, obs])), [[11, 12], [15, 15]])
    np.testing.assert_array_equal(altered.action((1,), value, obs), [6, 7])
    np.testing.assert_array_equal(altered.action((0,), value, obs), [-1, 2])
    np.testing.assert_array_equal(altered.state((1,), value), [21, 22])
    np.testing.assert_array_equal(altered.state_batch((1,), [value, obs]), [[21, 22], [25, 25]])
    np.testing.assert_array_equal(altered.state_batch((0,), [value, obs]), [[-1, 2], [-5, 5]])
    assert altered.has_state
    part = AlteredSymmetry(bound, 0, {"action": maps["action"]})
    np.testing.assert_array_equal(part.observation((0,), value), [-1, 2])


def test_corrected_maps_keep_type_shape_and_start() -> None:
    act = permuting(np.array([2, 0, 1]), 5)
    assert [act(np.int64(a), None) for a in (5, 6, 7)] == [7, 5, 6]
    assert type(act(np.int32(5), None)) is np.int32
    bound = Symmetry("m", C2, [[-1, -1]], [["-2", "-1"]]).bind(BOX, BOX)
    image = signing(bound, (0,), np.array([1.0, -1.0]))(np.array([1.0, 2.0], np.float32), None)
    np.testing.assert_array_equal(image, [-2.0, 1.0])
    assert image.dtype == np.float32
    apply = affine(np.array([[0.0, 2.0], [3.0, 0.0]]), np.array([0.5, -0.5]))
    image = apply(np.array([[1.0], [2.0]], np.float32))
    assert (image.shape, image.dtype) == ((2, 1), np.float32)
    np.testing.assert_array_equal(image.ravel(), [4.5, 2.5])
    assert not np.isfinite(apply(np.array([np.inf, 1.0]))).all()


# --- elements of continuous groups


@pytest.mark.parametrize("angle", [0.3, math.pi / 2, 2.0])
def test_the_least_moved_harmonic_is_that_of_a_list(angle: float) -> None:
    for harmonics in (1, 4, 8):
        listed = [abs(2 * math.sin(k * angle / 2)) for k in range(1, harmonics + 1)]
        assert elements._least_moved(angle, harmonics) == pytest.approx(min(listed), abs=1e-15)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_the_angles_of_a_product_are_those_of_its_planes(n: int) -> None:
    factor = groups.so(n).factors[0]
    angles = [float(a) for a in np.random.default_rng(n).uniform(0.1, 1.0, len(factor.planes))]
    whole = np.eye(n)
    for (i, j), angle in zip(factor.planes, angles, strict=True):
        generator = np.zeros((n, n))
        generator[j, i], generator[i, j] = 1, -1
        whole = whole @ expm(angle * generator)
    found = elements._angles_of(factor, angles)
    assert len(found) == n // 2
    # 2 cos of each angle, and 1 for the axis of an odd dimension, add up to the trace.
    assert sum(2 * math.cos(a) for a in found) + n % 2 == pytest.approx(np.trace(whole))
    assert all(0 <= a <= math.pi for a in found)


@pytest.mark.parametrize("group", [groups.translations(2), groups.se(2), groups.e(3)], ids=str)
def test_translations_are_drawn_with_both_signs_between_a_third_and_all_of_their_size(group: Any) -> None:
    size = {i: 10.0**i for i in range(len(group.algebra))}
    drawn: dict[int, list[float]] = {}
    for seed in range(30):
        chosen = elements.generic_elements(group, np.random.default_rng(seed), size.__getitem__)
        shifts = [e for e in chosen if any(t is not None and not group.turns(i) for i, t in e.factors)]
        count = group.factors[0].shifts
        assert len(shifts) == count + 1
        assert all(len(e.factors) == count for e in shifts)
        for e in shifts:
            for i, t in e.factors:
                assert t is not None
                drawn.setdefault(i, []).append(t / size[i])
        assert len(chosen) == len(shifts) + (
            0 if not group.factors[0].turns else 1 if group.factors[0].n == 2 else 2
        ) + (len(group.generators))
    for values in drawn.values():
        sizes = np.abs(values)
        assert 1 / 3 <= sizes.min() < 0.4
        assert 0.9 < sizes.max() <= 1
        assert min(values) < 0 < max(values)


def test_an_element_is_read_as_it_is_printed() -> None:
    group = groups.o(2)
    read = elements.read_element(group, "turn reflection turn", [0.5, -1.25])
    assert read.factors == ((0, 0.5), (0, None), (0, -1.25))
    assert read.parameters == (0.5, -1.25)
    assert str(read) == "turn(0.5) reflection turn(-1.25)"
    for word, amounts in (("turn", []), ("turn", [1.0, 2.0]), ("reflection", [1.0]), ("spin", [1.0])):
        with pytest.raises(SpecError, match=f"names the element '{word}' with {len(amounts)} parameters"):
            elements.read_element(group, word, amounts)


@pytest.mark.parametrize("group", [groups.so(2), groups.so(3), groups.se(2), groups.e(2), groups.o(3)], ids=str)
def test_every_relation_is_the_identity_and_covers_each_generator(group: Any) -> None:
    words = elements.axiom_words(group, lambda i: 2.5)
    named = {(i, t is None) for word in words for i, t in word}
    assert named == {
        *((i, False) for i in range(len(group.algebra))),
        *((h, True) for h in range(len(group.generators))),
    }
    for word in words:
        product = group.identity
        for i, t in word:
            product = product * (group.generators[i] if t is None else group.exp(i, t))
        for part, unit in zip(product.parts, group.identity.parts, strict=True):
            np.testing.assert_allclose(part, unit, atol=1e-12)
    shifts = [abs(t) for word in words for i, t in word if t is not None and not group.turns(i)]
    assert not shifts or max(shifts) == pytest.approx(1.8 * 2.5)


# --- compositions


def _turn(amount: float) -> np.ndarray:
    return np.array([[math.cos(amount), -math.sin(amount)], [math.sin(amount), math.cos(amount)]])


def test_a_product_applies_its_last_factor_first() -> None:
    turn, flip = LieEntry(planes=((0, 1, 1.0),)), parse_entry([1, -1], "")
    move = LieEntry(shift=np.array([1.0, 0.0]))
    steps = [compositions.Step(turn, 0.5), compositions.Step(flip, None), compositions.Step(move, 2.0)]
    value = np.array([0.3, 0.7])
    expected = _turn(0.5) @ (np.diag([1, -1]) @ (value + np.array([2.0, 0.0])))
    whole = compositions.compose(steps, spaces.Box(-9, 9, (2,)), None)
    assert isinstance(whole, AffineEntry)
    np.testing.assert_allclose(whole.apply(value), expected, atol=1e-14)
    unsized = compositions.compose(steps, None, None)
    np.testing.assert_allclose(fit(unsized, None, "").image(value), expected, atol=1e-14)
    called = [*steps, compositions.Step(FunctionEntry(lambda v: 2 * v), None)]
    function = compositions.compose(called, spaces.Box(-9, 9, (2,)), None)
    assert isinstance(function, FunctionEntry)
    np.testing.assert_allclose(
        function.function(value), _turn(0.5) @ (np.diag([1, -1]) @ (2 * value + np.array([2.0, 0.0]))), atol=1e-14
    )
    assert isinstance(compositions.compose([compositions.Step(IdentityEntry(), None)], None, None), IdentityEntry)
    alone = compositions.compose([compositions.Step(IdentityEntry(), 0.3), compositions.Step(flip, None)], None, None)
    assert alone is flip


@pytest.mark.parametrize("start", [0, 5])
def test_products_of_discrete_generators_permute_values_turn_images_and_stay_exact(start: int) -> None:
    cycle, swap = (
        compositions.Step(parse_entry([1, 2, 0], ""), None),
        compositions.Step(parse_entry([1, 0, 2], ""), None),
    )
    space = spaces.Discrete(3, start=start)
    whole = fit(compositions.compose([cycle, swap, cycle], space, None), space, "action")
    # The last acts first: 0 -> 1 -> 0 -> 1, 1 -> 2 -> 2 -> 0, 2 -> 0 -> 1 -> 2.
    assert [int(whole.image(k + start)) - start for k in range(3)] == [1, 0, 2]
    signed = compositions.compose(
        [compositions.Step(parse_entry(["-2", "+3", "+1"], ""), None), swap], spaces.Box(-9, 9, (3,)), None
    )
    assert isinstance(signed, AffineEntry)
    assert signed.is_signed_permutation
    value = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(signed.apply(value), parse_entry(["-2", "+3", "+1"], "").apply(value[[1, 0, 2]]))
    flipped = parse_entry({"signs": [-1, 1, 1], "offset": [1, 0, 0]}, "")
    bits = compositions.compose([cycle, compositions.Step(flipped, None)], spaces.MultiBinary(3), None)
    assert isinstance(bits, AffineEntry)
    np.testing.assert_array_equal(bits.apply(np.array([1, 1, 0], np.int8)), [0, 0, 1])
    image = np.arange(9.0).reshape(3, 3)
    quarter, mirror = (compositions.Step(SpatialEntry(name), None) for name in ("rot90", "flip_ud"))
    turned = fit(compositions.compose([quarter, mirror], spaces.Box(0, 9, (3, 3)), None), None, "observation")
    np.testing.assert_array_equal(turned.image(image), np.rot90(image[::-1]))
    np.testing.assert_array_equal(turned.batch(np.stack([image] * 2)), [np.rot90(image[::-1])] * 2)


def test_an_action_sees_the_observation_as_its_factor_does() -> None:
    def push(action: np.ndarray, obs: np.ndarray, t: float) -> np.ndarray:
        return action + t * obs

    obs_steps = [compositions.Step(LieEntry(planes=((0, 1, 1.0),)), t) for t in (0.4, 0.9)]
    steps = [compositions.Step(LieFunctionEntry(push), t) for t in (0.4, 0.9)]
    function = compositions.compose(steps, BOX, obs_steps)
    assert isinstance(function, FunctionEntry)
    action, obs = np.array([1.0, 2.0]), np.array([3.0, -1.0])
    expected = action + 0.9 * obs + 0.4 * (_turn(0.9) @ obs)
    np.testing.assert_allclose(function.function(action, obs), expected, atol=1e-14)
    with pytest.raises(ValueError, match="zip"):
        compositions.compose(steps, BOX, obs_steps[:1]).function(action, obs)  # type: ignore[union-attr]


def test_trees_are_composed_key_by_key_and_other_keys_stay() -> None:
    turn, flip = LieEntry(planes=((0, 1, 1.0),)), parse_entry([1, -1], "")
    space = spaces.Dict({"a": BOX, "b": BOX, "c": BOX})
    steps = [compositions.Step(TreeEntry({"a": turn}), 0.7), compositions.Step(TreeEntry({"a": flip, "b": flip}), None)]
    whole = compositions.compose(steps, space, None)
    assert isinstance(whole, TreeEntry)
    value = {key: np.array([0.1, 0.2]) for key in "abc"}
    image = fit(whole, space, "").image(value)
    np.testing.assert_allclose(image["a"], _turn(0.7) @ [0.1, -0.2])
    np.testing.assert_allclose(image["b"], [0.1, -0.2])
    np.testing.assert_allclose(image["c"], [0.1, 0.2])
    pair = spaces.Tuple([BOX, BOX])
    whole = compositions.compose([compositions.Step(TreeEntry({"1": turn}), 0.7)], pair, None)
    image = fit(whole, pair, "").image((np.array([1.0, 0.0]), np.array([1.0, 0.0])))
    np.testing.assert_allclose(image, [[1, 0], [math.cos(0.7), math.sin(0.7)]])


def test_a_callable_beside_every_form_of_data_composes() -> None:
    double = compositions.Step(FunctionEntry(lambda v: v), None)
    value = np.array([[1.0, 2.0], [3.0, 4.0]])
    for entry, amount, expected in (
        (IdentityEntry(), None, value),
        (SpatialEntry("rot90"), None, np.rot90(value)),
        (parse_entry([1, 0, 3, 2], ""), None, [[2, 1], [4, 3]]),
        (LieEntry(planes=((0, 3, 1.0),)), math.pi / 2, [[-4, 2], [3, 1]]),
    ):
        whole = compositions.compose([compositions.Step(entry, amount), double], None, None)
        assert isinstance(whole, FunctionEntry)
        np.testing.assert_allclose(whole.function(value), expected, atol=1e-14)
    values = compositions.Step(parse_entry([2, 0, 1], ""), None)
    assert [values.call(np.int64(k)) for k in range(3)] == [2, 0, 1]
    tree = compositions.Step(TreeEntry({"a": parse_entry([-1], ""), 1: parse_entry([-1], "")}), None)
    assert tree.call({"a": np.array([2.0]), "b": 5}) == {"a": np.array([-2.0]), "b": 5}
    assert tree.call((3, np.array([2.0]))) == (3, np.array([-2.0]))
    assert compositions.calls(TreeEntry({"a": IdentityEntry(), "b": FunctionEntry(len)}))
    assert not compositions.calls(TreeEntry({"a": IdentityEntry()}))
    with pytest.raises(SpecError, match="expected an entry, got int"):
        compositions.Step(3, None).call(1)


def test_amounts_are_spreads_over_coefficients_and_one_where_nothing_varies() -> None:
    group = groups.translations(1)
    shift = Symmetry(
        "s", group, [{"shift": [2, 0, -0.5]}], ["identity"], state=[{"shift": [1]}], initial=False
    )  # component 1 is not shifted
    rng = np.random.default_rng(0)
    observed = [np.array([3 * x, 100 * x, 5.0]) for x in rng.normal(size=50)]
    spread = np.std([o[0] for o in observed])
    amount = compositions.amounts(shift, compositions.Seen(observed, ()))
    assert amount(0) == pytest.approx((spread / 2 + 1 / 0.5) / 2)
    states = [np.array([7.0 * x]) for x in range(3)]
    assert compositions.amounts(shift, compositions.Seen((), states))(0) == pytest.approx(np.std(states))
    assert compositions.amounts(shift, compositions.Seen((), ()))(0) == 1.0
    assert compositions.amounts(shift, compositions.Seen([np.zeros(4)], ()))(0) == 1.0  # of another size


# --- spaces of Lie generators


@pytest.mark.parametrize(
    ("entry", "space", "message"),
    [
        ({"rotate": [[0, 2]]}, BOX, "acts on 3 components, but the space has 2"),
        ({"algebra": np.zeros((3, 3)).tolist(), "shift": [1, 0, 0]}, BOX, "acts on 3 components"),
        ({"rotate": [[0, 1]]}, spaces.Box(0, 9, (2,), np.int64), "whole numbers"),
        ({"rotate": [[0, 1]]}, spaces.Box(0, 255, (2, 2), np.uint8), "an image"),
        ({"rotate": [[0, 1]]}, spaces.Box(0, 1, (2, 2, 2), np.float32), "an image"),
        ({"rotate": [[0, 1]]}, spaces.Discrete(2), "vectors of real numbers, got Discrete"),
        ({"rotate": [[0, 1]]}, spaces.Dict({"a": BOX}), "vectors of real numbers, got Dict"),
        (lambda v, t: v, spaces.MultiBinary(2), "vectors of real numbers"),
        ({"a": {"rotate": [[0, 2]]}}, spaces.Dict({"a": BOX}), r"\['a'\]: the entry acts on 3"),
        ({"1": {"rotate": [[0, 2]]}}, spaces.Tuple([BOX, BOX]), r"\['1'\]: the entry acts on 3"),
    ],
)
def test_a_lie_generator_that_does_not_fit_is_refused(entry: Any, space: Any, message: str) -> None:
    parsed = parse_lie_entry(entry, "")
    with pytest.raises(SpecError, match=message):
        lie_spaces._check(parsed, space, "observation[0]", of_actions=False)


@pytest.mark.parametrize(
    ("entry", "space"),
    [
        ({"rotate": [[0, 1]]}, BOX),
        ({"rotate": [[0, 1]]}, spaces.Box(-1, 1, (2, 2), np.float64)),
        ("identity", spaces.Discrete(2)),
        ({"algebra": [[0.0]]}, spaces.Discrete(2)),
        ({"shift": [0, 0]}, spaces.Box(0, 9, (2,), np.int64)),
        ({"shift": [1, 0]}, spaces.Box(np.array([-np.inf, -1], np.float32), np.array([np.inf, 1], np.float32))),
        (lambda v, t: v, spaces.Dict({"a": BOX})),
    ],
)
def test_a_lie_generator_that_fits_is_taken(entry: Any, space: Any) -> None:
    lie_spaces._check(parse_lie_entry(entry, ""), space, "action[0]", of_actions=True)


@pytest.mark.parametrize(("low", "high"), [(-1, 1), (-1, np.inf), (-np.inf, 1)])
def test_bounded_actions_are_not_shifted_and_observations_may_be(low: float, high: float) -> None:
    space = spaces.Box(np.array([-np.inf, low], np.float32), np.array([np.inf, high], np.float32))
    entry = parse_lie_entry({"shift": [1, 2]}, "")
    with pytest.raises(SpecError, match="shifts component 1 of a bounded space"):
        lie_spaces._check(entry, space, "action[0]", of_actions=True)
    lie_spaces._check(entry, space, "observation[0]", of_actions=False)
    assert lie_spaces.size_of(spaces.Box(0, 1, (2, 3))) == 6
    assert lie_spaces.size_of(spaces.Discrete(3)) is None
    assert lie_spaces.size_of(None) is None


# --- claims of continuous groups


def test_entries_of_all_generators_have_one_size() -> None:
    turn, wide = LieEntry(planes=((0, 2, 1.0),)), parse_entry([1, -1, 1, 1], "")
    assert lie_claims.common_size([turn], [IdentityEntry()], "action") == 3
    assert lie_claims.common_size([turn], [wide], "action") == 4
    assert lie_claims.common_size([IdentityEntry()], [IdentityEntry()], "action") == 1
    with pytest.raises(SpecError, match="rotates component 2, but other entries act on 2 components"):
        lie_claims.common_size([turn], [parse_entry([1, -1], "")], "action")
    with pytest.raises(SpecError, match=r"sizes \[2, 4\]"):
        lie_claims.common_size([LieEntry(shift=np.ones(2))], [wide], "action")
    algebra, matrices = lie_claims.homogeneous([turn, IdentityEntry()], [wide, IdentityEntry()], 4)
    assert [m.shape for m in (*algebra, *matrices)] == [(5, 5)] * 4
    assert not algebra[1].any()
    np.testing.assert_array_equal(matrices[1], np.eye(5))
    np.testing.assert_array_equal(matrices[0], np.diag([1, -1, 1, 1, 1]))


def test_only_translations_that_shift_something_forbid_an_invariant_start() -> None:
    group = groups.se(2)
    still = [{"shift": [0, 0]}, "identity", {"rotate": [[0, 1]]}]
    moving = [{"shift": [1, 0]}, {"shift": [0, 1]}, {"rotate": [[0, 1]]}]
    Symmetry("still", group, still, still)
    Symmetry("actions", group, still, moving)
    Symmetry("declined", group, moving, still, initial=False)
    for observation, state in ((moving, None), (still, moving)):
        part = "observation" if state is None else "state"
        with pytest.raises(SpecError, match=rf"Symmetry\.{part}: no start distribution is invariant under shifts"):
            Symmetry("claimed", group, observation, still, state=state)


def test_linear_data_of_a_continuous_group_is_a_representation_for_layers() -> None:
    turn = Symmetry("turn", groups.o(2), [{"rotate": [[0, 1]]}, [1, -1, 1]], ["identity", "identity"])
    rho = turn.observation_representation
    assert rho.dim == 3
    np.testing.assert_array_equal(rho.algebra[0], [[0, -1, 0], [1, 0, 0], [0, 0, 0]])  # type: ignore[attr-defined]
    np.testing.assert_array_equal(rho.matrices[0], np.diag([1, -1, 1]))  # type: ignore[attr-defined]
    with pytest.raises(SpecError, match="expected action entries that are linear data"):
        _ = turn.action_representation
    shifted = Symmetry("s", groups.translations(1), [{"shift": [1]}], ["identity"], initial=False)
    with pytest.raises(SpecError, match="the observation entries shift"):
        _ = shifted.observation_representation
    named = Symmetry("n", groups.so(2), {"representation": "vector + scalar"}, reps.vector(groups.so(2)))
    assert (named.observation_representation.dim, named.action_representation.dim) == (3, 2)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ([{"rotate": [[0, 1]]}], r"expected 2 entries for O\(2\), Lie generators first \(turn, reflection\); got 1"),
        ("vector", "got str 'vector'"),
        ({"blocks": []}, "named blocks need a finite group"),
        ([{"a": {"rotate": [[0, 1]]}}, [1, -1]], "expected every generator's entry to be a mapping"),
        ([{"rotate": [[0, 1]]}, "flip_lr"], "spatial operators act on images"),
    ],
)
def test_a_part_of_a_continuous_claim_is_refused_with_what_was_expected(written: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Symmetry("c", groups.o(2), written, ["identity", "identity"])


@pytest.mark.parametrize(("off", "refused"), [(1e-9, False), (1e-8, True)])
def test_data_of_a_continuous_group_may_be_off_by_a_billionth(off: float, refused: bool) -> None:
    written = [{"algebra": [[0, -1], [1 + off, 0]]}]
    if refused:
        with pytest.raises(RepresentationError):
            Symmetry("c", groups.so(2), written, ["identity"])
    else:
        Symmetry("c", groups.so(2), written, ["identity"])


# --- tested elements


def _bound_turn(group: Any = None, **given: Any) -> BoundTested:
    symmetry = Symmetry("turn", group or groups.o(2), [{"rotate": [[0, 1]]}, [1, -1]], [{"rotate": [[0, 1]]}, [1, -1]])
    bound = symmetry.bind(BOX, BOX)
    assert isinstance(bound, BoundTested)
    return bound


def test_letters_are_elements_relations_and_haar_elements() -> None:
    bound = _bound_turn()
    value = np.array([0.3, 0.4])
    assert bound.tested_words == ((0,), (1,))
    assert bound.compared_words == (UNIFORM, (1,))
    assert [bound.may_leave(word) for word in ((0,), (1,), UNIFORM, (0, 1), ())] == [True, False, True, True, False]
    (angle,) = bound.letter(0).parameters
    np.testing.assert_allclose(bound.observation((0,), value), _turn(angle) @ value, atol=1e-12)
    np.testing.assert_allclose(bound.observation((0, 1), value), _turn(angle) @ [0.3, -0.4], atol=1e-12)
    word = bound.spell([(0, 0.25), (0, None)])
    np.testing.assert_allclose(bound.observation(word, value), _turn(0.25) @ [0.3, -0.4], atol=1e-12)
    assert bound.spell([]) == ()
    before = len(bound._more)
    bound.forget()
    assert len(bound._more) == before - 1
    for word in bound.group.relators:
        np.testing.assert_allclose(bound.observation(word, value), value, atol=1e-12)
    first, second = bound.drawn(UNIFORM), bound.drawn(UNIFORM)
    assert (first, second) == ((-2,), (-3,))
    assert bound.drawn((0,)) == (0,)
    assert not np.allclose(bound.observation(first, value), bound.observation(second, value))
    np.testing.assert_allclose(bound.observation(first, value), bound.observation(first, value))
    images = bound.observation_batch(UNIFORM, np.stack([value] * 3))
    np.testing.assert_allclose(np.linalg.norm(images, axis=1), 0.5)
    assert len({tuple(image) for image in images}) == 3
    assert bound.label(UNIFORM) == "a uniformly drawn rotation"
    assert bound.label(()) == "identity"
    assert str(bound.label((0, 1))) == f"turn({angle:.6g}) reflection"
    assert bound.label((0, 1)).parameters == (angle,)  # type: ignore[attr-defined]
    assert bound.label((0, 1)).word == "turn reflection"  # type: ignore[attr-defined]


def test_elements_follow_the_seed() -> None:
    bound = _bound_turn()
    again, other = (bound.at_tested_elements(seed, lambda: compositions.Seen((), ())) for seed in (0, 1))
    assert again.letter(0) == bound.letter(0)
    assert other.letter(0) != bound.letter(0)
    assert other.source is bound.source
    claim = concrete_claim(bound.source, 1)
    np.testing.assert_allclose(claim.observation[0].sized(2).dense(), _turn(other.letter(0).parameters[0]))  # type: ignore[union-attr]
    pinned = bound.source.pinned("turn", [0.5])
    assert concrete_claim(pinned, 3).group.generator_names == ("turn(0.5)",)
    assert pinned.bind(BOX, BOX).tested_words == ((0,),)
    finite = Symmetry("m", C2, [[-1, -1]], [[-1, -1]])
    assert finite.pinned("g", []) is finite
    for make in (lambda: concrete_claim(finite, 0), lambda: BoundTested(finite, BOX, BOX)):
        with pytest.raises(SpecError, match="expected a continuous group, got C2"):
            make()


def test_words_are_pooled_and_grouped_in_order() -> None:
    assert pooled((-7,)) == UNIFORM
    assert pooled((0,)) == (0,)
    assert pooled((-1, 0)) == (-1, 0)
    grouped = group_by_word([(1,), (0,), (1,), (2, 0), (0,)])
    assert list(grouped) == [(1,), (0,), (2, 0)]
    assert [rows.tolist() for rows in grouped.values()] == [[0, 2], [1, 4], [3]]
    assert {w: r.tolist() for w, r in group_by_word([(3,)] * 4).items()} == {(3,): [0, 1, 2, 3]}
    assert group_by_word([]) == {}


# --- finite claims


@pytest.mark.parametrize("word", [(), (0,), (1,), (0, 1), (1, 0), (0, 0, 1)])
def test_words_of_a_group_that_is_not_abelian_apply_their_last_letter_first(word: tuple[int, ...]) -> None:
    rho = reps.natural(S3)
    symmetry = Symmetry("s", S3, rho, rho, state=rho)
    box = spaces.Box(-1, 1, (3,))
    bound = symmetry.bind(box, box)
    matrix = np.eye(3)
    for letter in word:
        matrix = matrix @ rho.matrix(S3.generators[letter])
    values = np.random.default_rng(0).uniform(-1, 1, size=(4, 3))
    for apply, batch in (
        (bound.observation, bound.observation_batch),
        (bound.state, bound.state_batch),
        (lambda w, a: bound.action(w, a, None), lambda w, a: bound.action_batch(w, a, None)),
    ):
        np.testing.assert_allclose(batch(word, values), values @ matrix.T)
        np.testing.assert_allclose(apply(word, values[0]), matrix @ values[0])
    assert bound.label(word) == (" ".join(S3.generator_names[i] for i in word) or "identity")


def test_one_generator_has_the_name_of_the_symmetry_and_powers() -> None:
    bound = Symmetry("turn", C4, [["-2", "+1"]], ["identity"]).bind(BOX, spaces.Discrete(2))
    assert [bound.label((0,) * k) for k in range(4)] == ["identity", "turn", "turn^2", "turn^3"]
    assert bound.note is None
    assert not bound.may_leave((0,))
    assert bound.drawn((0,)) == (0,)
    assert bound.tested_words == bound.compared_words == ((0,),)
    with pytest.raises(SpecError, match="no map of the internal state"):
        bound.state((0,), np.zeros(2))


@pytest.mark.parametrize(
    ("written", "exact"),
    [
        ("identity", True),
        ([-1, 1], True),
        ({"matrix": [[0.6, 0.8], [0.8, -0.6]]}, False),
        ({"signs": [-1, 1], "offset": [1, 0]}, False),
        (lambda v: -v, True),
        (lambda v: v[::-1], True),
        (lambda v: 1 - v, False),
        (lambda v: 0.5 * v, False),
        (lambda v: np.array([v[0], v[0]]), True),
        (lambda v: v * v, False),
        (lambda v: np.array([v[0] + v[1], v[1]]), False),
    ],
)
def test_images_are_exact_where_every_component_goes_to_one_with_a_sign(written: Any, exact: bool) -> None:
    bound = Symmetry("m", C2, [written], ["identity"]).bind(spaces.Box(-9, 9, (2,), np.float64), spaces.Discrete(2))
    assert images_are_exact(bound, (0,), lambda: np.array([0.3, 0.7])) == exact
    dense = {"matrix": [[0.6, 0.8], [0.8, -0.6]]}
    stated = Symmetry("m", C2, [[-1, 1]], ["identity"], state=[dense]).bind(BOX, spaces.Discrete(2))
    assert not images_are_exact(stated, (0,), lambda: np.zeros(2))


@pytest.mark.parametrize("operator", ["rot90", "flip_ud", "flip_lr", "transpose", "identity"])
def test_corners_move_as_pixels_do(operator: str) -> None:
    entry = parse_entry(operator, "")
    images = corner_images(entry)
    corners = np.zeros((2, 2, 4))
    corners.reshape(4, 4)[:] = np.eye(4)
    moves = {
        "rot90": np.rot90, "flip_ud": np.flipud, "flip_lr": np.fliplr,
        "transpose": lambda f: f.swapaxes(0, 1), "identity": lambda f: f,
    }  # fmt: skip
    moved = moves[operator](corners).reshape(4, 4)
    assert [int(np.flatnonzero(moved[:, k])[0]) + 1 for k in range(4)] == images
    with pytest.raises(SpecError, match="expected a spatial operator"):
        corner_images(parse_entry([1, -1], ""))
    assert signed_images(parse_entry(["-2", "+1"], "")) == [-2, 1]
    with pytest.raises(SpecError, match="dense matrix"):
        signed_images(parse_entry({"matrix": [[0.6, 0.8], [0.8, -0.6]]}, ""))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([{}], "for each of 2 generators"),
        ("ab", "for each of 2 generators"),
        ([{"a": "b"}, {}], r"agents\[0\]: expected a permutation"),
        ([{}, {"a": "b", "b": "b"}], r"agents\[1\]: expected a permutation"),
        ([{}, 3], "for each of 2 generators"),
    ],
)
def test_agents_are_one_permutation_for_each_generator(given: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read_agents(given, 2)
    assert read_agents([{}, {"a": "b", "b": "a"}], 2) == ({}, {"a": "b", "b": "a"})


# --- spaces


@pytest.mark.parametrize(
    ("entry", "space", "message"),
    [
        ([1, 0], spaces.Discrete(3), "acts on 2 values, but the space has 3"),
        ([-1], spaces.Discrete(2), "acts on 1 value, but the space has 2"),
        ([-1, 1], spaces.Discrete(2), "must permute the 2 values"),
        ([1, -1, 1], BOX, "acts on 3 components, but the space has 2"),
        ([1, -1], spaces.Box(0, 9, (2,), np.uint8), "negates components"),
        ([1, -1], spaces.MultiBinary(2), "negates components"),
        ([1, 0], spaces.MultiDiscrete([2, 3]), r"takes \[1, 2\] to \[2.*, 1.*\], which is not in"),
        ({"signs": [-1, -1], "offset": [1, 1]}, spaces.MultiDiscrete([2, 3]), "which is not in"),
        ([1, 0], spaces.Dict({"a": BOX, "b": BOX}), r"cannot act on Dict .*\{ a = \.\.\., b = \.\.\. \}"),
        ("rot90", spaces.Box(0, 1, (2, 3)), "needs square images, but the space has 2x3"),
        ("transpose", spaces.Box(0, 1, (4, 2, 3)), "needs square images, but the space has 2x3"),
        (
            {"spatial": "rot90", "axes": [0, 1]},
            spaces.Box(0, 1, (2, 3, 3)),
            "needs square images, but the space has 2x3",
        ),
        ("flip_lr", spaces.Box(0, 1, (3,)), "last two axes of an image"),
        ("flip_lr", spaces.Discrete(3), "last two axes of an image"),
        ({"spatial": "flip_lr", "axes": [0, 1]}, spaces.Box(0, 1, (3, 3)), "images with channels"),
        ("flip_lr", spaces.Box(0, 1, (5, 5, 4)), "looks like channels"),
        ({"a": [1, 0]}, BOX, "needs a Dict or Tuple space"),
        ({"c": [1, 0]}, spaces.Dict({"a": BOX}), r"names sub-spaces \['c'\]"),
        ({"2": [1, 0]}, spaces.Tuple([BOX, BOX]), r"names sub-spaces \[2\]"),
    ],
)
def test_an_entry_that_does_not_fit_names_both(entry: Any, space: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        fit(parse_entry(entry, ""), space, "there")


@pytest.mark.parametrize(
    ("entry", "space"),
    [
        ("flip_lr", spaces.Box(0, 1, (5, 5, 5))),
        ("flip_lr", spaces.Box(0, 1, (4, 5, 4))),
        ("flip_ud", spaces.Box(0, 1, (2, 3))),
        ("flip_lr", spaces.MultiBinary((2, 3))),
        ([1, 0], spaces.MultiDiscrete([3, 3])),
        ({"signs": [-1, -1], "offset": [1, 2]}, spaces.MultiDiscrete([2, 3])),
        ({"signs": [-1, -1], "offset": [1, 1]}, spaces.MultiBinary(2)),
        ({"signs": [-1, -1], "offset": [7, 8]}, spaces.MultiDiscrete([2, 3], start=[3, 3])),
        ([-1, -1], spaces.Box(-9, 9, (2,), np.int8)),
    ],
)
def test_an_entry_that_fits_maps_batches_as_it_maps_values(entry: Any, space: Any) -> None:
    fitted = fit(parse_entry(entry, ""), space, "there")
    space.seed(0)
    values = np.stack([space.sample() for _ in range(5)])
    images = fitted.batch(values)
    assert images.shape == values.shape
    for value, image in zip(values, images, strict=True):
        np.testing.assert_array_equal(fitted.image(value), image)
        assert space.contains(image.astype(space.dtype))
    assert len(fitted.batch(values[:0])) == 0


def test_a_discrete_space_that_starts_elsewhere_is_permuted_there() -> None:
    fitted = fit(parse_entry([2, 0, 1], ""), spaces.Discrete(3, start=-1), "action[0]")
    assert [int(fitted.image(k)) for k in (-1, 0, 1)] == [1, -1, 0]
    assert fitted.batch(np.array([1, -1])).tolist() == [0, 1]


def test_states_have_the_size_of_their_entry() -> None:
    fitted = fit(parse_entry([1, -1], ""), None, "state[0]")
    with pytest.raises(SpecError, match=r"state\[0\]: expected a vector of 2 components, got shape \(3,\)"):
        fitted.image(np.zeros(3))
    with pytest.raises(SpecError, match="expected a vector of 2 components"):
        fitted.batch(np.zeros((4, 3)))
    lie = compositions.compose([compositions.Step(LieEntry(planes=((0, 2, 1.0),)), 0.5)], None, None)
    maps = fit(lie, None, "state, turn")
    assert maps.image(np.ones(3)).shape == (3,)
    assert maps.batch(np.ones((2, 5))).shape == (2, 5)
    assert maps.batch(np.ones((0, 5))).shape == (0, 5)
    with pytest.raises(SpecError, match="expected a vector of 3 components, got 2"):
        maps.image(np.ones(2))
    fixed = compositions.compose([compositions.Step(LieEntry(shift=np.ones(2)), 0.5)], None, None)
    with pytest.raises(SpecError, match="expected a vector of 2 components, got 3"):
        fit(fixed, None, "state").image(np.ones(3))


# --- texts and files


@pytest.mark.parametrize(
    ("entry", "symbol", "told"),
    [
        ([1, 2, 0], "a", "0 -> 1 -> 2 -> 0"),
        ([1, 0, 3, 2], "a", "0 <-> 1, 2 <-> 3"),
        ([0, 2, 1], "a", "1 <-> 2"),
        ([0, 1], "a", "unchanged"),
        ({"matrix": [[0.5, -2], [0, 0]], "offset": [0, 3]}, "s", "(s0, s1) -> (0.5 s0 - 2 s1, 3)"),
        ({"matrix": [[-1, 1], [0, 0]], "offset": [-1.5, 0]}, "o", "(o0, o1) -> (-o0 + o1 - 1.5, 0)"),
        ([-1] * 12, "o", None),
        ([-1] * 13, "o", "moves 0 and negates 13 of 13 components"),
        ([1, 0, *range(2, 13)], "o", "moves 2 and negates 0 of 13 components"),
        ({"matrix": (np.eye(13) * 2).tolist()}, "o", "a dense 13x13 matrix"),
        ("rot90", "o", "rot90 of the last two axes"),
        ({"spatial": "rot90", "axes": [0, 1]}, "o", "rot90 of the two axes before the last"),
        ({"x": [-1], "y": "identity"}, "o", "x: (o0) -> (-o0); y: unchanged"),
    ],
)
def test_an_entry_reads_as_a_formula(entry: Any, symbol: str, told: str | None) -> None:
    text = describe(parse_entry(entry, ""), symbol)
    assert text == (told or f"({', '.join(f'o{i}' for i in range(12))}) -> ({', '.join(f'-o{i}' for i in range(12))})")


def test_named_components_are_listed_where_they_move() -> None:
    names = [f"n{i}" for i in range(14)]
    few, many = {"n0": "-n1", "n1": "n0"}, {name: f"-{name}" for name in names}
    for written, told in ((few, "n0 -> -n1, n1 -> n0"), (many, "moves 0 and negates 14 of 14 components")):
        group, entries = (C4, few) if written is few else (C2, many)
        symmetry = Symmetry("m", group, [Block("b", [entries], names=names)], ["identity"])
        bound = symmetry.bind(spaces.Box(-1, 1, (14,)), spaces.Discrete(2))
        assert bound.claim["observation"] == [f"m: b: {told}"]
        assert bound.claim["action"] == ["m: unchanged"]
        assert "state" not in bound.claim
        assert bound.column_labels("observation") == {None: tuple(f"b {name}" for name in names)}
        assert bound.column_labels("action") == {}


@pytest.mark.parametrize(
    ("text", "order"),
    [("C2 x D4", 16), ("C2 × C3", 6), ("product(C2, C3 x C2)", None), ("cyclic(5)", 5), ("C2 x C2 x C2", 8)],
)
def test_groups_are_read_by_name(text: str, order: int | None) -> None:
    if order is None:
        with pytest.raises(SpecError):
            parse_group(text, "group")
    else:
        assert parse_group(text, "group").order == order


def test_fields_that_are_missing_or_unknown_are_all_named() -> None:
    with pytest.raises(SpecError, match=r"is missing group, action; has unknown fields actions, tribe"):
        symmetry_from_mapping({"name": "m", "observation": [], "actions": [], "tribe": ""}, "file")
    data = {"name": "m", "group": "C2", "observation": [[-1]], "action": [[1, 0]]}
    assert symmetry_from_mapping(data, "file").initial
    assert not symmetry_from_mapping({**data, "initial": False}, "file").initial
    assert symmetry_from_mapping(data, "file").state is None
    assert symmetry_from_mapping({**data, "state": [[-1, 1]]}, "file").state is not None
    for wrong in (1, "true", None):
        with pytest.raises(SpecError, match="expected initial = true or false"):
            symmetry_from_mapping({**data, "initial": wrong}, "file")
