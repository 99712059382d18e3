"""Policies with a fault in one part: the residual is that of the part, in the action's unit, and the part is named."""

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import symcheck as sc
from symcheck.cli.main import app
from symcheck.engine.policies.images import image_of_deviations
from symcheck.entries.forms import AffineEntry
from symcheck.errors import SpecError

# Two legs: (left, right) angles and a lateral velocity; the mirror exchanges the legs and negates the velocity.
MIRROR = sc.Symmetry("mirror", sc.groups.cyclic(2), observation=[["+2", "+1", "-3"]], action=[[1, 0]])
STATES = np.random.default_rng(0).normal(size=(400, 3))


class Normaliser(nn.Module):
    def __init__(self, mean=(0.0, 0.0, 0.0), var=(1.0, 1.0, 1.0)):
        super().__init__()
        self.register_buffer("_mean", torch.tensor([mean]))
        self.register_buffer("_var", torch.tensor([var]))
        self.register_buffer("_std", torch.tensor([var]).sqrt())

    def forward(self, x):
        return (x - self._mean) / (self._std + 1e-2)


class Offset(nn.Module):
    def __init__(self, *values):
        super().__init__()
        self.register_buffer("values", torch.tensor(values))

    def forward(self, x):
        return x + self.values


def equivariant_net(extra=0.0):
    """tanh of an equivariant layer, and an equivariant layer: every unit has its mirrored unit."""
    first, last = nn.Linear(3, 2), nn.Linear(2, 2)
    with torch.no_grad():
        first.weight.copy_(torch.tensor([[0.5, -0.3, 0.7], [-0.3, 0.5, -0.7]]))
        last.weight.copy_(torch.tensor([[1.0, 0.2], [0.2, 1.0]]))
        first.bias.fill_(0.1)
        last.bias.copy_(torch.tensor([0.3, 0.3 + extra]))
    return [first, nn.Tanh(), last]


def policy(normaliser=None, extra=0.0, post=(0.0, 0.0)):
    return nn.Sequential(normaliser or Normaliser(), *equivariant_net(extra), Offset(*post))


def test_an_equivariant_policy_passes_with_three_silent_parts():
    report = sc.audit_policy(policy(), MIRROR, STATES)
    assert report.verdict == "passed", report.to_text()
    parts = report["policy_equivariance"].parts
    assert set(parts) == {"normaliser", "network", "post"}
    assert all(part["max_residual"] < 1e-9 for part in parts.values())


@pytest.mark.parametrize(
    ("built", "part", "code"),
    [
        (policy(Normaliser(mean=(0.2, 0.0, 0.0))), "normaliser", "SYM250"),
        (policy(extra=0.25), "network", "SYM251"),
        (policy(post=(0.0, 0.114)), "post", "SYM252"),
    ],
)
def test_the_part_at_fault_is_named_with_its_size(built, part, code):
    report = sc.audit_policy(built, MIRROR, STATES, units="rad", tolerance=0.02)
    result = report["policy_equivariance"]
    assert result.verdict == "failed"
    assert [cause.code for cause in result.causes] == [code]
    sizes = {name: entry["max_residual"] for name, entry in result.parts.items()}
    assert [name for name, size in sizes.items() if size > 1e-6] == [part]
    # An offset of one side is the residual itself, wherever the state is.
    if part != "normaliser":
        assert result.max_residual == pytest.approx({"network": 0.25, "post": 0.114}[part], rel=1e-5)
    assert "rad" in result.unit
    assert result.counterexample is not None
    document = report.to_dict()
    assert document["kind"] == "policy"
    assert document["properties"][0]["parts"][part]["max_residual"] == pytest.approx(sizes[part])


def test_one_sided_statistics_are_named_and_repaired():
    broken = Normaliser(mean=(0.2, 0.0, 0.1), var=(1.0, 2.0, 1.0))
    report = sc.audit_policy(policy(broken), MIRROR, STATES)
    columns = {entry["column"] for entry in report["policy_equivariance"].causes[0].fields["columns"]}
    assert columns == {0, 1, 2}
    repaired = sc.symmetrise_normaliser(broken, MIRROR)
    assert isinstance(repaired, Normaliser)
    assert broken._mean[0, 0] == pytest.approx(0.2)
    assert sc.audit_policy(policy(repaired), MIRROR, STATES).verdict == "passed"


def test_statistics_are_those_of_the_data_and_its_images():
    data = np.random.default_rng(1).normal([0.4, -0.2, 0.3], [1.0, 2.0, 0.5], size=(200_000, 3))
    both = np.concatenate([data, data[:, [1, 0, 2]] * [1, 1, -1]])
    repaired = sc.symmetrise_normaliser({"mean": data.mean(0), "var": data.var(0), "count": 1}, MIRROR)
    assert np.allclose(repaired["mean"], both.mean(0), atol=1e-12)
    assert np.allclose(repaired["var"], both.var(0), atol=1e-12)


def test_normalisers_of_dictionaries_are_repaired_key_by_key():
    claim = sc.Symmetry("m", sc.groups.cyclic(2), [{"pair": ["-2", "-1"], "one": [-1]}], [[1]])
    state = {"pair": {"mean": [1.0, 3.0], "var": [4.0, 6.0]}, "one": {"mean": [2.0], "var": [1.0]}}
    repaired = sc.symmetrise_normaliser(state, claim)
    assert {key: (each["mean"].tolist(), each["var"].tolist()) for key, each in repaired.items()} == {
        "pair": ([-1.0, 1.0], [9.0, 9.0]),
        "one": ([0.0], [5.0]),
    }
    with pytest.raises(sc.errors.SpecError, match="a mean and a variance, got Linear"):
        sc.symmetrise_normaliser(nn.Linear(3, 3), MIRROR)
    with pytest.raises(sc.errors.SpecError, match=r"a mean and a variance, got \['mean'\]"):
        sc.symmetrise_normaliser({"mean": [0.0, 0.0, 0.0]}, MIRROR)


def test_normalisers_of_stable_baselines_come_back_as_their_kind():
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.running_mean_std import RunningMeanStd
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    statistics = RunningMeanStd(shape=(4,))
    statistics.mean[:] = [0.1, 0.2, 0.3, 0.4]
    cart = sc.Symmetry("mirror", sc.groups.cyclic(2), observation=[[-1] * 4], action=[[1, 0]])
    assert np.array_equal(sc.symmetrise_normaliser(statistics, cart).mean, np.zeros(4))
    import gymnasium as gym

    env = VecNormalize(DummyVecEnv([lambda: gym.make("CartPole-v1")]))
    env.obs_rms.mean[:] = 0.5
    repaired = sc.symmetrise_normaliser(env, cart)
    assert isinstance(repaired, VecNormalize)
    assert np.array_equal(repaired.obs_rms.mean, np.zeros(4))
    assert env.obs_rms.mean[0] == 0.5


def test_a_matrix_that_mixes_unequal_variances_is_refused():
    turned = sc.Symmetry("turn", sc.groups.cyclic(3), observation=[_third_of_a_turn()], action=[[1]])
    assert np.allclose(sc.symmetrise_normaliser({"mean": [0.0, 0.0], "var": [2.0, 2.0]}, turned)["var"], 2.0)
    assert np.allclose(sc.symmetrise_normaliser({"mean": [0.3, 0.0], "var": [2.0, 2.0]}, turned)["mean"], 0.0)


def _third_of_a_turn():
    c, s = np.cos(2 * np.pi / 3), np.sin(2 * np.pi / 3)
    return np.array([[c, -s], [s, c]])


class Gaussian(nn.Module):
    def __init__(self, left, right):
        super().__init__()
        self.mean = nn.Sequential(*equivariant_net())
        self.std = nn.Parameter(torch.tensor([left, right]))

    def forward(self, x):
        return torch.distributions.Normal(self.mean(x), self.std.expand(len(x), 2))


def test_stochastic_policies_are_compared_by_deviation_too():
    assert sc.audit_policy(Gaussian(0.5, 0.5), MIRROR, STATES).verdict == "passed"
    report = sc.audit_policy(Gaussian(0.5, 0.6), MIRROR, STATES, tolerance=0.02)
    assert report.verdict == "failed"
    deviation = next(n for n in report["policy_equivariance"].notes if n.code == "policy_deviations")
    assert deviation.fields["residual"] == pytest.approx(0.1, rel=1e-5)


class ByKey(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(*equivariant_net())

    def forward(self, obs):
        return self.net(torch.cat([obs["joints"], obs["velocity"]], -1))


def test_dictionaries_of_observations_are_moved_by_key():
    entry = {"joints": ["+2", "+1"], "velocity": [-1]}
    mirror = sc.Symmetry("mirror", sc.groups.cyclic(2), observation=[entry], action=[[1, 0]])
    data = {"joints": STATES[:, :2], "velocity": STATES[:, 2:]}
    assert sc.audit_policy(ByKey(), mirror, data).verdict == "passed"


class Columns(nn.Module):
    def __init__(self, mean, var):
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean))
        self.register_buffer("var", torch.tensor(var))

    def forward(self, x):
        return (x - self.mean) / (self.var + 1e-8).sqrt()


class NormalisedByKey(nn.Module):
    """One normaliser a key, or (`joined`) one for all keys that are read, as rsl_rl's actors have it."""

    def __init__(self, left=0.0, *, joined):
        super().__init__()
        self.joined = joined
        if joined:
            self.normaliser = Columns([0.0, left, 0.0], [1.0, 1.0, 1.0])
        else:
            velocity, joints = Columns([0.0], [1.0]), Columns([left, 0.0], [1.0, 1.0])
            self.normalisers = nn.ModuleDict({"velocity": velocity, "joints": joints})
        self.net = nn.Sequential(*equivariant_net())

    def forward(self, obs):
        if self.joined:
            scaled = self.normaliser(torch.cat([obs["velocity"], obs["joints"]], -1))
            return self.net(scaled[..., [1, 2, 0]])
        return self.net(torch.cat([self.normalisers[key](obs[key]) for key in ("joints", "velocity")], -1))


@pytest.mark.parametrize("joined", [False, True])
def test_normalisers_of_dictionaries_are_split_off_and_their_columns_named_by_key(joined):
    entry = {"joints": ["+2", "+1"], "velocity": [-1], "critic": [1, 1]}
    mirror = sc.Symmetry("mirror", sc.groups.cyclic(2), observation=[entry], action=[[1, 0]])
    # The critic's observation is moved too, and no normaliser of the policy reads it.
    data = {"critic": STATES[:, :2] ** 2, "joints": STATES[:, :2], "velocity": STATES[:, 2:]}
    sound = sc.audit_policy(NormalisedByKey(joined=joined), mirror, data)["policy_equivariance"]
    assert sound.verdict == "passed"
    assert sound.parts["normaliser"]["max_residual"] < 1e-9
    report = sc.audit_policy(NormalisedByKey(0.25, joined=joined), mirror, data, tolerance=0.02)
    result = report["policy_equivariance"]
    assert result.verdict == "failed"
    assert [cause.code for cause in result.causes] == ["SYM250"]
    assert [(c["key"], c["column"]) for c in result.causes[0].fields["columns"]] == [("joints", 0), ("joints", 1)]
    assert "column 0 of 'joints', column 1 of 'joints'" in report.to_text()
    sizes = {name: entry["max_residual"] for name, entry in result.parts.items()}
    assert sizes["normaliser"] > 0.05
    assert sizes["network"] < 1e-9


def test_a_normaliser_of_features_is_none_of_the_observation():
    """Statistics of a hidden layer have no columns of the observation: what they do belongs to the network."""
    features = nn.Sequential(nn.Linear(3, 3), Columns([0.5, 0.0, 0.0], [1.0, 1.0, 1.0]), *equivariant_net())
    data = {"joints": STATES[:, :2], "velocity": STATES[:, 2:]}

    class Joined(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = features

        def forward(self, obs):
            return self.net(torch.cat([obs["joints"], obs["velocity"]], -1))

    entry = {"joints": ["+2", "+1"], "velocity": [-1]}
    mirror = sc.Symmetry("mirror", sc.groups.cyclic(2), observation=[entry], action=[[1, 0]])
    for result in (sc.audit_policy(Joined(), mirror, data), sc.audit_policy(features, MIRROR, STATES)):
        assert result["policy_equivariance"].parts["normaliser"] is None
        assert result.verdict == "failed"


def test_the_command_line_reads_a_rollout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "rollout.npz", observations=STATES, actions=STATES[:, :2])
    (tmp_path / "mirror.toml").write_text(
        'name = "m"\ngroup = "C2"\nobservation = [["+2", "+1", "-3"]]\naction = [[1, 0]]\n'
    )
    (tmp_path / "audited.py").write_text(
        "import torch\ndef load():\n    torch.manual_seed(0)\n    return torch.nn.Linear(3, 2)\n"
    )
    line = ["audit-policy", "audited.py:load", "--symmetry", "mirror.toml", "--data", "rollout.npz", "--units", "rad"]
    result = CliRunner().invoke(app, [*line, "--json", "r.json"])
    assert result.exit_code == 1, result.output
    assert CliRunner().invoke(app, [*line, "--tolerance", "100"]).exit_code == 0
    assert CliRunner().invoke(app, [*line[:-2], "--data", "none.npz"]).exit_code == 2


def test_states_that_are_none_are_refused():
    for states in (np.zeros((0, 3)), np.zeros(3), np.full((2, 3), np.nan)):
        with pytest.raises(sc.errors.SpecError, match="observations"):
            sc.audit_policy(policy(), MIRROR, states)


def test_a_claim_that_moves_nothing_is_undecided():
    still = sc.Symmetry("still", sc.groups.cyclic(2), observation=[[1, 1, 1]], action=[[0, 1]])
    assert sc.audit_policy(policy(extra=0.3), still, STATES).verdict == "undecided"


class _Stretched(nn.Module):
    """Commutes with the reflection of either axis, and with no turn."""

    def forward(self, x):
        return x * torch.tensor([1.0, 2.0], dtype=x.dtype)


TURN = {"rotate": [[0, 1]]}
FLIP = [[-1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("group", "entries"), [(sc.groups.so(2), [TURN]), (sc.groups.o(2), [TURN, FLIP])], ids=["so2", "o2"]
)
@pytest.mark.parametrize(("net", "verdict"), [(_Stretched(), "failed"), (nn.Identity(), "passed")])
def test_turns_are_tested_at_generic_angles(group, entries, net, verdict):
    turned = sc.Symmetry("turn", group, observation=entries, action=entries)
    states = np.random.default_rng(0).normal(size=(50, 2))
    report = sc.audit_policy(net, turned, states)
    assert report.verdict == verdict
    assert report.results[0].properties[0].checked == 50 * len(entries)


def test_deviations_move_as_those_of_moved_actions():
    quarter = AffineEntry(matrix=np.array([[0.6, -0.8], [0.8, 0.6]]))
    equal, unequal = np.array([[3.0, 3.0]]), np.array([[3.0, 4.0]])
    assert image_of_deviations([quarter], (0,), equal, "action") == pytest.approx(equal)
    assert image_of_deviations([quarter], (0,), unequal, "action") == pytest.approx(
        np.sqrt([[0.36 * 9 + 0.64 * 16, 0.64 * 9 + 0.36 * 16]])
    )
    swapped = AffineEntry(index=np.array([1, 0]), sign=np.array([-1, -1]))
    assert image_of_deviations([swapped], (0,), unequal, "action") == pytest.approx(unequal[:, ::-1])


def test_statistics_are_averaged_over_finite_groups_only():
    turned = sc.Symmetry("turn", sc.groups.so(2), observation=[TURN], action=[TURN])
    with pytest.raises(SpecError, match=r"expected a finite group, got SO\(2\)"):
        sc.symmetrise_normaliser({"mean": [1.0, 2.0], "var": [1.0, 1.0], "count": 3}, turned)


def test_time_that_is_up_is_undecided():
    mirror = sc.Symmetry("mirror", sc.groups.cyclic(2), observation=[[-1, 1]], action=[[-1, 1]])
    report = sc.audit_policy(nn.Identity(), mirror, np.ones((4, 2)), max_time=1e-9)
    assert report.verdict == "undecided"
    assert report.results[0].properties[0].reason.code == "time_up"
