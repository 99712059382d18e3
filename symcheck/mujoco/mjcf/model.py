"""An MJCF file as arrays with the names of `mujoco.MjModel`, limited to those used for pairing and comparing.

The numbers are those of MuJoCo's own compiler, in the same order. Geoms whose shape comes from a file (meshes, height
fields) are left out, together with their mass.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from symcheck.array_types import Floats
from symcheck.errors import TargetError
from symcheck.mujoco.isometry import Isometry, quaternion_of
from symcheck.mujoco.mjcf.document import Attributes, Document
from symcheck.mujoco.mjcf.drives import read_actuators
from symcheck.mujoco.mjcf.poses import Pose
from symcheck.mujoco.mjcf.shapes import Mass, adjust
from symcheck.mujoco.mjcf.ties import SOLIMP, SOLREF, read_contacts, read_equalities, read_tendons
from symcheck.mujoco.mjcf.tree import JOINT_TYPES, Part, Tree
from symcheck.mujoco.reference import Reference, free_bodies, slides_home

_FREE, _BALL, _SLIDE, _HINGE = range(4)  # mjtJoint
_WIDTHS = np.array([7, 4, 1, 1]), np.array([6, 3, 1, 1])
_SOLVERS = {"PGS": 0, "CG": 1, "Newton": 2}


class MjcfModel:
    """A model read without a simulator.

    Args:
        text: the text of the file.
        label: names it in messages.
        folder: the folder in which included files are searched for; None for text without a file.

    Attributes:
        names: section to names.
        poses: the poses of the bodies in the file, relative to the world.
        left_out: sentences on the parts that were not read.

    Raises:
        TargetError: the text is not MJCF, or requires MuJoCo.
    """

    def __init__(self, text: str, label: str, folder: Path | None = None) -> None:
        document = Document(text, label, folder)
        self._tree = tree = Tree(document)
        self._document = document
        self.names: dict[str, list[str]] = {"body": [body.name for body in tree.bodies]}
        self._read_option(document)
        self._read_bodies(document)
        self._read_joints(document)
        self._read_geoms()
        self._read_sites()
        # Constraints look up bodies and joints by name.
        for reader in (read_tendons, read_equalities, read_contacts, read_actuators):
            for name, value in reader(document, self).items():
                setattr(self, name, value)
        self.left_out = self._left_out()

    def number_of(self, section: str, name: str, where: str) -> int:
        """The index of a named element.

        Raises:
            TargetError: there is no element of that name.
        """
        if name not in self.names[section]:
            raise TargetError(f"there is no {section} {name!r}.", where=where)
        return self.names[section].index(name)

    @property
    def autolimits(self) -> bool:
        """Whether a range implies a limit (MuJoCo's `autolimits`)."""
        return self._document.compiler.text("autolimits", "true") == "true"

    def _read_option(self, document: Document) -> None:
        option = document.option
        self.opt = SimpleNamespace(
            gravity=option.triple("gravity", (0.0, 0.0, -9.81)),
            wind=option.triple("wind"),
            solver=_SOLVERS.get(option.text("solver", "Newton"), 2),
            iterations=int(option.number("iterations", 100)),
        )

    def _read_bodies(self, document: Document) -> None:
        bodies = self._tree.bodies
        self.nbody = len(bodies)
        self.body_parentid = np.array([body.parent for body in bodies])
        self.body_gravcomp = np.array([body.gravcomp for body in bodies])
        self.body_jntnum = np.array([len(body.joints) for body in bodies])
        self.body_geomnum = np.array([len(body.geoms) for body in bodies])
        self.body_jntadr, self.body_geomadr = (
            np.where(counts > 0, np.cumsum(counts) - counts, -1) for counts in (self.body_jntnum, self.body_geomnum)
        )
        masses = [(Mass(0.0, np.zeros(3), np.zeros((3, 3))), False)]
        masses += [self._tree.mass_of(number) for number in range(1, self.nbody)]
        self._incomplete = [number for number, (_, partly) in enumerate(masses) if partly]
        self._masses = [masses[0][0], *(adjust(mass, document.compiler) for mass, _ in masses[1:])]
        self.body_mass = np.array([mass.mass for mass in self._masses])
        wanted = document.compiler.number("settotalmass", -1.0)
        if wanted > 0 and self.body_mass.sum() > 0:
            share = wanted / float(self.body_mass.sum())
            self._masses = [Mass(m.mass * share, m.centre, m.inertia * share) for m in self._masses]
            self.body_mass = self.body_mass * share
        poses = [bodies[0].pose]
        for body in bodies[1:]:
            poses.append(poses[body.parent].inside(body.pose))
        self.poses = poses

    def _read_joints(self, document: Document) -> None:
        self._joints = joints = [(i, joint) for i, body in enumerate(self._tree.bodies) for joint in body.joints]
        self.njnt = len(joints)
        self.names["joint"] = [joint.attributes.text("name") for _, joint in joints]
        kinds = [JOINT_TYPES[joint.attributes.text("type", "hinge")] for _, joint in joints]
        self.jnt_type = np.array(kinds, dtype=int)
        self.jnt_bodyid = np.array([body for body, _ in joints], dtype=int)
        self.jnt_qposadr, self.jnt_dofadr = (
            np.cumsum(widths[self.jnt_type]) - widths[self.jnt_type] for widths in _WIDTHS
        )
        self.nq, self.nv = (int(widths[self.jnt_type].sum()) for widths in _WIDTHS)
        of = [joint.attributes for _, joint in joints]
        turns = [self._tree.angles.unit if kind in (_HINGE, _BALL) else 1.0 for kind in kinds]
        self.jnt_range = _rows(of, "range", (0.0, 0.0)) * np.array(turns).reshape(-1, 1)
        self.jnt_actfrcrange = _rows(of, "actuatorfrcrange", (0.0, 0.0))
        self.jnt_limited, self.jnt_actfrclimited = (
            np.array([a.is_limited(key, row, self.autolimits) for a, row in zip(of, rows, strict=True)], dtype=int)
            for key, rows in (("limited", self.jnt_range), ("actuatorfrclimited", self.jnt_actfrcrange))
        )
        stiffness, damping = (_rows(of, key, (0.0, 0.0, 0.0)) for key in ("stiffness", "damping"))
        self.jnt_stiffness, self.jnt_stiffnesspoly = stiffness[:, 0], stiffness[:, 1:]
        self.jnt_margin, self.jnt_actgravcomp = _column(of, "margin"), _truths(of, "actuatorgravcomp")
        self.jnt_solref = _rows(of, "solreflimit", SOLREF)
        self.jnt_solimp = _rows(of, "solimplimit", SOLIMP)
        per_dof = np.repeat(np.arange(self.njnt), _WIDTHS[1][self.jnt_type])
        self.dof_damping, self.dof_dampingpoly = damping[per_dof, 0], damping[per_dof, 1:]
        self.dof_armature, self.dof_frictionloss = (_column(of, key)[per_dof] for key in ("armature", "frictionloss"))
        self.dof_solref = _rows(of, "solreffriction", SOLREF)[per_dof]
        self.dof_solimp = _rows(of, "solimpfriction", SOLIMP)[per_dof]
        self._read_rest(turns)

    def _read_rest(self, turns: Sequence[float]) -> None:
        """The reference configuration and the rest positions of springs."""
        self.qpos0, self.qpos_spring = np.zeros(self.nq), np.zeros(self.nq)
        for start, (body, joint), turn in zip(self.jnt_qposadr, self._joints, turns, strict=True):
            kind = JOINT_TYPES[joint.attributes.text("type", "hinge")]
            if kind in (_FREE, _BALL):
                ball = np.array([1.0, 0.0, 0.0, 0.0])
                free = np.concatenate([self.poses[body].position, quaternion_of(self.poses[body].rotation)])
                pose = ball if kind == _BALL else free
                self.qpos0[start : start + len(pose)] = self.qpos_spring[start : start + len(pose)] = pose
            else:
                self.qpos0[start] = joint.attributes.number("ref") * turn
                self.qpos_spring[start] = joint.attributes.number("springref") * turn

    def _read_geoms(self) -> None:
        self._geoms = geoms = [(i, geom) for i, body in enumerate(self._tree.bodies) for geom in body.geoms]
        of = [geom.attributes for _, geom in geoms]
        self.ngeom, self.nmesh = len(geoms), 0
        self.names["geom"] = [attributes.text("name") for attributes in of]
        self.geom_bodyid = np.array([body for body, _ in geoms], dtype=int)
        self.geom_type = np.array([geom.shape.kind for _, geom in geoms if geom.shape], dtype=int)
        self.geom_size = np.array([geom.shape.size for _, geom in geoms if geom.shape]).reshape(-1, 3)
        self.geom_rbound = np.array([geom.shape.reach for _, geom in geoms if geom.shape])
        whole = (("contype", 1), ("conaffinity", 1), ("condim", 3), ("priority", 0))
        for key, default in whole:
            setattr(self, f"geom_{key}", _column(of, key, default).astype(int))
        self.geom_margin, self.geom_gap = _column(of, "margin"), _column(of, "gap")
        self.geom_solmix = _column(of, "solmix", 1.0)
        self.geom_friction = _rows(of, "friction", (1.0, 0.005, 0.0001))
        self.geom_solref, self.geom_solimp = _rows(of, "solref", SOLREF), _rows(of, "solimp", SOLIMP)

    def _read_sites(self) -> None:
        self._sites = [(i, site) for i, body in enumerate(self._tree.bodies) for site in body.sites]
        self.nsite = len(self._sites)
        self.names["site"] = [site.attributes.text("name") for _, site in self._sites]
        self.site_bodyid = np.array([body for body, _ in self._sites], dtype=int)

    def _left_out(self) -> list[str]:
        texts = ["the file was read without MuJoCo, which is not installed"]
        names = sorted({name for listed in self._tree.unread.values() for name in listed})
        if names:
            texts.append(f"meshes and height fields were not read: {_shorten(names)}")
        served = [
            name for name, (_, joint) in zip(self.names["joint"], self._joints, strict=True) if _has_springdamper(joint)
        ]
        if served:
            texts.append(f"springs and dampers given as springdamper were not compared: {_shorten(served)}")
        if self._incomplete:
            bodies = [self.names["body"][number] or f"body {number}" for number in self._incomplete]
            texts.append(f"masses that follow from meshes were not compared: {_shorten(bodies)}")
        return texts

    def reference(self, isometry: Isometry, *, slide_home: bool) -> Reference:
        """The poses in the reference configuration, with free bodies at the fixed point of the isometry.

        Args:
            isometry: free bodies are put at its fixed point.
            slide_home: as in `reference_of`.

        Returns:
            The poses.
        """
        position = np.array([pose.position for pose in self.poses])
        rotation = np.array([pose.rotation for pose in self.poses])
        qpos, moved = self.qpos0.copy(), np.zeros((self.nbody, 3))
        for joint, body in free_bodies(self):
            start = int(self.jnt_qposadr[joint])
            qpos[start : start + 3] = isometry.through
            moved[body] = isometry.through - position[body]
        axis = _three_columns([rotation[body] @ _axis(joint) for body, joint in self._joints])
        if slide_home:
            for body, slides, steps in slides_home(self, axis, position + moved, isometry):
                qpos[self.jnt_qposadr[slides]] += steps
                moved[body] = moved[body] + axis[slides].T @ steps
        # Descendants move with a moved body.
        for body in range(1, self.nbody):
            moved[body] = moved[body] + moved[self.body_parentid[body]]
        position = position + moved
        world = [Pose(place, turned) for place, turned in zip(position, rotation, strict=True)]
        geoms = [world[body].inside(geom.shape.pose) for body, geom in self._geoms if geom.shape]
        sites = [world[body].inside(site.shape.pose) for body, site in self._sites if site.shape]
        centre = np.array(
            [pose.position + pose.rotation @ m.centre for pose, m in zip(world, self._masses, strict=True)]
        )
        inertia = [pose.rotation @ m.inertia @ pose.rotation.T for pose, m in zip(world, self._masses, strict=True)]
        anchor = [world[body].inside(_anchor(joint)).position for body, joint in self._joints]
        points = np.concatenate([position[1:], centre[1:]])
        spread = float(np.ptp(points, axis=0).max()) if len(points) else 0.0
        return Reference(
            qpos,
            position,
            rotation,
            centre,
            np.array(inertia),
            axis,
            _three_columns(anchor),
            *_poses_as_arrays(geoms),
            *_poses_as_arrays(sites),
            # As for compiled models, the extent is at least 1e-6.
            max(spread, float(self.geom_rbound.max(initial=0.0)), 1e-6),
        )


def _axis(joint: Part) -> Floats:
    """The axis in the frame of the body; the z axis for joints without an axis."""
    if JOINT_TYPES[joint.attributes.text("type", "hinge")] in (_FREE, _BALL):
        return np.array([0.0, 0.0, 1.0])
    axis = joint.attributes.triple("axis", (0.0, 0.0, 1.0))
    length = float(np.linalg.norm(axis))
    if not length:
        raise TargetError("axis has length 0.", where=joint.attributes.where)
    return np.asarray(joint.frame.rotation @ axis / length)


def _anchor(joint: Part) -> Pose:
    if JOINT_TYPES[joint.attributes.text("type", "hinge")] == _FREE:
        return Pose(np.zeros(3), np.eye(3))
    return joint.frame.inside(Pose(joint.attributes.triple("pos"), np.eye(3)))


def _has_springdamper(joint: Part) -> bool:
    return bool(joint.attributes.numbers("springdamper", (0.0,)).any())


def _poses_as_arrays(poses: list[Pose]) -> tuple[Floats, Floats]:
    return _three_columns([pose.position for pose in poses]), np.array([pose.rotation for pose in poses]).reshape(
        -1, 3, 3
    )


def _three_columns(rows: Sequence[Floats]) -> Floats:
    return np.array(rows).reshape(-1, 3)


def _rows(elements: list[Attributes], key: str, default: Sequence[float]) -> Floats:
    return np.array([a.row(key, default) for a in elements]).reshape(-1, len(default))


def _column(elements: list[Attributes], key: str, default: float = 0.0) -> Floats:
    return np.array([a.number(key, default) for a in elements])


def _truths(elements: list[Attributes], key: str) -> Floats:
    return np.array([float(a.text(key) == "true") for a in elements])


def _shorten(names: Sequence[str]) -> str:
    """Up to eight names, and the number of further ones."""
    more = len(names) - 8
    return ", ".join(names[:8]) + (f" and {more} more" if more > 0 else "")
