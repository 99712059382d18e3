"""Likely causes of a failure, by trying what would hold instead on fresh inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from symcheck.engine.networks.claims import InputClaim, OutputClaim
from symcheck.engine.networks.measuring import difference, output_scale
from symcheck.engine.networks.proof import Proof
from symcheck.engine.networks.subject import Subject
from symcheck.engine.networks.values import AffineMap, FloatArray, SignedPermutation

HOLDS = 1e-5
"""Residual over output scale at which an alternative counts as holding: the published level for outputs."""
INPUTS = 16
LARGEST_SIGN_SEARCH = 64
ONE_SIDED = (
    "an output is infinite on one side only: a mask of actions that does not move along with the action, or an overflow"
)


def causes(
    subject: Subject,
    inputs: InputClaim,
    outputs: Sequence[OutputClaim],
    proof: Proof | None,
    path: str,
    generator: int,
    rng: np.random.Generator,
    *,
    one_sided: bool = False,
) -> tuple[str, ...]:
    """Likely causes, most likely first.

    Args:
        subject: the network.
        inputs: how inputs move.
        outputs: how outputs should move.
        proof: what the weights said.
        path: the output that failed.
        generator: the generator under which it failed.
        rng: the source of randomness.
        one_sided: whether an output was infinite on one side of the claim only.

    Returns:
        Sentences; alternatives that hold on all inputs tried come before what the first failing layer says.
    """
    claim = next(one for one in outputs if one.path == path)
    found = [ONE_SIDED] if one_sided else []
    x = rng.normal(size=(INPUTS, *inputs.shape)) if len(inputs.shape) == 1 else rng.random((INPUTS, *inputs.shape))
    y = subject.run(x, exact=True)[path]
    z = subject.run(inputs.apply(generator, x), exact=True)[path]
    found += _outputs_that_hold(claim, generator, x, y, z)
    found += list(_signs_that_hold(subject, inputs, claim, generator, x, y))
    failure = None if proof is None else proof.first_failure
    if failure is not None:
        layer = f"{failure.name}: " if failure.name else ""
        found += [f"{layer}{what}" for what in (failure.cause, failure.pattern) if what]
    if proof is not None and proof.reason is not None and proof.reason.record is None:
        found.append(f"not followed beyond {proof.reason.where}: {proof.reason.reason}")
    return tuple(dict.fromkeys(found))


def _holds(wanted: FloatArray, found: FloatArray) -> bool:
    return bool(difference(wanted, found).max(initial=0.0) <= HOLDS * output_scale(wanted, found))


def _outputs_that_hold(
    claim: OutputClaim, generator: int, x: FloatArray, y: FloatArray, z: FloatArray
) -> Iterator[str]:
    motion = claim.motions[generator]
    wanted = claim.apply(generator, y, x)
    if _holds(wanted, z):
        return
    inverse = _inverse(motion)
    if inverse is not None:
        back = OutputClaim(claim.path, claim.role, claim.size, (inverse,)).apply(0, y, x)
        if _holds(back, z):
            what = (
                f"; the inverse permutation {inverse.index.tolist()} is the one that holds" if _plain(inverse) else ""
            )
            yield (
                f"equivariant to the inverse action: f(L x) = K^-1 f(x) holds{what} (a missing inverse, or actions "
                "listed in the other direction)"
            )
            return
    if _holds(y, z) and claim.role != "invariant":
        yield "the output does not move at all: f(L x) = f(x) holds; its action map would be the identity"
        return
    permutation = _permutation_that_holds(y, z)
    if permutation is not None and claim.size > 1:
        yield f"action order: the permutation {permutation} holds instead of the declared {_declared(motion)}"
    elif claim.size > 1 and _holds(-wanted, z):
        yield "the sign of every output component is reversed: f(L x) = -K f(x) holds"


def _inverse(motion: object) -> SignedPermutation | None:
    if not isinstance(motion, SignedPermutation):
        return None
    inverse = np.argsort(motion.index)
    sign = motion.sign[inverse]
    same = np.array_equal(inverse, motion.index) and np.array_equal(sign, motion.sign)
    return None if same else SignedPermutation(inverse, sign)


def _plain(motion: SignedPermutation) -> bool:
    return bool((motion.sign > 0).all())


def _declared(motion: object) -> str:
    if isinstance(motion, SignedPermutation):
        return str((motion.index if _plain(motion) else (motion.index + 1) * motion.sign).tolist())
    return "matrix" if isinstance(motion, AffineMap) else "callable"


def _permutation_that_holds(y: FloatArray, z: FloatArray) -> list[int] | None:
    """The p with z[p[a]] = y[a] on all inputs, where each column fits exactly one."""
    size = y.shape[1]
    if size > 64:
        return None
    scale = output_scale(y, z)
    fits = difference(y[:, :, None], z[:, None, :]).max(axis=0) <= HOLDS * scale
    if not (fits.sum(axis=0) == 1).all() or not (fits.sum(axis=1) == 1).all():
        return None
    return [int(p) for p in fits.argmax(axis=1)]


def _signs_that_hold(
    subject: Subject, inputs: InputClaim, claim: OutputClaim, generator: int, x: FloatArray, y: FloatArray
) -> Iterator[str]:
    """One observation component whose other sign would make the claim hold."""
    motion = inputs.motions[generator]
    size = int(np.prod(inputs.shape))
    if not isinstance(motion, SignedPermutation) or len(inputs.shape) != 1 or size > LARGEST_SIGN_SEARCH:
        return
    wanted = claim.apply(generator, y, x)
    for place in range(size):
        sign = motion.sign.copy()
        sign[place] = -sign[place]
        other = InputClaim(inputs.shape, (SignedPermutation(motion.index, sign),))
        if _holds(wanted, subject.run(other.apply(0, x), exact=True)[claim.path]):
            yield f"the claim holds with sign {'+1' if sign[place] > 0 else '-1'} on input component {place}"
            return
