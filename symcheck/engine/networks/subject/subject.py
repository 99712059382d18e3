"""The network under test: its copies, in float64 and as deployed, run on stacked inputs.

The given network is never run or modified. Both copies are made first, and the state of the random generators of torch,
NumPy and Python is restored at the end.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from symcheck.array_types import Floats
from symcheck.engine.clock import raise_if_late
from symcheck.engine.networks.subject.artefacts import artefact_of, runtime_problem, without_runtime
from symcheck.engine.networks.subject.compiled import (
    compiled_alike,
    compiled_stance,
    eager_stance,
    foreign_backend,
    is_compiled,
)
from symcheck.engine.networks.subject.outputs import named_outputs
from symcheck.engine.networks.subject.precision import (
    CostCounter,
    Float64Mode,
    copy_network,
    dtype_of,
    float64_default,
    in_float64,
)
from symcheck.errors import OptionError, TargetError
from symcheck.statements.statement import state

WRAPPED = "structured_input."
"""The prefix that the wrappers of `structured` and `adapters` add to the names of wrapped modules."""
COMPILED = "_orig_mod."
"""The prefix that `torch.compile` adds to the names of a network's modules."""
CHUNK = 2_000_000
"""Maximum number of input entries in one forward pass: keeps the intermediate values of an image network below a few
hundred MB."""
PRODUCTS = 10_000_000_000
"""Multiplications, in one precision, that the default number of samples may cost: a few seconds on one core."""
PASS = 2_000_000_000
"""Maximum cost of one forward pass, in multiplications, if its batch can be divided: a fraction of a second."""
COST_OF_ENTRY = 20
"""The cost of one computed entry in multiplications: memory is read and written."""
COST_OF_OPERATOR = 300_000
"""The cost of calling one operator in multiplications: 20 microseconds."""


class Subject:
    """A network to run on stacked inputs.

    Args:
        net: the network; copied, never modified.
        shape: the shape of one input, without the batch axis.
        mode: "eval" or "train".
        dtype: name of the deployed dtype; None for the parameters' own dtype, or float32.
        device: the device of the deployed copy.
        noise_seed: seeds torch before every forward pass; None for no seeding.

    Attributes:
        training: whether the network is tested in train mode. A batch of one input is then run as two equal inputs,
            because batch statistics need at least two.
        artefact: the deployed runtime, if it is not floating-point torch; otherwise "".
        runtime_problem: why an ONNX file runs only by its translation or its runtime, or a compiled network without its
            compiler; otherwise None.
        coarse: whether no float64 copy runs, so that the deployed network is tested at its own precision.
        not_judged: path and dtype of the outputs of the last pass that are not real numbers.

    Raises:
        TargetError: the network cannot be copied, or has lazy modules that never ran.
        OptionError: the device does not exist.
    """

    def __init__(
        self,
        net: nn.Module,
        shape: tuple[int, ...],
        *,
        mode: str = "eval",
        dtype: str | None = None,
        device: str = "cpu",
        noise_seed: int | None = None,
    ) -> None:
        _refuse_uninitialised(net)
        training = mode == "train"
        self.shape = shape
        self.noise_seed = noise_seed
        self.dtype = _deployed_dtype(net, dtype)
        self.device = _device(device)
        self.coarse = False
        self.training = training
        self.not_judged: dict[str, str] = {}
        self._has_run = False
        self.given = net
        cast = None if dtype is None else self.dtype
        self._compiled, self.backend = is_compiled(net), foreign_backend(net)
        self.deployed = compiled_alike(net, copy_network(net, device=self.device, dtype=cast).train(training))
        # the requested dtype or device differs from that of the file's own runtime
        if dtype is not None or self.device.type != "cpu":
            without_runtime(self.deployed)
        self.artefact, self.runtime_problem = artefact_of(self.deployed), runtime_problem(self.deployed)
        if self._compiled:
            self._run_compiled_if_possible()
        self.one_by_one = self._takes_only_one()
        self._counted, self._counted_rows = CostCounter(), 1 if self.one_by_one else 2
        self.exact = self._float64_copy(net, training)

    def _run_compiled_if_possible(self) -> None:
        """Run the deployed copy compiled if possible; otherwise run its Python code, with a note."""
        # A batch of two: some layers reject a single sample in train mode.
        x = np.zeros((2, *self.shape))
        self._compiled = False
        try:
            # Run it uncompiled first: an error there is not caused by the compiler.
            self._call_network(x, False)
        except Exception:  # its own code may raise on this batch; the error is reported when it is run on inputs
            return
        self._compiled = True
        try:
            self._call_network(x, False)
        except Exception as error:  # no C++ compiler, or code that cannot be compiled
            self._compiled = False
            text = (str(error).strip().splitlines() or [""])[0][:120].rstrip(".")
            self.runtime_problem = state("compile_refused", error=type(error).__name__, message=text)

    @property
    def deployed_as(self) -> str:
        """The deployed precision in words: its dtype, and the runtime if it is not torch itself."""
        dtype = str(self.dtype).removeprefix("torch.")
        ran = self.artefact or ("torch.compile" if self._compiled else "")
        return {"": dtype, "int8": "int8"}.get(ran, f"{dtype}, {ran}")

    def _takes_only_one(self) -> bool:
        """Whether only batches of one input run, as in graphs exported for one input."""
        try:
            self._forward(np.zeros((2, *self.shape)), False)
        except TargetError:
            try:
                self._forward(np.zeros((1, *self.shape)), False)
            except TargetError:
                return False
            return True
        return False

    def _float64_copy(self, net: nn.Module, training: bool) -> nn.Module:
        """A float64 copy without gradients of parameters; the deployed copy if none runs."""
        try:
            exact = _without_gradients(in_float64(getattr(net, "_orig_mod", net)).train(training))
            with torch.no_grad(), self._counted:
                _in_float64(exact, torch.zeros(self._counted_rows, *self.shape, dtype=torch.float64))
        except Exception:  # for example quantised layers, or bits reinterpreted as other numbers: use the deployed copy
            self.coarse = True
            return self.deployed
        return exact

    def copy_uncalled(self) -> nn.Module:
        """Another float64 copy, which was never called; the copy that runs if there is no other."""
        if self.coarse:
            return self.exact
        return _without_gradients(in_float64(getattr(self.given, "_orig_mod", self.given)).train(self.training))

    @property
    def runs_torch(self) -> nn.Module | None:
        """The deployed copy if plain torch runs it; None if other code does."""
        plain = not self.artefact and not self._compiled and not isinstance(self.deployed, torch.jit.ScriptModule)
        return self.deployed if plain and not self.coarse else None

    def name(self, module: str) -> str:
        """A module's name in the network as given, without the wrappers of symcheck."""
        while module.startswith((WRAPPED, COMPILED)):
            module = module.removeprefix(WRAPPED).removeprefix(COMPILED)
        return "" if module in (WRAPPED.rstrip("."), COMPILED.rstrip(".")) else module

    def modules(self, *, exact: bool) -> dict[str, nn.Module]:
        """Every module by its name in the network as given."""
        net = self.exact if exact else self.deployed
        return {self.name(name): module for name, module in net.named_modules() if name}

    def run(self, inputs: npt.NDArray[Any], *, exact: bool) -> dict[str, Floats]:
        """All outputs on stacked inputs.

        Args:
            inputs: shape (n, *shape), n >= 1.
            exact: whether to run the float64 copy (casts count as the identity) or the deployed one.

        Returns:
            Maps the path of each output to its flat values, shape (n, size), float64.

        Raises:
            TargetError: the network raises, returns no tensors, or does not preserve the batch axis.
        """
        # A single sample has no batch statistics: run it twice, and keep one row.
        if self.training and len(inputs) == 1:
            return {path: rows[:1] for path, rows in self.run(np.repeat(inputs, 2, axis=0), exact=exact).items()}
        # 16,384 samples at most, however small the inputs; the statistics of a batch in train mode need all of it
        affordable = 16_384 if self.training else min(16_384, PASS // self.cost)
        per_pass = 1 if self.one_by_one else max(1, min(CHUNK // max(1, int(np.prod(self.shape))), affordable))
        parts: dict[str, list[Floats]] = {}
        for start in range(0, len(inputs), per_pass):
            chunk = inputs[start : start + per_pass]
            for path, tensor in self._forward(chunk, exact).items():
                parts.setdefault(path, []).append(_flat_rows(tensor, len(chunk), path))
        return {path: np.concatenate(rows) for path, rows in parts.items()}

    def run_afresh(self, inputs: npt.NDArray[Any]) -> dict[str, Floats]:
        """Like `run` with `exact`, on a copy that has not run before; on the used one if no float64 copy runs.

        Args:
            inputs: shape (n, *shape), n >= 1.

        Returns:
            Maps the path of each output to its flat values, shape (n, size), float64.

        Raises:
            TargetError: as `run`.
        """
        if self.coarse:
            return self.run(inputs, exact=True)
        # The given network itself is never run, so a new copy has no memory of earlier calls.
        copy = _without_gradients(in_float64(getattr(self.given, "_orig_mod", self.given)))
        return self.run_by(copy.train(self.training), inputs)

    def run_by(self, copy: nn.Module, inputs: npt.NDArray[Any]) -> dict[str, Floats]:
        """Like `run` with `exact`, on another float64 copy.

        Raises:
            TargetError: as `run`.
        """
        used, self.exact = self.exact, copy
        try:
            return self.run(inputs, exact=True)
        finally:
            self.exact = used

    def taking_one_by_one(self) -> Subject:
        """The same network with the same copies, run on one input at a time."""
        alone = copy.copy(self)
        alone.one_by_one = True
        return alone

    @property
    def cost(self) -> int:
        """The cost of one input in multiplications; operators are only counted if each input needs its own calls."""
        counted = self._counted
        together = counted.products + COST_OF_ENTRY * counted.entries
        return max(1, together // self._counted_rows + (COST_OF_OPERATOR * counted.operators if self.one_by_one else 0))

    def run_uncompiled(self) -> None:
        """Run the deployed copy once by its own Python code, which a mode can observe."""
        was_compiled, self._compiled = self._compiled, False
        try:
            self._forward(np.zeros((1 if self.one_by_one else 2, *self.shape)), False)
        finally:
            self._compiled = was_compiled

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Maps the path of each output to its shape without the batch axis.

        Raises:
            TargetError: as `run`; also if there is no floating-point output.
        """
        example = np.zeros((1 if self.one_by_one else 2, *self.shape))
        sizes = {path: tuple(tensor.shape[1:]) for path, tensor in self._forward(example, False).items()}
        if not sizes:
            given = ", ".join(f"{path or 'the output'} of {dtype}" for path, dtype in self.not_judged.items())
            raise TargetError(
                f"no output consists of real numbers; the network returns {given or 'no tensor'}.",
                where="network",
                remedy="Return logits, means or values.",
            )
        return sizes

    def _forward(self, inputs: npt.NDArray[Any], exact: bool) -> dict[str, torch.Tensor]:
        try:
            result = self._call_network(inputs, exact)
        except TargetError:  # an ONNX graph reports unsupported operators
            raise
        except Exception as error:
            shown, cause = self._one_refused(inputs, exact, error) if self._has_run else (inputs, error)
            raise self._raised_error(cause, shown) from cause
        self._has_run = True
        outputs = named_outputs(result)
        # Integer and boolean outputs are not compared; they are reported as not judged.
        floating = {path: tensor for path, tensor in outputs.items() if tensor.is_floating_point()}
        self.not_judged = {path: str(tensor.dtype) for path, tensor in outputs.items() if path not in floating}
        return floating

    def _call_network(self, inputs: npt.NDArray[Any], exact: bool) -> Any:
        """The network's raw output.

        Raises:
            TimeUp: the time budget is spent.
        """
        raise_if_late()
        if self.noise_seed is not None:
            torch.manual_seed(self.noise_seed)
        exact = exact and not self.coarse
        net = self.exact if exact else self.deployed
        dtype, device = (torch.float64, torch.device("cpu")) if exact else (self.dtype, self.device)
        x = torch.from_numpy(np.ascontiguousarray(inputs, dtype=np.float64)).to(dtype=dtype, device=device)
        with torch.no_grad():
            if exact:
                return _in_float64(net, x)
            if not self._compiled:
                return net(x)
            with compiled_stance():
                return net(x)

    def _one_refused(
        self, inputs: npt.NDArray[Any], exact: bool, error: Exception
    ) -> tuple[npt.NDArray[Any], Exception]:
        """One input on which the network raises, found by bisection, and the error; all if only a batch raises."""
        shown = inputs
        while len(shown) > 1:
            # Search the half that raises; if neither does, only the whole batch raises.
            for half in np.array_split(shown, 2):
                try:
                    self._call_network(half, exact)
                except Exception as further:  # the network's own code may raise any exception
                    shown, error = half, further
                    break
            else:
                return shown, error
        return shown, error

    def _raised_error(self, error: Exception, inputs: npt.NDArray[Any]) -> TargetError:
        text = " ".join(str(error).split())[:300]
        if len(inputs) == 1:
            shown = np.array2string(inputs[0], threshold=16, precision=4, separator=", ")
            return TargetError(
                f"the network raised {type(error).__name__}: {text} on the input {shown} (shape {self.shape}).",
                where="network",
                remedy="Fix the network for this input, or give the shape of one input with --input-shape.",
            )
        return TargetError(
            f"the network raised {type(error).__name__}: {text} on {len(inputs)} inputs of shape {self.shape}.",
            where="network",
            remedy="forward must accept a batch (n, *shape); give the shape of one input with --input-shape.",
        )


def _refuse_uninitialised(net: nn.Module) -> None:
    """Reject lazy modules, which draw their weights in the first pass, so that every copy would differ."""
    lazy = [name for name, tensor in (*net.named_parameters(), *net.named_buffers()) if nn.parameter.is_lazy(tensor)]
    if lazy:
        raise TargetError(
            f"the network has lazy parameters or buffers, which are not initialised yet: {', '.join(lazy)}.",
            where=type(net).__name__,
            remedy="In the factory, run the network once on an input of the correct shape, or load its checkpoint.",
        )


def _without_gradients(net: nn.Module) -> nn.Module:
    """The same copy, modified in place, with gradients of its parameters disabled."""
    for parameter in net.parameters():
        parameter.detach_().requires_grad_(False)  # copies of TorchScript parameters are not leaf tensors
    return net


def _in_float64(net: nn.Module, x: torch.Tensor) -> Any:
    with float64_default(), Float64Mode():
        return net(x)


def _flat_rows(tensor: torch.Tensor, count: int, path: str) -> Floats:
    if tensor.ndim == 0 or tensor.shape[0] != count:
        raise TargetError(
            f"{path} has shape {tuple(tensor.shape)} for a batch of {count} inputs, so its first axis is not the "
            "batch.",
            where="network",
            remedy="forward must return one row per input.",
        )
    return np.asarray(tensor.detach().double().cpu().numpy()).reshape(count, -1)


def _deployed_dtype(net: nn.Module, dtype: str | None) -> torch.dtype:
    if dtype is not None:
        chosen = getattr(torch, str(dtype).removeprefix("torch."))
        if not isinstance(chosen, torch.dtype):
            raise OptionError(f"expected a dtype, got {dtype!r}.", where="--dtype")
        return chosen
    return dtype_of(net)


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise OptionError(
            f"expected an available device, got {name!r} ({first}).", where="--device", remedy="Use cpu."
        ) from error
    return device


@contextmanager
def random_state_kept() -> Iterator[None]:
    """Restore the random generators of torch, NumPy and Python on exit.

    Inside, compiled networks run by their own Python code, except in a deployed copy.
    """
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002 (the user's global state)
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() and torch.cuda.is_initialized() else None  # type: ignore[no-untyped-call]
    try:
        with eager_stance():
            yield
    finally:
        torch.set_rng_state(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        random.setstate(states[2])
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)
