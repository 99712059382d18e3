"""The pattern of a code's sentence: "every <quantity> was <value> on both sides".

It is derived from the template, so `symcheck explain` shows the same text as reports. Optional parts are in square
brackets, alternatives are separated by a bar, and repeated parts end with an ellipsis.
"""

from __future__ import annotations

from collections.abc import Iterable

from jinja2 import nodes

from symcheck.statements.statement import environment, sentence_of


def pattern_of(code: str) -> str:
    """The sentence of a code, with the names of its fields in angle brackets.

    Args:
        code: a key of one of the tables.

    Raises:
        KeyError: no table has the code.

    Example:
        >>> pattern_of("SYM014")
        'the claim holds with sign <sign> on <coordinate>'
        >>> pattern_of("too_few")
        'at least <least> checks are needed, but only <checked> could be made: raise --samples'
    """
    template = environment().parse(sentence_of(code))
    return " ".join(_written(template.body).split())


def _written(body: Iterable[nodes.Node]) -> str:
    return "".join(_written_node(node) for node in body)


def _written_node(node: nodes.Node) -> str:
    if isinstance(node, nodes.TemplateData):
        return node.data
    if isinstance(node, nodes.Output):
        return _written(node.nodes)
    if isinstance(node, nodes.If):
        parts = [_written(node.body), *(_written(other.body) for other in node.elif_), _written(node.else_)]
        return f"[{' | '.join(part for part in parts if part)}]"
    if isinstance(node, nodes.For):
        return f"{_written(node.body)} ..."
    if isinstance(node, nodes.Filter) and node.name == "plural":
        # The noun in the plural, because the count is unknown.
        texts = [argument.value for argument in node.args if isinstance(argument, nodes.Const)]
        many = texts[1] if len(texts) > 1 else f"{texts[0]}s" if texts else ""
        return f"{_field(node)} {many}".rstrip()
    # Assignments and macros produce no text.
    return _field(node) if isinstance(node, nodes.Expr) else ""


def _field(node: nodes.Node) -> str:
    """The field in an expression: the first one if there are several, the constant if there is none."""
    if isinstance(node, nodes.Const):
        return str(node.value)
    names = [node] if isinstance(node, nodes.Name) else node.find_all(nodes.Name)
    # Text that depends on the position in a loop is a separator.
    return next((f"<{name.name}>" for name in names if name.name != "loop"), "")
