"""State that calls may change by itself: what is recorded, what counts as a change, and what first inputs leave."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
import torch
from torch import nn

from symcheck.engine.networks.capture import held_state
from symcheck.engine.networks.capture.held_state import (
    GENERATORS,
    is_otherwise,
    lasting_change,
    what_changed,
    what_first_inputs_leave,
    what_is_held,
)
from symcheck.groups import cyclic
from symcheck.nn import BasisLinear
from symcheck.representations import regular
from symcheck.statements.statement import state


class Holds(nn.Module):
    """A part that holds anything."""

    def __init__(self, held: Any = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.held = held


def network(held: Any = None) -> nn.Module:
    return nn.Sequential(nn.Identity(), Holds(held))


def change(act: Any, held: Any = None) -> tuple[str, str]:
    """What a change of the second part is told as, and what is otherwise after it."""
    net = network(held)
    before = what_is_held(net, {})
    act(net[1])
    after = what_is_held(net, {})
    told = what_changed(before, after)
    return "" if told is None else str(told.fields["what"]), is_otherwise(before, after)


@pytest.mark.parametrize(
    ("act", "held", "told"),
    [
        (lambda part: None, None, ""),
        (lambda part: setattr(part, "held", 3), 2, "1"),
        (lambda part: part.held.append(1), [], "1"),
        (lambda part: part.held.update(a=1), {}, "1"),
        (lambda part: setattr(part, "other", 1), None, "1"),
        (lambda part: part.held.add_(1), torch.zeros(2), "1"),
        (lambda part: part.weight.data.mul_(2), None, "1"),
        (lambda part: part.held.__setitem__(0, torch.ones(1)), [torch.zeros(3)], "1"),
        (lambda part: torch.rand(1), None, GENERATORS),
    ],
)
def test_a_change_is_told_with_the_module_that_holds_it(act: Any, held: Any, told: str) -> None:
    assert change(act, held) == (told, told)


def test_a_tensor_that_is_replaced_by_an_equal_one_is_otherwise_and_no_change() -> None:
    net = network(torch.zeros(2))
    before, first = what_is_held(net, {}), net[1].held
    net[1].held = torch.zeros(2)
    after, stale = what_is_held(net, {}), set[int]()
    assert what_changed(before, after, stale=stale) is None
    assert stale == {id(first), id(net[1].held)}
    assert is_otherwise(before, after) == "1"


def test_values_that_first_inputs_leave_are_told_with_their_module() -> None:
    assert what_first_inputs_leave(network(1.5), network(1.5)) == ("", {})
    assert what_first_inputs_leave(network(1.5), network(2.5)) == ("1", {})
    assert what_first_inputs_leave(Holds(1.5), Holds(2.5)) == ("the network", {})
    assert what_first_inputs_leave(network("a"), network(["a"]))[0] == "1"
    mine, alone = network(torch.zeros(2)), Holds(torch.zeros(2))
    assert what_first_inputs_leave(mine, network(torch.ones(2)))[1][id(mine[1].held)] == "1"
    assert what_first_inputs_leave(alone, Holds(torch.ones(2)))[1][id(alone.held)] == "the network"
    assert what_first_inputs_leave(mine, network(torch.zeros(2))) == ("", {})


def test_references_to_plain_weights_are_no_state() -> None:
    weight, other = nn.Parameter(torch.ones(1)), Holds()
    dead = weakref.ref(Holds())
    assert [held_state._refers_to_weight(ref) for ref in (None, weakref.ref(weight), dead)] == [True] * 3
    assert [held_state._refers_to_weight(ref) for ref in (weakref.ref(other), weight, 3)] == [False] * 3
    marked = nn.Parameter(torch.ones(1))
    marked.note = 1  # type: ignore[attr-defined]
    assert not held_state._refers_to_weight(weakref.ref(marked))
    lstm = nn.LSTM(1, 1)
    assert held_state._kept_by(lstm)["_flat_weight_refs"] == []
    assert "_modules" not in held_state._kept_by(lstm)


def test_the_cached_weight_of_a_layer_of_this_package_is_no_state_and_a_users_own_is() -> None:
    class Own(BasisLinear):
        """A user's layer."""

    over = regular(cyclic(2))
    for kind, kept in ((BasisLinear, False), (Own, True)):
        layer = kind(over, over, 1, 1)
        layer.__dict__["_kept"] = torch.zeros(1)
        assert ("_kept" in held_state._kept_by(layer)) is kept
        assert "training" in held_state._kept_by(layer)


def test_only_state_other_than_generators_lasts() -> None:
    assert lasting_change(state("SYM183", what="a list")) == "a list"
    assert lasting_change(state("SYM183", what=GENERATORS)) == ""
    assert lasting_change(state("SYM163")) == ""
