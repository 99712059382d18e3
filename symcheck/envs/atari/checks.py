"""Check arguments before an emulator receives them: numbers, seeds, and states to continue from."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck.envs.atari.games import Reduction
from symcheck.errors import OptionError, TargetError

STATE_KEYS = ("seeds", "played", "games")


def whole_number(given: Any, where: str, *, least: int, most: int | None = None) -> int:
    """Read an integer within a range.

    Args:
        given: any index: an int, a NumPy integer, or a zero-dimensional integer array.
        where: the name of the argument, for the message.
        least: the smallest allowed value.
        most: the largest allowed value, or None.

    Returns:
        The number as an int.

    Raises:
        OptionError: anything else.

    Example:
        >>> whole_number(np.int64(3), "num_envs", least=1)
        3
    """
    # A missing upper bound reads "or more" in the message.
    allowed = f"{least} or more" if most is None else f"{least} to {most}"
    try:
        # `operator.index` accepts NumPy integers and rejects all floats, including integral ones.
        number = operator.index(given)
    except TypeError:
        raise OptionError(f"expected a whole number, {allowed}, got {given!r}.", where=where) from None
    if number < least or (most is not None and number > most):
        raise OptionError(f"expected {allowed}, got {number}.", where=where)
    return number


def checked_reduction(given: Reduction | None, own: Reduction) -> Reduction:
    """The requested image reduction, or the game's default.

    Raises:
        OptionError: an unknown reduction.
    """
    if given not in (None, "every_second", "means"):
        raise OptionError(f"expected 'every_second' or 'means', got {given!r}.", where="reduction")
    return own if given is None else given


def spread_seeds(seed: Any, count: int) -> list[int]:
    """One seed for each of `count` environments: spawned from one seed, or as given.

    Raises:
        OptionError: the wrong number of seeds, or a seed that is negative or not an integer.

    Example:
        >>> spread_seeds([5, 6], 2)
        [5, 6]
    """
    # Strings are sequences too; `whole_number` rejects them with a message that names the given value.
    if not isinstance(seed, Sequence | np.ndarray) or isinstance(seed, str | bytes):
        whole = whole_number(seed, "seed", least=0)
        # Children of one SeedSequence are independent of each other, whatever the number of environments.
        return [int(child.generate_state(1)[0]) for child in np.random.SeedSequence(whole).spawn(count)]
    if len(seed) != count:
        raise OptionError(f"expected one seed, or {count}, got {len(seed)}.", where="seed")
    return [whole_number(entry, "seed", least=0) for entry in seed]


def checked_games(
    state: Any, kind: Mapping[str, Any], *, environments: int, actions: int, horizon: int
) -> list[npt.NDArray[np.uint8]]:
    """The actions of the games in a state that is to be restored, one array for each environment.

    Args:
        state: what `AtariVector.state` returned.
        kind: the game and its variant, as the states of these environments record them. States written by earlier
            versions do not record them and are accepted.
        environments: the number of environments.
        actions: the number of actions of the game.
        horizon: steps after which a game is truncated.

    Raises:
        TargetError: not a state, or the state of another game, variant or number of environments.
    """
    if not isinstance(state, Mapping) or any(key not in state for key in STATE_KEYS):
        given = sorted(map(str, state)) if isinstance(state, Mapping) else type(state).__name__
        raise TargetError(
            f"expected a value returned by `state`, with {', '.join(STATE_KEYS)}, got {given}.", where="state"
        )
    # Only keys that are present are compared; missing keys are accepted.
    for name, own in kind.items():
        if state.get(name, own) != own:
            raise TargetError(f"expected a state with {name} = {own!r}, got {state[name]!r}.", where="state")
    games = [np.frombuffer(log, dtype=np.uint8) for log in state["games"]]
    if len(games) != environments:
        raise TargetError(f"expected the state of {environments} environments, got {len(games)}.", where="state")
    # The log is indexed by step, and its values index the action table: check both before use.
    longest, largest = max(map(len, games)), max(int(game.max(initial=0)) for game in games)
    # `horizon` itself is rejected: a game of that length was truncated and is no longer being played.
    if longest >= horizon or largest >= actions:
        raise TargetError(
            f"games must have fewer than {horizon:,} steps, and actions at most {actions - 1}; got "
            f"{longest:,} steps and actions up to {largest}.",
            where="state",
        )
    return games
