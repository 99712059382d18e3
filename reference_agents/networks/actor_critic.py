"""A policy and a value for every run: a shared trunk of linear layers and ReLUs, and two linear heads.

`forward` keeps what `backward` needs; `backward` turns the gradients of logits and values into the gradient of every
parameter of every run. The loss never enters here, so one network serves every algorithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from reference_agents.networks.layers import LinearPlan, StackedLinear
from reference_agents.networks.parameters import Layout, StackedParameters
from reference_agents.randomness import Purpose, generator


@dataclass(frozen=True)
class ActorCriticPlan:
    """The layers of one network.

    Attributes:
        trunk: hidden layers, each followed by a ReLU.
        policy: from the last hidden layer to the logits.
        value: from the last hidden layer to one number.
    """

    trunk: tuple[LinearPlan, ...]
    policy: LinearPlan
    value: LinearPlan

    @property
    def layers(self) -> tuple[LinearPlan, ...]:
        """All layers: the trunk, the policy head, the value head."""
        return (*self.trunk, self.policy, self.value)

    def layout(self) -> Layout:
        """Where the parameters of one run lie."""
        layout = Layout()
        for layer in self.layers:
            layer.declare(layout)
        return layout


class ActorCritic:
    """The stacked network.

    Args:
        plan: its layers.
        seeds: one seed per run; draws the initial parameters.
        device: where the parameters live.

    Attributes:
        parameters: values and gradients of all runs.
    """

    def __init__(self, plan: ActorCriticPlan, seeds: Sequence[int], device: torch.device) -> None:
        self.plan = plan
        self.parameters = StackedParameters(plan.layout(), len(seeds), device)
        values = self.parameters.layout.views(self.parameters.values)
        gradients = self.parameters.layout.views(self.parameters.gradients)
        for run, seed in enumerate(seeds):
            uniform = generator(seed, Purpose.PARAMETERS).random
            for layer in plan.layers:
                initial = layer.initial_weight(uniform)
                values[f"{layer.name}.weight"][run] = torch.as_tensor(initial, dtype=torch.float32)
        *self._trunk, self._policy, self._value = (
            StackedLinear(layer, values, gradients, device) for layer in plan.layers
        )
        self._inputs: list[torch.Tensor] = []
        self.refresh()

    def refresh(self) -> None:
        """Rebuild the layers' matrices after the parameters have changed."""
        for layer in (*self._trunk, self._policy, self._value):
            layer.refresh()
        # One product serves both heads. It is faster, and a batched product with a single output column takes another
        # path for one run than for many, whose last bits differ.
        self._head_matrix = torch.cat([self._policy.matrix, self._value.matrix], dim=2)
        self._head_offset = torch.cat([self._policy.offset, self._value.offset], dim=2)

    def forward(self, observations: torch.Tensor, *, keep: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits (runs, batch, actions) and values (runs, batch) of observations (runs, batch, size), float32.

        Args:
            observations: what to act on.
            keep: whether `backward` will be called for this batch.
        """
        inputs = [observations]
        for layer in self._trunk:
            inputs.append(torch.relu_(torch.baddbmm(layer.offset, inputs[-1], layer.matrix)))
        self._inputs = inputs if keep else []
        heads = torch.baddbmm(self._head_offset, inputs[-1], self._head_matrix)
        return heads[..., :-1], heads[..., -1]

    def backward(self, d_logits: torch.Tensor, d_values: torch.Tensor) -> None:
        """Write every parameter's gradient for the batch of the last `forward(..., keep=True)`.

        Args:
            d_logits: the loss's derivatives by the logits, (runs, batch, actions).
            d_values: the same by the values, (runs, batch).
        """
        d_heads = torch.cat([d_logits, d_values.unsqueeze(2)], dim=2)
        d_matrix = torch.bmm(self._inputs[-1].transpose(1, 2), d_heads)
        d_offset = d_heads.sum(1, keepdim=True)
        self._policy.write_gradients(d_matrix[..., :-1], d_offset[..., :-1])
        self._value.write_gradients(d_matrix[..., -1:], d_offset[..., -1:])
        d_hidden = torch.bmm(d_heads, self._head_matrix.transpose(1, 2))
        for depth in reversed(range(len(self._trunk))):
            d_hidden.mul_(self._inputs[depth + 1] > 0)
            d_matrix = torch.bmm(self._inputs[depth].transpose(1, 2), d_hidden)
            self._trunk[depth].write_gradients(d_matrix, d_hidden.sum(1, keepdim=True))
            if depth:
                d_hidden = torch.bmm(d_hidden, self._trunk[depth].matrix.transpose(1, 2))
