"""An ONNX file as deployed, run by ONNX Runtime; its torch translation is used to test the structure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from symcheck.errors import TargetError
from symcheck.statements.statement import Statement, state

DTYPES = {
    "tensor(float)": torch.float32,
    "tensor(double)": torch.float64,
    "tensor(float16)": torch.float16,
    "tensor(uint8)": torch.uint8,
    "tensor(int8)": torch.int8,
    "tensor(int32)": torch.int32,
    "tensor(int64)": torch.int64,
    "tensor(bool)": torch.bool,
}
"""ONNX Runtime's names for the dtypes of a graph's inputs."""
SILENT = 4
"""The severity from which ONNX Runtime writes to the terminal: its exceptions are reported in one message instead."""


class OnnxRuntime:
    """A session of ONNX Runtime on one thread, so that the same input gives the same bits.

    Copies share the session, which keeps no state between runs. A file exported for one batch size receives batches of
    that size.

    Args:
        path: the ONNX file.

    Raises:
        ImportError: the package onnxruntime is not installed.
        Exception: any error of onnxruntime if it cannot run the graph.
    """

    def __init__(self, path: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = SILENT
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        given = self._session.get_inputs()
        self._inputs = [(item.name, DTYPES.get(item.type, torch.float32)) for item in given]
        # A batch size that was fixed at export is the first size of every input.
        sizes = {item.shape[0] if item.shape else None for item in given}
        only = sizes.pop() if len(sizes) == 1 else None
        self._batch = only if isinstance(only, int) and only > 0 else None

    def __deepcopy__(self, memo: dict[int, Any]) -> OnnxRuntime:
        # A session holds no state of a call, so copies of a module can share it.
        return self

    def __call__(self, inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """The graph's outputs, in its order and dtypes.

        Args:
            inputs: one tensor per input of the graph, in its order; cast to the dtypes that it declares.

        Returns:
            Tensors on the CPU.
        """
        count = len(inputs[0]) if inputs and inputs[0].dim() else 0
        if self._batch is None or not count or count == self._batch:
            return self._run(inputs)
        parts = [self._run(_pad_rows(inputs, i, self._batch)) for i in range(0, count, self._batch)]
        # Rows beyond the count repeat the last input and are dropped.
        return tuple(torch.cat(tensors)[:count] for tensors in zip(*parts, strict=True))

    def _run(self, inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        feed = {
            name: tensor.detach().cpu().to(dtype).contiguous().numpy()
            for (name, dtype), tensor in zip(self._inputs, inputs, strict=True)
        }
        return tuple(torch.from_numpy(array) for array in self._session.run(None, feed))


class RunOnly(nn.Module):
    """A file with nodes that have no translation: ONNX Runtime runs it, and it is tested on samples alone.

    Args:
        runtime: runs the file; without it, nothing can.
        unknown: the kinds of nodes without a translation.
    """

    def __init__(self, runtime: OnnxRuntime, unknown: Sequence[str]) -> None:
        super().__init__()
        self.runtime: OnnxRuntime | None = runtime
        self.runtime_problem = state("runtime_only", nodes=list(unknown))

    def forward(self, *inputs: torch.Tensor) -> Any:
        """The outputs of the file; a single one is returned alone, several as a tuple."""
        if self.runtime is None:
            raise TargetError(
                f"{self.runtime_problem}, so the file can be run only on the CPU and in its own dtype.",
                where="ONNX file",
                remedy="Leave out the dtype and the device.",
            )
        return single_or_all(self.runtime(inputs))


def single_or_all(made: tuple[Any, ...]) -> Any:
    """What a network returns for a graph's outputs: a single one is returned alone."""
    return made[0] if len(made) == 1 else made


def _pad_rows(inputs: Sequence[torch.Tensor], start: int, rows: int) -> list[torch.Tensor]:
    """A batch of rows beginning at `start`, with the last row repeated if too few are left."""
    parts = [tensor[start : start + rows] for tensor in inputs]
    return [torch.cat([part, part[-1:].expand(rows - len(part), *part.shape[1:])]) for part in parts]


def open_runtime(path: Path) -> tuple[OnnxRuntime | None, Statement | None]:
    """The runtime for a file, or why there is none.

    Args:
        path: the ONNX file.

    Returns:
        The runtime and None; or None and the reason why the translation is used instead.
    """
    try:
        return OnnxRuntime(path), None
    except ImportError:
        return None, state("runtime_missing")
    except Exception as error:  # its own exceptions have no common base
        first = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        return None, state("runtime_refused", message=first)
