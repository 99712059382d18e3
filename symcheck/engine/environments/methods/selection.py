"""Method selection: the strongest method that applies to an environment, and why.

exact needs a finite MDP with known probabilities; paired needs states that can be set and dynamics that repeat;
distribution needs states that can be set; trajectory needs nothing. A method requested by name that does not apply is
an error; no other method replaces it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import gymnasium as gym
import numpy as np

from symcheck.engine.budget import Budget
from symcheck.engine.clock import Clock, TimeUp
from symcheck.engine.environments.cases.own_cuts import own_cuts
from symcheck.engine.environments.cases.pairs import Pairs
from symcheck.engine.environments.cases.pool import Pool, gather
from symcheck.engine.environments.cases.workbench import Evidence, Workbench
from symcheck.engine.environments.controls.determinism import DeterminismCheck, check_determinism
from symcheck.engine.environments.controls.set_vs_reached import compare_in_distribution
from symcheck.engine.environments.controls.slot_isolation import find_slot_leak
from symcheck.engine.environments.methods.distribution import DistributionEvidence
from symcheck.engine.environments.methods.exact import TabularEvidence, contradiction, table_of
from symcheck.engine.environments.methods.first_violation import FirstViolation
from symcheck.engine.environments.methods.pair_sample import BY_HAND
from symcheck.engine.environments.methods.paired import PairedEvidence
from symcheck.engine.environments.methods.replay_access import replay_episodes
from symcheck.engine.environments.methods.screen import applicable
from symcheck.engine.environments.methods.start import StartEvidence
from symcheck.engine.environments.methods.trajectory import TrajectoryEvidence
from symcheck.engine.environments.methods.whole_episodes import WholeEpisodes
from symcheck.engine.environments.subject.placement import Placement
from symcheck.engine.equations import BY_PART, STEP_PARTS, Part
from symcheck.engine.events import Emit
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import PropertyResult
from symcheck.envs.models.model import BatchModel
from symcheck.envs.models.recognise import find_model
from symcheck.envs.replayed import LONGEST
from symcheck.envs.seeding import reset_seed
from symcheck.envs.state_access.access import find_state_access
from symcheck.envs.state_access.record import Origin
from symcheck.envs.stepping.same_seed import first_difference
from symcheck.envs.stepping.shown import shown_values
from symcheck.envs.stepping.slots import SlotStepper
from symcheck.envs.stepping.stepper import Stepper
from symcheck.envs.targets import AnyEnv
from symcheck.errors import OptionError
from symcheck.spaces.labels import label_columns
from symcheck.statements.statement import Statement, state
from symcheck.symmetry.symmetry import Symmetry
from symcheck.verdict import Facts, ReasonCode, decide

# maximum number of coordinates of all samples: about 0.5 GB with both sides, images and tolerances
_MOST_NUMBERS = 6_000_000
_REDUCED = 8  # for wide observations, black boxes store less than an eighth
_GATHERING = 0.3  # of the time budget
_FOR_SEEDS = 0.1  # fraction of the time budget after which episodes of the same seed are not compared


@dataclass(frozen=True)
class Chosen:
    """The method that tests an environment.

    Attributes:
        bench: the data shared by the methods.
        evidence: the evidence of the chosen method.
        reason: why it was chosen.
        start: evidence about the start distribution, if the method does not test it itself.
        remarks: a note about a part, for any verdict on it.
    """

    bench: Workbench
    evidence: Evidence
    reason: Statement
    start: StartEvidence
    remarks: Mapping[Part, Statement] = field(default_factory=dict)


@dataclass(frozen=True)
class NoEvidence:
    """No statement is possible; every equation is undecided for the same reason."""

    why: Statement
    method: str = "none"

    def judge(self, name: str, part: Part) -> PropertyResult:
        """Undecided, with the reason."""
        facts = Facts(checked=0, prevented=self.why)
        verdict, reason = decide(facts)
        return PropertyResult(name, verdict, self.method, checked=0, reason=reason, facts=facts)


def prepare(
    make_env: Callable[[], AnyEnv],
    symmetry: Symmetry,
    options: EnvOptions,
    label: str,
    emit: Emit,
    clock: Clock,
) -> Workbench:
    """Build the environment, bind the symmetry and determine how states are set, with almost no steps.

    Args:
        make_env: builds the environment.
        symmetry: the claim.
        options: the run's options.
        label: names the environment in messages.
        emit: receives progress.
        clock: the time of the run.

    Returns:
        The workbench, with an empty pool.

    Raises:
        SpecError: the symmetry does not fit the spaces.
        TargetError: the environment cannot be used.
    """
    env = make_env()
    access = find_state_access(env.unwrapped)
    stepper: Stepper
    if isinstance(env, gym.vector.VectorEnv):
        bound = symmetry.bind(env.single_observation_space, env.single_action_space)
        env.single_action_space.seed(options.seed)
        env.action_space.seed(options.seed)
        batched = access if access is not None and (access.batched or access.origin == Origin.OWN_METHODS) else None
        stepper = SlotStepper(env, batched, label, seed=reset_seed(options.seed))
    else:
        bound = symmetry.bind(env.observation_space, env.action_space)
        # The space draws every action of the run, so its seed determines them.
        env.action_space.seed(options.seed)
        stepper = Stepper(env, access, label, seed=reset_seed(options.seed))
    if clock.is_limited:
        stepper.check_time = clock.check
    bound = bound.at_tested_elements(options.seed, partial(shown_values, stepper))
    stepper.codec.coordinates = label_columns(stepper.codec.coordinates, bound.column_labels("observation"))
    stepper.action_codec.coordinates = label_columns(stepper.action_codec.coordinates, bound.column_labels("action"))
    placement = Placement(stepper, bound)
    pairs = Pairs(stepper, placement, bound)
    bench = Workbench(pairs, Pool(), options, emit, clock, bound.tested_words, Budget(options.alpha))
    if (model := _find_model(bench)) is not None:
        return replace(bench, model=model)
    # Every pair is stored. Black boxes store only reduced observations.
    held = stepper.codec.coordinates.dim // (_REDUCED if placement.kind is None else 1)
    fitting = max(1, _MOST_NUMBERS // max(1, held))
    return replace(bench, options=replace(options, samples=min(options.samples, fitting)))


def _find_model(bench: Workbench) -> BatchModel | None:
    """The environment's batched form, if it has one and the symmetry acts on arrays."""
    access = bench.pairs.stepper.access
    if access is None or access.origin != Origin.BUILT_IN or bench.options.method not in ("auto", "paired"):
        return None
    return find_model(bench.pairs.stepper.env) if applicable(bench) else None


def choose_method(bench: Workbench) -> Chosen:
    """Gather states, run the determinism check, and select the method.

    Args:
        bench: prepared; its pool is filled here.

    Returns:
        The chosen method, ready to test.

    Raises:
        OptionError: the requested method does not apply to this environment.
        TargetError: the environment cannot be used.
    """
    rng = np.random.default_rng([bench.options.seed, 1])
    return _select(replace(bench, pool=_gather_states(bench, rng)), rng)


def _gather_states(bench: Workbench, rng: np.random.Generator) -> Pool:
    """The states to test."""
    return gather(
        bench.pairs.stepper,
        bench.pairs.placement,
        bench.options.samples if bench.model is None else min(bench.options.samples, BY_HAND),
        rng,
        lambda: bench.in_time(_GATHERING),
    )


def _select(bench: Workbench, rng: np.random.Generator) -> Chosen:
    method = bench.options.method
    start = StartEvidence(bench.comparing())
    if isinstance(bench.pairs.stepper, SlotStepper):
        leak = find_slot_leak(bench.pairs.stepper, bench.pool, rng)
        if leak is not None:
            return Chosen(bench, NoEvidence(leak), leak, start)
    # Enumeration first: it proves, and nothing has to be stepped for it.
    if method in ("auto", "exact") and (enumerated := _enumerate(bench, start)) is not None:
        return enumerated
    if bench.pairs.placement.kind is None or method == "trajectory":
        return _without_setting(bench, rng, start)
    return _with_setting(bench, rng, start)


def _enumerate(bench: Workbench, start: StartEvidence) -> Chosen | None:
    """The exact method, if the environment has a correct table.

    Raises:
        OptionError: the exact method was requested and does not apply.
    """
    stepper = bench.pairs.stepper
    table = table_of(stepper.env)
    # A class that overrides `step` may inherit a table of another MDP.
    untrue = "" if table is None else contradiction(table, bench.pool.visits)
    if table is not None and not untrue:
        distribution = getattr(stepper.base, "initial_state_distrib", None)
        reason = state("method_exact", states=len(table))
        return Chosen(bench, TabularEvidence(bench, table, distribution), reason, start)
    if bench.options.method == "auto":
        return None
    raise OptionError(
        "the exact method needs a finite MDP with known probabilities, which this environment does not provide"
        f"{f': {untrue}' if untrue else ''}.",
        where="--method",
        remedy="Use --method auto.",
    )


def _with_setting(bench: Workbench, rng: np.random.Generator, start: StartEvidence) -> Chosen:
    """Methods that set states: pairs if steps repeat, distributions if they are random."""
    stepper, method = bench.pairs.stepper, bench.options.method
    before = stepper.reset_first
    check = check_determinism(stepper, bench.pool, rng)
    stepper.reset_first = check.reset_first
    if check.behaviour == "deterministic" and check.reset_first and not before:
        bench = replace(bench, pool=_gather_states(bench, rng))  # states set without a reset may have been ineffective
    bench.pairs.own_cuts = own_cuts(stepper, bench.pool, stepper.time_limit, bench.rng("cuts"))
    if check.behaviour == "leaky":
        return Chosen(bench, NoEvidence(check.finding), check.finding, start)
    if method == "distribution" or (method == "auto" and check.behaviour == "stochastic"):
        if check.behaviour == "stochastic" and check.caution is None:
            check = replace(check, caution=compare_in_distribution(bench, rng))
        return _choose_distribution(bench, check, start)
    return _choose_paired(bench, check, start)


def _without_setting(bench: Workbench, rng: np.random.Generator, start: StartEvidence) -> Chosen:
    """Methods without setting: whole episodes, or replayed pairs for a deterministic black box with common starts."""
    missing = bench.pairs.placement.why_not
    if bench.options.method not in ("auto", "paired") or isinstance(bench.pairs.stepper, SlotStepper):
        return _choose_trajectory(bench, start, missing)
    again = replay_episodes(bench)
    if isinstance(again, Statement):
        missing = None if missing is None else replace(missing, fields={**missing.fields, "replay": again})
        return _choose_trajectory(bench, start, missing)
    check = check_determinism(again.pairs.stepper, again.pool, rng)
    if check.behaviour != "deterministic" or check.reset_first:
        return _choose_trajectory(bench, start, missing)
    again.pairs.own_cuts = own_cuts(again.pairs.stepper, again.pool, LONGEST, bench.rng("cuts"))
    access = again.pairs.placement.access.source
    reason = state("method_replayed", missing=missing, access=access, control=check.finding)
    return Chosen(again, PairedEvidence(again, enough=_stop_early(again)), reason, start)


def _stop_early(bench: Workbench) -> FirstViolation | None:
    """The condition under which stepping of pairs stops early."""
    return FirstViolation(bench, STEP_PARTS) if bench.options.fail_fast else None


def _choose_paired(bench: Workbench, check: DeterminismCheck, start: StartEvidence) -> Chosen:
    if check.behaviour == "stochastic":
        why = state(ReasonCode.OUTCOMES_RANDOM.value, control=check.finding)
        return Chosen(bench, NoEvidence(why, "paired"), why, start)
    bench = replace(bench, caution=check.caution, noise=check.noise, loss=check.loss, touched=check.touched)

    def compare_distributions(repeating: frozenset[Part]) -> Evidence:
        """Evidence by distributions, for pairs that turn out not to repeat; each one resets the episode's memory."""
        bench.pairs.stepper.reset_first = True
        return DistributionEvidence(bench.comparing(), repeating)

    going_on = compare_distributions if bench.options.method == "auto" and not bench.options.fail_fast else None
    evidence = PairedEvidence(bench, model=bench.model, enough=_stop_early(bench), compare_distributions=going_on)
    if bench.options.method == "auto" and (swamped := evidence.swamped(STEP_PARTS)):
        # Outcomes decided by rounding are treated as random; the rest is still compared pair by pair.
        compared = DistributionEvidence(bench.comparing(), frozenset(STEP_PARTS) - set(swamped))
        reason = _say_method("method_distribution_swamped", bench, check, share=max(swamped.values()))
        return Chosen(bench, compared, reason, start)
    return _with_episodes(evidence, _say_method("method_paired", bench, check), start)


def _choose_distribution(bench: Workbench, check: DeterminismCheck, start: StartEvidence) -> Chosen:
    everything: frozenset[Part] = frozenset(STEP_PARTS)
    repeating = check.repeating if check.behaviour == "stochastic" else everything - {"transition"}
    bench = replace(bench, caution=check.caution).comparing()
    evidence = DistributionEvidence(bench, repeating, check.mostly)
    return _with_episodes(evidence, _say_method("method_distribution", bench, check), start)


def _with_episodes(evidence: PairedEvidence | DistributionEvidence, reason: Statement, start: StartEvidence) -> Chosen:
    """The method, with whole episodes if set states may not determine all outcomes."""
    bench = evidence.bench
    if bench.caution is None and bench.pairs.own_cuts is None:
        return Chosen(bench, evidence, reason, start)
    return Chosen(bench, WholeEpisodes(evidence, start), reason, start)


def _say_method(code: str, bench: Workbench, check: DeterminismCheck, **more: object) -> Statement:
    access = bench.pairs.placement.access
    return state(code, access=access.source, inexact=list(access.inexact), control=check.finding, **more)


def _choose_trajectory(bench: Workbench, start: StartEvidence, missing: Statement | None) -> Chosen:
    method = bench.options.method
    if method in ("paired", "distribution"):
        raise OptionError(
            f"--method {method} must set the state of the environment, but {missing}.",
            where="--method",
            remedy="Register state access with symcheck.register_state_access, or use --method trajectory.",
        )
    reason = state("method_trajectory", **({} if method == "trajectory" else {"missing": missing}))
    return Chosen(bench, TrajectoryEvidence(bench, start), reason, start, _remark_on_seeds(bench))


def _remark_on_seeds(bench: Workbench) -> dict[Part, Statement]:
    """The difference between episodes of the same seed, if the seed determines their starts."""
    if isinstance(bench.pairs.stepper, SlotStepper) or not bench.in_time(_FOR_SEEDS):
        return {}
    try:
        differing = first_difference(bench.pairs.stepper, bench.rng("episodes of one seed"))
    except TimeUp:
        return {}
    if differing is None:
        return {}
    part, number = differing
    return {part: state("same_seed_differs", noun=BY_PART[part].noun, number=number)}
