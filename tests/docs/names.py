"""Names in the prose of a page, and whether what they name exists: `missing(page)` lists those that do not.

Looked at are code spans, commands in blocks that do not run (those that do are typed by the tests), and links to files.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import typer

from reference_agents.cli.app import app as agents
from symcheck.cli.main import app as checks
from symcheck.engine.published import READABLE
from symcheck.envs import atlas, registration

sys.path.insert(0, str(Path(__file__).parent))
from pages import ROOT, blocks

_FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_LINK = re.compile(r"\]\(([^)\s#:]+)(?:#[^)]*)?\)")
_COMMAND = re.compile(r"^(?:[\w./]*/)?(symcheck|reference-agents)(?: (.*))?$")
_DOTTED = re.compile(r"^(?:sc|symcheck|symcheck_properties|symcheck_reports|reference_agents)(?:\.\w+)+")
_ENV_ID = re.compile(r"^(?:[\w.]+/)?[A-Z]\w*-v\d+$")
_ATLAS = re.compile(r"^[a-z0-9-]+/[a-z-]+$")
_PATH = re.compile(r"^(?:symcheck|properties|reports|reference_agents|tests|docs|benchmarks|examples|\.ci)/[\w./*-]*$")
_ANYWHERE = {"--help", "--version", "--install-completion", "--show-completion"}
_PYTEST = {"--symcheck-html"}


@functools.cache
def commands() -> dict[str, dict[str, set[str]]]:
    """Of both programs, every command with its options."""
    return {
        program: {
            name: {word for item in command.params for word in item.opts}
            for name, command in typer.main.get_command(app).commands.items()
        }
        for program, app in (("symcheck", checks), ("reference-agents", agents))
    }


@functools.cache
def known() -> tuple[set[str], set[str], set[str]]:
    """Environment ids, names of the atlas, and extras."""
    registration.register()
    for package in ("ale_py", "minigrid"):
        gym.register_envs(importlib.import_module(package))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return set(gym.registry), {entry.name for entry in atlas.entries()}, set(extras)


def _options(words: str) -> list[str]:
    return re.findall(r"(?<![\w-])--[a-z][\w-]*", words)


def _command(program: str, words: str) -> bool:
    name = words.split(" ")[0] if words else ""
    options = set(_options(words)) - _ANYWHERE
    if not name or name.startswith("-"):
        return not options
    return name in commands()[program] and options <= commands()[program][name]


def _dotted(name: str) -> bool:
    parts = re.sub(r"^sc\b", "symcheck", name).split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        try:
            functools.reduce(getattr, parts[length:], found)
        except AttributeError:
            return False
        return True
    return False


def _script(words: str) -> bool:
    script = ROOT / words.split(" ")[0]
    return script.exists() and all(f'"{option}"' in script.read_text() for option in _options(words))


def exists(span: str) -> bool:
    """Whether what a code span names exists; True for spans that name nothing of ours."""
    ids, entries, extras = known()
    if match := _COMMAND.match(span):
        return _command(match[1], match[2] or "")
    if match := re.match(r"^(?:[\w./]*/)?python (benchmarks/.*|examples/.*)$", span):
        return _script(match[1])
    if match := re.search(r"symcheck\[([\w,]+)\]", span):
        return set(match[1].split(",")) <= extras
    if span.startswith("--"):
        every = {word for program in commands().values() for options in program.values() for word in options}
        return set(_options(span)) <= every | _ANYWHERE | _PYTEST
    if _ENV_ID.match(span):
        return span in ids
    if re.match(r"^symcheck/\d", span):  # a schema of reports
        return span in READABLE
    if _PATH.match(span):
        return any(ROOT.glob(span.rstrip("/"))) or span in ids
    if _ATLAS.match(span):
        return span in entries
    if (match := _DOTTED.match(span)) and not span.endswith(".toml"):
        return _dotted(match[0])
    return True


def spans(page: Path) -> Iterator[str]:
    """Code spans of a page's prose, then the commands of blocks that only show."""
    text = page.read_text()
    yield from _SPAN.findall(_FENCE.sub("", text))
    for block in blocks(text):
        if block.file is not None or not block.runs:
            for line in block.body.splitlines():
                words = re.sub(r"^\s*(?:\$|-|PS>)? *|\s+#.*$", "", line)
                if _COMMAND.match(words) and " = " not in words:
                    yield words


def unnamed_files(page: Path) -> list[str]:
    """Files that a page has its reader write without saying so: the comment that names them is not shown."""
    text = page.read_text()
    return [
        match[1]
        for match in re.finditer(r"^<!-- file: (.*?) -->$", text, flags=re.M)
        if f"`{match[1]}`" not in text[: match.start()].rstrip().rpartition("\n\n")[2]
    ]


def missing(page: Path) -> list[str]:
    """What a page names and links to that does not exist."""
    unknown = [span for span in spans(page) if not exists(span)]
    links = [link for link in _LINK.findall(_FENCE.sub("", page.read_text())) if not (page.parent / link).exists()]
    return unknown + links
