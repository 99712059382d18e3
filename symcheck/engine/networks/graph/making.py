"""Makes the certificate of a network: capture, follow, write, check, and compare with the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch

from symcheck.array_types import Floats
from symcheck.certificate_checker import EXACT_CLAIM, PRODUCT_CLAIM, ULP_CLAIM, Checker, RejectedError, check, evaluate
from symcheck.engine.clock import raise_if_late
from symcheck.engine.networks.capture.capture import Capture
from symcheck.engine.networks.graph.certificate import needed_nodes, write_certificate
from symcheck.engine.networks.graph.interpreter import Followed, follow
from symcheck.engine.networks.graph.nodes import NoCertificateError
from symcheck.engine.networks.graph.ties import ties_of
from symcheck.engine.networks.graph.unbounded import uneven_dependence
from symcheck.engine.networks.samples.entry_scales import difference, output_scale
from symcheck.engine.networks.samples.sampling import FAR
from symcheck.engine.networks.subject.claims import InputClaim, OutputClaim
from symcheck.engine.networks.subject.domain import Domain
from symcheck.engine.networks.subject.subject import Subject
from symcheck.engine.networks.subject.values import AffineMap, Opaque
from symcheck.statements.statement import Statement, state
from symcheck.symmetry.symmetry import Symmetry

AGREEMENT = 1e-9
"""Largest relative difference between the outputs of nodes and network: the float64 rounding of deep networks."""
MOST_IN_PRODUCTS = 20_000
"""Maximum number of products of weights and entries for which matrices are multiplied out: about a second."""


class Claimed(Protocol):
    """The interface to a network under its symmetry that a certificate needs."""

    symmetry: Symmetry

    @property
    def subject(self) -> Subject:
        """The network to run."""

    @property
    def capture(self) -> Capture | Opaque:
        """The network's graph; otherwise the reason why there is none."""

    @property
    def inputs(self) -> InputClaim:
        """The action on inputs."""

    @property
    def outputs(self) -> tuple[OutputClaim, ...]:
        """The claimed action on outputs."""

    @property
    def elements(self) -> tuple[str, ...]:
        """The names of the generators."""

    @property
    def domain(self) -> Domain | None:
        """The domain of inputs."""

    def draw_inputs(self, stream: int, count: int) -> Floats:
        """Ordinary inputs."""


def certify(context: Claimed, *, rounded: bool = True) -> dict[str, Any]:
    """The certificate of a network whose graph is equivariant.

    Args:
        context: the network under its symmetry.
        rounded: whether weights that differ by rounding are accepted.

    Returns:
        The document, which the checker accepts; its nodes compute the same outputs as the network.

    Raises:
        NoCertificateError: there is no certificate; the message gives the reason.
    """
    subject = context.subject
    captured = context.capture
    if isinstance(captured, Opaque):
        raise NoCertificateError(captured.reason)
    if captured.backend:
        raise NoCertificateError(state("SYM174", backend=captured.backend))
    followed = follow(captured, subject.shape, unknown=True)
    deployed = {**dict(subject.deployed.named_parameters()), **dict(subject.deployed.named_buffers())}
    stored = {name: _as_stored(tensor, deployed.get(name)) for name, tensor in captured.state.items()}
    symmetry = context.symmetry
    about = {"symmetry": symmetry.name, "group": symmetry.group.name, "generators": list(context.elements)}
    document = accepted_certificate(followed, context.inputs, context.outputs, stored, about, rounded=rounded)
    _compare(document, context, followed.graph.unknown)
    return document


def accepted_certificate(
    followed: Followed,
    inputs: InputClaim,
    outputs: Sequence[OutputClaim],
    stored: Mapping[str, Any],
    about: Mapping[str, Any],
    *,
    rounded: bool,
) -> dict[str, Any]:
    """The certificate with the smallest tolerance that the checker accepts.

    Args:
        followed: the network as nodes.
        inputs: the action on the input.
        outputs: the claimed action on each output.
        stored: parameters and buffers by name, as arrays of the deployed dtype.
        about: the names for the claim.
        rounded: whether weights that differ by rounding are accepted.

    Returns:
        The document.

    Raises:
        NoCertificateError: with the checker's message for the first tolerance.
    """
    motions = [*inputs.motions, *(motion for claim in outputs for motion in claim.motions)]
    tolerances = [PRODUCT_CLAIM] if any(isinstance(motion, AffineMap) for motion in motions) else [EXACT_CLAIM]
    tolerances += [ULP_CLAIM] if rounded and tolerances[0] == EXACT_CLAIM else []
    if tolerances[0] == EXACT_CLAIM and followed.graph.size <= MOST_IN_PRODUCTS:
        tolerances.append(PRODUCT_CLAIM)
    refusals = []
    for tolerance in tolerances:
        raise_if_late()
        document = write_certificate(followed, inputs, outputs, stored, about, tolerance)
        try:
            check(document)
        except RejectedError as error:
            refusals.append(str(error))
            continue
        if uneven := uneven_dependence(document, followed.graph, needed_nodes(followed, outputs)):
            raise NoCertificateError(state("SYM196", operation=uneven))
        return document
    ties = ties_of(document) if tolerances[0] == EXACT_CLAIM else None
    raise NoCertificateError(_first_stray(document) or state("SYM198", step=refusals[0]), ties or ())


def _first_stray(document: dict[str, Any]) -> Statement | None:
    """A statement on the first node with an entry at L x that equals no entry at x; None if there is none."""
    checker = Checker({**document, "claim": {**document["claim"], "tolerance": EXACT_CLAIM}})
    for node in checker.nodes:
        start = checker.at.shape[1]
        try:
            checker.node(node)
        except Exception:  # the checker has already reported the reason
            return None
        if not np.isin(np.abs(checker.at[1:, start:]), np.abs(checker.at[0])).all():
            name = node["name"] or node.get("function")
            return state("SYM194", layer=name) if node["op"] == "linear" else state("SYM197", operation=name)
    return None


def size_of(document: Mapping[str, Any]) -> int:
    """The number of rows of arguments in the nodes of a certificate."""
    return sum(int(node["x"]["shape"][0]) for node in document["nodes"] if "x" in node)


def _as_stored(tensor: torch.Tensor, deployed: torch.Tensor | None) -> Any:
    """A parameter in its deployed dtype, if NumPy supports that dtype without loss."""
    exact = tensor.detach().cpu()
    if deployed is None or deployed.shape != exact.shape or deployed.dtype == torch.bfloat16:
        deployed = exact.float() if exact.is_floating_point() else exact
    numbers = deployed.detach().cpu().numpy()
    return numbers if np.array_equal(numbers.astype(np.float64), exact.double().numpy()) else exact.numpy()


def _compare(document: Mapping[str, Any], context: Claimed, unknown: dict[str, Any]) -> None:
    """Compare the nodes with the network on two inputs, one of them far from typical ones.

    Raises:
        NoCertificateError: the outputs differ.
    """
    usual = context.draw_inputs(9, 2)
    inputs = usual if context.domain is not None else usual * np.array([1.0, FAR]).reshape(-1, *[1] * (usual.ndim - 1))
    wanted = context.subject.run(inputs, exact=True)
    for row, x in enumerate(inputs):
        for path, numbers in evaluate(dict(document), x, unknown).items():
            given = wanted[path][row].reshape(-1)
            gap = difference(numbers, given)
            if not (gap <= AGREEMENT * (1.0 + output_scale(given))).all():
                raise NoCertificateError(state("SYM199"))
