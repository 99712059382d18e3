"""The group law of mirror functions and the verdict on columns, on blocks of numbers without a model."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from symcheck.engine.mirrors import axioms, judgement
from symcheck.engine.mirrors.axioms import check_axioms
from symcheck.errors import SpecError
from symcheck.groups import catalog
from symcheck.mujoco.layouts.laid_out import ACTION

POLICY = np.random.default_rng(0).normal(size=(6, 3))
FORCES = np.random.default_rng(1).normal(size=(6, 2))


class Group:
    """Columns of a table that a cyclic group of order four turns: (x, y, z) to (-y, x, -z), (a, b) to (-b, a)."""

    width = 3

    def full_label(self, column: int) -> str:
        return f"term.{column}"

    def term_name(self, column: int) -> str:
        return "term"

    def label(self, column: int) -> str:
        return f"[{column}]"


def turned(table: Any, times: int) -> Any:
    for _ in range(times % 4):
        table = np.concatenate([-table[:, 1:2], table[:, :1], -table[:, 2:]], axis=1)
    return table


def answer(observations: Any, actions: Any, **more: Any) -> Any:
    return SimpleNamespace(observations={"policy": observations}, actions=actions,
                           **{"narrowed": {}, "changed": (), **more})  # fmt: skip


def images(policy: Any, forces: Any) -> tuple[Any, Any]:
    return tuple(
        None if table is None else np.stack([turned(table, k) for k in range(4)]) for table in (policy, forces)
    )  # type: ignore[return-value]


def context(spoil: Any = None, *, halves: Any = None, observations: bool = True, **more: Any) -> Any:
    """A mirror function of a cyclic group of order four; `spoil` changes its blocks in place."""

    def called(policy: Any, forces: Any) -> Any:
        made = images(policy, forces)
        if spoil is not None:
            spoil(*made)
        return answer(*made, **more)

    def alone(observed: Any, forces: Any) -> Any:
        if halves is not None:
            return halves(observed, forces)
        return called(None if observed is None else observed["policy"], forces)

    group = catalog.cyclic(4)
    quarter = SimpleNamespace(isometry=SimpleNamespace(name="quarter turn"), ambiguous=[])
    layout = SimpleNamespace(group=group, robot=SimpleNamespace(pairings=[quarter]))
    batch = {"policy": POLICY, ACTION: FORCES} if observations else {ACTION: FORCES}
    return SimpleNamespace(
        batch=batch, layout=layout, called=SimpleNamespace(order=4, images=alone),
        answer=called(POLICY, FORCES),
        answer_to=lambda tables: called(tables.get("policy"), tables[ACTION]),
        groups=lambda: {"policy": Group(), ACTION: Group()},
    )  # fmt: skip


def codes(result: axioms.Axioms) -> list[str]:
    return [cause.code for cause in result.causes]


def test_blocks_that_form_the_group_have_no_violation() -> None:
    result = check_axioms(context())
    assert (result.checked, result.violations, codes(result), result.notes) == (1 + 9 + 1, 0, [], ())
    assert result.largest == 0.0


@pytest.mark.parametrize(("block", "other"), [(0, 0), (1, 0)])
def test_a_first_block_that_is_not_the_batch_is_named_with_the_block_that_is(block: int, other: int) -> None:
    def spoil(policy: Any, forces: Any) -> None:
        for table in (policy, forces):
            if table is not None:
                table[:] = table[[1, 2, 3, 0]]

    result = check_axioms(context(spoil))
    cause = result.causes[0]
    assert (cause.code, cause.fields["block"]) == ("SYM230", 3)
    assert cause.fields["columns"] == {"policy": ["term.0", "term.1", "term.2"], ACTION: ["term.0", "term.1"]}
    assert str(cause.fields["shown"]).startswith("policy: term [0], term [1], term [2]; ")
    assert result.violations == 1 + 9

    def lost(policy: Any, forces: Any) -> None:
        if policy is not None:
            policy[:, :, 2] += 7.0

    (first, *_) = check_axioms(context(lost)).causes
    assert (first.fields["block"], first.fields["columns"]) == (0, {"policy": ["term.2"]})


def test_a_product_that_differs_is_named_by_its_elements_and_columns() -> None:
    def spoil(policy: Any, forces: Any) -> None:
        policy[2, :, 1] *= -1.0

    result = check_axioms(context(spoil))
    assert codes(result)[0] == "SYM231"
    first = result.causes[0].fields
    assert (first["first"], first["second"]) == ("the quarter turn", "the quarter turn")
    assert first["product"] == "the quarter turn and the quarter turn"
    assert first["columns"] == {"policy": ["term.1"]}
    assert result.largest == pytest.approx(2 * np.abs(POLICY).max())
    assert len(result.causes) == 6
    assert [axioms._element_in_words(context(), k) for k in (0, 1)] == ["the batch itself", "the quarter turn"]


def test_narrowed_numbers_are_one_cause_and_changed_inputs_another() -> None:
    def spoil(policy: Any, forces: Any) -> None:
        if policy is not None:
            policy += 1e-3

    result = check_axioms(context(spoil, narrowed={"policy": "float16"}, changed=("policy",)))
    assert codes(result)[:2] == ["SYM235", "SYM232"]
    assert result.causes[0].fields == {"place": "policy", "dtype": "float16"}
    assert result.causes[1].fields == {"groups": ["policy"]}
    assert result.violations >= 2
    only = check_axioms(context(narrowed={ACTION: "int32"}))
    assert only.causes[0].fields == {"place": "the action", "dtype": "int32"}
    assert check_axioms(context(changed=("policy",))).violations == 1


def test_each_half_alone_has_the_same_images_or_is_refused() -> None:
    def refusing(observed: Any, forces: Any) -> Any:
        if forces is None:
            raise SpecError("no actions were given", where="mirror")
        raise ZeroDivisionError("by nothing")

    result = check_axioms(context(halves=refusing))
    assert [(note.code, dict(note.fields)) for note in result.notes] == [
        ("mirror_half_refused", {"missing": "actions", "problem": "no actions were given"}),
        ("mirror_half_refused", {"missing": "obs", "problem": "ZeroDivisionError: by nothing"}),
    ]
    assert result.violations == 0

    def other(observed: Any, forces: Any) -> Any:
        policy, acted = images(None if observed is None else observed["policy"], forces)
        if policy is not None:
            policy[1, :, 0] += 1.0
        if acted is not None:
            acted[3, :, 1] += 1.0
        return answer(policy, acted)

    result = check_axioms(context(halves=other))
    assert [(cause.code, cause.fields["missing"], cause.fields["columns"]) for cause in result.causes] == [
        ("SYM233", "actions", {"policy": ["term.0"]}), ("SYM233", "obs", {ACTION: ["term.1"]})]  # fmt: skip
    assert result.violations == 2
    asked: list[str] = []

    def counting(observed: Any, forces: Any) -> Any:
        asked.append("obs" if forces is None else "action")
        return answer(*images(observed and observed["policy"], forces))

    made = context(halves=counting)
    made.batch = {ACTION: FORCES}
    made.answer = answer(None, made.answer.actions)
    made.answer.observations = {}
    made.answer_to = lambda tables: SimpleNamespace(observations={}, actions=images(None, tables[ACTION])[1])
    assert check_axioms(made).violations == 0
    assert asked == ["action"]


def test_numbers_that_are_lost_in_both_calls_do_not_differ() -> None:
    left, right = np.array([np.nan, np.nan, 1.0]), np.array([np.nan, 2.0, 1.0])
    one, other = axioms._nan_alike(left, right)
    assert one[0] == other[0] == 0.0
    assert np.isnan(one[1])
    assert other.tolist() == [0.0, 2.0, 1.0]
    given = np.full((2, 2), 5.0)
    assert axioms._filled(None, given) is given
    assert axioms._filled(np.array([np.nan, np.inf, -np.inf, 3.0]), given).tolist() == [0.0, 0.0, 0.0, 3.0]
    made = context()
    made.batch = {"policy": np.ones((1, 3))}
    differing, largest = axioms._differences(made, {"policy": np.ones((1, 3)), "x": None},
                                             {"policy": np.array([[1.0, np.nan, 1.5]]), "x": None})  # fmt: skip
    assert (differing, largest) == ({"policy": [1, 2]}, np.inf)


def test_many_columns_are_told_by_their_first_four() -> None:
    many = SimpleNamespace(groups=lambda: {"policy": Group()})
    told: Any = axioms._columns_in_words
    assert told(many, {"policy": [0, 1, 2, 3]}) == "policy: term [0], term [1], term [2], term [3]"
    assert told(many, {"policy": [0, 1, 2, 3, 4, 5]}).endswith("term [3] and 2 more")


def judged(**more: Any) -> Any:
    from symcheck.engine.equations import BY_PART

    same, flipped = np.eye(3), np.diag([1.0, -1.0, 1.0])
    group = SimpleNamespace(width=3, matrices=[same, more.pop("matrix", flipped)],
                            offsets=[np.zeros(3), more.pop("offset", np.zeros(3))])  # fmt: skip
    block = np.ones((4, 3))
    fields: dict[str, Any] = {
        "groups": lambda: {"policy": group}, "wrong": [], "called": SimpleNamespace(order=2),
        "layout": SimpleNamespace(robot=SimpleNamespace(pairings=[SimpleNamespace(ambiguous=[])])),
        "images": lambda name: [block] * 4, "expected_images": lambda name, element: block,
        "block_order": (1,), "differences": [], "unpaired": [],
    }  # fmt: skip
    return judgement.judge_columns(SimpleNamespace(**(fields | more)), BY_PART["reward"], ["policy"])  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def no_causes(monkeypatch: pytest.MonkeyPatch) -> None:
    cause = SimpleNamespace(fields={"group": "policy"}, code="SYM200")
    elsewhere = SimpleNamespace(fields={"group": "critic"}, code="SYM201")
    monkeypatch.setattr(judgement, "code_columns", lambda context: (None, (cause, elsewhere)))


def test_columns_are_counted_for_every_element_and_the_largest_difference_is_told() -> None:
    right = judged()
    assert (right.checked, right.violations, right.max_residual, right.causes) == (3, 0, 0.0, ())
    assert [note.code for note in right.notes] == ["tolerance_columns"]
    assert judged(called=SimpleNamespace(order=4), block_order=(1, 2, 3)).checked == 9
    wrong = judged(wrong=[SimpleNamespace(group="policy"), SimpleNamespace(group="critic")],
                   expected_images=lambda name, element: np.full((4, 3), 3.5))  # fmt: skip
    assert (wrong.verdict, wrong.violations, wrong.max_residual) == ("failed", 1, 2.5)
    assert [cause.code for cause in wrong.causes] == ["SYM200"]
    assert judged(images=lambda name: None).max_residual == np.inf
    assert judged(expected_images=lambda name, element: np.full((4, 3), np.nan)).max_residual == np.inf


def test_a_mirror_that_moves_nothing_is_undecided_and_two_candidates_blame_nobody() -> None:
    still = judged(matrix=np.eye(3))
    assert (still.verdict, still.facts.moved) == ("undecided", False)
    assert judged(matrix=np.eye(3), offset=np.array([0.0, 0.5, 0.0])).facts.moved
    pairings = [SimpleNamespace(ambiguous=["left or right"]), SimpleNamespace(ambiguous=["front or back"])]
    unclear = judged(layout=SimpleNamespace(robot=SimpleNamespace(pairings=pairings)),
                     wrong=[SimpleNamespace(group="policy")])  # fmt: skip
    assert (unclear.verdict, unclear.causes) == ("undecided", ())
    assert unclear.facts.unattributed.fields == {"bodies": ["left or right", "front or back"]}


def test_differences_of_the_model_and_blocks_in_another_order_are_noted() -> None:
    told = judged(called=SimpleNamespace(order=4), block_order=(3, 2, 1), differences=["mass of a leg"],
                  unpaired=[("leg", "the leg has no image"), ("arm", "the arm has none")])  # fmt: skip
    assert [note.code for note in told.notes] == [
        "tolerance_columns", "mirror_turns_clockwise", "model_differences_beside"]  # fmt: skip
    assert told.notes[2].fields == {"count": 3, "first": "the leg has no image"}
    only = judged(differences=["mass of a leg"])
    assert only.notes[1].fields == {"count": 1, "first": "mass of a leg"}
