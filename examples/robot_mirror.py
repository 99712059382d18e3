"""A robot and its mirror: derived from the MuJoCo model, compared side by side, and verified in simulation.

python examples/robot_mirror.py                # needs the extra "mujoco"

Gymnasium's walker is symmetric. A second walker has 5% less damping in one knee. The comparison of the model finds this
without simulation, and verification in simulation then fails.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import gymnasium as gym
from gymnasium.envs.mujoco import mujoco_env

import symcheck as sc

MODEL = Path(mujoco_env.__file__).parent / "assets" / "walker2d_v5.xml"


def worn_model(folder: Path) -> Path:
    """The walker's model with slightly less damping in the left knee."""
    text = MODEL.read_text()
    joint = 'name="leg_left_joint"'
    if text.count(joint) != 1:
        raise LookupError(f"{MODEL} names {joint} {text.count(joint)} times; this example expects one")
    path = folder / "worn_walker.xml"
    path.write_text(text.replace(joint, f'{joint} damping="0.095"'))
    return path


def main(samples: int = 2000) -> dict[str, tuple[int, str]]:
    """For both walkers: the differences of the model, and the verdict in simulation."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, model in (("walker", MODEL), ("worn walker", worn_model(Path(folder)))):

            def env(model: Path = model) -> gym.Env:  # type: ignore[type-arg]
                return gym.make("Walker2d-v5", xml_file=str(model))

            mirror = sc.mujoco.mirror(env())
            report = sc.verify_env(env, mirror, samples=samples)
            failed = [item.name for item in report.properties if item.verdict == "failed"]
            print(f"{name}: {mirror.findings()}\n  in simulation: {report.verdict} {', '.join(failed)}".rstrip())
            found[name] = (len(mirror.differences), report.verdict)
    return found


if __name__ == "__main__":
    main()
