"""A game as a Gymnasium environment with image observations: those of `AtariVector`, from a single emulator.

Both agree bit for bit (tested), so verdicts here hold for the environments that agents train on.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from symcheck.array_types import Bytes
from symcheck.envs.atari.checks import checked_reduction, whole_number
from symcheck.envs.atari.games import FIELD, FRAME_SKIP, HORIZON, MOST_NOOPS, STACK, Reduction, find_game
from symcheck.envs.atari.machine import Machine
from symcheck.envs.atari.pixels import FrameStacks, observe
from symcheck.errors import OptionError


class AtariEnv(gym.Env[Any, Any]):
    """A game stepped four frames at a time; the base class of the environments with image and object observations.

    Args:
        game: "pong" or "breakout".
        symmetrized: whether to reflect each episode with probability 1/2.
        clip_rewards: whether rewards are replaced by their sign.
        episodic_life: whether a lost life ends the episode; the next episode continues the game.
        horizon: the number of steps after which a game is truncated.
        render_mode: "rgb_array" or None.

    Raises:
        TargetError: an unknown game, or a ROM that is missing.
        OptionError: a number out of range, or an unknown render mode.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012 - as Gymnasium has it

    def __init__(
        self,
        game: str = "pong",
        *,
        symmetrized: bool = False,
        clip_rewards: bool = True,
        episodic_life: bool = True,
        horizon: int = HORIZON,
        render_mode: str | None = None,
    ) -> None:
        horizon = whole_number(horizon, "horizon", least=1)
        if render_mode not in (None, "rgb_array"):
            raise OptionError(f"expected 'rgb_array' or None, got {render_mode!r}.", where="render_mode")
        self.game, self.render_mode = find_game(game), render_mode
        self.action_space = gym.spaces.Discrete(len(self.game.actions))
        self.machine = Machine(self.game)
        self._symmetrized, self._clips = symmetrized, clip_rewards
        self._episodic, self._horizon = episodic_life, horizon
        # Rows are the last axis but one, columns the last one, of single frames and of stacks.
        self._axis = -2 if self.game.operator == "flip_ud" else -1
        self._elapsed, self._lives = 0, 0
        self._reflected = self._serves = self._goes_on = False
        # The last two screens: their maximum is shown, because some sprites are drawn only on every other frame.
        self._shown = self._latest = self.machine.screen()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin a game, or after a lost life the next life of the same game.

        Args:
            seed: seeds the numbers of no-ops and all other random choices of a game; a seed starts a new game.
            options: {"noops": n} starts a new game with exactly n no-ops, 0 to 29 (random numbers of no-ops are 0 to
                28).

        Returns:
            The observation and {"lives", "reflected"}.

        Raises:
            OptionError: a number of no-ops out of range.
        """
        super().reset(seed=seed)
        noops = (options or {}).get("noops")
        # A lost life ended the episode: the next episode continues the same game.
        if self._goes_on and seed is None and noops is None:
            self._goes_on = False
            # Drawn once per episode, so that the agent sees the game in both orientations.
            self._reflected = self._symmetrized and bool(self.np_random.integers(2))
            return self._observe(self._shown, afresh=True), self._info()
        if noops is None:
            noops = self.machine.draw_noops(self.np_random)
        # One less than MOST_NOOPS: the press of fire that starts the game is one of them.
        noops = whole_number(noops, "options['noops']", least=0, most=MOST_NOOPS - 1)
        self._reflected = self._symmetrized and bool(self.np_random.integers(2))
        self.machine.start(noops)
        self._shown = self._latest = self.machine.screen()
        self._elapsed, self._lives = 0, self.machine.lives
        self._goes_on = self._serves = False
        return self._observe(self._shown, afresh=True), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Repeat an action for four frames, or until the game is over.

        Raises:
            OptionError: not an action of the game.
        """
        number = whole_number(action, "action", least=0, most=len(self.game.actions) - 1)
        gained = self._play(self._translate_action(number))
        over = self.machine.over
        self._elapsed += 1
        # If the game is over, `over` ends the episode, whatever the lives.
        lost = self.machine.lives < self._lives and not over
        # Breakout waits for fire after a lost life; the next action is replaced by it.
        self._lives, self._serves = self.machine.lives, lost and self.game.fire_starts_lives
        truncated = self._elapsed >= self._horizon and not over
        self._goes_on = lost and self._episodic and not truncated
        observation = self._observe(self._shown, afresh=False)
        reward = float(np.sign(gained)) if self._clips else gained
        return observation, reward, over or (lost and self._episodic), truncated, {**self._info(), "score": gained}

    def render(self) -> Any:
        """The screen as the player sees it, reflected if the episode is; (210, 160, 3)."""
        colours = self.machine.colours()
        # In colour images the channel is the last axis, so rows and columns are one axis earlier.
        return np.flip(colours, self._axis + 2).copy() if self._reflected else colours

    def _translate_action(self, action: int) -> int:
        if self._serves:
            return self.game.fire
        return self.game.swapped[action] if self._reflected else action

    def _play(self, action: int) -> float:
        """Run four frames, or fewer if the game ends; return the reward.

        The image is the maximum of the last two screens.

        When the game ends, the vectoriser reads no further screen and uses the previous one. Agents do not learn from
        this image.
        """
        gained = 0.0
        for frame in range(FRAME_SKIP):
            gained += self.machine.act(action)
            if self.machine.over:
                break
            if frame == FRAME_SKIP - 2:
                self._latest = self.machine.screen()
            elif frame == FRAME_SKIP - 1:
                self._shown = self.machine.screen()
        self._shown = np.maximum(self._shown, self._latest)
        return gained

    def _info(self) -> dict[str, Any]:
        return {"lives": self._lives, "reflected": self._reflected}

    def _observe(self, screen: Bytes, *, afresh: bool) -> Any:
        raise NotImplementedError


class AtariImageEnv(AtariEnv):
    """Image observations as in the paper: four frames of 80 x 80 grey values, the oldest first.

    Args:
        game: "pong" or "breakout".
        reduction: how the field is reduced to 80 x 80; None for the game's default (see `pixels`).
        **arguments: as for `AtariEnv`.

    Raises:
        TargetError: an unknown game, or a ROM that is missing.
        OptionError: an option out of range.

    Example:
        >>> env = AtariImageEnv("pong")
        >>> env.reset(seed=0)[0].shape
        (4, 80, 80)
    """

    def __init__(self, game: str = "pong", *, reduction: Reduction | None = None, **arguments: Any) -> None:
        super().__init__(game, **arguments)
        self.reduction: Reduction = checked_reduction(reduction, self.game.reduction)
        self.observation_space = gym.spaces.Box(0, 255, (STACK, FIELD // 2, FIELD // 2), np.uint8)
        self._stack = FrameStacks(1)

    def _observe(self, screen: Bytes, *, afresh: bool) -> Bytes:
        frame = observe(screen, self.game, self.reduction)
        if self._reflected:
            frame = np.flip(frame, self._axis)
        if afresh:
            self._stack.restart(np.ones(1, dtype=bool), frame[None])
        else:
            self._stack.push(frame[None])
        shown: Bytes = self._stack.frames[0].copy()
        return shown
