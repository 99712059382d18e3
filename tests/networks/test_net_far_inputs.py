"""What is proved holds at every scale of inputs; what is wrong only beyond all samples is never proved."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from far_networks import RIGHT, WRONG, Case

from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.engine.results import RunResult

pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same'")
SCALES = (1e-4, 1e-2, 1.0, 1e2, 1e3, 1e4)
EXACT = 1e-12
"""The published level of an exact output."""


def residual(case: Case, scale: float) -> float:
    """Largest |K f(x) - f(Lx)| over the largest |f|, in float64, on inputs at a scale; by plain torch."""
    net, world = case.build().double().eval(), case.world
    generator = torch.Generator().manual_seed(1)
    x = scale * torch.randn(64, *world.shape, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        wanted, found = world.move_output(net(x)), net(world.move_input(x))
    return float((wanted - found).abs().max() / found.abs().max())


def verified(case: Case, **options: object) -> RunResult:
    # few samples: whether they show something at scales up to 100 is not what is asked here
    limits = NetOptions(samples=64, max_time=600, input_shape=case.world.shape, **options)  # type: ignore[arg-type]
    return run_net(case.build(), case.world.symmetry(), options=limits)


@pytest.mark.parametrize("name", RIGHT)
def test_a_network_that_keeps_its_symmetry_far_out_is_proved_and_holds_at_every_scale(name: str) -> None:
    result = verified(RIGHT[name])
    assert result.verdict == "proved", result.method_reason
    for scale in SCALES:
        assert residual(RIGHT[name], scale) <= EXACT, scale


@pytest.mark.parametrize("name", WRONG)
def test_a_network_that_is_wrong_only_far_out_is_never_proved(name: str) -> None:
    assert max(residual(WRONG[name], scale) for scale in SCALES[:4]) <= EXACT  # no sample shows it
    assert residual(WRONG[name], SCALES[-1]) > 1e5 * EXACT
    result = verified(WRONG[name])
    assert result.verdict != "proved"
    assert all(p.verdict != "proved" for p in result.properties if p.name == "network_equivariance")


@pytest.mark.parametrize("scale", [1e-3, 1e-1])
@pytest.mark.parametrize("name", list(WRONG)[::12])
def test_a_narrower_range_of_samples_proves_no_more(name: str, scale: float) -> None:
    seen = scale * np.random.default_rng(0).normal(size=(32, *WRONG[name].world.shape))
    assert verified(WRONG[name], observations=seen).verdict != "proved"


@pytest.mark.parametrize("name", list(WRONG)[::12])
def test_observations_from_far_out_show_what_is_wrong_there(name: str) -> None:
    seen = 1e4 * np.random.default_rng(0).normal(size=(32, *WRONG[name].world.shape))
    assert verified(WRONG[name], observations=seen).verdict == "failed"
