"""An actor-critic policy for PPO and A2C that is equivariant by construction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import torch
from stable_baselines3.common.distributions import DiagGaussianDistribution
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, FlattenExtractor
from torch import Tensor, nn

from symcheck.errors import OptionError, SpecError
from symcheck.representations import constructors
from symcheck.representations.coordinates import mixed_coordinates
from symcheck.sb3.claim import claim_for
from symcheck.sb3.features import SymmetricFeatures
from symcheck.sb3.layers import Body, Head, TwoBodies, draw_orthogonally, negates_everything
from symcheck.sb3.vector_layers import VectorBody, require_reachable
from symcheck.symmetry.symmetry import Symmetry


class EquivariantActorCriticPolicy(ActorCriticPolicy):
    """An `ActorCriticPolicy` with pi(g a | g s) = pi(a | s) and V(g s) = V(s) for all values of its parameters.

    Actor and critic have separate bodies of basis layers. Logits or means transform like the actions, the value is
    invariant, and actions that are exchanged share one standard deviation. Initial weights are orthogonal within the
    space of equivariant weights, with Stable-Baselines3's gains (0.01 for the action head).

    Args:
        observation_space: a Box, Discrete, MultiDiscrete or MultiBinary space, or a Dict of these; no images.
        action_space: a Box, Discrete, MultiDiscrete or MultiBinary space.
        lr_schedule: maps the remaining progress to the learning rate.
        symmetry: a `Symmetry`, a SPEC file or an atlas name. A file is read again when a saved agent is loaded; a
            `Symmetry` is saved with the agent.
        normalize: whether observations are normalised by running statistics that are invariant under the group. The
            statistics change only between rollouts and are saved with the agent.
        net_arch: units of the layers, as for `ActorCriticPolicy`: a list for both bodies, or one for each,
            `dict(pi=[...], vf=[...])`. Each channel has |G| units; the number of units is rounded up.
        activation_fn: any entrywise function; not used for continuous groups, whose layers have gates.
        ortho_init: False for the layers' own initialiser.
        options: further options of `ActorCriticPolicy`.

    Raises:
        SpecError: the symmetry does not exist, does not fit the spaces, or has maps that layers cannot represent.
        OptionError: state-dependent exploration, or a features extractor of another kind.

    Example:
        >>> from stable_baselines3 import A2C
        >>> agent = A2C(EquivariantActorCriticPolicy, "CartPole-v1", device="cpu",
        ...             policy_kwargs=dict(symmetry="cartpole/mirror", net_arch=[32]))
        >>> agent.policy.mlp_extractor.latent_dim_pi
        32

    Source: E. van der Pol et al., "MDP Homomorphic Networks" (2020), section 4.
    """

    log_std_blocks: Tensor

    def __init__(
        self,
        observation_space: Any,
        action_space: Any,
        lr_schedule: Any,
        *,
        symmetry: Symmetry | str,
        normalize: bool = False,
        **options: Any,
    ) -> None:
        _refuse_options(options)
        self.claim = claim_for(symmetry, observation_space, action_space)
        self.normalize = bool(normalize)
        super().__init__(observation_space, action_space, lr_schedule, **options)

    def make_features_extractor(self) -> BaseFeaturesExtractor:
        """The flat observation, normalised if requested."""
        return SymmetricFeatures(self.observation_space, self.claim, self.normalize)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        data = super()._get_constructor_parameters()
        # The symmetry itself, so that a saved policy needs no file.
        return {**data, "symmetry": self.claim.symmetry, "normalize": self.normalize}

    def _build(self, lr_schedule: Any) -> None:
        claim, widths = self.claim, self.net_arch
        actor_widths, critic_widths = (
            (widths.get("pi", []), widths.get("vf", [])) if isinstance(widths, dict) else (widths, widths)
        )
        actor, critic = self._body(actor_widths), self._body(critic_widths)
        # The same interface as the parts of Stable-Baselines3.
        self.mlp_extractor = cast(Any, TwoBodies(actor, critic))
        self.action_net = Head(actor.output_type, claim.action, claim.action_centre)
        self.value_net = cast(Any, Head(critic.output_type, constructors.trivial(claim.observation.group)))
        if isinstance(self.action_dist, DiagGaussianDistribution):
            self._tie_deviations()
        if self.ortho_init:
            # Stable-Baselines3's gains. Biases are 0 as there, unless the value would then be 0 everywhere.
            biases = not claim.symmetry.is_continuous and negates_everything(claim.observation)
            draw_orthogonally(self.mlp_extractor, math.sqrt(2.0), biases=biases)
            draw_orthogonally(self.action_net, 0.01)
            draw_orthogonally(self.value_net, 1.0)
        rate = lr_schedule(1)
        self.optimizer = self.optimizer_class(self.parameters(), lr=rate, **self.optimizer_kwargs)  # type: ignore[call-arg]

    def _body(self, widths: Sequence[int]) -> Body | VectorBody:
        claim = self.claim
        if claim.symmetry.is_continuous:
            require_reachable(claim.action)
            return VectorBody(claim.observation, widths)
        return Body(claim.observation, widths, self.activation_fn)

    def _tie_deviations(self) -> None:
        """One free deviation for all coordinates that the group mixes."""
        rho = self.claim.action
        if not rho.is_orthogonal:
            raise SpecError(
                "actions may only be permuted, negated or rotated, but these maps change norms.",
                where="symmetry",
                remedy="A Gaussian policy has no equivariant standard deviation under these maps: rescale the actions.",
            )
        blocks = torch.from_numpy(mixed_coordinates(rho))
        self.register_buffer("log_std_blocks", blocks, persistent=False)
        self.log_std_free = nn.Parameter(torch.full((int(blocks.max()) + 1,), float(self.log_std_init)))

    @property
    def log_std(self) -> Tensor:  # type: ignore[override]
        """The logarithm of each action's deviation, shape (actions,)."""
        return self.log_std_free[self.log_std_blocks]

    def forward(self, obs: Any, deterministic: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Actions, values and log-probabilities of a rollout; `normalize` counts its observations."""
        if self.normalize and not self.training:
            self._observe(obs)
        return super().forward(obs, deterministic)

    def _observe(self, obs: Any) -> None:
        from stable_baselines3.common.preprocessing import preprocess_obs

        features: Any = self.features_extractor
        features.observe(preprocess_obs(obs, self.observation_space, normalize_images=self.normalize_images))

    def set_training_mode(self, mode: bool) -> None:
        """Switch modes; new statistics take effect after an update, before the next rollout."""
        if self.normalize and self.training and not mode:
            features: Any = self.features_extractor
            features.apply_statistics()
        super().set_training_mode(mode)


def _refuse_options(options: dict[str, Any]) -> None:
    if options.get("use_sde"):
        raise OptionError(
            "use_sde=True is not supported.",
            where="use_sde",
            remedy="Omit use_sde: the noise matrix of gSDE is not equivariant.",
        )
    extractor = options.get("features_extractor_class", FlattenExtractor)
    if extractor is not FlattenExtractor or not options.get("share_features_extractor", True):
        raise OptionError(
            f"custom features extractors are not supported, got {getattr(extractor, '__name__', extractor)}.",
            where="features_extractor_class",
            remedy="Omit features_extractor_class: the symmetry acts on the environment's own observations.",
        )
