"""An ONNX file as a torch module: its nodes run in order as torch functions, so that they can be traced.

The nodes with a translation are those of common policies and value networks. A file with any other kind is run by ONNX
Runtime alone. Exporters also write shape arithmetic as nodes: integers stay NumPy arrays on the host (`onnx_shapes`)
and are not traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from symcheck.engine.networks.subject.onnx_quantised import QUANTISED, fold_constants
from symcheck.engine.networks.subject.onnx_runtime import OnnxRuntime, RunOnly, open_runtime, single_or_all
from symcheck.engine.networks.subject.onnx_shapes import HOST, on_host
from symcheck.errors import MissingExtraError, TargetError, described
from symcheck.statements.statement import Statement

Operation = Callable[..., Any]
# Operators of ONNX Runtime's own domain that compute what the standard ones of the same name do.
_SAME_AT_MICROSOFT = frozenset({"QuantizeLinear", "DequantizeLinear", "Gelu"})


def load_onnx(path: Path) -> nn.Module:
    """Read an ONNX file.

    Args:
        path: the file.

    Returns:
        A module of one tensor (or several, in the graph's order) that computes the graph's outputs.

    Raises:
        MissingExtraError: the package onnx is not installed.
        TargetError: the file is corrupt, or it has a node without a translation and ONNX Runtime does not run it.
    """
    try:
        import onnx
    except ImportError as error:
        raise MissingExtraError("onnx", needed_for="reading an ONNX file") from error
    try:
        model = onnx.load(str(path))
        onnx.checker.check_model(model)
    except Exception as error:
        raise TargetError(
            f"the file cannot be read as ONNX: {described(error)[:200]}.",
            where=str(path),
            remedy="Export it again.",
        ) from error
    if model.functions:
        from onnx.inliner import inline_local_functions

        model = inline_local_functions(model)
    runtime, problem = open_runtime(path)
    # Decided before anything runs; the message lists all unsupported kinds of nodes.
    unknown = sorted({kind for kind in map(_kind_of, model.graph.node) if kind not in OPERATIONS.keys() | HOST.keys()})
    if unknown and runtime is None:
        raise TargetError(
            f"ONNX Runtime cannot run the file, and symcheck cannot translate its nodes {', '.join(unknown)}.",
            where=str(path),
            remedy="Install onnxruntime, or give the PyTorch module or a torch.export file of it.",
        )
    if unknown and runtime is not None:
        return RunOnly(runtime, unknown)
    return OnnxModule(model.graph, runtime, problem)


def _kind_of(node: Any) -> str:
    """The operator of a node; other domains than ONNX's own may give the same name to another operator."""
    standard = node.domain in ("", "ai.onnx") or (node.domain == "com.microsoft" and node.op_type in _SAME_AT_MICROSOFT)
    return str(node.op_type if standard else f"{node.domain}.{node.op_type}")


class OnnxModule(nn.Module):
    """The nodes of a graph in order; initialisers are buffers, integers stay on the host.

    Args:
        graph: an `onnx.GraphProto`.
        runtime: runs the file as deployed; None to run the nodes here, for judging the structure.
        runtime_problem: why there is no runtime, if one was requested.
    """

    def __init__(
        self, graph: Any, runtime: OnnxRuntime | None = None, runtime_problem: Statement | None = None
    ) -> None:
        super().__init__()
        self.runtime, self.runtime_problem = runtime, runtime_problem
        from onnx import numpy_helper

        self.constants: dict[str, str] = {}
        self.whole: dict[str, np.ndarray[Any, Any]] = {}
        for tensor in graph.initializer:
            self._constant(tensor.name, numpy_helper.to_array(tensor))
        # Older files list initialisers among the inputs as well.
        self.inputs = [item.name for item in graph.input if item.name not in self.constants | self.whole]
        self.outputs = [item.name for item in graph.output]
        nodes: dict[str, nn.Module] = {}
        for i, node in enumerate(graph.node):
            attributes = {item.name: _attribute(item) for item in node.attribute}
            # Weights of quantised nodes are dequantised once, here.
            if fold_constants(
                node.op_type, list(node.input), node.output[0], attributes, self._stored_constant, self._float
            ):
                continue
            if node.op_type == "Constant":
                self._constant(node.output[0], next(iter(attributes.values())))
                continue
            # Names of modules may not contain dots.
            key = (node.name or f"{node.op_type}_{i}").replace(".", "/").strip("/") or f"node_{i}"
            key = key if key not in nodes else f"{key}_{i}"
            nodes[key] = OnnxNode(node.op_type, list(node.input), list(node.output), attributes)
        self.nodes = nn.ModuleDict(nodes)

    def _constant(self, name: str, array: Any) -> None:
        # Integers are shapes and indices; they stay on the host, where nothing is traced.
        if np.asarray(array).dtype.kind in "iu":
            self.whole[name] = np.array(array)
            return
        self._float(name, array)

    def _stored_constant(self, name: str) -> np.ndarray[Any, Any] | None:
        """A constant by name; None if it is computed."""
        if name in self.constants:
            return np.asarray(getattr(self, self.constants[name]).numpy())
        return self.whole.get(name)

    def _float(self, name: str, array: Any) -> None:
        self.whole.pop(name, None)
        key = f"constant_{len(self.constants)}"
        self.constants[name] = key
        self.register_buffer(key, torch.from_numpy(np.array(array)))

    def forward(self, *inputs: torch.Tensor) -> Any:
        """Run every node, or the runtime; a single output is returned alone, several as a tuple."""
        if self.runtime is not None:
            return single_or_all(self.runtime(inputs))
        # Values by their names in the graph; each node adds its results.
        values: dict[str, Any] = {name: getattr(self, key) for name, key in self.constants.items()} | self.whole
        values |= dict(zip(self.inputs, inputs, strict=True))
        for node in (cast(OnnxNode, item) for item in self.nodes.values()):
            # An empty name stands for an optional input that is left out.
            results = node(*[values[name] if name else None for name in node.inputs])
            results = results if isinstance(results, tuple | list) else (results,)
            values |= {name: result for name, result in zip(node.outputs, results, strict=False) if name}
        return single_or_all(tuple(values[name] for name in self.outputs))


class OnnxNode(nn.Module):
    """One node: its kind, the names of its inputs and outputs, and its attributes."""

    def __init__(self, kind: str, inputs: list[str], outputs: list[str], attributes: dict[str, Any]) -> None:
        super().__init__()
        self.kind, self.inputs, self.outputs, self.attributes = kind, inputs, outputs, attributes

    def forward(self, *operands: Any) -> Any:
        """The node's results."""
        if on_host(self.kind, operands):
            return HOST[self.kind](self.attributes, *operands)
        return OPERATIONS[self.kind](self.attributes, *operands)


def _attribute(item: Any) -> Any:
    from onnx import helper, numpy_helper

    value = helper.get_attribute_value(item)
    if isinstance(value, bytes):
        return value.decode()
    # Tensors among attributes have their bytes; other values are numbers, strings and lists.
    return numpy_helper.to_array(value) if hasattr(value, "raw_data") else value


def _not_read(what: str) -> TargetError:
    return TargetError(
        f"the graph has a node of an unsupported form: {what}.",
        where="ONNX file",
        remedy="Give the PyTorch module, or a torch.export file of it.",
    )


def _gemm(a: dict[str, Any], x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None = None) -> torch.Tensor:
    x = x.t() if a.get("transA") else x
    # `F.linear` takes the transposed weight.
    w = w if a.get("transB") else w.t()
    if a.get("alpha", 1.0) != 1.0 or a.get("beta", 1.0) != 1.0:
        w, b = w * a.get("alpha", 1.0), None if b is None else b * a.get("beta", 1.0)
    return F.linear(x, w, b)


def _symmetric(pads: Sequence[int] | None, axes: int) -> tuple[list[int], bool]:
    """Torch's padding per axis, and whether both sides are equal; ONNX lists all beginnings, then all ends."""
    pads = list(pads or [0] * (2 * axes))
    return pads[:axes], pads[:axes] == pads[axes:]


def _pad_asymmetric(
    a: dict[str, Any], x: torch.Tensor, axes: int, value: float = 0.0
) -> tuple[torch.Tensor, list[int]]:
    if a.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise _not_read(f"auto_pad {a['auto_pad']}")
    low, alike = _symmetric(a.get("pads"), axes)
    if alike:
        # torch's convolution pads both sides equally; for unequal padding, pad explicitly first.
        return x, low
    # `F.pad` lists the last axis first.
    flat = [n for i in reversed(range(axes)) for n in (a["pads"][i], a["pads"][axes + i])]
    return F.pad(x, flat, value=value), [0] * axes


def _conv(a: dict[str, Any], x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None = None) -> torch.Tensor:
    axes = w.ndim - 2
    x, padding = _pad_asymmetric(a, x, axes)
    function = F.conv2d if axes == 2 else F.conv1d
    strides, dilations = a.get("strides", [1] * axes), a.get("dilations", [1] * axes)
    return function(x, w, b, tuple(strides), tuple(padding), tuple(dilations), a.get("group", 1))


def _max_pool(a: dict[str, Any], x: torch.Tensor) -> torch.Tensor:
    kernel = a["kernel_shape"]
    # The padding must never be the maximum.
    x, padding = _pad_asymmetric(a, x, len(kernel), float("-inf"))
    function = F.max_pool2d if len(kernel) == 2 else F.max_pool1d
    strides, dilations = a.get("strides", [1] * len(kernel)), a.get("dilations", [1] * len(kernel))
    return function(x, tuple(kernel), tuple(strides), tuple(padding), tuple(dilations), bool(a.get("ceil_mode", 0)))


def _average_pool(a: dict[str, Any], x: torch.Tensor) -> torch.Tensor:
    kernel = a["kernel_shape"]
    low, alike = _symmetric(a.get("pads"), len(kernel))
    if not alike or a.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise _not_read("AveragePool with unequal padding")
    function = F.avg_pool2d if len(kernel) == 2 else F.avg_pool1d
    strides = a.get("strides", [1] * len(kernel))
    return function(
        x, tuple(kernel), tuple(strides), tuple(low), bool(a.get("ceil_mode", 0)), bool(a.get("count_include_pad", 0))
    )


def _batch_norm(a: dict[str, Any], x: Any, scale: Any, bias: Any, mean: Any, var: Any) -> torch.Tensor:
    return F.batch_norm(x, mean, var, scale, bias, False, 0.0, a.get("epsilon", 1e-5))


def _layer_norm(a: dict[str, Any], x: torch.Tensor, scale: torch.Tensor, bias: Any = None) -> torch.Tensor:
    return F.layer_norm(x, tuple(scale.shape), scale, bias, a.get("epsilon", 1e-5))


def _axes_of(a: dict[str, Any], axes: Any) -> list[int] | None:
    # Newer versions of the operator take axes as an operand, older ones as an attribute.
    listed = axes.tolist() if axes is not None else a.get("axes")
    return None if listed is None else [int(axis) for axis in listed]


def _reduction(function: Operation) -> Operation:
    def apply(a: dict[str, Any], x: torch.Tensor, axes: Any = None) -> Any:
        dims = _axes_of(a, axes)
        return function(
            x, dim=tuple(range(x.ndim)) if dims is None else tuple(dims), keepdim=bool(a.get("keepdims", 1))
        )

    return apply


def _reshape(a: dict[str, Any], x: torch.Tensor, shape: torch.Tensor) -> torch.Tensor:
    # 0 copies the size of the input's axis; -1 has the same meaning as in torch.
    sizes = [x.shape[i] if n == 0 else int(n) for i, n in enumerate(shape.tolist())]
    return x.reshape(sizes)


def _squeeze(a: dict[str, Any], x: torch.Tensor, axes: Any = None) -> torch.Tensor:
    dims = _axes_of(a, axes)
    return x.squeeze() if dims is None else x.squeeze(tuple(dims))


def _unsqueeze(a: dict[str, Any], x: torch.Tensor, axes: Any = None) -> torch.Tensor:
    # In increasing order, each axis is inserted at its final position.
    for axis in sorted(_axes_of(a, axes) or []):
        x = x.unsqueeze(axis)
    return x


def _slice(a: dict[str, Any], x: torch.Tensor, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    chosen = range(len(starts)) if axes is None else [int(axis) % x.ndim for axis in axes.tolist()]
    strides = [1] * len(starts) if steps is None else steps.tolist()
    for axis, start, end, step in zip(chosen, starts.tolist(), ends.tolist(), strides, strict=True):
        if step < 0:
            raise _not_read("Slice with a negative step")
        x = x[(slice(None),) * axis + (slice(start, end, step),)]
    return x


def _gather(a: dict[str, Any], x: torch.Tensor, indices: Any) -> torch.Tensor:
    axis = int(a.get("axis", 0)) % x.ndim
    places = np.asarray(indices) % x.shape[axis]
    if places.ndim == 0:
        return x.select(axis, int(places))
    if places.ndim > 1:
        raise _not_read("Gather with a table of indices")
    return x[(slice(None),) * axis + (torch.from_numpy(places),)]


def _clip(a: dict[str, Any], x: torch.Tensor, low: Any = None, high: Any = None) -> torch.Tensor:
    low = a.get("min") if low is None else float(low)
    high = a.get("max") if high is None else float(high)
    return torch.clamp(x, low, high)


def _pair(function: Operation) -> Operation:
    # constants of whole numbers are on the host
    return lambda a, x, y: function(torch.as_tensor(x), torch.as_tensor(y))


def _of_all(function: Operation) -> Operation:
    return lambda a, *xs: reduce(function, map(torch.as_tensor, xs))


def _cast(a: dict[str, Any], x: torch.Tensor) -> torch.Tensor:
    """Casts between floating types count as the identity; others change the numbers."""
    kind = a["to"]
    if kind == BOOLEAN:
        return x != 0
    if kind in FLOATING:
        return x if x.is_floating_point() else x.to(torch.get_default_dtype())
    return x.trunc() if x.is_floating_point() else x


def _split(a: dict[str, Any], x: torch.Tensor, sizes: Any = None) -> Sequence[torch.Tensor]:
    axis = int(a.get("axis", 0))
    listed = a.get("split") if sizes is None else sizes.tolist()
    if listed is None:
        raise _not_read("Split without sizes")
    return torch.split(x, [int(size) for size in listed], dim=axis)


def _expand(a: dict[str, Any], x: torch.Tensor, shape: Any) -> torch.Tensor:
    return x.expand(np.broadcast_shapes(tuple(x.shape), tuple(int(n) for n in shape.tolist())))


def _unary(function: Operation) -> Operation:
    return lambda a, x, *rest: function(x)


BOOLEAN, FLOATING = 9, (1, 10, 11, 16)
"""Codes of element types: bool, and float32, float16, float64 and bfloat16."""
OPERATIONS: dict[str, Operation] = {
    "Add": _pair(torch.add),
    "Sub": _pair(torch.sub),
    "Mul": _pair(torch.mul),
    "Div": _pair(torch.div),
    "MatMul": _pair(torch.matmul),
    "Gemm": _gemm,
    "Conv": _conv,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": _unary(lambda x: x.mean(tuple(range(2, x.ndim)), keepdim=True)),
    "GlobalMaxPool": _unary(lambda x: x.amax(tuple(range(2, x.ndim)), keepdim=True)),
    "BatchNormalization": _batch_norm,
    "LayerNormalization": _layer_norm,
    "Relu": _unary(torch.relu),
    "Tanh": _unary(torch.tanh),
    "Sigmoid": _unary(torch.sigmoid),
    "Softplus": _unary(F.softplus),
    "Softsign": _unary(F.softsign),
    "Mish": _unary(F.mish),
    "Gelu": lambda a, x: F.gelu(x, approximate=a.get("approximate", "none")),
    "LeakyRelu": lambda a, x: F.leaky_relu(x, a.get("alpha", 0.01)),
    "Elu": lambda a, x: F.elu(x, a.get("alpha", 1.0)),
    "Selu": _unary(F.selu),
    "HardSwish": _unary(F.hardswish),
    "Erf": _unary(torch.erf),
    "Exp": _unary(torch.exp),
    "Log": _unary(torch.log),
    "Sqrt": _unary(torch.sqrt),
    "Abs": _unary(torch.abs),
    "Neg": _unary(torch.neg),
    "Clip": _clip,
    "Pow": _pair(torch.pow),
    "Max": _of_all(torch.maximum),
    "Min": _of_all(torch.minimum),
    "Reciprocal": _unary(torch.reciprocal),
    "Sign": _unary(torch.sign),
    "Sin": _unary(torch.sin),
    "Cos": _unary(torch.cos),
    "Floor": _unary(torch.floor),
    "Ceil": _unary(torch.ceil),
    "PRelu": lambda a, x, slope: torch.where(x >= 0, x, slope * x),
    "Equal": _pair(torch.eq),
    "Greater": _pair(torch.gt),
    "GreaterOrEqual": _pair(torch.ge),
    "Less": _pair(torch.lt),
    "LessOrEqual": _pair(torch.le),
    "And": _pair(torch.logical_and),
    "Or": _pair(torch.logical_or),
    "Not": _unary(torch.logical_not),
    "Where": lambda a, c, x, y: torch.where(torch.as_tensor(c), torch.as_tensor(x), torch.as_tensor(y)),
    "Einsum": lambda a, *xs: torch.einsum(a["equation"], *xs),
    "Split": _split,
    "Expand": _expand,
    "Softmax": lambda a, x: F.softmax(x, dim=a.get("axis", -1)),
    "LogSoftmax": lambda a, x: F.log_softmax(x, dim=a.get("axis", -1)),
    "Flatten": lambda a, x: x.flatten(a.get("axis", 1)),
    "Reshape": _reshape,
    "Transpose": lambda a, x: x.permute(a.get("perm", list(reversed(range(x.ndim))))),
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Slice": _slice,
    "Gather": _gather,
    "Concat": lambda a, *xs: torch.cat(xs, dim=a["axis"]),
    "ReduceMean": _reduction(torch.mean),
    "ReduceSum": _reduction(torch.sum),
    "ReduceMax": _reduction(torch.amax),
    "ReduceMin": _reduction(torch.amin),
    "Identity": _unary(lambda x: x),
    "Dropout": _unary(lambda x: x),
    "Cast": _cast,
    "Constant": _unary(lambda x: x),
    **QUANTISED,
}
"""Every supported kind of node: maps attributes and operands to results."""
