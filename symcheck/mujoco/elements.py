"""Names for the elements of a model in messages: their own name, or the element that they belong to."""

from __future__ import annotations

from typing import Any

_SECTIONS = {
    "body": "mjOBJ_BODY",
    "joint": "mjOBJ_JOINT",
    "geom": "mjOBJ_GEOM",
    "site": "mjOBJ_SITE",
    "actuator": "mjOBJ_ACTUATOR",
    "tendon": "mjOBJ_TENDON",
}


def name_of(model: Any, section: str, index: int) -> str:
    """The name of an element in the file; "" if it has none.

    Args:
        model: a `mujoco.MjModel`.
        section: "body", "joint", "geom", "site", "actuator" or "tendon".
        index: the index.

    Returns:
        The name.
    """
    # Models that are read without a simulator store their names.
    names = getattr(model, "names", None)
    if isinstance(names, dict):
        return str(names[section][int(index)]) if int(index) < len(names.get(section, ())) else ""
    import mujoco

    return mujoco.mj_id2name(model, int(getattr(mujoco.mjtObj, _SECTIONS[section])), int(index)) or ""


def title(model: Any, section: str, index: int) -> str:
    """An element in words: "joint 'hip_1'", or "geom 2 (unnamed, of body 'torso')".

    Args:
        model: a `mujoco.MjModel`.
        section: as in `name_of`.
        index: the index.

    Returns:
        The words.

    Example:
        >>> from symcheck.mujoco.loading import load_model
        >>> model = load_model("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>").model
        >>> title(model, "geom", 0)
        "geom 0 (unnamed, of body 'world')"
    """
    name = name_of(model, section, index)
    if name:
        return f"{section} '{name}'"
    owner = _owner(model, section, int(index))
    return f"{section} {index} (unnamed{owner})"


def _owner(model: Any, section: str, index: int) -> str:
    if section == "joint":
        return f", of {title(model, 'body', int(model.jnt_bodyid[index]))}"
    if section == "geom":
        return f", of {title(model, 'body', int(model.geom_bodyid[index]))}"
    if section == "body" and index:
        return f", child of {title(model, 'body', int(model.body_parentid[index]))}"
    if section == "actuator":
        return f", of joint '{name_of(model, 'joint', int(model.actuator_trnid[index, 0]))}'"
    return ""
