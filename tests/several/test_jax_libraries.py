"""Environments of four JAX libraries: one cart in the words of each, right and with a wind."""

import sys

import jax_standin
import numpy as np
import pytest
from pure_carts import Brax, Gymnax, Jumanji, Pgx, TwoPlayers
from typer.testing import CliRunner

import symcheck as sc
from symcheck.cli.main import app
from symcheck.envs.jax_batch import JaxBatch
from symcheck.envs.jax_libraries import library_of
from symcheck.errors import TargetError

C2 = sc.groups.cyclic(2)
PUSH = [[1, 0]]
CARTS = {
    "gymnax": (Gymnax, sc.Symmetry("mirror", C2, [[-1, -1]], PUSH, state=[[-1, -1, 1]])),
    "brax": (Brax, sc.Symmetry("mirror", C2, [[-1, -1]], [[-1]], state=[[-1, -1]])),
    "jumanji": (Jumanji, sc.Symmetry("mirror", C2, [{"cart": [-1, -1], "sides": [1, 0]}], PUSH, state=[[-1, -1, 1]])),
    # Leaves: place, speed, time, what is seen of them, the reward and how the step ended.
    "pgx": (Pgx, sc.Symmetry("mirror", C2, [[-1, -1]], PUSH, state=[[-1, -1, 1, -1, -1, 1, 1, 1]])),
}


@pytest.fixture(autouse=True)
def _without_jax(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", jax_standin.module())
    monkeypatch.setattr("symcheck.envs.jax_batch._SLOTS", 20)


@pytest.mark.parametrize("library", CARTS)
def test_a_cart_passes_pair_by_pair_and_one_in_the_wind_fails(library):
    make, mirror = CARTS[library]
    assert library_of(make()) == library
    report = sc.verify_env(make, mirror, samples=60)
    assert report.verdict == "passed", report.to_text()
    assert report["transition_invariance"].method == "paired"
    faulty = sc.verify_env(lambda: make(0.05), mirror, samples=60)
    assert faulty["transition_invariance"].verdict == "failed"


@pytest.mark.parametrize("library", CARTS)
def test_a_state_is_put_back_as_it_was_read(library):
    batch = JaxBatch(CARTS[library][0](), slots=3)
    batch.reset(seed=0)
    states, actions = batch.read_states(), np.zeros(batch.action_space.shape, batch.action_space.dtype)
    first = batch.step(actions)[1]
    batch.step(actions)
    batch.put_states(states)
    assert np.array_equal(batch.read_states(), states)
    assert np.array_equal(batch.step(actions)[1], first)


def test_many_pairs_are_screened_by_the_compiled_step():
    make, _ = CARTS["gymnax"]
    form = JaxBatch(make(), slots=4).batched_form()
    states = np.array([[0.1, 0.2, 0.0]] * 9)  # more than slots: pieces are joined
    assert form.step(states, np.ones(9, int)).observations.shape == (9, 2)
    assert np.allclose(form.observe(states), [0.1, 0.2])
    noisy = make()
    noisy.get_obs = lambda state, params=None, key=None: np.random.default_rng().normal(size=2).astype(np.float32)
    assert JaxBatch(noisy, slots=4).batched_form() is None


def test_a_game_of_two_players_is_sent_to_verify_game():
    with pytest.raises(TargetError, match="For two-player games of Pgx, use verify-game"):
        sc.verify_env(TwoPlayers(), CARTS["pgx"][1], samples=20)


@pytest.mark.parametrize("target", ["brax:ant", "jumanji:Snake-v1", "pgx:2048"])
def test_a_missing_library_ends_with_its_install_line(target, monkeypatch):
    monkeypatch.setitem(sys.modules, target.partition(":")[0], None)
    monkeypatch.setitem(sys.modules, "brax.envs", None)
    seen = CliRunner().invoke(app, ["verify-env", target, "--symmetry", "cartpole/mirror"])
    assert seen.exit_code == 2
    assert "symcheck[jax]" in " ".join(seen.output.split())
