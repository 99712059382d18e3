"""One game, a row of four cells whose ends win, in the words of PettingZoo and of Pgx."""

from __future__ import annotations

import types
from dataclasses import dataclass, replace

import numpy as np


def winner(cells):
    """1 or 2 for the player who has both ends, 0 for a full row, None while the game goes on."""
    if cells[0] and cells[0] == cells[-1]:
        return cells[0]
    return 0 if all(cells) else None


def planes(cells, player):
    return np.array([[[c == player, c == 3 - player] for c in cells]], np.int8)


class TurnByTurn:
    """In PettingZoo's form; like its own games, `copy.deepcopy` builds it anew."""

    possible_agents = ("first", "second")

    def __reduce__(self):
        return type(self), ()

    def agent_iter(self):
        raise NotImplementedError

    def reset(self, seed=None, options=None):
        self.cells = [0, 0, 0, 0]
        self.agent_selection = "first"
        self.terminations = self.truncations = dict.fromkeys(self.possible_agents, False)
        self.rewards = dict.fromkeys(self.possible_agents, 0)

    def place(self, action):
        return action

    def observe(self, agent):
        mask = np.array([c == 0 for c in self.cells], np.int8)
        return {"observation": planes(self.cells, 1 + self.possible_agents.index(agent)), "action_mask": mask}

    def step(self, action):
        player = 1 + self.possible_agents.index(self.agent_selection)
        self.cells[self.place(action)] = player
        won = winner(self.cells)
        if won is not None:
            self.terminations = dict.fromkeys(self.possible_agents, True)
            self.rewards = {
                a: (0 if not won else 1 if won == i + 1 else -1) for i, a in enumerate(self.possible_agents)
            }
        self.agent_selection = self.possible_agents[2 - player]


class TurnByTurnFromTheLeft(TurnByTurn):
    """A stone slides to the left as far as it can."""

    def place(self, action):
        while action and not self.cells[action - 1]:
            action -= 1
        return action


class Dealt(TurnByTurn):
    """The seed decides which cells are taken at the start."""

    def reset(self, seed=None, options=None):
        super().reset()
        self.cells[seed or 0] = 2


class Wrapped:
    """A wrapper as PettingZoo has them: the environment under `env`, all else handed on."""

    def __init__(self, env):
        self.env = env

    def __getattr__(self, name):
        if name.startswith("__") or name == "env":
            raise AttributeError(name)
        return getattr(self.env, name)


@dataclass(frozen=True)
class Position:
    cells: tuple = (0, 0, 0, 0)
    current_player: int = 0

    @property
    def legal_action_mask(self):
        return np.array([c == 0 for c in self.cells])

    @property
    def observation(self):
        return planes(self.cells, 1 + self.current_player)

    @property
    def terminated(self):
        return winner(self.cells) is not None

    truncated = False

    @property
    def rewards(self):
        won = winner(self.cells)
        return np.array([0.0, 0.0] if not won else [1.0, -1.0] if won == 1 else [-1.0, 1.0])


class PureRow:
    """In Pgx's form."""

    def init(self, key):
        return Position()

    def step(self, state, action):
        cells = tuple(1 + state.current_player if i == action else c for i, c in enumerate(state.cells))
        return replace(state, cells=cells, current_player=1 - state.current_player)


class PureRowFirstCellTaken(PureRow):
    def init(self, key):
        return Position((1, 0, 0, 0), 1)


def jax_without_compiler():
    """What `symcheck.games.pgx` uses of JAX."""
    module = types.ModuleType("jax")
    module.jit = lambda function: function
    module.random = types.SimpleNamespace(PRNGKey=lambda seed: seed)
    return module
