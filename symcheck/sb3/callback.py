"""Logs the symmetry residual of a Stable-Baselines3 policy during training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from torch import Tensor

from symcheck.engine.networks.subject.adapters import PolicyParameters, is_actor_critic_policy
from symcheck.engine.policies.residuals import measure_residual, random_rows
from symcheck.envs.specs import resolve_symmetry
from symcheck.errors import OptionError
from symcheck.symmetry.symmetry import Symmetry


class SymmetryCallback(BaseCallback):
    """Log |pi(g s) - g pi(s)| of a policy, equivariant or not, on the observations of its rollouts.

    Scalars are `symmetry/residual_max`, `symmetry/residual_mean` and `symmetry/residual_relative` (the mean divided by
    the standard deviation of the actions). The residual compares probabilities for Discrete actions, mean actions for a
    Box, and Q-values for DQN. With a `VecNormalize` around the environment, the scalars describe normaliser and policy
    together.

    Args:
        symmetry: a `Symmetry`, a SPEC file or an atlas name.
        every: number of rollouts between two measurements, at least 1. A rollout is `n_steps` steps for PPO and A2C,
            and `train_freq` steps for off-policy algorithms, for which 1,000 or more is reasonable.
        verbose: as for any callback.

    Raises:
        OptionError: `every` is not an integer of 1 or more; or, when training starts, actions are neither Discrete
            nor a Box.
        SpecError: the symmetry does not exist; or, when training starts, it does not fit the spaces.

    Example:
        >>> from stable_baselines3 import PPO
        >>> agent = PPO("MlpPolicy", "CartPole-v1", n_steps=16, batch_size=16, n_epochs=1, device="cpu", seed=0)
        >>> callback = SymmetryCallback("cartpole/mirror")
        >>> _ = agent.learn(32, callback=callback)
        >>> callback.residuals["residual_max"] > 0
        True
    """

    def __init__(self, symmetry: Symmetry | str, *, every: int = 1, verbose: int = 0) -> None:
        super().__init__(verbose)
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise OptionError(f"expected a whole number, 1 or more, got {every!r}.", where="every")
        self.symmetry = resolve_symmetry(symmetry, where="symmetry").symmetry
        self.every = every
        self.residuals: dict[str, float] = {}
        """The last measurement."""
        self._rollouts = 0

    def _on_training_start(self) -> None:
        model: Any = self.model
        self.symmetry.bind(model.observation_space, model.action_space)
        if not isinstance(model.action_space, spaces.Box | spaces.Discrete):
            raise OptionError(
                f"expected Discrete or Box actions, got {model.action_space}.",
                where="SymmetryCallback",
                remedy="Omit the callback and verify the trained policy: symcheck.verify_net(agent.policy, symmetry).",
            )

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        if self._rollouts % self.every == 0:
            policy = _policy_of_raw_observations(self.model)
            self.residuals = measure_residual(policy, self.symmetry, _raw_observations(self.model), None)
            for name, value in self.residuals.items():
                self.logger.record(f"symmetry/{name}", value)
        self._rollouts += 1


def _raw_observations(model: Any) -> Any:
    """Some observations of the last rollout, or of the replay buffer, as the environment returned them."""
    held = getattr(model, "rollout_buffer", None)
    filled: Any = slice(None)
    if held is None:
        held = model.replay_buffer
        filled = slice(held.size())
    normalizer = model.get_vec_normalize_env()
    observations = held.observations
    tables = observations if isinstance(observations, dict) else {None: observations}
    # Steps and environments in one axis.
    flat = {key: table[filled].reshape(-1, *table.shape[2:]) for key, table in tables.items()}
    rows = random_rows(len(next(iter(flat.values())))).numpy()
    chosen: Any = {key: table[rows] for key, table in flat.items()}
    if not isinstance(observations, dict):
        chosen = chosen[None]
    if normalizer is not None:
        chosen = normalizer.unnormalize_obs(chosen)
    return _as_tensors(chosen)


def _policy_of_raw_observations(model: Any) -> Callable[[Any], Tensor]:
    """A function from observations as the environment returns them to probabilities, values or mean actions."""
    normalizer = model.get_vec_normalize_env()
    policy = model.policy

    def outputs(raw: Any) -> Tensor:
        seen = {key: value.numpy() for key, value in raw.items()} if isinstance(raw, dict) else raw.numpy()
        if normalizer is not None:
            seen = normalizer.normalize_obs(seen)
        if is_actor_critic_policy(policy):
            first: Tensor = PolicyParameters(policy)(_as_tensors(seen, policy.device))[0]
            return first.softmax(dim=-1) if isinstance(model.action_space, spaces.Discrete) else first
        if hasattr(policy, "q_net"):
            values: Tensor = policy.q_net(_as_tensors(seen, policy.device))
            return values
        return torch.as_tensor(policy.predict(seen, deterministic=True)[0])

    return outputs


def _as_tensors(values: Any, device: Any = "cpu") -> Any:
    if isinstance(values, dict):
        return {key: _as_tensors(value, device) for key, value in values.items()}
    array = np.asarray(values)
    # VecNormalize computes in float64, networks in float32.
    return torch.as_tensor(array.astype(np.float32) if array.dtype == np.float64 else array, device=device)
