"""Options, the registry and events."""

from __future__ import annotations

import math
from typing import Any

import pytest

from symcheck.engine import registry
from symcheck.engine.networks.options import NetOptions
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import PropertyResult
from symcheck.errors import OptionError


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"samples": 0}, "--samples: expected a whole number of samples, 1 or more, got 0"),
        ({"samples": -3}, "got -3"),
        ({"samples": True}, "got True"),
        ({"max_time": 0}, "--max-time: expected a time in seconds above 0"),
        ({"alpha": 0.0}, "--alpha: expected a probability strictly between 0 and 1"),
        ({"alpha": float("nan")}, "--alpha"),
        ({"seed": -1}, "--seed: expected a whole number, 0 or more"),
        ({"method": "pared"}, "Did you mean 'paired'"),
    ],
)
def test_an_option_outside_its_range_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        EnvOptions(**given)


def test_properties_run_in_their_order_and_can_be_replaced() -> None:
    def check(context: object) -> PropertyResult:
        return PropertyResult("x", "passed", "samples", checked=1)

    try:
        registry.register("zz_late", kind="net", order=9001, claim="later")(check)
        registry.register("zz_early", kind="net", order=9000, claim="first")(check)
        registry.register("zz_early", kind="net", order=9000, claim="again")(check)
        ours = [entry for entry in registry.registered_properties("net") if entry.order >= 9000]
        assert [(entry.name, entry.claim) for entry in ours] == [("zz_early", "again"), ("zz_late", "later")]
    finally:
        registry.unregister("zz_late", kind="net")
        registry.unregister("zz_early", kind="net")


@pytest.mark.parametrize("options", [EnvOptions, NetOptions])
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("max_time", "10", "--max-time: expected a time in seconds above 0, got '10'"),
        ("max_time", math.nan, "--max-time: expected a time in seconds above 0, got nan"),
        ("alpha", "0.01", "--alpha: expected a probability strictly between 0 and 1, got '0.01'"),
        ("alpha", math.nan, "--alpha: expected a probability strictly between 0 and 1, got nan"),
        ("seed", 1.0, "--seed: expected a whole number, 0 or more, got 1.0"),
    ],
)
def test_environments_and_networks_refuse_the_same_limits_in_the_same_words(
    options: Any, name: str, value: Any, said: str
) -> None:
    with pytest.raises(OptionError) as raised:
        options(**{name: value})
    assert str(raised.value).startswith(said)
