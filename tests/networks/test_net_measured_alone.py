"""Residuals of samples by themselves: blocks, the worst input, decisions, the deployed network, and replayed inputs."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from symcheck.engine.clock import raise_if_late
from symcheck.engine.networks import replay as replaying
from symcheck.engine.networks.blame.proof import Proof
from symcheck.engine.networks.samples import counterexamples, measuring
from symcheck.engine.networks.samples.counterexamples import KEEP, ClaimedNetwork, relative_to_entries, shrink_worst
from symcheck.engine.networks.samples.entry_scales import EntryScales
from symcheck.engine.networks.samples.measuring import Deployed, Flip, Measured, Spread, Worst, measure
from symcheck.engine.networks.samples.ruler import ROUNDED, VISIBLE
from symcheck.engine.networks.samples.sampling import Family
from symcheck.engine.networks.subject.claims import InputClaim, OutputClaim
from symcheck.engine.networks.subject.subject import PASS
from symcheck.engine.networks.subject.values import LayerRecord, SignedPermutation
from symcheck.errors import SymcheckError

ANY: Any = None
NAN, INF = float("nan"), float("inf")
RNG = np.random.default_rng


def motion(*places: int, sign: Any = None) -> SignedPermutation:
    return SignedPermutation(np.array(places), np.array(sign or [1] * len(places)))


SWAP, FLIP = motion(1, 0), motion(0, 1, sign=[-1, -1])
INPUTS = InputClaim((2,), (SWAP,))
LOGITS = OutputClaim("output", "action", 2, (SWAP,))


def scales(*spread: float, size: float = 10.0) -> EntryScales:
    return EntryScales(np.array(spread), np.full(len(spread), size), np.full(len(spread), INF))


class Ruler:
    """Scales of one, and rounding that is told by the test."""

    def __init__(self, explained: float = 1e-6, noise: float = 1e-12, swamped: int = 0, size: float = 1.0) -> None:
        self.explained, self.told, self.swamped, self.size = explained, noise, swamped, size
        self.vanishing: set[str] = set()
        self.deployed_epsilon = 1e-7
        self.cancelled: list[str] = []

    def block(self, x: Any, before: Any, *, borrows: bool) -> Any:
        return self

    def scales(self, path: str, actual: Any) -> EntryScales:
        return scales(*[self.size] * actual.shape[1])

    def relative_gaps(self, claim: Any, generator: int, wanted: Any, actual: Any, known: Any) -> Any:
        gap = np.abs(wanted - actual)
        gap[np.isnan(gap)] = INF
        return gap / known.filled, known.filled, self.swamped

    def noise(self, claim: Any, generator: int, epsilon: float) -> Any:
        return np.full((1, claim.size), self.told)

    def sizes_where_it_cancels(self, path: str, known: Any) -> Any:
        self.cancelled.append(path)
        return 100 * known.filled

    def deployed_rounding(self, claim: Any, generator: int, wanted: Any, sizes: Any, gap: Any, *noises: Any) -> Any:
        return np.full_like(gap, self.explained)


def subject_of(exact: Any, deployed: Any = None, **more: Any) -> Any:
    run = {True: exact, False: deployed or exact}
    given: dict[str, Any] = {"shape": (2,), "cost": 1, "artefact": "", "coarse": False, "noise_seed": None}
    return SimpleNamespace(run=lambda x, *, exact: {"output": run[exact](x)}, **(given | more))


def measured(exact: Any, deployed: Any = None, *, ruler: Any = None, inputs: InputClaim = INPUTS,
             outputs: Any = (LOGITS,), groups: Any = None, **more: Any) -> Measured:  # fmt: skip
    x = RNG(0).normal(size=(50, 2))
    groups = groups or [Family("first", x), Family("second", 10 * x)]
    return measure(subject_of(exact, deployed, **more), inputs, outputs, groups, ruler or Ruler())


def faulty(size: float, place: int = 7) -> Any:
    """The identity, with one output entry that is off for one input."""
    worst = RNG(0).normal(size=(50, 2))[place]

    def run(x: Any) -> Any:
        y = np.array(x)
        y[(x == worst).all(axis=1), 1] += size
        return y

    return run


def test_a_right_network_has_no_residual_and_every_pair_is_counted() -> None:
    made = measured(lambda x: np.array(x))
    assert (made.pairs, made.violations, made.relative, made.moved, made.nan) == (100, 0, 0.0, True, None)
    assert made.families == ["first", "second"]
    assert (made.deployed, made.flip, made.swamped) == (Deployed(decisions=made.deployed.decisions), None, 0)
    assert 40 < made.decisions.compared <= 100
    assert not made.constant_outputs


@pytest.mark.parametrize(("size", "violations"), [(ROUNDED, 0), (math.nextafter(ROUNDED, 1.0), 1), (0.5, 1)])
def test_a_pair_violates_beyond_the_published_level(size: float, violations: int) -> None:
    x = RNG(0).normal(size=(50, 2))
    x[7, 1] = 0.0
    worst = x[7].copy()

    def run(given: Any) -> Any:
        y = np.array(given)
        y[(given == worst).all(axis=1), 1] += size
        return y

    made = measured(run, groups=[Family("only", x)])
    assert made.violations == violations
    assert made.relative == size
    assert made.worst is not None
    np.testing.assert_array_equal(made.worst.x, worst)
    assert (made.worst.path, made.worst.generator, made.worst.family, made.worst.scale) == ("output", 0, "only", 1.0)
    assert made.worst.residual == size


def test_the_worst_input_of_all_families_and_generators_is_kept() -> None:
    both = InputClaim((2,), (motion(0, 1), SWAP))
    claim = OutputClaim("output", "action", 2, (motion(0, 1), SWAP))
    made = measured(faulty(0.5), inputs=both, outputs=(claim,))
    assert made.worst is not None
    assert (made.worst.generator, made.worst.family, made.pairs) == (1, "first", 200)
    assert made.moved
    still = measured(faulty(0.5), inputs=InputClaim((2,), (motion(0, 1),)), outputs=(LOGITS,))
    assert not still.moved


def test_a_number_that_is_missing_on_either_side_or_as_deployed_is_kept_with_its_input() -> None:
    x = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

    def missing(where: Any) -> Any:
        return lambda given: np.where((given == where).all(axis=1)[:, None], NAN, given)

    groups = [Family("only", x)]
    for made in (
        measured(missing([3.0, 4.0]), groups=groups),
        measured(missing([4.0, 3.0]), groups=groups),
        measured(lambda given: np.array(given), missing([3.0, 4.0]), groups=groups),
    ):
        assert made.nan is not None
        assert (made.nan.tolist(), made.nan_path, made.nan_generator) == ([3.0, 4.0], "output", 0)
    # Of the deployed network, only the inputs themselves are looked at.
    assert measured(lambda given: np.array(given), missing([4.0, 3.0]), groups=groups).nan is None
    infinite = measured(lambda given: np.where((given == [3.0, 4.0]).all(axis=1)[:, None], INF, given), groups=groups)
    assert (infinite.nan, infinite.relative) == (None, INF)


@pytest.mark.parametrize(("low", "high", "constant"), [
    ([1.0, 2.0], [1.0, 2.0], True), ([1.0, 2.0], [1.0 + 1e-13, 2.0], True), ([1.0, 2.0], [1.0 + 3e-13, 2.0], False),
    ([0.0, 0.0], [0.0, 0.0], True), ([-1.0, 0.0], [1.0, 0.0], False)])  # fmt: skip
def test_an_output_is_constant_up_to_float64_rounding_of_its_size(low: Any, high: Any, constant: bool) -> None:
    assert Spread(np.array(low), np.array(high)).is_constant is constant


def test_a_spread_covers_all_blocks() -> None:
    made = Measured()
    for values in ([[1.0, 5.0], [3.0, 4.0]], [[2.0, 9.0]], [[-1.0, 4.5]]):
        measuring._widen_spread(made, "output", np.array(values))
    spread = made.spreads["output"]
    assert (spread.low.tolist(), spread.high.tolist()) == ([-1.0, 4.0], [3.0, 9.0])


@pytest.mark.parametrize(
    ("shape", "cost", "rows"),
    [((4,), 1, 1_000_000), ((4_000_000,), 1, 32), ((100_000,), 1, 40), ((4,), PASS // 10, 10), ((4,), PASS, 4),
     ((2, 1_000_000), PASS // 20, 20)],
)  # fmt: skip
def test_a_block_has_four_million_entries_or_as_many_inputs_as_are_affordable(shape: Any, cost: int, rows: int) -> None:
    subject: Any = SimpleNamespace(shape=shape, cost=cost)
    count = min(2 * rows + 1, 300)
    family = Family("only", np.zeros((count, 1)), borrows=True)
    blocks = measuring._blocks(family, subject)
    assert [len(block.inputs) for block in blocks] == [min(rows, count - start) for start in range(0, count, rows)]
    assert {(block.name, block.borrows) for block in blocks} == {("only", True)}


def test_time_ends_the_measurement_after_its_first_block() -> None:
    x = RNG(0).normal(size=(9, 2))
    told: list[int] = []
    into = Measured()
    subject = subject_of(lambda given: np.array(given), cost=PASS)

    def run(x: Any, *, exact: bool) -> Any:
        raise_if_late()
        return {"output": np.array(x)}

    subject.run = run
    with pytest.raises(KeyboardInterrupt):
        measure(subject, INPUTS, (LOGITS,), [Family("only", x)], Ruler(), deadline=-1.0, tick=told.append, into=into)  # type: ignore[arg-type]
    assert (into.pairs, told) == (4, [4])


def decided(wanted: Any, actual: Any, *, exact: bool = True, noise: float = 0.0, known: Any = None) -> Measured:
    made = Measured(flip=known)
    sides = {exact: np.asarray(wanted, float)}
    other = {exact: np.asarray(actual, float)}
    pair = measuring._Pair(LOGITS, 0, True, scales(1.0, 1.0), sides, other)
    x = np.arange(2.0 * len(wanted)).reshape(-1, 2)
    measuring._count_decisions(made, pair, Ruler(noise=noise), x, exact=exact)  # type: ignore[arg-type]
    return made


THREE = ([[1.0, 0.0], [0.0, 0.2], [0.5, 0.0]], [[0.0, 1.0], [0.2, 0.0], [0.5, 0.0]])


def test_clear_decisions_that_stay_behind_are_counted_and_the_clearest_is_kept() -> None:
    made = decided(*THREE)
    assert (made.decisions.compared, made.decisions.flipped, made.decisions.rounded) == (3, 2, 0)
    assert made.flip is not None
    assert (made.flip.x.tolist(), made.flip.margin, made.flip.exact, made.flip.path) == (
        [0.0, 1.0],
        1.0,
        True,
        "output",
    )
    assert made.deployed == Deployed()


@pytest.mark.parametrize(("noise", "rounded", "kept"), [
    (0.04, 0, [0.0, 1.0]), (0.05, 1, [0.0, 1.0]), (0.24, 1, [0.0, 1.0]), (0.25, 2, None)])  # fmt: skip
def test_margins_up_to_four_times_the_rounding_are_decided_by_it(noise: float, rounded: int, kept: Any) -> None:
    made = decided(*THREE, noise=noise)
    assert made.decisions.rounded == rounded
    assert (None if made.flip is None else made.flip.x.tolist()) == kept


def test_a_clearer_decision_replaces_one_and_float64_comes_before_the_deployed_network() -> None:
    def kept(margin: float, exact: bool, now_exact: bool = True) -> float:
        known = Flip(np.zeros(2), 0, "output", margin, exact)
        made = decided(*THREE, known=known, exact=now_exact)
        assert made.flip is not None
        return made.flip.margin

    assert kept(0.9, True) == 1.0
    assert kept(1.1, True) == 1.1
    assert kept(1.0, True) == 1.0
    assert kept(5.0, False) == 1.0
    assert kept(0.1, True, now_exact=False) == 0.1
    assert kept(0.9, False, now_exact=False) == 1.0
    made = decided(*THREE, exact=False)
    assert (made.deployed.decisions, made.deployed.flips, made.decisions.compared) == (3, 2, 0)
    assert not made.flip.exact  # type: ignore[union-attr]


def test_outputs_that_are_no_logits_make_no_decisions() -> None:
    value = OutputClaim("output", "observation", 2, (SWAP,))
    assert measured(faulty(0.5), outputs=(value,)).decisions.compared == 0


def compare(wanted: Any, actual: Any, *, ruler: Any = None, noise: Any = (0.0, 0.0), **more: Any) -> Deployed:
    """Figures of a deployed network with these outputs, one row, which differ so much from its float64 copy."""
    made = Measured()
    exact = np.zeros((1, 2))
    sides = (np.asarray([wanted], float), np.asarray([actual], float))
    structural = more.pop("structural", 0.0)
    pair = measuring._Pair(LOGITS, 0, False, scales(1.0, 1.0),
                           {True: exact, False: sides[0]}, {True: exact + structural, False: sides[1]})  # fmt: skip
    before, after = ({True: {"output": exact}, False: {"output": np.full((1, 2), n)}} for n in noise)
    subject = subject_of(lambda x: x, **more)
    measuring._compare_deployed(made, subject, pair, ruler or Ruler(explained=1e-6), exact, before, after)
    return made.deployed


def test_the_deployed_network_may_be_off_by_the_rounding_of_its_dtype() -> None:
    within, beyond = compare([0.5, 0.5], [0.5 + 0.9e-6, 0.5]), compare([0.5, 0.5], [0.5, 0.5 + 3e-6])
    assert within.beyond == pytest.approx(0.9)
    assert within.residual == pytest.approx(0.9e-6)
    assert beyond.beyond == pytest.approx(3.0)
    assert (beyond.coarser, beyond.unexplained) == (False, 0.0)
    # What the float64 copy itself is off by is judged elsewhere.
    assert compare([0.5, 0.5], [0.5, 0.5 + 3e-6], structural=3e-6).beyond == pytest.approx(0.0, abs=1e-9)


def test_code_that_rounds_by_itself_equally_on_both_sides_is_coarser_and_not_off() -> None:
    coarse = compare([0.5, 0.5], [0.5, 0.5 + 1e-4], noise=(2e-3, 2e-3))
    assert (coarse.coarser, coarse.beyond) == (True, 0.0)
    assert coarse.noise == pytest.approx(2e-3)
    assert coarse.unexplained == pytest.approx(2e-3)
    off = compare([0.5, 0.5], [0.5, 0.5 + 1e-4], noise=(0.5e-3, 0.5e-3))
    assert (off.coarser, off.beyond) == (False, pytest.approx(100.0))
    seeded = compare([0.5, 0.5], [0.5, 0.5], noise=(2e-3, 2e-3), noise_seed=3)
    assert (seeded.unexplained, seeded.noise) == (0.0, pytest.approx(2e-3))


def test_visible_noise_is_compared_with_the_terms_that_cancel() -> None:
    for noise, asked in ((VISIBLE, False), (1.01 * VISIBLE, True)):
        for both in ((noise, 0.0), (0.0, noise)):
            ruler = Ruler()
            figures = compare([0.5, 0.5], [0.5, 0.5], noise=both, ruler=ruler)
            assert bool(ruler.cancelled) is asked
            assert figures.noise == pytest.approx(noise / (100.0 if asked else 1.0))
    ruler = Ruler()
    compare([0.5, 0.5], [0.5 + 1.1 * VISIBLE, 0.5], ruler=ruler)
    assert ruler.cancelled == ["output"]


@pytest.mark.parametrize("more", [{"artefact": "int8"}, {"coarse": True}])
def test_the_rounding_of_another_runtime_is_not_explained_by_its_dtype(more: Any) -> None:
    figures = compare([0.5, 0.5], [0.5, 0.5 + 3e-6], noise=(1e-3, 1e-3), **more)
    assert (figures.beyond, figures.unexplained, figures.residual) == (0.0, pytest.approx(1e-3), pytest.approx(3e-6))


def test_only_ordinary_inputs_are_compared_in_another_runtime() -> None:
    def coarse(x: Any) -> Any:
        return np.array(x) + np.where(np.abs(x).max() > 5, 0.5, 1e-3)

    assert measured(lambda x: np.array(x), coarse, artefact="int8").deployed.noise == pytest.approx(1e-3)
    assert measured(lambda x: np.array(x), coarse).deployed.noise > 1e-3


def claimed_of(exact: Any, deployed: Any = None, **more: Any) -> ClaimedNetwork:
    return ClaimedNetwork(subject_of(exact, deployed), INPUTS, (LOGITS,), ("swap",), **more)


def worst_of(relative: float, x: Any) -> Measured:
    found = Measured(pairs=1, relative=relative)
    found.worst = Worst(relative, relative, 1.0, 0, "output", np.asarray(x, float), "first")
    return found


def first_grows(x: Any) -> Any:
    """The first entry counts double."""
    return np.array(x) * [2.0, 1.0]


def test_a_counterexample_is_the_plainest_input_that_still_fails() -> None:
    example = shrink_worst(claimed_of(first_grows), worst_of(1.0, [3.7, -8.1]), ROUNDED, {"output": scales(1.0, 1.0)})
    assert example is not None
    assert sorted(map(abs, example.observation)) == [0.0, 1.0]
    assert example.residual == 1.0
    assert example.group_element == "swap"
    assert example.image_observation == example.observation[::-1]
    assert example.where in ("output[0]", "output[1]")
    expected, actual = np.array(example.expected), np.array(example.actual)
    assert np.abs(expected - actual)[int(example.where[-2])] == 1.0
    assert shrink_worst(claimed_of(first_grows), Measured(), ROUNDED, {}) is None


def test_what_leaves_the_space_or_comes_too_late_is_not_plainer() -> None:
    x = [3.7, -8.1]
    domain: Any = SimpleNamespace(keeps=lambda claim, batch: np.abs(batch).max(axis=1) > 3)
    inside = shrink_worst(
        claimed_of(first_grows, domain=domain), worst_of(1.0, x), ROUNDED, {"output": scales(1.0, 1.0)}
    )
    assert inside is not None
    assert max(map(abs, inside.observation)) > 3
    out: Any = SimpleNamespace(keeps=lambda claim, batch: np.zeros(len(batch), bool))
    same = shrink_worst(claimed_of(first_grows, domain=out), worst_of(1.0, x), ROUNDED, {"output": scales(1.0, 1.0)})
    assert same is not None
    assert same.observation == x


def test_a_missing_number_shrinks_to_an_input_that_misses_one_too() -> None:
    found = Measured(nan=np.array([3.7, 8.1]), nan_path="output", nan_generator=0)
    example = shrink_worst(claimed_of(lambda x: np.where(x > 2, NAN, x)), found, ROUNDED, {})
    assert example is not None
    assert math.isnan(example.residual)
    assert max(example.observation) > 2
    assert 0.0 in example.observation
    assert (math.isnan(example.expected[0]), math.isnan(example.actual[0]), example.where) == (True, True, "output[0]")


def test_a_decision_is_shown_where_residuals_are_within_rounding() -> None:
    def run(x: Any) -> Any:
        return np.array(x) + np.where(x[:, :1] > x[:, 1:], [[0.0, 0.0]], [[1e-6, 0.0]])

    def shown(relative: float) -> Any:
        found = worst_of(relative, [5.0, 4.0])
        found.flip = Flip(np.array([0.3, 0.3]), 0, "output", 1e-6, True)
        return shrink_worst(claimed_of(run), found, ROUNDED, {"output": scales(1e-4, 1e-4)})

    assert shown(ROUNDED).observation[0] == shown(ROUNDED).observation[1]
    assert shown(math.nextafter(ROUNDED, 1.0)).observation != shown(ROUNDED).observation


@pytest.mark.parametrize(
    ("wanted", "actual", "relative"),
    [(10.0, 10.5, 0.5), (0.3, 0.5, 0.4), (0.0, 1e-3, 1e-3 / KEEP), (0.0, 0.02, 1.0), (-0.5, 0.25, 1.5)],
)
def test_a_residual_is_relative_to_these_values_between_a_hundredth_and_all_of_the_usual_scale(
    wanted: float, actual: float, relative: float
) -> None:
    made = relative_to_entries(np.array([[wanted]]), np.array([[actual]]), scales(1.0))
    assert made[0, 0] == pytest.approx(relative)
    assert np.isinf(relative_to_entries(np.array([[NAN]]), np.array([[actual]]), scales(1.0)))[0, 0]


def context_of(exact: Any, deployed: Any = None, *, proof: Any = None, strict: bool = False) -> Any:
    claimed = claimed_of(exact, deployed)
    return SimpleNamespace(
        elements=("swap",), outputs=(LOGITS,), claimed=claimed, proof=proof, options=SimpleNamespace(strict=strict),
        ruler=SimpleNamespace(reference={"output": scales(1.0, 1.0)}),
    )  # fmt: skip


def again(size: float, x: Any = (1.0, 0.5), **more: Any) -> Any:
    def run(given: Any) -> Any:
        return np.array(given) + np.where(given[:, :1] > given[:, 1:], [[0.0, 0.0]], [[size, 0.0]])

    example = {"group_element": "swap", "where": "output[0]"}
    return replaying._evaluate_again(context_of(run, **more), "network_equivariance", example, np.array(x))


def weighed(**more: Any) -> Proof:
    given = {"residual": 0.1, "certain": True} | more
    return Proof("failed", [LayerRecord("hidden", "Linear", "failed", **given)])


@pytest.mark.parametrize(
    ("size", "more", "verdict", "location"),
    [
        (0.0, {}, "passed", None),
        (0.49e-5, {}, "passed", None),
        (0.51e-5, {}, "failed", "output"),
        (1e-6, {"strict": True}, "failed", "output"),
        (1e-6, {"proof": weighed()}, "failed", "hidden"),
        (1e-6, {"proof": weighed(certain=False)}, "passed", None),
        (1e-6, {"proof": weighed(residual=None)}, "passed", None),
        (0.5, {"proof": weighed(certain=False)}, "failed", "hidden"),
    ],
)
def test_a_replayed_input_fails_beyond_the_level_of_its_run(
    size: float, more: Any, verdict: str, location: Any
) -> None:
    made = again(size, **more)
    assert (made.verdict, made.location, made.checked, made.violations) == (verdict, location, 1, verdict == "failed")
    assert (made.counterexample is None) is (verdict == "passed")
    assert made.notes[0].fields["element"] == "swap"


def test_a_replayed_decision_that_stays_behind_as_deployed_fails() -> None:
    stuck = context_of(lambda x: np.array(x), lambda x: np.array([[1.0, 0.0]] * len(x)))
    made = replaying._evaluate_again(
        stuck, "network_equivariance", {"group_element": "swap", "where": "output"}, np.array([1.0, 0.5])
    )
    assert (made.verdict, made.tolerance, made.max_residual) == ("failed", counterexamples.KEEP / 10, 0.0)


def test_elements_and_places_are_found_by_name() -> None:
    context: Any = SimpleNamespace(
        elements=("turn", SimpleNamespace(word="flip")),
        outputs=[SimpleNamespace(path=path) for path in ("output", "output[1]", "output['x']")],
    )
    assert [replaying.generator_named(context, name) for name in ("turn", "flip")] == [0, 1]
    with pytest.raises(SymcheckError, match="got 'roll'"):
        replaying.generator_named(context, "roll")
    for where, path in (("output[0][3]", "output"), ("output[1][3]", "output[1]"), ("output['x'][0]", "output['x']")):
        assert replaying.path_of(context, where) == path
    with pytest.raises(SymcheckError, match="got 'loss'"):
        replaying.path_of(context, "loss")


def test_words_for_numbers_are_read_at_any_depth() -> None:
    read = replaying._decode_numbers([1, ["NaN", ["Infinity", "-Infinity"]], "text", None])
    assert math.isnan(read[1][0])
    assert (read[0], read[1][1], read[2:]) == (1, [INF, -INF], ["text", None])


@pytest.mark.parametrize(
    ("proof", "verdict", "violations", "residual", "location"),
    [
        (Proof("exact", [], certificate={}), "proved", 0, 0.0, None),
        (Proof("exact", []), "passed", 0, 0.0, None),
        (Proof("exact", [LayerRecord("a", "Linear", residual=1e-16)], certificate={}), "proved", 0, 1e-16, None),
        (Proof("rounded", [LayerRecord("a", "Linear", "rounded", 1e-8)], certificate={}), "passed", 0, 1e-8, None),
        (Proof("failed", [LayerRecord("a", "Linear"), LayerRecord("b", "Linear", "failed", 0.3),
                          LayerRecord("c", "Linear", "failed", 0.1)]), "failed", 2, 0.3, "b"),
    ],
)  # fmt: skip
def test_given_permutations_are_proved_passed_or_fail_at_their_first_layer(
    proof: Proof, verdict: str, violations: int, residual: float, location: Any
) -> None:
    made = replaying._check_permutations(proof)
    assert (made.verdict, made.violations, made.max_residual, made.location) == (
        verdict, violations, residual, location)  # fmt: skip
    assert made.checked == len(proof.records)
