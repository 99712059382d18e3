"""Reads the actuators of an MJCF file: their targets, ranges, and the gains of their short forms.

All actuators share one set of defaults. If a class sets `kp` of `<position>`, it sets the shared gain, and a `<motor>`
of the class resets it to 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from symcheck.array_types import Floats
from symcheck.errors import TargetError
from symcheck.mujoco.mjcf.document import ACTUATOR_TAGS, Attributes, Document, needs_simulator, read_numbers

_TRANSMISSIONS = {"joint": 0, "jointinparent": 1, "cranksite": 2, "tendon": 3, "site": 4, "body": 5}  # mjtTrn
_SECTIONS = {"jointinparent": "joint", "cranksite": "site"}
_GAINS = {"fixed": 0, "affine": 1, "muscle": 2, "user": 3}
_BIASES = {"none": 0, "affine": 1, "muscle": 2, "user": 3}
_DYNAMICS = {"none": 0, "integrator": 1, "filter": 2, "filterexact": 3, "muscle": 4, "user": 5}
_PARAMETERS = 10
_UNREAD = ("plugin", "dcmotor")
_MUSCLE = ("timeconst", "tausmooth", "range", "force", "scale", "lmin", "lmax", "vmax", "fpmax", "fvmax")


class Named(Protocol):
    """Looks up elements by name."""

    names: dict[str, list[str]]
    jnt_range: Floats

    @property
    def autolimits(self) -> bool:
        """Whether a range implies a limit (MuJoCo's `autolimits`)."""

    def number_of(self, section: str, name: str, where: str) -> int:
        """The index of a named element."""


def _with_first(number: float) -> Floats:
    return np.concatenate([[number], np.zeros(_PARAMETERS - 1)])


@dataclass
class _Law:
    """An actuator's force, gain(length, velocity) * control + bias(length, velocity), as stored by MuJoCo."""

    gain_type: str = "fixed"
    bias_type: str = "none"
    dynamics: str = "none"
    gain: Floats = field(default_factory=lambda: _with_first(1.0))
    bias: Floats = field(default_factory=lambda: np.zeros(_PARAMETERS))
    dynamics_numbers: Floats = field(default_factory=lambda: _with_first(1.0))

    def apply(self, tag: str, values: dict[str, str], where: str) -> None:
        """Apply the attributes of one element or default class."""

        def number(key: str, default: float) -> float:
            return float(read_numbers(values[key], key, where)[0]) if key in values else default

        if tag == "general":
            self.gain_type, self.bias_type = (
                values.get("gaintype", self.gain_type),
                values.get("biastype", self.bias_type),
            )
            self.dynamics = values.get("dyntype", self.dynamics)
            for key, numbers in (("gainprm", self.gain), ("biasprm", self.bias), ("dynprm", self.dynamics_numbers)):
                if key in values:
                    given = read_numbers(values[key], key, where)[:_PARAMETERS]
                    numbers[: len(given)] = given
            return
        if tag in ("position", "intvelocity"):
            self._serve(number("kp", float(self.gain[0])), values, number)
            self.dynamics = "integrator" if tag == "intvelocity" else self.dynamics
        elif tag == "velocity":
            self._set("fixed", "affine", _with_first(number("kv", float(self.gain[0]))))
            self.bias[:3] = 0.0, 0.0, -self.gain[0]
        elif tag == "damper":
            self._set("affine", "none", np.zeros(_PARAMETERS))
            self.gain[2] = -number("kv", 0.0)
        elif tag == "cylinder":
            area = number("area", float(self.gain[0]))
            area = np.pi / 4 * number("diameter", 0.0) ** 2 if "diameter" in values else area
            self._set("fixed", "affine", _with_first(area))
            self.dynamics, self.dynamics_numbers = "filter", _with_first(number("timeconst", 1.0))
            given = read_numbers(values.get("bias", ""), "bias", where)
            self.bias[: len(given)] = given
        elif tag == "adhesion":
            self._set("fixed", "none", _with_first(number("gain", float(self.gain[0]))))
        elif tag == "muscle":
            # Two muscles are equal if all of their parameters are.
            muscle = np.array([number(key, 0.0) for key in _MUSCLE])
            self._set("muscle", "muscle", muscle)
            self.bias, self.dynamics = muscle.copy(), "muscle"

    def _serve(self, kp: float, values: dict[str, str], number: Any) -> None:
        damping = -number("kv", -float(self.bias[2])) if "dampratio" not in values else number("dampratio", 0.0)
        self._set("fixed", "affine", _with_first(kp))
        self.bias[:3] = 0.0, -kp, damping
        if "timeconst" in values:
            constant = number("timeconst", 0.0)
            self.dynamics, self.dynamics_numbers = ("filterexact" if constant else "none"), _with_first(constant)

    def _set(self, gain_type: str, bias_type: str, gain: Floats) -> None:
        self.gain_type, self.bias_type, self.gain = gain_type, bias_type, gain
        self.bias = np.zeros(_PARAMETERS)


def read_actuators(document: Document, named: Named) -> dict[str, Any]:
    """The arrays of actuators.

    Args:
        document: the file.
        named: looks up joints, tendons, sites and bodies.

    Returns:
        Arrays by their name in `mujoco.MjModel`; sets the names of actuators.

    Raises:
        TargetError: the target of an actuator does not exist, or the kind of actuator is not supported.
    """
    elements = [child for child in document.sections("actuator") if child.tag in ACTUATOR_TAGS]
    unread = sorted({element.tag for element in elements} & set(_UNREAD))
    if unread:
        raise needs_simulator(f"<{'>, <'.join(unread)}>", document.label)
    of = [document.attributes(element, element.get("class", "")) for element in elements]
    named.names["actuator"] = [attributes.text("name") for attributes in of]
    laws = [_law(attributes) for attributes in of]
    drives = [_target_of(attributes, named) for attributes in of]
    arrays: dict[str, Any] = {
        "nu": len(of),
        "na": sum(law.dynamics != "none" for law in laws),
        "actuator_trntype": np.array([kind for kind, _ in drives], dtype=int),
        "actuator_trnid": np.array([ids for _, ids in drives], dtype=int).reshape(-1, 2),
        "actuator_gear": _stack([a.row("gear", (1.0, 0, 0, 0, 0, 0)) for a in of], 6),
        "actuator_gainprm": _stack([law.gain for law in laws], _PARAMETERS),
        "actuator_biasprm": _stack([law.bias for law in laws], _PARAMETERS),
        "actuator_dynprm": _stack([law.dynamics_numbers for law in laws], _PARAMETERS),
        "actuator_gaintype": np.array([_number_of_type(_GAINS, law.gain_type) for law in laws], dtype=int),
        "actuator_biastype": np.array([_number_of_type(_BIASES, law.bias_type) for law in laws], dtype=int),
        "actuator_dyntype": np.array([_number_of_type(_DYNAMICS, law.dynamics) for law in laws], dtype=int),
        "actuator_armature": np.array([a.number("armature") for a in of]),
        "actuator_damping": np.array([a.number("damping") for a in of]),
    }
    for name in ("ctrl", "force", "act"):
        rows = [a.row(f"{name}range", (0.0, 0.0)) for a in of]
        if name == "ctrl":
            rows = [_take_over_range(a, row, drive, named) for a, row, drive in zip(of, rows, drives, strict=True)]
        limited = [a.is_limited(f"{name}limited", row, named.autolimits) for a, row in zip(of, rows, strict=True)]
        arrays[f"actuator_{name}range"] = _stack(rows, 2)
        arrays[f"actuator_{name}limited"] = np.array(limited, dtype=int)
    return arrays


def _law(attributes: Attributes) -> _Law:
    law = _Law()
    for tag, values in attributes.chain:
        if tag == "motor":
            law = _Law()
        else:
            law.apply(tag, values, attributes.where)
    return law


def _target_of(attributes: Attributes, named: Named) -> tuple[int, tuple[int, int]]:
    for key, kind in _TRANSMISSIONS.items():
        if key in attributes:
            first = named.number_of(_SECTIONS.get(key, key), attributes.text(key), attributes.where)
            other = attributes.text("refsite") or attributes.text("slidersite")
            return kind, (first, named.number_of("site", other, attributes.where) if other else -1)
    raise TargetError("the actuator acts on no joint, tendon, site or body.", where=attributes.where)


def _take_over_range(attributes: Attributes, row: Floats, drive: tuple[int, tuple[int, int]], named: Named) -> Floats:
    """The joint range that a servo adopts with inheritrange."""
    share = attributes.number("inheritrange")
    if not share or drive[0] != _TRANSMISSIONS["joint"]:
        return row
    low, high = named.jnt_range[drive[1][0]]
    middle, half = (low + high) / 2, share * (high - low) / 2
    return np.array([middle - half, middle + half])


def _number_of_type(codes: dict[str, int], name: str) -> int:
    return codes.get(name, len(codes))


def _stack(rows: list[Floats], width: int) -> Floats:
    return np.array(rows, dtype=float).reshape(-1, width)
