"""Vectorised games with the paper's preprocessing: ale-py's C++ vectoriser, and one pass over its screens.

Before a game, the vectoriser presses fire once and noop up to 28 times; it repeats each action for four frames and
takes the maximum of the last two. Each step returns one screen at full resolution, which is reduced and stacked here;
that costs less than resizing and stacking in the vectoriser. A lost life ends the episode for the learner, but not the
game; if fire serves the ball, the next step presses fire and ignores the given action.

Without sticky actions a game is a function of the number of no-ops and of the actions: `state` contains the seeds, the
counts and the actions of the current games, and `restore` plays these actions again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector.utils import batch_space

from symcheck.array_types import Bools, Bytes
from symcheck.envs.atari.checks import checked_games, checked_reduction, spread_seeds, whole_number
from symcheck.envs.atari.games import (
    FIELD,
    FRAME_SKIP,
    HORIZON,
    MOST_NOOPS,
    SCREEN,
    STACK,
    Reduction,
    find_game,
    rom_path,
)
from symcheck.envs.atari.pixels import FrameStacks, observe
from symcheck.errors import OptionError, TargetError

_NEVER = 10**9  # truncation limit of the vectoriser in frames, never reached because steps are counted here
_BLOCK = 256  # games between two seeds: seeding costs 65 ms, and restoring a state draws at most this many games


class AtariVector(gym.vector.VectorEnv[Any, Any, Any]):
    """Environments of one game, stepped together; ended games restart within the same step.

    Args:
        game: "pong" or "breakout".
        num_envs: the number of environments.
        reduction: how the field is reduced to 80 x 80; None for the game's default (see `pixels`).
        symmetrized: whether to reflect each episode with probability 1/2: images are flipped and actions swapped. The
            distribution of observations is then symmetric for any game.
        clip_rewards: whether rewards are replaced by their sign; `info["score"]` has the unclipped rewards.
        episodic_life: whether a lost life counts as `terminated`.
        horizon: the number of steps after which a game is truncated.
        num_threads: the number of threads of the vectoriser; 0 for one for each core that this process may use.

    Attributes:
        single_observation_space: Box of uint8, (4, 80, 80), the oldest frame first.
        single_action_space: Discrete: 6 actions for Pong, 4 for Breakout.

    Raises:
        TargetError: an unknown game, or a ROM that is missing.
        OptionError: a number out of range, or an unknown reduction.

    Example:
        >>> games = AtariVector("pong", 2, num_threads=1)
        >>> games.reset(seed=0)[0].shape
        (2, 4, 80, 80)

    Source: van der Pol et al., "MDP Homomorphic Networks", 2020, section 5 and appendix (Pong, Breakout); Mnih et al.,
    "Human-level control through deep reinforcement learning", 2015, methods (preprocessing).
    """

    metadata: dict[str, Any] = {"autoreset_mode": gym.vector.AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(
        self,
        game: str = "pong",
        num_envs: int = 1,
        *,
        reduction: Reduction | None = None,
        symmetrized: bool = False,
        clip_rewards: bool = True,
        episodic_life: bool = True,
        horizon: int = HORIZON,
        num_threads: int = 0,
    ) -> None:
        self.game = find_game(game)
        self.reduction: Reduction = checked_reduction(reduction, self.game.reduction)
        self.num_envs = num_envs = whole_number(num_envs, "num_envs", least=1)
        self._horizon = horizon = whole_number(horizon, "horizon", least=1)
        num_threads = whole_number(num_threads, "num_threads", least=0)
        # Reject a missing ROM here, where the message can name the remedy.
        rom_path(self.game)
        self._symmetrized, self._clips, self._episodic = bool(symmetrized), clip_rewards, episodic_life
        self._emulators = _vectoriser(game, num_envs, num_threads or min(num_envs, _usable_cores()))
        self.single_observation_space = gym.spaces.Box(0, 255, (STACK, FIELD // 2, FIELD // 2), np.uint8)
        self.single_action_space = gym.spaces.Discrete(len(self.game.actions))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._swap = np.array(self.game.swapped)
        self._axis = -2 if self.game.operator == "flip_ud" else -1
        self._stacks = FrameStacks(num_envs)
        # Seeds from the system until `reset` provides some, so that unseeded runs differ.
        self._seeds = [np.random.SeedSequence().generate_state(1)[0] for _ in range(num_envs)]
        self._played = np.full(num_envs, -1)  # the number of the current game; -1 if none has begun
        self._elapsed = np.zeros(num_envs, dtype=np.int64)
        self._lives = np.zeros(num_envs, dtype=np.int64)
        self._reflected = np.zeros(num_envs, dtype=bool)
        self._serves = np.zeros(num_envs, dtype=bool)
        self._frames_before = np.zeros(num_envs, dtype=np.int64)
        # The actions sent in the current games, which suffice to replay them.
        self._log = np.zeros((num_envs, horizon), dtype=np.uint8)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Bytes, dict[str, Any]]:
        """Start every environment's first game.

        Args:
            seed: an integer, from which each environment's seed is spawned, or one seed for each environment. Without a
                seed, every environment continues with its next game; without any earlier seed, the system provides one.
            options: not used.

        Returns:
            Observations (num_envs, 4, 80, 80), uint8; and `lives`, `frames` (the number of frames before the first
            observation: no-ops and the press of fire) and `reflected`.

        Raises:
            OptionError: the wrong number of seeds, or a seed that is negative or not an integer.
            TargetError: after `close`.
        """
        if seed is not None:
            self._seeds = spread_seeds(seed, self.num_envs)
            # The first `_begin` counts on to game 0.
            self._played[:] = -1
        self._begin(np.ones(self.num_envs, dtype=bool))
        return self._stacks.frames.copy(), self._start_info()

    def _start_info(self) -> dict[str, Any]:
        return {"lives": self._lives.copy(), "frames": self._frames_before, "reflected": self._reflected.copy()}

    @property
    def observations(self) -> Bytes:
        """A copy of the current observations, (num_envs, 4, 80, 80)."""
        return self._stacks.frames.copy()

    def restart(self, where: Bools) -> Bytes:
        """Abandon some games, begin their next ones, and return the observations of all environments.

        Args:
            where: the environments to restart, bool, shape (num_envs,).

        Raises:
            OptionError: flags of the wrong shape or dtype.
            TargetError: before the first `reset`, or after `close`.
        """
        if np.shape(where) != (self.num_envs,) or np.asarray(where).dtype != np.bool_:
            raise OptionError(
                f"expected truth values of shape ({self.num_envs},), got shape {np.shape(where)} of "
                f"{np.asarray(where).dtype}.",
                where="where",
            )
        self._need_games()
        if where.any():
            self._begin(where)
        return self._stacks.frames.copy()

    def step(self, actions: npt.ArrayLike) -> tuple[Bytes, npt.NDArray[np.float32], Bools, Bools, dict[str, Any]]:
        """Take one action, for four frames, in every environment.

        Args:
            actions: integers, shape (num_envs,).

        Returns:
            Observations (num_envs, 4, 80, 80), uint8; rewards, float32; `terminated` and `truncated`; and `lives`,
            `score` (rewards before clipping), `game_over`, and, if an episode ended, `final_obs`, the observations
            before restarts; `reflected` marks reflected episodes.

        Raises:
            OptionError: actions of the wrong shape, or outside the action space.
            TargetError: before the first `reset`, or after `close`.
        """
        self._need_games()
        sent = self._translate_actions(actions)
        screens, gains, over, _, info = self._emulators.step(sent)
        # Log the actions that are sent, after reflection and serving, so that a replay needs neither.
        self._log[np.arange(self.num_envs), self._elapsed] = sent
        self._elapsed += 1
        shown = screens
        if over.any():  # elsewhere the vectoriser leaves `final_obs` as it was
            shown = np.where(over[:, None, None, None], info["final_obs"], screens)
        self._stacks.push(self._frames(shown))
        # The end of a game ends its episode, whatever the lives.
        lost = (info["lives"] < self._lives) & ~over
        truncated = (self._elapsed >= self._horizon) & ~over
        terminated = over | (lost & self._episodic)
        score = gains.astype(np.float32)
        # `final_obs` is taken before the restarts below overwrite the stacks.
        results = {"score": score, "game_over": over | truncated}
        if (terminated | truncated).any():
            results["final_obs"] = self._stacks.frames.copy()
        self._lives = np.array(info["lives"], dtype=np.int64)
        self._serves = lost & self.game.fire_starts_lives
        if over.any() or truncated.any():
            # Handle games before lives: a life lost in the truncating step does not start another episode of its game.
            self._next_games(over, truncated, screens)
        if self._episodic and lost.any():
            self._next_lives(lost & ~truncated)
        results["reflected"] = self._reflected.copy()
        results["lives"] = self._lives.copy()
        rewards = np.sign(score) if self._clips else score
        return self._stacks.frames.copy(), rewards, terminated, truncated, results

    def state(self) -> dict[str, Any]:
        """The complete state: the seeds, and the actions of the current games.

        Raises:
            TargetError: before the first `reset`.
        """
        self._need_games()
        games = [self._log[at, :steps].tobytes() for at, steps in enumerate(self._elapsed)]
        played = {"seeds": [int(seed) for seed in self._seeds], "played": self._played.tolist(), "games": games}
        return {**self._kind(), **played}

    def _kind(self) -> dict[str, Any]:
        return {"game": self.game.name, "symmetrized": self._symmetrized}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state of the same game and options by replaying the current games up to that state.

        Games of different length are replayed so that they finish together: an environment idles until its game must
        begin.

        Args:
            state: a value returned by `state`.

        Raises:
            TargetError: not a state, the state of another game or number of environments, or a call after `close`.
        """
        sizes = {"environments": self.num_envs, "actions": len(self._swap), "horizon": self._horizon}
        games = checked_games(state, self._kind(), **sizes)
        # Restoring is replaying: the emulators' own states cannot be set through the vectoriser.
        self._seeds = list(state["seeds"])
        lengths = np.array([len(game) for game in games])
        # Shorter games start later, so that all games reach their last action in the same step.
        longest = int(lengths.max())
        for time in range(longest + 1):
            begins = longest - lengths == time
            if begins.any():
                # `_begin` increments the count to the current game.
                self._played[begins] = np.array(state["played"])[begins] - 1
                self._begin(begins, draws_again=True)
            if time < longest:
                # Negative for environments that have not begun yet.
                self._replay(games, lengths - (longest - time))
        # Idle steps advanced the counts; set them to the replayed lengths.
        self._elapsed = lengths

    def _replay(self, games: Sequence[npt.NDArray[np.uint8]], at: npt.NDArray[np.int64]) -> None:
        """Step the games that have begun (`at` is 0 or more); the others idle, and are restarted later."""
        playing = at >= 0
        given = [game[place] if place >= 0 else 0 for game, place in zip(games, at, strict=True)]
        # `step` reflects its actions, and a swap is its own inverse.
        unreflected = np.where(self._reflected, self._swap[given], given)
        self._elapsed = np.where(playing, at, 0)
        self._serves[:] = False  # the log contains the actions that were sent
        self.step(unreflected)

    def close_extras(self, **kwargs: Any) -> None:
        """Release the emulators, with their threads, and the games."""
        self._emulators = None
        self._played[:] = -1

    def _need_games(self) -> None:
        if (self._played < 0).any():
            raise TargetError("the games have not been reset yet.", where="AtariVector", remedy="Call reset first.")

    def _translate_actions(self, actions: npt.ArrayLike) -> npt.NDArray[np.int64]:
        given = np.asarray(actions)
        count = len(self._swap)
        if given.shape != (self.num_envs,) or not np.issubdtype(given.dtype, np.integer):
            raise OptionError(
                f"expected an integer array of shape ({self.num_envs},), got an array of shape {given.shape} and dtype "
                f"{given.dtype}.",
                where="actions",
            )
        if given.min() < 0 or given.max() >= count:
            raise OptionError(f"expected actions from 0 to {count - 1}, got {given.tolist()}.", where="actions")
        # Reflect first, then replace by fire if the game waits for it: fire is its own image.
        moved = np.where(self._reflected, self._swap[given], given)
        return np.where(self._serves, self.game.fire, moved).astype(np.int64)

    def _frames(self, screens: Bytes) -> Bytes:
        """Reduced frames of every environment, reflected where its game is."""
        # The vectoriser stacks one frame: axis 1 has length 1.
        frames = observe(screens[:, 0], self.game, self.reduction)
        if not self._reflected.any():
            return frames
        # One flag for each environment, against frames of (num_envs, 80, 80).
        reflected = self._reflected[:, None, None]
        return np.where(reflected, np.flip(frames, self._axis), frames)

    def _next_games(self, over: Bools, truncated: Bools, screens: Bytes) -> None:
        """Restart games that were cut short; the vectoriser has already restarted those that were over."""
        if over.any():
            # The vectoriser has already drawn the next game, unless a new block needs a new seed.
            self._played[over] += 1
            fresh = over & (self._played % _BLOCK == 0)
            self._start(over, screens)
            if fresh.any():
                # `_begin` increments the count again.
                self._played[fresh] -= 1
                self._begin(fresh)
        if truncated.any():
            self._begin(truncated)

    def _begin(self, where: Bools, *, draws_again: bool = False) -> None:
        """Reset some emulators and start their next games.

        Args:
            where: which emulators.
            draws_again: whether to seed them and repeat the vectoriser's draws, to reach the same game.
        """
        self._played[where] += 1
        # Position within its block: 0 is the game right after a seed.
        place = self._played % _BLOCK
        seeded = where & ((place == 0) | draws_again)
        screens = np.zeros((0, 1, *SCREEN), dtype=np.uint8)
        if seeded.any():
            seeds = [_block_seed(self._seeds[at], int(self._played[at]) // _BLOCK) for at in np.flatnonzero(seeded)]
            screens, info = self._reset(seeded, np.array(seeds))
        # With `draws_again`, a seeded environment draws `place` more games to reach its own. Otherwise, without a new
        # seed, one draw leads to the next game.
        further = np.where(seeded, place, 1) if draws_again else (where & ~seeded).astype(np.int64)
        for draw in range(int(further[where].max())):
            again = where & (further > draw)
            # -1 continues the vectoriser's generator.
            screens, info = self._reset(again, np.full(int(again.sum()), -1))
        self._lives = np.where(where, info["lives"], self._lives)
        self._frames_before = np.array(info["episode_frame_number"])
        self._start(where, screens)

    def _reset(self, where: Bools, seeds: npt.NDArray[np.int64]) -> tuple[Bytes, dict[str, Any]]:
        if self._emulators is None:
            raise TargetError("the emulators have been closed.", where="AtariVector", remedy="Make new ones.")
        return self._emulators.reset(seed=seeds, options={"reset_mask": where})  # type: ignore[no-any-return]

    def _start(self, where: Bools, screens: Bytes) -> None:
        """After a reset of emulators, clear the data of their previous games."""
        self._elapsed[where] = 0
        self._serves[where] = False
        if self._symmetrized:
            self._reflect(where)
        self._stacks.restart(where, self._frames(screens))

    def _next_lives(self, where: Bools) -> None:
        """Begin episodes that continue with their games."""
        # The last frame of the previous life is the first of the next; older frames are black.
        newest, before = self._stacks.frames[:, -1].copy(), self._reflected.copy()
        if self._symmetrized:
            self._reflect(where)
            turned = self._reflected != before
            # The kept frame has the other orientation.
            newest[turned] = np.flip(newest, self._axis)[turned]
        self._stacks.restart(where, newest)

    def _reflect(self, where: Bools) -> None:
        """Draw the orientation of some episodes, each from its environment's seed, game and life."""
        # A function of seed, game and lives: restoring gives the same reflection without a stored state.
        for at in np.flatnonzero(where):
            self._reflected[at] = _is_reflected(self._seeds[at], int(self._played[at]), int(self._lives[at]))


def _usable_cores() -> int:
    """The number of cores available to this process; by default the vectoriser counts all cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _vectoriser(game: str, num_envs: int, num_threads: int) -> Any:
    from ale_py import AtariVectorEnv

    return AtariVectorEnv(
        game,
        num_envs,
        num_threads=num_threads,
        max_num_frames_per_episode=_NEVER,
        repeat_action_probability=0.0,
        autoreset_mode="SameStep",
        img_height=SCREEN[0],
        img_width=SCREEN[1],
        grayscale=True,
        stack_num=1,
        frameskip=FRAME_SKIP,
        maxpool=True,
        noop_max=MOST_NOOPS,
        episodic_life=False,
        reward_clipping=False,
        use_fire_reset=True,
    )


def _block_seed(seed: int, block: int) -> int:
    """The vectoriser's seed of a block of games: 1 to 2^31 - 1, because it treats 0 and negative numbers as no seed."""
    drawn = np.random.SeedSequence(seed, spawn_key=(0, block)).generate_state(1)[0]
    # The modulus keeps the value within a signed 32-bit integer.
    return 1 + int(drawn) % (2**31 - 1)


def _is_reflected(seed: int, game: int, lives: int) -> bool:
    return bool(np.random.SeedSequence(seed, spawn_key=(1, game, lives)).generate_state(1)[0] & 1)
