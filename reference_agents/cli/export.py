"""`reference-agents export`: a trained network as one file that needs nothing of this package."""

from __future__ import annotations

from pathlib import Path

import torch
from rich.console import Console

from reference_agents.loading import load_network
from reference_agents.record import load
from reference_agents.tasks import resolve_task
from symcheck.errors import OptionError


def export_run(folder: Path, target: Path, *, learning_rate: float | None, seed: int | None) -> int:
    """Write one trained network as a torch.export file, for batches of any size; 0.

    Raises:
        TargetError: where the folder is not a run, or has no such network.
        OptionError: where the file cannot be written.
    """
    record = load(folder)
    network = load_network(folder, learning_rate=learning_rate, seed=seed).eval()
    example = torch.zeros(2, *resolve_task(record.task, record.symmetry).observation_shape)
    batch = torch.export.Dim("batch", min=1)
    program = torch.export.export(network, (example,), dynamic_shapes=({0: batch},))
    try:
        torch.export.save(program, target)
    except (OSError, RuntimeError) as error:
        raise OptionError(
            f"expected a file that can be written, got {str(target)!r} ({error}).", where="--out"
        ) from error
    Console().print(f"wrote {target}", highlight=False, soft_wrap=True)
    return 0
