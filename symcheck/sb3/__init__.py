"""Stable-Baselines3: equivariant actor-critic policies, and a callback that logs the symmetry residual of any policy.

>>> from stable_baselines3 import PPO
>>> from symcheck.sb3 import EquivariantActorCriticPolicy
>>> agent = PPO(EquivariantActorCriticPolicy, "CartPole-v1", device="cpu",
...             policy_kwargs=dict(symmetry="cartpole/mirror"))
>>> import symcheck as sc
>>> sc.verify_net(agent.policy, "cartpole/mirror", samples=100).verdict
'proved'
"""

from symcheck.errors import MissingExtraError

try:
    import stable_baselines3  # noqa: F401 - named in the message where it is missing
except ImportError as error:
    raise ImportError(str(MissingExtraError("sb3", needed_for="symcheck.sb3"))) from error

from symcheck.sb3.callback import SymmetryCallback
from symcheck.sb3.policy import EquivariantActorCriticPolicy

__all__ = ["EquivariantActorCriticPolicy", "SymmetryCallback"]
