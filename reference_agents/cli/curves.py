"""`reference-agents curves`: every learning curve below some folders as one table, CSV or Parquet."""

from __future__ import annotations

import csv
import importlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from reference_agents.cli.report import name_unfinished
from reference_agents.record import find_runs, load, write_output
from symcheck.errors import MissingExtraError, OptionError

SUFFIXES = (".csv", ".parquet")
Columns = dict[str, list[Any]]


def write_curves(folders: Sequence[Path], target: Path) -> int:
    """Write one row for each run and evaluation; returns exit code 0.

    Args:
        folders: folders that are searched for runs at any depth.
        target: a .csv or .parquet file.

    Raises:
        TargetError: a folder contains no run.
        OptionError: an unknown suffix, or a file that cannot be written.
        MissingExtraError: Parquet without the extra `logs`.
    """
    if target.suffix not in SUFFIXES:
        raise OptionError(
            f"expected a file ending in .csv or .parquet, got {str(target)!r}.",
            where="--out",
        )
    columns = curve_table(folders)
    content = _csv(columns) if target.suffix == ".csv" else _parquet(columns)
    write_output(target, content, where="--out")
    rows = len(columns["env_steps"])
    Console().print(f"wrote {target}: {rows:,} points", highlight=False, soft_wrap=True)
    name_unfinished(folders)
    return 0


def curve_table(folders: Sequence[Path]) -> Columns:
    """Columns of equal length: run, task, network, learning_rate, seed, env_steps, mean_return, in order of the paths.

    The returns of a diverged run are NaN after it diverged.
    """
    columns: Columns = {
        name: [] for name in ("run", "task", "network", "learning_rate", "seed", "env_steps", "mean_return")
    }
    # Compare resolved paths: folders may overlap, and each run must occur once.
    paths = {path.resolve(): path for folder in folders for path in find_runs(folder)}
    for path in paths.values():
        record = load(path)
        for curve in record.curves:
            for env_steps, return_ in zip(curve.env_steps, curve.returns, strict=True):
                row = (str(path), record.task, record.network, curve.learning_rate, curve.seed, env_steps, return_)
                for column, value in zip(columns.values(), row, strict=True):
                    column.append(value)
    return columns


def _csv(columns: Columns) -> bytes:
    table = io.StringIO()
    # csv writes \r\n by default.
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return table.getvalue().encode()


def _parquet(columns: Columns) -> bytes:
    try:
        # An optional package without type annotations.
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtraError("logs", needed_for="writing .parquet") from error
    buffer = io.BytesIO()
    parquet.write_table(arrow.table(columns), buffer)
    return buffer.getvalue()
