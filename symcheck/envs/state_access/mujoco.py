"""Built-in state access for Gymnasium's MuJoCo environments: joint positions and velocities, one vector.

The simulator's other data (warm starts, contact forces, the last control) is reset each time a state is set, on both
sides alike; otherwise the same state would step differently depending on what was set before. The symmetry says how
the vector (qpos, qvel) transforms: `Symmetry(..., state=[...])`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symcheck.envs.state_access.record import StateAccess

_BASE = "gymnasium.envs.mujoco.mujoco_env:MujocoEnv"


def built_in(env: Any) -> StateAccess | None:
    """The built-in access of an unwrapped MuJoCo environment, or None for any other class.

    Args:
        env: the unwrapped environment.

    Returns:
        Access whose state is qpos followed by qvel, float64.
    """
    if not any(f"{base.__module__}:{base.__name__}" == _BASE for base in type(env).__mro__):
        return None
    split = int(env.model.nq)

    def set_state(target: Any, state: Any) -> None:
        import mujoco

        vector = np.array(state, dtype=np.float64)
        mujoco.mj_resetData(target.model, target.data)
        target.set_state(vector[:split], vector[split:])

    def get_state(target: Any) -> Any:
        return np.concatenate([target.data.qpos, target.data.qvel])

    return StateAccess(set_state, "built in for MuJoCo: qpos and qvel", get=get_state)
