"""Returns, losses and the optimiser against closed forms, slow references and automatic differentiation."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
import torch

from reference_agents.learning.distributions import Categorical, Gaussian
from reference_agents.learning.losses import DERIVATIVES, Batch, LossWeights
from reference_agents.learning.optimiser import StackedAdam
from reference_agents.learning.returns import advantages_and_returns
from reference_agents.networks.parameters import Layout, StackedParameters
from reference_agents.settings import IN_EPOCHS, Algorithm

WEIGHTS = LossWeights(value_coefficient=0.7, entropy_coefficient=0.03, clip=0.1)


def _no(*shape: int) -> torch.Tensor:
    return torch.zeros(*shape, dtype=torch.bool)


def test_with_lambda_one_and_no_end_the_return_is_the_discounted_sum_plus_the_bootstrap() -> None:
    r_t, v_t = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([10.0, 20.0, 30.0])
    v_next_t = torch.tensor([20.0, 30.0, 40.0])
    advantage_t, return_t = advantages_and_returns(r_t, v_t, v_next_t, _no(3), _no(3), discount=0.5, gae_lambda=1.0)
    assert return_t.tolist() == [1 + 1 + 0.75 + 5, 2 + 1.5 + 10, 3 + 20]
    assert advantage_t.tolist() == (return_t - v_t).tolist()


def test_termination_stops_the_bootstrap_and_a_time_limit_does_not() -> None:
    r_t, v_t, v_next_t = torch.ones(2), torch.zeros(2), torch.tensor([100.0, 8.0])
    ended = torch.tensor([True, False])
    arguments = {"discount": 0.5, "gae_lambda": 1.0}
    _, terminated = advantages_and_returns(r_t, v_t, v_next_t, ended, ended, **arguments)
    _, truncated = advantages_and_returns(r_t, v_t, v_next_t, _no(2), ended, **arguments)
    assert terminated.tolist() == [1.0, 5.0]
    assert truncated.tolist() == [51.0, 5.0]


def test_advantages_are_the_truncated_sums_of_temporal_differences() -> None:
    generator = torch.Generator().manual_seed(0)
    shape = (7, 3, 4)
    r_t, v_t, v_next_t = (torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(3))
    terminated = torch.rand(shape, generator=generator) < 0.2
    ended = terminated | (torch.rand(shape, generator=generator) < 0.2)
    actual, _ = advantages_and_returns(r_t, v_t, v_next_t, terminated, ended, discount=0.9, gae_lambda=0.8)
    for index in np.ndindex(shape):
        t, rest = index[0], index[1:]
        expected = 0.0
        for later in range(t, shape[0]):
            at = (later, *rest)
            bootstrap = 0.0 if terminated[at] else 0.9 * v_next_t[at].item()
            expected += (0.9 * 0.8) ** (later - t) * (r_t[at].item() + bootstrap - v_t[at].item())
            if ended[at]:
                break
        # float64 sums of at most seven terms of order one
        assert actual[index].item() == pytest.approx(expected, abs=1e-12)


def _batch(runs: int = 3, size: int = 40, actions: int = 5) -> tuple[torch.Tensor, torch.Tensor, Batch]:
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(runs, size, actions, generator=generator, dtype=torch.float64)
    values, advantages, returns = (torch.randn(runs, size, generator=generator, dtype=torch.float64) for _ in range(3))
    chosen = torch.randint(0, actions, (runs, size), generator=generator)
    now = torch.log_softmax(logits, -1).gather(-1, chosen.unsqueeze(-1)).squeeze(-1)
    before = now + 0.2 * torch.randn(runs, size, generator=generator, dtype=torch.float64)
    return logits.requires_grad_(), values.requires_grad_(), Batch(chosen, before, advantages, returns)


def _shared_loss(logits: torch.Tensor, values: torch.Tensor, batch: Batch) -> torch.Tensor:
    entropy = torch.distributions.Categorical(logits=logits).entropy().mean(1)
    value_loss = 0.5 * (values - batch.returns).square().mean(1)
    return (WEIGHTS.value_coefficient * value_loss - WEIGHTS.entropy_coefficient * entropy).sum()


def _clipped_surrogate(log_probability: torch.Tensor, batch: Batch) -> torch.Tensor:
    ratio = (log_probability - batch.log_probabilities).exp()
    clipped = ratio.clamp(1 - WEIGHTS.clip, 1 + WEIGHTS.clip)
    assert ((ratio - clipped) != 0).any()
    return -torch.minimum(ratio * batch.advantages, clipped * batch.advantages).mean(1).sum()


def _policy_gradient(log_probability: torch.Tensor, batch: Batch) -> torch.Tensor:
    return -(batch.advantages * log_probability).mean(1).sum()


# The policy's part of each loss as its paper writes it, from the log probabilities of the actions.
LOSSES = {"ppo": _clipped_surrogate, "a2c": _policy_gradient}


def test_every_algorithm_has_derivatives_and_its_loss_stands_above() -> None:
    assert set(get_args(Algorithm)) == set(DERIVATIVES) == set(LOSSES)
    assert set(get_args(Algorithm)) >= IN_EPOCHS


@pytest.mark.parametrize("algorithm", LOSSES)
def test_the_derivatives_of_an_algorithm_are_those_of_the_loss_as_written_in_its_paper(algorithm: Algorithm) -> None:
    logits, values, batch = _batch()
    log_probability = torch.distributions.Categorical(logits=logits).log_prob(batch.actions)
    (LOSSES[algorithm](log_probability, batch) + _shared_loss(logits, values, batch)).backward()
    d_logits, d_values = DERIVATIVES[algorithm](logits.detach(), values.detach(), batch, WEIGHTS, Categorical())
    # both sides are float64 and a handful of operations long
    torch.testing.assert_close(d_logits, logits.grad, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(d_values, values.grad, rtol=1e-12, atol=1e-14)


def _parameters(runs: int) -> StackedParameters:
    layout = Layout()
    layout.add("weight", (7, 5))
    parameters = StackedParameters(layout, runs, torch.device("cpu"))
    generator = torch.Generator().manual_seed(2)
    parameters.values[:, :35] = torch.randn(runs, 35, generator=generator)
    return parameters


def test_each_run_takes_the_steps_of_a_torch_adam_of_its_own() -> None:
    rates = [0.1, 0.1, 0.003]
    parameters = _parameters(3)
    references = [torch.nn.Parameter(row.clone()) for row in parameters.values]
    optimisers = [torch.optim.Adam([row], lr=rate) for row, rate in zip(references, rates, strict=True)]
    adam = StackedAdam(parameters, rates, max_gradient_norm=1.0)
    generator = torch.Generator().manual_seed(3)
    for _ in range(5):
        gradients = torch.randn(3, parameters.layout.used, generator=generator) * torch.tensor([[0.01], [1.0], [9.0]])
        gradients[:, 35:] = 0.0
        parameters.gradients.copy_(gradients)
        norms = adam.step()
        for run, (row, optimiser) in enumerate(zip(references, optimisers, strict=True)):
            row.grad = gradients[run].clone()
            expected = torch.nn.utils.clip_grad_norm_([row], 1.0)
            assert norms[run].item() == pytest.approx(expected.item(), rel=1e-6)  # float32 sums in another order
            optimiser.step()
    # float32; the fused kernel rounds in another order than the unfused one
    torch.testing.assert_close(
        parameters.values, torch.stack([row.detach() for row in references]), rtol=1e-5, atol=1e-6
    )


def test_a_gradient_that_is_not_finite_moves_no_other_run_and_leaves_no_nan() -> None:
    clean, poisoned = _parameters(2), _parameters(2)
    for parameters in (clean, poisoned):
        parameters.gradients[:] = 0.5
    poisoned.gradients[0, 3] = math.nan
    StackedAdam(clean, [0.1, 0.1], 1.0).step()
    norms = StackedAdam(poisoned, [0.1, 0.1], 1.0).step()
    assert math.isnan(norms[0])
    assert torch.equal(poisoned.values[1], clean.values[1])
    assert torch.isfinite(poisoned.values).all()


@pytest.mark.parametrize("algorithm", LOSSES)
def test_the_derivatives_of_a_gaussian_policy_are_those_of_torchs_normal_distribution(algorithm: Algorithm) -> None:
    generator = torch.Generator().manual_seed(4)
    numbers = 0.5 * torch.randn(3, 40, 6, generator=generator, dtype=torch.float64)
    _, values, batch = _batch()
    numbers = numbers.requires_grad_()
    mean, log_deviation = numbers.chunk(2, dim=-1)
    normal = torch.distributions.Normal(mean, log_deviation.exp())
    actions = (mean + torch.randn(mean.shape, generator=generator, dtype=torch.float64)).detach()
    log_probability = normal.log_prob(actions).sum(-1)
    before = (log_probability + 0.2 * torch.randn(3, 40, generator=generator, dtype=torch.float64)).detach()
    batch = Batch(actions, before, batch.advantages, batch.returns)
    loss = LOSSES[algorithm](log_probability, batch)
    value_loss = 0.5 * (values - batch.returns).square().mean(1)
    entropy = normal.entropy().sum(-1).mean(1)
    (loss + (WEIGHTS.value_coefficient * value_loss - WEIGHTS.entropy_coefficient * entropy).sum()).backward()
    d_numbers, d_values = DERIVATIVES[algorithm](numbers.detach(), values.detach(), batch, WEIGHTS, Gaussian(3))
    torch.testing.assert_close(d_numbers, numbers.grad, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(d_values, values.grad, rtol=1e-12, atol=1e-14)


def test_sampled_actions_have_the_policys_probabilities() -> None:
    rng = np.random.default_rng(0)
    n = 100_000
    logits = torch.tensor([[0.3, -1.0, 1.2]]).expand(1, n, 3)
    actions = Categorical().sample(logits, rng.random((1, n)))
    frequencies = np.bincount(actions.ravel(), minlength=3) / n
    # five standard deviations of a frequency of 100,000 draws
    assert np.abs(frequencies - torch.softmax(logits[0, 0], -1).numpy()).max() < 5 * np.sqrt(0.25 / n)
    assert Categorical().mode(logits)[0, 0] == 2
    numbers = torch.tensor([[2.0, -1.0, math.log(0.5), math.log(3.0)]]).expand(1, n, 4)
    drawn = Gaussian(2).sample(numbers, rng.random((1, n, 2)))[0]
    assert drawn.dtype == np.float32
    # five standard errors of a mean, and of a standard deviation
    assert np.abs(drawn.mean(0) - [2.0, -1.0]).max() < 5 * 3.0 / np.sqrt(n)
    assert np.abs(drawn.std(0) / [0.5, 3.0] - 1.0).max() < 5 / np.sqrt(2 * n)
    assert Gaussian(2).mode(numbers)[0, 0].tolist() == [2.0, -1.0]
    assert np.isfinite(Gaussian(2).sample(numbers[:, :1], np.zeros((1, 1, 2)))).all()
