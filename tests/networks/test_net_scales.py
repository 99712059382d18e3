"""Each output entry has its own scale, rounding excuses what it explains, and clear decisions must move along."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from net_catalogue import Lambda
from torch import nn

from symcheck.engine.networks.context import NetContext
from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.engine.networks.samples.entry_scales import entry_gaps, entry_scales
from symcheck.engine.networks.subject.domain import domain_of
from symcheck.engine.results import PropertyResult
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

SWAP = [1, 0, 3, 2]


def swap(extra: tuple[int, ...] = ()) -> Symmetry:
    """Exchanges neighbours of the observation, and the two actions."""
    return Symmetry("swap", catalog.cyclic(2), observation=[[*SWAP, *extra]], action=[[1, 0]])


class Policy(nn.Module):
    """Two logits of four numbers; equivariant by its weights unless `off`."""

    def __init__(self, off: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.head = nn.Linear(4, 16), nn.Linear(16, 2)
        half, row = torch.randn(8, 4), torch.randn(16)
        with torch.no_grad():
            self.body.weight.copy_(torch.cat([half, half[:, SWAP]]))
            self.body.bias.copy_(torch.randn(8).repeat(2))
            self.head.weight.copy_(torch.stack([row, torch.cat([row[8:], row[:8]])]))
            self.head.weight[0, 0] += off
            self.head.bias.fill_(0.3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.body(x)))


def masked(x: torch.Tensor, net: nn.Module, number: float) -> torch.Tensor:
    return torch.where(x[:, 4:] > 0.5, net(x[:, :4]), number)


def whole(net: nn.Module, symmetry: Symmetry, **options: Any) -> PropertyResult:
    result = run_net(net, symmetry, options=NetOptions(samples=400, **options))
    return next(item for item in result.properties if item.name == "network_equivariance")


OUTPUTS: dict[str, Callable[[torch.Tensor, nn.Module], Any]] = {
    "mask": lambda x, net: masked(x, net, -1e8),
    "mask of the largest float": lambda x, net: masked(x, net, -3.4e38),
    "mask, normalised": lambda x, net: torch.log_softmax(masked(x, net, -1e4), -1),
    "offset": lambda x, net: net(x[:, :4]) + 1e6,
    "two outputs": lambda x, net: {"pi": net(x[:, :4]), "return": 1e6 * net(x[:, :4]).sum(-1, keepdim=True)},
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_no_number_beside_the_logits_hides_a_fault_or_makes_one(name: str) -> None:
    claim = swap((5, 4))
    right, wrong = (Lambda(OUTPUTS[name], Policy(off)) for off in (0.0, 1.0))
    assert whole(right, claim).verdict in ("proved", "passed")
    item = whole(wrong, claim)
    assert item.verdict == "failed"
    assert item.max_residual is not None
    assert item.max_residual > 0.1


def test_marks_are_compared_among_themselves() -> None:
    values = np.array([[0.5], [-1.0], [0.2], [-1e8], [-1e8 - 3]])
    scales = entry_scales(values)
    assert scales.spread.tolist() == [0.75]
    assert entry_gaps(values, values - [[0.0], [0.0], [0.0], [8.0], [0.0]], scales).max() == 0
    assert entry_gaps(values, values[::-1], scales).max() > 1e7
    # ordinary values: of a saturated probability most are tiny, and none is a mark
    probabilities = np.append(10.0 ** np.linspace(-40, -2, 90), np.linspace(0.9, 1.0, 10))[:, None]
    assert entry_scales(probabilities).spread[0] == pytest.approx(0.5)


class Cancelling(Policy):
    """The value's terms cancel, to a sum of rounding errors."""

    def forward(self, x: torch.Tensor) -> Any:
        h = torch.tanh(self.body(x) - self.body.bias)
        value = torch.cat([self.head.weight[0, :8], -self.head.weight[0, :8]])
        return self.head(h), (h + torch.cat([h[:, 8:], h[:, :8]], 1)) @ value[:, None]


def test_what_cancels_is_judged_by_the_terms_that_it_sums() -> None:
    assert whole(Cancelling(), swap()).verdict in ("proved", "undecided")
    assert whole(Cancelling(off=0.1), swap()).verdict == "failed"


class Recurrent(nn.Module):
    """Tied weights whose steps double differences; `off` breaks the tie."""

    def __init__(self, steps: int, off: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.steps = steps
        half, inner, row = torch.randn(8, 16) * 0.75, torch.randn(8, 4), torch.randn(16)
        self.step = nn.Parameter(torch.cat([half, torch.cat([half[:, 8:], half[:, :8]], 1)]))
        self.inner = nn.Parameter(torch.cat([inner, inner[:, SWAP]]))
        self.head = nn.Parameter(torch.stack([row, torch.cat([row[8:], row[:8]])]))
        with torch.no_grad():
            self.inner[0, 0] += off

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        driven = x @ self.inner.T
        h = torch.tanh(driven)
        for _ in range(self.steps):
            h = torch.tanh(h @ self.step.T + driven)
        return h @ self.head.T


@pytest.mark.parametrize("steps", [4, pytest.param(80, marks=pytest.mark.long)])
def test_rounding_that_a_recurrence_amplifies_is_no_violation(steps: int) -> None:
    assert whole(Recurrent(steps), swap()).verdict != "failed"


def test_a_fault_that_a_recurrence_does_not_amplify_beyond_rounding_has_failed() -> None:
    assert whole(Recurrent(4, off=0.1), swap()).verdict == "failed"


class Fast(Policy):
    """Half and single precision take another path than float64."""

    def __init__(self, gain: float) -> None:
        super().__init__()
        self.register_buffer("gain", torch.tensor([gain, 1.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = super().forward(x)
        return y if x.dtype == torch.float64 else y * self.gain


def test_decisions_that_flip_as_deployed_have_failed_and_less_than_that_is_undecided() -> None:
    item = whole(Fast(1.5), swap())
    assert item.verdict == "failed"
    assert item.counterexample is not None
    expected, actual = item.counterexample.expected, item.counterexample.actual
    assert np.argmax(expected) != np.argmax(actual)
    item = whole(Fast(1.0001), swap())
    assert (item.verdict, item.reason and item.reason.code) == ("undecided", "deployed_off")
    assert whole(Fast(1.0), swap()).verdict in ("proved", "passed")


def test_the_clearest_decision_that_flips_is_the_one_shown() -> None:
    context = NetContext(Fast(1.5), swap(), NetOptions(samples=400), lambda event: None)
    flip = context.measured.flip
    assert flip is not None
    x = np.random.default_rng(1).normal(size=(400, 4)) * 10.0
    wanted, actual = (Fast(1.5)(torch.tensor(side).float()).detach().numpy() for side in (x, x[:, SWAP]))
    usual = np.abs(wanted[:, 0] - wanted[:, 1])[wanted.argmax(1) != 1 - actual.argmax(1)]
    assert flip.margin >= np.quantile(usual, 0.9)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_rounding_of_the_deployed_dtype_takes_no_proof_away(dtype: str) -> None:
    assert whole(Policy(), swap(), dtype=dtype).verdict == "proved"


def test_inputs_are_drawn_inside_the_observation_space() -> None:
    space = gym.spaces.Box(0.1, 1.0, (4,))
    logarithm = Lambda(lambda x, net: net(torch.log(x)), Policy())
    assert whole(logarithm, swap()).verdict == "failed"  # NaN where nothing is known of the inputs
    item = whole(logarithm, swap(), space=space)
    assert item.verdict in ("proved", "passed")
    assert "observation space" in str(item.detail)
    assert whole(Lambda(lambda x, net: net(torch.log(x)), Policy(off=1e-3)), swap(), space=space).verdict == "failed"


def test_images_outside_the_observation_space_leave_the_claim_undecided() -> None:
    negate = Symmetry("negate", catalog.cyclic(2), observation=[[-1, 1, 1, 1]], action=[[1, 0]])
    net = Lambda(lambda x: torch.stack([x[:, 0] * x.abs().amax().item() ** 0, -x[:, 0]], -1))
    item = whole(net, negate, space=gym.spaces.Box(0.1, 1.0, (4,)))
    assert item.verdict == "undecided"


def test_a_space_of_whole_numbers_is_drawn_from_in_whole_numbers() -> None:
    domain = domain_of(gym.spaces.Box(0, 255, (2, 3), np.uint8), (2, 3))
    assert domain is not None
    x = domain.draw(np.random.default_rng(0), 50)
    assert (x == np.round(x)).all()
    assert 0 <= x.min() < 40 < 215 < x.max() <= 255
    numbers = domain_of(gym.spaces.Discrete(3), (3,))
    assert numbers is not None
    # Every value, as a one-hot vector.
    assert numbers.draw(np.random.default_rng(0), 50).sum(axis=0).min() > 0
