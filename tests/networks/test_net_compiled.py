"""Compiled networks: followed by their own code, and run compiled as deployed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from net_catalogue import mirror, mirror_mlp
from torch import nn

from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.engine.networks.subject.compiled import is_compiled
from symcheck.engine.results import PropertyResult, RunResult

CALLS: list[int] = []


def counting(graph: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
    """A backend that runs graphs as they are, and counts its runs."""

    def run(*args: Any) -> Any:
        CALLS.append(1)
        return graph.forward(*args)

    return run


def refusing(graph: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
    raise RuntimeError("no compiler here")


class Around(nn.Module):
    """A network with a compiled part."""

    def __init__(self, body: nn.Module, backend: Any) -> None:
        super().__init__()
        self.body = torch.compile(body, backend=backend)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)


def decorated(net: nn.Module) -> nn.Module:
    """A network whose forward method is compiled; made here, because compiling loads a compiler."""

    class Decorated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = net

        @torch.compile(backend=counting)
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.body(x)

    return Decorated()


def planted(wrong: bool) -> nn.Module:
    net = mirror_mlp(16)
    if wrong:
        with torch.no_grad():
            net[2].weight[3, 4] += 1e-3
    return net


KINDS: dict[str, tuple[Callable[[nn.Module], nn.Module], str]] = {
    "whole": (lambda net: torch.compile(net, backend=counting), "2"),
    "a part": (lambda net: Around(net, counting), "body._orig_mod.2"),
    "its forward": (decorated, "body.2"),
}


def verified(net: nn.Module) -> RunResult:
    return run_net(net, mirror(), options=NetOptions(samples=200))


def outputs(result: RunResult) -> PropertyResult:
    return next(p for p in result.properties if p.name == "network_equivariance")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrong", [False, True], ids=["correct", "faulty"])
def test_a_compiled_network_is_judged_as_the_same_network_is_and_runs_compiled(kind: str, wrong: bool) -> None:
    build, layer = KINDS[kind]
    CALLS.clear()
    result = verified(build(planted(wrong)))
    # what a backend of somebody's own computes is sampled
    assert result.verdict == ("failed" if wrong else "passed"), result.method_reason
    assert outputs(result).location == (layer if wrong else None)
    assert "As deployed (float32, torch.compile)" in outputs(result).detail
    assert len(CALLS) >= 5


@pytest.mark.parametrize("wrong", [False, True], ids=["correct", "faulty"])
def test_where_it_cannot_be_compiled_it_is_run_without_and_the_report_says_so(wrong: bool) -> None:
    result = verified(torch.compile(planted(wrong), backend=refusing))
    assert result.verdict == ("failed" if wrong else "passed")
    assert "Run without torch.compile, which raised" in outputs(result).detail
    assert "As deployed (float32):" in outputs(result).detail


def test_a_copy_compiled_in_place_is_compiled_in_place_too(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[tuple[nn.Module, Any]] = []
    net = planted(False)
    net.compile(backend=counting)
    monkeypatch.setattr(nn.Module, "compile", lambda self, backend: compiled.append((self, backend)))
    result = verified(net)
    assert result.verdict == "passed"
    assert result.method_reason is not None
    assert result.method_reason.fields["why"].code == "SYM174"
    assert [(type(one), backend) for one, backend in compiled] == [(nn.Sequential, counting)]
    assert compiled[0][0] is not net


class Agent(nn.Module):
    """An agent without a forward of its own."""

    def __init__(self, wrong: bool) -> None:
        super().__init__()
        self.actor = planted(wrong)


@pytest.mark.parametrize("wrong", [False, True], ids=["correct", "faulty"])
def test_a_compiled_agent_without_a_forward_is_judged_by_its_actor(wrong: bool) -> None:
    result = verified(torch.compile(Agent(wrong), backend=counting))
    assert result.verdict == ("failed" if wrong else "proved")
    assert outputs(result).location == ("actor.2" if wrong else None)
    assert "As deployed (float32):" in outputs(result).detail


def test_what_was_not_compiled_is_not_taken_for_compiled() -> None:
    assert not is_compiled(planted(False))
    assert is_compiled(Around(planted(False), counting))


def test_a_backend_of_torch_is_trusted_with_what_the_code_computes() -> None:
    assert verified(torch.compile(planted(False), backend="eager")).verdict == "proved"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the compiler's own modules, where they are loaded
def test_the_default_compiler_runs_a_network_with_its_own_rounding() -> None:
    detail = outputs(verified(torch.compile(mirror_mlp()))).detail
    assert "As deployed (float32, torch.compile)" in detail or "Run without torch.compile" in detail
