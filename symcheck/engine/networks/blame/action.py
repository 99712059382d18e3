"""The image of every entry of a network under the action: u_e(L x) = sign u_e'(x), node by node.

A function of entries propagates the action if its transformed arguments are the arguments of another row. For a linear
node the weights decide: rows of [W R, b] are matched with rows of [W, b]. If neither rule finds an image, the network
is run and all entries are compared by value. This also covers a part that is equivariant only in sum with others, as in
an average over a group. This module proves nothing; it shows where a proof ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from symcheck.array_types import Bools, Floats, Ints
from symcheck.certificate_checker import FUNCTIONS
from symcheck.engine.networks.blame.matching import CLOSE, ULPS, Match, judge
from symcheck.engine.networks.blame.orders import MOST_ORDERS, orders_of_rows, partners_alike, rows_among
from symcheck.engine.networks.blame.running import NEAR, Run
from symcheck.engine.networks.graph.nodes import Graph, Node, codes_of_rows
from symcheck.engine.networks.subject.values import AffineMap, Judgement, SignedPermutation, distinct_rows, first_places

Matcher = Callable[[int, Floats, Floats], Match | None]
"""Finds the image of each row: of a generator, and of rows at L x and at x."""
ROUNDED = ULPS * 2.0**-23
"""Relative distance up to which two entries are the same function up to float32 rounding: the published level for
weights."""
# the first entries without an image; all are searched for only if running the network finds an image of one of these
PROBED = 16
EPS = float(np.finfo(np.float64).eps)
_BLOCKS = range(2, 9)  # block sizes for which a rotation of the units is considered


@dataclass(eq=False)
class Weighed:
    """The result of matching the weights of a linear node.

    Attributes:
        rows: [W, b], columns of equal arguments added up.
        classes: the classes of units with equal weights.
        first: the first unit of each class.
        arguments: ids of the arguments of the first row.
        judgements: one for each generator and order of arguments.
        images: one per generator, if there is one order of arguments.
        inputs: the argument that replaces each one, under each generator that permutes them.
        gap: the largest distance of a transformed row from its image; None if none was matched.
        certain: whether every unit has a close image.
        found: whether most units have an image, under every generator.
    """

    rows: Floats
    classes: Ints
    first: Ints
    arguments: Ints
    judgements: list[Judgement] = field(default_factory=list)
    images: list[SignedPermutation] = field(default_factory=list)
    inputs: list[SignedPermutation] = field(default_factory=list)
    gap: Floats | None = None
    certain: bool = True
    found: bool = True

    @property
    def worst(self) -> Judgement | None:
        """The decisive judgement."""
        return max(self.judgements, key=lambda item: item.rank, default=None)


@dataclass(eq=False)
class Constants:
    """The result of matching the constants that scale or shift entries.

    Attributes:
        scale: True for factors, False for summands.
        judgements: one for each generator, of columns of constants.
        found: whether most of them are close to those of their images.
    """

    scale: bool
    judgements: list[Judgement] = field(default_factory=list)
    found: bool = True

    @property
    def worst(self) -> Judgement | None:
        """The decisive judgement; None if all are exact."""
        worst = max(self.judgements, key=lambda item: item.rank, default=None)
        return None if worst is None or worst.level == "exact" else worst


class Action:
    """The action of the generators on entries, for the nodes passed so far.

    Args:
        graph: the nodes.
        motions: the action of each generator on the input.
        run: the network's values at some inputs and their images.

    Attributes:
        motions: the motions as given.
        where: the image of each entry, shape (generators, entries); -1 if unknown.
        sign: the sign of each image.
        mixed: whether any generator mixes an entry with others by a matrix.
        by_values: whether some images were found only by running the network.
        rounded: entries whose image was found in this way, up to float32 rounding.
    """

    def __init__(self, graph: Graph, motions: Sequence[SignedPermutation | AffineMap], run: Run) -> None:
        self.graph = graph
        self.motions = motions
        self.run = run
        count = len(motions)
        self.where = np.full((count, graph.entries), -1)
        self.sign = np.ones((count, graph.entries), dtype=np.int64)
        self.mixed = np.zeros(graph.entries, dtype=bool)
        self.by_values = False
        self.rounded = np.zeros(graph.entries, dtype=bool)
        self._same = np.arange(graph.entries)  # the first entry with the same computation
        # entries of the form scale x[source] + offset, if a matrix acts on x; source is -1 for all others
        self._source = np.full(graph.entries, -1)
        self._scale, self._offset = np.ones(graph.entries), np.zeros(graph.entries)

    def known(self, entries: Ints) -> Bools:
        """Whether the image of each entry is known under every generator; a constant is its own image."""
        entries = np.asarray(entries)
        return np.asarray((entries < 0) | (self.where[:, np.maximum(entries, 0)] >= 0).all(axis=0))

    def canonical(self, entries: Ints) -> Ints:
        """Ids after identifying entries with the same computation and constants with the same value."""
        coded = self.graph.coded(entries)
        return np.asarray(np.where(coded < 0, coded, self._same[np.maximum(coded, 0)]))

    def images_of(self, x: Ints, generator: int) -> tuple[Ints, Ints, Bools]:
        """The images of canonical ids, their signs, and whether these are known."""
        places = np.maximum(x, 0)
        images = np.where(x < 0, x, self.where[generator][places])
        sign = np.where(x < 0, 1, self.sign[generator][places])
        return images, sign, (x < 0) | (images >= 0)

    def pass_node(self, node: Node, match: Matcher) -> Weighed | Constants | None:
        """Find the images of the next node's entries; return the result for its weights or constants, if any."""
        if node.op == "input":
            for generator, motion in enumerate(self.motions):
                if isinstance(motion, SignedPermutation):
                    self.where[generator, motion.index] = np.arange(node.size)
                    self.sign[generator, motion.index] = motion.sign
                else:
                    self.mixed[: node.size] = True
                    self._source[: node.size] = np.arange(node.size)
            return None
        self._pass_scaled(node)
        x = self.canonical(node.x)
        if node.op != "linear" or node.weight is None:
            self._note_alike(node, np.sort(x, axis=1) if node.op == "reduce" else x, np.zeros(1, dtype=np.int64))
            for generator in range(len(self.motions)):
                self._pass_function(node, x, generator)
            return self._pass_rest(node, x if node.function == "prod" else None)
        arguments = None if node.has_weights else x
        weighed, x = self._weigh(node, x)
        for generator, motion in enumerate(self.motions):
            if isinstance(motion, AffineMap) and self._reads_input(x):
                self._pass_matrix(node, weighed, motion, generator, match)
            else:
                self._pass_linear(node, weighed, x, generator, match)
        constants = self._pass_rest(node, arguments)
        return weighed if node.has_weights else constants

    def _pass_rest(self, node: Node, x: Ints | None) -> Constants | None:
        """Find the remaining images by running the network; with arguments x, also from constants."""
        self._look_among_values(node, NEAR)
        places = np.arange(node.start, node.start + node.size)
        constants = None if x is None or self.known(places).all() else self._pass_constants(node, x)
        self._look_among_values(node, ROUNDED)
        return constants

    # Functions

    def _pass_function(self, node: Node, x: Ints, generator: int) -> None:
        images, sign, known = self.images_of(x, generator)
        usable = known.all(axis=1)
        order = np.sort if node.op == "reduce" else _as_it_is
        turned = np.where(x < 0, self._opposite(x), images)
        fixed = x < 0
        if node.function == "prod":
            ways = [(images, usable, np.where(fixed, 1, sign).prod(axis=1))]
        else:
            upright, upside_down = (fixed | (sign == 1)).all(axis=1), (fixed | (sign == -1)).all(axis=1)
            parity = _parity(node)
            ways = [(images, usable & upright, np.ones(len(x), dtype=np.int64))]
            if parity:
                ways.append((turned, usable & upside_down, np.full(len(x), parity)))
            if node.function == "where":  # the condition is not negated
                rest = usable & _is_negated_behind(sign, fixed)
                ways.append((np.concatenate([images[:, :1], turned[:, 1:]], axis=1), rest, -np.ones(len(x), np.int64)))
        for moved, allowed, result in ways:
            partner = np.where(allowed, rows_among(order(moved, 1), order(x, 1)), -1)
            fits = (partner >= 0) & (self.where[generator][node.start : node.start + node.size] < 0)
            places = node.start + np.flatnonzero(fits)
            self.where[generator, places] = self._same[node.start + partner[fits]]
            self.sign[generator, places] = result[fits]

    def _opposite(self, x: Ints) -> Ints:
        """The codes of negated constants; other ids are unchanged."""
        result, fixed = x.copy(), x < 0
        codes, places = np.unique(x[fixed], return_inverse=True)
        numbers = self.graph.numbers_of(codes)
        result[fixed] = np.array([self.graph.code_of(-number) for number in numbers], dtype=np.int64)[places]
        return result

    def _note_alike(self, node: Node, rows: Ints, classes: Ints) -> None:
        codes = codes_of_rows(rows)[0]
        first = first_places(codes, int(codes.max(initial=-1)) + 1)[codes]
        units = first_places(classes, int(classes.max()) + 1)[classes]
        alike = node.start + first[:, None] * len(classes) + units[None, :]
        self._same[node.start : node.start + node.size] = alike.reshape(-1)

    def _pass_constants(self, node: Node, x: Ints) -> Constants | None:
        """Handle entries scaled or shifted by one constant each, if most constants match those of the images."""
        fixed = x < 0
        if x.shape[1] != 2 or not (fixed.sum(axis=1) == 1).all():
            return None
        values, numbers = x[~fixed], self.graph.numbers(node.x[fixed])
        constants = Constants(node.function == "prod")
        entries = node.start + np.arange(len(x))
        for generator in range(len(self.motions)):
            images, sign, known = self.images_of(values, generator)
            partner = partners_alike(images, values)
            if not (known & (partner >= 0)).all():
                return None
            factor = 1 if constants.scale else sign
            judgement = judge((factor * numbers)[:, None], numbers[partner][:, None])
            constants.judgements.append(judgement)
            far = np.abs(factor * numbers - numbers[partner]) > CLOSE * np.abs(numbers).max(initial=0.0)
            constants.found = constants.found and bool(far.mean() < 0.5)
            left = self.where[generator, entries] < 0
            if constants.found and judgement.level != "exact" and node.size == len(x):
                self.where[generator, entries[left]] = self._same[entries[partner[left]]]
                self.sign[generator, entries[left]] = sign[left]
                self.rounded[entries[left]] = True
        return constants

    # Linear nodes

    def _reads_input(self, x: Ints) -> bool:
        return len(x) == 1 and bool(((x >= 0) & (self._source[np.maximum(x, 0)] >= 0)).all())

    def _pass_scaled(self, node: Node) -> None:
        """Record scaled and shifted components of an input that transforms by a matrix, for a later layer."""
        fixed = node.x < 0
        summed = node.op == "linear" and node.weight is not None and len(node.weight) == 1
        if not (summed or node.function == "prod") or not (self._source >= 0).any():
            return
        entry, single = node.x.max(axis=1), (~fixed).sum(axis=1) == 1
        single &= self._source[np.maximum(entry, 0)] >= 0
        numbers = np.ones(node.x.shape)
        numbers[fixed] = self.graph.numbers(node.x[fixed])
        shift = np.zeros(len(node.x))
        if summed:
            numbers *= self.graph.numbers(node.weight)
            shift = np.where(fixed, numbers, 0.0).sum(axis=1)
            shift = shift if node.bias is None else shift + self.graph.numbers(node.bias)
            numbers[fixed] = 1.0
        factor = numbers.prod(axis=1)
        places, entry = node.start + np.flatnonzero(single), entry[single]
        self._source[places], self.mixed[places] = self._source[entry], True
        self._scale[places] = factor[single] * self._scale[entry]
        self._offset[places] = factor[single] * self._offset[entry] + shift[single]

    def _weigh(self, node: Node, x: Ints) -> tuple[Weighed, Ints]:
        """The rows of weights. Columns are added up if every row of arguments holds the same entry in them."""
        W = self.graph.numbers(node.weight)
        W = W.reshape(len(W), -1)
        b = np.zeros(len(W)) if node.bias is None else self.graph.numbers(node.bias)
        counts = (x != self.graph.code_of(0.0)).any(axis=0)
        if not node.has_weights and 0 < counts.sum() < len(counts):
            W, x = W[:, counts], x[:, counts]  # the sign of a zero is irrelevant
        _, first, inverse = np.unique(x[0], return_index=True, return_inverse=True)
        inverse = inverse.reshape(-1)
        if len(first) < x.shape[1] and (x == x[:, first][:, inverse]).all():
            order = np.argsort(np.argsort(first))  # columns keep their order of first appearance
            summed = np.zeros((len(W), len(first)))
            np.add.at(summed.T, order[inverse], W.T)
            W, x = summed, x[:, np.sort(first)]
        rows = np.concatenate([W, b[:, None]], axis=1) + 0.0
        unique, classes = distinct_rows(rows)
        self._note_alike(node, x, classes)
        return Weighed(rows, classes, first_places(classes, len(unique)), x[0]), x

    def _pass_matrix(self, node: Node, weighed: Weighed, motion: AffineMap, generator: int, match: Matcher) -> None:
        """Match a layer whose input transforms by a matrix, or consists of its scaled and shifted components."""
        W, arguments = np.zeros((len(weighed.rows), len(motion.offset))), weighed.arguments
        np.add.at(W.T, self._source[arguments], (weighed.rows[:, :-1] * self._scale[arguments]).T)
        b = weighed.rows[:, -1] + weighed.rows[:, :-1] @ self._offset[arguments]
        rows = np.concatenate([W, b[:, None]], axis=1)
        moved = np.concatenate([W @ motion.matrix, (W @ motion.offset + b)[:, None]], axis=1)
        size = max(float(np.abs(motion.matrix).max()), float(np.abs(motion.offset).max()))
        noise = (W.shape[1] + 2) * EPS * float(np.abs(W).sum(1).max()) * size + EPS * float(np.abs(b).max(initial=0.0))
        self._match_units(node, weighed, (moved, rows), np.zeros((1, 2), dtype=np.int64), generator, match, noise)

    def _pass_linear(self, node: Node, weighed: Weighed, x: Ints, generator: int, match: Matcher) -> None:
        images, sign, known = self.images_of(x, generator)
        usable = known.all(axis=1)
        partner = np.where(usable, rows_among(np.sort(images, axis=1), np.sort(x, axis=1)), -1)
        if not (partner >= 0).all():
            weighed.found = weighed.found and bool(usable.all() and (partner >= 0).all())
        rows = np.flatnonzero(partner >= 0)
        W, b = weighed.rows[:, :-1], weighed.rows[:, -1:]
        signs_known = np.where(images[rows] == self.graph.code_of(0.0), 0, sign[rows])
        orders = orders_of_rows(images[rows], signs_known, x[partner[rows]])
        if len(orders) > MOST_ORDERS:
            return
        added = node.weight is not None and W.size < node.weight.size
        noise = 4 * EPS * float(np.abs(W).max(initial=0.0)) if added else 0.0  # rounding of sums of columns
        for source, signs, chosen in orders:
            moved = np.concatenate([W[:, source] * signs, b], axis=1)
            pairs = np.stack([rows[chosen], partner[rows[chosen]]], axis=1)
            if len(orders) == 1:
                weighed.inputs.append(SignedPermutation(source, signs))
            self._match_units(node, weighed, (moved, weighed.rows), pairs, generator, match, noise)

    def _match_units(
        self,
        node: Node,
        weighed: Weighed,
        rows: tuple[Floats, Floats],
        pairs: Ints,
        generator: int,
        match: Matcher,
        noise: float,
    ) -> None:
        """Match rows of [W R, b] with those of [W, b]; pairs are rows of arguments and their images."""
        moved, usual = rows
        first, classes = weighed.first, weighed.classes
        found = match(generator, moved[first], usual[first])
        if found is None or not found.found:
            weighed.found = weighed.certain = False
            if found is not None:
                weighed.judgements.append(_judge_match(moved[first], usual[first], found, noise))
            if _turns_blocks(moved, usual):
                entries = node.start + pairs[:, :1] * len(classes) + np.arange(len(classes))
                self.mixed[entries] = True
            return
        judgement = _judge_match(moved[first], usual[first], found, noise)
        weighed.judgements.append(judgement)
        weighed.certain = weighed.certain and bool(found.close.all())
        image = found.permutation
        if len(weighed.images) == generator:
            weighed.images.append(image)
        if not node.has_weights and judgement.level != "exact":
            return  # a plain sum has no weights that could be rounded
        becomes = np.empty(len(first), dtype=np.int64)
        signs = np.empty(len(first), dtype=np.int64)
        becomes[image.index], signs[image.index] = np.arange(len(first)), image.sign
        targets = first[becomes[classes]]
        gap = np.abs(moved - signs[classes][:, None] * usual[targets])
        gap[gap <= noise] = 0.0
        weighed.gap = gap if weighed.gap is None else np.maximum(weighed.gap, gap)
        for row, partner in pairs:
            places = node.start + row * len(classes) + np.arange(len(classes))
            self.where[generator, places] = self._same[node.start + partner * len(classes) + targets]
            self.sign[generator, places] = signs[classes]

    # By running the network

    def _look_among_values(self, node: Node, near: float) -> None:
        places = node.start + np.arange(node.size)
        for generator in range(len(self.motions)):
            left = places[self.where[generator, places] < 0]
            if not len(left) or not self.run.is_small:
                continue
            probe = left[:: max(1, len(left) // PROBED)]
            if not (self.run.partners(generator, probe, near)[0] >= 0).any():
                continue  # the search is expensive, and in most networks only the faulty part has no image
            partners, sign = self.run.partners(generator, left, near)
            hit = partners >= 0
            self.by_values = self.by_values or bool(hit.any())
            self.rounded[left[hit]] |= near == ROUNDED
            self.where[generator, left[hit]] = self._same[partners[hit]]
            self.sign[generator, left[hit]] = sign[hit]


def _as_it_is(rows: Ints, axis: int) -> Ints:
    return rows


def _is_negated_behind(sign: Ints, fixed: Bools) -> Bools:
    """The rows in which all arguments except the first are negated."""
    first = fixed[:, 0] | (sign[:, 0] == 1)
    return np.asarray(first & (fixed[:, 1:] | (sign[:, 1:] == -1)).all(axis=1))


def _parity(node: Node) -> int:
    """The parity of a function, f(-x) = parity f(x): -1 if odd, 1 if even, 0 if neither."""
    if node.function == "place":
        return -1 if 2 * node.parameters[0] == node.x.shape[1] - 1 else 0
    if node.function == "pow":
        return 0 if node.parameters[0] % 1 else -1 if node.parameters[0] % 2 else 1
    return {"odd": -1, "even": 1}.get(FUNCTIONS[node.function][0], 0)


def _judge_match(moved: Floats, rows: Floats, match: Match, noise: float) -> Judgement:
    image = match.permutation
    return judge(moved[image.index], image.sign[:, None] * rows, noise)


def _turns_blocks(moved: Floats, rows: Floats) -> bool:
    """Whether blocks of units rotate, as in layers of a representation without signed permutations."""
    scale = float(np.abs(rows).max(initial=0.0))
    for size in _BLOCKS:
        if len(rows) % size or len(rows) == size or not scale:
            continue
        for arrange in (_in_blocks, _by_strides):
            before, after = arrange(rows, size), arrange(moved, size)
            turn = after @ np.linalg.pinv(before, rcond=1e-9)
            gap = np.abs(turn @ before - after).max()
            full = np.linalg.matrix_rank(before, tol=1e-9 * scale).min() == size
            near = np.abs(turn @ turn.swapaxes(1, 2) - np.eye(size)).max() <= ROUNDED
            if full and near and gap <= ROUNDED * scale:
                return True
    return False


def _in_blocks(rows: Floats, size: int) -> Floats:
    return rows.reshape(-1, size, rows.shape[1])


def _by_strides(rows: Floats, size: int) -> Floats:
    return rows.reshape(size, -1, rows.shape[1]).swapaxes(0, 1)
