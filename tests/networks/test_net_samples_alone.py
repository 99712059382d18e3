"""Inputs, ascents, decisions and counterexamples by themselves: closed forms, and each threshold from both sides."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from symcheck.engine.networks.samples import ascent, counterexamples, repeatability, sampling
from symcheck.engine.networks.samples.ascent import STARTS, STEPS, activate_units, climb_residual
from symcheck.engine.networks.samples.counterexamples import ClaimedNetwork, describe_input, relative_to_entries
from symcheck.engine.networks.samples.decisions import Decisions, is_decision, staying_behind
from symcheck.engine.networks.samples.entry_scales import TINY, EntryScales, difference, output_scale
from symcheck.engine.networks.samples.sampling import families, stacked_observations, typical_inputs
from symcheck.engine.networks.subject.domain import Domain, OneHot
from symcheck.engine.networks.subject.subject import PRODUCTS
from symcheck.engine.networks.subject.values import AffineMap, SignedPermutation
from symcheck.errors import SpecError

RNG = np.random.default_rng
NAN, INF = float("nan"), float("inf")
TURN = SignedPermutation(np.array([1, 2, 0]), np.array([1, -1, 1]))
MIX = AffineMap(np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]), np.array([0.0, 1.0, 0.0]))


@pytest.mark.parametrize("motion", [TURN, MIX])
def test_a_motion_of_tensors_is_that_of_arrays(motion: Any) -> None:
    x = RNG(0).normal(size=(5, 3))
    moved = x @ motion.matrix.T + motion.offset if isinstance(motion, AffineMap) else None
    wanted = np.stack([motion.apply(row) for row in x]) if moved is None else moved
    np.testing.assert_allclose(ascent._as_tensor_map(motion)(torch.from_numpy(x)).numpy(), wanted)
    shaped = ascent._as_tensor_map(motion)(torch.from_numpy(x.reshape(5, 1, 3)))
    assert shaped.shape == (5, 1, 3)
    with pytest.raises(TypeError, match="callables"):
        ascent._as_tensor_map(len)  # type: ignore[arg-type]


def test_a_step_uphill_is_a_quarter_of_the_input_and_at_least_a_quarter_of_one() -> None:
    x = torch.tensor([[3.0, 4.0], [0.1, 0.0], [3.0, 4.0]], dtype=torch.float64)
    gradient = torch.tensor([[0.0, 2.0], [-5.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    moved = ascent._step_uphill(x, gradient)
    np.testing.assert_allclose(moved.numpy(), [[3.0, 5.25], [-0.15, 0.0], [3.0, 4.0]])
    picture = ascent._step_uphill(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2))
    np.testing.assert_allclose(picture.numpy(), np.full((1, 1, 2, 2), 1.25))


def test_a_channel_is_as_active_as_its_most_active_place() -> None:
    pictures = torch.arange(16.0).reshape(1, 2, 2, 4)
    assert ascent._activation(pictures, 0).tolist() == [7.0]
    assert ascent._activation(pictures, 1).tolist() == [15.0]
    assert ascent._activation(pictures, 5).tolist() == [5.0]  # no channel: an entry
    assert ascent._activation(torch.tensor([[1.0, 4.0, 2.0]]), 1).tolist() == [4.0]
    assert ascent._activation(torch.arange(6.0).reshape(1, 2, 3), 1).tolist() == [1.0]


def subject_of(net: nn.Module) -> Any:
    exact = net.double()
    return SimpleNamespace(exact=exact, modules=lambda exact: dict(net.named_modules()))


def claims(motion: Any = TURN, *outputs: Any) -> tuple[Any, Any]:
    inputs = SimpleNamespace(is_data=True, motions=[motion], shape=(3,))
    return inputs, [SimpleNamespace(path="output", motions=[each]) for each in outputs or (motion,)]


def residual(net: nn.Module, x: Any) -> Any:
    with torch.no_grad():
        y = net(torch.from_numpy(x)).numpy()
        z = net(torch.from_numpy(np.stack([TURN.apply(row) for row in x]))).numpy()
    return np.abs(np.stack([TURN.apply(row) for row in y]) - z).max(axis=1)


def test_an_ascent_raises_the_residual_within_the_range_of_its_starts() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 3))
    subject, starts = subject_of(net), RNG(1).normal(size=(STARTS + 4, 3))
    ((family),) = climb_residual(subject, *claims(), starts)
    assert (family.inputs.shape, family.borrows) == ((STARTS, 3), True)
    assert np.abs(family.inputs).max() <= np.abs(starts[:STARTS]).max() + 1e-12
    before, after = residual(net, starts[:STARTS]), residual(net, family.inputs)
    assert after.mean() > 1.2 * before.mean()
    small = climb_residual(subject, *claims(), 1e-3 * starts)[0].inputs
    assert 0.5 < np.abs(small).max() <= 1.0  # the range is at least one
    box = Domain(np.full(3, -0.25), np.full(3, 0.25), np.zeros(3, bool))
    assert np.abs(climb_residual(subject, *claims(), starts, box)[0].inputs).max() <= 0.25
    _, outputs = claims()
    two = SimpleNamespace(is_data=True, motions=[TURN, MIX], shape=(3,))
    outputs[0].motions = [TURN, MIX]
    assert len(climb_residual(subject, two, outputs, starts)) == 2  # type: ignore[arg-type]


def test_without_gradients_there_is_no_ascent() -> None:
    class Constant(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.ones_like(x)

    class Raising(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError("never")

    starts = RNG(1).normal(size=(4, 3))
    inputs, outputs = claims()
    (family,) = climb_residual(subject_of(Constant()), inputs, outputs, starts)
    assert len(family.inputs) == 0
    assert climb_residual(subject_of(Raising()), inputs, outputs, starts) == []
    linear = subject_of(nn.Linear(3, 3))
    assert climb_residual(linear, *claims(TURN, len), starts) == []
    inputs.is_data = False
    assert climb_residual(linear, inputs, outputs, starts) == []


def test_units_are_activated_together_from_small_and_large_starts() -> None:
    net = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))  # type: ignore[operator]
        net[0].bias.copy_(torch.tensor([-3.0, -3.0]))  # type: ignore[operator]
    subject, (inputs, _) = subject_of(net), claims()
    made = activate_units(subject, inputs, [("0", 0), ("0", 1), ("absent", 3)], RNG(0))
    assert [family.inputs.shape for family in made] == [((2 * STEPS + 1) * STARTS, 3)] * 2
    assert np.abs(made[0].inputs[:STARTS]).max() < 5.0 < np.abs(made[1].inputs[:STARTS]).max()
    starts, ends = made[0].inputs[:STARTS], made[0].inputs[-STARTS:]
    assert not (starts[:, :2] > 3.0).any()
    assert (ends[:, :2] > 3.0).all(axis=1).mean() > 0.5  # both units, not one of them
    assert activate_units(subject, inputs, [("absent", 0)], RNG(0)) == []
    box = Domain(np.full(3, -1.0), np.full(3, 1.0), np.zeros(3, bool))
    assert all(
        np.abs(family.inputs).max() <= 1.0 for family in activate_units(subject, inputs, [("0", 0)], RNG(0), box)
    )
    assert not net[0]._forward_hooks


def claim_of(role: str = "action", size: int = 3, motions: Any = (TURN,), choices: Any = ()) -> Any:
    return SimpleNamespace(role=role, size=size, motions=motions, choices=choices)


def test_logits_are_decisions_if_the_claim_permutes_them() -> None:
    permuting = SignedPermutation(np.array([1, 0, 2]), np.ones(3, np.int64))
    plain = claim_of(motions=[permuting])
    assert is_decision(plain, [plain])
    assert not is_decision(plain, [plain, claim_of("action_scale")])
    assert not is_decision(claim_of("value", motions=[permuting]), [])
    assert not is_decision(claim_of(), [])  # a sign changes
    assert not is_decision(claim_of(motions=[permuting, MIX]), [])
    assert not is_decision(claim_of(size=1, motions=[SignedPermutation.identity(1)]), [])
    assert is_decision(claim_of(choices=(slice(0, 1),)), [])


def test_a_decision_is_clear_by_a_thousandth_of_the_spread() -> None:
    spread = np.array([2.0, 0.5])
    for gap, clear in ((1.9e-3, False), (2.1e-3, True)):
        wanted, actual = np.array([[gap, 0.0], [0.0, gap]]), np.array([[0.0, 1.0], [0.0, 1.0]])
        told = staying_behind(wanted, actual, spread)
        assert told[0].tolist() == [clear, clear]
        assert told[1].tolist() == [clear, False]
        assert told[2].tolist() == [gap if clear else 0.0, 0.0]
    rows = np.array([[NAN, 0.0], [INF, INF], [INF, 0.0], [1.0, 0.0]])
    assert staying_behind(rows, rows[:, ::-1], spread)[1].tolist() == [False, False, True, True]
    assert staying_behind(rows, rows, np.zeros(2))[0].tolist() == [False] * 4
    only = np.array([[0.5], [-0.5]])
    clear_bits, flipped, margin = staying_behind(only, -only, np.ones(1), (slice(0, 1),))
    assert (clear_bits.tolist(), flipped.tolist(), margin.tolist()) == ([True] * 2, [True] * 2, [0.5] * 2)


@pytest.mark.parametrize(
    ("flipped", "rounded", "many", "doubt"),
    [(10, 0, False, False), (11, 0, True, True), (11, 1, False, True), (12, 1, True, True)],
)
def test_one_decision_in_a_hundred_may_stay_behind(flipped: int, rounded: int, many: bool, doubt: bool) -> None:
    counts = Decisions(1000, flipped, rounded)
    assert (counts.too_many, counts.in_doubt) == (many, doubt)


def test_differences_of_infinities_and_of_missing_numbers() -> None:
    left, right = np.array([INF, INF, NAN, NAN, 1.0, -INF]), np.array([INF, -INF, NAN, 0.0, 3.0, -INF])
    assert difference(left, right).tolist() == [0.0, INF, INF, INF, 2.0, 0.0]
    assert output_scale(np.array([NAN, -3.0, INF]), np.array([2.0])) == 3.0
    assert output_scale(np.array([0.0]), np.array([])) == TINY


def input_claim(motion: Any = TURN, shape: Any = (3,), is_data: bool = True) -> Any:
    def apply(generator: int, x: Any) -> Any:
        return np.stack([motion.apply(row.reshape(-1)).reshape(row.shape) for row in np.asarray(x, float)])

    return SimpleNamespace(shape=shape, motions=[motion], is_data=is_data, apply=apply)


@pytest.mark.parametrize("count", [1, 7, 64, 1000])
@pytest.mark.parametrize("shape", [(3,), (1, 3)])
def test_families_have_as_many_inputs_as_asked_for_and_the_edges_among_them(count: int, shape: Any) -> None:
    made = families(input_claim(shape=shape), count, RNG(0))
    sizes = {family.name: len(family.inputs) for family in made}
    assert all(family.inputs.shape[1:] == shape for family in made)
    assert sum(sizes.values()) >= count
    if count >= 64:
        assert sum(sizes.values()) == count
        assert (sizes["edges"], sizes["fixed points"]) == (min(64, count // 8, 9), min(64, count // 8))
    borrowing = {family.name for family in made if family.borrows}
    assert borrowing == {"edges", "fixed points"}
    scales = {family.name: np.abs(family.inputs).mean() for family in made}
    if count == 1000 and len(shape) == 1:
        for name, scale in (("normal at scale 0.1", 0.1), ("normal at scale 10", 10.0), ("normal at scale 100", 100.0)):
            assert scales[name] == pytest.approx(0.8 * scale, rel=0.15)
        edges = next(family.inputs for family in made if family.name == "edges")
        assert edges.tolist()[:3] == [[1.0] * 3, [-1.0] * 3, [0.0] * 3]
    if count == 1000 and len(shape) == 2:
        ones = next(family.inputs for family in made if family.name == "sparse 0/1")
        assert set(np.unique(ones)) == {0.0, 1.0}
        assert 0.03 < ones.mean() < 0.07
        whole = next(family.inputs for family in made if family.name == "whole numbers 0..255")
        assert 0 <= whole.min() < 3
        assert 252 < whole.max() <= 255
        assert not (whole % 1).any()


def test_fixed_points_are_fixed_and_missing_where_an_orbit_is_long_or_numbers_are_whole() -> None:
    claim = input_claim()
    points = sampling._fixed_points(claim, RNG(0), 5, None)
    np.testing.assert_allclose(claim.apply(0, points), points, atol=1e-12)
    assert len(points) == 5
    assert len(sampling._fixed_points(input_claim(SignedPermutation.identity(3)), RNG(0), 5, None)) == 0
    assert len(sampling._fixed_points(input_claim(is_data=False), RNG(0), 5, None)) == 0
    box = Domain(np.zeros(3), np.ones(3), np.zeros(3, bool))
    assert sampling._fixed_points(claim, RNG(0), 5, box).shape == (5, 3)
    whole = Domain(np.zeros(3), np.ones(3), np.ones(3, bool))
    assert len(sampling._fixed_points(claim, RNG(0), 5, whole)) == 0
    for length, kept in ((63, 4), (64, 0)):
        cycle = SignedPermutation(np.roll(np.arange(length), 1), np.ones(length, np.int64))
        assert len(sampling._fixed_points(input_claim(cycle, (length,)), RNG(0), 4, None)) == kept


def test_observations_come_first_and_are_at_most_half() -> None:
    seen = np.arange(300.0).reshape(100, 3)
    made = families(input_claim(), 64, RNG(0), seen)
    assert (made[0].name, len(made[0].inputs)) == ("observations", 32)
    assert all((seen == row).all(axis=1).any() for row in made[0].inputs)
    assert (np.diff(made[0].inputs[:, 0]) > 0).all()
    assert sum(len(family.inputs) for family in made) == 64
    assert len(families(input_claim(), 64, RNG(0), seen[:5])[0].inputs) == 5
    assert stacked_observations(None, (3,)) is None
    assert stacked_observations(seen.tolist(), (3,)).shape == (100, 3)  # type: ignore[union-attr]
    with pytest.raises(SpecError, match=r"observations of shape \(3,\) do not fit the network's input \(4,\)"):
        stacked_observations(seen, (4,))
    assert typical_inputs((3,), 7, RNG(0)).shape == (7, 3)
    box = Domain(np.full((2, 3), 1.0), np.full((2, 3), 2.0), np.zeros((2, 3), bool))
    names = [
        family.name for family in families(input_claim(SignedPermutation.identity(6), (2, 3)), 64, RNG(0), domain=box)
    ]
    assert names[:3] == [
        "uniform in the observation space",
        "few entries above the lowest",
        "bounds of the observation space",
    ]
    one_sided = Domain(np.zeros(3), np.full(3, INF), np.zeros(3, bool))
    makers = [name for name, _ in sampling._makers((3,), one_sided)]
    assert makers == [f"in the observation space, at scale {scale}" for scale in ("1", "0.1", "10", "100")]


def test_a_box_holds_what_it_draws_and_rounding_at_its_edges() -> None:
    low, high = np.array([-1.0, 0.0, -INF, -INF]), np.array([3.0, INF, 5.0, INF])
    box = Domain(low, high, np.array([False, False, False, True]))
    x = box.draw(RNG(0), 500, 2.0)
    assert box.contains(x).all()
    assert (x[:, 3] % 1 == 0).all()
    assert (x.min(axis=0)[0], x.max(axis=0)[0]) == (pytest.approx(-1, abs=0.1), pytest.approx(3, abs=0.1))
    assert np.abs(x[:, 3]).mean() == pytest.approx(1.6, rel=0.1)
    corners = box.corners(RNG(0), 200)
    assert corners[:3, 0].tolist() == [-1.0, 3.0, 1.0]
    assert sorted(set(corners[:, 1])) == [0.0, 1.0, 2.0]
    assert sorted(set(corners[:, 2])) == [4.0, 4.5, 5.0]
    assert len(box.corners(RNG(0), 2)) == 2
    at = np.array([[-1.0, 0.0, 0.0, 0.0]])
    for off, inside in ((3.9e-6, True), (4.1e-6, False)):
        assert box.contains(at - [off, 0, 0, 0]).tolist() == [inside]
    assert box.contains(at - [0, 1e-9, 0, 0]).tolist() == [False]
    assert not box.is_bounded
    assert Domain(low[:1], high[:1], np.zeros(1, bool)).is_bounded
    claim = input_claim(SignedPermutation(np.arange(4), np.array([-1, 1, 1, 1])), (4,))
    assert box.keeps(claim, np.array([[0.5, 0, 0, 0], [2.0, 0, 0, 0]])).tolist() == [True, False]
    one_hot = OneHot(np.zeros(3), np.ones(3), np.ones(3, bool))
    assert one_hot.contains(np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0]])).tolist() == [
        True,
        False,
        False,
    ]
    assert one_hot.corners(RNG(0), 4).argmax(axis=1).tolist() == [0, 1, 2, 0]


def claimed(function: Any, motion: Any = TURN, **more: Any) -> ClaimedNetwork:
    def run(x: Any, exact: bool) -> dict[str, Any]:
        return {"output": function(np.asarray(x)) * (1.0 if exact else 1.5)}

    inputs = input_claim()
    claim: Any = SimpleNamespace(
        path="output",
        size=3,
        motions=[motion],
        choices=(),
        apply=lambda generator, y, x: np.stack([motion.apply(row) for row in y]),
    )
    subject: Any = SimpleNamespace(run=run, cost=1)
    return ClaimedNetwork(subject, inputs, (claim,), ("turn",), **more)


def test_an_input_is_told_with_both_sides_at_its_worst_entry() -> None:
    def broken(x: Any) -> Any:
        return x + np.array([0.0, 0.5, 0.0]) * (x[:, :1] > 0)

    x = np.array([1.0, 2.0, 4.0])
    told = describe_input(claimed(broken), x, 0, "output")
    assert (told.group_element, told.observation, told.where) == ("turn", [1.0, 2.0, 4.0], "output[1]")
    assert told.image_observation == TURN.apply(x).tolist()
    assert told.expected == TURN.apply(x + np.array([0.0, 0.5, 0.0])).tolist()
    assert told.actual == (TURN.apply(x) + np.array([0.0, 0.5, 0.0])).tolist()
    assert told.residual == 0.5
    assert describe_input(claimed(broken), x, 0, "output", exact=False).residual == 0.75

    def missing(x: Any) -> Any:
        return np.where(x == 4.0, NAN, x)

    told = describe_input(claimed(missing), x, 0, "output")
    assert math.isnan(told.residual)
    assert told.where == "output[0]"


def test_residuals_are_relative_to_these_inputs_and_to_a_hundredth_of_the_usual_scale() -> None:
    scales = EntryScales(np.full(3, 10.0), np.full(3, 10.0), np.full(3, INF))
    wanted, actual = np.array([[5.0, 0.0, 100.0]]), np.array([[4.0, 0.01, 99.0]])
    np.testing.assert_allclose(relative_to_entries(wanted, actual, scales), [[1 / 5, 0.01 / 0.1, 1 / 10]])
    missing = relative_to_entries(np.array([[INF, 1.0, 1.0]]), np.array([[1.0, 1.0, 1.0]]), scales)
    assert missing.tolist() == [[INF, 0.0, 0.0]]


def test_shrinking_stays_inside_the_domain_and_ends_after_its_trials() -> None:
    box = Domain(np.full(3, -5.0), np.array([5.0, 5.0, 0.5]), np.zeros(3, bool))
    asked: list[int] = []

    def fails(batch: Any) -> Any:
        asked.append(len(batch))
        return np.abs(batch[:, 0]) > 0.2

    x = np.array([3.7, 0.3, 0.1])
    assert claimed(lambda x: x).shrink(x, fails).tolist() == [1.0, 0.0, 0.0]
    narrow = claimed(lambda x: x, domain=box).shrink(x, fails)
    assert box.keeps(input_claim(), narrow[None]).all()
    outside = np.array([3.7, -1.0, 0.1])  # its image leaves the box
    assert claimed(lambda x: x, domain=box).shrink(outside, fails) is outside
    costly: Any = claimed(lambda x: x)
    costly.subject.cost = PRODUCTS
    asked.clear()
    costly.shrink(np.arange(1.0, 4.0), lambda batch: fails(batch) & (len(asked) < 2))
    assert sum(asked) <= counterexamples.FEWEST_TRIED


def memory_of(run: Any, afresh: Any) -> Any:
    return SimpleNamespace(run=lambda x, exact: {"y": run(exact)}, run_afresh=lambda x: {"y": afresh()})


def test_a_network_that_draws_numbers_is_told_from_one_that_remembers() -> None:
    rng, calls = RNG(0), [0.0]

    def check(run: Any, afresh: Any) -> tuple[bool, bool]:
        told = repeatability.check_repeatability(memory_of(run, afresh), lambda stream, count: np.ones((count, 2)))
        return told.stochastic, told.remembers

    def counted(exact: bool) -> Any:
        calls[0] += 1.0
        return np.full((4, 1), calls[0])

    assert check(lambda exact: np.ones((4, 1)), lambda: np.ones((4, 1))) == (False, False)
    assert check(lambda exact: rng.normal(size=(4, 1)), lambda: rng.normal(size=(4, 1))) == (True, False)
    assert check(counted, lambda: np.zeros((4, 1))) == (False, True)
    assert check(lambda exact: np.full((4, 1), 2.0), lambda: np.zeros((4, 1))) == (False, True)
    for off, remembers in ((0.9e-9, False), (1.1e-9, True)):
        assert check(lambda exact, off=off: np.ones((4, 1)) + off, lambda: np.ones((4, 1))) == (False, remembers)
    same = np.full((4, 1), NAN)
    assert check(lambda exact: same, lambda: same) == (False, False)
