"""Policies of Stable-Baselines3 and its contrib package, loaded from files, in their deterministic form."""

from __future__ import annotations

import importlib
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from symcheck.errors import MissingExtraError, SymcheckError, TargetError
from symcheck.statements.statement import state

CONTRIB = "sb3_contrib"
_ALGORITHMS = (
    ("stable_baselines3", ("PPO", "A2C", "DQN", "SAC", "TD3", "DDPG")),
    (CONTRIB, ("TQC", "QRDQN", "MaskablePPO", "RecurrentPPO", "TRPO", "CrossQ", "ARS")),
)
STEPS = 3
"""Number of times a recurrent policy sees an observation: its recurrent weights have an effect from the second step
on."""


class DeterministicActor(nn.Module):
    """The action of a SAC, TQC, CrossQ, TD3 or DDPG policy without its noise, in the environment's units.

    Args:
        policy: has an `actor`.
    """

    def __init__(self, policy: Any) -> None:
        super().__init__()
        self.structured_input = policy
        self.roles = ("action",)
        low, high = (torch.as_tensor(bound) for bound in (policy.action_space.low, policy.action_space.high))
        self.half_range: torch.Tensor
        self.middle: torch.Tensor
        self.register_buffer("half_range", (high - low) / 2)
        self.register_buffer("middle", (high + low) / 2)
        # Products with 1 and sums with 0 are omitted, which simplifies a proof.
        self._scales = bool(policy.squash_output) and not bool((self.half_range == 1).all())
        self._shifts = bool(policy.squash_output) and bool((self.middle != 0).any())

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Actions, shape (n, actions)."""
        policy: Any = self.structured_input
        actor = policy.actor
        features = actor.extract_features(observations, actor.features_extractor)
        # Actors with a density apply tanh to its mean; other actors end with a tanh layer.
        actions = torch.tanh(actor.mu(actor.latent_pi(features))) if hasattr(actor, "latent_pi") else actor.mu(features)
        if self._scales:
            actions = actions * self.half_range
        return actions + self.middle if self._shifts else actions


class MeanQuantiles(nn.Module):
    """The action values of a QRDQN policy: means over its quantiles.

    Args:
        policy: has a `quantile_net`.
    """

    def __init__(self, policy: Any) -> None:
        super().__init__()
        self.structured_input = policy
        self.roles = ("action",)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Action values, shape (n, actions)."""
        policy: Any = self.structured_input
        return torch.as_tensor(policy.quantile_net(observations).mean(dim=1))


class RepeatedObservation(nn.Module):
    """Logits or means and the value of a recurrent policy after a fresh start and `STEPS` equal observations.

    Args:
        policy: a `RecurrentActorCriticPolicy`.
    """

    def __init__(self, policy: Any) -> None:
        super().__init__()
        self.structured_input = policy
        self.roles = ("action", "invariant")
        self.note = state("recurrent_steps", steps=STEPS)

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(logits or means, shape (n, actions); values, shape (n, 1))."""
        policy: Any = self.structured_input
        features = policy.extract_features(observations)
        of_actor, of_critic = features if isinstance(features, tuple) else (features, features)
        pi = _last_step(policy.lstm_actor, of_actor)
        if policy.lstm_critic is not None:
            vf = _last_step(policy.lstm_critic, of_critic)
        else:
            # Without its own LSTM, the critic shares the actor's LSTM, or has a linear layer.
            vf = pi if policy.shared_lstm else policy.critic(of_critic)
        extractor = policy.mlp_extractor
        return policy.action_net(extractor.forward_actor(pi)), policy.value_net(extractor.forward_critic(vf))


def _last_step(lstm: nn.Module, features: torch.Tensor) -> torch.Tensor:
    outputs, _ = lstm(features.unsqueeze(0).repeat(STEPS, 1, 1))
    return torch.as_tensor(outputs[-1])


def deterministic_part(policy: Any) -> nn.Module | None:
    """The part of a policy that acts deterministically; None for other networks.

    Args:
        policy: any module.
    """
    if all(hasattr(policy, name) for name in ("lstm_actor", "mlp_extractor", "action_net", "value_net")):
        return RepeatedObservation(policy)
    if hasattr(policy, "quantile_net") and hasattr(policy, "quantile_net_target"):
        return MeanQuantiles(policy)
    actor = getattr(policy, "actor", None)
    # Target networks are not deployed; the flag distinguishes a policy from an agent with the same attribute names.
    if isinstance(actor, nn.Module) and hasattr(actor, "mu") and hasattr(policy, "squash_output"):
        return DeterministicActor(policy)
    return None


def load_policy(path: Path, *, trust: bool) -> Any:
    """The policy in a Stable-Baselines3 file.

    Args:
        path: the file.
        trust: whether to load a file that may run code.

    Raises:
        MissingExtraError: Stable-Baselines3 is not installed.
        TargetError: the file is not trusted, needs the contrib package, or comes from an unknown algorithm.
    """
    try:
        importlib.import_module("stable_baselines3")
    except ImportError as error:
        raise MissingExtraError("sb3", needed_for="reading a Stable-Baselines3 file") from error
    if not trust:
        raise TargetError(
            "a Stable-Baselines3 file runs code when it is loaded.",
            where=str(path),
            remedy="If you trust the source of the file, load it with --trust.",
        )
    # The file names the class of the policy, but not the algorithm that wrote it.
    for algorithm in _algorithms(path):
        try:
            return algorithm.load(path, device="cpu").policy
        except SymcheckError:  # the policy's own error, for example a missing SPEC file
            raise
        except Exception:  # written by another algorithm: try the next one
            continue
    names = [name for _, group in _ALGORITHMS for name in group]
    raise TargetError(
        f"the file was not written by {', '.join(names[:-1])} or {names[-1]}.",
        where=str(path),
        remedy="Write a factory that loads the file and returns its policy, and give file.py:factory as TARGET.",
    )


def _algorithms(path: Path) -> Iterator[Any]:
    """The algorithms that may have written a file, those of its policy's package first."""
    contrib = _names_contrib(path)
    for package, names in sorted(_ALGORITHMS, key=lambda item: (item[0] == CONTRIB) != contrib):
        try:
            module = importlib.import_module(package)
        except ImportError as error:
            if contrib and package == CONTRIB:
                raise TargetError(
                    "the file contains a policy of the package sb3-contrib, which is not installed.",
                    where=str(path),
                    remedy="Install the package: pip install sb3-contrib.",
                ) from error
            continue
        # Older versions lack some of these.
        yield from (getattr(module, name) for name in names if hasattr(module, name))


def _names_contrib(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            described = json.loads(archive.read("data"))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        return False
    policy = described.get("policy_class") if isinstance(described, dict) else None
    return CONTRIB in str(policy)
