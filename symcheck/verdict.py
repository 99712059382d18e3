"""Decides verdicts: from the facts of a comparison to a verdict and its reason.

Methods measure and fill in `Facts`; `decide` gives the verdict. It starts at undecided, and it is the only place in the
program that returns `passed` or `proved`: a pass requires comparisons that could have shown a violation. The guards are
checked in the same order for all methods: environments, networks, start distributions, axioms and tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, NamedTuple

from symcheck.statements.statement import Statement, state

Verdict = Literal["proved", "passed", "failed", "undecided"]
AcceptedBy = Literal["baseline", "accept_gap"]


class ReasonCode(StrEnum):
    """Why a verdict is not a plain pass or failure; sentences are in `symcheck/statements/reasons.toml`."""

    NOT_REPEATABLE = "not_repeatable"
    VIOLATIONS_UNJUDGED = "violations_unjudged"
    INTERRUPTED = "interrupted"
    NAN_ONLY = "nan_only"
    FAIL_FAST = "fail_fast"
    TIME_UP = "time_up"
    TOO_FEW = "too_few"
    ROUNDING_DECIDES = "rounding_decides"
    NOTHING_MOVES = "nothing_moves"
    CONSTANT = "constant"
    SILENT_COORDINATES = "silent_coordinates"
    HIDDEN_STATE = "hidden_state"
    HIDDEN_TIME = "hidden_time"
    HIDDEN_STEP = "hidden_step"
    HIDDEN_STATE_IN_DISTRIBUTION = "hidden_state_in_distribution"
    HIDDEN_STATE_SURVIVES = "hidden_state_survives"
    SETTING_HAS_NO_EFFECT = "setting_has_no_effect"
    SLOTS_LEAK = "slots_leak"
    OUTCOMES_RANDOM = "outcomes_random"
    STATISTICS_ASYMMETRIC = "statistics_asymmetric"
    START_FOLLOWS_PAST = "start_follows_past"
    START_ASYMMETRIC = "start_asymmetric"
    START_UNKNOWN = "start_unknown"
    BOX_EXITS = "box_exits"
    THRESHOLD_IN_DOUBT = "threshold_in_doubt"
    STOCHASTIC = "stochastic"
    MEMORY = "memory"
    CALLS_CHANGE_STATE = "calls_change_state"
    ANSWERS_BY_GRADIENTS = "answers_by_gradients"
    MIXED_BATCHES = "mixed_batches"
    NOT_JUDGED = "not_judged"
    CONSTANT_OUTPUT = "constant_output"
    COARSE_RESIDUAL = "coarse_residual"
    DEPLOYED_NOISE = "deployed_noise"
    DECISIONS_FLIP = "decisions_flip"
    DEPLOYED_OFF = "deployed_off"
    ROUNDING_AMPLIFIED = "rounding_amplified"
    OUTSIDE_SPACE = "outside_space"
    NO_OUTPUT_SHOWS = "no_output_shows"
    MIRROR_AMBIGUOUS = "mirror_ambiguous"
    NO_END_REACHED = "no_end_reached"
    IMAGES_BESIDE_ORIGINAL = "images_beside_original"


@dataclass(frozen=True)
class Acceptance:
    """A violation that the project accepts.

    Attributes:
        by: where it is accepted.
        size: the size of the violation.
        limit: the largest accepted size, in the same unit.
    """

    by: AcceptedBy
    size: float
    limit: float


@dataclass(frozen=True)
class Facts:
    """The results of a method's comparisons, for one property.

    Attributes:
        checked: the number of comparisons.
        least: the number of comparisons below which nothing is decided; at least 1.
        violations: the number of confirmed violations; 1 for a statistical test that rejected.
        exhaustive: whether every case was enumerated, or a certificate holds for every input.
        quantity: the compared quantity, as a noun ("reward").
        finite: whether at least one side of some comparison was finite.
        moved: whether the claim acts non-trivially on any tested value.
        constant: the value of an outcome that never varied, as text; None if it varied, or was not examined.
        silent: the names of coordinates that were never finite and were therefore not compared.
        unrepeatable: the number of suspects whose outcome did not reproduce when they were stepped again.
        unjudged: the number of suspects for which it is not known whether they violate the claim.
        swamped: the fraction of comparisons in which rounding may change outcomes as much as a violation.
        interrupted: whether the user ended the run first.
        stopped: whether the run ended first because another property failed (--fail-fast).
        time_up: whether the time budget ended first.
        unattributed: why violations may not be attributed to this property; None if they may.
        doubts: the reasons against a pass, the most serious first.
        accepted: the violation that the project accepts; None if there is none.
        stuck: if no comparison had a number, the value on both sides: "NaN" or "infinite".
        prevented: the reason why nothing could be compared; None if something was or could have been compared.
    """

    checked: int
    least: int = 1
    violations: int = 0
    exhaustive: bool = False
    quantity: str = "value"
    finite: bool = True
    moved: bool = True
    constant: str | None = None
    silent: tuple[str, ...] = ()
    unrepeatable: int = 0
    unjudged: int = 0
    swamped: float = 0.0
    interrupted: bool = False
    stopped: bool = False
    time_up: bool = False
    unattributed: Statement | None = None
    doubts: tuple[Statement, ...] = ()
    accepted: Acceptance | None = None
    stuck: str = "NaN"
    prevented: Statement | None = None


class Decision(NamedTuple):
    """A verdict and, if it is not a plain pass or failure, the reason."""

    verdict: Verdict
    reason: Statement | None = None

    @property
    def holds(self) -> bool:
        """Whether the verdict counts as success: proved, passed or accepted."""
        return self.verdict in ("proved", "passed")


def decide(facts: Facts) -> Decision:
    """The verdict that the facts justify, never a stronger one.

    Args:
        facts: the results of the comparisons.

    Returns:
        failed if a violation is confirmed and may be attributed to the property; passed if it is accepted; proved if
        nothing is violated and every case was covered; passed if there were enough comparisons; otherwise undecided.

    Example:
        >>> decide(Facts(checked=500))
        Decision(verdict='passed', reason=None)
        >>> decide(Facts(checked=500, finite=False, quantity="reward")).reason.text
        'every reward was NaN on both sides, so nothing could be compared'
        >>> decide(Facts(checked=0)).verdict
        'undecided'
    """
    # Violations first: a confirmed violation counts, even if little else was compared.
    if facts.violations:
        return _decide_violated(facts)
    if facts.prevented is not None:
        return Decision("undecided", facts.prevented)
    for code, holds in _GUARDS:
        if holds(facts):
            return Decision("undecided", _reason(code, facts))
    if facts.doubts:
        return Decision("undecided", facts.doubts[0])
    reason = None
    if facts.constant is not None:
        reason = _reason(ReasonCode.CONSTANT, facts)
    elif facts.silent:
        reason = _reason(ReasonCode.SILENT_COORDINATES, facts)
    return Decision("proved" if facts.exhaustive else "passed", reason)


def accept(facts: Facts, acceptance: Acceptance) -> Facts:
    """Add the violation that the project accepts to the facts.

    Example:
        >>> facts = accept(Facts(checked=9, violations=9), Acceptance("baseline", size=0.1, limit=0.2))
        >>> decide(facts).verdict
        'passed'
    """
    return replace(facts, accepted=acceptance)


def _decide_violated(facts: Facts) -> Decision:
    if facts.unattributed is not None:
        return Decision("undecided", facts.unattributed)
    accepted = facts.accepted
    # Written so that a size of NaN is not accepted.
    if accepted is not None and accepted.size <= accepted.limit:
        return Decision("passed")
    return Decision("failed")


MOST_SWAMPED = 0.05  # limiting fraction of the comparisons: violations may hide in these

# In the order of evaluation: guards that invalidate every comparison come before those on their number.
_GUARDS: tuple[tuple[ReasonCode, Callable[[Facts], bool]], ...] = (
    (ReasonCode.NOT_REPEATABLE, lambda facts: facts.unrepeatable > 0),
    (ReasonCode.VIOLATIONS_UNJUDGED, lambda facts: facts.unjudged > 0),
    (ReasonCode.INTERRUPTED, lambda facts: facts.interrupted),
    (ReasonCode.NAN_ONLY, lambda facts: facts.checked > 0 and not facts.finite),
    (ReasonCode.FAIL_FAST, lambda facts: facts.stopped),
    (ReasonCode.TIME_UP, lambda facts: facts.time_up and facts.checked < facts.least),
    (ReasonCode.TOO_FEW, lambda facts: facts.checked < max(1, facts.least)),
    (ReasonCode.ROUNDING_DECIDES, lambda facts: facts.swamped > MOST_SWAMPED),
    (ReasonCode.NOTHING_MOVES, lambda facts: not facts.moved),
)


def _reason(code: ReasonCode, facts: Facts) -> Statement:
    fields: dict[ReasonCode, dict[str, object]] = {
        ReasonCode.NOT_REPEATABLE: {"unrepeatable": facts.unrepeatable},
        ReasonCode.VIOLATIONS_UNJUDGED: {"unjudged": facts.unjudged},
        ReasonCode.INTERRUPTED: {"checked": facts.checked},
        ReasonCode.NAN_ONLY: {"quantity": facts.quantity, "value": facts.stuck},
        ReasonCode.TIME_UP: {"checked": facts.checked},
        ReasonCode.TOO_FEW: {"checked": facts.checked, "least": max(1, facts.least)},
        ReasonCode.ROUNDING_DECIDES: {"share": facts.swamped, "quantity": facts.quantity},
        ReasonCode.CONSTANT: {"quantity": facts.quantity, "value": facts.constant},
        ReasonCode.SILENT_COORDINATES: {"coordinates": list(facts.silent)},
    }
    return state(code.value, **fields.get(code, {}))
