"""Each known kind of fault in a mirror function is refused with its wrong columns; the right twin is accepted."""

import numpy as np
import pytest
import torch
from machines import (
    AXIAL,
    AXIAL_YZ,
    BIPED,
    BIPED_JOINTS,
    BODY,
    COMMAND,
    COMMAND_YZ,
    POLAR,
    POLAR_YZ,
    QUAD_XZ,
    QUAD_YZ,
    QUADRUPED,
    SQUARE,
    SWAP_FEET,
    batched,
    layout,
    scan_flip,
    side_by_side,
    signed,
)

import symcheck as sc


def wrong_columns(report):
    return {(column["group"], column["index"]): column["code"] for column in report.columns}


def zero_fill(pairs):
    def moved(x):
        y = torch.zeros_like(x)
        for a, b in pairs:
            y[..., a], y[..., b] = x[..., b], x[..., a]
        return y

    return moved


SCAN = {"term": "scan", "rows": 3, "cols": 5}
HISTORY = layout("base_lin_vel", "base_ang_vel", history={"policy": {"frames": 2, "layout": "terms"}})
BY_TERM = side_by_side((3, POLAR), (3, POLAR), (3, AXIAL), (3, AXIAL))
BY_FRAME = side_by_side((3, POLAR), (3, AXIAL), (3, POLAR), (3, AXIAL))
QUAT = {"term": "quat", "order": "wxyz"}
NO_SIGNS = signed([2, 3, 0, 1, 4], [1] * 5)

# name: (model, layout, right map, wrong map, {wrong column: code}); actions are right unless the fault is in joints
FAULTS = {
    "unpaired joints lost": (
        BIPED,
        layout("joint_pos"),
        BIPED_JOINTS,
        signed([2, 3, 0, 1, 4], [-1, 1, -1, 1, 0]),
        {4: "SYM220"},
    ),
    "sign on one side": (
        BIPED,
        layout("joint_pos"),
        BIPED_JOINTS,
        signed([2, 3, 0, 1, 4], [1, 1, -1, 1, -1]),
        {0: "SYM221"},
    ),
    "no signs": (BIPED, layout("joint_pos"), BIPED_JOINTS, NO_SIGNS, {0: "SYM222", 2: "SYM222", 4: "SYM222"}),
    "phase negated": (
        QUADRUPED,
        layout("phase"),
        SWAP_FEET,
        signed([0, 1, 2, 3], [-1, 1, -1, 1]),
        dict.fromkeys(range(4), "SYM210"),
    ),
    "phase all negated": (
        QUADRUPED,
        layout("phase"),
        SWAP_FEET,
        signed([0, 1, 2, 3], [-1] * 4),
        dict.fromkeys(range(4), "SYM210"),
    ),
    "angular velocity polar": (QUADRUPED, layout("base_ang_vel"), AXIAL, POLAR, dict.fromkeys(range(3), "SYM206")),
    "euler polar": (QUADRUPED, layout("euler_xyz"), AXIAL, POLAR, dict.fromkeys(range(3), "SYM207")),
    "turning not negated": (QUADRUPED, layout("command"), COMMAND, POLAR, {2: "SYM209"}),
    "scan along x": (
        QUADRUPED,
        layout(SCAN),
        scan_flip(3, 5, -2),
        scan_flip(3, 5, -1),
        {c: "SYM212" for c in range(15) if c != 7},
    ),
    "scan rows and columns": (QUADRUPED, layout(SCAN), scan_flip(3, 5, -2), scan_flip(5, 3, -2), None),
    "history by term as by frame": (QUADRUPED, HISTORY, BY_TERM, BY_FRAME, dict.fromkeys(range(3, 9), "SYM204")),
    "quaternion order": (
        QUADRUPED,
        layout(QUAT),
        signed([0, 1, 2, 3], [1, -1, 1, -1]),
        signed([0, 1, 2, 3], [-1, 1, -1, 1]),
        dict.fromkeys(range(4), "SYM215"),
    ),
    "not exchanged": (
        BIPED,
        layout("joint_pos"),
        BIPED_JOINTS,
        signed([0, 1, 2, 3, 4], [-1, 1, -1, 1, -1]),
        dict.fromkeys(range(4), "SYM224"),
    ),
    "term untouched": (BIPED, layout("joint_pos"), BIPED_JOINTS, lambda x: x, dict.fromkeys(range(5), "SYM218")),
    "last action untouched": (
        BIPED,
        layout("last_action"),
        BIPED_JOINTS,
        lambda x: x,
        dict.fromkeys(range(5), "SYM214"),
    ),
    "gravity axial": (BIPED, layout("gravity"), POLAR, AXIAL, dict.fromkeys(range(3), "SYM208")),
    "clock copied": (
        BIPED,
        layout({"term": "clock", "shift": "half"}),
        lambda x: -x,
        lambda x: x,
        {0: "SYM211", 1: "SYM211"},
    ),
    "clipped": (
        BIPED,
        layout("base_lin_vel"),
        POLAR,
        lambda x: POLAR(x).clamp(-0.5, 0.5),
        dict.fromkeys(range(3), "SYM227"),
    ),
    "divided by zero": (
        BIPED,
        layout("base_lin_vel"),
        POLAR,
        lambda x: POLAR(x) / torch.tensor([0.0, 1.0, 1.0]),
        {0: "SYM227"},
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_wrong_function_is_refused_with_its_columns_and_the_right_one_accepted(name):
    model, written, right, wrong, expected = FAULTS[name]
    act = BIPED_JOINTS if model == BIPED else QUAD_XZ
    good = sc.verify_mirror(batched((right, act)), model=model, layout=written)
    assert good.verdict == "passed", good.to_text()
    assert good.columns == []
    bad = sc.verify_mirror(batched((wrong, act)), model=model, layout=written)
    assert bad.verdict == "failed"
    assert bad["observation_columns"].verdict == "failed"
    assert bad["action_columns"].verdict == "passed"
    found = {index: code for (_, index), code in wrong_columns(bad).items()}
    if expected is None:
        # By brute force: the points at which the two flips put different heights.
        points = torch.arange(15.0)
        expected = {c: "SYM213" for c in range(15) if right(points)[c] != wrong(points)[c]}
    assert found == expected, bad.to_text()
    assert {cause.code for cause in bad["observation_columns"].causes} == set(expected.values())


def test_a_function_that_loses_joints_breaks_the_group_too():
    wrong = zero_fill([(0, 2), (1, 3)])
    report = sc.verify_mirror(batched((wrong, wrong)), model=BIPED, layout=layout("joint_pos"))
    assert report["group_axioms"].verdict == "failed"
    (twice, *_) = report["group_axioms"].causes
    assert twice.code == "SYM231"
    names, mirror = {key: twice.fields[key] for key in ("first", "second", "product")}, "the mirror in the xz plane"
    assert names == {"first": mirror, "second": mirror, "product": "the batch itself"}
    # Hips lack their signs, the waist is lost; in observation and action alike.
    codes = {0: "SYM222", 2: "SYM222", 4: "SYM220"}
    assert wrong_columns(report) == {(group, c): code for group in ("policy", "action") for c, code in codes.items()}


def as_shown(x):
    """Contacts, angles about x, y and z, then gravity, each by code that is right for what a robot shows alone."""
    turned = torch.atan2(x[..., 4:7].sin(), x[..., 4:7].cos())
    turned[..., 1] = x[..., 5].sin().asin()
    down = x[..., 7:] / x[..., 7:].norm(dim=-1, keepdim=True).clamp_min(1e-9)
    return torch.cat([SWAP_FEET((x[..., :4] > 0.5).to(x)), AXIAL(turned), POLAR(down)], -1)


def test_functions_are_judged_on_numbers_that_a_robot_can_show():
    written = layout("contacts", "euler_xyz", "gravity")
    right = sc.verify_mirror(batched((as_shown, QUAD_XZ)), model=QUADRUPED, layout=written)
    assert right["observation_columns"].verdict == "passed", right.to_text()
    wrong = sc.verify_mirror(batched((lambda x: as_shown(x) * (x.abs() < 1), QUAD_XZ)), model=QUADRUPED, layout=written)
    assert wrong["observation_columns"].verdict == "failed"


def test_a_wrong_joint_is_drawn_on_a_robot_whose_links_keep_their_lengths():
    """Two swings in the plane of the drawing, hip and foot 0.2 apart: the model's image is the pose mirrored."""
    swing = """<body name="{n}" pos="0 {y} 0"><joint name="{n}_hip" axis="1 0 0"/><geom size=".03"/>
    <body name="{n}_foot" pos="0 0 -.2"><joint name="{n}_foot" axis="1 0 0"/><geom size=".02"/></body></body>"""
    model = BODY.format(swing.format(n="L", y=0.1) + swing.format(n="R", y=-0.1))
    right, wrong = signed([2, 3, 0, 1], [-1] * 4), signed([2, 3, 0, 1], [1, -1, -1, -1])
    assert sc.verify_mirror(batched((right, right)), model=model, layout=layout("joint_pos")).results[0].pictures == ()
    report = sc.verify_mirror(batched((wrong, right)), model=model, layout=layout("joint_pos"))
    pose, image, found = (drawing for _, drawing in report.results[0].pictures)
    for drawing in (pose, image, found):
        lengths = [np.hypot(x2 - x1, y2 - y1) for x1, y1, x2, y2 in drawing["lines"]]
        np.testing.assert_allclose([n for n in lengths if n > 0], [0.1, 0.2] * 2, atol=1e-4)
    flipped = {(name[0].translate({76: 82, 82: 76}) + name[1:], -x, y) for x, y, name, _ in pose["joints"]}
    assert {(name, x, y) for x, y, name, _ in image["joints"]} == flipped
    places = [[joint[:2] for joint in drawing["joints"] if joint[2] == "L_foot"] for drawing in (image, found)]
    assert places[0] != places[1]
    assert [name for *_, name, is_wrong in found["joints"] if is_wrong] == ["L_hip"]


def test_each_half_alone_gets_the_images_that_it_gets_with_the_other():
    right = batched((BIPED_JOINTS, BIPED_JOINTS))

    def wrong(env, obs, actions, obs_type="policy"):
        if actions is None:
            return batched((NO_SIGNS, BIPED_JOINTS))(env, obs, actions)
        return right(env, obs, actions)

    passed = sc.verify_mirror(right, model=BIPED, layout=layout("joint_pos"))
    assert passed.verdict == "passed"
    assert passed["group_axioms"].max_residual == 0
    # The robot is named beside a function, and once where it is the target itself.
    assert passed.to_dict()["symmetry"] == "model mirror in the xz plane"
    assert sc.verify_mirror(model=BIPED).to_dict()["symmetry"] == "mirror in the xz plane"
    report = sc.verify_mirror(wrong, model=BIPED, layout=layout("joint_pos"))
    assert report["observation_columns"].verdict == "passed"
    assert report["group_axioms"].verdict == "failed"
    (cause,) = report["group_axioms"].causes
    assert (cause.code, cause.fields["missing"]) == ("SYM233", "actions")


def test_expected_and_found_are_named_by_joint():
    report = sc.verify_mirror(batched((NO_SIGNS, BIPED_JOINTS)), model=BIPED, layout=layout("joint_pos"))
    assert report.columns[0] == {
        "group": "policy",
        "term": "joint_pos",
        "name": "L_hip",
        "index": 0,
        "expected": "-R_hip",
        "found": "+R_hip",
        "code": "SYM222",
    }


def test_the_other_plane_is_named():
    written = layout("base_lin_vel", "joint_pos", "phase")
    maps = ((3, POLAR_YZ), (8, QUAD_YZ), (4, signed([2, 3, 0, 1], [1] * 4)))
    report = sc.verify_mirror(batched((side_by_side(*maps), QUAD_YZ)), model=QUADRUPED, layout=written)
    assert {column["code"] for column in report.columns if column["group"] == "policy"} == {"SYM203"}
    assert report["observation_columns"].causes[0].fields["plane"] == "yz"
    right = sc.verify_mirror(
        batched((side_by_side(*maps), QUAD_YZ)), model=QUADRUPED, layout={**written, "plane": "yz"}
    )
    assert right.verdict == "passed", right.to_text()


FOUR = layout("base_lin_vel", "base_ang_vel", "command", "joint_pos", "phase", group="policy")
XZ = side_by_side((3, POLAR), (3, AXIAL), (3, COMMAND), (8, QUAD_XZ), (4, SWAP_FEET))
YZ = side_by_side((3, POLAR_YZ), (3, AXIAL_YZ), (3, COMMAND_YZ), (8, QUAD_YZ), (4, signed([2, 3, 0, 1], [1] * 4)))


def test_four_blocks_are_compared_with_both_mirrors_and_their_product():
    both = (lambda x: XZ(YZ(x)), lambda a: QUAD_XZ(QUAD_YZ(a)))
    written = {**FOUR, "group": "K4"}
    report = sc.verify_mirror(batched((XZ, QUAD_XZ), (YZ, QUAD_YZ), both), model=QUADRUPED, layout=written)
    assert report.verdict == "passed", report.to_text()
    assert report.results[0].group == {"name": "V4", "order": 4}
    swapped = sc.verify_mirror(batched((YZ, QUAD_YZ), (XZ, QUAD_XZ), both), model=QUADRUPED, layout=written)
    assert {column["code"] for column in swapped.columns} == {"SYM234"}
    lost = (lambda x: XZ(YZ(x)), lambda a: QUAD_XZ(a))
    report = sc.verify_mirror(batched((XZ, QUAD_XZ), (YZ, QUAD_YZ), lost), model=QUADRUPED, layout=written)
    assert report["observation_columns"].verdict == "passed"
    assert {column["group"] for column in report.columns} == {"action"}


def quarter(x):
    """Counter-clockwise by a quarter: x goes to y, leg k to leg k + 1."""
    velocity = signed([1, 0, 2], [-1, 1, 1])(x[..., :3])
    return torch.cat([velocity, x[..., 3:].roll(1, -1)], -1)


@pytest.mark.parametrize("clockwise", [False, True])
def test_quarter_turns_are_compared_in_either_sense(clockwise):
    def turn(k):
        def moved(x):
            for _ in range(4 - k if clockwise else k):
                x = quarter(x)
            return x

        return moved, lambda a: a.roll(4 - k if clockwise else k, -1)

    written = {**layout("base_ang_vel", "joint_pos"), "group": "C4"}
    report = sc.verify_mirror(batched(*(turn(k) for k in (1, 2, 3))), model=SQUARE, layout=written)
    assert report.verdict == "passed", report.to_text()
    wrong = [turn(1), turn(2), (turn(3)[0], lambda a: a)]
    report = sc.verify_mirror(batched(*wrong), model=SQUARE, layout=written)
    assert {column["group"] for column in report.columns} == {"action"}


def test_another_joint_order_is_named():
    # Right for joints level by level, as Isaac Lab has them: hips, then knees.
    level = signed([1, 0, 3, 2, 5, 4, 7, 6], [-1] * 4 + [1] * 4)
    written = layout("joint_pos")
    report = sc.verify_mirror(batched((level, QUAD_XZ)), model=QUADRUPED, layout=written)
    assert {column["code"] for column in report.columns} == {"SYM217"}
    cause = report["observation_columns"].causes[0]
    assert cause.fields["order"] == "breadth_first"
    assert cause.fields["names"][:2] == ["FL_hip", "FR_hip"]
    right = {
        **written,
        "joints": "breadth_first",
        "action": {"order": [f"{n}_{j}" for n in ("FL", "FR", "RL", "RR") for j in ("hip", "knee")]},
    }
    assert sc.verify_mirror(batched((level, QUAD_XZ)), model=QUADRUPED, layout=right).verdict == "passed"


def planar(first, second):
    """Two legs at one place, as planar robots have them."""
    leg = '<body name="{n}"><joint name="{n}_hip" axis="0 1 0"/><geom size=".02"/></body>'
    base = '<body name="base" pos="0 0 1"><freejoint/><geom size=".1"/>'
    return f"<mujoco><worldbody>{base}{leg.format(n=first)}{leg.format(n=second)}</body></worldbody></mujoco>"


def test_two_bodies_that_nothing_tells_apart_accuse_nobody():
    swap = batched((lambda x: x[..., [1, 0]], lambda a: a[..., [1, 0]]))
    named = sc.verify_mirror(swap, model=planar("left", "right"), layout=layout("joint_pos", plane="xz"))
    assert named.verdict == "passed", named.to_text()
    unnamed = sc.verify_mirror(swap, model=planar("leg_a", "leg_b"), layout=layout("joint_pos", plane="xz"))
    assert unnamed.verdict == "undecided", unnamed.to_text()
    assert unnamed["observation_columns"].reason.code == "mirror_ambiguous"


def test_a_trunk_whose_mass_lies_ahead_is_mirrored_from_front_to_back():
    heavy_ahead = QUADRUPED.replace('size=".2 .1 .05"', 'size=".2 .1 .05" pos=".06 0 0"')
    report = sc.verify_mirror(
        batched((QUAD_YZ, QUAD_YZ)), model=heavy_ahead, layout={**layout("joint_pos"), "plane": "yz"}
    )
    assert report.verdict == "passed", report.to_text()
    # The mass is a difference of the model, which is said and judged when the model is asked about alone.
    alone = sc.verify_mirror(model=heavy_ahead, layout={"plane": "yz"})
    assert "centre of mass" in {item["quantity"] for item in alone.results[0].differences}
    assert alone.verdict == "failed"
