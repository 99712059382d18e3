"""`discover`: the complete search over one environment, by the route that the environment allows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gymnasium import spaces

from symcheck.discovery import by_states
from symcheck.discovery.actions import refuse_large
from symcheck.discovery.blocks import blocks_of
from symcheck.discovery.by_states import Proposals, identity_on, number
from symcheck.discovery.claims import Spaces, claim_of, fields, is_data
from symcheck.discovery.deciding import Judgement, decide
from symcheck.discovery.elements import Recognised
from symcheck.discovery.families import Family, with_finite_part
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.numbered import MOST_STATES, is_numbered, search_numbered
from symcheck.discovery.options import DiscoverOptions
from symcheck.discovery.result import Discovery, Form, Rotation, Route, Trial, is_accepted
from symcheck.discovery.rotations import Generator, find_generators
from symcheck.discovery.turning import verify_rotation, verify_spatial
from symcheck.discovery.verifier import Verifier
from symcheck.engine.events import Emit, ignore
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import RunResult
from symcheck.envs.tables import table_of
from symcheck.envs.targets import EnvTarget
from symcheck.errors import SymcheckError, TargetError

_NO_DATA = (
    "the action map permutes values within a component, which a SPEC file cannot express; in Python, "
    "discover(...).symmetry has it as a callable"
)


def discover(target: EnvTarget, *, options: DiscoverOptions, command: str = "", emit: Emit | None = None) -> Discovery:
    """Search an environment for symmetries, and claim those that verification accepts.

    Args:
        target: the environment.
        options: budgets and the seed.
        command: the command line that repeats the search, or "".
        emit: receives events.

    Returns:
        The verified group, every candidate with its verdict, and how the search narrowed. After Ctrl-C, the results so
        far, with `interrupted=True`.

    Raises:
        TargetError: the environment cannot be stepped, or its action space is too large to search.

    Example:
        >>> import symcheck_properties
        >>> from symcheck.envs.targets import resolve_environment
        >>> found = discover(resolve_environment("CartPole-v1"), options=DiscoverOptions(samples=500))
        >>> found.group["name"], found.fields["observation"], found.fields["action"]
        ('C2', [[-1, -1, -1, -1]], [[1, 0]])

    Source: derived in docs/discover.md.
    """
    started = time.monotonic()
    with warnings.catch_warnings():
        # states set by the search may leave the observation space
        warnings.filterwarnings("ignore", module=r"gymnasium(\..*)?")
        result = _search(target, options, emit or ignore)
    return _with_duration(result, time.monotonic() - started, command)


def _search(target: EnvTarget, options: DiscoverOptions, emit: Emit) -> Discovery:
    env = target.single()
    if table_of(env) is not None:
        return _by_table(target, options, emit)
    refuse_large(env.action_space)
    refuse_numbered(env.observation_space, env.action_space)
    blocks_of(env.observation_space)  # rejects observations that are not numeric
    lab = Laboratory(lambda: env, target.label, options, emit)
    if is_numbered(env.observation_space, env.action_space):
        return search_numbered(lab, _build_verifier(target, lab, options, emit, tried=1))
    by_rollouts = lab.kind == "black box"
    proposals = _propose_by_rollouts(lab) if by_rollouts else by_states.propose(lab)
    leave_values_open(lab.observation_space, lab.stepper.codec.coordinates.names, proposals)
    try:
        generators = [] if by_rollouts or proposals.interrupted else find_generators(lab)
    except KeyboardInterrupt:
        generators, proposals.interrupted = [], True
    tried = proposals.tried + len(generators)
    verifier = _build_verifier(target, lab, options, emit, tried=tried, least=proposals.least_samples)
    sampled = [form for form, listed in proposals.forms.items() if not listed]
    judged = decide(
        proposals.candidates, identity_on(lab), verifier, interrupted=proposals.interrupted, sampled=sampled
    )
    result = _discovery(target, lab, options, proposals, judged, verifier, "rollouts" if by_rollouts else "states")
    rotations, families = _rotations(lab, verifier, generators, interrupted=judged.interrupted)
    result = replace(result, tried=tried, rotations=rotations)
    return _with_family(result, families[0], judged.group, verifier) if families else result


def leave_values_open(space: spaces.Space[Any], names: Sequence[str], proposals: Proposals) -> None:
    """Record that the values of numbered parts, such as one of four goals, may be permuted in ways not searched.

    Args:
        space: the observation space.
        names: the names of the components of a flattened observation.
        proposals: receives the form of maps that is left open.

    Example:
        >>> proposals = Proposals()
        >>> leave_values_open(spaces.Dict(goal=spaces.Discrete(4), on=spaces.Discrete(2)), ["goal", "on"], proposals)
        >>> list(proposals.forms)
        ['permutations of the values of goal, except their reversal']
    """
    for block in blocks_of(space):
        if isinstance(block.space, spaces.Discrete) and block.space.n > 2:
            proposals.forms[f"permutations of the values of {names[block.first]}, except their reversal"] = False
            proposals.complete = False


def _propose_by_rollouts(lab: Laboratory) -> Proposals:
    from symcheck.discovery import black_box  # loads scipy

    return black_box.propose(lab)


def _build_verifier(
    target: EnvTarget, lab: Laboratory, options: DiscoverOptions, emit: Emit, *, tried: int, least: int = 0
) -> Verifier:
    numbered = is_numbered(lab.observation_space, lab.action_space)
    has_state = not (lab.kind == "black box" or lab.shows_state or numbered)
    return Verifier(
        target.single,
        target.label,
        Spaces(lab.observation_space, lab.action_space, has_state=has_state),
        options.accepting_samples,
        options.screening_samples,
        options.alpha,
        # Screening runs share alpha; the accepting run uses all of it.
        options.alpha / max(1, tried),
        options.seed,
        lab.seconds_left,
        emit,
        least,
    )


def _with_family(
    result: Discovery, first: tuple[Family, RunResult], group: Recognised | None, verifier: Verifier
) -> Discovery:
    """The result with a family of rotations as its claim, combined with the compatible part of the finite group."""
    family, verified = first
    for larger in with_finite_part(family, group, verifier.where):
        if not verifier.in_time():
            break
        try:
            run = verifier.accept_claim(larger.claim)
        except SymcheckError:  # no larger group; claim the family alone
            continue
        if is_accepted(run):
            family, verified = larger, run
            break
    found = {"name": family.claim.group.name, "order": family.claim.group.order}
    return replace(result, group=found, claim=family.claim, fields=family.fields, verified=verified)


def _rotations(
    lab: Laboratory, verifier: Verifier, generators: list[Generator], *, interrupted: bool
) -> tuple[tuple[Rotation, ...], list[tuple[Family, RunResult]]]:
    """Each continuous rotation with its verdict, and the claims that hold for every angle; empty if time is up."""
    made: list[Rotation] = []
    families: list[tuple[Family, RunResult]] = []
    try:
        spatial = None if interrupted or not verifier.in_time() else verify_spatial(lab, verifier, generators)
    except KeyboardInterrupt:
        return (), []
    if spatial is not None:
        return spatial[0], [spatial[1]]
    for generator in generators:
        if interrupted or not verifier.in_time():
            break
        try:
            rotation, family = verify_rotation(lab, verifier, generator)
            made.append(rotation)
            if family is not None and rotation.result is not None:
                families.append((family, rotation.result))
        except KeyboardInterrupt:
            break
    return tuple(made), families


def refuse_numbered(observation: spaces.Space[Any], action: spaces.Space[Any]) -> None:
    """Reject numbered states without a table if there are too many to try one by one.

    Raises:
        TargetError: the space is too large; the message names a workaround.

    Example:
        >>> refuse_numbered(spaces.Discrete(10**6), spaces.Discrete(2))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        symcheck.errors.TargetError: observation space: the search supports at most 1,000 numbered states ...
    """
    if isinstance(observation, spaces.Discrete) and not is_numbered(observation, action):
        raise TargetError(
            f"the search supports at most {MOST_STATES:,} numbered states and Discrete actions, got "
            f"{observation} and {action}. Numbered states have no coordinates to negate or exchange, and "
            "this environment has no table of its transitions.",
            where="observation space",
            remedy="To search all permutations, give the environment its table as the attribute P, like Gymnasium's "
            "toy-text environments (P[s][a]: a list of (probability, next state, reward, terminated)). If "
            "you know the permutation, write it down and check it with verify-env.",
        )


def _by_table(target: EnvTarget, options: DiscoverOptions, emit: Emit) -> Discovery:
    from symcheck.discovery.tabular import search_table  # loads scipy

    run = EnvOptions(max_time=options.max_time, alpha=options.alpha, seed=options.seed)
    findings = search_table(target.single, target.label, run, emit)
    group = findings.claim.group if findings.claim is not None else None
    return Discovery(
        target=target.label,
        route="table",
        how=findings.summary,
        narrowing=((f"{findings.states:,}", f"states and {findings.actions} actions in a table, all enumerated"),),
        tried=len(findings.trials),
        alpha=options.alpha,
        level=options.alpha,
        seed=options.seed,
        trials=tuple(findings.trials),
        group={"name": group.name if group else "C1", "order": group.order if group else 1},
        claim=findings.claim,
        fields=findings.fields,
        verified=findings.verified,
        remarks=tuple(findings.remarks),
        orbits=findings.orbits,
    )


def _discovery(
    target: EnvTarget,
    lab: Laboratory,
    options: DiscoverOptions,
    proposals: Proposals,
    judged: Judgement,
    verifier: Verifier,
    route: Route,
) -> Discovery:
    group = judged.group
    name = f"{target.label} {group.name}" if group else ""
    written = fields(name, group, verifier.where) if group else {}
    return Discovery(
        target=target.label,
        route=route,
        how=lab.why,
        narrowing=(
            *([proposals.space] if proposals.space[0] else []),
            (number(proposals.structured), "compatible with the structure of the dynamics"),
            (number(len(proposals.candidates)), f"compatible with {proposals.compared} (of {proposals.tried} tried)"),
        ),
        tried=proposals.tried,
        alpha=options.alpha,
        level=verifier.level,
        seed=options.seed,
        trials=(*judged.trials, *proposals.refused),
        group={"name": group.name if group else "C1", "order": group.order if group else 1},
        claim=claim_of(name, group, verifier.where) if group else None,
        fields=written if is_data(written) else {},
        verified=judged.verified,
        remarks=(*proposals.remarks, *([] if is_data(written) else [_NO_DATA])),
        sensitivities=proposals.sensitivities,
        complete=proposals.complete and judged.complete and not any(each.is_open for each in proposals.refused),
        forms=_forms(proposals, (*judged.trials, *proposals.refused)),
        interrupted=judged.interrupted,
    )


def _forms(proposals: Proposals, trials: Sequence[Trial]) -> tuple[Form, ...]:
    """The searched part of every form of maps."""
    names = dict.fromkeys([*proposals.forms, *(trial.form for trial in trials if trial.form)])
    made = []
    for name in names:
        own = [trial for trial in trials if trial.form == name]
        unsettled = sum(trial.is_open for trial in own)
        listed = proposals.forms.get(name, True)
        made.append(Form(name, len(own) - unsettled, unsettled if listed else None))
    return tuple(made)


def _with_duration(found: Discovery, seconds: float, command: str) -> Discovery:
    return replace(found, duration_s=seconds, command=command)
