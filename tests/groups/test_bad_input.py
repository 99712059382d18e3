"""Whatever is handed over by mistake: a `SymcheckError` that names the argument, never a traceback from inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

from symcheck import groups, nn
from symcheck import representations as reps
from symcheck.errors import SymcheckError
from symcheck.intertwiners import conv_intertwiner_basis, intertwiner_basis

C2, C4, D4 = groups.cyclic(2), groups.cyclic(4), groups.dihedral(4)
TWO = reps.regular(C2)
Case = Callable[[], Any]
MISTAKES: list[tuple[Case, str]] = [
    (lambda: reps.from_matrices(C2, None), "one entry per generator"),  # type: ignore[arg-type]
    (lambda: reps.from_matrices(C2, np.eye(2)), "square matrix, got an array of shape"),  # type: ignore[arg-type]
    (lambda: reps.from_matrices(C2, [[[np.inf]]]), "finite"),
    (lambda: reps.permutation(C2, [1, 0]), "Write .entry."),  # type: ignore[list-item]
    (lambda: reps.permutation(C2, None), "one entry per generator"),  # type: ignore[arg-type]
    (lambda: reps.permutation(C2, [[-1, 0]]), "expected a permutation"),
    (lambda: reps.permutation(C2, [["a", "b"]]), "real numbers"),  # type: ignore[list-item]
    (lambda: reps.signed_permutation(C2, "-1"), "one entry per generator"),
    (lambda: groups.from_permutations(None), "one entry per generator"),  # type: ignore[arg-type]
    (lambda: groups.from_permutations([1, 0]), "Write .entry."),  # type: ignore[list-item]
    (lambda: groups.from_permutations([[0.5, 1]]), "expected a permutation"),  # type: ignore[list-item]
    (lambda: groups.from_permutations([["x"]]), "real numbers"),  # type: ignore[list-item]
    (lambda: groups.from_matrices(None), "one entry per generator"),  # type: ignore[arg-type]
    (lambda: groups.from_matrices([[[0, -1], [1, 0]]], limit=2), "its order exceeds the limit"),
    (lambda: groups.subgroup(D4, [3]), "expected an element of D4"),  # type: ignore[list-item]
    (lambda: groups.Group([3], name="G"), "expected elements"),  # type: ignore[list-item]
    (lambda: C2.word(3), "expected an element of C2, got 3"),  # type: ignore[arg-type]
    (lambda: TWO.matrix("r"), "expected an element"),  # type: ignore[arg-type]
    (lambda: TWO.matrix(D4.generators[0]), "is not an element of C2"),
    (lambda: reps.tensor(TWO, 3), "expected a representation, got 3"),  # type: ignore[arg-type]
    (lambda: reps.image_grid(C4, 2.5, 2.5, ["rot90"]), "positive height"),  # type: ignore[arg-type]
    (lambda: conv_intertwiner_basis(TWO, TWO, "3", spatial=["flip_ud"]), "positive integers"),  # type: ignore[arg-type]
    (lambda: conv_intertwiner_basis(TWO, TWO, 3.0, spatial=["flip_ud"]), "positive integers"),  # type: ignore[arg-type]
    (lambda: conv_intertwiner_basis(TWO, TWO, 3, spatial=None), "one operator per generator"),  # type: ignore[arg-type]
    (lambda: intertwiner_basis(TWO, TWO, kind=None), "no kind of basis"),  # type: ignore[arg-type]
    (lambda: intertwiner_basis(TWO, TWO).project("x"), "real numbers"),
    (lambda: nn.BasisLinear(C2, TWO, 1, 1), "rho_in: expected a representation"),  # type: ignore[arg-type]
    (lambda: nn.BasisLinear(TWO, TWO, 1.5, 1), "number of channels"),  # type: ignore[arg-type]
    (lambda: nn.BasisConv2d(TWO, TWO, 1, 1, 3, spatial=["flip_ud"], padding="same"), "padding"),  # type: ignore[arg-type]
    (lambda: nn.BasisConv2d(TWO, TWO, 1, 1, 3, spatial=["flip_ud"], stride=None), "stride"),  # type: ignore[arg-type]
    (lambda: nn.EquivariantSequential([torch.nn.ReLU()]), "first module"),  # type: ignore[arg-type]
    (lambda: nn.EquivariantHeads(None, {}), "the body must declare"),  # type: ignore[arg-type]
    (lambda: nn.GlobalMaxPool(3), "expected a representation"),  # type: ignore[arg-type]
    (lambda: nn.SplitChannels(3), "expected a representation"),  # type: ignore[arg-type]
    (lambda: nn.NormNonlinearity(3, 1), "expected a representation"),  # type: ignore[arg-type]
    (lambda: nn.PointwiseNonlinearity("relu"), "expected a representation"),  # type: ignore[arg-type]
    (lambda: nn.to_dense(None), "expected a torch module"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("build", "message"), MISTAKES)
def test_a_mistake_is_named_and_not_passed_on(build: Case, message: str) -> None:
    with pytest.raises(SymcheckError, match=message):
        build()


NOT_A_GROUP: dict[str, Case] = {
    "trivial": lambda: reps.trivial(3),  # type: ignore[arg-type]
    "sign": lambda: reps.sign(3),  # type: ignore[arg-type]
    "regular": lambda: reps.regular(3),  # type: ignore[arg-type]
    "permutation": lambda: reps.permutation(3, [[0]]),  # type: ignore[arg-type]
    "signed_permutation": lambda: reps.signed_permutation(3, [[1]]),  # type: ignore[arg-type]
    "from_matrices": lambda: reps.from_matrices(3, [[[1]]]),  # type: ignore[arg-type]
    "natural": lambda: reps.natural(3),  # type: ignore[arg-type]
    "standard": lambda: reps.standard(3),  # type: ignore[arg-type]
    "rotation": lambda: reps.rotation(3),  # type: ignore[arg-type]
    "image_grid": lambda: reps.image_grid(3, 1, 1, ["identity"]),  # type: ignore[arg-type]
    "restrict(to)": lambda: reps.restrict(TWO, to=3),  # type: ignore[arg-type]
    "induce(to)": lambda: reps.induce(TWO, to=3),  # type: ignore[arg-type]
}
NO_REPRESENTATION: dict[str, Case] = {
    "dual": lambda: reps.dual(3),  # type: ignore[arg-type]
    "restrict": lambda: reps.restrict(3, to=C2),  # type: ignore[arg-type]
    "induce": lambda: reps.induce(3, to=C2),  # type: ignore[arg-type]
    "with_grid": lambda: reps.with_grid(3, 1, 1, ["identity"]),  # type: ignore[arg-type]
    "the first representation": lambda: reps.tensor(3),  # type: ignore[arg-type]
    "number 2": lambda: reps.direct_sum(TWO, 3),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("place", NOT_A_GROUP)
def test_what_is_no_group_is_refused_by_the_function_that_was_called(place: str) -> None:
    with pytest.raises(SymcheckError, match="expected a group, got 3") as refused:
        NOT_A_GROUP[place]()
    assert refused.value.where == place


@pytest.mark.parametrize("place", NO_REPRESENTATION)
def test_what_is_no_representation_is_refused_by_the_function_that_was_called(place: str) -> None:
    with pytest.raises(SymcheckError, match="expected a representation, got 3") as refused:
        NO_REPRESENTATION[place]()
    assert refused.value.where == place


@pytest.mark.parametrize("combine", [reps.direct_sum, reps.tensor])
def test_nothing_cannot_be_combined(combine: Callable[..., Any]) -> None:
    with pytest.raises(SymcheckError, match=f"{combine.__name__}: expected at least one representation"):
        combine()


SWAP = [[0, 1], [1, 0]]
FORMS: list[Any] = [
    SWAP,
    np.array(SWAP, dtype=np.int8),
    np.array(SWAP, dtype=bool),
    np.array(SWAP, dtype=np.float32),
    scipy.sparse.csr_matrix(np.array(SWAP)),
    torch.tensor(SWAP),
    torch.tensor(SWAP, dtype=torch.float32, requires_grad=True),
    torch.tensor(SWAP, dtype=torch.bfloat16),
]


@pytest.mark.parametrize("matrix", FORMS, ids=lambda m: f"{type(m).__module__}.{getattr(m, 'dtype', '')}")
def test_matrices_are_read_from_every_usual_form(matrix: Any) -> None:
    rho = reps.from_matrices(C2, [matrix])
    assert isinstance(rho, reps.SignedPermutationRepresentation)
    np.testing.assert_array_equal(rho.matrix(C2.generators[0]), SWAP)
    assert groups.from_matrices([matrix]).order == 2


def test_an_element_times_a_number_is_pythons_own_type_error() -> None:
    with pytest.raises(TypeError):
        C2.generators[0] * 3  # type: ignore[operator]


def test_numpy_integers_count_channels() -> None:
    assert nn.BasisLinear(TWO, TWO, np.int64(2), np.int64(3))(torch.zeros(1, 2, 2)).shape == (1, 3, 2)  # type: ignore[arg-type]
