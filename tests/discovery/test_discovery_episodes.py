"""Episodes of a black box against their own images: what ties two parts together is told, and no symmetry accused."""

import functools
from types import SimpleNamespace

import numpy as np
import pytest
import worlds_to_search as worlds

from symcheck.discovery import black_box
from symcheck.discovery.automorphisms import Found
from symcheck.discovery.episode_counts import EpisodeCounts
from symcheck.discovery.episode_orbits import EpisodeOrbits
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.maps import Candidate, SignedMap
from symcheck.discovery.options import DiscoverOptions
from symcheck.discovery.rollouts import Rollouts


@functools.cache
def orbits_of(pay, skew=None):
    """Models of one set of episodes, which several tests ask; of steps too where a skew is given."""
    rollouts = play(pay, skew=skew or 0.0)
    return EpisodeOrbits(rollouts, np.random.default_rng(1), with_steps=skew is not None)


def play(pay, *, episodes=500, seed=0, skew=0.0):
    """Episodes of a point that is pushed about beside a goal, and what `pay(place, goal)` gives for each step."""
    rng = np.random.default_rng(seed)
    before, after, actions, rewards = [], [], [], []
    for _ in range(episodes):
        place, goal = rng.uniform(-1, 1, (2, 2))
        for _ in range(4):
            action = rng.uniform(-1, 1, 2)
            moved = np.clip(place + 0.2 * action + [skew * (place[0] > 0), 0], -1, 1)
            before.append([*place, *goal])
            after.append([*moved, *goal])
            actions.append(action)
            rewards.append(pay(moved, goal))
            place = moved
    count = len(rewards)
    told = (np.array(before), np.array(after), np.array(actions), np.array(rewards), np.zeros(count, bool))
    return Rollouts(*told, np.repeat(np.arange(episodes), 4))


def near(place, goal):
    return float(np.hypot(*(place - goal)) < 0.4)


def near_and_left_pays_less(place, goal):
    return near(place, goal) * (1.0 if goal[0] > 0 else 0.9)


both, place_alone = SignedMap.of(range(4), [-1, 1, -1, 1]), SignedMap.of(range(4), [-1, 1, 1, 1])
exchanged = SignedMap.of([1, 0, 3, 2])


@pytest.mark.parametrize(
    ("pay", "state_map", "against"),
    [
        (near, both, ""),
        (near, exchanged, ""),
        (near, place_alone, "where the reward is not the usual one"),
        (near_and_left_pays_less, both, "reward"),
        (near_and_left_pays_less, SignedMap.of(range(4), [1, -1, 1, -1]), ""),
    ],
)
def test_a_rare_reward_refutes_the_maps_that_it_breaks_and_no_others(pay, state_map, against):
    assert orbits_of(pay).refute(state_map.apply, 2, None, 2e-4) == against


@pytest.mark.parametrize(
    ("skew", "signs", "against"), [(0.0, [-1, 1], ""), (0.0, [1, 1], "next"), (0.02, [-1, 1], "next")]
)
def test_what_a_step_does_refutes_an_action_map_or_the_map_with_every_one(skew, signs, against):
    said = orbits_of(near, skew).refute(both.apply, 2, SignedMap.of([0, 1], signs), 2e-4)
    assert said.startswith(against)
    assert bool(said) == bool(against)


def test_what_is_asked_besides_takes_its_share_of_the_level():
    """Where steps are asked about beside the reward, a broken map is refuted at twice the level."""

    def least(orbits):
        low, high = -200.0, 0.0  # powers of ten
        for _ in range(14):
            middle = (low + high) / 2
            refuted = orbits.refute(place_alone.apply, 2, None, 10**middle)
            low, high = (low, middle) if refuted else (middle, high)
        return high

    assert least(orbits_of(near, 0.0)) - least(orbits_of(near)) == pytest.approx(np.log10(2), abs=0.05)


@pytest.mark.slow
def test_right_maps_are_refused_as_seldom_as_the_level_says():
    """Thirty tests of symmetries at one in twenty: more than six refusals come with probability 1e-3."""
    refused = 0
    for seed in range(10):
        orbits = EpisodeOrbits(play(near, episodes=80, seed=seed), np.random.default_rng(seed), with_steps=False)
        turned = SignedMap.of([1, 0, 3, 2], [1, -1, 1, -1])
        maps = ((both, 2), (exchanged, 2), (turned, 4))
        refused += sum(bool(orbits.refute(each.apply, order, None, 0.05)) for each, order in maps)
    assert refused <= 6


def test_too_few_rare_rewards_leave_a_map_undecided(monkeypatch):
    from symcheck.discovery import witnesses
    from symcheck.discovery.by_states import Proposals

    class Witness(witnesses.Witnesses):
        def __init__(self, telling):
            self._lab = self._shrink = self._at_first = None
            self._level, self._left, self._kept = 2e-4, [], witnesses._Kept()
            orbits = orbits_of(near)
            self._few = witnesses._Questioned((counts_of(orbits._rollouts), orbits), telling)

        def _question(self, played, budget):
            return self._few

    monkeypatch.setattr(witnesses, "play_episodes", lambda *_: None)
    candidate = Candidate(both, SignedMap.of([0, 1], [-1, 1]), both)
    for telling, fates in ((5, ["undecided"]), (200, [])):
        proposals, witness = Proposals(), Witness(telling)
        witness.hear(candidate, "both", both.apply, proposals)
        witness.conclude(proposals)
        assert [trial.verdict for trial in proposals.refused] == fates
        assert len(proposals.candidates) == 1 - len(fates)


def test_coordinates_that_show_the_same_go_together():
    from symcheck.discovery.black_box import _copies

    rows = np.random.default_rng(0).normal(size=(50, 2))
    pairs = _copies(np.concatenate([rows, -rows[:, :1]], axis=1), np.ones(3))
    assert pairs[0].tolist() == [1, 0, 0, 0, 0, 1]


@pytest.mark.parametrize(("error", "same"), [(0.9e-6, 1), (1.1e-6, 0)])
def test_numbers_are_the_same_up_to_a_millionth_of_their_spread(error, same):
    from symcheck.discovery.black_box import _copies

    rows = np.random.default_rng(0).normal(size=(50, 1))
    assert _copies(np.concatenate([rows, rows + 2.0 * error], axis=1), np.full(2, 2.0))[0, 2] == same


def test_no_more_than_4000_steps_and_24_features_are_looked_at():
    rollouts = one_step_episodes(np.random.default_rng(0).normal(size=(5000, 30)), rewards=np.arange(5000.0))
    (counted,) = counts_of(rollouts)._list_counts
    assert len(counted.rows) == len(set(counted.rows.tolist())) == 4000
    orbits = EpisodeOrbits(rollouts, np.random.default_rng(1), with_steps=False)
    (question,) = orbits._questions
    rows = rollouts.after[:10]
    orbit = [(rows, rows, rows[:, :0])] * 2
    assert orbits._by_side(question, np.ones((10, 2, 30)), orbit).shape == (10, 2, 24 * 24)


@pytest.mark.parametrize(("steps", "played"), [(127, 128), (128, 128), (129, 160)])
def test_whether_episodes_suffice_is_asked_after_every_32nd(steps, played, monkeypatch):
    from symcheck.discovery import episode_orbits

    monkeypatch.setattr(episode_orbits, "action_features", lambda lab, actions: np.zeros((len(actions), 1)))
    step = SimpleNamespace(reward=0.0, terminated=False)
    episode = SimpleNamespace(seen=np.zeros((2, 1)), steps=[step], actions=[0])
    stepper = SimpleNamespace(codec=SimpleNamespace(flatten_batch=lambda seen: seen), play=lambda *_: episode)
    lab = SimpleNamespace(in_time=lambda share: True, stepper=stepper)
    budget = episode_orbits.Budget(steps, 0, 4000, 1.0, 1, 1, 1)
    episodes = episode_orbits.play_episodes(lab, lambda flat: flat, budget).rollouts.episode
    assert len(set(episodes.tolist())) == played


def test_what_a_limit_leaves_unheard_fits_worse(monkeypatch):
    from symcheck.discovery import black_box
    from symcheck.discovery.by_states import Proposals

    heard = []

    class Witness:
        def __init__(self, *_, **__):
            pass

        def hear(self, candidate, *_):
            heard.append(candidate.residual)

        def conclude(self, _):
            pass

    monkeypatch.setattr(black_box, "Witnesses", Witness)
    monkeypatch.setattr(black_box, "_MOST_HEARD", 2)
    swap = SignedMap.of([0, 1], [-1, 1])
    fitting = [Candidate(both, swap, both, residual=misfit) for misfit in (0.3, 0.1, 0.2)]
    proposals = Proposals()
    black_box._hear_witnesses(SimpleNamespace(in_time=lambda share: True), fitting, proposals)
    assert heard == [0.1, 0.2]
    assert proposals.remarks == ["a limit of 2 left 1 maps untried that fit a model of the rollouts"]
    assert not proposals.complete


def test_candidates_of_a_black_box_are_asked_about_steps_too(monkeypatch):
    from symcheck.discovery import witnesses
    from symcheck.discovery.by_states import Proposals
    from symcheck.discovery.episode_orbits import Played

    monkeypatch.setattr(witnesses, "play_episodes", lambda *_: Played(play(near, skew=0.5), None))
    lab = SimpleNamespace(in_time=lambda share: True, alpha=0.01, rng=np.random.default_rng(1))
    proposals = Proposals()
    black_box._hear_witnesses(lab, [Candidate(both, SignedMap.of([0, 1], [-1, 1]), both)], proposals)
    assert [(trial.verdict, "next observation" in trial.why) for trial in proposals.refused] == [("rejected", True)]


def one_step_episodes(after, *, rewards=None, ended=None):
    """Episodes of one step each that end in given places."""
    count = len(after)
    rewards = np.ones(count) if rewards is None else rewards
    ended = np.zeros(count, bool) if ended is None else ended
    return Rollouts(after, after, np.zeros((count, 1)), rewards, ended, np.arange(count))


def counts_of(rollouts):
    return EpisodeCounts(rollouts, np.random.default_rng(1), with_steps=False)


@pytest.mark.parametrize(("left", "against"), [(-2.0, ""), (-2.1, "where the termination is not the usual one")])
def test_walls_at_unequal_distances_are_told_by_where_episodes_end(left, against):
    places = np.random.default_rng(0).uniform(-2.3, 2.3, (2000, 2))
    places = places[(places[:, 0] > -2.1) | (np.arange(2000) % 3 == 0)]
    ended = (places[:, 0] > 2.0) | (places[:, 0] < left)
    ended &= np.random.default_rng(1).random(len(places)) < 0.9
    mirrored = np.concatenate([places, places * [-1, 1]])  # as many steps on each side: only the ends differ
    ended = np.concatenate([ended, (mirrored[len(places) :, 0] > 2.0) | (mirrored[len(places) :, 0] < left)])
    counts = counts_of(one_step_episodes(mirrored, ended=ended))
    assert counts.refute(SignedMap.of([0, 1], [-1, 1]).apply, 2, None, 1e-3) == against
    assert counts.refute(SignedMap.of([0, 1], [1, -1]).apply, 2, None, 1e-3) == ""


def collide(places):
    """A dense reward, and a penalty where two robots in the plane are near each other."""
    distance = np.hypot(places[:, 0] - places[:, 2], places[:, 1] - places[:, 3])
    return -np.abs(places).sum(axis=1) - 2.0 * (distance < 0.3)


@pytest.mark.parametrize(
    ("signs", "against"), [([-1, 1, -1, 1], ""), ([-1, -1, -1, -1], ""), ([-1, 1, 1, 1], "reward")]
)
def test_a_rare_penalty_on_top_of_a_dense_reward_ties_two_robots_together(signs, against):
    places = np.random.default_rng(0).uniform(-1, 1, (4000, 4))
    rollouts = one_step_episodes(places, rewards=collide(places))
    orbits = EpisodeOrbits(rollouts, np.random.default_rng(1), with_steps=False)
    assert orbits.refute(SignedMap.of(range(4), signs).apply, 2, None, 2e-4) == against


def test_a_map_falls_when_its_product_with_others_is_refuted():
    from symcheck.discovery.witnesses import _Heard, _Kept

    still = SignedMap.identity(1)

    def heard(*signs):
        state = SignedMap.of(range(2), signs)
        return _Heard(Candidate(state, still, state), str(signs), state.apply)

    kept = _Kept()
    across, along, both = heard(-1, 1), heard(1, -1), heard(-1, -1)
    kept.add(across)
    kept.add(along)
    assert kept.list_left([both]) == [both]
    kept.refute(both)
    assert [one for one, _ in kept.fallen] == [along]
    assert kept.leads_to_refuted(along.candidate) == both
    assert kept.list_left([across, along, both]) == [across]


def test_a_mirror_about_the_middle_of_a_box_fits_the_steps_that_it_mirrors():
    """The model's steps are differences: of an offset nothing may be left in them."""
    from symcheck.discovery.black_box import _QuadraticModel

    rng = np.random.default_rng(0)
    places, actions = rng.integers(0, 5, (300, 2)).astype(float), rng.uniform(-1, 1, (300, 1))
    after = places + np.concatenate([actions, 0.5 * actions], axis=1)
    rollouts = Rollouts(places, after, actions, np.zeros(300), np.zeros(300, bool), np.arange(300))
    mirror = SignedMap.about([0, 1], [-1, -1], np.full(2, 2.0))
    model = _QuadraticModel(rollouts)
    assert model.misfit(mirror, SignedMap.of([0], [-1])) < 1e-3
    assert model.misfit(mirror, SignedMap.of([0])) > 0.5


def propose(world):
    return black_box.propose(Laboratory(world, "black box", DiscoverOptions(samples=500)))


def test_the_mirror_of_one_number_is_compatible_with_the_moments_of_episodes():
    (candidate,) = propose(worlds.Turned).candidates
    assert candidate.state.sign == (-1,)


def test_a_model_of_rollouts_decides_on_maps_only_where_it_describes_the_steps(monkeypatch):
    """With every misfit too large, and no map left to episodes."""
    mirror = Found((((0,), (1,)), ((0,), (-1,))), complete=True)
    monkeypatch.setattr(
        black_box, "preserving_maps", lambda lab, rollouts: (black_box.effects_of(lab, rollouts), mirror)
    )
    monkeypatch.setattr(black_box, "_FITS", -1.0)
    monkeypatch.setattr(black_box, "_MOST_CANDIDATES", 0)
    mixed, plain = propose(worlds.Turned), propose(worlds.Drifting)
    assert [(each.verdict, each.is_open) for each in plain.refused] == [("rejected", False)]
    assert [(each.verdict, each.is_open) for each in mixed.refused] == [("untried", True)]
