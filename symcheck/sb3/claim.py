"""The action of a symmetry on the inputs and outputs of a Stable-Baselines3 policy.

Observations are the flat vector of `SymmetricFeatures`; actions are logits for discrete spaces and means for boxes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from reference_agents.encoding.actions import ActionEncoder
from reference_agents.encoding.claims import encode_claim
from reference_agents.encoding.observations import Leaf, ObservationEncoder
from symcheck.array_types import Floats
from symcheck.envs.specs import resolve_symmetry
from symcheck.errors import SpecError
from symcheck.representations import constructors, operations
from symcheck.representations.representation import Representation
from symcheck.symmetry.choices import bernoulli_map
from symcheck.symmetry.symmetry import Symmetry


@dataclass(frozen=True)
class PolicyClaim:
    """The claim for which the layers of a policy are built.

    Attributes:
        symmetry: the claim on the environment's own spaces.
        observation: the representation on the flat observation.
        action: the representation on logits or means.
        leaves: the parts of an observation, in the order of the flat vector.
        centre: the centre of the observations, which is subtracted from the flat vector; None for 0.
        action_centre: the centre of the action means, which is added to them; None for 0.
    """

    symmetry: Symmetry
    observation: Representation
    action: Representation
    leaves: tuple[Leaf, ...]
    centre: Floats | None
    action_centre: Floats | None


def claim_for(given: Symmetry | str, observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> PolicyClaim:
    """The claim of a symmetry on the inputs and outputs of a policy.

    Args:
        given: a `Symmetry`, a SPEC file or an atlas name.
        observation_space: the observation space of the environment.
        action_space: the action space of the environment.

    Returns:
        The representations that the layers need.

    Raises:
        SpecError: no such symmetry, a symmetry that does not fit the spaces, or maps that layers cannot represent.
        TargetError: spaces without a fixed size.
    """
    symmetry = resolve_symmetry(given, where="symmetry").symmetry
    symmetry.bind(observation_space, action_space)
    _refuse_images(observation_space)
    # Stable-Baselines3 passes unscaled bytes to policies, and actions in the environment's units.
    observation = ObservationEncoder(observation_space, as_image=False, scaled=False)
    action = ActionEncoder(action_space, scaled=False)
    if symmetry.is_continuous:
        _require_vector(symmetry, observation_space)
        seen = _sized(symmetry.observation_representation, observation.shape[0])
        acting = _sized(symmetry.action_representation, action.numbers)
        return PolicyClaim(symmetry, seen, acting, observation.leaves, None, None)
    encoded = encode_claim(symmetry, observation, action, observation_space)
    return PolicyClaim(
        symmetry,
        encoded.observation_representation,
        _on_bernoulli_logits(encoded.action_representation)
        if isinstance(action_space, spaces.MultiBinary)
        else encoded.action_representation,
        observation.leaves,
        observation.centre,
        action.centre if np.any(action.centre) else None,
    )


def _on_bernoulli_logits(rho: Representation) -> Representation:
    """One logit for each bit of a MultiBinary action, from the pair of logits of its two values."""
    matrices = [bernoulli_map(np.asarray(rho.matrix(g), dtype=float)) for g in rho.group.generators]
    return constructors.from_matrices(rho.group, matrices, name="encoded action")


def _sized(rho: Representation, size: int) -> Representation:
    """The same representation on a vector of this length: rotations name some coordinates and fix all later ones."""
    missing = size - rho.dim
    return rho if missing <= 0 else operations.direct_sum(rho, constructors.trivial(rho.group, missing))


def _refuse_images(space: gym.Space[Any]) -> None:
    parts = space.spaces.values() if isinstance(space, spaces.Dict) else [space]
    if any(isinstance(part, spaces.Box) and len(part.shape) == 3 and part.dtype == np.uint8 for part in parts):
        raise SpecError(
            f"expected observations that are vectors, or a Dict of them, got images: {space}.",
            where="symmetry",
            remedy="Build the network from symcheck.nn (BasisConv2d) in your own policy.",
        )


def _require_vector(symmetry: Symmetry, space: gym.Space[Any]) -> None:
    if not isinstance(space, spaces.Box):
        raise SpecError(
            f"expected observations in a Box for the continuous group {symmetry.group.name}, got {space}.",
            where="symmetry",
            remedy="Flatten the observation (gymnasium.wrappers.FlattenObservation), or claim a finite subgroup.",
        )
