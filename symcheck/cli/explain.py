"""`symcheck explain`: what a finding code means, its usual causes and remedies."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Annotated

import typer

from symcheck.cli import completion
from symcheck.cli.exit_codes import reports_mistakes

_WIDTH = 100


@reports_mistakes
def command(
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="[CODE]",
            help="For instance SYM014; all codes are listed when left out.",
            autocompletion=completion.codes,
        ),
    ] = None,
) -> None:
    """Say what a finding code means, what usually causes it and what helps.

    Example: symcheck explain SYM014
    """
    from symcheck import findings

    if code is None:
        for finding in findings.findings().values():
            typer.echo(f"{finding.code}  {finding.title}")
        return
    found = findings.explain(code)
    typer.echo(f"{found.code}  {found.title}\n")
    typer.echo(textwrap.fill(found.meaning, _WIDTH))
    _list("Usual causes", found.causes)
    _list("What helps", found.remedies)


def _list(title: str, items: Sequence[str]) -> None:
    typer.echo(f"\n{title}:")
    for item in items:
        typer.echo(textwrap.fill(item, _WIDTH, initial_indent="  - ", subsequent_indent="    "))
