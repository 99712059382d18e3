"""What the properties of a network share: its copies, claims, proof and samples, each made when first asked for."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from torch import nn

from symcheck.engine.events import Emit, Progress
from symcheck.engine.networks.adapters import adapted
from symcheck.engine.networks.ascent import activated, ascended
from symcheck.engine.networks.claims import InputClaim, OutputClaim, input_claim, output_claims
from symcheck.engine.networks.counterexamples import counterexample_of
from symcheck.engine.networks.diagnosis import causes
from symcheck.engine.networks.location import first_nonfinite_module
from symcheck.engine.networks.measuring import Measured, difference, measure, output_scale
from symcheck.engine.networks.options import DEFAULT_SAMPLES, NetOptions
from symcheck.engine.networks.precision import followable
from symcheck.engine.networks.proof import Proof, prove, units_at_fault
from symcheck.engine.networks.sampling import Family, families
from symcheck.engine.networks.search import revealing_inputs
from symcheck.engine.networks.shapes import example_shapes, input_shape, mismatch
from symcheck.engine.networks.structured import FlatInput, flat_claim, shapes_of
from symcheck.engine.networks.subject import Subject
from symcheck.engine.networks.values import FloatArray, SignedPermutation
from symcheck.engine.networks.verdicts import EXACT, ROUNDED, Decision, decide, is_wrong_weight, of_mixed_batches
from symcheck.engine.results import Counterexample
from symcheck.errors import SpecError, TargetError
from symcheck.symmetry.symmetry import Symmetry

SMALL_INPUT = 64
"""Entries of an input up to which the default number of samples is drawn in full."""
PROVED_INPUT = 320
"""What a proof makes of smaller inputs: 2,000 pairs are enough to hold it against what the network does."""
LEAST_SAMPLES = 256
PRODUCTS = 10_000_000_000
"""Multiplications, of one precision, that the default number of samples may cost: seconds on one core."""
FEWEST_SAMPLES = 48
BOX = 1.0
"""Bounds on residuals are stated for inputs with entries in [-1, 1]."""
MIXED = 1e-9
"""Relative difference of two float64 evaluations of one input, in a batch and alone, or first and later, up to which
they are one answer: far above rounding, far below what another sample or call would do."""


class NetContext:
    """One network under one symmetry.

    Args:
        net: the network; never changed.
        symmetry: the claim.
        options: how much to test, and how the network is deployed.
        emit: receives progress.

    Attributes:
        stochastic: whether the network answers twice differently because it draws something.
        remembers: whether its answer depends on the calls before.
        batch_residual: where samples of a batch influence each other, how far a batch is from moving as claimed, over
            the output's scale; None where they do not.

    Raises:
        SymcheckError: the network cannot be copied or run, or the symmetry does not fit it.
    """

    def __init__(self, net: nn.Module, symmetry: Symmetry, options: NetOptions, emit: Emit) -> None:
        self.symmetry = symmetry
        self.options = options
        self._emit = emit
        self._started = time.monotonic()
        self.searched = 0
        self.certificate: Mapping[int, Sequence[SignedPermutation]] = {}
        net = adapted(net)
        outputs = options.outputs if options.outputs is not None else getattr(net, "roles", None)
        given = options.input_shape
        leaves = shapes_of(example_shapes(net, symmetry) if given is None else given)
        if leaves is None:
            shape = input_shape(net, symmetry, given)
            self.inputs: InputClaim = input_claim(symmetry, shape)
        else:
            self.inputs = flat_claim(symmetry, leaves)
            shape, net = self.inputs.shape, FlatInput(net, leaves)
        self.subject = Subject(
            net,
            shape,
            mode=options.mode,
            dtype=options.dtype,
            device=options.device,
            noise_seed=options.noise_seed,
        )
        self.outputs: tuple[OutputClaim, ...] = output_claims(symmetry, self._output_shapes(net), outputs)
        self.observations = _stacked(options.observations, shape)
        differs = self._answers_twice_differently()
        self.remembers = self._has_memory(differs)
        self.stochastic = differs and not self.remembers
        self.batch_residual: float | None = None
        if self.repeatable and options.mode == "eval" and not self.subject.one_by_one:
            self.batch_residual = self._residual_of_mixed_batch()
            self.subject.one_by_one = self.batch_residual is not None

    @property
    def repeatable(self) -> bool:
        """Whether the same input gets the same answer, so that two answers can be compared."""
        return not self.stochastic and not self.remembers

    def _output_shapes(self, net: nn.Module) -> dict[str, tuple[int, ...]]:
        try:
            return self.subject.shapes()
        except TargetError as error:
            raise mismatch(net, self.subject.shape) or error from error

    def element(self, generator: int) -> str:
        """A readable name of a generator: the symmetry's own where there is only one."""
        group = self.symmetry.group
        return self.symmetry.name if len(group.generators) == 1 else str(group.generator_names[generator])

    @cached_property
    def proof(self) -> Proof | None:
        """What the weights say; None where the action is a callable, in train mode, or without a float64 copy."""
        if not self.inputs.is_data or self.subject.coarse or self.subject.training:
            return None
        example = np.random.default_rng((self.options.seed, 1)).normal(size=(1, *self.subject.shape))
        usual = self.subject.run(example, exact=True)
        return prove(
            followable(self.subject.exact, self.subject.shape),
            self.inputs,
            self.outputs,
            example,
            usual,
            box=BOX,
            names=self.subject.name,
            given=self.certificate,
        )

    @cached_property
    def measured(self) -> Measured:
        """What the samples show."""
        rng = np.random.default_rng((self.options.seed, 2))
        generators = len(self.inputs.motions)
        wanted = max(1, self._samples() // generators)
        groups = families(self.inputs, wanted, rng, self.observations)
        total = sum(len(group.inputs) for group in groups) * generators
        deadline = None if self.options.max_time is None else self._started + self.options.max_time

        def tick(pairs: int) -> None:
            self._emit(Progress(pairs, max(pairs, total)))

        found = measure(self.subject, self.inputs, self.outputs, groups, deadline=deadline, tick=tick)
        if self._worth_climbing(found):
            uphill = ascended(self.subject, self.inputs, self.outputs, _starts(found, groups))
            measure(self.subject, self.inputs, self.outputs, uphill, deadline=deadline, tick=tick, into=found)
        if self._fault_is_silent(found):
            for units in units_at_fault(self.proof):
                awake = activated(self.subject, self.inputs, units, rng)
                measure(self.subject, self.inputs, self.outputs, awake, deadline=deadline, tick=tick, into=found)
        if self._fault_is_silent(found) and (deadline is None or time.monotonic() < deadline):
            shown, self.searched = revealing_inputs(self.subject, self.inputs, self.outputs, rng, EXACT)
            measure(self.subject, self.inputs, self.outputs, shown, tick=tick, into=found)
        return found

    def _fault_is_silent(self, found: Measured) -> bool:
        """Whether a weight is wrong although no output shows it so far."""
        failure = None if self.proof is None else self.proof.first_failure
        return failure is not None and is_wrong_weight(failure) and found.nan is None and found.relative <= EXACT

    def _samples(self) -> int:
        """As asked; else 10,000 pairs, fewer for large inputs and networks, whose passes cost more."""
        if self.options.samples is not None:
            return self.options.samples
        size = int(np.prod(self.subject.shape))
        if self.proof is not None and self.proof.level == "exact":
            size = max(size, PROVED_INPUT)
        affordable = PRODUCTS // max(1, self.subject.products())
        least = max(FEWEST_SAMPLES, min(LEAST_SAMPLES, affordable))
        return max(least, min(DEFAULT_SAMPLES, DEFAULT_SAMPLES * SMALL_INPUT // size, affordable))

    def _worth_climbing(self, found: Measured) -> bool:
        proved = self.proof is not None and self.proof.level == "exact"
        return not proved and found.nan is None and found.relative <= 1e-5  # beyond it, it has failed already

    @cached_property
    def decision(self) -> Decision:
        """The verdict on the network as a whole."""
        decision = decide(
            self.proof,
            self.measured,
            strict=self.options.strict,
            excused=self._excused(),
            coarse=self.subject.coarse,
            artefact=self.subject.artefact,
            not_judged=self.subject.not_judged,
        )
        if decision.verdict == "failed" and decision.location is None:
            x = self.measured.nan
            location = None if x is None else first_nonfinite_module(self.subject, x)
            decision = replace(decision, location=location or self.measured.nan_path)
        return decision if self.batch_residual is None else of_mixed_batches(decision, self.batch_residual)

    def _excused(self) -> list[str]:
        return [claim.path for claim in self.outputs if claim.role == "action_scale"]

    @property
    def is_coarser_deployed(self) -> bool:
        """Whether what is deployed rounds more than float32 does because other arithmetic than torch's runs it."""
        return bool(self.subject.artefact) and not self.subject.coarse and self.measured.deployed.noise > ROUNDED

    @cached_property
    def counterexample(self) -> Counterexample | None:
        """The failing input, shrunk; None where nothing failed."""
        return None if self.decision.verdict != "failed" else counterexample_of(self)

    @cached_property
    def causes(self) -> tuple[str, ...]:
        """Likely causes of a failure."""
        worst = self.measured.worst
        if self.silent_fault:
            return (self.silent_fault,)
        if self.decision.verdict != "failed" or worst is None:
            return ()
        if self.measured.nan is not None:
            return ("the network divides by zero, or takes a root or logarithm outside its domain, on this input",)
        rng = np.random.default_rng((self.options.seed, 3))
        one_sided = bool(np.isinf(worst.residual))
        found = causes(
            self.subject, self.inputs, self.outputs, self.proof, worst.path, worst.generator, rng, one_sided=one_sided
        )
        return (*self._paired_dropout(), *found)

    def _paired_dropout(self) -> tuple[str, ...]:
        """That the draws of a seed drop units by their place, which the action changes."""
        if not self.subject.training or self.options.noise_seed is None:
            return ()
        modules = self.subject.modules(exact=True).items()
        names = [name for name, one in modules if isinstance(one, nn.modules.dropout._DropoutNd) and one.p > 0]
        if not names:
            return ()
        return (
            f"dropout in train mode ({', '.join(names[:3])}): the same seed drops the same places on both sides, while "
            "the action exchanges the units there; judge the network in eval mode, the default",
        )

    @property
    def silent_fault(self) -> str:
        """What the weights of a layer lack although no output shows it, in one sentence; "" where nothing is."""
        failure = None if self.proof is None else self.proof.first_failure
        if failure is None or not is_wrong_weight(failure) or self.decision.verdict == "failed":
            return ""
        what = f"{failure.place} differs by {failure.ulps:.3g} float32 ulps from what the symmetry asks"
        if (
            not failure.residual
        ):  # its weights are right: what was made of its output afterwards is not followed far enough
            what = failure.cause
        tried = self.measured.pairs + self.searched
        layer = f"layer {failure.name}" if failure.name else "the layer"
        return f"{layer}: {what}, but none of {tried:,} inputs tried shows it (its units may be silent)"

    @property
    def region(self) -> str:
        """Which inputs were tested, in words."""
        return f"inputs of shape {self.subject.shape}: {', '.join(self.measured.families)}"

    def _answers_twice_differently(self) -> bool:
        x = np.random.default_rng((self.options.seed, 4)).normal(size=(4, *self.subject.shape))
        first, second = self.subject.run(x, exact=False), self.subject.run(x, exact=False)
        return any(not np.array_equal(first[path], second[path], equal_nan=True) for path in first)

    def _has_memory(self, differs: bool) -> bool:
        """Whether what was asked before changes the answer: a copy's first one is another, and is not drawn."""
        x = np.random.default_rng((self.options.seed, 6)).normal(size=(4, *self.subject.shape))
        first = self.subject.run_afresh(x)
        if not any(_differ(first, self.subject.run(x, exact=True)) for _ in range(2)):
            return False
        return not differs or not _differ(first, self.subject.run_afresh(x))

    def _residual_of_mixed_batch(self) -> float | None:
        """How far a batch is from moving as claimed, where its samples influence each other; None where they do not."""
        x = np.random.default_rng((self.options.seed, 5)).normal(size=(3, *self.subject.shape))
        whole, single = self.subject.run(x, exact=True), self.subject.run(x[:1], exact=True)
        if not _differ(single, {path: rows[:1] for path, rows in whole.items()}):
            return None
        worst = 0.0
        for generator in range(len(self.inputs.motions)):
            moved = self.subject.run(self.inputs.apply(generator, x), exact=True)
            for claim in self.outputs:
                wanted = claim.apply(generator, whole[claim.path], x)
                gap = difference(wanted, moved[claim.path]).max(initial=0.0)
                worst = max(worst, float(gap / output_scale(wanted, moved[claim.path])))
        return worst


def _differ(usual: dict[str, FloatArray], found: dict[str, FloatArray]) -> bool:
    """Whether some answer is another one, by more than rounding; answers that are NaN all over tell nothing."""
    for path, one in usual.items():
        gap = difference(found[path], one)
        gap[np.isnan(found[path]) & np.isnan(one)] = 0.0
        if np.isfinite(one).any() and bool((gap > MIXED * output_scale(one)).any()):
            return True
    return False


def _starts(found: Measured, groups: list[Family]) -> FloatArray:
    """Where to start climbing: the worst input, then the first of the first family."""
    first = groups[0].inputs[:15]
    return first if found.worst is None else np.concatenate([found.worst.x[None], first])


def _stacked(observations: Any, shape: tuple[int, ...]) -> FloatArray | None:
    if observations is None:
        return None
    stacked = np.asarray(observations, dtype=np.float64)
    if stacked.shape[1:] != shape:
        raise SpecError(
            f"observations of shape {stacked.shape[1:]} do not fit the network's input {shape}.",
            where="--env",
            remedy="Name an environment whose observations the network takes.",
        )
    return stacked
