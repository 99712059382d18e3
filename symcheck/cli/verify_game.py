"""`symcheck verify-game`: check the symmetries claimed for a board game."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from symcheck.api.options import VerifyGameOptions
from symcheck.cli.derive import values_of, with_options
from symcheck.cli.exit_codes import reports_mistakes
from symcheck.cli.outputs import Outputs


@with_options(VerifyGameOptions, Outputs)
@reports_mistakes
def command(
    target: Annotated[
        str, typer.Argument(help="A game, pkg.mod:Class or path/file.py:Class, or the name of an OpenSpiel game.")
    ],
    symmetries: Annotated[
        str | None,
        typer.Option(
            help="A function (board, pi) -> [(board, pi), ...], module:attr or file.py:attr. Default: the "
            "game's own getSymmetries."
        ),
    ] = None,
    **given: Any,
) -> None:
    """Check a game's getSymmetries: legal moves, next states, outcomes and policies must transform like the board.

    Example: symcheck verify-game examples/games.py:TicTacToe
    """
    outputs = Outputs(**values_of(Outputs, given))
    accepted = outputs.check()
    options = values_of(VerifyGameOptions, given)
    from symcheck.api.verify_game import verify_game
    from symcheck.cli.watching import watched

    with watched(outputs, max_time=options.get("max_time")) as emit:
        report = verify_game(target, symmetries, emit=emit, **options)
    outputs.finish(report, accepted)
