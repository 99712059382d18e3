"""Pure JAX environments of gymnax, stepped in compiled batches: right ones pass, a planted fault fails."""

import sys

import pytest
from typer.testing import CliRunner

import symcheck as sc
from symcheck.cli.main import app
from symcheck.envs.jax_batch import JaxBatch
from symcheck.envs.jax_libraries import library_of


def mirror():
    # The state's leaves: time, then position, velocity, angle and its velocity.
    return sc.Symmetry("mirror", sc.groups.cyclic(2), [[-1] * 4], [[1, 0]], state=[[1, -1, -1, -1, -1]])


def windy():
    """gymnax's cart-pole with a wind that pushes the cart to the right."""
    pytest.importorskip("gymnax")
    from gymnax.environments.classic_control.cartpole import CartPole

    class Windy(CartPole):
        def step_env(self, key, state, action, params):
            observation, after, *others = super().step_env(key, state, action, params)
            after = after.replace(x_dot=after.x_dot + 0.01)
            return observation.at[1].add(0.01), after, *others

    return Windy()


def test_a_batch_of_cart_poles_passes_and_one_with_wind_fails():
    pytest.importorskip("gymnax")
    report = sc.verify_env("gymnax:CartPole-v1", mirror(), samples=400)
    assert report.verdict == "passed", report.to_text()
    assert report["transition_invariance"].method == "paired"
    faulty = sc.verify_env(windy, mirror(), samples=400)
    assert faulty["transition_invariance"].verdict == "failed"


def test_states_of_a_batch_are_put_back_as_they_were_read():
    pytest.importorskip("gymnax")
    import gymnax
    import numpy as np

    env, _ = gymnax.make("Pendulum-v1")
    assert library_of(env) == "gymnax"
    batch = JaxBatch(env, slots=3)
    batch.reset(seed=0)
    states = batch.read_states()
    actions = np.zeros(batch.action_space.shape, np.float32)
    first, *_ = batch.step(actions)
    batch.put_states(states)
    again, *_ = batch.step(actions)
    assert np.array_equal(first, again)


def test_a_missing_gymnax_ends_with_its_install_line(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "gymnax", None)
    seen = CliRunner().invoke(app, ["verify-env", "gymnax:CartPole-v1", "--symmetry", "cartpole/mirror"])
    assert seen.exit_code == 2
    assert "symcheck[jax]" in " ".join(seen.output.split())
