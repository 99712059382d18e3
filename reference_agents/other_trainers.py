"""Reads learning curves of other trainers in our format.

    *.monitor.csv        Stable-Baselines3's Monitor and VecMonitor: every training episode
    events.out.tfevents* TensorBoard: one folder for each run (extra `logs`)
    *.csv                a chart exported from Weights & Biases: one column for each run

Runs whose names differ only in a number are seeds of one entry: files `seed0.monitor.csv` and `seed1.monitor.csv` of a
folder, folders `PPO_1` and `PPO_2`, columns `ppo-seed1` and `ppo-seed2`.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from reference_agents.record import RECORD_FILE, Curve
from symcheck.array_types import Floats
from symcheck.errors import MissingExtraError, TargetError, described

POINTS = 50
"""Number of points of a curve whose runs were not all measured at the same steps."""
TAGS = ("eval/mean_reward", "rollout/ep_rew_mean", "charts/episodic_return", "Train/mean_reward", "return")
"""Names of the return in Stable-Baselines3, CleanRL and rsl_rl; the first one that a run contains is read."""
_EVENTS = "events.out.tfevents*"
_MONITOR = ".monitor.csv"


@dataclass(frozen=True)
class OtherRun:
    """One run of another trainer.

    Attributes:
        name: the name of its entry.
        seed: the number that distinguishes it from other runs of that name.
        env_steps: the steps at which each return was measured, increasing.
        returns: the returns of single episodes, or their means.
        episodes: whether they are returns of single episodes.
        place: the folder or file from which its name comes.
    """

    name: str
    seed: int
    env_steps: Floats
    returns: Floats
    episodes: bool
    place: Path


@dataclass(frozen=True)
class OtherResult:
    """All runs of one name, measured after the same steps.

    Attributes:
        name: the name of the entry.
        environment: the Gymnasium id stated in a file; "" if there is none.
        evaluation: how the returns were measured, in a sentence.
        curves: one curve per run.
    """

    name: str
    environment: str
    evaluation: str
    curves: tuple[Curve, ...]


def read_other_results(path: Path) -> list[OtherResult]:
    """The results of other trainers at or below a path; empty if there are only runs of reference-agents.

    Args:
        path: a folder, or one exported CSV.

    Returns:
        One entry for each name, sorted.

    Raises:
        TargetError: a file cannot be read, or events contain no return.
        MissingExtraError: there are events, but TensorBoard is not installed.
    """
    found: list[tuple[str, OtherRun]] = []
    for reader in (_monitors, _events, _exports):
        found += [(source, run) for source, run in reader(path)]
    found = _tell_apart(found, path)
    results = []
    for name in sorted({run.name for _, run in found}):
        runs = sorted((run for _, run in found if run.name == name), key=lambda run: run.seed)
        sources = sorted({source for source, run in found if run.name == name} - {""})
        results.append(OtherResult(name, " / ".join(sources), _evaluation(name, runs), _on_one_grid(runs)))
    return results


def _tell_apart(found: Sequence[tuple[str, OtherRun]], path: Path) -> list[tuple[str, OtherRun]]:
    """Runs with the same name and seed belong to different entries: prefix their names with their locations."""
    counts = Counter((run.name, run.seed) for _, run in found)
    repeated = {name for (name, _), count in counts.items() if count > 1}
    apart = []
    for source, run in found:
        inside = path.is_dir() and run.place != path and run.place.is_relative_to(path)
        place = run.place.relative_to(path).as_posix() if inside else run.place.name
        apart.append((source, replace(run, name=f"{place}/{run.name}") if run.name in repeated else run))
    return apart


def _evaluation(name: str, runs: Sequence[OtherRun]) -> str:
    if runs[0].episodes:
        return f"{name}: each point is the mean return of the training episodes that ended since the previous point."
    return f"{name}: as its trainer logged it."


def _on_one_grid(runs: Sequence[OtherRun]) -> tuple[Curve, ...]:
    """Curves of equal length: up to the last step of the shortest run."""
    last = min(float(run.env_steps[-1]) for run in runs)
    grid = np.unique(np.linspace(0.0, last, POINTS + 1)[1:].astype(np.int64))
    return tuple(Curve(run.seed, float("nan"), tuple(grid.tolist()), tuple(_resample(run, grid))) for run in runs)


def _resample(run: OtherRun, grid: Any) -> list[float]:
    """The mean of the episodes since the previous point, or the last logged value.

    The previous value if there is none.
    """
    ends = np.searchsorted(run.env_steps, grid, side="right")
    values, before, latest = [], 0, float("nan")
    for end in ends.tolist():
        if end > before:
            latest = float(run.returns[before:end].mean() if run.episodes else run.returns[end - 1])
        values.append(latest)
        before = end
    return values


def split_name(text: str) -> tuple[str, int | None]:
    """Split a run's name into the name without its final number, and that number.

    Example:
        >>> split_name("PPO_2"), split_name("ppo-seed10"), split_name("plain")
        (('PPO', 2), ('ppo', 10), ('plain', None))

        Versions and decimals are part of a name:

        >>> split_name("HalfCheetah-v4"), split_name("lr0.01")
        (('HalfCheetah-v4', None), ('lr0.01', None))
    """
    if re.search(r"(?:\d\.\d+|[-_]v\d+)$", text):
        return text, None
    match = re.fullmatch(r"(.*?)[-_. ]*(?:seed|run)?[-_ ]*(\d+)", text, re.IGNORECASE)
    return (match[1], int(match[2])) if match else (text, None)


def _named(label: str, parent: str, position: int) -> tuple[str, int]:
    """The name and the seed of a run whose file or folder has this label."""
    name, number = split_name(label)
    return name or parent, position if number is None else number


def _below(path: Path, pattern: str) -> list[Path]:
    """Files of a pattern at or below a path, without those of runs of reference-agents."""
    files = sorted(path.rglob(pattern)) if path.is_dir() else [path] if path.match(pattern) else []
    return [file for file in files if not any((folder / RECORD_FILE).exists() for folder in file.parents)]


def _monitors(path: Path) -> Iterator[tuple[str, OtherRun]]:
    files = _below(path, f"*{_MONITOR}")
    for folder in sorted({file.parent for file in files}):
        here = [file for file in files if file.parent == folder]
        labels = [file.name.removesuffix(_MONITOR) for file in here]
        # One numbered file per environment of a run: the folder is the run.
        if all(label.isdigit() for label in labels):
            name, seed = _named(folder.name, folder.parent.name, 0)
            yield _read_monitors(here, name, seed)
            continue
        for position, (file, label) in enumerate(zip(here, labels, strict=True)):
            name, seed = _named(label, folder.name, position)
            yield _read_monitors([file], name, seed)


def _read_monitors(files: Sequence[Path], name: str, seed: int) -> tuple[str, OtherRun]:
    """Episodes of all files in the order in which they ended; steps are those of all environments together."""
    rows: list[tuple[float, float, float]] = []
    environment = ""
    for file in files:
        try:
            with file.open(newline="") as lines:
                header = next(lines)
                environment = str(json.loads(header.lstrip("#")).get("env_id") or environment)
                # A trainer that is writing, or was killed while writing, leaves an incomplete last line.
                whole = [line for line in lines if line.endswith("\n")]
                rows += [(float(row["t"]), float(row["l"]), float(row["r"])) for row in csv.DictReader(whole)]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
            raise _unreadable(file, "a Monitor file of Stable-Baselines3", error) from error
    if not rows:
        raise _unreadable(files[0], "a Monitor file with at least one episode", None)
    _, lengths, returns = np.array(sorted(rows)).T
    return "" if environment == "None" else environment, OtherRun(
        name, seed, np.cumsum(lengths), returns, True, files[0].parent
    )


def _events(path: Path) -> Iterator[tuple[str, OtherRun]]:
    files = _below(path, _EVENTS)
    if not files:
        return
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError as error:
        raise MissingExtraError("logs", needed_for="reading TensorBoard events") from error
    for position, folder in enumerate(sorted({file.parent for file in files})):
        # 0 keeps every scalar; other kinds of data are not read.
        events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
        events.Reload()
        known = events.Tags()["scalars"]
        tag = next((tag for tag in TAGS if tag in known), None)
        if tag is None:
            raise TargetError(
                f"expected a scalar called {', '.join(TAGS)}, got {', '.join(known) or 'none'}.", where=str(folder)
            )
        scalars = sorted((event.step, event.value) for event in events.Scalars(tag))
        steps, values = np.array(scalars, dtype=float).T
        name, seed = _named(folder.name, folder.parent.name, position)
        yield "", OtherRun(name, seed, steps, values, False, folder.parent)


def _exports(path: Path) -> Iterator[tuple[str, OtherRun]]:
    files = [path] if path.is_file() and path.suffix == ".csv" and not path.name.endswith(_MONITOR) else []
    for file in files:
        try:
            with file.open(newline="") as lines:
                # Rows without a step are not part of the curve; rows need not be in order.
                given = [(next(iter(row.values())), row) for row in csv.DictReader(lines)]
            numbered = sorted(((float(step), row) for step, row in given if step), key=lambda pair: pair[0])
            steps, rows = np.array([step for step, _ in numbered]), [row for _, row in numbered]
            # "run - metric", followed by the minimum and maximum of a group of runs.
            columns = [
                key for key in (rows[0] if rows else {}) if " - " in key and not key.endswith(("__MIN", "__MAX"))
            ]
            texts = {column: [row[column] for row in rows] for column in columns}
            values = {key: np.array([float(x) if x else np.nan for x in column]) for key, column in texts.items()}
        except (OSError, ValueError, TypeError, StopIteration) as error:
            raise _unreadable(file, "a chart exported from Weights & Biases", error) from error
        if not values:
            raise _unreadable(file, "a chart exported from Weights & Biases, with columns 'run - metric'", None)
        for position, (column, returns) in enumerate(values.items()):
            name, seed = _named(column.partition(" - ")[0], file.stem, position)
            kept = np.isfinite(returns)
            if kept.any():
                yield "", OtherRun(name, seed, steps[kept], returns[kept], False, file)


def _unreadable(file: Path, expected: str, error: Exception | None) -> TargetError:
    reason = f" ({described(error)})" if error is not None else ""
    return TargetError(f"the file cannot be read as {expected}{reason}.", where=str(file))
