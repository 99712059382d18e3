"""A counterexample fails again in a fresh process, and as a plain test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from net_catalogue import GridNet, mirror, mirror_mlp, turn
from torch import nn

from symcheck.engine.networks.blame import layers
from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.pytest_file import pytest_source
from symcheck.engine.networks.replay import check_certificate, replay
from symcheck.engine.networks.runner import run_net
from symcheck.engine.results import RunResult
from symcheck.errors import SymcheckError
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry


def off() -> nn.Module:
    net = mirror_mlp()
    with torch.no_grad():
        net[2].weight[3, 5] *= 1.01
    return net


def failures(result: RunResult) -> list[dict[str, object]]:
    data = json.loads(json.dumps(result.to_dict()))
    return [item for item in data["properties"] if item["counterexample"]]


def test_a_counterexample_fails_again_bit_for_bit() -> None:
    found = failures(run_net(off(), mirror()))
    assert {item["name"] for item in found} == {"layer_certificate", "network_equivariance"}
    for item in found:
        again = replay(off(), mirror(), item["name"], item["counterexample"])
        assert again.verdict == "failed"
        assert again.location == "2"
        assert again.counterexample is not None
        assert again.counterexample.actual == item["counterexample"]["actual"]
        assert again.counterexample.residual == item["counterexample"]["residual"]


def test_a_counterexample_passes_once_the_network_is_mended() -> None:
    found = failures(run_net(off(), mirror()))
    verdicts = {
        item["name"]: replay(mirror_mlp(), mirror(), item["name"], item["counterexample"]).verdict for item in found
    }
    assert verdicts == {"layer_certificate": "proved", "network_equivariance": "passed"}


def test_a_geometric_failure_replays_too() -> None:
    options = NetOptions(input_shape=(1, 21, 21), samples=200)
    found = failures(run_net(GridNet(6), turn(), options=options))
    assert {item["name"] for item in found} == {"representation_propagation", "network_equivariance"}
    for item in found:
        again = replay(GridNet(6), turn(), item["name"], item["counterexample"], options)
        assert again.verdict == "failed"
        assert again.counterexample is not None
        assert again.counterexample.residual == item["counterexample"]["residual"]
        assert replay(GridNet(7), turn(), item["name"], item["counterexample"], options).verdict == "passed"


def test_a_counterexample_of_another_network_is_refused() -> None:
    item = failures(run_net(off(), mirror()))[-1]
    with pytest.raises(SymcheckError, match="shape"):
        replay(off(), mirror(), "network_equivariance", {**item["counterexample"], "observation": [1.0]})
    with pytest.raises(SymcheckError, match="generators"):
        replay(off(), mirror(), "network_equivariance", {**item["counterexample"], "group_element": "turn"})


def test_a_certificate_is_checked_again_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    options = NetOptions(input_shape=(1, 21, 21), samples=100)
    report = json.loads(json.dumps(run_net(GridNet(), turn(), options=options).to_dict()))
    assert all(len(layer["images"]) == 1 for layer in report["layers"])

    def no_search(*arguments: object, **options: object) -> None:
        raise AssertionError("searched")

    monkeypatch.setattr(layers, "match_rows", no_search)
    assert check_certificate(GridNet(), turn(), report["layers"], options).verdict == "proved"


def test_a_forged_or_outdated_certificate_fails_at_its_layer() -> None:
    report = json.loads(json.dumps(run_net(mirror_mlp(), mirror()).to_dict()))
    outdated = check_certificate(off(), mirror(), report["layers"])
    assert (outdated.verdict, outdated.location) == ("failed", "2")
    images = report["layers"][0]["images"][0]
    images[0], images[1] = images[1], images[0]
    forged = check_certificate(mirror_mlp(), mirror(), report["layers"])
    assert (forged.verdict, forged.location) == ("failed", "0")
    with pytest.raises(SymcheckError, match="expected the layers"):
        check_certificate(mirror_mlp(layers=3), mirror(), report["layers"])


def test_a_certificate_of_signed_units_is_checked_with_its_signs() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8, bias=False), nn.Tanh(), nn.Linear(8, 2, bias=False)).double()
    odd = Symmetry("odd", catalog.cyclic(2), observation=[[-1, -1, -1, -1]], action=[[-1, -1]])
    report = json.loads(json.dumps(run_net(net, odd).to_dict()))
    assert min(report["layers"][0]["images"][0]) < 0
    assert check_certificate(net, odd, report["layers"]).verdict == "proved"


NETWORKS = """
import torch
from torch import nn

def bad():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

def good():
    net = nn.Linear(4, 2, bias=False)
    with torch.no_grad():
        net.weight[1] = -net.weight[0]
    return net
"""


@pytest.mark.long
def test_a_written_test_fails_without_this_package_until_the_network_is_mended(tmp_path: Path) -> None:
    file = tmp_path / "nets.py"
    file.write_text(NETWORKS)
    scope: dict[str, object] = {}
    exec(compile(NETWORKS, "nets.py", "exec"), scope)  # the same source that the written test imports
    net = scope["bad"]()  # type: ignore[operator]
    result = run_net(net, mirror())
    for name in ("bad", "good"):
        source = pytest_source(net, mirror(), result, target=f"{file}:{name}")
        assert "symcheck" not in source
        (tmp_path / f"test_{name}.py").write_text(source)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ran.returncode == 1, ran.stdout
    assert "1 failed, 1 passed" in ran.stdout
    assert "FAILED test_bad.py" in ran.stdout


def test_no_test_is_written_of_a_network_that_passed() -> None:
    with pytest.raises(SymcheckError, match="no failure has an input"):
        pytest_source(mirror_mlp(), mirror(), run_net(mirror_mlp(), mirror()), target="nets.py:make")
