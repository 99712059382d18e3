"""Reads an MJCF file as one tree, with includes inserted, default classes resolved and numbers parsed.

An attribute is looked up in the element, then in its default class, then in the classes around that one. Lists may be
partial: `friction="2"` replaces the first of the three numbers of the class and keeps the others.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.errors import TargetError

ACTUATOR_TAGS = (
    *("general", "motor", "position", "velocity", "intvelocity", "damper"),
    *("cylinder", "muscle", "adhesion", "plugin", "dcmotor"),
)
_Class = dict[str, list[tuple[str, dict[str, str]]]]  # kind of element to (tag, values), outermost first
# Elements that change the tree in unsupported ways.
_UNREAD = ("replicate", "attach", "composite", "flexcomp")


@dataclass(frozen=True)
class Attributes:
    """The attributes of one element: the values of its classes, outermost first, then its own.

    Attributes:
        chain: (tag, values) in increasing precedence.
        where: the name of the element in messages.
    """

    chain: tuple[tuple[str, dict[str, str]], ...]
    where: str

    def text(self, key: str, default: str = "") -> str:
        """The innermost value of an attribute."""
        for _, values in reversed(self.chain):
            if key in values:
                return values[key]
        return default

    def __contains__(self, key: str) -> bool:
        return any(key in values for _, values in self.chain)

    def numbers(self, key: str, default: Sequence[float] = ()) -> Floats:
        """The numbers of an attribute; partial lists replace the leading ones.

        Raises:
            TargetError: an item of the list is not a number.
        """
        result = np.array(default, dtype=float)
        for _, values in self.chain:
            if key in values:
                given = read_numbers(values[key], key, self.where)
                result = np.concatenate([given, result[len(given) :]])
        return result

    def number(self, key: str, default: float = 0.0) -> float:
        """The first number of an attribute."""
        numbers = self.numbers(key, (default,))
        return float(numbers[0]) if len(numbers) else default

    def triple(self, key: str, default: Sequence[float] = (0.0, 0.0, 0.0)) -> Floats:
        """Read three numbers.

        Raises:
            TargetError: there are more or fewer.
        """
        return self.row(key, default)

    def row(self, key: str, default: Sequence[float]) -> Floats:
        """Read at most as many numbers as the default has.

        Raises:
            TargetError: there are more.
        """
        numbers = self.numbers(key, default)
        if len(numbers) != len(default):
            raise TargetError(f"expected {len(default)} numbers in {key}, got {len(numbers)}.", where=self.where)
        return numbers

    def is_limited(self, key: str, bounds: Floats, auto: bool) -> bool:
        """Whether a range applies: given by `key` or, with autolimits, by the presence of a range."""
        said = self.text(key, "auto")
        return said == "true" or (said == "auto" and auto and bool(np.any(bounds != 0)))


def read_numbers(text: str, key: str, where: str) -> Floats:
    """The numbers of an attribute's text.

    Raises:
        TargetError: an item is not a number.
    """
    try:
        return np.array([float(word) for word in text.split()])
    except ValueError as error:
        raise TargetError(f"expected numbers in {key}, got {text!r}.", where=where) from error


class Document:
    """An MJCF file with its includes.

    Args:
        text: the text of the file.
        label: names it in messages.
        folder: the folder in which included files are searched for; None for text without a file.

    Attributes:
        root: the `<mujoco>` element, with includes inserted.
        label: the given label.

    Raises:
        TargetError: the text is not MJCF, an included file is missing, or an element is not supported.
    """

    def __init__(self, text: str, label: str, folder: Path | None) -> None:
        self.label = label
        self.root = _parse_xml(text, label)
        if self.root.tag != "mujoco":
            raise TargetError(f"expected an MJCF file with the element <mujoco>, got <{self.root.tag}>.", where=label)
        self._include(self.root, folder or Path(), folder or Path(), ())
        self._refuse()
        self._classes: dict[str, _Class] = {"main": {}}
        for element in self.root.findall("default"):
            self._read_default(element, "main", element.get("class") or "main")
        # The merged attributes of a section that may occur several times in the file.
        self.compiler = self._settings("compiler")
        self.option = self._settings("option")

    def sections(self, tag: str) -> list[Any]:
        """The children of all sections of a name, in the order of the file."""
        return [child for section in self.root.findall(tag) for child in section]

    def attributes(self, element: Any, childclass: str = "", *, tag: str = "") -> Attributes:
        """The attributes of an element with those of its default class.

        Args:
            element: an element of the tree.
            childclass: the class given by the enclosing bodies; "" for the outermost.
            tag: the tag whose defaults apply, if it is not the element's own.

        Raises:
            TargetError: there is no such class.
        """
        where = f"{self.label}: {element.tag} {element.get('name') or ''}".rstrip()
        chain = self._chain(tag or element.tag, element.get("class") or childclass or "main", where)
        return Attributes((*chain, (element.tag, dict(element.attrib))), where)

    def _chain(self, tag: str, name: str, where: str) -> list[tuple[str, dict[str, str]]]:
        if name not in self._classes:
            known = ", ".join(sorted(self._classes))
            raise TargetError(f"there is no default class {name!r}; there are {known}.", where=where)
        return self._classes[name].get(_kind(tag), [])

    def _read_default(self, element: Any, parent: str, name: str) -> None:
        if parent == name or element in self.root:
            # The outermost class is the main class, whatever its name.
            self._classes[name] = self._classes["main"]
        elif name not in self._classes:
            # A class inherits the values that its parent class has at this point, not later ones.
            self._classes[name] = {kind: list(values) for kind, values in self._classes[parent].items()}
        for child in element:
            if child.tag != "default":
                self._classes[name].setdefault(_kind(child.tag), []).append((child.tag, dict(child.attrib)))
        for child in element.findall("default"):
            if not child.get("class"):
                raise TargetError("a nested default class needs a name.", where=self.label)
            self._read_default(child, name, child.get("class"))

    def _settings(self, tag: str) -> Attributes:
        chain = tuple((tag, dict(element.attrib)) for element in self.root.findall(tag))
        return Attributes(chain, f"{self.label}: {tag}")

    def _include(self, element: Any, top: Path, folder: Path, above: tuple[Path, ...]) -> None:
        """Replace every `<include>` by the content of its file."""
        children: list[Any] = []
        for child in list(element):
            if child.tag != "include":
                self._include(child, top, folder, above)
                children.append(child)
                continue
            name = child.get("file", "")
            # Relative to the model's file, or to the including file.
            candidates = [top / name, folder / name]
            path = next((path for path in candidates if path.is_file()), None)
            if path is None:
                raise TargetError(f"there is no file {candidates[0]} to include.", where=self.label)
            if path.resolve() in above:
                raise TargetError(f"{path} includes itself.", where=self.label)
            try:
                text = path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise TargetError(f"{path} cannot be read: {error}.", where=self.label) from error
            part = _parse_xml(text, str(path))
            self._include(part, top, path.parent, (*above, path.resolve()))
            children.extend(part)
        element[:] = children

    def _refuse(self) -> None:
        unread = sorted({element.tag for element in self.root.iter() if element.tag in _UNREAD})
        if unread:
            raise needs_simulator(f"<{'>, <'.join(unread)}>", self.label)


def needs_simulator(what: str, where: str) -> TargetError:
    """The error for a part of a file that only MuJoCo's compiler supports."""
    return TargetError(
        f"{what} cannot be read without MuJoCo.", where=where, remedy='Install MuJoCo: pip install "symcheck[mujoco]".'
    )


def _kind(tag: str) -> str:
    # All actuators share one set of defaults, under any of their names.
    return "actuator" if tag in ACTUATOR_TAGS else tag


def _parse_xml(text: str, label: str) -> Any:
    try:
        # An encoding declaration applies to the file, not to decoded text.
        return ElementTree.fromstring(text.encode("utf-8") if "encoding" in text[:100] else text)
    except ElementTree.ParseError as error:
        raise TargetError(f"expected MJCF, got text that is not XML: {error}.", where=label) from error
