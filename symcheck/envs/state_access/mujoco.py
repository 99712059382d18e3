"""Built-in state access for Gymnasium's MuJoCo environments: joint positions and velocities in one vector.

If a model has actuators with an internal state, their activations follow, and then moving mocap bodies (positions, then
quaternions).

The simulator's other data (warm starts, contact forces, the last control) is reset each time a state is set, on both
sides; otherwise the step would depend on the previously set state. `Symmetry(..., state=[...])` gives the action on the
vector (qpos, qvel).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symcheck.envs.state_access.record import Origin, StateAccess
from symcheck.statements.statement import Statement

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
    model = env.model
    split, end = int(model.nq), int(model.nq + model.nv)
    # Activations, three numbers of each mocap body's position and four of its quaternion.
    extra = (int(model.na), 3 * int(model.nmocap), 4 * int(model.nmocap))

    def set_state(target: Any, state: Any) -> None:
        import mujoco

        vector = np.array(state, dtype=np.float64)
        # Call this first, because it sets activations and mocap bodies to the model's defaults.
        mujoco.mj_resetData(target.model, target.data)
        data, rest = target.data, vector[end:]
        data.act[:] = rest[: extra[0]]
        data.mocap_pos[:] = rest[extra[0] : extra[0] + extra[1]].reshape(-1, 3)
        data.mocap_quat[:] = rest[extra[0] + extra[1] :].reshape(-1, 4)
        target.set_state(vector[:split], vector[split:end])

    def get_state(target: Any) -> Any:
        data = target.data
        if not any(extra):
            return np.concatenate([data.qpos, data.qvel])
        return np.concatenate([data.qpos, data.qvel, data.act, data.mocap_pos.ravel(), data.mocap_quat.ravel()])

    return StateAccess(
        set_state,
        "MuJoCo: qpos and qvel",
        Origin.BUILT_IN,
        get=get_state,
        inexact=(Statement("inexact_solver"),),
    )


def reads_as_built_in(env: Any, access: StateAccess) -> bool:
    """Whether an access reads, in any order, the same numbers as the built-in access.

    Args:
        env: the unwrapped environment.
        access: any state access, built-in or your own.

    Returns:
        False for other classes.
    """
    known = built_in(env)
    if known is None or known.get is None or access.get is None:
        return False
    held = np.asarray(access.get(env))
    whole = np.asarray(known.get(env))
    return bool(held.size == whole.size and np.array_equal(np.sort(held, axis=None), np.sort(whole, axis=None)))
