"""Finds the network that a user named, and loads its weights without running code from files."""

from __future__ import annotations

import inspect
import logging
import pickle
import zipfile
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from symcheck.engine.networks.subject.adapters import adapt_agent
from symcheck.engine.networks.subject.array_functions import ArrayFunction, is_array_function
from symcheck.engine.networks.subject.stable_baselines import load_policy
from symcheck.errors import SymcheckError, TargetError, described
from symcheck.loading import is_reference, load_attribute

WHERE = "TARGET"


def resolve_network(
    target: str | nn.Module | Any, *, checkpoint: str | Path | None = None, trust: bool = False
) -> nn.Module:
    """The network that a target names.

    Args:
        target: a module; a function of one array (JAX); a zero-argument factory of either; or the name of any of them:
            `pkg.mod:attr`, `path/file.py:attr`, or a saved network (`.pt2` by torch.export, TorchScript).
        checkpoint: a state dict to load into it.
        trust: whether to load files that may run code.

    Returns:
        The network.

    Raises:
        TargetError: the network cannot be found, built or loaded; the message gives the reason and a remedy.
        MissingExtraError: the format needs an optional part.
    """
    net = _from_name(target, trust) if isinstance(target, str) else _build_network(target, type(target).__name__)
    if checkpoint is not None:
        load_checkpoint(net, Path(checkpoint), trust=trust)
    return net


def _from_name(target: str, trust: bool) -> nn.Module:
    suffix = Path(target).suffix.lower()
    # A file whose name contains a colon is a file.
    if is_reference(target) and not Path(target).is_file():
        return _build_network(load_attribute(target, where=WHERE), target)
    path = Path(target)
    if not path.exists():
        raise TargetError(
            f"expected module:name, file.py:name or a saved network, got {target!r}, which is not a file in "
            f"{Path.cwd()}.",
            where=WHERE,
            remedy="Name a factory, for instance my_networks.py:make.",
        )
    if suffix == ".py":
        raise TargetError(
            f"expected file.py:name, got {target!r}.", where=WHERE, remedy=f"Say which factory: {target}:make."
        )
    if suffix == ".onnx":
        from symcheck.engine.networks.subject.onnx_graph import load_onnx

        return load_onnx(path)
    if suffix == ".zip":
        return adapt_agent(load_policy(path, trust=trust))
    return _load_exported(path) if suffix == ".pt2" else _load_saved(path, trust)


def _build_network(item: Any, name: str) -> nn.Module:
    if isinstance(item, nn.Module):
        return item
    if is_array_function(item):
        return ArrayFunction(item)
    if not callable(item):
        raise TargetError(
            f"expected a torch.nn.Module or a factory of one, got {type(item).__name__}.",
            where=name,
            remedy="Name a module instance or a function without required arguments that returns one.",
        )
    try:
        net = item()
    except Exception as error:
        raise TargetError(
            f"the factory raised {described(error)}.",
            where=name,
            remedy=None
            if isinstance(error, SymcheckError)  # its own message contains the remedy
            else "The factory must work without arguments and return a torch.nn.Module.",
        ) from error
    if is_array_function(net):
        return ArrayFunction(net)
    if not isinstance(net, nn.Module):
        raise TargetError(
            f"expected the factory to return a torch.nn.Module, got {type(net).__name__}.",
            where=name,
            remedy="Return the network itself.",
        )
    return net


def _load_exported(path: Path) -> nn.Module:
    log = logging.getLogger("torch.export")
    was_disabled, log.disabled = log.disabled, True  # suppress its traceback, which is reported here in one message
    try:
        program = torch.export.load(path)
        size = _batch_size_of(program)
        _refuse_fixed_batch(size, path)
        return _of_any_batch(program, size)
    except TargetError:
        raise
    except Exception as error:
        raise TargetError(
            f"the file cannot be read as a torch.export file: {type(error).__name__}: {_first_line(error)}",
            where=str(path),
            remedy="Write the file again with torch.export.save.",
        ) from error
    finally:
        log.disabled = was_disabled


def _batch_size_of(program: Any) -> Any:
    """The batch size of an export: an int if it is fixed, symbolic if not; None if the inputs have several."""
    names = set(program.graph_signature.user_inputs)
    shapes = [node.meta["val"].shape for node in program.graph.nodes if node.op == "placeholder" and node.name in names]
    sizes = [shape[0] if len(shape) else None for shape in shapes]
    # A symbolic size has no hash.
    return sizes[0] if sizes and all(str(size) == str(sizes[0]) for size in sizes) else None


def _refuse_fixed_batch(size: Any, path: Path) -> None:
    """Reject an export for a fixed batch size above 1; one for single inputs can be run repeatedly."""
    if type(size) is int and size > 1:
        raise TargetError(
            f"the program was exported for batches of exactly {size} inputs.",
            where=str(path),
            remedy="Export the network with a batch of any size: torch.export.export(net, (x,), "
            'dynamic_shapes=({0: torch.export.Dim("batch")},)).',
        )


def _of_any_batch(program: Any, size: Any) -> nn.Module:
    """The program as a module; without the bounds of its batch size, within which its graph is the whole function."""
    symbol = getattr(getattr(size, "node", None), "expr", None)
    bounds = program.range_constraints.get(symbol)
    unbounded = None if bounds is None else type(bounds).unknown_int().upper
    if bounds is None or (bounds.lower <= 2 and bounds.upper == unbounded):
        return cast(nn.Module, program.module())
    program.range_constraints[symbol] = type(bounds)(0, unbounded)
    # The guards repeat the bounds; versions of torch without the option have no guards.
    has_guards = "check_guards" in inspect.signature(program.module).parameters
    return cast(nn.Module, program.module(**({"check_guards": False} if has_guards else {})))


def _load_saved(path: Path, trust: bool) -> nn.Module:
    """TorchScript, or (if trusted) a pickled module."""
    if _is_torchscript(path):
        try:
            return torch.jit.load(str(path), map_location="cpu")  # type: ignore[no-untyped-call, no-any-return]
        except Exception as error:
            raise TargetError(
                f"the file cannot be read as TorchScript: {_first_line(error)}", where=str(path)
            ) from error
    loaded = load_file(path, trust=trust)
    if not isinstance(loaded, nn.Module):
        raise TargetError(
            f"the file contains {type(loaded).__name__}, which is not a network.",
            where=str(path),
            remedy="A state dict needs its network: give the factory as TARGET and this file as --checkpoint.",
        )
    return loaded


def _is_torchscript(path: Path) -> bool:
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        # TorchScript archives hold code; files of `torch.save` contain only data.pkl.
        return any("/code/" in name or name.endswith("constants.pkl") for name in archive.namelist())


def load_file(path: Path, *, trust: bool) -> Any:
    """The content of a file saved by torch.save; only tensors and plain containers unless trusted.

    Raises:
        TargetError: no such file, a corrupt file, or one that would run code while `trust` is not set.
    """
    if not path.is_file():
        raise TargetError(f"no such file (looked in {Path.cwd()}).", where=str(path), remedy="Check the path.")
    try:
        return torch.load(path, map_location="cpu", weights_only=not trust)
    except pickle.UnpicklingError as error:
        # torch's message for a disallowed global; other unpickling errors mean a corrupt file.
        if "weights_only" in str(error).lower() or "Unsupported" in str(error) or "GLOBAL" in str(error):
            raise TargetError(
                "loading it would run code, so it was not loaded.",
                where=str(path),
                remedy="Save a state dict (torch.save(net.state_dict(), ...)), or pass --trust if you trust the file.",
            ) from error
        raise _corrupt(path, error) from error
    except Exception as error:
        raise _corrupt(path, error) from error


def _corrupt(path: Path, error: Exception) -> TargetError:
    return TargetError(
        f"cannot be read as a torch file: {type(error).__name__}: {_first_line(error)}",
        where=str(path),
        remedy="Save the file again; an interrupted copy causes this error.",
    )


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    first = lines[0].rstrip(".") if lines else type(error).__name__
    return f"{first}."


def load_checkpoint(net: nn.Module, path: Path, *, trust: bool = False) -> None:
    """Load a state dict into a network.

    Args:
        net: modified in place; it was built for this run.
        path: a file saved by torch.save: a state dict, or a dictionary with one under "state_dict", "model" and
            the like.
        trust: whether to load a file that may run code.

    Raises:
        TargetError: the file cannot be used, or its names and shapes do not match the network.
    """
    loaded = load_file(path, trust=trust)
    if isinstance(loaded, nn.Module):
        loaded = loaded.state_dict()
    state = _state_dict(loaded)
    if state is None:
        raise TargetError(
            f"expected a state dict, got {type(loaded).__name__}.",
            where=str(path),
            remedy="Save the state dict with torch.save(net.state_dict(), ...).",
        )
    try:
        net.load_state_dict(state)
    except RuntimeError as error:
        raise TargetError(
            f"the state dict does not fit the network: {' '.join(str(error).split())[:400]}",
            where=str(path),
            remedy="Build the network with the sizes it was trained with.",
        ) from error


def _state_dict(loaded: Any) -> dict[str, torch.Tensor] | None:
    if not isinstance(loaded, dict) or not loaded:
        return None
    if all(isinstance(item, torch.Tensor) for item in loaded.values()):
        return loaded
    # Keys under which training scripts nest the weights.
    for key in ("state_dict", "model_state_dict", "model", "net", "network", "policy"):
        if isinstance(loaded.get(key), dict):
            return _state_dict(loaded[key])
    return None
