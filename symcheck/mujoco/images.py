"""The image of every element of a model under an isometry: what pairing fills in and maps are made from."""

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
        isometry: which one.
        reference: where everything is.
        bodies: (nbody,).
        joints: (njnt,).
        joint_signs: for hinges and slides: the sign with which the coordinate is mapped, (njnt,); 0 for free and ball.
        geoms: (ngeom,).
        tendons: (ntendon,).
        tendon_signs: (ntendon,).
        actuators: (nu,).
        actuator_signs: (nu,).
        unpaired: what has no counterpart, in words.
        ambiguous: bodies with joints that another body fits as well as the one taken, in words.
        markers: bodies without counterpart that have no mass, no joint and nothing that collides, in words.
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
