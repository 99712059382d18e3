"""Texts with addresses and orders of sets, which differ between processes: functions that use them, and twins."""

from __future__ import annotations

import contextlib
import gc
import sys
import time
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch

from symcheck.engine.networks.capture import texts_and_orders
from symcheck.engine.networks.capture.call_effects import watched_calls
from symcheck.engine.networks.capture.texts_and_orders import depends_on_process, is_unordered


class Plain:
    """Has the text that Python gives to objects, with an address."""


class Named:
    """Has a text of its own."""

    def __repr__(self) -> str:
        return "named"


PLAIN, NAMED = Plain(), Named()
TENSOR = torch.zeros(1)
NAMES, NUMBERS, ONE = {"a", "b"}, {1, 2, 3}, {"a"}


def used_by(function: Callable[[], Any], *, sets: bool = False) -> str:
    """What a call uses, of the function and the functions in it."""
    codes = [function.__code__]
    for code in codes:
        codes += [item for item in code.co_consts if isinstance(item, types.CodeType)]
    what, place = depends_on_process(function, codes, sets=sets)
    assert bool(what) is bool(place)
    assert place.startswith("test_net_texts_alone.py:") is bool(what)
    return what


ADDRESS = "the address of a Plain in its text"
TEXTS: list[tuple[str, Callable[[], Any], str]] = [
    ("f-string", lambda: f"{PLAIN}", ADDRESS),
    ("f-string of a text", lambda: f"{NAMED}", ""),
    ("f-string of a number", lambda: f"{3.5:.2f}", ""),
    ("representation", lambda: f"{PLAIN!r:>80}", ADDRESS),
    ("remainder", lambda: "%s" % PLAIN, ADDRESS),  # noqa: UP031
    ("remainder of a tuple", lambda: "%s %s" % (1, PLAIN), ADDRESS),  # noqa: UP031
    ("remainder of texts", lambda: "%s %s" % (1, NAMED), ""),  # noqa: UP031
    ("remainder of numbers", lambda: 7 % 3, ""),
    ("str", lambda: str(PLAIN), ADDRESS),
    ("str of a number", lambda: str(3), ""),
    ("repr", lambda: repr(PLAIN), ADDRESS),
    ("format", lambda: format(PLAIN), ADDRESS),
    ("format method", lambda: "{}".format(PLAIN), ADDRESS),  # noqa: UP032
    ("format method of a text", lambda: "{}".format(NAMED), ""),  # noqa: UP032
    ("hash", lambda: hash(PLAIN) and "{", ADDRESS),
    ("mapped", lambda: list(map(str, [1, PLAIN])), ADDRESS),
    ("mapped numbers", lambda: list(map(str, [1, 2])), ""),
    ("a tensor", lambda: f"{TENSOR}", ""),
    ("nothing", lambda: len([1]) + 1, ""),
]


@pytest.mark.parametrize(("name", "function", "what"), TEXTS, ids=[row[0] for row in TEXTS])
def test_a_text_with_an_address_is_told_where_it_is_made(name: str, function: Any, what: str) -> None:
    assert used_by(function) == what


ORDER = "the order of a set with elements that are not numbers"
ORDERS: list[tuple[str, Callable[[], Any], str]] = [
    ("loop", lambda: [each for each in NAMES], ORDER),  # noqa: C416
    ("loop over numbers", lambda: [each for each in NUMBERS], ""),  # noqa: C416
    ("loop over one", lambda: [each for each in ONE], ""),  # noqa: C416
    ("list", lambda: list(NAMES), ORDER),
    ("joined", lambda: ",".join(NAMES), ORDER),
    ("unpacked", lambda: [*NAMES], ORDER),
    ("sorted", lambda: sorted(NAMES), ""),
    ("sorted by a key", lambda: sorted(NAMES, key=len), ORDER),
    ("smallest", lambda: min(NAMES), ""),
    ("smallest by a key", lambda: min(NAMES, key=len), ORDER),
    ("length", lambda: len(NAMES), ""),
    ("membership", lambda: "a" in NAMES, ""),
    ("popped", lambda: set(NAMES).copy() and NAMES.copy().pop(), ORDER),
    ("union", lambda: list(NAMES | {"c"}), ORDER),
    ("loop over a list", lambda: [each for each in ["a", "b"]], ""),  # noqa: C416
]


@pytest.mark.parametrize(("name", "function", "what"), ORDERS, ids=[row[0] for row in ORDERS])
def test_the_order_of_a_set_of_texts_is_told_where_it_matters(name: str, function: Any, what: str) -> None:
    assert used_by(function, sets=True) == what


@pytest.mark.parametrize(
    ("item", "unordered"),
    [
        ({"a", "b"}, True), (frozenset(["a", "b"]), True), ({"a"}, False), ({1, 2.5}, False),
        ({(1, 2), (3, 4)}, False), ({(1, "a"), (2, "b")}, True), (set(), False), (["a", "b"], False),
        ({"a": 1, "b": 2}, False),
    ],
)  # fmt: skip
def test_a_set_of_several_elements_that_are_no_numbers_has_no_order(item: Any, unordered: bool) -> None:
    assert is_unordered(item) is unordered


def test_the_trace_of_the_caller_is_put_back() -> None:
    def trace(frame: Any, event: str, argument: Any) -> Any:
        return None

    before = sys.gettrace()
    try:
        sys.settrace(trace)
        used_by(lambda: f"{PLAIN}")
        assert sys.gettrace() is trace
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("fails", [False, True])
def test_the_profile_of_the_caller_is_put_back_and_own_functions_are_recorded(fails: bool) -> None:
    def profile(frame: Any, event: str, argument: Any) -> None:
        return None

    def inner() -> float:
        return time.time() if asks else 1.0

    asks, before, collecting = True, sys.getprofile(), gc.isenabled()
    try:
        sys.setprofile(profile)
        with contextlib.suppress(ZeroDivisionError), watched_calls() as watched:
            inner()
            if fails:
                raise ZeroDivisionError
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(before)
    assert gc.isenabled() is collecting
    assert inner.__code__ in watched.functions
    assert watched.cells[inner.__code__] == {"asks": True}
    assert (watched.asked, watched.source.partition(":")[0]) == ("time", "test_net_texts_alone.py")


@pytest.mark.parametrize(
    ("sign", "left", "right", "result"),
    [
        ("|", {"a"}, {"b"}, {"a", "b"}), ("&", {"a", "b"}, {"b"}, {"b"}), ("-", {"a", "b"}, {"b"}, {"a"}),
        ("+", 1, 2, 0), ("%", "text", 5, ""), ("+", "text", "more", ""),
    ],
)  # fmt: skip
def test_operators_are_recomputed_on_sets_and_stand_for_numbers_and_texts(
    sign: str, left: Any, right: Any, result: Any
) -> None:
    assert texts_and_orders._result_of(sign, left, right) == result
