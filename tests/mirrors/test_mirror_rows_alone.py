"""Rows of mirror functions by themselves: what they are equal to, how they are told, and the code of a single one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from symcheck.engine.mirrors import findings
from symcheck.engine.mirrors.findings import _Claims, _names_in_short, _single_column
from symcheck.engine.mirrors.hypotheses import Seen, _other_scans, element_matrix
from symcheck.engine.mirrors.rows import Row, describe_row, matrix_row
from symcheck.groups import catalog

# joints left and right are exchanged with a sign, a height stays, a side changes its sign
MATRIX = sparse.csr_array(
    np.array(
        [
            [0, -1, 0, 0, 0],
            [-1, 0, 0, 0, 0],
            [0, 0, 1, 0, 0],
            [0, 0, 0, -1, 0],
            [0, 0, 0, 0, 1],
        ]
    ).astype(float)
)
NAMES = ("left", "right", "height", "side", "speed")
TERMS = (0, 0, 1, 1, 2)
KINDS = ("joint_pos", "vector", "command")


def group() -> Any:
    columns = [SimpleNamespace(term=term, frame=0, component=k) for k, term in enumerate(TERMS)]
    return SimpleNamespace(
        name="policy",
        width=5,
        matrices=[MATRIX],
        offsets=[np.zeros(5)],
        columns=columns,
        frames=(1, 1, 1),
        terms=[SimpleNamespace(written=SimpleNamespace(kind=kind)) for kind in KINDS],
        label=NAMES.__getitem__,
        term_name=lambda c: KINDS[TERMS[c]],
        full_label=lambda c: f"policy.{NAMES[c]}",
        seen_from=lambda column, place: NAMES[column],
    )


def test_a_row_is_a_column_times_a_number_up_to_float32_rounding() -> None:
    row = Row(((3, -1.0),))
    assert row.is_only(3, -1.0)
    assert row.is_only(3, -1.0 + 0.9e-4)
    assert not row.is_only(3, -1.0 + 1.1e-4)
    assert not row.is_only(2, -1.0)
    assert not Row(((3, -1.0),), 1.1e-4).is_only(3, -1.0)
    assert Row(((3, -1.0),), 0.9e-4).is_only(3, -1.0)
    assert not Row(((3, -1.0), (2, 0.5))).is_only(3, -1.0)
    assert not Row(((3, -1.0),), kind="nonlinear").is_only(3, -1.0)
    assert [
        Row().is_zero,
        Row(constant=0.9e-4).is_zero,
        Row(constant=1.1e-4).is_zero,
        row.is_zero,
        Row(kind="absent").is_zero,
    ] == [True, True, False, False, False]
    assert row.same_as(Row(((3, -1.0 + 0.9e-4), (1, 0.9e-4))))
    for other in (
        Row(((3, -1.0 + 1.1e-4),)),
        Row(((3, -1.0), (1, 1.1e-4))),
        Row(((3, -1.0),), 1.1e-4),
        Row(((3, -1.0),), kind="nan"),
        Row(((2, -1.0),)),
        Row(),
    ):
        assert not row.same_as(other)
        assert not other.same_as(row)


def test_a_row_is_told_by_its_terms_and_its_constant() -> None:
    told = {
        Row(((1, -1.0),)): "-right",
        Row(((0, 0.7071), (1, -0.7071))): "+0.7071*left -0.7071*right",
        Row(): "0",
        Row(constant=0.5): "+0.5",
        Row(((2, 1.0),), -2.0): "+height -2",
        Row(((2, 1.0),), 1e-5): "+height",
        Row(kind="nonlinear"): "no linear map",
        Row(kind="absent"): "nothing",
        Row(kind="nan"): "no finite number",
        Row(tuple((k, 1.0) for k in range(5))): "a mix of 5 columns",
    }
    assert {describe_row(group(), row, 0): text for row, text in told.items()} == {text: text for text in told.values()}
    four = Row(tuple((k, 1.0) for k in range(4)))
    assert describe_row(group(), four, 0) == "+left +right +height +side"
    assert matrix_row(MATRIX, 1) == Row(((0, -1.0),))
    assert matrix_row(MATRIX, 4, 2.0) == Row(((4, 1.0),), 2.0)


@pytest.mark.parametrize(
    ("column", "row", "wrong", "code"),
    [
        (0, Row(kind="nonlinear"), (), "SYM227"),
        (0, Row(kind="nan"), (), "SYM227"),
        (0, Row(), (), "SYM220"),
        (0, Row(((1, -1.0), (2, 1.0))), (), "SYM228"),
        (0, Row(((1, -0.5),)), (), "SYM228"),
        (0, Row(((1, -1.0),), 2.0), (), "SYM228"),
        (0, Row(((1, 1.0),)), (), "SYM221"),
        (0, Row(((1, 1.0),)), (1,), "SYM222"),
        (3, Row(((3, 1.0),)), (), "SYM222"),
        (2, Row(((2, -1.0),)), (), "SYM223"),
        (0, Row(((0, -1.0),)), (), "SYM224"),
        (2, Row(((3, 1.0),)), (), "SYM225"),
        (2, Row(((4, 1.0),)), (), "SYM226"),
    ],
)
def test_a_single_wrong_column_has_the_code_of_its_mistake(column: int, row: Row, wrong: Any, code: str) -> None:
    seen = Seen(group(), 0, {column: row, **{other: Row() for other in wrong}})
    assert _single_column(seen, column) == code


def test_what_the_function_returns_is_as_expected_where_it_is_not_wrong() -> None:
    flipped = Row(((2, -1.0),))
    seen = Seen(group(), 0, {2: flipped})
    assert [seen.row(c) for c in (1, 2, 3)] == [Row(((0, -1.0),)), flipped, Row(((3, -1.0),))]
    assert [seen.columns_of(term) for term in range(3)] == [[0, 1], [2, 3], [4]]
    other = MATRIX.toarray()
    other[2, 2] = -1.0
    assert seen.is_explained(sparse.csr_array(other), [0, 1, 2, 3, 4])
    assert not seen.is_explained(MATRIX, [0, 2])
    assert seen.is_explained(MATRIX, [0, 1, 3])


def test_claims_keep_what_is_left_and_the_fields_of_their_codes() -> None:
    claims = _Claims(Seen(group(), 0, {0: Row(), 1: Row(), 3: Row()}))
    assert claims.left() == [0, 1, 3]
    assert (claims.left(0), claims.left(1), claims.left(2)) == ([0, 1], [3], [])
    claims.claim("SYM217", [0, 1], order="model")
    claims.claim("SYM203", [], plane="yz")
    assert (claims.left(), claims.extra) == ([3], {"SYM217": {"order": "model"}})
    claims.claim("SYM222", [3])
    causes = list(findings._state_causes(claims))
    assert [(cause.code, cause.fields["term"], cause.fields["count"], cause.fields["indices"]) for cause in causes] == [
        ("SYM217", "joint_pos", 2, [0, 1]),
        ("SYM222", "vector", 1, [3]),
    ]
    first = causes[0].fields
    assert (first["place"], first["columns"], first["shown"]) == (
        "joint_pos of policy",
        ["policy.left", "policy.right"],
        "left, right",
    )
    assert (first["expected"], first["found"], first["order"]) == ("-right", "0", "model")
    whole = _Claims(Seen(group(), 0, {0: Row(), 3: Row()}))
    whole.claim("SYM201", [0, 3])
    (cause,) = findings._state_causes(whole)
    assert (cause.fields["term"], cause.fields["count"]) == ("", 2)


def test_the_first_six_names_are_told() -> None:
    many = SimpleNamespace(label=lambda c: f"j{c % 8}")
    assert _names_in_short(many, list(range(6))) == "j0, j1, j2, j3, j4, j5"  # type: ignore[arg-type]
    assert _names_in_short(many, list(range(16))) == "j0, j1, j2, j3, j4, j5 and 2 more"  # type: ignore[arg-type]


def explained(kind: str, wrong: dict[int, Row], **more: Any) -> dict[int, str]:
    made = group()
    made.terms = [SimpleNamespace(written=SimpleNamespace(kind=kind)) for _ in range(3)]
    claims = _Claims(Seen(made, 0, wrong))
    findings._whole_term(more.get("context"), claims, TERMS[min(wrong)], kind)  # type: ignore[arg-type]
    return claims.codes


def test_a_term_that_is_left_alone_is_one_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "other_terms", lambda *told: iter(()))
    monkeypatch.setattr(findings, "other_orders", lambda *told: iter(()))
    same = {0: Row(((0, 1.0),)), 1: Row(((1, 1.0),))}
    assert explained("joint_pos", same) == {0: "SYM218", 1: "SYM218"}
    assert explained("last_action", same) == {0: "SYM214", 1: "SYM214"}
    assert explained("clock", same) == {0: "SYM211", 1: "SYM211"}
    assert explained("joint_pos", {0: same[0]}) == {}
    own = {0: Row(((0, -1.0),)), 1: Row(((1, 1.0),))}
    assert explained("phase", own) == {0: "SYM210", 1: "SYM210"}
    assert explained("contacts", own) == {0: "SYM210", 1: "SYM210"}
    assert explained("vector", own) == {}
    monkeypatch.setattr(findings, "other_terms", lambda *told: iter([("SYM206", sparse.csr_array(np.eye(5)))]))
    assert explained("joint_pos", {0: same[0], 1: Row(((0, 2.0),))}) == {}
    found = sparse.csr_array(np.array([[1.0, 0.0], [2.0, 0.0]]))
    monkeypatch.setattr(findings, "other_terms", lambda *told: iter([("SYM206", found)]))
    assert explained("joint_pos", {0: same[0], 1: Row(((0, 2.0),))}) == {0: "SYM206", 1: "SYM206"}
    monkeypatch.setattr(findings, "other_terms", lambda *told: iter(()))
    monkeypatch.setattr(findings, "other_orders", lambda *told: iter([("model", ("a", "b"), found)]))
    assert explained("joint_pos", {0: same[0], 1: Row(((0, 2.0),))}) == {0: "SYM217", 1: "SYM217"}


def test_a_matrix_of_an_element_is_the_product_of_its_letters_and_scans_are_flipped_in_every_way() -> None:
    four = catalog.cyclic(4)
    quarter = sparse.csr_array(np.array([[0.0, -1.0], [1.0, 0.0]]))
    context: Any = SimpleNamespace(layout=SimpleNamespace(group=four))
    for element in range(3):
        turned = np.linalg.matrix_power(quarter.toarray(), element + 1)
        np.testing.assert_array_equal(element_matrix(context, (quarter,), element).toarray(), turned)
    written: Any = SimpleNamespace(arguments={"rows": 2, "cols": 3})
    scans = list(_other_scans(written))
    assert [code for code, _ in scans] == ["SYM212"] * 3 + ["SYM213"] * 3
    table = np.arange(6.0)
    flips = [(grid @ table).reshape(2, 3).tolist() for _, grid in scans[:3]]
    whole = table.reshape(2, 3)
    assert flips == [np.flip(whole, axes).tolist() for axes in (0, 1, (0, 1))]
    exchanged = [(grid @ table).reshape(3, 2).tolist() for _, grid in scans[3:]]
    assert exchanged == [np.flip(table.reshape(3, 2), axes).tolist() for axes in (0, 1, (0, 1))]
