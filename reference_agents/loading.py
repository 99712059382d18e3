"""Rebuilds the trained networks of a run folder as ordinary torch modules."""

from __future__ import annotations

from pathlib import Path

import torch

from reference_agents.catalog import NetworkPlan, Task
from reference_agents.equivariant_export import to_equivariant_module
from reference_agents.export import TrainedNetwork, empty_module
from reference_agents.record import PARAMETERS_FILE, Record, load
from reference_agents.symmetries import task_symmetry
from reference_agents.tasks import resolve_network, resolve_task
from symcheck.errors import TargetError, described
from symcheck.nn.sequential import EquivariantHeads
from symcheck.symmetry.symmetry import Symmetry


def load_equivariant_network(
    folder: Path, *, learning_rate: float | None = None, seed: int | None = None
) -> EquivariantHeads:
    """One run rebuilt from `symcheck.nn` layers; arguments as for `load_network`.

    Raises:
        TargetError: as for `load_network`.
        OptionError: the run's network is not equivariant.
    """
    record, position = _find(Path(folder), learning_rate, seed)
    task, network = resolve_training(record)
    stacked = _weights(Path(folder) / PARAMETERS_FILE)
    # The stacked parameters have the runs in the order of the record.
    parameters = {name: values[position] for name, values in stacked.items()}
    return to_equivariant_module(task, network, parameters)


def load_network(folder: Path, *, learning_rate: float | None = None, seed: int | None = None) -> TrainedNetwork:
    """The plain module of one run, with its trained weights.

    Args:
        folder: a run folder.
        learning_rate: the learning rate; None for the first one with weights.
        seed: the seed; None for the first one with weights.

    Returns:
        The module, float32, on the CPU; observations to (logits, values).

    Raises:
        TargetError: the folder is not a run or has no such run, the run diverged, or its weights cannot be read.
    """
    record, position = _find(Path(folder), learning_rate, seed)
    file = Path(folder) / str(record.runs[position].weights)
    task, network = resolve_training(record)
    module = empty_module(task, network)
    state = _weights(file)
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        raise _damage_error(file, error) from error
    module.example_input = torch.zeros(1, *task.observation_shape)  # gives `verify-net` the shape; not a buffer
    return module


def load_symmetry(folder: Path) -> Symmetry:
    """The symmetry that a run's networks were built for, on their inputs and outputs.

    For your own environment, the networks take encoded observations and return logits, so the claim differs from the
    SPEC on the environment's spaces.

    Args:
        folder: a run folder.

    Raises:
        TargetError: the folder is not a run.
        OptionError: no symmetry was claimed, or it no longer exists.
    """
    return task_symmetry(resolve_training(load(Path(folder)))[0])


def _weights(path: Path) -> dict[str, torch.Tensor]:
    try:
        state: dict[str, torch.Tensor] = torch.load(path, weights_only=True)
    except Exception as error:  # torch may raise any exception on damaged files
        raise _damage_error(path, error) from error
    return state


def _damage_error(path: Path, error: Exception) -> TargetError:
    # torch's messages list every missing key; the first sentence is enough.
    first = described(error).partition(". ")[0]
    return TargetError(
        f"the weights in {str(path)!r} cannot be read ({first[:200]}).",
        where="RUN",
        remedy="Copy the whole run folder again, or repeat the training.",
    )


def resolve_training(record: Record) -> tuple[Task, NetworkPlan]:
    """The task and network of a training run.

    Raises:
        OptionError: the task, symmetry or network no longer exists.
    """
    task = resolve_task(record.task, record.symmetry)
    return task, resolve_network(task, record.network).with_quirks(record.settings)


def _find(folder: Path, learning_rate: float | None, seed: int | None) -> tuple[Record, int]:
    """The record, and the position in it of the first run that matches and has weights."""
    record = load(folder)
    # None matches every run.
    for position, run in enumerate(record.runs):
        if run.weights is not None and learning_rate in (None, run.learning_rate) and seed in (None, run.seed):
            return record, position
    available = ", ".join(f"learning rate {run.learning_rate:g} seed {run.seed}" for run in record.runs if run.weights)
    asked = {"learning rate": learning_rate, "seed": seed}
    of = " and ".join(f"{name} {number:g}" for name, number in asked.items() if number is not None)
    raise TargetError(
        f"{str(folder)!r} has no trained run{of and f' of {of}'}.",
        remedy=f"Available: {available or 'none; every run diverged'}.",
    )
