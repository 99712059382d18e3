"""A symmetry fitted to the spaces of one environment: maps of single values and of stacked batches.

Group elements are given as words over the generators, as `Group.word` returns them: the word (i, j) is g_i * g_j, and
its last letter acts first. State-dependent action maps compose as K_gh^s = K_g^{hs} K_h^s (the homomorphism direction
is stated once, here, and tested with a group of order 3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from symcheck.array_types import Indices
from symcheck.entries.forms import Entry, FunctionEntry, TreeEntry
from symcheck.errors import SpecError
from symcheck.statements.statement import Statement
from symcheck.symmetry import text
from symcheck.symmetry.action_bounds import check_corners
from symcheck.symmetry.blocks import check_columns, labels_of
from symcheck.symmetry.space_maps import SpaceMap, fit

if TYPE_CHECKING:
    import gymnasium as gym

    from symcheck.symmetry.claimed_maps import ClaimedMaps

Word: TypeAlias = Sequence[int]
Part: TypeAlias = Literal["observation", "action", "state"]
UNIFORM: tuple[int, ...] = (-1,)
"""The word for Haar elements of a continuous group: each value gets its own. Other negative letters denote single Haar
elements."""


def pooled(word: Word) -> tuple[int, ...]:
    """The word that labels a sample for comparison: `UNIFORM` for every Haar element.

    Example:
        >>> pooled((-7,)), pooled((0, 1))
        ((-1,), (0, 1))
    """
    return UNIFORM if len(word) == 1 and word[0] < 0 else tuple(word)


def group_by_word(words: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], Indices]:
    """The positions of every word, in the order of first positions.

    Example:
        >>> {word: places.tolist() for word, places in group_by_word([(0,), (1,), (0,)]).items()}
        {(0,): [0, 2], (1,): [1]}
    """
    if len(words) and words.count(words[0]) == len(words):  # the usual case of a single generator
        return {words[0]: np.arange(len(words))}
    places: dict[tuple[int, ...], list[int]] = {}
    for i, word in enumerate(words):
        places.setdefault(word, []).append(i)
    return {word: np.array(rows, dtype=np.intp) for word, rows in places.items()}


class ElementLabel(str):
    """The name of an element of a continuous group, with its word and amounts as data.

    Attributes:
        word: names of generators.
        parameters: one amount per Lie generator in the word.
    """

    word: str
    parameters: tuple[float, ...]

    @staticmethod
    def of(text: str, word: str, parameters: tuple[float, ...]) -> ElementLabel:
        """The label."""
        label = ElementLabel(text)
        label.word, label.parameters = word, parameters
        return label


class BoundSymmetry:
    """L and K of a symmetry, as maps on one environment's spaces.

    Args:
        symmetry: the claim.
        observation_space: the environment's observation space; entries must fit it.
        action_space: the environment's action space; entries must fit it.

    Raises:
        SpecError: an entry does not fit its space, or maps an action out of a bounded Box.

    Example:
        >>> import gymnasium, numpy
        >>> from symcheck.groups import catalog
        >>> from symcheck.symmetry.symmetry import Symmetry
        >>> env = gymnasium.make("CartPole-v1")
        >>> mirror = Symmetry("mirror", catalog.cyclic(2), [[-1, -1, -1, -1]], [[1, 0]])
        >>> bound = mirror.bind(env.observation_space, env.action_space)
        >>> bound.observation((0,), numpy.array([0.5, 0.0, -1.0, 2.0]))
        array([-0.5, -0. ,  1. , -2. ])
        >>> int(bound.action((0,), 0, None))
        1
    """

    def __init__(self, symmetry: ClaimedMaps, observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> None:
        self.symmetry = symmetry
        self.group = symmetry.group
        self.observation_space = observation_space
        self.action_space = action_space
        # Blocks first: their message names the block whose size is wrong.
        _check_blocks(symmetry, "observation", observation_space)
        _check_blocks(symmetry, "action", action_space)
        self._observation: Sequence[SpaceMap] = _fit_entries(symmetry.observation, observation_space, "observation")
        self._action: Sequence[SpaceMap] = _fit_entries(symmetry.action, action_space, "action")
        self._state: Sequence[SpaceMap] | None = (
            None if symmetry.state is None else _fit_entries(symmetry.state, None, "state")
        )
        for i, (entry, act) in enumerate(zip(symmetry.action, self._action, strict=True)):
            # Callables are checked when actions are mapped.
            if not (_has_function(entry) or symmetry.is_continuous):
                check_corners(act.batch, action_space, f"action[{i}]")
        # Only callables can depend on the observation; data acts on every action in the same way.
        self._action_needs_observation = any(_has_function(entry) for entry in symmetry.action)

    def at_tested_elements(self, seed: int, seen: Callable[[], Any]) -> BoundSymmetry:
        """The symmetry at the elements that a run tests; for a finite group these are its generators."""
        return self

    @property
    def source(self) -> ClaimedMaps:
        """The claim as written; for a continuous group with its Lie generators."""
        return self.symmetry

    @property
    def tested_words(self) -> tuple[tuple[int, ...], ...]:
        """The elements that a run tests pair by pair: the generators."""
        return tuple((i,) for i in range(len(self.group.generators)))

    @property
    def compared_words(self) -> tuple[tuple[int, ...], ...]:
        """The elements under which distributions are compared: the generators."""
        return self.tested_words

    def drawn(self, word: tuple[int, ...]) -> tuple[int, ...]:
        """The word of one element; for continuous groups, `UNIFORM` gives a new Haar element at each call."""
        return word

    def may_leave(self, word: Word) -> bool:
        """Whether an element may map points of a bounded Box outside it without an error; never in a finite group."""
        return False

    @property
    def note(self) -> Statement | None:
        """The tested elements of a continuous group, in words; None for finite groups, whose generators are tested."""
        return None

    @property
    def has_state(self) -> bool:
        """Whether the symmetry defines how the internal state transforms."""
        return self._state is not None

    @property
    def claim(self) -> dict[str, list[str]]:
        """How each generator acts, in words: {"observation": [...], "action": [...], "state": [...]}."""
        return text.claim(self.symmetry, self.label)

    def column_labels(self, part: Part) -> dict[Any, tuple[str, ...]]:
        """Column names of a part that was written as named blocks: {key of the sub-space, or None: names}."""
        return {key: labels_of(blocks) for key, blocks in self.symmetry.blocks.get(part, {}).items()}

    def is_data(self, part: Part) -> bool:
        """Whether all entries of a part are data, so that the group's relations were checked when it was built."""
        entries: Sequence[Entry] = getattr(self.symmetry, part) or ()
        return not any(_has_function(entry) for entry in entries)

    def label(self, word: Word) -> str:
        """A readable name of the element: the symmetry's name if it has one generator, otherwise generator names."""
        # For a single generator, use the symmetry's name: "mirror" rather than "g".
        if len(self.group.generators) != 1:
            return " ".join(self.group.generator_names[i] for i in word) or "identity"
        power = len(word)
        return "identity" if power == 0 else self.symmetry.name if power == 1 else f"{self.symmetry.name}^{power}"

    def observation(self, word: Word, obs: Any) -> Any:
        """L_g obs, for one unbatched observation; floats keep their dtype."""
        return _apply_word(self._observation, word, obs)

    def observation_batch(self, word: Word, observations: Any) -> Any:
        """L_g on stacked observations, shape (n, *shape), or on a list of structured ones."""
        return _apply_word_batch(self._observation, word, observations)

    def state(self, word: Word, state: Any) -> Any:
        """L_g on one internal state.

        Raises:
            SpecError: the symmetry has no state entries.
        """
        return _apply_word(self._state_maps(), word, state)

    def state_batch(self, word: Word, states: Any) -> Any:
        """L_g on stacked internal states, shape (n, dim).

        Raises:
            SpecError: the symmetry has no state entries.
        """
        return _apply_word_batch(self._state_maps(), word, states)

    def action(self, word: Word, action: Any, obs: Any) -> Any:
        """K_g^s a, for one action; `obs` is the original observation (unused if K does not depend on it)."""
        # The last letter acts first.
        for letter in reversed(word):
            context = obs if self._action_needs_observation else None
            action = self._action[letter].image(action, context)
            # After each letter the state is replaced by its image, on which the next letter's K^s depends.
            if self._action_needs_observation:
                obs = self._observation[letter].image(obs)
        return action

    def action_batch(self, word: Word, actions: Any, observations: Any) -> Any:
        """K_g^s on stacked actions; `observations` are the original ones, stacked in the same order."""
        for letter in reversed(word):
            # As in `action`, for stacked values.
            contexts = observations if self._action_needs_observation else None
            actions = self._action[letter].batch(actions, contexts)
            if self._action_needs_observation:
                observations = self._observation[letter].batch(observations)
        return actions

    def _state_maps(self) -> Sequence[SpaceMap]:
        if self._state is None:
            raise SpecError("the symmetry has no map of the internal state.", where="Symmetry.state")
        return self._state


def _check_blocks(symmetry: ClaimedMaps, part: str, space: gym.Space[Any]) -> None:
    for key, blocks in symmetry.blocks.get(part, {}).items():
        inner = space if key is None else getattr(space, "spaces", {}).get(key)
        shape = getattr(inner, "shape", None)
        if shape is not None:  # a missing key, or a space without a shape, is reported when entries are fitted
            check_columns(blocks, int(np.prod(shape)), part if key is None else f"{part}[{key!r}]")


def _fit_entries(entries: Sequence[Entry], space: gym.Space[Any] | None, part: str) -> tuple[SpaceMap, ...]:
    return tuple(fit(entry, space, f"{part}[{i}]") for i, entry in enumerate(entries))


def _has_function(entry: Entry) -> bool:
    if isinstance(entry, TreeEntry):
        return any(_has_function(child) for child in entry.children.values())
    return isinstance(entry, FunctionEntry)


def _apply_word(maps: Sequence[SpaceMap], word: Word, value: Any) -> Any:
    for letter in reversed(word):
        value = maps[letter].image(value)
    return value


def _apply_word_batch(maps: Sequence[SpaceMap], word: Word, values: Any) -> Any:
    for letter in reversed(word):
        values = maps[letter].batch(values)
    return values
