"""MJCF read without MuJoCo: includes, default classes, frames, then arrays under the names of `mujoco.MjModel`."""
