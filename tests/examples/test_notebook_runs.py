"""The notebook runs from top to bottom and shows what its text speaks of."""

import ast
import json
from pathlib import Path

import pytest

NOTEBOOK = json.loads((Path(__file__).parents[2] / "examples" / "is_it_symmetric.ipynb").read_text())
CELLS = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


def shown(source: str, names: dict[str, object]) -> object:
    """What a notebook shows below a cell: the value of its last line, where that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.fixture(scope="module")
def values():
    names: dict[str, object] = {}
    return [value for source in CELLS if (value := shown(source, names)) is not None]


def test_the_notebook_is_stored_without_outputs():
    assert not [cell for cell in NOTEBOOK["cells"] if cell.get("outputs")]


def test_cartpole_passes_and_the_report_shows_itself(values):
    assert values[0].verdict == "passed"
    assert values[0]._repr_html_().startswith("<iframe")


def test_mountain_car_fails_where_the_text_says(values):
    assert {name for name, verdict in values[1].items() if verdict == "failed"} == {
        "transition_invariance",
        "termination_invariance",
        "initial_invariance",
    }
    assert "<svg" in values[2].html


def test_the_small_problem_solves_the_large_one(values):
    smallest, difference, matrices, network = values[3:]
    assert smallest.abstract_mdp.n_states == 10
    assert "<iframe" in smallest._repr_html_()
    assert difference < 1e-8  # the tolerance of value iteration, over 1 - discount
    assert matrices.shape == (4, 2, 4)
    assert network.verdict == "failed"
