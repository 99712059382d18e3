"""The residual of a policy on given states, for training hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.policies.images import image_of, words_of
from symcheck.symmetry.symmetry import Symmetry

_MOST_STATES = 2_048
_SEED = 0  # seed of the elements of a continuous group, the same during the whole training


def measure_residual(
    policy: Callable[[Any], Any], symmetry: Symmetry, states: Any, group: str | None = "policy"
) -> dict[str, float]:
    """Measure the residuals of a policy on given states.

    Args:
        policy: maps a batch of observations, a tensor or groups by name, to actions.
        symmetry: the claim.
        states: a tensor (N, width), or groups of tensors by name, of which `group` is transformed.
        group: the observation group of the policy; None if the claim is about all groups.

    Returns:
        {"residual_max", "residual_mean", "residual_relative"}, the first two in the action's unit.

    Example:
        >>> import torch, symcheck as sc
        >>> mirror = sc.Symmetry("mirror", sc.groups.cyclic(2), observation=[[-1]], action=[[-1]])
        >>> measure_residual(lambda seen: seen + 0.5, mirror, torch.ones(3, 1))["residual_max"]
        1.0
    """
    import torch

    symmetry = symmetry.at_elements(_SEED)
    with torch.no_grad():
        actions = _table(policy(states))
        sizes = []
        for word in words_of(symmetry):
            moved = _move_states(symmetry, word, states, group)
            expected = np.asarray(image_of(symmetry.action, word, actions, "action"))
            sizes.append(np.abs(_table(policy(moved)) - expected))
    residual = np.stack(sizes)
    spread = float(actions.std(axis=0).mean())
    mean = float(residual.mean())
    return {
        "residual_max": float(residual.max()),
        "residual_mean": mean,
        "residual_relative": mean / spread if spread > 0 else 0.0,
    }


def random_rows(count: int) -> Any:
    """Indices of at most 2,048 of `count` states, the same for the same count, as a tensor.

    Example:
        >>> sorted(random_rows(3).tolist())
        [0, 1, 2]
    """
    import torch

    # A separate generator, so that the trainer's random numbers do not change.
    generator = torch.Generator().manual_seed(0)
    return torch.randperm(count, generator=generator)[:_MOST_STATES]


def _move_states(symmetry: Symmetry, word: tuple[int, ...], states: Any, group: str | None) -> Any:
    import torch

    if isinstance(states, Mapping) and group is None:
        tables = {name: _array(values) for name, values in states.items()}
        moved = image_of(symmetry.observation, word, tables, "observation")
        return {name: _tensor_like(moved[name], values) for name, values in states.items()}
    observed = states if group is None or isinstance(states, torch.Tensor) else states[group]
    where = "observation" if group is None else f"observation {group!r}"
    image = _tensor_like(image_of(symmetry.observation, word, _array(observed), where), observed)
    if observed is states:
        return image
    changed = states.clone() if hasattr(states, "clone") else dict(states)
    changed[group] = image
    return changed


def _tensor_like(values: Any, given: Any) -> Any:
    import torch

    return torch.as_tensor(np.ascontiguousarray(values), dtype=given.dtype, device=given.device)


def _array(tensor: Any) -> Floats:
    array: Floats = tensor.detach().cpu().double().numpy()
    return array


def _table(tensor: Any) -> Floats:
    array = _array(tensor)
    return array.reshape(len(array), -1)
