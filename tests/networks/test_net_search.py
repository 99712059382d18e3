"""Inputs are drawn, shrunk and climbed to as described."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from net_catalogue import Lambda, mirror, mirror_mlp, turn
from torch import nn

from symcheck.array_types import Bools, Floats
from symcheck.engine.networks.context import NetContext
from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.samples.ascent import STARTS, activate_units
from symcheck.engine.networks.samples.sampling import Family, families
from symcheck.engine.networks.samples.search import revealing_inputs
from symcheck.engine.networks.samples.shrinking import shrink
from symcheck.engine.networks.subject.claims import input_claim
from symcheck.engine.networks.subject.subject import Subject
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry


@settings(max_examples=20, deadline=None)
@given(count=st.integers(1, 2000), seed=st.integers(0, 100))
def test_about_as_many_inputs_are_drawn_as_were_asked_for(count: int, seed: int) -> None:
    drawn = families(input_claim(mirror(), (4,)), count, np.random.default_rng(seed))
    total = sum(len(family.inputs) for family in drawn)
    assert 1 <= total <= count + 3  # at least one of each kind
    assert all(len(family.inputs) for family in drawn)


def test_fixed_points_are_fixed() -> None:
    claim = input_claim(turn(), (1, 9, 9))
    drawn = families(claim, 400, np.random.default_rng(0))
    fixed = next(family for family in drawn if family.name == "fixed points")
    assert np.allclose(claim.apply(0, fixed.inputs), fixed.inputs, atol=1e-12)  # sums of four in another order
    assert np.abs(fixed.inputs).max() > 0


def test_one_bright_pixel_is_found_among_441() -> None:
    x = np.random.default_rng(0).normal(size=(1, 21, 21))
    x[0, 7, 9] = 3.2
    small = shrink(x, lambda batch: batch[:, 0, 7, 9] > 0.5)
    assert np.argwhere(small).tolist() == [[0, 7, 9]]
    assert small[0, 7, 9] == 1.0


def test_two_entries_that_are_needed_together_both_stay() -> None:
    x = np.random.default_rng(1).normal(size=(50,)) + 3.0
    small = shrink(x, lambda batch: (batch[:, 11] > 2.0) & (batch[:, 30] > 0.7))
    assert np.flatnonzero(small).tolist() == [11, 30]
    assert small[30] == 1.0


def test_what_shrinks_to_nothing_plainer_stays_as_it_is() -> None:
    x = np.array([0.123, 0.456])
    assert np.array_equal(shrink(x, lambda batch: (batch == x).all(axis=1)), x)


class Narrow(nn.Module):
    """Asymmetric only on a slab of inputs that normal draws hardly reach."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = mirror_mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bump = torch.relu(x @ torch.tensor([1.0, 1.0, 1.0, 1.0], dtype=x.dtype) - 15.0)
        return self.inner(x) + bump[:, None] * torch.tensor([1.0, 0.0], dtype=x.dtype)


def test_a_fault_in_a_corner_is_found() -> None:
    context = NetContext(Narrow(), mirror(), NetOptions(samples=200), lambda event: None)
    assert context.assessment.verdict == "failed"


def test_the_families_of_a_run_are_named_in_its_region() -> None:
    context = NetContext(mirror_mlp(), mirror(), NetOptions(samples=100), lambda event: None)
    assert context.measured.relative < 1e-12
    for word in ("scale 1", "edges", "fixed points"):
        assert word in str(context.region)
    assert context.region.fields["shape"] == [4]


def test_a_climb_activates_two_units_at_once_that_no_start_does() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(30, 2), nn.ReLU(), nn.Linear(2, 2))
    with torch.no_grad():
        net[0].weight /= net[0].weight.norm(dim=1, keepdim=True)
        net[0].bias.fill_(-150.0)  # five standard deviations of the larger starts

    def both_active(inputs: Floats) -> Bools:
        return (net[0](torch.from_numpy(inputs).float()) > 0).all(1).numpy()

    signs = Symmetry("signs", catalog.cyclic(2), observation=[[-1] * 30], action=[[1, 0]])
    climbs = activate_units(
        Subject(net, (30,)), input_claim(signs, (30,)), [("0", 0), ("0", 1)], np.random.default_rng(0)
    )
    assert len(climbs) == 2
    assert not any(both_active(climb.inputs[:STARTS]).any() for climb in climbs)
    assert all(both_active(climb.inputs[-STARTS:]).all() for climb in climbs[1:])
    # A unit of no module has no activation to climb.
    assert activate_units(Subject(net, (30,)), input_claim(signs, (30,)), [("9", 0)], np.random.default_rng(0)) == []


def test_observations_come_first_when_there_are_some() -> None:
    seen = np.random.default_rng(0).normal(size=(30, 4))
    context = NetContext(mirror_mlp(), mirror(), NetOptions(samples=100, observations=seen), lambda event: None)
    assert context.measured.families[0] == "observations"


def test_inputs_that_are_all_fixed_leave_the_claim_undecided() -> None:
    net = Lambda(lambda x: torch.stack([x.sum(-1), x.sum(-1)], -1))
    still = Symmetry("still", catalog.cyclic(2), observation=[[1, 1, 1, 1]], action=[[1, 0]])
    context = NetContext(net, still, NetOptions(samples=100), lambda event: None)
    verdict, reason = context.assessment.decision
    assert verdict == "undecided"
    assert reason is not None
    assert reason.code == "nothing_moves"
    assert "fixed point" in str(reason)


def test_a_long_search_keeps_the_inputs_that_show_a_fault_most() -> None:
    def search_at(size: float) -> tuple[NetContext, list[Family], int]:
        net = Lambda(lambda x, n: n(x) + size * torch.relu(x[:, :1]) * torch.eye(2)[0].to(x), mirror_mlp())
        context = NetContext(net, mirror(), NetOptions(), lambda event: None)
        rng = np.random.default_rng(0)
        found = revealing_inputs(context.subject, context.inputs, context.outputs, rng, 1e-9, context.ruler, most=500)
        return context, *found

    assert search_at(0.0)[1:] == ([], 500)
    context, (family,), tried = search_at(1.0)
    assert 0 < tried <= 500
    (claim,) = context.outputs
    answers = [
        context.subject.run(x, exact=True)[claim.path] for x in (family.inputs, context.inputs.apply(0, family.inputs))
    ]
    gaps = np.abs(claim.apply(0, answers[0], family.inputs) - answers[1]).max(axis=1)
    # Residuals are ranked by the size of their entries, so about in the order of the gaps.
    assert gaps[0] > np.median(gaps) > gaps.min() > 1e-3
