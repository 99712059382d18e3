"""The result from the weights: the graph traced node by node, a record per layer, and the claim on every output.

For all x and every generator g: f(L_g x) = K_g f(x). The elements for which this holds form a group, so generators
suffice. The result names the failing layers and the rounded weights. It is a proof only together with a certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.networks.blame.action import Action
from symcheck.engine.networks.blame.layers import LayerWalk
from symcheck.engine.networks.blame.running import Run
from symcheck.engine.networks.capture.capture import Capture
from symcheck.engine.networks.graph.interpreter import Followed, follow
from symcheck.engine.networks.graph.nodes import Graph, NoCertificateError
from symcheck.engine.networks.samples.entry_scales import difference, output_scale
from symcheck.engine.networks.subject.claims import InputClaim, OutputClaim
from symcheck.engine.networks.subject.values import AffineMap, LayerRecord, Level, Opaque, SignedPermutation
from symcheck.statements.statement import Statement, state

AGREEMENT = 1e-9
"""Largest difference of two runs of the same network, relative to the output: the float64 rounding of deep networks."""


@dataclass(frozen=True)
class Compared:
    """The comparison of f(L x) and K f(x) as a whole, used if the layers did not decide.

    Attributes:
        terms: the number of terms compared.
        ties: equations of input entries; nothing was shown for inputs that satisfy one.
        kind: "terms", or "matrices" if polynomials in terms were compared.
    """

    terms: int
    ties: tuple[str, ...] = ()
    kind: str = "terms"


@dataclass
class Proof:
    """The result from the weights.

    Attributes:
        level: exact or rounded if every layer and output is certified; failed if one is not; None if the graph was not
            traced to the end.
        records: one per layer, in order of execution.
        reason: where tracing ended, and why; None if it did not.
        bound: largest |K f(x) - f(Lx)| over the box of inputs, if known.
        box: the box: |x| at most this, entry by entry.
        compared: the comparison of the graphs of f(Lx) and K f(x), if the layers did not decide; None if it was not
            made.
        certificate: the document that the checker accepted; without it, nothing is proved.
        missing: why the graph has no certificate; None if it has one, or if there is no graph.
        by_values: whether the image of some entry was found by running the network instead of from weights.
    """

    level: Level | None
    records: list[LayerRecord] = field(default_factory=list)
    reason: Opaque | None = None
    bound: float | None = None
    box: float = 1.0
    compared: Compared | None = None
    certificate: dict[str, Any] | None = None
    missing: Statement | None = None
    by_values: bool = False

    @property
    def is_by_comparison(self) -> bool:
        """Whether the graphs were compared as a whole; then nothing is known about single layers."""
        return self.level == "exact" and self.compared is not None

    @property
    def first_failure(self) -> LayerRecord | None:
        """The first layer that is not certified."""
        return next((record for record in self.records if record.level == "failed"), None)


def units_at_fault(proof: Proof | None) -> list[list[tuple[str, int]]]:
    """Sets of units, as (layer, unit), that must be active together for the first fault to show.

    A wrong weight has an effect if its own unit is active and its input is not zero. The input is a unit of the nearest
    earlier layer that has as many outputs as this layer has inputs.
    """
    failure = None if proof is None else proof.first_failure
    if proof is None or failure is None:
        return []
    # The two worst units are enough; each forms its own set.
    own = [[(failure.name, unit)] for unit in failure.units[:2]] or [[]]
    earlier = proof.records[: proof.records.index(failure)]
    # The preceding layer is the last one with as many outputs as this layer has inputs.
    before = next((r for r in reversed(earlier) if failure.inputs and r.sizes[1] == failure.sizes[0]), None)
    if before is not None:
        own = [[*units, (before.name, j)] for units in own for j in failure.inputs[:2]]
    return [units for units in own if units]


def follow_action(
    captured: Capture,
    inputs: InputClaim,
    outputs: Sequence[OutputClaim],
    example: Floats,
    *,
    box: float = 1.0,
    names: Callable[[str], str] = str,
    given: Mapping[int, Sequence[SignedPermutation]] | None = None,
) -> Proof:
    """Trace the action through a graph, and test every layer and output.

    Args:
        captured: the graph of the float64 copy.
        inputs: the action on the input; data only.
        outputs: the claimed action on each output.
        example: inputs at which the network is run, shape (n, *shape).
        box: inputs for which bounds are computed: |x| <= box, entry by entry.
        names: maps module names in the captured network to those for records.
        given: permutations to check instead of searching, by the position of the layer's record.

    Returns:
        The result from the weights. Its level is None if an operation is not supported; it never states a proof.
    """
    graph = Graph()
    followed: Followed | None = None
    end: Opaque | None = None
    try:
        followed = follow(captured, inputs.shape, graph)
    except NoCertificateError as error:
        place = error.place
        end = Opaque(error.reason, names(place.module) if place else "", place.source if place else "")
    if not graph.nodes:
        return Proof(None, reason=end, box=box)
    flat = example.reshape(len(example), -1)
    images = [inputs.apply(g, example).reshape(len(example), -1) for g in range(len(inputs.motions))]
    motions = [motion for motion in inputs.motions if isinstance(motion, SignedPermutation | AffineMap)]
    action = Action(graph, motions, Run(graph, flat, images))
    entries = [] if followed is None else list(followed.outputs.values())
    walk = LayerWalk(graph, action, names, given or {}, entries)
    for claim in outputs if followed is not None else ():
        end = end or _judge(walk, graph, claim, followed.outputs[claim.path] if followed is not None else None)
    walk.settle(ended=followed is None)
    levels = [record.level for record in walk.records]
    # A layer that fails stays failed, even if the rest of the network could not be followed.
    if "failed" in levels:
        return Proof("failed", walk.records, end, box=box)
    if end is not None:
        return Proof(None, walk.records, end, box=box)
    bound = walk.bound(followed.outputs, box) if followed is not None and action.run.is_small else None
    level: Level = "rounded" if "rounded" in levels else "exact"
    return Proof(level, walk.records, bound=bound, box=box, by_values=action.by_values)


def _judge(walk: LayerWalk, graph: Graph, claim: OutputClaim, entries: Any) -> Opaque | None:
    """Test one output; return the reason if that is not possible."""
    if any(callable(motion) for motion in claim.motions):
        return Opaque(state("SYM162"), output=claim.path)
    if (entries < 0).all():
        _judge_constant(walk, graph.numbers(entries).reshape(1, -1), claim)
    else:
        walk.judge_output(claim, entries)
    return None


def _judge_constant(walk: LayerWalk, y: Floats, claim: OutputClaim) -> None:
    # A constant output must be a fixed point of K.
    if all(np.array_equal(claim.apply(g, y, y), y) for g in range(len(claim.motions))):
        return
    cause = state("SYM133", deviations=True) if claim.role == "action_scale" else state("SYM133")
    walk.records.append(LayerRecord(claim.path, "output", "failed", cause=cause))


def same_numbers(left: Floats, right: Floats) -> bool:
    """Whether numbers are equal up to float64 rounding in a deep network."""
    return left.shape == right.shape and bool((difference(left, right) <= AGREEMENT * output_scale(left)).all())
