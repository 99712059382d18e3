"""Measures which parts of Pong and Breakout break the reflection, and by how much, from set states.

A verdict on a whole game is `failed` with one counterexample; it does not show which parts of the game are symmetric.
So each part is compared with its reflection: the flight of the ball, the paddles, the serves, the screen, and the
reduction to 80 x 80.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Bytes
from symcheck.envs.atari.games import GAMES, Game, Reduction, find_game
from symcheck.envs.atari.machine import KNOB_RANGE, Machine
from symcheck.envs.atari.objects import BALL, COLUMN, PADDLE, SPEED, memory_of, state_of
from symcheck.envs.atari.pixels import observe
from symcheck.errors import OptionError

FLIGHT = 24  # number of frames for which a ball is followed
_NEGATED = 7  # components of a state that the reflection negates
# Breakout's ball: position and speed along the columns in units of 1/256, and along the rows. The position is reflected
# about byte 128.5 minus half of 1/256, which is column 79.5 of the screen. Only with this value is every flight
# symmetric exactly.
B_COLUMN, B_COLUMN_SPEED, B_ROW, B_PADDLE = 99, 105, 101, 72
_B_SUM = 257 * 256 - 1


@dataclass(frozen=True)
class Part:
    """The comparison of one part of a game with its reflection.

    Attributes:
        name: the name of the part.
        checked: the number of pairs.
        exact: the number of pairs that agree exactly.
        size: the largest difference, in `unit`.
        unit: the unit of the size.
        text: the finding, in a sentence.
    """

    name: str
    checked: int
    exact: int
    size: float
    unit: str
    text: str

    def __str__(self) -> str:
        counts = f"{self.exact:,} of {self.checked:,} exact, largest difference {self.size:g} {self.unit}"
        return f"{self.name:28} {counts}: {self.text}"


def measure(game: str, *, samples: int = 500, seed: int = 0) -> tuple[Part, ...]:
    """Compare every part of a game with its reflection.

    Args:
        game: "pong" or "breakout".
        samples: the number of reflected states, for each part that takes states; at least 1.
        seed: the seed of the play that reaches them.

    Returns:
        The parts, symmetric ones first.

    Raises:
        TargetError: an unknown game, or a ROM that is missing.
        OptionError: `samples` is below 1.

    Example:
        >>> [part.name for part in measure("breakout", samples=5)][0]
        'ball in flight'
    """
    played = find_game(game)
    if samples < 1:
        raise OptionError(f"expected 1 sample or more, got {samples}.", where="samples")
    machine, rng = Machine(played), np.random.default_rng(seed)
    parts = _pong(machine, samples, rng) if game == "pong" else _breakout(machine, samples, rng)
    return (*parts, *(_reduction(played, machine, reduction, samples, rng) for reduction in ("every_second", "means")))


def _play(machine: Machine, rng: np.random.Generator, actions: int) -> Iterator[Bytes]:
    """The memory after each frame, endlessly, under a uniform policy that repeats each action for six frames."""
    machine.start(Machine.draw_noops(rng))
    frame, action = 0, 0
    while True:
        if machine.over:
            machine.start(Machine.draw_noops(rng))
        if frame % 6 == 0:
            action = int(rng.integers(actions))
        machine.act(action)
        frame += 1
        yield machine.ram()


def _states(
    machine: Machine, rng: np.random.Generator, actions: int, keep: Callable[[Bytes], bool], samples: int
) -> list[tuple[bytes, Bytes]]:
    """Saved states with their memory, at least seven frames apart."""
    states: list[tuple[bytes, Bytes]] = []
    for frame, ram in enumerate(_play(machine, rng, actions)):
        if frame % 7 == 0 and keep(ram):
            states.append((machine.save(), ram))
        if len(states) == samples:
            break
    return states


def _to_signed(value: int) -> int:
    # Two's complement of one byte.
    return value - 256 if value > 127 else value


def _pong(machine: Machine, samples: int, rng: np.random.Generator) -> tuple[Part, ...]:
    states = _states(machine, rng, 6, lambda ram: bool(ram[BALL]), samples)
    return (
        # Start away from both paddles, so that only walls reflect the ball.
        _pong_flight(machine, [moment for moment in states if 80 < moment[1][COLUMN] < 180]),
        *_pong_steps(machine, states),
        _pong_serves(machine, rng, games=max(1, samples // 100)),
        _pong_reach(machine),
        _pong_returns(machine, rng, frames=100 * samples),
    )


def _pong_flight(machine: Machine, states: list[tuple[bytes, Bytes]]) -> Part:
    """Compare the flight of a ball far from both paddles with that of a ball with reflected row and row speed."""
    exact, bounces, largest = 0, 0, 0.0
    for saved, ram in states:
        plain = _follow_bytes(machine, saved, {}, (BALL, COLUMN, SPEED))
        # Rows r and r' with r + r' = 251 are images of each other: the axis is at 125.5. The speed changes sign.
        moved = {BALL: 251 - int(ram[BALL]), SPEED: -int(ram[SPEED]) % 256}
        other = _follow_bytes(machine, saved, moved, (BALL, COLUMN, SPEED))
        # True until the ball first comes near a paddle, then False: only the flight is compared.
        away = np.logical_and.accumulate((plain[:, 1] > 78) & (plain[:, 1] < 182))
        difference = np.abs(251 - plain[:, 0] - other[:, 0])[away]
        largest = max(largest, float(difference.max(initial=0)))
        exact += bool((difference == 0).all())
        bounces += bool(np.diff(np.sign([_to_signed(int(v)) for v in plain[away, 2]])).any())
    text = f"about row 113, r -> 226 - r, {bounces} of the flights with a bounce off a wall"
    return Part("ball in flight", len(states), exact, largest, "rows", text)


def _follow_bytes(
    machine: Machine, saved: bytes, changes: dict[int, int], bytes_: tuple[int, ...]
) -> npt.NDArray[np.int64]:
    """Some bytes after each of the following no-op frames, from a saved state with some of its memory changed."""
    machine.load(saved)
    for at, value in changes.items():
        machine.write(at, value)
    frames = []
    for _ in range(FLIGHT):
        machine.act(0)
        frames.append(machine.ram()[list(bytes_)].astype(np.int64))
    return np.array(frames)


def _pong_steps(machine: Machine, states: list[tuple[bytes, Bytes]]) -> tuple[Part, ...]:
    """One step (four frames) from a state and from its reflection, for every action."""
    swapped = GAMES["pong"].swapped
    differences: list[npt.NDArray[np.float64]] = []
    for at, (saved, ram) in enumerate(states):
        # Every action in turn, so that each is measured equally often.
        action = at % len(swapped)
        machine.load(saved)
        state = state_of(ram, machine.knob)
        after = []
        for sign, taken in ((1.0, action), (-1.0, swapped[action])):
            reflected = state.copy()
            reflected[:_NEGATED] *= sign
            machine.place(*memory_of(reflected))
            # Four frames are one step of the agent.
            for _ in range(4):
                machine.act(taken)
            # Offsets of the player's and the opponent's paddle after the step; the second is mapped back by the sign.
            after.append(sign * state_of(machine.ram(), 0.0)[[2, 4]])
        differences.append(after[0] - after[1])
    offsets = np.array(differences)
    parts = []
    for column, name in enumerate(("player's paddle", "opponent's paddle")):
        off = np.abs(offsets[:, column])
        # The player's paddle alternates between two rows; its axis lies between them, half a row from each.
        exact = int((off <= 1.0).sum()) if column == 0 else int((off == 0).sum())
        text = f"one step from reflected states; median {np.median(off):g}, upper decile {np.quantile(off, 0.9):g}"
        parts.append(Part(name, len(offsets), exact, float(off.max()), "rows", text))
    return tuple(parts)


def _pong_serves(machine: Machine, rng: np.random.Generator, games: int) -> Part:
    """Compare the position and direction of served balls with their reflections."""
    served: Counter[tuple[int, int]] = Counter()
    first: Counter[tuple[int, int]] = Counter()
    for _ in range(games):
        machine.start(Machine.draw_noops(rng))
        before, opening = 0, True
        while not machine.over:
            machine.act(int(rng.integers(6)))
            ram = machine.ram()
            # A serve changes the ball's byte from 0 to a row.
            if before == 0 and ram[BALL]:
                (first if opening else served)[int(ram[BALL]), _to_signed(int(ram[SPEED]))] += 1
                opening = False
            before = int(ram[BALL])
    every = first + served
    rows = {row for row, _ in every}
    # The distance from the image of each row to the nearest served row; 0 if the set is symmetric.
    off = max(min(abs(251 - row - other) for other in rows) for row in rows)
    down = sum(count for (_, speed), count in every.items() if speed > 0)
    text = (
        f"memory rows {sorted(rows)} where 125.5 is the axis, {down} of {every.total()} downward; the first of a game "
        f"always {' or '.join('down' if speed > 0 else 'up' for speed in sorted({s for _, s in first}))}"
    )
    return Part("serve", every.total(), 0 if off else every.total(), float(off), "rows", text)


def _pong_reach(machine: Machine) -> Part:
    """Compare the rows that the player's paddle can reach with their reflection."""
    low, high = (_settle_paddle(machine, knob, PADDLE) for knob in KNOB_RANGE)
    # Rows of the paddle are reflected about 119, so images add up to 238.
    off = abs(low + high - 238)
    text = f"bytes {low} to {high}, reflected {238 - high} to {238 - low}"
    return Part("player's reach", 2, 0 if off else 2, float(off), "rows", text)


def _pong_returns(machine: Machine, rng: np.random.Generator, frames: int) -> Part:
    """Compare the directions in which the opponent returns the ball, while the player moves at random."""
    played = _play(machine, rng, 6)
    trace = np.array([next(played)[[COLUMN, SPEED]] for _ in range(frames)]).astype(np.int64)
    moved = np.diff(trace[:, 0])
    # The opponent is on the left, where the ball turns from left to right. The index is shifted by two differences, so
    # that the speed is read after the turn.
    turned = np.flatnonzero((moved[:-1] < 0) & (moved[1:] > 0) & (trace[1:-1, 0] < 85)) + 2
    ways = [_to_signed(int(speed)) for speed in trace[turned, 1]]
    up, down, level = (sum(np.sign(way) == sign for way in ways) for sign in (-1, 1, 0))
    text = f"{up} upward, {down} downward, {level} level"
    return Part("opponent's returns", len(ways), 0 if up != down else len(ways), float(abs(up - down)), "balls", text)


def _settle_paddle(machine: Machine, knob: int, byte: int) -> int:
    machine.start(0)
    for _ in range(60):  # frames until the paddle responds to the controller
        machine.act(0)
    machine.place(machine.ram(), knob)
    for _ in range(40):
        machine.act(0)
    return int(machine.ram()[byte])


def _breakout(machine: Machine, samples: int, rng: np.random.Generator) -> tuple[Part, ...]:
    states = _states(machine, rng, 4, lambda ram: 100 < int(ram[B_ROW]) < 160, samples)
    return (
        _breakout_flight(machine, states),
        _breakout_serves(machine, moments=min(samples, 200)),
        _breakout_reach(machine),
    )


def _breakout_flight(machine: Machine, states: list[tuple[bytes, Bytes]]) -> Part:
    """Compare the flight of a ball between bricks and paddle with that of its reflection along the columns."""
    watched = (B_COLUMN, B_COLUMN + 1, B_ROW, B_COLUMN_SPEED)
    exact, bounces, largest = 0, 0, 0.0
    for saved, ram in states:
        # Position and speed are 16-bit numbers, high byte first.
        column = _B_SUM - (256 * int(ram[B_COLUMN]) + int(ram[B_COLUMN + 1]))
        speed = -(256 * int(ram[B_COLUMN_SPEED]) + int(ram[B_COLUMN_SPEED + 1])) % 65536
        moved = {B_COLUMN: column >> 8, B_COLUMN + 1: column & 255}
        moved |= {B_COLUMN_SPEED: speed >> 8, B_COLUMN_SPEED + 1: speed & 255}
        plain, other = (_follow_bytes(machine, saved, changes, watched) for changes in ({}, moved))
        between = np.logical_and.accumulate((plain[:, 2] > 96) & (plain[:, 2] < 168))
        # The matrix product combines high and low byte; division by 256 converts to columns.
        difference = np.abs(_B_SUM - plain[:, :2] @ [256, 1] - other[:, :2] @ [256, 1])[between] / 256
        largest = max(largest, float(difference.max(initial=0)))
        exact += bool((difference == 0).all())
        bounces += bool(np.diff(plain[between, 3] > 127).any())
    text = f"about column 79.5, c -> 159 - c, {bounces} of the flights with a bounce off a wall"
    return Part("ball in flight", len(states), exact, largest, "columns", text)


def _breakout_serves(machine: Machine, moments: int) -> Part:
    """Compare serves, as a function of the frame in which fire is pressed after a lost life.

    There is no ball at that time, so a state and its reflection give the same serve instead of reflected ones.
    """
    machine.start(0)
    opening = _read_serve(machine)
    # Breakout begins with five lives: wait until the first one is lost.
    while machine.lives == 5:
        machine.act(0)
    serves = []
    for _ in range(moments):
        # Return to the same state each time, and wait one frame longer.
        waiting = machine.save()
        machine.act(1)
        serves.append(_read_serve(machine))
        machine.load(waiting)
        machine.act(0)
    # The ball is two columns wide: column c is reflected to 158 - c.
    off = [abs(2 * column - 158) for column, _ in serves]
    in_turn = ", ".join(f"column {column} {way}" for column, way in dict.fromkeys(serves))
    text = f"by the frame that fire is pressed in: {in_turn}; a game's first always column {opening[0]} {opening[1]}"
    return Part("serve", len(serves), off.count(0), float(max(off)), "columns", text)


def _read_serve(machine: Machine) -> tuple[int, str]:
    ram = machine.ram()
    # A speed of more than 127 counts down from the position, so to the right.
    return int(ram[B_COLUMN]) - 49, "right" if ram[B_COLUMN_SPEED] > 127 else "left"


def _breakout_reach(machine: Machine) -> Part:
    """Compare the columns that the paddle can reach with their reflection.

    It is 16 columns wide, drawn from byte - 47.
    """
    left, right = sorted(_settle_paddle(machine, knob, B_PADDLE) - 47 for knob in KNOB_RANGE)
    # Left edges are reflected to 144 - left: the paddle is 16 of 160 columns wide.
    off = abs(left + right - 144)
    text = (
        f"left edges {left} to {right}, reflected {144 - right} to {144 - left}: it can go into the wall on the right"
    )
    return Part("paddle's reach", 2, 0 if off else 2, float(off), "columns", text)


def _reduction(game: Game, machine: Machine, reduction: Reduction, samples: int, rng: np.random.Generator) -> Part:
    """Compare reduced screens with the ball at a position and at its reflection: they should be flips of each other."""
    axis = -2 if game.operator == "flip_ud" else -1
    exact, largest = 0, 0.0
    for _ in range(samples):
        row, column = int(rng.integers(36, 186)), int(rng.integers(20, 136))
        # Both balls are 4 rows by 2 columns. Pong's ball is reflected about row 113, Breakout's about column 79.5. The
        # last row or column of a ball is mapped to the first one of its image.
        places = ((row, column), (226 - row - 3, column) if axis == -2 else (row, 159 - column - 1))
        image, other = (observe(_with_ball(*place), game, reduction) for place in places)
        off = np.abs(np.flip(image, axis).astype(int) - other)
        exact += not off.any()
        largest = max(largest, float(off.max()))
    text = "the flipped reduced image of a ball equals the reduced image of the reflected ball"
    return Part(f"reduction {reduction}", samples, exact, largest, "grey levels", text)


def _with_ball(row: int, column: int) -> Bytes:
    screen = np.zeros((210, 160), dtype=np.uint8)
    screen[row : row + 4, column : column + 2] = 200
    return screen
