"""Symmetries of robots, derived from their MuJoCo models (extra `mujoco`); see `docs/robots.md`.

>>> from symcheck import mujoco as robots
>>> walker = robots.mirror("Walker2d-v5")
>>> walker.pairs["joint 'thigh_joint'"]
"joint 'thigh_left_joint'"
"""

from symcheck.mujoco.differences import Difference
from symcheck.mujoco.mirror import mirror, mirrors, state_labels, turn
from symcheck.mujoco.robot_symmetry import RobotSymmetry

__all__ = ["Difference", "RobotSymmetry", "mirror", "mirrors", "state_labels", "turn"]
