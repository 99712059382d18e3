"""Terminations that set states do not determine, because a step counter is not restored."""

from __future__ import annotations

import dataclasses
from typing import Any

from symcheck.engine.environments.cases.workbench import Evidence, Workbench
from symcheck.engine.environments.methods.start import StartEvidence
from symcheck.engine.environments.methods.trajectory import TrajectoryEvidence
from symcheck.engine.equations import Part
from symcheck.engine.results import PropertyResult
from symcheck.statements.statement import state


class EndsOfEpisodes:
    """Evidence from single steps, and from whole episodes for terminations that set states do not determine.

    Args:
        evidence: the evidence from single steps.
        bench: the environment and the options.
        start: evidence about the start distribution.
    """

    def __init__(self, evidence: Evidence, bench: Workbench, start: StartEvidence) -> None:
        self.of_steps, self._bench, self.method = evidence, bench, evidence.method
        self._episodes = TrajectoryEvidence(bench, start, needed=self._is_asked, parts=("termination",))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.of_steps, name)

    def _is_asked(self, part: Part) -> bool:
        bench, cuts = self._bench, self._bench.pairs.own_cuts
        # If more than a counter is hidden, whole episodes could pass a property that single steps cannot.
        uncompared = bench.caution is None and cuts is not None and not cuts.follow_states
        return part == "termination" and (uncompared or bench.touches_ends_only)

    def judge(self, name: str, part: Part) -> PropertyResult:
        """The verdict on one property; see `Evidence`."""
        result = self.of_steps.judge(name, part)
        if result.verdict != "failed" and self._is_asked(part):
            episodes = self._episodes.judge(name, part)
            if episodes.verdict != "undecided":
                return dataclasses.replace(episodes, notes=(state("ends_of_episodes"), *episodes.notes))
        return result
