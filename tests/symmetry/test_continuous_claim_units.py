"""Claims of continuous groups one part at a time: elements, compositions, spaces, relations, tested elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from scipy.linalg import expm

from symcheck import groups
from symcheck import representations as reps
from symcheck.entries.forms import AffineEntry, FunctionEntry, IdentityEntry, SpatialEntry, TreeEntry, parse_entry
from symcheck.entries.lie_forms import LieEntry, LieFunctionEntry, parse_lie_entry
from symcheck.errors import RepresentationError, SpecError
from symcheck.symmetry import compositions, elements, lie_claims, lie_spaces
from symcheck.symmetry.bound import UNIFORM, group_by_word, pooled
from symcheck.symmetry.space_maps import fit
from symcheck.symmetry.symmetry import Symmetry
from symcheck.symmetry.tested import BoundTested, concrete_claim

C2, C3, C4, S3 = (groups.named(n) for n in ("C2", "C3", "C4", "S3"))
EPS32 = float(np.finfo(np.float32).eps)
BOX = spaces.Box(-1, 1, (2,), np.float32)


# --- elements of continuous groups


@pytest.mark.parametrize("angle", [0.3, math.pi / 2, 2.0])
def test_the_least_moved_harmonic_is_that_of_a_list(angle: float) -> None:
    for harmonics in (1, 4, 8):
        listed = [abs(2 * math.sin(k * angle / 2)) for k in range(1, harmonics + 1)]
        assert elements._least_moved(angle, harmonics) == pytest.approx(min(listed), abs=1e-15)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_the_angles_of_a_product_are_those_of_its_planes(n: int) -> None:
    factor = groups.so(n).factors[0]
    angles = [float(a) for a in np.random.default_rng(n).uniform(0.1, 1.0, len(factor.planes))]
    whole = np.eye(n)
    for (i, j), angle in zip(factor.planes, angles, strict=True):
        generator = np.zeros((n, n))
        generator[j, i], generator[i, j] = 1, -1
        whole = whole @ expm(angle * generator)
    found = elements._angles_of(factor, angles)
    assert len(found) == n // 2
    # 2 cos of each angle, and 1 for the axis of an odd dimension, add up to the trace.
    assert sum(2 * math.cos(a) for a in found) + n % 2 == pytest.approx(np.trace(whole))
    assert all(0 <= a <= math.pi for a in found)


@pytest.mark.parametrize("group", [groups.translations(2), groups.se(2), groups.e(3)], ids=str)
def test_translations_are_drawn_with_both_signs_between_a_third_and_all_of_their_size(group: Any) -> None:
    size = {i: 10.0**i for i in range(len(group.algebra))}
    drawn: dict[int, list[float]] = {}
    for seed in range(30):
        chosen = elements.generic_elements(group, np.random.default_rng(seed), size.__getitem__)
        shifts = [e for e in chosen if any(t is not None and not group.turns(i) for i, t in e.factors)]
        count = group.factors[0].shifts
        assert len(shifts) == count + 1
        assert all(len(e.factors) == count for e in shifts)
        for e in shifts:
            for i, t in e.factors:
                assert t is not None
                drawn.setdefault(i, []).append(t / size[i])
        assert len(chosen) == len(shifts) + (
            0 if not group.factors[0].turns else 1 if group.factors[0].n == 2 else 2
        ) + (len(group.generators))
    for values in drawn.values():
        sizes = np.abs(values)
        assert 1 / 3 <= sizes.min() < 0.4
        assert 0.9 < sizes.max() <= 1
        assert min(values) < 0 < max(values)


def test_an_element_is_read_as_it_is_printed() -> None:
    group = groups.o(2)
    read = elements.read_element(group, "turn reflection turn", [0.5, -1.25])
    assert read.factors == ((0, 0.5), (0, None), (0, -1.25))
    assert read.parameters == (0.5, -1.25)
    assert str(read) == "turn(0.5) reflection turn(-1.25)"
    for word, amounts in (("turn", []), ("turn", [1.0, 2.0]), ("reflection", [1.0]), ("spin", [1.0])):
        with pytest.raises(SpecError, match=f"has no element '{word}' with {len(amounts)} parameters"):
            elements.read_element(group, word, amounts)


@pytest.mark.parametrize("group", [groups.so(2), groups.so(3), groups.se(2), groups.e(2), groups.o(3)], ids=str)
def test_every_relation_is_the_identity_and_covers_each_generator(group: Any) -> None:
    words = elements.axiom_words(group, lambda i: 2.5)
    named = {(i, t is None) for word in words for i, t in word}
    assert named == {
        *((i, False) for i in range(len(group.algebra))),
        *((h, True) for h in range(len(group.generators))),
    }
    for word in words:
        product = group.identity
        for i, t in word:
            product = product * (group.generators[i] if t is None else group.exp(i, t))
        for part, unit in zip(product.parts, group.identity.parts, strict=True):
            np.testing.assert_allclose(part, unit, atol=1e-12)
    shifts = [abs(t) for word in words for i, t in word if t is not None and not group.turns(i)]
    assert not shifts or max(shifts) == pytest.approx(1.8 * 2.5)


# --- compositions


def _turn(amount: float) -> np.ndarray:
    return np.array([[math.cos(amount), -math.sin(amount)], [math.sin(amount), math.cos(amount)]])


def test_a_product_applies_its_last_factor_first() -> None:
    turn, flip = LieEntry(planes=((0, 1, 1.0),)), parse_entry([1, -1], "")
    move = LieEntry(shift=np.array([1.0, 0.0]))
    steps = [compositions.Step(turn, 0.5), compositions.Step(flip, None), compositions.Step(move, 2.0)]
    value = np.array([0.3, 0.7])
    expected = _turn(0.5) @ (np.diag([1, -1]) @ (value + np.array([2.0, 0.0])))
    whole = compositions.compose(steps, spaces.Box(-9, 9, (2,)), None)
    assert isinstance(whole, AffineEntry)
    np.testing.assert_allclose(whole.apply(value), expected, atol=1e-14)
    unsized = compositions.compose(steps, None, None)
    np.testing.assert_allclose(fit(unsized, None, "").image(value), expected, atol=1e-14)
    called = [*steps, compositions.Step(FunctionEntry(lambda v: 2 * v), None)]
    function = compositions.compose(called, spaces.Box(-9, 9, (2,)), None)
    assert isinstance(function, FunctionEntry)
    np.testing.assert_allclose(
        function.function(value), _turn(0.5) @ (np.diag([1, -1]) @ (2 * value + np.array([2.0, 0.0]))), atol=1e-14
    )
    assert isinstance(compositions.compose([compositions.Step(IdentityEntry(), None)], None, None), IdentityEntry)
    alone = compositions.compose([compositions.Step(IdentityEntry(), 0.3), compositions.Step(flip, None)], None, None)
    assert alone is flip


@pytest.mark.parametrize("start", [0, 5])
def test_products_of_discrete_generators_permute_values_turn_images_and_stay_exact(start: int) -> None:
    cycle, swap = (
        compositions.Step(parse_entry([1, 2, 0], ""), None),
        compositions.Step(parse_entry([1, 0, 2], ""), None),
    )
    space = spaces.Discrete(3, start=start)
    whole = fit(compositions.compose([cycle, swap, cycle], space, None), space, "action")
    # The last acts first: 0 -> 1 -> 0 -> 1, 1 -> 2 -> 2 -> 0, 2 -> 0 -> 1 -> 2.
    assert [int(whole.image(k + start)) - start for k in range(3)] == [1, 0, 2]
    signed = compositions.compose(
        [compositions.Step(parse_entry(["-2", "+3", "+1"], ""), None), swap], spaces.Box(-9, 9, (3,)), None
    )
    assert isinstance(signed, AffineEntry)
    assert signed.is_signed_permutation
    value = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(signed.apply(value), parse_entry(["-2", "+3", "+1"], "").apply(value[[1, 0, 2]]))
    flipped = parse_entry({"signs": [-1, 1, 1], "offset": [1, 0, 0]}, "")
    bits = compositions.compose([cycle, compositions.Step(flipped, None)], spaces.MultiBinary(3), None)
    assert isinstance(bits, AffineEntry)
    np.testing.assert_array_equal(bits.apply(np.array([1, 1, 0], np.int8)), [0, 0, 1])
    image = np.arange(9.0).reshape(3, 3)
    quarter, mirror = (compositions.Step(SpatialEntry(name), None) for name in ("rot90", "flip_ud"))
    turned = fit(compositions.compose([quarter, mirror], spaces.Box(0, 9, (3, 3)), None), None, "observation")
    np.testing.assert_array_equal(turned.image(image), np.rot90(image[::-1]))
    np.testing.assert_array_equal(turned.batch(np.stack([image] * 2)), [np.rot90(image[::-1])] * 2)


def test_an_action_sees_the_observation_as_its_factor_does() -> None:
    def push(action: np.ndarray, obs: np.ndarray, t: float) -> np.ndarray:
        return action + t * obs

    obs_steps = [compositions.Step(LieEntry(planes=((0, 1, 1.0),)), t) for t in (0.4, 0.9)]
    steps = [compositions.Step(LieFunctionEntry(push), t) for t in (0.4, 0.9)]
    function = compositions.compose(steps, BOX, obs_steps)
    assert isinstance(function, FunctionEntry)
    action, obs = np.array([1.0, 2.0]), np.array([3.0, -1.0])
    expected = action + 0.9 * obs + 0.4 * (_turn(0.9) @ obs)
    np.testing.assert_allclose(function.function(action, obs), expected, atol=1e-14)
    with pytest.raises(ValueError, match="zip"):
        compositions.compose(steps, BOX, obs_steps[:1]).function(action, obs)  # type: ignore[union-attr]


def test_trees_are_composed_key_by_key_and_other_keys_stay() -> None:
    turn, flip = LieEntry(planes=((0, 1, 1.0),)), parse_entry([1, -1], "")
    space = spaces.Dict({"a": BOX, "b": BOX, "c": BOX})
    steps = [compositions.Step(TreeEntry({"a": turn}), 0.7), compositions.Step(TreeEntry({"a": flip, "b": flip}), None)]
    whole = compositions.compose(steps, space, None)
    assert isinstance(whole, TreeEntry)
    value = {key: np.array([0.1, 0.2]) for key in "abc"}
    image = fit(whole, space, "").image(value)
    np.testing.assert_allclose(image["a"], _turn(0.7) @ [0.1, -0.2])
    np.testing.assert_allclose(image["b"], [0.1, -0.2])
    np.testing.assert_allclose(image["c"], [0.1, 0.2])
    pair = spaces.Tuple([BOX, BOX])
    whole = compositions.compose([compositions.Step(TreeEntry({"1": turn}), 0.7)], pair, None)
    image = fit(whole, pair, "").image((np.array([1.0, 0.0]), np.array([1.0, 0.0])))
    np.testing.assert_allclose(image, [[1, 0], [math.cos(0.7), math.sin(0.7)]])


def test_a_callable_beside_every_form_of_data_composes() -> None:
    double = compositions.Step(FunctionEntry(lambda v: v), None)
    value = np.array([[1.0, 2.0], [3.0, 4.0]])
    for entry, amount, expected in (
        (IdentityEntry(), None, value),
        (SpatialEntry("rot90"), None, np.rot90(value)),
        (parse_entry([1, 0, 3, 2], ""), None, [[2, 1], [4, 3]]),
        (LieEntry(planes=((0, 3, 1.0),)), math.pi / 2, [[-4, 2], [3, 1]]),
    ):
        whole = compositions.compose([compositions.Step(entry, amount), double], None, None)
        assert isinstance(whole, FunctionEntry)
        np.testing.assert_allclose(whole.function(value), expected, atol=1e-14)
    values = compositions.Step(parse_entry([2, 0, 1], ""), None)
    assert [values.call(np.int64(k)) for k in range(3)] == [2, 0, 1]
    tree = compositions.Step(TreeEntry({"a": parse_entry([-1], ""), 1: parse_entry([-1], "")}), None)
    assert tree.call({"a": np.array([2.0]), "b": 5}) == {"a": np.array([-2.0]), "b": 5}
    assert tree.call((3, np.array([2.0]))) == (3, np.array([-2.0]))
    assert compositions.calls(TreeEntry({"a": IdentityEntry(), "b": FunctionEntry(len)}))
    assert not compositions.calls(TreeEntry({"a": IdentityEntry()}))
    with pytest.raises(SpecError, match="expected an entry, got int"):
        compositions.Step(3, None).call(1)


def test_amounts_are_spreads_over_coefficients_and_one_where_nothing_varies() -> None:
    group = groups.translations(1)
    shift = Symmetry(
        "s", group, [{"shift": [2, 0, -0.5]}], ["identity"], state=[{"shift": [1]}], initial=False
    )  # component 1 is not shifted
    rng = np.random.default_rng(0)
    observed = [np.array([3 * x, 100 * x, 5.0]) for x in rng.normal(size=50)]
    spread = np.std([o[0] for o in observed])
    amount = compositions.amounts(shift, compositions.Seen(observed, ()))
    assert amount(0) == pytest.approx((spread / 2 + 1 / 0.5) / 2)
    states = [np.array([7.0 * x]) for x in range(3)]
    assert compositions.amounts(shift, compositions.Seen((), states))(0) == pytest.approx(np.std(states))
    assert compositions.amounts(shift, compositions.Seen((), ()))(0) == 1.0
    assert compositions.amounts(shift, compositions.Seen([np.zeros(4)], ()))(0) == 1.0  # of another size


# --- spaces of Lie generators


@pytest.mark.parametrize(
    ("entry", "space", "message"),
    [
        ({"rotate": [[0, 2]]}, BOX, "acts on 3 components, but the space has 2"),
        ({"algebra": np.zeros((3, 3)).tolist(), "shift": [1, 0, 0]}, BOX, "acts on 3 components"),
        ({"rotate": [[0, 1]]}, spaces.Box(0, 9, (2,), np.int64), "whole numbers"),
        ({"rotate": [[0, 1]]}, spaces.Box(0, 255, (2, 2), np.uint8), "an image"),
        ({"rotate": [[0, 1]]}, spaces.Box(0, 1, (2, 2, 2), np.float32), "an image"),
        ({"rotate": [[0, 1]]}, spaces.Discrete(2), "vectors of real numbers, got Discrete"),
        ({"rotate": [[0, 1]]}, spaces.Dict({"a": BOX}), "vectors of real numbers, got Dict"),
        (lambda v, t: v, spaces.MultiBinary(2), "vectors of real numbers"),
        ({"a": {"rotate": [[0, 2]]}}, spaces.Dict({"a": BOX}), r"\['a'\]: the entry acts on 3"),
        ({"1": {"rotate": [[0, 2]]}}, spaces.Tuple([BOX, BOX]), r"\['1'\]: the entry acts on 3"),
    ],
)
def test_a_lie_generator_that_does_not_fit_is_refused(entry: Any, space: Any, message: str) -> None:
    parsed = parse_lie_entry(entry, "")
    with pytest.raises(SpecError, match=message):
        lie_spaces._check(parsed, space, "observation[0]", of_actions=False)


@pytest.mark.parametrize(
    ("entry", "space"),
    [
        ({"rotate": [[0, 1]]}, BOX),
        ({"rotate": [[0, 1]]}, spaces.Box(-1, 1, (2, 2), np.float64)),
        ("identity", spaces.Discrete(2)),
        ({"algebra": [[0.0]]}, spaces.Discrete(2)),
        ({"shift": [0, 0]}, spaces.Box(0, 9, (2,), np.int64)),
        ({"shift": [1, 0]}, spaces.Box(np.array([-np.inf, -1], np.float32), np.array([np.inf, 1], np.float32))),
        (lambda v, t: v, spaces.Dict({"a": BOX})),
    ],
)
def test_a_lie_generator_that_fits_is_taken(entry: Any, space: Any) -> None:
    lie_spaces._check(parse_lie_entry(entry, ""), space, "action[0]", of_actions=True)


@pytest.mark.parametrize(("low", "high"), [(-1, 1), (-1, np.inf), (-np.inf, 1)])
def test_bounded_actions_are_not_shifted_and_observations_may_be(low: float, high: float) -> None:
    space = spaces.Box(np.array([-np.inf, low], np.float32), np.array([np.inf, high], np.float32))
    entry = parse_lie_entry({"shift": [1, 2]}, "")
    with pytest.raises(SpecError, match="shifts component 1, but the space is bounded"):
        lie_spaces._check(entry, space, "action[0]", of_actions=True)
    lie_spaces._check(entry, space, "observation[0]", of_actions=False)
    assert lie_spaces.size_of(spaces.Box(0, 1, (2, 3))) == 6
    assert lie_spaces.size_of(spaces.Discrete(3)) is None
    assert lie_spaces.size_of(None) is None


# --- claims of continuous groups


def test_entries_of_all_generators_have_one_size() -> None:
    turn, wide = LieEntry(planes=((0, 2, 1.0),)), parse_entry([1, -1, 1, 1], "")
    assert lie_claims.common_size([turn], [IdentityEntry()], "action") == 3
    assert lie_claims.common_size([turn], [wide], "action") == 4
    assert lie_claims.common_size([IdentityEntry()], [IdentityEntry()], "action") == 1
    with pytest.raises(SpecError, match="rotates component 2, but other entries act on 2 components"):
        lie_claims.common_size([turn], [parse_entry([1, -1], "")], "action")
    with pytest.raises(SpecError, match=r"sizes \[2, 4\]"):
        lie_claims.common_size([LieEntry(shift=np.ones(2))], [wide], "action")
    algebra, matrices = lie_claims.homogeneous([turn, IdentityEntry()], [wide, IdentityEntry()], 4)
    assert [m.shape for m in (*algebra, *matrices)] == [(5, 5)] * 4
    assert not algebra[1].any()
    np.testing.assert_array_equal(matrices[1], np.eye(5))
    np.testing.assert_array_equal(matrices[0], np.diag([1, -1, 1, 1, 1]))


def test_only_translations_that_shift_something_forbid_an_invariant_start() -> None:
    group = groups.se(2)
    still = [{"shift": [0, 0]}, "identity", {"rotate": [[0, 1]]}]
    moving = [{"shift": [1, 0]}, {"shift": [0, 1]}, {"rotate": [[0, 1]]}]
    Symmetry("still", group, still, still)
    Symmetry("actions", group, still, moving)
    Symmetry("declined", group, moving, still, initial=False)
    for observation, state in ((moving, None), (still, moving)):
        part = "observation" if state is None else "state"
        with pytest.raises(SpecError, match=rf"Symmetry\.{part}: .*no start distribution is invariant under shifts"):
            Symmetry("claimed", group, observation, still, state=state)


def test_linear_data_of_a_continuous_group_is_a_representation_for_layers() -> None:
    turn = Symmetry("turn", groups.o(2), [{"rotate": [[0, 1]]}, [1, -1, 1]], ["identity", "identity"])
    rho = turn.observation_representation
    assert rho.dim == 3
    np.testing.assert_array_equal(rho.algebra[0], [[0, -1, 0], [1, 0, 0], [0, 0, 0]])  # type: ignore[attr-defined]
    np.testing.assert_array_equal(rho.matrices[0], np.diag([1, -1, 1]))  # type: ignore[attr-defined]
    with pytest.raises(SpecError, match="expected action entries that are linear data"):
        _ = turn.action_representation
    shifted = Symmetry("s", groups.translations(1), [{"shift": [1]}], ["identity"], initial=False)
    with pytest.raises(SpecError, match="the observation entries contain shifts"):
        _ = shifted.observation_representation
    named = Symmetry("n", groups.so(2), {"representation": "vector + scalar"}, reps.vector(groups.so(2)))
    assert (named.observation_representation.dim, named.action_representation.dim) == (3, 2)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ([{"rotate": [[0, 1]]}], r"expected 2 entries for O\(2\), Lie generators first \(turn, reflection\); got 1"),
        ("vector", "got str 'vector'"),
        ({"blocks": []}, "named blocks need a finite group"),
        ([{"a": {"rotate": [[0, 1]]}}, [1, -1]], "expected every generator's entry to be a mapping"),
        ([{"rotate": [[0, 1]]}, "flip_lr"], "spatial operators act on images"),
    ],
)
def test_a_part_of_a_continuous_claim_is_refused_with_what_was_expected(written: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Symmetry("c", groups.o(2), written, ["identity", "identity"])


@pytest.mark.parametrize(("off", "refused"), [(1e-9, False), (1e-8, True)])
def test_data_of_a_continuous_group_may_be_off_by_a_billionth(off: float, refused: bool) -> None:
    written = [{"algebra": [[0, -1], [1 + off, 0]]}]
    if refused:
        with pytest.raises(RepresentationError):
            Symmetry("c", groups.so(2), written, ["identity"])
    else:
        Symmetry("c", groups.so(2), written, ["identity"])


# --- tested elements


def _bound_turn(group: Any = None, **given: Any) -> BoundTested:
    symmetry = Symmetry("turn", group or groups.o(2), [{"rotate": [[0, 1]]}, [1, -1]], [{"rotate": [[0, 1]]}, [1, -1]])
    bound = symmetry.bind(BOX, BOX)
    assert isinstance(bound, BoundTested)
    return bound


def test_letters_are_elements_relations_and_haar_elements() -> None:
    bound = _bound_turn()
    value = np.array([0.3, 0.4])
    assert bound.tested_words == ((0,), (1,))
    assert bound.compared_words == (UNIFORM, (1,))
    assert [bound.may_leave(word) for word in ((0,), (1,), UNIFORM, (0, 1), ())] == [True, False, True, True, False]
    (angle,) = bound.letter(0).parameters
    np.testing.assert_allclose(bound.observation((0,), value), _turn(angle) @ value, atol=1e-12)
    np.testing.assert_allclose(bound.observation((0, 1), value), _turn(angle) @ [0.3, -0.4], atol=1e-12)
    word = bound.spell([(0, 0.25), (0, None)])
    np.testing.assert_allclose(bound.observation(word, value), _turn(0.25) @ [0.3, -0.4], atol=1e-12)
    assert bound.spell([]) == ()
    before = len(bound._more)
    bound.forget()
    assert len(bound._more) == before - 1
    for word in bound.group.relators:
        np.testing.assert_allclose(bound.observation(word, value), value, atol=1e-12)
    first, second = bound.drawn(UNIFORM), bound.drawn(UNIFORM)
    assert (first, second) == ((-2,), (-3,))
    assert bound.drawn((0,)) == (0,)
    assert not np.allclose(bound.observation(first, value), bound.observation(second, value))
    np.testing.assert_allclose(bound.observation(first, value), bound.observation(first, value))
    images = bound.observation_batch(UNIFORM, np.stack([value] * 3))
    np.testing.assert_allclose(np.linalg.norm(images, axis=1), 0.5)
    assert len({tuple(image) for image in images}) == 3
    assert bound.label(UNIFORM) == "a uniformly drawn rotation"
    assert bound.label(()) == "identity"
    assert str(bound.label((0, 1))) == f"turn({angle:.6g}) reflection"
    assert bound.label((0, 1)).parameters == (angle,)  # type: ignore[attr-defined]
    assert bound.label((0, 1)).word == "turn reflection"  # type: ignore[attr-defined]


def test_elements_follow_the_seed() -> None:
    bound = _bound_turn()
    again, other = (bound.at_tested_elements(seed, lambda: compositions.Seen((), ())) for seed in (0, 1))
    assert again.letter(0) == bound.letter(0)
    assert other.letter(0) != bound.letter(0)
    assert other.source is bound.source
    claim = concrete_claim(bound.source, 1)
    np.testing.assert_allclose(claim.observation[0].sized(2).dense(), _turn(other.letter(0).parameters[0]))  # type: ignore[union-attr]
    pinned = bound.source.pinned("turn", [0.5])
    assert concrete_claim(pinned, 3).group.generator_names == ("turn(0.5)",)
    assert pinned.bind(BOX, BOX).tested_words == ((0,),)
    finite = Symmetry("m", C2, [[-1, -1]], [[-1, -1]])
    assert finite.pinned("g", []) is finite
    for make in (lambda: concrete_claim(finite, 0), lambda: BoundTested(finite, BOX, BOX)):
        with pytest.raises(SpecError, match="expected a continuous group, got C2"):
            make()


def test_words_are_pooled_and_grouped_in_order() -> None:
    assert pooled((-7,)) == UNIFORM
    assert pooled((0,)) == (0,)
    assert pooled((-1, 0)) == (-1, 0)
    grouped = group_by_word([(1,), (0,), (1,), (2, 0), (0,)])
    assert list(grouped) == [(1,), (0,), (2, 0)]
    assert [rows.tolist() for rows in grouped.values()] == [[0, 2], [1, 4], [3]]
    assert {w: r.tolist() for w, r in group_by_word([(3,)] * 4).items()} == {(3,): [0, 1, 2, 3]}
    assert group_by_word([]) == {}
