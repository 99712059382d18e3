"""The search over numbered states without a table: tried or observed transitions form a table.

Candidates are the automorphisms of the possible transitions (with reward and termination); `verify-env` decides, as
always. Transition frequencies are not used for the proposal, because sampled frequencies are never equal.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from gymnasium import spaces

from symcheck.discovery.claims import describe_entries
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.result import Discovery, Form, Trial, is_accepted, why_of
from symcheck.discovery.tabular import fields_of
from symcheck.discovery.verifier import Verifier
from symcheck.engine.environments.cases.pool import Pool, roll_out
from symcheck.errors import SymcheckError, TargetError
from symcheck.symmetry.symmetry import Symmetry

MOST_STATES = 1000
_STEPS = 60_000  # maximum number of steps in total
_ROLLED = 20_000  # maximum number of these in episodes
_FEWEST, _MOST = 2, 200  # minimum and maximum number of repetitions of a step from a set state
_OFTEN, _MOST_RESETS = 8, 12_000  # an equally likely start state is then missed with probability e^-8
_SHARE = 0.5  # of the time budget; the rest is for verification
_FORM = "permutations of the numbered states"
_DISCOUNT = 0.99  # symmetries do not depend on it

Outcome = tuple[int, float, bool]


@dataclass
class Transitions:
    """The possible transitions.

    Attributes:
        outcomes: (state, action) to the observed outcomes: next state, reward, termination.
        starts: the number of episodes that began in each state.
        repeats: whether every pair always had the same outcome.
        whole: whether every action was tried in every visited state.
    """

    outcomes: dict[tuple[int, int], set[Outcome]] = field(default_factory=lambda: defaultdict(set))
    starts: Counter[int] = field(default_factory=Counter)
    repeats: bool = True
    whole: bool = False

    @property
    def explored_outcomes(self) -> dict[tuple[int, int], set[Outcome]]:
        """The outcomes without transitions into states in which every episode ended, so that no action was tried."""
        kept = dict(self.outcomes)
        while True:
            known = {state for state, _ in kept}
            left = {pair: {one for one in met if one[2] or one[0] in known} for pair, met in kept.items()}
            left = {pair: met for pair, met in left.items() if met}
            if left == kept:
                return kept
            kept = left


def is_numbered(observation: spaces.Space[Any], action: spaces.Space[Any]) -> bool:
    """Whether states and actions are numbered, and there are few enough to try them one by one.

    Example:
        >>> is_numbered(spaces.Discrete(9), spaces.Discrete(4)), is_numbered(spaces.Discrete(10**6), spaces.Discrete(4))
        (True, False)
    """
    few = isinstance(observation, spaces.Discrete) and int(observation.n) <= MOST_STATES
    return few and isinstance(action, spaces.Discrete)


def search_numbered(lab: Laboratory, verifier: Verifier) -> Discovery:
    """Propose the automorphisms of the observed transitions, and verify them as one group.

    Args:
        lab: an environment for which `is_numbered` is true.
        verifier: runs the verification.

    Returns:
        The group and its verdict. The search is complete if every pair of state and action always had the same outcome,
        every action was tried in every visited state, and at least eight episodes began in every observed start state.
    """
    met = collect(lab)
    states = {s for s, _ in met.outcomes}
    complete = met.repeats and met.whole and min(met.starts.values(), default=0) >= _OFTEN
    counted = f"visited states, {len(met.outcomes):,} pairs of state and action tried"
    result = Discovery(
        target=lab.label,
        route="rollouts" if lab.kind == "black box" else "states",
        how=lab.why,
        narrowing=((f"{len(states):,}", counted),),
        tried=1,
        alpha=verifier.alpha,
        level=verifier.alpha,
        seed=verifier.seed,
        complete=complete,
        forms=(Form(_FORM, 1, 0 if complete else None),),
        remarks=() if complete else (_why_open(met),),
    )
    claim = _propose(lab, met)
    return result if claim is None else _with_claim(result, claim, verifier)


def _why_open(met: Transitions) -> str:
    if not met.whole:
        return "some actions were never taken in some states and count as unavailable there"
    if met.repeats:
        return "too few episodes began in some states, so not all start states may be known"
    return "steps are random: outcomes too rare to be observed may hide a symmetry or break one"


def collect(lab: Laboratory) -> Transitions:
    """Try every action in every state if states can be set; otherwise step episodes.

    Raises:
        TargetError: an observation is not a number of the space.
    """
    met = Transitions()
    held: dict[int, Any] = {}
    pool = Pool()
    pool.visits += lab.pool.visits
    if lab.placement.kind is None:
        roll_out(lab.stepper, lab.placement, _ROLLED, pool, lambda: lab.in_time(_SHARE))
    for visit in pool.visits:
        at = _number(lab, visit.situation.obs)
        if visit.situation.origin == "start":
            met.starts[at] += 1
        if visit.situation.state is not None:
            held.setdefault(at, visit.situation.state)
        _note(lab, met, at, int(visit.action), visit.step)
    if lab.placement.kind is not None:
        _try_all(lab, met, held)
    _begin_often(lab, met)
    actions = int(lab.action_space.n)  # type: ignore[attr-defined]
    met.whole = (
        len(met.outcomes) == actions * len({s for s, _ in met.outcomes}) and met.explored_outcomes == met.outcomes
    )
    met.repeats = lab.kind == "deterministic" and all(len(each) == 1 for each in met.outcomes.values())
    if lab.kind == "black box":
        met.repeats = all(len(each) == 1 for each in met.outcomes.values())
    return met


def _begin_often(lab: Laboratory, met: Transitions) -> None:
    """Reset until every observed start state occurred often, so that few start states can remain unobserved."""
    for _ in range(_MOST_RESETS):
        if min(met.starts.values(), default=0) >= _OFTEN or not lab.in_time(_SHARE):
            break
        met.starts[_number(lab, lab.stepper.reset())] += 1


def _number(lab: Laboratory, obs: Any) -> int:
    space = lab.observation_space
    number = int(np.asarray(obs).reshape(-1)[0]) - int(space.start)  # type: ignore[attr-defined]
    if not 0 <= number < int(space.n):  # type: ignore[attr-defined]
        raise TargetError(f"expected observations in {space}, got {obs}.", where=lab.label)
    return number


def _note(lab: Laboratory, met: Transitions, at: int, action: int, step: Any) -> int:
    following = _number(lab, step.obs)
    start = int(lab.action_space.start)  # type: ignore[attr-defined]
    met.outcomes[at, action - start].add((following, float(step.reward), bool(step.terminated)))
    return following


def _try_all(lab: Laboratory, met: Transitions, held: dict[int, Any]) -> None:
    """Try every action in every visited state, breadth first; repeat random steps."""
    space = lab.action_space
    actions = [np.int64(a + int(space.start)) for a in range(int(space.n))]  # type: ignore[attr-defined]
    pairs = int(lab.observation_space.n) * len(actions)  # type: ignore[attr-defined]
    times = 1 if lab.kind == "deterministic" else int(np.clip(_STEPS // pairs, _FEWEST, _MOST))
    waiting, done = list(held), set()
    while waiting:
        at = waiting.pop(0)
        if at in done or not lab.in_time(_SHARE):
            continue
        done.add(at)
        for action in actions:
            for _ in range(times):
                step = lab.stepper.outcome(held[at], action)
                following = _note(lab, met, at, int(action), step)
                # A step limit that setting a state does not restart truncates every step, and ends nothing here.
                if following not in held and not step.terminated:
                    held[following] = lab.stepper.read_raw()
                    waiting.append(following)


def _propose(lab: Laboratory, met: Transitions) -> Symmetry | None:
    """The automorphisms of the possible transitions, as a claim; None if there is only the identity."""
    from symcheck.mdp.tabular import TabularMDP  # loads scipy

    n, actions = int(lab.observation_space.n), int(lab.action_space.n)  # type: ignore[attr-defined]
    rows = [(s, a, r, t, e) for (s, a), outcomes in met.explored_outcomes.items() for t, r, e in sorted(outcomes)]
    if not rows:
        return None
    s, a, r, t, e = zip(*rows, strict=True)
    initial = np.zeros(n)
    initial[list(met.starts)] = 1 / max(1, len(met.starts))
    mdp = TabularMDP.from_samples(
        s, a, r, t, e, discount=_DISCOUNT, n_states=n, n_actions=actions, initial=initial, unseen="unavailable"
    )
    found = mdp.automorphism_group(preserve_initial=True)
    if found.order == 1:
        return None
    try:
        return found.symmetry(f"{lab.label} {found.name}")
    except SymcheckError:  # the maps do not extend to final states
        return None


def _with_claim(result: Discovery, claim: Symmetry, verifier: Verifier) -> Discovery:
    moves, actions = describe_entries(claim)
    try:
        run = verifier.accept_claim(claim)
    except SymcheckError as error:
        trial = Trial(moves, actions, claim.group.order, "rejected", error.problem, form=_FORM)
        return _join(result, trial, is_open=True)
    trial = Trial(moves, actions, claim.group.order, run.verdict, why_of(run), result=run, form=_FORM)
    if not is_accepted(run):
        # A smaller group may hold, because the proposal ignored transition frequencies.
        return _join(result, trial, is_open=True)
    made = fields_of(claim)
    group = {"name": claim.group.name, "order": claim.group.order}
    remarks = (
        result.remarks
        if made
        else (*result.remarks, "the action map depends on the state, which a SPEC file cannot express")
    )
    joined = _join(result, trial, is_open=False)
    return replace(joined, group=group, claim=claim, fields=made, verified=run, remarks=remarks)


def _join(result: Discovery, trial: Trial, *, is_open: bool) -> Discovery:
    (form,) = result.forms
    forms = (Form(form.name, form.decided, None if is_open else form.open),)
    return replace(result, trials=(trial,), forms=forms, complete=result.complete and not is_open)
