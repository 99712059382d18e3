"""Whether a captured graph carries an action by matrices: linear maps, gates, norms, products, and invariant functions.

The graph is computed on forms (`matrix_values`): the batch holds, in place of samples, the coefficients of the number 1
and of every atom. Linear operators act on coefficients as on samples, so that they run as they are; the others follow
the laws. Elements that are tested stand for a continuous group because they generate a dense subgroup of it.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import fx
from torch.utils._pytree import tree_flatten, tree_map

from symcheck.array_types import Floats
from symcheck.engine.networks.batch_axis import batches_outside
from symcheck.engine.networks.capture import Capture
from symcheck.engine.networks.claims import InputClaim, OutputClaim, as_affine
from symcheck.engine.networks.comparison import Comparison
from symcheck.engine.networks.matrix_values import CARRIED, MOST_ATOMS, Atoms, NoRoomError, NotCarriedError
from symcheck.engine.networks.precision import float64_default

_LINEAR_NAMES = (
    "view _unsafe_view reshape _reshape_alias expand permute transpose t select slice unsqueeze squeeze unbind split "
    "split_with_sizes chunk narrow diagonal detach alias flip roll repeat clone contiguous lift_fresh_copy "
    "index_select index neg sum mean cumsum mv mm addmm bmm baddbmm convolution avg_pool2d constant_pad_nd "
    "_native_batch_norm_legit_no_training tril triu"
)
_LINEAR = frozenset(_LINEAR_NAMES.split())
_ADDING = frozenset(["add", "sub", "rsub"])
_JOINING = frozenset(["cat", "stack"])
# They read the shape and the type of a tensor, and no number.
_MAKING = frozenset(["new_zeros", "new_ones", "new_full", "zeros_like", "ones_like", "full_like"])
_ODD_NAMES = "tanh sin tan asin atan sinh asinh atanh erf sign sgn trunc round reciprocal"
_ODD = frozenset(_ODD_NAMES.split())
_EVEN = frozenset(["abs", "cos", "cosh"])
_OF_ALL_NAMES = "_softmax _log_softmax native_layer_norm logsumexp amax amin var std prod max min sort topk"
_OF_ALL = frozenset(_OF_ALL_NAMES.split())
_SIZES = (257, 1021, MOST_ATOMS)


@dataclass(frozen=True)
class Layout:
    """Where a tensor keeps its batch: an axis of outside * room * inside entries.

    Attributes:
        axis: counted from the end.
        outside: how many entries run outside the samples.
    """

    axis: int
    outside: int


@dataclass(eq=False)
class Form:
    """A tensor that depends on the input: its batch holds the coefficients of the number 1 and of all atoms."""

    tensor: torch.Tensor
    layout: Layout


def compare_by_matrices(captured: Capture, inputs: InputClaim, outputs: Sequence[OutputClaim]) -> Comparison | None:
    """Whether the graph carries the action, by the laws for matrices; None where they do not show it.

    Args:
        captured: the graph, of which the gate has shown that it holds for every value, batch and call.
        inputs: how the input moves; as data.
        outputs: how each output should move.

    Returns:
        What was compared.
    """
    return compare_or_name(captured, inputs, outputs)[0]


def compare_or_name(
    captured: Capture, inputs: InputClaim, outputs: Sequence[OutputClaim]
) -> tuple[Comparison | None, str]:
    """What `compare_by_matrices` returns, and the operator at which the laws end; "" where they reach the outputs.

    Args:
        captured: as there.
        inputs: as there.
        outputs: as there.
    """
    if captured.size is None or captured.assumptions or any(callable(m) for c in outputs for m in c.motions):
        return None, ""
    maps = [as_affine(motion) for motion in inputs.motions]
    pairs = [(affine.matrix, affine.offset) for affine in maps]
    for room in _SIZES:
        if room <= len(pairs[0][1]):
            continue
        atoms = Atoms(pairs, room)
        try:
            shown = _outputs_move_as_claimed(_Follower(captured, atoms), inputs, outputs)
        except NoRoomError:
            continue
        except NotCarriedError as error:
            return None, str(error)
        except (RuntimeError, TypeError, ValueError, IndexError, KeyError, AttributeError, NotImplementedError):
            return None, ""  # an operator with arguments that its rule does not know
        except np.linalg.LinAlgError:
            return None, ""
        return (Comparison(atoms.count, kind="matrices") if shown else None), ""
    return None, ""


def _outputs_move_as_claimed(follower: _Follower, inputs: InputClaim, outputs: Sequence[OutputClaim]) -> bool:
    atoms = follower.atoms
    start = torch.zeros(atoms.room, atoms.inputs, dtype=torch.float64)
    start[1 : 1 + atoms.inputs] = torch.eye(atoms.inputs, dtype=torch.float64)
    answered = follower.run(start.reshape(atoms.room, *inputs.shape))
    for claim in outputs:
        forms = answered[claim.path]
        for motion, image in zip(claim.motions, atoms.images(forms), strict=True):
            affine = as_affine(motion)
            wanted = affine.matrix @ forms
            wanted[:, 0] += affine.offset
            size = np.abs(affine.matrix) @ np.abs(forms).max(axis=1, initial=0.0) + np.abs(affine.offset)
            if not (np.abs(image - wanted).max(axis=1, initial=0.0) <= CARRIED * size).all():
                return False
    return True


class _Follower:
    """Computes a graph on forms.

    Args:
        captured: the graph.
        atoms: the atoms, which grow.
    """

    def __init__(self, captured: Capture, atoms: Atoms) -> None:
        self.captured = captured
        self.atoms = atoms
        self._outside = batches_outside(captured)

    def run(self, x: torch.Tensor) -> dict[str, Floats]:
        """The forms of every output, shape (entries, room)."""
        values: dict[fx.Node, Any] = {}
        *held, given = (node for node in self.captured.graph.nodes if node.op == "placeholder")
        values |= {node: tensor.detach() for node, tensor in zip(held, self.captured.state.values(), strict=True)}
        values[given] = Form(x, Layout(-x.ndim, 1))
        results: list[fx.Node] = []
        with torch.no_grad(), float64_default():
            for node in self.captured.graph.nodes:
                if node.op == "get_attr":
                    values[node] = getattr(self.captured.module, str(node.target))
                elif node.op == "call_function":
                    values[node] = self._call(node, values)
                elif node.op == "output":
                    results = tree_flatten(node.args[0])[0]
        return {path: self._rows(values[node]) for path, node in zip(self.captured.outputs, results, strict=True)}

    def _call(self, node: fx.Node, values: dict[fx.Node, Any]) -> Any:
        args: Any
        kwargs: Any
        args, kwargs = fx.map_arg((node.args, node.kwargs), lambda item: values[item])
        target: Any = node.target
        forms = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, Form)]
        if target is operator.getitem:
            return args[0][args[1]]
        if not isinstance(target, torch._ops.OpOverload):
            return target(*args, **kwargs)
        name = str(target._schema.name).removeprefix("aten::")
        if name.startswith("sym_"):
            return target(args[0].tensor if forms else args[0], *args[1:])
        if target._schema.is_mutable or torch.Tag.nondeterministic_seeded in target.tags or "empty" in name:
            raise NotCarriedError(name)
        if not forms:
            return target(*args, **kwargs)
        return self._apply(node, name, forms, args, kwargs)

    def _apply(self, node: fx.Node, name: str, forms: list[Form], args: Any, kwargs: Any) -> Any:
        """One operator: by linearity, by a law, or not at all."""
        target: Any = node.target
        if name == "_to_copy" and node.meta["val"].dtype.is_floating_point:
            return args[0]  # casts count as the identity
        if name in _MAKING:
            return self._constant_tensor(node, args, kwargs)
        if name in _ADDING or name in _JOINING or (name in _LINEAR and len(forms) == 1 and _is_first(args, forms)):
            return self._linear(target, args, kwargs, self._layouts(node))
        if name in ("mul", "div") and len(forms) == 1 and not (name == "div" and args[1] is forms[0]) and not kwargs:
            return self._linear(target, args, kwargs, self._layouts(node))
        if name == "mul":
            return self._product(*forms)
        if name == "div" and not kwargs:
            inverse = self._function("reciprocal", args[1], ())
            if len(forms) == 2:
                return self._product(args[0], inverse)
            return self._linear(torch.ops.aten.mul.Tensor, (inverse, torch.as_tensor(args[0])), {}, self._layouts(node))
        if name == "pow" and args[1] == 2:
            return self._product(args[0], args[0])
        if name == "bmm":
            return self._sum_of_products(*args)
        if name == "linalg_cross" and len(forms) == 2:
            return self._cross(forms[0], forms[1], int(kwargs.get("dim", -1)), self._layouts(node))
        if name == "linalg_vector_norm" and (len(args) < 2 or args[1] == 2) and len(args) > 2:
            squares = self._product(args[0], args[0])
            total = self._linear(torch.ops.aten.sum.dim_IntList, (squares, *args[2:]), kwargs, self._layouts(node))
            return self._function("sqrt", total, ())
        pointwise = torch.Tag.pointwise in target.tags
        if pointwise and len(forms) == 1 and args and args[0] is forms[0] and _is_uniform(args[1:], kwargs):
            return self._function(name, args[0], (args[1:], kwargs))
        if pointwise or name in _OF_ALL:
            return self._of_invariants(node, forms, args, kwargs)
        raise NotCarriedError(name)

    # Coefficients

    def _layouts(self, node: fx.Node) -> list[Layout | None]:
        """Where each tensor that a node returns keeps its batch."""
        made: list[Layout | None] = []
        for value in tree_flatten(node.meta["val"])[0]:
            axes = [k - value.ndim for k, n in enumerate(value.shape) if isinstance(n, torch.SymInt)]
            outside = self._outside.get(node)
            made.append(Layout(axes[0], outside) if len(axes) == 1 and outside is not None else None)
        return made

    def _linear(self, target: Any, args: Any, kwargs: Any, layouts: list[Layout | None]) -> Any:
        """An affine operator on coefficients: what it adds belongs to the number 1 alone."""
        if target in (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default):
            target = torch.ops.aten.reshape.default  # nothing is written into, so that a copy will do
        given = tree_map(lambda leaf: leaf.tensor if isinstance(leaf, Form) else leaf, (args, kwargs))
        zeros = tree_map(lambda leaf: torch.zeros_like(leaf.tensor) if isinstance(leaf, Form) else leaf, (args, kwargs))
        result, added = target(*given[0], **given[1]), target(*zeros[0], **zeros[1])
        if isinstance(result, torch.Tensor):
            return self._without(result, added, layouts[0])
        trios = zip(result, added, layouts, strict=True)
        return [None if layout is None else self._without(made, rest, layout) for made, rest, layout in trios]

    def _constant_tensor(self, node: fx.Node, args: Any, kwargs: Any) -> Any:
        """A tensor of the same number for every input: a multiple of the number 1 in every entry of its batch."""
        given = tree_map(lambda leaf: leaf.tensor if isinstance(leaf, Form) else leaf, (args, kwargs))
        result = node.target(*given[0], **given[1]).double()  # type: ignore[operator]
        batch = [k for k, n in enumerate(node.meta["val"].shape) if isinstance(n, torch.SymInt)]
        if not batch:
            return result
        # All rows are alike, so that no trace of their order is kept: only a batch of its own is taken.
        if len(batch) > 1 or result.shape[batch[0]] != self.atoms.room:
            raise NotCarriedError(str(node.target))
        layout = Layout(batch[0] - result.ndim, 1)
        rows = self._rows(Form(result, layout))
        rows[:, 1:] = 0.0
        return self._restored(rows, tuple(result.shape), layout)

    def _without(self, result: torch.Tensor, added: torch.Tensor, layout: Layout | None) -> Form:
        if layout is None:
            raise NotCarriedError("a tensor without a batch")
        rows, constant = (self._rows(Form(tensor, layout)) for tensor in (result, added))
        rows[:, 1:] -= constant[:, 1:]
        return self._restored(rows, tuple(result.shape), layout)

    def _split(self, shape: tuple[int, ...], layout: Layout) -> tuple[int, list[int]]:
        """The axis of a tensor's coefficients once its batch is taken apart, and the shape that it has then."""
        axis = layout.axis + len(shape)
        inside, rest = divmod(shape[axis], layout.outside * self.atoms.room)
        if rest or not inside:
            raise NotCarriedError("a batch in parts")
        return axis + 1, [*shape[:axis], layout.outside, self.atoms.room, inside, *shape[axis + 1 :]]

    def _rows(self, value: Any) -> Floats:
        """A value as forms, shape (entries, room)."""
        if not isinstance(value, Form):
            raise NotCarriedError("an output that does not depend on the input")
        axis, apart = self._split(tuple(value.tensor.shape), value.layout)
        spread = value.tensor.reshape(apart).movedim(axis, 0)
        return np.array(spread.reshape(self.atoms.room, -1).numpy().T, order="C")

    def _restored(self, forms: Floats, shape: tuple[int, ...], layout: Layout) -> Form:
        """Forms as a tensor of some shape."""
        axis, apart = self._split(shape, layout)
        rest = [n for k, n in enumerate(apart) if k != axis]
        spread = torch.from_numpy(np.ascontiguousarray(forms.T)).reshape([self.atoms.room, *rest])
        return Form(spread.movedim(0, axis).reshape(shape), layout)

    # Laws

    def _product(self, left: Form, right: Form) -> Form:
        """Products entry by entry."""
        shape = np.broadcast_shapes(left.tensor.shape, right.tensor.shape)
        if left.layout != right.layout:
            raise NotCarriedError("factors whose batches differ")
        a, b = (self._rows(Form(item.tensor.expand(shape), item.layout)) for item in (left, right))
        return self._restored(self.atoms.products(a, b), tuple(shape), left.layout)

    def _sum_of_products(self, left: Form, right: Form) -> Any:
        """A product of matrices, shapes (batch, rows, k) and (batch, k, columns)."""
        if left.layout != right.layout or left.layout.axis != -3:
            raise NotCarriedError("matrices whose batches differ")
        layout = Layout(-4, left.layout.outside)
        products = self._product(Form(left.tensor[:, :, :, None], layout), Form(right.tensor[:, None], layout))
        return self._linear(torch.ops.aten.sum.dim_IntList, (products, [2]), {}, [left.layout])

    def _cross(self, left: Form, right: Form, dim: int, layouts: list[Layout | None]) -> Any:
        """A cross product, by the products that it subtracts."""
        (a, c), (b, d) = (
            [Form(item.tensor.roll(-shift, dim), item.layout) for shift in (1, 2)] for item in (left, right)
        )
        pair = (self._product(a, d), self._product(c, b))
        return self._linear(torch.ops.aten.sub.Tensor, pair, {}, layouts)

    def _function(self, name: str, x: Form, rest: Any) -> Form:
        """A function of each entry alone, the same for all."""
        leaves, spec = tree_flatten(rest)
        numbers = (leaf.item() if isinstance(leaf, torch.Tensor) else str(leaf) for leaf in leaves)
        forms, label = self._rows(x), (name, str(spec), *numbers)
        made = self.atoms.functions([label] * len(forms), forms, odd=name in _ODD, even=name in _EVEN)
        return self._restored(made, tuple(x.tensor.shape), x.layout)

    def _of_invariants(self, node: fx.Node, forms: list[Form], args: Any, kwargs: Any) -> Any:
        """Any operator whose operands no generator changes."""
        rows = [self._rows(form) for form in forms]
        if not all(self.atoms.are_invariant(item) for item in rows):
            raise NotCarriedError(str(node.target))
        given = tree_map(lambda leaf: torch.ones_like(leaf.tensor) if isinstance(leaf, Form) else leaf, (args, kwargs))
        result = node.target(*given[0], **given[1])  # type: ignore[operator]
        first = result if isinstance(result, torch.Tensor) else result[0]
        layout = self._layouts(node)[0]
        if layout is None:
            raise NotCarriedError("a tensor without a batch")
        fresh = self.atoms.invariants(node, first.numel() // self.atoms.room)
        made = self._restored(fresh, tuple(first.shape), layout)
        return made if first is result else [made, *[None] * (len(result) - 1)]


def _is_first(args: Any, forms: list[Form]) -> bool:
    """Whether the form is where an operator is linear in it: among the factors of a product, or the first operand."""
    return any(item is forms[0] for item in args[:3])


def _is_uniform(args: Any, kwargs: Any) -> bool:
    """Whether the numbers of a function are the same for all entries."""
    return not any(isinstance(leaf, torch.Tensor) and leaf.numel() > 1 for leaf in tree_flatten((args, kwargs))[0])
