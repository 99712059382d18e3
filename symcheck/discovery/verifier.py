"""Runs `verify-env` on candidates: screening runs with a share of alpha, and the accepting run.

A screening run may be small and uses only a share of alpha. It can reject a candidate; a candidate that passes is not
yet accepted. Acceptance is the run that a user would start on the written file: all of alpha, the whole budget of
`verify-env`, the whole group, and samples that no screening run used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from symcheck.discovery.claims import Spaces, claim_of
from symcheck.discovery.elements import Recognised
from symcheck.engine.environments.runner import run_env
from symcheck.engine.events import Emit
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import RunResult
from symcheck.symmetry.symmetry import Symmetry

_SCREENING_SEED = 20_011  # added to the seed, so that acceptance draws independent samples
_SCREENING_TIME = 0.6  # of the time budget; the rest is for acceptance
_SHORTEST = 0.05  # seconds; a budget of 0 s is rejected


@dataclass(frozen=True)
class Verifier:
    """The data that every verification needs.

    Attributes:
        make_env: builds the environment.
        label: its name.
        where: the spaces for which entries are written.
        samples: number of pairs in the accepting run.
        screened: number of pairs in a screening run.
        alpha: the alpha of the accepting run.
        level: alpha of a screening run.
        seed: the seed of the accepting run; screening uses another one.
        seconds_left: seconds left of a share of the budget; returns None for no limit.
        emit: receives events.
        least: samples per generator below which nothing is accepted; 0 if states can be set.
    """

    make_env: Callable[[], gym.Env[Any, Any]]
    label: str
    where: Spaces
    samples: int
    screened: int
    alpha: float
    level: float
    seed: int
    seconds_left: Callable[[float], float | None]
    emit: Emit
    least: int = 0

    def accept(self, name: str, group: Recognised) -> RunResult:
        """The run that decides whether a group is claimed.

        Args:
            name: the name of the symmetry.
            group: the group with its generators.

        Raises:
            SymcheckError: the claim cannot be built or the environment rejects it.
        """
        return self.accept_claim(claim_of(name, group, self.where))

    def accept_claim(self, claim: Symmetry) -> RunResult:
        """The run that decides on a claim of any form.

        Raises:
            SymcheckError: the environment rejects it.
        """
        samples = max(self.samples, self.least * len(claim.group.generators))
        return self._run(claim, samples, self.alpha, self.seed, 1.0)

    def screen(self, name: str, group: Recognised, *, samples: int | None = None) -> RunResult:
        """A screening run, which rejects a candidate or lets it pass.

        Args:
            name: the name of the symmetry.
            group: the group with its generators.
            samples: number of pairs, if fewer than usual suffice.

        Raises:
            SymcheckError: the claim cannot be built or the environment rejects it.
        """
        return self.screen_claim(claim_of(name, group, self.where), samples=samples)

    def screen_claim(self, claim: Symmetry, *, samples: int | None = None) -> RunResult:
        """A screening run on a claim of any form.

        Raises:
            SymcheckError: the environment rejects it.
        """
        few = self.screened if samples is None else min(samples, self.screened)
        return self._run(claim, few, self.level, self.seed + _SCREENING_SEED, _SCREENING_TIME)

    def in_time(self, *, screening: bool = False) -> bool:
        """Whether another run may begin."""
        remaining = self.seconds_left(_SCREENING_TIME if screening else 1.0)
        return remaining is None or remaining > 0

    def _run(self, claim: Symmetry, samples: int, alpha: float, seed: int, share: float) -> RunResult:
        remaining = self.seconds_left(share)
        options = EnvOptions(
            samples=samples,
            max_time=None if remaining is None else max(remaining, _SHORTEST),
            alpha=alpha,
            seed=seed,
        )
        return run_env(self.make_env, claim, options=options, target=self.label, command="", emit=self.emit)
