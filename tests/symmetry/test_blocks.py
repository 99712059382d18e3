"""Vectors written as named blocks: what they do, what their columns are called, and what is refused."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from symcheck.errors import RepresentationError, SpecError
from symcheck.groups import catalog
from symcheck.symmetry.blocks import Block, labels_of
from symcheck.symmetry.spec import symmetry_from_mapping, symmetry_from_toml
from symcheck.symmetry.symmetry import Symmetry

LEGS = ["FL_hip", "FL_knee", "FR_hip", "FR_knee"]
SWAP = {"FL_hip": "-FR_hip", "FR_hip": "-FL_hip", "FL_knee": "FR_knee", "FR_knee": "FL_knee"}
# A walking robot's observation as simulators of 4,096 robots hand it over: 235 numbers.
ROBOT = """
name = "left and right"
group = "C2"

[[observation.blocks]]
name = "linear velocity"
size = 3
map = [[1, -1, 1]]

[[observation.blocks]]
name = "angular velocity"
size = 3
map = [[-1, 1, -1]]

[[observation.blocks]]
name = "joint positions"
names = ["FL_hip", "FL_knee", "FR_hip", "FR_knee"]
history = 10
map = [{ FL_hip = "-FR_hip", FR_hip = "-FL_hip", FL_knee = "FR_knee", FR_knee = "FL_knee" }]

[[observation.blocks]]
name = "phase"
size = 2
map = [[{ signs = [-1, 1], offset = [1, 0] }]]

[[observation.blocks]]
name = "heights"
shape = [17, 11]
map = ["flip_lr"]

[[action.blocks]]
name = "targets"
names = ["FL_hip", "FL_knee", "FR_hip", "FR_knee"]
map = [{ FL_hip = "-FR_hip", FR_hip = "-FL_hip", FL_knee = "FR_knee", FR_knee = "FL_knee" }]
""".replace("[[{ signs", "[{ signs").replace("[1, 0] }]]", "[1, 0] }]")


def mirror(**changes):
    table = {"name": "legs", "names": LEGS, "map": [SWAP], **changes}
    return Symmetry("m", catalog.cyclic(2), observation={"blocks": [table]}, action=[[1, 0]])


def test_a_robots_235_numbers_are_written_as_their_parts(tmp_path):
    (tmp_path / "robot.toml").write_text(ROBOT)
    symmetry = symmetry_from_toml(tmp_path / "robot.toml")
    box, act = spaces.Box(-np.inf, np.inf, (235,)), spaces.Box(-1, 1, (4,))
    bound = symmetry.bind(box, act)
    obs = np.arange(235.0)
    image = bound.observation((0,), obs)
    assert image[:6].tolist() == [0, -1, 2, -3, 4, -5]
    assert image[6:10].tolist() == [-8, 9, -6, 7]
    assert image[42:46].tolist() == [-44, 45, -42, 43]
    assert image[46:48].tolist() == [-45, 47]
    assert np.array_equal(image[48:].reshape(17, 11), obs[48:].reshape(17, 11)[:, ::-1])
    assert bound.action((0,), np.array([1.0, 2.0, 3.0, 4.0]), None).tolist() == [-3, 4, -1, 2]
    labels = bound.column_labels("observation")[None]
    assert labels[7] == "joint positions FL_knee, frame 0"
    assert labels[48] == "heights[0,0]"
    assert "linear velocity: (o0, o1, o2) -> (o0, -o1, o2)" in bound.claim["observation"][0]
    assert "FL_hip -> -FR_hip" in bound.claim["action"][0]


def test_histories_are_laid_out_frame_by_frame_or_number_by_number():
    frames, components = mirror(history=2), mirror(history=2, layout="components")
    value = np.arange(8.0)
    assert frames.observation[0].apply(value).tolist() == [-2, 3, -0.0, 1, -6, 7, -4, 5]
    assert components.observation[0].apply(value).tolist() == [-4, -5, 6, 7, -0.0, -1, 2, 3]
    assert labels_of(components.blocks["observation"][None])[:3] == (
        "legs FL_hip, frame 0",
        "legs FL_hip, frame 1",
        "legs FL_knee, frame 0",
    )


def test_matrices_and_offsets_keep_their_place_in_every_layout():
    turn = np.array([[0.0, -1.0], [0.6, 0.8]])
    involution = np.linalg.inv(turn) @ np.diag([1.0, -1.0]) @ turn
    for layout in ("frames", "components"):
        block = Block("v", [{"matrix": involution, "offset": [0, 0]}], size=2, history=3, layout=layout)
        symmetry = Symmetry("m", catalog.cyclic(2), observation=[block], action=[[1, 0]])
        value = np.random.default_rng(0).standard_normal(6)
        grid = value.reshape(3, 2) if layout == "frames" else value.reshape(2, 3).T
        image = grid @ involution.T
        expected = image.reshape(-1) if layout == "frames" else image.T.reshape(-1)
        # Two products of numbers of order 1.
        assert symmetry.observation[0].apply(value) == pytest.approx(expected, abs=1e-14)


def test_an_image_with_channels_last_is_flipped_in_its_first_two_axes():
    block = Block("image", ["rot90", "flip_lr"], shape=(4, 4, 3))
    symmetry = Symmetry("m", catalog.dihedral(4), [block], [[0], [0]])
    image = np.random.default_rng(0).integers(0, 255, (4, 4, 3)).astype(np.uint8)
    bound = symmetry.bind(spaces.Box(0, 255, (4, 4, 3), np.uint8), spaces.Discrete(1))
    assert np.array_equal(bound.observation((0,), image), np.rot90(image))
    assert np.array_equal(bound.observation((1,), image), image[:, ::-1])


def test_a_block_may_have_a_callable_of_its_own():
    block = Block("angle", [lambda part: np.pi - part], size=1)
    symmetry = Symmetry("m", catalog.cyclic(2), [block, Block("v", [[-1]], size=1)], [[1, 0]])
    bound = symmetry.bind(spaces.Box(-10, 10, (2,)), spaces.Discrete(2))
    assert bound.observation((0,), np.array([1.0, 2.0])) == pytest.approx([np.pi - 1, -2])
    assert not bound.is_data("observation")


@pytest.mark.parametrize("image", [[1.0], [1.0, 2.0, 3.0], None, ["a", "b"]])
def test_what_a_callable_of_a_block_must_return_is_told_with_the_blocks_name(image):
    blocks = [Block("cart", [[-1]], size=1), Block("pole", [lambda part: image], size=2)]
    bound = Symmetry("m", catalog.cyclic(2), blocks, [[1, 0]]).bind(spaces.Box(-1, 1, (3,)), spaces.Discrete(2))
    with pytest.raises(SpecError, match=r"block 'pole': the callable must return 2 numbers, but returned . values"):
        bound.observation((0,), np.ones(3, dtype=np.float32))


def test_callables_of_two_blocks_cannot_make_up_for_each_other():
    blocks = [Block("cart", [lambda part: part[:1]], size=2), Block("pole", [lambda part: np.ones(3)], size=2)]
    bound = Symmetry("m", catalog.cyclic(2), blocks, [[1, 0]]).bind(spaces.Box(-1, 1, (4,)), spaces.Discrete(2))
    with pytest.raises(SpecError, match="block 'cart': the callable must return 2 numbers, but returned 1 values"):
        bound.observation((0,), np.ones(4))


def test_a_callable_of_a_block_gets_the_columns_of_all_frames():
    seen = []
    block = Block("v", [lambda part: seen.append(part.shape) or -part], size=2, history=3)
    bound = Symmetry("m", catalog.cyclic(2), [block], [[1, 0]]).bind(spaces.Box(-1, 1, (6,)), spaces.Discrete(2))
    assert bound.observation((0,), np.ones(6)).tolist() == [-1] * 6
    assert seen == [(6,)]


def test_sub_spaces_of_a_dict_have_blocks_of_their_own():
    observation = {"policy": {"blocks": [{"name": "v", "size": 2, "map": [[1, -1]]}]}}
    symmetry = Symmetry("m", catalog.cyclic(2), observation, [[1, 0]])
    space = spaces.Dict(policy=spaces.Box(-1, 1, (2,)), rest=spaces.Discrete(3))
    bound = symmetry.bind(space, spaces.Discrete(2))
    image = bound.observation((0,), {"policy": np.array([0.5, 0.5]), "rest": 2})
    assert image["policy"].tolist() == [0.5, -0.5]
    assert bound.column_labels("observation") == {"policy": ("v[0]", "v[1]")}
    with pytest.raises(
        SpecError, match=r"observation\['policy'\].blocks: the blocks have 2 columns, but the space has 3"
    ):
        symmetry.bind(spaces.Dict(policy=spaces.Box(-1, 1, (3,))), spaces.Discrete(2))


def test_columns_that_no_block_covers_are_listed():
    env = gym.make("CartPole-v1")
    with pytest.raises(SpecError) as error:
        Symmetry("m", catalog.cyclic(2), [Block("cart", [[-1, -1]], size=2)], [[1, 0]]).bind(
            env.observation_space, env.action_space
        )
    assert "the blocks have 2 columns, but the space has 4: columns 2 to 3 are left over (cart: columns 0 to 1)" in str(
        error.value
    )
    with pytest.raises(SpecError, match="the last block ends 2 columns beyond the vector"):
        Symmetry("m", catalog.cyclic(2), [Block("cart", [[-1] * 6], size=6)], [[1, 0]]).bind(
            env.observation_space, env.action_space
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"map": [[1, -1]]}, "observation block 'legs', map.0.: the map acts on 2 components, but the block has 4"),
        ({"map": [SWAP, SWAP]}, "one entry for each generator .1 in all., got 2"),
        ({"map": [{"FL_hip": "HR_hip"}]}, "uses the name 'HR_hip', which is not in the block. Did you mean 'FR_hip'"),
        ({"map": [{"FL_hip": "FR_hip"}]}, "several components have the same image: FR_hip"),
        ({"names": ["a", "a", "b", "c"]}, "expected distinct names"),
        ({"history": 0}, "expected a history of 1 frame or more, got 0"),
        ({"layout": "time"}, "expected layout 'frames' or 'components', got 'time'"),
        ({"size": 5}, "has size 5, but its names or shape give 4"),
        ({"map": ["flip_lr"]}, "'flip_lr' acts on a grid, but the block has no shape"),
        ({"colour": 1}, "has unknown fields colour"),
        ({"name": " "}, "expected a name, got ' '"),
    ],
)
def test_each_mistake_in_a_block_is_told_with_the_blocks_name(changes, message):
    with pytest.raises(SpecError, match=message):
        mirror(**changes)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"name": "h", "map": [[1]]}, "has no size, no names and no shape"),
        ({"size": 2, "map": [[1, 1]]}, "is missing name"),
        (3, "expected a table with name, size and map, got 3"),
        ("h", "expected a table with name, size and map, got 'h'"),
        ({"name": "h", "shape": [2, 3], "map": ["rot90"]}, "'rot90' needs a square grid; the block has 2x3"),
        ({"name": "h", "shape": [2], "map": ["flip_lr"]}, r"expected shape = \[rows, columns\]"),
        ({"name": "h", "size": 2, "map": [{"a": "b"}]}, "uses names, but the block has none"),
        ({"name": "h", "size": 0, "map": [[]]}, "expected a size of 1 or more, got 0"),
    ],
)
def test_blocks_say_what_they_lack(table, message):
    data = {"name": "m", "group": "C2", "observation": {"blocks": [table]}, "action": [[1, 0]]}
    with pytest.raises(SpecError, match=message):
        symmetry_from_mapping(data, "x.toml")


def test_a_block_that_breaks_the_group_is_named():
    blocks = [Block("p", [[1, 2, 0]], size=3), Block("v", [[-1]], size=1)]
    with pytest.raises(RepresentationError, match="observation block 'p'"):
        Symmetry("m", catalog.cyclic(2), blocks, [[1, 0]])


def test_two_blocks_of_one_name_are_refused():
    with pytest.raises(SpecError, match="two blocks are called 'v'"):
        Symmetry("m", catalog.cyclic(2), [Block("v", [[-1]], size=1)] * 2, [[1, 0]])


def test_a_failure_names_the_block_and_the_component():
    import symcheck as sc

    pole = Block("pole", [{"theta": "-theta"}], names=["theta", "omega"])
    wrong = Symmetry("m", catalog.cyclic(2), [Block("cart", [[-1, -1]], names=["x", "v"]), pole], [[1, 0]])
    found = sc.verify_env("CartPole-v1", wrong, samples=200)["transition_invariance"]
    assert found.counterexample.where == "observation[3] (pole omega)"
    correction = next(cause for cause in found.causes if cause.code == "SYM014")
    assert correction.fields == {"sign": "-1", "coordinate": "observation[3] (pole omega)"}
