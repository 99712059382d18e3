"""Plain networks that use the symmetry without equivariant layers, by transforming their inputs.

With g over the group, L_g on observations and K_g on the policy outputs, and a plain network f:

    symmetrized   mean over g of K_g^-1 f(L_g s): frame averaging; equivariant
    averaged      the policy is the mean over g of the policies K_g^-1 softmax f(L_g s), the value the mean value
    augmented     f itself, trained on pairs (L_g s, K_g a) with g drawn for each pair

Source: van der Pol et al., "MDP Homomorphic Networks", 2020, section 5 (data augmentation); Puny et al., "Frame
averaging for invariant and equivariant network design", 2022, equation 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import gymnasium as gym
import numpy as np
import torch

from reference_agents.catalog import Task
from reference_agents.networks.actor_critic import ActorCritic
from reference_agents.networks.plans import ActorCriticPlan
from reference_agents.symmetries import task_symmetry
from symcheck.errors import SpecError

Combine = Literal["symmetrized", "averaged"]


class Views(torch.nn.Module):
    """The action of every element of the group on observations and on the outputs of a policy.

    Args:
        task: the task, which gives the symmetry and the spaces.

    Attributes:
        order: the number of elements, identity first.
        index: entry i of L_g x is sign[g, i] * x[index[g, i]], observations flattened; shape (|G|, size).
        sign: likewise.
        matrices: K_g acting on the policy outputs, shape (|G|, k, k).

    Raises:
        SpecError: observations are not only permuted and negated, so no table of indices describes the action.
    """

    index: torch.Tensor
    sign: torch.Tensor
    matrices: torch.Tensor

    def __init__(self, task: Task) -> None:
        super().__init__()
        symmetry = task_symmetry(task)
        elements = list(symmetry.group.elements())
        self.order = len(elements)
        size = int(np.prod(task.observation_shape))
        space = gym.spaces.Box(-np.inf, np.inf, task.observation_shape, np.float64)
        actions = gym.spaces.Box(-1, 1, (task.actions,)) if task.continuous else gym.spaces.Discrete(task.actions)
        bound = symmetry.bind(space, actions)
        # Labels 1 .. n instead of indices: their images show position and sign, and 0 has no sign.
        labels = np.arange(1.0, size + 1.0).reshape(task.observation_shape)
        # The image of the labels under every group element, (|G|, n).
        moved = np.stack([bound.observation(symmetry.group.word(g), labels).reshape(-1) for g in elements])
        if any(sorted(np.abs(row)) != list(range(1, size + 1)) for row in moved):
            raise SpecError(f"observations may only be permuted and negated under {symmetry.name}.")
        self.register_buffer("index", torch.as_tensor(np.abs(moved).astype(np.int64) - 1))
        self.register_buffer("sign", torch.as_tensor(np.sign(moved), dtype=torch.float32))
        matrices = np.stack([np.asarray(symmetry.action_representation.matrix(g), dtype=float) for g in elements])
        if task.continuous:
            zeros = np.zeros_like(matrices)
            # Means transform with signs; log deviations are only permuted.
            matrices = np.block([[matrices, zeros], [zeros, np.abs(matrices)]])
        self.register_buffer("matrices", torch.as_tensor(matrices, dtype=torch.float32))
        self._continuous, self._choices = task.continuous, task.choices

    def observations(self, x: torch.Tensor) -> torch.Tensor:
        """Every L_g x: (..., batch, *shape) to (..., |G| * batch, *shape), grouped by element."""
        flat = x.flatten(2)
        views = [flat[..., index] * sign for index, sign in zip(self.index, self.sign, strict=True)]
        return torch.cat(views, dim=1).view(len(x), -1, *x.shape[2:])

    def observation(self, x: torch.Tensor, element: int) -> torch.Tensor:
        """L_g x for one element, (batch, *shape) to the same."""
        return (x.flatten(1)[:, self.index[element]] * self.sign[element]).view(x.shape)

    def transform_each(self, x: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
        """L_g x with an element for each observation: (runs, batch, *shape) and (runs, batch)."""
        return (x.flatten(2).gather(2, self.index[which]) * self.sign[which]).view(x.shape)

    def actions(self, actions: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
        """K_g a with an element for each action: (runs, batch) or (runs, batch, coordinates), and (runs, batch)."""
        if self._continuous:
            # The upper left block acts on means, and in the same way on actions.
            size = actions.shape[-1]
            moved: torch.Tensor = torch.einsum("rbkl,rbl->rbk", self.matrices[which][..., :size, :size], actions)
            return moved
        if self._choices:
            return self._choose_each(actions, which)
        # Each column of a permutation matrix has one 1: argmax over rows gives the image of an action.
        return self.matrices.argmax(1)[which, actions]

    def _choose_each(self, actions: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
        """The image of actions with several components, as concatenated one-hot vectors."""
        pairs = zip(actions.unbind(-1), self._choices, strict=True)
        hot = torch.cat([torch.nn.functional.one_hot(chosen, count) for chosen, count in pairs], dim=-1)
        moved = torch.einsum("rbkl,rbl->rbk", self.matrices[which], hot.float())
        return torch.stack([part.argmax(-1) for part in torch.split(moved, list(self._choices), dim=-1)], dim=-1)

    def back(self, numbers: torch.Tensor) -> torch.Tensor:
        """Every K_g^-1 n: (runs, |G| * batch, k) to (runs, |G|, batch, k)."""
        split = numbers.view(len(numbers), self.order, -1, numbers.shape[-1])
        # K_g^-1 is the transpose: the matrices are orthogonal.
        moved: torch.Tensor = torch.einsum("glk,rgbl->rgbk", self.matrices, split)
        return moved

    def forth(self, numbers: torch.Tensor) -> torch.Tensor:
        """Every K_g n, the transpose of `back`: (runs, |G|, batch, k) to (runs, |G| * batch, k)."""
        moved: torch.Tensor = torch.einsum("gkl,rgbl->rgbk", self.matrices, numbers)
        return moved.flatten(1, 2)


class ViewingActorCritic(ActorCritic):
    """A plain network whose outputs are averaged over all transformed inputs.

    Args:
        plan: the plain network's layers.
        seeds: one seed per run.
        device: the device of the parameters.
        views: the views of the task.
        combine: how the outputs are combined.
    """

    def __init__(
        self, plan: ActorCriticPlan, seeds: Sequence[int], device: torch.device, *, views: Views, combine: Combine
    ) -> None:
        super().__init__(plan, seeds, device)
        self._views, self._combine = views, combine
        self._log_policies = torch.empty(0)

    def forward(self, observations: torch.Tensor, *, keep: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        """As `ActorCritic.forward`, of the combined network."""
        numbers, values = super().forward(self._views.observations(observations), keep=keep)
        combined, log_policies = combine_views(self._views.back(numbers), self._combine)
        if keep:
            self._log_policies = log_policies
        # The batch contains all elements consecutively: (runs, |G|, batch).
        mean_value: torch.Tensor = values.view(len(values), self._views.order, -1).mean(1)
        return combined, mean_value

    def backward(self, d_numbers: torch.Tensor, d_values: torch.Tensor) -> None:
        """As `ActorCritic.backward`, of the combined network."""
        order = self._views.order
        # Averaged logits: every view has the weight 1 / |G|.
        d_each = (d_numbers / order).unsqueeze(1).expand(-1, order, -1, -1)
        if self._combine == "averaged":
            # d log(sum_g p_g) = sum_g (p_g / sum p) d log p_g, and d log p_gj / d logit_gk = 1[j = k] - p_gk
            weighted = d_numbers.unsqueeze(1) * torch.softmax(self._log_policies, dim=1)
            d_each = weighted - self._log_policies.exp() * weighted.sum(-1, keepdim=True)
        super().backward(self._views.forth(d_each), (d_values / order).repeat(1, order))


def combine_views(numbers: torch.Tensor, how: Combine) -> tuple[torch.Tensor, torch.Tensor]:
    """Combine the outputs of all views, mapped back, (runs, |G|, batch, k), to (runs, batch, k).

    Returns:
        The combined outputs and, if policies are averaged, the log policy of each view (otherwise an empty tensor).
    """
    if how == "symmetrized":
        return numbers.mean(1), torch.empty(0)
    log_policies = torch.log_softmax(numbers, dim=-1)
    # log of the mean of probabilities; log |G| makes the sum a mean.
    return torch.logsumexp(log_policies, dim=1) - math.log(numbers.shape[1]), log_policies
