"""PPO of rsl_rl on a MuJoCo quadruped: its own symmetry loss cannot tell a wrong mirror, the derived one can."""

import importlib.metadata
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

pytestmark = pytest.mark.slow
mujoco = pytest.importorskip("mujoco")
pytest.importorskip("rsl_rl")
tensordict = pytest.importorskip("tensordict")

sys.path.insert(0, str(Path(__file__).parents[1] / "mirrors"))
from machines import FEET, QUADRUPED, signed  # noqa: E402

import symcheck as sc  # noqa: E402
from symcheck.rsl_rl import log_residual, measure_residual  # noqa: E402

JOINTS = [f"{foot}_{joint}" for foot in FEET for joint in ("hip", "knee")]
# Held by the trunk, so that it cannot fall; every joint with a position servo.
SERVOS = "".join(f'<position joint="{name}" kp="0.5" kv="0.05"/>' for name in JOINTS)
MODEL = QUADRUPED.replace("<freejoint/>", "").replace("</mujoco>", f"<actuator>{SERVOS}</actuator></mujoco>")
LAYOUT = {"observation": {"policy": [{"term": "joint_pos"}, {"term": "phase", "feet": [f"{f}_foot" for f in FEET]}]}}
LEGS = signed([2, 3, 0, 1, 6, 7, 4, 5], [-1, 1] * 4)
OFFSETS = 2 * np.pi * np.array([0.0, 0.25, 0.5, 0.1])
ENVS, STEPS = 16, 24
VERSION = int(importlib.metadata.version("rsl-rl-lib").split(".")[0])


def mirror_function(phase):
    def augment(env, obs, actions):
        if obs is not None:
            moved = obs.clone()
            moved["policy"] = torch.cat([LEGS(obs["policy"][:, :8]), phase(obs["policy"][:, 8:])], -1)
            obs = torch.cat([obs, moved])
        return obs, None if actions is None else torch.cat([actions, LEGS(actions)])

    return augment


def flat(function):
    """The same on plain tensors, called as rsl_rl 2 does: obs, actions, env and obs_type by keyword."""

    def augment(env=None, obs=None, actions=None, obs_type="policy"):
        grouped = None if obs is None else tensordict.TensorDict({"policy": obs}, batch_size=[len(obs)])
        moved, acted = function(env, grouped, actions)
        return None if moved is None else moved["policy"], acted

    return augment


RIGHT = mirror_function(signed([1, 0, 3, 2], [1] * 4))
NEGATED = mirror_function(lambda p: -p)


class Quadrupeds:
    """A batch of robots whose knees are rewarded for following the phases of their feet."""

    num_envs, num_actions, max_episode_length, device, cfg = ENVS, 8, 1_000_000, "cpu", {}

    def __init__(self):
        self.model = mujoco.MjModel.from_xml_string(MODEL)
        self.model.opt.timestep = 0.01
        self.model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        self.robots = [mujoco.MjData(self.model) for _ in range(ENVS)]
        rng = np.random.default_rng(0)
        self.clock = rng.uniform(0, 2 * np.pi, ENVS)
        for data in self.robots:
            data.qpos[:] = rng.uniform(-0.3, 0.3, 8)
        self.episode_length_buf = torch.zeros(ENVS, dtype=torch.long)

    def phases(self):
        return np.sin(self.clock[:, None] + OFFSETS)

    def get_observations(self):
        rows = np.concatenate([np.stack([data.qpos for data in self.robots]), self.phases()], axis=1)
        table = torch.as_tensor(rows, dtype=torch.float32)
        return tensordict.TensorDict({"policy": table}, batch_size=[ENVS])

    def step(self, actions):
        for data, action in zip(self.robots, actions.double().numpy(), strict=True):
            data.ctrl[:] = action
            mujoco.mj_step(self.model, data)
        wanted = np.zeros((ENVS, 8))
        wanted[:, 1::2] = 0.5 * self.phases()
        self.clock += 0.3
        reward = -np.square(actions.double().numpy() - wanted).sum(1)
        obs = self.get_observations()
        done = torch.zeros(ENVS, dtype=torch.long)
        return obs, torch.as_tensor(reward, dtype=torch.float32), done, {"time_outs": done.bool()}


class OldQuadrupeds(Quadrupeds):
    """In the form of rsl_rl 2: plain tensors, other groups in the extras."""

    def get_observations(self):
        return super().get_observations()["policy"], {"observations": {}}

    def step(self, actions):
        obs, reward, done, extras = super().step(actions)
        return obs[0], reward, done, {**extras, "observations": {}}


def configuration(function):
    algorithm = {
        "class_name": "PPO",
        "learning_rate": 2e-3,
        "schedule": "fixed",
        "entropy_coef": 0.0,
        "num_learning_epochs": 5,
        "num_mini_batches": 4,
        "symmetry_cfg": {
            "data_augmentation_func": function,
            "use_data_augmentation": True,
            "use_mirror_loss": True,
            "mirror_loss_coeff": 50.0,
        },
    }
    run = {"num_steps_per_env": STEPS, "save_interval": 10_000, "algorithm": algorithm}
    if VERSION < 3:
        hidden = {"actor_hidden_dims": [32], "critic_hidden_dims": [32], "activation": "tanh"}
        policy = {"class_name": "ActorCritic", "init_noise_std": 0.3, **hidden}
        return {**run, "policy": policy, "empirical_normalization": False}
    network = {"class_name": "MLPModel", "hidden_dims": [32], "activation": "tanh"}
    deviation = {"class_name": "GaussianDistribution", "init_std": 0.3, "std_type": "scalar"}
    groups = {"actor": ["policy"], "critic": ["policy"]}
    return {**run, "obs_groups": groups, "actor": {**network, "distribution_cfg": deviation}, "critic": dict(network)}


def train(function, folder):
    """The trainer's last symmetry loss, and our largest and mean residual on states of its rollouts, in radians."""
    from rsl_rl.runners import OnPolicyRunner

    torch.manual_seed(0)
    env = OldQuadrupeds() if VERSION < 3 else Quadrupeds()
    runner = OnPolicyRunner(env, configuration(function), log_dir=str(folder), device="cpu")
    derived = sc.mujoco.mirror(MODEL, layout=LAYOUT)
    losses = []
    update = runner.alg.update

    def update_and_keep(*arguments, **options):
        losses.append(update(*arguments, **options))
        return losses[-1]

    runner.alg.update = update_and_keep
    log_residual(runner, derived, every=20)
    runner.learn(100)
    policy = runner.alg.policy.act_inference if VERSION < 3 else runner.alg.actor
    states = env.get_observations()
    residual = measure_residual(policy, derived, states[0] if VERSION < 3 else states)
    return losses[-1]["symmetry"], residual["residual_max"], residual["residual_mean"]


def logged(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder)).Reload()
    return {tag: events.Scalars(tag) for tag in events.Tags()["scalars"] if tag.startswith("Symmetry/")}


def test_the_trainers_loss_is_small_for_both_mirrors_and_ours_for_the_right_one_only(tmp_path, capsys):
    pytest.importorskip("tensorboard")
    function, wrong = (RIGHT, NEGATED) if VERSION >= 3 else (flat(RIGHT), flat(NEGATED))
    assert sc.verify_mirror(function, model=MODEL, layout=LAYOUT).verdict == "passed"
    refused = sc.verify_mirror(wrong, model=MODEL, layout=LAYOUT)
    assert {(c["term"], c["code"]) for c in refused.columns} == {("phase", "SYM210")}
    trained = {name: train(used, tmp_path / name) for name, used in (("right", function), ("wrong", wrong))}
    lines = [f"rsl_rl {importlib.metadata.version('rsl-rl-lib')}"]
    for name, (loss, largest, mean) in trained.items():
        lines.append(f"{name:<6} mirror: trainer's loss {loss:.1e}, residual max {largest:.3f}, mean {mean:.4f} rad")
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join(lines) + "\n")
    (loss, residual, mean), (wrong_loss, wrong_residual, wrong_mean) = trained.values()
    assert loss < 1e-4
    assert wrong_loss < 1e-4
    # Radians. A mirror loss of 1e-4 leaves about 0.01 a joint, and a few times that at the worst state.
    assert residual < 0.05
    assert mean < 0.02
    assert wrong_residual > 0.1
    assert wrong_mean > 0.02
    scalars = {name: logged(tmp_path / name) for name in ("right", "wrong")}
    names = {f"Symmetry/residual_{kind}" for kind in ("max", "mean", "relative")}
    assert set(scalars["right"]) == set(scalars["wrong"]) == names
    # Of 100 updates every twentieth.
    assert [event.step for event in scalars["wrong"]["Symmetry/residual_max"]] == [0, 20, 40, 60, 80]
    assert scalars["right"]["Symmetry/residual_mean"][-1].value < 0.02
    assert scalars["wrong"]["Symmetry/residual_mean"][-1].value > 0.02
