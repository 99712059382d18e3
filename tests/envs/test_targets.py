"""Naming an environment: ids, instances, factories, files; and what is wrong with those that do not work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from symcheck.envs.targets import resolve_environment
from symcheck.errors import MissingExtraError, TargetError


def make_pole() -> gym.Env[Any, Any]:
    return gym.make("CartPole-v1")


def test_an_id_is_built_anew_each_time() -> None:
    target = resolve_environment("CartPole-v1")
    assert target.env_id == target.label == "CartPole-v1"
    assert target.make() is not target.make()


def test_an_instance_is_copied_and_never_stepped() -> None:
    env = gym.make("CartPole-v1")
    obs, _ = env.reset(seed=0)
    target = resolve_environment(env)
    copy = target.make()
    copy.reset(seed=9)
    copy.step(0)
    assert target.env_id == "CartPole-v1"
    assert env.unwrapped.state == pytest.approx(obs, rel=1e-6)


def test_factories_and_files_are_called(tmp_path: Path) -> None:
    assert resolve_environment(make_pole).env_id == "CartPole-v1"
    path = tmp_path / "mine.py"
    path.write_text("import gymnasium\ndef env(): return gymnasium.make('Pendulum-v1', g=9.81)\n")
    target = resolve_environment(f"{path}:env")
    assert target.make().unwrapped.g == 9.81


def test_keyword_arguments_reach_the_environment() -> None:
    assert resolve_environment("Pendulum-v1", env_kwargs={"g": 3.0}).make().unwrapped.g == 3.0


@pytest.mark.parametrize(
    ("given", "kwargs", "message"),
    [
        ("CartPol-v1", {}, "expected a Gymnasium id.* got 'CartPol-v1'.*Did you mean 'CartPole-v"),
        ("cartpole", {}, "no such id is registered"),
        ("CartPole-v99", {}, "got 'CartPole-v99'"),
        ("no_such_module_anywhere:make", {}, "no module named 'no_such_module_anywhere'"),
        ("nowhere.py:make", {}, "no such file"),
        ("math:pie", {}, "math does not define 'pie'"),
        ("math:pi", {}, "expected an environment, or a factory without arguments"),
        ("math:sqrt", {}, "building math:sqrt raised TypeError"),
        (
            "builtins:dict",
            {},
            "expected builtins:dict to return a gymnasium.Env or a gymnasium.vector.VectorEnv, got builtins.dict",
        ),
        ("CartPole-v1", {"gravitas": 1}, "building CartPole-v1 raised TypeError"),
        (gym.make("CartPole-v1"), {"g": 1}, "an environment that is already built takes no keyword arguments"),
        (7, {}, "is 7"),
    ],
)
def test_what_cannot_be_an_environment_is_named(given: Any, kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(TargetError, match=message):
        resolve_environment(given, env_kwargs=kwargs)


@pytest.mark.parametrize(("env_id", "extra"), [("Ant-v5", "mujoco"), ("LunarLander-v3", "box2d")])
def test_gymnasiums_own_environments_name_the_extra_that_they_need(
    monkeypatch: pytest.MonkeyPatch, env_id: str, extra: str
) -> None:
    def not_installed(*_: Any, **__: Any) -> None:
        raise gym.error.DependencyNotInstalled("run `pip install swig`")

    monkeypatch.setattr(gym, "make", not_installed)
    with pytest.raises(MissingExtraError, match=rf"{env_id} needs .*pip install 'symcheck\[{extra}\]'"):
        resolve_environment(env_id)


def test_an_instance_with_functions_that_name_it_is_stepped_itself() -> None:
    """A copy would share them: `env.get_state = lambda: env.x` reads the original's state."""
    env = gym.make("CartPole-v1")
    assert resolve_environment(env).make() is not env
    env.unwrapped.read = lambda: env.unwrapped.state  # type: ignore[attr-defined]
    assert resolve_environment(env).make() is env
