"""The checker on documents written by hand: what each refusal says, and which terms it takes for equal."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from certificate_mutants import is_accepted, seal

from symcheck.certificate_checker import (
    EXACT_CLAIM,
    PRODUCT_CLAIM,
    ULP_CLAIM,
    RejectedError,
    _Forms,
    _Terms,
    check,
    digest,
    evaluate,
    main,
    unpack,
)
from symcheck.engine.networks.graph.certificate import packed


def ints(*rows: Any) -> dict[str, Any]:
    return packed(np.array(rows, dtype="<i4"))


def floats(*rows: Any) -> dict[str, Any]:
    return packed(np.array(rows, dtype=np.float64), small=False)


def action(index: list[int], sign: list[int] | None = None) -> dict[str, Any]:
    return {"index": ints(*index), "sign": packed(np.array(sign or [1] * len(index), dtype="i1"))}


def pair(tolerance: str = EXACT_CLAIM) -> dict[str, Any]:
    """tanh(2 x + 3 y + 1) and tanh(3 x + 2 y + 1), exchanged with x and y, and the larger of the two."""
    linear = {"op": "linear", "name": "w", "x": ints([0, 1]), "weight": {"name": "w"}, "bias": {"name": "b"}}
    apply = {"op": "pointwise", "name": "t", "x": ints([2], [3]), "function": "tanh", "parameters": []}
    largest = {"op": "reduce", "name": "m", "x": ints([4, 5]), "function": "place", "parameters": [1.0]}
    return {
        "schema": "symcheck-certificate/2",
        "claim": {"generators": ["swap"], "tolerance": tolerance},
        "input": {"shape": [2]},
        "weights": {"w": floats([2.0, 3.0], [3.0, 2.0]), "b": floats(1.0, 1.0)},
        "nodes": [{"op": "input", "size": 2, "actions": [action([1, 0])]}, linear, apply, largest],
        "outputs": [
            {"path": "y", "entries": ints(4, 5), "actions": [action([1, 0])]},
            {"path": "z", "entries": ints(6), "actions": [action([0])]},
        ],
    }


def test_the_document_is_accepted_and_runs() -> None:
    for tolerance in (EXACT_CLAIM, ULP_CLAIM, PRODUCT_CLAIM):
        check(seal(pair(tolerance)))
    values = evaluate(pair(), np.array([0.5, -0.25]))
    first, second = np.tanh(2 * 0.5 - 3 * 0.25 + 1), np.tanh(3 * 0.5 - 2 * 0.25 + 1)
    np.testing.assert_allclose(values["y"], [first, second], rtol=1e-15)
    assert values["z"].tolist() == [max(first, second)]


# The edit, and what the refusal says.
EDITS: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda d: d["nodes"].append(3), "head: item 4 is not an object"),
    (lambda d: d["outputs"].append("z"), "head: item 6 is not an object"),
    (lambda d: d.update(outputs=[]), "head: no input, no output or no generator"),
    (lambda d: d["claim"].update(generators=[]), "head: no input, no output or no generator"),
    (lambda d: d["input"].update(shape=[3]), "head: no input, no output or no generator"),
    (lambda d: d["nodes"].insert(1, d["nodes"][0]), "head: no input, no output or no generator"),
    (lambda d: d["claim"].update(tolerance="any"), "head: unknown tolerance"),
    (lambda d: d["nodes"][1].update(x=floats([0.0, 1.0])), r"node 1 \(linear w\): expected whole numbers"),
    (lambda d: d["nodes"][1].update(x=ints(0, 1)), r"node 1 \(linear w\): expected whole numbers"),
    (lambda d: d["nodes"][1].update(x=ints([0, 2])), r"node 1 .*: an index is out of range, or missing"),
    (lambda d: d["nodes"][1].update(x=ints([0, -1])), r"node 1 .*: an index is out of range, or missing"),
    (lambda d: d["nodes"][1].update(x=packed(np.zeros((0, 2), "<i4"))), "an index is out of range, or missing"),
    (lambda d: d["nodes"][1].update(x=ints([0, 1, 1])), r"node 1 .*: the weight does not fit its arguments"),
    (lambda d: d["weights"].update(b=floats(1.0)), "expected one bias for each row"),
    (lambda d: d["weights"].update(b=floats(1.0, np.inf)), "the weights of unit 1 are not finite"),
    (lambda d: d["weights"].update(w=floats([np.nan, 3.0], [3.0, 2.0])), "the weights of unit 0 are not finite"),
    (lambda d: d["nodes"][0].update(actions=[]), r"node 0 .*: expected one action for each generator"),
    (lambda d: d["nodes"][0].update(actions=2 * d["nodes"][0]["actions"]), "expected one action for each generator"),
    (lambda d: d["outputs"][1].update(actions=[]), "output 'z': expected one action for each generator"),
    (lambda d: d["nodes"][0].update(actions=[action([1, 0], [1, 2])]), "not a signed permutation"),
    (lambda d: d["nodes"][0].update(actions=[action([1, 0], [0, 1])]), "not a signed permutation"),
    (lambda d: d["nodes"][0].update(actions=[action([1, 0], [1])]), "not a signed permutation"),
    (lambda d: d["nodes"][0].update(actions=[action([1])]), "not a signed permutation"),
    (lambda d: d["nodes"][0].update(actions=[{"matrix": floats([0, 1], [1, 0]), "offset": floats(0, 0)}]),
     "a matrix does not fit the entries"),
    (lambda d: d["nodes"][2].update(x=ints([2, 3])), r"node 2 \(pointwise t\): no function"),
    (lambda d: d["nodes"][2].update(function="where"), "no function"),
    (lambda d: d["nodes"][2].update(function="eval"), "malformed: KeyError"),
    (lambda d: d["nodes"][2].update(parameters=[1.0]), "malformed: TypeError"),
    (lambda d: d["nodes"][2].update(op="sum"), "malformed: KeyError"),
    (lambda d: d["nodes"][3].update(parameters=[-1.0]), r"node 3 \(reduce m\): no such place"),
    (lambda d: d["nodes"][3].update(parameters=[0.5]), "no such place"),
    (lambda d: d["nodes"][3].update(parameters=[2.0]), "malformed: IndexError"),
    (lambda d: d["outputs"][0].update(actions=[action([0, 1])]),
     "output 'y': generator 0: entry 0 does not transform as claimed"),
    (lambda d: d["outputs"][1].update(actions=[action([0], [-1])]),
     "output 'z': generator 0: entry 0 does not transform as claimed"),
    (lambda d: d["weights"].update(w=floats([2.0, 3.0], [3.0, 2.5])),
     "output 'y': generator 0: entry 0 does not transform as claimed"),
    (lambda d: d["nodes"][2].update(function="reciprocal", x=ints([2], [2])) or d["weights"].update(
        w=floats([0.0, 0.0], [3.0, 2.0]), b=floats(0.0, 0.0)), "the sign of zero may matter"),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "message"), EDITS, ids=lambda item: item if isinstance(item, str) else "")
def test_every_refusal_names_its_step(edit: Callable[[dict[str, Any]], object], message: str) -> None:
    document = copy.deepcopy(pair())
    edit(document)
    with pytest.raises(RejectedError, match=message):
        check(seal(document))


def test_a_digest_of_another_document_is_refused() -> None:
    with pytest.raises(RejectedError, match="digest: the file was modified"):
        check({**seal(pair()), "more": 1})
    weights = {"w": np.array([[2.0, 3.0], [3.0, 2.0]]), "b": np.ones(2)}
    check(seal(pair()), weights)
    others = ({"b": np.ones(2, np.float32)}, {"b": np.ones((1, 2))}, {"b": np.array([1.0, 1.5])}, {"b": -weights["b"]})
    for other in others:
        with pytest.raises(RejectedError, match="weights: b differs from the given one"):
            check(seal(pair()), {**weights, **other})


@pytest.mark.parametrize("tolerance", [EXACT_CLAIM, ULP_CLAIM, PRODUCT_CLAIM])
def test_weights_are_equal_up_to_the_tolerance_of_the_claim_and_no_further(tolerance: str) -> None:
    """x and y exchanged, and w x + (w + off) y + 1, which is to stay."""
    ulp = float(np.spacing(np.float32(0.3)))
    steps = {0.0: True, 2.0**-52: False, ulp: False, 3.9 * ulp: False, 4.1 * ulp: False, 1e-3: False}
    if tolerance == ULP_CLAIM:
        steps |= {2.0**-52: True, ulp: True, 3.9 * ulp: True}
    if tolerance == PRODUCT_CLAIM:
        del steps[2.0**-52]  # the size of rounding itself
    for off, accepted in steps.items():
        document = pair(tolerance)
        document["weights"] = {"w": floats([0.3, 0.3 + off]), "b": floats(1.0)}
        document["nodes"] = document["nodes"][:2]
        document["outputs"] = [{"path": "y", "entries": ints(2), "actions": [action([0])]}]
        assert is_accepted(seal(document)) is accepted, off


def test_terms_are_equal_where_their_functions_are_and_nowhere_else() -> None:
    terms = _Terms()
    a, b, one = terms.number("input", 0), terms.number("input", 1), terms.constant(1.0)

    def of(name: str, *x: int, parameters: tuple[float, ...] = ()) -> int:
        return terms.apply(name, list(parameters), x)

    assert of("prod", a, b) == of("prod", b, a) == -of("prod", -a, b) == of("prod", -a, -b)
    assert of("prod", a, b) not in (of("prod", a, a), a, b)
    assert (of("prod", a, 0), of("prod", one, a), of("prod", one, -a), of("prod", one, one)) == (0, a, -a, one)
    assert of("place", a, b, parameters=(0.0,)) == of("place", b, a, parameters=(0.0,))
    assert of("place", -a, -b, parameters=(0.0,)) == -of("place", a, b, parameters=(1.0,))
    assert of("place", a, b, parameters=(0.0,)) != of("place", a, b, parameters=(1.0,))
    assert of("place", a, b, one, parameters=(1.0,)) == -of("place", -one, -b, -a, parameters=(1.0,))
    assert of("tanh", -a) == -of("tanh", a) != of("tanh", a)
    assert of("cos", -a) == of("cos", a) != of("cos", b)
    assert abs(of("exp", -a)) != abs(of("exp", a))
    assert abs(of("tanh", a)) != abs(of("sin", a))
    assert (of("tanh", 0), of("absolute", 0) > 0) == (0, True)
    assert of("where", a, -a, -b) == -of("where", a, a, b)
    assert of("where", a, b, b) == b
    assert abs(of("where", -a, a, b)) != abs(of("where", a, a, b)) != abs(of("where", a, b, a))
    for exponent, sign in ((3.0, -1), (4.0, 1)):
        assert of("pow", -a, parameters=(exponent,)) == sign * of("pow", a, parameters=(exponent,))
    assert abs(of("pow", -a, parameters=(0.5,))) != abs(of("pow", a, parameters=(0.5,)))
    assert of("pow", a, parameters=(3.0,)) != of("pow", a, parameters=(5.0,))
    assert of("elu", a, parameters=(1.0, 1.0, 1.0)) != of("elu", a, parameters=(1.0, 1.0, 2.0))
    assert of("any f 1", a, b) not in (of("any f 1", b, a), of("any f 2", a, b))
    assert (terms.constant(-2.0), terms.constant(0.0), terms.constant(-0.0)) == (-terms.constant(2.0), 0, 0)


@pytest.mark.parametrize(
    ("name", "x", "parameters", "refused"),
    [
        ("reciprocal", (0,), [], True), ("arctan2", (0, 1), [], True), ("any f", (0,), [], True),
        ("pow", (0,), [-1.0], True),
        ("pow", (0,), [3.0], False), ("exp", (0,), [], False), ("tanh", (0,), [], False),
    ],
)  # fmt: skip
def test_a_zero_is_refused_where_its_sign_may_matter(
    name: str, x: tuple[int, ...], parameters: list[float], refused: bool
) -> None:
    if refused:
        with pytest.raises(RejectedError, match="the sign of zero may matter"):
            _Terms().apply(name, parameters, x)
    else:
        _Terms().apply(name, parameters, x)
    with pytest.raises(RejectedError, match="rounding may make an unknown function jump"):
        _Terms(rounded=True).apply("any f", [], (1,))


def test_rows_of_weights_are_equal_by_what_they_compute() -> None:
    terms = _Terms()
    a, b, c = (terms.number("input", k) for k in range(3))

    def row(x: list[int], weight: list[float], bias: float = 0.0) -> int:
        made = terms.linear(np.array([x]), np.array([weight]), np.array([bias]), True)
        return int(made[0, 0])

    assert row([a, b], [2.0, 3.0]) == row([b, a], [3.0, 2.0]) == row([-a, b], [-2.0, 3.0]) == -row([a, b], [-2.0, -3.0])
    assert row([a, b, c], [2.0, 3.0, 0.0]) == row([a, b], [2.0, 3.0]) != row([a, b], [3.0, 2.0])
    assert row([a, a, b], [0.5, 1.5, 3.0]) == row([b, a, -a], [3.0, 3.0, 1.0])
    assert row([a, 0, b], [2.0, 9.0, 3.0]) == row([a, b], [2.0, 3.0])
    assert row([a, b], [2.0, 3.0], 1.0) not in (row([a, b], [2.0, 3.0]), row([a, b], [2.0, 3.0], 2.0))
    assert row([a, b], [-2.0, 3.0], 1.0) == -row([a, b], [2.0, -3.0], -1.0)
    assert (row([a, b], [1.0, 0.0]), row([a, b], [-1.0, 0.0]), row([a, -a], [1.0, 1.0])) == (a, -a, 0)
    assert row([a, b], [0.0, 0.0], 2.5) == terms.constant(2.5)
    assert row([a, b], [0.1, 0.2]) != row([a, b], [0.1, 0.2 + 2.0**-55])


def test_polynomials_with_equal_coefficients_are_one_term() -> None:
    forms = _Forms(True)
    x, y = (forms.item(forms.number("input", k)) for k in range(2))
    both, other = forms.add([2.0, 3.0], [x, y]), forms.add([3.0, 2.0], [y, x])
    assert forms.name(both) == forms.name(other) == -forms.name(forms.add([-2.0, -3.0], [x, y]))
    assert forms.name(both) != forms.name(forms.add([2.0, 3.0 + 1e-6], [x, y]))
    assert forms.name(x) == 1
    assert forms.name(forms.add([-1.0], [x])) == -1
    assert forms.add([1.0, -1.0], [both, other]) == {}
    (square,) = forms.function("prod", [], [[forms.add([1.0, 1.0], [x, y]), forms.add([1.0, -1.0], [x, y])]])
    assert {terms: number for terms, (number, _) in square.items()} == {(1, 1): 1.0, (2, 2): -1.0}
    with pytest.raises(RejectedError, match="the rounding errors of coefficients are too large"):
        forms.add([1e12, 1e12], [x, y])
    assert forms.constant(0.0) == {}
    assert forms.constant(2.0) == {(): (2.0, 0.0)}


def test_an_array_is_read_only_in_the_size_that_it_states() -> None:
    stored = packed(np.arange(6.0).reshape(2, 3))
    assert unpack(stored).tolist() == [[0, 1, 2], [3, 4, 5]]
    for wrong in ({"shape": [2, 2]}, {"shape": [2, 4]}, {"shape": [-2, -3]}, {"dtype": "<f4"},
                  {"dtype": "<c8", "shape": [6]}):  # fmt: skip
        with pytest.raises(ValueError, match="bytes for dtype"):
            unpack({**stored, **wrong})


def test_a_digest_depends_on_every_value_and_not_on_the_order_of_keys() -> None:
    document = seal(pair())
    backwards = json.loads(json.dumps(document), object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    assert list(backwards) != list(document)
    assert digest(backwards) == digest(document) == document["digest"]
    check(backwards)
    for key in document.keys() - {"digest"}:
        assert digest({**document, key: "another"}) != document["digest"]


def test_the_command_compares_the_weights_that_follow_its_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, right, wrong = (str(tmp_path / name) for name in ("c.json", "right.npz", "wrong.npz"))
    Path(file).write_text(json.dumps(seal(pair())))
    weights = {"w": np.array([[2.0, 3.0], [3.0, 2.0]]), "b": np.ones(2)}
    np.savez(right, **weights)
    np.savez(wrong, **{**weights, "b": np.array([1.0, 1.5])})
    cases = (([file], 0), ([file, "--weights", right], 0), ([file, "--weights", wrong], 1), ([wrong], 2), ([right], 2))
    for arguments, code in cases:
        assert main(arguments) == code
        written = capsys.readouterr()
        told, silent = (written.err, written.out) if code == 2 else (written.out, written.err)
        assert told.startswith(("accepted: ", "rejected: ", "unreadable: ")[code])
        assert not silent
