"""Generates every mutant of a module: one small change to its source that a test should detect.

Only the source of the changed node is replaced, so that line numbers change as little as possible. Changes that affect
only text are left out (strings, f-strings, the arguments of `raise`), and so are annotations, imports and decorators.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_NAMES = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "minimum": "maximum",
    "maximum": "minimum",
    "floor": "ceil",
    "ceil": "floor",
    "argmin": "argmax",
    "argmax": "argmin",
    "cos": "sin",
    "sin": "cos",
}
_KEEP_ARGUMENTS = {"isinstance", "issubclass", "getattr", "hasattr", "setattr", "cast", "zip", "replace", "print"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class Mutant:
    """One change of one module.

    Attributes:
        path: of the module, relative to the repository.
        where: name of the function or class that holds the change, empty at the top of the module.
        line: where the change begins.
        lines: a test that runs one of these lines may detect the change.
        before: the changed source lines, without indentation and comments.
        after: the replacement.
        source: the whole mutated module.
    """

    path: str
    where: str
    line: int
    lines: frozenset[int]
    before: str
    after: str
    source: str

    @property
    def key(self) -> tuple[str, ...]:
        """Identifies the change independently of line numbers."""
        return self.where, self.before, self.after


def mutants_of(path: str, source: str) -> list[Mutant]:
    """All mutants of a module, in the order of its lines."""
    tree = ast.parse(source)
    found = []
    for site in _sites(tree, _Place("", frozenset(), None)):
        mutated, before, after = _splice(source, site.node, site.text)
        lines = site.place.lines or _uses(tree, site.place.statement)
        found.append(Mutant(path, site.place.where, site.node.lineno, lines, before, after, mutated))
    return found


@dataclass(frozen=True)
class _Place:
    """The place of a node: its function or class, the lines that run it (none at import), its statement."""

    where: str
    lines: frozenset[int]
    statement: ast.stmt | None
    returns: str = ""


@dataclass(frozen=True)
class _Site:
    node: ast.expr | ast.stmt
    text: str
    place: _Place


def _sites(node: ast.AST, place: _Place) -> Iterator[_Site]:
    """Walk the code whose changes affect more than text."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr | ast.Global | ast.Nonlocal):
        return
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    if isinstance(node, ast.stmt):
        place = _in_statement(node, place)
    if isinstance(node, ast.expr | ast.stmt):
        yield from (_Site(node, text, place) for text in _changes(node, place))
    if isinstance(node, ast.If | ast.While) and not isinstance(node.test, ast.Compare):
        yield _Site(node.test, f"(not ({ast.unparse(node.test)}))", place)
    if isinstance(node, ast.Raise):
        return
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant) and node.operand.value == 1:
        return  # -1 mostly means "the last" or "as many as fit", which -2 may mean too
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _sites(child, _in_field(node, name, child, place))


def _in_statement(node: ast.stmt, place: _Place) -> _Place:
    """The place inside a statement; a compound one is run by its header."""
    lines = place.lines
    if place.lines:
        body = getattr(node, "body", None)
        last = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno
        lines = frozenset(range(node.lineno, max(node.lineno, last or node.lineno) + 1))
    return _Place(place.where, lines, node, place.returns)


def _in_field(node: ast.AST, name: str, child: ast.AST, place: _Place) -> _Place:
    """The place inside a field of a node: a function body is run by its own lines, a default by any of them."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return place
    where = f"{place.where}.{node.name}".strip(".")
    if isinstance(node, ast.ClassDef):
        return _Place(where, frozenset(), place.statement)
    body = frozenset(range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1))
    returns = ast.unparse(node.returns) if node.returns is not None else ""
    return _Place(where, body, place.statement, returns)


def _uses(tree: ast.Module, statement: ast.stmt | None) -> frozenset[int]:
    """Lines in functions that read a name assigned by a statement of the module or of a class.

    All lines if there are none.
    """
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)} if statement is not None else set()
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    bodies = [node for function in functions for part in function.body for node in ast.walk(part)]
    targets = {n for n in names if isinstance(statement, ast.Assign) and n in map(ast.unparse, statement.targets)}
    used = {node.lineno for node in bodies if isinstance(node, ast.Name) and node.id in targets}
    return frozenset(used or {node.lineno for node in bodies if isinstance(node, ast.expr | ast.stmt)} or {1})


def _changes(node: ast.expr | ast.stmt, place: _Place) -> Iterator[str]:
    """The possible replacements of a node, as source."""
    for change in _CHANGES.get(type(node), ()):
        for text in change(node, place):
            yield f"({text})" if isinstance(node, ast.expr) and not isinstance(node, ast.Constant | ast.Call) else text


def _swap_comparison(node: ast.Compare, place: _Place) -> Iterator[str]:
    for i, operator in enumerate(node.ops):
        swapped = copy.deepcopy(node)
        swapped.ops[i] = _COMPARISONS[type(operator)]()
        yield ast.unparse(swapped)


def _swap_arithmetic(node: ast.BinOp, place: _Place) -> Iterator[str]:
    if isinstance(node.op, ast.MatMult):
        yield ast.unparse(ast.BinOp(node.right, node.op, node.left))
    union = isinstance(node.op, ast.BitOr) and not place.lines  # a type alias
    if type(node.op) in _ARITHMETIC and not union and not _is_text(node.left) and not _is_text(node.right):
        yield ast.unparse(ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right))


def _swap_in_place(node: ast.AugAssign, place: _Place) -> Iterator[str]:
    if type(node.op) in _ARITHMETIC and not _is_text(node.value):
        yield ast.unparse(ast.AugAssign(node.target, _ARITHMETIC[type(node.op)](), node.value))


def _change_constant(node: ast.Constant, place: _Place) -> Iterator[str]:
    if isinstance(node.value, bool):
        yield repr(not node.value)
    elif isinstance(node.value, int):
        yield repr(node.value + 1)
    elif isinstance(node.value, float):
        yield repr(2 * node.value if node.value else 1.0)


def _swap_and_or(node: ast.BoolOp, place: _Place) -> Iterator[str]:
    yield ast.unparse(ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values))


def _drop_sign_or_not(node: ast.UnaryOp, place: _Place) -> Iterator[str]:
    if isinstance(node.op, ast.USub | ast.Not):
        yield ast.unparse(node.operand)


def _negate_condition(node: ast.IfExp, place: _Place) -> Iterator[str]:
    yield ast.unparse(ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse))


def _change_call(node: ast.Call, place: _Place) -> Iterator[str]:
    function = copy.deepcopy(node.func)
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    if name in _NAMES:
        setattr(function, "id" if isinstance(function, ast.Name) else "attr", _NAMES[name])
        yield ast.unparse(ast.Call(function, node.args, node.keywords))
    plain = len(node.args) >= 2 and not any(isinstance(a, ast.Starred) or _is_text(a) for a in node.args[:2])
    if plain and name[:1].islower() and name not in _KEEP_ARGUMENTS | _NAMES.keys():  # constructors fail at once
        yield ast.unparse(ast.Call(node.func, [node.args[1], node.args[0], *node.args[2:]], node.keywords))


def _change_return(node: ast.Return, place: _Place) -> Iterator[str]:
    if node.value is not None and place.returns == "bool":
        yield f"return not ({ast.unparse(node.value)})"
    if node.value is not None and place.returns == "float":
        yield f"return -({ast.unparse(node.value)})"
    if node.value is not None and place.returns == "int":
        yield f"return ({ast.unparse(node.value)}) + 1"


def _drop_statement(node: ast.stmt, place: _Place) -> Iterator[str]:
    if isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield "pass"


_CHANGES: dict[type[ast.AST], tuple[Callable[..., Iterator[str]], ...]] = {
    ast.Compare: (_swap_comparison,),
    ast.BinOp: (_swap_arithmetic,),
    ast.AugAssign: (_swap_in_place,),
    ast.Constant: (_change_constant,),
    ast.BoolOp: (_swap_and_or,),
    ast.UnaryOp: (_drop_sign_or_not,),
    ast.IfExp: (_negate_condition,),
    ast.Call: (_change_call,),
    ast.Return: (_change_return,),
    ast.Raise: (_drop_statement,),
    ast.Expr: (_drop_statement,),
}


def _is_text(node: ast.expr) -> bool:
    text = isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
    return text or (isinstance(node, ast.BinOp) and (_is_text(node.left) or _is_text(node.right)))


def _splice(source: str, node: ast.expr | ast.stmt, text: str) -> tuple[str, str, str]:
    """The source with a node replaced, and the lines that changed, before and after."""
    lines = source.splitlines(keepends=True)
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    head = lines[first].encode()[: node.col_offset].decode()  # offsets count bytes
    tail = lines[last].encode()[node.end_col_offset :].decode()
    filler = "\n" * (last - first)  # later lines keep their numbers
    mutated = [*lines[:first], head + text + tail + filler, *lines[last + 1 :]]
    before = " ".join(_code_of(line) for line in lines[first : last + 1])
    return "".join(mutated), before, _code_of(head + text + tail)


def _code_of(line: str) -> str:
    """A line without its comment, which may be reworded while the code stays."""
    return line.split("  #")[0].strip()
