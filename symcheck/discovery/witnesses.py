"""Tests candidates on episodes before verification. Some are refuted; for others there are too few episodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from symcheck.array_types import Floats
from symcheck.discovery.action_effects import ActionEffects
from symcheck.discovery.by_states import Proposals
from symcheck.discovery.episode_counts import EpisodeCounts, list_images
from symcheck.discovery.episode_orbits import (
    AT_FIRST,
    CLOSER,
    FEWEST_TELLING,
    Budget,
    EpisodeOrbits,
    Played,
    play_episodes,
)
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.maps import Candidate, SignedMap
from symcheck.discovery.products import Products
from symcheck.discovery.result import Fate, Trial
from symcheck.errors import SymcheckError

_SHARE = 0.05  # share of alpha per test; a false rejection only misses a symmetry and does not lead to a false claim
_DIFFER = "episodes differ from their images"
_MOST_FOLLOWERS = 12  # maximum number of products of remaining maps that are tested
_FEW = "too few episodes have a rare reward or a termination"


@dataclass(frozen=True)
class _Heard:
    """A candidate that is not refuted so far, with its observation map in words and on stacked rows."""

    candidate: Candidate
    moves: str
    move: Callable[[Floats], Floats]


class Witnesses:
    """Episodes of a black box, on which candidates are tested: first a few, then more for the remaining candidates.

    Args:
        lab: an environment whose states cannot be set.
        shrink: reduces the size of flattened observations.
        with_steps: whether the change of observations by steps is tested too.
    """

    def __init__(self, lab: Laboratory, shrink: Callable[[Floats], Floats], *, with_steps: bool) -> None:
        self._lab, self._shrink, self._with_steps = lab, shrink, with_steps
        self._level = _SHARE * lab.alpha
        self._left: list[_Heard] = []
        self._kept = _Kept()

    @cached_property
    def _at_first(self) -> Played | None:
        return play_episodes(self._lab, self._shrink)

    @cached_property
    def _few(self) -> _Questioned | None:
        return self._question(self._at_first, AT_FIRST)

    def _question(self, played: Played | None, budget: Budget) -> _Questioned | None:
        if played is None:
            return None
        counts = EpisodeCounts(played.rollouts, self._lab.rng, with_steps=self._with_steps)
        orbits = EpisodeOrbits(played.rollouts, self._lab.rng, with_steps=self._with_steps, budget=budget)
        # Images are not predicted, so effects of actions are tested by themselves.
        effects = () if self._with_steps else (ActionEffects(played.rollouts, self._lab.rng),)
        return _Questioned((counts, *effects, orbits), played.telling)

    def hear(self, candidate: Candidate, moves: str, move: Callable[[Floats], Floats], proposals: Proposals) -> None:
        """Keep a candidate with the action maps that episodes do not refute; otherwise record it as rejected.

        Args:
            candidate: the candidate, with its action maps.
            moves: the observation map, in words.
            move: the observation map, on stacked reduced observations.
            proposals: receives the candidate, kept or rejected.
        """
        heard = _Heard(candidate, moves, move)
        self._left += self._kept.follow(heard) or self._keep(heard, self._kept, self._few, proposals)

    def conclude(self, proposals: Proposals) -> None:
        """Test the remaining candidates on more episodes, and add those that are not refuted to the proposals.

        Args:
            proposals: receives the candidates that are kept and those that are rejected.
        """
        if not self._left:
            return
        many = self._question(play_episodes(self._lab, self._shrink, CLOSER, self._at_first), CLOSER)
        kept, followers = _Kept(), 0
        # Simple maps first, because fewer faults are invariant under them.
        self._left.sort(key=lambda heard: heard.candidate.cost)
        for heard in self._left:
            follows = bool(kept.follow(heard))
            # Also test products that are their own inverse, because these are refuted with fewer episodes.
            if follows and (heard.candidate.state.order > 2 or followers >= _MOST_FOLLOWERS):
                continue
            followers += follows
            if (other := kept.leads_to_refuted(heard.candidate)) is not None:
                proposals.refused.append(_trial(heard.candidate, heard.moves, "rejected", _say_lead(other), _DIFFER))
                kept.refute(heard)
            else:
                self._keep(heard, kept, many, proposals)
        for heard, why in kept.fallen:
            proposals.refused.append(_trial(heard.candidate, heard.moves, "undecided", why, _DIFFER))
        for each in kept.list_left(self._left):
            if many is not None and many.telling is not None and many.telling < FEWEST_TELLING:
                said = (
                    f"only {many.telling} episodes have a rare reward or a termination, too few to test what these "
                    "depend on"
                )
                proposals.refused.append(_trial(each.candidate, each.moves, "undecided", said, _FEW))
            else:
                proposals.candidates.append(each.candidate)

    def _keep(self, heard: _Heard, kept: _Kept, asked: _Questioned | None, proposals: Proposals) -> list[_Heard]:
        left = self._hear(heard, asked, proposals)
        for each in left:
            kept.add(each)
        if not left:
            kept.refute(heard)
        return left

    def _hear(self, heard: _Heard, asked: _Questioned | None, proposals: Proposals) -> list[_Heard]:
        """The candidate with its remaining action maps; empty if there are none."""
        if asked is None:
            return [heard]
        candidate = heard.candidate
        if why := asked.refute(heard.move, candidate.state.order, None, self._level):
            said = f"{_DIFFER} for every action map: {why}"
            proposals.refused.append(_trial(candidate, heard.moves, "rejected", said, _DIFFER))
            return []
        kept, why = [], ""
        for action_map in (candidate.action, *candidate.others):
            order = replace(candidate, action=action_map).order
            against = asked.refute(heard.move, order, action_map, self._level)
            why = why or against
            if not against:
                kept.append(action_map)
        if not kept:
            said = f"{_DIFFER} with every action map that was fitted: {why}"
            proposals.refused.append(_trial(candidate, heard.moves, "rejected", said, _DIFFER, another=True))
            return []
        return [replace(heard, candidate=replace(candidate, action=kept[0], others=tuple(kept[1:])))]


class _Kept:
    """Kept candidates, whose products need no separate test, and refuted ones.

    Attributes:
        fallen: formerly kept candidates with a refuted product, and the reason.
    """

    def __init__(self) -> None:
        self.fallen: list[tuple[_Heard, str]] = []
        self._members: list[_Heard] = []
        self._open: list[_Heard] = []
        self._refuted: list[_Heard] = []
        self._products: Products | None = None

    def add(self, heard: _Heard) -> None:
        """Record a kept candidate; it is dropped if one of its products with others is refuted."""
        one = heard.candidate
        if one.others or not one.order:
            self._open.append(heard)  # its action map is not known yet
            return
        products = _products_of([*self._members, heard])
        if products is None or products.moves_actions_alone:  # one of the action maps is wrong
            self._open.append(heard)
        elif (other := self._refuted_in(products)) is not None:
            self.fallen.append((heard, _say_lead(other)))
            self._refuted.append(heard)
        else:
            self._members.append(heard)
            self._products = products

    def refute(self, heard: _Heard) -> None:
        """Record a refuted candidate; drop the most recently kept candidates until it is not among their products."""
        self._refuted.append(heard)
        while self._products is not None and self._refuted_in(self._products) is not None:
            last = self._members.pop()
            self.fallen.append((last, _say_lead(heard)))
            self._products = _products_of(self._members)

    def _refuted_in(self, products: Products) -> _Heard | None:
        return next((one for one in self._refuted if not one.candidate.others and one.candidate in products), None)

    def follow(self, heard: _Heard) -> list[_Heard]:
        """The candidate with the action map that makes it a product of kept candidates; empty if there is none."""
        if self._products is not None:
            for action_map in (heard.candidate.action, *heard.candidate.others):
                product = replace(heard.candidate, action=action_map, others=())
                if product in self._products:
                    return [replace(heard, candidate=product)]
        return []

    def leads_to_refuted(self, candidate: Candidate) -> _Heard | None:
        """A refuted map that is a product of a candidate with kept candidates."""
        if self._products is None or candidate.others:
            return None
        products, back = self._products, candidate.inverse()
        return next((one for one in self._refuted if back * one.candidate in products), None)

    def list_left(self, heard: Sequence[_Heard]) -> list[_Heard]:
        """The candidates that are kept, or are products of kept ones."""
        opened = {each.candidate.state for each in self._open}
        following = [left for each in heard if each.candidate.state not in opened for left in self.follow(each)]
        return [*following, *self._open]


def _products_of(members: Sequence[_Heard]) -> Products | None:
    """All products; None if there are none, or if they cannot be formed."""
    try:
        return Products([each.candidate for each in members], _identity_like(members[0].candidate)) if members else None
    except SymcheckError:
        return None


def _say_lead(other: _Heard) -> str:
    return f"its product with the remaining maps would be a map that episodes refute: {other.moves}"


def _identity_like(candidate: Candidate) -> Candidate:
    still = SignedMap.identity(candidate.state.dim)
    return Candidate(still, SignedMap.identity(candidate.action.dim), still)


@dataclass(frozen=True)
class _Questioned:
    """The tests on one set of episodes, fast tests first, with the number of episodes that have a rare reward."""

    ways: tuple[EpisodeCounts | ActionEffects | EpisodeOrbits, ...]
    telling: int | None

    def refute(self, move: Callable[[Floats], Floats], order: int, action_map: SignedMap | None, level: float) -> str:
        """The quantity that refutes a map; "" if there is none."""
        half = order // 2 if order > 2 and order % 2 == 0 else 0
        if half:  # this power is its own inverse, so a smaller difference refutes it
            turned = None if action_map is None else _power(action_map, half)
            if why := self.refute(lambda rows: list_images(rows, move, half + 1)[-1], 2, turned, level / 2):
                return why
        share = level / len(self.ways) / (2 if half else 1)
        refuted = (way.refute(move, order, action_map, share) for way in self.ways)
        return next(filter(None, refuted), "")


def _power(action_map: SignedMap, count: int) -> SignedMap:
    made = action_map
    for _ in range(count - 1):
        made = made * action_map
    return made


def _trial(candidate: Candidate, moves: str, fate: Fate, why: str, kind: str, *, another: bool = False) -> Trial:
    order, residual, form = candidate.state.order, candidate.residual, candidate.form
    return Trial(moves, "", order, fate, why, residual, kind=kind, form=form, another=another)
