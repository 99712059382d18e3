"""Causes of a broken claim by themselves: windows, layers of one call, and other claims that would hold."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from symcheck.engine.networks.blame import causes, diagnosis
from symcheck.engine.networks.blame.causes import Axis
from symcheck.engine.networks.blame.squares import SQUARES, Square
from symcheck.engine.networks.graph.nodes import BATCH
from symcheck.engine.networks.subject.claims import InputClaim, OutputClaim
from symcheck.engine.networks.subject.values import AffineMap, Opaque, SignedPermutation
from symcheck.statements.statement import state

ANY: Any = None
TURN = next(square for square in SQUARES if square.name == "rot90")
FLIP = next(square for square in SQUARES if square.name == "flip_lr")


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "dilation", "pad"),
    [
        (7, 3, 2, 1, 0),
        (8, 3, 2, 1, 0),
        (8, 3, 2, 1, 1),
        (9, 2, 2, 3, 0),
        (10, 3, 3, 2, 2),
        (5, 5, 4, 1, 0),
        (6, 1, 4, 1, 0),
    ],
)
def test_a_strided_window_commutes_with_a_flip_exactly_if_no_entry_is_left_over(
    size: int, kernel: int, stride: int, dilation: int, pad: int
) -> None:
    axis = Axis(size, kernel, stride, dilation, pad)
    window = dilation * (kernel - 1) + 1
    covered = (nn.functional.conv1d(torch.ones(1, 1, size + 2 * pad), torch.ones(1, 1, kernel), stride=stride,
                                    dilation=dilation).shape[-1] - 1) * stride + window  # fmt: skip
    assert axis.rest == size + 2 * pad - covered
    problem = axis.problem("flip_lr")
    assert problem.fields["window"] == window
    assert (problem.fields["size"], problem.fields["padding"], problem.fields["stride"]) == (size, 2 * pad, stride)
    assert problem.fields["reach"] == size + 2 * pad - window
    smaller, larger = problem.fields["sizes"]  # type: ignore[misc]
    for other in (smaller, larger):
        assert Axis(other, kernel, stride, dilation, pad).rest == 0
    assert smaller <= size < larger


def step_of(name: str, *args: Any, given: Any, ids: Any = None, operation: str = "") -> Any:
    operator = SimpleNamespace(target=SimpleNamespace(_schema=SimpleNamespace(name=f"aten::{name}")), args=args)
    place = SimpleNamespace(operation=operation or name, kind="", text=name)
    return SimpleNamespace(operator=operator, given=given, ids=ids, place=place, first=0, last=0)


X = np.zeros((1, 3, 8, 6))


@pytest.mark.parametrize(
    ("step", "axes"),
    [
        (step_of("convolution", None, None, None, [2], [1], [3], False, [0], 1, given=[X, np.zeros((4, 3, 5, 2))]),
         [Axis(8, 5, 2, 3, 1), Axis(6, 2, 2, 3, 1)]),
        (step_of("convolution", None, None, None, [2, 1], [1, 0], [1, 3], False, [0], 1,
                 given=[X, np.zeros((4, 3, 5, 2))]),
         [Axis(8, 5, 2, 1, 1), Axis(6, 2, 1, 3, 0)]),
        (step_of("convolution", None, None, None, [2], [1], [3], True, [0], 1, given=[X, np.zeros((4, 3, 5, 2))]), []),
        (step_of("max_pool2d", None, [3, 2], given=[X]), [Axis(8, 3, 3, 1, 0), Axis(6, 2, 2, 1, 0)]),
        (step_of("max_pool2d", None, [3], [], given=[X]), [Axis(8, 3, 3, 1, 0), Axis(6, 3, 3, 1, 0)]),
        (step_of("max_pool2d", None, [3], [2], [1], [4], given=[X]), [Axis(8, 3, 2, 4, 1), Axis(6, 3, 2, 4, 1)]),
        (step_of("avg_pool2d", None, [3], [2], [1], True, given=[X]), [Axis(8, 3, 2, 1, 1), Axis(6, 3, 2, 1, 1)]),
    ],
)  # fmt: skip
def test_windows_have_the_sizes_steps_and_margins_of_their_operator(step: Any, axes: list[Axis]) -> None:
    assert causes._axes(step, causes.operator_name(step.operator)) == axes


def image_action(*squares: Square, size: int = 6, channels: int = 1, sign: int = 1) -> Any:
    """An action by symmetries of the square on the first entries of a graph, and the ids of that image."""
    count = channels * size * size
    grid = np.arange(count).reshape(channels, size, size)
    # the image of the entry at p is the entry that stands at p in the transformed picture
    where = np.stack([square.apply(grid).reshape(-1) for square in squares])
    signs = np.full(where.shape, sign)
    action: Any = SimpleNamespace(where=where, sign=signs, mixed=np.zeros(count, bool), canonical=lambda ids: ids)
    action.images_of = lambda ids, generator: (where[generator][ids], signs[generator][ids])
    return action, (grid[None] * BATCH).astype(np.float64)


@pytest.mark.parametrize("square", SQUARES, ids=lambda square: str(square.name))
def test_the_action_on_an_image_is_named_by_its_square(square: Square) -> None:
    action, ids = image_action(square, channels=2)
    assert [known.name for known in causes.squares_of(action, [ids]) if known] == [square.name]
    found = causes._square_of(action, [ids])
    assert (found is None) is (square.name == "the identity")
    assert causes.squares_of(action, [ids[:, 0]]) == []
    assert causes.squares_of(action, []) == []
    other, _ = image_action(square)
    other.where[0][:2] = other.where[0][[1, 0]]
    assert causes.squares_of(other, [ids[:, :1]]) == [None]
    other.where[0][0] = -1
    assert causes.squares_of(other, [ids[:, :1]]) == [None]


@pytest.mark.parametrize(
    ("args", "square", "code"),
    [
        (([1], [0], [1], False, [0]), TURN, None),
        (([2], [0], [1], False, [0]), TURN, "SYM101"),
        (([2], [0], [1], False, [0]), FLIP, "SYM101"),
        (([2, 1], [0], [1], False, [0]), TURN, "SYM103"),
        (([1, 1], [1, 0], [1], False, [0]), TURN, "SYM103"),
        (([1, 1], [1, 0], [1], False, [0]), FLIP, None),
        (([2], [0], [1], True, [1]), TURN, "SYM102"),
        (([2], [0], [1], True, [0]), TURN, None),
    ],
)
def test_windows_break_a_square_by_what_they_leave_over_or_by_unequal_axes(
    args: Any, square: Square, code: str | None
) -> None:
    action, ids = image_action(square)
    step = step_of("convolution", None, None, None, *args, 1, given=[ids, np.zeros((4, 1, 3, 3))])
    found = causes._of_windows(action, step)
    assert (None if found is None else found.code) == code
    if found is not None:
        assert found.fields["square"] == square.name
        assert found.fields.get("output") is (True if code == "SYM102" else None)  # the output's own padding
    assert causes._of_windows(action, step_of("relu", given=[ids])) is None
    still, ids = image_action(SQUARES[0])
    assert causes._of_windows(still, step_of("max_pool2d", None, [4], given=[ids])) is None


@pytest.mark.parametrize(("before", "after"), [(3, 5), (3, 6), (4, 6), (4, 7), (5, 5)])
def test_sizes_for_which_repetition_commutes_with_a_flip_are_those_near_the_given_one(before: int, after: int) -> None:
    shapes = {"before": [before, before], "after": [after, after]}
    sizes = causes._sizes_that_commute(shapes, FLIP)
    tried = range(max(2, after - 4), after + 5)
    image = torch.arange(float(before))[None, None]

    def repeated(picture: torch.Tensor, size: int) -> torch.Tensor:
        return nn.functional.interpolate(picture, size=size)

    assert sizes == [n for n in tried if torch.equal(repeated(image.flip(-1), n), repeated(image, n).flip(-1))]
    assert (before in sizes) is (before in tried)


def mover(name: str, *args: Any, operation: str = "") -> Any:
    step = step_of(name, *args, given=[np.zeros((1, 1, 4, 4))], ids=np.zeros((1, 1, 6, 6)), operation=operation)
    return causes._of_mover(step, FLIP)


def test_what_rearranges_an_image_is_told_by_its_operator() -> None:
    even = mover("constant_pad_nd", None, [1, 2, 1, 2])
    assert (even.code, even.fields["before"], even.fields["after"]) == ("SYM102", 1, 2)
    uneven = mover("constant_pad_nd", None, [1, 2, 0, 2])
    assert (uneven.code, uneven.fields["amounts"]) == ("SYM102", [1, 2, 0, 2])
    assert mover("reflection_pad2d", None, [1, 2, 1, 3]).fields["amounts"] == [1, 2, 1, 3]
    assert mover("roll").code == mover("cat", operation="roll").code == "SYM105"
    for name, operation in (("upsample_nearest2d", "x"), ("index", "interpolate")):
        made = mover(name, operation=operation)
        assert (made.code, made.fields["before"], made.fields["after"]) == ("SYM104", [4, 4], [6, 6])
    assert mover("slice").code == "SYM120"


def entries(
    *, mixed: bool = False, negated: bool = False, constants: bool = False, op: str = "linear", columns: int = 2,
    operation: str = "aten.add", kind: str = "", given: int = 1, first: int = 1,
) -> str:  # fmt: skip
    """The code of the cause in a graph of an input of two entries, a layer of two, and a call that reads them."""
    action: Any = SimpleNamespace(
        mixed=np.array([mixed] * 4), sign=np.array([[1, 1, -1 if negated else 1, 1]] if first else [[1] * 4])
    )
    if negated and not first:
        action.sign[0, 0] = -1
    source = 2 if first else 0
    x = np.array([[source, source + 1]] if columns == 2 else [[source], [source + 1]])
    if constants:
        x = np.append(x, np.full((1, x.shape[1]), -1), axis=0)
    nodes = [SimpleNamespace(size=2, start=0), SimpleNamespace(size=2, start=2)]
    call = SimpleNamespace(x=x, op=op, start=4, size=2)
    graph: Any = SimpleNamespace(nodes=[*nodes, call])
    place: Any = SimpleNamespace(text="a call", operation=operation, kind=kind)
    step: Any = SimpleNamespace(first=2, last=3, given=[0] * given)
    return causes._of_entries(graph, action, [step], place).code


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"mixed": True}, "SYM124"),
        ({"mixed": True, "first": 0}, "SYM125"),
        ({"operation": "batch_norm", "constants": True}, "SYM110"),
        ({"kind": "BatchNorm2d", "constants": True}, "SYM110"),
        ({"operation": "aten.clamp", "constants": True}, "SYM114"),
        ({"operation": "where", "constants": True, "negated": True}, "SYM114"),
        ({"operation": "masked_fill"}, "SYM112"),
        ({"negated": True, "op": "pointwise"}, "SYM113"),
        ({"negated": True, "columns": 1}, "SYM113"),
        ({"negated": True}, "SYM115"),
        ({"negated": True, "constants": True}, "SYM111"),
        ({"constants": True}, "SYM111"),
        ({"given": 2}, "SYM122"),
        ({"given": 3}, "SYM112"),
        ({}, "SYM112"),
    ],
)
def test_entries_without_an_image_are_told_by_what_the_call_reads(given: Any, code: str) -> None:
    assert entries(**given) == code


def signed(*places: int, sign: Any = None) -> SignedPermutation:
    return SignedPermutation(np.array(places), np.array([1] * len(places) if sign is None else sign))


def test_an_inverse_that_differs_is_tried_with_its_signs() -> None:
    turn = signed(1, 2, 0, sign=[1, -1, 1])
    inverse = diagnosis._inverse(turn)
    assert inverse is not None
    values = np.array([5.0, 7.0, 11.0])
    np.testing.assert_array_equal(inverse.apply(turn.apply(values)), values)
    np.testing.assert_array_equal(turn.apply(inverse.apply(values)), values)
    assert diagnosis._inverse(signed(1, 0)) is None  # its own inverse
    assert diagnosis._inverse(signed(1, 0, sign=[1, -1])) is not None
    assert diagnosis._inverse(AffineMap(np.eye(2), np.zeros(2))) is None


def test_a_declared_permutation_is_told_in_the_form_it_was_given() -> None:
    assert diagnosis._declared_permutation(signed(1, 2, 0)) == [1, 2, 0]
    assert diagnosis._declared_permutation(signed(1, 2, 0, sign=[1, -1, 1])) == [2, -3, 1]
    assert diagnosis._declared_permutation(AffineMap(np.eye(2), np.zeros(2))) == "matrix"
    assert diagnosis._declared_permutation(lambda y, x: y) == "callable"


def test_columns_are_matched_if_each_has_one_partner_on_every_input() -> None:
    y = np.random.default_rng(0).normal(size=(20, 3))
    z = y[:, [2, 0, 1]]
    assert diagnosis._permutation_that_holds(y, z) == [1, 2, 0]
    near, far = z.copy(), z.copy()
    scale = max(np.abs(y).max(), np.abs(z).max())
    near[7, 1] += 0.99e-5 * scale
    far[7, 1] += 1.01e-5 * scale
    assert diagnosis._permutation_that_holds(y, near) == [1, 2, 0]
    assert diagnosis._permutation_that_holds(y, far) is None
    equal = y.copy()
    equal[:, 1] = equal[:, 0]
    assert diagnosis._permutation_that_holds(equal, equal) is None
    wide = np.random.default_rng(0).normal(size=(5, 65))
    assert diagnosis._permutation_that_holds(wide[:, :64], wide[:, :64]) == list(range(64))
    assert diagnosis._permutation_that_holds(wide, wide) is None


Y = np.random.default_rng(1).normal(size=(16, 3))


@pytest.mark.parametrize(
    ("motion", "z", "role", "told"),
    [
        (signed(1, 2, 0), signed(1, 2, 0).apply(Y), "action", []),
        (signed(1, 2, 0), signed(2, 0, 1).apply(Y), "action", [("SYM135", {"permutation": [2, 0, 1]})]),
        (signed(1, 2, 0, sign=[1, -1, 1]), signed(2, 0, 1, sign=[1, 1, -1]).apply(Y), "action", [("SYM135", {})]),
        (signed(1, 2, 0), Y, "action", [("SYM132", {})]),
        (signed(0, 1, 2, sign=[-1, -1, -1]), Y, "invariant", [("SYM136", {"permutation": [0, 1, 2]})]),
        (signed(1, 0, 2), signed(0, 2, 1).apply(Y), "action",
         [("SYM136", {"permutation": [0, 2, 1], "declared": [1, 0, 2]})]),
        (signed(1, 0, 2), -signed(1, 0, 2).apply(Y), "action", [("SYM137", {})]),
        (signed(1, 0, 2), Y + 1.0, "action", []),
    ],
)  # fmt: skip
def test_claims_about_outputs_that_would_hold_are_told(motion: Any, z: Any, role: str, told: Any) -> None:
    claim = OutputClaim("output", role, 3, (motion,))
    found = list(diagnosis._outputs_that_hold(claim, 0, np.zeros((16, 1)), Y, z))
    assert [cause.code for cause in found] == [code for code, _ in told]
    for cause, (_, fields) in zip(found, told, strict=True):
        assert cause.fields["output"] == "output"
        assert {name: cause.fields[name] for name in fields} == fields
        assert ("permutation" in cause.fields) is ("permutation" in fields)


def test_one_number_has_no_other_permutation() -> None:
    claim = OutputClaim("output", "given", 1, (signed(0, sign=[-1]),))
    y = Y[:, :1]
    assert [c.code for c in diagnosis._outputs_that_hold(claim, 0, np.zeros((16, 1)), y, y)] == ["SYM132"]
    invariant = OutputClaim("output", "invariant", 1, (signed(0),))
    assert list(diagnosis._outputs_that_hold(invariant, 0, np.zeros((16, 1)), y, -y)) == []


def signs(weights: Any, sign: Any, *, shape: Any = None) -> list[tuple[str, int]]:
    """Which sign of the input claim would make a sum of these weighted absolute and plain inputs invariant."""
    size = len(sign)
    inputs = InputClaim(shape or (size,), (signed(*range(size), sign=sign),))
    claim = OutputClaim("output", "invariant", 1, (signed(0),))
    subject: Any = SimpleNamespace(
        run=lambda x, exact: {"output": np.where(np.asarray(weights) > 0, x.reshape(len(x), -1), np.abs(
            x.reshape(len(x), -1))).sum(axis=1, keepdims=True)}
    )  # fmt: skip
    x = np.random.default_rng(2).normal(size=(16, *(shape or (size,))))
    y = subject.run(x, exact=True)["output"]
    found = diagnosis._signs_that_hold(subject, inputs, claim, 0, x, y)
    return [(str(cause.fields["sign"]), int(cause.fields["index"])) for cause in found]  # type: ignore[call-overload]


def test_one_wrong_sign_of_an_observation_is_told_with_its_place() -> None:
    assert signs([1, 0, 0], [-1, 1, -1]) == [("+1", 0)]
    assert signs([0, 0, 1], [1, 1, -1]) == [("+1", 2)]
    assert signs([1, 0, 1], [-1, 1, -1]) == []  # two are wrong
    assert signs([0] * 64, [1] * 64) == [("-1", 0)]
    assert signs([0] * 65, [1] * 65) == []
    assert signs([0] * 4, [1] * 4, shape=(2, 2)) == []


def test_dropout_is_named_where_it_drops_anything() -> None:
    modules = {"a": nn.Dropout(0.5), "b": nn.Dropout(0.0), "c": nn.Linear(1, 1), "d": nn.Dropout2d(0.1),
               "e": nn.Dropout(0.2), "f": nn.Dropout(0.3)}  # fmt: skip
    subject: Any = SimpleNamespace(modules=lambda exact: modules)
    (told,) = diagnosis.paired_dropout(subject)
    assert (told.code, told.fields["layers"]) == ("SYM170", ["a", "d", "e"])
    still: Any = SimpleNamespace(modules=lambda exact: {"b": nn.Dropout(0.0)})
    assert diagnosis.paired_dropout(still) == ()


def test_a_place_beyond_which_nothing_was_traced_is_told_with_its_reason() -> None:
    end = Opaque(state("SYM154", operation="cumsum"), "tail", "net.py:3")
    told = diagnosis.not_followed(end)
    assert (told.code, told.fields["where"], told.fields["source"]) == ("SYM151", "tail (net.py:3)", "net.py:3")
