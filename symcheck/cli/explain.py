"""`symcheck explain`: the meaning of a report's code, its usual causes and remedies."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from symcheck.cli import completion
from symcheck.cli.exit_codes import reports_mistakes

if TYPE_CHECKING:
    from symcheck.findings import Finding

_WIDTH = 100


@reports_mistakes
def command(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CODE]",
            help="A code such as SYM014 or nan_only, or words to search for. Default: list all codes.",
            autocompletion=completion.codes,
        ),
    ] = None,
) -> None:
    """Explain the meaning, usual causes and remedies of a code in a report, or search for codes by words.

    Example: symcheck explain SYM014
    """
    from symcheck import findings

    if not words:
        _list_codes()
        return
    code = " ".join(words)
    if len(code.split()) > 1 and (similar := findings.search(code)):
        typer.echo(f"Codes about {code!r}:")
        for finding in similar:
            typer.echo(_code_line(finding, max(len(other.code) for other in similar)))
        return
    finding = findings.explain(code)
    if finding.title == finding.sentence:
        _echo_filled(f"{finding.code}  {finding.sentence}")
        _echo_filled(finding.meaning, above=True)
    else:
        _echo_filled(f"{finding.code}  {finding.title}")
        _echo_filled(finding.meaning, above=True)
        _echo_filled(f"Reports say: {finding.sentence}", above=True)
    _echo_items("Usual causes", finding.causes)
    _echo_items("What helps", finding.remedies)


def _list_codes() -> None:
    """One line per code, causes first; a title that is a whole sentence is truncated to the line."""
    from symcheck import findings
    from symcheck.statements.statement import TABLES

    for kind in TABLES:
        listed = findings.findings(kind)
        if kind != "causes":
            typer.echo(f"\n{kind.capitalize()}:")
        width = max(map(len, listed))
        for finding in listed.values():
            typer.echo(_code_line(finding, width))


def _code_line(finding: Finding, width: int) -> str:
    line = f"{finding.code.ljust(width)}  {finding.title}"
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 4].rstrip()} ..."


def _echo_filled(text: str, *, above: bool = False) -> None:
    typer.echo(("\n" if above else "") + textwrap.fill(text, _WIDTH, break_long_words=False))


def _echo_items(title: str, items: Sequence[str]) -> None:
    if not items:
        return
    typer.echo(f"\n{title}:")
    for item in items:
        typer.echo(textwrap.fill(item, _WIDTH, initial_indent="  - ", subsequent_indent="    "))
