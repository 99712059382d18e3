"""Checks that a set state behaves like one that a rollout reached.

Otherwise a pass would concern states that never occur.

The states in which rollout steps began are set, and the steps are repeated. If steps are deterministic, both outcomes
must be equal, now and one step later; if they are random, their distributions must be equal. Only values that show the
past may differ: a clock, whose value depends only on the step number, and stacked frames, which repeat the previous
observation. Neither shows that the dynamics have memory, as long as every other number agrees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Bools, Floats
from symcheck.engine.environments.cases.pool import Pool, Visit
from symcheck.engine.environments.cases.workbench import Workbench
from symcheck.engine.episode_columns import action_columns
from symcheck.engine.equations import STEP_PARTS, Part
from symcheck.engine.features import Region
from symcheck.engine.regression import standardise
from symcheck.engine.scales import FLOAT32_EPSILON, typical_sizes
from symcheck.engine.shared_covariates import MOST_SIDES, side_weights, swap_test_given
from symcheck.engine.statistics import SwapTest
from symcheck.envs.state_access.mujoco import reads_as_built_in
from symcheck.envs.state_access.record import Origin
from symcheck.envs.stepping.step_differences import Loss, StepDifferences, compare_steps, measure_loss
from symcheck.envs.stepping.stepper import Step, Stepper
from symcheck.spaces.coordinates import finite
from symcheck.statements.statement import Statement, state
from symcheck.verdict import ReasonCode

# number of repeated rollout steps; they include one of each step number up to the second limit
_PICKED, _NUMBERS = 320, 240
_WIDE, _PICKED_WIDE = 1000, 60  # the same for images
_PICKED_CUT = 20  # number of truncated steps
# Allowed fraction of differing visits: reached states have more digits than the observation shows, and a few lie at
# discontinuities (walls, thresholds), so the last digit matters. States that can be read, or are observed in float64,
# have all digits.
_MAY_DIFFER, _MAY_DIFFER_EXACT = 0.05, 0.015
# tolerance: iterative solvers stop early, and the state itself was rounded
_REACHED_FLOAT64, _REACHED_FLOAT32 = 1e-7, 1e-3
_FLOAT64 = 1e-10  # smaller rounding units are those of float64 or integers
_PICKED_RANDOM, _FEWEST_RANDOM = 2500, 100
# Number of step numbers examined if a few visits differ, visits of each (completed by new ones if fewer), and how many
# must differ.
_MOST_NUMBERS, _PICKED_SAME, _FEWEST_SAME, _ENOUGH_SAME = 8, 40, 8, 4
_TIME = 0.5  # fraction of the time budget
_LATE = 0.75  # quantile of the step number: clocks have an effect late in an episode
_LATE_STEPS = Region("late in episodes compared with early", "late in episodes", "early in episodes")
_LEVEL_RANDOM = 1e-3  # probability of a false alarm for a correctly set state
_COORDINATES_RANDOM = 32


@dataclass(frozen=True)
class SetVersusReached:
    """The loss when a reached state is set.

    Attributes:
        caution: why a pass would not be trusted; None if there is no reason.
        remarks: harmless differences.
        loss: the difference between steps from states set and states reached, if there is a caution.
        touched: the properties whose outcomes differ, if there is a caution.
    """

    caution: Statement | None = None
    remarks: tuple[Statement, ...] = ()
    loss: Loss | None = None
    touched: frozenset[Part] = frozenset(STEP_PARTS)


def compare_set_with_reached(stepper: Stepper, pool: Pool, rng: np.random.Generator) -> SetVersusReached:
    """Compare set states with reached states, for deterministic steps.

    In some simulators, quantities lag by one step after a state is set (positions of bodies in MuJoCo). A difference
    that disappears one step later is only noted if the state access is built in and known to be complete, or reads the
    same quantities as a built-in one. Otherwise it may be a memory of one step.

    Args:
        stepper: the environment, with state access.
        pool: its visits come from rollouts.
        rng: selects among them.

    Returns:
        The result.
    """
    visits = pool.visits
    # A visit at which the episode was truncated or terminated has no successor.
    going = [i for i in range(len(visits) - 1) if visits[i + 1].situation.origin != "start"]
    most = _PICKED if stepper.codec.coordinates.dim < _WIDE else _PICKED_WIDE
    number = _step_numbers(visits)
    picked = _one_of_each_number([going[i] for i in rng.permutation(len(going))], number)[:most]
    if not picked:
        return SetVersusReached()
    now, later = [], []
    for i in picked:
        # Two steps: quantities that lag by one step after setting are correct on the second.
        stepper.poke(visits[i].situation.state)
        now.append(stepper.step(visits[i].action))
        later.append(stepper.step(visits[i + 1].action))
    observations = np.stack([visits[i].step.flat for i in going])
    typical = typical_sizes(observations, stepper.codec.coordinates.epsilon)
    memory = _columns_of_the_past(stepper, visits, picked)
    coordinates = stepper.codec.coordinates
    at_once = compare_steps(coordinates, [visits[i].step for i in picked], now)
    afterwards = compare_steps(coordinates, [visits[i + 1].step for i in picked], later)
    first, second = (_mismatches(stepper, compared, typical) for compared in (at_once, afterwards))
    # Only mismatching columns need an explanation.
    shown_again = memory & (first.any(axis=0) | second.any(axis=0))
    if shown_again.any() and not (~memory[: observations.shape[1]] & _varying(observations)).any():
        memory = np.zeros_like(memory)  # no other column could show a dependence on the state
    loss = measure_loss(coordinates, [at_once, afterwards])
    reached = _compare_columns(stepper, first[:, ~memory], second[:, ~memory], np.flatnonzero(~memory), loss)
    if reached.caution is not None:
        apart = (first | second).any(axis=0) & ~memory
        # Rewards and terminations follow from states; their own memory does not affect the states.
        of_parts = {"transition": apart[:-2].any(), "reward": apart[-2], "termination": apart[-1]}
        touched = frozenset(part for part in STEP_PARTS if of_parts["transition"] or of_parts[part])
        return replace(reached, loss=loss, touched=touched)
    rows = [] if _is_complete(stepper) else np.flatnonzero(first[:, ~memory].any(axis=1)).tolist()
    if rows:
        # Too few to conclude that setting loses state, unless they are the same step of every episode: a counter.
        numbers = dict.fromkeys(int(number[picked[i]]) for i in rows)
        for each in list(numbers)[:_MOST_NUMBERS]:
            same = [visits[i] for i in going if number[i] == each][:_PICKED_SAME]
            if caution := _compare_one_number(stepper, each, same, typical, memory):
                return SetVersusReached(caution, reached.remarks, loss)
    remarks = (*reached.remarks, *_remark_the_past(stepper, np.flatnonzero(shown_again)))
    # A quantity known to lag by one step after setting lags on the last step too, so it is not evidence of a clock.
    lagging: Bools = np.asarray(first.any(axis=0) & bool(reached.remarks))
    return SetVersusReached(_compare_cut_steps(stepper, pool, rng, lagging), remarks)


def _one_of_each_number(shuffled: list[int], number: npt.NDArray[np.int64]) -> list[int]:
    """The same visits, with one of each step number first: a counter may matter in one step of long episodes."""
    leaders = {int(number[i]): i for i in reversed(shuffled) if number[i] < _NUMBERS}
    return [*leaders.values(), *(i for i in shuffled if leaders.get(int(number[i])) != i)]


def _compare_one_number(
    stepper: Stepper, number: int, same: list[Visit], typical: Floats, memory: Bools
) -> Statement | None:
    """Whether steps with one number differ from the same steps from set states, in nearly all episodes."""
    reached = [(visit.situation.state, visit.action, visit.step) for visit in same]
    if stepper.access is not None and stepper.access.get is not None:
        for played in (stepper.play(number + 1, read=True) for _ in range(len(same), _FEWEST_SAME)):
            if len(played.steps) > number:
                reached.append((played.states[number], played.actions[number], played.steps[number]))
    again = [stepper.outcome(held, action) for held, action, _ in reached]
    compared = compare_steps(stepper.codec.coordinates, [step for _, _, step in reached], again)
    differ = _mismatches(stepper, compared, typical) & ~memory
    count = int(differ.any(axis=1).sum())
    if count < max(_ENOUGH_SAME, (1 - _MAY_DIFFER) * len(reached)):
        return None
    where = _column_names(stepper)[int(np.argmax(differ.sum(axis=0)))]
    code = ReasonCode.HIDDEN_STEP.value
    return state(code, count=count, compared=len(reached), number=number + 1, coordinate=where)


def _compare_columns(
    stepper: Stepper, first: Bools, second: Bools, columns: npt.NDArray[np.intp], loss: Loss
) -> SetVersusReached:
    """Describe mismatches right after a state was set, and one step later; rows are states."""
    names = _column_names(stepper)
    access = stepper.access
    whole = _is_complete(stepper)
    read_back = access is not None and access.get is not None
    exact = read_back or bool((stepper.codec.coordinates.epsilon < _FLOAT64).all())
    allowed = (_MAY_DIFFER_EXACT if exact else _MAY_DIFFER) * len(first)
    lost, late = (np.flatnonzero(side.any(axis=1)) for side in (first, second))
    # Later mismatches first: a state that does not recover is lost, for any state access.
    for rows, side, lag_is_known in ((late, second, False), (lost, first, read_back and whole)):
        if len(rows) <= allowed:
            continue
        where = names[int(columns[int(np.argmax(side[rows].sum(axis=0)))])]
        if lag_is_known:
            return SetVersusReached(None, (state("differs_on_first_step", coordinate=where),))
        code = ReasonCode.HIDDEN_STATE.value
        return SetVersusReached(state(code, count=len(rows), compared=len(first), coordinate=where, **loss.fields()))
    return SetVersusReached()


def _is_complete(stepper: Stepper) -> bool:
    """Whether the access is known to be complete: built in, or reading the same quantities as a built-in one."""
    access = stepper.access
    return access is not None and (access.origin == Origin.BUILT_IN or reads_as_built_in(stepper.base, access))


def _column_names(stepper: Stepper) -> list[str]:
    return [*stepper.codec.coordinates.names, "reward", "terminated"]


def _remark_the_past(stepper: Stepper, columns: npt.NDArray[np.intp]) -> tuple[Statement, ...]:
    """The remark on columns that show the past; None if there are none."""
    if not len(columns):
        return ()
    first = _column_names(stepper)[int(columns[0])]
    return (state("shows_the_past", coordinate=first, more=len(columns) - 1),)


def _compare_cut_steps(stepper: Stepper, pool: Pool, rng: np.random.Generator, lagging: Bools) -> Statement | None:
    """Whether rewards or observations of truncated steps differ from those of the same steps from set states."""
    cut = [visit for visit in pool.visits if visit.step.truncated and not visit.step.terminated]
    picked = [cut[i] for i in rng.permutation(len(cut))[:_PICKED_CUT]]
    if not picked:
        return None
    again = [stepper.outcome(visit.situation.state, visit.action) for visit in picked]
    observations = np.stack([visit.step.flat for visit in pool.visits])
    typical = typical_sizes(observations, stepper.codec.coordinates.epsilon)
    compared = compare_steps(stepper.codec.coordinates, [visit.step for visit in picked], again)
    differ = _mismatches(stepper, compared, typical)
    differ = differ & ~lagging & ~_columns_of_the_past(stepper, pool.visits, list(range(len(pool.visits))))
    count = int(differ.any(axis=1).sum())
    if count < max(2, len(picked) // 8):
        return None
    where = _column_names(stepper)[int(np.argmax(differ.sum(axis=0)))]
    return state(ReasonCode.HIDDEN_TIME.value, count=count, compared=len(picked), coordinate=where)


def _columns_of_the_past(stepper: Stepper, visits: Sequence[Visit], picked: Sequence[int]) -> Bools:
    """The columns (coordinates, reward, terminated) that show only the past: clocks and frames."""
    codec = stepper.codec
    after = np.stack([visits[i].step.flat for i in picked])
    before = codec.flatten_batch([visits[i].situation.obs for i in picked])
    varying = np.flatnonzero(_varying(after))
    earlier = {column.tobytes() for column in before.T}
    past = np.zeros(codec.coordinates.dim + 2, dtype=np.bool_)
    number = _step_numbers(visits)[np.asarray(picked)]
    order = np.argsort(number, kind="stable")
    same = np.diff(number[order]) == 0
    for j in varying:
        column = np.ascontiguousarray(after[:, j])
        # A stacked frame equals, bit for bit, another column one step earlier.
        repeats = column.tobytes() in earlier
        values = column[order]
        # Eight steps with the same number agree by chance only if the column hardly varies.
        clock = same.sum() >= 8 and bool((values[1:][same] == values[:-1][same]).all())
        past[j] = repeats or clock
    return past


def _step_numbers(visits: Sequence[Visit]) -> npt.NDArray[np.int64]:
    """The number of each step within its episode, shape (visits,)."""
    count, numbers = 0, []
    for visit in visits:
        count = 0 if visit.situation.origin == "start" else count + 1
        numbers.append(count)
    return np.array(numbers, dtype=np.int64)


def _varying(flats: Floats) -> Bools:
    """The coordinates that take several values."""
    return np.asarray((flats != flats[0]).any(axis=0) & ~np.isnan(flats).all(axis=0))


def _mismatches(stepper: Stepper, compared: StepDifferences, typical: Floats) -> Bools:
    """Whether steps differ by more than rounding of the state explains, bool, shape (n, dim + 2)."""
    single = bool((stepper.codec.coordinates.epsilon > _FLOAT64).any())
    allowed = _REACHED_FLOAT32 if single else _REACHED_FLOAT64
    sizes = 1.0 + np.append(typical, 0.0) + finite(np.abs(compared.first))
    return np.concatenate([~(compared.residual <= allowed * sizes), compared.ends[:, None]], axis=1)


def compare_in_distribution(bench: Workbench, rng: np.random.Generator) -> Statement | None:
    """Compare the distributions of steps from reached and from set states, for random dynamics.

    Each rollout step is paired with a step from the same state, set, and the same action. If set and reached states are
    equivalent, the two may be swapped. Their common part is removed by one regression on (s, a).

    Args:
        bench: the environment, reset before each state as in the run; its pool's visits come from rollouts.
        rng: selects visits and draws swaps.

    Returns:
        Why a pass would not be trusted; None if there is no reason.
    """
    stepper, visits = bench.pairs.stepper, bench.pool.visits
    picked = [int(i) for i in rng.permutation(len(visits))[:_PICKED_RANDOM]]
    if len(picked) < _FEWEST_RANDOM:
        return None
    reached = [visits[i].step for i in picked]
    again = []
    for i in picked:
        if not bench.in_time(_TIME):
            break
        again.append(stepper.outcome(visits[i].situation.state, visits[i].action))
    picked, reached = picked[: len(again)], reached[: len(again)]
    if len(picked) < _FEWEST_RANDOM:
        return None
    test = _swap_reached_and_set(bench, picked, reached, again, rng)
    if test is None or test.p_value > _LEVEL_RANDOM:
        return None
    code = ReasonCode.HIDDEN_STATE_IN_DISTRIBUTION.value
    return state(code, feature=test.feature, p_value=test.p_value, steps=len(picked))


def _swap_reached_and_set(
    bench: Workbench, picked: Sequence[int], reached: Sequence[Step], again: Sequence[Step], rng: np.random.Generator
) -> SwapTest | None:
    stepper, visits = bench.pairs.stepper, bench.pool.visits
    memory = _columns_of_the_past(stepper, visits, picked)
    sides = [_stack_outcomes(steps) for steps in (reached, again)]
    varying = np.flatnonzero(_varying(np.concatenate(sides)) & ~memory)
    # Evenly spaced over the observation: images have thousands of columns.
    columns = varying[:: max(1, -(-len(varying) // _COORDINATES_RANDOM))]
    if not len(columns):
        return None
    names = _column_names(stepper)
    shared, shared_names = _shared_columns(bench, picked)
    late = (shared[:, -1] > np.quantile(shared[:, -1], _LATE)).astype(np.float64)
    return swap_test_given(
        sides[0][:, columns],
        sides[1][:, columns],
        tuple(names[int(j)] for j in columns),
        np.append(stepper.codec.coordinates.epsilon, [FLOAT32_EPSILON, 0.0])[columns],
        covariates=shared,
        weights=[*side_weights(shared[:, :MOST_SIDES], shared_names[:MOST_SIDES]), (_LATE_STEPS, late - late.mean())],
        level=_LEVEL_RANDOM,
        rng=rng,
    )


def _stack_outcomes(steps: Sequence[Step]) -> Floats:
    """Next observations, rewards and ends, shape (n, dim + 2)."""
    shown = np.stack([step.flat for step in steps])
    return np.concatenate([shown, [[step.reward, float(step.terminated)] for step in steps]], axis=1)


def _shared_columns(bench: Workbench, picked: Sequence[int]) -> tuple[Floats, list[str]]:
    """The shared covariates of both steps of a pair: (s, a), and the step number."""
    visits, codec = bench.pool.visits, bench.pairs.stepper.codec
    states = codec.flatten_batch([visits[i].situation.obs for i in picked])
    kept = np.flatnonzero(_varying(states))
    kept = kept[:: max(1, -(-len(kept) // _COORDINATES_RANDOM))]
    actions, action_names = action_columns(bench.pairs.stepper.action_codec, [visits[i].action for i in picked])
    number = _step_numbers(visits)[np.asarray(picked)].astype(np.float64)
    columns = np.concatenate([states[:, kept], actions, number[:, None]], axis=1)
    names = [*(codec.coordinates.names[int(j)] for j in kept), *action_names, "the step number"]
    return standardise(columns), names
