"""JUnit XML: a test suite per run, a test case per property, for the test pages of CI systems.

`failed` is a failure and `undecided` an error, so both stop a build that reads only JUnit; `passed` and `proved`
succeed and give their evidence in `system-out`.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence

from symcheck.engine.results import PropertyResult, RunResult
from symcheck_reports import words
from symcheck_reports.formatting import clean, one_line


def render(results: Sequence[RunResult] | RunResult) -> str:
    """The report as XML text with a declaration.

    Args:
        results: one or more runs.

    Returns:
        One `testsuites` element; well-formed for any characters in names.

    Example:
        >>> held = PropertyResult("reward_invariance", "passed", "paired", 500)
        >>> run = RunResult("env", "Mine-v0", "mirror", {"name": "C2", "order": 2}, (held,), 0.01, 0)
        >>> 'testcase classname="symcheck.Mine-v0 under mirror" name="reward_invariance"' in render(run)
        True
    """
    runs = [results] if isinstance(results, RunResult) else list(results)
    root = ET.Element("testsuites", {"name": "symcheck", **_totals(runs)})
    for run in runs:
        root.append(_suite(run))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _totals(runs: Sequence[RunResult]) -> dict[str, str]:
    tally = words.count_verdicts([p for run in runs for p in run.properties])
    return {
        "tests": str(sum(tally.values())),
        "failures": str(tally["failed"]),
        "errors": str(tally["undecided"]),
        "skipped": "0",
        "time": f"{sum(run.duration_s for run in runs):.3f}",
    }


def _suite(run: RunResult) -> ET.Element:
    name = f"{words.target_name(run)} under {one_line(run.symmetry, 120)}"
    suite = ET.Element("testsuite", {"name": name, **_totals([run])})
    properties = ET.SubElement(suite, "properties")
    for key, text in (("group", str(run.group.get("name", ""))), ("command", run.command), *words.facts(run)):
        if text:
            ET.SubElement(properties, "property", name=key, value=clean(text))
    for result in run.properties:
        suite.append(_case(result, run, name))
    ET.SubElement(suite, "system-out").text = words.verdict_sentence(run)
    return suite


def _case(result: PropertyResult, run: RunResult, suite: str) -> ET.Element:
    case = ET.Element("testcase", classname=f"symcheck.{suite}", name=one_line(result.name, 120), time="0")
    text = "\n".join(words.property_lines(result, run))
    if result.verdict == "failed":
        message = f"{result.name}: {words.residual_sentence(result) or words.evidence(result)}"
        ET.SubElement(case, "failure", type="failed", message=one_line(message, 400)).text = text
    elif result.verdict == "undecided":
        message = words.reason_text(result) or words.evidence(result)
        ET.SubElement(case, "error", type="undecided", message=one_line(message, 400)).text = text
    else:
        ET.SubElement(case, "system-out").text = text
    return case
