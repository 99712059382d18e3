"""The smaller commands, and verify-net as a user types it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import run
from typer.testing import CliRunner

from reference_agents.cli.app import app as agents

EXAMPLES = Path(__file__).parents[2] / "examples" / "cartpole_networks.py"


def properties(path: Path) -> dict[str, dict]:
    return {item["name"]: item for item in json.loads(path.read_text())["properties"]}


def test_an_equivariant_network_is_proved(folder):
    code, output = run("verify-net", f"{EXAMPLES}:equivariant", "--symmetry", "cartpole/mirror", "--json", "r.json")
    assert code == 0, output
    assert json.loads((folder / "r.json").read_text())["verdict"] == "proved"


def test_a_certificate_replays_and_fails_for_other_weights(folder):
    shutil.copy(EXAMPLES, folder / "nets.py")
    (folder / "plain.py").write_text(
        "import nets\nimport symcheck.nn\ndef net(): return symcheck.nn.to_dense(nets.equivariant())\n"
    )
    run("verify-net", "plain.py:net", "--symmetry", "cartpole/mirror", "--json", "r.json", "--quiet")
    code, output = run("replay", "r.json")
    assert code == 0, output
    assert "proved     layer_certificate" in output
    changed = (folder / "r.json").read_text().replace("plain.py:net", "nets.py:one_weight_off")
    (folder / "r.json").write_text(changed)
    code, output = run("replay", "r.json")
    assert code == 1, output
    assert "layer_certificate FAILED" in output


def test_observations_of_an_environment_are_tested_too(folder):
    words = ["--symmetry", "cartpole/mirror", "--env", "CartPole-v1", "--outputs", "action,invariant"]
    code, output = run("verify-net", f"{EXAMPLES}:equivariant", *words)
    assert code == 0, output


def test_a_plain_network_fails_with_a_small_counterexample_that_replays(folder):
    words = ["--symmetry", "cartpole/mirror", "--json", "r.json"]
    code, output = run("verify-net", f"{EXAMPLES}:mlp", *words)
    assert code == 1, output
    found = properties(folder / "r.json")
    example = found["network_equivariance"]["counterexample"]
    assert sum(value != 0 for value in example["observation"]) <= 1
    assert example["reproduce"] == "symcheck replay r.json"
    code, again = run("replay", "r.json", "--trust")  # the examples lie outside this folder
    assert code == 1, again
    assert "network_equivariance" in again


def test_one_hidden_weight_off_by_a_millionth_fails_in_its_layer(folder):
    code, _ = run("verify-net", f"{EXAMPLES}:one_weight_off", "--symmetry", "cartpole/mirror", "--json", "r.json")
    assert code == 1
    certificate = properties(folder / "r.json")["layer_certificate"]
    assert certificate["verdict"] == "failed"
    assert certificate["location"] == "body.3"


@pytest.mark.long
def test_a_counterexample_becomes_a_plain_test_that_fails(folder):
    shutil.copy(EXAMPLES, folder / "nets.py")
    words = ["--symmetry", "cartpole/mirror", "--pytest", "test_net.py", "--quiet"]
    assert run("verify-net", "nets.py:mlp", *words)[0] == 1
    assert "symcheck.engine" not in (folder / "test_net.py").read_text()
    outcome = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_net.py"], capture_output=True, text=True
    )
    assert outcome.returncode == 1, outcome.stdout
    assert "1 failed" in outcome.stdout


def test_no_test_is_written_where_nothing_failed(folder):
    words = ["--symmetry", "cartpole/mirror", "--pytest", "test_net.py", "--quiet"]
    assert run("verify-net", f"{EXAMPLES}:equivariant", *words)[0] == 0
    assert not (folder / "test_net.py").exists()


def test_every_network_of_a_run_folder_is_verified(folder):
    train = ["train", "cartpole", "--network", "equivariant", "--seeds", "2", "--steps", "160", "--out", "runs"]
    assert CliRunner().invoke(agents, train).exit_code == 0
    found = next((folder / "runs").glob("*/record.json")).parent
    code, output = run("verify-net", str(found), "--symmetry", "cartpole/mirror", "--json", "r.json")
    assert code == 0, output
    reports = json.loads((folder / "r.json").read_text())["reports"]
    assert [report["verdict"] for report in reports] == ["proved", "proved"]
    code, output = run("verify-net", str(folder), "--symmetry", "cartpole/mirror")
    assert code == 2
    assert "run folder" in output


BAD = {
    "no file": (["nowhere.py:make"], ["nowhere.py"]),
    "no name": (["nets.py:nothing"], ["does not define", "nothing"]),
    "not a module": (["nets.py:number"], ["number"]),
    "output fits nothing": (["nets.py:seven"], ["7", "2"]),
    "input shape": (["nets.py:wide"], ["5", "4"]),
    "shape option": (["nets.py:good", "--input-shape", "4,x"], ["--input-shape"]),
    "no symmetry": (["nets.py:good", "--symmetry", "cartpole/miror"], ["cartpole/mirror"]),
    "samples": (["nets.py:good", "--samples", "0"], ["--samples"]),
    "dtype": (["nets.py:good", "--dtype", "float31"], ["--dtype", "float32"]),
    "device": (["nets.py:good", "--device", "tpu0"], ["--device", "tpu0"]),
    "report folder": (["nets.py:good", "--html", "nowhere/r.html"], ["--html", "mkdir"]),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_used_exits_2_with_one_message(folder, case):
    (folder / "nets.py").write_text(
        "from torch import nn\nnumber = 3\n"
        "def good(): return nn.Linear(4, 2)\ndef seven(): return nn.Linear(4, 7)\ndef wide(): return nn.Linear(5, 2)\n"
    )
    words, expected = BAD[case]
    if "--symmetry" not in words:
        words = [*words, "--symmetry", "cartpole/mirror"]
    code, output = run("verify-net", *words, "--json", "r.json")
    assert code == 2, output
    assert output.count("symcheck: ") == 1, output
    for text in expected:
        assert text in output
    assert not (folder / "r.json").exists()


def test_a_network_of_dictionaries_takes_its_shapes_from_the_environment(folder):
    (folder / "d.py").write_text(
        "import gymnasium as gym, numpy as np, torch, symcheck as sc\nfrom torch import nn\n"
        "box = lambda: gym.spaces.Box(-9, 9, (2,))\n"
        "class Env(gym.Env):\n"
        "    observation_space = gym.spaces.Dict(p=box(), v=box())\n    action_space = gym.spaces.Discrete(2)\n"
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.a, self.b = nn.Linear(2, 1, bias=False), nn.Linear(2, 1, bias=False)\n"
        "    def forward(self, o):\n"
        "        z = self.a(o['p']) + self.b(o['v'])\n        return torch.cat([z, -z], -1)\n"
        "claim = sc.Symmetry('m', sc.groups.cyclic(2), [{'p': [-1, -1], 'v': [-1, -1]}], [[1, 0]])\n"
        "half = sc.Symmetry('half', sc.groups.cyclic(2), [{'p': [-1, -1]}], [[1, 0]])\n"
    )
    code, output = run("verify-net", "d.py:Net", "--symmetry", "d.py:claim", "--env", "d.py:Env")
    assert code == 0, output
    assert run("verify-net", "d.py:Net", "--symmetry", "d.py:half", "--env", "d.py:Env", "--quiet")[0] == 1


def test_basis_prints_ranks_and_draws_them(folder):
    code, output = run("basis", "cartpole/mirror", "--html", "b.html")
    assert code == 0, output
    assert "observation -> hidden" in output
    assert (folder / "b.html").stat().st_size > 0


def test_basis_of_an_image_symmetry_lists_filters(folder):
    (folder / "turn.toml").write_text(
        'name = "turn"\ngroup = "cyclic(4)"\nobservation = ["rot90"]\naction = [[0, 2, 3, 4, 1]]\n'
    )
    code, output = run("basis", "turn.toml")
    assert code == 0, output
    row = next(line.split() for line in output.splitlines() if "image -> hidden, 7 x 7" in line)
    assert row[6:9] == ["49", "of", "196"]


def test_basis_refuses_an_affine_claim(folder):
    code, output = run("basis", "mountaincar/valley")
    assert code == 2
    assert "offset" in output


def test_the_atlas_prints_entries_and_refuses_unknown_ids():
    code, output = run("atlas", "CartPole-v1")
    assert code == 0
    assert "cartpole/mirror" in output
    assert run("atlas", "CartPol-v1")[0] == 2


def test_an_index_links_the_reports_of_a_folder(folder):
    run("verify-env", "CartPole-v1", "--samples", "100", "--quiet", "--json", "cartpole.json")
    code, output = run("report", str(folder))
    assert code == 0, output
    assert "cartpole.json" in (folder / "index.html").read_text()
    (folder / "empty").mkdir()
    assert run("report", "empty")[0] == 2
    assert run("report", "nowhere")[0] == 2


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": "other"}', '{"schema": "symcheck/1", "properties": []}'])
def test_replaying_what_is_no_report_exits_2(folder, text):
    (folder / "r.json").write_text(text)
    code, output = run("replay", "r.json")
    assert code == 2, output
    assert output.count("symcheck: ") == 1


def test_replaying_a_missing_file_exits_2(folder):
    assert run("replay", "none.json")[0] == 2
