"""`reference-agents evaluate`: play episodes with trained networks, on environments of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from reference_agents.environments.vector import Observations
from reference_agents.evaluation import Policy, play
from reference_agents.export import TrainedNetwork
from reference_agents.loading import load_network
from reference_agents.record import load
from reference_agents.tasks import resolve_task
from reference_agents.vectorised import distribution_of, environment_class
from symcheck.errors import OptionError


def evaluate_run(folder: Path, *, episodes: int, greedy: bool, seed: int) -> int:
    """Print mean, standard error and extremes of the returns of every trained network of a run; 0.

    Raises:
        OptionError: for a number of episodes below 1 or a negative seed.
        TargetError: where the folder is not a run.
    """
    if episodes < 1:
        raise OptionError(f"expected a number of episodes of 1 or more, got {episodes}.", where="--episodes")
    if seed < 0:
        raise OptionError(f"expected a seed of 0 or more, got {seed}.", where="--seed")
    record = load(folder)
    task = resolve_task(record.task, record.symmetry)
    make = environment_class(task)
    table = Table(
        "learning rate", "seed", "mean return", "standard error", "least", "most", box=None, padding=(0, 2, 0, 0)
    )
    for run in record.runs:
        if run.weights is None:
            table.add_row(f"{run.learning_rate:g}", str(run.seed), "diverged")
            continue
        network = load_network(folder, learning_rate=run.learning_rate, seed=run.seed)
        policy = distribution_of(task)
        returns = play(_policy(network), policy, make, [seed], episodes=episodes, index=0, greedy=greedy)[0]
        error = returns.std(ddof=1) / np.sqrt(episodes) if episodes > 1 else np.nan
        numbers = (returns.mean(), error, returns.min(), returns.max())
        table.add_row(f"{run.learning_rate:g}", str(run.seed), *(f"{number:.2f}" for number in numbers))
    console = Console()
    console.print(table)
    how = "the likeliest action" if greedy else "actions sampled from the policy"
    console.print(f"{episodes} episodes of {record.environment} for each network, {how}", highlight=False)
    return 0


def _policy(network: TrainedNetwork) -> Policy:
    @torch.no_grad()
    def policy(observations: Observations) -> torch.Tensor:
        numbers: torch.Tensor = network.numbers(torch.from_numpy(observations[0])).unsqueeze(0)
        return numbers

    return policy
