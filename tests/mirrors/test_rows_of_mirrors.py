"""Rows of mirror functions and images of policies, read from their answers and compared with closed forms."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from symcheck.engine.mirrors.drawing import _displacements, _image_of, _screen, _within_limits
from symcheck.engine.mirrors.rows import Row, _from_ramp, describe_row, matrix_row, read_rows
from symcheck.engine.mirrors.samples import _draw_term
from symcheck.engine.policies.images import image_of, image_of_deviations
from symcheck.engine.policies.normalisers import average
from symcheck.engine.policies.residuals import measure_residual, random_rows
from symcheck.entries.forms import parse_entry
from symcheck.errors import SpecError
from symcheck.groups import catalog
from symcheck.mujoco.isometry import matrix_of
from symcheck.symmetry.symmetry import Symmetry

RNG = np.random.default_rng(0)
NAMES = SimpleNamespace(seen_from=lambda column, place: f"c{column}")


@pytest.mark.parametrize(
    ("row", "only"),
    [
        (Row(((2, -1.0),)), True),
        (Row(((2, -1.00009),)), True),
        (Row(((2, -1.00011),)), False),
        (Row(((2, 1.0),)), False),
        (Row(((1, -1.0),)), False),
        (Row(((2, -1.0), (0, 1.0))), False),
        (Row(((2, -1.0),), 0.00009), True),
        (Row(((2, -1.0),), -0.00011), False),
        (Row(((2, -1.0),), kind="nonlinear"), False),
        (Row(), False),
    ],
)
def test_a_row_is_one_column_up_to_a_ten_thousandth(row: Row, only: bool) -> None:
    assert row.is_only(2, -1.0) == only
    assert row.same_as(Row(((2, -1.0),))) == only
    assert Row(((2, -1.0),)).same_as(row) == only


def test_a_row_is_zero_without_terms_and_constant() -> None:
    assert Row().is_zero
    assert Row((), 0.00009).is_zero
    assert not Row((), -0.00011).is_zero
    assert not Row(((0, 1.0),)).is_zero
    assert not Row(kind="nan").is_zero
    assert Row(((1, 0.00005),)).same_as(Row())


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (Row(((2, -1.0),)), "-c2"),
        (Row(((0, 0.5), (3, -0.25))), "+0.5*c0 -0.25*c3"),
        (Row(((2, 1.0),), -1.5), "+c2 -1.5"),
        (Row((), 0.25), "+0.25"),
        (Row(), "0"),
        (Row((), 0.00005), "0"),
        (Row(tuple((c, 1.0) for c in range(4))), "+c0 +c1 +c2 +c3"),
        (Row(tuple((c, 1.0) for c in range(5))), "a mix of 5 columns"),
        (Row(kind="nonlinear"), "no linear map"),
        (Row(kind="absent"), "nothing"),
        (Row(kind="nan"), "no finite number"),
    ],
)
def test_a_row_in_words(row: Row, told: str) -> None:
    assert describe_row(NAMES, row, 0) == told


@pytest.mark.parametrize("width", [3, 300])
@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e2])
def test_rows_are_those_of_the_matrix_and_offset(width: int, scale: float) -> None:
    index, sign = RNG.permutation(width), RNG.choice([-1.0, 1.0], width)
    matrix = np.eye(width)[index] * sign[:, None]
    matrix[0] = 0
    matrix[1, :3] = scale * np.array([0.5, -2.0, 1.0])
    offset = np.zeros(width)
    offset[2] = 3 * scale

    def images(table: np.ndarray) -> np.ndarray:
        return (table @ matrix.T + offset).astype(np.float32).astype(float)

    samples = RNG.normal(size=(20, width))
    rows = read_rows(images, width, range(width), samples)
    assert rows[0].is_zero
    for c in range(1, width):
        kept = [(int(k), matrix[c, k]) for k in np.flatnonzero(matrix[c])]
        assert [k for k, _ in rows[c].terms] == [k for k, _ in kept]
        np.testing.assert_allclose([v for _, v in rows[c].terms], [v for _, v in kept], rtol=1e-5)
        assert rows[c].constant == pytest.approx(offset[c], rel=1e-5, abs=1e-9)


def test_rows_that_are_no_linear_map_or_no_number_say_so() -> None:
    def images(table: np.ndarray) -> np.ndarray:
        made = table.copy()
        made[:, 1] = np.abs(table[:, 1])
        made[:, 2] = np.where(table[:, 2] > 0.5, np.nan, table[:, 2])
        made[:, 3] = table[:, 3] ** 2
        return made

    samples = RNG.normal(size=(50, 4))
    rows = read_rows(images, 4, [0, 1, 2, 3], samples)
    assert rows[0].is_only(0, 1.0)
    assert [rows[c].kind for c in (1, 2, 3)] == ["nonlinear", "nan", "nonlinear"]
    assert list(read_rows(images, 4, [1], samples)) == [1]


@pytest.mark.parametrize(
    ("value", "constant", "row"),
    [
        (3.0, 0.0, Row(((2, 1.0),))),
        (-5.0, 0.0, Row(((4, -1.0),))),
        (5.0, 2.0, Row(((4, 1.0),), 2.0)),
        (6.0, 0.0, None),
        (2.5, 0.0, None),
        (2.0 + 5e-6, 0.0, Row(((1, 1.0),))),
        (2.0 + 7e-6, 0.0, None),
        (0.0, 0.0, Row()),
        (5e-6, 2.0, Row((), 2.0)),
        (np.nan, 0.0, None),
        (1.0, np.inf, None),
    ],
)
def test_a_number_of_the_ramp_names_its_column(value: float, constant: float, row: Row | None) -> None:
    assert _from_ramp(value, constant, 5) == row


def test_rows_of_sparse_matrices_leave_stored_zeros_out() -> None:
    from scipy import sparse

    matrix = sparse.csr_array((np.array([0.0, -1.0, 2.0]), (np.array([0, 0, 1]), np.array([0, 2, 1]))), shape=(2, 3))
    assert matrix_row(matrix, 0, 0.5) == Row(((2, -1.0),), 0.5)
    assert matrix_row(matrix, 1) == Row(((1, 2.0),))


# --- samples and drawings


def test_orientations_are_drawn_as_proper_rotations() -> None:
    rotations = _draw_term("rotation", ("R",) * 9, RNG, 50).reshape(50, 3, 3)
    np.testing.assert_allclose(rotations @ rotations.transpose(0, 2, 1), [np.eye(3)] * 50, atol=1e-12)
    assert (np.linalg.det(rotations) > 0).all()
    columns = _draw_term("rot6d", ("R",) * 6, RNG, 50).reshape(50, 2, 3)
    np.testing.assert_allclose(np.linalg.norm(columns, axis=2), 1)
    np.testing.assert_allclose((columns[:, 0] * columns[:, 1]).sum(axis=1), 0, atol=1e-12)
    first, second = (_draw_term("quat", tuple(order), np.random.default_rng(3), 50) for order in ("wxyz", "xyzw"))
    np.testing.assert_array_equal(first[:, [1, 2, 3, 0]], second)
    assert (first[:, 0] >= 0).all()
    np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1)
    same = _draw_term("rotation", ("R",) * 9, np.random.default_rng(3), 50).reshape(50, 3, 3)
    np.testing.assert_allclose([matrix_of(q) for q in first], same, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(_draw_term("gravity", ("x", "y", "z"), RNG, 9), axis=1), 1)
    assert set(np.unique(_draw_term("contacts", ("a", "b"), RNG, 50))) == {0.0, 1.0}
    angles = _draw_term("euler_xyz", ("r", "p", "y"), RNG, 500)
    assert 1.1 < np.abs(angles).max() <= 1.2
    other = _draw_term("joint_pos", ("a", "b"), RNG, 500)
    assert (other > 2).any()
    assert (other < -2).any()


def test_a_drawing_projects_from_the_front_and_above() -> None:
    assert _screen(np.array([0.0, 1.0, 0.0])) == (1.0, 0.0)
    assert _screen(np.array([0.0, 0.0, 1.0])) == (0.0, 1.0)
    assert _screen(np.array([1.0, 0.0, 0.0])) == (-0.45, -0.3)


def _arm(kinds: list[int]) -> tuple[SimpleNamespace, SimpleNamespace]:
    """A chain of bodies along x, one metre each, with one joint each about z (or along z)."""
    count = len(kinds)
    model = SimpleNamespace(
        nbody=count + 1,
        body_parentid=[0, *range(count)],
        body_jntadr=[0, *range(count)],
        body_jntnum=[0, *[1] * count],
        jnt_type=kinds,
        jnt_range=[[0.0, 0.0], [-0.1, 0.1], [1.0, 1.0]][:count],
        jnt_limited=[True, True, True][:count],
    )
    reference = SimpleNamespace(
        axis=np.tile([0.0, 0.0, 1.0], (count, 1)), anchor=np.array([[k, 0.0, 0.0] for k in range(count)])
    )
    return SimpleNamespace(model=model), SimpleNamespace(reference=reference)


def test_bodies_move_by_the_product_of_their_joints() -> None:
    robot, pairing = _arm([3, 3, 2])
    moved = _displacements(robot, pairing, np.array([np.pi / 2, np.pi / 2, 0.5]))
    points = [rotation @ np.array([k, 0.0, 0.0]) + shift for k, (rotation, shift) in enumerate(moved)]
    # The first hinge stands at 0 and turns the second one to (0, 1, 0), from where the arm runs back to (-1, 1, 0).
    np.testing.assert_allclose(points[1], [0, 1, 0], atol=1e-12)
    np.testing.assert_allclose(points[2], [-1, 1, 0], atol=1e-12)
    np.testing.assert_allclose(points[3], [-2, 1, 0.5], atol=1e-12)
    limited = _within_limits(robot, np.array([0.7, 0.7, 0.7]))
    np.testing.assert_allclose(limited, [0.7, 0.1, 0.07])
    image = _image_of(
        SimpleNamespace(joints=np.array([1, 0, -1]), joint_signs=np.array([-1, 1, 1])), np.arange(1.0, 4.0)
    )
    assert image.tolist() == [2, -1, 0]


# --- policies


def test_words_are_applied_from_their_last_letter_to_batches_of_every_form() -> None:
    entries = [parse_entry(["+2", "+3", "+1"], ""), parse_entry([-1, 1, 1], "")]
    batch = RNG.normal(size=(4, 3))
    expected = np.stack([entries[0].apply(entries[1].apply(row)) for row in batch])
    np.testing.assert_array_equal(image_of(entries, (0, 1), batch, "observation"), expected)
    np.testing.assert_array_equal(image_of(entries, (), batch, "observation"), batch)
    shaped = batch.reshape(4, 3, 1)
    np.testing.assert_array_equal(image_of(entries, (0, 1), shaped, "observation")[..., 0], expected)
    tree = [parse_entry({"a": [-1, 1, 1]}, "")]
    moved = image_of(tree, (0,), {"a": batch, "b": batch}, "observation")
    np.testing.assert_array_equal(moved["a"][:, 0], -batch[:, 0])
    np.testing.assert_array_equal(moved["b"], batch)
    with pytest.raises(SpecError, match="mapping by key, but the data is one array"):
        image_of(tree, (0,), batch, "observation")
    with pytest.raises(SpecError, match="single map, but the data has the keys a"):
        image_of(entries, (0,), {"a": batch}, "observation")
    with pytest.raises(SpecError, match="acts on 3 components, but each state in the data has 2"):
        image_of(entries, (0,), batch[:, :2], "observation")


def test_variances_of_independent_actions_move_by_squares() -> None:
    dense = parse_entry({"matrix": [[0.6, 0.8], [0.8, -0.6]]}, "")
    swap = parse_entry(["-2", "+1"], "")
    deviations = RNG.uniform(0.5, 2, size=(5, 2))
    matrix = np.square(np.array([[0.6, 0.8], [0.8, -0.6]]))
    np.testing.assert_allclose(
        image_of_deviations([dense], (0,), deviations, "action"), np.sqrt(deviations**2 @ matrix.T)
    )
    np.testing.assert_allclose(image_of_deviations([swap], (0,), deviations, "action"), deviations[:, ::-1])
    np.testing.assert_allclose(
        image_of_deviations([swap, dense], (0, 1), deviations, "action"), np.sqrt(deviations**2 @ matrix.T)[:, ::-1]
    )


@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e4])
def test_residuals_of_a_linear_policy_are_those_of_its_matrix(scale: float) -> None:
    mirror = Symmetry("mirror", catalog.cyclic(2), [[-1, 1]], [[-1]])
    net = nn.Linear(2, 1, bias=True).double()
    with torch.no_grad():
        net.weight.copy_(scale * torch.tensor([[1.0, 0.5]]))
        net.bias.copy_(scale * torch.tensor([0.25]))
    states = torch.as_tensor(RNG.normal(size=(100, 2)))
    found = measure_residual(net, mirror, states)
    # The part that should vanish, 0.5 x + 0.25, comes twice.
    residual = 2 * scale * np.abs(0.5 * states[:, 1].numpy() + 0.25)
    actions = net(states).detach().numpy()
    assert found["residual_max"] == pytest.approx(residual.max())
    assert found["residual_mean"] == pytest.approx(residual.mean())
    assert found["residual_relative"] == pytest.approx(residual.mean() / actions.std(axis=0).mean())
    grouped = measure_residual(lambda seen: net(seen["policy"]), mirror, {"policy": states, "other": states})
    assert grouped == found
    constant = measure_residual(lambda seen: torch.ones(len(seen), 1, dtype=torch.float64), mirror, states)
    assert constant == {"residual_max": 2.0, "residual_mean": 2.0, "residual_relative": 0.0}


@pytest.mark.parametrize(("count", "taken"), [(1, 1), (2_048, 2_048), (2_049, 2_048)])
def test_at_most_2048_states_are_measured_each_once(count: int, taken: int) -> None:
    rows = random_rows(count)
    assert len(rows) == len(set(rows.tolist())) == taken
    assert rows.tolist() == random_rows(count).tolist()


def test_statistics_of_a_group_that_is_not_abelian_are_those_of_all_images() -> None:
    group = catalog.symmetric(3)
    entries = [parse_entry([int(i) for i in g.images], "") for g in group.generators]
    symmetry = Symmetry("s", group, entries, entries)
    data = RNG.normal(size=(1_000, 3)) * [1, 2, 3] + [0, 1, 5]
    images = np.concatenate([image_of(entries, tuple(group.word(g)), data, "") for g in group.elements()])
    mean, variance = average(data.mean(axis=0), data.var(axis=0), list(symmetry.observation), symmetry)
    np.testing.assert_allclose(mean, images.mean(axis=0))
    np.testing.assert_allclose(variance, images.var(axis=0))
