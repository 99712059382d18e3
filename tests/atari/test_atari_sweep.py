import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from symcheck.errors import OptionError

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "pong_sweep.py"


@pytest.fixture(scope="module")
def sweep() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pong_sweep", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["pong_sweep"] = module
    spec.loader.exec_module(module)
    return module


def test_sixteen_cores_are_shared_out_once_each(sweep: ModuleType):
    shares = sweep.share_out(range(16), 7)
    assert sorted(core for share in shares for core in share) == list(range(16))
    assert {len(share) for share in shares} == {2, 3}


def test_fewer_cores_than_networks_are_used_in_turn(sweep: ModuleType):
    assert sweep.share_out([4, 6], 3) == [[4], [6], [4]]


def test_an_unknown_network_is_refused_before_anything_is_trained(sweep: ModuleType, tmp_path: Path):
    with pytest.raises(OptionError, match="no network 'mlp'"):
        sweep.main(["--networks", "cnn,mlp", "--out", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_tiny_budget_trains_every_network_and_writes_the_page(sweep: ModuleType, tmp_path: Path):
    budget = ["--frames", "320", "--seeds", "1", "--device", "cpu", "--set", "decorrelation_steps=2"]
    arguments = [*budget, "--networks", "extractor,cnn", "--out", str(tmp_path)]
    assert sweep.main(arguments) == 0
    page = (tmp_path / "report.html").read_text()
    assert "extractor" in page
    assert "cnn" in page
    assert sweep.main(arguments) == 0  # nothing is left to do


@pytest.mark.slow
def test_a_training_that_fails_is_named(sweep: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    arguments = ["--frames", "80", "--device", "cpu", "--networks", "cnn", "--out", str(tmp_path), "--set", "horizon=0"]
    assert sweep.main(arguments) == 1
    assert f"cnn ended with code 2; see {tmp_path}{os.sep}pong-cnn.log" in capsys.readouterr().out
    assert "horizon to be 1 or more" in " ".join((tmp_path / "pong-cnn.log").read_text().split())
