"""Replays one counterexample of a report on a newly built network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from torch import nn

from symcheck.array_types import Floats
from symcheck.engine.equations import GROUP_AXIOMS, LAYER, NETWORK
from symcheck.engine.events import ignore
from symcheck.engine.networks.blame.proof import Proof
from symcheck.engine.networks.context import NetContext
from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.samples.counterexamples import both_sides, describe_input, relative_to_entries
from symcheck.engine.networks.samples.decisions import CLEAR, is_decision, staying_behind
from symcheck.engine.networks.samples.ruler import EXACT, ROUNDED
from symcheck.engine.networks.subject.subject import random_state_kept
from symcheck.engine.networks.subject.targets import resolve_network
from symcheck.engine.networks.subject.values import SignedPermutation
from symcheck.engine.published import element_parameters, element_word
from symcheck.engine.registry import describe, registered_properties
from symcheck.engine.results import PropertyResult
from symcheck.errors import SymcheckError
from symcheck.statements.statement import state
from symcheck.symmetry.symmetry import Symmetry
from symcheck.verdict import Facts, decide

_WORDS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def replay(
    net: nn.Module | Callable[[], nn.Module],
    symmetry: Symmetry,
    property_name: str,
    counterexample: Mapping[str, Any],
    options: NetOptions | None = None,
) -> PropertyResult:
    """Evaluate a counterexample again: both sides of the claim on its input, in float64.

    Args:
        net: the network, or a factory of one.
        symmetry: the claim.
        property_name: the failed network property.
        counterexample: the counterexample as in the JSON report.
        options: the options of the run that found it.

    Returns:
        The property: `failed` if the input still violates the claim, otherwise `passed` on this one input.
        `group_axioms` and `layer_certificate`, whose counterexamples concern maps and weights, are checked again as a
        whole.

    Raises:
        SymcheckError: the counterexample does not belong to this network under this symmetry.
    """
    net = resolve_network(net)
    if property_name not in (GROUP_AXIOMS.name, LAYER.name):
        symmetry = symmetry.pinned(element_word(counterexample), element_parameters(counterexample))
    with random_state_kept():
        context = NetContext(net, symmetry, options or NetOptions(), ignore)
        context.check_fit()
        entry = next((item for item in registered_properties("net") if item.name == property_name), None)
        if entry is not None and property_name in (GROUP_AXIOMS.name, LAYER.name):
            return describe(entry.check(context), entry)
        x = np.asarray(_decode_numbers(counterexample.get("observation")), dtype=np.float64)
        if x.shape != context.subject.shape:
            raise SymcheckError(
                f"expected an input of shape {context.subject.shape}, got {x.shape}.",
                where="counterexample.observation",
                remedy="Replay the report with its original network and symmetry.",
            )
        result = _evaluate_again(context, property_name, counterexample, x)
        return result if entry is None else describe(result, entry)


def check_certificate(
    net: nn.Module | Callable[[], nn.Module],
    symmetry: Symmetry,
    layers: Sequence[Mapping[str, Any]],
    options: NetOptions | None = None,
) -> PropertyResult:
    """Check a report's certificate again, with its permutations instead of a search.

    Args:
        net: the network, or a factory of one.
        symmetry: the claim.
        layers: the layers as in the JSON report: in order of execution, each with "name" and "images".
        options: the options of the run that made the report.

    Returns:
        `layer_certificate` for the current network: proved or passed if the given permutations are the action,
        otherwise failed at the first layer where they are not.

    Raises:
        SymcheckError: the network cannot be traced to its end, or its layers differ from the report's.
    """
    net = resolve_network(net)
    with random_state_kept():
        # Index among the records, which are in the order of the layers.
        given = {
            place: [SignedPermutation.from_signed_images(images) for images in layer.get("images", ())]
            for place, layer in enumerate(layers)
        }
        context = NetContext(net, symmetry, options or NetOptions(), ignore, given)
        context.check_fit()
        proof = context.proof
        names = [] if proof is None else [record.name for record in proof.records]
        if names != [layer.get("name") for layer in layers]:
            raise SymcheckError(
                f"expected the layers {[layer.get('name') for layer in layers]}, got {names}.",
                where="layers",
                remedy="Check a certificate with its original network and symmetry.",
            )
        if proof is None or proof.level is None:
            raise SymcheckError("the network cannot be traced completely, so there is no certificate.", where="layers")
        return _check_permutations(proof)


def _check_permutations(proof: Proof) -> PropertyResult:
    """The result from the weights for given permutations, without samples."""
    failure = proof.first_failure
    violations = sum(record.level == "failed" for record in proof.records)
    facts = Facts(
        # A network without layers makes no claim on weights: its certificate is the chain itself.
        checked=max(1, len(proof.records)),
        violations=violations,
        exhaustive=proof.level == "exact" and proof.certificate is not None,
        quantity=LAYER.noun,
    )
    verdict, reason = decide(facts)
    return PropertyResult(
        name=LAYER.name,
        verdict=verdict,
        method="certificate",
        checked=len(proof.records),
        violations=violations,
        max_residual=max((record.residual or 0.0 for record in proof.records), default=0.0),
        unit=LAYER.unit,
        notes=(state("certificate_checked"),),
        location=None if failure is None else failure.name,
        reason=reason,
        equation=LAYER.claim,
        meaning=LAYER.meaning,
        facts=facts,
    )


def _evaluate_again(context: NetContext, name: str, counterexample: Mapping[str, Any], x: Any) -> PropertyResult:
    generator = generator_named(context, element_word(counterexample))
    path = path_of(context, str(counterexample.get("where")))
    again = describe_input(context.claimed, x, generator, path)
    expected, actual = np.asarray(again.expected)[None], np.asarray(again.actual)[None]
    relative = float(relative_to_entries(expected, actual, context.ruler.reference[path]).max(initial=0.0))
    record = None if context.proof is None else context.proof.first_failure
    weighed = record is not None and record.certain and record.residual is not None
    # For a weight that is known to be wrong, use the exact level.
    tolerance = EXACT if weighed or context.options.strict else ROUNDED
    broken = not relative <= tolerance  # NaN and infinities fail
    if not broken and _stays_behind(context, x, generator, path):
        broken, tolerance = True, CLEAR
        again = describe_input(context.claimed, x, generator, path, exact=False)
    location = None
    if broken:
        location = record.name if record is not None else path
    facts = Facts(checked=1, violations=int(broken), quantity=NETWORK.noun)
    verdict, reason = decide(facts)
    return PropertyResult(
        name=name,
        verdict=verdict,
        method="sampled",
        checked=1,
        violations=int(broken),
        max_residual=relative,
        tolerance=tolerance,
        unit="max norm over output entries, relative to the output's size on this input",
        counterexample=again if broken else None,
        notes=(state("evaluated_again", element=again.group_element),),
        location=location,
        reason=reason,
        facts=facts,
    )


def _stays_behind(context: NetContext, x: Floats, generator: int, path: str) -> bool:
    """Whether a clear decision of the deployed network on the input violates the claim."""
    claim = context.claimed.output(path)
    if not is_decision(claim, context.outputs):
        return False
    wanted, actual = both_sides(context.claimed, claim, generator, x[None], exact=False)
    return bool(staying_behind(wanted, actual, context.ruler.reference[path].spread, claim.choices)[1][0])


def generator_named(context: NetContext, element: str) -> int:
    """The generator of that name.

    Raises:
        SymcheckError: no generator has that name.
    """
    names = [getattr(name, "word", name) for name in context.elements]
    if element not in names:
        raise SymcheckError(f"expected one of the generators {names}, got {element!r}.", where="group_element")
    return names.index(element)


def path_of(context: NetContext, where: str) -> str:
    """The output that contains a place such as "output[0][3]": the longest path that is a prefix of it.

    Raises:
        SymcheckError: there is no such output.
    """
    paths = [claim.path for claim in context.outputs if where.startswith(claim.path)]
    if not paths:
        known = [claim.path for claim in context.outputs]
        raise SymcheckError(f"expected an entry of one of the outputs {known}, got {where!r}.", where="where")
    return max(paths, key=len)


def _decode_numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode_numbers(item) for item in value]
    return _WORDS.get(value, value) if isinstance(value, str) else value
