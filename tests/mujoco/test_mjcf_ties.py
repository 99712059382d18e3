"""Tendons, equalities and contacts of an MJCF file in every form, against MuJoCo's own compiler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from symcheck.errors import TargetError
from symcheck.mujoco.mjcf.model import MjcfModel

TIED = """<mujoco><worldbody>
 <body name="one"><joint name="a" ref="10" springref="20"/><geom name="g1" size=".1"/>
  <site name="s1" pos=".1 0 0"/></body>
 <body name="two" pos="1 0 0" euler="0 0 90"><joint name="b" type="slide" ref=".5"/><geom name="g2" size=".1"/>
  <site name="s2"/><geom name="tube" type="cylinder" size=".05 .1" contype="0" conaffinity="0"/></body>
 <body name="three" pos="0 1 0"><freejoint/><geom name="g3" size=".1"/><site name="s3"/><site name="side" pos="0 .2 0"/>
 </body></worldbody>
<tendon>
 <fixed name="slack"><joint joint="a" coef="2"/><joint joint="b" coef="-3"/></fixed>
 <fixed name="held" springlength=".25"><joint joint="a" coef="1"/></fixed>
 <spatial name="band" springlength=".1 .4" range="0 2" limited="true" damping="3" frictionloss=".5" margin=".01">
  <site site="s1"/><geom geom="tube" sidesite="side"/><site site="s2"/></spatial>
 <spatial name="pulled" stiffness="2"><site site="s1"/><site site="s3"/><pulley divisor="2"/><site site="s2"/>
  <geom geom="g3"/><site site="s3"/></spatial></tendon>
<equality>
 <connect body1="one" anchor=".1 .2 .3"/><connect site1="s1" site2="s2" active="false"/>
 <weld body1="two" body2="three" anchor=".1 0 .2" torquescale=".5" solref=".05 1" solimp=".8 .9 .01 .4 3"/>
 <weld body1="two" relpose="1 2 3 1 0 .5 0"/><weld site1="s2" site2="s3"/>
 <joint joint1="a"/><joint joint1="b" joint2="a" polycoef="1 2 3 4 5"/>
 <tendon tendon1="slack" tendon2="held"/><tendon tendon1="held" polycoef=".5 1 0 0 0"/></equality>
<contact><exclude body1="three" body2="one"/><exclude body1="one" body2="two"/><pair geom1="g1" geom2="g3"/>
 <pair geom1="g2" geom2="g3" condim="1" margin=".02" gap=".01" solimp=".7 .8 .02 .6 1"
  friction="2 2 .1 .1 .1"/></contact>
</mujoco>"""
LISTED = """tendon_adr tendon_num wrap_type wrap_objid wrap_prm tendon_range tendon_limited tendon_lengthspring
tendon_stiffness tendon_damping tendon_frictionloss tendon_margin eq_type eq_objtype eq_obj1id eq_obj2id eq_active0
eq_solref eq_solimp pair_dim pair_margin pair_gap pair_friction pair_solref pair_solimp"""


def read(text: str) -> Any:
    return MjcfModel(text, "tied.xml", Path())


def unlike(text: str) -> list[str]:
    """The arrays in which a text differs from what MuJoCo compiles of the whole file."""
    ours, theirs = read(text), mujoco.MjModel.from_xml_string(TIED)
    assert ours.tendon_lengthspring[3].tolist() == [-1.0, -1.0]
    differing = []
    for name in LISTED.split():
        one, other = np.asarray(getattr(ours, name), float), np.asarray(getattr(theirs, name), float)
        if name == "pair_friction":
            one, other = np.sort(one, axis=0), np.sort(other, axis=0)
        if name == "tendon_lengthspring":  # of a tendon over sites, -1 stands for its length in the reference
            other = np.where(one == -1, -1, other)
        if one.shape != other.shape or not np.allclose(one, other, atol=1e-9):
            differing.append(name)
    widths = np.array([6, 11, 5, 5])[theirs.eq_type]
    for k, width in enumerate(widths):
        if theirs.eq_objtype[k] != 6 and not np.allclose(ours.eq_data[k, :width], theirs.eq_data[k, :width], atol=1e-9):
            differing.append(f"eq_data {k}")
    if sorted(ours.exclude_signature) != sorted(theirs.exclude_signature):
        differing.append("exclude_signature")
    pairs = [{frozenset(ends) for ends in zip(m.pair_geom1.tolist(), m.pair_geom2.tolist(), strict=True)}
             for m in (ours, theirs)]  # fmt: skip
    return [*differing, *(["pairs"] if pairs[0] != pairs[1] else [])]


def test_every_form_of_a_tie_is_read_as_mujoco_compiles_it() -> None:
    assert unlike(TIED) == []


@pytest.mark.parametrize(
    ("planted", "differing"),
    [
        (' sidesite="side"', "wrap_prm"),
        (' divisor="2"', "wrap_prm"),
        (' springlength=".25"', "tendon_lengthspring"),
        (' springref="20"', "tendon_lengthspring"),
        (' active="false"', "eq_active0"),
        (' torquescale=".5"', "eq_data 2"),
        (' relpose="1 2 3 1 0 .5 0"', "eq_data 3"),
        (' polycoef="1 2 3 4 5"', "eq_data 6"),
        (' polycoef=".5 1 0 0 0"', "eq_data 8"),
        (' tendon2="held"', "eq_obj2id"),
        (' anchor=".1 .2 .3"', "eq_data 0"),
        (' condim="1"', "pair_dim"),
        (' gap=".01"', "pair_gap"),
        (' solref=".05 1"', "eq_solref"),
    ],
)
def test_the_comparison_sees_a_number_of_a_tie_that_is_left_out(planted: str, differing: str) -> None:
    assert TIED.count(planted) == 1
    assert differing in unlike(TIED.replace(planted, ""))


def test_what_a_tie_refers_to_must_exist_and_pairs_of_unread_geoms_are_left_out() -> None:
    for before, after in (
        ('joint="b" coef', 'joint="nobody" coef'),
        ('<site site="s3"/><pulley', '<site site="x"/><pulley'),
        ('body1="two" relpose', 'body1="x" relpose'),
        ('tendon1="slack"', 'tendon1="x"'),
        ('exclude body1="three"', 'exclude body1="x"'),
    ):
        assert TIED.count(before) == 1, before
        with pytest.raises(TargetError):
            read(TIED.replace(before, after))
    with pytest.raises(TargetError, match="a tendon can contain joints, sites, geoms and pulleys, but not <body>"):
        read(TIED.replace('<pulley divisor="2"/>', '<body name="x"/>'))
    with pytest.raises(TargetError, match="flex"):
        read(TIED.replace('<joint joint1="a"/>', '<flex flex="a"/>'))
    left = read(TIED.replace('<pair geom1="g1" geom2="g3"/>', '<pair geom1="g1" geom2="mesh"/>'))
    assert left.npair == 1
    assert left.pair_geom1.tolist() == [read(TIED).names["geom"].index("g2")]
