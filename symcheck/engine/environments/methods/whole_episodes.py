"""Whole episodes, for properties that set states do not decide because setting a state loses some of it."""

from __future__ import annotations

import dataclasses
from typing import Any

from symcheck.engine.environments.methods.distribution import DistributionEvidence
from symcheck.engine.environments.methods.paired import PairedEvidence
from symcheck.engine.environments.methods.start import StartEvidence
from symcheck.engine.environments.methods.trajectory import TrajectoryEvidence
from symcheck.engine.equations import STEP_PARTS, Part
from symcheck.engine.results import PropertyResult
from symcheck.statements.statement import Statement, state
from symcheck.verdict import ReasonCode

# What setting a state loses here is restored by a reset, and acts in many steps.
_RESET_RESTORES = frozenset((ReasonCode.HIDDEN_STATE.value, ReasonCode.HIDDEN_STATE_IN_DISTRIBUTION.value))


class WholeEpisodes:
    """Evidence from single steps, and from whole episodes for the properties that single steps do not decide.

    Single steps may refute a property by more than setting a state loses. Otherwise whole episodes decide, which need
    no state to be set. They pass a property only if no pair of single steps violates it, even within that loss: whole
    episodes detect only larger violations. They must also have been compared to their end, because what setting a state
    loses may act late. If a method was requested by name, only that method passes a property, with the exception of
    terminations if setting a state loses nothing but a step counter.

    Args:
        evidence: the evidence from single steps.
        start: evidence about the start distribution.
    """

    def __init__(self, evidence: PairedEvidence | DistributionEvidence, start: StartEvidence) -> None:
        self.of_steps, self._bench, self.method = evidence, evidence.bench, evidence.method
        asked = tuple(filter(self._is_asked, STEP_PARTS))
        self._episodes = TrajectoryEvidence(
            evidence.bench, start, needed=lambda part: not evidence.refutes([part]), parts=asked
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.of_steps, name)

    def _is_asked(self, part: Part) -> bool:
        """Whether set states do not determine the outcomes of this property."""
        bench = self._bench
        if bench.caution is not None:
            return part in bench.touched
        cuts = bench.pairs.own_cuts
        return part == "termination" and cuts is not None and not cuts.follow_states

    def judge(self, name: str, part: Part) -> PropertyResult:
        """The verdict on one property; see `Evidence`."""
        result, caution = self.of_steps.judge(name, part), self._bench.caution
        if result.verdict == "failed" or not self._is_asked(part):
            return result
        if caution is not None and (result.reason is None or result.reason.code != caution.code):
            return result  # undecided for a reason that concerns episodes too
        episodes = self._episodes.judge(name, part)
        ends_only = caution is None or self._bench.touches_ends_only
        hidden = result.reason is not None and "hidden" in result.reason.fields
        if episodes.verdict != "failed" and (why := self._why_not_passed(episodes, ends_only=ends_only, hidden=hidden)):
            return dataclasses.replace(result, notes=(*result.notes, why))
        if ends_only:
            return dataclasses.replace(episodes, notes=(state("ends_of_episodes"), *episodes.notes))
        if episodes.verdict == "failed":
            return dataclasses.replace(episodes, causes=(*episodes.causes, state("SYM051", caution=caution)))
        return dataclasses.replace(episodes, notes=(state("episodes_instead", caution=caution), *episodes.notes))

    def _why_not_passed(self, episodes: PropertyResult, *, ends_only: bool, hidden: bool) -> Statement | None:
        """Why whole episodes that show no violation pass nothing; None if they pass the property."""
        bench, caution = self._bench, self._bench.caution
        if episodes.verdict == "undecided":
            return state("episodes_undecided", why=episodes.reason)
        if ends_only or caution is None:
            return None
        # A counter may act in a single step, and state that survives a reset makes episodes depend on each other.
        if bench.options.method != "auto" or caution.code not in _RESET_RESTORES:
            return state("episodes_only_refute")
        if hidden:
            return state("episodes_detect_less")
        region = (episodes.bound or {}).get("region")
        last = None if region is None else region.fields.get("last_step")
        return None if last is None else state("episodes_cut_short", last_step=last)
