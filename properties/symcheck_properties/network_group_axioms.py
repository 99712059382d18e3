"""The maps that a symmetry claims for a network are an action of its group: L_g L_h = L_gh, and the same for K."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from symcheck.engine.equations import GROUP_AXIOMS
from symcheck.engine.registry import register
from symcheck.engine.results import Counterexample, PropertyResult
from symcheck.statements.statement import state
from symcheck.verdict import Facts, decide

if TYPE_CHECKING:
    from symcheck.engine.networks.context import NetContext

AGREEMENT = 1e-9
"""Relative difference up to which two float64 images count as equal: callables may round, wrong maps differ by far
more."""
INPUTS = 64


@register(GROUP_AXIOMS.name, kind="net", order=10, claim=GROUP_AXIOMS.claim, meaning=GROUP_AXIOMS.meaning)
def check_network_group_axioms(context: NetContext) -> PropertyResult:
    """Check callables on samples, relation by relation; data were checked when the symmetry was built."""
    # The relations of data were checked exactly during construction; only callables need samples.
    if not context.inputs.is_data or any(callable(m) for claim in context.outputs for m in claim.motions):
        return _on_samples(context)
    group = context.symmetry.group
    facts = Facts(checked=max(1, len(group.relators)), exhaustive=True, quantity=GROUP_AXIOMS.noun)
    verdict, reason = decide(facts)
    return PropertyResult(
        name=GROUP_AXIOMS.name,
        verdict=verdict,
        method="relations",
        checked=facts.checked,
        notes=(state("relations_hold", group=group.name),),
        reason=reason,
        facts=facts,
    )


@dataclass(frozen=True, eq=False)
class _Comparison:
    """The effect of one relation of the group on inputs or on one output; shapes (INPUTS, ...).

    Attributes:
        relation: the word that should act as the identity, in generator names.
        where: "input", or the output's path.
        before: the values.
        after: their images under the word.
    """

    relation: str
    where: str
    before: npt.NDArray[np.float64]
    after: npt.NDArray[np.float64]

    @property
    def gap(self) -> npt.NDArray[np.float64]:
        """The largest difference of each sample."""
        return np.asarray(np.abs(self.before - self.after).reshape(INPUTS, -1).max(axis=1))

    @property
    def holds(self) -> bool:
        """Whether every sample is mapped to itself; False for NaN."""
        # Relative to the largest value of all samples; NaN compares as False.
        return bool((self.gap <= AGREEMENT * (1.0 + np.abs(self.before).max())).all())


def _comparisons(context: NetContext, x: npt.NDArray[np.float64]) -> Iterator[list[_Comparison]]:
    """For every relation, inputs and outputs before and after its action."""
    outputs = context.subject.run(x, exact=True)
    for relator in context.symmetry.group.relators:
        moved, images = x, dict(outputs)
        # A word acts from the right, its last letter first. K gets the input at that point.
        for letter in reversed(relator):
            for claim in context.outputs:
                images[claim.path] = claim.apply(letter, images[claim.path], moved)
            moved = context.inputs.apply(letter, moved)
        word = " ".join(context.elements[letter] for letter in relator)
        sides = [("input", x, moved), *((path, outputs[path], images[path]) for path in outputs)]
        yield [_Comparison(word, where, np.asarray(before), np.asarray(after)) for where, before, after in sides]


def _on_samples(context: NetContext) -> PropertyResult:
    x = context.draw_inputs(6, INPUTS)
    checked = 0
    for comparisons in _comparisons(context, x):
        # One relation on INPUTS samples, inputs and outputs together.
        checked += INPUTS
        broken = next((item for item in comparisons if not item.holds), None)
        if broken is not None:
            return _report_broken(context, broken, x, checked)
    group, alpha = context.symmetry.group, context.options.alpha
    facts = Facts(checked=checked, quantity=GROUP_AXIOMS.noun)
    verdict, reason = decide(facts)
    return PropertyResult(
        name=GROUP_AXIOMS.name,
        verdict=verdict,
        method="samples",
        checked=checked,
        bound={
            "kind": "violation_fraction",
            # Zero violations in n samples: (1 - p)^n = alpha.
            "value": 1.0 - alpha ** (1.0 / max(1, checked)),
            "confidence": 1.0 - alpha,
            "region": state("region_normal", shape=list(context.subject.shape)),
        },
        notes=(state("relations_on_inputs", group=group.name, samples=INPUTS),),
        reason=reason,
        facts=facts,
    )


def _report_broken(
    context: NetContext, broken: _Comparison, x: npt.NDArray[np.float64], checked: int
) -> PropertyResult:
    place, gap, group = int(np.argmax(broken.gap)), broken.gap, context.symmetry.group.name
    facts = Facts(checked=checked, violations=1, quantity=GROUP_AXIOMS.noun)
    verdict, reason = decide(facts)
    details = {"relation": broken.relation, "group": group, "where": broken.where}
    return PropertyResult(
        name=GROUP_AXIOMS.name,
        verdict=verdict,
        method="samples",
        checked=checked,
        violations=1,
        max_residual=float(gap[place]),
        unit="max norm",
        counterexample=Counterexample(
            group_element=broken.relation,
            observation=x[place].tolist(),
            state=None,
            action=None,
            expected=broken.before[place].tolist(),
            actual=broken.after[place].tolist(),
            residual=float(gap[place]),
            where=broken.where,
        ),
        causes=(state("SYM139", **details),),
        notes=(state("relation_broken", **details),),
        location=broken.where,
        reason=reason,
        facts=facts,
    )
