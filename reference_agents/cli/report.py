"""`reference-agents report`: one page of learning curves for each task found below a folder."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console

from reference_agents.encoding.environment import file_stem
from reference_agents.other_trainers import OtherResult, read_other_results
from reference_agents.record import RECORD_FILE, Curve, Record, find_runs, find_unfinished, load, write_output
from reference_agents.settings import IN_EPOCHS
from symcheck.errors import OptionError
from symcheck_reports import curve_statistics as statistics
from symcheck_reports.curve_model import CurveModel, FailedRun, NetworkCurves, SeedCurve
from symcheck_reports.curves import render_curves

CHOSEN_APART = (
    "If a network was trained at several learning rates, the page shows the rate with the largest area under the "
    "median curve of the even seeds. Only its odd seeds are shown; they did not influence the choice."
)
CHOSEN_TOGETHER = (
    "If a network was trained at several learning rates, the page shows the rate with the largest area under its "
    "median curve. The rate was chosen on the seeds that are shown, which favours networks trained at several rates."
)
# With fewer seeds, each half is too small for a median.
LEAST_SEEDS_TO_SPLIT = 4
PPO_ONLY = {"epochs", "minibatches", "clip"}
# The paper's order; other networks follow by name.
_ORDER = ("equivariant", "nullspace", "random", "mlp", "mlp-wide")
# A network's verdict is the worst of its runs.
_WORST_FIRST = ("failed", "undecided", "passed", "proved")


def write_report(folder: Path) -> int:
    """Read every run below a folder and write the page; returns exit code 0.

    Raises:
        TargetError: there is no run.
        OptionError: the page cannot be written.
    """
    records = [(path, load(path)) for path in find_runs(folder)]
    tasks = sorted({record.task for _, record in records})
    for task in tasks:
        target = folder / ("report.html" if len(tasks) == 1 else f"report-{file_stem(task)}.html")
        _write(target, build_model([(path, record) for path, record in records if record.task == task]), where="DIR")
    name_unfinished([folder])
    return 0


def name_unfinished(folders: Sequence[Path]) -> None:
    """List the unfinished training runs below some folders; these are not drawn."""
    for run in (run for folder in folders for run in find_unfinished(folder)):
        Console().print(
            f"not shown, because it is unfinished: {run.folder}; continue with: reference-agents train --resume "
            f"{run.folder}",
            highlight=False,
            soft_wrap=True,
        )


def write_comparison(folders: Sequence[Path], target: Path) -> int:
    """Read the runs of several folders, all of one task, and write one page; returns exit code 0.

    Results of other trainers, read by `reference_agents.other_trainers`, are drawn too.

    Raises:
        TargetError: a folder contains no run.
        OptionError: the runs are of several tasks, or the page cannot be written.
    """
    others = {folder: read_other_results(folder) for folder in folders}
    # A folder with another trainer's results need not contain our runs.
    ours = [folder for folder in folders if not others[folder] or any(folder.rglob(RECORD_FILE))]
    records = {path.resolve(): load(path) for folder in ours for path in find_runs(folder)}
    tasks = sorted({record.task for record in records.values()})
    if len(tasks) > 1:
        raise OptionError(
            f"expected runs of one task, got runs of {' and '.join(tasks)}.",
            where="DIR",
            remedy="Compare task by task.",
        )
    results = [result for folder in folders for result in others[folder]]
    _write(target, with_others(build_model(list(records.items())) if records else None, results), where="--out")
    name_unfinished(folders)
    return 0


def _write(target: Path, model: CurveModel, *, where: str) -> None:
    write_output(target, render_curves(model).encode(), where=where)
    Console().print(f"wrote {target}", highlight=False, soft_wrap=True)


def build_model(folders: Sequence[tuple[Path, Record]]) -> CurveModel:
    """The page model of one task.

    Args:
        folders: at least one run folder with its record, all of one task.

    Returns:
        The model, equivariant networks first.
    """
    records = [record for _, record in folders]
    ordered = sorted(folders, key=lambda item: (_rank(item[1].network), item[0]))
    networks = [
        curves for (_, record), name in zip(ordered, _names(ordered), strict=True) for curves in _networks(record, name)
    ]
    first = records[0]
    return CurveModel(
        task=first.environment,
        networks=networks,
        settings=_shared_settings(records),
        threshold=first.threshold,
        evaluation=" ".join(sorted({record.evaluation for record in records})),
        choice_rule=_choice_rule(records),
        command="\n".join(dict.fromkeys(record.command for record in records)),
        versions=first.versions,
        duration_s=sum(record.training_seconds + record.evaluation_seconds for record in records),
        notes=_notes(records, networks),
        trained=sum(len(record.runs) for record in records),
    )


def with_others(model: CurveModel | None, results: Sequence[OtherResult]) -> CurveModel:
    """The page with the results of other trainers after ours, or with those alone if there are none of ours."""
    environments = " / ".join(dict.fromkeys(result.environment for result in results if result.environment))
    model = model or CurveModel(environments or "results of other trainers", [])
    taken = {network.name for network in model.networks}
    networks = list(model.networks)
    for result in results:
        name = f"{result.name} (other trainer)" if result.name in taken else result.name
        curves = [SeedCurve(curve.seed, curve.env_steps, curve.returns) for curve in result.curves]
        detail = "trained elsewhere; symcheck verify-net verifies its network"
        networks.append(NetworkCurves(name, float("nan"), curves, verdict_detail=detail))
    evaluation = " ".join(filter(None, [model.evaluation, *(result.evaluation for result in results)]))
    # Every run of another trainer is shown, so it also counts as trained.
    trained = None if model.trained is None else model.trained + sum(len(result.curves) for result in results)
    return dataclasses.replace(model, networks=networks, evaluation=evaluation, trained=trained)


def _names(folders: Sequence[tuple[Path, Record]]) -> list[str]:
    """The network of each run. If several runs have the same network, the distinguishing end of the path is added."""
    names = []
    for path, record in folders:
        others = [o.parts for o, other in folders if other.network == record.network and o != path]
        length = 1
        while any(other[-length:] == path.parts[-length:] for other in others):
            length += 1
        names.append(f"{record.network} ({'/'.join(path.parts[-length:])})" if others else record.network)
    return names


def _rank(network: str) -> tuple[int, str]:
    # List a deep variant next to its original network.
    stem = network.removesuffix("-deep")
    return (_ORDER.index(stem) if stem in _ORDER else len(_ORDER), network)


def _networks(record: Record, name: str) -> list[NetworkCurves]:
    rates = sorted({run.learning_rate for run in record.runs})
    by_rate = {rate: [curve for curve in record.curves if curve.learning_rate == rate] for rate in rates}
    splits = _splits(record)
    choosing = {rate: [curve for curve in by_rate[rate] if not splits or curve.seed % 2 == 0] for rate in rates}
    shown = {rate: [curve for curve in by_rate[rate] if not splits or curve.seed % 2 == 1] for rate in rates}
    best = max(rates, key=lambda rate: _area(choosing[rate]))
    return [_network(record, name, rate, shown[rate], chosen=rate == best) for rate in rates]


def _splits(record: Record) -> bool:
    """Whether the learning rate is chosen on some of the seeds and the curves show the others."""
    several_rates = len({run.learning_rate for run in record.runs}) > 1
    return several_rates and len({run.seed for run in record.runs}) >= LEAST_SEEDS_TO_SPLIT


def _choice_rule(records: Sequence[Record]) -> str:
    choosing = [record for record in records if len({run.learning_rate for run in record.runs}) > 1]
    if not choosing:
        return ""
    return CHOSEN_APART if all(_splits(record) for record in choosing) else CHOSEN_TOGETHER


def _area(curves: Sequence[Curve]) -> float:
    """The mean over time of the median return; a run that stopped counts as worse than any return.

    Points before the first return of any run do not count, for instance if training episodes are measured and none has
    ended.
    """
    returns = np.array([curve.returns for curve in curves], dtype=float)
    measured = np.isfinite(returns).any(axis=0) if returns.size else np.zeros(0, dtype=bool)
    if not measured.any():
        return -np.inf
    # Before the first evaluation with a finished episode there is nothing to compare.
    returns = returns[:, int(np.argmax(measured)) :]
    # A stopped run counts as -inf, so the median is finite only if at least half of the runs continued.
    return float(np.median(np.where(np.isnan(returns), -np.inf, returns), axis=0).mean())


def _network(record: Record, name: str, rate: float, curves: Sequence[Curve], *, chosen: bool) -> NetworkCurves:
    seeds = {curve.seed for curve in curves}
    runs = [run for run in record.runs if run.learning_rate == rate and run.seed in seeds]
    verdicts = {run.after.verdict for run in runs}
    verdict = next((word for word in _WORST_FIRST if word in verdicts), None)
    decisive = [run.after for run in runs if run.after.verdict == verdict]
    return NetworkCurves(
        name=name,
        learning_rate=rate,
        curves=[SeedCurve(curve.seed, curve.env_steps, curve.returns) for curve in curves],
        verdict=verdict,  # type: ignore[arg-type]
        verdict_detail=decisive[0].detail if decisive else "",
        features_verdict=decisive[0].features if decisive else None,  # type: ignore[arg-type]
        failed_runs=[
            FailedRun(run.seed, "the gradient became NaN or infinite", run.stopped_at)
            for run in runs
            if run.stopped_at is not None
        ],
        parameters=record.parameters,
        chosen=chosen,
    )


def _shared_settings(records: Sequence[Record]) -> dict[str, str]:
    """Every setting that the algorithm uses; if records differ, all values."""
    shown = {"preset": " / ".join(dict.fromkeys(record.preset for record in records))}
    # A2C has no epochs, minibatches or clipping, so their defaults would be misleading.
    unused = set() if any(record.settings.get("algorithm", "ppo") in IN_EPOCHS for record in records) else PPO_ONLY
    for key in (key for key in records[0].settings if key not in unused):
        values = dict.fromkeys(_setting(record.settings.get(key)) for record in records)
        shown[key.replace("_", " ")] = " / ".join(values)
    return shown


def _setting(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _step_ratios(networks: Sequence[NetworkCurves], threshold: float | None) -> list[str]:
    """The median number of steps of each network to the threshold, as a multiple of the first network's."""
    chosen = [network for network in networks if network.chosen and network.curves]
    if threshold is None or len(chosen) < 2:
        return []
    reached = [statistics.steps_to_threshold(network, threshold) for network in chosen]
    ratios = [
        f"{network.name} {_ratio_text(step_ratio(reached[0], steps))}"
        for network, steps in zip(chosen[1:], reached[1:], strict=True)
    ]
    return [
        f"Median steps to {threshold:g} as multiples of those of {chosen[0].name}, with 95% bootstrap intervals over "
        f"runs: {', '.join(ratios)}."
    ]


def step_ratio(
    reference: npt.NDArray[np.float64], others: npt.NDArray[np.float64], *, resamples: int = 2_000, seed: int = 0
) -> statistics.Estimate:
    """The ratio of two medians of steps, with a percentile bootstrap over runs.

    Args:
        reference: the steps of each run to the threshold, shape (runs,); infinite if it was never reached.
        others: the same for the network whose steps are divided by those of the reference.
        resamples: the number of bootstrap resamples.
        seed: the seed of the resampling.

    Returns:
        The ratio; NaN if the reference's median never reached the threshold.

    Example:
        >>> step_ratio(np.array([10.0, 10.0, 10.0]), np.array([20.0, 30.0, 40.0])).value
        3.0
    """
    rng = np.random.default_rng(seed)

    def median(samples: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        # "inverted_cdf" returns one of the samples, which may be infinite, and does not average infinities.
        return np.asarray(np.quantile(samples, 0.5, axis=-1, method="inverted_cdf"))

    def resample_medians(runs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return median(runs[rng.integers(len(runs), size=(resamples, len(runs)))])

    with np.errstate(invalid="ignore"):  # infinite over infinite is NaN: neither reached the threshold
        value, ratios = median(others) / median(reference), resample_medians(others) / resample_medians(reference)
    if not np.isfinite(median(reference)):
        return statistics.Estimate(np.nan, np.nan, np.nan)
    # NaN (neither reached the threshold) counts as the upper extreme, which widens the interval.
    ends = np.where(np.isnan(ratios), np.inf, ratios)
    low, high = np.quantile(ends, (0.025, 0.975), method="inverted_cdf")
    return statistics.Estimate(float(value), float(low), float(high))


def _ratio_text(ratio: statistics.Estimate) -> str:
    low, high = (f"{end:.1f}" if np.isfinite(end) else "never" for end in (ratio.low, ratio.high))
    if np.isnan(ratio.value):
        return "unknown"
    return f"{ratio.value:.1f} ({low} to {high})" if np.isfinite(ratio.value) else f"not reached ({low} to {high})"


def _notes(records: Sequence[Record], networks: Sequence[NetworkCurves]) -> list[str]:
    notes = [f"Trained on {device}." for device in sorted({record.device for record in records})]
    if any(_splits(record) for record in records):
        trained = sum(len(record.runs) for record in records)
        notes.append(f"{trained:,} runs were trained; even seeds only served to choose the learning rates.")
    notes += _step_ratios(networks, records[0].threshold)
    if any(record.interrupted for record in records):
        names = ", ".join(record.network for record in records if record.interrupted)
        notes.append(f"Interrupted before the end: {names}.")
    if any(record.settings.get("time_limit_is_terminal") for record in records):
        notes.append("Time-limit truncation is treated as termination (no bootstrapping), as in the paper's code.")
    return notes
