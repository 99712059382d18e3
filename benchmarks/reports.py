"""Rendering times and sizes of pages: `python benchmarks/reports.py`.

Budgets: 500 kB for 1,000 checks and for 5 networks x 25 seeds; 2,000 checks rendered in under 1 s of CPU, and opened in
under 1.5 s. With `--open`, pages are also opened in headless Chromium, with the driver of the browser tests.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from symcheck.engine.results import Counterexample, PropertyResult, RunResult
from symcheck_reports import html, json, junit, markdown
from symcheck_reports.curve_model import CurveModel, NetworkCurves, SeedCurve
from symcheck_reports.curves import render_curves

NAMES = ("reward_invariance", "transition_invariance", "termination_invariance", "initial_invariance")


def runs(number: int, failing_every: int = 50) -> list[RunResult]:
    """Runs of five properties each; one in `failing_every` has a counterexample."""
    coordinates = tuple({"name": f"observation[{i}]", "max_residual": 1e-8, "tolerance": 1e-6} for i in range(4))
    bound = {"kind": "violation_fraction", "value": 3e-4, "confidence": 0.99, "region": "rollouts and their images"}
    found = []
    for index in range(number):
        properties = [PropertyResult("group_axioms", "proved", "relations", 2)]
        for name in NAMES:
            failing = index % failing_every == 0 and name == "transition_invariance"
            example = Counterexample("g", [0.0, 0.5, 0, 0], None, 1, [1.0, 2, 3, 4], [1.0, 2, 3, 5], 1.0, "theta")
            properties.append(
                PropertyResult(
                    name,
                    "failed" if failing else "passed",
                    "paired",
                    20000,
                    max_residual=1.0 if failing else 1e-8,
                    tolerance=1e-6,
                    bound=bound,
                    counterexample=example if failing else None,
                    per_coordinate=coordinates if name == "transition_invariance" else (),
                )
            )
        claim = {"observation": ["g: (o0, o1, o2, o3) -> (-o0, -o1, -o2, -o3)"], "action": ["g: 0 <-> 1"]}
        group = {"name": "C2", "order": 2}
        found.append(RunResult("env", f"Task{index}-v0", "mirror", group, tuple(properties), 0.01, 0, claim=claim))
    return found


def curves() -> CurveModel:
    """Five networks, 25 seeds each, 60 evaluations."""
    steps = list(range(500, 30500, 500))
    networks = [
        NetworkCurves(
            name, 0.001, [SeedCurve(s, steps, [min(500.0, t / (20 + s + 5 * k)) for t in steps]) for s in range(25)]
        )
        for k, name in enumerate(("equivariant", "nullspace", "random", "mlp", "mlp-wide"))
    ]
    return CurveModel("CartPole-v1", networks, threshold=475.0)


def report(label: str, render: Callable[[], str]) -> None:
    """Print CPU seconds (the best of three) and size."""
    times = []
    for _ in range(3):
        start = time.process_time()
        text = render()
        times.append(time.process_time() - start)
    opened = f"  opens in {opening(text):5.2f} s" if "--open" in sys.argv and text.startswith("<!doctype html>") else ""
    print(f"{label:<44} {min(times):6.3f} s CPU {len(text.encode()) / 1000:8.1f} kB{opened}")


def opening(text: str) -> float:
    """Seconds until the load event of a page 1280 pixels wide, measured by the page: the median of five."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "reports"))
    from browser_tab import Browser  # type: ignore[import-not-found,unused-ignore]

    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(text, encoding="utf-8")
        browser = Browser(Path(folder) / "profile")
        browser.size(1280, 900)
        times = [browser.open(page) / 1000 for _ in range(5)]
        browser.close()
    return statistics.median(times)


def main() -> None:
    """Run all measurements."""
    report("HTML, 1 run (5 checks)", lambda: html.render_run(runs(1)))
    for checks in (1000, 2000):
        many = runs(checks // 5)
        report(f"HTML, {checks:,} checks", lambda many=many: html.render_run(many))  # type: ignore[misc]
        report(f"JSON, {checks:,} checks", lambda many=many: json.render(many))  # type: ignore[misc]
        report(f"JUnit, {checks:,} checks", lambda many=many: junit.render(many))  # type: ignore[misc]
        report(f"Markdown, {checks:,} checks", lambda many=many: markdown.render(many))  # type: ignore[misc]
    report("learning curves, 5 networks x 25 seeds", lambda: render_curves(curves()))


if __name__ == "__main__":
    main()
