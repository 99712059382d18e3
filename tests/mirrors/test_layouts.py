"""Layouts: what is refused, and that environments verify with them."""

import pytest
from machines import QUADRUPED, layout

import symcheck as sc
from symcheck.mujoco.layouts.document import read_layout
from symcheck.mujoco.layouts.laid_out import lay_out
from symcheck.mujoco.loading import load_model


def lay(*terms, **rest):
    return lay_out(load_model(QUADRUPED), read_layout(layout(*terms, **rest)))


REFUSED = {
    "unknown term": (layout("velocity"), "'velocity'"),
    "argument that a term lacks": (
        layout({"term": "base_lin_vel", "order": ["x"]}),
        "base_lin_vel has no argument 'order'",
    ),
    "no shift": (layout({"term": "clock"}), "clock needs shift"),
    "unknown joint": (layout({"term": "joint_pos", "order": ["FL_hip", "nonsense"]}), "nonsense"),
    "one side only": (layout({"term": "joint_pos", "order": ["FL_hip"]}), "omits the image of FL_hip, FR_hip"),
    "twice": (layout({"term": "joint_pos", "order": ["FL_hip", "FL_hip"]}), "twice"),
    "urdf order of an MJCF": (layout("joint_pos", joints="urdf"), "requires a URDF file"),
    "unknown order": (layout("joint_pos", joints="alphabetic"), "breadth_first"),
    "unknown field": ({**layout("gravity"), "planes": "xz"}, "planes"),
    "unknown group": ({**layout("gravity"), "group": "D4"}, "'D4'"),
    "plane beside quarter turns": (
        {**layout("gravity"), "group": "C4", "plane": "xz"},
        "combined with group",
    ),
    "two histories": (
        layout({"term": "gravity", "history": 2}, history={"policy": {"frames": 2}}),
        "history of its own",
    ),
    "history of no group": (
        layout("gravity", history={"critic": {"frames": 2}}),
        "not belong to any observation group",
    ),
    "no foot": (layout({"term": "phase", "feet": ["XX"]}), "'XX'"),
    "feet of one side": (layout({"term": "phase", "feet": ["FL", "RL"]}), "not one of the feet"),
    "lone point": (layout({"term": "point", "body": "FL_foot"}), "the observation does not contain the image"),
    "zero size": (layout({"term": "constant", "size": 0}), "1 or more"),
    "group called as the action": (layout("gravity", group="action"), "another name"),
    "no list of terms": ({"observation": {"policy": []}}, r"Write \[\[observation\.policy\]\]"),
    "word for a flag": (layout({"term": "per_joint", "sign": "yes"}), "true or false"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_layout_that_says_what_is_not_there_is_refused(name):
    written, words = REFUSED[name]
    with pytest.raises(sc.errors.SpecError, match=words):
        lay_out(load_model(QUADRUPED), read_layout(written))


def test_joint_terms_need_joints_of_one_number():
    legs = "".join(
        f'<body pos="0 {y} 0" name="{n}"><joint type="ball" name="{n}"/><geom size=".1"/></body>'
        for n, y in (("l", 0.1), ("r", -0.1))
    )
    balls = f'<mujoco><worldbody><body><freejoint/><geom size=".1"/>{legs}</body></worldbody></mujoco>'
    with pytest.raises(sc.errors.SpecError, match="no joints with one degree of freedom"):
        lay_out(load_model(balls), read_layout(layout("joint_pos")))


def image(laid):
    group = laid.observation["policy"]
    rows = group.matrices[0].toarray()
    return [
        "".join(f"{'-' if v < 0 else '+'}{group.seen_from(j, i)}" for j, v in enumerate(row) if v)
        for i, row in enumerate(rows)
    ]


def test_feet_are_named_by_body_geom_or_prefix():
    for feet in (["FL_foot", "FR_foot"], ["FL", "FR"]):
        assert image(lay({"term": "contacts", "feet": feet})) == [f"+{feet[1]}", f"+{feet[0]}"]
    parts = {"term": "phase", "feet": ["FL", "FR"], "parts": ["sin", "cos"]}
    assert image(lay(parts)) == ["+FR sin", "+FL sin", "+FR cos", "+FL cos"]


def test_points_of_both_sides_are_exchanged_across_terms():
    laid = lay({"term": "point", "body": "FL_foot"}, {"term": "point", "body": ["FR_foot"]})
    assert image(laid)[:3] == ["+point FR_foot x", "-point FR_foot y", "+point FR_foot z"]


def test_orientations_agree_with_rotating_by_hand():
    import numpy as np
    from scipy.spatial.transform import Rotation

    mirrored = np.diag([1.0, -1.0, 1.0])
    rotation = Rotation.random(random_state=0)
    image_rotation = Rotation.from_matrix(mirrored @ rotation.as_matrix() @ mirrored)
    values = {
        "quat": lambda r: r.as_quat(scalar_first=True) * np.sign(r.as_quat(scalar_first=True)[0]),
        "rot6d": lambda r: r.as_matrix()[:, :2].T.ravel(),
        "rotation": lambda r: r.as_matrix().ravel(),
        "euler_xyz": lambda r: r.as_euler("xyz"),
    }
    for term, read in values.items():
        matrix = lay(term).observation["policy"].matrices[0].toarray()
        assert np.allclose(matrix @ read(rotation), read(image_rotation)), term


def test_a_gymnasium_robot_is_verified_with_a_layout(tmp_path):
    # Walker2d's observation: z, pitch, six joints; then nine velocities. In the xz plane legs are exchanged.
    legs = ["thigh_joint", "leg_joint", "foot_joint", "thigh_left_joint", "leg_left_joint", "foot_left_joint"]
    joints = [*legs]
    text = f"""
[action]
order = {joints}
[[observation.policy]]
term = "constant"
size = 2
[[observation.policy]]
term = "joint_pos"
order = {joints}
[[observation.policy]]
term = "constant"
size = 3
[[observation.policy]]
term = "joint_vel"
order = {joints}
"""
    (tmp_path / "layout.toml").write_text(text.replace("'", '"'))
    report = sc.verify_env("Walker2d-v5", layout=str(tmp_path / "layout.toml"), samples=100)
    assert report.verdict == "passed", report.to_text()
    assert "--layout" in report.results[0].command
    with pytest.raises(sc.errors.OptionError, match="--layout"):
        sc.verify_env("Walker2d-v5", "walker2d/mirror", layout=str(tmp_path / "layout.toml"))


def test_quarter_turns_and_both_mirrors_become_symmetries():
    ant = layout("joint_pos", "joint_vel")
    assert sc.mujoco.mirror("Ant-v5", layout={**ant, "group": "C4"}).group.name == "C4"
    both = sc.mujoco.mirror("Ant-v5", layout={**ant, "group": "K4"})
    assert both.group.order == 4
    assert both.model_is_symmetric


def test_blocks_in_words_honour_the_joints_that_they_name_and_refuse_the_rest():
    names = "FL_knee, FR_knee, FL_hip, FR_hip"
    made = sc.mujoco.mirror(QUADRUPED, observation=[f"joint_positions({names})"])
    assert made.observation[0].index.tolist() == [1, 0, 3, 2]
    assert made.observation[0].sign.tolist() == [1, 1, -1, -1]
    for block in ("joint_positions(FL_hip)", "joint_positions(nonsense)", "command(nonsense)", "qvel(nonsense)"):
        with pytest.raises(sc.errors.SpecError, match=r"observation\[0\]"):
            sc.mujoco.mirror(QUADRUPED, observation=[block])


def test_two_columns_of_a_rotation_are_refused_where_the_third_is_needed():
    """A base whose axes are turned about x: the mirror mixes its second column with the third."""
    turned = QUADRUPED.replace(
        '<body name="base" pos="0 0 1"><freejoint/>',
        '<body name="base" pos="0 0 1" euler="45 0 0"><freejoint/><geom size=".05"/><body euler="-45 0 0">',
    ).replace("</body></worldbody>", "</body></body></worldbody>")
    assert lay_out(load_model(turned), read_layout(layout("rotation")))
    assert lay({"term": "rot6d"})
    with pytest.raises(sc.errors.SpecError, match="depend on the third column of R"):
        lay_out(load_model(turned), read_layout(layout("rot6d")))
