"""Models that cannot be mirrored: one message that names every element at fault and says what to do."""

import math

import gymnasium as gym
import pytest
from gymnasium import spaces

pytest.importorskip("mujoco")

from robots import TWO_ARMS, nameless_star, quadruped

from symcheck.errors import SpecError, TargetError
from symcheck.mujoco import mirror, turn
from symcheck.mujoco.loading import load_model
from symcheck.symmetry.blocks import labels_of


def test_an_unknown_plane_is_refused():
    with pytest.raises(
        SpecError, match="plane: expected a plane, 'xz', 'yz' or 'xy', or its normal vector, got 'left'"
    ):
        mirror(quadruped(), "left")
    for normal in ((0, 0, 0), (0, 1), (0, math.nan, 1), ("a", "b", "c"), None):
        with pytest.raises(SpecError, match="plane: expected a normal vector of three numbers that are not all 0, got"):
            mirror(quadruped(), normal)
    for through in ("abc", (0, 0), (0, 0, math.inf), None):
        with pytest.raises(SpecError, match="through: expected a point, three numbers in metres, got"):
            mirror(quadruped(), through=through)


def test_every_unpaired_body_is_named_with_the_nearest_and_its_distance():
    moved = quadruped().replace('<body name="FL_hip" pos="0.2 0.08 0">', '<body name="FL_hip" pos="0.1 0.08 0">')
    with pytest.raises(SpecError) as error:
        mirror(moved)
    text = str(error.value)
    assert "2 elements have no counterpart under the mirror in the xz plane" in text
    assert "body 'FR_hip': the nearest is body 'FL_hip', 0.1 m from its image" in text
    assert "body 'FL_hip': the nearest is body 'FR_hip', 0.1 m from its image" in text
    assert "pairs={...}" in text


def test_the_user_may_say_which_bodies_are_a_pair():
    moved = quadruped().replace('<body name="FL_hip" pos="0.2 0.08 0">', '<body name="FL_hip" pos="0.15 0.08 0">')
    given = {"FR_hip": "FL_hip", "FR_calf": "FL_calf"}
    found = mirror(moved, pairs=given)
    assert "centre of mass of body 'FL_hip'" in found.findings()
    with pytest.raises(SpecError, match="bodies that the model does not have: nobody"):
        mirror(moved, pairs={"FR_hip": "nobody"})
    with pytest.raises(SpecError, match=r"pairs: expected a mapping of names of bodies .*, got \['FR_hip'\]"):
        mirror(moved, pairs=["FR_hip"])


def test_a_model_without_names_is_described_by_what_its_elements_belong_to():
    nameless = (
        "<mujoco><worldbody><body><joint/><geom size='0.1'/>"
        "<body pos='0 0.3 0'><joint/><geom size='0.1'/></body></body></worldbody></mujoco>"
    )
    with pytest.raises(SpecError, match=r"body 2 \(unnamed, child of body 1 \(unnamed, child of body 'world'\)\)"):
        mirror(nameless)


def test_a_yawed_free_body_is_told_which_plane_is_its_own():
    turned = quadruped(trunk=f'quat="{math.cos(math.pi / 12)} 0 0 {math.sin(math.pi / 12)}"')
    with pytest.raises(SpecError, match="'trunk' is rotated by 30 degrees about the vertical") as error:
        mirror(turned)
    assert "plane=(-0.5, 0.866025, 0)" in str(error.value)
    assert mirror(turned, (-0.5, 0.8660254037844386, 0)).model_is_symmetric


def test_a_quarter_turn_of_the_free_body_is_remarked_upon_where_another_plane_pairs_too():
    quarter = f"<body pos='0 0 0.5' quat='{math.sqrt(0.5)} 0 0 {math.sqrt(0.5)}'>"
    turned = nameless_star(4).replace("<body pos='0 0 0.5'>", quarter)
    (remark,) = mirror(turned, "xz").remarks
    assert "rotated by 90 degrees about the vertical" in remark
    assert "plane=(-1, 0, 0)" in remark
    assert mirror(turned, "yz").remarks == ()
    assert mirror(nameless_star(4), "xz").remarks == ()
    with pytest.raises(SpecError, match="'trunk' is rotated by 90 degrees"):
        mirror(quadruped(trunk=f'quat="{math.sqrt(0.5)} 0 0 {math.sqrt(0.5)}"'))


def test_a_joint_about_another_axis_is_no_pair():
    wrong = quadruped().replace(
        '<joint name="FL_calf_joint" axis="0 1 0" range="-2.5 0.5"',
        '<joint name="FL_calf_joint" axis="0 0 1" range="-2.5 0.5"',
    )
    with pytest.raises(SpecError, match="joint 'FR_calf_joint': joint 'FL_calf_joint' rotates about another axis"):
        mirror(wrong)


def test_an_actuator_without_counterpart_is_named():
    missing = quadruped().replace('<motor name="RL_hip" joint="RL_hip_joint" gear="3" ctrlrange="-1 1"/>', "")
    with pytest.raises(SpecError, match="actuator 'RR_hip': no actuator acts on the image of its target"):
        mirror(missing)


def test_turns_need_a_sensible_order_and_axis():
    with pytest.raises(SpecError, match="order: expected the order of a rotation"):
        turn(quadruped(), 1)
    with pytest.raises(SpecError, match="axis: expected an axis"):
        turn(quadruped(), 2, "w")
    with pytest.raises(SpecError, match="no counterpart under the rotation by 1/3 turn about z"):
        turn(quadruped(), 3)


def test_what_holds_no_model_is_refused():
    with pytest.raises(TargetError, match=r"there is no file nowhere\.xml"):
        mirror("nowhere.xml")
    with pytest.raises(TargetError, match="does not compile"):
        mirror("<mujoco><worldbody><nonsense/></worldbody></mujoco>")
    with pytest.raises(TargetError, match="CartPole-v1 has no MuJoCo model"):
        mirror("CartPole-v1")
    with pytest.raises(TargetError, match="expected the path of an MJCF file"):
        mirror(3)
    link = "<robot name='r'><link name='x'/><link name='y'/><joint name='j' type='revolute'><parent link='x'/>"
    for part, words in (("<axis xyz='0 0 0'/>", "'j' has the axis 0 0 0"), ("<origin xyz='0 nan 0'/>", "three finite")):
        with pytest.raises(TargetError, match=words):
            mirror(f"{link}<child link='y'/>{part}</joint></robot>")
    with pytest.raises(SpecError, match="the model has no joints"):
        mirror("<mujoco><worldbody/></mujoco>")


def test_blocks_of_the_observation_are_checked():
    with pytest.raises(SpecError, match=r"observation\[1\]: expected a block of the observation, got 'speed'"):
        mirror(quadruped(), observation=["qpos", "speed"])
    with pytest.raises(SpecError, match="columns 27 to 104 are left over"):
        mirror("Ant-v5", observation=["qpos[2:]", "qvel"])
    with pytest.raises(SpecError, match=r"qpos\[:8\] is not mapped to itself: the images of components \[7\]"):
        mirror(quadruped(), observation=["qpos[:8]"])
    with pytest.raises(SpecError, match="expected an angle inside cos"):
        mirror(quadruped(), observation=["cos(qvel)"])
    with pytest.raises(SpecError, match="the model has no free body"):
        mirror(TWO_ARMS, through=(0, 0.5, 0), observation=["base_vector"])
    with pytest.raises(SpecError, match="omits the images body 'FR_calf'"):
        mirror(quadruped(), observation=["point(FL_calf)"])


def test_a_robots_usual_observation_is_written_as_blocks():
    blocks = [
        "speed: base_vector",
        "base_axial",
        "gravity: base_vector",
        "command",
        "joint_positions",
        "joint_velocities",
        "ctrl",
    ]
    found = mirror(quadruped(), observation=blocks)
    assert found.observation[0].sign[:12].tolist() == [1, -1, 1, -1, 1, -1, 1, -1, 1, 1, -1, -1]
    assert found.observation[0].dim == 12 + 8 + 8 + 8
    labels = labels_of(found.blocks["observation"][None])
    assert labels[12:14] == ("joint_positions FR_hip_joint", "joint_positions FR_calf_joint")


class Robot(gym.Env):
    """An environment of the user's own: what it observes is not known."""

    observation_space = spaces.Box(-math.inf, math.inf, (1,))
    action_space = spaces.Box(-1, 1, (8,))
    model = load_model(quadruped()).model


def test_an_environment_whose_observation_is_not_known_is_asked_for_its_blocks():
    with pytest.raises(SpecError, match="observation: the layout of the observation of Robot is not known"):
        mirror(Robot())
