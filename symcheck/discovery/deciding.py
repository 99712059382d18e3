"""Decision by verification: candidates are screened one by one, then the whole group is accepted, or reduced.

The symmetries of an environment form a group, which saves work in two ways: a product of accepted maps needs no
separate run, and if h holds and g does not, then no product of h and g holds. Both conclusions are first drawn from the
screening; if the whole group is not accepted and a member is removed, they are drawn again.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from symcheck.discovery.claims import describe_candidate, fields, single
from symcheck.discovery.elements import Key, Recognised
from symcheck.discovery.maps import Candidate
from symcheck.discovery.products import Products, name_group
from symcheck.discovery.result import (
    Fate,
    Trial,
    fails_in_observations_only,
    fails_whatever_the_actions,
    is_accepted,
    kind_of,
    why_of,
)
from symcheck.discovery.verifier import Verifier
from symcheck.engine.results import RunResult
from symcheck.errors import RepresentationError, SymcheckError

MOST_SCREENED = 24
_COUNTEREXAMPLE_SAMPLES = 500  # samples for candidates whose reward disagrees on most screening states
_ONE_BY_ONE = 4  # number of members of a large group that are first verified separately
_MOST_REFUSED_REWARDS = 3  # maximum number of such candidates that are run, only to locate the violation
_FOLLOWS = "a product of accepted maps"
_UNVERIFIED = "it passed the screening, but the time budget ended before the whole group was verified"


@dataclass
class Judgement:
    """The result of verification.

    Attributes:
        trials: one per candidate.
        group: the accepted group; None if nothing was accepted.
        verified: the run that accepted this group.
        complete: whether every candidate was decided.
        interrupted: whether it was interrupted.
    """

    trials: list[Trial] = field(default_factory=list)
    group: Recognised | None = None
    verified: RunResult | None = None
    complete: bool = True
    interrupted: bool = False


@dataclass
class _Record:
    """The current knowledge about one candidate."""

    candidate: Candidate
    fate: Fate = "untried"
    why: str = ""
    kind: str = ""
    result: RunResult | None = None
    deduced: bool = False
    another: bool = False  # whether another map of actions or observations is still possible for this map of states


def decide(
    candidates: Sequence[Candidate],
    identity: Candidate,
    verifier: Verifier,
    *,
    interrupted: bool = False,
    sampled: Collection[str] = (),
) -> Judgement:
    """Screen candidates, accept the group of the remaining ones, and record the outcome of each.

    Args:
        candidates: the candidates from the search, without the identity.
        identity: the identity on the same spaces.
        verifier: runs the verifications.
        interrupted: whether the search was interrupted; then nothing more is verified.
        sampled: forms whose maps are not all candidates, so that a product outside the candidates is no evidence.

    Returns:
        The judgement. After Ctrl-C, the decisions made so far.
    """
    bench = _Bench(candidates, identity, verifier, sampled)
    bench.judgement.interrupted = interrupted
    if interrupted:
        bench.leave_rest("interrupted before it was verified")
    else:
        bench.accept_together()
        bench.screen_all()
        bench.conclude()
    bench.write_trials()
    return bench.judgement


class _Bench:
    def __init__(
        self, candidates: Sequence[Candidate], identity: Candidate, verifier: Verifier, sampled: Collection[str]
    ) -> None:
        self.sampled = sampled
        self.identity = identity
        self.verifier = verifier
        self.judgement = Judgement()
        # Candidates that follow from earlier ones are not run.
        ordered = sorted(candidates, key=_likelihood)
        self.records = {candidate.key: _Record(candidate) for candidate in ordered}
        self.members: list[Candidate] = []
        self.known = Products([], identity)
        self.alone: dict[Key, RunResult] = {}
        self.accepting: dict[tuple[Key, ...], RunResult] = {}
        self.runs = 0
        self.wrong_rewards = 0

    def accept_together(self) -> None:
        """Accept the candidates, or those of one form, in one run, if they form a group."""
        likely = [record.candidate for record in self.records.values() if record.candidate.reward_agrees]
        by_form: dict[str, list[Candidate]] = {}
        for candidate in likely:
            by_form.setdefault(candidate.form, []).append(candidate)
        # Larger sets first: accepting a whole group leaves the fewest runs. A map that misses one case seldom holds.
        families = sorted([likely, *(by_form.values() if len(by_form) > 1 else [])], key=len, reverse=True)
        exact = [candidate for candidate in likely if not candidate.missed]
        for family in [exact, *(each for each in families if each != exact)]:
            if self._accept_family(family) or self.judgement.interrupted:
                return

    def _accept_family(self, candidates: Sequence[Candidate]) -> bool:
        if not candidates or not all(candidate.order for candidate in candidates):
            return False
        try:
            known = Products(candidates, self.identity)
        except SymcheckError:
            return False
        # If two elements have the same state map and different action maps, one action map is wrong.
        if known.moves_actions_alone:
            return False
        whole = not any(candidate.form in self.sampled for candidate in candidates)
        if whole and known.listed is not None and known.order != len(candidates) + 1:
            return False
        if not self._members_hold(known):
            return False
        group = name_group(known)
        result = self._accept(group)
        if result is None:
            return False
        if is_accepted(result):
            self.members, self.known = list(group.generators), known
            self._claim(group, result)
            return True
        if len(candidates) == 1:
            self._fall(candidates[0], result)
        return False

    def screen_all(self) -> None:
        """Screen every candidate that is not determined by others."""
        heard: set[Key] = set()
        # Records may be added during the loop: if an action map fails, the next action map is tested.
        while waiting := [record for key, record in self.records.items() if key not in heard]:
            record = waiting[0]
            heard.add(record.candidate.key)
            if not self.judgement.interrupted and (record.fate == "untried" or record.deduced):
                self._hear(record)
            if self.judgement.interrupted:
                self.leave_rest("interrupted before it was verified")
                return

    def conclude(self) -> None:
        """Accept the whole group with exactly the fields that are written; if it fails, without its weakest members."""
        while self.members and not self.judgement.interrupted:
            group = name_group(self.known)
            result = self._accept(group) if self.verifier.in_time() and self._members_hold(self.known) else None
            if result is not None and is_accepted(result):
                self._claim(group, result)
                return
            if self.judgement.interrupted or not self.verifier.in_time():
                break
            self._drop_members(group, result)
            self.screen_all()
        claimed = self.judgement.group.generators if self.judgement.group is not None else ()
        held = Products(claimed, self.identity)
        for member in self.members:
            # A candidate that only passed screening is not reported as accepted.
            if member not in held:
                self._set(member, "undecided", _UNVERIFIED, _UNVERIFIED)

    def leave_rest(self, why: str) -> None:
        """Mark the candidates that are never verified."""
        for record in self.records.values():
            if record.fate == "untried":
                record.why, record.kind = why, why

    def write_trials(self) -> None:
        """One trial per candidate, accepted ones first."""
        made = [self._trial(record) for record in self.records.values()]
        made.sort(key=lambda trial: _RANK[trial.verdict])
        self.judgement.trials = made
        self.judgement.complete &= not any(trial.is_open for trial in made)

    def _members_hold(self, known: Products) -> bool:
        """Whether simple members of a large group are accepted one by one.

        The few generators of a large group move all coordinates at once, so a fault may be harder to detect in them
        than in a simple map.
        """
        simple = [] if known.listed is not None else sorted(known.generators, key=lambda each: each.cost)
        results = (self._accept(single(member)) for member in simple[:_ONE_BY_ONE])
        return all(result is not None and is_accepted(result) for result in results)

    def _accept(self, group: Recognised) -> RunResult | None:
        """The accepting run of a group, made once; None if there is none."""
        made_of = tuple(generator.key for generator in group.generators)
        if made_of in self.accepting:
            return self.accepting[made_of]
        try:
            result = self.verifier.accept(self._name(group), group)
        except SymcheckError:
            return None
        except KeyboardInterrupt:
            self.judgement.interrupted = True
            return None
        self.judgement.interrupted |= result.interrupted
        self.accepting[made_of] = result
        return result

    def _claim(self, group: Recognised, result: RunResult) -> None:
        """Record the group, and that its members hold."""
        self.judgement.group, self.judgement.verified = group, result
        generators = {generator.key for generator in group.generators}
        several = ", together with the other generators" if len(generators) > 1 else ""
        for record in self.records.values():
            key = record.candidate.key
            if key in generators:
                self._set(record.candidate, result.verdict, f"{why_of(result)}{several}", result=result)
            elif record.candidate in self.known:
                self._set(record.candidate, "follows", _FOLLOWS, _FOLLOWS)

    def _hear(self, record: _Record) -> None:
        """Accept, reject or postpone one candidate."""
        candidate = record.candidate
        record.deduced = True
        if candidate in self.known:
            self._set(candidate, "follows", _FOLLOWS, _FOLLOWS)
        elif not candidate.reward_agrees and self._is_refused_by_rewards(candidate):
            why = f"rewards differ by {candidate.reward_gap:.2g} at the median of the states where they differ"
            self._set(candidate, "rejected", candidate.refuted or why, "rewards or terminations differ")
        elif (other := self._refused_before(candidate)) is not None:
            described = self._describe(other)[0]
            why = f"its product with accepted maps is rejected: {described}"
            self._set(candidate, "rejected", why, "its product with accepted maps would be a rejected map")
        elif self.runs >= MOST_SCREENED or not self.verifier.in_time(screening=True):
            many = self.runs >= MOST_SCREENED
            limit = f"{MOST_SCREENED} candidates were screened before" if many else "the time budget ran out"
            self._set(candidate, "untried", limit, limit)
        else:
            record.deduced = False
            self._screen(candidate)

    def _is_refused_by_rewards(self, candidate: Candidate) -> bool:
        """Whether the search's counterexamples suffice; if there are few candidates, a run locates the failure.

        A run also locates the failure of a mirror derived from names in the model, because users ask about such a
        mirror.
        """
        if candidate.label:
            return False
        refuted = sum(bool(record.candidate.refuted) for record in self.records.values())
        many = bool(candidate.refuted) and refuted > _MOST_REFUSED_REWARDS
        return many or self.wrong_rewards >= _MOST_REFUSED_REWARDS

    def _screen(self, candidate: Candidate) -> None:
        self.runs += 1
        self.wrong_rewards += not candidate.reward_agrees  # adds 0 or 1
        group = single(candidate)
        try:
            few = None if candidate.reward_agrees else _COUNTEREXAMPLE_SAMPLES
            result = self.verifier.screen(self._name(group), group, samples=few)
        except RepresentationError as error:
            self._set(
                candidate, "undecided", f"the visited states do not determine the map of observations: {error.problem}"
            )
            return
        except SymcheckError as error:
            self._set(candidate, "rejected", error.problem, "verification rejects the claim")
            return
        except KeyboardInterrupt:
            self.judgement.interrupted = True
            return
        self.judgement.interrupted |= result.interrupted
        self._judge_alone(candidate, result)

    def _judge_alone(self, candidate: Candidate, result: RunResult) -> None:
        if not is_accepted(result):
            self._fall(candidate, result)
            return
        if candidate.refuted:
            self._set(candidate, "rejected", candidate.refuted, "rewards or terminations differ")
            return
        if self._contradicts(candidate):
            why = "it was not rejected, but together with accepted maps, it generates a map that only exchanges actions"
            self._set(candidate, "undecided", why, result=result)
            return
        self.members.append(candidate)
        self.known = Products(self.members, self.identity)
        self.alone[candidate.key] = result
        self._set(candidate, "undecided", "it was only screened", "it was only screened", result)

    def _fall(self, candidate: Candidate, result: RunResult) -> None:
        """Reject a map; the state map remains possible with another action map, or another map of observations."""
        self._set(candidate, result.verdict, why_of(result), kind_of(result), result)
        if candidate.unseen and fails_in_observations_only(result):
            self.records[candidate.key].another = True
            return
        if fails_whatever_the_actions(result) or not candidate.guessed:
            return
        further = [each for each in candidate.others if (candidate.state, each) not in self.records]
        if further:
            another = replace(candidate, action=further[0], others=tuple(further[1:]))
            self.records[another.key] = _Record(another)
        else:
            self.records[candidate.key].another = True

    def _contradicts(self, candidate: Candidate) -> bool:
        """Whether products with accepted maps change only actions, so that some action map is wrong."""
        try:
            return Products([*self.members, candidate], self.identity).moves_actions_alone
        except SymcheckError:
            return True

    def _refused_before(self, candidate: Candidate) -> Candidate | None:
        """A rejected map that is a product of this one with accepted maps."""
        for record in self.records.values():
            if record.fate != "failed" and not (record.fate == "rejected" and record.candidate.refuted):
                continue
            other = record.candidate
            if other.key != candidate.key and self.known.leads_to(candidate, other):
                return other
        return None

    def _drop_members(self, group: Recognised, joint: RunResult | None) -> None:
        """Remove the members of a rejected group that are rejected on their own, or the one with the least evidence."""
        if len(self.members) == 1 and len(group.generators) == 1 and joint is not None:
            verdicts = {self.members[0].key: joint}
        else:
            verdicts = self._run_alone()
        dropped = [each for each in self.members if each.key in verdicts and not is_accepted(verdicts[each.key])]
        for member in dropped:
            result = verdicts[member.key]
            self._set(member, result.verdict, why_of(result), kind_of(result), result)
        if not dropped and self.members:
            weakest = min(self.members, key=lambda member: self._evidence(member, verdicts))
            said = why_of(joint) if joint is not None else "it could not be verified as a whole"
            why = (
                f"verified alone, it is not rejected; together with others it generates {group.name}, which is not "
                f"accepted: {said}"
            )
            self._set(weakest, "undecided", why, "the group that contains it is not accepted", joint)
            dropped = [weakest]
        gone = {member.key for member in dropped}
        self.judgement.group = self.judgement.verified = None
        self.members = [member for member in self.members if member.key not in gone]
        self.known = Products(self.members, self.identity)

    def _run_alone(self) -> dict[Key, RunResult]:
        """Run acceptance for every member separately, as far as time allows."""
        made: dict[Key, RunResult] = {}
        for member in self.members:
            if self.judgement.interrupted or not self.verifier.in_time():
                break
            result = self._accept(single(member))
            if result is not None:
                made[member.key] = result
        return made

    def _evidence(self, member: Candidate, verdicts: dict[Key, RunResult]) -> tuple[float, float, float]:
        """The evidence for a member: comparisons without violation, margin to rejection, goodness of fit."""
        result = verdicts.get(member.key, self.alone.get(member.key))
        if result is None:
            return (0.0, 0.0, -member.residual)
        levels = [one.p_value for one in result.properties if one.p_value is not None]
        return (float(member.reward_agrees), min(levels, default=math.inf), -member.residual)

    def _set(self, candidate: Candidate, fate: Fate, why: str, kind: str = "", result: RunResult | None = None) -> None:
        record = self.records[candidate.key]
        record.fate, record.why, record.kind, record.result = fate, why, kind, result

    def _name(self, group: Recognised) -> str:
        return f"{self.verifier.label} {group.name}"

    def _describe(self, candidate: Candidate) -> tuple[str, str]:
        return describe_candidate(candidate, self.verifier.where)

    def _trial(self, record: _Record) -> Trial:
        candidate = record.candidate
        own = fields(self._name(single(candidate)), single(candidate), self.verifier.where)
        return Trial(
            *self._describe(candidate),
            candidate.order,
            record.fate,
            record.why,
            candidate.residual,
            record.result,
            own,
            record.kind,
            candidate.form,
            record.another,
        )


def _likelihood(candidate: Candidate) -> tuple[bool, bool, bool, int]:
    """Sort key: likely and simple maps first; among maps with different rewards, mirrors named by a model first."""
    agrees = candidate.reward_agrees
    return not agrees, not agrees and not candidate.label, candidate.missed > 0, candidate.cost


_RANK: dict[Fate, int] = {
    "proved": 0,
    "passed": 1,
    "follows": 2,
    "undecided": 3,
    "failed": 4,
    "rejected": 5,
    "untried": 6,
}
