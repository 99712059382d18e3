"""States made of parts are set, mapped, reported and replayed."""

import json
from collections import namedtuple

import gymnasium as gym
import numpy as np
import pytest

import symcheck as sc
import symcheck_properties  # noqa: F401 - registers what is replayed
from symcheck.engine.environments.replay import replay
from symcheck.engine.options import EnvOptions
from symcheck.spaces.from_json import like

Body = namedtuple("Body", ("place", "speed", "clock"))


class Parts(gym.Env):
    """A point pushed to one side, whose state is handed out in one of three forms."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, form):
        self.form = form

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.clock = self.np_random.uniform(-0.3, 0.3, 2), 0
        return self.x.copy(), {}

    def step(self, action):
        speed = 0.9 * self.x[1] + 0.3 * (2 * action - 1) + 0.05
        self.x, self.clock = np.array([self.x[0] + 0.1 * speed, speed]), self.clock + 1
        return self.x.copy(), 0.0, False, False, {}

    def get_state(self):
        parts = self.x[:1].copy(), self.x[1:].copy(), self.clock
        return {"mapping": dict(zip(Body._fields, parts, strict=True)), "tuple": parts, "named": Body(*parts)}[
            self.form
        ]

    def set_state(self, state):
        place, speed, self.clock = state.values() if isinstance(state, dict) else state
        self.x = np.concatenate([place, speed])


def mirrored(state):
    if isinstance(state, dict):
        return {**state, "place": -state["place"], "speed": -state["speed"]}
    place, speed, clock = state
    return type(state)(-place, -speed, clock) if isinstance(state, Body) else (-place, -speed, clock)


MIRROR = sc.Symmetry("mirror", sc.groups.cyclic(2), [[-1, -1]], [[1, 0]], state=[mirrored])


@pytest.mark.parametrize("form", ["mapping", "tuple", "named"])
def test_a_counterexample_at_a_state_with_parts_is_replayed_from_its_report(form):
    report = sc.verify_env(lambda: Parts(form), MIRROR, samples=100)
    held = json.loads(report.to_json())
    example = next(one for one in held["properties"] if one["name"] == "transition_invariance")["counterexample"]
    again = replay(lambda: Parts(form), MIRROR, "transition_invariance", example, EnvOptions())
    assert again.verdict == "failed"
    assert again.max_residual == pytest.approx(example["residual"], rel=1e-9)  # the same step in the same precision


def test_what_json_cannot_hold_is_taken_from_the_environment_as_it_is():
    def owner():
        return None

    form = {"x": np.zeros(2, np.float32), 3: [True, 2.5, None], "owner": owner, "new": "a"}
    made = like(form, {"x": [1.0, "Infinity"], "3": [False, "NaN", None], "owner": "<function>"})
    assert made["x"].dtype == np.float32
    assert made["x"].tolist() == [1.0, np.inf]
    assert made[3][0] is False
    assert np.isnan(made[3][1])
    assert made["owner"] is owner
    assert made["new"] == "a"


def test_an_array_of_another_size_is_refused():
    with pytest.raises(ValueError, match="reshape"):
        like({"x": np.zeros(2)}, {"x": [1.0, 2.0, 3.0]})
