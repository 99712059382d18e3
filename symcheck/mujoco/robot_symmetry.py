"""A symmetry that records its derivation from a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symcheck.mujoco.differences import Difference
from symcheck.mujoco.elements import title
from symcheck.mujoco.images import Pairing
from symcheck.mujoco.isometry import Isometry
from symcheck.symmetry.symmetry import Symmetry


class RobotSymmetry(Symmetry):
    """A symmetry derived from a model, with its pairs and differences.

    Built by `mirror` and `turn`.

    Attributes:
        isometry: the reflection or rotation.
        pairs: {element: its image}, in words, for bodies, joints and actuators.
        differences: parameters of the model that break the symmetry; empty if the model is symmetric.
        remarks: settings under which even a symmetric model is only nearly symmetric.
    """

    isometry: Isometry
    pairs: Mapping[str, str]
    differences: tuple[Difference, ...]
    remarks: tuple[str, ...]

    @property
    def model_is_symmetric(self) -> bool:
        """Whether no parameter of the model breaks the symmetry."""
        return not self.differences

    def findings(self) -> str:
        """The differences and remarks as text, one per line."""
        none = [] if self.differences else [f"No parameter of the model breaks the {self.isometry.name}."]
        return "\n".join([*none, *map(str, self.differences), *self.remarks])


def named_pairs(model: Any, pairing: Pairing) -> dict[str, str]:
    """{element: its image}, in words, without elements that have no image."""
    titles: dict[str, str] = {}
    for section, images, signs in (
        ("body", pairing.bodies, None),
        ("joint", pairing.joints, pairing.joint_signs),
        ("actuator", pairing.actuators, pairing.actuator_signs),
    ):
        for i, image in enumerate(images):
            if image < 0:
                continue
            # "-" marks a joint or control whose image has the opposite sign.
            sign = "-" if signs is not None and signs[i] < 0 else ""
            titles[title(model, section, i)] = sign + title(model, section, int(image))
    return titles
