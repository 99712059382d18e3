"""Certificates as a user writes and checks them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from commands import run

import symcheck.certificate_checker
from symcheck.certificate_checker import digest, read, unpack

NET = """
import torch

def net():
    torch.manual_seed(0)
    w, v = torch.randn(3, 4), torch.randn(1, 3)
    net = torch.nn.Sequential(torch.nn.Linear(4, 6, bias=False), torch.nn.Tanh(), torch.nn.Linear(6, 2, bias=False))
    with torch.no_grad():
        net[0].weight.copy_(torch.cat([w, -w]))
        net[2].weight.copy_(torch.cat([torch.cat([v, -v], 1), torch.cat([-v, v], 1)]))
    return net
"""


def test_a_certificate_is_written_checked_and_rejected_once_a_weight_is_changed(folder):
    words = ["--symmetry", "cartpole/mirror", "--samples", "50", "--certificate", "c.json"]
    (folder / "nets.py").write_text(NET)
    code, output = run("verify-net", "nets.py:net", *words)
    assert code == 0, output
    assert "certificate: c.json" in output
    code, output = run("check-certificate", "c.json")
    assert (code, output.split(":")[0]) == (0, "accepted"), output
    assert "cartpole/mirror: C2, 1 generator" in output
    document = read("c.json")
    weights = {name: np.array(unpack(stored)) for name, stored in document["weights"].items()}
    np.savez("weights.npz", **weights)
    assert run("check-certificate", "c.json", "--weights", "weights.npz")[0] == 0
    name = next(iter(weights))
    weights[name].flat[0] += 1
    np.savez("weights.npz", **weights)
    code, output = run("check-certificate", "c.json", "--weights", "weights.npz")
    assert (code, output) == (1, f"rejected: weights: {name} differs from the given one\n")
    document["claim"]["symmetry"] = "cartpole/other"
    Path("c.json").write_text(json.dumps(document))
    code, output = run("check-certificate", "c.json")
    assert (code, output) == (1, "rejected: digest: the file was modified\n")
    Path("c.json").write_text(json.dumps({**document, "digest": digest(document)}))
    assert run("check-certificate", "c.json")[0] == 0
    # copied out, without the package
    shutil.copy(symcheck.certificate_checker.__file__, folder / "alone.py")
    alone = subprocess.run(
        [sys.executable, "-I", "alone.py", "c.json"], capture_output=True, text=True, cwd=folder, check=False
    )
    assert (alone.returncode, alone.stdout.split(":")[0]) == (0, "accepted"), alone.stderr


def test_what_is_no_certificate_is_unreadable(folder):
    for text in (None, "[]", "{", '{"schema": "symcheck/2"}', '{"schema": "a", "schema": "b"}'):
        if text is not None:
            Path("c.json").write_text(text)
        code, output = run("check-certificate", "c.json")
        assert code == 2, (text, output)
        assert "verify-net --certificate" in output
    Path("c.json").write_text('{"schema": "symcheck-certificate/2", "nodes": 3}')
    assert run("check-certificate", "c.json")[0] == 1


def test_a_network_that_is_not_proved_has_no_certificate_and_the_reason_is_said(folder):
    (folder / "net.py").write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return torch.special.i0(torch.tanh(x))[:, :1]\n"
    )
    words = ["--symmetry", "cartpole/mirror", "--samples", "50", "--outputs", "invariant"]
    code, output = run("verify-net", "net.py:Net", *words, "--certificate", "c.json")
    assert code == 0, output
    assert "no certificate was written: " in output
    assert not Path("c.json").exists()
