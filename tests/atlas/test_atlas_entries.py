"""The atlas: every entry can be built, fits its environments and explains itself; a wrong file is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from symcheck.envs import atlas
from symcheck.envs.atlas_page import render_page
from symcheck.envs.targets import resolve_environment
from symcheck.errors import SpecError

ROOT = Path(__file__).parents[2]
GYMNASIUM = [
    *("CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1", "Acrobot-v1"),
    *("FrozenLake-v1", "FrozenLake8x8-v1", "CliffWalking-v1", "CliffWalkingSlippery-v1", "Taxi-v4", "Blackjack-v1"),
    *("LunarLander-v3", "LunarLanderContinuous-v3", "BipedalWalker-v3", "BipedalWalkerHardcore-v3", "CarRacing-v3"),
    *("Ant-v5", "HalfCheetah-v5", "Hopper-v5", "Humanoid-v5", "HumanoidStandup-v5", "InvertedPendulum-v5"),
    *("InvertedDoublePendulum-v5", "Pusher-v5", "Reacher-v5", "Swimmer-v5", "Walker2d-v5"),
]


@pytest.mark.parametrize("entry", atlas.entries(), ids=lambda entry: entry.name)
def test_an_entry_fits_the_environments_that_it_names(entry: atlas.AtlasEntry) -> None:
    if not entry.installed:
        pytest.skip(entry.install_line)
    symmetry = entry.symmetry()
    assert symmetry.name == entry.name
    assert entry.environments
    assert entry.why.endswith(".")
    for env_id in entry.environments:
        env = resolve_environment(env_id).make()
        symmetry.bind(env.observation_space, env.action_space)
        env.close()


def test_every_environment_of_gymnasium_has_an_entry() -> None:
    assert [env_id for env_id in GYMNASIUM if not atlas.entries_for(env_id)] == []


def test_what_does_not_hold_exactly_is_never_claimed() -> None:
    for entry in atlas.entries():
        assert entry.claim == (entry.verdict in ("passed", "proved") and entry.kind == "exact"), entry.name
        if entry.kind != "exact":
            assert entry.breaks or entry.region or entry.fails, entry.name


def test_names_are_unique() -> None:
    names = [entry.name for entry in atlas.entries()]
    assert len(names) == len(set(names))


def test_an_unknown_name_proposes_the_nearest() -> None:
    with pytest.raises(SpecError, match="Did you mean 'cartpole/mirror'"):
        atlas.entry("cartpole/miror")
    with pytest.raises(SpecError, match=r"ID: the atlas has no entry for 'Antt-v5'\. Did you mean 'Ant-v5'"):
        atlas.select_entries(("Antt-v5",))


def test_an_environment_that_is_not_known_has_no_entries() -> None:
    assert atlas.entries_for("Ant-v17") == ()


def test_the_page_is_what_the_files_say() -> None:
    page = (ROOT / "docs" / "atlas.md").read_text(encoding="utf-8")
    assert page == render_page(atlas.entries()), "run: symcheck atlas --write docs/atlas.md"


GOOD = {
    "name": '"x/y"',
    "env": '["CartPole-v1"]',
    "claim": "true",
    "verdict": '"passed"',
    "why": '"It does."',
    "group": '"C2"',
    "observation": "[[-1, -1, -1, -1]]",
    "action": "[[1, 0]]",
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"why": None}, "atlas file x.toml: the file is missing why"),
        ({"kind": '"nearly"'}, "expected a kind, one of exact, approximate, partial, apparent; got 'nearly'"),
        ({"kind": '"partial"'}, "has a claim that is partial and passed; only exact symmetries are claimed"),
        ({"verdict": '"failed"', "fails": '["reward_invariance"]'}, "has a claim that is exact and failed"),
        ({"fails": '["reward_invariance"]'}, "has the verdict passed, but fails reward_invariance"),
        ({"claim": "false", "verdict": '"failed"'}, "names no property that fails"),
        ({"needs": '"warp"'}, "needs an extra that does not exist: 'warp'"),
        ({"size": "{ reward_invariance = 1.0 }"}, "gives a size for properties that do not fail"),
        ({"sometimes": '["reward_invariance"]'}, "is exact and passed, but fails with some seeds"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(
    tmp_path: Path, changes: dict[str, str | None], message: str
) -> None:
    fields = {key: value for key, value in {**GOOD, **changes}.items() if value is not None}
    (tmp_path / "x.toml").write_text("\n".join(f"{key} = {value}" for key, value in fields.items()))
    with pytest.raises(SpecError, match=message):
        atlas.read_entry(tmp_path / "x.toml")


@pytest.mark.parametrize(
    ("name", "env_id", "plane"),
    [
        ("ant/mirror", "Ant-v5", "xz"),
        ("ant/front-back", "Ant-v5", "yz"),
        ("humanoid/mirror", "Humanoid-v5", "xz"),
        ("humanoid-standup/mirror", "HumanoidStandup-v5", "xz"),
        ("inverted-pendulum/mirror", "InvertedPendulum-v5", "yz"),
        ("inverted-double-pendulum/mirror", "InvertedDoublePendulum-v5", "yz"),
        ("reacher/mirror", "Reacher-v5", "xz"),
        ("swimmer/mirror", "Swimmer-v5", "xz"),
        ("walker2d/legs", "Walker2d-v5", "xz"),
    ],
)
def test_robots_in_the_atlas_are_what_their_models_derive(name: str, env_id: str, plane: str) -> None:
    pytest.importorskip("mujoco")
    from symcheck.mujoco import mirror

    entry = atlas.entry(name)
    written, derived = entry.symmetry(), mirror(env_id, plane)
    for part in ("observation", "action", "state"):
        one, other = getattr(written, part)[0], getattr(derived, part)[0]
        assert (one.index == other.index).all(), part
        assert (one.sign == other.sign).all(), part
    assert entry.claim == derived.model_is_symmetric or name == "ant/front-back"
    assert set(map(str, derived.differences)) <= set(entry.breaks)


def themselves(*bodies: str) -> dict[str, str]:
    return {body: body for body in bodies}


@pytest.mark.parametrize(
    ("name", "env_id", "plane", "options"),
    [
        (
            "half-cheetah/front-back",
            "HalfCheetah-v5",
            "yz",
            {"pairs": {"torso": "torso", "bthigh": "fthigh", "bshin": "fshin", "bfoot": "ffoot"}},
        ),
        ("hopper/front-back", "Hopper-v5", "yz", {"pairs": themselves("torso", "thigh", "leg", "foot")}),
        (
            "walker2d/front-back",
            "Walker2d-v5",
            "yz",
            {"pairs": themselves("torso", "thigh", "leg", "foot", "thigh_left", "leg_left", "foot_left")},
        ),
        ("pusher/mirror", "Pusher-v5", "xz", {"through": (0, -0.6, 0)}),
    ],
)
def test_what_breaks_a_robot_that_only_seems_symmetric_is_what_its_model_says(
    name: str, env_id: str, plane: str, options: dict[str, object]
) -> None:
    pytest.importorskip("mujoco")
    from symcheck.mujoco import mirror

    entry = atlas.entry(name)
    written, derived = entry.symmetry(), mirror(env_id, plane, **options)  # type: ignore[arg-type]
    for part in ("observation", "action", "state"):
        one, other = getattr(written, part)[0], getattr(derived, part)[0]
        assert (one.dense() == other.dense()).all(), part
        assert (one.offset is None) == (other.offset is None), part
        assert one.offset is None or (one.offset == other.offset).all(), part
    assert set(map(str, derived.differences)) == set(entry.breaks)
