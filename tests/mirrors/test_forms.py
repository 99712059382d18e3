"""The forms in which training libraries hold mirror functions, each called as the library calls it."""

import sys

import numpy as np
import pytest
import torch
from machines import BIPED, BIPED_JOINTS, POLAR, batched, layout, side_by_side
from typer.testing import CliRunner

import symcheck as sc
from symcheck.cli.main import app
from symcheck.engine.mirrors.rows import Row, read_rows

MOVE = side_by_side((3, POLAR), (5, BIPED_JOINTS))
TERMS = [{"term": "base_lin_vel"}, {"term": "joint_pos"}]
BOTH = {"observation": {"policy": TERMS, "critic": [*TERMS, {"term": "scalar"}]}}
CRITIC = side_by_side((8, MOVE), (1, lambda x: x))


def check(function, written=None, **options):
    return sc.verify_mirror(function, model=BIPED, layout=written or {"observation": {"policy": TERMS}}, **options)


def groups_by_repeat(env=None, obs=None, actions=None):
    """As Isaac Lab writes it: a TensorDict is repeated and the second half overwritten."""
    obs_aug = actions_aug = None
    if obs is not None:
        n = obs.batch_size[0]
        obs_aug = obs.repeat(2)
        obs_aug["policy"][:n] = obs["policy"][:]
        obs_aug["policy"][n:] = MOVE(obs["policy"])
        if "critic" in obs.keys():  # noqa: SIM118
            obs_aug["critic"][n:] = CRITIC(obs["critic"])
    if actions is not None:
        actions_aug = torch.cat([actions, BIPED_JOINTS(actions)])
    return obs_aug, actions_aug


def groups_by_cat(env, obs, actions):
    """As others do: a clone is overwritten and both are concatenated."""
    if obs is not None:
        moved = obs.clone()
        moved["policy"] = MOVE(obs["policy"])
        obs = torch.cat([obs, moved], dim=0)
    return obs, None if actions is None else torch.cat((actions, BIPED_JOINTS(actions)), dim=0)


def groups_by_name(env, obs, actions):
    """As above, for whichever groups there are."""
    if obs is not None:
        moved = obs.clone()
        for name, move in {"policy": MOVE, "critic": CRITIC}.items():
            if name in obs:
                moved[name] = move(obs[name])
        obs = torch.cat([obs, moved], dim=0)
    return obs, None if actions is None else torch.cat((actions, BIPED_JOINTS(actions)), dim=0)


def one_group_a_call(obs, actions, env, obs_type="policy"):
    """As rsl_rl 2 calls it: tensors, one group a call."""
    move = {"policy": MOVE, "critic": CRITIC}[obs_type]
    return (
        None if obs is None else torch.cat([obs, move(obs)]),
        None if actions is None else torch.cat([actions, BIPED_JOINTS(actions)]),
    )


def dictionary(env, obs, actions):
    moves = {"policy": MOVE, "critic": CRITIC}
    return (
        None if obs is None else {k: torch.cat([v, moves[k](v)]) for k, v in obs.items()},
        None if actions is None else torch.cat([actions, BIPED_JOINTS(actions)]),
    )


class Utilities:
    """As holosoma has it: an object with one method for each half."""

    def augment_observations(self, obs, env, obs_list):
        parts = {"policy": MOVE, "critic": CRITIC}
        return torch.cat((obs, parts[obs_list[0]](obs)), dim=0)

    def augment_actions(self, actions):
        return torch.cat((actions, BIPED_JOINTS(actions)), dim=0)


@pytest.mark.parametrize("function", [groups_by_repeat, groups_by_name, one_group_a_call, dictionary, Utilities()])
def test_every_form_is_called_as_its_library_does(function):
    assert check(function).verdict == "passed"
    report = check(function, BOTH)
    assert report.verdict == "passed", report.to_text()


def test_a_critic_group_that_is_only_copied_is_named():
    report = check(groups_by_cat, BOTH)
    assert {(c["group"], c["code"]) for c in report.columns} == {("critic", "SYM202")}
    # y of the velocity, and the joints: what the mirror moves.
    assert [c["index"] for c in report.columns] == [1, 3, 4, 5, 6, 7]


def test_a_critic_group_that_comes_back_as_it_was_is_named():
    def forgetful(env, obs, actions):
        observed, acted = dictionary(env, obs, actions)
        return None if observed is None else {**observed, "critic": obs["critic"]}, acted

    report = check(forgetful, BOTH)
    assert {(c["group"], c["code"], c["found"]) for c in report.columns} == {("critic", "SYM201", "nothing")}
    assert len(report.columns) == 9


def test_a_function_that_reads_env_says_which_attribute():
    def reads(env, obs, actions):
        env.unwrapped.scene  # noqa: B018
        return dictionary(env, obs, actions)

    with pytest.raises(sc.errors.SpecError, match=r"'unwrapped'.*--env"):
        check(reads)


def test_an_input_that_is_changed_in_place_fails():
    def spoils(env, obs, actions):
        if obs is not None:
            obs[..., 1] *= -1
        return one_group_a_call(obs, actions, env)

    report = check(spoils)
    assert report["group_axioms"].verdict == "failed"
    assert "SYM232" in {cause.code for cause in report["group_axioms"].causes}


def test_the_mirrored_batch_put_first_fails():
    def backwards(env, obs, actions):
        o, a = one_group_a_call(obs, actions, env)
        return tuple(None if x is None else x.roll(len(x) // 2, 0) for x in (o, a))

    report = check(backwards)
    assert report["group_axioms"].causes[0].code == "SYM230"
    assert {c["code"] for c in report.columns} == {"SYM234"}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int64])
def test_numbers_of_a_type_that_holds_no_float32_are_named(dtype):
    right = batched((BIPED_JOINTS, BIPED_JOINTS))
    report = check(
        lambda env, obs, actions: tuple(x if x is None else x.to(dtype) for x in right(env, obs, actions)),
        layout("joint_pos"),
    )
    codes = set() if dtype == torch.float64 else {"SYM235"}
    assert {c["code"] for c in report.columns} == codes
    assert {cause.code for cause in report["group_axioms"].causes} == codes
    assert report.verdict == ("failed" if codes else "passed")


def test_what_a_function_raises_in_every_form_is_said_once():
    def fails(env, obs, actions):
        raise ZeroDivisionError("division by zero")

    with pytest.raises(sc.errors.SpecError) as refused:
        check(fails)
    assert str(refused.value).count("division by zero") == 1


def test_a_wrong_number_of_blocks_is_refused():
    def four(env, obs, actions):
        return tuple(None if x is None else x.repeat(4, 1) for x in (obs, actions))

    with pytest.raises(sc.errors.SpecError, match=r'got 4 blocks.*group = "K4"'):
        check(four)


def test_a_width_that_does_not_fit_says_both():
    with pytest.raises(sc.errors.SpecError, match=r"policy .9 columns"):
        check(groups_by_repeat, layout("base_lin_vel", "joint_pos", "scalar"))


def test_frames_that_are_not_mirrored_are_named():
    written = layout({"term": "joint_pos", "history": 3})
    newest = side_by_side((10, lambda x: x), (5, BIPED_JOINTS))
    report = check(batched((newest, BIPED_JOINTS)), written)
    assert [c["index"] for c in report.columns] == list(range(10))
    assert {c["code"] for c in report.columns} == {"SYM205"}


def test_the_command_line_reads_a_file_that_needs_tensordict(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robot.xml").write_text(BIPED)
    (tmp_path / "layout.toml").write_text('[[observation.policy]]\nterm = "joint_pos"\n')
    (tmp_path / "needs_groups.py").write_text(
        "import torch\nfrom tensordict import TensorDict\n"
        "def augment(env, obs: TensorDict | None, actions):\n"
        "    if obs is not None:\n"
        "        assert isinstance(obs, TensorDict)\n"
        "        obs = obs.repeat(2)\n"
        "    return obs, None if actions is None else torch.cat([actions, actions])\n"
    )
    line = [
        "verify-mirror",
        "needs_groups.py:augment",
        "--model",
        "robot.xml",
        "--layout",
        "layout.toml",
        "--json",
        "r.json",
    ]
    result = CliRunner().invoke(app, line)
    assert result.exit_code == 1, result.output
    # Nothing is left behind: only the real package may be there.
    assert getattr(sys.modules.get("tensordict"), "__spec__", None) is not None or "tensordict" not in sys.modules
    import json

    columns = json.loads((tmp_path / "r.json").read_text())["columns"]
    assert [c["index"] for c in columns if c["group"] == "policy"] == [0, 1, 2, 3, 4]


def test_no_layout_is_refused():
    with pytest.raises(sc.errors.OptionError, match="--layout"):
        sc.verify_mirror(dictionary, model=BIPED)


def test_a_project_lists_mirrors_and_models_among_its_checks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robot.xml").write_text(BIPED)
    (tmp_path / "layout.toml").write_text('[[observation.policy]]\nterm = "joint_pos"\n')
    (tmp_path / "listed_mirror.py").write_text(
        "import torch\n"
        "def move(x):\n    return x[..., [2, 3, 0, 1, 4]] * torch.tensor([-1.0, 1, -1, 1, SIGN])\n"
        "def augment(env, obs, actions):\n"
        "    return tuple(None if x is None else torch.cat([x, move(x)]) for x in (obs, actions))\n".replace(
            "SIGN", "-1"
        )
    )
    text = (tmp_path / "listed_mirror.py").read_text().replace("SIGN", "-1")
    (tmp_path / "listed_mirror.py").write_text(text)
    settings = (
        "samples = 20000\n[[checks]]\nmirror = 'listed_mirror.py:augment'\nmodel = 'robot.xml'\n"
        "layout = 'layout.toml'\n"
        "[[checks]]\nmodel = 'robot.xml'\n"
    )
    (tmp_path / "symcheck.toml").write_text(settings)
    result = CliRunner().invoke(app, ["run"])
    assert result.exit_code == 0, result.output
    # With the sign of the waist lost, the same list fails.
    (tmp_path / "wrong_mirror.py").write_text(text.replace("-1])", "1])"))
    (tmp_path / "symcheck.toml").write_text(settings.replace("listed_mirror", "wrong_mirror"))
    assert CliRunner().invoke(app, ["run"]).exit_code == 1
    (tmp_path / "symcheck.toml").write_text("[[checks]]\nmirror = 'listed_mirror.py:augment'\n")
    assert CliRunner().invoke(app, ["run"]).exit_code == 2


@pytest.mark.parametrize(("width", "constant"), [(3, 0.0), (3, 2.5), (2_049, 0.0), (2_049, 2.5)])
def test_a_column_that_is_moved_and_negated_is_read_at_any_width(width, constant):
    """Wide ones without a call for every column."""

    def moved(rows):
        return constant - np.roll(rows, 1, axis=1)

    samples = np.random.default_rng(0).normal(size=(4, width))
    rows = read_rows(moved, width, [0, 2], samples)
    assert rows == {0: Row(((width - 1, -1.0),), constant), 2: Row(((1, -1.0),), constant)}
