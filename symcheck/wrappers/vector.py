"""`Quotient` and `RandomSymmetry` for vector environments, in any of Gymnasium's autoreset modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from symcheck.symmetry.symmetry import Symmetry
from symcheck.symmetry.tested import BoundTested
from symcheck.wrappers.lie_elements import LieElements
from symcheck.wrappers.orbit import Elements, leading
from symcheck.wrappers.randomness import Dice
from symcheck.wrappers.spaces import bind, image_space

_STACKED = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


class _SymmetryVectorWrapper(VectorWrapper):
    """Transforms each environment's observation by an element, and maps actions back by the inverse."""

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        symmetry: Symmetry,
        rng: np.random.Generator | None,
        *,
        amounts: Any = None,
        aligning: bool = False,
    ) -> None:
        super().__init__(env)
        self.symmetry = symmetry
        self._bound = bind(symmetry, env)
        bound = self._bound
        continuous = isinstance(bound, BoundTested)
        self._elements = (
            LieElements(bound, self.num_envs, amounts=amounts, aligning=aligning)
            if isinstance(bound, BoundTested)
            else Elements(bound)
        )
        self._dice = Dice(rng)
        # Elements of continuous groups are stored per slot.
        self._chosen: npt.NDArray[np.int64] = np.arange(self.num_envs) if continuous else np.zeros(self.num_envs, int)
        self._shown: Any = None
        self._ended: npt.NDArray[np.bool_] = np.zeros(self.num_envs, dtype=np.bool_)
        self._mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self.single_observation_space = image_space(self._bound, self._elements.words)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset all environments, or those of `options["reset_mask"]`; return transformed observations."""
        self._dice.seed(seed)
        fresh = np.ones(self.num_envs, dtype=np.bool_)
        if options is not None and "reset_mask" in options:
            # Environments outside the mask continue their episodes with their elements.
            fresh = np.asarray(options["reset_mask"], dtype=np.bool_)
        observations, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]  # lists are taken too
        self._ended &= ~fresh
        return self._show(observations, fresh), self._add_element_names(infos)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Map every action back, step, and return transformed observations."""
        observations, rewards, terminations, truncations, infos = self.env.step(self._map_back(actions))
        ended = np.asarray(terminations | truncations)
        # SAME_STEP: the observation is the next episode's first one, the last one is in the infos.
        if self._mode == AutoresetMode.SAME_STEP:
            infos = self._with_final(infos)
            fresh = ended
        else:
            # NEXT_STEP: episodes that ended one step ago begin now.
            fresh = self._ended if self._mode == AutoresetMode.NEXT_STEP else np.zeros_like(ended)
        shown = self._show(observations, fresh)
        self._ended = ended
        return shown, rewards, terminations, truncations, self._add_element_names(infos)

    def _choose(self, observations: Any, fresh: npt.NDArray[np.bool_]) -> None:
        """Set the element of each environment; `fresh` ones have just begun an episode."""
        raise NotImplementedError

    def _show(self, observations: Any, fresh: npt.NDArray[np.bool_]) -> Any:
        singles = self._split(observations, self.env.single_observation_space)
        self._choose(singles, fresh)
        self._shown = self._through(singles, self._elements.words)
        return self._join_values(self._shown, self.single_observation_space)

    def _through(self, values: Any, words: Sequence[tuple[int, ...]]) -> Any:
        """Each observation transformed by its own element."""
        result: Any = np.array(values) if isinstance(values, np.ndarray) else list(values)
        # One call per element in use, not one per environment.
        for element in np.unique(self._chosen):
            rows = np.flatnonzero(self._chosen == element)
            image = self._bound.observation_batch(words[element], _select_rows(values, rows))
            _write_rows(result, rows, image)
        return result

    def _map_back(self, actions: Any) -> Any:
        singles = self._split(actions, self.env.single_action_space)
        result: Any = np.array(singles) if isinstance(singles, np.ndarray) else list(singles)
        for element in np.unique(self._chosen):
            rows = np.flatnonzero(self._chosen == element)
            inverse = self._elements.inverses[element]
            # K depends on the observation that the agent saw, which is `_shown`.
            image = self._bound.action_batch(inverse, _select_rows(singles, rows), _select_rows(self._shown, rows))
            if isinstance(self._elements, LieElements):
                image = self._elements.clip(image)
            _write_rows(result, rows, image)
        return self._join_values(result, self.env.single_action_space)

    def _with_final(self, infos: dict[str, Any]) -> dict[str, Any]:
        """The last observations of episodes that ended in this step, through the elements of those episodes."""
        if "final_obs" not in infos:
            return infos
        final = np.array(infos["final_obs"], dtype=object)
        # Only rows of finished episodes contain a last observation.
        for row in np.flatnonzero(infos["_final_obs"]):
            word = self._elements.words[self._final_element(int(row), final[row])]
            final[row] = self._bound.observation(word, final[row])
        return {**infos, "final_obs": final}

    def _final_element(self, row: int, observation: Any) -> int:
        return int(self._chosen[row])

    def _add_element_names(self, infos: dict[str, Any]) -> dict[str, Any]:
        names = np.array([self._elements.names[element] for element in self._chosen], dtype=object)
        return {**infos, "group_element": names, "_group_element": np.ones(self.num_envs, dtype=np.bool_)}

    def _split(self, values: Any, space: gym.Space[Any]) -> Any:
        if isinstance(space, _STACKED):
            return np.asarray(values)
        return list(iterate(batch_space(space, self.num_envs), values))

    def _join_values(self, values: Any, space: gym.Space[Any]) -> Any:
        if isinstance(space, _STACKED):
            return values
        empty: Any = create_empty_array(space, self.num_envs)
        return concatenate(space, values, empty)


class VectorRandomSymmetry(_SymmetryVectorWrapper):
    """A vector environment transformed by random group elements, one per episode of each environment.

    Args:
        env: the vector environment.
        symmetry: a symmetry of a group of at most 10,000 elements.
        rng: the generator that draws the elements; `reset(seed=...)` reseeds it.

    Raises:
        SpecError: the symmetry does not fit the spaces, or its group is too large.

    Example:
        >>> import gymnasium, symcheck as sc
        >>> mirror = sc.Symmetry("mirror", sc.groups.cyclic(2), [[-1, -1, -1, -1]], [[1, 0]])
        >>> envs = VectorRandomSymmetry(gymnasium.make_vec("CartPole-v1", 8), mirror)
        >>> envs.reset(seed=0)[0].shape
        (8, 4)
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        symmetry: Symmetry,
        *,
        rng: np.random.Generator | None = None,
        range: Any = None,  # noqa: A002  (the public name)
    ) -> None:
        super().__init__(env, symmetry, rng, amounts=range)

    def _choose(self, observations: Any, fresh: npt.NDArray[np.bool_]) -> None:
        if isinstance(self._elements, LieElements):
            if fresh.any():
                self._elements.draw(self._dice.rng, np.flatnonzero(fresh).tolist())
            return
        self._chosen[fresh] = self._dice.below(len(self._elements), int(fresh.sum()))


class VectorQuotient(_SymmetryVectorWrapper):
    """A vector environment whose observations are orbit representatives; see `Quotient`.

    Args:
        env: the vector environment.
        symmetry: a symmetry of a group of at most 10,000 elements.
        rng: draws among elements that lead to the same representative; `reset(seed=...)` reseeds it.

    Raises:
        SpecError: the symmetry does not fit the spaces, or its group is too large.

    Example:
        >>> import gymnasium, symcheck as sc
        >>> mirror = sc.Symmetry("mirror", sc.groups.cyclic(2), [[-1, -1, -1, -1]], [[1, 0]])
        >>> envs = VectorQuotient(gymnasium.make_vec("CartPole-v1", 8), mirror)
        >>> bool((envs.reset(seed=0)[0][:, 0] >= 0).all())
        True
    """

    def __init__(
        self, env: VectorEnv[Any, Any, Any], symmetry: Symmetry, *, rng: np.random.Generator | None = None
    ) -> None:
        super().__init__(env, symmetry, rng, aligning=True)

    def _choose(self, observations: Any, fresh: npt.NDArray[np.bool_]) -> None:
        if isinstance(self._elements, LieElements):
            self._elements.align(list(observations), list(range(self.num_envs)))
            return
        images = [self._bound.observation_batch(word, observations) for word in self._elements.words]
        self._chosen = self._dice.among_each(leading(images, self.num_envs))

    def _final_element(self, row: int, observation: Any) -> int:
        if isinstance(self._elements, LieElements):
            return row  # transform the last observation like the episode's others
        # A batch of one for `leading`.
        single = [observation] if isinstance(observation, dict | tuple) else np.asarray(observation)[None]
        images = [self._bound.observation_batch(word, single) for word in self._elements.words]
        return self._dice.among(leading(images, 1)[:, 0])


def _select_rows(values: Any, rows: npt.NDArray[np.int64]) -> Any:
    return values[rows] if isinstance(values, np.ndarray) else [values[row] for row in rows]


def _write_rows(result: Any, rows: npt.NDArray[np.int64], images: Any) -> None:
    if isinstance(result, np.ndarray):
        result[rows] = images
    else:
        for row, image in zip(rows, images, strict=True):
            result[row] = image
