"""The maps that a symmetry claims for a network are an action of its group: L_g L_h = L_gh, and the same for K."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from symcheck.engine.registry import register
from symcheck.engine.results import Counterexample, PropertyResult

if TYPE_CHECKING:
    from symcheck.engine.networks.context import NetContext

AGREEMENT = 1e-9
"""Relative difference at which two float64 images count as one: callables may round, wrong maps differ by far more."""
INPUTS = 64


@register("group_axioms", kind="net", order=10, claim="L_g L_h = L_gh and K_g K_h = K_gh")
def check_network_group_axioms(context: NetContext) -> PropertyResult:
    """Data were checked when the symmetry was built; callables are checked on samples, relation by relation."""
    if context.inputs.is_data and not any(callable(m) for claim in context.outputs for m in claim.motions):
        relators = context.symmetry.group.relators
        return PropertyResult(
            name="group_axioms",
            verdict="proved",
            method="relations",
            checked=max(1, len(relators)),
            notes=(f"The images of the generators obey every relation of {context.symmetry.group.name}.",),
        )
    return _on_samples(context)


def _on_samples(context: NetContext) -> PropertyResult:
    import numpy as np

    rng = np.random.default_rng((context.options.seed, 6))
    x = rng.normal(size=(INPUTS, *context.subject.shape))
    outputs = context.subject.run(x, exact=True)
    checked = 0
    for relator in context.symmetry.group.relators:
        moved, images = x, dict(outputs)
        for letter in reversed(relator):
            for claim in context.outputs:
                images[claim.path] = claim.apply(letter, images[claim.path], moved)
            moved = context.inputs.apply(letter, moved)
        checked += INPUTS
        sides = [("input", x, moved), *((path, outputs[path], images[path]) for path in outputs)]
        for what, before, after in sides:
            gap = np.abs(np.asarray(before) - np.asarray(after)).reshape(INPUTS, -1).max(axis=1)
            if not (gap <= AGREEMENT * (1.0 + np.abs(before).max())).all():
                return _broken(context, relator, what, x, before, after, gap, checked)
    return PropertyResult(
        name="group_axioms",
        verdict="passed",
        method="samples",
        checked=checked,
        bound={
            "kind": "violation_fraction",
            "value": 1.0 - context.options.alpha ** (1.0 / max(1, checked)),
            "confidence": 1.0 - context.options.alpha,
            "region": f"normal inputs of shape {context.subject.shape}",
        },
        notes=(f"Every relation of {context.symmetry.group.name} held on {INPUTS} inputs.",),
    )


def _broken(
    context: NetContext,
    relator: Sequence[int],
    what: str,
    x: object,
    before: object,
    after: object,
    gap: object,
    checked: int,
) -> PropertyResult:
    import numpy as np

    place = int(np.argmax(np.asarray(gap)))
    word = " ".join(context.element(letter) for letter in relator)
    return PropertyResult(
        name="group_axioms",
        verdict="failed",
        method="samples",
        checked=checked,
        violations=1,
        max_residual=float(np.asarray(gap)[place]),
        unit="max norm",
        counterexample=Counterexample(
            group_element=word,
            observation=np.asarray(x)[place].tolist(),
            state=None,
            action=None,
            expected=np.asarray(before)[place].tolist(),
            actual=np.asarray(after)[place].tolist(),
            residual=float(np.asarray(gap)[place]),
            where=what,
        ),
        causes=(f"the {what} map is not of the order that {context.symmetry.group.name} asks for",),
        notes=(f"The relation {word} = identity of {context.symmetry.group.name} does not hold on the {what}.",),
        location=what,
    )
