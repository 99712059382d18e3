"""Parts of the search by themselves: against brute force and closed forms, and limits from both sides."""

import itertools
import math
import tomllib
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest

from symcheck.discovery import black_box, centres, kernel_models, moments, turning
from symcheck.discovery.action_values import ActionValues, values_of
from symcheck.discovery.assignment import assign
from symcheck.discovery.boards import board_maps, shift
from symcheck.discovery.by_states import Proposals
from symcheck.discovery.claims import is_data, toml_of
from symcheck.discovery.episode_counts import list_images, places_of, usual_values
from symcheck.discovery.kernel_models import KernelModel
from symcheck.discovery.maps import Candidate, SignedMap
from symcheck.discovery.matching import match_effects
from symcheck.discovery.observation_maps import round_to_whole
from symcheck.discovery.orbit_scores import Episodes, Leaning, lean, moving_columns
from symcheck.discovery.pairs import keeps_pairs
from symcheck.discovery.products import Products
from symcheck.discovery.robots import NamedMirror
from symcheck.discovery.rollouts import (
    Rollouts,
    count_alike,
    join_rollouts,
    refutes_whatever_the_actions,
    sum_by_episode,
)
from symcheck.discovery.scales import probe_sizes
from symcheck.discovery.structure import Structure
from symcheck.discovery.tabular import written_group
from symcheck.errors import SymcheckError
from symcheck.groups import catalog
from symcheck.symmetry.spec import parse_group

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("n", range(1, 8))
def test_the_cheapest_assignment_is_that_of_all_permutations(n):
    for _ in range(3):
        cost = RNG.random((n, n))
        totals = {p: cost[np.arange(n), list(p)].sum() for p in itertools.permutations(range(n))}
        assert tuple(assign(cost).tolist()) == min(totals, key=totals.get)


def test_effects_of_integer_actions_are_matched_and_the_worst_misfit_is_told():
    values, space = ActionValues(gym.spaces.Discrete(3)), gym.spaces.Discrete(3)
    effects = np.array([[1.0, 0.0], [0.0, 2.0], [-3.0, 4.0]])
    moved = effects[[2, 0, 1]] + np.array([[0.0, 0.0], [0.1, 0.2], [0.0, 0.0]])
    action_map, worst = match_effects(moved, effects, np.array([1.0, 2.0]), values, space)
    assert action_map.index == (2, 0, 1)
    assert worst == pytest.approx((0.1 / 1.0 + 0.2 / 2.0) / 2)


def test_effects_of_components_are_matched_with_their_signs_about_the_middle_of_the_box():
    space = gym.spaces.Box(np.array([0.0, -1.0]), np.array([4.0, 1.0]), dtype=np.float64)
    rows = np.array([[1.0, 0.0], [0.0, 1.0]])
    effects = np.stack([rows, -rows], 1).reshape(4, 2)  # +a0, -a0, +a1, -a1
    turned = np.array([[0.0, -1.0], [1.0, 0.0]])
    action_map, worst = match_effects(effects @ turned.T, effects, np.ones(2), None, space)
    assert worst == 0.0
    assert np.array_equal(action_map.apply(np.array([[2.0 + 1.5, 0.5]])), [[2.0 + 0.5, -1.5]]) or np.array_equal(
        action_map.apply(np.array([[2.0 + 1.5, 0.5]])), [[2.0 - 0.5, 1.5]]
    )
    assert action_map.apply(np.array([[2.0, 0.0]])).tolist() == [[2.0, 0.0]]
    assert sorted(action_map.sign) == [-1, 1]
    assert match_effects(effects, effects, np.ones(2), None, space)[0].is_identity
    assert match_effects(effects + 0.5, effects, np.ones(2), None, space)[1] == pytest.approx(0.5)


def test_leave_one_out_errors_are_those_of_fits_without_the_step():
    kernel_rows = RNG.normal(size=(12, 5))
    kernel, targets, ridge = kernel_rows @ kernel_rows.T, RNG.normal(size=(12, 2)), 0.3
    weights, errors = kernel_models._fit_ridge(kernel, targets, ridge)
    np.testing.assert_allclose((kernel + ridge * np.eye(12)) @ weights, targets, atol=1e-10)
    for out in range(12):
        kept = np.arange(12) != out
        fitted = np.linalg.solve(kernel[np.ix_(kept, kept)] + ridge * np.eye(11), targets[kept])
        np.testing.assert_allclose(errors[out], targets[out] - kernel[out, kept] @ fitted, atol=1e-9)
    rows, others = RNG.normal(size=(4, 3)), RNG.normal(size=(6, 3))
    squares = kernel_models._squared_distances(rows, others, rows @ others.T)
    np.testing.assert_allclose(squares, ((rows[:, None] - others[None]) ** 2).sum(-1), atol=1e-12)


def test_a_model_foretells_what_it_can_learn_and_its_errors_are_in_typical_ones():
    inputs = RNG.normal(size=(150, 4))
    inputs[:, 3] = 7.0  # never changes: it tells nothing, and its deviation is no divisor
    which = [np.array([True, True, False, True]), np.array([False, False, True, False])]
    exact = np.stack([inputs[:, 0] * inputs[:, 1], 3.0 + inputs[:, 0] ** 2], 1)
    model = KernelModel(inputs, exact, which)
    fresh = RNG.normal(size=(50, 4)) * 0.8
    fresh[:, 3] = 7.0
    wanted = np.stack([fresh[:, 0] * fresh[:, 1], 3.0 + fresh[:, 0] ** 2], 1)
    assert np.abs(model.errors(fresh, wanted)).max() * model._unit.max() < 0.2
    shifted = model.errors(fresh, wanted + model._unit) - model.errors(fresh, wanted)
    np.testing.assert_allclose(shifted, 1.0, atol=1e-6)
    noisy = KernelModel(inputs, exact + RNG.normal(size=exact.shape), which)
    rest = exact + RNG.normal(size=exact.shape)
    # A typical error is the third quartile of normal noise, 1.15; the fit adds some.
    assert noisy._unit.tolist() == pytest.approx([1.15, 1.15], abs=0.4)
    assert np.quantile(np.abs(noisy.errors(inputs, rest)), 0.75) == pytest.approx(1.0, abs=0.35)


def test_features_that_do_not_help_are_left_out_so_that_errors_are_small_enough_to_show_a_fault():
    """A reward depends on two of twelve numbers; among all of them, distances between steps say little."""
    rng = np.random.default_rng(5)
    inputs, every = rng.uniform(-1, 1, size=(600, 12)), [np.ones(12, dtype=bool)]
    paid = np.exp(-4 * (inputs[:, 2] - inputs[:, 7]) ** 2)[:, None]
    whole, few = (KernelModel(inputs, paid, every, drops=drops) for drops in (False, True))
    assert {2, 7} <= set(np.flatnonzero(few._used))
    assert few._used.sum() <= 4
    assert whole._used.all()
    assert few._unit < whole._unit / 10
    # What helps stays, also in one of several outputs; pixels are too many to leave out one by one.
    both = KernelModel(inputs, np.concatenate([paid, inputs[:, [4]] ** 2], axis=1), every, drops=True)
    assert {2, 4, 7} <= set(np.flatnonzero(both._used))
    pixels = rng.uniform(-1, 1, size=(60, 41))
    assert KernelModel(pixels, pixels[:, [0]], [np.ones(41, dtype=bool)], drops=True)._used.all()


def test_scores_exceed_a_level_above_hoeffdings_bound_and_by_a_fifth_more_in_longer_orbits():
    for order, sides, factor in ((2, 2, 1.0), (2, 1, 1.0), (3, 2, 1.2), (4, 1, 1.2)):
        limit = factor * math.sqrt(2 * math.log(sides * 10 / 1e-4))
        assert not Leaning(limit * (1 - 1e-12), 10).exceeds(order, 1e-4, sides=sides)
        assert Leaning(limit * (1 + 1e-12), 10).exceeds(order, 1e-4, sides=sides)
    assert not Leaning(1e9, 0).exceeds(2, 0.5)
    assert Leaning(3.0, 4) | Leaning(5.0, 6) == Leaning(5.0, 10)


def test_a_deviation_is_the_sum_of_centred_scores_over_their_size():
    sums = RNG.normal(size=(30, 3, 2))
    centred = sums - sums.mean(1, keepdims=True)
    size = np.sqrt((centred**2).mean(1).sum(0))
    wanted = centred[:, 0].sum(0) / size
    assert lean(sums, 1.0) == Leaning(pytest.approx(np.abs(wanted).max()), 2)
    assert lean(sums, 1.0, sides=1).largest == pytest.approx(max(wanted.max(), 0.0))
    # What differs by rounding alone is no evidence.
    assert lean(sums, float(size.min()) / 0.9e-9).tests < 2
    assert lean(sums, float(size.min()) / 1.1e-9).tests == 2


def test_scores_of_steps_are_means_over_episodes_whatever_their_order():
    episode = np.array([5, 5, 2, 9, 2, 5])
    scores = RNG.normal(size=(6, 2, 3))
    means = np.stack([scores[episode == e].mean(0) for e in (2, 5, 9)])
    episodes = Episodes(episode)
    assert episodes.lean(scores).largest == pytest.approx(lean(means, np.abs(scores).sum((0, 1))).largest)
    ways, follows = RNG.normal(size=(6, 2)), RNG.normal(size=(6, 4))
    products = np.stack(
        [(ways[episode == e].T @ follows[episode == e]).ravel() / (episode == e).sum() for e in (2, 5, 9)]
    )
    np.testing.assert_allclose(episodes.multiply(ways, follows), products, atol=1e-12)


def test_a_feature_has_intervals_of_all_widths_and_none_where_it_does_not_vary():
    feature = np.stack([np.arange(64.0), np.arange(64.0)[::-1]], 1)
    scores = np.stack([(feature[:, 0] < 20), (feature[:, 1] < 20)], 1).astype(float)
    leaning = Episodes(np.arange(64)).lean_on_intervals(scores, feature)
    # 16 cells and 8 + 7, 4 + 3, 2 + 1 of them joined; where no score differs there is nothing to test
    assert leaning.tests <= 41
    assert leaning.largest <= math.sqrt(64)
    assert Episodes(np.arange(64)).lean_on_intervals(scores, np.full((64, 2), 3.0)) == Leaning()
    everywhere = Episodes(np.arange(64)).lean_on_intervals(np.ones((64, 2)), RNG.normal(size=(64, 2)))
    assert everywhere.tests == 41
    rows = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert moving_columns([rows, rows * [1, -1, 1], rows * [1, 1, 1]]).tolist() == [False, True, False]


def test_a_value_is_usual_in_four_of_five_steps_and_not_in_fewer():
    assert usual_values(np.array([0.0, 0, 0, 0, 1])).tolist() == [True] * 4 + [False]
    assert usual_values(np.array([0.0, 0, 0, 1])) is None
    assert usual_values(np.zeros(5)) is None


def test_places_are_moving_columns_and_their_sums_and_differences_with_every_other():
    rows = RNG.normal(size=(4, 3))
    images = list_images(rows, lambda x: x * [1, -1, 1], 2)
    assert len(images) == 2
    made = [place.tolist() for place in places_of(images)]
    wanted = [[image[:, 1] for image in images]]
    for i, j in ((1, 0), (2, 1)):
        wanted += [[image[:, i] - image[:, j] for image in images], [image[:, i] + image[:, j] for image in images]]
    assert made == [np.stack(each, 1).tolist() for each in wanted]
    for dim, count in ((16, 1 + 2 * 15), (17, 1)):
        wide = RNG.normal(size=(3, dim))
        assert len(list(places_of([wide, wide * np.array([-1.0, *[1.0] * (dim - 1)])]))) == count
    many = RNG.normal(size=(3, 60))
    assert len(list(places_of([many, -many]))) == 48


def _rollouts(before, after, episode, rewards=None, ended=None):
    n = len(before)
    rewards = np.zeros(n) if rewards is None else rewards
    return Rollouts(before, after, np.zeros((n, 1)), rewards, np.zeros(n, bool) if ended is None else ended, episode)


def test_episodes_are_numbered_on_where_rollouts_are_joined():
    rows = np.arange(8.0)[:, None]
    first, second = (
        _rollouts(rows[:4], rows[:4], np.array([3, 3, 4, 6])),
        _rollouts(rows[4:], rows[4:], np.array([0, 0, 1, 1])),
    )
    joined = join_rollouts(first, second)
    assert joined.episode.tolist() == [0, 0, 1, 3, 4, 4, 5, 5]
    assert joined.before.ravel().tolist() == list(range(8))
    assert count_alike(joined) == pytest.approx(8**2 / (4 + 1 + 1 + 4 + 4))
    assert sum_by_episode(rows, joined.episode).ravel().tolist() == [1, 2, 3, 9, 13]


@pytest.mark.parametrize("what", ["place", "step", "reward", "end", "start", "nothing"])
def test_episodes_refute_a_mirror_by_what_breaks_it_and_not_by_fewer_than_twenty(what):
    def play(count):
        rng = np.random.default_rng(1)
        before = rng.normal(size=(count * 3, 1)) + 0.8 * (what == "place")
        after = before + rng.normal(size=before.shape) + 0.8 * (what == "step")
        right = after[:, 0] > 0
        rewards = right * 1.0 if what == "reward" else np.ones(count * 3)
        ended = right if what == "end" else np.ones(count * 3, bool)
        if what == "start":
            before[::3] = np.abs(before[::3])
        return _rollouts(before, after, np.repeat(np.arange(count), 3), rewards, ended)

    for count, told in ((300, what != "nothing"), (19, False)):
        rollouts = play(count)
        assert refutes_whatever_the_actions(rollouts, rollouts.before, rollouts.after, np.negative, 1e-3) is told


@pytest.mark.parametrize(("count", "refuted"), [(19, False), (20, True)])
def test_twenty_episodes_may_refute(count, refuted):
    rows = np.ones((count, 1))
    rollouts = _rollouts(rows, rows, np.arange(count))
    assert refutes_whatever_the_actions(rollouts, rows, rows, np.negative, 0.5) is refuted


def test_the_bound_on_sums_of_episodes_is_hoeffdings_with_a_fifth_more():
    # Every episode has the same difference: the statistic is the root of their number. Seven features of one column.
    for level, refuted in (
        (14 * math.exp(-((5 / 1.2) ** 2) / 2) * 1.001, True),
        (14 * math.exp(-((5 / 1.2) ** 2) / 2) * 0.999, False),
    ):
        rows = np.ones((25, 1))
        assert (
            refutes_whatever_the_actions(_rollouts(rows, rows, np.arange(25)), rows, rows, np.negative, level)
            is refuted
        )


def test_moments_are_means_over_steps_with_six_errors_of_a_ratio():
    episode = np.repeat(np.arange(30), RNG.integers(1, 4, 30))
    first, other = RNG.normal(size=(2, len(episode), 2))
    for second in (None, other):
        joint = moments._moments(first, second, _rollouts(first, first, episode), signed=True)
        for i, j in np.ndindex(2, 2):
            products = first[:, i] * (1.0 if second is None else second[:, j])
            mean = products.mean()
            gaps = [(products[episode == e] - mean).sum() for e in range(30)]
            error = math.sqrt(sum(gap**2 for gap in gaps)) / len(episode)
            assert joint.table[2 * i, 2 * j] == pytest.approx(mean)
            assert joint.table[2 * i + 1, 2 * j] == pytest.approx(-mean)
            assert joint.table[2 * i, 2 * j + 1] == pytest.approx(mean if second is None else -mean)
            assert joint.floor[2 * i, 2 * j + 1] == pytest.approx(6 * error + 1e-9, rel=1e-9)
    plain = moments._moments(np.abs(first), np.abs(other), _rollouts(first, first, episode), signed=False)
    assert (plain.table > 0).all()


@pytest.mark.parametrize(("count", "made"), [(19, 0), (20, 2)])
def test_twenty_episodes_have_moments(count, made):
    rows = RNG.normal(size=(2 * count, 2))
    joints = moments.moments_of_steps(_rollouts(rows, rows[::-1], np.repeat(np.arange(count), 2)), np.zeros(2))
    assert len(joints) == made


def test_coordinates_of_two_values_are_negated_about_their_middle():
    lab = SimpleNamespace(observation_space=gym.spaces.Box(-9, 9, (3,)))
    seen = np.array([[1.0, 0.5, 2.0], [3.0, 0.1, 2.0], [1.0, -0.5, 2.0]])
    assert moments.middle_of(lab, seen).tolist() == [2.0, 0.0, 0.0]


@pytest.mark.parametrize(("near", "rounded"), [(0.99e-4, True), (1.01e-4, False)])
def test_entries_are_rounded_to_whole_numbers_within_a_ten_thousandth(near, rounded):
    for whole in (-1.0, 0.0, 1.0):
        made = round_to_whole(np.array([[whole + near, whole - near]]))
        assert (made == whole).all() == rounded
        assert not np.signbit(made[made == 0]).any()


def test_a_turned_angle_is_the_same_pose_after_four_quarters_and_keeps_its_full_turns():
    quarter = turning.state_map(np.eye(2), np.array([np.pi / 2, 0.0]), np.array([0]))
    for start in (0.3, -3.0, 3.0, 3.0 + 4 * np.pi, -np.pi, np.pi - 1e-12):
        state = np.array([start, 7.0])
        turns = np.floor((start + np.pi) / (2 * np.pi))
        for _ in range(4):
            state = quarter(state)
            assert np.floor((state[0] + np.pi + 1e-6) / (2 * np.pi)) == pytest.approx(turns, abs=1)
        assert state[1] == 7.0
        assert (state[0] - start + 1e-6) % (2 * np.pi) < 2e-6
    assert quarter(np.array([3.0, 0.0]))[0] == pytest.approx(3.0 + np.pi / 2 - 2 * np.pi)
    assert quarter(np.array([1.0, 0.0]))[0] == pytest.approx(1.0 + np.pi / 2)


def test_a_quarter_turn_has_order_4_or_8_and_others_are_refused():
    def turn(angle):
        return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])

    assert turning._order(turn(np.pi / 2)) == 4
    assert turning._order(turn(np.pi / 4)) == 8
    for angle in (np.pi / 3, np.pi / 8):
        with pytest.raises(SymcheckError, match="neither order 4 nor order 8"):
            turning._order(turn(angle))


def test_fields_are_written_as_toml_that_reads_back():
    fields = {
        "name": 'a "b"',
        "group": "C2",
        "observation": [["-1", [1, 0]]],
        "initial": False,
        "state": [{"signs": [1], "offset": [0.5]}],
    }
    text = toml_of(fields, ["one", "two"])
    assert text.startswith("# one\n# two\nname = ")
    assert tomllib.loads(text) == fields
    assert is_data({})
    assert is_data({"action": [[0, 1]]})
    assert not is_data({"action": [[0, 1], len]})


def test_a_group_is_written_by_its_name_only_where_the_name_gives_its_generators():
    for group in (catalog.cyclic(3), catalog.dihedral(4)):
        assert written_group(group) == group.name
    other = parse_group("from_permutations([[1, 2, 0], [1, 0, 2]])", "group")
    again = parse_group(written_group(other), "group")
    assert (again.order, len(again.generators)) == (6, 2)


def test_maps_of_pairs_are_kept_only_where_every_measured_pair_agrees():
    literals = ((0, 1), (2, 3), (4, 5))
    table = np.full((6, 6), -1)
    for p, q, number in ((0, 2, 5), (2, 4, 5), (0, 4, 7)):
        table[p, q] = table[q, p] = number
    structure = Structure(np.zeros(3), np.zeros((6, 6)), np.zeros(6), np.ones(6), literals, 3, (), pairs=table)
    assert keeps_pairs(structure, SignedMap.of([2, 1, 0]))
    assert not keeps_pairs(structure, SignedMap.of([1, 0, 2]))
    assert keeps_pairs(structure, SignedMap.of([1, 0, 2], [-1, -1, -1]))  # these pairs were never probed
    moved = Structure(np.ones(3), np.zeros((6, 6)), np.zeros(6), np.ones(6), literals, 3, (), pairs=table)
    assert keeps_pairs(moved, SignedMap.of([1, 0, 2], [-1, 1, 1]))  # the centre does not stay
    assert keeps_pairs(
        Structure(np.zeros(3), np.zeros((6, 6)), np.zeros(6), np.ones(6), literals, 3, ()), SignedMap.of([1, 0, 2])
    )


def test_a_board_is_shifted_along_either_axis_longer_than_two():
    assert np.array_equal(np.array(shift((2, 3), 0)).reshape(2, 3), [[3, 4, 5], [0, 1, 2]])
    assert np.array_equal(np.array(shift((2, 3), 1)).reshape(2, 3), [[1, 2, 0], [4, 5, 3]])

    def forms(dim, whole=True):
        lab = SimpleNamespace(
            is_whole=whole,
            dim=dim,
            observation_space=gym.spaces.Box(0, 1, (dim,)),
            shows_state=False,
            state_shape=(dim,),
        )
        return [form for form, _ in board_maps(lab)]

    assert forms(3) == forms(129) == forms(9, whole=False) == []
    assert forms(4)
    assert forms(128)
    nine = forms(9)
    assert nine[0] == "rotations and reflections of a board of 3 x 3"
    assert nine.count("shifts of a torus of 3 x 3") == 2
    assert nine.count("shifts of a torus of 1 x 9") == 1


def test_coordinates_within_twice_their_scale_share_the_length_of_probes():
    shared, apart = probe_sizes(np.array([1.0, 2.0]), whole=False), probe_sizes(np.array([1.0, 2.001]), whole=False)
    assert shared.tolist() == pytest.approx([0.1 * math.sqrt(2)] * 2)
    assert apart.tolist() == pytest.approx([0.1, 0.2001])
    assert probe_sizes(np.array([0.3, 0.0, 5.0]), whole=True).tolist() == [1.0, 0.0, 1.0]
    assert probe_sizes(np.zeros(2), whole=False).tolist() == [0.0, 0.0]


def test_numbers_near_simple_ones_are_replaced_by_them():
    point = np.array([np.pi / 4 + 1e-7, 0.25001, 0.123456, -2 * np.pi])
    for near, wanted in (
        (1e-6, [np.pi / 4, 0.25001, 0.123456, -2 * np.pi]),
        (1e-4, [np.pi / 4, 0.25, 0.1235, -2 * np.pi]),
    ):
        assert centres._simplify_point(point, np.ones(4), near).tolist() == pytest.approx(wanted, abs=1e-12)
    # Nearness counts in units of each coordinate's spread.
    assert centres._simplify_point(np.array([0.25001]), np.array([0.01]), 1e-4).tolist() == [0.25001]


def test_zero_is_the_centre_where_the_visited_range_reaches_it_and_a_typical_value_elsewhere():
    states = np.array([[-1.0, 5.0, 1.0], [1.0, 7.0, 2.0], [0.5, 6.0, 1.5]])
    lab = SimpleNamespace(states=states, starts=states, spread=np.array([1.0, 1.0, 1.0]), dim=3)
    assert centres._zero(lab).point.tolist() == [0.0, 6.0, 0.0]
    lab.spread = np.array([1.0, 1.0, 0.9])
    assert centres._zero(lab).point.tolist() == [0.0, 6.0, 1.5]
    assert centres.middle_of_whole(lab).point.tolist() == [0.0, 6.0, 1.5]
    lab.observation_space, lab.shows_state = gym.spaces.Box(np.float32([-1, 2]), np.float32([3, 4])), True
    assert centres._middle(lab).point.tolist() == [1.0, 3.0]
    lab.observation_space = gym.spaces.Box(-np.inf, np.inf, (2,))
    assert centres._middle(lab) is None
    lab.observation_space = gym.spaces.Box(np.float32(-2e30), np.float32(2e30), (2,))
    assert centres._middle(lab) is None
    lab.shows_state = False
    assert centres._middle(lab) is None


def test_values_of_actions_count_from_their_starts_and_all_are_listed_up_to_64():
    space = gym.spaces.MultiDiscrete([3, 2], start=[1, 5])
    values = ActionValues(space)
    assert (values.counts, values.starts, values.firsts, values.total, values.joint) == ((3, 2), (1, 5), (0, 3), 5, 6)
    assert values.literals(np.array([3, 5])) == [2, 3]
    assert values.action([2, 3]).tolist() == [3, 5]
    assert values.indicators([np.array([1, 6])]).tolist() == [[1, 0, 0, 0, 1]]
    assert values.image([1, 0, 2, 4, 3], np.array([1, 5])).tolist() == [2, 6]
    assert values.describe([1, 0, 2, 3, 4]) == "a0: 1 -> 2, 2 -> 1"
    assert values.describe(range(5)) == "unchanged"
    assert [each.tolist() for each in values.with_literal(4)] == [[1, 6], [2, 6], [3, 6]]
    np.testing.assert_allclose(values.centre(np.arange(5.0)), [-1, 0, 1, -0.5, 0.5])
    assert ActionValues(gym.spaces.Discrete(4, start=2)).with_literal(1) == [3]
    assert len(ActionValues(gym.spaces.MultiBinary(6)).bases) == 64
    assert len(ActionValues(gym.spaces.MultiBinary(7)).bases) == 2
    assert len(ActionValues(gym.spaces.MultiDiscrete([5, 13])).bases) == 12
    assert values_of(gym.spaces.Box(0, 1, (2,))) is None


def test_maps_of_values_are_counted_as_brute_force_counts_them():
    for counts in ([2, 2], [3, 2], [2, 2, 3]):
        values = ActionValues(gym.spaces.MultiDiscrete(counts))
        parts = [set(range(first, first + n)) for first, n in zip(values.firsts, counts, strict=True)]
        kept = sum(
            all({p[i] for i in part} in parts for part in parts) for p in itertools.permutations(range(values.total))
        )
        assert values.count_of_maps() == kept


def test_where_misfits_do_not_decide_the_usual_image_is_taken():
    values = ActionValues(gym.spaces.MultiDiscrete([2, 2]))
    for usual in ([0, 1, 2, 3], [1, 0, 2, 3]):
        assert values.match(np.zeros((4, 4)), usual).index == tuple(usual)
    misfit = np.zeros((4, 4))
    misfit[0, 0] = 1e-5
    assert values.match(misfit, range(4)).index != (0, 1, 2, 3)


def test_what_a_model_breaks_is_listed_up_to_two():
    def remark(*differences):
        return NamedMirror("m", SignedMap.identity(1), differences).remark

    assert remark() == ""
    assert remark("a", "b") == "m: parameters of the model break it: a; b"
    assert remark("a", "b", "c", "d") == "m: parameters of the model break it: a; b; and 2 more"


def test_members_and_products_of_a_listed_group():
    one, two = SignedMap.identity(1), SignedMap.identity(2)
    identity = Candidate(two, one, two)
    flip, swap = (Candidate(each, one, each) for each in (SignedMap.of([0, 1], [-1, 1]), SignedMap.of([1, 0])))
    known = Products([flip], identity)
    assert known.order == 2
    assert flip in known
    assert swap not in known
    assert known.leads_to(flip, identity)
    assert not known.leads_to(swap, flip)
    assert Products([flip, swap], identity).order == 8
    alone = Candidate(two, SignedMap.of([0], [-1]), two)
    assert Products([alone], identity).moves_actions_alone
    assert not known.moves_actions_alone


def _flip(size, places, residual=0.0, gap=0.0):
    whole = SignedMap.of(range(size), [-1 if k in places else 1 for k in range(size)])
    return Candidate(whole, SignedMap.identity(1), whole, residual=residual, reward_gap=gap)


def test_a_product_fits_no_better_than_its_worse_factor():
    exact, first, second = _flip(3, {0}), _flip(3, {1}, 0.2, 0.5), _flip(3, {2}, 0.3, 0.4)
    assert (exact.residual, exact.reward_gap, exact.reward_agrees) == (0.0, 0.0, True)
    for one, other in ((first, second), (second, first)):
        product = one * other
        assert (product.residual, product.reward_gap) == (0.3, 0.5)
        assert product.state == product.observation == _flip(3, {1, 2}).state
    turn, swap = SignedMap.of([1, 0], [1, -1]), SignedMap.of([1, 0])
    both = Candidate(turn, SignedMap.identity(1), turn) * Candidate(swap, SignedMap.identity(1), swap)
    row = np.array([[2.0, 5.0]])
    assert np.array_equal(both.state.apply(row), turn.apply(swap.apply(row)))
    assert not np.array_equal(both.state.apply(row), swap.apply(turn.apply(row)))
    assert Candidate(turn, SignedMap.of([1, 2, 0]), turn).order == 12


def test_of_too_many_candidates_a_group_is_kept_or_the_best_that_are_no_products(monkeypatch):
    identity = _flip(4, ())
    group = [_flip(4, set(places)) for n in range(1, 5) for places in itertools.combinations(range(4), n)]
    for left_out, kept in ((0, 15), (1, 4)):
        proposals = Proposals(space=("16", "flips"), candidates=group[left_out:])
        black_box._keep_best(proposals, identity)
        assert len(proposals.candidates) == kept
        assert Products(proposals.candidates, identity).order == 16
        assert proposals.complete
    monkeypatch.setattr(black_box, "_MOST_CANDIDATES", 3)
    many = [_flip(5, {place}, residual=0.1 * place) for place in range(5)]
    for count, remarks in ((3, []), (5, ["2 candidates with a worse fit were not verified"])):
        proposals = Proposals(space=("32", "flips"), candidates=many[:count][::-1])
        black_box._keep_best(proposals, _flip(5, ()))
        assert proposals.candidates == many[:3]
        assert proposals.remarks == remarks
        assert proposals.complete == (not remarks)
