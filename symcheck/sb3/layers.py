"""The bodies and heads of an equivariant actor-critic, with the interface that Stable-Baselines3 expects."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from symcheck.array_types import Floats
from symcheck.nn.field_type import EquivariantModule, FieldType
from symcheck.nn.linear import BasisLinear
from symcheck.nn.nonlinearity import PointwiseNonlinearity
from symcheck.nn.orthogonal import orthogonal_
from symcheck.nn.sequential import EquivariantSequential
from symcheck.representations import constructors
from symcheck.representations.representation import Representation
from symcheck.sb3.vector_layers import VectorBody


class Body(nn.Module):
    """Hidden layers on the regular representation: (batch, dim of the observation) to (batch, units).

    Args:
        rho: the representation on the observation.
        widths: units of each layer; channels are units / |G|, rounded up.
        activation: applied after each layer; any pointwise function commutes with permutations.
    """

    def __init__(self, rho: Representation, widths: Sequence[int], activation: type[nn.Module]) -> None:
        super().__init__()
        hidden = constructors.regular(rho.group)
        self.output_type = FieldType(rho, 1)
        layers: list[EquivariantModule] = []
        for units in widths:
            channels = math.ceil(units / hidden.dim)
            layers.append(BasisLinear(self.output_type.rho, hidden, self.output_type.channels, channels))
            layers.append(PointwiseNonlinearity(hidden, activation))
            self.output_type = FieldType(hidden, channels)
        self.layers = EquivariantSequential(*layers) if layers else None

    @property
    def units(self) -> int:
        """The number of outputs of the last layer."""
        return int(self.output_type.channels * self.output_type.rho.dim)

    def forward(self, features: Tensor) -> Tensor:
        """The last hidden layer, flat."""
        latent: Tensor = features if self.layers is None else self.layers(features.unsqueeze(1)).flatten(1)
        return latent


class TwoBodies(nn.Module):
    """The counterpart of Stable-Baselines3's MLP extractor: one body for the actor and one for the critic.

    Args:
        actor: the actor's body, which reads the features.
        critic: the critic's body, which reads the same features.
    """

    def __init__(self, actor: Body | VectorBody, critic: Body | VectorBody) -> None:
        super().__init__()
        self.actor, self.critic = actor, critic
        self.latent_dim_pi, self.latent_dim_vf = actor.units, critic.units

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """The latents of actor and critic."""
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: Tensor) -> Tensor:
        """The actor's latent, (batch, latent_dim_pi)."""
        latent: Tensor = self.actor(features)
        return latent

    def forward_critic(self, features: Tensor) -> Tensor:
        """The critic's latent, (batch, latent_dim_vf)."""
        latent: Tensor = self.critic(features)
        return latent


class Head(nn.Module):
    """Maps a flat latent to (batch, dim of the output).

    Args:
        latent: the type that the body returns.
        rho: the representation on the output.
        centre: the fixed point of the claim, which is added to the output, shape (dim,).
    """

    centre: Tensor | None

    def __init__(self, latent: FieldType, rho: Representation, centre: Floats | None = None) -> None:
        super().__init__()
        self.layer = BasisLinear(latent.rho, rho, latent.channels, 1)
        self._shape = (latent.channels, latent.rho.dim)
        point = None if centre is None else torch.as_tensor(np.asarray(centre), dtype=torch.float32)
        self.register_buffer("centre", point, persistent=False)

    def forward(self, latent: Tensor) -> Tensor:
        """The output of one channel."""
        output: Tensor = self.layer(torch.unflatten(latent, 1, self._shape)).flatten(1)
        return output if self.centre is None else output + self.centre


def negates_everything(rho: Representation) -> bool:
    """Whether some element of a finite group negates every component, as CartPole's mirror does.

    A body of odd functions without biases is then odd, and the invariant value is 0 everywhere.
    """
    return any(np.array_equal(rho.matrix(g), -np.eye(rho.dim)) for g in rho.group.elements())


def draw_orthogonally(module: nn.Module, gain: float, *, biases: bool = False) -> None:
    """Initialise every basis layer of a module with singular values `gain`, as for plain layers in Stable-Baselines3.

    Args:
        module: a body or a head.
        gain: the singular values.
        biases: whether to draw biases too, uniformly up to 1 / sqrt(inputs) as in torch; otherwise they are 0.
    """
    for layer in module.modules():
        if isinstance(layer, BasisLinear):
            orthogonal_(layer, gain)
            if biases and layer.bias_coefficients is not None:
                bound = (layer.input_type.channels * layer.input_type.rho.dim) ** -0.5
                nn.init.uniform_(layer.bias_coefficients, -bound, bound)
