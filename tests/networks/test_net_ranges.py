"""Ranges of entries: no input leaves them, and they are as narrow as the argument checks of distributions need."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from symcheck.engine.networks.blame.running import entries_at
from symcheck.engine.networks.graph.nodes import BATCH, Graph
from symcheck.engine.networks.graph.ranges import hold_always, ranges_of
from symcheck.engine.networks.graph.unbounded import _may_be_infinite

INF = np.inf


class Made:
    """Functions of two entries a and b of the input."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.a, self.b = (self.graph.input((2,), BATCH)[:, k] for k in range(2))

    def constant(self, number: float) -> np.ndarray:
        return self.graph.constants(np.full(BATCH, number))

    def of(self, function: str, *x: np.ndarray, parameters: tuple[float, ...] = ()) -> np.ndarray:
        return self.graph.pointwise(function, parameters, x, function)

    def product(self, *x: np.ndarray) -> np.ndarray:
        return self.graph.reduce("prod", np.stack(x, axis=-1), "product")

    def place(self, k: int, *x: np.ndarray) -> np.ndarray:
        return self.graph.reduce("place", np.stack(x, axis=-1), "place", (float(k),))

    def add(self, *x: np.ndarray, signs: tuple[float, ...] = ()) -> np.ndarray:
        return self.graph.add(x, signs or (1.0,) * len(x), "add")

    def shares(self, off: float = 0.0) -> list[np.ndarray]:
        parts = [self.of("exp", self.a), self.of("exp", self.b)]
        whole = self.of("reciprocal", self.add(*parts, *([self.constant(off)] if off else [])))
        return [self.product(part, whole) for part in parts]


def _linear(m: Made) -> np.ndarray:
    weight, bias = m.graph.constants(np.array([[-2.0, 3.0]])), m.graph.constants(np.array([0.5]))
    return m.graph.linear(np.stack([m.of("sigmoid", m.a), m.of("tanh", m.b)], -1), weight, bias, "layer")[..., 0]


def _shares_of(m: Made, a: np.ndarray, b: np.ndarray, sign: float = 1.0) -> np.ndarray:
    whole = m.of("reciprocal", m.add(a, b, signs=(1.0, sign)))
    return m.add(m.product(a, whole), m.product(b, whole))


# the least and the largest number, and whether it is positive for every input
TABLE: dict[str, tuple[Callable[[Made], np.ndarray], float, float, bool]] = {
    "an input": (lambda m: m.of("sin", m.a), -INF, INF, False),
    "exp": (lambda m: m.of("exp", m.a), 0.0, INF, True),
    "exp of what is bounded": (lambda m: m.of("exp", m.of("tanh", m.a)), np.exp(-1.0), np.exp(1.0), True),
    "sigmoid": (lambda m: m.of("sigmoid", m.a), 0.0, 1.0, True),
    "sigmoid of a sigmoid": (lambda m: m.of("sigmoid", m.of("sigmoid", m.a)), 0.5, np.e / (1 + np.e), True),
    "relu": (lambda m: m.of("relu", m.a), 0.0, INF, False),
    "relu of a negative number": (lambda m: m.of("relu", m.add(m.of("exp", m.a), signs=(-1.0,))), 0.0, 0.0, False),
    "relu of a positive number": (lambda m: m.of("relu", m.of("exp", m.a)), 0.0, INF, True),
    "softplus": (lambda m: m.of("softplus", m.a, parameters=(1.0, INF)), 0.0, INF, True),
    "tanh and one": (lambda m: m.add(m.of("tanh", m.a), m.constant(1.0)), 0.0, 2.0, True),
    "tanh and less": (lambda m: m.add(m.of("tanh", m.a), m.constant(0.9)), -0.1, 1.9, False),
    "elu and one": (lambda m: m.add(m.of("elu", m.a, parameters=(1.0, 1.0, 1.0)), m.constant(1.0)), 0.0, INF, True),
    "elu and less": (lambda m: m.add(m.of("elu", m.a, parameters=(2.0, 1.0, 1.0)), m.constant(1.0)), -1.0, INF, False),
    "a square": (lambda m: m.product(m.a, m.a), 0.0, INF, False),
    "a product": (lambda m: m.product(m.a, m.b), -INF, INF, False),
    "a product of bounded numbers": (lambda m: m.product(m.of("tanh", m.a), m.of("sigmoid", m.b)), -1.0, 1.0, False),
    "a product of positive numbers": (lambda m: m.product(m.of("exp", m.a), m.of("sigmoid", m.b)), 0.0, INF, True),
    "three negative factors": (
        lambda m: m.product(*[m.add(m.of("sigmoid", x), signs=(-1.0,)) for x in (m.a, m.b, m.a)]), -1.0, 0.0, False),
    "a root": (lambda m: m.of("pow", m.product(m.a, m.a), parameters=(0.5,)), 0.0, INF, False),
    "a root of anything": (lambda m: m.of("sqrt", m.of("tanh", m.a)), -INF, 1.0, False),
    "a root of a positive number": (lambda m: m.of("sqrt", m.of("exp", m.a)), 0.0, INF, True),
    "a fourth power": (lambda m: m.of("pow", m.a, parameters=(4.0,)), 0.0, INF, False),
    "a fifth power": (lambda m: m.of("pow", m.a, parameters=(5.0,)), -INF, INF, False),
    "a size": (lambda m: m.of("absolute", m.of("tanh", m.a)), 0.0, 1.0, False),
    "a size away from zero": (
        lambda m: m.of("absolute", m.add(m.of("sigmoid", m.a), m.constant(3.0), signs=(1.0, -1.0))), 2.0, 3.0, True),
    "a reciprocal": (lambda m: m.of("reciprocal", m.add(m.of("exp", m.a), m.constant(2.0))), 0.0, 0.5, True),
    "a reciprocal of anything": (lambda m: m.of("reciprocal", m.of("tanh", m.a)), -INF, INF, False),
    "the middle": (lambda m: m.place(1, m.a, m.constant(-20.0), m.constant(2.0)), -20.0, 2.0, False),
    "the least of positive numbers": (lambda m: m.place(0, m.of("exp", m.a), m.of("exp", m.b)), 0.0, INF, True),
    "the largest of two": (lambda m: m.place(1, m.of("exp", m.a), m.b), 0.0, INF, True),
    "the least of two": (lambda m: m.place(0, m.of("exp", m.a), m.b), -INF, INF, False),
    "a choice": (lambda m: m.of("where", m.a, m.of("exp", m.a), m.constant(1.0)), 0.0, INF, True),
    "a choice with a negative one": (lambda m: m.of("where", m.a, m.constant(-1.0), m.constant(1.0)), -1.0, 1.0, False),
    "a sum with weights": (_linear, -4.5, 3.5, False),
    "shares of one": (lambda m: m.add(*m.shares()), 1.0, 1.0, True),
    "shares of more than one": (lambda m: m.add(*m.shares(0.5)), 0.0, INF, True),
    "some of the shares": (lambda m: m.add(m.shares()[0], m.shares()[0]), 0.0, INF, True),
    "shares of numbers of any sign": (lambda m: _shares_of(m, m.of("tanh", m.a), m.of("tanh", m.b)), -INF, INF, False),
    "shares of a difference": (lambda m: _shares_of(m, m.of("exp", m.a), m.of("exp", m.b), -1.0), -INF, INF, False),
    "a choice with zero": (lambda m: m.of("where", m.a, m.of("exp", m.a), m.constant(0.0)), 0.0, INF, False),
    "a choice of zero": (lambda m: m.of("where", m.a, m.constant(0.0), m.of("exp", m.a)), 0.0, INF, False),
    "one less a sigmoid": (lambda m: m.add(m.constant(1.0), m.of("sigmoid", m.a), signs=(1.0, -1.0)), 0.0, 1.0, False),
    "a cube and another factor": (lambda m: m.product(m.a, m.a, m.a, m.b), -INF, INF, False),
    "two squares": (lambda m: m.product(m.a, m.b, m.b, m.a), 0.0, INF, False),
    "elu of a positive number": (
        lambda m: m.of("elu", m.add(m.of("sigmoid", m.a), m.constant(2.0)), parameters=(1.0, 2.0, 1.0)),
        4.0, INF, True),
    "a size of a positive number": (lambda m: m.of("absolute", m.of("sigmoid", m.a)), 0.0, 1.0, True),
    "a reciprocal less what it reaches": (
        lambda m: m.add(m.of("reciprocal", m.place(0, m.of("exp", m.a), m.constant(2.0))), m.constant(0.5),
                        signs=(1.0, -1.0)), 0.0, INF, False),
    "whether exp is positive": (lambda m: m.of("positive", m.of("exp", m.a)), 1.0, 1.0, True),
    "whether a number is positive": (lambda m: m.of("positive", m.a), 0.0, 1.0, False),
    "whether a negative number is positive": (
        lambda m: m.of("positive", m.add(m.of("relu", m.a), signs=(-1.0,))), 0.0, 0.0, False),
    "whether exp is zero": (lambda m: m.of("zero", m.of("exp", m.a)), 0.0, 0.0, False),
    "whether relu is zero": (lambda m: m.of("zero", m.of("relu", m.a)), 0.0, 1.0, False),
    "whether a number up to zero is zero": (
        lambda m: m.of("zero", m.add(m.of("relu", m.a), signs=(-1.0,))), 0.0, 1.0, False),
    "whether a negative number is zero": (
        lambda m: m.of("zero", m.add(m.of("sigmoid", m.a), m.constant(2.0), signs=(1.0, -1.0))), 0.0, 0.0, False),
    "whether nothing is zero": (
        lambda m: m.of("zero", m.of("relu", m.add(m.of("exp", m.a), signs=(-1.0,)))), 1.0, 1.0, True),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_a_function_lies_in_its_range(name: str) -> None:
    make, low, high, positive = TABLE[name]
    made = Made()
    ids = make(made)
    ranges, entry = ranges_of(made.graph), int(ids[0]) // BATCH
    assert (ranges.low[entry], ranges.high[entry]) == pytest.approx((low, high), abs=1e-12)
    assert bool(ranges.positive[entry]) == positive
    assert hold_always(made.graph, ids) == (low > 0)
    # no input leaves it
    inputs = np.random.default_rng(0).normal(size=(200, 2)) * 3
    values = entries_at(made.graph, inputs)[entry]
    values = values[np.isfinite(values)]
    assert (values >= ranges.low[entry] - 1e-9).all()
    assert (values <= ranges.high[entry] + 1e-9).all()


def test_a_constant_holds_where_it_is_not_zero() -> None:
    made = Made()
    assert hold_always(made.graph, made.constant(1.0))
    assert not hold_always(made.graph, made.constant(0.0))
    exp, any_number = (made.of("positive", x) for x in (made.of("exp", made.a), made.b))
    assert hold_always(made.graph, np.concatenate([exp, made.constant(1.0)]))
    for other in (made.constant(0.0), any_number, np.concatenate([made.constant(1.0), made.constant(0.0)])):
        assert not hold_always(made.graph, np.concatenate([exp, other]))
        assert not hold_always(made.graph, np.concatenate([other, made.constant(1.0)]))


# numbers with bounds of every kind, and these bounds
BOXES: dict[str, tuple[Callable[[Made, np.ndarray], np.ndarray], float, float]] = {
    "any": (lambda m, x: x, -INF, INF),
    "from zero on": (lambda m, x: m.of("relu", x), 0.0, INF),
    "up to zero": (lambda m, x: m.add(m.of("relu", x), signs=(-1.0,)), -INF, 0.0),
    "zero": (lambda m, x: m.of("relu", m.add(m.of("exp", x), signs=(-1.0,))), 0.0, 0.0),
    "bounded": (lambda m, x: m.of("tanh", x), -1.0, 1.0),
    "below minus two": (lambda m, x: m.add(m.of("relu", x), m.constant(2.0), signs=(-1.0, -1.0)), -INF, -2.0),
    "between three and four": (lambda m, x: m.add(m.of("sigmoid", x), m.constant(3.0)), 3.0, 4.0),
}


@pytest.mark.parametrize("second", BOXES)
@pytest.mark.parametrize("first", BOXES)
def test_a_product_reaches_the_products_of_the_bounds_and_no_more(first: str, second: str) -> None:
    """Numbers stay finite, so that zero times an unbounded factor is zero."""
    made = Made()
    (make, *ends), (other, *others) = BOXES[first], BOXES[second]
    ids = made.product(make(made, made.a), other(made, made.b))
    ranges, entry = ranges_of(made.graph), int(ids[0]) // BATCH
    large = 1e100  # stands for every finite number
    corners = [np.clip(x, -large, large) * np.clip(y, -large, large) for x in ends for y in others]
    expected = [np.sign(x) * INF if abs(x) >= large else x for x in (min(corners), max(corners))]
    assert [ranges.low[entry], ranges.high[entry]] == expected


POINTS = np.array([-150.0, -3.5, -2.0, -1.0, -0.9, 0.0, 0.9, 1.0, 3.5, 150.0], dtype=np.float32)
UNDEFINED: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(("exp", "expm1", "sinh", "cosh", "tanh", "sin", "sqrt", "log", "log1p", "log2"), ()),
    **dict.fromkeys(("reciprocal", "arcsin", "arccos", "arctanh"), ()),
    **{f"pow {power}": (power,) for power in (-2.0, -1.0, -0.5, 0.5, 1.5, 2.0, 3.0)},
}


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("name", UNDEFINED)
def test_a_value_may_be_infinite_or_undefined_exactly_where_float32_computes_one(name: str, box: str) -> None:
    made = Made()
    make, low, high = BOXES[box]
    points = POINTS[np.clip(POINTS, low, high) == POINTS]
    function, *_ = name.split()
    with np.errstate(all="ignore"):
        values = getattr(np, "power" if function == "pow" else function)(points, *np.float32(UNDEFINED[name]))
    made.of(function, make(made, made.a), parameters=UNDEFINED[name])
    assert _may_be_infinite(made.graph, made.graph.nodes[-1]).any() == (not np.isfinite(values).all())
    made.of("any f", make(made, made.b))
    assert _may_be_infinite(made.graph, made.graph.nodes[-1]).all()
