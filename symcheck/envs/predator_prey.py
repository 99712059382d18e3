"""The grid world of the paper: a predator chases a prey on a 7 x 7 torus and sees itself in the centre.

The agent moves first (0 stays; 1, 2, 3, 4 are row + 1, column + 1, row - 1, column - 1), then the prey moves to one of
its four neighbours with probability 0.15 and otherwise stays. If both are on the same cell after that, the reward is 1
and the episode terminates; otherwise the reward is -0.1. Episodes are truncated after 100 steps.

Only the displacement agent - prey matters, taken as the shortest on the torus, so each component lies in -3..3. The
image is 1 x 21 x 21 of zeros and ones, each cell 3 x 3 pixels: a plus where the prey is, at centre + displacement, and
over it an X in the centre for the agent. A quarter turn of the image (`numpy.rot90`) maps the displacement (r, c) to
(-c, r), and action 1 to 2, 2 to 3, 3 to 4 and 4 to 1: the environment is symmetric under C4, and with reflections under
D4. Agent and prey may start on the same cell; the prey is then hidden and the episode continues.

Source: van der Pol et al., "MDP Homomorphic Networks", 2020, section 5 and appendix (grid world).
"""

from __future__ import annotations

import functools
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

SIZE = 7
# Half of the torus: displacements run from -REACH to REACH.
REACH = SIZE // 2
# Side of one cell's image, in pixels.
CELL = 3
PIXELS = SIZE * CELL
# Probability that the prey moves in a step.
PREY_MOVES = 0.15
CATCH_REWARD = 1.0
STEP_REWARD = -0.1
EPISODE_LIMIT = 100
# Stay, down, right, up, left: (row, column).
MOVES: npt.NDArray[np.int64] = np.array([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1]])
_STEPS: list[list[int]] = MOVES.tolist()
# Shapes of prey and predator: each is invariant under D4, so that rotating an image gives the image of the rotated
# state.
_PLUS = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], dtype=np.uint8)
_CROSS = np.array([[1, 0, 1], [0, 1, 0], [1, 0, 1]], dtype=np.uint8)


def wrap(displacement: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The shortest displacement on the torus, each component in -3..3.

    Example:
        >>> wrap(np.array([4, -3])).tolist()
        [-3, -3]
    """
    wrapped: npt.NDArray[np.int64] = (displacement + REACH) % SIZE - REACH
    return wrapped


def draw(displacement: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """The image of one displacement, shape (1, 21, 21), zeros and ones."""
    row, column = displacement.tolist()
    return _draw_at(row, column)


def images() -> npt.NDArray[np.uint8]:
    """The image of every displacement, shape (7, 7, 1, 21, 21), indexed by displacement + 3."""
    return _images().copy()


def _draw_at(row: int, column: int) -> npt.NDArray[np.uint8]:
    image: npt.NDArray[np.uint8] = _images()[row + REACH, column + REACH].copy()
    return image


@functools.cache
def _images() -> npt.NDArray[np.uint8]:
    drawn = np.zeros((SIZE, SIZE, 1, PIXELS, PIXELS), dtype=np.uint8)
    centre = slice(REACH * CELL, (REACH + 1) * CELL)
    for row, column in np.ndindex(SIZE, SIZE):
        drawn[row, column, 0, row * CELL : (row + 1) * CELL, column * CELL : (column + 1) * CELL] = _PLUS
        # The predator is drawn last, in the centre; it covers a caught prey.
        drawn[row, column, 0, centre, centre] = _CROSS
    return drawn


class PredatorPreyEnv(gym.Env[npt.NDArray[np.uint8], np.int64]):
    """The environment; its state is the displacement agent - prey, two integers in -3..3.

    Registered as `symcheck/PredatorPrey-v0` with a time limit of 100 steps.

    Example:
        >>> env = PredatorPreyEnv()
        >>> image, _ = env.reset(seed=0)
        >>> env.set_state(np.array([3, 3]))
        >>> env.step(np.int64(0))[1]
        -0.1
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 5}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.observation_space = gym.spaces.Box(0, 1, (1, PIXELS, PIXELS), np.uint8)
        self.action_space = gym.spaces.Discrete(len(MOVES))
        # Two Python integers: NumPy takes ten times as long for arithmetic on two numbers.
        self._row = self._column = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.uint8], dict[str, Any]]:
        """Put agent and prey on cells drawn uniformly and independently."""
        super().reset(seed=seed, options=options)
        (row, column), (prey_row, prey_column) = self.np_random.integers(0, SIZE, (2, 2)).tolist()
        self._place(row - prey_row, column - prey_column)
        return self._image(), {}

    def step(self, action: np.int64) -> tuple[npt.NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """Move the agent, then possibly the prey."""
        down, right = _STEPS[int(action)]
        row, column = self._row + down, self._column + right
        if self.np_random.random() < PREY_MOVES:
            # One of the four moves other than staying. The displacement is agent minus prey, hence the minus sign.
            down, right = _STEPS[1 + int(self.np_random.integers(4))]
            row, column = row - down, column - right
        self._place(row, column)
        # Displacement zero: both are on the same cell.
        caught = not (self._row or self._column)
        return self._image(), CATCH_REWARD if caught else STEP_REWARD, caught, False, {}

    def get_state(self) -> npt.NDArray[np.int64]:
        """The displacement agent - prey, shape (2,)."""
        return np.array([self._row, self._column], dtype=np.int64)

    def set_state(self, state: npt.ArrayLike) -> None:
        """Put the agent at this displacement from the prey; shape (2,), wrapped onto the torus."""
        row, column = np.asarray(state).tolist()
        self._place(round(row), round(column))

    def _place(self, row: int, column: int) -> None:
        self._row, self._column = (row + REACH) % SIZE - REACH, (column + REACH) % SIZE - REACH

    def _image(self) -> npt.NDArray[np.uint8]:
        return _draw_at(self._row, self._column)

    def render(self) -> npt.NDArray[np.uint8]:
        """The image in grey, with eight screen pixels per image pixel, shape (168, 168, 3)."""
        # `kron` with ones repeats every pixel in both directions.
        grey = np.kron(self._image()[0] * np.uint8(255), np.ones((8, 8), dtype=np.uint8))
        return np.repeat(grey[..., None], 3, axis=-1)
