"""Every kind of page as our commands write it, each command once, in one folder that is indexed at the end."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from typer.testing import CliRunner

EXAMPLES = Path(__file__).parents[2] / "examples"
SOURCES = {
    "claim.toml": 'name = "one sign wrong"\ngroup = "cyclic(2)"\nobservation = [[-1, -1, -1, 1]]\naction = [[1, 0]]\n',
    "flip.toml": 'name = "flip"\ngroup = "cyclic(2)"\nobservation = ["flip_lr"]\naction = [[1, 0]]\n',
    "pyproject.toml": """
[[tool.symcheck.checks]]
env = "CartPole-v1"
symmetry = "cartpole/mirror"
samples = 200

[[tool.symcheck.checks]]
env = "CartPole-v1"
symmetry = "claim.toml"
samples = 200

[[tool.symcheck.checks]]
net = "networks.py:equivariant"
symmetry = "cartpole/mirror"
""",
    "screen.py": '''
import gymnasium as gym
import numpy as np


class Screen(gym.Env):
    """A dot on a row of pixels; it is worth a little more on the right."""

    observation_space = gym.spaces.Box(0, 255, (6, 8), np.uint8)
    action_space = gym.spaces.Discrete(2)

    def _show(self):
        picture = np.zeros((6, 8), np.uint8)
        picture[3, self.place] = 255
        return picture

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = int(self.np_random.integers(8))
        return self._show(), {}

    def step(self, action):
        self.place = min(max(self.place + (1 if action else -1), 0), 7)
        return self._show(), 0.1 * self.place, False, False, {}

    def get_state(self):
        return self._show()

    def set_state(self, state):
        self.place = int(np.asarray(state)[3].argmax())
''',
}
DIAGONAL = '{"desc": ["SFFF", "FFHF", "FHFF", "FFFG"]}'
LAKE = ("FrozenLake-v1", "--symmetry", "frozenlake/transpose")
NETWORK = ("--symmetry", "cartpole/mirror", "--samples", "500")
# What is typed, without the option that names the page; each with a JSON report where the command writes one.
SYMCHECK: dict[str, tuple[str, ...]] = {
    "env_passed": ("verify-env", "CartPole-v1", "--samples", "2000"),
    "env_failed_drawn": ("verify-env", "CartPole-v1", "--symmetry", "claim.toml", "--samples", "500"),
    "env_failed_rendered": ("verify-env", *LAKE),
    "env_failed_image": ("verify-env", "screen.py:Screen", "--symmetry", "flip.toml", "--samples", "200"),
    "env_failed_mujoco": ("verify-env", "HalfCheetah-v5", "--symmetry", "half-cheetah/front-back", "--samples", "50"),
    "env_accepted": ("verify-env", *LAKE, "--accept-gap", "2"),
    "env_undecided": ("verify-env", "CartPole-v1", "--max-time", "0.000001"),
    "net_proved": ("verify-net", "networks.py:equivariant", *NETWORK),
    "net_failed": ("verify-net", "networks.py:one_weight_off", *NETWORK),
    "net_flips": ("verify-net", "networks.py:mlp", *NETWORK),
    "several_checks": ("run",),
    "search_states": ("discover", "CartPole-v1", "--samples", "300"),
    "search_table": ("discover", "FrozenLake-v1", "--env-kwargs", DIAGONAL),
    "search_nothing": ("discover", "FrozenLake-v1"),
    "basis_vectors": ("basis", "cartpole/mirror"),
    "basis_images": ("basis", "predator-prey/rotations"),
}
AGENTS = ("curves", "comparison")
WRITTEN = (*SYMCHECK, *AGENTS, "homomorphism", "index")


def write_pages(folder: Path) -> dict[str, Path]:
    """Run every command in `folder`.

    Returns:
        Its page for each name of `WRITTEN`.
    """
    for name, text in SOURCES.items():
        (folder / name).write_text(text, encoding="utf-8")
    shutil.copy(EXAMPLES / "cartpole_networks.py", folder / "networks.py")
    with contextlib.chdir(folder):
        for name, words in SYMCHECK.items():
            data = () if words[0] == "basis" else ("--json", f"{name}.json")
            _symcheck([*words, "--html", f"{name}.html", *data])
        _agents()
        _homomorphism()
        _symcheck(["report", "."])
    return {name: folder / f"{name}.html" for name in WRITTEN}


def _symcheck(words: Sequence[str]) -> None:
    from symcheck.cli.main import app

    result = CliRunner().invoke(app, list(words))
    assert result.exit_code in (0, 1, 3), (words, result.output, result.exception)


def _agents() -> None:
    """Two networks trained for a moment, one of them twice, and the pages that draw them."""
    from reference_agents.cli.app import app

    train = ["train", "cartpole", "--seeds", "2", "--steps", "400", "--quiet", "--out"]
    for folder, network in (("one", "equivariant"), ("one", "mlp"), ("two", "mlp")):
        _ran(CliRunner().invoke(app, [*train, folder, "--network", network]))
    _ran(CliRunner().invoke(app, ["report", "one"]))
    shutil.move("one/report.html", "curves.html")
    _ran(CliRunner().invoke(app, ["compare", "one", "two", "--out", "comparison.html"]))


def _ran(result: object) -> None:
    assert getattr(result, "exit_code", None) == 0, (getattr(result, "output", ""), getattr(result, "exception", None))


def _homomorphism() -> None:
    from symcheck.mdp import torus_chase

    torus_chase().minimal_homomorphism().save_html("homomorphism.html")
