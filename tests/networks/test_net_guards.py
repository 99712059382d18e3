"""One decision for networks too: every guard by its verdict and its reason, in facts and in whole runs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from net_catalogue import Lambda, mirror, mirror_mlp
from torch import nn

from symcheck.engine.events import Event, PropertyStarted
from symcheck.engine.networks.blame.proof import Proof
from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.engine.networks.samples.decisions import Decisions
from symcheck.engine.networks.samples.measuring import Deployed, Measured, Spread, Worst
from symcheck.engine.networks.subject.values import LayerRecord
from symcheck.engine.networks.verdicts import Assessment, assess, assess_mixed_batches
from symcheck.engine.results import PropertyResult
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry
from symcheck.verdict import Decision, decide

ROOT = Path(__file__).parents[2]


def measured(relative: float = 0.0, **changes: Any) -> Measured:
    worst = Worst(relative, relative, 1.0, 0, "output", np.zeros(2), "normal at scale 1")
    found = Measured(pairs=100, relative=relative, worst=worst, moved=True, families=["normal at scale 1"])
    found.spreads["output"] = Spread(np.zeros(2), np.ones(2))
    return replace(found, **changes)


EXACT = Proof("exact", [LayerRecord("hidden", "Linear", "exact", 0.0, 0.0, 0.0)], certificate={})
CONSTANT = {"output": Spread(np.ones(2), np.ones(2))}
COARSE = Deployed(noise=1e-3, decisions=1000)

# guard: (what proof and samples say, verdict, code of the reason); every row stands beside one that is not guarded
GUARDS: dict[str, tuple[Assessment, str, str | None]] = {
    "nothing wrong, proved": (assess(EXACT, measured(), strict=False), "proved", None),
    "nothing wrong, samples only": (assess(None, measured(), strict=False), "passed", None),
    "NaN outputs": (assess(EXACT, measured(nan=np.zeros(2), nan_path="output"), strict=False), "failed", None),
    "one side infinite": (assess(EXACT, measured(np.inf), strict=False), "failed", None),
    "nothing moves": (assess(EXACT, measured(moved=False), strict=False), "undecided", "nothing_moves"),
    "constant output": (assess(EXACT, measured(spreads=CONSTANT), strict=False), "undecided", "constant_output"),
    "constant and wrong": (assess(EXACT, measured(1e-9, spreads=CONSTANT), strict=False), "failed", None),
    "time up, nothing tested": (assess(None, measured(pairs=0, time_up=True), strict=False), "undecided", "time_up"),
    "time up, some tested": (assess(None, measured(time_up=True), strict=False), "passed", None),
    "nothing tested": (assess(None, measured(pairs=0), strict=False), "undecided", "too_few"),
    "not judged": (
        assess(EXACT, measured(), strict=False, not_judged={"output[1]": "torch.int64"}),
        "undecided",
        "not_judged",
    ),
    "not judged, and wrong": (
        assess(EXACT, measured(0.5), strict=False, not_judged={"output[1]": "torch.int64"}),
        "failed",
        None,
    ),
    "coarse residual": (assess(None, measured(1e-3), strict=False, coarse=True), "undecided", "coarse_residual"),
    "coarse and far off": (assess(None, measured(0.5), strict=False, coarse=True), "failed", None),
    "deployed noise": (
        assess(EXACT, measured(deployed=Deployed(noise=0.5, unexplained=0.5)), strict=False),
        "undecided",
        "deployed_noise",
    ),
    "deployed coarser": (assess(EXACT, measured(deployed=COARSE), strict=False, artefact="int8"), "passed", None),
    "decisions flip": (
        assess(EXACT, measured(deployed=replace(COARSE, flips=11)), strict=False, artefact="int8"),
        "failed",
        None,
    ),
    "decisions flip in float64": (
        assess(EXACT, measured(decisions=Decisions(1000, 11)), strict=False),
        "failed",
        None,
    ),
    "decisions flip by rounding": (
        assess(EXACT, measured(deployed=replace(COARSE, flips=11, rounded=11)), strict=False),
        "undecided",
        "decisions_flip",
    ),
    "deployed off beyond rounding": (
        assess(EXACT, measured(deployed=Deployed(residual=1e-3, beyond=1.1)), strict=False),
        "undecided",
        "deployed_off",
    ),
    "deployed off within rounding": (
        assess(EXACT, measured(deployed=Deployed(residual=1e-3, beyond=0.9)), strict=False),
        "proved",
        None,
    ),
    "deployed in coarser code": (
        assess(EXACT, measured(deployed=Deployed(residual=1e-3, noise=0.02, coarser=True)), strict=False),
        "passed",
        None,
    ),
    "rounding amplified": (assess(None, measured(swamped=6), strict=False), "undecided", "rounding_amplified"),
    "rounding amplified, proved": (assess(EXACT, measured(swamped=6), strict=False), "proved", None),
    "images outside the space": (assess(None, measured(left_out=101), strict=False), "undecided", "outside_space"),
    "some images outside": (assess(None, measured(left_out=99), strict=False), "passed", None),
    "vanishes up to rounding": (
        assess(None, measured(vanishing={"output"}), strict=False),
        "undecided",
        "constant_output",
    ),
    "vanishes, proved": (assess(EXACT, measured(vanishing={"output"}), strict=False), "proved", None),
    "batch moves": (assess_mixed_batches(assess(EXACT, measured(), strict=False), 1e-9), "passed", None),
    "batch does not move": (
        assess_mixed_batches(assess(EXACT, measured(), strict=False), 1e-2),
        "undecided",
        "mixed_batches",
    ),
    "rounded": (assess(None, measured(1e-7), strict=False), "passed", None),
    "rounded, strict": (assess(None, measured(1e-7), strict=True), "failed", None),
}


@pytest.mark.parametrize("guard", GUARDS)
def test_facts_earn_the_verdict_and_the_reason_of_their_guard(guard: str) -> None:
    assessment, verdict, code = GUARDS[guard]
    decision = decide(assessment.facts)
    assert (decision.verdict, decision.reason and decision.reason.code) == (verdict, code)
    assert decision == Decision(assessment.verdict, decision.reason)
    assert (assessment.location is not None) == (verdict == "failed" and guard != "NaN outputs")


def test_every_reason_about_networks_can_be_read() -> None:
    reasons = [decide(assessment.facts).reason for assessment, _, code in GUARDS.values() if code]
    assert all(reason is not None and len(reason.text) > 20 for reason in reasons)


class Counter(nn.Module):
    """Equivariant, and shifted by the number of calls."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.calls = mirror_mlp(16), 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.net(x) + 1e-3 * self.calls


def still() -> Symmetry:
    return Symmetry("still", catalog.cyclic(2), observation=[[1, 1, 1, 1]], action=[[1, 0]])


def zeros() -> nn.Module:
    net = mirror_mlp(16)
    for parameter in net.parameters():
        nn.init.zeros_(parameter)
    return net


def interrupting(event: Event) -> None:
    if event == PropertyStarted("network_equivariance"):
        raise KeyboardInterrupt


RUNS: dict[str, tuple[Callable[[], nn.Module], dict[str, Any], str, str | None]] = {
    "sound": (lambda: mirror_mlp(16), {}, "proved", None),
    "nan": (lambda: Lambda(lambda x, net: torch.log(net(x)), mirror_mlp(16)), {}, "failed", None),
    "nothing moves": (lambda: Lambda(lambda x: torch.stack([x.sum(-1)] * 2, -1)), {"symmetry": still()}, "undecided",
                      "nothing_moves"),
    "constant": (zeros, {}, "undecided", "constant_output"),
    "stochastic": (lambda: Lambda(lambda x, net: net(x) + torch.randn(len(x), 1), mirror_mlp(16)), {}, "undecided",
                   "stochastic"),
    "memory": (Counter, {}, "undecided", "memory"),
    "interrupted": (lambda: mirror_mlp(16), {"emit": interrupting}, "undecided", "interrupted"),
    "time up": (lambda: mirror_mlp(16), {"max_time": 1e-6}, "passed", None),
    "not judged": (lambda: Lambda(lambda x, net: (net(x), net(x).argmax(-1)), mirror_mlp(16)), {}, "undecided",
                   "not_judged"),
}  # fmt: skip


def network_equivariance(name: str) -> PropertyResult:
    net, given, _, _ = RUNS[name]
    options = dict(given)
    symmetry, emit = options.pop("symmetry", mirror()), options.pop("emit", None)
    result = run_net(net(), symmetry, options=NetOptions(samples=100, **options), emit=emit)
    return next(item for item in result.properties if item.name == "network_equivariance")


@pytest.mark.parametrize("name", RUNS)
def test_a_run_reports_the_verdict_and_the_reason_of_its_guard(name: str) -> None:
    item, (_, _, verdict, code) = network_equivariance(name), RUNS[name]
    assert (item.verdict, item.reason and item.reason.code) == (verdict, code)
    assert item.equation == "f(g x) = g f(x)"
    assert item.facts is not None
    assert decide(item.facts) == Decision(item.verdict, item.reason)


def test_no_layer_of_that_name_makes_a_pass_approximate() -> None:
    net = nn.Sequential()
    net.add_module("approximate_value_head", nn.Linear(4, 2, bias=False))
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0, 2.0, -0.5, 0.25], [-1.0, -2.0, 0.5, -0.25]]))
        net[0].weight[0, 0] *= 1 + 1e-7
    result = run_net(net, mirror(), options=NetOptions(samples=100))
    assert result.verdict == "passed"
    assert not result.approximate
    assert "approximate_value_head" in " ".join(item.detail for item in result.properties)


def _verdicts_written() -> Iterator[str]:
    """Where a result is given a verdict as a literal: as `verdict=` or second argument of `PropertyResult`."""
    names = ("network_equivariance", "network_group_axioms", "layer_certificate", "representation_propagation")
    paths = [ROOT / "properties" / "symcheck_properties" / f"{name}.py" for name in names]
    for path in [*paths, *(ROOT / "symcheck" / "engine" / "networks").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or getattr(node.func, "id", "") not in ("PropertyResult", "Decision"):
                continue
            given = [*node.args[:2], *(keyword.value for keyword in node.keywords if keyword.arg == "verdict")]
            literals = {item.value for value in given for item in ast.walk(value) if isinstance(item, ast.Constant)}
            if literals & {"passed", "proved", "failed", "undecided"}:
                yield f"{path.name}:{node.lineno}"


def test_no_result_of_a_network_is_given_a_verdict_but_by_the_one_decision() -> None:
    assert list(_verdicts_written()) == []
