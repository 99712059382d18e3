"""The effect of rounding on an output: the same network with weights and inputs perturbed in their last places.

A residual is a violation only if rounding cannot explain it. If the terms of a sum cancel, the rounding error is that
of the terms, and a recurrence may double a difference at each step. The size of the output shows neither effect; random
changes in the last places of weights and inputs show both.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from symcheck.array_types import Floats
from symcheck.engine.networks.samples.entry_scales import EntryScales
from symcheck.engine.networks.subject.precision import copy_network
from symcheck.engine.networks.subject.subject import Subject

EPSILON = float(np.finfo(np.float64).eps)
MARGIN = 64.0
"""Safety factor on the effect of one perturbation: one draw of a few roundings represents the largest of thousands."""
OWN_UNITS = 16.0
"""Ulps of an output's own size that always count as rounding, even if a perturbation has less effect."""
# relative perturbation for measuring the size of terms: far above rounding, but still in the linear regime
_SMALL = 1e-7
_FEW = 64  # number of inputs for measuring the size of terms
_CANCELLED = 1e3  # size of the terms over that of their sum: three digits are lost
_MOST_BENT = 1e3  # sensitivity to inputs over spread; above it, a small change of an input does not have a small effect


class Rounding:
    """Perturbed copies of a network's float64 copy, created on first use.

    Args:
        subject: the network.
        seed: the seed of the perturbations.
    """

    def __init__(self, subject: Subject, seed: int) -> None:
        self._subject = subject
        self._seed = seed
        self._copies: dict[tuple[float, int], nn.Module | None] = {}

    def noise(self, x: Floats, usual: dict[str, Floats], epsilon: float = EPSILON, draw: int = 0) -> dict[str, Floats]:
        """The change of outputs when weights and inputs are perturbed by one ulp, shape (n, size) each.

        Args:
            x: shape (n, *shape).
            usual: the outputs of the float64 copy.
            epsilon: the relative unit of the dtype whose rounding is estimated.
            draw: index of the independent perturbation.

        Returns:
            Nothing if no perturbed copy runs.
        """
        sizes: dict[str, Floats] = {}
        for path, values in self._run(self._shake(x, epsilon, draw), epsilon, draw).items():
            with np.errstate(invalid="ignore", over="ignore"):
                moved = np.abs(values - usual[path])
            # an infinity gives no information on the size of rounding
            sizes[path] = np.where(np.isfinite(moved), moved, 0.0)
        return sizes

    def terms(self, x: Floats, scales: Mapping[str, EntryScales]) -> dict[str, Floats]:
        """The spread of the terms that each output entry sums, shape (size,) each; 0 if they do not cancel.

        Weights are changed by a small relative amount. The change of the output divided by that amount is the size of
        its terms, without the part that is the same for every input. If a change of the inputs has the same effect, the
        network amplifies and nothing cancels.

        Args:
            x: shape (n, *shape); some of them are used.
            scales: the scales of the outputs; markers are ignored.
        """
        # statistics of a batch need the whole batch
        some = x if self._subject.training else x[:_FEW]
        usual = self._subject.run(some, exact=True)
        shaken, bent = self._run(some, _SMALL), self._run(self._shake(some, _SMALL), 0.0)
        sizes: dict[str, Floats] = {}
        for path, values in shaken.items():
            spread, limit = scales[path].spread, scales[path].limit
            ordinary = np.isfinite(usual[path]) & (np.abs(usual[path]) <= limit)
            kept = np.where(ordinary, usual[path], 0.0)
            moved, turned = (
                np.where(ordinary & np.isfinite(side), (np.where(ordinary, side, 0.0) - kept) / _SMALL, np.nan)
                for side in (values, bent[path])
            )
            floor = MARGIN * EPSILON * np.abs(kept).max(axis=0) / _SMALL
            terms, bends = _spread_of(moved), _spread_of(turned)
            rounding = np.maximum(floor, _MOST_BENT * EPSILON * terms / _SMALL)
            amplified = (bends > _MOST_BENT * spread) & (bends > rounding)
            sizes[path] = np.where(amplified | (terms <= _CANCELLED * spread), 0.0, terms)
        return sizes

    @cached_property
    def deployed_epsilon(self) -> float:
        """The unit in the last place of the coarsest floating dtype used by the deployed network."""
        subject = self._subject
        watch = _WatchDtypes()
        with watch:
            subject.run_uncompiled()
        units = [torch.finfo(dtype).eps for dtype in watch.dtypes | {subject.dtype}]
        # TensorFloat32 keeps ten bits of a product's factors.
        if subject.device.type == "cuda" and torch.backends.cuda.matmul.allow_tf32:
            units.append(2.0**-10)
        return float(max(units))

    def _run(self, x: Floats, epsilon: float, draw: int = 0) -> dict[str, Floats]:
        if self._subject.coarse:
            return {}
        key = epsilon, draw
        if key not in self._copies:
            self._copies[key] = _shaken_copy(self._subject.exact, epsilon, (self._seed, 9, draw))
        copy = self._copies[key]
        return {} if copy is None else self._subject.run_by(copy, x)

    def _shake(self, x: Floats, epsilon: float, draw: int = 0) -> Floats:
        # the same signs for all inputs, so that equal inputs stay equal
        signs = np.random.default_rng((self._seed, 10, draw)).choice((-1.0, 1.0), size=(1, *x.shape[1:]))
        return np.asarray(x * (1.0 + epsilon * signs))


def _spread_of(values: Floats) -> Floats:
    """The range of the middle nine tenths of each column, shape (size,)."""
    finite = np.where(np.isfinite(values), values, np.nan)
    finite[:, np.isnan(finite).all(axis=0)] = 0.0
    low, high = np.nanquantile(finite, (0.05, 0.95), axis=0)
    return np.asarray(high - low)


def _shaken_copy(net: nn.Module, epsilon: float, seed: tuple[int, ...]) -> nn.Module | None:
    """A copy whose floating tensors differ by a relative epsilon in either direction; None if impossible."""
    if not epsilon:
        return net
    rng = np.random.default_rng(seed)
    try:
        copy = copy_network(net, device=torch.device("cpu"))
        held = [*copy.parameters(), *copy.buffers()]
        held += [item for m in copy.modules() for item in vars(m).values() if isinstance(item, torch.Tensor)]
        with torch.no_grad():
            for tensor in {id(item): item for item in held if item.is_floating_point()}.values():
                signs = rng.choice((-1.0, 1.0), size=tuple(tensor.shape))
                tensor.copy_(tensor * torch.from_numpy(np.asarray(1.0 + epsilon * signs)))
    except Exception:  # frozen or shared memory: the rounding of this network stays unknown
        return None
    return copy


class _WatchDtypes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Collects the floating dtypes of results, while active."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.dtypes: set[torch.dtype] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operator and record the dtype of its result."""
        result = func(*args, **(kwargs or {}))
        self.dtypes |= {
            item.dtype for item in tree_leaves(result) if isinstance(item, torch.Tensor) and item.is_floating_point()
        }
        return result
