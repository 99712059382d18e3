"""Small robots in the conventions of published model collections: names, axes and orders as real files have them."""

QUADRUPED = """
<mujoco model="quadruped">
  <compiler angle="radian"/>
  <option timestep="0.005"/>
  <default>
    <joint damping="0.5" armature="0.01"/>
    <geom friction="0.8 0.02 0.01"/>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 0.05"/>
    <body name="trunk" pos="0 0 0.35" {trunk}>
      <freejoint name="root"/>
      <geom name="trunk" type="box" size="0.2 0.08 0.05" mass="5"/>
      <body name="FR_hip" pos="0.2 -0.08 0">
        <joint name="FR_hip_joint" axis="1 0 0" range="-0.6 0.9" limited="true"/>
        <geom name="FR_hip" type="sphere" size="0.03" mass="0.5"/>
        <body name="FR_calf" pos="0 -0.05 0">
          <joint name="FR_calf_joint" axis="0 1 0" range="-2.5 0.5" limited="true"/>
          <geom name="FR_calf" type="capsule" fromto="0 0 0 -0.05 0 -0.25" size="0.02" mass="0.4" {foot}/>
        </body>
      </body>
      <body name="FL_hip" pos="0.2 0.08 0">
        <joint name="FL_hip_joint" axis="1 0 0" range="-0.9 0.6" limited="true"/>
        <geom name="FL_hip" type="sphere" size="0.03" mass="0.5"/>
        <body name="FL_calf" pos="0 0.05 0">
          <joint name="FL_calf_joint" axis="0 1 0" range="-2.5 0.5" limited="true" {calf}/>
          <geom name="FL_calf" type="capsule" fromto="0 0 0 -0.05 0 -0.25" size="0.02" mass="0.4"/>
        </body>
      </body>
      <body name="RR_hip" pos="-0.2 -0.08 0">
        <joint name="RR_hip_joint" axis="1 0 0" range="-0.6 0.9" limited="true"/>
        <geom name="RR_hip" type="sphere" size="0.03" mass="0.5"/>
        <body name="RR_calf" pos="0 -0.05 0">
          <joint name="RR_calf_joint" axis="0 1 0" range="-2.5 0.5" limited="true"/>
          <geom name="RR_calf" type="capsule" fromto="0 0 0 -0.05 0 -0.25" size="0.02" mass="0.4"/>
        </body>
      </body>
      <body name="RL_hip" pos="-0.2 0.08 0">
        <joint name="RL_hip_joint" axis="1 0 0" range="-0.9 0.6" limited="true"/>
        <geom name="RL_hip" type="sphere" size="0.03" mass="0.5"/>
        <body name="RL_calf" pos="0 0.05 0">
          <joint name="RL_calf_joint" axis="0 -1 0" range="-0.5 2.5" limited="true"/>
          <geom name="RL_calf" type="capsule" fromto="0 0 0 -0.05 0 -0.25" size="0.02" mass="0.4"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="RL_calf" joint="RL_calf_joint" kp="20" ctrlrange="-0.5 2.5"/>
    <position name="FR_calf" joint="FR_calf_joint" kp="20" ctrlrange="-2.5 0.5"/>
    <position name="FL_calf" joint="FL_calf_joint" kp="20" ctrlrange="-2.5 0.5"/>
    <position name="RR_calf" joint="RR_calf_joint" kp="{gain}" ctrlrange="-2.5 0.5"/>
    <motor name="FR_hip" joint="FR_hip_joint" gear="3" ctrlrange="-1 1"/>
    <motor name="RR_hip" joint="RR_hip_joint" gear="3" ctrlrange="-1 1"/>
    <motor name="FL_hip" joint="FL_hip_joint" gear="-3" ctrlrange="-1 1"/>
    <motor name="RL_hip" joint="RL_hip_joint" gear="3" ctrlrange="-1 1"/>
  </actuator>
</mujoco>
"""

# Ball joints, a tendon, a slide across the plane, a body with another orientation than its mirror image; base fixed.
TWO_ARMS = """
<mujoco model="two arms">
  <option timestep="0.004"/>
  <default><joint damping="0.2" armature="0.02"/></default>
  <worldbody>
    <body name="column" pos="0.1 0.5 1">
      <joint name="lift" type="slide" axis="0 0 1" stiffness="300" springref="0.1"/>
      <geom name="column" type="cylinder" size="0.05 0.2" mass="4"/>
      <body name="left_arm" pos="0 0.2 0" quat="0.9238795325112867 0 0 0.3826834323650898">
        <joint name="left_shoulder" type="ball"/>
        <geom name="left_arm" type="capsule" fromto="0 0 0 0.3 0.1 0" size="0.03" mass="1"/>
        <body name="left_hand" pos="0.3 0.1 0">
          <joint name="left_grip" type="slide" axis="0 1 0" range="-0.02 0.05" limited="true"/>
          <joint name="left_wrist" type="hinge" axis="1 0 0"/>
          <geom name="left_hand" type="box" size="0.05 0.02 0.03" mass="0.3"/>
        </body>
      </body>
      <body name="right_arm" pos="0 -0.2 0" quat="0.9238795325112867 0 0 -0.3826834323650898">
        <joint name="right_shoulder" type="ball"/>
        <geom name="right_arm" type="capsule" fromto="0 0 0 0.3 -0.1 0" size="0.03" mass="1"/>
        <body name="right_hand" pos="0.3 -0.1 0">
          <joint name="right_grip" type="slide" axis="0 1 0" range="-0.05 0.02" limited="true"/>
          <joint name="right_wrist" type="hinge" axis="1 0 0"/>
          <geom name="right_hand" type="box" size="0.05 0.02 0.03" mass="0.3"/>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="left_coupling"><joint joint="left_grip" coef="1"/><joint joint="left_wrist" coef="0.1"/></fixed>
    <fixed name="right_coupling"><joint joint="right_grip" coef="-1"/><joint joint="right_wrist" coef="-0.1"/></fixed>
  </tendon>
  <actuator>
    <motor name="lift" joint="lift" gear="20"/>
    <motor name="right_twist" joint="right_shoulder" gear="0 0 2 0 0 0"/>
    <motor name="left_twist" joint="left_shoulder" gear="0 0 2 0 0 0"/>
    <motor name="left_pull" tendon="left_coupling" gear="1"/>
    <motor name="right_pull" tendon="right_coupling" gear="1"/>
  </actuator>
</mujoco>
"""

# Four legs about the vertical, nothing named.
HEXAPOD_LEG = """
<body pos="{x} {y} 0" euler="0 0 {angle}">
  <joint axis="0 1 0" range="-60 60" limited="true"/>
  <geom type="capsule" fromto="0 0 0 0.2 0 -0.1" size="0.03"/>
</body>
"""


def quadruped(*, trunk: str = "", foot: str = "", calf: str = "", gain: str = "20") -> str:
    """A four-legged robot; every argument plants something: trunk attributes, foot friction, calf joint, gain."""
    return QUADRUPED.format(trunk=trunk, foot=foot, calf=calf, gain=gain)


def nameless_star(legs: int) -> str:
    """A free body with legs at equal angles, nothing in it named."""
    from math import cos, pi, sin

    made = [
        HEXAPOD_LEG.format(x=0.1 * cos(2 * pi * k / legs), y=0.1 * sin(2 * pi * k / legs), angle=360 * k / legs)
        for k in range(legs)
    ]
    motors = "".join(f'<motor joint="j{k}"/>' for k in range(legs))
    named = "".join(leg.replace("<joint", f'<joint name="j{k}"', 1) for k, leg in enumerate(made))
    return (
        "<mujoco><worldbody><geom type='plane' size='0 0 1'/><body pos='0 0 0.5'><freejoint/>"
        f"<geom type='cylinder' size='0.1 0.03'/>{named}</body></worldbody><actuator>{motors}</actuator></mujoco>"
    )
