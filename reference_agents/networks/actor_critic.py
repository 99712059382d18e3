"""A policy and a value for every run: a shared trunk of hidden layers, and two linear heads.

`forward` stores the values that `backward` needs; `backward` computes the gradient of every parameter of every run from
the gradients of logits and values. The network does not depend on the loss, so every algorithm can use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from reference_agents.networks.blocks import (
    Block,
    ConvRelu,
    Flatten,
    GlobalAveragePool,
    GlobalMaxPool,
    LiftedLinearRelu,
    LinearRelu,
)
from reference_agents.networks.direct import DirectConvRelu
from reference_agents.networks.layers import Expansion, Lifting, StackedLinear
from reference_agents.networks.parameters import StackedParameters
from reference_agents.networks.plans import (
    DEVIATION,
    MASKED_LOGIT,
    ActorCriticPlan,
    ConvPlan,
    FlattenPlan,
    GlobalMaxPoolPlan,
    LinearPlan,
    PoolPlan,
)
from reference_agents.randomness import Purpose, generator


class ActorCritic:
    """The stacked network.

    Args:
        plan: the plan of its layers.
        seeds: one seed per run, which draws the initial parameters.
        device: the device of the parameters.

    Attributes:
        parameters: values and gradients of all runs.
    """

    def __init__(self, plan: ActorCriticPlan, seeds: Sequence[int], device: torch.device) -> None:
        self.plan = plan
        self.parameters = StackedParameters(plan.layout(), len(seeds), device)
        values = self.parameters.layout.views(self.parameters.values)
        gradients = self.parameters.layout.views(self.parameters.gradients)
        for run, seed in enumerate(seeds):
            # One stream for all layers of a run, in order: the initial network is a function of the seed.
            uniform = generator(seed, Purpose.PARAMETERS).random
            for layer in plan.layers:
                for part, initial in (("weight", layer.initial_weight(uniform)), ("bias", layer.initial_bias(uniform))):
                    if initial is not None:
                        values[f"{layer.name}.{part}"][run] = torch.as_tensor(initial, dtype=torch.float32)
        if (log_deviation := plan.initial_log_deviation()) is not None:
            values[DEVIATION][:, :, 0, 0] = torch.as_tensor(log_deviation, dtype=torch.float32)
        # Heads are the last two of `plan.layers`.
        *trunk, self._policy, self._value = (StackedLinear(layer, values, gradients, device) for layer in plan.layers)
        self._blocks, self._built = _blocks(plan, trunk, device)
        self._deviation = None if plan.deviation_basis is None else Expansion(plan.deviation_basis, device)
        # (runs, rank, 1, 1) coefficients of the log deviation; None for discrete actions.
        self._deviation_value, self._deviation_gradient = values.get(DEVIATION), gradients.get(DEVIATION)
        self._mask = None
        if plan.masked:
            masked = [action in plan.masked for action in range(plan.policy.outputs)]
            self._mask = torch.tensor(masked, device=device)
        # For each block, the data of the last forward pass that its backward pass needs.
        self._tapes: list[Any] = []
        self._steps: list[tuple[list[Any], tuple[torch.Tensor, torch.Tensor, torch.Tensor]]] | None = None
        self._features = torch.empty(0)
        self.refresh()

    def refresh(self) -> None:
        """Rebuild the layers' matrices after the parameters have changed."""
        for layer in (*self._built, self._policy, self._value):
            layer.refresh()
        # One product computes both heads. It is faster, and a batched product with a single output column uses a
        # different kernel for one run than for many, so that the last bits would differ. (runs, features, numbers + 1):
        # the value is the last column.
        self._head_matrix = torch.cat([self._policy.matrix, self._value.matrix], dim=2)
        self._head_offset = torch.cat([self._policy.offset, self._value.offset], dim=2)

    def start_keeping(self) -> None:
        """Store the values for `backward` in every later `forward(..., keep=True)`, not only in the last."""
        self._steps = []

    def join_kept(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Outputs and values of all steps kept since `start_keeping`, joined to one batch for `backward`.

        The parameters must not have changed since. This is cheaper than another forward pass on the whole batch.
        """
        steps, self._steps = self._steps or [], None
        # For each block, concatenate the stored data of all steps.
        self._tapes = [_join_tapes([tapes[depth] for tapes, _ in steps]) for depth in range(len(self._blocks))]
        kept = [answers for _, answers in steps]
        self._features, numbers, values = (torch.cat(list(parts), dim=1) for parts in zip(*kept, strict=True))
        return numbers, values

    def forward(self, observations: torch.Tensor, *, keep: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        """The policy's outputs (runs, batch, numbers) and values (runs, batch).

        The outputs are logits for discrete actions; for continuous actions, means followed by log standard deviations.

        Args:
            observations: float32 or uint8, (runs, batch, size) or (runs, batch, channels, height, width).
            keep: whether `backward` will be called for this batch.
        """
        # (runs, batch, height, width, channels): channels last, as the blocks expect.
        x = observations.permute(0, 1, 3, 4, 2).contiguous() if self.plan.takes_images else observations
        if self.plan.input_scale != 1.0:
            x = x * self.plan.input_scale
        # Images may be bytes; integers cannot be multiplied by weights.
        elif not x.is_floating_point():
            x = x.float()
        tapes = []
        for block in self._blocks:
            x, tape = block.forward(x)
            if keep:
                tapes.append(tape)
        if keep:
            self._tapes, self._features = tapes, x
        heads = torch.baddbmm(self._head_offset, x, self._head_matrix)
        numbers, values = heads[..., :-1], heads[..., -1]
        if self._mask is not None:
            # A masked logit is a constant; `backward` sets its derivative to zero.
            numbers = numbers.masked_fill(self._mask, MASKED_LOGIT)
        numbers = self.with_deviations(numbers)
        if keep and self._steps is not None:
            self._steps.append((tapes, (x, numbers, values)))
        return numbers, values

    def with_deviations(self, numbers: torch.Tensor) -> torch.Tensor:
        """Append log standard deviations to means (runs, batch, coordinates); logits are returned unchanged."""
        if self._deviation is None or self._deviation_value is None:
            return numbers
        # The deviation does not depend on the observation: one row for all.
        return torch.cat([numbers, self._deviation.expand(self._deviation_value).expand_as(numbers)], dim=2)

    def backward(self, d_numbers: torch.Tensor, d_values: torch.Tensor) -> None:
        """Write every parameter's gradient for the batch of the last `forward(..., keep=True)`.

        Args:
            d_numbers: the derivatives of the loss with respect to the policy's outputs, (runs, batch, numbers).
            d_values: the derivatives of the loss with respect to the values, (runs, batch).
        """
        if self._deviation is not None and self._deviation_gradient is not None:
            d_numbers, d_deviation = d_numbers.chunk(2, dim=2)
            # The sum over the batch, since all rows share the deviation.
            self._deviation.collect(d_deviation.sum(1, keepdim=True), self._deviation_gradient)
        if self._mask is not None:
            d_numbers = d_numbers.masked_fill(self._mask, 0.0)
        d_heads = torch.cat([d_numbers, d_values.unsqueeze(2)], dim=2)
        # dL/dW = x^T dL/dy and dL/db = sum of dL/dy, for both heads at once.
        d_matrix = torch.bmm(self._features.transpose(1, 2), d_heads)
        d_offset = d_heads.sum(1, keepdim=True)
        self._policy.write_gradients(d_matrix[..., :-1], d_offset[..., :-1])
        self._value.write_gradients(d_matrix[..., -1:], d_offset[..., -1:])
        d_x: torch.Tensor | None = torch.bmm(d_heads, self._head_matrix.transpose(1, 2))
        # The first block's input is the observation, which needs no gradient.
        for depth in reversed(range(len(self._blocks))):
            if d_x is not None:
                d_x = self._blocks[depth].backward(self._tapes[depth], d_x, to_input=depth > 0)


def _join_tapes(tapes: Sequence[Any]) -> Any:
    """The data that a block stored for several batches, joined along the second axis, which is that of the batch."""
    first = tapes[0]
    if isinstance(first, torch.Tensor):
        return torch.cat(list(tapes), dim=1)
    if isinstance(first, torch.Size):
        # A block that needs only the input's shape stores its size: (runs, batch, ...).
        return torch.Size((first[0], sum(size[1] for size in tapes), *first[2:]))
    return tuple(_join_tapes(parts) for parts in zip(*tapes, strict=True))


def _pool_block(plan: PoolPlan) -> Block:
    if isinstance(plan, FlattenPlan):
        return Flatten()
    return GlobalMaxPool() if isinstance(plan, GlobalMaxPoolPlan) else GlobalAveragePool()


def _blocks(
    plan: ActorCriticPlan, layers: Sequence[StackedLinear], device: torch.device
) -> tuple[list[Block], list[StackedLinear]]:
    """All hidden layers, and the hidden layers whose matrices must be built after every change of the parameters."""
    # Without a pool the images are large. A GPU has the bandwidth for all windows at once.
    direct = device.type == "cpu" and any(isinstance(layer, FlattenPlan) for layer in plan.trunk)
    remaining = iter(layers)
    blocks: list[Block] = []
    built: list[StackedLinear] = []
    for hidden in plan.trunk:
        if isinstance(hidden, PoolPlan):
            blocks.append(_pool_block(hidden))
            continue
        layer = next(remaining)
        lifting = Lifting.of(hidden, device) if isinstance(hidden, LinearPlan) else None
        if lifting is not None:
            blocks.append(LiftedLinearRelu(layer, lifting))
            continue
        built.append(layer)
        if isinstance(hidden, ConvPlan):
            block = DirectConvRelu if direct else ConvRelu
            blocks.append(block(layer, kernel=hidden.kernel, stride=hidden.stride))
        else:
            blocks.append(LinearRelu(layer))
    return blocks, built
