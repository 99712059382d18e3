"""Runs a claim on an environment: checks of the environment, method selection, then every registered property.

The order is always the same: bind the symmetry to the spaces, determine how states can be set, gather states, run the
determinism check, select the method, and evaluate each property. Evidence is gathered once and shared by the
properties.
"""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Callable, Sequence

from symcheck.engine import registry
from symcheck.engine.clock import Clock, TimeUp, computing_ends, computing_until
from symcheck.engine.elements_note import with_elements
from symcheck.engine.environments.cases.workbench import Workbench
from symcheck.engine.environments.causes.statistics_of_wrappers import name_statistics
from symcheck.engine.environments.methods.axioms import judge_axioms, only_data
from symcheck.engine.environments.methods.selection import Chosen, choose_method, prepare
from symcheck.engine.environments.methods.value_gap import with_value_gap
from symcheck.engine.equations import BY_PART, STEP_PARTS, Part
from symcheck.engine.events import Emit, PropertyFinished, PropertyStarted, RunFinished, ignore
from symcheck.engine.options import EnvOptions
from symcheck.engine.registry import Property
from symcheck.engine.results import PropertyResult, RunResult
from symcheck.engine.unfinished import run_started
from symcheck.engine.versions import versions_of
from symcheck.envs.targets import AnyEnv
from symcheck.errors import SymcheckError
from symcheck.statements.statement import Statement, state
from symcheck.symmetry.symmetry import Symmetry
from symcheck.verdict import Facts

# After an interrupt these are still tested, on the finished pairs.
_JUDGED_AT_ONCE = frozenset(BY_PART[part].name for part in STEP_PARTS)


class EnvContext:
    """The argument of every property of environments.

    States are gathered and the method is selected when a property first needs evidence. Properties that data alone can
    decide are decided before the environment is stepped.

    Args:
        bench: the environment under test, the symmetry and the options.
        chosen: the method, if it is already selected.
    """

    def __init__(self, bench: Workbench, chosen: Chosen | None = None) -> None:
        self.bench = bench
        self._chosen = chosen

    @property
    def chosen(self) -> Chosen:
        """The method, its evidence and the reason for its selection."""
        if self._chosen is None:
            self._chosen = choose_method(self.bench)
        return self._chosen

    @property
    def reason(self) -> Statement:
        """The reason for the selected method, or a statement that none was selected."""
        return self._chosen.reason if self._chosen is not None else state("method_not_chosen")

    def judge(self, name: str, part: Part) -> PropertyResult:
        """The selected method's verdict on one equation."""
        result = self.chosen.evidence.judge(name, part)
        remark = self.chosen.remarks.get(part)
        return result if remark is None else dataclasses.replace(result, notes=(*result.notes, remark))

    def judge_axioms(self, name: str) -> PropertyResult:
        """The verdict on the group action; if it fails, also whether the equations hold nevertheless."""
        # Callables are checked on sampled states, which method selection gathers.
        result = judge_axioms(name, self.bench if only_data(self.bench) else self.chosen.bench)
        if result.verdict != "failed" or self.bench.options.fail_fast:
            return result
        evidence = self.chosen.evidence
        verdicts = {part: evidence.judge(part, part).verdict for part in STEP_PARTS}
        failed = [part for part in STEP_PARTS if verdicts[part] == "failed"]
        undecided = [part for part in STEP_PARTS if verdicts[part] == "undecided"]
        if failed:
            equations = state("SYM004", failed=failed)
        elif undecided:
            equations = state("SYM004", undecided=undecided)
        else:
            equations = state("SYM003")
        return dataclasses.replace(result, causes=(*result.causes, equations))

    def judge_start(self, name: str) -> PropertyResult:
        """The verdict on the start distribution."""
        evidence = self.chosen.evidence
        own = getattr(evidence, "judge_start", None)
        return own(name) if own is not None else self.chosen.start.judge(name)

    @property
    def claims_start(self) -> bool:
        """Whether the claim includes a symmetric start distribution."""
        return bool(self.bench.pairs.bound.symmetry.initial)

    @property
    def shows_state(self) -> bool:
        """Whether there is an internal state besides the observation, and its observation is known."""
        placement = self.bench.pairs.placement
        return placement.kind == "map" and placement.access.observe is not None


def run_env(
    make_env: Callable[[], AnyEnv],
    symmetry: Symmetry,
    *,
    options: EnvOptions,
    target: str,
    command: str,
    emit: Emit | None = None,
) -> RunResult:
    """Check every registered property of environments for one symmetry.

    Args:
        make_env: builds the environment with the user's wrappers.
        symmetry: the claim.
        options: the amount of evidence, and the method.
        target: the environment's name in reports.
        command: the command line that repeats the run, or "".
        emit: receives events; None discards them.

    Returns:
        The verdicts. After Ctrl-C: the finished properties, the others undecided, and `interrupted=True`.

    Raises:
        SpecError: the symmetry does not fit the spaces.
        TargetError: the environment cannot be stepped.
        OptionError: the requested method does not apply.
        SymcheckError: no property is registered, so that nothing would be tested.

    Example:
        >>> import gymnasium, symcheck_properties
        >>> from symcheck.envs import atlas
        >>> mirror = atlas.entry("cartpole/mirror").symmetry()
        >>> result = run_env(lambda: gymnasium.make("CartPole-v1"), mirror, options=EnvOptions(samples=500),
        ...                  target="CartPole-v1", command="")
        >>> result.verdict
        'passed'

    Source: the equations of van der Pol et al. (2020), section 3.1.
    """
    started = time.monotonic()
    listener = emit or ignore
    entries = registry.registered_properties("env")
    if not entries:
        raise SymcheckError(
            "no property of environments is registered: nothing would be tested.",
            where="registry",
            remedy="Import symcheck_properties first.",
        )
    begun = run_started("env", target, symmetry.name, symmetry.group, entries, options, command)
    listener(begun)
    with warnings.catch_warnings(), computing_until(computing_ends(started, options.max_time)):
        # Suppress Gymnasium's warnings, such as those on observations outside their space; set states may lie outside.
        warnings.filterwarnings("ignore", module=r"gymnasium(\..*)?")
        results, context, interrupted = _run(make_env, symmetry, options, target, listener, entries, started)
    result = dataclasses.replace(
        begun.unfinished,
        properties=tuple(results),
        duration_s=time.monotonic() - started,
        versions=versions_of("symcheck", "numpy", "gymnasium"),
        claim=context.bench.pairs.bound.claim if context is not None else {},
        method_reason=context.reason if context is not None else state("method_not_chosen"),
        interrupted=interrupted,
    )
    listener(RunFinished(result))
    return result


def _run(
    make_env: Callable[[], AnyEnv],
    symmetry: Symmetry,
    options: EnvOptions,
    target: str,
    listener: Emit,
    entries: Sequence[Property],
    started: float,
) -> tuple[list[PropertyResult], EnvContext | None, bool]:
    results: list[PropertyResult] = []
    context: EnvContext | None = None
    clock = Clock(started, options.max_time)
    try:
        context = EnvContext(prepare(make_env, symmetry, options, target, listener, clock))
        entries = [entry for entry in entries if entry.applies(context)]
        for entry in entries:
            listener(PropertyStarted(entry.name))
            # Fail-fast has priority over an interrupt: it is the reason for the end of the run.
            stopped = options.fail_fast and any(result.verdict == "failed" for result in results)
            interrupted = context.bench.interrupted and entry.name not in _JUDGED_AT_ONCE
            if stopped or interrupted:
                facts = Facts(checked=0, stopped=stopped, interrupted=not stopped)
                results.append(registry.undecided_result(entry, facts))
            else:
                described = registry.describe(_check_in_time(entry, context), entry)
                result = name_statistics(described, context.bench.pairs)
                results.append(with_elements(result, context.bench.pairs.bound.note))
            listener(PropertyFinished(results[-1]))
        failed = any(result.verdict == "failed" for result in results)
        if clock.refusal is not None and not failed:
            raise clock.refusal  # an earlier failure remains
        if failed and not (context.bench.interrupted or options.fail_fast):
            evidence, options = context.chosen.evidence, context.bench.options
            results = with_value_gap(results, evidence, discount=options.discount, accept=options.accept_gap)
    except KeyboardInterrupt as end:
        done, late = {result.name for result in results}, isinstance(end, TimeUp)
        facts = Facts(checked=0, interrupted=not late, time_up=late)
        results += [registry.undecided_result(entry, facts) for entry in entries if entry.name not in done]
        return results, context, not late
    return results, context, clock.interrupted and clock.refusal is None


def _check_in_time(entry: Property, context: EnvContext) -> PropertyResult:
    """The property's verdict; undecided if it needs a step after the time budget is spent."""
    try:
        return entry.check(context)
    except TimeUp:
        return registry.undecided_result(entry, Facts(checked=0, time_up=True))
