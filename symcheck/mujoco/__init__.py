"""Symmetries of robots, derived from their MuJoCo models (extra `mujoco`); see `docs/robots.md`.

>>> from symcheck import mujoco as robots
>>> walker = robots.mirror("Walker2d-v5")
>>> walker.pairs["joint 'thigh_joint'"]
"joint 'thigh_left_joint'"
"""

from symcheck.mujoco.differences import Difference
from symcheck.mujoco.mirror import RobotSymmetry, mirror, mirrors, state_labels, turn

__all__ = ["Difference", "RobotSymmetry", "mirror", "mirrors", "state_labels", "turn"]
