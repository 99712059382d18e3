"""Agents of rsl_rl, skrl and rl_games as functions of observations.

Their own forward takes dictionaries or samples actions.

They are recognised by their attributes; their packages are not imported.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from symcheck.engine.networks.subject.structured import as_tensordict

_GAUSSIAN = frozenset({"GaussianMixin", "MultivariateGaussianMixin"})
_POLICIES = _GAUSSIAN | {"CategoricalMixin", "MultiCategoricalMixin"}


class JoinedGroups(nn.Module):
    """A model of rsl_rl that reads named groups of observations, as a network of their concatenation.

    Args:
        model: has `obs_groups`, the names in order.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.structured_input = model

    def forward(self, observations: torch.Tensor) -> Any:
        """The model's output, on observations of shape (n, size of all groups)."""
        model: Any = self.structured_input
        first, *others = model.obs_groups
        # The model concatenates its groups, so all entries can be passed in the first one.
        return model(as_tensordict({first: observations, **dict.fromkeys(others, observations[:, :0])}))


class ComputedModel(nn.Module):
    """A model of skrl: its computation, without sampling an action.

    Args:
        model: has `compute`; for a combined policy and value model, both are computed.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.structured_input = model
        mixins = {base.__name__ for base in type(model).__mro__}
        self._gaussian = bool(mixins & _GAUSSIAN)
        self._also_value = "DeterministicMixin" in mixins and bool(mixins & _POLICIES)
        deviations = ("action_scale",) if self._gaussian else ()
        # A deterministic model may be a policy or a value function; its size decides.
        policy = bool(mixins & _POLICIES)
        self.roles = ("action", *deviations, *(("invariant",) if self._also_value else ())) if policy else None

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Logits or means, log-deviations of a Gaussian model, and values if it has them."""
        model: Any = self.structured_input
        # Older versions call observations "states".
        inputs = {"observations": observations, "states": observations}
        mean, further = model.compute(inputs, "policy" if self.roles else "")
        deviations = (further["log_std"].expand_as(mean),) if self._gaussian else ()
        values = (model.compute(inputs, "value")[0],) if self._also_value else ()
        return (mean, *deviations, *values)


class NormalisedNetwork(nn.Module):
    """A model of rl_games: its network on normalised observations, without sampling an action.

    Args:
        model: has `norm_obs` and `a2c_network`.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.structured_input = model
        network = model.a2c_network
        deviations = ("action_scale",) if getattr(network, "is_continuous", False) else ()
        of_policy = deviations or getattr(network, "is_discrete", False)
        self.roles = ("action", *deviations, "invariant") if of_policy else None

    def forward(self, observations: torch.Tensor) -> tuple[Any, ...]:
        """Logits or means, deviations of continuous actions, and normalised values."""
        model: Any = self.structured_input
        inputs = {"is_train": False, "prev_actions": None, "rnn_states": None, "obs": model.norm_obs(observations)}
        # The last one is the hidden state.
        return tuple(model.a2c_network(inputs)[:-1])


def computing_part(agent: Any) -> nn.Module | None:
    """The computation of an agent of skrl or rl_games; None for other networks.

    Args:
        agent: any module.
    """
    if hasattr(agent, "a2c_network") and callable(getattr(agent, "norm_obs", None)):
        return NormalisedNetwork(agent)
    if all(callable(getattr(agent, name, None)) for name in ("compute", "act")) and hasattr(agent, "action_space"):
        return ComputedModel(agent)
    return None


def of_one_vector(net: nn.Module) -> nn.Module:
    """A network of one vector: the network itself, or a model of rsl_rl with concatenated groups.

    Args:
        net: the network.
    """
    groups = getattr(net, "obs_groups", None)
    joins = isinstance(groups, list | tuple) and bool(groups) and callable(getattr(net, "get_latent", None))
    return JoinedGroups(net) if joins else net
