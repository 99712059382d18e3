"""What pulls on a robot beside its joints: thrusters, tendons, loops closed by equalities; each planted wrong."""

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from symcheck.errors import SpecError  # noqa: E402
from symcheck.mujoco import mirror  # noqa: E402
from symcheck.mujoco.loading import load_model  # noqa: E402

THRUSTERS = """
<mujoco>
  <worldbody>
    <body name="hull" pos="0 0 1">
      <freejoint/>
      <geom type="box" size="0.1 0.1 0.02"/>
      <site name="left" pos="0.1 0.1 0"/>
      <site name="right" pos="0.1 -0.1 0" quat="0 0 0 1"/>
    </body>
  </worldbody>
  <actuator>
    <motor name="left" site="left" gear="0.1 0.2 1 0 0 0.02"/>
    <motor name="right" site="right" gear="-0.1 0.2 1 0 0 -0.02"/>
  </actuator>
</mujoco>
"""

ARMS = """
<mujoco>
  <option timestep="0.001"/>
  <default><joint damping="0.3" armature="0.02"/></default>
  <worldbody>
    <site name="wall_left" pos="0 0.3 0.1"/>
    <site name="wall_right" pos="0 -0.3 0.1"/>
    <geom name="post_left" type="cylinder" pos="-0.03 0.33 0" size="0.02 0.1" contype="0" conaffinity="0"/>
    <geom name="post_right" type="cylinder" pos="-0.03 -0.33 0" size="0.02 0.1" contype="0" conaffinity="0"/>
    <body name="trunk">
      <joint name="lift" type="slide" axis="0 0 1" stiffness="50"/>
      <geom size="0.1"/>
      <body name="arm_left" pos="0 0.2 0" quat="0.9 0.1 0.2 0.3">
        <joint name="left" type="ball"/>
        <geom type="capsule" fromto="0 0 0 0.1 0.1 -0.2" size="0.02"/>
        <site name="hand_left" pos="0.1 0.1 -0.2"/>
      </body>
      <body name="arm_right" pos="0 -0.2 0" quat="0.9 -0.1 0.2 -0.3">
        <joint name="right" type="ball"/>
        <geom type="capsule" fromto="0 0 0 0.1 -0.1 -0.2" size="0.02"/>
        <site name="hand_right" pos="0.1 -0.1 -0.2"/>
      </body>
      <body name="finger_left" pos="0.3 0.2 0">
        <joint name="finger_left" axis="0 1 0"/><geom size="0.05" pos="0 0 -0.1"/>
      </body>
      <body name="finger_right" pos="0.3 -0.2 0">
        <joint name="finger_right" axis="0 1 0"/><geom size="0.05" pos="0 0 -0.1"/>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="left" stiffness="2" springlength="0.1">
      <joint joint="finger_left" coef="1"/><joint joint="lift" coef="0.5"/>
    </fixed>
    <fixed name="right" stiffness="2" springlength="0.1">
      <joint joint="finger_right" coef="1"/><joint joint="lift" coef="0.5"/>
    </fixed>
    <spatial name="rope_left" stiffness="3">
      <site site="wall_left"/><geom geom="post_left"/><site site="hand_left"/>
    </spatial>
    <spatial name="rope_right" stiffness="3">
      <site site="wall_right"/><geom geom="post_right"/><site site="hand_right"/>
    </spatial>
  </tendon>
  <equality>
    <weld body1="arm_left" body2="trunk" relpose="0.02 -0.2 0.01 1 0.1 0.2 0.1"
      anchor="0 0.1 0.1" torquescale="0.5"/>
    <weld body1="arm_right" body2="trunk" relpose="0.02 0.2 0.01 1 -0.1 0.2 -0.1"
      anchor="0 -0.1 0.1" torquescale="0.5"/>
    <connect body1="finger_left" body2="trunk" anchor="0 0 -0.1"/>
    <connect body1="finger_left" body2="trunk" anchor="0 0.1 0"/>
    <connect body1="finger_right" body2="trunk" anchor="0 -0.1 0"/>
    <connect body1="trunk" body2="finger_right" anchor="0.3 -0.2 -0.1"/>
    <connect site1="hand_left" site2="wall_left"/>
    <connect site1="hand_right" site2="wall_right"/>
    <tendon tendon1="left" polycoef="0.1 0 0 0 0"/>
    <tendon tendon1="right" polycoef="0.1 0 0 0 0"/>
  </equality>
</mujoco>
"""


def gap(text, symmetry, seed, steps=5):
    """The largest difference between the image of an outcome and the outcome of the image, over six random states."""
    model, rng, largest = load_model(text).model, np.random.default_rng(seed), 0.0
    for _ in range(6):
        data = mujoco.MjData(model)
        mujoco.mj_integratePos(model, data.qpos, 0.3 * rng.standard_normal(model.nv), 1.0)
        start = np.concatenate([data.qpos, rng.standard_normal(model.nv)])
        control = rng.uniform(-1, 1, model.nu)
        ends = []
        moved = symmetry.action[0].apply(control) if model.nu else control
        for state, chosen in ((start, control), (symmetry.state[0].apply(start), moved)):
            data.qpos[:], data.qvel[:], data.ctrl[:] = state[: model.nq], state[model.nq :], chosen
            data.qacc_warmstart[:] = 0
            for _ in range(steps):
                mujoco.mj_step(model, data)
            ends.append(np.concatenate([data.qpos, data.qvel]))
        largest = max(largest, float(np.abs(symmetry.state[0].apply(ends[0]) - ends[1]).max()))
    return largest


@pytest.mark.parametrize("text", [THRUSTERS, ARMS], ids=["thrusters", "arms"])
def test_mirrored_forces_are_no_finding_and_the_simulator_agrees(text):
    symmetry = mirror(text)
    assert symmetry.model_is_symmetric, symmetry.findings()
    assert gap(text, symmetry, 0) < 1e-10  # measured: 0 for the thrusters, 2e-13 for the arms


@pytest.mark.parametrize(
    ("text", "old", "new", "said"),
    [
        (THRUSTERS, '0.2 1 0 0 -0.02"', '0.2 1 0 0 -0.05"', "force and torque of actuator 'right'"),
        (THRUSTERS, '-0.1 0.2 1 0 0 -0.02"', '-0.1 0.2 1.2 0 0 -0.02"', "force and torque of actuator 'right'"),
        (THRUSTERS, 'name="right" pos="0.1 -0.1 0"', 'name="right" pos="0.1 -0.13 0"', "position of site 'right'"),
        (ARMS, 'joint="finger_right" coef="1"', 'joint="finger_right" coef="2"', "coefficients of tendon 'right'"),
        (
            ARMS,
            '<fixed name="right" stiffness="2" springlength="0.1">',
            '<fixed name="right" stiffness="2" springlength="0.3">',
            "rest length of the spring of tendon 'right'",
        ),
        (
            ARMS,
            'name="wall_right" pos="0 -0.3 0.1"',
            'name="wall_right" pos="0 -0.3 0.2"',
            "position of site 'wall_right'",
        ),
        (
            ARMS,
            'pos="-0.03 -0.33 0" size="0.02 0.1"',
            'pos="-0.03 -0.33 0" size="0.03 0.1"',
            "size of geom 'post_right'",
        ),
        (ARMS, 'body2="trunk" anchor="0 -0.1 0"', 'body2="trunk" anchor="0 -0.1 0.1"', "anchors of equality"),
        (ARMS, 'relpose="0.02 0.2 0.01', 'relpose="0.02 0.3 0.01', "anchors of equality"),
        (ARMS, "1 -0.1 0.2 -0.1", "1 -0.1 0.3 -0.1", "relative orientation of equality"),
        (
            ARMS,
            'anchor="0 -0.1 0.1" torquescale="0.5"',
            'anchor="0 -0.1 0.1" torquescale="1"',
            "torque scale of equality",
        ),
        (
            ARMS,
            '<connect site1="hand_right" site2="wall_right"/>',
            "",
            "an equality of site 'hand_right' and site 'wall_right'",
        ),
        (ARMS, 'tendon1="right" polycoef="0.1', 'tendon1="right" polycoef="0.2', "polynomial of equality"),
    ],
)
def test_a_force_that_differs_is_found_statically_and_by_the_simulator(text, old, new, said):
    assert text.count(old) == 1
    planted = text.replace(old, new)
    symmetry = mirror(planted)
    assert said in symmetry.findings()
    assert gap(planted, symmetry, 0) > 1e-6  # ten thousand times what the correct models may leave


COUPLED = """
<mujoco>
  <worldbody>
    <body name="column">
      <joint name="yaw" axis="0 0 1"/>
      <geom type="cylinder" size="0.05 0.2" mass="4"/>
      <body name="left" pos="0.1 0.2 0">
        <joint name="left" axis="0 0 1"/><geom type="capsule" fromto="0 0 0 0.2 0.1 0" size="0.02"/>
      </body>
      <body name="right" pos="0.1 -0.2 0">
        <joint name="right" axis="0 0 1"/><geom type="capsule" fromto="0 0 0 0.2 -0.1 0" size="0.02"/>
      </body>
    </body>
  </worldbody>
  <equality>
    <joint joint1="left" joint2="yaw" polycoef="0.1 0.5 0.2 0 0"/>
    <joint joint1="right" joint2="yaw" polycoef="{polynomial}"/>
  </equality>
</mujoco>
"""


def test_a_joint_that_follows_the_first_joint_is_mirrored_with_the_signs_of_both():
    # All three joints change sign: -y = c0 + c1 (-x) + c2 (-x)^2, so c0 and c2 change theirs.
    text = COUPLED.format(polynomial="-0.1 0.5 -0.2 0 0")
    symmetry = mirror(text)
    assert symmetry.model_is_symmetric, symmetry.findings()
    assert gap(text, symmetry, 0) < 1e-10  # as above
    planted = mirror(COUPLED.format(polynomial="-0.1 -0.5 -0.2 0 0"))
    assert "polynomial of equality" in planted.findings()


GRIPPER = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="thumb" pos="0.1 0.2 0">
      <joint name="thumb" axis="0 0 1" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0.2 0.1 0" size="0.02"/>
    </body>
    <body name="finger" pos="0.1 -0.2 0">
      <joint name="finger" axis="0 0 1" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0.2 -0.1 0" size="0.02"/>
    </body>
  </worldbody>
  <tendon><fixed name="sum"><joint joint="thumb" coef="1"/><joint joint="finger" coef="1"/></fixed></tendon>
  <equality><tendon tendon1="sum"{polynomial}/></equality>
</mujoco>
"""


@pytest.mark.parametrize("polynomial", ["", ' polycoef="0 1 0.3 0 0"'])
def test_only_the_constant_of_an_equality_of_one_tendon_is_compared(polynomial):
    # The tendon's length changes sign. MuJoCo's default coefficient c1 = 1 belongs to a second tendon, which is absent.
    text = GRIPPER.format(polynomial=polynomial)
    symmetry = mirror(text)
    assert symmetry.model_is_symmetric, symmetry.findings()
    assert gap(text, symmetry, 0) < 1e-10  # as above
    planted = GRIPPER.format(polynomial=' polycoef="0.05 1 0 0 0"')
    assert "polynomial of equality" in mirror(planted).findings()
    assert gap(planted, mirror(planted), 0) > 1e-6


# Coordinates measured from unequal references, right = 0.1 - left: every number of a pair is shifted or negated.
SHIFTED = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep="0.002" gravity="0 0 0"/>
  <default><joint damping="0.1" armature="0.02"/></default>
  <worldbody>
    <body name="left" pos="0.1 0.2 0">
      <joint name="left" axis="0 0 1" ref="0.3" range="0.1 0.9" limited="true" stiffness="3" springref="0.5"
        actuatorfrcrange="-1 2"/>
      <geom type="capsule" fromto="0 0 0 0.2 0.1 0" size="0.02"/>
    </body>
    <body name="right" pos="0.1 -0.2 0">
      <joint name="right" axis="0 0 1" ref="-0.2" range="-0.8 0" limited="true" stiffness="3" springref="-0.4"
        actuatorfrcrange="-2 1"/>
      <geom type="capsule" fromto="0 0 0 0.2 -0.1 0" size="0.02"/>
    </body>
  </worldbody>
  <tendon>
    <fixed name="left" range="0.2 0.8" limited="true" stiffness="2" springlength="0.4">
      <joint joint="left" coef="1"/>
    </fixed>
    <fixed name="right" range="0.1 0.7" limited="true" stiffness="2" springlength="0.3">
      <joint joint="right" coef="-1"/>
    </fixed>
  </tendon>
  <actuator>
    <motor name="left" joint="left" ctrlrange="-0.2 0.5" forcerange="-0.1 0.4"/>
    <motor name="right" joint="right" ctrlrange="-0.5 0.2" forcerange="-0.4 0.1"/>
  </actuator>
</mujoco>
"""


def test_coordinates_with_unequal_references_are_shifted():
    symmetry = mirror(SHIFTED)
    assert symmetry.model_is_symmetric, symmetry.findings()
    assert symmetry.state[0].apply(np.array([0.3, -0.2, 1.0, 2.0])).tolist() == pytest.approx([0.3, -0.2, -2.0, -1.0])
    assert gap(SHIFTED, symmetry, 0) < 1e-10  # as above


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('range="-0.8 0"', 'range="-0.9 0"', "range of joint 'right'"),
        ('springref="-0.4"', 'springref="-0.5"', "rest position of the spring of joint 'right'"),
        ('stiffness="3" springref="-0.4"', 'springref="-0.5"', "rest position of the spring of joint 'right'"),
        ('actuatorfrcrange="-2 1"', 'actuatorfrcrange="-1 1"', "range of the actuator force of joint 'right'"),
        ('range="0.1 0.7"', 'range="0.2 0.8"', "range of tendon 'right'"),
        ('springlength="0.3"', 'springlength="0.4"', "rest length of the spring of tendon 'right'"),
        ('ctrlrange="-0.5 0.2"', 'ctrlrange="-0.2 0.5"', "control range of actuator 'right'"),
        ('forcerange="-0.4 0.1"', 'forcerange="-0.1 0.4"', "force range of actuator 'right'"),
    ],
)
def test_a_number_that_the_shift_or_the_sign_does_not_reach_is_found(old, new, said):
    assert SHIFTED.count(old) == 1
    found = mirror(SHIFTED.replace(old, new)).findings()
    assert said in found


def servos(bias, **drive):
    """The shifted arms with a position servo on each side, and a constant force on the right."""
    (kind, names), left = next(iter(drive.items())), SHIFTED.index("<actuator>")
    driven = [
        f'<general {kind}="{name}" gear="{gear}" gainprm="5" biastype="affine" biasprm="{b} -5 0"/>'
        for (name, gear), b in zip(names, ("0", bias), strict=True)
    ]
    return f"{SHIFTED[:left]}<actuator>{''.join(driven)}</actuator></mujoco>"


@pytest.mark.parametrize(
    ("drive", "bias"),
    [
        ({"joint": (("left", 1), ("right", 1))}, 0.5),  # lengths: right = 0.1 - left, and 5 times 0.1 is made up for
        ({"joint": (("left", 2), ("right", -2))}, -1.0),
        ({"tendon": (("left", 1), ("right", 1))}, -0.5),  # right = left - 0.1
    ],
)
def test_a_servo_that_counts_from_another_reference_needs_a_constant_force(drive, bias):
    symmetry = mirror(servos(bias, **drive))
    assert symmetry.model_is_symmetric, symmetry.findings()
    assert gap(servos(bias, **drive), symmetry, 0) < 1e-10  # as above
    for other in (0, -bias):
        planted = mirror(servos(other, **drive))
        assert [one.quantity for one in planted.differences] == ["bias"]
        assert gap(servos(other, **drive), planted, 0) > 1e-3


ROPES = """
<mujoco>
  <worldbody>
    <site name="top_left" pos="0 0.3 0.5"/><site name="top_right" pos="0 -0.3 0.5"/>
    <site name="hold_left" pos="0.2 0.3 0"/><site name="hold_right" pos="0.2 -0.3 0"/>
    <body name="left" pos="0 0.3 0">
      <joint name="left" type="slide" axis="0 0 1"/><geom size="0.05"/>
      <site name="hook_left" pos="0 0 0.05"/><site name="grip_left" pos="0.05 0 0"/>
    </body>
    <body name="right" pos="0 -0.3 0">
      <joint name="right" type="slide" axis="0 0 1"/><geom size="0.05"/>
      <site name="hook_right" pos="0 0 0.05"/><site name="grip_right" pos="0.05 0 0"/>
    </body>
  </worldbody>
  <tendon>
    <spatial name="rope_left" stiffness="3" springlength="0.1">
      <pulley divisor="2"/><site site="top_left"/><site site="hook_left"/>
    </spatial>
    <spatial name="rope_right" stiffness="3" springlength="0.1">
      <pulley divisor="2"/><site site="top_right"/><site site="hook_right"/>
    </spatial>
  </tendon>
  <equality>
    <connect site1="grip_left" site2="hold_left"/>
    <connect site1="grip_right" site2="hold_right"/>
  </equality>
</mujoco>
"""


def test_ropes_over_pulleys_and_tied_sites_are_mirrored():
    symmetry = mirror(ROPES)
    assert symmetry.model_is_symmetric, symmetry.findings()
    assert gap(ROPES, symmetry, 0) < 1e-10  # as above


def test_a_rope_over_a_pulley_on_one_side_alone_is_refused():
    first, rest = ROPES.split('<spatial name="rope_right"')
    with pytest.raises(SpecError, match="tendon 'rope_left': no tendon connects the images"):
        mirror(first + rest.split("</spatial>", 1)[1])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            '<pulley divisor="2"/><site site="top_right"/>',
            '<pulley divisor="3"/><site site="top_right"/>',
            "coefficients of tendon 'rope_right': (3, ",
        ),
        ('name="grip_right" pos="0.05 0 0"', 'name="grip_right" pos="0.05 0 0.02"', "position of site 'grip_right'"),
        (
            '<body name="right"',
            '<body name="right" gravcomp="0.5"',
            "gravcomp of body 'right': 0.5, but the image of body 'left' has 0",
        ),
    ],
)
def test_a_divisor_a_tied_site_and_a_compensated_weight_are_compared(old, new, said):
    assert ROPES.count(old) == 1
    planted = mirror(ROPES.replace(old, new))
    assert said in planted.findings()
    assert gap(ROPES.replace(old, new), planted, 0) > 1e-6  # as above
