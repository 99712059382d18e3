"""Verify the atlas again: every entry, with several seeds, compared with its file.

An entry is reproduced if, for each seed, the verdict is the recorded one and exactly the recorded properties fail. The
sizes of violations must agree up to a factor of ten: sizes are maxima over samples, so they vary. Properties listed
under `sometimes` may fail or not.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from symcheck.api.verify_env import verify_env
from symcheck.engine.events import Emit
from symcheck.envs.atlas import AtlasEntry
from symcheck.errors import SymcheckError

SEEDS = (0, 1, 2)
SAMPLES = 2_000  # default number of pairs per property; sizes in the files were measured with it
_FACTOR = 10.0  # sizes are maxima over samples, which vary by this factor between seeds


@dataclass(frozen=True)
class Reproduction:
    """The result of one seed for one entry.

    Attributes:
        entry: the entry that was checked.
        env_id: the environment.
        seed: the seed.
        verdict: the verdict reached; "" if the run ended in an error.
        fails: the properties that failed.
        undecided: the properties that stayed undecided.
        size: the largest residual of each property that failed.
        seconds: wall time.
        problems: the differences from the file; empty if the entry is reproduced.
        interrupted: whether it was stopped before it was finished.
    """

    entry: AtlasEntry
    env_id: str
    seed: int
    verdict: str
    fails: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    size: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    problems: tuple[str, ...] = ()
    interrupted: bool = False


def check_entries(
    entries: Iterable[AtlasEntry], *, seeds: Sequence[int] = SEEDS, emit: Emit | None = None
) -> Iterator[Reproduction]:
    """Verify entries again, and yield each result.

    Args:
        entries: the entries to verify; their extras must be installed.
        seeds: the seeds of the runs.
        emit: receives the events of every run.

    Yields:
        One reproduction per entry, environment and seed; the last one is `interrupted` after a Ctrl-C.

    Example:
        >>> from symcheck.envs import atlas
        >>> [one.problems for one in check_entries([atlas.entry("cartpole/mirror")], seeds=[0])]
        [(), ()]
    """
    for entry in entries:
        for env_id in entry.environments:
            for seed in seeds:
                check = check_entry(entry, env_id, seed, emit=emit)
                yield check
                if check.interrupted:
                    return


def check_entry(entry: AtlasEntry, env_id: str, seed: int, *, emit: Emit | None = None) -> Reproduction:
    """Verify one entry on one environment with one seed.

    Args:
        entry: a claim, or a symmetry known to be broken.
        env_id: an environment of the entry.
        seed: the seed of the run.
        emit: receives the run's events.

    Returns:
        The result, and its differences from the file.
    """
    started = time.monotonic()
    try:
        report = verify_env(
            env_id,
            entry.symmetry(),
            samples=entry.samples or SAMPLES,
            max_time=entry.max_time,
            seed=seed,
            emit=emit,
        )
    except SymcheckError as error:
        problem = f"the run ended in an error: {error}"
        return Reproduction(entry, env_id, seed, "", seconds=time.monotonic() - started, problems=(problem,))
    result = report.results[0]
    fails = tuple(item.name for item in result.properties if item.verdict == "failed")
    undecided = tuple(item.name for item in result.properties if item.verdict == "undecided")
    size = {item.name: float(item.max_residual or 0.0) for item in result.properties if item.verdict == "failed"}
    seconds = time.monotonic() - started
    # An unfinished run cannot be compared with the file.
    problems = () if result.interrupted else tuple(_problems(entry, result.verdict, fails, size))
    return Reproduction(
        entry, env_id, seed, result.verdict, fails, undecided, size, seconds, problems, result.interrupted
    )


def _problems(entry: AtlasEntry, verdict: str, fails: tuple[str, ...], size: Mapping[str, float]) -> Iterator[str]:
    # A violation near the smallest detectable size fails for some seeds and passes for others.
    marginal = verdict == "failed" and bool(entry.sometimes) and set(fails) <= {*entry.fails, *entry.sometimes}
    if verdict != entry.verdict and not marginal:
        yield f"the verdict is {verdict}, but {entry.verdict} is recorded"
    # In both directions: a property that no longer fails is a change as well.
    more = [name for name in fails if name not in (*entry.fails, *entry.sometimes)]
    fewer = [name for name in entry.fails if name not in fails]
    if more:
        yield f"{', '.join(more)} failed, which is not recorded"
    if fewer:
        yield f"{', '.join(fewer)} did not fail, which is recorded"
    for name, recorded in entry.size.items():
        measured = size.get(name)
        if measured is not None and not recorded / _FACTOR <= measured <= recorded * _FACTOR:
            yield f"{name} is violated by {measured:.2g}, but {recorded:.2g} is recorded"
