"""Memory that tensors of a captured graph share: which of them a write changes.

Some functions return their argument, a view of it or a copy, depending on its layout, dtype or device (`reshape`,
`contiguous`, `float`). A write into the result then changes the argument in some calls and not in others.
"""

from __future__ import annotations

import operator

import torch
from torch import fx

from symcheck.engine.networks.capture.places import place_of

_EITHER_NAMES = (
    "contiguous reshape reshape_as flatten ravel to type type_as float double half bfloat16 cpu cuda as_tensor asarray "
    "resolve_conj resolve_neg"
)
VIEW_OR_COPY = frozenset(_EITHER_NAMES.split())
"""Functions that return a copy of their argument, or a result that shares memory with it."""
_COPYING = frozenset(["aten.clone.default", "aten._unsafe_view.default"])


def source_of(node: fx.Node) -> fx.Node | None:
    """The node whose memory a node shares; None if it has its own."""
    if node.op != "call_function" or not node.all_input_nodes:
        return None
    if node.target is operator.getitem:
        return node.all_input_nodes[0]
    if not isinstance(node.target, torch._ops.OpOverload):
        return None
    shares = any(argument.alias_info is not None for argument in node.target._schema.arguments)
    return node.all_input_nodes[0] if shares else None


def root_of(node: fx.Node) -> fx.Node:
    """The node that owns the memory of a node."""
    while (source := source_of(node)) is not None:
        node = source
    return node


def written_into(node: fx.Node) -> list[fx.Node]:
    """The tensors that an operator writes into."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return []
    schema = node.target._schema
    if "batch_norm" in schema.name:  # writes its statistics only where it has some, and trains
        if "no_training" in schema.name:
            return []
        kept = [item for item in node.args[3:5] if isinstance(item, fx.Node)]
        return kept if node.args[5] else []
    given = dict(zip((argument.name for argument in schema.arguments), node.args, strict=False)) | node.kwargs
    marked = [argument.name for argument in schema.arguments if argument.alias_info and argument.alias_info.is_write]
    return [item for name in marked if isinstance(item := given.get(name), fx.Node)]


def written_through_a_copy(graph: fx.Graph) -> fx.Node | None:
    """The first view or copy of a tensor of which one side is written to and the other is read later."""
    order = {node: place for place, node in enumerate(graph.nodes)}
    origins = {node: _origin(node) for node in graph.nodes}
    for writer in graph.nodes:
        for written in written_into(writer):
            root, crossed = origins[written]
            relatives = [node for node, (base, _) in origins.items() if base is root]
            for node in relatives if len(relatives) > 1 else ():
                between = [item for item in crossed ^ origins[node][1] if order[item] < order[writer]]
                if between and any(order[user] > order[writer] for user in node.users):
                    return min(between, key=order.__getitem__)
    return None


def _origin(node: fx.Node) -> tuple[fx.Node, frozenset[fx.Node]]:
    """The node from whose memory a node derives, and the views or copies between the two."""
    crossed = set()
    while True:
        place = place_of(node)
        either = place is not None and place.operation in VIEW_OR_COPY
        copies = either and str(node.target) in _COPYING
        if copies or (either and source_of(node) is not None):
            crossed.add(node)
        source = node.all_input_nodes[0] if copies else source_of(node)
        if source is None:
            return node, frozenset(crossed)
        node = source
