"""A trained policy is equivariant on the states that it visits: pi(g s) = g pi(s)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symcheck.engine.equations import POLICY
from symcheck.engine.registry import register
from symcheck.engine.results import Counterexample, PropertyResult
from symcheck.statements.statement import Statement, state
from symcheck.verdict import Facts, decide

if TYPE_CHECKING:
    from symcheck.array_types import Floats
    from symcheck.engine.policies.context import PolicyContext

_WORST = 5
_CODES = {"normaliser": "SYM250", "network": "SYM251", "post": "SYM252"}


@register(POLICY.name, kind="policy", order=10, claim=POLICY.claim, meaning=POLICY.meaning)
def check_policy_equivariance(context: PolicyContext) -> PropertyResult:
    """Check the residual of every action on every state, under every element.

    Args:
        context: the run.

    Returns:
        passed, or failed with the worst state and the part that contributes most to the residual.
    """
    # (elements, states, actions): NaN counts as a violation.
    sizes = np.stack([context.residuals[word] for word in context.words])
    violated = ~(sizes <= context.tolerances)
    deviations = context.deviation_residuals
    deviating = 0 if deviations is None else int((~(deviations <= context.tolerances)).sum())
    facts = Facts(
        checked=sizes.shape[0] * sizes.shape[1],
        violations=int(violated.any(axis=2).sum()) + deviating,
        quantity=POLICY.noun,
        moved=_something_moves(context),
    )
    verdict, reason = decide(facts)
    largest = float(np.nan_to_num(sizes, nan=np.inf).max(initial=0.0))
    return PropertyResult(
        name=POLICY.name,
        verdict=verdict,
        method="states",
        checked=facts.checked,
        violations=facts.violations,
        max_residual=largest,
        tolerance=float(context.tolerances.max()),
        unit=_unit(context),
        counterexample=_worst_state(context, sizes) if verdict == "failed" else None,
        causes=_causes_by_part(context) if verdict == "failed" else (),
        notes=_notes_of_states(context, sizes),
        per_coordinate=_coordinates(context, sizes),
        reason=reason,
        parts=_published_parts(context),
        facts=facts,
    )


def _something_moves(context: PolicyContext) -> bool:
    """Whether an element changes an observation or an action."""
    states = context.observations
    parts = states if isinstance(states, dict) else {"": states}
    for word in context.words:
        moved = context.moved_states(word)
        images = moved if isinstance(moved, dict) else {"": moved}
        if any(not np.array_equal(parts[key], images[key]) for key in parts):
            return True
        if not np.array_equal(context.move_action(word, context.answer.action), context.answer.action):
            return True
    return False


def _unit(context: PolicyContext) -> str:
    return f"{POLICY.unit}, in {context.options.units}" if context.options.units else POLICY.unit


def _coordinates(context: PolicyContext, sizes: Floats) -> tuple[dict[str, Any], ...]:
    largest = sizes.max(axis=(0, 1))
    return tuple(
        {"name": name, "max_residual": float(largest[i]), "tolerance": float(context.tolerances[i])}
        for i, name in enumerate(context.names)
    )


def _published_parts(context: PolicyContext) -> dict[str, Any]:
    keys = ("max_residual", "mean_residual", "action")
    return {name: None if part is None else {key: part[key] for key in keys} for name, part in context.parts.items()}


def _worst_state(context: PolicyContext, sizes: Floats) -> Counterexample:
    filled = np.nan_to_num(sizes, nan=np.inf)
    k, row, column = (int(i) for i in np.unravel_index(int(filled.argmax()), sizes.shape))
    word = context.words[k]
    moved = context.moved_states(word)
    return Counterexample(
        group_element=context.symmetry.group.word_name(word),
        observation=_one_state(context.observations, row),
        state=None,
        action=context.answer.action[row].tolist(),
        expected=context.move_action(word, context.answer.action[row : row + 1])[0].tolist(),
        actual=context.moved_answer(word).action[row].tolist(),
        residual=float(sizes[k, row, column]),
        where=context.names[column],
        image_observation=_one_state(moved, row),
    )


def _one_state(batch: Any, row: int) -> Any:
    if isinstance(batch, dict):
        return {key: value[row].tolist() for key, value in batch.items()}
    return batch[row].tolist()


def _causes_by_part(context: PolicyContext) -> tuple[Statement, ...]:
    violating = [(name, part) for name, part in context.parts.items() if part is not None and part["violates"]]
    causes = []
    for name, part in sorted(violating, key=lambda item: -item[1]["max_residual"]):
        if name == "normaliser":
            columns, shown = context.one_sided_columns, _shown_columns(context)
            fields = {"residual": part["max_residual"], "action": part["action"]}
            causes.append(state("SYM250", columns=columns, shown=shown, **fields))
        else:
            causes.append(state(_CODES[name], residual=part["max_residual"], action=part["action"]))
    if not causes and context.one_sided_columns:
        causes.append(state("SYM250", columns=context.one_sided_columns, shown=_shown_columns(context)))
    return tuple(causes)


def _shown_columns(context: PolicyContext) -> str:
    """The first columns with asymmetric statistics, with their key if observations have keys."""
    columns = context.one_sided_columns
    listed = [f"column {c['column']}" + (f" of {c['key']!r}" if "key" in c else "") for c in columns[:6]]
    return ", ".join(listed) + (f" and {len(columns) - 6} more" if len(columns) > 6 else "")


def _notes_of_states(context: PolicyContext, sizes: Floats) -> tuple[Statement, ...]:
    per_state = np.nan_to_num(sizes, nan=np.inf).max(axis=(0, 2))
    worst = np.argsort(-per_state)[:_WORST].tolist()
    notes = [
        state("policy_worst_states", states=worst, residuals=[float(per_state[i]) for i in worst]),
        state("policy_mean_residual", mean=float(sizes.mean())),
        state("policy_parts", **{name: part and part["max_residual"] for name, part in context.parts.items()}),
    ]
    if context.options.tolerance is None:
        notes.append(state("tolerance_policy"))
    if context.deviation_residuals is not None:
        notes.append(
            state("policy_deviations", residual=float(np.nan_to_num(context.deviation_residuals, nan=np.inf).max()))
        )
    gait = context.gait
    if len(gait) and float(gait.max()) > 0:
        notes.append(state("policy_gait", size=float(gait.max()), action=context.names[int(gait.argmax())]))
    return tuple(notes)
