"""The claim of a continuous group at the finitely many elements that a run tests, fitted to an environment's spaces.

The engine treats it as any other bound symmetry: its letters are the tested elements (generic ones, then discrete
generators), and its maps are affine or callables. There are two more kinds of letters. The first kind belongs to the
relations on which callables are tested. Negative letters stand for Haar elements of the compact connected part; each is
drawn at the first request. The word `UNIFORM` means a new Haar element for each value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from symcheck.entries.forms import Entry, TreeEntry
from symcheck.entries.lie_forms import ElementEntry
from symcheck.errors import SpecError
from symcheck.groups.continuous import ContinuousGroup
from symcheck.statements.statement import Statement, state
from symcheck.symmetry.bound import UNIFORM, BoundSymmetry, ElementLabel, Part, Word
from symcheck.symmetry.compositions import Seen, amounts, calls, compose, steps_of
from symcheck.symmetry.elements import Factors, Tested, axiom_words, element, generic_elements, uniform_element
from symcheck.symmetry.lie_spaces import check_space
from symcheck.symmetry.space_maps import SpaceMap, fit

if TYPE_CHECKING:
    import gymnasium as gym

    from symcheck.symmetry.claimed_maps import ClaimedMaps


class TestedGroup(ContinuousGroup):
    """A continuous group whose generators are the tested elements."""

    __test__ = False  # tells pytest that this is not a test class

    def __init__(self, group: ContinuousGroup, elements: Sequence[Tested], relators: tuple[Word, ...]) -> None:
        super().__init__(group.factors)
        made = []
        for each in elements:
            product = group.identity
            for i, t in each.factors:
                product = product * (group.generators[i] if t is None else group.exp(i, t))
            made.append(product)
        self.generators = tuple(made)
        self.generator_names = tuple(
            ElementLabel.of(str(each), " ".join(each.word), each.parameters) for each in elements
        )
        self.__dict__["relators"] = relators


@dataclass(frozen=True)
class ConcreteClaim:
    """The claim at the tested elements, one entry for each, with the attributes of a symmetry that the engine reads."""

    name: str
    group: TestedGroup
    observation: tuple[Entry, ...]
    action: tuple[Entry, ...]
    state: tuple[Entry, ...] | None
    initial: bool
    blocks: Mapping[str, Any] = field(default_factory=dict)


def concrete_claim(symmetry: ClaimedMaps, seed: int) -> ConcreteClaim:
    """A claim of a continuous group at its tested elements, before any space is known.

    Args:
        symmetry: the claim.
        seed: the seed of the elements.

    Returns:
        One entry per element and part; entries without a written length accept any vector that fits.
    """
    group = symmetry.group
    if not isinstance(group, ContinuousGroup):
        raise SpecError(f"expected a continuous group, got {group.name}.", where="Symmetry.group")
    pinned = symmetry.pinned_element
    rng, amount = np.random.default_rng([seed, 5]), amounts(symmetry, Seen((), ()))
    elements = generic_elements(group, rng, amount) if pinned is None else [pinned]

    def entries(part: Part) -> tuple[Entry, ...]:
        steps = [steps_of(symmetry, part, each.factors) for each in elements]
        shown = [steps_of(symmetry, "observation", each.factors) for each in elements]
        of_actions = part == "action"
        made = [compose(some, None, seen if of_actions else None) for some, seen in zip(steps, shown, strict=True)]
        return tuple(_sized_where_written(entry) for entry in made)

    return ConcreteClaim(
        symmetry.name,
        TestedGroup(group, elements, ()),
        entries("observation"),
        entries("action"),
        None if symmetry.state is None else entries("state"),
        symmetry.initial,
    )


def _sized_where_written(entry: Any) -> Any:
    if isinstance(entry, TreeEntry):
        return TreeEntry({key: _sized_where_written(child) for key, child in entry.children.items()})
    if not isinstance(entry, ElementEntry):
        return entry
    sizes = entry.sizes
    return entry.sized(sizes.pop()) if len(sizes) == 1 else entry


class BoundTested(BoundSymmetry):
    """L and K at the tested elements of a continuous group.

    Args:
        symmetry: the claim.
        observation_space: the environment's observation space.
        action_space: the environment's action space.
        seed: the seed of the elements.
        seen: observed values whose spread determines the size of translations; None uses amounts of about 1.

    Raises:
        SpecError: an entry does not fit its space.

    Example:
        >>> import gymnasium
        >>> from symcheck.groups.continuous import so
        >>> from symcheck.symmetry.symmetry import Symmetry
        >>> box = gymnasium.spaces.Box(-1, 1, (2,))
        >>> turn = Symmetry("turn", so(2), [{"rotate": [[0, 1]]}], [{"rotate": [[0, 1]]}])
        >>> bound = turn.bind(box, box)
        >>> bound.tested_words, str(bound.label((0,))).startswith("turn(")
        (((0,),), True)
    """

    def __init__(
        self,
        symmetry: ClaimedMaps,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        *,
        seed: int = 0,
        seen: Callable[[], Seen] | None = None,
    ) -> None:
        group = symmetry.group
        if not isinstance(group, ContinuousGroup):
            raise SpecError(f"expected a continuous group, got {group.name}.", where="Symmetry.group")
        self._claim, self._continuous, self._seed, self._drawn = symmetry, group, seed, 0
        self.observation_space, self.action_space = observation_space, action_space
        check_space(symmetry, "observation", observation_space)
        check_space(symmetry, "action", action_space)
        rng = np.random.default_rng([seed, 5])
        amount = amounts(symmetry, seen() if seen is not None and not group.compact else Seen((), ()))
        pinned = symmetry.pinned_element
        self.elements = generic_elements(group, rng, amount) if pinned is None else [pinned]
        # Letters beyond the elements: the factors of the relations.
        self._more: list[Tested] = []
        relators = tuple(self._spell(word) for word in axiom_words(group, amount))
        self._kept = len(self._more)
        self.group = TestedGroup(group, self.elements, relators)
        parts: dict[Part, gym.Space[Any] | None] = {"observation": observation_space, "action": action_space}
        letters_of = {part: _Letters(self, part, space) for part, space in parts.items()}
        if symmetry.state is not None:
            letters_of["state"] = _Letters(self, "state", None)
        self._observation, self._action = letters_of["observation"], letters_of["action"]
        self._state = letters_of.get("state")
        self._action_needs_observation = any(calls(entry) for entry in (*symmetry.algebra["action"], *symmetry.action))
        letters = range(len(self.elements))
        self.symmetry: Any = ConcreteClaim(
            symmetry.name,
            self.group,
            tuple(letters_of["observation"].entry(i) for i in letters),
            tuple(letters_of["action"].entry(i) for i in letters),
            tuple(letters_of["state"].entry(i) for i in letters) if "state" in letters_of else None,
            symmetry.initial,
        )
        for i in letters:  # entries that do not fit are reported here
            self._observation[i], self._action[i]

    def at_tested_elements(self, seed: int, seen: Callable[[], Seen]) -> BoundTested:
        """The same claim at elements drawn from a seed; observed values determine the size of translations."""
        return BoundTested(self._claim, self.observation_space, self.action_space, seed=seed, seen=seen)

    @property
    def source(self) -> ClaimedMaps:
        """The claim as given by the user."""
        return self._claim

    def _spell(self, factors: Factors) -> Word:
        start = len(self.elements) + len(self._more)
        self._more += [element(self._continuous, [factor]) for factor in factors]
        return tuple(range(start, start + len(factors)))

    @property
    def continuous(self) -> ContinuousGroup:
        """The group itself."""
        return self._continuous

    def spell(self, factors: Factors) -> tuple[int, ...]:
        """A word of one letter for an element; its maps are built once."""
        if not factors:
            return ()
        self._more.append(element(self._continuous, factors))
        return (len(self.elements) + len(self._more) - 1,)

    def forget(self) -> None:
        """Drop the letters created by `spell`, and their maps; a wrapper creates one per step."""
        del self._more[self._kept :]
        for letters in (self._observation, self._action, self._state):
            if isinstance(letters, _Letters):
                letters.keep(len(self.elements) + self._kept)

    def letter(self, letter: int) -> Tested:
        """The element of a letter."""
        if letter < 0:
            return uniform_element(self._continuous, np.random.default_rng([self._seed, 6, -letter]))
        return self.elements[letter] if letter < len(self.elements) else self._more[letter - len(self.elements)]

    @property
    def tested_words(self) -> tuple[tuple[int, ...], ...]:
        """The elements that a run tests pair by pair."""
        return tuple((i,) for i in range(len(self.elements)))

    @property
    def compared_words(self) -> tuple[tuple[int, ...], ...]:
        """The elements under which distributions are compared: Haar elements instead of generic rotations."""
        turning = [any(t is not None and self._continuous.turns(i) for i, t in each.factors) for each in self.elements]
        others = [(i,) for i, turns in enumerate(turning) if not turns]
        return (*([UNIFORM] if any(turning) else []), *others)

    def drawn(self, word: tuple[int, ...]) -> tuple[int, ...]:
        """The word of one element: for `UNIFORM` a new Haar element at each call, otherwise the word itself."""
        if tuple(word) != UNIFORM:
            return word
        self._drawn += 1
        return (UNIFORM[0] - self._drawn,)

    def may_leave(self, word: Word) -> bool:
        """Whether the element may map points of a bounded Box outside it without an error; False if it is discrete."""
        return any(letter < 0 or bool(self.letter(letter).parameters) for letter in word)

    @property
    def claim(self) -> dict[str, list[str]]:
        """The action of each generator in words, with the tested elements."""
        from symcheck.symmetry.lie_text import claim_lines

        return claim_lines(self._claim, self.elements)

    @property
    def note(self) -> Statement | None:
        """The tested elements, and the conclusions for the whole group."""
        circles = [factor for factor in self._continuous.factors if factor.turns]
        listed = [str(each) for each in self.elements if each.parameters]
        return state(
            "elements_tested",
            elements=listed,
            group=self._continuous.name,
            dense=bool(circles),
            shifts=not self._continuous.compact,
            seed=self._seed,
        )

    def is_data(self, part: Part) -> bool:
        """Whether all entries of a part are data."""
        discrete: Sequence[Entry] = getattr(self._claim, part) or ()
        return not any(calls(entry) for entry in (*self._claim.algebra.get(part, ()), *discrete))

    def column_labels(self, part: Part) -> dict[Any, tuple[str, ...]]:
        """None, because named blocks exist for finite groups only."""
        return {}

    def label(self, word: Word) -> str:
        """The element in generator names with its amounts; word and amounts are attributes of the string."""
        if tuple(word) == UNIFORM:
            return ElementLabel.of("a uniformly drawn rotation", "uniform", ())
        elements = [self.letter(letter) for letter in word]
        names = [name for each in elements for name in each.word]
        amounts = [t for each in elements for t in each.parameters]
        text = " ".join(map(str, elements)) or "identity"
        return ElementLabel.of(text, " ".join(names) or "identity", tuple(amounts))


class _Letters(Sequence[SpaceMap]):
    """The maps of one part by letter, created on request."""

    def __init__(self, bound: BoundTested, part: Part, space: gym.Space[Any] | None) -> None:
        self._bound, self._part, self._space = bound, part, space
        self._made: dict[int, SpaceMap] = {}

    def __len__(self) -> int:
        return len(self._bound.elements)

    def __getitem__(self, letter: Any) -> Any:
        if letter == UNIFORM[0]:
            return _EachItsOwn(self)
        if letter not in self._made:
            made = fit(self.entry(letter), self._space, f"{self._part}, {self._bound.letter(letter)}")
            if len(self._made) > _KEPT:
                return made
            self._made[letter] = made
        return self._made[letter]

    def keep(self, below: int) -> None:
        """Drop the maps of letters from this one on, and of Haar elements."""
        self._made = {letter: made for letter, made in self._made.items() if 0 <= letter < below}

    def entry(self, letter: int) -> Entry:
        """The concrete entry of one letter."""
        claim, tested = self._bound._claim, self._bound.letter(letter)
        steps = steps_of(claim, self._part, tested.factors)
        context = steps_of(claim, "observation", tested.factors) if self._part == "action" else None
        return compose(steps, self._space, context)

    def fresh(self) -> SpaceMap:
        """The map of another Haar element."""
        made: SpaceMap = self[self._bound.drawn(UNIFORM)[0]]
        return made


_KEPT = 20_000
"""Maximum number of cached maps, a few hundred bytes each."""


class _EachItsOwn:
    """Haar elements: every value is mapped by its own element."""

    def __init__(self, letters: _Letters) -> None:
        self._letters = letters

    def image(self, value: Any, context: Any = None) -> Any:
        return self._letters.fresh().image(value, context)

    def batch(self, values: Any, contexts: Any = None) -> Any:
        pairs = [(v, None) for v in values] if contexts is None else list(zip(values, contexts, strict=True))
        images = [self.image(value, context) for value, context in pairs]
        return np.stack(images) if images and isinstance(images[0], np.ndarray | np.generic) else images
