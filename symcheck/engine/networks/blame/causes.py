"""Why the outputs of a call have no image although its inputs have one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import fx, nn

from symcheck.array_types import Floats, Ints
from symcheck.engine.networks.blame.action import Action
from symcheck.engine.networks.blame.squares import SQUARES, Square
from symcheck.engine.networks.capture.places import Place
from symcheck.engine.networks.graph.nodes import BATCH, Graph, Step
from symcheck.statements.statement import Statement, state

_WINDOWS = frozenset(["convolution", "max_pool2d_with_indices", "avg_pool2d", "max_pool2d", "avg_pool1d", "max_pool1d"])
_BEFORE = 4  # number of operators examined before the one at fault
_NEIGHBOURS = 4  # sizes within this distance of the given one are tried


@dataclass(frozen=True)
class Axis:
    """The windows along one axis."""

    size: int
    kernel: int
    stride: int
    dilation: int
    pad: int

    @property
    def rest(self) -> int:
        """The entries of the padded axis that no window covers."""
        return (self.size + 2 * self.pad - self.dilation * (self.kernel - 1) - 1) % self.stride

    def problem(self, square: str) -> Statement:
        """Why flipping the input does not flip the output, and the sizes for which it would."""
        window = self.dilation * (self.kernel - 1) + 1
        smaller = self.size - self.rest
        return state(
            "SYM101",
            stride=self.stride,
            square=square,
            size=self.size,
            padding=2 * self.pad,
            window=window,
            reach=self.size + 2 * self.pad - window,
            sizes=[smaller, smaller + self.stride],
        )


@dataclass(frozen=True)
class Fault:
    """The place and cause of a violation.

    Attributes:
        place: the call.
        cause: the cause in words.
    """

    place: Place
    cause: Statement


def why_no_image(graph: Graph, action: Action, steps: Sequence[Step], place: Place) -> Fault:
    """The cause of entries without an image.

    Args:
        graph: the nodes.
        action: the action of the generators on them.
        steps: the operators of the call; outputs of the last one have no image.
        place: the call.

    Returns:
        The call itself, or an earlier one that rearranges an image incompatibly with its symmetry.
    """
    moved = _misplaced_before(graph, action, steps)
    if moved is not None:
        return moved
    for step in steps:
        cause = _of_windows(action, step) or _of_resampling(action, steps, step)
        if cause is not None:
            return Fault(place, cause)
    return Fault(place, _of_entries(graph, action, steps, place))


def _misplaced_before(graph: Graph, action: Action, steps: Sequence[Step]) -> Fault | None:
    """The first operator that only rearranges entries and breaks the symmetry of an image."""
    known = {step.operator: step for step in graph.steps}
    node = steps[0].operator if steps else None
    chain: list[Step] = [step for step in steps if step.first == step.last]
    # later operators of the same call undo these rearrangements
    computing = {step.place for step in graph.steps if step.first < step.last}
    for _ in range(_BEFORE):
        node = next((arg for arg in node.args if isinstance(arg, fx.Node)), None) if node is not None else None
        if node is not None and node in known and known[node].place not in computing:
            chain.append(known[node])
    for step in sorted(chain, key=lambda item: graph.steps.index(item)):
        square = _square_of(action, step.given)
        if square is None or step.ids.ndim != 4 or _carries(action, step.ids, square):
            continue
        return Fault(step.place, _of_mover(step, square))
    return None


def _of_mover(step: Step, square: Square) -> Statement:
    name, args = operator_name(step.operator), step.operator.args
    if name == "constant_pad_nd" or "pad" in name:
        pad: Any = args[1]
        if len(set(pad[::2])) == len(set(pad[1::2])) == 1:
            return state("SYM102", before=int(pad[0]), after=int(pad[1]), square=square.name)
        return state("SYM102", amounts=[int(n) for n in pad], square=square.name)
    if name == "roll" or step.place.operation == "roll":
        return state("SYM105", square=square.name)
    if "upsample" in name or step.place.operation == "interpolate":
        shapes = _shapes(step.given[0], step)
        sizes = {"sizes": _sizes_that_commute(shapes, square)}
        return state("SYM104", operation=step.place.operation, uneven=True, **shapes, square=square.name, **sizes)
    return state("SYM120")


def _shapes(before: Floats, step: Step) -> dict[str, list[int]]:
    return {"before": [int(n) for n in before.shape[2:]], "after": [int(n) for n in step.ids.shape[2:]]}


def _sizes_that_commute(shapes: dict[str, list[int]], square: Square) -> list[int]:
    """Nearby output sizes for which upsampling by repetition commutes with a symmetry of the square."""
    places = np.arange(1.0, 1.0 + np.prod(shapes["before"])).reshape(1, 1, *shapes["before"])
    wanted = shapes["after"][-1]

    def commutes(size: int) -> bool:
        images = (places, np.ascontiguousarray(square.apply(places)))
        made, turned = (nn.functional.interpolate(torch.from_numpy(item), size=size).numpy() for item in images)
        return bool((square.apply(made) == turned).all())

    return [size for size in range(max(2, wanted - _NEIGHBOURS), wanted + _NEIGHBOURS + 1) if commutes(size)]


def _carries(action: Action, ids: Floats, square: Square) -> bool:
    """Whether the action on an image is a symmetry of the square combined with a permutation of channels."""
    usual = action.canonical(_first_sample(ids))
    if square.transpose and usual.shape[-2] != usual.shape[-1]:
        return False
    channels = {np.ascontiguousarray(square.apply(channel)).tobytes() for channel in usual}
    return any(
        all(np.ascontiguousarray(channel).tobytes() in channels for channel in action.images_of(usual, generator)[0])
        for generator in range(len(action.where))
    )


def _of_windows(action: Action, step: Step) -> Statement | None:
    name = operator_name(step.operator)
    square = _square_of(action, step.given) if name in _WINDOWS else None
    if square is None:
        return None
    args: Any = step.operator.args
    if name == "convolution" and args[6] and any(args[7]):
        return state("SYM102", output=True, square=square.name)
    axes = _axes(step, name)
    if len(axes) == 2 and square.transpose and axes[0] != axes[1]:
        return state("SYM103", square=square.name)
    return next((axis.problem(square.name) for axis in axes if axis.rest), None)


def _of_resampling(action: Action, steps: Sequence[Step], step: Step) -> Statement | None:
    square = _square_of(action, steps[0].given)
    if square is None or step.place.operation != "interpolate" or steps[-1].ids.ndim != 4:
        return None
    shapes = _shapes(steps[0].given[0], steps[-1])
    return state("SYM104", operation=step.place.operation, **shapes, square=square.name)


def _axes(step: Step, name: str) -> list[Axis]:
    args: Any = step.operator.args
    sizes = step.given[0].shape[2:]
    if name == "convolution":
        kernel, (stride, pad, dilation) = step.given[1].shape[2:], args[3:6]
        if args[6]:  # transposed
            return []
    else:
        kernel, stride = args[1], args[2] if len(args) > 2 and args[2] else args[1]
        pad = args[3] if len(args) > 3 else [0]
        dilation = args[4] if len(args) > 4 and name.startswith("max") else [1]
    each = [list(n) * (len(sizes) // len(n)) for n in (kernel, stride, dilation, pad)]
    return [Axis(size, *numbers) for size, *numbers in zip(sizes, *each, strict=True)]


def operator_name(node: fx.Node) -> str:
    """The name of a core operator, without its overload."""
    schema = getattr(node.target, "_schema", None)
    return str(schema.name).split("::")[-1] if schema is not None else getattr(node.target, "__name__", "")


def _square_of(action: Action, given: Sequence[Floats]) -> Square | None:
    """A symmetry of the square by which a generator acts on the first tensor; None if the tensor is not an image."""
    squares = squares_of(action, given)
    return next((square for square in squares if square is not None and square.name != "the identity"), None)


def squares_of(action: Action, given: Sequence[Floats]) -> list[Square | None]:
    """The symmetry of the square by which each generator acts on the first tensor, if the tensor is an image."""
    if not given or given[0].ndim != 4:  # samples, channels, height, width
        return []
    entries = _first_sample(given[0])
    place = {int(entry): index[-2:] for index, entry in np.ndenumerate(action.canonical(entries))}
    height, width = entries.shape[-2:]
    grid = np.arange(height * width).reshape(height, width)
    result: list[Square | None] = []
    for generator in range(len(action.where)):
        images = action.where[generator][np.maximum(entries, 0)]
        moved = [place.get(int(image)) for image in images[0].reshape(-1)]
        known = [item[0] * width + item[1] for item in moved if item is not None]
        if (entries < 0).any() or (images < 0).any() or len(known) < len(moved):
            result.append(None)
            continue
        target = np.array(known).reshape(height, width)
        fitting = (square for square in SQUARES if np.array_equal(square.apply(grid), target))
        result.append(next(fitting, None))
    return result


def _first_sample(ids: Floats) -> Ints:
    whole = np.asarray(ids)[0].astype(np.int64)
    return np.asarray(np.where(whole < 0, whole, whole // BATCH))


def _of_entries(graph: Graph, action: Action, steps: Sequence[Step], place: Place) -> Statement:
    operation = place.text
    nodes = graph.nodes[steps[0].first : steps[-1].last] if steps else []
    reads = np.unique(np.concatenate([node.x.reshape(-1) for node in nodes] or [np.zeros(0, dtype=np.int64)]))
    read = reads[(reads >= 0) & (reads < (nodes[0].start if nodes else 0))]
    if action.mixed[read].any():
        raw = bool((read < graph.nodes[0].size).all())
        return state("SYM125", operation=operation) if raw else state("SYM124", operation=operation)
    negated = bool((action.sign[:, read] < 0).any())
    if "batch_norm" in place.operation or "BatchNorm" in place.kind:
        return state("SYM110", kind=place.operation, constant="scale or shift")
    constant = {"clamp": "bounds", "where": "mask", "masked_fill": "mask"}.get(place.operation.removeprefix("aten."))
    if constant is not None and any((node.x < 0).any() for node in nodes):
        return state("SYM114", operation=operation, constant=constant)
    if negated and all(node.x.shape[1] == 1 or node.op != "linear" for node in nodes):
        return state("SYM113", operation=operation)
    if any(node.x.size and (node.x < 0).any() for node in nodes):
        return state("SYM111", constant="constant", kind="constant")
    if negated:
        return state("SYM115", operation=operation)
    if len(steps[-1].given if steps else ()) == 2:
        return state("SYM122", operation=operation)
    return state("SYM112", operation=operation)


def flattened_before(action: Action, steps: Sequence[Step]) -> dict[str, list[int]]:
    """The image shape as a field, if a layer reads flattened images whose pixels the action permutes; else empty."""
    node = steps[-1].operator if steps else None
    for _ in range(_BEFORE):
        node = next((arg for arg in node.args if _has_rows(arg)), None) if node is not None else None
        if node is None:
            return {}
        before = node.args[0] if node.args and isinstance(node.args[0], fx.Node) else None
        shape = _shape(before)
        flattens = operator_name(node) in ("view", "_unsafe_view", "reshape") and len(_shape(node)) == 2
        # the samples of images lie along the first axis; other tables with four axes hold them along any axis
        if flattens and len(shape) == 4 and all(isinstance(n, int) for n in shape[1:]):
            return {"flattened": list(shape[1:])}
    return {}


def _has_rows(item: Any) -> bool:
    return isinstance(item, fx.Node) and item.op == "call_function" and operator_name(item) not in ("t", "permute")


def _shape(node: Any) -> tuple[Any, ...]:
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    return tuple(value.shape) if isinstance(value, torch.Tensor) else ()
