"""A collected batch against a plain loop over every environment and step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from reference_agents.environments.vector import Step
from reference_agents.learning.distributions import Categorical
from reference_agents.learning.observation_scale import ObservationScale
from reference_agents.learning.reward_scale import RewardScale
from reference_agents.learning.rollout import Collector, FinishedEpisodes, Rollout
from reference_agents.randomness import Purpose, UniformStreams
from reference_agents.settings import Settings

SEEDS, PLACES, HORIZON = (3, 8), (2, 3), 6
SETTINGS = Settings(
    environments=3, horizon=HORIZON, minibatches=2, decorrelation_steps=0, discount=0.9, gae_lambda=0.8,
)  # fmt: skip


class Scripted:
    """A vector environment whose steps are written down in advance; it remembers the actions that it was given."""

    observation_shape, action_numbers = (3,), 1

    def __init__(self, *, lives: bool = False) -> None:
        drawn, length = np.random.default_rng(0), 2 * HORIZON
        self.observations = drawn.normal(2.0, 3.0, (length + 1, *PLACES, 3)).astype(np.float32)
        self.finals = drawn.normal(2.0, 3.0, (length, *PLACES, 3)).astype(np.float32)
        self.rewards = drawn.normal(5.0, 3.0, (length, *PLACES)).astype(np.float32)
        self.terminated, self.truncated = (drawn.random((length, *PLACES)) < 0.2 for _ in range(2))
        self.scores = 10.0 * self.rewards if lives else None
        self.games = self.terminated & (drawn.random((length, *PLACES)) < 0.5) if lives else None
        self.actions: list[np.ndarray[Any, Any]] = []

    def reset(self) -> np.ndarray[Any, Any]:
        return self.observations[0]

    def state(self) -> dict[str, Any]:
        return {"taken": len(self.actions)}

    def restore(self, state: dict[str, Any]) -> None:
        self.actions = [np.zeros(PLACES)] * state["taken"]

    def step(self, actions: np.ndarray[Any, Any]) -> Step:
        t = len(self.actions)
        self.actions.append(actions)
        return Step(
            self.observations[t + 1], self.finals[t], self.rewards[t], self.terminated[t], self.truncated[t],
            None if self.scores is None else self.scores[t], None if self.games is None else self.games[t],
        )  # fmt: skip


class Linear:
    """Two logits and a value, linear in the observation."""

    def forward(self, x: torch.Tensor, *, keep: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        weights = torch.tensor([[0.3, -0.2, 0.5], [-0.1, 0.4, 0.2], [0.25, 0.5, -1.0]], dtype=x.dtype)
        numbers = x @ weights
        return numbers[..., :2], numbers[..., 2]


def _collector(environment: Any, settings: Settings, scale: ObservationScale | None = None) -> Collector:
    return Collector(environment, SEEDS, settings, Categorical(), torch.device("cpu"), scale)


def _by_hand(
    script: Scripted, start: int, settings: Settings, shift: np.ndarray[Any, Any], deviations: np.ndarray[Any, Any]
) -> dict[str, np.ndarray[Any, Any]]:
    """Advantages, returns and shown observations of a batch, one environment at a time."""
    whole = range(start, start + HORIZON)
    made = {name: np.zeros((*PLACES, HORIZON)) for name in ("advantages", "returns")}
    shown = np.zeros((*PLACES, HORIZON, 3))
    for run, place in np.ndindex(PLACES):

        def value(x: np.ndarray[Any, Any], run: int = run) -> float:
            seen = torch.from_numpy((x.astype(np.float64) - shift[0][run]) * shift[1][run])
            return float(Linear().forward(seen)[1])

        errors, ends = [], []
        for t in whole:
            x, after = script.observations[t, run, place], script.observations[t + 1, run, place]
            shown[run, place, t - start] = (x - shift[0][run]) * shift[1][run]
            cut, done = script.truncated[t, run, place], script.terminated[t, run, place]
            following = value(script.finals[t, run, place] if cut and not done else after)
            if done or (cut and settings.time_limit_is_terminal):
                following = 0.0
            reward = script.rewards[t, run, place] / deviations[run]
            errors.append(reward + settings.discount * following - value(x))
            ends.append(cut or done)
        for k, t in enumerate(whole):
            total, decay = 0.0, 1.0
            for later in range(k, HORIZON):
                total += decay * errors[later]
                decay *= settings.discount * settings.gae_lambda
                if ends[later]:
                    break
            made["advantages"][run, place, k] = total
            made["returns"][run, place, k] = total + value(script.observations[t, run, place])
    return {**made, "observations": shown}


@pytest.mark.parametrize("scaled_observations", [False, True], ids=["raw", "normalised"])
@pytest.mark.parametrize("scaled_rewards", [False, True], ids=["rewards", "scaled rewards"])
@pytest.mark.parametrize("terminal", [False, True], ids=["time limits bootstrap", "time limits end"])
def test_a_batch_is_what_a_plain_loop_collects(terminal: bool, scaled_rewards: bool, scaled_observations: bool) -> None:
    settings = SETTINGS.with_changes(time_limit_is_terminal=terminal, normalise_returns=scaled_rewards)
    script = Scripted()
    scale, ours = (ObservationScale(2, 3, None) if scaled_observations else None for _ in range(2))
    collector, rewards = _collector(script, settings, scale), RewardScale(2, 3, settings.discount)
    uniforms = UniformStreams(SEEDS, Purpose.ACTIONS, (3,))
    for start in (0, HORIZON):
        rollout: Rollout = collector.collect(Linear())  # type: ignore[arg-type]
        if ours is not None:
            ours.add(script.observations[start])
            ours.apply()
        for t in range(start, start + HORIZON):
            rewards.add(script.rewards[t], script.terminated[t] | script.truncated[t])
            if ours is not None:
                ours.add(script.observations[t + 1])
        plain = np.stack([np.zeros((2, 3)), np.ones((2, 3))])
        shift = plain if ours is None else np.stack([ours.shift, ours.factor])
        deviations = rewards.deviations() if scaled_rewards else np.ones(2)
        expected = _by_hand(script, start, settings, shift, deviations)
        assert not rollout.kept
        # (runs, time * environments): the loop has environments first. Float32 sums of six terms of order ten.
        for name, made in expected.items():
            flat = made.swapaxes(1, 2).reshape(2, -1, *made.shape[3:])
            np.testing.assert_allclose(getattr(rollout, name), flat, rtol=1e-4, atol=1e-4, err_msg=name)
        numbers = Linear().forward(rollout.observations)[0]
        by_step = numbers.reshape(2, HORIZON, 3, 2)
        drawn = [Categorical().sample(by_step[:, k], uniforms.next()) for k in range(HORIZON)]
        assert rollout.actions.tolist() == np.stack(drawn, 1).reshape(2, -1).tolist()
        assert np.array_equal(np.stack(script.actions[start:]), np.stack(drawn))
        probability = torch.log_softmax(numbers, -1).gather(-1, rollout.actions[..., None])[..., 0]
        assert torch.allclose(rollout.log_probabilities, probability, atol=1e-6)


@pytest.mark.parametrize("lives", [False, True], ids=["episodes", "games of several lives"])
def test_the_reported_returns_are_those_of_whole_games_in_their_own_units(lives: bool) -> None:
    script = Scripted(lives=lives)
    collector = _collector(script, SETTINGS.with_changes(normalise_returns=True))
    collector.collect(Linear())  # type: ignore[arg-type]
    expected = []
    for run in range(2):
        returns = []
        for place in range(3):
            total = 0.0
            for t in range(HORIZON):
                total += float((script.rewards if script.scores is None else script.scores)[t, run, place])
                ended = script.terminated[t, run, place] | script.truncated[t, run, place]
                if ended if script.games is None else script.games[t, run, place]:
                    returns.append(total)
                    total = 0.0
        expected.append(np.mean(returns) if returns else np.nan)
    assert np.isfinite(expected).any()
    np.testing.assert_allclose(collector.finished_returns(), expected, rtol=1e-6)


@pytest.mark.parametrize("scaled", [False, True], ids=["raw", "scaled"])
def test_a_collector_goes_on_from_a_saved_state(scaled: bool) -> None:
    settings = SETTINGS.with_changes(normalise_returns=scaled)
    one, other = (_collector(Scripted(), settings, ObservationScale(2, 3, None) if scaled else None) for _ in range(2))
    one.collect(Linear())  # type: ignore[arg-type]
    other.restore(one.state())
    after, again = (collector.collect(Linear()) for collector in (one, other))  # type: ignore[arg-type]
    for name in ("observations", "actions", "log_probabilities", "advantages", "returns"):
        assert torch.equal(getattr(after, name), getattr(again, name)), name
    assert one.finished_returns().tolist() == other.finished_returns().tolist()


def test_values_after_time_limits_are_computed_only_in_steps_in_which_one_ended_an_episode() -> None:
    script, network, asked = Scripted(), Linear(), []
    forward = network.forward
    network.forward = lambda x, **more: asked.append(x) or forward(x, **more)  # type: ignore[func-returns-value,method-assign]
    script.truncated[:HORIZON] = False
    script.truncated[1, 0, 2] = script.truncated[4, 1, 1] = True
    script.terminated[:HORIZON, :, 1:] = False
    _collector(script, SETTINGS.with_changes(time_limit_is_terminal=False)).collect(network)  # type: ignore[arg-type]
    assert len(asked) == HORIZON + 2 + 1


class Restarting(Scripted):
    def restart(self, chosen: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return self.observations[0]

    def random_actions(self, uniforms: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return uniforms[..., 0]


@pytest.mark.parametrize(("steps", "begun"), [(0, False), (1, True)])
def test_episodes_that_decorrelation_cut_short_are_not_counted(steps: int, begun: bool) -> None:
    collector = _collector(Restarting(), SETTINGS.with_changes(decorrelation_steps=steps))
    assert (collector.state()["finished"]["partial"].numpy() == begun).all()


def test_by_default_the_first_episode_counts() -> None:
    finished = FinishedEpisodes(1, 1)
    finished.add(np.array([[2.0]], np.float32), np.array([[True]]))
    assert finished.take().tolist() == [2.0]
