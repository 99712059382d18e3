"""Rotations by every angle, written as claims: brackets, signs and frequencies against matrices."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from scipy.linalg import expm

from symcheck.discovery import families
from symcheck.discovery.families import Family, family_of, spatial_family, with_finite_part
from symcheck.errors import SymcheckError

WHERE: Any = SimpleNamespace(has_state=False, observation=spaces.Box(-1, 1, (4,)), action=spaces.Box(-1, 1, (2,)))


def generator(*planes: tuple[int, int, float], dim: int = 4) -> Any:
    made = np.zeros((dim, dim))
    for i, j, rate in planes:
        made[j, i], made[i, j] = rate, -rate
    return made


def turn(observation: Any, action: Any = "identity", **more: Any) -> Family:
    return Family.of({"name": "world turn", "group": "so(2)", "observation": [observation], "action": [action], **more})


@pytest.mark.parametrize(
    ("planes", "written"),
    [
        ([(0, 1, 1.0)], {"rotate": [[0, 1]]}),
        ([(0, 1, -1.0)], {"rotate": [[1, 0]]}),
        ([(0, 1, 1.0), (2, 3, 2.0)], {"rotate": [[0, 1], [2, 3]], "frequency": [1, 2]}),
        ([(1, 3, -3.0)], {"rotate": [[3, 1]], "frequency": [3]}),
        ([], "identity"),
    ],
)
def test_a_generator_is_written_by_its_planes_and_read_again(planes: Any, written: Any) -> None:
    made = generator(*planes)
    assert families._entry(made) == written
    read = families._lie_matrix(written, 1)
    np.testing.assert_array_equal(np.pad(read, (0, 4 - len(read))), made)
    reverse = families._reverse(written, -1)
    back = families._lie_matrix(reverse, 1)
    np.testing.assert_array_equal(np.pad(back, (0, 4 - len(back))), -made)
    np.testing.assert_array_equal(families._lie_matrix(written, -1), -read)
    assert families._reverse(written, 1) is written


def lab(shows_state: bool = True) -> Any:
    return SimpleNamespace(label="world", shows_state=shows_state)


def rotation(state: Any, action: Any, shift: float = 0.0) -> Any:
    return SimpleNamespace(state=np.asarray(state), action=np.asarray(action), shift=np.full(len(state), shift))


def test_rates_are_whole_up_to_difference_quotients_or_half_of_whole() -> None:
    acting = generator((0, 1, 1.0), dim=2)
    family = family_of(lab(), rotation(generator((0, 1, 1.0), (2, 3, 1.0)), acting), WHERE)
    assert family.fields == {
        "name": "world turn", "group": "so(2)", "observation": [{"rotate": [[0, 1], [2, 3]]}],
        "action": [{"rotate": [[0, 1]]}]}  # fmt: skip
    assert family.claim.group.name == "SO(2)"
    near = family_of(lab(), rotation(generator((0, 1, 1.004), (2, 3, 0.996)), acting), WHERE)
    assert near.fields == family.fields
    half = family_of(lab(), rotation(generator((0, 1, 1.0), (2, 3, 0.5)), 0.5 * acting), WHERE)
    assert half.fields["observation"] == [{"rotate": [[0, 1], [2, 3]], "frequency": [2, 1]}]
    assert half.fields["action"] == [{"rotate": [[0, 1]]}]
    for rate in (1.006, 1 / 3):
        with pytest.raises(SymcheckError, match="not integer multiples"):
            family_of(lab(), rotation(generator((0, 1, 1.0), (2, 3, rate)), acting), WHERE)
    with pytest.raises(SymcheckError, match="shifts angles"):
        family_of(lab(), rotation(generator((0, 1, 1.0)), acting, shift=0.1), WHERE)


def test_observations_that_do_not_show_the_state_have_the_logarithm_of_their_map(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = generator((0, 1, 2.0), (2, 3, -1.0))
    asked: list[Any] = []

    def observe(lab: Any, image: Any, acting: Any) -> Any:
        asked.append((image(np.eye(2)), acting))
        return expm(0.5 * shown), None

    monkeypatch.setattr(families, "observation_matrix", observe)
    acting = generator((0, 1, 1.0), dim=2)
    where: Any = SimpleNamespace(**{**vars(WHERE), "has_state": True})
    family = family_of(lab(False), rotation(acting, acting), where)
    assert family.fields["observation"] == [{"rotate": [[0, 1], [3, 2]], "frequency": [2, 1]}]
    assert family.fields["state"] == [{"rotate": [[0, 1]]}]
    quarter = np.array([[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]])
    np.testing.assert_allclose(asked[0][0], quarter.T, atol=1e-12)
    np.testing.assert_allclose(asked[0][1], quarter, atol=1e-12)


AXES = ([1, 2], [2, 0], [0, 1])


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 0, 2)])
@pytest.mark.parametrize("flips", [(), (0,), (1, 2)])
def test_three_rotations_with_the_brackets_of_space_are_all_of_space(order: Any, flips: Any) -> None:
    def axis(k: int) -> Family:
        pair = AXES[k][::-1] if k in flips else AXES[k]
        return turn({"rotate": [pair]}, {"rotate": [[pair[0] + 3, pair[1] + 3]]})

    family = spatial_family([axis(k) for k in order])
    assert family is not None
    assert (family.claim.group.name, family.fields["name"]) == ("SO(3)", "world rotations")
    for part in ("observation", "action"):
        x, y, z = (np.zeros((6, 6)) for _ in range(3))
        for whole, lie in zip((x, y, z), family.fields[part], strict=True):
            made = families._lie_matrix(lie, 1)
            whole[: len(made), : len(made)] = made
        for a, b, c in ((x, y, z), (y, z, x), (z, x, y)):
            np.testing.assert_array_equal(a @ b - b @ a, c)


def test_rotations_without_these_brackets_are_not_joined() -> None:
    about = [turn({"rotate": [pair]}, {"rotate": [pair]}) for pair in AXES]
    assert spatial_family(about[:2]) is None
    assert spatial_family([turn({"rotate": [[k, k + 1]]}) for k in (0, 2, 4)]) is None
    elsewhere = turn({"rotate": [[0, 1]]}, {"rotate": [[1, 2]]})  # observations close, actions do not
    assert spatial_family([*about[:2], elsewhere]) is None
    faster = turn({"rotate": [[0, 1]], "frequency": [2]}, {"rotate": [[0, 1]]})
    assert spatial_family([*about[:2], faster]) is None
    assert spatial_family([elsewhere, *about]) is not None
    still = [turn({"rotate": [pair]}) for pair in AXES]  # actions stay
    joined = spatial_family(still)
    assert joined is not None
    assert joined.fields["action"] == ["identity"] * 3
    assert families._first_plane(still[1]) == [0, 2]
    assert families._first_plane(turn("identity", {"rotate": [[0, 1]]})) == []


PLANE = {"rotate": [[0, 1]]}
MIRROR, HALF, QUARTER, SHEAR = [1.0, -1.0], [-1.0, -1.0], [[0.0, -1.0], [1.0, 0.0]], [[1.0, 1.0], [0.0, 1.0]]


def linear(matrix: Any) -> Any:
    return {"signs": [int(x) for x in matrix]} if np.ndim(matrix) == 1 else {"matrix": matrix}


@pytest.mark.parametrize(("matrix", "sign"), [(MIRROR, -1), (HALF, 1), (QUARTER, 1), (SHEAR, 0)])
def test_a_map_commutes_with_a_rotation_or_reverses_it_or_neither(matrix: Any, sign: int) -> None:
    assert families._relation(PLANE, linear(matrix)) == sign
    assert families._relation("identity", linear(matrix)) is None
    assert families._relation(PLANE, "identity") is None
    both = families._matrices({"rotate": [[1, 0]], "frequency": [3]}, linear(matrix))
    assert both is not None
    np.testing.assert_array_equal(both[0], [[0.0, 3.0], [-3.0, 0.0]])
    np.testing.assert_array_equal(both[1], np.diag(matrix) if np.ndim(matrix) == 1 else matrix)


def test_a_map_that_is_a_turn_of_the_family_adds_nothing() -> None:
    fields: dict[str, Any] = {"observation": [PLANE], "action": [PLANE]}

    def is_turn(observation: Any, action: Any) -> bool:
        return families._is_turn(fields, {"observation": linear(observation), "action": linear(action)})

    assert is_turn(QUARTER, QUARTER)
    assert is_turn(HALF, HALF)
    assert not is_turn(QUARTER, HALF)
    assert not is_turn(MIRROR, MIRROR)
    back = [[0.0, 1.0], [-1.0, 0.0]]
    assert is_turn(back, back)
    fields["action"] = ["identity"]
    assert is_turn(QUARTER, [1.0, 1.0])
    assert not is_turn(QUARTER, HALF)


def test_verified_elements_extend_a_rotation_to_a_reflection_or_a_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "observation_entry", lambda candidate, where: linear(candidate.matrix))
    monkeypatch.setattr(families, "action_entry", lambda candidate, where: linear(candidate.acting))

    def element(matrix: Any, acting: Any, order: int = 2) -> Any:
        return SimpleNamespace(matrix=matrix, acting=acting, order=order)

    def extend(*elements: Any) -> list[str]:
        group: Any = SimpleNamespace(generators=elements)
        made = list(with_finite_part(turn(PLANE, PLANE), group, WHERE))
        assert all(len(each.fields["observation"]) == 2 for each in made)
        return [each.fields["group"] for each in made]

    assert extend() == []
    assert list(with_finite_part(turn(PLANE, PLANE), None, WHERE)) == []
    assert extend(element(MIRROR, MIRROR)) == ["o(2)"]
    assert extend(element(HALF, HALF)) == []  # a rotation already
    assert extend(element(MIRROR, HALF)) == []  # reverses one part and not the other
    beside = element(HALF, [1.0, 1.0])
    assert extend(beside) == ["product(so(2), cyclic(2))"]
    assert extend(beside, element(MIRROR, MIRROR)) == ["o(2)", "product(so(2), cyclic(2))"]
    about = [turn({"rotate": [pair]}, {"rotate": [pair]}) for pair in AXES]
    space = spatial_family(about)
    assert space is not None
    assert list(with_finite_part(space, None, WHERE)) == []
