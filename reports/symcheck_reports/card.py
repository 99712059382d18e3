"""Short forms of a report: a Markdown block for a model card, and a badge.

Both are made from a JSON report.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from symcheck.engine.published import READABLE, upgrade
from symcheck.engine.results import overall_verdict
from symcheck_reports.formatting import one_line, plural
from symcheck_reports.markdown import escaped

_COLOURS = {"proved": "#1a7f37", "passed": "#1a7f37", "undecided": "#9a6700", "failed": "#cf222e"}
_CHARACTER = 6.6  # width in pixels of one letter of the badge's font, on average


def read_runs(report: Any) -> list[dict[str, Any]]:
    """The runs of a published report.

    Args:
        report: the parsed JSON.

    Raises:
        ValueError: the data is not a report.
    """
    if not isinstance(report, dict) or report.get("schema") not in READABLE:
        raise ValueError("a file that is not a symcheck report")
    whole = upgrade(report)
    runs = whole.get("reports", [whole])
    needed = ("target", "symmetry", "group", "verdict", "properties")
    if not isinstance(runs, list) or not all(isinstance(run, dict) and set(needed) <= run.keys() for run in runs):
        raise ValueError("a report without a verdict, such as that of a search")
    return runs


def render(runs: Sequence[Mapping[str, Any]]) -> str:
    r"""The block for a model card, Markdown that ends with a newline.

    Args:
        runs: the runs from `read_runs`.

    Example:
        >>> held = {"name": "reward_invariance", "verdict": "passed", "checked": 500}
        >>> run = {"target": "CartPole-v1", "symmetry": "mirror", "group": {"name": "C2"}, "verdict": "passed",
        ...        "properties": [held], "alpha": 0.01, "seed": 0, "command": "symcheck verify-env CartPole-v1"}
        >>> print(render([run]).splitlines()[2])
        `CartPole-v1` under `mirror` (C2): **passed**.
    """
    return "## Symmetry\n\n" + "\n".join(map(_card_block, runs))


def _card_block(run: Mapping[str, Any]) -> str:
    approximate = ", approximately" if run.get("approximate") else ""
    group = escaped(str(run["group"].get("name", "")))
    head = f"{_span(run['target'])} under {_span(run['symmetry'])} ({group}): **{run['verdict']}**{approximate}.\n"
    rows = ["| property | verdict | evidence |", "|---|---|---|"]
    rows += [f"| {escaped(item['name'])} | {item['verdict']} | {_evidence(item)} |" for item in run["properties"]]
    version = run.get("versions", {}).get("symcheck")
    made = f"symcheck {version}" if version else "symcheck"
    ends = [f"Checked with {made}, alpha {run.get('alpha')} over the whole run, seed {run.get('seed')}."]
    if run.get("command"):
        ends.append(f"Again: {_span(run['command'])}")
    return "\n".join([head, *rows, "", *ends, ""])


def _span(text: object) -> str:
    return "`" + one_line(str(text), 300).replace("`", "'").replace("|", "\\|") + "`"


def _evidence(item: Mapping[str, Any]) -> str:
    checked = item.get("checked")
    if item["verdict"] == "proved":
        return "every input"
    return plural(checked, "check") if isinstance(checked, int) and checked else "none"


def _badge(runs: Sequence[Mapping[str, Any]]) -> tuple[str, str, str]:
    """The left and right text of a badge, and its colour."""
    verdict = overall_verdict(run["verdict"] for run in runs)
    groups = {str(run["group"].get("name", "")) for run in runs}
    group = next(iter(groups)) if len(groups) == 1 else plural(len(runs), "symmetry", "symmetries")
    return f"symmetry {group}", verdict, _COLOURS[verdict]


def badge_json(runs: Sequence[Mapping[str, Any]]) -> str:
    """The badge in the endpoint JSON format of badge services."""
    label, message, colour = _badge(runs)
    return json.dumps({"schemaVersion": 1, "label": label, "message": message, "color": colour}) + "\n"


def badge_svg(runs: Sequence[Mapping[str, Any]]) -> str:
    """The badge as a self-contained SVG with an accessible name."""
    label, message, colour = _badge(runs)
    left, right = (round(_CHARACTER * len(text)) + 12 for text in (label, message))
    name = escape(f"{label}: {message}")
    texts = "".join(
        f'<text x="{x}" y="14" text-anchor="middle">{escape(text)}</text>'
        for x, text in ((left / 2, label), (left + right / 2, message))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{name}">'
        f'<title>{name}</title><rect width="{left}" height="20" fill="#424a53"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{colour}"/>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">{texts}</g></svg>\n'
    )
