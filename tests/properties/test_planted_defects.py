"""Every property has a planted defect that it must find: a property without one is unfinished."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import symcheck_properties  # noqa: F401  (registers the properties)
from symcheck.engine import registry

TESTS = Path(__file__).parents[1]
WORLDS = "defects/environments/test_planted_faults.py::test_a_planted_fault_fails_exactly_where_it_was_planted"
LAYERS = "defects/networks/test_planted_faults.py::test_a_planted_fault_is_found_at_its_layer"
GAMES = "games/test_game_verdicts.py::test_a_planted_fault_fails_what_it_breaks_and_is_named"
HANDED = "networks/test_net_handed_rows.py"
DEFECTS = {
    ("env", "group_axioms"): WORLDS,
    ("env", "observation_equivariance"): (
        "engine/test_env_runner.py::test_observation_equivariance_is_checked_where_the_state_is_another"
    ),
    ("env", "reward_invariance"): WORLDS,
    ("env", "transition_invariance"): WORLDS,
    ("env", "termination_invariance"): WORLDS,
    ("env", "initial_invariance"): WORLDS,
    ("game", "group_axioms"): GAMES,
    ("game", "legal_moves"): GAMES,
    ("game", "next_state"): GAMES,
    ("game", "outcome"): GAMES,
    ("game", "policy_map"): GAMES,
    ("game", "distinct_images"): GAMES,
    ("net", "group_axioms"): f"{HANDED}::test_a_callable_action_map_of_order_three_fails_group_axioms",
    ("net", "layer_certificate"): LAYERS,
    ("net", "network_equivariance"): LAYERS,
    ("net", "representation_propagation"): (
        f"{HANDED}::test_a_c4_network_is_proved_and_its_cousin_with_even_filters_names_sizes_that_would_do"
    ),
}
"""(kind, property): the test that plants a defect which this property must find, where it is not the usual one."""
USUAL = "properties/test_{name}.py::test_a_planted_defect_fails"

OURS = [
    entry
    for kind in ("env", "net", "game")
    for entry in registry.registered_properties(kind)  # type: ignore[arg-type]
    if entry.check.__module__.startswith("symcheck_properties")
]


def _has_test(place: str) -> bool:
    path, _, name = place.partition("::")
    if not (TESTS / path).is_file():
        return False
    tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
    return name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("entry", OURS, ids=lambda entry: f"{entry.kind}-{entry.name}")
def test_every_property_has_a_test_that_plants_its_defect(entry: registry.Property) -> None:
    place = DEFECTS.get((entry.kind, entry.name), USUAL.format(name=entry.name))
    assert _has_test(place), f"write tests/{place}, or name another test in DEFECTS"


def test_a_property_without_a_planted_defect_is_caught() -> None:
    assert not _has_test(USUAL.format(name="no_reward_is_huge"))
    assert not _has_test(f"{HANDED}::test_a_planted_defect_fails")


def test_no_property_that_is_gone_keeps_its_row() -> None:
    assert set(DEFECTS) <= {(entry.kind, entry.name) for entry in OURS}
