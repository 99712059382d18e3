"""Terminal output of `symcheck discover`: the result, each candidate's verdict, the stages of the search, the file."""

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
    "rejected": "red",
    "undecided": "bold yellow",
    "untried": "yellow",
}
_WIDTH = len("undecided")
_GAP = " " * (_WIDTH + 2)
SHOWN = 12  # candidates
# maximum number of candidates with the same verdict and reason; of more, one is shown and the others are counted
MOST_ALIKE = 3


def print_discovery(model: DiscoveryModel, console: Console, *, show_spec: bool = True) -> None:
    """Print a search.

    Args:
        model: the search.
        console: where to print.
        show_spec: whether to print the SPEC file too, if there is one.

    Example:
        >>> tried = DiscoveryCandidate("(o0) -> (-o0)", "0 <-> 1", 2, "passed", "checked on 500 rewards", 0.0)
        >>> model = DiscoveryModel("X-v0", "passed", "C2", 2, 'name = "m"', (("2", "maps"),), "", (tried,))
        >>> print_discovery(model, Console(width=100, color_system=None), show_spec=False)  # doctest: +ELLIPSIS
        passed     X-v0: C2 (order 2) found and verified.
        ...
    """
    for line in lines(model, show_spec=show_spec):
        console.print(line, soft_wrap=True, highlight=False)


def lines(model: DiscoveryModel, *, show_spec: bool) -> list[Text]:
    """All lines, one `rich.text.Text` each: the result, the candidates, the stages of the search, the file."""
    answer = _verdict(model.verdict if model.order > 1 else _nothing(model))
    facts = f"{seconds(model.duration_s)}, seed {model.seed}, {words.budget_sentence(model)}"
    made = [Text.assemble(answer, words.found_sentence(model)), Text(f"{_GAP}{facts}", style="dim")]
    made += [Text(f"{_GAP}{one_line(line, 300)}", style="dim") for line in words.evidence_lines(model)]
    made.append(Text())
    listed = words.gather(model.candidates, MOST_ALIKE)
    for candidate, more in listed[:SHOWN]:
        made += _candidate(candidate, more)
    if rest := words.left_out(listed[SHOWN:]):
        made.append(Text(f"{_GAP}{rest}", style="dim"))
    for rotation in model.rotations:
        made.append(Text.assemble(("rotation".ljust(_WIDTH), "bold"), "  ", words.rotation_sentence(rotation)))
    made += [Text.assemble(("note".ljust(_WIDTH), "dim"), "  ", one_line(text, 400)) for text in model.remarks]
    # The stages of the search come after its results.
    stages = [*words.narrowing_lines(model), *words.form_lines(model), *([model.how] if model.how else [])]
    made += [*([Text()] if made[-1] else []), *(Text(f"  {one_line(line, 300)}", style="dim") for line in stages)]
    if show_spec and model.spec:
        made += [*([Text()] if made[-1] else []), *(Text(line) for line in model.spec.splitlines())]
    return made if made[-1] else made[:-1]


def _nothing(model: DiscoveryModel) -> str:
    return "undecided" if model.verdict == "undecided" else "none"


def _candidate(candidate: DiscoveryCandidate, more: int) -> list[Text]:
    made = [Text.assemble(_verdict(candidate.verdict), one_line(candidate.observation, 240))]
    if candidate.action:
        made.append(Text(f"{_GAP}actions: {one_line(candidate.action, 240)}"))
    made.append(Text(f"{_GAP}order {candidate.order or 'infinite'}; {one_line(candidate.why, 600)}", style="dim"))
    if alike := words.more_of_a_kind(candidate, more):
        made.append(Text(f"{_GAP}{alike}", style="dim"))
    return made


def _verdict(verdict: str) -> Text:
    return Text(verdict.ljust(_WIDTH) + "  ", style=_STYLES.get(verdict, "bold"))
