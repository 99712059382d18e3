"""Networks as trainers have them: policies in files, groups of observations, whole numbers; right and with a fault."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import symcheck as sc
from symcheck.errors import TargetError

C2 = sc.groups.cyclic(2)
POINT = sc.Symmetry("point", C2, [[-1, -1, -1]], [[-1, -1]])
CHOICE = sc.Symmetry("choice", C2, [[-1, -1, -1]], [[1, 0]])


def odd(outputs: int, bias: float = 0.0) -> nn.Sequential:
    """An odd function of three numbers, or one with a bias in its last layer."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4, bias=False), nn.Tanh(), nn.Linear(4, outputs))
    nn.init.constant_(net[2].bias, bias)
    return net


def of_two_choices(bias: float = 0.0) -> nn.Sequential:
    """Logits (u, -u) of an odd u, or with a bias of one of them."""
    net = odd(2)
    with torch.no_grad():
        net[2].weight[1] = -net[2].weight[0]
        net[2].bias[0] = bias
    return net


def even(bias: float = 0.0) -> nn.Module:
    return Even(bias)


class Even(nn.Module):
    def __init__(self, bias: float = 0.0) -> None:
        super().__init__()
        self.value, self.bias = odd(1), bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.value(x).abs() + self.bias * x[:, :1]


class GaussianMixin:
    """As skrl's, by its name."""


class SkrlModel(GaussianMixin, nn.Module):
    action_space = None

    def __init__(self, bias: float = 0.0) -> None:
        super().__init__()
        self.net, self.log_std_parameter = odd(2, bias), nn.Parameter(torch.zeros(2))

    def compute(self, inputs, role):
        return self.net(inputs["observations"]), {"log_std": self.log_std_parameter}

    def act(self, inputs, role=""):
        raise AssertionError("draws an action")

    def forward(self, inputs, role=""):
        return self.act(inputs)


class RlGamesModel(nn.Module):
    def __init__(self, bias: float = 0.0) -> None:
        super().__init__()
        self.a2c_network = RlGamesNetwork(bias)

    def norm_obs(self, observations):
        return observations / 2

    def forward(self, input_dict):
        raise AssertionError("draws an action")


class RlGamesNetwork(nn.Module):
    is_continuous = True

    def __init__(self, bias: float) -> None:
        super().__init__()
        self.mu, self.sigma, self.value = odd(2, bias), nn.Parameter(torch.zeros(2)), even()

    def forward(self, inputs):
        mu = self.mu(inputs["obs"])
        return mu, mu * 0 + self.sigma, self.value(inputs["obs"]), inputs["rnn_states"]


class Quantiles(nn.Module):
    """As QRDQN's policy: three quantiles of each action's value."""

    def __init__(self, bias: float = 0.0) -> None:
        super().__init__()
        self.quantile_net = QuantileNetwork(bias)
        self.quantile_net_target = QuantileNetwork(5.0)

    def forward(self, observations, deterministic=True):
        return self.quantile_net(observations).mean(dim=1).argmax(dim=1)


class QuantileNetwork(nn.Module):
    def __init__(self, bias: float) -> None:
        super().__init__()
        self.net = of_two_choices(bias)

    def forward(self, x):
        values = self.net(x)
        return torch.stack([values, 2 * values, 3 * values], dim=1)


class Recurrent(nn.Module):
    """As RecurrentPPO's policy, with one fault in the weights of the memory where there is one."""

    lstm_critic, shared_lstm = None, False

    def __init__(self, bias: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lstm_actor, self.critic = Memory(bias), even()
        self.mlp_extractor, self.action_net, self.value_net = Extractor(), odd(2), nn.Identity()

    def extract_features(self, observations):
        return observations


class Memory(nn.Module):
    def __init__(self, bias: float) -> None:
        super().__init__()
        self.kept, self.bias = nn.Linear(3, 3, bias=False), bias

    def forward(self, sequence):
        hidden, seen = torch.zeros_like(sequence[0]), []
        for x in sequence:
            # The fault needs a memory that is not empty.
            hidden = torch.tanh(x + self.kept(hidden)) + self.bias * hidden.abs()
            seen.append(hidden)
        return torch.stack(seen), hidden


class Extractor(nn.Module):
    def forward_actor(self, features):
        return features

    def forward_critic(self, features):
        return features


@pytest.mark.parametrize(
    ("make", "claim"),
    [(SkrlModel, POINT), (RlGamesModel, POINT), (Quantiles, CHOICE), (Recurrent, POINT)],
    ids=["skrl", "rl_games", "qrdqn", "recurrent"],
)
def test_an_agent_is_judged_by_what_it_computes_and_a_fault_in_it_is_found(make, claim):
    right = sc.verify_net(make(), claim, samples=48)
    assert right.verdict in ("passed", "proved"), right.to_text()
    assert sc.verify_net(make(0.2), claim, samples=48).verdict == "failed"
    # of which sequences it is true is said of a policy with a memory, and of no other
    notes = [note.code for note in right["network_equivariance"].notes]
    assert notes.count("recurrent_steps") == (make is Recurrent)


class Group(dict):
    """A stand-in of TensorDict, which has a batch size."""

    def __init__(self, leaves, batch_size):
        super().__init__(leaves)
        self.batch_size = batch_size


class GroupModel(nn.Module):
    """As rsl_rl's: it joins its groups, and takes nothing but a TensorDict."""

    obs_groups = ("body", "command")

    def __init__(self, bias: float = 0.0) -> None:
        super().__init__()
        self.mlp = odd(2, bias)

    def get_latent(self, obs):
        assert obs.batch_size
        return torch.cat([obs[name] for name in self.obs_groups], dim=-1)

    def forward(self, obs, masks=None):
        return self.mlp(self.get_latent(obs))


def test_named_groups_are_fed_from_one_vector_or_by_name(monkeypatch):
    import sys
    import types

    monkeypatch.setitem(sys.modules, "tensordict", types.SimpleNamespace(TensorDict=Group))
    assert sc.verify_net(GroupModel(), POINT, samples=48).verdict in ("passed", "proved")
    assert sc.verify_net(GroupModel(0.2), POINT, samples=48).verdict == "failed"
    # The lengths of the parts are the claim's.
    by_name = sc.Symmetry("point", C2, [{"body": [-1, -1], "command": [-1]}], [[-1, -1]])
    assert sc.verify_net(GroupModel(), by_name, samples=48).verdict == "proved"


class Table(nn.Module):
    """Logits of each of 16 values, by number."""

    def __init__(self, rows: torch.Tensor) -> None:
        super().__init__()
        self.rows = nn.Embedding.from_pretrained(rows)

    def forward(self, numbers):
        return self.rows(numbers)


def test_whole_numbers_are_drawn_from_a_discrete_space():
    flipped = [4 * (i % 4) + i // 4 for i in range(16)]
    transpose = sc.Symmetry("transpose", C2, [flipped], [[1, 0, 3, 2]])
    torch.manual_seed(0)
    rows = torch.randn(16, 4)
    # Row p[i] is the moved row i.
    tied = (rows + rows[flipped][:, [1, 0, 3, 2]]) / 2
    assert sc.verify_net(Table(tied), transpose, env="FrozenLake-v1", samples=48).verdict == "passed"
    report = sc.verify_net(Table(rows), transpose, env="FrozenLake-v1", samples=48)
    assert report.verdict == "failed"
    assert sorted(set(report["network_equivariance"].counterexample.observation)) == [0.0, 1.0]


def test_an_export_of_one_batch_size_says_how_to_export_it(tmp_path):
    file = tmp_path / "fixed.pt2"
    torch.export.save(torch.export.export(nn.Linear(3, 2), (torch.zeros(4, 3),)), file)
    with pytest.raises(TargetError, match=r"batches of exactly 4 inputs.*dynamic_shapes"):
        sc.verify_net(str(file), POINT, samples=48)


@pytest.mark.parametrize("algorithm", ["SAC", "TD3"])
def test_a_file_of_an_actor_acts_without_noise_and_a_bias_in_it_fails(algorithm, tmp_path):
    sb3 = pytest.importorskip("stable_baselines3")
    mirror = sc.Symmetry("mirror", C2, [[1, -1, -1]], [[-1]])
    layers = {"net_arch": [4], "activation_fn": nn.Tanh}
    agent = getattr(sb3, algorithm)("MlpPolicy", "Pendulum-v1", policy_kwargs=layers, buffer_size=10, device="cpu")
    with torch.no_grad():
        for name, parameter in agent.policy.actor.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
            elif parameter.shape[1] == 3:
                parameter[:, 0] = 0  # odd in sine and speed, and free of the cosine
        agent.save(tmp_path / "right")
        next(p for n, p in agent.policy.actor.named_parameters() if n.endswith("bias")).fill_(0.1)
        agent.save(tmp_path / "wrong")
    right = sc.verify_net(str(tmp_path / "right.zip"), mirror, trust=True, samples=48)
    assert right.verdict == "proved", right.to_text()
    wrong = sc.verify_net(str(tmp_path / "wrong.zip"), mirror, trust=True, samples=48)
    assert wrong.verdict == "failed"
    assert wrong["network_equivariance"].location.startswith("actor.")


WEIGHTS = np.random.default_rng(0).normal(size=(3, 2))


@pytest.mark.parametrize("one_input", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_function_of_arrays_is_sampled_and_the_reason_is_named(one_input, dtype):
    def net(x, bias=0.0):
        if one_input and np.ndim(x) != 1:
            raise ValueError("one input at a time")
        return np.tanh(x.astype(dtype) @ WEIGHTS.astype(dtype)) + dtype(bias)

    right = sc.verify_net(net, POINT, samples=48)
    assert right.verdict == "passed", right.to_text()
    reason = right.results[0].method_reason
    assert reason.code == ("method_coarse" if dtype is np.float32 else "method_not_followed")
    # At the precision of the deployed code alone, small faults are undecided.
    fault = 0.5 if dtype is np.float32 else 1e-4
    assert sc.verify_net(lambda x: net(x, fault), POINT, samples=48).verdict == "failed"


def test_a_network_of_equinox_and_a_bias_in_it():
    jax = pytest.importorskip("jax")
    eqx = pytest.importorskip("equinox")
    net = eqx.nn.MLP(3, 2, 4, 1, activation=jax.numpy.tanh, use_bias=False, key=jax.random.PRNGKey(0))
    right = sc.verify_net(net, POINT, samples=48)
    assert right.verdict == "passed", right.to_text()
    assert (
        right.results[0].method_reason.code == "method_not_followed"
    )  # in float64, whatever the weights are stored in
    assert sc.verify_net(lambda x: net(x) + 1e-3, POINT, samples=48).verdict == "failed"
