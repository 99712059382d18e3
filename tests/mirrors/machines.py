"""Small robots, layouts and right mirror functions written by hand, for planting one fault at a time."""

import numpy as np
import torch

_LEG = """
<body name="{n}_hip" pos="{x} {y} 0">
  <joint name="{n}_hip" axis="1 0 0"/><geom size=".03"/>
  <body name="{n}_knee" pos="0 0 -.1">
    <joint name="{n}_knee" axis="0 1 0"/><geom size=".02"/>
    <body name="{n}_foot" pos="0 0 -.1"><geom name="{n}_foot" size=".02"/></body>
  </body>
</body>"""
BODY = """<mujoco><worldbody><body name="base" pos="0 0 1"><freejoint/>
<geom type="box" size=".2 .1 .05"/>{}</body></worldbody></mujoco>"""
FEET = ("FL", "FR", "RL", "RR")


def _legs(names, place):
    return "".join(_LEG.format(n=n, x=place[n][0], y=place[n][1]) for n in names)


_PLACES = {"FL": (0.2, 0.1), "FR": (0.2, -0.1), "RL": (-0.2, 0.1), "RR": (-0.2, -0.1), "L": (0, 0.1), "R": (0, -0.1)}
QUADRUPED = BODY.format(_legs(FEET, _PLACES))
SQUARE = BODY.replace(".2 .1 .05", ".2 .2 .05").format(
    "".join(
        f'<body name="leg{k}" pos="{0.2 * x} {0.2 * y} 0" euler="0 0 {90 * k}"><joint name="hip{k}" axis="0 1 0"/>'
        f'<geom type="capsule" fromto="0 0 0 .2 0 -.1" size=".02"/></body>'
        for k, (x, y) in enumerate(((1, 0), (0, 1), (-1, 0), (0, -1)))
    )
)
WAIST = '<body name="head" pos="0 0 .2"><joint name="waist" axis="0 0 1"/><geom size=".05"/></body>'
BIPED = BODY.format(_legs(("L", "R"), _PLACES) + WAIST)


def signed(index, sign):
    index, sign = torch.tensor(index), torch.tensor(sign, dtype=torch.float32)
    return lambda x: x[..., index] * sign


def side_by_side(*parts):
    """One map from (width, map) parts."""

    def moved(x):
        out, start = [], 0
        for width, part in parts:
            out.append(part(x[..., start : start + width]))
            start += width
        return torch.cat(out, -1)

    return moved


def batched(*maps):
    """A mirror function of rsl_rl's form from pairs (observation map, action map), the identity's block put first."""

    def augment(env, obs, actions, obs_type="policy"):
        observed = None if obs is None else torch.cat([obs, *(o(obs) for o, _ in maps)])
        return observed, None if actions is None else torch.cat([actions, *(a(actions) for _, a in maps)])

    return augment


POLAR, AXIAL, COMMAND = signed([0, 1, 2], [1, -1, 1]), signed([0, 1, 2], [-1, 1, -1]), signed([0, 1, 2], [1, -1, -1])
POLAR_YZ, AXIAL_YZ, COMMAND_YZ = (
    signed([0, 1, 2], [-1, 1, 1]),
    signed([0, 1, 2], [1, -1, -1]),
    signed([0, 1, 2], [-1, 1, -1]),
)


def scan_flip(rows, cols, *axes):
    return lambda x: x.reshape(*x.shape[:-1], rows, cols).flip(axes).reshape(x.shape)


# Joints of BIPED in the order of the file: L_hip (roll), L_knee (pitch), R_hip, R_knee, waist (yaw).
BIPED_JOINTS = signed([2, 3, 0, 1, 4], [-1, 1, -1, 1, -1])
# Joints of QUADRUPED: hip and knee of FL, FR, RL, RR.
QUAD_XZ = signed([2, 3, 0, 1, 6, 7, 4, 5], [-1, 1] * 4)
QUAD_YZ = signed([4, 5, 6, 7, 0, 1, 2, 3], [1, -1] * 4)
SWAP_FEET = signed([1, 0, 3, 2], [1] * 4)
EYE = np.eye


def layout(*terms, group="policy", **rest):
    return {"observation": {group: [{"term": t} if isinstance(t, str) else t for t in terms]}, **rest}
