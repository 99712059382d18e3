"""`RandomSymmetry`: every episode is transformed by a randomly drawn group element.

In an episode with element g the agent observes x = L_g s, and the environment receives K_{g^-1}^x a for its action a.
During training, the agent therefore observes all images of each state. This is data augmentation without a change to
the agent. The distribution of the agent's observations is symmetric even if the environment is not. The environment
must therefore have the symmetry; otherwise the wrapper defines a different task.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from symcheck.symmetry.symmetry import Symmetry
from symcheck.symmetry.tested import BoundTested
from symcheck.wrappers.lie_elements import LieElements
from symcheck.wrappers.orbit import Elements
from symcheck.wrappers.single import SymmetryWrapper


class RandomSymmetry(SymmetryWrapper):
    """An environment that is transformed by a random group element, drawn once per episode.

    Args:
        env: the environment.
        symmetry: a symmetry of a finite group of at most 10,000 elements, or of a continuous group, from which Haar
            elements are drawn. Actions that a rotation maps out of a bounded Box are clipped to the Box.
        rng: the generator that draws the elements; `reset(seed=...)` reseeds it.
        range: the range of translations, a pair (low, high) for all of them or a pair for each; required because
            translations have no uniform distribution.

    Raises:
        SpecError: the symmetry does not fit the spaces, or its group is too large.

    Example:
        >>> import gymnasium, symcheck as sc
        >>> mirror = sc.Symmetry("mirror", sc.groups.cyclic(2), [[-1, -1, -1, -1]], [[1, 0]])
        >>> env = RandomSymmetry(gymnasium.make("CartPole-v1"), mirror)
        >>> sorted({env.reset(seed=seed)[1]["group_element"] for seed in range(20)})
        ['e', 'r']
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        symmetry: Symmetry,
        *,
        rng: np.random.Generator | None = None,
        range: Any = None,  # noqa: A002  (the public name)
    ) -> None:
        self._range = range
        super().__init__(env, symmetry, rng=rng)

    def _choose_elements(self) -> Elements | LieElements:
        bound = self._bound
        return LieElements(bound, 1, amounts=self._range) if isinstance(bound, BoundTested) else Elements(bound)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment, draw an element for the episode, and return the transformed observation."""
        self._dice.seed(seed)
        observation, info = self.env.reset(seed=seed, options=options)
        # After the environment's reset, with which it must not share random numbers.
        if isinstance(self._elements, LieElements):
            self._elements.draw(self._dice.rng, [0])
        else:
            self._element = int(self._dice.below(len(self._elements), 1)[0])
        return self._show(observation), self._add_element_name(info)

    def _show(self, observation: Any) -> Any:
        self._shown = self._bound.observation(self._elements.words[self._element], observation)
        return self._shown
