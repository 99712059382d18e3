"""The games of all environments of all runs, in one C++ vectoriser.

Images remain bytes until they are on the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reference_agents.environments.vector import Step
from reference_agents.randomness import Purpose, stream_seeds
from symcheck.array_types import Array, Bools, Floats
from symcheck.envs.atari.vector import AtariVector


class AtariGames:
    """The games of all runs; each run's games depend only on its own seed and actions.

    During training, a lost life ends the episode and rewards are clipped to their signs; the reported score is that of
    whole games. Evaluations play whole games for the score.

    Args:
        game: "pong" or "breakout".
        seeds: one seed per run.
        environments: the number of environments of each run.
        purpose: the purpose of the stream from which the games' seeds come.
        index: the index of the stream among those of that purpose.
        symmetrized: whether games are reflected at random (see `AtariVector`).
        threads: the number of threads of the vectoriser; 0 for one per core.
    """

    observation_shape: tuple[int, ...] = (4, 80, 80)
    action_numbers: int = 1

    def __init__(
        self,
        game: str,
        seeds: Sequence[int],
        environments: int,
        *,
        purpose: Purpose = Purpose.ENVIRONMENT,
        index: int = 0,
        symmetrized: bool = False,
        threads: int = 0,
    ) -> None:
        self._shape = (len(seeds), environments)
        self._seeds = [game_seed for seed in seeds for game_seed in stream_seeds(seed, purpose, index, environments)]
        # Clipped rewards and one episode per life are for training only; evaluations play whole games for the score.
        learns = purpose is Purpose.ENVIRONMENT
        self._games = AtariVector(
            game,
            len(self._seeds),
            symmetrized=symmetrized,
            clip_rewards=learns,
            episodic_life=learns,
            num_threads=threads,
        )

    def reset(self) -> Array:
        """Start the first game of every environment; images (runs, environments, 4, 80, 80), uint8."""
        # The vectoriser has a single axis of games, in run-major order; a reshape separates the runs.
        shown: Array = self._runs(self._games.reset(seed=self._seeds)[0])
        return shown

    def restart(self, where: Bools) -> Array:
        """Abandon some games and begin new ones, because a game cannot pause while others continue."""
        shown = self._games.restart(where.reshape(-1)) if where.any() else self._games.observations
        of_runs: Array = self._runs(shown)
        return of_runs

    def step(self, actions: Array, *, active: Bools | None = None) -> Step:
        """Take one action in every environment.

        Raises:
            NotImplementedError: some environments are inactive, which the vectoriser does not support.
        """
        if active is not None and not active.all():
            raise NotImplementedError("some games of a vectoriser cannot pause while others continue")
        shown, rewards, terminated, truncated, info = self._games.step(actions.reshape(-1))
        # If no episode ended, the final observations equal the current ones.
        final = info.get("final_obs", shown)
        return Step(
            self._runs(shown),
            self._runs(final),
            self._runs(rewards),
            self._runs(terminated),
            self._runs(truncated),
            self._runs(info["score"]),
            self._runs(info["game_over"]),
        )

    def random_actions(self, uniforms: Floats) -> Array:
        """Uniformly random actions."""
        drawn: Array = (len(self._games.game.actions) * uniforms[..., 0]).astype(np.int64)
        return drawn

    def state(self) -> dict[str, Any]:
        """The complete state of the games."""
        return self._games.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state of the same seeds by replaying the current games up to that state."""
        self._games.restore(state)

    def _runs(self, array: Any) -> Any:
        # (runs * environments, ...) to (runs, environments, ...).
        return array.reshape(*self._shape, *array.shape[1:])
