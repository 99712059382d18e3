"""Tests of candidates on episodes before verification: some are refuted, for others there are too few episodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from symcheck.array_types import Floats
from symcheck.discovery.by_states import Proposals
from symcheck.discovery.episode_orbits import FEWEST_TELLING, EpisodeOrbits, play_episodes
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.maps import Candidate
from symcheck.discovery.result import Fate, Trial

_SHARE = 0.02  # of alpha for a question: a symmetry that is refused by chance is missed, and nothing false is claimed
_DIFFER = "episodes differ from their images"
_FEW = "too few episodes have a rare reward or a termination"


class Witnesses:
    """Episodes of a black box, on which candidates are tested.

    Args:
        lab: an environment whose states cannot be set.
        shrink: reduces the size of flattened observations.
        with_steps: whether the change of observations by steps is tested too.
    """

    def __init__(self, lab: Laboratory, shrink: Callable[[Floats], Floats], *, with_steps: bool) -> None:
        self._lab, self._shrink, self._with_steps = lab, shrink, with_steps
        self._level = _SHARE * lab.alpha

    @cached_property
    def _episodes(self) -> tuple[EpisodeOrbits | None, int | None]:
        """Models of half of the episodes, and how many episodes have a rare reward where rewards are rare."""
        played = play_episodes(self._lab, self._shrink)
        if played is None:
            return None, None
        return EpisodeOrbits(played.rollouts, self._lab.rng, with_steps=self._with_steps), played.telling

    def hear(self, candidate: Candidate, moves: str, move: Callable[[Floats], Floats], proposals: Proposals) -> None:
        """Add a candidate to the proposals with the action maps that episodes do not refute; or add its refusal.

        Args:
            candidate: the candidate, with its action maps.
            moves: the observation map, in words.
            move: the observation map, on stacked reduced observations.
            proposals: receives the candidate or the refusal.
        """
        orbits, telling = self._episodes
        if orbits is None:
            proposals.candidates.append(candidate)
            return
        why = orbits.refute(move, candidate.state.order, None, self._level)
        if why:
            said = f"{_DIFFER} whatever the action map: {why}"
            proposals.refused.append(_trial(candidate, moves, "refused", said, _DIFFER))
            return
        kept, why = [], ""
        for action_map in (candidate.action, *candidate.others):
            order = replace(candidate, action=action_map).order
            against = orbits.refute(move, order, action_map, self._level)
            why = why or against
            if not against:
                kept.append(action_map)
        if not kept:
            said = f"{_DIFFER} with every action map that was fitted: {why}"
            proposals.refused.append(_trial(candidate, moves, "refused", said, _DIFFER, another=True))
        elif telling is not None and telling < FEWEST_TELLING:
            said = f"a rare reward or a termination came in {telling} episodes only, too few to tell what it depends on"
            proposals.refused.append(_trial(candidate, moves, "undecided", said, _FEW))
        else:
            proposals.candidates.append(replace(candidate, action=kept[0], others=tuple(kept[1:])))


def _trial(candidate: Candidate, moves: str, fate: Fate, why: str, kind: str, *, another: bool = False) -> Trial:
    order, residual, form = candidate.state.order, candidate.residual, candidate.form
    return Trial(moves, "", order, fate, why, residual, kind=kind, form=form, another=another)
