"""`symcheck atlas`: the symmetries of known environments, exact, approximate or only apparent."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from symcheck.cli import completion
from symcheck.cli.exit_codes import ExitCode, reports_mistakes
from symcheck.errors import MissingExtraError, OptionError

if TYPE_CHECKING:
    from rich.console import Console

    from symcheck.api.atlas_check import Reproduction
    from symcheck.envs.atlas import AtlasEntry


@reports_mistakes
def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...",
            help="Environments or entries. Default: all.",
            autocompletion=completion.atlas_subjects,
        ),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Verify the entries again, with each seed.")] = False,
    seeds: Annotated[int, typer.Option(help="Number of seeds for --check; the seeds are 0, 1, ...")] = 3,
    write: Annotated[Path | None, typer.Option(help="Write the atlas to this file as a Markdown page.")] = None,
) -> None:
    """Print the recorded symmetries of known environments, or verify them again.

    Exit codes of --check: 0 all entries are as recorded, 1 an entry is not, 2 unusable input or nothing could be
    checked, 3 some entries need an extra that is not installed.

    Example: symcheck atlas CartPole-v1 --check
    """
    from symcheck.envs import atlas

    # With no seeds, nothing would be checked and the exit code would be 0.
    if seeds < 1:
        raise OptionError(f"expected 1 seed or more, got {seeds}.", where="--seeds")
    if check and write is not None:
        raise OptionError("--check and --write cannot be combined.", where="--write", remedy="Check first, then write.")
    chosen = atlas.select_entries(tuple(names or ()))
    if write is not None:
        _write(write, chosen)
    elif check:
        raise typer.Exit(_check(chosen, range(seeds)))
    else:
        _print_entries(chosen)


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False)


def _write(path: Path, entries: tuple[AtlasEntry, ...]) -> None:
    from symcheck.envs.atlas_page import render_page
    from symcheck.files import write_text

    write_text(path, render_page(entries))
    typer.echo(f"written: {path}")


def _print_entries(entries: Iterable[AtlasEntry]) -> None:
    from rich.text import Text

    console = _console()
    for entry in entries:
        claimed = "claimed" if entry.claim else "recorded, not claimed"
        head = f"{entry.name}  {entry.verdict}, {entry.kind}, {claimed}"
        console.print(Text(head, style="bold"), soft_wrap=True)
        console.print(Text(f"  {', '.join(entry.environments)} under {entry.group}: {entry.why}"), soft_wrap=True)
        for line in details(entry):
            console.print(Text(f"  {line}"), soft_wrap=True)


def details(entry: AtlasEntry) -> list[str]:
    """The violations of an entry: properties, sizes, places and reasons, one line each; empty if it holds everywhere.

    Args:
        entry: an entry of the atlas.

    Returns:
        Lines of text.
    """
    lines = []
    if entry.fails:
        sized = [f"{name} ({entry.size[name]:.1e})" if name in entry.size else name for name in entry.fails]
        lines.append(f"fails: {', '.join(sized)}")
    if entry.sometimes:
        lines.append(f"fails with some seeds only: {', '.join(entry.sometimes)}")
    if entry.subgroup:
        lines.append(f"what holds: {entry.subgroup}")
    if entry.region:
        lines.append(f"where: {entry.region}")
    lines += [f"breaks it: {text}" for text in entry.breaks]
    if not entry.installed:
        lines.append(f"cannot be checked here: {entry.install_line}")
    return lines


def _check(entries: tuple[AtlasEntry, ...], seeds: range) -> ExitCode:
    from symcheck.api.atlas_check import check_entries

    # Entries whose extra is missing do not fail the check, but leave it undecided.
    ready = [entry for entry in entries if entry.installed]
    missing = [entry for entry in entries if not entry.installed]
    if not ready:
        raise MissingExtraError(missing[0].needs, needed_for=f"checking {missing[0].name}")
    console = _console()
    checks = []
    for check in check_entries(ready, seeds=seeds):
        checks.append(check)
        _show(console, check)
    for entry in missing:
        console.print(f"not checked  {entry.name}: {entry.install_line}", soft_wrap=True, markup=False)
    return _summary(console, checks, len(missing))


def _show(console: Console, one: Reproduction) -> None:
    state = "interrupted" if one.interrupted else "differs" if one.problems else "as recorded"
    line = f"{state:<12} {one.entry.name}  {one.env_id}, seed {one.seed}: {one.verdict} ({one.seconds:.1f} s)"
    console.print(line, soft_wrap=True, markup=False, style="bold red" if one.problems else None)
    for problem in one.problems:
        console.print(f"             {problem}", soft_wrap=True, markup=False)


def _summary(console: Console, found: list[Reproduction], missing: int) -> ExitCode:
    differing = [check for check in found if check.problems]
    entries, seconds = {check.entry.name for check in found}, sum(check.seconds for check in found)
    runs = _count_phrase(len(found), "run", "runs")
    counts = f"{_count_phrase(len(entries), 'entry', 'entries')}, {runs} in {seconds:.0f} s"
    if found and found[-1].interrupted:  # only the last one can be interrupted
        console.print(f"interrupted after {counts}", markup=False)
        return ExitCode.INTERRUPTED
    if differing:
        names = ", ".join(sorted({check.entry.name for check in differing}))
        console.print(f"{counts}; not as recorded: {names}", soft_wrap=True, markup=False)
        return ExitCode.FAILED
    skipped = f", {_count_phrase(missing, 'entry', 'entries')} not checked" if missing else ""
    console.print(f"{counts}; all as recorded{skipped}", markup=False)
    return ExitCode.UNDECIDED if missing else ExitCode.GOOD


def _count_phrase(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"
