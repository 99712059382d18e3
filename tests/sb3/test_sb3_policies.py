"""Policies for Stable-Baselines3: proved before and after learning, through files, with planted faults noticed."""

from __future__ import annotations

import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
import torch

import symcheck as sc

pytest.importorskip("stable_baselines3", reason="the extra 'sb3' is not installed")

from gymnasium import spaces
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from symcheck.envs.quadrotor import QuadrotorEnv
from symcheck.nn import BasisLinear, orthogonal_
from symcheck.representations.coordinates import mixed_coordinates
from symcheck.sb3 import EquivariantActorCriticPolicy, SymmetryCallback
from symcheck.sb3.claim import claim_for
from symcheck.sb3.features import SymmetricFeatures
from symcheck.sb3.vector_layers import VectorBody

C2 = sc.groups.cyclic(2)
# Of a beam with two motors: the tilt and its speed change sign, the motors change places.
BEAM = sc.Symmetry("left-right", C2, observation=[[-1, -1, 1]], action=[[1, 0]])


class Space(gym.Env):
    """Any spaces, and numbers at random."""

    def __init__(self, observation, action):
        self.observation_space, self.action_space = observation, action

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(0 if seed is None else seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), float(np.sum(action)), False, self.np_random.random() < 0.1, {}


def beam():
    return Space(spaces.Box(-1, 1, (3,), np.float32), spaces.Box(-1, 1, (2,), np.float32))


def agent(symmetry=BEAM, env=beam, algorithm=PPO, **options):
    env = env if isinstance(env, str) else DummyVecEnv([env] * 2)
    return algorithm(
        EquivariantActorCriticPolicy,
        env,
        n_steps=16,
        seed=0,
        device="cpu",
        policy_kwargs={"symmetry": symmetry, "net_arch": [16], **options},
        **({"batch_size": 16, "n_epochs": 2} if algorithm is PPO else {}),
    )


def verdict_of(policy, symmetry=BEAM):
    # A proof needs few samples; so does a fault of this size.
    return sc.verify_net(policy, symmetry, samples=100).verdict


@pytest.mark.parametrize("algorithm", [PPO, A2C])
def test_a_gaussian_policy_is_proved_before_and_after_learning_and_from_its_file(algorithm, tmp_path):
    model = agent(algorithm=algorithm, normalize=True)
    assert algorithm is A2C or verdict_of(model.policy) == "proved"
    before = model.policy.parameters_to_vector()
    model.learn(96)
    assert not np.array_equal(before, model.policy.parameters_to_vector())
    model.save(tmp_path / "run.zip")
    assert sc.verify_net(str(tmp_path / "run.zip"), BEAM, trust=True, samples=100).verdict == "proved"
    loaded = algorithm.load(tmp_path / "run.zip", device="cpu")
    seen = np.random.default_rng(0).uniform(-1, 1, (5, 3)).astype(np.float32)
    assert np.array_equal(loaded.predict(seen, deterministic=True)[0], model.predict(seen, deterministic=True)[0])
    model.policy.save(tmp_path / "policy.pt")
    alone = EquivariantActorCriticPolicy.load(tmp_path / "policy.pt", device="cpu")
    assert np.array_equal(alone.predict(seen, deterministic=True)[0], model.predict(seen, deterministic=True)[0])


def test_a_discrete_policy_takes_the_name_of_a_symmetry_or_its_file(tmp_path):
    spec = tmp_path / "mirror.toml"
    spec.write_text('name = "m"\ngroup = "C2"\nobservation = [[-1, -1, -1, -1]]\naction = [[1, 0]]\n')
    agent("cartpole/mirror", "CartPole-v1")
    model = agent(str(spec), "CartPole-v1").learn(32)
    assert verdict_of(model.policy, "cartpole/mirror") == "proved"
    model.save(tmp_path / "run.zip")
    spec.unlink()
    with pytest.raises(sc.errors.SymcheckError, match=r"mirror\.toml"):
        sc.verify_net(str(tmp_path / "run.zip"), "cartpole/mirror", trust=True)


@pytest.mark.long
def test_a_broken_tie_of_deviations_and_of_statistics_is_noticed():
    model = agent(normalize=True).learn(32)
    policy = model.policy
    policy.log_std_blocks = torch.arange(2)
    policy.log_std_free = torch.nn.Parameter(torch.tensor([0.0, 0.1]))
    assert verdict_of(policy) == "failed"
    policy = agent(normalize=True).learn(32).policy
    policy.features_extractor.mean[0] = 0.1
    assert verdict_of(policy) == "failed"


def test_dict_observations_bits_and_joint_actions_carry_the_symmetry():
    space = spaces.Dict({"arm": spaces.MultiBinary(2), "at": spaces.Box(0.0, 4.0, (1,), np.float32)})
    symmetry = sc.Symmetry(
        "left-right",
        C2,
        observation=[{"arm": ["+2", "+1"], "at": lambda x: 4.0 - x}],
        action=[lambda a, _: a[::-1]],
    )
    policy = agent(symmetry, lambda: Space(space, spaces.MultiDiscrete([3, 3]))).learn(32).policy
    seen = {"arm": torch.tensor([[1, 0]], dtype=torch.int8), "at": torch.tensor([[3.0]])}
    image = {"arm": torch.tensor([[0, 1]], dtype=torch.int8), "at": torch.tensor([[1.0]])}
    first, second = (policy.get_distribution(x).distribution for x in (seen, image))
    assert torch.allclose(first[0].probs, second[1].probs, atol=1e-6)
    assert not torch.allclose(first[0].probs, second[0].probs, atol=1e-6)
    assert torch.allclose(policy.predict_values(seen), policy.predict_values(image), atol=1e-6)


def test_bits_of_an_action_have_one_logit_each_which_moves_with_its_bit():
    # The group exchanges both bits and reverses them.
    symmetry = sc.Symmetry("bits", C2, observation=[["-2", "-1"]], action=[lambda a, _: 1 - a[::-1]])
    space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    policy = agent(symmetry, lambda: Space(space, spaces.MultiBinary(2))).learn(32).policy
    seen = torch.tensor([[0.7, 0.1], [-0.1, -0.7]])
    logits = policy.get_distribution(seen).distribution.logits.detach()
    assert logits.shape == (2, 2)
    assert torch.allclose(logits[1], -logits[0].flip(0), atol=1e-6)
    assert not torch.allclose(logits[1], logits[0], atol=1e-6)


def test_actions_around_another_point_than_zero_move_about_it():
    symmetry = sc.Symmetry("valve", C2, observation=[[-1, -1, 1]], action=[lambda a, _: 4.0 - a])
    opening = spaces.Box(0, 4, (1,), np.float32)
    policy = agent(symmetry, lambda: Space(beam().observation_space, opening)).policy
    seen = torch.tensor([[0.5, 0.2, 1.0], [-0.5, -0.2, 1.0]])
    mean = policy.get_distribution(seen).distribution.mean.detach()
    assert float(mean.sum()) == pytest.approx(4.0, abs=1e-6)


def test_an_offset_of_an_action_leaves_deviations_to_change_places():
    crossed = sc.Symmetry("valves", C2, [[-1, -1, 1]], [{"matrix": [[0, -1], [-1, 0]], "offset": [4, 4]}])
    openings = spaces.Box(0, 4, (2,), np.float32)
    policy = agent(crossed, lambda: Space(beam().observation_space, openings)).policy
    assert verdict_of(policy, crossed) in ("passed", "proved")
    policy.log_std_blocks = torch.arange(2)
    policy.log_std_free = torch.nn.Parameter(torch.tensor([0.0, 0.1]))
    assert verdict_of(policy, crossed) == "failed"


def test_initial_weights_are_orthogonal_and_the_action_head_is_small():
    policy = agent(net_arch=[16, 16]).policy
    hidden = [layer for layer in policy.mlp_extractor.actor.modules() if isinstance(layer, BasisLinear)]
    values = torch.linalg.svdvals(hidden[1].materialize().weight)
    assert torch.allclose(values, torch.full_like(values, 2**0.5))
    # Two actions that change places: a vector that is kept and one that is negated, each reached.
    values = torch.linalg.svdvals(policy.action_net.layer.materialize().weight)
    assert torch.allclose(values, torch.full_like(values, 0.01))


def test_the_value_is_not_zero_everywhere_where_the_group_negates_all_of_an_observation():
    seen = torch.eye(4)
    values = agent("cartpole/mirror", "CartPole-v1").policy.predict_values(seen).detach()
    assert float(values.abs().max()) > 1e-3
    body = agent().policy.mlp_extractor.critic
    assert not any(layer.bias_coefficients.any() for layer in body.modules() if isinstance(layer, BasisLinear))


def test_orthogonal_weights_between_unlike_representations_keep_unreachable_directions_at_zero():
    sign = sc.representations.signed_permutation(C2, [[-1, -1]])
    layer = orthogonal_(BasisLinear(sign, sc.representations.trivial(C2, 2), 3, 4))
    assert not layer.weight_coefficients.numel() or not layer.materialize().weight.any()
    skewed = sc.representations.from_matrices(C2, [[[1.0, 1.0], [0.0, -1.0]]])
    weight = orthogonal_(BasisLinear(skewed, skewed, 3, 3)).materialize().weight.double()
    move = torch.block_diag(*[torch.tensor(np.asarray(skewed.matrix(C2.generators[0])))] * 3)
    assert torch.allclose(weight @ move, move @ weight, atol=1e-6)


def test_statistics_are_those_of_the_observations_and_their_images():
    claim = claim_for(BEAM, beam().observation_space, beam().action_space)
    features = SymmetricFeatures(beam().observation_space, claim, normalize=True)
    seen = torch.randn(50, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 2.0
    for part in seen.split(20):
        features.observe(part)
    assert torch.equal(features(seen), seen)
    features.apply_statistics()
    both = torch.cat([seen, seen * torch.tensor([-1, -1, 1])])
    assert torch.allclose(features.mean.double(), both.mean(dim=0), atol=1e-6)
    assert torch.allclose(features.scale.double(), both.std(dim=0, correction=0).reciprocal(), rtol=1e-6)


def test_statistics_change_between_rollouts_and_never_within_one():
    model = agent(normalize=True)
    means = []

    class Watch(SymmetryCallback):
        def _on_step(self):
            means.append(model.policy.features_extractor.mean.clone())
            self.model.predict(np.zeros((1, 3), np.float32))  # as an evaluation in between does
            return True

    model.learn(64, callback=Watch(BEAM))
    assert len(means) == 32
    assert all(torch.equal(mean, means[0]) for mean in means[:16])
    assert all(torch.equal(mean, means[16]) for mean in means[16:])
    assert not torch.equal(means[0], means[16])


def test_blocks_are_what_a_group_mixes():
    symmetry = sc.Symmetry("turn", sc.groups.so(2), observation=[{"rotate": [[0, 2]]}], action=["identity"])
    assert mixed_coordinates(sc.representations.direct_sum(sc.representations.vector(sc.groups.so(2)))).tolist() == [
        0,
        0,
    ]
    assert mixed_coordinates(BEAM.action_representation).tolist() == [0, 0]
    assert symmetry.is_continuous


def test_a_policy_of_a_continuous_group_is_equivariant_and_its_torques_depend_on_angles():
    symmetry = "quadrotor/yaw-and-mirror"
    model = agent(symmetry, QuadrotorEnv, normalize=True)
    callback = SymmetryCallback(symmetry)
    model.learn(16, callback=callback)
    # Float32 rounding of means of size 0.01 after two layers.
    assert callback.residuals["residual_max"] < 1e-6
    body = model.policy.mlp_extractor.actor
    assert isinstance(body, VectorBody)
    # A turn of position and velocity alone, without the body's axes, is another state.
    seen = torch.randn(1, 18, generator=torch.Generator().manual_seed(0))
    turned = seen.clone()
    turned[:, [0, 1]] = torch.stack([-seen[:, 1], seen[:, 0]], dim=1)
    means = model.policy.get_distribution(torch.cat([seen, turned])).distribution.mean
    assert not torch.allclose(means[0], means[1], atol=1e-5)


def test_parts_that_scalars_and_vectors_cannot_carry_are_refused():
    group = sc.groups.so(2)
    twice = sc.Symmetry(
        "twice", group, observation=[{"rotate": [[0, 1]], "frequency": [2]}], action={"representation": "2*scalar"}
    )
    with pytest.raises(sc.errors.SpecError, match="but 2 of 3 components are not"):
        agent(twice)


def test_the_callback_logs_the_residual_of_a_plain_policy_with_its_normaliser():
    env = VecNormalize(DummyVecEnv([beam]))
    model = PPO("MlpPolicy", env, n_steps=32, batch_size=32, n_epochs=1, seed=0, device="cpu")
    callback = SymmetryCallback(BEAM, every=2)
    logger = Logger(None, [])
    logged = []
    logger.record = lambda name, *rest, **options: logged.append(name)
    model.set_logger(logger)
    model.learn(96, callback=callback)
    # Of three rollouts the first and the third.
    assert logged.count("symmetry/residual_max") == 2
    assert callback.residuals["residual_max"] > 1e-3


def test_what_cannot_be_equivariant_is_refused_in_words():
    images = spaces.Box(0, 255, (8, 8, 3), np.uint8)
    flip = sc.Symmetry("flip", C2, observation=["identity"], action=[[1, 0]])
    with pytest.raises(sc.errors.SpecError, match="vectors"):
        agent(flip, lambda: Space(images, spaces.Discrete(2)))
    spaces_of_beam = beam().observation_space, beam().action_space
    for option, value in {"use_sde": True, "features_extractor_class": torch.nn.Flatten}.items():
        with pytest.raises(sc.errors.OptionError, match=option):
            EquivariantActorCriticPolicy(*spaces_of_beam, lambda _: 1e-3, symmetry=BEAM, **{option: value})
    with pytest.raises(sc.errors.SpecError, match="cartpole/mirrr"):
        agent("cartpole/mirrr")
    with pytest.raises(sc.errors.OptionError, match="every"):
        SymmetryCallback(BEAM, every=0)


def test_without_stable_baselines_the_import_says_how_to_install_it():
    code = "import sys; sys.modules['stable_baselines3'] = None\nimport symcheck.sb3"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    last = run.stderr.strip().splitlines()[-1]
    assert "ImportError" in run.stderr
    assert "pip install 'symcheck[sb3]'" in last
