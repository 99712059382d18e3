"""Environments of several agents under permutations of agents: right ones pass, and each fault fails its property."""

import numpy as np
import pytest
from gymnasium import spaces
from two_agents import (
    BlackBox,
    BlackBoxPullsHarder,
    Duel,
    FasterOnTheRight,
    OneReward,
    RightEarnsMore,
    RightIsOutEarlier,
    RightPullsHarder,
    Tug,
    TupleTug,
    TupleTugPullsHarder,
)
from typer.testing import CliRunner

import symcheck as sc
from symcheck.cli.main import app
from symcheck.errors import SpecError, TargetError
from symcheck.symmetry.agents import joint_symmetry

SWAPPED = [{"left": "right", "right": "left"}]


def swap(agents=SWAPPED, observation=((1, 1, 1),), action=((0, 1),), state=None):
    group = sc.groups.cyclic(2)
    maps = {"observation": [list(row) for row in observation], "action": [list(row) for row in action]}
    return sc.Symmetry("swap", group, **maps, agents=agents, state=state)


WITH_STATE = swap(state=[["+2", "+1", "-3", "+5", "+4"]])


def test_agents_that_may_be_exchanged_pass_pair_by_pair():
    report = sc.verify_env(Tug, WITH_STATE, samples=300)
    assert report.verdict == "passed", report.to_text()
    assert report["reward_invariance"].method == "paired"


@pytest.mark.parametrize(
    ("env", "failing"),
    [
        (RightPullsHarder, {"transition_invariance", "reward_invariance"}),
        (RightEarnsMore, {"reward_invariance"}),
        (RightIsOutEarlier, {"transition_invariance", "termination_invariance"}),
    ],
)
def test_a_planted_fault_of_one_agent_fails_what_it_breaks(env, failing):
    report = sc.verify_env(env, WITH_STATE, samples=300)
    failed = {item.name for item in report if item.verdict == "failed"}
    # Who pulls harder is out earlier as well.
    assert failed - {"termination_invariance"} == failing - {"termination_invariance"}, report.to_text()
    assert failing <= failed


@pytest.mark.parametrize(("env", "verdict"), [(BlackBox, "passed"), (BlackBoxPullsHarder, "failed")])
def test_without_access_to_the_state_whole_episodes_are_compared(env, verdict):
    report = sc.verify_env(env(), swap(), samples=300)
    assert report.verdict == verdict, report.to_text()
    assert report["transition_invariance"].method == "trajectory"


def test_a_local_map_that_does_not_go_with_the_exchange_fails():
    negated = swap(observation=[[1, 1, -1]], state=[["+2", "+1", "-3", "+5", "+4"]])
    assert sc.verify_env(Tug, negated, samples=200).verdict == "failed"


@pytest.mark.parametrize(
    ("agents", "message"),
    [
        ([{"left": "right"}], "expected a permutation of agents"),
        ([{"left": "right", "right": "right"}], "expected a permutation of agents"),
        ([], "a mapping of agents for each of 1 generators"),
        ("left", "a mapping of agents for each of 1 generators"),
        ([{"left": "centre", "centre": "left"}], "there is no agent 'centre'"),
    ],
)
def test_agents_that_are_no_permutation_are_refused(agents, message):
    with pytest.raises(SpecError, match=message):
        sc.verify_env(Tug, swap(agents), samples=20)


@pytest.mark.parametrize("observation", [[[1] * 6], [lambda both: (both[0][::-1], both[1])]])
def test_an_entry_for_all_agents_together_is_refused_with_the_agent(observation):
    claim = sc.Symmetry("both", sc.groups.cyclic(2), observation, [[0, 1]])
    with pytest.raises(SpecError, match=r"of agent 'agent_0'.*or action of a single agent") as refused:
        sc.verify_env(TupleTug, claim, samples=100)
    assert "SpecError" not in str(refused.value)


def test_agents_of_an_environment_with_one_agent_are_refused():
    mirror = sc.Symmetry("m", sc.groups.cyclic(2), [[-1, -1, -1, -1]], [[1, 0]], agents=SWAPPED)
    with pytest.raises(SpecError, match="this environment has one agent"):
        sc.verify_env("CartPole-v1", mirror, samples=20)


def test_a_continuous_group_of_several_agents_is_refused():
    turn = sc.Symmetry("turn", sc.groups.so(2), [{"rotate": [[0, 1]]}], [{"algebra": [[0.0]]}])
    with pytest.raises(SpecError, match="continuous groups of several agents"):
        sc.verify_env(Tug, turn, samples=20)


@pytest.mark.long
def test_a_spec_file_says_which_agents_are_exchanged_and_the_report_is_replayed(tmp_path, monkeypatch):
    from pathlib import Path

    monkeypatch.chdir(tmp_path)
    source = Path(__file__).with_name("two_agents.py").read_text(encoding="utf-8")
    (tmp_path / "two.py").write_text(source, encoding="utf-8")
    (tmp_path / "swap.toml").write_text(
        'name = "swap"\ngroup = "C2"\nobservation = [[1, 1, 1]]\naction = [[0, 1]]\n'
        'agents = [{ left = "right", right = "left" }]\nstate = [["+2", "+1", "-3", "+5", "+4"]]\n',
        encoding="utf-8",
    )
    runner = CliRunner()
    arguments = ["--symmetry", "swap.toml", "--samples", "200"]
    assert runner.invoke(app, ["verify-env", "two.py:Tug", *arguments]).exit_code == 0
    failed = runner.invoke(app, ["verify-env", "two.py:RightEarnsMore", *arguments, "--json", "r.json"])
    assert failed.exit_code == 1, failed.output
    again = runner.invoke(app, ["replay", "r.json"])
    assert again.exit_code == 1, again.output
    assert "reward_invariance FAILED" in again.output


class NoneForTheGone(BlackBox):
    """An agent that is out shows None, from the step that ends it."""

    def step(self, actions):
        views, *rest = super().step(actions)
        return {a: view if a in self.agents else None for a, view in views.items()}, *rest


def test_an_agent_that_is_gone_may_show_none():
    assert sc.verify_env(NoneForTheGone, swap(), samples=100).verdict == "passed"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"agent_iter": lambda self: None}, r"act in turn. For a board game, use verify-game .*aec_to_parallel"),
        ({"action_space": None}, r"parallel API also requires action_space\(\)"),
    ],
)
def test_agents_that_do_not_act_at_once_are_refused_with_what_to_do(changed, message):
    with pytest.raises(TargetError, match=message):
        sc.verify_env(type("Other", (BlackBox,), changed), swap(), samples=20)


NUMBERED = [{"agent_0": "agent_1", "agent_1": "agent_0"}]


def test_tuples_with_a_list_of_rewards_are_several_agents():
    assert sc.verify_env(TupleTug, swap(NUMBERED), samples=300).verdict == "passed"
    report = sc.verify_env(TupleTugPullsHarder(), swap(NUMBERED), samples=300)
    assert report["transition_invariance"].verdict == "failed", report.to_text()
    # With one reward it is one agent, whatever it calls its parts.
    with pytest.raises(SpecError, match="this environment has one agent"):
        sc.verify_env(OneReward, swap(NUMBERED), samples=20)


def exchange(entries):
    return sc.Symmetry("exchange", sc.groups.cyclic(2), [[1] * entries], [[0, 1, 2, 3, 4]], agents=NUMBERED)


@pytest.mark.slow
def test_robots_of_rware_may_be_exchanged_and_one_that_cannot_turn_left_is_seen():
    pytest.importorskip("rware")  # registers its environments
    gym = pytest.importorskip("gymnasium")
    tiny = "rware-tiny-2ag-v2"

    class CannotTurnLeft(gym.Wrapper):
        def step(self, action):
            return self.env.step((action[0], 0 if action[1] == 2 else action[1]))

    def stiff():
        return CannotTurnLeft(gym.make(tiny, disable_env_checker=True))

    assert sc.verify_env(tiny, exchange(71), samples=3_000).verdict == "passed"
    assert sc.verify_env(stiff, exchange(71), samples=3_000)["transition_invariance"].verdict == "failed"


def test_two_agents_of_a_published_environment_may_be_exchanged():
    spread = pytest.importorskip("mpe2.simple_spread_v3")

    def spread_of(acceleration=None):
        env = spread.parallel_env(N=2, max_cycles=10)
        env.unwrapped.world.agents[1].accel = acceleration
        return env

    report = sc.verify_env(spread_of, exchange(12), samples=300)
    assert report.verdict == "passed", report.to_text()
    faster = sc.verify_env(lambda: spread_of(10.0), exchange(12), samples=300)
    assert faster["transition_invariance"].verdict == "failed"


SIDES = {"left_hunter": "right_hunter", "right_hunter": "left_hunter"} | {
    "left_runner": "right_runner",
    "right_runner": "left_runner",
}


def sides(hunter=("-2", "+1")):
    """The exchange of the sides: hunters' maps are inverse to each other and no involutions."""
    return sc.Symmetry(
        "sides",
        sc.groups.cyclic(2),
        [{"left_hunter": ["+2", "-1"], "right_hunter": list(hunter), "left_runner": [-1], "right_runner": [-1]}],
        [{"left_hunter": [1, 0], "right_hunter": [1, 0]}],
        agents=[SIDES],
        state=[["+3", "+4", "+1", "+2", "+7", "+8", "+5", "+6"]],
    )


@pytest.mark.long
def test_every_agent_may_have_a_map_of_its_own():
    report = sc.verify_env(Duel, sides(), samples=200)
    assert report.verdict == "passed", report.to_text()
    assert report["transition_invariance"].method == "paired"
    faster = sc.verify_env(FasterOnTheRight, sides(), samples=80)
    assert faster["transition_invariance"].verdict == "failed"
    # One map for all agents fits none of them, and maps that do not go back are no group.
    alike = sc.verify_env(Duel, sides(hunter=("+2", "+1")), samples=20)
    assert alike["group_axioms"].verdict == "failed"


def test_a_map_of_an_agent_that_is_not_there_is_refused():
    wrong = sc.Symmetry("w", sc.groups.cyclic(2), [{"left_hunter": [1, 1], "left_runer": [1]}], [{}], agents=[SIDES])
    with pytest.raises(SpecError, match=r"there is no agent 'left_runer'.*left_runner"):
        sc.verify_env(Duel, wrong, samples=20)


def test_an_observation_whose_parts_are_named_as_agents_takes_the_mapping_itself():
    agents = ("left", "right")
    seen = spaces.Dict({"left": spaces.Box(-1, 1, (2,)), "right": spaces.Box(-1, 1, (1,))})
    claim = sc.Symmetry("flip", sc.groups.cyclic(2), [{"left": ["-2", "-1"], "right": [-1]}], [[1, 0]])
    acted = dict.fromkeys(agents, spaces.Discrete(2))
    joint = joint_symmetry(claim, agents, dict.fromkeys(agents, seen), acted)
    view = {"observation": {"left": np.array([0.1, 0.2]), "right": np.array([0.3])}, "alive": 1}
    moved = joint.observation[0].function(dict.fromkeys(agents, view))
    for agent in agents:
        np.testing.assert_allclose(moved[agent]["observation"]["left"], [-0.2, -0.1])
        np.testing.assert_allclose(moved[agent]["observation"]["right"], [-0.3])
