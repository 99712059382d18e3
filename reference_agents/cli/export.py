"""`reference-agents export`: write a trained network to one file that does not need this package."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from reference_agents.deploy import write_network
from reference_agents.loading import load_network
from reference_agents.record import load
from reference_agents.tasks import resolve_task


def export_run(folder: Path, target: Path, *, learning_rate: float | None, seed: int | None) -> int:
    """Write one trained network as .pt2, .onnx or .pt; returns exit code 0.

    Raises:
        TargetError: the folder is not a run or has no such network, or the file computes something else.
        OptionError: an unknown file type, or a file that cannot be written.
        MissingExtraError: ONNX without the extra `onnx`.
    """
    record = load(folder)
    network = load_network(folder, learning_rate=learning_rate, seed=seed)
    shape = resolve_task(record.task, record.symmetry).observation_shape
    difference = write_network(network, shape, target)
    # A state_dict computes nothing, so there is nothing to compare.
    checked = "" if difference is None else f"; its outputs differ from the network's by at most {difference:.1g}"
    Console().print(f"wrote {target}{checked}", highlight=False, soft_wrap=True)
    return 0
