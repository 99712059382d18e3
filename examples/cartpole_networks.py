"""Three actor-critic networks for CartPole: one equivariant, one not equivariant, and one with a single wrong weight.

symcheck verify-net examples/cartpole_networks.py:equivariant --symmetry cartpole/mirror
symcheck verify-net examples/cartpole_networks.py:mlp --symmetry cartpole/mirror
symcheck verify-net examples/cartpole_networks.py:one_weight_off --symmetry cartpole/mirror
"""

import torch
from torch import Tensor, nn

import symcheck as sc
from symcheck.nn import BasisLinear, EquivariantSequential, PointwiseNonlinearity, to_dense

C2 = sc.groups.cyclic(2)
MIRROR = sc.Symmetry("cart-pole mirror", C2, observation=[[-1, -1, -1, -1]], action=[[1, 0]])


class EquivariantPolicy(nn.Module):
    """The paper's CartPole network: the mirror swaps the logits (batch, 2) and preserves the value (batch, 1)."""

    def __init__(self, channels: int = 64) -> None:
        super().__init__()
        hidden = sc.representations.regular(C2)
        value = sc.representations.trivial(C2, 1)
        self.body = EquivariantSequential(
            BasisLinear(MIRROR.observation_representation, hidden, 1, channels),
            PointwiseNonlinearity(hidden, "relu"),
            BasisLinear(hidden, hidden, channels, channels),
            PointwiseNonlinearity(hidden, "relu"),
        )
        self.action_head = BasisLinear(hidden, MIRROR.action_representation, channels, 1)
        self.value_head = BasisLinear(hidden, value, channels, 1)

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (batch, 2) and values (batch, 1) of observations (batch, 4)."""
        features = self.body(observation.unsqueeze(1))
        return self.action_head(features).flatten(1), self.value_head(features).flatten(1)


def equivariant() -> nn.Module:
    """Equivariant by construction; symcheck proves it."""
    torch.manual_seed(0)
    return EquivariantPolicy()


def mlp() -> nn.Module:
    """A plain network, which is not equivariant."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 2))


def one_weight_off() -> nn.Module:
    """The equivariant network as plain layers, with a relative error of 1e-6 in one hidden weight."""
    net = to_dense(equivariant())
    layers = [module for module in net.modules() if isinstance(module, nn.Linear)]
    with torch.no_grad():
        layers[1].weight[3, 5] *= 1 + 1e-6
    return net
