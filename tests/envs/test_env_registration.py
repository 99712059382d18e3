"""Our environments are Gymnasium's, whichever package is imported first, and importing ours imports none of theirs."""

import subprocess
import sys

import gymnasium as gym
import pytest

from symcheck.envs import predator_prey, registration


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


MAKE = "print(type(gymnasium.make('symcheck/PredatorPrey-v0').unwrapped).__name__)"


@pytest.mark.parametrize("imports", ["import symcheck, gymnasium", "import gymnasium, symcheck"])
def test_either_order_of_imports_registers(imports):
    assert python(f"{imports}; {MAKE}") == "PredatorPreyEnv\n"


def test_gymnasium_keeps_its_own_loader_and_our_finder_is_gone():
    code = (
        "import sys, symcheck; assert 'gymnasium' not in sys.modules; import gymnasium, importlib.resources as r;"
        "print(r.files(gymnasium).joinpath('__init__.py').is_file(), 'exec_module' in vars(gymnasium.__loader__),"
        "any('symcheck' in type(f).__module__ for f in sys.meta_path))"
    )
    assert python(code) == "True False False\n"


def test_an_id_that_is_taken_is_left_alone():
    before = dict(gym.registry)
    registration.register()
    assert gym.registry == before


def test_the_grid_world_ends_after_its_limit():
    assert gym.registry["symcheck/PredatorPrey-v0"].max_episode_steps == predator_prey.EPISODE_LIMIT
