"""Certificates with one thing changed, and whether what is left is equivariant: by running it, not by its laws."""

from __future__ import annotations

import base64
import copy
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.certificate_checker import RejectedError, check, digest, evaluate, unpack
from symcheck.engine.networks.capture.capture import Capture
from symcheck.engine.networks.context import NetContext
from symcheck.engine.networks.graph.interpreter import follow
from symcheck.engine.networks.graph.making import accepted_certificate, certify
from symcheck.engine.networks.graph.nodes import NoCertificateError
from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.subject.claims import InputClaim, OutputClaim
from symcheck.symmetry.symmetry import Symmetry


def certificate_of(net: Any, symmetry: Symmetry, **options: Any) -> dict[str, Any]:
    context = NetContext(net, symmetry, NetOptions(**options), lambda event: None)
    context.check_fit()
    return certify(context)


def is_certified(captured: Capture, inputs: InputClaim, outputs: Sequence[OutputClaim]) -> bool:
    """Whether the checker accepts a certificate of a captured network, weights equal bit by bit."""
    return why_not_certified(captured, inputs, outputs) is None


def why_not_certified(
    captured: Capture, inputs: InputClaim, outputs: Sequence[OutputClaim]
) -> NoCertificateError | None:
    """Why the checker accepts none."""
    stored = {name: tensor.detach().numpy() for name, tensor in captured.state.items()}
    about = {"generators": [str(place) for place in range(len(inputs.motions))]}
    try:
        accepted_certificate(
            follow(captured, inputs.shape, unknown=True), inputs, outputs, stored, about, rounded=False
        )
    except NoCertificateError as error:
        return error
    return None


def arrays_of(item: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where arrays are stored in a document."""
    if isinstance(item, dict) and "data" in item:
        yield path
    elif isinstance(item, dict | list):
        for key, part in item.items() if isinstance(item, dict) else enumerate(item):
            yield from arrays_of(part, (*path, key))


def stored_at(document: dict[str, Any], path: tuple[Any, ...]) -> Any:
    item: Any = document
    for key in path:
        item = item[key]
    return item


def bits_of(document: dict[str, Any]) -> list[tuple[tuple[Any, ...], int]]:
    """Every bit of every array: its place and its number."""
    return [(path, bit) for path in arrays_of(document) for bit in range(unpack(stored_at(document, path)).nbytes * 8)]


def flipped(document: dict[str, Any], path: tuple[Any, ...], bit: int, *, sealed: bool) -> dict[str, Any]:
    """The document with one bit of an array flipped; `sealed` with the digest of what it holds now."""
    mutant = copy.deepcopy(document)
    stored = stored_at(mutant, path)
    data = bytearray(unpack(stored).tobytes())
    data[bit // 8] ^= 1 << bit % 8
    stored["data"] = base64.b64encode(zlib.compress(bytes(data)) if stored.get("packed") else bytes(data)).decode()
    return seal(mutant) if sealed else mutant


def seal(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "digest": digest(document)}


def is_accepted(document: dict[str, Any]) -> bool:
    try:
        check(document)
    except RejectedError:
        return False
    return True


def residual(document: dict[str, Any], inputs: Floats) -> float:
    """The largest |f(L x) - K f(x)| over some inputs, L and K as the document says; infinite where it does not run."""
    worst = 0.0
    start = next(node for node in document["nodes"] if node["op"] == "input")
    try:
        for generator, action in enumerate(start["actions"]):
            for x in inputs:
                usual, moved = evaluate(document, x), evaluate(document, apply(action, x))
                for output in document["outputs"]:
                    y = apply(output["actions"][generator], usual[output["path"]])
                    gap = np.abs(moved[output["path"]] - y).max(initial=0.0)
                    worst = max(worst, float(gap / (1.0 + np.abs(y).max(initial=0.0))))
                    if np.isnan(gap):
                        return float("inf")
    except Exception:
        return float("inf")
    return worst


def apply(action: dict[str, Any], x: Floats) -> Floats:
    if "matrix" in action:
        return unpack(action["matrix"]) @ x + unpack(action["offset"])
    return np.asarray(unpack(action["sign"]) * x[unpack(action["index"])], dtype=np.float64)
