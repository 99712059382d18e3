"""The proof from the weights: one traced run, a certificate per layer, and the claim at every output.

For all x and every generator g: f(L_g x) = K_g f(x). Elements under which this holds form a group, so generators
suffice. What the trace says is held against a second run at L_g x before it is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import nn

import symcheck.engine.networks.compositions_attention
import symcheck.engine.networks.compositions_sums
import symcheck.engine.networks.rules_blocks
import symcheck.engine.networks.rules_masks
import symcheck.engine.networks.rules_products
import symcheck.engine.networks.rules_resampling
import symcheck.engine.networks.rules_spatial  # noqa: F401
from symcheck.array_types import Floats
from symcheck.engine.networks.claims import InputClaim, Motion, OutputClaim, as_affine
from symcheck.engine.networks.entry_scales import difference, output_scale
from symcheck.engine.networks.matching import judge, match_rows
from symcheck.engine.networks.outputs import named_outputs
from symcheck.engine.networks.precision import float64_default
from symcheck.engine.networks.rules_linear import flattened_before, moved_rows, name_inputs, own_rows
from symcheck.engine.networks.tracing import Recorder, Tracer, as_array, module_names
from symcheck.engine.networks.values import (
    Dense,
    Interval,
    Judgement,
    LayerRecord,
    Level,
    Opaque,
    Pending,
    SignedPermutation,
    Tracked,
    Value,
)
from symcheck.engine.networks.weight_orbits import TiedWeights, name_weights
from symcheck.statements.statement import Statement, state

AGREEMENT = 1e-9
"""How far a traced value may be from what a second run shows, over its size: far above float64 rounding in deep
networks, far below anything a wrong rule would do."""


@dataclass(frozen=True)
class Compared:
    """That f(L x) and K f(x) are the same as wholes, where layers did not show it.

    Attributes:
        terms: how many were compared.
        ties: equations of input entries; where one holds, nothing was shown.
        kind: "terms", or "matrices" where polynomials in terms were compared.
    """

    terms: int
    ties: tuple[str, ...] = ()
    kind: str = "terms"


@dataclass
class Proof:
    """What the weights say.

    Attributes:
        level: exact or rounded if every layer and output is certified; failed if some is not; None if not followed to
            the end.
        records: one per layer, in order of execution.
        reason: where following ended, and why; None where it did not.
        bound: largest |K f(x) - f(Lx)| over the box of inputs, where it is known.
        box: the box: |x| at most this, entry by entry.
        compared: what the graphs of f(Lx) and K f(x) showed where layers did not; None where they were not asked.
        certificate: the document that the checker accepted; without it nothing is proved.
        missing: why the graph has no certificate; None where it has one, or where there is no graph.
    """

    level: Level | None
    records: list[LayerRecord] = field(default_factory=list)
    reason: Opaque | None = None
    bound: float | None = None
    box: float = 1.0
    compared: Compared | None = None
    certificate: dict[str, Any] | None = None
    missing: Statement | None = None

    @property
    def is_by_comparison(self) -> bool:
        """Whether graphs were compared as wholes, so that nothing is said of layers."""
        return self.level == "exact" and self.compared is not None

    @property
    def first_failure(self) -> LayerRecord | None:
        """The first layer that is not certified."""
        return next((record for record in self.records if record.level == "failed"), None)


def units_at_fault(proof: Proof | None) -> list[list[tuple[str, int]]]:
    """Sets of units, as (layer, unit), that must be active at once for the first fault to show.

    A wrong weight shows where its own unit is active and its input is not zero: the input is a unit of the nearest
    layer before that has as many outputs as this one has inputs.
    """
    failure = None if proof is None else proof.first_failure
    if proof is None or failure is None:
        return []
    # The two worst units are enough; each is a set of its own.
    own = [[(failure.name, unit)] for unit in failure.units[:2]] or [[]]
    earlier = proof.records[: proof.records.index(failure)]
    # The layer before is the last one with as many outputs as this one has inputs.
    before = next((r for r in reversed(earlier) if failure.inputs and r.sizes[1] == failure.sizes[0]), None)
    if before is not None:
        own = [[*units, (before.name, j)] for units in own for j in failure.inputs[:2]]
    return [units for units in own if units]


def prove(
    net: nn.Module,
    inputs: InputClaim,
    outputs: Sequence[OutputClaim],
    example: Floats,
    usual: Mapping[str, Floats],
    *,
    box: float = 1.0,
    names: Callable[[str], str] = str,
    given: Mapping[int, Sequence[SignedPermutation]] | None = None,
) -> Proof:
    """Follow the action through a float64 network and judge every layer and output.

    Args:
        net: the float64 copy, in the mode to be judged.
        inputs: how the input moves; data only.
        outputs: how each output should move.
        example: one input, shape (1, *shape), float64.
        usual: what the network answers to it when nothing is traced, by output.
        box: inputs for which bounds are computed: |x| <= box, entry by entry.
        names: from a module's name in `net` to the one that records should carry.
        given: permutations to check instead of searching, by the place of the layer's record.

    Returns:
        The proof; its level is None where an operation was not understood.
    """
    tracer = Tracer(net, len(inputs.motions), names)
    tracer.given = given or {}
    x = torch.from_numpy(np.ascontiguousarray(example))
    tracer.learn(x, _input_value(inputs, box))
    # parameters take no gradients here; with gradients disabled, layers may answer from weights they kept
    try:
        with torch.enable_grad(), float64_default(), module_names(net, tracer.stack, names), tracer:
            result = net(x)
    except Exception as error:  # its own code, or torch's, does not run on one traced input
        return Proof(None, tracer.records, Opaque(_error_statement("tracing", error), tracer.module), box=box)
    tensors = named_outputs(result)
    values = [tracer.value(tensors[claim.path]) for claim in outputs]
    # Outputs are judged in the order of the claims, each against its own value.
    proof = _judge_outputs(tracer, values, [tensors[claim.path] for claim in outputs], outputs, box)
    if proof.level is None:
        return proof
    # The traced run must give what an ordinary run gives: hooks and modes change nothing.
    if any(
        not same_numbers(as_array(tensors[path]).reshape(-1), numbers.reshape(-1)) for path, numbers in usual.items()
    ):
        return Proof(None, proof.records, Opaque(state("SYM161")), box=box)
    if proof.level in ("exact", "rounded"):
        reason = _contradiction(net, tracer, inputs, example)
        if reason is not None:
            return Proof(None, proof.records, reason, box=box)
    return proof


def _input_value(inputs: InputClaim, box: float) -> Value:
    shape, n = (1, *inputs.shape), int(np.prod(inputs.shape))
    # Inputs in [-box, box]; a signed permutation maps the box onto itself, without drift.
    interval = Interval(np.full(n, box), np.zeros(n))
    if all(isinstance(motion, SignedPermutation) for motion in inputs.motions):
        images = tuple(motion for motion in inputs.motions if isinstance(motion, SignedPermutation))
        return Tracked(shape, np.arange(n), images, interval=interval)
    maps = tuple(as_affine(motion) for motion in inputs.motions)
    # the box is not carried into itself by a general map: no bounds from here
    return Dense(shape, maps)


def _judge_outputs(
    tracer: Tracer, values: list[Value | None], tensors: list[torch.Tensor], outputs: Sequence[OutputClaim], box: float
) -> Proof:
    reason = tracer.escaped
    drifts: list[float | None] = []
    for value, tensor, claim in zip(values, tensors, outputs, strict=True):
        problem, drift = _judge_output(tracer, value, tensor, claim)
        reason = reason or problem
        drifts.append(drift)
    levels = [record.level for record in tracer.records]
    known = [drift for drift in drifts if drift is not None]
    bound = max(known, default=None) if len(known) == len(drifts) else None
    # A layer that is wrong is wrong, whatever was not followed behind it.
    if "failed" in levels:
        return Proof("failed", tracer.records, reason, box=box)
    if reason is not None:
        return Proof(None, tracer.records, reason, box=box)
    return Proof("rounded" if "rounded" in levels else "exact", tracer.records, None, bound, box)


def _judge_output(
    tracer: Tracer, value: Value | None, tensor: torch.Tensor, claim: OutputClaim
) -> tuple[Opaque | None, float | None]:
    if isinstance(value, Opaque):
        return value, None
    if any(callable(motion) for motion in claim.motions):
        return Opaque(state("SYM162"), output=claim.path), None
    if value is None:
        return _judge_constant(tracer, tensor, claim)
    if isinstance(value, Dense):
        return Opaque(state("SYM163"), output=claim.path), None
    # A linear layer's own rows are more than the classes of its output.
    pending = value if isinstance(value, Pending) else value.origin
    if pending is not None:
        return None, _judge_affine(pending, claim)
    if isinstance(value, Tracked):
        return _judge_classes(tracer, value, claim)
    return Opaque(state("SYM164"), output=claim.path), None


def _judge_constant(tracer: Tracer, tensor: torch.Tensor, claim: OutputClaim) -> tuple[Opaque | None, float | None]:
    y = tensor.detach().double().cpu().numpy().reshape(1, -1)
    # A constant output must be a fixed point of K.
    if all(np.array_equal(claim.apply(g, y, y), y) for g in range(len(claim.motions))):
        return None, 0.0
    cause = state("SYM133", deviations=True) if claim.role == "action_scale" else state("SYM133")
    tracer.records.append(LayerRecord(claim.path, "output", "failed", cause=cause))
    return None, None


def _judge_affine(pending: Pending, claim: OutputClaim) -> float | None:
    """The last linear layer against the output's own action: [W R, b] = K [W, b] (+ offset)."""
    rows = own_rows(pending)
    worst: Judgement | None = None
    drift = 0.0
    interval = pending.parent.interval
    for generator, motion in enumerate(claim.motions):
        moved, noise = moved_rows(pending, generator)
        wanted, rounding = _moved_by_claim(motion, rows)
        judgement = judge(moved, wanted, noise + rounding)
        # The worst generator decides.
        if worst is None or judgement.rank > worst.rank:
            worst = judgement
        if interval is not None:
            gap = np.abs(moved - wanted)
            # Within the rounding of the products the difference counts as zero.
            gap[gap <= noise + rounding] = 0.0
            # |W R - K W| |x| + |b - K b| + |W R| drift of the input: how far f(Lx) and K f(x) may be apart.
            off = gap[:, :-1] @ interval.size + gap[:, -1] + np.abs(moved[:, :-1]) @ interval.drift
            drift = max(drift, float(off.max(initial=0.0)))
    record = replace(pending.own or pending.record)
    if worst is not None:
        record.take(worst)
        name_inputs(record, pending, worst)
        record.place = name_weights("output", _blamed_weights(pending, claim, rows, worst), rows.shape[1] - 1)
        record.cause = None
        if worst.level == "failed":
            entries = {"units": list(record.units), "inputs": list(record.inputs)}
            untied = _flattened_if_untied(pending, len(claim.motions))
            record.cause = state("SYM131", output=claim.path, role=claim.role, **entries, **untied)
        record.representation = record.representation or f"{claim.role} representation"
    record.bound = drift if interval is not None else None
    pending.record.settle(record)
    return record.bound


def _blamed_weights(pending: Pending, claim: OutputClaim, rows: Floats, worst: Judgement) -> list[tuple[int, int]]:
    """Rows and columns of [W, b] that a difference between moved rows is put down to."""
    row, column = worst.place
    parent, motions = pending.parent, [motion for motion in claim.motions if isinstance(motion, SignedPermutation)]
    if not isinstance(parent, Tracked) or not parent.is_free or len(motions) < len(claim.motions):
        return [worst.place]
    tied = TiedWeights(rows, motions, parent.images)
    # Compared were a weight of this row and, in this column, one of the row that K moves here.
    for motion in motions:
        source = int(np.flatnonzero(motion.index == row)[0])
        if places := tied.blame(source, column):
            return places
    return [worst.place]


def _flattened_if_untied(pending: Pending, generators: int) -> dict[str, list[int]]:
    """The flattened images that a head reads, as a field, where no order of its outputs ties its weights."""
    rows = own_rows(pending)
    moved = [moved_rows(pending, generator)[0] for generator in range(generators)]
    matches = [match_rows(image_rows, rows) for image_rows in moved]
    tied = all(match is not None and match.close.all() for match in matches)
    return {} if tied else flattened_before(pending)


def _moved_by_claim(motion: Motion, rows: Floats) -> tuple[Floats, float]:
    """K [W, b] with the offset of K in the last column, and the rounding of this product."""
    if isinstance(motion, SignedPermutation):
        moved = np.empty_like(rows)
        moved[motion.index] = motion.sign[:, None] * rows
        return moved, 0.0
    affine = as_affine(motion)
    moved = affine.matrix @ rows
    moved[:, -1] += affine.offset
    # Rounding of a matrix product: (n + 2) eps times the product of absolute values.
    size = float((np.abs(affine.matrix) @ np.abs(rows)).max(initial=0.0)) + float(
        np.abs(affine.offset).max(initial=0.0)
    )
    return moved, (len(rows) + 2) * float(np.finfo(np.float64).eps) * size


def _judge_classes(tracer: Tracer, value: Tracked, claim: OutputClaim) -> tuple[Opaque | None, float | None]:
    """An output that no linear layer made: its classes must move as the claim says, exactly."""
    for image, motion in zip(value.images, claim.motions, strict=True):
        if not isinstance(motion, SignedPermutation):
            return Opaque(state("SYM165"), output=claim.path), None
        # Entry motion.index[j] of the output must have the class that is the image of the class of entry j.
        same = np.array_equal(image.index[value.cls], value.cls[motion.index])
        if not same or not np.array_equal(image.sign[value.cls], motion.sign):
            record = next((r for r in reversed(tracer.records)), None)
            if record is None:
                record = LayerRecord(claim.path, "output")
                tracer.records.append(record)
            record.level = "failed"
            record.cause = state("SYM131", output=claim.path, role=claim.role, permuted=True)
            return None, None
    return None, None if value.interval is None else float(value.interval.drift.max(initial=0.0))


def _contradiction(net: nn.Module, tracer: Tracer, inputs: InputClaim, example: Floats) -> Opaque | None:
    """The first traced value that a run at L x does not bear out: a mistake in a rule, caught before it is believed."""
    # Values behind a layer that is only nearly certified differ by more than rounding; they are not compared.
    wanted = {call for call, logged in tracer.log.items() if logged.trusted and isinstance(logged.value, Tracked)}
    for generator in range(len(inputs.motions)):
        recorder = Recorder(wanted)
        x = torch.from_numpy(np.ascontiguousarray(inputs.apply(generator, example)))
        try:
            with torch.enable_grad(), float64_default(), recorder:
                net(x)
        except Exception as error:  # its own code, on an input that it was not traced on
            return Opaque(_error_statement("a second run", error))
        for call in sorted(wanted):
            logged, numbers = tracer.log[call], recorder.numbers.get(call)
            if (
                numbers is None
                or not isinstance(logged.value, Tracked)
                or not _agrees(logged.value, generator, logged.numbers, numbers)
            ):
                return Opaque(state("SYM166", call=call))
    return None


def _error_statement(run: str, error: Exception) -> Statement:
    return state("SYM160", run=run, error=type(error).__name__, message=" ".join(str(error).split())[:200])


def _agrees(value: Tracked, generator: int, before: Floats, after: Floats) -> bool:
    if len(after) != len(value.cls) or len(before) != len(value.cls):
        return False
    image = value.images[generator]
    per_class = np.empty(value.classes)
    # Every entry of a class has the same number, so any of them stands for it.
    per_class[value.cls] = before
    moved = image.apply(per_class)[value.cls]
    return same_numbers(moved, after)


def same_numbers(left: Floats, right: Floats) -> bool:
    """Equal up to float64 rounding in a deep network."""
    return left.shape == right.shape and bool((difference(left, right) <= AGREEMENT * output_scale(left)).all())
