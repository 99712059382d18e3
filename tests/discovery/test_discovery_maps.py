"""Signed maps compose, invert and write themselves; groups are named; structures keep exactly their automorphisms."""

import dataclasses
import itertools
import math
from contextlib import nullcontext
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symcheck.discovery import by_states, deciding, mixed_effects, observations, pairs, pictures, turning
from symcheck.discovery.action_effects import ActionEffects
from symcheck.discovery.action_values import ActionValues
from symcheck.discovery.automorphisms import automorphisms, exchanges
from symcheck.discovery.black_box import preserving_maps
from symcheck.discovery.blocks import blocks_of, lift_picture, turn_picture, upright, write_map
from symcheck.discovery.boards import board_maps
from symcheck.discovery.elements import closure, obeys_symmetric, permutation_of, recognise
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.maps import SQUARE, Candidate, SignedMap, apply_square
from symcheck.discovery.mixed_effects import over_literals
from symcheck.discovery.options import DiscoverOptions
from symcheck.discovery.picture_parts import Parts
from symcheck.discovery.products import Products, name_group
from symcheck.discovery.rollouts import Rollouts, roll
from symcheck.discovery.scales import probe_sizes
from symcheck.discovery.structure import Structure
from symcheck.entries.forms import parse_entry
from symcheck.errors import SpecError, SymcheckError
from symcheck.symmetry.spec import parse_group


@st.composite
def signed_maps(draw, dim=4):
    index = draw(st.permutations(range(dim)))
    sign = draw(st.lists(st.sampled_from([1, -1]), min_size=dim, max_size=dim))
    offset = draw(st.lists(st.integers(-3, 3).map(lambda n: n / 4), min_size=dim, max_size=dim))
    return SignedMap.of(index, sign, offset)


def test_the_shorter_description_costs_less():
    maps = [
        SignedMap.identity(3),
        SignedMap.of(range(3), [1, -1, 1]),
        SignedMap.of(range(3), [1, 1, 1], [0, 0, 0.5]),
        SignedMap.of([1, 0, 2]),
        SignedMap.of([1, 2, 0], [-1, 1, 1]),
    ]
    assert [each.cost for each in maps] == [0, 2, 5, 6, 11]


@settings(deadline=None, max_examples=60, derandomize=True)
@given(signed_maps(), signed_maps())
def test_a_product_applies_its_right_factor_first(a, b):
    x = np.arange(1.0, 5.0)[None]
    assert np.allclose((a * b).apply(x), a.apply(b.apply(x)), atol=1e-12)  # sums of a few quarters: exact but for order


@settings(deadline=None, max_examples=60, derandomize=True)
@given(signed_maps())
def test_what_is_written_reads_back_as_the_same_map(one):
    x = np.array([[0.5, -1.0, 2.0, 3.0]])
    entry = parse_entry(one.spec_entry(), "observation")
    assert np.array_equal(entry.apply(x), one.apply(x))


def test_a_reflection_about_a_centre_keeps_it():
    centre = np.array([0.25, -1.5])
    mirror = SignedMap.about([0, 1], [-1, 1], centre)
    assert np.array_equal(mirror.apply(centre[None])[0], centre)
    assert mirror.order == 2
    assert not mirror.is_identity


def test_a_translation_has_no_finite_order():
    assert SignedMap.of([0], [1], [0.5]).order == 0


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (4, 4, 3)])
def test_elements_of_the_square_move_flattened_pictures_as_they_move_pictures(shape):
    (block,) = blocks_of(gym.spaces.Box(0, 1, shape))
    picture = np.arange(float(block.size)).reshape(shape)
    for name in SQUARE:
        moved = lift_picture(name, block, block.size).apply(picture.reshape(1, -1))[0].reshape(shape)
        assert np.array_equal(upright(moved, block.layout), apply_square(name, upright(picture, block.layout)))


def test_a_map_that_mixes_parts_is_not_written():
    space = gym.spaces.Dict(a=gym.spaces.Box(-1, 1, (1,)), b=gym.spaces.Box(-1, 1, (1,)))
    with pytest.raises(SpecError, match="mixes parts"):
        write_map(SignedMap.of([1, 0]), space)


def test_every_part_is_written_in_its_own_form():
    space = gym.spaces.Dict(eye=gym.spaces.Box(0, 1, (3, 4)), legs=gym.spaces.Tuple([gym.spaces.Box(-1, 1, (2,))] * 2))
    block = blocks_of(space)[0]
    mirror = lift_picture("flip_lr", block, 16) * SignedMap.of(range(16), [1] * 14 + [-1, 1])
    assert write_map(mirror, space) == {"eye": "flip_lr", "legs": {"0": "identity", "1": [-1, 1]}}


def test_exchanges_of_identical_parts_generate_all_of_them():
    free = _with_table(np.zeros((4, 4)))
    maps = [SignedMap.of(index, sign) for index, sign in exchanges(free)]
    one, still = SignedMap.identity(1), SignedMap.identity(4)
    generated = closure([Candidate(each, one, each) for each in maps], Candidate(still, one, still))
    assert len(generated) == 2**4 * 24


def _plain(index, sign, action=(0,)):
    state = SignedMap.of(index, sign)
    return Candidate(state, SignedMap.of(action), state)


IDENTITY2 = _plain([0, 1], [1, 1])
QUARTER, FLIP = _plain([1, 0], [1, -1]), _plain([0, 1], [1, -1])


@pytest.mark.parametrize(
    ("generators", "name"),
    [
        ([], "C1"),
        ([FLIP], "C2"),
        ([QUARTER], "C4"),
        ([QUARTER, FLIP], "D4"),
        ([FLIP, _plain([0, 1], [-1, 1])], "C2 x C2"),
    ],
)
def test_a_group_is_recognised_and_its_generators_obey_the_written_presentation(generators, name):
    elements = closure(generators, IDENTITY2)
    found = recognise(elements, IDENTITY2)
    assert found.name == name
    assert found.order == len(elements) == parse_group(found.written, "group").order
    group = parse_group(found.written, "group")
    for word in group.relators:
        product = IDENTITY2
        for letter in word:
            product = product * found.generators[letter]
        assert product.key == IDENTITY2.key


def test_a_group_outside_the_catalogue_is_written_as_permutations():
    identity = _plain([0, 1, 2], [1, 1, 1])
    turn, minus = _plain([1, 2, 0], [1, 1, 1]), _plain([0, 1, 2], [-1, 1, 1])
    elements = closure([turn, minus], identity)  # C2 to the third, turned by C3
    found = recognise(elements, identity)
    assert len(elements) == 24
    assert found.written.startswith("from_permutations(")
    assert parse_group(found.written, "group").order == 24
    assert sorted(permutation_of(turn)) == list(range(8))


class Lamps(gym.Env):
    """A ring of six lamps: a button turns its own on, and each of its neighbours over."""

    observation_space, action_space = gym.spaces.MultiBinary(6), gym.spaces.Discrete(6)
    dead = -1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.lamps = self.np_random.integers(0, 2, 6).astype(np.int8)
        return self.lamps.copy(), {}

    def step(self, action):
        if action != self.dead:
            self.lamps[[(action + 1) % 6, (action - 1) % 6]] ^= 1
            self.lamps[action] = 1
        return self.lamps.copy(), float(self.lamps[::2].sum() * self.lamps[1::2].sum()), False, False, {}


class DeadButton(Lamps):
    dead = 2


ABOUT_THE_DEAD_BUTTON, ABOUT_THE_FIRST = ((4, 3, 2, 1, 0, 5), (1,) * 6), ((0, 5, 4, 3, 2, 1), (1,) * 6)


@pytest.mark.parametrize(
    ("lamps", "kept", "some"),
    [(Lamps, 12, {ABOUT_THE_DEAD_BUTTON, ABOUT_THE_FIRST}), (DeadButton, 2, {ABOUT_THE_DEAD_BUTTON})],
)
def test_what_changes_together_leaves_the_symmetries_of_a_black_box(lamps, kept, some):
    lab = Laboratory(lamps, "lamps", DiscoverOptions())
    assert lab.pool.episodes == 100  # although no episode ends: what is drawn at a start is seen a hundred times
    _, left = preserving_maps(lab, roll(lab))
    assert left.complete
    assert len(left.maps) == kept
    assert some <= set(left.maps)


@pytest.mark.parametrize("shape", [(2, 3), (3, 3)])
def test_every_turn_and_reflection_of_a_board_is_tried(shape):
    cells = np.arange(math.prod(shape)).reshape(shape)
    turned = [np.rot90(side, k) for side in (cells, cells[::-1]) for k in range(4)]
    wanted = {tuple(each.ravel().tolist()) for each in turned if each.shape == shape} - {tuple(range(cells.size))}
    board = gym.spaces.Box(0, 1, shape)
    lab = SimpleNamespace(is_whole=True, dim=cells.size, shows_state=True, observation_space=board, state_shape=shape)
    forms = {form: [] for form, _ in board_maps(lab)}
    for form, each in board_maps(lab):
        forms[form].append(tuple(each.index))
    size = f"{shape[0]} x {shape[1]}"
    assert set(forms[f"rotations and reflections of a board of {size}"]) == wanted
    # A shift by one of two cells is a reflection.
    assert len(forms[f"shifts of a torus of {size}"]) == sum(side > 2 for side in shape)


@pytest.mark.parametrize(
    ("dim", "shown", "state", "whole"),
    [
        (18, gym.spaces.Box(0, 1, (2, 3, 3)), (18,), True),  # channels first, the state is the observation
        (18, gym.spaces.Box(0, 1, (3, 3, 2)), (18,), True),  # channels last
        (18, gym.spaces.Box(0, 1, (9,)), (2, 3, 3), False),  # the state is an array with this shape
        (18, gym.spaces.Dict(a=gym.spaces.Box(0, 2, (3, 3)), b=gym.spaces.Discrete(2)), (18,), False),  # two boards
        (10, gym.spaces.Dict(a=gym.spaces.Box(0, 2, (3, 3)), b=gym.spaces.Discrete(2)), (10,), False),  # and a number
    ],
)
def test_the_channels_of_a_board_turn_together_and_numbers_beside_it_stay(dim, shown, state, whole):
    lab = SimpleNamespace(is_whole=True, dim=dim, shows_state=whole, observation_space=shown, state_shape=state)
    last = shown.shape == (3, 3, 2)
    channels, beside = dim // 9, dim % 9
    cells = np.arange(9 * channels).reshape((3, 3, 2) if last else (channels, 3, 3))
    planes = np.moveaxis(cells, -1, 0) if last else cells
    turned = [np.rot90(side, k, axes=(1, 2)) for side in (planes, planes[:, ::-1]) for k in range(4)]
    moved = [(np.moveaxis(each, 0, -1) if last else each).ravel().tolist() for each in turned]
    # A number may follow the board or precede it.
    wanted = {(*each, *range(dim - beside, dim)) for each in moved}
    wanted |= {(*range(beside), *(beside + i for i in each)) for each in moved}
    listed: dict[str, set[tuple[int, ...]]] = {}
    for form, each in board_maps(lab):
        listed.setdefault(form, set()).add(tuple(each.index))
    size = "3 x 3" + (" with 2 channels" if channels > 1 else "")
    assert listed[f"rotations and reflections of a board of {size}"] == wanted - {tuple(range(dim))}
    assert next(iter(listed)) == f"rotations and reflections of a board of {size}"
    assert len(listed[f"shifts of a torus of {size}"]) == 2 * (1 + (beside > 0))
    assert (len(listed) == 2) is whole  # nothing else is tried where the board is the state


@pytest.mark.parametrize(("first", "second"), [*itertools.product([True, False], repeat=2)])
def test_rewards_agree_under_a_product_if_they_agree_under_both_maps(first, second):
    one, two = (dataclasses.replace(_still(2), reward_agrees=agrees) for agrees in (first, second))
    assert (one * two).reward_agrees is (first and second)


def _still(dim):
    return Candidate(*[SignedMap.identity(dim)] * 3)


@pytest.mark.parametrize(("swap", "obeys"), [((1, 0, 2, 3), True), ((2, 1, 0, 3), False), ((1, 0, 3, 2), False)])
def test_a_swap_and_a_cycle_make_a_symmetric_group_if_they_obey_its_relations(swap, obeys):
    two = [Candidate(*[SignedMap.of(index)] * 3) for index in (swap, (1, 2, 3, 0))]
    assert obeys_symmetric(*two, 4, _still(4)) is obeys


def test_where_steps_are_random_the_other_action_maps_are_kept():
    two = gym.spaces.Discrete(2)
    lab = SimpleNamespace(kind="stochastic", is_whole=False, values=ActionValues(two), action_space=two)
    still, swap = SignedMap.identity(2), SignedMap.of([1, 0])
    others = by_states._Search._others(SimpleNamespace(lab=lab), SignedMap.of([0], [-1]), still)
    assert others == {"guessed": True, "others": (swap,)}
    lab.kind = "deterministic"
    assert by_states._Search._others(SimpleNamespace(lab=lab), SignedMap.of([0], [-1]), still) == {}


def test_members_of_a_group_follow_from_its_generators(monkeypatch):
    said = []
    generator, member, other = (Candidate(*[SignedMap.of(range(2), sign)] * 3) for sign in ([-1, 1], [1, -1], [-1, -1]))
    judging = SimpleNamespace(
        judgement=SimpleNamespace(),
        records={k: SimpleNamespace(candidate=each) for k, each in enumerate((generator, member, other))},
        known=[generator, member],
        _set=lambda candidate, verdict, *_, **__: said.append((candidate, verdict)),
    )
    monkeypatch.setattr(deciding, "why_of", lambda result: "every property holds")
    group = SimpleNamespace(generators=[generator])
    deciding._Bench._claim(judging, group, SimpleNamespace(verdict="passed"))
    assert said == [(generator, "passed"), (member, "follows")]


def test_a_refusal_counts_the_states_that_do_not_fit():
    screened = SimpleNamespace(residual=0.5, share=0.75, coordinate=2)
    said = by_states._Search._misfit(SimpleNamespace(cases=SimpleNamespace(states=range(8))), screened)
    assert said.startswith("the next state differs on 25% of 8 states, most strongly in state[2]")


def test_a_product_of_maps_that_fit_is_not_stepped_again_and_one_of_maps_that_do_not_is():
    turn, mirror = SignedMap.of([1, 0], [1, -1]), SignedMap.of([0, 1], [1, -1])
    actions = SignedMap.of([1, 2, 3, 0]), SignedMap.of([0, 3, 2, 1])
    fitting = [Candidate(state, action, state) for state, action in zip((turn, mirror), actions, strict=True)]
    search = by_states._Search.__new__(by_states._Search)
    search.labels, search.found = {}, by_states.Proposals(candidates=fitting)
    search.lab = SimpleNamespace(kind="stochastic", spread=np.ones(2), is_whole=True, values=None)
    deduced = search._product_of_fitting(turn * mirror, "a form")
    assert (deduced.state, deduced.action, deduced.form) == (turn * mirror, actions[0] * actions[1], "a form")
    search.found.candidates = [dataclasses.replace(each, reward_agrees=False) for each in fitting]
    assert search._product_of_fitting(turn * mirror, "") is None
    search.found.candidates, search.lab.kind = fitting, "deterministic"
    assert search._product_of_fitting(turn * mirror, "") is None


@pytest.mark.parametrize(("error", "closes"), [(0.9e-6, True), (1.1e-6, False)])
def test_a_quarter_turn_closes_up_to_a_millionth_and_no_further(error, closes):
    turn = np.array([[0.0, -1.0], [1.0, 0.0]]) * (1 + error) ** 0.25  # its fourth power is off by the error
    with nullcontext() if closes else pytest.raises(SymcheckError, match="neither order 4 nor order 8"):
        assert turning._order(turn) == 4


def test_no_search_goes_on_after_a_third_of_the_time(monkeypatch):
    used = SimpleNamespace(
        in_time=lambda share: share > 0.4, spread=np.ones(2), is_whole=False, kind="deterministic", dim=2
    )
    used.states = used.starts = np.full((1, 2), 0.5)
    monkeypatch.setattr(mixed_effects, "neutral_actions", lambda lab: [0])
    assert mixed_effects.with_mixed(used, Structure(np.zeros(2), *[None] * 6)) is None
    used.is_whole, used.values = True, ActionValues(gym.spaces.Discrete(2))
    monkeypatch.setattr(pairs, "neutral_actions", lambda lab: [0])
    monkeypatch.setattr(pairs, "_list_pairs", lambda lab, structure: [(0, 1)])
    assert pairs.with_pairs(used, Structure(*[None] * 7)) is None
    seen, looks = observations.Sightings(np.zeros((2, 2)), [0, 0], np.zeros((2, 1))), []  # nothing ever changed
    monkeypatch.setattr(observations, "_observe_steps", lambda lab, states: looks.append(states) or seen)
    monkeypatch.setattr(observations, "_pool_states", lambda lab, count: counts.append(count) or seen.states)
    used.is_whole, used.observation_space, used.rng = False, gym.spaces.Box(0, 1, (1,)), np.random.default_rng(0)
    counts = []
    observations.look_around(used)
    assert len(looks) == 2
    assert counts == [80, 80]  # half of the states as they were met, half drawn wider


@pytest.mark.parametrize("name", SQUARE)
def test_pictures_of_a_marker_tell_where_a_turn_takes_each_action(name):
    steps, side = [(-1, 0), (0, 1), (1, 0), (0, -1)], range(3)
    marker = np.eye(9).reshape(3, 3, 3, 3)  # marker[i, j] shows it in row i, column j
    cases = [(i, j, a) for i in side for j in side for a in range(4)] * 2
    cases = [case for pair in zip(cases[:36], cases[36:], strict=True) for case in pair]  # both halves see all of them
    ends = [np.clip(np.add((i, j), steps[a]), 0, 2) for i, j, a in cases]
    before, after = np.stack([marker[i, j] for i, j, _ in cases]), np.stack([marker[i, j] for i, j in ends])
    four = gym.spaces.Discrete(4)
    lab = SimpleNamespace(values=ActionValues(four), action_space=four)
    effects = pictures._list_effects(lab, before, after, np.eye(4)[[a for _, _, a in cases]])
    # Where the picture of a marker beside the middle shows it after the turn.
    turned = [apply_square(name, marker[1 + down, 1 + right]) for down, right in steps]
    wanted = [int(np.argmax([np.array_equal(each, marker[1 + i, 1 + j]) for i, j in steps])) for each in turned]
    assert sorted(len(shape) for _, shape in effects) == [2, 4]
    for rows, shape in effects:
        action_map, misfit = pictures._match(lab, name, rows, shape)
        assert list(action_map.index) == wanted
        assert misfit < 1e-12


def _with_table(effects):
    """A structure in which coordinate j moves coordinate i by effects[i, j], linearly."""
    n = len(effects)
    signs = np.array([[1.0, -1.0], [-1.0, 1.0]])
    table = np.kron(effects, signs)
    literals = tuple((2 * j, 2 * j + 1) for j in range(n))
    return Structure(np.zeros(n), table, np.zeros(2 * n), np.full(2 * n, 1e-6), literals, n, ())


@settings(deadline=None, max_examples=25, derandomize=True)
@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=9, max_size=9))
def test_the_search_finds_exactly_the_signed_permutations_that_keep_the_table(numbers):
    effects = np.array(numbers).reshape(3, 3)
    found = {(index, sign) for index, sign in automorphisms(_with_table(effects)).maps}
    wanted = set()
    for index in itertools.permutations(range(3)):
        for sign in itertools.product((1, -1), repeat=3):
            moved = np.zeros((3, 3))
            moved[list(index), range(3)] = sign
            if np.array_equal(moved @ effects, effects @ moved):
                wanted.add((index, sign))
    assert found == wanted


@settings(deadline=None, max_examples=25, derandomize=True)
@given(st.lists(st.sampled_from([-1.0, 0.0, 0.0, 1.0]), min_size=9, max_size=9))
def test_the_search_keeps_what_two_coordinates_do_together_and_nothing_more(numbers):
    """x_i moves by sums of m[i, pair] x_j x_k: a table of single effects is blind to it."""
    mixed = np.zeros((3, 3, 3))
    for pair, (j, k) in enumerate(itertools.combinations(range(3), 2)):
        mixed[j, k] = mixed[k, j] = numbers[3 * pair : 3 * pair + 3]
    blind = _with_table(np.zeros((3, 3)))
    seeing = dataclasses.replace(blind, mixed=over_literals(mixed), mixed_floor=np.full(6, 1e-6))
    wanted = set()
    for index in itertools.permutations(range(3)):
        for sign in itertools.product((1, -1), repeat=3):
            moved = np.zeros((3, 3))
            moved[list(index), range(3)] = sign
            # The effect of two images is the image of their effect.
            of_images = np.einsum("jki,jp,kq->pqi", mixed, moved, moved)
            if np.array_equal(of_images, mixed @ moved.T):
                wanted.add((index, sign))
    assert {(index, sign) for index, sign in automorphisms(seeing).maps} == wanted
    assert len(automorphisms(blind).maps) == 48


def test_a_search_that_reaches_its_limit_says_so():
    free = automorphisms(_with_table(np.zeros((4, 4))), most=10)
    assert len(free.maps) == 10
    assert not free.complete


def test_a_coordinate_that_never_changes_is_left_alone():
    table = _with_table(np.zeros((2, 2)))
    fixed = Structure(table.centre, table.table, table.drift, table.floor, table.literals, 2, (0,))
    assert all(index[0] == 0 and sign[0] == 1 for index, sign in automorphisms(fixed).maps)


def test_a_coordinate_stays_in_its_part_of_the_observation():
    free = _with_table(np.zeros((4, 4)))
    parts = automorphisms(dataclasses.replace(free, parts=(0, 0, 1, 1))).maps
    assert len(parts) == 8 * 8
    assert all(max(index[:2]) == 1 for index, _ in parts)
    assert len(automorphisms(free).maps) == 384


def test_probes_of_exchangeable_coordinates_are_equally_long():
    sizes = probe_sizes(np.array([1.0, 1.1, 0.01, 0.0]), whole=False)
    assert sizes[0] == sizes[1] > sizes[2] > sizes[3] == 0


def test_swaps_of_identical_parts_generate_all_rearrangements_and_leave_another_part_alone():
    size = 9
    one, parts = SignedMap.identity(1), SignedMap.identity(size)

    def swap(i, j):
        index = list(range(size))
        index[i], index[j] = j, i
        return Candidate(SignedMap.of(index), one, SignedMap.of(index))

    known = Products([swap(0, j) for j in range(1, size - 1)], Candidate(parts, one, parts))
    group = name_group(known)
    assert (group.name, group.order, len(group.generators)) == ("S8", 40_320, 2)
    assert parse_group(group.written, "group").order == 40_320
    assert swap(3, 5) in known
    assert swap(3, size - 1) not in known
    assert not known.moves_actions_alone


@pytest.mark.parametrize(
    ("space", "index"),
    [
        (gym.spaces.MultiDiscrete([3, 3, 2]), (5, 4, 3, 0, 1, 2, 7, 6)),
        (gym.spaces.MultiBinary(3), (3, 2, 0, 1, 4, 5)),
    ],
)
def test_a_map_of_the_values_of_actions_is_matched_and_written_as_the_map_it_is(space, index):
    values = ActionValues(space)
    misfit = np.ones((values.total,) * 2)
    misfit[np.arange(values.total), index] = 0.0
    assert values.match(misfit, range(values.total)).index == index
    entry = parse_entry(values.write(index), "action")
    space.seed(0)
    for action in (space.sample() for _ in range(10)):
        image = values.image(index, action)
        assert np.array_equal(entry.apply(action), image)
        assert space.contains(image)


def test_joint_actions_over_which_effects_are_averaged_favour_no_value_and_no_component():
    values = ActionValues(gym.spaces.MultiDiscrete([3, 2, 3, 2, 3, 3]))
    bases = np.array(values.bases)
    for part in range(6):
        _, times = np.unique(bases[:, part], return_counts=True)
        assert len(times) == values.counts[part]
        assert len(set(times.tolist())) == 1
    # The first and third components, of one count, take the same values in every one.
    assert np.array_equal(bases[:, 0] - values.firsts[0], bases[:, 2] - values.firsts[2])
    assert len(bases) == 6


def test_reduced_observations_are_moved_without_arrays_of_all_pixels(monkeypatch):
    """An image has tens of thousands of components, which took most of the time of a search."""
    space = gym.spaces.Dict(
        eye=gym.spaces.Box(0, 1, (2, 32, 32)), goal=gym.spaces.Box(0, 1, (32, 32)), speed=gym.spaces.Box(-1, 1, (2,))
    )
    parts = Parts.of(space)
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(5, parts.width))
    small, pictures = parts.split(parts.reduce(flat))
    np.testing.assert_array_equal(small, parts.shrink(flat))
    np.testing.assert_array_equal(pictures, parts.join_pictures(flat))
    widths, apply = [], SignedMap.apply
    beside = next(each for name, each in parts.list_maps()[0] if name == "flip_lr" and not each.is_identity)
    monkeypatch.setattr(SignedMap, "apply", lambda self, rows: widths.append(rows.shape[-1]) or apply(self, rows))
    moved = parts.move("flip_lr", beside, small)
    assert widths == [2]
    np.testing.assert_allclose(moved, parts.shrink(parts.lift("flip_lr", beside).apply(flat)), atol=1e-12)


@pytest.mark.parametrize("shape", [(4, 5, 1), (2, 4, 5)])
def test_a_mask_of_the_cells_of_a_picture_turns_with_it_or_stays(shape):
    """A mask of legal moves has one number for each cell."""
    board = gym.spaces.Box(0, 1, shape)
    height, width = 4, 5
    parts = Parts.of(gym.spaces.Dict(board=board, mask=gym.spaces.MultiBinary(height * width)))
    maps, listed = parts.list_maps()
    assert not listed  # other maps of the mask alone are not tried
    masks = {name: set() for name, _ in maps}
    for name, beside in maps:
        masks[name].add(parts.lift(name, beside).index[parts.beside[0].at])
    still, first = tuple(parts.beside[0].first + np.arange(20)), parts.beside[0].first
    for name, moved in masks.items():
        assert moved == {still, tuple(first + i for i in turn_picture(name, (height, width), "first"))}


@pytest.mark.parametrize(("images", "refuted"), [((0, 1, 2), "effects of actions"), ((1, 0, 2), "")])
def test_an_action_map_that_does_not_belong_to_a_reflection_is_refuted_by_what_actions_do_to_images(images, refuted):
    """A point is moved up, down or not at all: a picture upside down exchanges up and down."""
    rng = np.random.default_rng(3)
    places, actions = np.zeros((80, 21), dtype=int), rng.integers(3, size=(80, 20))
    places[:, 0] = rng.integers(5, size=80)
    for t in range(20):
        places[:, t + 1] = np.clip(places[:, t] + np.array([-1, 1, 0])[actions[:, t]], 0, 4)
    seen = np.eye(5)[places]  # a picture of 5 x 1
    before, after = seen[:, :-1].reshape(-1, 5), seen[:, 1:].reshape(-1, 5)
    number = np.repeat(np.arange(80), 20)
    rollouts = Rollouts(before, after, np.eye(3)[actions.ravel()], np.zeros(1600), np.zeros(1600, dtype=bool), number)
    effects = ActionEffects(rollouts, rng)
    assert effects.refute(lambda rows: rows[:, ::-1], 2, SignedMap.of(images), 1e-4) == refuted
    assert effects.refute(lambda rows: rows[:, ::-1], 2, None, 1e-4) == ""
