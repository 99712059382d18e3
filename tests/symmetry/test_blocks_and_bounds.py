"""Blocks, bounds of actions, points that leave and corrected claims: limits from both sides, columns one by one."""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from symcheck import groups
from symcheck.entries.forms import AffineEntry, FunctionEntry, parse_entry
from symcheck.errors import SpecError
from symcheck.spaces.coordinates import SpaceCodec
from symcheck.symmetry import action_bounds, exits
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
from symcheck.symmetry.symmetry import Symmetry

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
    with pytest.raises(SpecError, match=r"several components have the same image: b, d"):
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
    with pytest.raises(SpecError, match=r"one entry for each generator \(2 in all\), got 1"):
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
        with pytest.raises(SpecError, match=r"here: the action map leaves the action space: the image of a = .* is "):
            action_bounds.refuse_exits(space, coordinates, [np.zeros(2)], flat, flat, "here")
    else:
        action_bounds.refuse_exits(space, coordinates, [np.zeros(2)], flat, flat)
    bounds = exits.stay_inside(coordinates, np.zeros((1, 2)), flat)
    assert bounds.tolist() == [not refused]


def test_the_first_action_that_leaves_is_named() -> None:
    flat = np.array([[0.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
    coordinates = SpaceCodec(BOX, "action").coordinates
    with pytest.raises(SpecError, match=r"a = \[0\.5, 0\.5\] is \[2\.0, 0\.0\]"):
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
