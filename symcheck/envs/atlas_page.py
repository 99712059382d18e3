"""The atlas as a Markdown page: a table of all environments, then every entry with the cause of its violation.

The page is written by `symcheck atlas --write docs/atlas.md`; nothing in it is written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from symcheck.envs.atlas import AtlasEntry

# Heading, and prefixes of its environments' ids. MuJoCo is recognised by its extra and needs none.
_FAMILIES = (
    ("Classic control", ("CartPole", "MountainCar", "Pendulum", "Acrobot")),
    ("Toy text", ("FrozenLake", "CliffWalking", "Taxi", "Blackjack")),
    ("Box2D", ("LunarLander", "BipedalWalker", "CarRacing")),
    ("MuJoCo", ()),
    ("Grid world and Atari", ("symcheck/", "ALE/", "Pong", "Breakout")),
)
_HEAD = """# The symmetry atlas

The atlas lists the symmetries that common environments have exactly, approximately, or only apparently. Every entry
was verified on the environment itself with three seeds. `symcheck atlas --check` repeats this, and `symcheck
verify-env ID` checks the claims for one environment. Only exact symmetries are claimed; everything else is recorded
together with what breaks it. Sizes are the largest observed violations, in the unit of the violated quantity: a
reward, a coordinate of the next state, a total variation.

`symcheck atlas --write docs/atlas.md` writes this page from the files in `symcheck/envs/atlas_data`.
"""
_KINDS = {
    "exact": "yes",
    "approximate": "nearly",
    "partial": "in part",
    "apparent": "no",
}


def render_page(entries: Iterable[AtlasEntry]) -> str:
    """The page as Markdown.

    Args:
        entries: entries of the atlas, in any order.

    Returns:
        The text, the same for the same entries.

    Example:
        >>> from symcheck.envs import atlas
        >>> print(render_page([atlas.entry("pendulum/mirror")]).splitlines()[12])
        | [`pendulum/mirror`](#pendulum-mirror) | Pendulum-v1 | C2 | yes | | yes |
    """
    listed = sorted(entries, key=lambda entry: entry.name)
    families = [(title, [entry for entry in listed if family_of(entry) == title]) for title, _ in _FAMILIES]
    table = [
        "| symmetry | environment | group | holds | size | claim |",
        "|---|---|---|---|---|---|",
        # Sort by family, so that the table has the order of the sections.
        *(_table_row(entry) for _, members in families for entry in members),
    ]
    sections = [_section(title, members) for title, members in families if members]
    return "\n".join([_HEAD, *table, "", *sections]).rstrip() + "\n"


def family_of(entry: AtlasEntry) -> str:
    """The family of environments that an entry belongs to.

    Args:
        entry: an entry of the atlas.

    Returns:
        One of the page's headings.
    """
    if entry.needs == "mujoco":
        return "MuJoCo"
    first = entry.environments[0]
    return next((title for title, starts in _FAMILIES if first.startswith(starts)), "Grid world and Atari")


def _anchor(entry: AtlasEntry) -> str:
    return entry.name.replace("/", "-")


def _table_row(entry: AtlasEntry) -> str:
    cells = (
        f"[`{entry.name}`](#{_anchor(entry)})",
        ", ".join(entry.environments),
        short_group(entry.group),
        _KINDS[entry.kind],
        # The largest size over all properties: the table has one column for sizes.
        f"{max(entry.size.values()):.0e}" if entry.size else "",
        "yes" if entry.claim else "",
    )
    # Empty cells shrink to one space, as Markdown formatters write them.
    return re.sub(r"\| +(?=\|)", "| ", f"| {' | '.join(cells)} |")


def short_group(name: str) -> str:
    """A group's short name: "cyclic(4)" is C4, "dihedral(4)" D4; others stay unchanged.

    Example:
        >>> short_group("cyclic(4)"), short_group("D4")
        ('C4', 'D4')
    """
    for long, letter in (("cyclic(", "C"), ("dihedral(", "D"), ("symmetric(", "S")):
        # The text between the parentheses is the order or degree.
        if name.startswith(long):
            return f"{letter}{name[len(long) : -1]}"
    return name


def _section(title: str, entries: Sequence[AtlasEntry]) -> str:
    return "\n".join([f"## {title}", "", *(_render_entry(entry) for entry in entries)])


def _render_entry(entry: AtlasEntry) -> str:
    lines = [f"### {_anchor(entry)}", ""]
    claimed = "claimed" if entry.claim else "recorded, not claimed"
    environments = ", ".join(f"`{env_id}`" for env_id in entry.environments)
    lines.append(f"`{entry.name}`: {environments} under {short_group(entry.group)}. **{entry.verdict}**, {claimed}.")
    lines += ["", entry.why, ""]
    if entry.subgroup:
        lines.append(f"* What does hold: {entry.subgroup}.")
    if entry.fails:
        lines.append(f"* Fails: {', '.join(_name_with_size(entry, name) for name in entry.fails)}.")
    if entry.sometimes:
        lines.append(f"* Fails with some seeds only: {', '.join(f'`{name}`' for name in entry.sometimes)}.")
    if entry.region:
        lines.append(f"* Where: {entry.region}")
    if entry.breaks:
        lines.append("* What breaks it:")
        lines += [f"  * {text}" for text in entry.breaks]
    if entry.needs:
        lines.append(f"* Needs the extra `{entry.needs}`: `{entry.install_line}`.")
    command = f"symcheck verify-env {entry.environments[0]} --symmetry {entry.name}"
    return "\n".join([*lines, f"* Check it: `{command}`", ""])


def _name_with_size(entry: AtlasEntry, name: str) -> str:
    return f"`{name}` (by {entry.size[name]:.1e})" if name in entry.size else f"`{name}`"
