"""Opens the game that a user names: a class, a factory, an instance, or the name of a library's game."""

from __future__ import annotations

import importlib
from typing import Any, Literal, get_args

from symcheck.errors import OptionError, SymcheckError, TargetError, suggestion
from symcheck.games.alphazero import AlphaZeroGame
from symcheck.games.game import Game, Symmetries, call
from symcheck.games.played import PlayedGame
from symcheck.loading import is_reference, load_attribute

Adapter = Literal["alphazero", "openspiel", "pgx", "pettingzoo"]
ADAPTERS: tuple[str, ...] = get_args(Adapter)
_TELLING = {"alphazero": "getNextState", "openspiel": "new_initial_state", "pgx": "init", "pettingzoo": "agent_iter"}
"""For each adapter, a function that identifies its games; the library's module in this package has the same name."""


def open_game(target: Any, *, adapter: str | None = None, symmetries: Symmetries | str | None = None) -> Game:
    """Open the game to be checked.

    Args:
        target: "module:attr", "file.py:attr", the name of a library's game, a class, a factory or an instance.
        adapter: the library of the game; None to recognise it by its functions.
        symmetries: a function (board, pi) -> [(board, pi), ...], or a reference to one; None for the game's own.

    Returns:
        The game, with the common interface.

    Raises:
        SymcheckError: the name is unknown, the target is not a game, or there are no symmetries.
    """
    if adapter is not None and adapter not in ADAPTERS:
        raise OptionError(
            f"expected an adapter, got {adapter!r}.", where="--adapter", remedy=suggestion(str(adapter), ADAPTERS)
        )
    function, function_label = _load_symmetries(symmetries)
    game = _load_target(target, adapter)
    label = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
    kind = adapter or next((name for name, function in _TELLING.items() if hasattr(game, function)), None)
    if kind is not None and kind != "alphazero":
        library = importlib.import_module(f"symcheck.games.{kind}")  # loads the library
        return PlayedGame(library.rules_of(game, label), function, label, function_label)
    return AlphaZeroGame(game, function, label, function_label or "getSymmetries")


def is_game(target: str) -> bool:
    """Whether a reference names a board game, or a class of one; other names are not imported.

    Example:
        >>> is_game("CartPole-v1")
        False
    """
    if not is_reference(target):
        return False
    try:
        value = load_attribute(target, where="TARGET")
    except SymcheckError:  # opening it will report the error, or it names an environment
        return False
    # Environments of Pgx are recognised by several functions, because `init` alone is too common.
    return any(hasattr(value, function) for name, function in _TELLING.items() if name != "pgx")


def _load_symmetries(given: Any) -> tuple[Symmetries | None, str]:
    if given is None:
        return None, ""
    function = load_attribute(given, where="--symmetries") if isinstance(given, str) else given
    if not callable(function):
        raise TargetError(
            f"expected a function (board, pi) -> [(board, pi), ...], got {type(function).__name__}.",
            where="--symmetries",
        )
    name = given.rpartition(":")[2] if isinstance(given, str) else getattr(function, "__name__", "symmetries")
    return function, str(name)


def _load_target(target: Any, adapter: str | None) -> Any:
    if isinstance(target, str) and not is_reference(target):
        if adapter == "alphazero":
            raise TargetError(
                f"expected module:name or file.py:name, got {target!r}.",
                where="TARGET",
                remedy="Add the name of the object, for instance my_game.py:Game.",
            )
        return importlib.import_module(f"symcheck.games.{adapter or 'openspiel'}").load(target)
    value = load_attribute(target, where="TARGET") if isinstance(target, str) else target
    # A class has the functions of its instances, so instantiate it first.
    is_game = not isinstance(value, type) and any(hasattr(value, function) for function in _TELLING.values())
    if is_game or not callable(value):
        return value
    return call(getattr(value, "__name__", "the factory"), value)
