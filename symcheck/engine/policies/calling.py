"""A policy in float64: called on batches, with access to its intermediate values.

The action is the policy's output, or its mean if the policy is stochastic. A second output of the same size, or the
deviation of a distribution, is compared as a standard deviation. The intermediate values are those of the modules with
column statistics (normalisers) and of the last linear layer as wide as the action.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from symcheck.array_types import Floats
from symcheck.engine.networks.subject.outputs import named_outputs
from symcheck.engine.policies.normalisers import has_statistics, statistics_of
from symcheck.errors import TargetError, described
from symcheck.mirror_functions.tensor_groups import tensor_groups

_METHODS = ("act_inference", "forward")


@dataclass
class Policy:
    """A policy as a function of batches.

    Attributes:
        net: a copy in evaluation mode, in float64 if it supports that.
        dtype: the dtype of its inputs.
        action_width: number of action components.
        grouped: whether a mapping of observations is passed as a TensorDict.
    """

    net: nn.Module
    dtype: torch.dtype
    action_width: int
    grouped: bool = False

    @property
    def normalisers(self) -> list[nn.Module]:
        """The modules that normalise, in module order."""
        return [m for m in self.net.modules() if m is not self.net and _normalises(m)]

    @property
    def last_layer(self) -> nn.Module | None:
        """The last linear layer that is as wide as the action."""
        layers = [m for m in self.net.modules() if isinstance(m, nn.Linear) and m.out_features == self.action_width]
        return layers[-1] if layers else None

    def run(self, batch: Any, replaced: Mapping[nn.Module, Floats] | None = None) -> Answer:
        """Actions of a batch, and the outputs of the watched modules.

        Args:
            batch: stacked observations, or a mapping of them.
            replaced: values to substitute for a module's output.

        Raises:
            TargetError: the policy raises, or returns no action of the right width.
        """
        seen: dict[nn.Module, Floats] = {}
        given: dict[nn.Module, Floats] = {}
        watched = [*self.normalisers, *([] if self.last_layer is None else [self.last_layer])]
        handles = [m.register_forward_hook(_watch(seen, given, replaced or {})) for m in watched]
        try:
            with torch.no_grad():
                result = self._call(batch)
        except TargetError:
            raise
        except Exception as error:
            raise TargetError(
                f"the policy raised {described(error)}.",
                where="TARGET",
                remedy="Observations are given as one batch of shape (N, ...), or one entry per key.",
            ) from error
        finally:
            for handle in handles:
                handle.remove()
        action, deviation = self._split(result)
        return Answer(action, deviation, seen, given)

    def _call(self, batch: Any) -> Any:
        tensors: Any
        if isinstance(batch, Mapping):
            tensors = {key: torch.as_tensor(np.asarray(value), dtype=self.dtype) for key, value in batch.items()}
            tensors = tensor_groups(tensors, len(next(iter(tensors.values())))) if self.grouped else tensors
        else:
            tensors = torch.as_tensor(np.asarray(batch), dtype=self.dtype)
        # rsl_rl's actor-critic uses act_inference; its forward raises.
        method = next(getattr(self.net, name) for name in _METHODS if hasattr(self.net, name))
        return method(tensors)

    def _split(self, result: Any) -> tuple[Floats, Floats | None]:
        if isinstance(result, torch.distributions.Distribution):
            return _table(result.mean), _table(result.stddev)
        tensors = [t for t in named_outputs(result).values() if t.dim() and t.shape[-1] == self.action_width]
        if not tensors:
            shapes = [tuple(t.shape) for t in named_outputs(result).values()]
            raise TargetError(
                f"the policy must return {self.action_width} numbers, one for each action component, but "
                f"returned {shapes}.",
                where="TARGET",
                remedy="Check that the symmetry's action map has the size of the policy's output.",
            )
        deviation = _table(tensors[1]) if len(tensors) == 2 else None
        return _table(tensors[0]), deviation


@dataclass(frozen=True)
class Answer:
    """The output of a policy.

    Attributes:
        action: (N, m).
        deviation: (N, m); None for a deterministic policy.
        seen: the outputs of the watched modules.
        given: their inputs.
    """

    action: Floats
    deviation: Floats | None
    seen: Mapping[nn.Module, Floats]
    given: Mapping[nn.Module, Floats]


def open_policy(net: nn.Module, batch: Any, action_width: int) -> Policy:
    """Copy a policy and determine its calling convention.

    Args:
        net: not modified.
        batch: a few observations for test calls.
        action_width: number of action components.

    Raises:
        TargetError: no way of calling it works.
    """
    failures: list[TargetError] = []
    for dtype in (torch.float64, torch.float32):
        copied = copy.deepcopy(net).to(dtype).eval()
        for grouped in (False, True) if isinstance(batch, Mapping) else (False,):
            policy = Policy(copied, dtype, action_width, grouped)
            try:
                policy.run(batch)
            except TargetError as error:
                failures.append(error)
                continue
            return policy
    raise failures[0]


def _normalises(module: nn.Module) -> bool:
    if isinstance(module, nn.modules.batchnorm._BatchNorm) or not has_statistics(module):
        return False
    mean, _ = statistics_of(module)
    return mean.size > 1


def _watch(
    seen: dict[nn.Module, Floats], given: dict[nn.Module, Floats], replaced: Mapping[nn.Module, Floats]
) -> Callable[..., Any]:
    def hook(module: nn.Module, inputs: Any, output: Any) -> Any:
        if not isinstance(output, torch.Tensor):
            return None
        seen[module] = _table(output)
        if inputs and isinstance(inputs[0], torch.Tensor):
            given[module] = _table(inputs[0])
        if module not in replaced:
            return None
        return torch.as_tensor(replaced[module], dtype=output.dtype).reshape(output.shape)

    return hook


def _table(tensor: torch.Tensor) -> Floats:
    return np.asarray(tensor.detach().double().reshape(len(tensor), -1).numpy())
