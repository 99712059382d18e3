"""A property of a user's own: registered in one place, measured on the run's states, told by every writer."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import jsonschema
import numpy as np
import pytest
from rich.console import Console

import symcheck_properties  # noqa: F401  (registers the properties)
from symcheck.engine import registry
from symcheck.engine.environments.runner import EnvContext, run_env
from symcheck.engine.equations import BY_NAME
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import Counterexample, PropertyResult, RunResult
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry
from symcheck.verdict import Facts, decide
from symcheck_reports import html, junit, markdown, terminal
from symcheck_reports import json as json_report
from symcheck_reports.templating import formula

NAME, CLAIM, MEANING = "potential_invariance", "Phi(g s) = Phi(s)", "shaping pays alike on both sides"
MIRROR = Symmetry("mirror", catalog.cyclic(2), observation=[[-1, -1, -1, -1]], action=[[1, 0]])


def energy(obs: np.ndarray) -> float:
    """Even in every coordinate, so invariant under the mirror."""
    return float(np.square(obs.astype(np.float64)).sum())


def drift(obs: np.ndarray) -> float:
    """Odd: the planted defect."""
    return float(obs[0] + 2.0 * obs[2])


def check_potential(potential: Callable[[np.ndarray], float], context: EnvContext) -> PropertyResult:
    """Compare a shaping potential on the run's states with that on their images."""
    bench = context.chosen.bench
    cases = [(word, situation.obs) for word in bench.words for situation in bench.pool.situations]
    images = [bench.pairs.bound.observation(word, obs) for word, obs in cases]
    residuals = [abs(potential(image) - potential(obs)) for image, (_, obs) in zip(images, cases, strict=True)]
    worst = int(np.argmax(residuals))
    # Images are signed copies of float32 numbers: both sides are the same sum, in the same order.
    facts = Facts(checked=len(cases), violations=int(np.count_nonzero(residuals)), quantity="potential")
    verdict, reason = decide(facts)
    result = PropertyResult(
        NAME, verdict, "own", facts.checked, facts.violations, residuals[worst], reason=reason, facts=facts
    )
    word, obs = cases[worst]
    example = Counterexample(
        group_element=bench.pairs.bound.label(word),
        observation=obs,
        state=None,
        action=None,
        expected=potential(obs),
        actual=potential(images[worst]),
        residual=residuals[worst],
        where="potential",
        image_observation=images[worst],
    )
    return dataclasses.replace(result, counterexample=example) if verdict == "failed" else result


VERDICTS = {energy: "passed", drift: "failed"}


@pytest.fixture(scope="module", params=VERDICTS, ids=["correct", "planted defect"])
def potential(request: pytest.FixtureRequest) -> Callable[[np.ndarray], float]:
    chosen: Callable[[np.ndarray], float] = request.param
    return chosen


@pytest.fixture(scope="module")
def run(potential: Callable[[np.ndarray], float]) -> Iterator[RunResult]:
    @registry.register(NAME, kind="env", order=999, claim=CLAIM, meaning=MEANING)
    def potential_invariance(context: Any) -> PropertyResult:
        return check_potential(potential, context)

    try:
        options = EnvOptions(samples=500)
        yield run_env(lambda: gym.make("CartPole-v1"), MIRROR, options=options, target="CartPole-v1", command="")
    finally:
        registry.unregister(NAME, kind="env")


def own(run: RunResult) -> PropertyResult:
    return {result.name: result for result in run.properties}[NAME]


def printed(run: RunResult) -> str:
    stream = io.StringIO()
    terminal.print_run(run, Console(file=stream, width=100, color_system=None))
    return stream.getvalue()


def test_a_defect_fails_this_property_alone_and_a_correct_potential_fails_none(
    run: RunResult, potential: Callable[[np.ndarray], float]
) -> None:
    assert (own(run).verdict, run.verdict) == (VERDICTS[potential],) * 2
    assert [result.name for result in run.properties if result.verdict == "failed"] == [NAME] * (potential is drift)


def test_json_carries_its_equation_and_follows_the_schema(run: RunResult) -> None:
    data = json.loads(json_report.render(run))
    jsonschema.validate(data, json_report.schema())
    written = {entry["name"]: entry for entry in data["properties"]}[NAME]
    assert (written["equation"], written["meaning"]) == (CLAIM, MEANING)


def test_the_page_prints_its_equation_and_its_words(run: RunResult) -> None:
    page = html.render_run(run)
    assert str(formula(CLAIM)) in page
    assert MEANING in page


@pytest.mark.parametrize("write", [printed, markdown.render, junit.render], ids=["terminal", "Markdown", "JUnit"])
def test_text_names_it_and_a_failure_states_its_equation(run: RunResult, write: Callable[[RunResult], str]) -> None:
    text = write(run).replace("\\", "")
    assert NAME in text
    assert (f"{CLAIM}: " in text) is (own(run).verdict == "failed")


@pytest.mark.parametrize("kind", ["env", "net"])
def test_our_own_properties_claim_what_the_table_says(kind: Any) -> None:
    everything = registry.registered_properties(kind)
    ours = [entry for entry in everything if entry.check.__module__.startswith("symcheck_properties")]
    assert ours
    for entry in ours:
        row = BY_NAME[entry.name]
        assert (entry.claim, entry.meaning) == (row.claim, row.meaning)
