"""Terminal output of `symcheck discover`: how the search narrowed, each candidate's verdict, the SPEC file."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from symcheck_reports import discovery_words as words
from symcheck_reports.discovery_model import DiscoveryCandidate, DiscoveryModel
from symcheck_reports.formatting import one_line, seconds

_STYLES = {
    "proved": "bold green",
    "passed": "green",
    "follows": "green",
    "failed": "bold red",
    "refused": "red",
    "undecided": "bold yellow",
    "untried": "yellow",
}
_WIDTH = len("undecided")
SHOWN = 12  # candidates; a robot may have hundreds that the screen refused


def print_discovery(model: DiscoveryModel, console: Console, *, show_spec: bool = True) -> None:
    """Print a search.

    Args:
        model: the search.
        console: where to print.
        show_spec: print the SPEC file too, where one was found.

    Example:
        >>> tried = DiscoveryCandidate("(o0) -> (-o0)", "0 <-> 1", 2, "passed", "holds on 500 rewards", 0.0)
        >>> model = DiscoveryModel("X-v0", "passed", "C2", 2, 'name = "m"', (("2", "maps"),), "", (tried,))
        >>> print_discovery(model, Console(width=100, color_system=None), show_spec=False)  # doctest: +ELLIPSIS
        X-v0: searching for symmetries
        ...
        passed     X-v0: C2 (order 2) found and verified.
        ...
    """
    for line in lines(model, show_spec=show_spec):
        console.print(line, soft_wrap=True, highlight=False)


def lines(model: DiscoveryModel, *, show_spec: bool) -> list[Text]:
    """All lines, one `rich.text.Text` each."""
    made = [Text(f"{one_line(model.target, 120)}: searching for symmetries", style="bold"), Text()]
    made += [Text(f"  {one_line(line, 200)}", style="dim") for line in words.narrowing_lines(model)]
    made += [Text(f"  {one_line(model.how, 300)}", style="dim")] if model.how else []
    made.append(Text())
    for candidate in model.candidates[:SHOWN]:
        made += _candidate(candidate)
    if rest := words.left_out(model, SHOWN):
        made.append(Text(f"{' ' * _WIDTH}  {rest}", style="dim"))
    for rotation in model.rotations:
        made.append(Text.assemble(("rotation".ljust(_WIDTH), "bold"), "  ", words.rotation_sentence(rotation)))
    made += [Text.assemble(("note".ljust(_WIDTH), "dim"), "  ", one_line(text, 400)) for text in model.remarks]
    made += [Text()] if made[-1] else []
    made.append(
        Text.assemble(_verdict(model.verdict if model.order > 1 else _nothing(model)), words.found_sentence(model))
    )
    facts = f"{seconds(model.duration_s)}, seed {model.seed}, {words.budget_sentence(model)}"
    made.append(Text(f"{' ' * _WIDTH}  {facts}", style="dim"))
    if show_spec and model.spec:
        made += [Text(), *(Text(line) for line in model.spec.splitlines())]
    return made


def _nothing(model: DiscoveryModel) -> str:
    return "undecided" if model.verdict == "undecided" else "none"


def _candidate(candidate: DiscoveryCandidate) -> list[Text]:
    gap = " " * (_WIDTH + 2)
    made = [Text.assemble(_verdict(candidate.verdict), one_line(candidate.observation, 240))]
    if candidate.action:
        made.append(Text(f"{gap}actions: {one_line(candidate.action, 240)}"))
    made.append(Text(f"{gap}order {candidate.order or 'infinite'}; {one_line(candidate.why, 600)}", style="dim"))
    return made


def _verdict(verdict: str) -> Text:
    return Text(verdict.ljust(_WIDTH) + "  ", style=_STYLES.get(verdict, "bold"))
