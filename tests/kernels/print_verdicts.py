"""Verifies one network, basis and world of each kind and prints the verdicts as JSON: for a child process.

The kernels of the linear algebra are chosen before NumPy and torch are loaded, hence by a process of its own. Its
PYTHONPATH must hold the folders of the tables (`test_kernels_agree.py` says which).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import kernels
import torch
from correct_networks import CORRECT
from faulty_networks import FAULTS
from faulty_worlds import FAULTY
from net_catalogue import mirror, mirror_mlp
from sound_worlds import SOUND
from subjects import weight_off
from symcheck.engine.env_runner import run_env
from symcheck.engine.net_options import NetOptions
from symcheck.engine.net_runner import run_net
from torch import nn

import symcheck as sc
import symcheck_properties  # noqa: F401  (registers the properties)
from symcheck.engine.options import EnvOptions
from symcheck.envs import atlas
from symcheck.envs.targets import resolve_environment
from symcheck.intertwiners import conv_intertwiner_basis, intertwiner_basis
from tests.groups.test_conditioning import skewed
from tests.groups.test_intertwiners import C3, C4, CASES, SHEARED

NETWORKS = [
    "mlp",
    "two heads",
    "rescaled units",
    "dropout in eval",
    "rotation by 120 degrees",
    "rotation by 120 degrees, float32",
    "grid world",
    "grid world, fresh batch norm",
    "max pool on an even size",
    "autocast",
    "bfloat16 inside",
    "a plain MLP",
    "layer 2: one weight off by 1e-06",
    "batch norm trained on one side",
    "6x6 filters, stride 2, odd size",
    "max pool on an odd size",
    "missing inverse",
    "actions in clockwise order",
    "NaN on some inputs",
    "a shift of one output",
]
WORLDS = [
    "float32 shown of a float64 state",
    "rewards cast to float32",
    "observations normalised by a mean that is not zero",
    "a sensor keeps its last reading on one side",
    "a crop off by one row",
    "keys of a Dict not exchanged",
    "an action map that depends on the wrong side",
    "an angle wrapped into 0 to 2 pi, negated",
    "rounded to float32 on one side",
    "a gravity component of one part in a million",
    "the reward is off by 1e-7 of itself everywhere on one side",
    "noise leans to one side where the point is fast",
    "a table whose slip differs by one part in a billion",
    "a start on one side three times in five",
]
KNOWN = ["cartpole/mirror", "pendulum/mirror", "mountaincar/valley", "frozenlake/transpose"]


class Noisy(nn.Module):
    """An equivariant network plus fresh noise on each call."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mirror_mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        noisy: torch.Tensor = self.net(x) + 0.01 * torch.randn(2)
        return noisy


def zeroed() -> nn.Module:
    """A network that answers 0 to everything."""
    net = mirror_mlp()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
    return net


OWN: dict[str, tuple[Callable[[], nn.Module], dict[str, Any]]] = {
    "float64, a weight off by 1e-9": (lambda: weight_off("2", 1e-9, mirror_mlp().double()), {}),
    "float64, a weight off by 1e-9, strict": (lambda: weight_off("2", 1e-9, mirror_mlp().double()), {"strict": True}),
    "fresh noise on each call": (Noisy, {}),
    "zero": (zeroed, {}),
}


def network_verdicts() -> dict[str, Any]:
    """Per network: the verdict of each property, and the layers named by those that failed."""
    subjects = {one.name: one for one in [*CORRECT, *FAULTS]}
    claims = [(name, subjects[name].net, subjects[name].symmetry, subjects[name].options) for name in NETWORKS]
    claims += [(name, net, mirror, options) for name, (net, options) in OWN.items()]
    verdicts = {}
    for name, net, symmetry, options in claims:
        result = run_net(net(), symmetry(), options=NetOptions(**options))
        named = {one.location for one in result.properties if one.verdict == "failed"}
        verdicts[name] = {one.name: one.verdict for one in result.properties} | {"layers": sorted(map(str, named))}
    return verdicts


def basis_verdicts() -> dict[str, Any]:
    """Per pair of representations: rank, kind of certificate, fingerprint, and whether the residual is rounding."""
    made = {name: intertwiner_basis(rho_in, rho_out) for name, rho_in, rho_out, _ in CASES}
    regular = sc.representations.regular
    made["filters of 5 x 5"] = conv_intertwiner_basis(regular(C4), regular(C4), 5, spatial=["rot90"])
    made["filters of 3 x 3, sheared"] = conv_intertwiner_basis(SHEARED, SHEARED, 3, spatial=["identity"])
    rho, _ = skewed(regular(C3), 1e4)
    made["condition 1e4"] = intertwiner_basis(rho, rho)
    return {
        name: [basis.rank, basis.certificate.kind, basis.certificate.residual <= basis.certificate.tolerance]
        for name, basis in made.items()
    }


def world_verdicts() -> dict[str, Any]:
    """Per environment: the verdict of each property."""
    rows = {row.name: row for row in [*SOUND, *FAULTY]}
    claims = [(name, rows[name].make, rows[name].symmetry, rows[name].options) for name in WORLDS]
    for entry in map(atlas.entry, KNOWN):
        claims.append((entry.name, resolve_environment(entry.environments[0]).make, entry.symmetry(), {}))
    cartpole = atlas.entry("cartpole/mirror").symmetry()
    claims.append(("cartpole/mirror, a black box", lambda: gym.make("CartPole-v1"), cartpole, {"method": "trajectory"}))
    verdicts = {}
    for name, make, symmetry, options in claims:
        given = {"samples": 2_000, "alpha": 0.002, "seed": 1} | (options or {})
        result = run_env(make, symmetry, options=EnvOptions(**given), target=name, command="")
        verdicts[name] = {one.name: one.verdict for one in result.properties}
    return verdicts


def main() -> None:
    """Print the kernels in use and all verdicts."""
    found = {
        "kernels": kernels.taken(),
        "networks": network_verdicts(),
        "bases": basis_verdicts(),
        "worlds": world_verdicts(),
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
