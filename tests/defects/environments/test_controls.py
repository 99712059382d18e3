"""What comes before any statement about a symmetry: does the environment repeat itself, also where rollouts reach it?

The allowances of these controls stand beside worlds that exceed them: a noise too large for a solver, a part that alone
is random, a memory that only another order, a second step or a tenth of the states shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from small_worlds import C2, REVERSED, SWAP, Hidden, Seen, Table, box, corridor, mirror, plain, pushed, spread

import symcheck as sc
from symcheck.envs.observations import collect_observations
from symcheck.envs.state_access import register_state_access
from symcheck.errors import OptionError, SpecError
from symcheck.symmetry.symmetry import Symmetry

FLIP = mirror(observation=[[-1]])
WHOLE = gym.spaces.Box(-99, 99, (1,), np.int64)


def _verified(make: Callable[[], Any], symmetry: Symmetry | None = None, **options: Any) -> Any:
    return sc.verify_env(make, symmetry or mirror(), **{"samples": 400, "alpha": 0.002, "seed": 1, **options})


# --- repeating --------------------------------------------------------------------------------------------------------


def _with(state: Any = 0.0, reward: float = 0.0, ends: float = 0.0) -> Any:
    """The damped point with chance in one part alone."""

    def move(s: Any, a: Any, rng: Any) -> Any:
        following, paid, end = plain(s, a, rng)
        return following + state * rng.normal(size=2), paid + reward * rng.normal(), end or bool(rng.random() < ends)

    return lambda: gym.wrappers.TimeLimit(Seen(move), 20)


def _counting(chance: float) -> Any:
    """Whole numbers, one step further now and then."""

    def move(s: Any, a: Any, rng: Any) -> Any:
        return np.clip(s + (1 if a else -1) * (1 + int(rng.random() < chance)), -99, 99), 0.0, False

    return lambda: gym.wrappers.TimeLimit(Seen(move, lambda rng: rng.integers(-50, 51, 1), observation_space=WHOLE), 20)


@pytest.mark.parametrize(
    ("make", "part", "symmetry"),
    [
        (_with(state=1e-7), "transition", mirror()),  # a hundred times what a solver may leave
        (_with(reward=1e-7), "reward", mirror()),
        (_with(ends=0.2), "termination", mirror()),
        (_counting(0.5), "transition", FLIP),
    ],
)
def test_a_part_that_alone_is_random_is_compared_as_a_law(make: Any, part: str, symmetry: Symmetry) -> None:
    report = _verified(make, symmetry)
    methods = {one: report[f"{one}_invariance"].method for one in ("reward", "transition", "termination")}
    assert methods == {one: "distribution" if one == part else "paired" for one in methods}
    assert report[f"{part}_invariance"].verdict == "passed"
    refused = _verified(make, symmetry, method="paired")
    assert refused.verdict == "undecided"
    assert "the dynamics are random" in refused["reward_invariance"].detail


class Remembering(Seen):
    """Adds a little of where the step before it ended, which no reset clears; a mirrored memory is as likely."""

    before = 0.0

    def step(self, action: Any) -> Any:
        self.s = pushed(self.s, action)
        self.s[1] += 1e-3 * self.before
        self.before = float(self.s[0])
        return self.s.copy(), 0.0, False, False, {}


def test_a_memory_that_only_another_order_shows_is_no_chance_and_no_pass() -> None:
    report = _verified(lambda: gym.wrappers.TimeLimit(Remembering(), 20))
    assert report["transition_invariance"].verdict == "undecided"
    assert "Hidden state survives" in report["transition_invariance"].detail


# --- reaching ---------------------------------------------------------------------------------------------------------


def delayed(s: Any, a: Any, rng: Any) -> Any:
    """s = (x, next push, push after it): a push arrives two steps later."""
    x, first, second = s
    return np.array([0.9 * x + first, second, 0.1 if a else -0.1]), 0.0, False


class Whole(Hidden):
    """All three numbers are set."""


class Lost(Hidden):
    """Setting a state forgets the push after the next one, and reading it does not show it."""


def _two_of_three(env: Any, state: Any) -> None:
    env.s = np.array([*state, 0.0])


register_state_access(Lost, set=_two_of_three, get=lambda env: np.array(env.s[:2]))


@pytest.mark.parametrize(("kind", "numbers", "method"), [(Whole, 3, "paired"), (Lost, 2, "trajectory")])
def test_whole_episodes_decide_where_a_lost_piece_of_state_is_felt_later(kind: Any, numbers: int, method: str) -> None:
    def make() -> Any:
        start = lambda rng: np.array([*spread(rng), 0.1 * rng.choice([-1.0, 1.0])])  # noqa: E731
        return gym.wrappers.TimeLimit(kind(delayed, start, lambda s: s[:1].copy(), box(1)), 20)

    report = _verified(make, mirror(observation=[[-1]], state=[[-1] * numbers]), samples=600)
    found = report["transition_invariance"]
    assert (found.verdict, found.method) == ("passed", method)
    assert ("hidden state" in found.detail) == (method == "trajectory")


class Sticky(Seen):
    """Where |x| is beyond `far`, a step takes half of the push before it along; setting a state forgets that push."""

    far = 0.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.push = 0.0
        return super().reset(seed=seed)

    def step(self, action: Any) -> Any:
        carried = 0.5 * self.push if abs(self.s[0]) > self.far else 0.0
        self.push = 1.0 if action else -1.0
        self.s = pushed(self.s, 0, force=self.push + carried)
        return self.s.copy(), 0.0, False, False, {}


def _let_go(env: Any, state: Any) -> None:
    env.s, env.push = np.array(state), 0.0


register_state_access(Sticky, set=_let_go)


@pytest.mark.parametrize(("far", "method"), [(0.4, "trajectory"), (50.0, "paired")])
def test_with_a_memory_in_some_of_the_states_whole_episodes_decide(far: float, method: str) -> None:
    def make() -> Any:
        env = Sticky()
        env.far = far
        return gym.wrappers.TimeLimit(env, 10)

    found = _verified(make)["transition_invariance"]
    assert (found.verdict, found.method) == ("passed", method)
    assert ("hidden state" in found.detail) == (method == "trajectory")


class Rounded(Seen):
    """A float64 state that is set by its float32 observation, and so without its last digits."""


@pytest.mark.parametrize(("cells", "method"), [(50, "paired"), (6, "trajectory")])
def test_a_few_states_at_jumps_that_lost_their_last_digits_are_no_hidden_state(cells: int, method: str) -> None:
    """Paid beyond 0.3, which float32 puts beyond itself: two cells are paid otherwise when they are set."""

    def move(s: Any, a: Any, rng: Any) -> Any:
        cell = np.clip(np.round(10 * s) + (1 if a else -1), -cells, cells)
        return cell / 10, float(abs(float(s[0])) > 0.3 + 1e-9), False

    def make() -> Any:
        start = lambda rng: rng.integers(-cells, cells + 1, 1) / 10  # noqa: E731
        show = lambda s: s.astype(np.float32)  # noqa: E731
        return gym.wrappers.TimeLimit(Rounded(move, start, show, box(1, dtype=np.float32)), 20)

    found = _verified(make, FLIP)["reward_invariance"]
    assert (found.verdict, found.method) == ("passed", method)
    assert ("hidden state" in found.detail) == (method == "trajectory")


# --- tables -----------------------------------------------------------------------------------------------------------

MIDDLE = [0, 0, 0, 1, 0, 0, 0]
EXCHANGED = Symmetry("flip", C2, REVERSED, SWAP)


def _changed(at: tuple[int, int], outcomes: Any) -> dict[int, dict[int, list[Any]]]:
    table = corridor()
    table[at[0]][at[1]] = outcomes
    return table


@pytest.mark.parametrize(
    ("table", "verdict"),
    [
        # Probabilities that are added in another order: 0.1 + 0.2 + 0.3 is 0.6000000000000001, 0.3 + 0.2 + 0.1 is 0.6.
        (corridor() | {3: {0: [*((p, 2, 0.0, False) for p in (0.3, 0.2, 0.1)), (0.4, 4, 0.0, False)],
                           1: [*((p, 4, 0.0, False) for p in (0.1, 0.2, 0.3)), (0.4, 2, 0.0, False)]}}, "proved"),
        # A probability that is 1e-9 off, and a reward that is 1e-6 off, are faults.
        (_changed((3, 1), [(0.8 + 1e-9, 4, 0.0, False), (0.2 - 1e-9, 2, 0.0, False)]), "failed"),
        (_changed((3, 1), [(0.8, 4, 1e-6, False), (0.2, 2, 0.0, False)]), "failed"),
        # What has no probability, and what lies beyond an end, is nobody's business.
        (_changed((0, 0), [(1.0, 3, 5.0, False)]), "proved"),
        (_changed((3, 1), [(0.8, 4, 0.0, False), (0.2, 2, 0.0, False), (0.0, 0, 0.0, False)])
            | {0: {0: [(1.0, 3, 5.0, True)], 1: [(1.0, 3, 7.0, True)]}}, "proved"),
    ],
)  # fmt: skip
def test_a_table_is_compared_where_episodes_go_and_to_the_last_digits(table: Any, verdict: str) -> None:
    assert sc.verify_env(lambda: Table(table, MIDDLE), EXCHANGED).verdict == verdict


class Miraculous(Table):
    """Does what its table gives no probability."""

    def step(self, action: Any) -> Any:
        super().step(action)
        self.s = 3
        return 3, 0.0, False, False, {}


def test_an_outcome_of_probability_nothing_contradicts_its_table() -> None:
    table = {s: {a: [*outcomes, (0.0, 3, 0.0, False)] for a, outcomes in actions.items()}
        for s, actions in corridor().items()}  # fmt: skip
    with pytest.raises(OptionError, match="to which the table P gives probability 0"):
        sc.verify_env(lambda: Miraculous(table, MIDDLE), EXCHANGED, method="exact")


# --- action maps and observations -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "act"),
    [
        (gym.spaces.Discrete(2), lambda a, o: a + 1),
        (gym.spaces.Discrete(2), lambda a, o: a - 1),
        (gym.spaces.MultiDiscrete([3, 2]), lambda a, o: np.array([3 - a[0], a[1]])),
        (gym.spaces.Box(-1, 1, (1,), np.float64), lambda a, o: -a + 1e-5),
        (gym.spaces.Box(-1, 1, (1,), np.float64), lambda a, o: -a - 1e-5),
    ],
)
def test_a_map_that_leaves_the_actions_is_refused_on_either_side(space: Any, act: Any) -> None:
    world = lambda: Seen(lambda s, a, rng: (0.5 * s, 0.0, False), action_space=space)  # noqa: E731
    with pytest.raises(SpecError, match="leaves the action space"):
        _verified(world, mirror(action=[act]), method="paired")


def test_observations_are_collected_from_whole_episodes() -> None:
    class Short(gym.Env[Any, Any]):
        """Three steps long; a fourth would be an error."""

        observation_space, action_space = gym.spaces.Box(0, 3, (1,)), gym.spaces.Discrete(2)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            self.t = 0
            return np.zeros(1, np.float32), {}

        def step(self, action: Any) -> Any:
            self.t += 1
            assert self.t <= 3
            return np.full(1, self.t, np.float32), 0.0, self.t == 3, False, {}

    seen = collect_observations(Short, 9, seed=0)[:, 0].tolist()
    assert set(seen) >= {0.0, 1.0, 2.0}
    assert seen.count(0.0) == 3
