"""Writes a trained network to one file that does not need this package, and checks the file.

    .pt2    a torch.export program, batches of any size
    .onnx   the same as an ONNX model: input `observation`, outputs `policy` and `value` (extra `onnx`)
    .pt     a plain state_dict, for a module of your own with the same layers

Before a file is moved into place, its outputs are compared with those of the network on random observations, so that a
failed export is detected before deployment.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

from reference_agents.record import write_output
from symcheck.errors import MissingExtraError, OptionError, TargetError

# Observations on which the written file is compared with the network.
SAMPLES = 64
# Runtimes sum in float32 in different orders; this allows a few hundred terms of order one.
TOLERANCE = 1e-4
Outputs = tuple[np.ndarray, np.ndarray]


def write_network(network: torch.nn.Module, shape: tuple[int, ...], target: Path) -> float | None:
    """Write a network in the form that the file's suffix names.

    Args:
        network: observations (batch, *shape) to (logits or means, values).
        shape: the shape of one observation.
        target: the file.

    Returns:
        The largest difference between its outputs and the network's on random observations; None for a state_dict.

    Raises:
        OptionError: an unknown suffix, or a file that cannot be written.
        MissingExtraError: ONNX without the extra `onnx`.
        TargetError: the written file computes something else.
    """
    if target.suffix not in _FORMS:
        raise OptionError(
            f"expected a file ending in {', '.join(_FORMS)}, got {str(target)!r}.",
            where="--out",
        )
    content, run = _FORMS[target.suffix](network.eval(), shape)
    difference = None if run is None else _compare(network, shape, run)
    write_output(target, content, where="--out")
    return difference


Run = Callable[[np.ndarray], Outputs]


def _compare(network: torch.nn.Module, shape: tuple[int, ...], run: Run) -> float:
    observations = np.random.default_rng(0).standard_normal((SAMPLES, *shape)).astype(np.float32)
    with torch.no_grad():
        expected = [part.numpy() for part in network(torch.from_numpy(observations))]
    worst = 0.0
    for given, wanted in zip(run(observations), expected, strict=True):
        difference = float(np.abs(given - wanted).max()) if given.shape == wanted.shape else np.inf
        worst = max(worst, difference)
        # NaN fails this comparison, which is why it is negated.
        if not difference <= TOLERANCE * max(1.0, float(np.abs(wanted).max())):
            raise TargetError(
                f"the outputs of the exported network differ from those of the original by up to {difference:.2g} on "
                f"{SAMPLES} random observations.",
                where="--out",
                remedy="No file was written. The exporter or one of the installed packages has a defect.",
            )
    return worst


def _state_dict(network: torch.nn.Module, shape: tuple[int, ...]) -> tuple[bytes, None]:
    buffer = io.BytesIO()
    torch.save(network.state_dict(), buffer)
    return buffer.getvalue(), None


def _program(network: torch.nn.Module, shape: tuple[int, ...]) -> torch.export.ExportedProgram:
    # A dynamic first axis: any batch from 1 on.
    batch = torch.export.Dim("batch", min=1)
    # An example batch of 2: torch.export specialises sizes of 0 and 1.
    return torch.export.export(network, (torch.zeros(2, *shape),), dynamic_shapes=({0: batch},))


def _torch_export(network: torch.nn.Module, shape: tuple[int, ...]) -> tuple[bytes, Run]:
    buffer = io.BytesIO()
    torch.export.save(_program(network, shape), buffer)
    # Load the bytes that will be written, so that the comparison covers the file.
    buffer.seek(0)
    loaded = torch.export.load(buffer).module()

    def run(observations: np.ndarray) -> Outputs:
        with torch.no_grad():
            policy, value = loaded(torch.from_numpy(observations))
        return policy.numpy(), value.numpy()

    return buffer.getvalue(), run


def _onnx(network: torch.nn.Module, shape: tuple[int, ...]) -> tuple[bytes, Run]:
    try:
        import onnxruntime
        import onnxscript  # noqa: F401 - the exporter needs it
    except ImportError as error:
        raise MissingExtraError("onnx", needed_for="exporting .onnx") from error
    with tempfile.TemporaryDirectory() as folder, _quiet():
        file = Path(folder) / "network.onnx"
        torch.onnx.export(
            network,
            (torch.zeros(2, *shape),),
            file,
            input_names=["observation"],
            output_names=["policy", "value"],
            dynamic_shapes=({0: torch.export.Dim("batch", min=1)},),
            dynamo=True,
            # Embed the weights, because one file is requested.
            external_data=False,
            verbose=False,
        )
        content = file.read_bytes()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])

    def run(observations: np.ndarray) -> Outputs:
        policy, value = session.run(["policy", "value"], {"observation": observations})
        return policy, value

    return content, run


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the exporter's messages, some of which are log records."""
    logging.disable(logging.WARNING)
    with (
        contextlib.ExitStack() as stack,
        warnings.catch_warnings(),
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stdout(nowhere),
    ):
        stack.callback(logging.disable, logging.NOTSET)
        warnings.simplefilter("ignore")
        yield


_FORMS: dict[str, Callable[[torch.nn.Module, tuple[int, ...]], tuple[bytes, Run | None]]] = {
    ".pt2": _torch_export,
    ".onnx": _onnx,
    ".pt": _state_dict,
}
