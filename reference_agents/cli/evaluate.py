"""`reference-agents evaluate`: play episodes with trained networks on separate environments, and film one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from rich.console import Console
from rich.table import Table

from reference_agents.catalog import Task
from reference_agents.cli.tables import print_table
from reference_agents.evaluation import Policy, play
from reference_agents.export import TrainedNetwork
from reference_agents.film import check_film, film
from reference_agents.loading import load_network
from reference_agents.record import Record, load
from reference_agents.tasks import resolve_task
from reference_agents.vectorised import distribution_of, encoding_of, environment_class, episode_limit, whole_episodes
from symcheck.array_types import Array, Bools
from symcheck.errors import OptionError, TargetError
from symcheck_reports.formatting import plural


def evaluate_run(folder: Path, *, episodes: int, greedy: bool, seed: int, video: Path | None = None) -> int:
    """Print mean, standard error and extremes of the returns of every trained network; returns exit code 0.

    Args:
        folder: a run folder.
        episodes: the number of episodes for each network.
        greedy: whether the most likely action is taken instead of a sampled one.
        seed: the seed of the episodes.
        video: a file for a video of one more episode of the network with the highest mean; None for no video.

    Raises:
        OptionError: a number of episodes below 1, a negative seed, or a video that cannot be written.
        TargetError: the folder is not a run, or its environment cannot be rendered.
        MissingExtraError: a video is requested without the extra `video`.
    """
    if episodes < 1:
        raise OptionError(f"expected 1 or more episodes, got {episodes}.", where="--episodes")
    if seed < 0:
        raise OptionError(f"expected a seed of 0 or more, got {seed}.", where="--seed")
    # Check this before playing, so that an invalid video file costs no time.
    if video is not None:
        check_film(video)
    record, console = load(folder), Console()
    task = resolve_task(record.task, record.symmetry)
    table, means = _play_all(record, task, folder, episodes=episodes, greedy=greedy, seed=seed)
    print_table(console, table)
    how = "the likeliest action" if greedy else "actions sampled from the policy"
    console.print(f"{plural(episodes, 'episode')} of {record.environment} for each network, {how}", highlight=False)
    if video is not None:
        if not means:
            raise TargetError(f"every run of {str(folder)!r} diverged, so there is no trained network to record.")
        best = max(means, key=lambda run: means[run])
        console.print(
            _film(folder, record, task, best, video, greedy=greedy, seed=seed), highlight=False, soft_wrap=True
        )
    return 0


def _play_all(
    record: Record, task: Task, folder: Path, *, episodes: int, greedy: bool, seed: int
) -> tuple[Table, dict[tuple[float, int], float]]:
    """A table of all runs, and the mean return of each trained run."""
    headers = ("learning rate", "seed", "mean return", "standard error", "least", "most")
    table, means = Table(*headers, box=None, padding=(0, 2, 0, 0)), dict[tuple[float, int], float]()
    for run in record.runs:
        if run.weights is None:
            table.add_row(f"{run.learning_rate:g}", str(run.seed), "diverged")
            continue
        policy = _policy(load_network(folder, learning_rate=run.learning_rate, seed=run.seed))
        distribution = distribution_of(task)
        make = environment_class(task, int(record.settings.get("max_episode_steps", 0)))
        returns = play(policy, distribution, make, [seed], episodes=episodes, index=0, greedy=greedy)[0]
        # Standard error of the mean, with the unbiased variance; one episode has none.
        error = f"{returns.std(ddof=1) / np.sqrt(episodes):.2f}" if episodes > 1 else ""
        mean, *extremes = (f"{number:.2f}" for number in (returns.mean(), returns.min(), returns.max()))
        table.add_row(f"{run.learning_rate:g}", str(run.seed), mean, error, *extremes)
        means[run.learning_rate, run.seed] = float(returns.mean())
    return table, means


def _film(
    folder: Path, record: Record, task: Task, run: tuple[float, int], target: Path, *, greedy: bool, seed: int
) -> str:
    """Film one episode; return a message about it."""
    distribution = distribution_of(task)
    policy = _policy(load_network(folder, learning_rate=run[0], seed=run[1]))

    def act(observation: npt.NDArray[np.float32], uniforms: npt.NDArray[np.float64]) -> Any:
        # Batched as (runs, environments, ...): one run, one environment.
        numbers = policy(observation[None, None])
        return (distribution.mode(numbers) if greedy else distribution.sample(numbers, uniforms[None]))[0, 0]

    encoded = encoding_of(task)
    steps, return_ = film(
        encoded,
        act,
        distribution.noise_shape(1),
        target,
        seed=seed,
        arguments=whole_episodes(task),
        limit=episode_limit(task, int(record.settings.get("max_episode_steps", 0))),
    )
    return f"wrote {target}: learning rate {run[0]:g}, seed {run[1]}, {steps} steps, return {return_:.2f}"


def _policy(network: TrainedNetwork) -> Policy:
    @torch.no_grad()
    def policy(observations: Array, running: Bools | None = None) -> torch.Tensor:
        # The network takes one batch; the axis of runs is removed and added again.
        numbers: torch.Tensor = network.numbers(torch.from_numpy(observations[0]).float()).unsqueeze(0)
        return numbers

    return policy
