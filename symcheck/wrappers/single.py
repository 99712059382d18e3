"""The base of the wrappers of one environment: observations are mapped by an element, actions by its inverse."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from symcheck.symmetry.symmetry import Symmetry
from symcheck.wrappers.lie_elements import LieElements
from symcheck.wrappers.orbit import Elements
from symcheck.wrappers.randomness import Dice
from symcheck.wrappers.spaces import bind, image_space


class SymmetryWrapper(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """An environment transformed by a group element, which `_show` of each subclass chooses.

    Args:
        env: the environment.
        symmetry: a symmetry of a finite group of at most 10,000 elements, or of a continuous one.
        rng: the generator of the wrapper; `reset(seed=...)` reseeds it.

    Raises:
        SpecError: the symmetry does not fit the spaces, or its group is too large.
    """

    def __init__(self, env: gym.Env[Any, Any], symmetry: Symmetry, *, rng: np.random.Generator | None = None) -> None:
        RecordConstructorArgs.__init__(self, symmetry=symmetry)
        gym.Wrapper.__init__(self, env)
        self.symmetry = symmetry
        self._bound = bind(symmetry, env)
        self._elements = self._choose_elements()
        self._dice = Dice(rng)
        self._shown: Any = None
        self._element = 0
        self.observation_space = image_space(self._bound, self._elements.words)

    def _choose_elements(self) -> Elements | LieElements:
        """The elements by which observations may be transformed."""
        return Elements(self._bound)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Map the action back, step, and return the transformed result."""
        # The action was chosen at the shown observation, so apply K of the inverse at that observation.
        mapped = self._bound.action(self._elements.inverses[self._element], action, self._shown)
        if isinstance(self._elements, LieElements):
            mapped = self._elements.clip(mapped)
        observation, reward, terminated, truncated, info = self.env.step(mapped)
        return self._show(observation), reward, terminated, truncated, self._add_element_name(info)

    def _show(self, observation: Any) -> Any:
        """The observation as shown to the agent, stored in `_shown`; the element is stored in `_element`."""
        raise NotImplementedError

    def _add_element_name(self, info: dict[str, Any]) -> dict[str, Any]:
        return {**info, "group_element": self._elements.names[self._element]}
