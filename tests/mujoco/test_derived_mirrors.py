"""Derived mirrors against an oracle: MuJoCo itself, stepped from a state and from its image."""

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from robots import TWO_ARMS, nameless_star, quadruped  # noqa: E402

from symcheck.mujoco import (  # noqa: E402
    isometry,
    mirror,
    turn,
)
from symcheck.mujoco.differences import difference  # noqa: E402
from symcheck.mujoco.loading import load_model  # noqa: E402


def random_state(model, rng):
    """A state near the start in which feet touch the floor, quaternions of length one."""
    data = mujoco.MjData(model)
    data.qpos[:] = model.qpos0
    mujoco.mj_integratePos(model, data.qpos, 0.4 * rng.standard_normal(model.nv), 1.0)
    if model.jnt_type[0] == 0:
        data.qpos[2] = 0.3 + 0.05 * rng.standard_normal()
    data.qvel[:] = rng.standard_normal(model.nv)
    return np.concatenate([data.qpos, data.qvel])


def step(model, state, control, steps=5):
    """The state after some steps of the simulator."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = state[: model.nq], state[model.nq :], control
    for _ in range(steps):
        mujoco.mj_step(model, data)
    return np.concatenate([data.qpos, data.qvel]), len(data.contact)


def largest_gap(xml, symmetry, rng, tries=6):
    """The largest difference between the image of the outcome and the outcome of the image, and contacts met."""
    model = load_model(xml).model
    gap, contacts = 0.0, 0
    for _ in range(tries):
        state, control = random_state(model, rng), rng.uniform(-1, 1, model.nu)
        after, touching = step(model, state, control)
        moved = symmetry.action[0].apply(control) if model.nu else control
        image, _ = step(model, symmetry.state[0].apply(state), moved)
        expected = symmetry.state[0].apply(after)
        gap, contacts = max(gap, float(np.abs(expected - image).max())), contacts + touching
    return gap, contacts


# Newton's solver stops at 1e-8 of the cost; mirrored contacts come in another order. Measured: below 1e-12.
ROUNDING = 1e-9


@pytest.mark.parametrize("plane", ["xz"])
def test_a_quadruped_moves_in_the_mirror_as_derived(plane):
    symmetry = mirror(quadruped(), plane)
    gap, contacts = largest_gap(quadruped(), symmetry, np.random.default_rng(0))
    assert contacts > 0
    assert gap < ROUNDING
    assert symmetry.model_is_symmetric


def test_ball_joints_tendons_and_an_offset_plane_are_mirrored():
    symmetry = mirror(TWO_ARMS, "xz", through=(0, 0.5, 0))
    gap, _ = largest_gap(TWO_ARMS, symmetry, np.random.default_rng(1))
    assert gap < ROUNDING
    assert symmetry.model_is_symmetric, symmetry.findings()


def test_a_star_without_names_has_turns_and_a_mirror():
    for symmetry in (turn(nameless_star(6), 6), turn(nameless_star(6), 3), mirror(nameless_star(6), "xz")):
        gap, contacts = largest_gap(nameless_star(6), symmetry, np.random.default_rng(2))
        assert contacts > 0
        # MuJoCo compiles each leg's rotation with its own rounding: 1e-15, multiplied by the contacts' stiffness.
        assert gap < 1e-7, symmetry.name
        assert symmetry.model_is_symmetric, symmetry.findings()


def test_a_tilted_plane_is_found_by_its_normal():
    normal = (np.cos(np.pi / 6), np.sin(np.pi / 6), 0)
    symmetry = mirror(nameless_star(6), normal)
    assert largest_gap(nameless_star(6), symmetry, np.random.default_rng(3))[0] < 1e-7


def test_a_planted_difference_is_found_statically_and_by_the_simulator():
    planted = quadruped(
        foot='friction="1.6 0.02 0.01"'
    )  # the larger of a pair counts: below the floor's 0.8 it would hide
    symmetry = mirror(planted)
    assert [str(found) for found in symmetry.differences] == [
        "friction of geom 'FL_calf': (0.8, 0.02, 0.01), but the image of geom 'FR_calf' has (1.6, 0.02, 0.01)"
    ]
    assert largest_gap(planted, symmetry, np.random.default_rng(0))[0] > 1e-3


@pytest.mark.parametrize(
    ("planted", "quantity", "element"),
    [
        ({"calf": 'stiffness="3"'}, "stiffness", "joint 'FL_calf_joint'"),
        ({"calf": 'damping="0.6"'}, "damping", "joint 'FL_calf_joint'"),
        ({"calf": 'armature="0.02"'}, "armature", "joint 'FL_calf_joint'"),
        ({"calf": 'frictionloss="0.1"'}, "friction loss", "joint 'FL_calf_joint'"),
        ({"calf": 'margin="0.1"'}, "margin", "joint 'FL_calf_joint'"),
        ({"calf": 'solreflimit="0.03 1"'}, "solref of the limit", "joint 'FL_calf_joint'"),
        ({"foot": 'solimp="0.8 0.95 0.001"'}, "solimp", "geom 'FR_calf'"),
        ({"foot": 'condim="4"'}, "condim", "geom 'FR_calf'"),
        ({"foot": 'margin="0.01"'}, "margin", "geom 'FR_calf'"),
        ({"gain": "21"}, "gain", "actuator 'RL_calf'"),
    ],
)
def test_each_number_of_a_pair_is_compared(planted, quantity, element):
    found = {
        (one.quantity, name)
        for one in mirror(quadruped(**planted)).differences
        for name in (one.element, one.counterpart)
    }
    assert (quantity, element) in found
    assert {one[0] for one in found} <= {quantity, "bias"}  # a position gain stands in the bias too


def test_ranges_masses_and_gravity_carry_the_reflection():
    text = quadruped()
    wider = mirror(text.replace('axis="0 -1 0" range="-0.5 2.5"', 'axis="0 -1 0" range="-0.5 2.4"', 1))
    assert [one.quantity for one in wider.differences] == ["range"]
    heavier = mirror(
        text.replace(
            'name="RL_calf" type="capsule" fromto="0 0 0 -0.05 0 -0.25" size="0.02" mass="0.4"',
            'name="RL_calf" type="capsule" fromto="0 0 0 -0.05 0 -0.25" size="0.02" mass="0.5"',
        )
    )
    assert {one.quantity for one in heavier.differences} == {"mass", "inertia"}
    windy = mirror(text.replace('<option timestep="0.005"/>', '<option timestep="0.005" gravity="0 0.1 -9.81"/>'))
    assert [str(one) for one in windy.differences] == [
        "gravity of the world: (0, 0.1, -9.81), but its image is (0, -0.1, -9.81)"
    ]


def test_actuators_follow_what_they_drive_not_the_order_of_the_joints():
    symmetry = mirror(quadruped())
    assert symmetry.pairs["actuator 'RL_calf'"] == "-actuator 'RR_calf'"  # its axis points the other way
    assert symmetry.pairs["actuator 'FR_hip'"] == "actuator 'FL_hip'"  # its gear does
    assert symmetry.pairs["actuator 'RR_hip'"] == "-actuator 'RL_hip'"
    assert symmetry.pairs["joint 'RL_calf_joint'"] == "-joint 'RR_calf_joint'"
    assert symmetry.pairs["joint 'FR_calf_joint'"] == "joint 'FL_calf_joint'"
    assert symmetry.pairs["body 'trunk'"] == "body 'trunk'"


def test_a_free_body_is_mirrored_with_its_quaternion():
    signs = mirror(quadruped()).state[0]
    assert signs.sign[:7].tolist() == [1, -1, 1, 1, -1, 1, -1]  # x, y, z; w, x, y, z of the quaternion
    first = load_model(quadruped()).model.nq
    assert signs.sign[first : first + 6].tolist() == [1, -1, 1, -1, 1, -1]  # velocity; angular velocity, axial


TIES = """
  <contact>
    <exclude body1="trunk" body2="FR_calf"/>
    <exclude body1="FL_calf" body2="trunk"/>
    <pair geom1="floor" geom2="RL_hip" friction="1 1 0.01 0.0001 0.0001"/>
    <pair geom1="RR_hip" geom2="floor" friction="1 1 0.01 0.0001 0.0001"/>
  </contact>
  <equality>
    <joint joint1="FR_hip_joint" joint2="FR_calf_joint" polycoef="0.1 0.5 0.2 0 0"/>
    <joint joint1="FL_hip_joint" joint2="FL_calf_joint" polycoef="-0.1 -0.5 -0.2 0 0"/>
    <connect body1="RR_calf" body2="trunk" anchor="0 0 -0.25"/>
    <connect body1="RL_calf" body2="trunk" anchor="0 0 -0.25"/>
  </equality>
</mujoco>
"""


def tied(*changes):
    text = quadruped().replace("</mujoco>", TIES)
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


def test_constraints_that_are_images_of_each_other_are_no_finding():
    symmetry = mirror(tied())
    assert symmetry.model_is_symmetric, symmetry.findings()
    gap, _ = largest_gap(tied(), symmetry, np.random.default_rng(4))
    assert gap < 1e-6  # the connected feet start far apart: forces of 1e4 on rounding of 1e-12


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            '<exclude body1="FL_calf" body2="trunk"/>',
            "",
            "an excluded contact of body 'trunk' and body 'FL_calf' is missing",
        ),
        (
            '<pair geom1="floor" geom2="RL_hip" friction="1 1',
            '<pair geom1="floor" geom2="RL_hip" friction="2 1',
            "but the image of contact pair 0 of geom 'floor' and geom 'RR_hip' has (1, 1, 0.01, 0.0001, 0.0001)",
        ),
        (
            '<connect body1="RL_calf" body2="trunk" anchor="0 0 -0.25"/>',
            "",
            "an equality of body 'RL_calf' and body 'trunk' is missing",
        ),
        ('polycoef="-0.1 -0.5 -0.2 0 0"', 'polycoef="-0.1 -0.5 0.2 0 0"', "polynomial of equality"),
        (
            '<connect body1="RL_calf" body2="trunk" anchor="0 0 -0.25"/>',
            '<connect body1="RL_calf" body2="trunk" anchor="0 0 -0.25" solref="0.1 1"/>',
            "solref of equality",
        ),
    ],
)
def test_a_constraint_without_its_image_is_a_finding(old, new, said):
    found = mirror(tied((old, new))).differences
    assert len(found) == 1
    assert said in str(found[0])
    assert "nan" not in str(found[0])


def test_a_solver_that_does_not_converge_is_remarked_upon():
    assert mirror(quadruped()).remarks == ()
    (remark,) = mirror(quadruped().replace("<option ", '<option solver="PGS" iterations="30" ')).remarks
    assert "in a different order for the image, so 30 iterations leave a residual" in remark


def test_a_geom_that_one_side_alone_has_is_a_finding_in_plain_words():
    horn = '<geom name="horn" type="sphere" pos="0.2 0.05 0.1" size="0.02" mass="0"/><body name="FR_hip"'
    (found,) = mirror(quadruped().replace('<body name="FR_hip"', horn, 1)).differences
    assert str(found) == "geom 'horn' has no image on body 'trunk': its position would be (0.2, -0.05, 0.1)"
    assert found.size == found.relative == np.inf


QUARTERS = ["1 0 0 1", "1 1 0 0", "1 0 1 0", "1 0 0 -1", "0 1 1 0", "0.9 0.1 -0.2 0.3", "-1 0 0 1"]
BALL = """
<mujoco><option gravity="0 0 0"/><worldbody>
  <body pos="0.3 0 0" quat="{quat}"><freejoint/><geom type="sphere" size="0.1"/></body>
</worldbody></mujoco>
"""


@pytest.mark.parametrize("quat", QUARTERS)
def test_a_free_body_that_stands_turned_keeps_the_quaternion_of_its_reference(quat):
    model = load_model(BALL.format(quat=quat)).model
    reference = np.concatenate([model.qpos0, np.zeros(model.nv)])
    for symmetry in (
        mirror(model, "xz"),
        mirror(model, "yz"),
        mirror(model, (1, 1, 0)),
        turn(model, 4),
        turn(model, 3),
    ):
        image = symmetry.state[0].apply(reference)
        # Quaternions come out of one matrix product of unit vectors: a few ulp.
        np.testing.assert_allclose(image[3:7], model.qpos0[3:7], atol=1e-12, err_msg=symmetry.name)
        assert largest_gap(BALL.format(quat=quat), symmetry, np.random.default_rng(5), tries=2)[0] < ROUNDING


@pytest.mark.parametrize(
    ("quantity", "size", "unit"), [("position", 0.0, 1.0), ("position", 500.0, 500.0), ("mass", 1e-3, 1e-3)]
)
def test_a_difference_is_one_beyond_rounding_of_what_it_is_relative_to(quantity, size, unit):
    within, beyond = (
        list(difference("a", "b", quantity, size, size + part * isometry.ROUNDING * unit)) for part in (0.9, 1.1)
    )
    assert (len(within), len(beyond)) == (0, 1)
    assert isometry.ROUNDING < 1e-5


ARM = '<body name="{0}" pos="0 {1} 0"><joint name="{0}" axis="0 1 0"/><geom size=".05"/></body>'


def test_motors_of_one_joint_are_images_of_different_motors():
    arms = ARM.format("left", 0.2) + ARM.format("right", -0.2)
    motors = "".join(f'<motor joint="{side}"/>' for side in ("left", "left", "right", "right"))
    symmetry = mirror(f"<mujoco><worldbody>{arms}</worldbody><actuator>{motors}</actuator></mujoco>", "xz")
    # What each motor does alone is done by one other.
    images = np.abs(np.stack([symmetry.action[0].apply(row) for row in np.eye(4)]))
    assert images.sum(axis=0).tolist() == images.sum(axis=1).tolist() == [1, 1, 1, 1]
