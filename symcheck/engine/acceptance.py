"""Accepted violations: the single implementation behind `--baseline` and `--accept-gap`.

A failed property keeps the facts that led to its verdict. The acceptance is added to them and the verdict is decided
again; the counterexample and the causes are unchanged.
"""

from __future__ import annotations

import dataclasses

from symcheck.engine.results import PropertyResult
from symcheck.statements.statement import Statement
from symcheck.verdict import Acceptance, Facts, accept, decide


def accept_violation(
    result: PropertyResult, acceptance: Acceptance, accepted: Statement, refused: Statement
) -> PropertyResult:
    """Decide a failed property again, given the violations that the project accepts.

    Args:
        result: the failed property.
        acceptance: the kind of acceptance, the size of the violation and the limit.
        accepted: the note to attach if the size is within the limit.
        refused: the note to attach if the violation is not accepted.

    Returns:
        The property: passed and approximate if within the limit, otherwise still failed, with the note.

    Example:
        >>> from symcheck.statements.statement import free
        >>> item = PropertyResult("reward_invariance", "failed", "paired", 9, violations=9)
        >>> once = accept_violation(item, Acceptance("baseline", 0.1, 0.2), free("small"), free("large"))
        >>> once.verdict, once.accepted_by, once.approximate
        ('passed', 'baseline', True)
        >>> accept_violation(item, Acceptance("baseline", 0.3, 0.2), free("small"), free("large")).detail
        'Large.'
    """
    # A user's own property may only state that it failed.
    known = result.facts or Facts(checked=result.checked, violations=max(1, result.violations))
    facts = accept(known, acceptance)
    decision = decide(facts)
    within = decision.holds
    return dataclasses.replace(
        result,
        verdict=decision.verdict,
        reason=decision.reason,
        facts=facts,
        approximate=within or result.approximate,
        accepted_by=acceptance.by if within else result.accepted_by,
        notes=(accepted if within else refused, *result.notes),
    )
