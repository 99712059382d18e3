"""Gradient ascent on the residual, to find inputs that random sampling misses."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import torch

from symcheck.array_types import Floats
from symcheck.engine.clock import raise_if_late
from symcheck.engine.networks.samples.sampling import Family
from symcheck.engine.networks.subject.claims import InputClaim, Motion, OutputClaim
from symcheck.engine.networks.subject.domain import Domain
from symcheck.engine.networks.subject.outputs import named_outputs
from symcheck.engine.networks.subject.precision import Float64Mode, float64_default
from symcheck.engine.networks.subject.subject import Subject
from symcheck.engine.networks.subject.values import AffineMap, SignedPermutation

# Steps of an ascent, and starting points per batch: a few passes, compared with thousands of random pairs.
STEPS = 8
STARTS = 16


def climb_residual(
    subject: Subject,
    inputs: InputClaim,
    outputs: Sequence[OutputClaim],
    starts: Floats,
    domain: Domain | None = None,
) -> list[Family]:
    """Inputs after ascent on the squared residual, one family per generator; empty if there are no gradients.

    Args:
        subject: the network.
        inputs: the action on inputs; callables are left out.
        outputs: the claimed action on outputs.
        starts: starting points, shape (n, *shape).
        domain: the domain of inputs; None if unknown.

    Returns:
        Families of inputs whose entries are bounded by the largest entry of the starts.
    """
    # Callables cannot be differentiated.
    if not inputs.is_data or any(callable(motion) for claim in outputs for motion in claim.motions):
        return []
    climbed: list[Family] = []
    for generator in range(len(inputs.motions)):
        try:
            x = _climb(subject, inputs, outputs, starts[:STARTS], generator)
        except Exception:  # a network without usable gradients: only random inputs are used
            return climbed
        if np.isfinite(x).all():
            x = x if domain is None else domain.clip(x)
            climbed.append(Family("gradient ascent on the residual", x, borrows=True))
    return climbed


Unit: TypeAlias = tuple[str, int]
"""A module's name and the index of one of its outputs (or channels)."""


def activate_units(
    subject: Subject,
    inputs: InputClaim,
    units: Sequence[Unit],
    rng: np.random.Generator,
    domain: Domain | None = None,
) -> list[Family]:
    """Inputs that make given units active together, because a fault in inactive units has no effect elsewhere.

    Args:
        subject: the network.
        inputs: the action on inputs.
        units: units to activate together; those outside of modules are left out.
        rng: draws the starting points.
        domain: the domain of inputs; None if unknown.

    Returns:
        Families with every step of the ascents, from small and large starts.
    """
    modules = subject.modules(exact=True)
    known = [(modules[layer], unit) for layer, unit in units if layer in modules]
    awake: list[Family] = []
    # At scale 30 biases matter little; at scale 1 a unit may need its bias.
    for scale in (1.0, 30.0) if known else ():
        try:
            steps = _climb_units(subject, known, scale * rng.normal(size=(STARTS, *inputs.shape)))
        except Exception:  # no gradient reaches the input
            return awake
        steps = steps[np.isfinite(steps).reshape(len(steps), -1).all(axis=1)]
        if len(steps):
            steps = steps if domain is None else domain.clip(steps)
            awake.append(Family("inputs that activate the units at fault", steps))
    return awake


def _climb_units(subject: Subject, units: Sequence[tuple[torch.nn.Module, int]], starts: Floats) -> Floats:
    outputs: dict[torch.nn.Module, torch.Tensor] = {}

    def keep(module: torch.nn.Module, _inputs: Any, output: torch.Tensor) -> None:
        # A forward hook reads the output of each module that contains a unit.
        outputs[module] = output

    handles = [module.register_forward_hook(keep) for module, _ in units]
    x = torch.from_numpy(np.array(starts))
    steps = [starts]
    try:
        for _ in range(2 * STEPS):
            raise_if_late()
            x = x.detach().requires_grad_(True)
            with torch.enable_grad(), float64_default(), Float64Mode(), _quiet():
                subject.exact(x)
                # Maximise the least active unit: all must be active at once.
                least = torch.stack([_activation(outputs[module], unit) for module, unit in units]).amin(0)
                (gradient,) = torch.autograd.grad(least.sum(), x)
            x = _step_uphill(x, gradient)
            # Every step of the ascent is kept, because any of them may activate the units.
            steps.append(np.array(x.detach().numpy()))
    finally:
        for handle in handles:
            handle.remove()
    return np.concatenate(steps)


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress torch's warnings about reading values of tensors that require gradients."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def _activation(output: torch.Tensor, unit: int) -> torch.Tensor:
    """The activation of one unit, or of a channel at its most active position; shape (n,)."""
    spatial = output.ndim >= 4 and unit < output.shape[1]
    active: torch.Tensor = output[:, unit].flatten(1).amax(1) if spatial else output.flatten(1)[:, unit]
    return active


def _step_uphill(x: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """An ascent step of a quarter of the input's norm."""
    norm = gradient.flatten(1).norm(dim=1).clamp_min(1e-300)  # a zero gradient gives no direction
    step = 0.25 * x.detach().flatten(1).norm(dim=1).clamp_min(1.0)
    moved: torch.Tensor = x.detach() + (step / norm).reshape(-1, *[1] * (x.ndim - 1)) * gradient
    return moved


def _climb(
    subject: Subject,
    inputs: InputClaim,
    outputs: Sequence[OutputClaim],
    starts: Floats,
    generator: int,
) -> Floats:
    # The ascent stays within the range of its starting points: outside, a residual may be an overflow.
    limit = float(np.abs(starts).max(initial=1.0))
    move = _as_tensor_map(inputs.motions[generator])
    maps = {claim.path: _as_tensor_map(claim.motions[generator]) for claim in outputs}
    x = torch.from_numpy(np.array(starts, dtype=np.float64))
    for _ in range(STEPS):
        raise_if_late()
        x = x.detach().requires_grad_(True)
        with torch.enable_grad(), float64_default(), Float64Mode(), _quiet():
            y, z = named_outputs(subject.exact(x)), named_outputs(subject.exact(move(x)))
            # The squared residual, summed over outputs and inputs; inputs do not influence each other's gradient.
            loss = sum(
                (maps[path](y[path]).reshape(len(x), -1) - z[path].reshape(len(x), -1)).square().sum() for path in maps
            )
            # No path from the input to the outputs: there is no gradient.
            if not isinstance(loss, torch.Tensor) or not loss.requires_grad:
                return starts[:0]
            (gradient,) = torch.autograd.grad(loss, x)
        x = _step_uphill(x, gradient).clamp(-limit, limit)
    return np.asarray(x.detach().numpy())


def _as_tensor_map(motion: Motion) -> Callable[[torch.Tensor], torch.Tensor]:
    if isinstance(motion, SignedPermutation):
        # (Lx)[index[j]] = sign[j] x[j], so entry i comes from argsort(index)[i].
        source = torch.from_numpy(np.argsort(motion.index))
        sign = torch.from_numpy(motion.sign[np.argsort(motion.index)].astype(np.float64))
        return lambda t: (t.flatten(1)[:, source] * sign).reshape(t.shape)
    if isinstance(motion, AffineMap):
        matrix, offset = torch.from_numpy(motion.matrix), torch.from_numpy(motion.offset)
        return lambda t: (t.flatten(1) @ matrix.T + offset).reshape(t.shape)
    raise TypeError("callables have no tensor form")
