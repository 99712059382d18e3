"""Whether a captured graph answers to L x with K of what it answers to x, by writing out both.

No layer is judged by itself: the graph is computed on entries that are numbered terms (`terms`). Averages over a group,
tied copies, and layers whose weights are tied in whatever way, give the same terms for f(L x) as for K f(x); what is
inside of an average is not followed at all. That the graph holds for every call, the gate shows.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import fx
from torch.utils._pytree import tree_flatten

import symcheck.engine.networks.terms_axes
import symcheck.engine.networks.terms_movement
import symcheck.engine.networks.terms_products  # noqa: F401
from symcheck.engine.networks.capture import Capture
from symcheck.engine.networks.claims import InputClaim, OutputClaim
from symcheck.engine.networks.precision import float64_default
from symcheck.engine.networks.terms import NotComparedError, Terms
from symcheck.engine.networks.terms_operators import OPERATORS, Entries, Operation, make_block, pointwise
from symcheck.engine.networks.values import SignedPermutation

SAMPLES = 2
"""Samples of the batch that is written out: the gate shows that each is treated as any other, in batches of any size
from 2 on."""
_WRAPPING = frozenset([torch.uint8, torch.int8, torch.int16, torch.int32])
"""Dtypes whose sums are not those of real numbers."""
_UNSET = frozenset(["empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted"])


@dataclass(frozen=True)
class Comparison:
    """That f(L x) and K f(x) are the same terms.

    Attributes:
        terms: how many there are.
        ties: equations of input entries; where one holds, nothing was shown.
        kind: "terms", or "matrices" where linear forms were compared (`matrix_comparison`).
    """

    terms: int
    ties: tuple[str, ...] = ()
    kind: str = "terms"


def compare_images(
    captured: Capture, inputs: InputClaim, outputs: Sequence[OutputClaim], *, deadline: float | None = None
) -> Comparison | None:
    """Whether the graph carries the action, by its terms; None where they differ or cannot be written out.

    Args:
        captured: the graph, of which the gate has shown that it holds for every value, batch and call.
        inputs: how the input moves.
        outputs: how each output should move.
        deadline: of `time.monotonic`, after which it gives up.

    Returns:
        What was compared.
    """
    motions = [inputs.motions, *(claim.motions for claim in outputs)]
    if not all(isinstance(motion, SignedPermutation) for given in motions for motion in given):
        return None
    for off_ties in (False, True):
        terms = Terms(off_ties=off_ties, deadline=deadline)
        try:
            holds = _carries_action(_Writer(captured, terms), inputs, outputs)
        except NotComparedError:
            return None
        except (RuntimeError, TypeError, ValueError, IndexError, KeyError, AttributeError, NotImplementedError):
            return None  # an operator with arguments that its rule does not know, or that runs on floats only
        ties = _tied_inputs(terms, inputs.shape, 1 if captured.size is None else SAMPLES)
        if holds and ties is not None:
            return Comparison(terms.number("end") - 1, ties)
        if holds or not terms.compares:
            return None
    return None


def _tied_inputs(terms: Terms, shape: tuple[int, ...], samples: int) -> tuple[str, ...] | None:
    """The equations that were left out, of the first of some samples; None where they are not of inputs alone.

    Inputs are seldom equal. What is computed of them may be equal on whole regions, as two units that are both off.
    """
    count = math.prod(shape)
    ties = set()
    for pair in terms.ties:
        if any(abs(entry) > samples * count for entry in pair):
            return None
        places = sorted((abs(entry) - 1, 1 if entry > 0 else -1) for entry in pair if entry)
        if places[0][0] < count:  # the first sample stands for all
            names = ["x" + "".join(f"[{int(k)}]" for k in np.unravel_index(place, shape)) for place, _ in places]
            opposite = "-" if len(places) == 2 and places[0][1] != places[1][1] else ""
            ties.add(f"{names[0]} = {opposite}{names[1]}" if len(names) == 2 else f"{names[0]} = 0")
    return tuple(sorted(ties))


def _carries_action(writer: _Writer, inputs: InputClaim, outputs: Sequence[OutputClaim]) -> bool:
    samples = 1 if writer.captured.size is None else SAMPLES
    size = math.prod(inputs.shape)
    x = writer.terms.inputs(samples * size).reshape(samples, size)
    usual = writer.write_out(x.reshape(samples, *inputs.shape))
    for generator, motion in enumerate(inputs.motions):
        moved = writer.write_out(_move(motion, x).reshape(samples, *inputs.shape))
        for claim in outputs:
            if not torch.equal(_move(claim.motions[generator], usual[claim.path]), moved[claim.path]):
                return False
    return True


def _move(motion: Any, numbers: torch.Tensor) -> torch.Tensor:
    """The image of stacked entries, shape (samples, size)."""
    flat = numbers.reshape(len(numbers), -1)
    moved = torch.empty_like(flat)
    moved[:, torch.from_numpy(motion.index)] = flat * torch.from_numpy(motion.sign)
    return moved


class _Writer:
    """Writes a graph out on entries that are numbered terms.

    Args:
        captured: the graph.
        terms: the table.
    """

    def __init__(self, captured: Capture, terms: Terms) -> None:
        self.captured = captured
        self.terms = terms
        self._cache: dict[Any, Any] = {}
        self._constants: dict[fx.Node, Any] = {}
        self._written = _roots_of_writes(captured.graph)

    def write_out(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """The entries of every output, shape (samples, size), at an input of entries, shape (samples, *shape)."""
        results = tree_flatten(self.values_at(x)[next(iter(reversed(self.captured.graph.nodes)))])[0]
        operation = Operation(self.terms, None, [((), torch.float64)], self._cache)
        checks = results[len(self.captured.outputs) :]
        if not all((operation.numbers(item, torch.bool) == self.terms.constant(True)).all() for item in checks):
            raise NotComparedError("a check of arguments")
        named = zip(self.captured.outputs, results, strict=False)
        return {path: operation.numbers(result, torch.float64).reshape(len(x), -1) for path, result in named}

    def values_at(self, x: torch.Tensor) -> dict[fx.Node, Any]:
        """What every node holds: entries, or what no input reaches."""
        values: dict[fx.Node, Any] = {}
        *held, given = (node for node in self.captured.graph.nodes if node.op == "placeholder")
        values |= {node: tensor.detach() for node, tensor in zip(held, self.captured.state.values(), strict=True)}
        values[given] = Entries(x.clone(), torch.float64)
        with torch.no_grad(), float64_default():
            for node in self.captured.graph.nodes:
                if node.op == "get_attr":
                    values[node] = getattr(self.captured.module, str(node.target))
                elif node.op == "call_function":
                    values[node] = self._compute(node, values)
                elif node.op == "output":
                    values[node] = fx.map_arg(node.args[0], lambda item: values[item])
        return values

    def _compute(self, node: fx.Node, values: dict[fx.Node, Any]) -> Any:
        args: Any
        kwargs: Any
        args, kwargs = fx.map_arg((node.args, node.kwargs), lambda item: values[item])
        target: Any = node.target
        if node in self._constants:
            return self._constants[node]
        depends = any(isinstance(leaf, Entries) for leaf in tree_flatten((args, kwargs))[0])
        if target is operator.getitem:
            return args[0][args[1]]
        if not isinstance(target, torch._ops.OpOverload):
            if depends:
                raise NotComparedError(str(target))
            return target(*args, **kwargs)
        name = str(target._schema.name).removeprefix("aten::")
        if name.startswith("sym_"):
            return self._size(target, args)
        if torch.Tag.nondeterministic_seeded in target.tags:
            raise NotComparedError(name)
        if not depends:
            return self._compute_once(node, target, name, args, kwargs)
        return self._apply_rule(node, target, args, kwargs)

    def _size(self, target: Any, args: Any) -> Any:
        tensor = args[0].numbers if isinstance(args[0], Entries) else args[0]
        return target(tensor, *args[1:])

    def _compute_once(self, node: fx.Node, target: Any, name: str, args: Any, kwargs: Any) -> Any:
        """What no input reaches is computed, once; what is written into later is entries from the start."""
        if target._schema.is_mutable:
            raise NotComparedError(name)
        shape, dtype = self._outputs(node)[0] if name in _UNSET else ((), torch.float64)
        if name in _UNSET:
            return Entries(self.terms.unset(shape), dtype)
        result = target(*args, **kwargs)
        if node in self._written and isinstance(result, torch.Tensor):
            operation = Operation(self.terms, target, [(tuple(result.shape), result.dtype)], self._cache)
            return Entries(operation.numbers(result, result.dtype).clone(), result.dtype)
        if not any(source in self._written for source in node.all_input_nodes):
            self._constants[node] = result
        return result

    def _apply_rule(self, node: fx.Node, target: Any, args: Any, kwargs: Any) -> Any:
        operation = Operation(self.terms, target, self._outputs(node), self._cache)
        if any(dtype in _WRAPPING for _, dtype in operation.outputs):
            raise NotComparedError(f"{operation.name} of short integers")
        writes = target._schema.is_mutable
        if torch.Tag.inplace_view in target.tags:
            target(args[0].numbers, *args[1:], **kwargs)
            return args[0]
        if writes and not (_writes_first(target) and isinstance(args[0], Entries)):
            raise NotComparedError(operation.name)
        rule = OPERATORS.get(operation.name)
        if rule is None:
            rule = pointwise if torch.Tag.pointwise in target.tags and len(operation.outputs) == 1 else make_block
        result = rule(operation, *args, **kwargs)
        if writes:
            args[0].numbers.copy_(result)
            return args[0]
        if isinstance(result, torch.Tensor):
            return Entries(result, operation.dtype)
        return [
            None if item is None else Entries(item, dtype)
            for item, (_, dtype) in zip(result, operation.outputs, strict=True)
        ]

    def _outputs(self, node: fx.Node) -> list[tuple[tuple[int, ...], torch.dtype]]:
        """Shapes and dtypes of what a node returns, for the samples that are written out."""
        tensors = [item for item in tree_flatten(node.meta["val"])[0] if isinstance(item, torch.Tensor)]
        return [(tuple(self._concrete(n) for n in tensor.shape), tensor.dtype) for tensor in tensors]

    def _concrete(self, size: Any) -> int:
        if not isinstance(size, torch.SymInt):
            return int(size)
        return int(size.node.expr.subs(self.captured.size, SAMPLES))


def _roots_of_writes(graph: fx.Graph) -> set[fx.Node]:
    """What is written into, with all of which it is a view."""
    roots: set[fx.Node] = set()
    for node in graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if schema is None or not schema.is_mutable or not node.args:
            continue
        place = node.args[0]
        while isinstance(place, fx.Node) and place not in roots:
            roots.add(place)
            aliases = [
                argument.alias_info is not None for argument in getattr(place.target, "_schema", schema).arguments
            ]
            if (
                place.op != "call_function"
                or not place.args
                or (place.target is not operator.getitem and not any(aliases))
            ):
                break
            place = place.args[0]
    return roots


def _writes_first(target: Any) -> bool:
    """Whether an operator writes into its first operand alone."""
    marked = [item.alias_info is not None and item.alias_info.is_write for item in target._schema.arguments]
    return marked[0] and not any(marked[1:])
