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
    ("net", "group_axioms"): f"{HANDED}::test_a_callable_action_map_of_order_three_fails_group_axioms",
    ("net", "layer_certificate"): LAYERS,
    ("net", "network_equivariance"): LAYERS,
    ("net", "representation_propagation"): (
        f"{HANDED}::test_a_c4_network_is_proved_and_its_cousin_with_even_filters_names_sizes_that_would_do"
    ),
}
"""(kind, property): the test that plants a defect and asserts that this property fails."""


def test_every_property_has_a_planted_defect() -> None:
    entries = [entry for kind in ("env", "net") for entry in registry.registered(kind)]
    ours = {(entry.kind, entry.name) for entry in entries if entry.check.__module__.startswith("symcheck_properties")}
    assert ours == set(DEFECTS), "name the test that plants its defect in DEFECTS"


@pytest.mark.parametrize("place", sorted(set(DEFECTS.values())))
def test_the_test_that_plants_a_defect_exists(place: str) -> None:
    path, _, name = place.partition("::")
    tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
