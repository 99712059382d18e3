"""The certificate of a network that was proved: captured, followed, written, checked and run beside the network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from symcheck.certificate_checker import EXACT_CLAIM, PRODUCT_CLAIM, ULP_CLAIM, RejectedError, check, evaluate
from symcheck.engine.equations import NETWORK
from symcheck.engine.networks.capture import RefusedCaptureError, capture_network
from symcheck.engine.networks.graph.certificate import write_certificate
from symcheck.engine.networks.graph.interpreter import follow
from symcheck.engine.networks.graph.nodes import NoCertificateError
from symcheck.engine.networks.precision import copy_network, followable
from symcheck.engine.networks.values import AffineMap
from symcheck.engine.results import PropertyResult
from symcheck.files import write_text
from symcheck.statements.statement import Statement, state

if TYPE_CHECKING:
    from symcheck.engine.networks.context import NetContext

AGREEMENT = 1e-9
"""How far the nodes may be from the network, over the size of the output: rounding in deep networks, no more."""


def certify(context: NetContext) -> dict[str, Any]:
    """The certificate of a network whose weights were proved to carry the action.

    Args:
        context: the network under its symmetry.

    Returns:
        The document; the checker accepts it, and its nodes compute what the network computes.

    Raises:
        NoCertificateError: naming what ended it.
    """
    subject = context.subject
    net = copy_network(followable(subject.exact, subject.shape), device=torch.device("cpu"))
    try:
        captured = capture_network(net, subject.shape, alone=subject.one_by_one)
    except RefusedCaptureError as error:
        raise NoCertificateError(error.reason) from error
    followed = follow(captured, subject.shape)
    deployed = {**dict(subject.deployed.named_parameters()), **dict(subject.deployed.named_buffers())}
    stored = {name: _as_stored(tensor, deployed.get(name)) for name, tensor in captured.state.items()}
    symmetry = context.symmetry
    about = {"symmetry": symmetry.name, "group": symmetry.group.name, "generators": list(context.elements)}
    motions = [*context.inputs.motions, *(motion for claim in context.outputs for motion in claim.motions)]
    by_matrices = any(isinstance(motion, AffineMap) for motion in motions)
    for tolerance in (PRODUCT_CLAIM,) if by_matrices else (EXACT_CLAIM, ULP_CLAIM):
        document = write_certificate(followed, context.inputs, context.outputs, stored, about, tolerance)
        try:
            check(document)
            break
        except RejectedError as error:
            rejected = error
    else:
        raise NoCertificateError(state("SYM198", step=str(rejected)))
    _compare(document, context)
    return document


def _as_stored(tensor: torch.Tensor, deployed: torch.Tensor | None) -> Any:
    """A parameter in the dtype that it is deployed in, where NumPy has that and loses nothing."""
    exact = tensor.detach().cpu()
    if deployed is None or deployed.shape != exact.shape or deployed.dtype == torch.bfloat16:
        deployed = exact.float() if exact.is_floating_point() else exact
    numbers = deployed.detach().cpu().numpy()
    return numbers if np.array_equal(numbers.astype(np.float64), exact.double().numpy()) else exact.numpy()


def _compare(document: Mapping[str, Any], context: NetContext) -> None:
    """Run the nodes beside the network on two inputs, one of them far from typical ones.

    Raises:
        NoCertificateError: they answer otherwise.
    """
    rng = np.random.default_rng((context.options.seed, 9))
    inputs = np.stack([scale * rng.normal(size=context.subject.shape) for scale in (1.0, 1e3)])
    wanted = context.subject.run(inputs, exact=True)
    for row, x in enumerate(inputs):
        for path, numbers in evaluate(dict(document), x).items():
            gap = np.abs(numbers - wanted[path][row]).max(initial=0.0)
            if not gap <= AGREEMENT * (1.0 + np.abs(wanted[path][row]).max(initial=0.0)):
                raise NoCertificateError(state("SYM199"))


def with_certificate(results: Sequence[PropertyResult], context: NetContext, path: str | Path) -> list[PropertyResult]:
    """Write the certificate of a network that was proved, and say so, or why there is none, beside the verdict.

    Args:
        results: of the run.
        context: the network under its symmetry.
        path: where to write the certificate.

    Returns:
        The results, with a note.

    Raises:
        SymcheckError: the file cannot be written.
    """
    note = _written(results, context, path)
    return [
        replace(result, notes=(*result.notes, note)) if result.name == NETWORK.name else result for result in results
    ]


def _written(results: Sequence[PropertyResult], context: NetContext, path: str | Path) -> Statement:
    verdict = next((result.verdict for result in results if result.name == NETWORK.name), "undecided")
    if verdict not in ("proved", "passed") or context.proof is None or context.proof.level is None:
        return state("certificate_not_proved")
    try:
        document = certify(context)
    except NoCertificateError as error:
        return state("certificate_none", why=error.reason)
    write_text(path, json.dumps(document))
    return state("certificate_written", file=str(path), nodes=len(document["nodes"]))
