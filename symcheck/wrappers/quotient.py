"""`Quotient`: the agent observes one representative of each orbit, and its actions are mapped back.

The agent observes r = L_g s, where g maps s to the representative of its orbit, and chooses a; the environment receives
K_{g^-1}^r a. The agent learns a policy for the smaller MDP of orbits. In the environment, the wrapped agent follows the
lifted policy, which is equivariant for every agent. If several elements map s to the representative (an upright pole in
the middle is its own mirror image), one of them is drawn uniformly. Otherwise the lifted policy would break the
symmetry at s.
"""

from __future__ import annotations

from typing import Any

from symcheck.symmetry.tested import BoundTested
from symcheck.wrappers.lie_elements import LieElements
from symcheck.wrappers.orbit import Elements, leading_one
from symcheck.wrappers.single import SymmetryWrapper


class Quotient(SymmetryWrapper):
    """An environment whose observations are orbit representatives.

    You can train on this environment with any agent library. In deployment, the same wrapper makes the policy of the
    trained agent equivariant. The environment must have the symmetry; check this with `symcheck.verify_env(env,
    symmetry)`.

    Args:
        env: the environment.
        symmetry: a symmetry of a finite group of at most 10,000 elements, or of rotations or translations, under which
            observations are aligned (see `symcheck.wrappers.lie_elements`).
        rng: selects among elements that lead to the same representative; `reset(seed=...)` reseeds it.

    Raises:
        SpecError: the symmetry does not fit the spaces, or its group is too large.

    Example:
        >>> import gymnasium, symcheck as sc
        >>> mirror = sc.Symmetry("mirror", sc.groups.cyclic(2), [[-1, -1, -1, -1]], [[1, 0]])
        >>> env = Quotient(gymnasium.make("CartPole-v1"), mirror)
        >>> first, info = env.reset(seed=1)
        >>> bool(first[0] >= 0), info["group_element"] in ("e", "r")
        (True, True)

    Source: lifting as in van der Pol et al. 2020, section 2.2, with probability divided evenly over equivalent actions.
    """

    def _choose_elements(self) -> Elements | LieElements:
        bound = self._bound
        return LieElements(bound, 1, aligning=True) if isinstance(bound, BoundTested) else Elements(bound)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset; returns the representative of the first observation, and the element that maps it there."""
        self._dice.seed(seed)
        observation, info = self.env.reset(seed=seed, options=options)
        return self._show(observation), self._add_element_name(info)

    def _show(self, observation: Any) -> Any:
        if isinstance(self._elements, LieElements):
            self._elements.align([observation], [0])
            self._shown = self._bound.observation(self._elements.words[0], observation)
            return self._shown
        # Every element is tried: the representative is the last image in lexicographic order.
        images = [self._bound.observation(word, observation) for word in self._elements.words]
        alive = leading_one(images, copies=self._elements.copies)
        # Stabilisers: draw one of several elements with the same image.
        self._element = self._dice.among(alive)
        self._shown = images[self._element]
        return self._shown
