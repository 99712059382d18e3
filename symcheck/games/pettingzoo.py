"""Board games of PettingZoo (AEC): legal moves in `action_mask`, observations as boards."""

from __future__ import annotations

import copy
import importlib
import warnings
from typing import Any

import numpy as np

from symcheck.array_types import Array, Bools
from symcheck.errors import MissingExtraError, TargetError, described
from symcheck.games.game import Outcome, call
from symcheck.games.played import LibraryRules

_SEEDS = (0, 1)
_MOVES = 60  # moves of the game that is played twice to detect randomness


def load(name: str) -> Any:
    """A game of `pettingzoo.classic` by its module's name, "tictactoe_v3".

    Raises:
        MissingExtraError: PettingZoo, or a package that the game needs, is not installed.
        TargetError: the library has no such game.
    """
    try:
        importlib.import_module("pettingzoo")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # newer versions prefer a registry, which older ones lack
            return call(f"{name}.env", importlib.import_module(f"pettingzoo.classic.{name}").env)
    except ModuleNotFoundError as error:
        if error.name == f"pettingzoo.classic.{name}":
            raise TargetError(
                f"PettingZoo has no classic game {name!r}.",
                where="TARGET",
                remedy="Name a module of pettingzoo.classic, for instance tictactoe_v3.",
            ) from error
        raise MissingExtraError("games", needed_for=f"the PettingZoo game {name!r}") from error


def rules_of(env: Any, label: str) -> LibraryRules:
    """The rules of one game; a state is a copy of the environment.

    Args:
        env: an environment of PettingZoo whose agents move in turn.
        label: the name of the game in reports.

    Raises:
        TargetError: observations have no board with its legal moves, or the game has chance.
    """
    first, second = (_begin(env, seed) for seed in _SEEDS)
    actions = int(_look(first, "action_mask", label).size)
    rng = np.random.default_rng(_SEEDS[0])
    for _ in range(_MOVES):
        # A deck shuffled by the seed shows in the observations, at the latest when it is dealt.
        if not all(np.array_equal(_look(first, key, label), _look(second, key, label)) for key in _KEYS):
            raise TargetError(
                f"only games without chance are supported, but {label} continues differently under another seed.",
                where="TARGET",
            )
        moves = np.flatnonzero(_look(first, "action_mask", label))
        if _rewards_at_end(first) is not None or not len(moves):
            break
        action = int(rng.choice(moves))
        # One game is copied at every move and the other is not, so that incomplete copies are detected too.
        first = _play_on(first, action)
        call("step", second.step, action)
    start = _begin(env, _SEEDS[0])

    def legal(state: Any) -> Bools:
        return np.asarray(_look(state, "action_mask", label) != 0).ravel()

    return LibraryRules(
        actions,
        start=lambda: start,
        legal=legal,
        step=_play_on,
        outcome=_rewards_at_end,
        board=lambda state: np.asarray(_look(state, "observation", label), dtype=np.float64),
    )


_KEYS = ("observation", "action_mask")


def _begin(env: Any, seed: int) -> Any:
    fresh = _copy_env(env)
    call("reset", lambda: fresh.reset(seed=seed))
    return fresh


def _copy_env(env: Any, memo: dict[int, Any] | None = None) -> Any:
    """A copy with its state: `copy.deepcopy` rebuilds many of these environments, which then lose their moves."""
    memo = {} if memo is None else memo
    twin = memo[id(env)] = object.__new__(type(env))
    try:
        for name, value in vars(env).items():
            # Wrappers keep the environment that they wrap under this name.
            vars(twin)[name] = _copy_env(value, memo) if name == "env" else copy.deepcopy(value, memo)
    except Exception as error:  # an environment may contain anything, for instance a window
        raise TargetError(
            f"copying the environment raised {described(error)}; positions are stored as copies of the environment.",
            where="TARGET",
            remedy="Build the environment without render_mode.",
        ) from error
    return twin


def _look(state: Any, key: str, label: str) -> Array:
    """The observation of the agent to move."""
    seen = call("observe", state.observe, state.agent_selection)
    if not isinstance(seen, dict) or key not in seen:
        raise TargetError(
            f"expected observations of {label} to be dictionaries with 'observation' and 'action_mask', got "
            f"{type(seen).__name__}{f' without {key!r}' if isinstance(seen, dict) else ''}.",
            where="TARGET",
            remedy=(
                "Only board games with legal moves can be checked here. For parallel environments, use verify-env."
            ),
        )
    return np.asarray(seen[key])


def _play_on(state: Any, action: int) -> Any:
    after = _copy_env(state)
    call("step", after.step, action)
    return after


def _rewards_at_end(state: Any) -> Outcome | None:
    """The rewards of all agents, once one of them has terminated."""
    if not any(state.terminations.values()) and not any(state.truncations.values()):
        return None
    return tuple(float(state.rewards.get(agent, 0.0)) for agent in state.possible_agents)
