"""Screening and the sentences of verifications: planted misfits, and limits from both sides."""

from dataclasses import dataclass
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest

from symcheck.discovery import mixed_effects
from symcheck.discovery.action_values import ActionValues
from symcheck.discovery.maps import SignedMap
from symcheck.discovery.result import why_of
from symcheck.discovery.screening import Cases, map_actions, screen, step_scale
from symcheck.engine.results import PropertyResult

TURN = SignedMap.of([1, 0], [1, -1])  # (x, y) -> (y, -x)
SWAP = SignedMap.of([1, 0])


class World:
    """A laboratory of two coordinates: actions move along an axis; images of states differ as planted."""

    values, repeats, spread = ActionValues(gym.spaces.Discrete(2)), 1, np.ones(2)

    def __init__(self, moved=(0.0, 0.0), paid=0.0, ended=0.0, share=1.0, noise=0.0):
        self.noise = (np.full(2, noise), 0.0)
        rng = np.random.default_rng(0)
        self.states = rng.normal(size=(100, 2))
        self.actions = rng.integers(0, 2, 100).tolist()
        self.moved, self.paid, self.over, self.share = np.array(moved), paid, ended, share

    def difference(self, expected, actual):
        return actual - expected

    def outcomes(self, states, actions, *, original=False):
        planted = (np.arange(len(states)) < self.share * len(states)) & (not original)
        steps = 0.1 * np.eye(2)[list(actions)]  # the swap of x and y swaps the actions
        return SimpleNamespace(
            states=states + steps + planted[:, None] * self.moved,
            rewards=np.linspace(-1, 1, len(states)) + planted * self.paid,
            ended=planted * self.over,
            settled=np.ones(len(states), dtype=bool),
        )

    def cases(self, scale=(0.1, 0.2), telling=None):
        outcomes = self.outcomes(self.states, self.actions, original=True)
        return Cases(self.states, self.actions, outcomes, np.array(scale), telling)

    def screen_swap(self, scale=(0.1, 0.2), telling=None):
        return screen(self, SWAP, SWAP, self.cases(scale, telling))


def test_an_exact_symmetry_passes_without_any_gap():
    screened = World().screen_swap()
    assert (screened.passes, screened.share, screened.reward_agrees, screened.refuted) == (True, 1.0, True, "")
    assert screened.residual == pytest.approx(0.0, abs=1e-12)
    assert screened.reward_gap == 0.0


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(("size", "passes"), [(0.049, True), (0.051, False), (-0.049, True), (-0.051, False)])
def test_a_misfit_is_relative_to_the_scale_of_the_coordinate_that_is_moved_there(place, size, passes):
    """The map swaps x and y, so an image's x has the scale of y."""
    scale = (0.1, 0.2)
    moved = [0.0, 0.0]
    moved[place] = size * scale[1 - place]
    screened = World(moved).screen_swap(scale)
    assert (screened.passes, screened.coordinate) == (passes, place)
    assert screened.residual == pytest.approx(abs(size))
    assert screened.share == float(passes)


@pytest.mark.parametrize(("share", "passes"), [(0.49, True), (0.5, True), (0.51, False)])
def test_half_of_the_cases_must_fit(share, passes):
    screened = World((1.0, 0.0), share=share).screen_swap()
    assert screened.passes == passes
    assert screened.share == pytest.approx(1 - share)


@pytest.mark.parametrize(("size", "passes"), [(0.6, True), (0.9, False)])
def test_seven_standard_deviations_of_noise_are_chance(size, passes):
    assert World((size, 0.0), noise=0.1).screen_swap().passes == passes  # 0.05 x 0.2 + 7 x 0.1 = 0.71


@pytest.mark.parametrize(("paid", "agrees"), [(0.019, True), (-0.019, True), (0.021, False), (-0.021, False)])
def test_rewards_agree_up_to_a_hundredth_of_their_spread(paid, agrees):
    screened = World(paid=paid).screen_swap()
    assert (screened.passes, screened.reward_agrees) == (True, agrees)
    assert screened.reward_gap == pytest.approx(abs(paid))
    assert World(paid=paid, share=0.05).screen_swap().reward_agrees  # nine of ten are enough
    assert World(paid=paid, share=0.15).screen_swap().reward_agrees == agrees


@pytest.mark.parametrize("planted", [{"paid": 0.5}, {"ended": 1.0}])
@pytest.mark.parametrize(("share", "refuted"), [(0.14, False), (0.16, True)])
def test_rare_cases_refute_if_more_than_fifteen_of_a_hundred_differ(planted, share, refuted):
    world = World(share=share, **planted)
    screened = world.screen_swap(telling=world.cases())
    said = f"reward or termination differs on {100 * share:.0f} of 100 steps with a rare reward or a termination"
    assert screened.refuted == (said if refuted else "")
    assert not (screened.reward_agrees and refuted)
    assert screened.reward_gap == (planted.get("paid", 0.0) if refuted else 0.0)


def test_scales_of_steps_are_upper_quartiles_or_what_moves_at_all_or_the_spread():
    lab = SimpleNamespace(difference=lambda a, b: b - a, spread=np.array([9.0, 9.0, 5.0, 0.0]))
    states = np.zeros((8, 4))
    steps = np.zeros((8, 4))
    steps[:, 0] = [-8, 1, 2, 3, 4, 5, 6, 7]
    steps[0, 1] = -3.0
    scale = step_scale(lab, states, SimpleNamespace(states=steps))
    assert scale.tolist() == [np.quantile(np.abs(steps[:, 0]), 0.75), 3.0, 5.0, 1.0]
    reshaped = step_scale(lab, states, SimpleNamespace(states=np.array([[1.0, -4.0, 0.0]])))
    assert reshaped.tolist() == [1.0, 4.0, 1e-12]


def test_actions_of_a_box_keep_their_shape_and_dtype():
    lab = SimpleNamespace(values=None)
    images = map_actions(lab, TURN, [np.array([[1.0], [2.0]], dtype=np.float32)] * 2)
    for image in images:
        assert image.dtype == np.float32
        assert image.tolist() == TURN.apply(np.array([[1.0, 2.0]])).reshape(2, 1).tolist()


def _run(**verdicts):
    results = [
        PropertyResult(name, verdict, "samples", checked=7 if verdict != "proved" else 1)
        for name, verdict in verdicts.items()
    ]
    return SimpleNamespace(properties=results)


def test_a_verification_is_told_by_what_fails_then_by_what_is_open_then_by_what_was_checked():
    run = _run(reward_invariance="failed", transition_invariance="passed", initial_invariance="undecided")
    assert why_of(run) == "reward_invariance fails; undecided: initial_invariance"
    assert why_of(_run(reward_invariance="failed", transition_invariance="passed")) == "reward_invariance fails"
    only_start = why_of(_run(reward_invariance="passed", transition_invariance="proved", initial_invariance="failed"))
    assert only_start.startswith("initial_invariance fails; everything else passed: set initial = false")
    also_open = why_of(_run(reward_invariance="undecided", initial_invariance="failed"))
    assert also_open == "initial_invariance fails; undecided: reward_invariance"
    assert why_of(_run(reward_invariance="undecided", a="passed")).startswith("reward_invariance is undecided: ")
    assert why_of(_run(reward_invariance="passed", b="passed")) == "checked on 7 rewards, 7 checks"
    assert why_of(_run(reward_invariance="proved")) == "holds"


@dataclass(frozen=True)
class Measured:
    """What is measured at the centre."""

    centre: np.ndarray
    mixed: np.ndarray | None = None
    mixed_floor: np.ndarray | None = None


@pytest.mark.parametrize("single", [True, False])
def test_mixed_effects_are_second_differences_of_every_two_probed_coordinates(single, monkeypatch):
    rng = np.random.default_rng(0)
    sizes, centre, curved = np.array([0.5, 0.25, 0.0, 2.0]), rng.normal(size=4), rng.normal(size=(4, 4, 4))
    curved += curved.swapaxes(0, 1)

    def step(lab, state, actions):
        return np.sin(state) + np.einsum("j,k,jki->i", state, state, curved) / 2

    for name, made in (("mean_outcome", step), ("probes_at", lambda *_: sizes), ("neutral_actions", lambda _: [0])):
        monkeypatch.setattr(mixed_effects, name, made)
    lab = SimpleNamespace(
        kind="deterministic", is_whole=False, dim=4, is_single=single, states=np.array([[1.0, -2.0, 3.0, 1e12]]),
        difference=lambda expected, actual: actual - expected, in_time=lambda share: True,
    )  # fmt: skip
    found = mixed_effects.with_mixed(lab, Measured(centre))
    expected = 4 * sizes[:, None, None] * sizes[None, :, None] * curved
    expected[np.arange(4), np.arange(4)] = 0.0
    np.testing.assert_allclose(found.mixed[::2, ::2, ::2], expected, atol=1e-12)
    for j, k, i in np.ndindex(2, 2, 2):
        np.testing.assert_allclose(found.mixed[j::2, k::2, i::2], (-1) ** (j + k + i) * found.mixed[::2, ::2, ::2])
    rounding = 64 * np.finfo(np.float32 if single else np.float64).eps * (np.abs(centre) + np.abs(lab.states[0]))
    floor = np.maximum(mixed_effects.FLOOR * np.abs(expected).max(axis=(0, 1)), rounding)
    np.testing.assert_allclose(found.mixed_floor, np.repeat(floor, 2))
    # not measured: random steps, whole numbers, too many coordinates, no time
    for name, value in (
        ("kind", "stochastic"), ("is_whole", True), ("dim", 49), ("in_time", lambda share: False)
    ):  # fmt: skip
        assert mixed_effects.with_mixed(SimpleNamespace(**{**vars(lab), name: value}), Measured(centre)) is None
