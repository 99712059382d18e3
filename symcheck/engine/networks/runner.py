"""Checks one network under one symmetry: runs the properties and emits the events in order, and returns one result."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from symcheck.engine.clock import TimeUp
from symcheck.engine.equations import NETWORK
from symcheck.engine.events import Emit, PropertyFinished, PropertyStarted, RunFinished, ignore
from symcheck.engine.networks.context import NetContext
from symcheck.engine.networks.graph.making import certify
from symcheck.engine.networks.graph.nodes import NoCertificateError
from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.subject.subject import random_state_kept
from symcheck.engine.networks.subject.targets import resolve_network
from symcheck.engine.networks.verdicts import layer_facts
from symcheck.engine.registry import Property, describe, registered_properties
from symcheck.engine.results import PropertyResult, RunResult
from symcheck.engine.unfinished import run_started
from symcheck.engine.versions import versions_of
from symcheck.errors import TargetError
from symcheck.files import write_text
from symcheck.statements.statement import Statement, state
from symcheck.symmetry import text
from symcheck.symmetry.symmetry import Symmetry
from symcheck.verdict import Facts, decide

LARGEST_LISTED = 4096
"""Maximum number of units of a layer whose permutation is written into reports."""
PACKAGES = ("symcheck", "torch", "numpy", "scipy")


def run_net(
    net: nn.Module | Callable[[], nn.Module],
    symmetry: Symmetry,
    *,
    options: NetOptions | None = None,
    target: str = "",
    command: str = "",
    emit: Emit | None = None,
) -> RunResult:
    """Check that f(L_g x) = K_g f(x), from the weights if the network can be traced, and always on samples.

    Args:
        net: the network, or a zero-argument factory of one; not modified.
        symmetry: the claim.
        options: how much to test, and how the network is deployed.
        target: the network's name in the report.
        command: the command line that repeats the run; "" if none exists.
        emit: receives events; None discards them.

    Returns:
        One result per property that applies, with the chain of layers; `interrupted` after a KeyboardInterrupt.

    Raises:
        SymcheckError: the network cannot be run, or the symmetry does not fit it.
    """
    options = options or NetOptions()
    emit = emit or ignore
    started = time.monotonic()
    net = resolve_network(net)
    # The network draws from torch's global generators; the user's state is put back.
    with random_state_kept():
        context = NetContext(net, symmetry, options, emit)
        context.check_fit()
        properties = registered_properties("net")
        if not properties:
            raise TargetError("no property of networks is registered: nothing would be tested.", where="verify-net")
        name = target or type(net).__name__
        begun = run_started("net", name, symmetry.name, symmetry.group, properties, options, command)
        emit(begun)
        results, interrupted = _check(properties, context, emit)
        if options.certificate is not None and not interrupted:
            results = _with_certificate(results, context, options.certificate)
    result = replace(
        begun.unfinished,
        properties=tuple(results),
        duration_s=time.monotonic() - started,
        versions=versions_of(*PACKAGES),
        claim=_claim(context),
        method_reason=_method_reason(context, interrupted),
        interrupted=interrupted,
        layers=_layers(context, interrupted),
    )
    emit(RunFinished(result))
    return result


def _check(properties: tuple[Property, ...], context: NetContext, emit: Emit) -> tuple[list[PropertyResult], bool]:
    results: list[PropertyResult] = []
    interrupted = False
    for item in properties:
        # After an interrupt, the remaining properties are listed as undecided.
        if interrupted:
            results.append(_unchecked_result(item))
            continue
        try:
            # A property that does not apply is left out of the report.
            if not item.applies(context):
                continue
            emit(PropertyStarted(item.name))
            results.append(describe(item.check(context), item))
            emit(PropertyFinished(results[-1]))
        except TimeUp:
            results.append(_unchecked_result(item, time_up=True))
        except KeyboardInterrupt:
            interrupted = True
            results.append(_unchecked_result(item))
    return results, interrupted


def _unchecked_result(item: Property, *, time_up: bool = False) -> PropertyResult:
    facts = Facts(checked=0, interrupted=not time_up, time_up=time_up)
    verdict, reason = decide(facts)
    return describe(PropertyResult(item.name, verdict, "sampled", checked=0, reason=reason, facts=facts), item)


def _with_certificate(results: Sequence[PropertyResult], context: NetContext, path: str | Path) -> list[PropertyResult]:
    """The results, with a note of the certificate's file, or why there is none."""
    note = _certificate_note(results, context, path)
    return [
        replace(result, notes=(*result.notes, note)) if result.name == NETWORK.name else result for result in results
    ]


def _certificate_note(results: Sequence[PropertyResult], context: NetContext, path: str | Path) -> Statement:
    verdict = next((result.verdict for result in results if result.name == NETWORK.name), "undecided")
    if verdict not in ("proved", "passed") or context.proof is None or context.proof.level is None:
        return state("certificate_not_proved")
    document = context.proof.certificate
    try:
        document = certify(context) if document is None else document
    except NoCertificateError as error:
        return state("certificate_none", why=error.reason)
    write_text(path, json.dumps(document))
    return state("certificate_written", file=str(path), nodes=len(document["nodes"]))


def _claim(context: NetContext) -> dict[str, list[str]]:
    return text.claim(context.symmetry, lambda word: context.elements[word[0]])


def _method_reason(context: NetContext, interrupted: bool) -> Statement:
    if interrupted:
        return state("method_interrupted")
    # The reason why no proof was attempted comes first, then the place where it ended.
    if context.stochastic:
        return state("method_stochastic")
    if context.remembers:
        return state("method_memory")
    proof = context.proof
    if context.subject.coarse:
        return state("method_coarse")
    if context.subject.training:
        return state("method_training")
    if proof is None:
        return state("method_callable")
    end = proof.reason
    # An end with a record is a failed layer, not a layer that could not be followed.
    if end is not None and end.record is None:
        return state("method_not_followed", where=end.where, module=end.module, source=end.source, why=end.reason)
    if proof.level not in ("exact", "rounded"):
        return state("method_layer_fails")
    if proof.compared is not None:
        return state("method_compared", kind=proof.compared.kind, one_by_one=context.batch_residual is not None)
    return state("method_certificate", one_by_one=context.batch_residual is not None)


def _layers(context: NetContext, interrupted: bool) -> tuple[dict[str, Any], ...]:
    if interrupted or not context.repeatable or context.proof is None:
        return ()
    shown = context.assessment.verdict == "failed"
    return tuple(
        {
            "name": record.name,
            "type": record.kind,
            "representation": record.representation,
            "residual": record.residual,
            "verdict": decide(layer_facts(record, shown=shown)).verdict,
            "ulps": record.ulps,
            "place": record.place,
            "source": record.source,
            "cause": record.cause,
            "bound": record.bound,
            "images": [image.signed_images() for image in record.images if image.size <= LARGEST_LISTED],
        }
        for record in context.proof.records
    )
