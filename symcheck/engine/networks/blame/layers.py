"""The layers of a network under a group: the result from the weights of each, and the layer at fault.

Calls of the network are passed in order. A call is reported as the cause on two conditions: it is the first call whose
inputs all have an image and whose result has an entry without one, and this entry reaches an output that violates the
claim. A part that is equivariant only in sum with others is therefore not blamed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from symcheck.array_types import Floats, Ints
from symcheck.engine.clock import raise_if_late
from symcheck.engine.networks.blame.action import EPS, Action, Constants, Weighed
from symcheck.engine.networks.blame.bounds import Bounds
from symcheck.engine.networks.blame.causes import flattened_before, squares_of, why_no_image
from symcheck.engine.networks.blame.matching import Match, judge, match_rows
from symcheck.engine.networks.blame.parts import Part, are_answers, parts_of, span_of
from symcheck.engine.networks.blame.running import NEAR, values_of
from symcheck.engine.networks.blame.weight_orbits import TiedWeights, name_weights
from symcheck.engine.networks.capture.places import Place
from symcheck.engine.networks.graph.nodes import Graph, Node, Step
from symcheck.engine.networks.samples.entry_scales import difference, output_scale
from symcheck.engine.networks.subject.claims import Motion, OutputClaim, as_affine
from symcheck.engine.networks.subject.values import AffineMap, Judgement, LayerRecord, SignedPermutation
from symcheck.statements.statement import state

GEOMETRY = ("SYM101", "SYM102", "SYM103", "SYM104", "SYM105", "SYM120")
"""Causes that do not involve weights."""
PARAMETRISED = ".parametrizations."
"""Torch's infix between a layer's name and the module that computes its weight; a fault is reported for the layer."""


@dataclass(eq=False)
class Head:
    """A layer with weights, whose units are entries of the network.

    Attributes:
        node: the node of the graph.
        weighed: the result from its weights.
        record: the record of the layer; None if there is none.
    """

    node: Node
    weighed: Weighed
    record: LayerRecord
    steps: tuple[Step, ...]


class LayerWalk:
    """Passes the calls of a network in order, and keeps a record of each layer.

    Args:
        graph: its nodes.
        action: the action of the generators on them, extended node by node.
        names: maps module names in the captured network to those for records.
        given: permutations to check instead of searching, by the position of the layer's record.
        outputs: the entries of the outputs.
    """

    def __init__(
        self,
        graph: Graph,
        action: Action,
        names: Callable[[str], str],
        given: Mapping[int, Sequence[SignedPermutation]],
        outputs: Sequence[Ints],
    ) -> None:
        self.graph = graph
        self.action = action
        self.records: list[LayerRecord] = []
        self._names = names
        self._given = given
        self._suspects: dict[int, LayerRecord] = {}
        self._spoiled = np.full(graph.entries, -1)  # the suspect that left an entry without an image
        self._accused: set[int] = set()
        self._heads: list[Head] = []
        self._claimed: list[tuple[Head, Ints, Floats]] = []
        self._needed = np.zeros(graph.entries, dtype=np.int64)  # the last part that reads each entry
        parts = parts_of(graph)
        for place, part in enumerate(parts):
            self._needed[part.reads] = place
        for entries in outputs:
            self._needed[entries[entries >= 0]] = len(parts)
        for place, part in enumerate(parts):
            raise_if_late()
            self._pass_part(place, part)

    # Layers

    def _pass_part(self, place: int, part: Part) -> None:
        records: list[LayerRecord] = []
        for node in self.graph.nodes[part.first : part.last]:
            said = self.action.pass_node(node, self._matcher(len(self.records) + len(records)))
            if isinstance(said, Weighed):
                records.append(self._weighed_record(part, node, said))
            elif said is not None and said.worst is not None:
                scaled = self._scaled_record(part, said, said.worst)
                if scaled.rank > max((record.rank for record in records), default=(0, 0.0)):
                    records = [scaled]
        entries = np.arange(*span_of(self.graph, part))
        entries = entries[self._needed[entries] > place]
        unknown = entries[~self.action.known(entries)]
        if not records and (len(unknown) or (part.place.kind and self._parameters_of(part))):
            records = [self._plain_record(part)]
        if not len(unknown):
            rounded = self.action.rounded[entries].any()
            if rounded and not records:
                records = [self._plain_record(part)]
            for record in records:
                record.level = "rounded" if rounded and record.residual is None else record.level
            # the weights do not match, but all entries have an image
            self.records += [record for record in records if record.matched]
            return
        self._suspect(part, records, unknown)

    def _parameters_of(self, part: Part) -> list[str]:
        """The modules, or names, of the parameters among the arguments of a call's functions."""
        read = [node.x[node.x < 0] for node in self.graph.nodes[part.first : part.last]]
        return [owner for ids in read if ids.size and (owner := self.graph.layer(ids, ""))]

    def _suspect(self, part: Part, records: list[LayerRecord], unknown: Ints) -> None:
        reads = np.setdiff1d(part.reads, np.arange(*span_of(self.graph, part)))
        fine = self.action.known(reads) | self.action.mixed[np.maximum(reads, 0)]
        if not fine.all():
            earlier = self._spoiled[reads[~fine]]
            self._spoiled[unknown] = earlier[earlier >= 0].min(initial=len(self.graph.nodes))
            return
        if self.action.mixed[unknown].all() or are_answers(part):
            return
        record = self._record_at_fault(part, records, unknown)
        # weights are not at fault if they were unmatched only because their inputs already had no image
        records = [*(other for other in records if other is not record and other.matched), record]
        fault = why_no_image(self.graph, self.action, part.steps, part.place)
        if fault.place != part.place:  # an earlier operator rearranged the call's input
            record = LayerRecord(self._name(fault.place, None), fault.place.text, source=fault.place.source)
            records = [record]
        record.level, record.matched, record.certain = "failed", False, False
        if record.cause is None or fault.cause.code in GEOMETRY:
            record.cause = fault.cause
        if fault.cause.code in GEOMETRY:
            record.residual = record.ulps = None  # the cause is geometric; no weight is wrong
        self.records += records
        self._suspects[len(self.records)] = record
        self._spoiled[unknown] = len(self.records)

    def _record_at_fault(self, part: Part, records: list[LayerRecord], unknown: Ints) -> LayerRecord:
        """The record of the first node of a call whose entries have no image; a new one if it has no weights."""
        first, wanted = None, unknown
        for node in reversed(self.graph.nodes[part.first : part.last]):
            own = wanted[(wanted >= node.start) & (wanted < node.start + node.size)]
            if len(own):
                reads = node.x[(own - node.start) // (node.size // len(node.x))]
                reads = np.unique(reads[~self.action.known(reads)])
                wanted = np.concatenate([wanted, reads])
                first = first if len(reads) else node
        weighed = {head.node: head.record for head in self._heads if any(head.record is item for item in records)}
        if first is not None and first in weighed:
            return weighed[first]
        left = [record for record in records if all(record is not other for other in weighed.values())]
        return left[-1] if left else self._plain_record(part)

    def _matcher(self, place: int) -> Callable[[int, Floats, Floats], Match | None]:
        """Match rows by search, or by the permutations of a certificate."""
        given = self._given.get(place, ())

        def match(generator: int, moved: Floats, rows: Floats) -> Match | None:
            fits = generator < len(given) and given[generator].size == len(rows) and given[generator].is_permutation
            return Match(given[generator], np.ones(len(rows), dtype=bool)) if fits else match_rows(moved, rows)

        return match

    def _name(self, place: Place, node: Node | None) -> str:
        owner = "" if node is None else self.graph.layer(node.weight, "")
        if place.kind and not place.module:
            return ""  # the network is a single layer, which has no name
        owner = owner.partition(PARAMETRISED)[0]
        if owner and "." not in owner and self._names(place.module):
            owner = ""  # a parameter of the whole network that one of its parts uses
        named = self._names(owner or place.module)
        return named or f"{place.operation} at {place.source}"

    def _plain_record(self, part: Part) -> LayerRecord:
        """The record of a call without weights.

        If the call is in the network's own code, it is named after a parameter that it reads.
        """
        name = self._name(part.place, None)
        if not self._names(part.place.module):
            name = next((self._names(owner) for owner in self._parameters_of(part)), name)
        return LayerRecord(name, part.place.text, source=part.place.source)

    def _scaled_record(self, part: Part, constants: Constants, worst: Judgement) -> LayerRecord:
        record = self._plain_record(part)
        record.take(worst)
        record.certain = constants.found
        name = "scale" if constants.scale else "shift"
        record.place = f"{name} of entry {worst.place[0]}"
        normalises = "norm" in part.place.operation
        if worst.level == "failed":
            code = "SYM110" if "batch_norm" in part.place.operation else "SYM111"
            kind = part.place.operation if normalises else "constant"
            # if no two constants agree, no single unit is at fault
            units = list(record.units) if constants.found else []
            record.cause = state(code, kind=kind, constant=name, units=units)
        return record

    def _weighed_record(self, part: Part, node: Node, weighed: Weighed) -> LayerRecord:
        record = LayerRecord(self._name(part.place, node), part.place.text, source=part.place.source)
        record.matched, record.certain = weighed.found, weighed.certain
        record.sizes = (weighed.rows.shape[1] - 1, len(weighed.rows))
        worst = weighed.worst
        if worst is not None:
            record.take(worst, weighed.first)
            record.inputs = tuple(column for column in worst.columns if column < record.sizes[0])
            record.place = self._place(weighed, worst)
        if weighed.found:
            record.images = tuple(weighed.images)
            squares = [square.name for square in squares_of(self.action, part.steps[-1].given) if square is not None]
            turned = f"{', '.join(squares)} with channels: " if len(squares) == len(self.action.where) else ""
            record.representation = turned + "; ".join(image.text() for image in weighed.images)
        elif worst is not None:
            record.level = "failed"
            filters = {"filters": True} if "conv" in part.place.operation else {}
            entries = {"units": list(record.units), "inputs": list(record.inputs)}
            record.cause = state("SYM130", **entries, **filters, **flattened_before(self.action, part.steps))
        self._heads.append(Head(node, weighed, record, part.steps))
        return record

    def _place(self, weighed: Weighed, worst: Judgement) -> str:
        row, column = worst.place
        places = [(row, column)]
        complete = len(weighed.images) == len(weighed.inputs) == len(self.action.where)
        if weighed.found and complete and worst.level == "failed":
            tied = TiedWeights(weighed.rows[weighed.first], weighed.images, weighed.inputs)
            places = tied.blame(row, column) or places
        units = [(int(weighed.first[i]), j) for i, j in places]
        return name_weights("unit", units, weighed.rows.shape[1] - 1)

    # Outputs

    def judge_output(self, claim: OutputClaim, entries: Ints) -> None:
        """Compare the action on an output with the claim, and find the call to blame."""
        if self._judge_head(claim, entries):
            return
        if all(self._moves(entries, generator, motion) for generator, motion in enumerate(claim.motions)):
            return
        spoilers = self._spoiled[entries[entries >= 0]]
        if (spoilers >= 0).any():
            self._accused.add(int(spoilers[spoilers >= 0].min()))
        else:
            self._blame_output(claim, entries)

    def _moves(self, entries: Ints, generator: int, motion: Motion) -> bool:
        if isinstance(motion, SignedPermutation) and (entries >= 0).all():
            source = self.action.canonical(entries[motion.index.argsort()])
            where, sign = self.action.where[generator][entries], self.action.sign[generator][entries]
            wanted = motion.sign[motion.index.argsort()]
            if np.array_equal(where, source) and np.array_equal(sign, wanted):
                return True
        run = self.action.run
        if not run.is_small:
            return False
        at_x, at_image = (values_of(self.graph, entries, values) for values in (run.at_x, run.at_images[generator]))
        expected = OutputClaim("", "", len(entries), (motion,)).apply(0, at_x.T, at_x.T).T
        return bool((difference(expected, at_image) <= NEAR * output_scale(expected, at_image)).all())

    def _blame_output(self, claim: OutputClaim, entries: Ints) -> None:
        """Record the fault of an output whose entries all have images, but not the claimed ones."""
        owner = entries[entries >= 0].max(initial=0)
        parts = [part for part in parts_of(self.graph) if owner in range(*span_of(self.graph, part))]
        place = parts[-1].place if parts else Place()
        record = next(reversed(self.records), None)
        head = next((head for head in reversed(self._heads) if head.record is record), None)
        own = np.zeros(0, dtype=np.int64) if head is None else head.node.start + np.arange(head.node.size)
        # if the head transforms as claimed, the fault lies in the operations after it
        moves = len(own) == claim.size and all(self._moves(own, g, motion) for g, motion in enumerate(claim.motions))
        if record is None or moves or (parts and parts[-1].steps and not record.name):
            record = LayerRecord(self._name(place, None) if parts else claim.path, place.text or "output")
            self.records.append(record)
        record.level = "failed"
        record.cause = state("SYM131", output=claim.path, role=claim.role, permuted=True)

    def _judge_head(self, claim: OutputClaim, entries: Ints) -> bool:
        """Test the last layer by the output's own action, [W R, b] = K [W, b]; return whether that applies."""
        head = next((h for h in self._heads if _is_in(entries, h.node) and len(h.node.x) == 1), None)
        if head is None:
            return False
        units = entries - head.node.start
        rows = head.weighed.rows
        judgements: list[Judgement] = []
        gap = np.zeros((len(units), rows.shape[1]))
        x = self.action.canonical(head.weighed.arguments)
        for generator, motion in enumerate(claim.motions):
            moved = self._moved_rows(x, rows[units], generator)
            if moved is None or callable(motion):
                return False
            wanted, rounding = _moved_by_claim(motion, rows[units])
            judgements.append(judge(moved[0], wanted, moved[1] + rounding))
            apart = np.abs(moved[0] - wanted)
            gap = np.maximum(gap, np.where(apart <= moved[1] + rounding, 0.0, apart))
        self._take_head(head, claim, max(judgements, key=lambda item: item.rank), units)
        self._claimed.append((head, units, gap))
        return True

    def _moved_rows(self, x: Ints, rows: Floats, generator: int) -> tuple[Floats, float] | None:
        """[W R, b] of a layer with the given inputs; None if the action does not permute these among themselves."""
        motion = self.action.motions[generator]
        if isinstance(motion, AffineMap):
            if not (len(x) == len(motion.offset) and np.array_equal(x, np.arange(len(x)))):
                return None
            moved = np.concatenate(
                [rows[:, :-1] @ motion.matrix, (rows[:, :-1] @ motion.offset + rows[:, -1])[:, None]], axis=1
            )
            return moved, (len(x) + 2) * EPS * float(np.abs(rows).sum(1).max(initial=0.0)) * float(
                max(1.0, np.abs(motion.matrix).max(initial=0.0), np.abs(motion.offset).max(initial=0.0))
            )
        images, sign, known = self.action.images_of(x, generator)
        if not known.all() or not np.array_equal(np.sort(images), np.sort(x)):
            return None
        source = np.empty(len(x), dtype=np.int64)
        source[np.argsort(x, kind="stable")] = np.argsort(images, kind="stable")
        moved = np.concatenate([rows[:, :-1][:, source] * sign[source], rows[:, -1:]], axis=1)
        return moved, 0.0 if len(np.unique(x)) == len(x) else 4 * EPS * float(np.abs(rows).max(initial=0.0))

    def _take_head(self, head: Head, claim: OutputClaim, worst: Judgement, units: Ints) -> None:
        judged = replace(head.record, cause=None, matched=True, certain=True)
        judged.take(worst, units)
        judged.inputs = tuple(column for column in worst.columns if column < judged.sizes[0])
        judged.place = name_weights("output", self._blamed(head, claim, worst, units), judged.sizes[0])
        judged.representation = judged.representation or f"{claim.role} representation"
        if worst.level == "failed":
            flattened = {} if head.weighed.found and head.weighed.certain else flattened_before(self.action, head.steps)
            listed = {"units": list(judged.units), "inputs": list(judged.inputs)}
            judged.cause = state("SYM131", output=claim.path, role=claim.role, **listed, **flattened)
        if head.record not in self.records:
            self.records.append(head.record)
        # units that other functions also read keep the judgement from their weights
        head.record.settled |= head.weighed.found and not set(head.record.units) <= set(units.tolist())
        head.record.settle(judged)
        for key, record in list(self._suspects.items()):
            if record is head.record:
                del self._suspects[key]

    def _blamed(self, head: Head, claim: OutputClaim, worst: Judgement, units: Ints) -> list[tuple[int, int]]:
        """The rows and columns of [W, b] that explain a difference between transformed rows."""
        row, column = worst.place
        motions = [motion for motion in claim.motions if isinstance(motion, SignedPermutation)]
        inputs = head.weighed.inputs
        if len(motions) < len(claim.motions) or len(inputs) != len(motions) or len(units) != len(head.weighed.rows):
            return [worst.place]
        tied = TiedWeights(head.weighed.rows, motions, inputs)
        for motion in motions:
            source = int(np.flatnonzero(motion.index == row)[0])
            if places := tied.blame(source, column):
                return places
        return [worst.place]

    def bound(self, outputs: Mapping[str, Ints], box: float) -> float | None:
        """Largest |K f(x) - f(L x)| over a box of inputs, if known; each layer's bound goes into its record."""
        gaps = {head.node.start: head.weighed.gap for head in self._heads if head.weighed.gap is not None}
        bounds = Bounds(self.graph, self.action, gaps, box)
        for head in self._heads:
            drift = bounds.drift[head.node.start : head.node.start + head.node.size].max(initial=0.0)
            head.record.bound = float(drift) if np.isfinite(drift) else None
        worst = 0.0
        for entries in outputs.values():
            claimed = next((item for item in self._claimed if _is_in(entries, item[0].node)), None)
            if claimed is None:
                largest = bounds.drift[entries[entries >= 0]].max(initial=0.0)
            else:
                head, units, gap = claimed
                whole = gap.shape[1] - 1 == head.node.x.shape[1]
                largest = bounds.of_rows(head.node, units, gap) if whole else np.inf
                head.record.bound = float(largest) if np.isfinite(largest) else None
            worst = max(worst, float(largest))
        return worst if np.isfinite(worst) else None

    def settle(self, *, ended: bool) -> None:
        """Keep the suspects that affect an output, or all of them if the network was not traced to it."""
        if ended:
            return
        innocent = [record for key, record in self._suspects.items() if key not in self._accused]
        self.records = [record for record in self.records if all(record is not other for other in innocent)]


def _is_in(entries: Ints, node: Node) -> bool:
    return bool(len(entries)) and bool(((entries >= node.start) & (entries < node.start + node.size)).all())


def _moved_by_claim(motion: SignedPermutation | AffineMap, rows: Floats) -> tuple[Floats, float]:
    """K [W, b] with the offset of K in the last column, and the rounding error of this product."""
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
    return moved, (len(rows) + 2) * EPS * size
