"""Every planted fault is found at its layer; no correct network is accused."""

from __future__ import annotations

import pytest
from correct_networks import CORRECT
from faulty_networks import FAULTS
from subjects import Correct, Fault

from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.statements.statement import table

pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same'")


def tiers(table: list) -> list:
    marks = {True: (), False: (pytest.mark.slow,)}
    return [pytest.param(item, id=item.name, marks=marks[item.fast]) for item in table]


@pytest.mark.parametrize("subject", tiers(CORRECT))
def test_a_correct_network_is_not_accused(subject: Correct) -> None:
    result = run_net(subject.net(), subject.symmetry(), options=NetOptions(**subject.options))
    assert result.verdict == subject.verdict, result.method_reason


@pytest.mark.parametrize("subject", tiers(FAULTS))
def test_a_planted_fault_is_found_at_its_layer(subject: Fault) -> None:
    result = run_net(subject.net(), subject.symmetry(), options=NetOptions(**subject.options))
    failed = [p for p in result.properties if p.verdict == "failed"]
    assert failed, result.method_reason
    assert all(p.location for p in failed)
    if subject.location:
        assert {p.location for p in failed} == {subject.location}
    if subject.cause:
        assert any(subject.cause in str(cause) for p in failed for cause in p.causes)
    assert all(cause.code in table("causes") for p in failed for cause in p.causes)
    assert any(p.counterexample is not None for p in failed)


def test_the_tables_are_as_large_as_promised() -> None:
    assert len(CORRECT) >= 40
    assert len(FAULTS) >= 40
