"""Two agents on a line who pull a load between them: PettingZoo's parallel form, right, and with planted faults."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
from gymnasium import spaces


def generator_of(env, seed):
    """An environment's own generator, as Gymnasium's `np_random`; without any seed that of seed 0."""
    if seed is not None or not hasattr(env, "generator"):
        env.generator = np.random.default_rng(seed or 0)
    return env.generator


class Tug:
    """Left and right agents at x each push 0 or 1; each sees its own distance, the other's, and the load from its side.

    The load moves to whom pulls harder. An agent whose distance exceeds 2 is out; both are out after the load has left.
    """

    possible_agents = ("left", "right")

    def __init__(self):
        self.agents = []

    def observation_space(self, agent):
        return spaces.Box(-10.0, 10.0, (3,), np.float64)

    def action_space(self, agent):
        return spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        rng = generator_of(self, seed)
        self.agents = list(self.possible_agents)
        # (distance left, distance right, load): drawn alike for both sides.
        self.set_state(np.round(np.array([*rng.uniform(0, 1, 2), rng.uniform(-0.5, 0.5)]), 3))
        return self.views(), {a: {} for a in self.agents}

    def get_state(self):
        return np.array([self.d[0], self.d[1], self.load, *(a in self.agents for a in self.possible_agents)], float)

    def set_state(self, state):
        self.d, self.load = np.array(state[:2], float), float(state[2])
        if len(state) > 3:
            self.agents = [a for a, alive in zip(self.possible_agents, state[3:], strict=True) if alive > 0.5]

    def views(self):
        left, right = self.d
        every = {"left": np.array([left, right, self.load]), "right": np.array([right, left, -self.load])}
        return {a: every[a] for a in self.agents}

    pull = (0.25, 0.25)
    prize = (1.0, 1.0)
    limit = (2.0, 2.0)

    def step(self, actions):
        pulls = np.array([self.pull[i] * actions.get(a, 0) for i, a in enumerate(self.possible_agents)])
        self.load += pulls[1] - pulls[0]
        self.d = self.d + pulls
        acting = list(self.agents)
        places = {a: self.possible_agents.index(a) for a in acting}
        rewards = {a: self.prize[i] * (-1) ** (i + 1) * self.load for a, i in places.items()}
        ended = {a: bool(self.d[i] > self.limit[i] or abs(self.load) > 1.5) for a, i in places.items()}
        views = self.views()
        self.agents = [a for a in acting if not ended[a]]
        return views, rewards, ended, dict.fromkeys(acting, False), {a: {} for a in acting}

    def close(self):
        pass


class RightPullsHarder(Tug):
    pull = (0.25, 0.35)


class RightEarnsMore(Tug):
    prize = (1.0, 1.5)


class RightIsOutEarlier(Tug):
    limit = (2.0, 1.2)


class BlackBox(Tug):
    """The same without access to its state."""

    get_state = set_state = None

    def reset(self, seed=None, options=None):
        rng = generator_of(self, seed)
        self.agents = list(self.possible_agents)
        self.d, self.load = np.round(rng.uniform(0, 1, 2), 3), round(rng.uniform(-0.5, 0.5), 3)
        return self.views(), {a: {} for a in self.agents}


class BlackBoxPullsHarder(BlackBox):
    pull = (0.25, 0.6)


class Duel:
    """A hunter and a runner on each side: the hunter sees two numbers, the runner one, in units of their own.

    The mirror exchanges the sides. Units differ between the sides: what the left ones see in metres, the right ones see
    with the other sign, so that each agent has a map of its own.
    """

    possible_agents = ("left_hunter", "left_runner", "right_hunter", "right_runner")
    speed = 1.0

    def __init__(self):
        self.agents = []

    def observation_space(self, agent):
        return spaces.Box(-100.0, 100.0, (2 if "hunter" in agent else 1,), np.float64)

    def action_space(self, agent):
        return spaces.Discrete(2 if "hunter" in agent else 3)

    def reset(self, seed=None, options=None):
        self.agents = list(self.possible_agents)
        self.at = np.round(generator_of(self, seed).uniform(0, 1, 4), 3)  # hunters and runners, left first
        return self.views(), {a: {} for a in self.agents}

    def get_state(self):
        return np.array([*self.at, *(a in self.agents for a in self.possible_agents)], float)

    def set_state(self, state):
        self.at = np.array(state[:4], float)
        self.agents = [a for a, alive in zip(self.possible_agents, state[4:], strict=True) if alive > 0.5]

    def views(self):
        left, left_runner, right, right_runner = self.at
        every = {
            "left_hunter": [left, left_runner],
            "left_runner": [left_runner - left],
            "right_hunter": [-right_runner, right],  # another order and another sign
            "right_runner": [right - right_runner],
        }
        return {a: np.array(every[a]) for a in self.agents}

    def step(self, actions):
        step = np.array([0.1 * actions.get(a, 0) for a in self.possible_agents])
        step[2] *= self.speed
        # Actions of the right hunter are numbered the other way round.
        if "right_hunter" in actions:
            step[2] = self.speed * 0.1 * (1 - actions["right_hunter"])
        self.at = self.at + step
        gaps = {"left_runner": self.at[1] - self.at[0], "right_runner": self.at[3] - self.at[2]}
        acting = list(self.agents)
        rewards = {a: float(gaps[a.split("_")[0] + "_runner"]) * (-1 if "hunter" in a else 1) for a in acting}
        # A runner that is caught is gone; its hunter plays on.
        ended = {a: a in gaps and gaps[a] < -0.2 for a in acting}
        views = self.views()
        self.agents = [a for a in acting if not ended[a]]
        return views, rewards, ended, dict.fromkeys(acting, False), {a: {} for a in acting}

    def close(self):
        pass


class FasterOnTheRight(Duel):
    speed = 1.3


class TupleTug(gym.Env):
    """`Tug` in the form of rware: tuples of observations and actions, a list of rewards, an end for all at once."""

    n_agents = 2
    pull = (0.25, 0.25)

    def __init__(self):
        self.tug = BlackBox()
        self.tug.pull = self.pull
        both = self.tug.possible_agents
        self.observation_space = spaces.Tuple([self.tug.observation_space(a) for a in both])
        self.action_space = spaces.Tuple([self.tug.action_space(a) for a in both])

    def reset(self, *, seed=None, options=None):
        views, _ = self.tug.reset(seed=seed)
        return tuple(views.values()), {}

    def step(self, action):
        both = self.tug.possible_agents
        views, rewards, ended, _, _ = self.tug.step(dict(zip(both, action, strict=True)))
        return tuple(views.values()), list(rewards.values()), any(ended.values()), False, {}


class TupleTugPullsHarder(TupleTug):
    pull = (0.25, 0.6)


class OneReward(TupleTug):
    """One reward for both: an ordinary environment."""

    def step(self, action):
        views, rewards, *rest = super().step(action)
        return views, float(sum(rewards)), *rest
