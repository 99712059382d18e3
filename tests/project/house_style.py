"""Measures how the source reads: names that say nothing, names that stand everywhere, and comments.

Run it for the figures: `python tests/project/house_style.py`. `test_house_style.py` holds them to the limits.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("symcheck", "properties/symcheck_properties", "reports/symcheck_reports", "reference_agents")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PRONOUNS = _words(
    """
    one ones both there what which those these this that it all any each other others rest
    """
)
IRREGULAR = _words(
    """
    said told found seen kept held made given drawn read shown known taken left met put cut set_ sent brought
    built lost paid ran run_ sought spent stood thought understood won written chosen driven eaten fallen
    forgotten grown hidden risen spoken stolen torn worn bound fit_ heard led meant
    """
)
# Adjectives and nouns that end like participles.
NO_PARTICIPLES = _words(
    """
    seed need feed speed embed indeed exceed proceed hundred sacred naked wicked red bed shed wed sled fed bred
    breed deed greed weed reed need_ tied_ embedded_ unembedded_
    """
)
VAGUE_LOCALS = _words(
    """
    found one seen told said these those here there it what which
    """
)
# Names that a protocol, a decorator of a library or the language itself gives.
PROTOCOL_NAMES = _words(
    """
    main command register forward step reset render close build apply get set check run text name action state
    observation read write close sample decorate wrapped __init__
    """
)


MOST_LINES = 450
"""Of one module."""


@dataclass
class Figures:
    """What was counted.

    Attributes:
        functions: functions and methods, dunders left out.
        participles: of these, those called by a bare participle or pronoun, as "file:name".
        homonyms: private names that four or more modules define, with the modules.
        locals: names assigned inside functions.
        vague: of these, those that say nothing of what they hold, as "file:name".
        lines: lines of code, without docstrings, comments and blank lines.
        comments: comments that are no directives (noqa, type: ignore, fmt).
        long: modules of more than `MOST_LINES` lines, with their number.
    """

    functions: int = 0
    participles: list[str] = field(default_factory=list)
    homonyms: dict[str, list[str]] = field(default_factory=dict)
    locals: int = 0
    vague: list[str] = field(default_factory=list)
    lines: int = 0
    comments: int = 0
    long: dict[str, int] = field(default_factory=dict)

    @property
    def participle_share(self) -> float:
        """Share of function names that are bare participles or pronouns."""
        return len(self.participles) / max(1, self.functions)

    @property
    def vague_share(self) -> float:
        """Share of locals that say nothing."""
        return len(self.vague) / max(1, self.locals)

    @property
    def comments_per_100(self) -> float:
        """Comments per 100 lines of code."""
        return 100 * self.comments / max(1, self.lines)


def is_participle(name: str) -> bool:
    """Whether a function name is one bare participle or pronoun.

    Example:
        >>> [is_participle(name) for name in ("_judged", "_judge_steps", "_those", "seed", "fitted_values")]
        [True, False, True, False, False]
    """
    word = name.strip("_").lower()
    if "_" in word or not word:
        return False
    regular = word.endswith("ed") and len(word) > 4 and word not in NO_PARTICIPLES
    return regular or word in IRREGULAR or word in PRONOUNS


def source_files(root: Path = ROOT) -> Iterator[Path]:
    """All modules of the packages."""
    for package in PACKAGES:
        yield from sorted((root / package).rglob("*.py"))


def measure(files: Iterator[Path] | list[Path], root: Path = ROOT) -> Figures:
    """Count names and comments.

    Args:
        files: the modules.
        root: the folder that names in the figures are relative to.
    """
    figures = Figures()
    defined: dict[str, set[str]] = defaultdict(set)
    for file in files:
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text)
        nodes = list(ast.walk(tree))  # once: a walk over all modules takes a second
        shown = str(file.relative_to(root))
        for name in _function_names(nodes):
            figures.functions += 1
            if is_participle(name):
                figures.participles.append(f"{shown}:{name}")
        for name in _top_level_names(tree):
            if name.startswith("_") and not name.startswith("__") and name.strip("_") not in PROTOCOL_NAMES:
                defined[name].add(shown)
        for name in _local_names(tree):
            figures.locals += 1
            if name in VAGUE_LOCALS:
                figures.vague.append(f"{shown}:{name}")
        figures.lines += _code_lines(text, nodes)
        figures.comments += _comments(text)
        if (length := len(text.splitlines())) > MOST_LINES:
            figures.long[shown] = length
    figures.homonyms = {name: sorted(where) for name, where in defined.items() if len(where) >= 4}
    return figures


def _function_names(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("__"):
            continue
        # A property is read like an attribute: `result.checked` is what was checked.
        if not any(_is_property(decorator) for decorator in node.decorator_list):
            yield node.name


def _is_property(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in ("property", "cached_property", "setter")


def _top_level_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def _local_names(tree: ast.Module) -> list[str]:
    """The names that each function assigns, those of functions inside it among them."""
    names: list[str] = []

    def assigned(node: ast.AST) -> set[str]:
        if isinstance(node, ast.Name):
            return {node.id} if isinstance(node.ctx, ast.Store) else set()
        inside = set().union(*map(assigned, ast.iter_child_nodes(node)))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.extend(sorted(inside))
        return inside

    assigned(tree)
    return names


def _code_lines(text: str, nodes: list[ast.AST]) -> int:
    documented: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                documented.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines = enumerate(text.splitlines(), start=1)
    return sum(1 for i, line in lines if line.strip() and not line.strip().startswith("#") and i not in documented)


def _comments(text: str) -> int:
    count = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            said = token.string.lstrip("#").strip()
            count += not said.startswith(("noqa", "type:", "fmt:", "pragma", "!"))
    return count


if __name__ == "__main__":
    found = measure(source_files())
    by_folder = Counter("/".join(item.split(":")[0].split("/")[:3]) for item in found.participles)
    print(f"participles: {found.participle_share:.1%} of {found.functions:,} function names")  # noqa: T201
    print(f"homonyms: {len(found.homonyms)} private names in four or more modules")  # noqa: T201
    for name, where in sorted(found.homonyms.items(), key=lambda row: -len(row[1])):
        print(f"    {name}: {len(where)}: {', '.join(where)}")  # noqa: T201
    print(f"vague locals: {found.vague_share:.1%} of {found.locals:,}")  # noqa: T201
    print(f"comments: {found.comments_per_100:.1f} per 100 lines of {found.lines:,}")  # noqa: T201
    print(f"modules over {MOST_LINES} lines: {found.long}")  # noqa: T201
    for folder, count in by_folder.most_common():
        print(f"    {folder}: {count}")  # noqa: T201
