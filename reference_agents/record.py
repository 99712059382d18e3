"""Writes and reads the files of a training run.

    FOLDER/job.json the description of the training run, written first (see `checkpoint`) FOLDER/record.json settings,
    hardware, results and verdicts; names and numbers only FOLDER/curves.csv     learning_rate, seed, env_steps,
    mean_return: one line per run and evaluation FOLDER/weights/*.pt   one plain state_dict per run (see `export`)
    FOLDER/parameters.pt  the coefficients of all runs, stacked FOLDER/checkpoint*.pt the state from which a stopped
    training run continues; removed at the end FOLDER/network.py     `network()` and one function per run that rebuild
    the trained networks as torch modules

Files are written under a temporary name and then moved, so a crash leaves the old or the new file. The record is
written last; a folder without it is not a run.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from symcheck.errors import OptionError, TargetError
from symcheck.files import write_file

SCHEMA = "reference-agents/1"
JOB_FILE = "job.json"
RECORD_FILE = "record.json"
CURVES_FILE = "curves.csv"
PARAMETERS_FILE = "parameters.pt"
# The exact `detail` texts of older records without the field `skipped`.
_SKIPPED_BEFORE = {
    "makes no claim to be equivariant": "not_claimed",
    "diverged, so there is no network to verify": "diverged",
}
_CURVE_FIELDS = ("learning_rate", "seed", "env_steps", "mean_return")


@dataclass(frozen=True)
class Verification:
    """The result of `verify-net` for one network.

    Attributes:
        verdict: "proved", "passed", "failed" or "undecided"; None if it was not verified.
        detail: the evidence, or why it was not verified, in a sentence.
        features: the verdict on the equivariant layers alone if the layers above them are unconstrained; None
            otherwise.
        skipped: why nothing was verified: "not_claimed" or "diverged"; "" if something was.
    """

    verdict: str | None
    detail: str
    features: str | None = None
    skipped: str = ""


@dataclass(frozen=True)
class RunRecord:
    """One run: one seed at one learning rate.

    Attributes:
        seed: the seed of the run.
        learning_rate: the learning rate of the run.
        weights: the file of the weights below the folder; None if the run diverged.
        stopped_at: environment steps at which its gradient was no longer finite; None if it never did.
        steps_to_threshold: environment steps of its first evaluation at or above the task's threshold; None if never.
        final_return: the result of the last evaluation; None if the run diverged.
        before: verification of the network before training.
        after: verification of the network after training.
    """

    seed: int
    learning_rate: float
    weights: str | None
    stopped_at: int | None
    steps_to_threshold: int | None
    final_return: float | None
    before: Verification
    after: Verification


@dataclass(frozen=True)
class Curve:
    """The learning curve of one run.

    Attributes:
        seed: the run's seed.
        learning_rate: the learning rate of the run.
        env_steps: steps taken when each evaluation was made.
        returns: the mean return of each evaluation; NaN after the run stopped.
    """

    seed: int
    learning_rate: float
    env_steps: tuple[int, ...]
    returns: tuple[float, ...]


@dataclass(frozen=True)
class Record:
    """A whole training run.

    Attributes:
        task: the task's name.
        environment: the Gymnasium id of the environment.
        symmetry: the name of its symmetry.
        network: the network's name.
        basis: the kind of basis of its layers; "dense" for none.
        channels: the widths of its hidden layers.
        parameters: the number of trainable parameters of one run.
        threshold: the return that counts as solved; None if the task has none.
        preset: the preset that the settings started from.
        settings: all hyperparameters.
        evaluation: how returns were measured, in a sentence.
        device: the device on which training ran.
        versions: package name to version.
        command: the command line that repeats it.
        interrupted: whether it was stopped before its end.
        training_seconds: wall time of playing and learning.
        evaluation_seconds: wall time of evaluations.
        runs: one per learning rate and seed.
        curves: one per learning rate and seed; in the CSV file, not in the JSON.
    """

    task: str
    environment: str
    symmetry: str
    network: str
    basis: str
    channels: tuple[int, ...]
    parameters: int
    threshold: float | None
    preset: str
    settings: dict[str, Any]
    evaluation: str
    device: str
    versions: dict[str, str]
    command: str
    interrupted: bool
    training_seconds: float
    evaluation_seconds: float
    runs: tuple[RunRecord, ...]
    curves: tuple[Curve, ...] = field(default=())


def prepare_folder(parent: Path, name: str) -> Path:
    """Make an empty folder for a run, and check before training that it can be written to.

    Args:
        parent: the folder of runs, which is created if missing.
        name: the run's name; a number is appended if a folder of that name exists.

    Returns:
        The new folder.

    Raises:
        OptionError: the folder cannot be created.
    """
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for attempt in range(1, 10_000):
            folder = parent / (name if attempt == 1 else f"{name}-{attempt}")
            # Never write into an existing folder: take the next free name.
            if not folder.exists():
                folder.mkdir(parents=True)
                return folder
    except OSError as error:
        raise OptionError(
            f"the folder {str(parent)!r} cannot be written to ({error.strerror}).",
            where="--out",
            remedy="Name another folder.",
        ) from error
    raise OptionError(
        f"{str(parent)!r} already contains 9,999 runs named {name!r}.", where="--out", remedy="Name another folder."
    )


def write_output(target: Path, content: bytes, *, where: str) -> None:
    """Write a file that the user named.

    Args:
        target: the file.
        content: the new content.
        where: the option that names it.

    Raises:
        OptionError: the file cannot be written.
    """
    try:
        write_file(target, content)
    except OSError as error:
        raise OptionError(f"{str(target)!r} cannot be written ({error.strerror}).", where=where) from error


def save(record: Record, folder: Path) -> None:
    """Write the curves, then the record."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(_CURVE_FIELDS)
    for curve in record.curves:
        for env_steps, return_ in zip(curve.env_steps, curve.returns, strict=True):
            # `repr` of a float is its shortest form that reads back exactly.
            writer.writerow((repr(curve.learning_rate), curve.seed, env_steps, repr(return_)))
    write_file(folder / CURVES_FILE, table.getvalue().encode())
    document = {"schema": SCHEMA, **asdict(record)}
    # Curves are stored in a separate file.
    del document["curves"]
    # NaN is not valid JSON; missing values must be null.
    write_file(folder / RECORD_FILE, (json.dumps(document, indent=2, allow_nan=False) + "\n").encode())


def load(folder: Path) -> Record:
    """Read a run.

    Args:
        folder: the run's own folder.

    Returns:
        Its record, curves included.

    Raises:
        TargetError: the folder is not a run, or its files cannot be read.
    """
    try:
        document = json.loads((folder / RECORD_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TargetError(
            f"{str(folder)!r} is not a run folder: {RECORD_FILE} cannot be read ({error}).",
            where="RUN",
            remedy="Give a folder that `reference-agents train` wrote.",
        ) from error
    if not isinstance(document, dict) or document.pop("schema", None) != SCHEMA:
        raise TargetError(
            f"{str(folder / RECORD_FILE)!r} is not of schema {SCHEMA!r}.",
            remedy="Read the file with the version of symcheck that wrote it.",
        )
    try:
        # JSON has lists where the record has tuples.
        document["channels"] = tuple(document["channels"])
        document["runs"] = tuple(_run(run) for run in document["runs"])
        return _whole(Record(**document, curves=_read_curves(folder / CURVES_FILE)))
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise TargetError(f"{str(folder)!r} contains a damaged run: {error}.", remedy="Train it again.") from error


def _whole(record: Record) -> Record:
    """The record, after checking that its curves are complete and belong to it.

    Raises:
        ValueError: the table of curves is truncated, or belongs to another training.
    """
    lasts = {(curve.learning_rate, curve.seed): curve.returns[-1] for curve in record.curves}
    for run in record.runs:
        # The last point of the curve must be the final return: a truncated file ends earlier.
        last = lasts.get((run.learning_rate, run.seed))
        if run.final_return is not None and run.final_return != last:
            raise ValueError(
                f"{CURVES_FILE} ends at {'nothing' if last is None else last} for learning rate "
                f"{run.learning_rate:g} seed {run.seed}, but {RECORD_FILE} has {run.final_return}"
            )
    return record


def _run(document: dict[str, Any]) -> RunRecord:
    return RunRecord(
        **{**document, "before": _verification(document["before"]), "after": _verification(document["after"])}
    )


def _verification(document: dict[str, Any]) -> Verification:
    """Read a verification; in older records, only the detail contains the contents of `features` and `skipped`."""
    if "skipped" in document:
        return Verification(**document)
    detail = str(document["detail"])
    words = detail.split(maxsplit=2)
    features = words[1] if len(words) == 3 and words[0] == "features" and document["verdict"] is None else None
    return Verification(**document, features=features, skipped=_SKIPPED_BEFORE.get(detail, ""))


def _read_curves(path: Path) -> tuple[Curve, ...]:
    points: dict[tuple[float, int], list[tuple[int, float]]] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            points.setdefault((float(row["learning_rate"]), int(row["seed"])), []).append(
                (int(row["env_steps"]), float(row["mean_return"]))
            )
    return tuple(
        Curve(seed, rate, tuple(steps for steps, _ in run), tuple(return_ for _, return_ in run))
        for (rate, seed), run in points.items()
    )


def is_finished(folder: Path) -> bool:
    """Whether a folder contains a finished training run.

    Raises:
        TargetError: the record of the run cannot be read.
    """
    return (folder / RECORD_FILE).exists() and not load(folder).interrupted


@dataclass(frozen=True)
class Unfinished:
    """A training run that has begun but has no record yet.

    Attributes:
        folder: the run folder.
        task: the task of the run.
        network: the network of the run.
        runs: the number of runs: seeds times learning rates.
    """

    folder: Path
    task: str
    network: str
    runs: int


def find_unfinished(folder: Path) -> Sequence[Unfinished]:
    """The unfinished training runs at or below a folder, sorted by path."""
    unfinished = []
    for path in sorted(folder.rglob(JOB_FILE)) if folder.is_dir() else ():
        if (path.parent / RECORD_FILE).exists():
            continue
        try:
            job = json.loads(path.read_text(encoding="utf-8"))
            count = len(job["seeds"]) * len(job["learning_rates"])
            unfinished.append(Unfinished(path.parent, str(job["task"]), str(job["network"]), count))
        except (OSError, ValueError, KeyError, TypeError):
            # The file is truncated: only the start of a training run is known.
            unfinished.append(Unfinished(path.parent, "?", "?", 0))
    return unfinished


def find_runs(folder: Path) -> Sequence[Path]:
    """The run folders at or below a folder, sorted by path.

    Raises:
        TargetError: the folder does not exist or contains no run.
    """
    # Search for records, not folders: only a recorded training can be read.
    folders = sorted(path.parent for path in folder.rglob(RECORD_FILE)) if folder.is_dir() else []
    if not folders:
        unfinished = [str(run.folder) for run in find_unfinished(folder)]
        if unfinished:
            raise TargetError(
                f"no training run in {str(folder)!r} is complete; unfinished: {', '.join(unfinished)}.",
                where="DIR",
                remedy=f"Continue with: reference-agents train --resume {unfinished[0]}",
            )
        problem = "contains no run" if folder.is_dir() else "is a file" if folder.exists() else "does not exist"
        raise TargetError(
            f"{str(folder)!r} is not a folder of runs: it {problem}.",
            where="DIR",
            remedy="Train a network first: reference-agents train cartpole --out DIR.",
        )
    return folders
