"""Mirrors of MuJoCo robots from the names, positions and axes of the model: new candidates, and names for known ones.

The search over effects works without names. The model provides names, and shows which of its parameters break the
mirror.
"""

from __future__ import annotations

from dataclasses import dataclass

from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.maps import SignedMap
from symcheck.entries.forms import AffineEntry
from symcheck.errors import SymcheckError

_PLANES = {"xz": "left and right", "yz": "front and back"}
_MOST_SAID = 2


@dataclass(frozen=True)
class NamedMirror:
    """A mirror derived from a model.

    Attributes:
        label: the name in reports, "mirror in the plane xz".
        state: the map of (qpos, qvel).
        differences: parameters of the model that break it, in words.
    """

    label: str
    state: SignedMap
    differences: tuple[str, ...]

    @property
    def remark(self) -> str:
        """A sentence about the parameters that break it; "" if there are none."""
        if not self.differences:
            return ""
        shown = "; ".join(self.differences[:_MOST_SAID])
        more = f"; and {len(self.differences) - _MOST_SAID} more" if len(self.differences) > _MOST_SAID else ""
        return f"{self.label}: parameters of the model break it: {shown}{more}"


def named_mirrors(lab: Laboratory) -> list[NamedMirror]:
    """The mirrors of a MuJoCo model, derived from its names and axes; empty for other environments.

    Args:
        lab: the environment.

    Returns:
        The mirrors whose state map is a signed permutation of the state vector, without an offset.
    """
    base = lab.stepper.base
    if not hasattr(base, "init_qpos") or not hasattr(base, "model"):
        return []
    from symcheck.mujoco.mirror import mirror

    mirrors = []
    for plane, sides in _PLANES.items():
        try:
            derived = mirror(base, plane)
        except SymcheckError:  # no counterpart in that plane
            continue
        entry = derived.state[0] if derived.state else None
        if (
            not isinstance(entry, AffineEntry)
            or entry.index is None
            or entry.offset is not None
            or entry.dim != lab.dim
        ):
            continue
        state = SignedMap.of(entry.index, entry.sign)
        differences = tuple(str(difference) for difference in derived.differences)
        mirrors.append(NamedMirror(f"mirror in the plane {plane} ({sides})", state, differences))
    return mirrors
