"""No environment is stepped after its episode has ended, whichever way it ended."""

import gymnasium as gym
import numpy as np
import pytest

import symcheck as sc

mirror = sc.Symmetry("mirror", sc.groups.cyclic(2), [[-1, -1]], [[1, 0]], state=[[-1, -1, 1]])
LONGEST = 20


class Guarded(gym.Env):
    """A drifting point that refuses a step after its last one, as many environments do."""

    def __init__(self, *, set_clears_the_end: bool = True, drift: float = 0.0) -> None:
        self.observation_space = gym.spaces.Box(-10.0, 10.0, (2,), np.float64)
        self.action_space = gym.spaces.Discrete(2)
        self.x, self.clock, self.over = np.zeros(2), 0, True
        self.set_clears_the_end, self.drift = set_clears_the_end, drift

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.clock, self.over = self.np_random.uniform(-1.0, 1.0, 2), 0, False
        return self.x.copy(), {}

    def step(self, action):
        if self.over or self.clock >= LONGEST:
            raise RuntimeError("this episode has ended")
        self.x, self.clock = 0.9 * self.x + 0.1 * (2 * action - 1) + self.drift, self.clock + 1
        ended = bool(abs(self.x[0]) > 0.9)
        self.over = ended or self.clock >= LONGEST
        return self.x.copy(), -float(abs(self.x[0])), ended, self.clock >= LONGEST, {}

    def get_state(self):
        return np.array([*self.x, self.clock])

    def set_state(self, state):
        self.x, self.clock = np.array(state[:2]), int(state[2])
        self.over = self.over and not self.set_clears_the_end


def test_a_time_limit_of_its_own_is_the_end_of_what_is_explored():
    report = sc.verify_env(Guarded, mirror, samples=500)
    assert report.verdict == "passed"
    assert report["transition_invariance"].method == "paired"
    assert "exploration toward extremes" in report["transition_invariance"].detail


def test_states_proposed_by_a_sample_that_end_at_once_are_left_out():
    class Sampled(Guarded):
        pass

    def sample(rng, n):
        return np.column_stack([rng.uniform(-1.0, 1.0, (n, 2)), rng.integers(LONGEST - 2, LONGEST, n)])

    sc.register_state_access(
        Sampled, set=lambda env, state: env.set_state(state), get=lambda env: env.get_state(), sample=sample
    )
    assert sc.verify_env(Sampled, mirror, samples=500).verdict == "passed"


@pytest.mark.parametrize("drift", [0.0, 0.01])
def test_a_mark_that_the_episode_is_over_which_setting_leaves_is_taken_back_by_a_reset(drift):
    report = sc.verify_env(lambda: Guarded(set_clears_the_end=False, drift=drift), mirror, samples=500)
    assert report.verdict == ("failed" if drift else "passed")
    control = report.results[0].method_reason.fields["control"]
    assert (control.code, control.fields["after_refusal"]) == ("control_repeats", True)
    assert "with a reset before each state" in str(control)


def test_a_state_from_which_no_step_is_allowed_is_named_with_what_to_do():
    class Late(Guarded):
        pass

    sc.register_state_access(
        Late,
        set=lambda env, state: env.set_state(state),
        get=lambda env: env.get_state(),
        sample=lambda rng, n: np.tile([0.0, 0.0, LONGEST], (n, 1)),
    )
    with pytest.raises(sc.errors.TargetError, match=r"has ended .*reset what step\(\) changed, such as a flag"):
        sc.verify_env(Late, mirror, samples=500)


class Still(Guarded):
    """Refuses nothing: once its episode is over it stands still until it is reset."""

    def step(self, action):
        if self.over:
            return self.x.copy(), 0.0, True, False, {}
        return super().step(action)


@pytest.mark.parametrize("drift", [0.0, 0.01])
def test_a_world_that_stands_still_after_the_end_is_judged_with_resets(drift):
    report = sc.verify_env(lambda: Still(set_clears_the_end=False, drift=drift), mirror, samples=500)
    assert report.verdict == ("failed" if drift else "passed")
    assert report.results[0].method_reason.fields["control"].code == "control_resets"


def test_an_error_of_a_black_box_says_nothing_of_state_access():
    class Closed(gym.Env):
        observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float64)
        action_space = gym.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return np.zeros(2), {}

        def step(self, action):
            raise RuntimeError("the motor is off")

    claim = sc.Symmetry("mirror", sc.groups.cyclic(2), [[-1, -1]], [[1, 0]])
    with pytest.raises(sc.errors.TargetError, match=r"the motor is off.*run without errors") as raised:
        sc.verify_env(Closed, claim)
    assert "state access" not in str(raised.value)
