"""Two agents on a line who pull a load between them: PettingZoo's parallel form, right, and with planted faults."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces


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
        rng = np.random.default_rng(seed)
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
        rng = np.random.default_rng(seed)
        self.agents = list(self.possible_agents)
        self.d, self.load = np.round(rng.uniform(0, 1, 2), 3), round(rng.uniform(-0.5, 0.5), 3)
        return self.views(), {a: {} for a in self.agents}


class BlackBoxPullsHarder(BlackBox):
    pull = (0.25, 0.6)
