"""The conditions under which a proof from one traced run holds for every input, batch and call.

The proof follows one run. This module shows, on a graph without values, that the network runs the same computation for
all values and batch sizes, treats samples independently, changes no state that a later call reads, and reads only its
input.
"""

from __future__ import annotations

import contextlib
import types
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from symcheck.engine.networks.capture.batch_axis import why_samples_meet
from symcheck.engine.networks.capture.call_effects import called_twice, watched_calls
from symcheck.engine.networks.capture.capture import (
    Capture,
    RefusedCaptureError,
    answers,
    capture_network,
    constants_without_numbers,
)
from symcheck.engine.networks.capture.computations import are_alike, are_constants_held, moving_steps
from symcheck.engine.networks.capture.held_state import (
    is_otherwise,
    what_changed,
    what_first_inputs_leave,
    what_is_held,
)
from symcheck.engine.networks.capture.instructions import UnknownInstructionError
from symcheck.engine.networks.capture.library_settings import setting_read
from symcheck.engine.networks.capture.places import place_of
from symcheck.engine.networks.capture.plain_calls import ALIKE, path_of, why_calls_differ, with_gradients
from symcheck.engine.networks.capture.read_attributes import (
    compares_identities,
    read_by_scripts,
    read_outside,
    without_caches,
)
from symcheck.engine.networks.capture.shared_memory import written_through_a_copy
from symcheck.engine.networks.capture.texts_and_orders import depends_on_process
from symcheck.engine.networks.samples.entry_scales import difference, output_scale
from symcheck.engine.networks.samples.sampling import FAR
from symcheck.engine.networks.subject.compiled import eager_stance
from symcheck.engine.networks.subject.outputs import named_outputs
from symcheck.engine.networks.subject.precision import Float64Mode, copy_network, dtype_of, float64_default
from symcheck.engine.networks.subject.values import Opaque
from symcheck.statements.statement import state

AGREEMENT = 1e-9
"""Largest relative difference between the outputs of graph and network: the float64 rounding of deep networks."""
SAMPLES = 3
"""Batch size at which two graphs are compared."""
ROUNDINGS = 1e3
"""Units in the last place by which constants may differ that are computed in two dtypes."""


def capture_every_call(
    net: nn.Module,
    deployed: nn.Module | None,
    shape: tuple[int, ...],
    seed: int,
    *,
    alone: bool,
    given: nn.Module | None = None,
) -> Capture | Opaque:
    """The graph of every call of the network, for all values, batches and earlier calls.

    Args:
        net: the float64 copy that is traced. It must not have been called before, so that effects of a first call are
            detected.
        deployed: the network as deployed, for comparison; None if it is not torch's own code.
        shape: the shape of one input, without the batch axis.
        seed: the seed of the inputs for the calls.
        alone: whether it takes one input at a time.
        given: the network as given, of which the others are copies.

    Returns:
        The graph, whose `assumptions` are still to be proved; otherwise the first reason why there is none, with its
        place in the network's code if known.
    """
    try:
        return _captured_or_reason(net, deployed, shape, seed, alone=alone, given=given)
    except RefusedCaptureError as error:
        return Opaque(error.reason, source=error.source)
    except UnknownInstructionError as error:
        return Opaque(state("SYM177", instruction=error.name))
    except Exception as error:  # raised by the network's code or by torch's: nothing is proved
        message = " ".join(str(error).split())[:200]
        return Opaque(state("SYM186", error=type(error).__name__, message=message))


def _captured_or_reason(
    net: nn.Module,
    deployed: nn.Module | None,
    shape: tuple[int, ...],
    seed: int,
    *,
    alone: bool,
    given: nn.Module | None,
) -> Capture | Opaque:
    rng = np.random.default_rng((seed, 8))
    batches = [torch.from_numpy(scale * rng.normal(size=(1 if alone else 3, *shape))) for scale in (1.0, FAR)]
    ours = copy_network(net, device=torch.device("cpu"))
    watched = called_twice(lambda: floating_outputs(ours, batches[0]))
    with without_caches(ours, watched.functions) as disabled:
        if disabled:
            watched = called_twice(lambda: floating_outputs(ours, batches[0]))
    other = copy_network(net, device=torch.device("cpu"))
    untouched = what_is_held(other, watched.functions)
    floating_outputs(other, batches[1])
    changed_first = is_otherwise(untouched, what_is_held(other, watched.functions))
    floating_outputs(other, batches[0])
    kept, tensors_kept = what_first_inputs_leave(ours, other)
    if kept:
        return Opaque(state("SYM183", what=kept))
    far = floating_outputs(ours, batches[1])
    before = what_is_held(ours, watched.functions, given)
    # only one call: state that alternates has its old value after two calls
    usual = [floating_outputs(ours, batches[0]), far]
    # no code runs between this check and the capture, so the graph can only hold tensors that are stale now
    stale: set[int] = set()
    after = what_is_held(ours, watched.functions)
    changed = what_changed(before, after, stale=stale)
    if changed is not None:
        return Opaque(changed)
    if watched.asked:
        return Opaque(state("SYM185", operation=watched.asked), source=watched.source)
    if outside := read_outside(watched.functions) or before.answered_by_caches(after, disabled):
        return Opaque(state("SYM185", operation=outside))
    if setting := setting_read(ours, watched.functions, watched.cells):
        return Opaque(state("SYM171", setting=setting))
    if before.of_given == "key" or (before.of_given and compares_identities(watched.functions)):
        return Opaque(state("SYM175"))
    if before.closed:
        return Opaque(state("SYM173", kind=before.closed))
    scripted = given if isinstance(given, torch.jit.ScriptModule) else ours
    if (reason := read_by_scripts(scripted, before.scripts)) is not None:
        return Opaque(reason)
    captured = capture_network(ours, shape, alone=alone, functions=watched.functions)
    captured = replace(captured, backend=watched.backend)
    what, source = depends_on_process(lambda: floating_outputs(other, batches[0]), watched.functions, sets=before.sets)
    if what:
        return Opaque(state("SYM172", what=what), source=source)
    if kept := next((tensors_kept[id(item)] for item in captured_tensors(captured) if id(item) in tensors_kept), ""):
        return Opaque(state("SYM183", what=kept))
    if constants_without_numbers(captured) or _reads_stale(captured, stale):
        return Opaque(state("SYM183", what="a tensor that is kept from call to call"))
    if (copied := written_through_a_copy(captured.graph)) is not None:
        place = place_of(copied)
        return Opaque(state("SYM176", operation=place.operation if place else ""), source=place.source if place else "")
    met = why_samples_meet(captured)
    if met is not None:
        return Opaque(met[0])
    if not all(_answers_agree(answers(captured, x), wanted) for x, wanted in zip(batches, usual, strict=True)):
        return Opaque(state("SYM187"))
    if changed_first and (
        differs := _why_first_call_differs(net, captured, shape, batches[0], changed_first, alone=alone)
    ):
        return differs
    if not answers_in_other_modes(net, batches[0], usual[0]):
        return Opaque(state("SYM185", operation="whether gradients are recorded"))
    if deployed is not None:
        differs = _why_deployed_differs(captured, deployed, batches[0], watched.functions, alone=alone)
        if differs is not None:
            return differs
    return why_calls_differ(net, captured, batches[0], watched.functions, alone=alone) or captured


def floating_outputs(net: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """The outputs of a float64 copy that are real numbers, by their paths."""
    with torch.no_grad(), float64_default(), Float64Mode():
        result = net(x)
    return {path: tensor for path, tensor in named_outputs(result).items() if tensor.is_floating_point()}


def answers_in_other_modes(net: nn.Module, x: torch.Tensor, usual: dict[str, torch.Tensor]) -> bool:
    """Whether outputs are the same while gradients are recorded, without gradients, and in inference mode.

    Args:
        net: a float64 copy; it is copied again.
        x: a batch.
        usual: its outputs without gradients.
    """
    trained = with_gradients(net)
    results = []
    with torch.enable_grad(), float64_default(), Float64Mode():
        results.append(named_outputs(trained(x)))
        with contextlib.suppress(Exception):  # NumPy, for example, rejects tensors that record gradients
            results.append(named_outputs(trained(x.clone().requires_grad_().mul(1.0))))
    # a network that computes gradients itself raises in this mode; that is not a different output
    with contextlib.suppress(RuntimeError), torch.inference_mode(), float64_default(), Float64Mode():
        results.append(named_outputs(trained(x.clone())))
    return all(
        _answers_agree({path: result[path].detach() for path in usual if path in result}, usual) for result in results
    )


def _reads_stale(captured: Capture, stale: set[int]) -> bool:
    """Whether the graph reads a tensor that each call replaces (an attribute, parameter or buffer)."""
    return any(id(item) in stale for item in captured_tensors(captured))


def captured_tensors(captured: Capture) -> list[torch.Tensor]:
    """The parameters, buffers and constants of a graph."""
    held = [getattr(captured.module, str(node.target), None) for node in captured.graph.nodes if node.op == "get_attr"]
    return [item for item in (*held, *captured.state.values()) if isinstance(item, torch.Tensor)]


def _answers_agree(answered: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor]) -> bool:
    if answered.keys() != wanted.keys():
        return False
    for path, tensor in wanted.items():
        numbers, usual = answered[path].double().numpy(), tensor.double().numpy()
        if numbers.shape != usual.shape:
            return False
        gap = difference(numbers, usual)
        gap[np.isnan(numbers) & np.isnan(usual)] = 0.0
        if not (gap <= AGREEMENT * output_scale(usual)).all():
            return False
    return True


def _why_first_call_differs(
    net: nn.Module, captured: Capture, shape: tuple[int, ...], x: torch.Tensor, changed: str, *, alone: bool
) -> Opaque | None:
    """The reason if the first call, which changes state, differs from later calls or reads more."""
    called, uncalled = (copy_network(net, device=torch.device("cpu")) for _ in range(2))
    with watched_calls() as watched:
        floating_outputs(called, x)
    if watched.asked:
        return Opaque(state("SYM185", operation=watched.asked), source=watched.source)
    first = capture_network(uncalled, shape, alone=alone, functions=watched.functions)
    samples = 1 if captured.size is None else SAMPLES
    mine, later = (moving_steps(item.module, item.state, item.size, samples) for item in (first, captured))
    return None if are_alike(mine, later, ALIKE) else Opaque(state("SYM183", what=changed))


def _why_deployed_differs(
    captured: Capture,
    deployed: nn.Module,
    x: torch.Tensor,
    functions: dict[types.CodeType, dict[str, Any]],
    *,
    alone: bool,
) -> Opaque | None:
    """The reason if the deployed dtype runs other operators, or has other constants, than the float64 copy."""
    copies = [copy_network(deployed, device=torch.device("cpu")) for _ in range(2)]
    # Parameters of the float64 copy have no gradients, and some operators are decomposed by that.
    copies[0].requires_grad_(False)
    try:
        used = capture_network(copies[0], tuple(x.shape[1:]), alone=alone, exact=False, functions=functions)
    except RefusedCaptureError as error:
        return Opaque(error.reason, source=error.source)
    samples = 1 if captured.size is None else SAMPLES
    dtype = dtype_of(deployed)
    mine, exact = (moving_steps(item.module, item.state, item.size, samples) for item in (used, captured))
    rounding = min(ROUNDINGS * torch.finfo(dtype).eps, 0.1)
    if not (are_alike(mine, exact, rounding, across_dtypes=True) and are_constants_held(mine, dtype)):
        return Opaque(state("SYM188"))
    with eager_stance(), torch.no_grad():
        source = used.path.where_it_leaves(path_of(copies[1], x.to(dtype)))
    return None if source is None else Opaque(state("SYM187"), source=source)
