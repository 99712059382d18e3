"""The model by itself: differences ranked and judged by size; URDF files without a simulator."""

import sys

import pytest
from machines import QUADRUPED
from typer.testing import CliRunner

import symcheck as sc
from symcheck.cli.main import app
from symcheck.mujoco.layouts.document import read_layout
from symcheck.mujoco.layouts.robot import pair_robot, robot_of
from symcheck.mujoco.loading import LoadedModel, load_model

_LINK = """<link name="{n}_{part}"><inertial><origin xyz="0.01 {y} -0.1"/><mass value="{mass}"/>
<inertia ixx=".02" iyy=".02" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><geometry><mesh filename="package://nowhere/{n}.dae"/></geometry></visual></link>"""
_JOINT = """<joint name="{n}_{part}" type="{kind}"><parent link="{parent}"/><child link="{n}_{child}"/>
<origin xyz="{place}"/><axis xyz="{axis}"/><limit lower="{low}" upper="{high}" effort="10" velocity="5"/></joint>"""


def urdf(*, mass="0.5", camera=""):
    """A biped whose knees are listed before its hips; meshes that nobody has."""
    links, hips, knees = "", "", ""
    for n, y, low, high in (("left", "0.1", -0.5, 0.9), ("right", "-0.1", -0.9, 0.5)):
        small = "0.02" if n == "left" else "-0.02"
        links += _LINK.format(n=n, part="thigh", y=small, mass=1) + f'<link name="{n}_foot"/>'
        links += _LINK.format(n=n, part="calf", y=0, mass=mass if n == "left" else "0.5")
        place = f"0 {y} -0.1"
        hips += _JOINT.format(
            n=n,
            part="hip",
            kind="revolute",
            parent="base",
            child="thigh",
            place=place,
            axis="1 0 0",
            low=low,
            high=high,
        )
        knees += _JOINT.format(
            n=n,
            part="knee",
            kind="revolute",
            parent=f"{n}_thigh",
            child="calf",
            place="0 0 -0.3",
            axis="0 1 0",
            low=-2,
            high=0,
        )
        knees += _JOINT.format(
            n=n,
            part="ankle",
            kind="fixed",
            parent=f"{n}_calf",
            child="foot",
            place="0 0 -.3",
            axis="1 0 0",
            low=0,
            high=0,
        )
    head = '<?xml version="1.0" encoding="utf-8"?>\n<robot name="biped"><link name="base"/>'
    return f"{head}{links}{knees}{hips}{camera}</robot>"


def test_a_urdf_is_read_by_path_without_a_simulator(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    path = tmp_path / "robot.urdf"
    path.write_text(urdf())
    assert sc.verify_mirror(model=str(path)).verdict == "passed"
    path.write_text(urdf(mass="0.6"))
    report = sc.verify_mirror(model=str(path))
    assert report.verdict == "failed"
    assert [item["quantity"] for item in report.results[0].differences] == ["mass"]
    assert report.results[0].differences[0]["relative"] == pytest.approx(1 / 6)
    # MJCF is read without it too; an environment is not.
    assert sc.verify_mirror(model=QUADRUPED).verdict == "passed"
    with pytest.raises(sc.errors.MissingExtraError, match="MJCF or URDF file needs none"):
        sc.verify_mirror(model="Ant-v5")


def test_orders_of_a_urdf_are_those_of_the_file_of_depth_and_of_breadth():
    robot = robot_of(load_model(urdf()), read_layout({}))
    names = {order: [d.label for d in robot.joints(order, "")] for order in ("urdf", "model", "breadth_first")}
    assert names["urdf"] == ["left_knee", "right_knee", "left_hip", "right_hip"]
    assert names["model"] == ["left_hip", "left_knee", "right_hip", "right_knee"]
    assert names["breadth_first"] == ["left_hip", "right_hip", "left_knee", "right_knee"]


def test_a_urdf_is_paired_as_the_simulator_pairs_it():
    mujoco = pytest.importorskip("mujoco")
    # MuJoCo wants no visuals whose files are missing, and masses of moving links only.
    extension = '<mujoco><compiler discardvisual="true" fusestatic="false" balanceinertia="true"/></mujoco>'
    text = urdf().replace('<robot name="biped">', f'<robot name="biped">{extension}')
    model = mujoco.MjModel.from_xml_string(text.replace("package://nowhere/", "").split("\n", 1)[1])
    own = robot_of(load_model(urdf()), read_layout({}))
    theirs = pair_robot(LoadedModel(model, "mujoco"), own.group, [p.isometry for p in own.pairings])
    assert [d.label for d in own.joints("model", "")] == [d.label for d in theirs.joints("model", "")]
    assert own.pairings[0].joints.tolist() == theirs.pairings[0].joints.tolist()
    assert own.pairings[0].joint_signs.tolist() == theirs.pairings[0].joint_signs.tolist()


def test_a_camera_on_one_side_is_no_fault_of_the_model():
    fixed = '<parent link="base"/><child link="camera"/><origin xyz="0 .3 0"/>'
    camera = f'<link name="camera"/><joint name="c" type="fixed">{fixed}</joint>'
    assert sc.verify_mirror(model=urdf(camera=camera)).verdict == "passed"
    heavy = camera.replace(
        '<link name="camera"/>', '<link name="camera"><inertial><mass value="0.3"/></inertial></link>'
    )
    report = sc.verify_mirror(model=urdf(camera=heavy))
    assert [cause.code for cause in report["model_symmetry"].causes] == ["SYM241"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (urdf().replace('parent link="base"', 'parent link="nobody"'), "nobody"),
        (urdf().replace('xyz="0 0.1 -0.1"', 'xyz="0 ${y} 0"'), "xacro"),
        (urdf().replace('type="revolute"', 'type="screw"'), "screw"),
        (urdf().replace("</robot>", ""), "expected|compile"),
    ],
)
def test_a_urdf_that_cannot_be_read_says_why(text, words):
    with pytest.raises(sc.errors.TargetError, match=words):
        load_model(text)


def test_differences_are_ranked_and_judged_by_their_size(tmp_path):
    # A knee's damping 20% off, a foot's friction off by less than files round.
    text = QUADRUPED.replace('<joint name="FL_knee"', '<joint name="FL_knee" damping="1"')
    text = text.replace('<joint name="FR_knee"', '<joint name="FR_knee" damping="0.8"')
    text = text.replace('<joint name="RL_hip"', '<joint name="RL_hip" armature="0.0100001"')
    text = text.replace('<joint name="RR_hip"', '<joint name="RR_hip" armature="0.01"')
    report = sc.verify_mirror(model=text)
    assert [item["quantity"] for item in report.results[0].differences] == ["damping", "armature"]
    assert report["model_symmetry"].violations == 1
    assert sc.verify_mirror(model=text, tolerance=0.25).verdict == "passed"
    (tmp_path / "robot.xml").write_text(text)
    line = ["verify-mirror", "--model", str(tmp_path / "robot.xml")]
    assert CliRunner().invoke(app, line).exit_code == 1
    assert CliRunner().invoke(app, [*line, "--tolerance", "0.25"]).exit_code == 0
    assert CliRunner().invoke(app, [*line, "--tolerance", "-1"]).exit_code == 2


def test_differences_of_the_model_do_not_change_the_verdict_of_columns():
    from machines import QUAD_XZ, batched, layout

    text = QUADRUPED.replace('<joint name="FL_knee"', '<joint name="FL_knee" damping="1"')
    report = sc.verify_mirror(batched((QUAD_XZ, QUAD_XZ)), model=text, layout=layout("joint_pos"))
    assert report.verdict == "passed"
    assert report.results[0].differences
    assert "model_differences_beside" in {note.code for note in report["observation_columns"].notes}


def test_a_contact_pair_of_a_geom_without_an_image_is_no_difference_of_its_own():
    foot = '<geom name="FL_foot" size=".02"/>'
    plate = foot + '<geom name="plate" type="box" size=".01 .02 .03" pos=".1 0 0"/>'
    pair = '</worldbody><contact><pair geom1="FL_foot" geom2="plate"/></contact>'
    text = QUADRUPED.replace(foot, plate).replace("</worldbody>", pair)
    elements = [item["element"] for item in sc.verify_mirror(model=text).to_dict()["differences"]]
    assert elements[0] == "geom 'plate'"
    assert not [name for name in elements if "contact pair" in name]
