"""The image of every element of a model under an isometry.

The pairing module fills it in, and maps are built from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from symcheck.array_types import Ints
from symcheck.mujoco.isometry import Isometry
from symcheck.mujoco.reference import Reference


@dataclass
class Pairing:
    """The image of every element under an isometry; -1 if there is none.

    Attributes:
        isometry: the isometry.
        reference: the poses of all elements.
        bodies: (nbody,).
        joints: (njnt,).
        joint_signs: for hinges and slides: the sign with which the coordinate is mapped, (njnt,); 0 for free and ball.
        geoms: (ngeom,).
        tendons: (ntendon,).
        tendon_signs: (ntendon,).
        actuators: (nu,).
        actuator_signs: (nu,).
        unpaired: the elements without a counterpart, in words.
        ambiguous: bodies with joints that have more than one possible counterpart, in words.
        markers: bodies without a counterpart that have no mass, no joint and no colliding geom, in words.
    """

    isometry: Isometry
    reference: Reference
    bodies: Ints
    joints: Ints
    joint_signs: Ints
    geoms: Ints
    tendons: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    tendon_signs: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    actuators: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    actuator_signs: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    unpaired: list[str] = field(default_factory=list)
    markers: list[str] = field(default_factory=list)
    ambiguous: list[str] = field(default_factory=list)
