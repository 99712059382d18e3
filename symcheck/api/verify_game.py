"""`verify_game`: check the board symmetries that AlphaZero-style training uses."""

from __future__ import annotations

from typing import Any, Unpack

import symcheck_properties  # noqa: F401  (registers the properties)
from symcheck.api.commands import options_that_differ, to_command
from symcheck.api.options import VerifyGameKeywords, VerifyGameOptions
from symcheck.api.report import Report
from symcheck.engine.events import Emit, ignore
from symcheck.engine.games.runner import run_game
from symcheck.engine.option_fields import from_keywords, shows_options
from symcheck.games.game import Symmetries
from symcheck.games.opening import open_game


@shows_options(VerifyGameOptions)
def verify_game(
    game: Any,
    symmetries: Symmetries | str | None = None,
    *,
    emit: Emit | None = None,
    **options: Unpack[VerifyGameKeywords],
) -> Report:
    """Check that images of positions are equivalent to them, and that the policy vector is permuted accordingly.

    Positions are reached by legal play from the start; only legal moves are played. A game with few positions is tested
    completely.

    Args:
        game: an AlphaZero-style game (`getInitBoard`, `getActionSize`, `getNextState`, `getValidMoves`,
            `getGameEnded`, `getCanonicalForm`, `getSymmetries`), its class or a factory, "module:attr" or
            "file.py:attr"; or the name of an OpenSpiel game.
        symmetries: a function (board, pi) -> [(board, pi), ...], or a reference to one; None takes `getSymmetries`.
        emit: receives the engine's events as they happen.
        **options: the fields of `symcheck.api.options.VerifyGameOptions`: `adapter` ("alphazero", "openspiel", "pgx",
            "pettingzoo"), `samples` (positions), `max_time` (seconds), `alpha`, `seed`; None means the default.

    Returns:
        The report, with the properties group_axioms, legal_moves, next_state, outcome, policy_map, distinct_images.

    Raises:
        SymcheckError: the game cannot be played, claims no symmetries, or an option cannot be used.

    Example:
        >>> class Nim:  # take one or two of five: the board is the heap twice, and its image exchanges both
        ...     def getInitBoard(self): return np.array([5, 5])
        ...     def getActionSize(self): return 4
        ...     def getNextState(self, board, player, a):
        ...         board[a // 2] -= a % 2 + 1
        ...         return board, -player
        ...     def getValidMoves(self, board, player): return [board[a // 2] > a % 2 for a in range(4)]
        ...     def getGameEnded(self, board, player): return 0 if board.any() else -1
        ...     def getCanonicalForm(self, board, player): return board
        ...     def getSymmetries(self, board, pi): return [(board, pi), (board[::-1], pi[2:] + pi[:2])]
        >>> import numpy as np
        >>> verify_game(Nim).verdict
        'proved'
    """
    chosen: VerifyGameOptions = from_keywords(VerifyGameOptions, options, caller="verify_game")
    opened = open_game(game, adapter=chosen.adapter, symmetries=symmetries)
    command = ""
    if isinstance(game, str) and isinstance(symmetries, str | None):
        given = options_that_differ(chosen, VerifyGameOptions())
        command = to_command("verify-game", game, {"symmetries": symmetries, **given})
    result = run_game(opened, options=chosen, target=opened.label, command=command, emit=emit or ignore)
    return Report([result])
