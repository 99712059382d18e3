"""Learning-curve pages: statistics against closed forms, and no flattery."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from symcheck.verdict import Verdict
from symcheck_reports import curve_statistics as statistics
from symcheck_reports.curve_figures import _draw_axes, _frame
from symcheck_reports.curve_model import CurveModel, FailedRun, NetworkCurves, SeedCurve
from symcheck_reports.curve_view import curve_view, steps_text, verdict_on_task
from symcheck_reports.curves import render_curves


def _network(*returns: list[float], failed: tuple[FailedRun, ...] = (), name: str = "n") -> NetworkCurves:
    curves = [SeedCurve(seed, list(range(100, 100 * len(r) + 1, 100)), r) for seed, r in enumerate(returns)]
    return NetworkCurves(name, 0.001, curves, failed_runs=failed)


def test_quantiles_are_taken_over_runs_at_each_step() -> None:
    curve = statistics.quantile_curve(_network([0.0, 10.0], [2.0, 20.0], [4.0, 90.0]), floor=0.0)
    assert curve.median.tolist() == [2.0, 20.0]
    assert curve.low.tolist() == [1.0, 15.0]
    assert curve.high.tolist() == [3.0, 55.0]


def test_runs_on_different_grids_are_interpolated() -> None:
    network = NetworkCurves(
        "n", 0.1, [SeedCurve(0, [0, 100], [0.0, 10.0]), SeedCurve(1, [0, 50, 100], [0.0, 9.0, 10.0])]
    )
    assert statistics.returns_on_grid(network, floor=0.0).tolist() == [[0.0, 5.0, 10.0], [0.0, 9.0, 10.0]]


def test_a_run_that_stopped_early_counts_as_the_lowest_return() -> None:
    network = _network([5.0, 400.0], [5.0, 450.0, 450.0], [5.0, 460.0, 460.0], failed=(FailedRun(0, "NaN"),))
    assert statistics.returns_on_grid(network, floor=5.0)[0].tolist() == [5.0, 400.0, 5.0]
    assert statistics.quantile_curve(network, floor=5.0).median.tolist() == [5.0, 450.0, 450.0]
    assert statistics.final_return(network, floor=5.0).tolist() == [5.0, 450.0, 460.0]


def test_a_run_whose_first_episode_never_ended_has_no_return_and_not_zero() -> None:
    unmeasured = [math.nan, math.nan]
    beside = _network([-21.0, -19.0], unmeasured)
    assert statistics.final_return(beside, floor=-21.0).tolist() == [-19.0]
    assert statistics.mean_return(beside, floor=-21.0).tolist() == [-20.0]
    page = render_curves(CurveModel("pong", [_network(unmeasured, name="nothing")]))
    assert re.findall(r"<td[^>]*>(.*?)</td>", page) == ["–", "–"]


def test_a_page_without_any_return_gives_none_to_runs_that_stopped_early() -> None:
    stopped = _network([math.nan], failed=(FailedRun(0, "the loss became NaN"),))
    assert math.isnan(statistics.lowest_return([stopped]))
    assert not len(statistics.final_return(stopped, statistics.lowest_return([stopped])))
    assert "as the lowest return on this page" not in render_curves(CurveModel("pong", [stopped]))


@pytest.mark.parametrize(
    ("detail", "features", "text", "lead"),
    [
        (
            "makes no claim to be equivariant",
            None,
            "verify-net: not run, makes no claim to be equivariant",
            "The networks were not verified.",
        ),
        ("features proved (exact)", "proved", "verify-net: features proved (exact)", "verify-net: n features proved."),
        (
            "features of the name alone are no verdict",
            None,
            "verify-net: not run, features of the name alone",
            "The networks were not verified.",
        ),
    ],
)
def test_a_network_whose_features_were_verified_is_not_said_to_be_unverified(
    detail: str, features: Verdict | None, text: str, lead: str
) -> None:
    network = dataclasses.replace(_network([1.0]), verdict_detail=detail, features_verdict=features)
    page = re.sub(r"<[^>]*>", "", render_curves(CurveModel("pong", [network])))
    assert text in page
    assert lead in page


def test_a_run_that_never_reaches_the_threshold_is_counted_not_dropped() -> None:
    network = _network([0.0, 480.0], [0.0, 0.0], [0.0, 0.0])
    reached = statistics.steps_to_threshold(network, 475.0)
    assert reached.tolist() == [200.0, math.inf, math.inf]
    assert statistics.median_steps(reached).value == math.inf
    assert steps_text(math.inf, 200) == "> 200"


def test_nan_never_reaches_a_threshold() -> None:
    assert statistics.first_reach([1, 2], [math.nan, math.nan], 0.0) == math.inf


@settings(deadline=None)
@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=40))
def test_the_interquartile_mean_is_scipys_trimmed_mean(scores: list[float]) -> None:
    ours = statistics.interquartile_mean(np.array(scores)).value
    # Both add the same numbers in another order: a few ulp of the largest.
    assert ours == pytest.approx(stats.trim_mean(scores, 0.25), rel=1e-12, abs=1e-9)


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 5).map(float), min_size=1, max_size=8),
    st.lists(st.integers(0, 5).map(float), min_size=1, max_size=8),
)
def test_the_probability_of_improvement_is_the_mann_whitney_statistic(ours: list[float], others: list[float]) -> None:
    estimate = statistics.probability_of_improvement(np.array(ours), np.array(others))
    wins = sum((a > b) + 0.5 * (a == b) for a in ours for b in others) / (len(ours) * len(others))
    assert estimate.value == pytest.approx(wins, abs=1e-12)  # a mean of at most 64 halves
    assert estimate.low <= estimate.value <= estimate.high or min(len(ours), len(others)) < statistics.LEAST_RUNS


def test_the_chance_of_being_better_is_told_to_two_digits() -> None:
    others = [_network(*[[5.0, 5.0]] * 9, name=name) for name in ("other", "third")]
    ours = _network(*[[10.0, 10.0]] * 3, *[[0.0, 0.0]] * 6, name="ours")
    page = render_curves(CurveModel("pong", [ours, *others]))
    cells = [re.sub("<[^>]*>", "", cell) for cell in re.findall(r'data-l="P\(ours better\)">(.*?)</td>', page, re.S)]
    assert cells[0].startswith("–")
    assert [cell.partition("(")[0].strip() for cell in cells[1:]] == ["0.33", "0.33"]


@pytest.mark.parametrize("low", [0.0, -20.0, 475.0])
def test_an_axis_of_returns_has_three_to_seven_labels(low: float) -> None:
    for top in range(1, 60, 2):
        curve = statistics.quantile_curve(_network([low, low + top]), floor=low)
        axes = "".join(_draw_axes(_frame([curve], None, 300)))
        assert 3 <= axes.count('class="grid"') <= 7


def test_the_axis_of_returns_up_to_six_counts_in_twos() -> None:
    curve = statistics.quantile_curve(_network([0.0, 6.2]), floor=0.0)
    labels = re.findall(r'<text[^>]*class="tick end"[^>]*>([^<]*)<', "".join(_draw_axes(_frame([curve], None, 300))))
    assert labels[:4] == ["0", "2", "4", "6"]


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        estimate = statistics.interquartile_mean(rng.normal(size=25))
        covered += estimate.low <= 0.0 <= estimate.high
    # Nominal 95%; a percentile bootstrap of 25 runs is known to fall a few percent short. 170 of 200 is 85%,
    # more than five standard errors below what was measured (93%).
    assert covered >= 170


def test_the_same_curves_give_the_same_page(curve_model: CurveModel) -> None:
    assert render_curves(curve_model) == render_curves(curve_model)


def test_the_heading_names_who_gets_there_first(curve_model: CurveModel) -> None:
    heading = verdict_on_task(curve_view(curve_model))
    assert heading == "CartPole-v1: the median of equivariant reaches 475 after 13,000 steps, mlp after 20,000."


def test_the_heading_is_honest_where_nobody_gets_there(curve_model: CurveModel) -> None:
    heading = verdict_on_task(curve_view(dataclasses.replace(curve_model, threshold=600.0)))
    assert heading == "CartPole-v1: no network's median return reaches 600 within 20,000 steps."


def test_the_winner_is_named_even_when_it_is_not_ours(curve_model: CurveModel) -> None:
    swapped = dataclasses.replace(
        curve_model,
        networks=[
            dataclasses.replace(n, name=m) for n, m in zip(curve_model.networks, ("mlp", "equivariant"), strict=True)
        ],
    )
    assert "the median of mlp reaches 475 after 13,000 steps" in verdict_on_task(curve_view(swapped))


def test_a_task_without_threshold_has_a_page(curve_model: CurveModel) -> None:
    text = render_curves(dataclasses.replace(curve_model, threshold=None))
    assert "learning curves of 2 networks, 10 runs" in text
    assert "Steps to" not in text


def test_failed_runs_are_named(curve_model: CurveModel) -> None:
    text = render_curves(curve_model)
    assert "Runs that stopped early" in text
    assert "the loss became NaN at update 12" in text
    assert "1 run stopped early" in text


def test_several_learning_rates_are_compared_and_one_is_drawn(curve_model: CurveModel) -> None:
    slow = [dataclasses.replace(n, learning_rate=1e-4, chosen=False) for n in curve_model.networks]
    text = render_curves(dataclasses.replace(curve_model, networks=[*curve_model.networks, *slow]))
    assert "Sensitivity to the learning rate" in text
    assert text.count('<svg viewBox="0 0 520') == 3  # two of single runs, one of the rates
    assert "Sensitivity to the learning rate" not in render_curves(curve_model)


def test_a_network_without_runs_or_without_evaluations_is_not_an_error(curve_model: CurveModel) -> None:
    empty = NetworkCurves("empty", 0.1, [])
    silent = NetworkCurves("silent", 0.1, [SeedCurve(0, [100], [math.nan])])
    for extra in (empty, silent):
        text = render_curves(dataclasses.replace(curve_model, networks=[*curve_model.networks, extra]))
        assert extra.name in text


def test_no_network_is_an_error(curve_model: CurveModel) -> None:
    with pytest.raises(ValueError, match="at least one network"):
        render_curves(dataclasses.replace(curve_model, networks=[]))


def test_hostile_names_stay_text_in_figures_too(curve_model: CurveModel) -> None:
    networks = [dataclasses.replace(n, name="</title><script>x</script>") for n in curve_model.networks]
    text = render_curves(dataclasses.replace(curve_model, networks=networks, task='"><svg onload=x>'))
    assert text.count("<script>") == 1
    assert "<svg onload" not in text


def test_five_networks_of_25_seeds_fit_the_budget() -> None:
    rng = np.random.default_rng(0)
    networks = []
    for name in ("equivariant", "nullspace", "random", "mlp", "mlp-wide"):
        curves = [SeedCurve(s, list(range(500, 30500, 500)), rng.uniform(10, 500, 60).tolist()) for s in range(25)]
        networks.append(NetworkCurves(name, 0.001, curves))
    assert len(render_curves(CurveModel("CartPole-v1", networks, threshold=475.0)).encode()) < 500_000


def test_the_page_is_as_agreed(curve_model: CurveModel, gold: Callable[[str, str], None]) -> None:
    gold("curves.html", render_curves(curve_model))


def test_who_never_gets_there_is_said_not_to(curve_model: CurveModel) -> None:
    slow = dataclasses.replace(
        curve_model.networks[1], name="slow", curves=[SeedCurve(0, [20000], [10.0])], failed_runs=()
    )
    page = dataclasses.replace(curve_model, networks=[curve_model.networks[0], slow])
    assert verdict_on_task(curve_view(page)).endswith("after 13,000 steps, slow not within 20,000.")
    assert "> 20,000 to" not in render_curves(page)


def test_a_curve_begins_where_every_run_was_measured() -> None:
    late = NetworkCurves("n", 0.1, [SeedCurve(0, [0, 10, 20, 30], [math.nan, math.nan, 5.0, 9.0])])
    curve = statistics.quantile_curve(late, 0.0)
    assert curve.env_steps.tolist() == [20, 30]
    assert curve.median.tolist() == [5.0, 9.0]
    both = dataclasses.replace(late, curves=[*late.curves, SeedCurve(1, [10, 20, 30], [1.0, 3.0, 5.0])])
    assert statistics.quantile_curve(both, 0.0).env_steps.tolist() == [20, 30]
    assert statistics.mean_return(late, 0.0).tolist() == [6.0]  # its first value stands for what came before


def test_runs_that_only_chose_a_learning_rate_are_counted_apart(curve_model: CurveModel) -> None:
    page = render_curves(dataclasses.replace(curve_model, trained=875))
    assert "10 shown of 875 trained" in page
    assert "shown of" not in render_curves(dataclasses.replace(curve_model, trained=10))
    assert page.count("1 min 15 s of training and evaluation") == 2


def test_one_run_has_a_value_and_no_interval(curve_model: CurveModel) -> None:
    lone = [dataclasses.replace(n, curves=n.curves[:1], failed_runs=()) for n in curve_model.networks]
    page = render_curves(dataclasses.replace(curve_model, networks=lone))
    assert "1 run, learning rate 0.001" in page
    assert "1 runs" not in page
    assert re.search(r">500</?", page)
    assert not re.search(
        r"\(\d[\d.]* to \d[\d.]*\)", page.split("side by side</h2>")[1].split("<table")[1].split("</table>")[0]
    )
    assert math.isnan(statistics.interquartile_mean(np.array([1.0, 2.0])).low)
    assert statistics.interquartile_mean(np.array([1.0, 2.0, 3.0])).low == 1.0
    assert math.isnan(statistics.probability_of_improvement(np.ones(3), np.ones(2)).low)
