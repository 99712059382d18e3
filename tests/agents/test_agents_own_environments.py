"""Environments and symmetries of one's own: encoded, trained, verified, compared, and refused in words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium import spaces
from typer.testing import CliRunner

import reference_agents
import symcheck as sc
from reference_agents.cli.app import app
from reference_agents.encoding.actions import ActionEncoder
from reference_agents.encoding.environment import encoded_environment
from reference_agents.environments import gymnasium_vector, predator_prey
from reference_agents.learning.distributions import MultiCategorical
from reference_agents.settings import Settings
from reference_agents.tasks import own_task
from symcheck.errors import OptionError, SpecError, SymcheckError, TargetError
from tests.agents import own_worlds as worlds

FILE = str(Path(worlds.__file__))
# Kinds of spaces, each with a symmetry of the environment.
KINDS = [
    ("Point", "flips"),
    ("Point", "turn"),
    ("Grid", "grid"),
    ("Grid", "exchange"),
    ("Thrust", "thrust"),
    ("Thrust", "callables"),
    ("Parts", "parts"),
    ("Picture", "picture"),
    ("Photograph", "photograph"),
]
SMALL = ["--seeds", "1", "--steps", "80", "--evaluation-episodes", "2", "--set", "decorrelation_steps=5"]
FAST = ["--set", "environments=4", "--set", "horizon=20", "--set", "minibatches=2", "--set", "epochs=1", "--quiet"]


def _run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.output


@pytest.mark.parametrize(("world", "symmetry"), KINDS)
def test_encoding_carries_the_claimed_maps_over(world: str, symmetry: str) -> None:
    """encode(L x) = L' encode(x), and decode(K' a) = K decode(a), at random values."""
    encoded = encoded_environment(f"{FILE}:{world}", f"{FILE}:{symmetry}")
    claim, environment = getattr(worlds, symmetry), getattr(worlds, world)()
    bound = claim.bind(environment.observation_space, environment.action_space)
    environment.observation_space.seed(1)
    assert encoded.symmetry is not None
    for generator, letter in zip(claim.group.generators, range(len(claim.group.generators)), strict=True):
        for _ in range(5):
            seen = environment.observation_space.sample()
            image = encoded.observation.encode(bound.observation((letter,), seen))
            if encoded.spatial is not None:
                wanted = {"rot90": lambda x: np.rot90(x, axes=(1, 2)), "flip_lr": lambda x: x[..., ::-1]}[
                    encoded.spatial[letter]
                ](encoded.observation.encode(seen))
            else:
                matrix = encoded.symmetry.observation_representation.matrix(generator)
                wanted = matrix @ encoded.observation.encode(seen)
            # Float32 of numbers of order one.
            np.testing.assert_allclose(image, wanted, atol=1e-6)
            _check_action(encoded, bound, generator, letter, seen)


def _check_action(encoded, bound, generator, letter, seen) -> None:  # type: ignore[no-untyped-def]
    matrix = np.asarray(encoded.symmetry.action_representation.matrix(generator), dtype=float)
    action = encoded.action.random(np.random.default_rng(0).random(encoded.action.action_numbers))
    if encoded.action.continuous:
        moved = matrix @ action
    else:
        bounds = np.cumsum([0, *encoded.action.choices])
        hot = np.zeros(bounds[-1])
        hot[bounds[:-1] + action] = 1.0
        parts = np.split(matrix @ hot, bounds[1:-1])
        moved = np.array([part.argmax() for part in parts]).reshape(np.shape(action))
    expected = bound.action((letter,), encoded.action.decode(action), seen)
    # The bounds are 10 apart, in float32.
    np.testing.assert_allclose(encoded.action.decode(moved), expected, atol=1e-5)


@pytest.mark.parametrize(("world", "symmetry"), [KINDS[2], KINDS[6], pytest.param(*KINDS[7], marks=pytest.mark.long)])
def test_every_kind_is_trained_and_its_network_proved_before_and_after(
    world: str, symmetry: str, tmp_path: Path
) -> None:
    target = ["--env", f"{FILE}:{world}", "--out", str(tmp_path), *SMALL, *FAST]
    code, output = _run("train", *target, "--symmetry", f"{FILE}:{symmetry}")
    assert code == 0, output
    record = json.loads((tmp_path / f"own_worlds.py-{world}-equivariant" / "record.json").read_text())
    assert [(run["before"]["verdict"], run["after"]["verdict"]) for run in record["runs"]] == [("proved", "proved")]
    plain = "cnn" if world == "Picture" else "mlp"
    assert _run("train", *target, "--network", plain)[0] == 0
    assert _run("report", str(tmp_path))[0] == 0
    page = (tmp_path / "report.html").read_text()
    assert "equivariant" in page
    assert plain in page


def test_a_run_of_an_own_environment_is_evaluated_and_its_network_loaded(tmp_path: Path) -> None:
    result = reference_agents.train(
        f"{FILE}:Grid",
        symmetry=f"{FILE}:grid",
        seeds=[3],
        steps=80,
        out=tmp_path,
        settings={"environments": 4, "horizon": 20, "minibatches": 2, "evaluation_episodes": 1},
    )
    assert result.folder is not None
    assert result.verdicts() == ["proved"]
    code, output = _run("evaluate", str(result.folder), "--episodes", "2")
    assert code == 0, output
    logits, values = result.network(seed=3)(torch.zeros(1, 2))
    assert (logits.shape, values.shape) == ((1, 6), (1, 1))
    with pytest.raises(OptionError, match="there is no run with learning rate"):
        result.network(seed=0)
    # the claim on the network's inputs and outputs is beside it
    written = str(result.folder / "network.py")
    assert sc.verify_net(f"{written}:network", f"{written}:symmetry", samples=50).verdict == "proved"
    with pytest.raises(SpecError, match=r"mapping of entries|components"):
        sc.verify_net(f"{written}:network", f"{FILE}:parts", samples=50)


def test_objects_of_a_python_program_are_trained_and_better_than_at_first() -> None:
    result = reference_agents.train(
        worlds.Point,
        symmetry=worlds.flips,
        seeds=1,
        steps=4_000,
        learning_rate=0.003,
        settings={"evaluation_every": 4_000, "evaluation_episodes": 20, "horizon": 32},
    )
    assert result.verdicts() == ["proved"]
    # Standing still costs 20 an episode on average, and random moves as much; moving to the origin about 6.
    assert result.score > result.returns[0].mean() + 5


def test_environments_are_closed_and_a_coordinate_of_one_value_does_not_diverge() -> None:
    worlds.Held.held.clear()
    settings = {"environments": 4, "horizon": 20, "minibatches": 2, "evaluation_episodes": 2}
    result = reference_agents.train(worlds.Held, network="mlp", seeds=1, steps=160, settings=settings)
    assert np.isfinite(result.returns).all()
    # The one that was built to see whether that works may be what the factory returns again.
    assert len(worlds.Held.held) <= 1


def test_a_network_without_a_symmetry_is_plain(tmp_path: Path) -> None:
    task = own_task(f"{FILE}:Point", None)
    assert "mlp" in task.networks
    assert {(plan.basis, plan.views) for plan in task.networks.values()} == {("dense", "")}
    code, output = _run("train", "--env", f"{FILE}:Point", "--out", str(tmp_path))
    assert code == 2
    assert "network 'equivariant' needs a symmetry" in output
    assert not list(tmp_path.iterdir())


def test_an_endless_environment_is_cut_and_the_cut_is_said_once(tmp_path: Path) -> None:
    target = ["train", "--env", f"{FILE}:Endless", "--network", "mlp", "--out", str(tmp_path), *SMALL, *FAST]
    code, output = _run(*target, "--max-episode-steps", "7")
    assert code == 0, output
    assert "has no time limit" not in output
    record = json.loads((tmp_path / "own_worlds.py-Endless-mlp" / "record.json").read_text())
    assert record["settings"]["max_episode_steps"] == 7
    # Seven steps of at most 4 each; twenty would be paid by the environment itself.
    assert -28 <= record["runs"][0]["final_return"] <= 0
    code, output = _run(*target)
    assert code == 0, output
    assert output.count("has no time limit; episodes are truncated after 1,000 steps") == 1


@pytest.mark.parametrize(("world", "offers"), [("Masked", True), ("MaskedByMethod", True), ("Point", False)])
def test_masks_of_actions_are_said_to_be_unused(world: str, offers: bool, tmp_path: Path) -> None:
    target = ["--env", f"{FILE}:{world}", "--network", "mlp", "--out", str(tmp_path), *SMALL, *FAST]
    code, output = _run("train", *target)
    assert code == 0, output
    said = f"own_worlds.py:{world} provides action masks, which training does not use: the policy may choose any action"
    assert (said in output.replace("\n", " ")) == offers


@pytest.mark.long
def test_a_network_of_ones_own_trains_without_a_symmetry(tmp_path: Path) -> None:
    network = tmp_path / "network.py"
    network.write_text(
        "from torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.policy, self.value = nn.Linear(2, 4), nn.Linear(2, 1)\n\n"
        "    def forward(self, x):\n        return self.policy(x), self.value(x)\n"
    )
    target = ["--env", f"{FILE}:Point", "--network", f"{network}:Net", "--out", str(tmp_path / "runs"), *SMALL, *FAST]
    code, output = _run("train", *target)
    assert code == 0, output
    assert output.count("no claim") == 2
    # With a symmetry, the same network is checked.
    code, output = _run("train", *target, "--symmetry", f"{FILE}:flips", "--out", str(tmp_path / "checked"))
    assert code == 0, output
    assert output.count("failed") == 2


@pytest.mark.parametrize(
    ("world", "problem"),
    [
        ("Raises", "raised in step(): RuntimeError: the simulator blew up at step 8 of episode 1"),
        ("NaNReward", "returned the reward nan at step 8 of episode 1"),
        ("TwoRewards", "returned ([-1.0, "),
        ("TextReward", "returned ('-"),
        ("OldStep", "returned tuple of 4 from step(), expected (observation, reward, terminated, truncated, info) at"),
        ("Exits", "raised in step(): SystemExit: 3 at step 8 of episode 1"),
        ("NaNObservation", "returned the observation nan (number 1) at step 8 of episode 1"),
    ],
)
def test_an_environment_that_breaks_is_one_line_that_says_where(world: str, problem: str, tmp_path: Path) -> None:
    target = ["--env", f"{FILE}:{world}", "--network", "mlp", "--out", str(tmp_path), *SMALL, *FAST]
    code, output = _run("train", *target)
    assert code == 2, output
    others = ("has no time limit", "training with torch, which is")  # the latter where there is no C compiler
    lines = [line for line in output.splitlines() if not any(other in line for other in others)]
    assert len(lines) == 1
    assert f"own_worlds.py:{world} {problem}" in lines[0]
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("world", "symmetry", "message"),
    [
        ("Point", "state_dependent", "expected one action map for all states"),
        ("Point", "curved", "layers can represent only linear and affine maps"),
        ("Point", "parts", r"needs a Dict or Tuple space, got .*\. A permutation is a list \(\[1, 0\]\)"),
        ("Parts", "flips", "cannot act on the space Dict"),
        ("Thrust", "outward", r"leaves the action space: the image of a = \[10.0, 10.0\] is \[-10.0, -10.0\]"),
        ("Thrust", "outward_callable", r"leaves the action space: the image of a = \[10.0, 10.0\] is \[-1.0"),
    ],
)
def test_a_map_that_no_layer_carries_is_refused_in_words(world: str, symmetry: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        own_task(f"{FILE}:{world}", f"{FILE}:{symmetry}")


def test_actions_without_numbers_are_refused() -> None:
    with pytest.raises(TargetError, match=r"or non-empty Box action space, got Box\(\[\], \[\], \(0,\)"):
        ActionEncoder(spaces.Box(-1, 1, (0,)))


def test_a_factory_that_returns_one_object_is_refused() -> None:
    only = worlds.Point()
    with pytest.raises(TargetError, match="must return a new environment each time"):
        reference_agents.train(lambda: only, network="mlp", steps=80)


@pytest.mark.parametrize(
    "wrong",
    [
        {"seeds": [1, 1]},
        {"seeds": 0},
        {"learning_rate": -1.0},
        {"device": "tpu"},
        {"learning_rate": "small"},
        {"seeds": 1.5},
        {"symmetry": 5},
        {"engine": "fast"},
    ],
)
def test_arguments_out_of_range_are_named(wrong: dict[str, object]) -> None:
    with pytest.raises(SymcheckError, match=next(iter(wrong))):
        reference_agents.train("cartpole", **{"seeds": 1, **wrong})  # type: ignore[arg-type]


def test_settings_of_another_type_are_named_and_whole_numbers_may_be_floats() -> None:
    wrong = {"clip": "small", "linear_decay": "false", "epochs": 2.5, "horizon": True}
    with pytest.raises(OptionError) as caught:
        Settings().with_changes(**wrong)
    for problem in (
        "clip to be a number, got 'small'", "linear_decay to be true or false, got 'false'",
        "epochs to be a whole number, got 2.5", "horizon to be a whole number, got True",
    ):  # fmt: skip
        assert problem in str(caught.value)
    assert repr(Settings().with_changes(steps=1e5).steps) == "100000"


def test_unknown_settings_and_networks_are_named_alone_and_the_nearest_is_suggested() -> None:
    with pytest.raises(OptionError, match=r"got 'horizn'\. Did you mean 'horizon'"):
        reference_agents.train("cartpole", seeds=1, steps=80, settings={"horizn": 2, "clip": 0.2})
    with pytest.raises(OptionError, match="task 'Point' has no network 'mpl'"):
        reference_agents.train(worlds.Point, network="mpl", seeds=1)


def test_several_choices_have_the_probabilities_and_derivatives_of_independent_ones() -> None:
    policy, numbers = MultiCategorical((2, 3)), torch.randn(1, 4, 5, dtype=torch.float64, requires_grad=True)
    actions = torch.tensor([[[0, 2], [1, 0], [1, 1], [0, 0]]])
    parts = [torch.distributions.Categorical(logits=part) for part in numbers.split((2, 3), dim=-1)]
    expected = parts[0].log_prob(actions[..., 0]) + parts[1].log_prob(actions[..., 1])
    assert torch.allclose(policy.log_probability(numbers, actions), expected)
    weight = torch.randn(1, 4, dtype=torch.float64)
    loss = (weight * expected).sum() - 0.3 * sum(part.entropy().sum() for part in parts)
    (wanted,) = torch.autograd.grad(loss, numbers)
    assert torch.allclose(policy.derivatives(numbers.detach(), actions, weight, 0.3), wanted)
    # The third of three values begins at the sum of the probabilities of the others.
    uniforms = np.full((1, 4, 2), 0.999999)
    assert policy.sample(numbers.detach(), uniforms).tolist() == [[[1, 2]] * 4]


def test_warnings_of_mujoco_are_silent_for_copies_and_come_back() -> None:
    mujoco = pytest.importorskip("mujoco")
    before = mujoco.get_mju_user_warning()
    with gymnasium_vector._one_warning():
        assert mujoco.get_mju_user_warning() is not before
    assert mujoco.get_mju_user_warning() is before


def test_an_episode_of_the_chase_has_as_many_steps_as_it_may_take_also_when_it_begins_anew() -> None:
    chase = predator_prey.PredatorPreyVector([0], 1, coded=True)
    for _ in range(2):
        chase.reset()
        for elapsed in range(1, predator_prey.EPISODE_LIMIT + 1):
            chase.displacements[:] = (0, 3)  # in one column, too far apart for a catch
            step = chase.step(np.zeros((1, 1), dtype=np.int64))
            assert (step.terminated.any(), step.truncated.any()) == (False, elapsed == predator_prey.EPISODE_LIMIT)
        chase.step(np.zeros((1, 1), dtype=np.int64))
