"""Parts of the checks of mirror functions and policies by themselves: round trips, closed forms, limits."""

import math
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
import torch

from symcheck.engine.mirrors.rows import columns_that_differ
from symcheck.engine.policies.images import image_of, image_of_deviations, words_of
from symcheck.engine.policies.normalised import Normalised
from symcheck.engine.policies.normalisers import average, has_statistics, statistics_of, symmetrise_normaliser
from symcheck.engine.policies.residuals import measure_residual, random_rows
from symcheck.entries.forms import AffineEntry, IdentityEntry, SpatialEntry, TreeEntry
from symcheck.errors import SpecError
from symcheck.groups import catalog
from symcheck.mirror_functions import last_action
from symcheck.mirror_functions.affine_recovery import by_leaf, permuted_values, recover
from symcheck.mirror_functions.batched_values import layout_of_space, layout_of_value, ranges
from symcheck.mirror_functions.tensor_groups import TensorGroups
from symcheck.symmetry.symmetry import Symmetry

RNG = np.random.default_rng(0)
SPACE = gym.spaces.Dict(
    {
        "arm": gym.spaces.Box(-1.0, 1.0, (2, 3)),
        "more": gym.spaces.Dict({"mode": gym.spaces.Discrete(3, start=2), "on": gym.spaces.MultiBinary(2)}),
        "counts": gym.spaces.MultiDiscrete([4, 2]),
    }
)


def test_a_layout_lists_every_array_and_gives_values_back():
    layout = layout_of_space("observation", SPACE)
    told = {
        leaf.path: (leaf.start, leaf.size, leaf.low.tolist(), leaf.high.tolist(), leaf.first) for leaf in layout.leaves
    }
    assert told[("arm",)][1:2] == (6,)
    assert told[("more", "mode")][1:] == (1, [2.0], [4.0], 2)
    assert told[("more", "on")][1:] == (2, [0.0, 0.0], [1.0, 1.0], None)
    assert told[("counts",)][1:] == (2, [0.0, 0.0], [3.0, 1.0], None)
    assert (layout.width, layout.is_one_array) == (11, False)
    assert (
        sorted(start for start, *_ in told.values())
        == np.cumsum([0, *[leaf.size for leaf in layout.leaves]])[:-1].tolist()
    )
    table = layout.sample(RNG, 50)
    arrays = layout.arrays(table, np.float32)
    assert (arrays["arm"].dtype, arrays["more"]["mode"].dtype) == (np.float32, np.int64)
    assert arrays["arm"].shape == (50, 2, 3)
    np.testing.assert_allclose(layout.table(arrays), table, rtol=1e-6)
    assert layout.arrays(table, np.float32, all_floating=True)["more"]["on"].dtype == np.float32
    assert set(np.unique(arrays["more"]["mode"])) == {2, 3, 4}
    assert set(np.unique(arrays["counts"][:, 0])) == {0, 1, 2, 3}
    assert not next(leaf for leaf in layout.leaves if leaf.path == ("more", "mode")).is_vector
    for value, message in (
        ({**arrays, "arm": arrays["arm"][:, :1]}, r"shape \(rows, 2, 3\), got \(50, 1, 3\)"),
        ({**arrays, "arm": arrays["arm"][:49]}, r"equal length, got \[49, 50\] rows"),
        ({"arm": arrays["arm"]}, r"the entry '(more|counts)'"),
        ({**arrays, "arm": {"x": arrays["arm"]}}, "as one tensor, got a dictionary"),
    ):
        with pytest.raises(SpecError, match=message):
            layout.table(value)
    whole = layout_of_space("action", gym.spaces.Box(-1, 1, (2,)))
    assert whole.is_one_array
    assert whole.arrays(np.ones((3, 2)), np.float32).shape == (3, 2)
    with pytest.raises(SpecError, match="expected actions in a Box"):
        layout_of_space("action", gym.spaces.Text(3))
    shown = layout_of_value("observation", {"a": np.zeros((5, 2)), "b": {"c": np.zeros((5, 3, 2))}})
    assert [(leaf.path, leaf.start, leaf.shape) for leaf in shown.leaves] == [
        (("a",), 0, (2,)),
        (("b", "c"), 2, (3, 2)),
    ]
    mask = np.zeros(8, dtype=bool)
    mask[[1, 2, 3, 4]] = True
    assert shown.words(mask) == "observation['a'] column 1 and observation['b']['c'] columns 0 to 2"


def test_samples_are_uniform_between_narrow_bounds_and_normal_beside_wide_ones():
    low, high = np.float32([-1e4, -1.01e4, 3.0, -np.inf, -np.inf]), np.float32([1e4, 1.01e4, np.inf, -3.0, np.inf])
    drawn = layout_of_space("observation", gym.spaces.Box(low, high)).sample(np.random.default_rng(0), 4000)
    assert np.abs(drawn[:, 0]).max() > 9e3
    assert 2 < np.abs(drawn[:, 1]).max() < 6
    assert drawn[:, 2].min() >= 3.0
    assert drawn[:, 3].max() <= -3.0
    for column, centre in ((2, 3.0), (3, -3.0)):  # half of a normal distribution: its mean is 0.8
        assert abs(drawn[:, column] - centre).mean() == pytest.approx(math.sqrt(2 / math.pi), abs=0.05)
    assert drawn[:, [1, 4]].std(0) == pytest.approx([1.0, 1.0], abs=0.06)
    huge = layout_of_space("observation", gym.spaces.Box(-(2**60), 2**60, (1,), np.int64)).sample(RNG, 3000)
    assert (huge.min() < -900, huge.max() > 900, np.abs(huge).max() <= 1000) == (True, True, True)


def test_at_most_six_ranges_are_listed():
    assert ranges([0, 2, 4, 6, 8, 10, 11]) == "0, 2, 4, 6, 8, 10 to 11"
    assert ranges([0, 2, 4, 6, 8, 10, 12]) == "0, 2, 4, 6, 8, and 2 more ranges"


def _blocks(*maps):
    return lambda table: np.stack([each(table) for each in maps])


def test_affine_maps_are_read_from_their_images_and_others_are_not():
    two, samples = catalog.cyclic(2), RNG.normal(size=(20, 4))
    index, sign, offset = np.array([1, 0, 3, 2]), np.array([-1, -1, 1, 1]), np.array([2.0, 2.0, 0.5, -0.5])
    (entry,) = recover(_blocks(lambda x: x, lambda x: sign * x[:, index] + offset), two, [1], samples)
    assert entry.index is not None
    np.testing.assert_allclose(entry.apply(samples), sign * samples[:, index] + offset)
    (plain,) = recover(_blocks(lambda x: x, lambda x: sign * x[:, index]), two, [1], samples)
    assert plain.offset is None
    mirror = np.eye(4) - 2 * np.outer([0.6, 0.8, 0, 0], [0.6, 0.8, 0, 0])
    (dense,) = recover(_blocks(lambda x: x, lambda x: x @ mirror.T), two, [1], samples)
    np.testing.assert_allclose(dense.dense(), mirror, atol=1e-12)
    assert dense.offset is None
    shift = np.array([0.6, 0.8, 0.0, 0.0])
    (moved,) = recover(_blocks(lambda x: x, lambda x: x @ mirror.T + shift), two, [1], samples)
    np.testing.assert_allclose(moved.apply(samples), samples @ mirror.T + shift, atol=1e-12)
    for wrong in (lambda x: -np.abs(x), lambda x: np.where(np.abs(x) > 1.5, x, -x), lambda x: x[:, [0, 0, 1, 2]]):
        assert recover(_blocks(lambda x: x, wrong), two, [1], samples) is None
    assert recover(_blocks(lambda x: x, lambda x: x @ (1.001 * mirror).T), two, [1], samples) is None


def test_values_of_a_discrete_space_are_permuted_or_not_read():
    (leaf,) = layout_of_space("action", gym.spaces.Discrete(3, start=2)).leaves
    (entry,) = permuted_values(_blocks(lambda x: x, lambda x: np.choose(x.astype(int) - 2, [3, 2, 4])), leaf, [1])
    assert entry.index.tolist() == [1, 0, 2]
    for wrong in ([2, 2, 4], [3, 4, 5], [2.5, 3, 4]):
        assert permuted_values(_blocks(lambda x, w=wrong: np.choose(x.astype(int) - 2, w)), leaf, [0]) is None


def test_maps_of_a_table_become_entries_of_its_parts_and_images_named_operators():
    space = gym.spaces.Dict(
        {"a": gym.spaces.Box(-1, 1, (2,)), "b": gym.spaces.Dict({"c": gym.spaces.Box(-1, 1, (3, 3))})}
    )
    leaves = layout_of_space("observation", space).leaves
    picture = np.arange(9).reshape(3, 3)
    for name, operator in (("rot90", np.rot90), ("flip", None), ("transpose", np.transpose)):
        image = picture[:, ::-1] if operator is None else operator(picture)
        entry = AffineEntry(
            index=np.concatenate([[1, 0], 2 + np.argsort(image.reshape(-1))]), sign=np.array([-1, 1] + [1] * 9)
        )
        tree = by_leaf(entry, leaves)
        assert isinstance(tree, TreeEntry)
        assert tree.children["a"].sign.tolist() == [-1, 1]
        part = tree.children["b"].children["c"]
        assert isinstance(part, SpatialEntry)
        assert np.array_equal(part.apply(picture[None].astype(float))[0], image), name
    still = AffineEntry(index=np.arange(11), sign=np.ones(11, dtype=int))
    assert isinstance(by_leaf(still, leaves).children["b"].children["c"], IdentityEntry)
    negated = AffineEntry(index=np.arange(11), sign=np.array([1, 1] + [-1] * 9))
    assert isinstance(by_leaf(negated, leaves).children["b"].children["c"], AffineEntry)
    mixed = AffineEntry(index=np.array([2, 1, 0, *range(3, 11)]), sign=np.ones(11, dtype=int))
    assert by_leaf(mixed, leaves) is None
    for leak, kept in ((0.9e-6, True), (1.1e-6, False)):
        matrix = np.eye(11) * 0.5
        matrix[0, 5] = leak
        assert (by_leaf(AffineEntry(matrix=matrix), leaves) is not None) == kept
    (one,) = layout_of_space("observation", gym.spaces.Box(-1, 1, (2,))).leaves
    assert isinstance(by_leaf(AffineEntry(index=np.array([1, 0]), sign=np.ones(2, dtype=int)), [one]), AffineEntry)
    wide = layout_of_space("observation", gym.spaces.Box(-1, 1, (2, 3))).leaves
    turned = AffineEntry(index=np.arange(6).reshape(2, 3)[:, ::-1].reshape(-1), sign=np.ones(6, dtype=int))
    assert isinstance(by_leaf(turned, wide), SpatialEntry)


class History(gym.Env):
    """Shows the last actions, the newest first, and a constant."""

    def __init__(self, shown, *, ends=99):
        self.shown, self.ends = shown, ends
        self.action_space = gym.spaces.Box(-1, 1, (2,))
        self.observation_space = gym.spaces.Box(-1, 1, (2 * shown + 1,))

    def reset(self, *, seed=None, options=None):
        self.taken = [np.zeros(2)] * self.shown
        return self._seen(), {}

    def step(self, action):
        self.taken = [np.asarray(action), *self.taken[:-1]]
        self.ends -= 1
        return self._seen(), 0.0, self.ends == 0, False, {}

    def _seen(self):
        return np.concatenate([[0.5], *self.taken]).astype(np.float32)


@pytest.mark.parametrize(("ends", "found"), [(99, 3), (6, 3), (5, 2), (4, 1), (3, 0)])
def test_past_actions_are_found_up_to_two_steps_late_where_four_steps_agree(ends, found):
    env = History(4, ends=ends)
    layouts = layout_of_space("observation", env.observation_space), layout_of_space("action", env.action_space)
    slots = last_action.seen_slots(env, *layouts, np.random.default_rng(0))
    assert [(slot.start, slot.stop) for slot in slots] == [(1 + 2 * k, 3 + 2 * k) for k in range(found)]
    assert env.ends == ends  # a copy was stepped
    discrete = layout_of_space("action", gym.spaces.Discrete(2))
    assert last_action.seen_slots(env, layouts[0], discrete, RNG) == []
    assert last_action.seen_slots(SimpleNamespace(num_envs=2), *layouts, RNG) is None
    assert last_action.seen_slots(SimpleNamespace(step=None, reset=None), *layouts, RNG) is None
    narrow = layout_of_space("observation", gym.spaces.Box(-1, 1, (1,)))
    assert last_action.seen_slots(env, narrow, layouts[1], RNG) == []


def test_slots_that_are_declared_are_read_in_every_form_and_refused_beyond_their_array():
    observation = layout_of_space("observation", gym.spaces.Dict({"policy": gym.spaces.Box(-1, 1, (6,))}))
    action = layout_of_space("action", gym.spaces.Box(-1, 1, (2,)))
    for declared in ((4, 6), [4, 6], slice(4, 6)):
        (slot,) = last_action.declared_slots({"policy": declared}, observation, action)
        assert (slot.start, slot.stop, slot.columns) == (4, 6, slice(4, 6))
    assert last_action.declared_slots({"policy": slice(None, 2)}, observation, action)[0].start == 0
    for wrong in ((5, 7), (-1, 1), (2, 2), (1, 4), (4, 2)):
        with pytest.raises(SpecError, match="the action has 2 components, so"):
            last_action.declared_slots({"policy": wrong}, observation, action)
    for wrong in ("46", (4,), (4, 6, 8), (4.0, 6.0), (True, 3), 4):
        with pytest.raises(SpecError, match=r"expected columns \(start, stop\)"):
            last_action.declared_slots({"policy": wrong}, observation, action)
    with pytest.raises(SpecError, match=r"there are \[\['policy'\]\]"):
        last_action.declared_slots((4, 6), observation, action)


def test_columns_differ_beyond_the_rounding_of_their_own_size_and_of_the_batch():
    given = np.full((2, 3), 0.25)
    expected = np.array([[1.0, 100.0, 0.0], [0.5, 100.0, 0.0]])
    slack = 4e-6 * 0.25
    for share, differs in ((0.99, False), (1.01, True)):
        off = share * (1e-5 * np.array([1.0, 100.0, 0.0]) + slack)
        assert columns_that_differ(expected, expected + np.stack([0 * off, off]), given)[:2].tolist() == [differs] * 2
    for left, right, same in (
        (np.inf, np.inf, True),
        (np.inf, 1.0, False),
        (np.nan, np.nan, False),
        (np.inf, -np.inf, False),
    ):
        one, other = expected.copy(), expected.copy()
        one[0, 1], other[0, 1] = left, right
        assert columns_that_differ(one, other, given).tolist() == [False, not same, False]


def test_groups_of_tensors_behave_as_dictionaries_with_rows():
    groups = TensorGroups({"a": torch.arange(3.0), "b": {"c": torch.ones(3, 2)}}, batch_size=[3])
    assert (len(groups), groups.keys(), "a" in groups, "x" in groups) == (3, ["a", "b"], True, False)
    assert groups["b", "c"].shape == (3, 2)
    assert groups["a",].tolist() == [0, 1, 2]
    assert groups[1:]["a"].tolist() == [1, 2]
    rows = TensorGroups({"a": torch.arange(6.0).reshape(3, 2)})
    assert [row["a"].tolist() for row in rows] == [[0, 1], [2, 3], [4, 5]]
    assert groups.get("x", 7) == 7
    assert groups.select("a").keys() == ["a"]
    assert groups.exclude("a").keys() == ["b"]
    groups[0] = {"a": torch.tensor(9.0), "b": {"c": torch.zeros(2)}}
    assert groups["a"].tolist() == [9, 1, 2]
    assert groups["b", "c"][0].tolist() == [0, 0]
    assert groups.set("d", torch.zeros(3)).pop("d").tolist() == [0, 0, 0]
    assert groups.pop("d", None) is None
    groups.update({"e": torch.ones(3)})
    del groups["e"]
    assert set(groups.to_dict()) == {"a", "b"}
    assert [name for name, _ in groups.items()] == ["a", "b"]
    assert len(list(groups.values())) == 2


def test_every_element_of_up_to_sixteen_is_tested_and_of_more_the_generators():
    def words(group):
        return words_of(SimpleNamespace(group=group))

    assert len(words(catalog.cyclic(16))) == 15
    assert words(catalog.cyclic(17)) == [(0,)]
    assert words(catalog.dihedral(9)) == [(0,), (1,)]


def test_the_last_letter_is_applied_first():
    turn, swap = (
        AffineEntry(index=np.array([1, 0]), sign=np.array([-1, 1])),
        AffineEntry(index=np.array([1, 0]), sign=np.array([1, 1])),
    )
    batch = np.array([[1.0, 2.0], [3.0, 4.0]])
    made = image_of([turn, swap], (0, 1), batch, "observation")
    assert np.array_equal(made, turn.apply(swap.apply(batch)))
    assert not np.array_equal(made, swap.apply(turn.apply(batch)))
    angle = 0.3
    matrix = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    deviations = image_of_deviations([turn, AffineEntry(matrix=matrix)], (0, 1), batch, "action")
    squares = batch**2 @ (matrix**2).T
    np.testing.assert_allclose(deviations, np.sqrt(squares)[:, ::-1])
    tree = TreeEntry({"a": turn})
    moved = image_of([tree], (0,), {"a": batch, "b": batch}, "observation")
    assert np.array_equal(moved["a"], turn.apply(batch))
    assert moved["b"] is batch
    for entries, given, message in (
        ([tree], batch, "is a mapping by key"),
        ([turn], {"a": batch}, "has the keys a"),
        ([turn], np.ones((2, 3)), "acts on 2 components, but each state in the data has 3"),
    ):
        with pytest.raises(SpecError, match=message):
            image_of(entries, (0,), given, "observation")


MIRROR = Symmetry("mirror", catalog.cyclic(2), observation=[["-2", "-1", "3"]], action=[["-1", "2"]])


def test_the_residual_of_a_policy_is_that_of_all_its_images():
    weight = torch.tensor([[1.0, 0.5, 0.0], [0.25, 0.0, 2.0]], dtype=torch.float64)
    states = torch.from_numpy(RNG.normal(size=(50, 3)))
    told = measure_residual(lambda x: x @ weight.T, MIRROR, states)
    moved = torch.stack([-states[:, 1], -states[:, 0], states[:, 2]], 1)
    gap = (moved @ weight.T - (states @ weight.T) * torch.tensor([-1.0, 1.0])).abs()
    spread = (states @ weight.T).std(0, correction=0).mean()
    assert told == {
        "residual_max": pytest.approx(float(gap.max())),
        "residual_mean": pytest.approx(float(gap.mean())),
        "residual_relative": pytest.approx(float(gap.mean() / spread)),
    }
    groups = {"policy": states, "critic": torch.ones(50, 1)}
    assert measure_residual(lambda seen: seen["policy"] @ weight.T, MIRROR, groups) == told
    assert measure_residual(lambda x: torch.ones(len(x), 2), MIRROR, states)["residual_relative"] == 0.0
    assert (len(random_rows(2048)), len(random_rows(2049)), len(set(random_rows(5000).tolist()))) == (2048, 2048, 2048)
    assert torch.equal(random_rows(100), random_rows(100))


def test_averaged_statistics_are_those_of_the_data_and_all_its_images():
    data = RNG.normal(size=(4000, 3)) * [1.0, 2.0, 3.0] + [1.0, -4.0, 2.0]
    images = np.stack([-data[:, 1], -data[:, 0], data[:, 2]], 1)
    both = np.concatenate([data, images])
    for names, power in ((("mean", "var"), 2), (("_mean", "_std"), 1), (("running_mean", "running_var"), 2)):
        state = dict(zip(names, (data.mean(0), data.std(0) ** power), strict=True))
        repaired = symmetrise_normaliser(state, MIRROR)
        np.testing.assert_allclose(repaired[names[0]], both.mean(0), atol=1e-12)
        np.testing.assert_allclose(repaired[names[1]], both.std(0) ** power, rtol=1e-9)
        mean, variance = statistics_of(state)
        np.testing.assert_allclose((mean, variance), (data.mean(0), data.var(0)), rtol=1e-12)
    assert has_statistics(SimpleNamespace(mean=1, std=2))
    assert not has_statistics(SimpleNamespace(mean=1))
    assert not has_statistics(SimpleNamespace(var=1))
    with pytest.raises(SpecError, match=r"got \['mean'\]"):
        symmetrise_normaliser({"mean": data.mean(0)}, MIRROR)


@pytest.mark.parametrize(("off", "named"), [(0.9e-3, []), (1.1e-3, [0, 1])])
def test_statistics_that_differ_by_more_than_a_thousandth_of_a_deviation_are_named(off, named):
    module = torch.nn.Module()
    module.register_buffer("mean", torch.tensor([1.0 + 2 * off * 2.0, -1.0, 5.0], dtype=torch.float64))
    module.register_buffer("var", torch.tensor([4.0, 4.0, 9.0], dtype=torch.float64))
    columns = Normalised(module, None, ((3,),)).one_sided_columns(MIRROR)
    assert [each["column"] for each in columns] == named
    for each in columns:
        assert each["relative"] == pytest.approx(off, rel=1e-3)
        assert each["symmetric_mean"] == pytest.approx({0: 1.0 + 2 * off, 1: -1.0 - 2 * off}[each["column"]])
    module.mean[0], module.var[0] = 1.0, 4.0 * (1 + 8 * off)  # the mean of both is 1 + 4 off times as large
    assert [each["column"] for each in Normalised(module, None, ((3,),)).one_sided_columns(MIRROR)] == [0, 1]


def test_a_matrix_may_mix_columns_of_equal_variance_alone():
    angle = 2 * np.pi / 3
    matrix = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    turn = Symmetry("turn", catalog.cyclic(3), observation=[matrix.tolist()], action=[[0, 1]])
    mean, variance = average(np.array([1.0, 2.0]), np.array([4.0, 4.0]), list(turn.observation), turn)
    np.testing.assert_allclose(mean, 0.0, atol=1e-12)
    np.testing.assert_allclose(variance, 4.0 + 2.5)
