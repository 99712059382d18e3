"""Built-in state access for Gymnasium's toy text: FrozenLake, CliffWalking, Taxi and Blackjack.

The state of the first three is one number, which is also the observation. Taxi with `fickle_passenger` also stores
whether the passenger will change the destination; its state is then (number, flag). Blackjack's state is both hands, as
21 numbers: 0-9 the player's count of cards of value 1 to 10, 10 the dealer's open card, 11-20 the dealer's count of
cards of each value. The order of the cards matters only for the dealer's open card.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck.envs.state_access.record import Origin, StateAccess

_CARDS = 10


def built_in(env: Any) -> StateAccess | None:
    """The built-in access of an unwrapped toy text environment, or None for any other class.

    Args:
        env: the unwrapped environment; subclasses count.

    Returns:
        Access without `sample`, because not every number is a state that an episode visits.
    """
    for base in type(env).__mro__:
        maker = _MAKERS.get(f"{base.__module__}:{base.__name__}")
        if maker is not None:
            return maker(env)
    return None


def _access_by_number(env: Any) -> StateAccess:
    def set_state(target: Any, state: Any) -> None:
        target.s = int(state)
        target.lastaction = None

    return StateAccess(
        set_state,
        f"{type(env).__name__.removesuffix('Env')}: the index of the state",
        Origin.BUILT_IN,
        get=lambda target: np.int64(target.s),
        observe=lambda state: int(state),
        from_observation=lambda obs: np.int64(obs),
    )


def _taxi(env: Any) -> StateAccess:
    if not getattr(env, "fickle_passenger", False):
        return _access_by_number(env)

    def set_state(target: Any, state: Any) -> None:
        target.s, target.fickle_step = int(state[0]), bool(state[1])
        target.lastaction = None

    return StateAccess(
        set_state,
        "Taxi: the index of the state, and whether the passenger will change the destination",
        Origin.BUILT_IN,
        get=lambda target: np.array([target.s, target.fickle_step], dtype=np.int64),
        observe=lambda state: int(state[0]),
    )


def _blackjack(env: Any) -> StateAccess:
    def get_state(target: Any) -> npt.NDArray[np.int64]:
        return np.array([*_counts(target.player), target.dealer[0], *_counts(target.dealer)], dtype=np.int64)

    def set_state(target: Any, state: Any) -> None:
        numbers = np.asarray(state, dtype=np.int64)
        opened = int(numbers[_CARDS])
        rest = numbers[_CARDS + 1 :].copy()
        rest[opened - 1] -= 1  # the open card is included in the dealer's counts
        target.player = _cards(numbers[:_CARDS])
        # The environment shows dealer[0]; the order of the other cards is irrelevant.
        target.dealer = [opened, *_cards(rest)]

    return StateAccess(
        set_state,
        "Blackjack: both hands",
        Origin.BUILT_IN,
        get=get_state,
        observe=lambda state: _blackjack_observation(np.asarray(state)),
    )


def _counts(hand: list[int]) -> list[int]:
    return [sum(card == value for card in hand) for value in range(1, _CARDS + 1)]


def _cards(counts: npt.NDArray[np.int64]) -> list[int]:
    return [value + 1 for value, count in enumerate(counts) for _ in range(int(count))]


def _blackjack_observation(state: npt.NDArray[np.int64]) -> tuple[int, int, int]:
    """The player's sum (an ace counts 11 if the sum stays within 21), the open card, and whether an ace counts 11."""
    total = int(np.arange(1, _CARDS + 1) @ state[:_CARDS])
    usable = int(state[0] > 0 and total + 10 <= 21)
    return total + 10 * usable, int(state[_CARDS]), usable


_PACKAGE = "gymnasium.envs.toy_text"
_MAKERS: dict[str, Callable[[Any], StateAccess]] = {
    f"{_PACKAGE}.frozen_lake:FrozenLakeEnv": _access_by_number,
    f"{_PACKAGE}.cliffwalking:CliffWalkingEnv": _access_by_number,
    f"{_PACKAGE}.taxi:TaxiEnv": _taxi,
    f"{_PACKAGE}.blackjack:BlackjackEnv": _blackjack,
}
