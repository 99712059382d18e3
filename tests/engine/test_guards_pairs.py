"""Pairs and distributions of outcomes say the same where a comparison could have shown nothing."""

from __future__ import annotations

from typing import Any

import pytest
from guards_table import (
    GUARDS,
    STILL_CLAIM,
    TABLE,
    THIRD_STAYS,
    Cell,
    Late,
    NowAndThen,
    World,
    check,
    judged,
    listening,
    press_ctrl_c,
    world,
)

from symcheck.engine import registry

_CELLS = [
    (method, guard, cell)
    for method in ("paired", "distribution")
    for guard, cell in TABLE[method].items()
    if isinstance(cell, Cell)
]


def test_every_method_has_a_cell_for_every_guard() -> None:
    assert set(TABLE) == registry.methods()
    for method, row in TABLE.items():
        assert set(row) == set(GUARDS), method
        assert all(cell for cell in row.values()), method


def _arrange(method: str, guard: str) -> tuple[type[World], dict[str, Any]]:
    """The world and the options under which a method meets a guard."""
    base = {"hidden state": Late, "unrepeatable": NowAndThen}.get(guard, World)
    made = world(guard, base, noise=0.1 if method == "distribution" else 0.0)
    options: dict[str, Any] = {
        "nothing moves": {"symmetry": STILL_CLAIM},
        "NaN in one coordinate": {"symmetry": THIRD_STAYS},
        "time up": {"max_time": 1e-9},
        "interrupted": {"emit": listening("stepping both sides", press_ctrl_c)},
        "fail fast": {"fail_fast": True},
        "unrepeatable": {"emit": listening("stepping both sides", lambda: setattr(made, "began", True))},
    }.get(guard, {})
    return made, {"method": method, **options}


@pytest.mark.parametrize(("method", "guard", "cell"), _CELLS, ids=lambda one: str(one) if isinstance(one, str) else "")
def test_a_method_says_what_its_cell_says(method: str, guard: str, cell: Cell) -> None:
    made, options = _arrange(method, guard)
    check(judged(made, guard, **options), cell)


@pytest.mark.parametrize("method", ["paired", "distribution"])
def test_without_a_fault_every_equation_passes_without_a_reason(method: str) -> None:
    made = type("Plain", (World,), {"noise": 0.1 if method == "distribution" else 0.0})
    for guard in ("NaN rewards", "NaN observations"):
        check(judged(made, guard, method=method), Cell("passed"))


@pytest.mark.parametrize("method", ["paired", "distribution"])
def test_random_rewards_that_are_never_numbers_are_no_pass(method: str) -> None:
    """They do not repeat as bits, and compare as equal all the same."""

    def pay(self: World, x: float) -> float:
        return float("nan") if self.np_random.random() < 2 else 0.0

    made = world("NaN rewards", pay=pay, noise=0.1 if method == "distribution" else 0.0)
    check(judged(made, "NaN rewards", method=method), Cell("undecided", "nan_only"))
