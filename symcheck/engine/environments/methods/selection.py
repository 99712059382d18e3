"""Which method tests an environment: the strongest that applies, with the reason in words.

exact needs a finite MDP with known probabilities; paired needs states that can be set and dynamics that repeat;
distribution needs states that can be set; trajectory needs nothing. A method asked for by name that does not apply is
refused, not replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import gymnasium as gym
import numpy as np

from symcheck.engine.budget import Budget
from symcheck.engine.clock import Clock
from symcheck.engine.environments.cases.pairs import Pairs, Part
from symcheck.engine.environments.cases.pool import Pool, gather
from symcheck.engine.environments.cases.workbench import EQUATIONS, Evidence, Workbench
from symcheck.engine.environments.controls.determinism import Control, identity_control
from symcheck.engine.environments.controls.set_vs_reached import reaching_in_law
from symcheck.engine.environments.controls.slot_isolation import leakage
from symcheck.engine.environments.methods.distribution import DistributionEvidence
from symcheck.engine.environments.methods.exact import TabularEvidence, contradiction, table_of
from symcheck.engine.environments.methods.first_violation import FirstViolation
from symcheck.engine.environments.methods.paired import BY_HAND, PairedEvidence
from symcheck.engine.environments.methods.replay_access import replayed
from symcheck.engine.environments.methods.screen import applicable
from symcheck.engine.environments.methods.start import StartEvidence
from symcheck.engine.environments.methods.trajectory import TrajectoryEvidence
from symcheck.engine.environments.subject.labels import labelled
from symcheck.engine.environments.subject.placement import Placement
from symcheck.engine.environments.subject.slots import SlotStepper
from symcheck.engine.environments.subject.stepper import Stepper
from symcheck.engine.events import Emit
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import PropertyResult
from symcheck.envs.models.model import BatchModel
from symcheck.envs.models.recognise import find_model
from symcheck.envs.seeding import reset_seed
from symcheck.envs.state_access.access import OWN_METHODS, find_state_access
from symcheck.envs.targets import AnyEnv
from symcheck.errors import OptionError
from symcheck.symmetry.symmetry import Symmetry

_MOST_NUMBERS = 6_000_000  # coordinates of all samples together: about 0.5 GB with both sides, images and tolerances
_REDUCED = 8  # black boxes keep of wide observations less than an eighth
_GATHERING = 0.3  # of the time budget


@dataclass(frozen=True)
class Chosen:
    """The method that tests an environment.

    Attributes:
        bench: what the methods share.
        evidence: of the chosen method.
        reason: why it was chosen.
        start: about the start distribution, where the method has no judgement of its own.
    """

    bench: Workbench
    evidence: Evidence
    reason: str
    start: StartEvidence


@dataclass(frozen=True)
class NoEvidence:
    """Nothing can be said; every equation is undecided for the same reason."""

    why: str
    method: str = "none"

    def judge(self, name: str, part: Part) -> PropertyResult:
        """Undecided, with the reason."""
        return PropertyResult(name, "undecided", self.method, checked=0, notes=(self.why,))


def choose(
    make_env: Callable[[], AnyEnv],
    symmetry: Symmetry,
    options: EnvOptions,
    label: str,
    emit: Emit,
    clock: Clock,
) -> Chosen:
    """Set everything up and choose: `prepare`, then `choose_method`."""
    return choose_method(prepare(make_env, symmetry, options, label, emit, clock))


def prepare(
    make_env: Callable[[], AnyEnv],
    symmetry: Symmetry,
    options: EnvOptions,
    label: str,
    emit: Emit,
    clock: Clock,
) -> Workbench:
    """Build the environment, bind the symmetry and find out how states are set; next to nothing is stepped.

    Args:
        make_env: builds the environment.
        symmetry: the claim.
        options: the run's options.
        label: names the environment in messages.
        emit: where progress goes.
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
        batched = access if access is not None and (access.batched or access.source == OWN_METHODS) else None
        stepper = SlotStepper(env, batched, label, seed=reset_seed(options.seed))
    else:
        bound = symmetry.bind(env.observation_space, env.action_space)
        env.action_space.seed(options.seed)
        stepper = Stepper(env, access, label, seed=reset_seed(options.seed))
    stepper.codec.coordinates = labelled(stepper.codec.coordinates, bound.column_labels("observation"))
    stepper.action_codec.coordinates = labelled(stepper.action_codec.coordinates, bound.column_labels("action"))
    placement = Placement(stepper, bound, np.random.default_rng([options.seed, 3]))
    pairs = Pairs(stepper, placement, bound)
    words = tuple((i,) for i in range(len(symmetry.group.generators)))
    bench = Workbench(pairs, Pool(), options, emit, clock, words, Budget(options.alpha))
    if (model := _model(bench)) is not None:
        return replace(bench, model=model)
    # Every pair is kept.
    held = stepper.codec.coordinates.dim // (_REDUCED if placement.kind is None else 1)
    fitting = max(1, _MOST_NUMBERS // max(1, held))
    return replace(bench, options=replace(options, samples=min(options.samples, fitting)))


def _model(bench: Workbench) -> BatchModel | None:
    """The environment's batched form, where it has one and the symmetry acts on arrays."""
    access = bench.pairs.stepper.access
    if access is None or not access.source.startswith("built in") or bench.options.method not in ("auto", "paired"):
        return None
    return find_model(bench.pairs.stepper.env) if applicable(bench) else None


def choose_method(bench: Workbench) -> Chosen:
    """Gather states, let the environment agree with itself, and pick the method.

    Args:
        bench: prepared; its pool is filled here.

    Returns:
        The chosen method, ready to judge.

    Raises:
        OptionError: the method asked for does not apply to this environment.
        TargetError: the environment cannot be used.
    """
    rng = np.random.default_rng([bench.options.seed, 1])
    return _chosen(replace(bench, pool=_gathered(bench, rng)), rng)


def _gathered(bench: Workbench, rng: np.random.Generator) -> Pool:
    """States to test."""
    return gather(
        bench.pairs.stepper,
        bench.pairs.placement,
        bench.options.samples if bench.model is None else min(bench.options.samples, BY_HAND),
        rng,
        lambda: bench.in_time(_GATHERING),
    )


def _chosen(bench: Workbench, rng: np.random.Generator) -> Chosen:
    method = bench.options.method
    placement = bench.pairs.placement
    start = StartEvidence(bench)
    if isinstance(bench.pairs.stepper, SlotStepper):
        leak = leakage(bench.pairs.stepper, bench.pool, rng)
        if leak:
            return Chosen(bench, NoEvidence(leak), leak, start)
    table = table_of(bench.pairs.stepper.env) if method in ("auto", "exact") else None
    told = "" if table is None else contradiction(table, bench.pool.visits)
    if table is not None and not told:
        law = getattr(bench.pairs.stepper.base, "initial_state_distrib", None)
        reason = f"exact: a finite MDP of {len(table):,} states whose probabilities are known, enumerated"
        return Chosen(bench, TabularEvidence(bench, table, law), reason, start)
    if method == "exact":
        raise OptionError(
            "the exact method needs a finite MDP with known probabilities, which this environment does not show"
            f"{f': {told}' if told else ''}.",
            where="--method",
            remedy="Use --method auto.",
        )
    if placement.kind is None or method == "trajectory":
        return _replayed(bench, rng, start) or _black_box(bench, start)
    resetting = bench.pairs.stepper.reset_first
    control = identity_control(bench.pairs.stepper, bench.pool, rng)
    bench.pairs.stepper.reset_first = control.reset_first
    if control.behaviour == "deterministic" and control.reset_first and not resetting:
        bench = replace(bench, pool=_gathered(bench, rng))  # states that were set without a reset may have led nowhere
    if control.behaviour == "leaky":
        return Chosen(bench, NoEvidence(control.text), control.text, start)
    if method == "distribution" or (method == "auto" and control.behaviour == "stochastic"):
        if control.behaviour == "stochastic" and not control.caution:
            control = replace(control, caution=reaching_in_law(bench, rng))
        return _distribution(bench, control, start)
    return _paired(bench, control, start)


def _replayed(bench: Workbench, rng: np.random.Generator, start: StartEvidence) -> Chosen | None:
    """Pairs of replayed episodes, where a black box starts alike and repeats; None where it does not."""
    if bench.options.method not in ("auto", "paired") or isinstance(bench.pairs.stepper, SlotStepper):
        return None
    missing = bench.pairs.placement.why_not
    again = replayed(bench)
    if isinstance(again, str):
        bench.pairs.placement.why_not = f"{missing}, and replaying episodes does not help: {again}"
        return None
    control = identity_control(again.pairs.stepper, again.pool, rng)
    if control.behaviour != "deterministic" or control.reset_first:
        return None
    source = again.pairs.placement.access.source
    reason = (
        f"paired: {missing}, but it can be reached {source}: every action sequence and its image are compared, from "
        f"these starts and no others ({control.text})"
    )
    return Chosen(again, PairedEvidence(again, start=start, enough=_enough(again)), reason, start)


def _enough(bench: Workbench) -> FirstViolation | None:
    """When to stop stepping pairs before all are there."""
    return FirstViolation(bench, EQUATIONS) if bench.options.fail_fast else None


def _source(bench: Workbench) -> str:
    """Where state access comes from, and what it does not restore."""
    access = bench.pairs.placement.access
    return f"{access.source}; {access.inexact}" if access.inexact else access.source


def _paired(bench: Workbench, control: Control, start: StartEvidence) -> Chosen:
    source = _source(bench)
    if control.behaviour == "stochastic":
        why = f"{control.text}; pairs of single outcomes cannot be compared. Decide with --method distribution"
        return Chosen(bench, NoEvidence(why, "paired"), why, start)
    bench = replace(bench, caution=control.caution, noise=control.noise)
    reason = f"paired: the state can be set ({source}) and steps repeat ({control.text})"
    evidence = PairedEvidence(bench, model=bench.model, start=start, enough=_enough(bench))
    return Chosen(bench, evidence, reason, start)


def _distribution(bench: Workbench, control: Control, start: StartEvidence) -> Chosen:
    everything: frozenset[Part] = frozenset(("reward", "transition", "termination"))
    stochastic = control.behaviour == "stochastic"
    repeating = control.repeating if stochastic else everything - {"transition"}
    source = _source(bench)
    bench = replace(bench, caution=control.caution)
    reason = f"distribution: the state can be set ({source}) and {control.text}"
    return Chosen(bench, DistributionEvidence(bench, repeating), reason, start)


def _black_box(bench: Workbench, start: StartEvidence) -> Chosen:
    if bench.options.method in ("paired", "distribution"):
        raise OptionError(
            f"--method {bench.options.method} needs to set the environment's state: {bench.pairs.placement.why_not}.",
            where="--method",
            remedy="Register access with symcheck.register_state_access, or use --method trajectory.",
        )
    asked = bench.options.method == "trajectory"
    why = "asked for" if asked else bench.pairs.placement.why_not
    reason = f"trajectory: {why}; whole episodes are the independent unit"
    return Chosen(bench, TrajectoryEvidence(bench, start), reason, start)
