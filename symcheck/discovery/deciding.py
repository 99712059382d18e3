"""Verification decides: every candidate worth it goes through `verify-env` on fresh samples; nothing else is claimed.

The maps under which an environment is symmetric form a group, which spares work both ways: a product of verified maps
needs no run of its own, and where h holds and g does not, neither does any product of h and g.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import gymnasium as gym

from symcheck.discovery.claims import Spaces, claim_of, describe_candidate, fields, single
from symcheck.discovery.elements import Key, Recognised, closure, recognise
from symcheck.discovery.maps import Candidate
from symcheck.discovery.result import Trial, why_of
from symcheck.engine.environments.runner import run_env
from symcheck.engine.events import Emit
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import RunResult
from symcheck.errors import RepresentationError, SymcheckError
from symcheck.symmetry.symmetry import Symmetry

MOST_VERIFIED = 24
_COUNTEREXAMPLE_SAMPLES = 500  # for candidates whose reward disagrees on most screening states
_MOST_REFUSED_REWARDS = 3  # candidates whose reward disagrees on the screening states: verified only to say where


@dataclass(frozen=True)
class Court:
    """What every verification needs.

    Attributes:
        make_env: builds the environment.
        label: its name.
        where: what entries are written for.
        samples: pairs a verification checks.
        level: alpha of one verification.
        seed: of the search; verifications draw from another one, so that their samples are fresh.
        seconds_left: seconds left of the budget, None for no limit.
        emit: receives events.
    """

    make_env: Callable[[], gym.Env[Any, Any]]
    label: str
    where: Spaces
    samples: int
    level: float
    seed: int
    seconds_left: Callable[[], float | None]
    emit: Emit

    def verify(self, name: str, group: Recognised, *, samples: int | None = None) -> RunResult:
        """One run of `verify-env`.

        Args:
            name: of the symmetry.
            group: with its generators.
            samples: pairs, where fewer than usual do.

        Raises:
            SymcheckError: the claim cannot be made or the environment refuses it.
        """
        return self.verify_claim(claim_of(name, group, self.where), samples=samples)

    def verify_claim(self, claim: Symmetry, *, samples: int | None = None) -> RunResult:
        """One run of `verify-env` on a claim.

        Raises:
            SymcheckError: the environment refuses it.
        """
        remaining = self.seconds_left()
        options = EnvOptions(
            samples=self.samples if samples is None else min(samples, self.samples),
            max_time=None if remaining is None else max(remaining, 0.05),  # an option of 0 s is refused
            alpha=self.level,
            seed=self.seed,
        )
        return run_env(self.make_env, claim, options=options, target=self.label, command="", emit=self.emit)

    def in_time(self) -> bool:
        """Whether another verification may begin."""
        remaining = self.seconds_left()
        return remaining is None or remaining > 0


@dataclass
class Judgement:
    """What verification decided.

    Attributes:
        trials: one per candidate.
        group: the verified group; None where nothing was accepted.
        verified: the run that verified exactly this group.
        complete: whether no candidate was left untried.
        interrupted: whether it was stopped.
    """

    trials: list[Trial] = field(default_factory=list)
    group: Recognised | None = None
    verified: RunResult | None = None
    complete: bool = True
    interrupted: bool = False


def decide(
    candidates: Sequence[Candidate], identity: Candidate, court: Court, *, interrupted: bool = False
) -> Judgement:
    """Verify candidates until each is accepted, refused or follows from others.

    Args:
        candidates: what the screen let pass, the identity not among them.
        identity: the identity on the same spaces.
        court: how to verify.
        interrupted: whether the search was stopped: then nothing is verified any more.

    Returns:
        The judgement. After Ctrl-C, what was decided until then.
    """
    bench = _Bench(identity, court)
    if interrupted:
        bench.judgement.interrupted = True
        bench.leave(candidates, "interrupted before it was verified")
        return bench.judgement
    if bench.hear_together(candidates):
        return bench.judgement
    # Likely and simple maps first: what follows from them is not verified again.
    ordered = sorted(candidates, key=lambda each: (not each.reward_agrees, each.residual > 1e-6, each.cost))
    for at, candidate in enumerate(ordered):
        if bench.judgement.interrupted:
            bench.leave(ordered[at:], "interrupted before it was verified")
            break
        bench.hear(candidate)
    bench.conclude()
    return bench.judgement


class _Bench:
    def __init__(self, identity: Candidate, court: Court) -> None:
        self.identity = identity
        self.court = court
        self.judgement = Judgement()
        self.accepted: list[Candidate] = []
        self.single_runs: dict[Key, RunResult] = {}
        self.known = closure([], identity)
        self.refused: list[Candidate] = []
        self.runs = 0
        self.wrong_rewards = 0

    def hear_together(self, candidates: Sequence[Candidate]) -> bool:
        """Where several candidates are a whole group by themselves, one run over its generators may accept them all."""
        if len(candidates) < 2 or not all(candidate.reward_agrees and candidate.order for candidate in candidates):
            return False
        known = {self.identity.key: self.identity, **{candidate.key: candidate for candidate in candidates}}
        # Not closed under products: some element is missing, so candidates are heard one by one.
        if any((a * b).key not in known for a in candidates for b in candidates):
            return False
        # Two elements with one state map would differ in the action map alone: one of them is wrong.
        if len(known) != len({candidate.state for candidate in known.values()}):
            return False
        group = recognise(known, self.identity)
        try:
            result = self.court.verify(self._name(group), group)
        except SymcheckError:
            return False
        if result.verdict not in ("passed", "proved"):
            self.judgement.interrupted = result.interrupted
            return False
        self.judgement.group, self.judgement.verified = group, result
        generating = {candidate.key for candidate in group.generators}
        for candidate in sorted(candidates, key=lambda each: (each.key not in generating, each.cost)):
            if candidate.key in generating:
                self._note(candidate, result.verdict, f"{why_of(result)}, together with the other generators", result)
            else:
                self._note(candidate, "follows", "a product of verified maps")
        return True

    def hear(self, candidate: Candidate) -> None:
        """Accept, refuse or set aside one candidate."""
        if candidate.key in self.known:
            self._note(candidate, "follows", "a product of verified maps")
        elif (other := self._refused_before(candidate)) is not None:
            self._note(
                candidate,
                "refused",
                f"with verified maps it would give one that is refused: {self._describe(other)[0]}",
            )
        elif not candidate.reward_agrees and self.wrong_rewards >= _MOST_REFUSED_REWARDS:
            self._note(candidate, "refused", f"rewards differ, by {candidate.reward_gap:.2g} at the median state")
        elif self.runs >= MOST_VERIFIED or not self.court.in_time():
            limit = "the time budget ran out" if self.runs < MOST_VERIFIED else f"{MOST_VERIFIED} were verified before"
            self.leave([candidate], limit)
        else:
            self._verify(candidate)

    def leave(self, candidates: Sequence[Candidate], why: str) -> None:
        """Candidates that are never verified."""
        for candidate in candidates:
            self._note(candidate, "untried", why)
            self.judgement.complete = False

    def _refused_before(self, candidate: Candidate) -> Candidate | None:
        """A refused map that is a product of this one with verified ones."""
        for other in self.refused:
            for element in self.known.values():
                if (element * candidate).key == other.key or (candidate * element).key == other.key:
                    return other
        return None

    def _verify(self, candidate: Candidate) -> None:
        self.runs += 1
        self.wrong_rewards += not candidate.reward_agrees  # a bool counts as 0 or 1
        group = single(candidate)
        try:
            few = None if candidate.reward_agrees else _COUNTEREXAMPLE_SAMPLES
            result = self.court.verify(self._name(group), group, samples=few)
        except RepresentationError as error:
            why = f"the states met do not settle what observations do: {error.problem}"
            self._note(candidate, "undecided", why)
            self.judgement.complete = False
            return
        except SymcheckError as error:
            self._refuse(candidate, error.problem)
            return
        except KeyboardInterrupt:
            self.judgement.interrupted = True
            self.leave([candidate], "interrupted")
            return
        self.judgement.interrupted = result.interrupted
        accepted = result.verdict in ("passed", "proved")
        if accepted and self._contradicts(candidate):
            why = "it passed, but with verified maps it would exchange actions where nothing else moves"
            self._note(candidate, "undecided", why, result)
            return
        if accepted:
            self.accepted.append(candidate)
            self.single_runs[candidate.key] = result
            self.known = closure(self.accepted, self.identity)
        elif result.verdict == "failed":
            self.refused.append(candidate)
        self._note(candidate, result.verdict, why_of(result), result)

    def _contradicts(self, candidate: Candidate) -> bool:
        """Whether products with verified maps move actions and nothing else: then some action map is wrong."""
        try:
            larger = closure([*self.accepted, candidate], self.identity)
        except SymcheckError:
            return True
        return any(element.state.is_identity and not element.action.is_identity for element in larger.values())

    def _refuse(self, candidate: Candidate, why: str) -> None:
        self.refused.append(candidate)
        self._note(candidate, "refused", why)

    def conclude(self) -> None:
        """Verify the whole group with the very fields that are written down."""
        trials = self.judgement.trials
        trials.sort(key=lambda trial: _RANK.get(trial.verdict, 9))
        if not self.accepted:
            return
        group = recognise(self.known, self.identity)
        runs = [self.single_runs.get(generator.key) for generator in group.generators]
        # A single run of the one generator is the run of the group: only its name differs.
        if len(group.generators) == 1 and runs[0] is not None:
            self.judgement.group, self.judgement.verified = group, replace(runs[0], symmetry=self._name(group))
            return
        try:
            result = self.court.verify(self._name(group), group)
        except (SymcheckError, KeyboardInterrupt) as error:
            self.judgement.interrupted |= isinstance(error, KeyboardInterrupt)
            result = None
        if result is not None and result.verdict in ("passed", "proved"):
            self.judgement.group, self.judgement.verified = group, result
            return
        self._fall_back(group, result)

    def _fall_back(self, group: Recognised, result: RunResult | None) -> None:
        """The whole group was not accepted: claim the first verified map alone."""
        first = self.accepted[0]
        why = why_of(result) if result is not None else "it could not be verified as a whole"
        trial = Trial(f"{group.name}, generated by the verified maps", "", group.order, "undecided", why, result=result)
        self.judgement.trials.append(trial)
        alone = single(first)
        self.judgement.group, self.judgement.verified = alone, self.single_runs[first.key]

    def _name(self, group: Recognised) -> str:
        return f"{self.court.label} {group.name}"

    def _describe(self, candidate: Candidate) -> tuple[str, str]:
        return describe_candidate(candidate, self.court.where)

    def _note(self, candidate: Candidate, verdict: Any, why: str, result: RunResult | None = None) -> None:
        own = fields(self._name(single(candidate)), single(candidate), self.court.where)
        self.judgement.trials.append(
            Trial(*self._describe(candidate), candidate.order, verdict, why, candidate.residual, result, own)
        )


_RANK = {"proved": 0, "passed": 1, "follows": 2, "undecided": 3, "failed": 4, "refused": 5, "untried": 6}
