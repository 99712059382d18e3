"""Worlds with something that setting a state does not restore: clocks, memories, what an episode draws; one row a kind.

`set` puts (x, v) back and nothing else, unless a row says otherwise. Where the hidden part breaks the symmetry, a run
must fail or say that it cannot tell; where it does not, a run must not accuse.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from small_worlds import box, mirror

from symcheck.envs.state_access import register_state_access
from symcheck.symmetry.symmetry import Symmetry


class Remembering(gym.Env[Any, Any]):
    """A damped point on a line, symmetric; subclasses add a memory that `set` does not restore."""

    observation_space = box(2)
    action_space: gym.Space[Any] = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.t, self.s = 0, self.start()
        self.begin()
        return self.s.copy(), {}

    def start(self) -> Any:
        return self.np_random.uniform(-0.3, 0.3, 2)

    def begin(self) -> None:
        """What an episode draws or forgets."""

    def push(self, action: Any) -> float:
        return 0.3 if action else -0.3

    def wind(self) -> float:
        return 0.0

    def pay(self, action: Any) -> float:
        return 0.0

    def step(self, action: Any) -> Any:
        v = 0.9 * self.s[1] + self.push(action) + self.wind()
        self.s, self.t = np.array([self.s[0] + 0.1 * v, v]), self.t + 1
        return self.s.copy(), self.pay(action), bool(abs(self.s[0]) > 2), False, {}


register_state_access(Remembering, set=lambda env, state: setattr(env, "s", np.array(state, dtype=float)))


class LateWind(Remembering):
    def wind(self) -> float:
        return 0.05 * (self.t > 50)


class LateWindAmongNoise(LateWind):
    def wind(self) -> float:
        return super().wind() + float(self.np_random.normal(0, 0.05))


class Swell(Remembering):
    """Zero where an episode starts, and where a reset puts the clock."""

    def wind(self) -> float:
        return 0.05 * math.sin(0.3 * self.t)


class Remembers(Remembering):
    last: Any = None

    def begin(self) -> None:
        self.last = None


class PaysForChanging(Remembers):
    def pay(self, action: Any) -> float:
        before, self.last = self.last, action
        return -0.1 if before == 0 and action == 1 else 0.0


class Lingers(Remembers):
    def push(self, action: Any) -> float:
        before, self.last = self.last, action
        return super().push(action) + 0.05 * (before == 1)


class ThreeInARow(Remembers):
    def begin(self) -> None:
        self.last = []

    def push(self, action: Any) -> float:
        self.last = [*self.last, int(action)][-3:]
        return super().push(action) + 0.05 * (self.last == [1, 1, 1])


class Sticks(Remembers):
    """Repeats the action before now and then, one side more often."""

    more = 0.3

    def push(self, action: Any) -> float:
        if self.last is not None and self.np_random.random() < 0.25 + self.more * (self.last == 1):
            action = self.last
        self.last = action
        return super().push(action)


class Overheats(Remembering):
    """Weaker far on the right when hot, which few steps are."""

    def begin(self) -> None:
        self.heat = 0.0

    def wind(self) -> float:
        weak = self.s[0] > 0.9 and self.heat > 3
        self.heat = 0.8 * self.heat + abs(self.s[1])
        return -0.1 * weak


class Gusts(Remembering):
    """Wind with a memory."""

    mean = 0.02

    def begin(self) -> None:
        self.blow = 0.0

    def wind(self) -> float:
        self.blow = 0.8 * self.blow + float(self.np_random.normal(self.mean, 0.05))
        return self.blow


class WindOfAnEpisode(Remembering):
    mean = 0.05

    def begin(self) -> None:
        self.blow = float(self.np_random.normal(self.mean, 0.05))

    def wind(self) -> float:
        return self.blow


class Goal(Remembering):
    """On either side, drawn when an episode starts; nobody sees it."""

    right = 0.7

    def begin(self) -> None:
        self.goal = 1 if self.np_random.random() < self.right else -1

    def pay(self, action: Any) -> float:
        return -abs(float(self.s[0]) - self.goal)


class SticksAlike(Sticks):
    more = 0.0


class GustsOfBothSides(Gusts):
    mean = 0.0


class WindOfBothSides(WindOfAnEpisode):
    mean = 0.0


class GoalOnEitherSide(Goal):
    right = 0.5


class Delayed(Remembering):
    """Every push acts a step later."""

    def begin(self) -> None:
        self.waiting = 0.0

    def push(self, action: Any) -> float:
        acting, self.waiting = self.waiting, super().push(action)
        return acting


class EndsByChance(Remembering):
    """In three steps of two hundred, or more often on one side."""

    right = 0.015

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = super().step(action)
        chance = self.right if obs[0] > 0 else 0.015
        return obs, reward, terminated or bool(self.np_random.random() < chance), truncated, info


class EndsMoreOftenOnTheRight(EndsByChance):
    right = 0.05


class DrawsGlobally(Remembering):
    def start(self) -> Any:
        return np.random.uniform(-0.3, 0.3, 2)  # noqa: NPY002 - which is what the row is about


class StartsInTurn(Remembering):
    episodes = 0

    def start(self) -> Any:
        self.episodes += 1
        return np.array([(0.2, -0.2, 0.1, -0.1)[self.episodes % 4], 0.0])


class Viewed(Remembering):
    """Hands out its own array as its state, changes it in place, and drags one way."""

    def get_state(self) -> Any:
        return self.s.view()

    def set_state(self, state: Any) -> None:
        self.s = state

    def wind(self) -> float:
        return 0.02 * (self.s[1] > 0)


register_state_access(Viewed, set=Viewed.set_state, get=Viewed.get_state)


class Readable(Remembering):
    """Its state can be read."""


register_state_access(Readable, set=lambda env, state: setattr(env, "s", np.array(state)), get=lambda env: env.s.copy())


class Timed(Remembering):
    """The late wind, and a state that holds the clock."""

    def wind(self) -> float:
        return 0.05 * (self.t > 50)


def put_with_clock(env: Timed, state: Any) -> None:
    env.s, env.t = np.array(state[:2], dtype=float), int(state[2])


register_state_access(Timed, set=put_with_clock, get=lambda env: np.array([*env.s, env.t], dtype=float))


class DropsTheSeed(gym.Wrapper[Any, Any, Any, Any]):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return self.env.reset()


class PaysAtTheEnd(gym.Wrapper[Any, Any, Any, Any]):
    """A bonus on the right where the time limit cuts an episode short."""

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, float(reward) + float(truncated and obs[0] > 0), terminated, truncated, info


@dataclass(frozen=True)
class Hidden:
    """One world and what a run may say of it.

    Attributes:
        name: the kind.
        make: builds it.
        right: "failed": it must fail. "not passed": it must fail or be undecided. "not failed": it must not fail.
            "passed": it must pass.
        symmetry: the claim.
        fast: whether it runs in the default suite.
        says: text that the reason or some detail must contain, "" for none.
    """

    name: str
    make: Callable[[], gym.Env[Any, Any]]
    right: str
    symmetry: Symmetry = mirror()  # noqa: RUF009 - which never changes
    fast: bool = False
    says: str = ""


def limited(env: gym.Env[Any, Any], steps: int = 60) -> gym.Env[Any, Any]:
    return gym.wrappers.TimeLimit(env, steps)


UNSET = "tate access does not restore"
HIDDEN = [
    # the wind is as large as what setting a state loses of it: nobody knows which of them broke the pairs
    Hidden("a wind after fifty steps", lambda: limited(LateWind(), 100), "not passed", says=UNSET),
    Hidden("a wind after fifty steps, of a state with a clock", lambda: limited(Timed(), 100), "failed",
           mirror(state=[[-1, -1, 1]])),
    Hidden("a wind after fifty steps among noise", lambda: limited(LateWindAmongNoise(), 100), "not passed",
           says=UNSET),
    Hidden("a swell that a reset stills", lambda: limited(Swell()), "not passed", fast=True, says=UNSET),
    Hidden("a reward of the action before, which a reset forgets", lambda: limited(PaysForChanging()), "not passed",
           fast=True),
    Hidden("a push that lingers on one side", lambda: limited(Lingers()), "failed"),
    Hidden("three pushes to the right in a row", lambda: limited(ThreeInARow()), "failed"),
    Hidden("actions that stick on one side", lambda: limited(Sticks()), "failed"),
    Hidden("a motor that is weak on the right when hot", lambda: limited(Overheats()), "not passed", says=UNSET),
    Hidden("gusts with a mean", lambda: limited(Gusts()), "not passed"),
    Hidden("an episode's wind with a mean", lambda: limited(WindOfAnEpisode(), 30), "failed"),
    Hidden("a hidden goal, more often on the right", lambda: limited(Goal(), 30), "failed", fast=True),
    Hidden("a bonus on the right when the time is up", lambda: PaysAtTheEnd(limited(Remembering(), 20)), "not passed",
           fast=True, says=UNSET),
    Hidden("a state that is a view of the world's own array", lambda: limited(Viewed()), "failed",
           mirror(state=[[-1, -1]])),
    Hidden("actions that stick on both sides alike", lambda: limited(SticksAlike()), "not failed", fast=True,
           says=UNSET),
    Hidden("gusts to both sides", lambda: limited(GustsOfBothSides()), "not failed"),
    Hidden("an episode's wind to both sides", lambda: limited(WindOfBothSides(), 30), "not failed"),
    Hidden("a hidden goal on either side", lambda: limited(GoalOnEitherSide(), 30), "not failed", fast=True),
    Hidden("pushes that all act a step later", lambda: limited(Delayed()), "not failed"),
    Hidden("a random end", lambda: limited(EndsByChance()), "passed", fast=True),
    Hidden("a random end, more often on the right", lambda: limited(EndsMoreOftenOnTheRight()), "not passed"),
    Hidden("starts from the global generator", lambda: limited(DrawsGlobally()), "passed"),
    Hidden("starts in turn", lambda: limited(StartsInTurn()), "passed"),
    Hidden("a wrapper that drops the seed", lambda: DropsTheSeed(limited(Remembering())), "passed"),
    Hidden("a clock beside a state that is read", lambda: gym.wrappers.TimeAwareObservation(limited(Readable())),
           "passed", mirror(observation=[[-1, -1, 1]], state=[[-1, -1]]), fast=True,
           says="history (a clock, frames) that setting a state does not restore"),
    Hidden("a clock that is shown and moves nothing", lambda: gym.wrappers.TimeAwareObservation(
        gym.make("CartPole-v1", disable_env_checker=True)), "passed", mirror(observation=[[-1, -1, -1, -1, 1]])),
]  # fmt: skip
