"""Accepting a violation that a project lives with: the one way, for `--baseline` and for `--accept-gap`.

A failed property keeps the facts that it was decided from. With what the project accepts added, they are decided again;
the counterexample and the causes stay as they are.
"""

from __future__ import annotations

import dataclasses

from symcheck.engine.results import PropertyResult
from symcheck.statements.statement import Statement
from symcheck.verdict import Acceptance, Facts, accept, decide


def accept_violation(
    result: PropertyResult, acceptance: Acceptance, accepted: Statement, refused: Statement
) -> PropertyResult:
    """A failed property, decided again with what the project accepts.

    Args:
        result: the failed property.
        acceptance: where it is accepted, its size and the limit.
        accepted: the note where it is within the limit.
        refused: the note where it is not.

    Returns:
        The property, approximate and passed within the limit; else failed, with the note.

    Example:
        >>> from symcheck.statements.statement import free
        >>> item = PropertyResult("reward_invariance", "failed", "paired", 9, violations=9)
        >>> once = accept_violation(item, Acceptance("baseline", 0.1, 0.2), free("small"), free("large"))
        >>> once.verdict, once.accepted_by, once.approximate
        ('passed', 'baseline', True)
        >>> accept_violation(item, Acceptance("baseline", 0.3, 0.2), free("small"), free("large")).detail
        'Large.'
    """
    # A property of a user's own may say no more than that it failed.
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
