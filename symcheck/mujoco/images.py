"""The image of every element of a model under an isometry: what pairing fills in and maps are made from."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from symcheck.mujoco.isometry import Isometry
from symcheck.mujoco.reference import Reference

Indices = npt.NDArray[np.int64]


@dataclass
class Pairing:
    """The image of every element under an isometry; -1 where there is none.

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
    """

    isometry: Isometry
    reference: Reference
    bodies: Indices
    joints: Indices
    joint_signs: Indices
    geoms: Indices
    tendons: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    tendon_signs: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    actuators: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    actuator_signs: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    unpaired: list[str] = field(default_factory=list)
