"""Likely causes of a failure, found by testing alternative claims on fresh inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from torch import nn

from symcheck.array_types import Floats
from symcheck.engine.networks.blame.proof import Proof
from symcheck.engine.networks.samples.entry_scales import difference, entry_gaps, entry_scales, output_scale
from symcheck.engine.networks.subject.claims import InputClaim, OutputClaim
from symcheck.engine.networks.subject.subject import Subject
from symcheck.engine.networks.subject.values import AffineMap, Opaque, SignedPermutation
from symcheck.statements.statement import Statement, state

HOLDS = 1e-5
"""Largest residual over output scale at which an alternative claim holds: the published level for outputs."""
# Number of inputs that distinguish alternatives; an alternative must hold on all of them.
INPUTS = 16
# Largest observation size for which every sign is tried; each costs one forward pass.
LARGEST_SIGN_SEARCH = 64


def diagnose(
    subject: Subject,
    inputs: InputClaim,
    outputs: Sequence[OutputClaim],
    proof: Proof | None,
    path: str,
    generator: int,
    x: Floats,
    *,
    one_sided: bool = False,
) -> tuple[Statement, ...]:
    """Alternative claims that hold on all tested inputs, most likely first.

    Args:
        subject: the network.
        inputs: the action on inputs.
        outputs: the claimed action on outputs.
        proof: the result from the weights.
        path: the output that failed.
        generator: the generator under which it failed.
        x: inputs that distinguish alternatives, shape (n, *shape).
        one_sided: whether an output was infinite on exactly one side of the claim.

    Returns:
        The statements.

    Raises:
        TimeUp: the time budget is spent.
    """
    claim = next(item for item in outputs if item.path == path)
    causes = [state("SYM152", infinite=True, output=path)] if one_sided else []
    y = subject.run(x, exact=True)[path]
    z = subject.run(inputs.apply(generator, x), exact=True)[path]
    failure = None if proof is None else proof.first_failure
    if (y != y[:1]).any() or failure is None:  # a constant output is compatible with many maps
        causes += _outputs_that_hold(claim, generator, x, y, z)
        causes += list(_signs_that_hold(subject, inputs, claim, generator, x, y))
    return tuple(causes)


def causes_from_weights(proof: Proof | None) -> tuple[Statement, ...]:
    """The cause at the first failing layer, and why the group action was not traced further."""
    if proof is None:
        return ()
    failure = proof.first_failure
    named = () if failure is None else (failure.cause, failure.pattern)
    causes = [of_layer(failure.name, cause) for cause in named if failure is not None and cause is not None]
    if proof.reason is not None and proof.reason.record is None:
        ties = proof.compared.ties if proof.compared is not None else ()
        causes.append(state("SYM189", ties=list(ties)) if ties else not_followed(proof.reason))
    return tuple(causes)


def of_layer(name: str, cause: Statement) -> Statement:
    """The cause with the layer's name in the field `layer`; unchanged if the layer has no name."""
    return Statement(cause.code, {"layer": name, **cause.fields}) if name else cause


def not_followed(end: Opaque) -> Statement:
    """The statement that the group action could not be traced beyond a place, with the reason.

    Example:
        >>> not_followed(Opaque(state("SYM154", operation="cumsum"), "tail", "net.py:3")).text
        'the group action could not be traced beyond tail (net.py:3): cumsum is not supported by the proof'
    """
    return state("SYM151", where=end.where, module=end.module, source=end.source, why=end.reason)


def paired_dropout(subject: Subject) -> tuple[Statement, ...]:
    """The statement, in train mode, that a fixed seed drops units by position although the action permutes them."""
    modules = subject.modules(exact=True).items()
    names = [name for name, module in modules if isinstance(module, nn.modules.dropout._DropoutNd) and module.p > 0]
    return (state("SYM170", layers=names[:3]),) if names else ()


def _holds(wanted: Floats, actual: Floats) -> bool:
    scales = entry_scales(wanted, actual)
    return bool((entry_gaps(wanted, actual, scales) <= HOLDS * scales.filled).all())


def _outputs_that_hold(claim: OutputClaim, generator: int, x: Floats, y: Floats, z: Floats) -> Iterator[Statement]:
    motion = claim.motions[generator]
    wanted = claim.apply(generator, y, x)
    # The claim itself holds on these inputs: the failure concerns other outputs, or rare inputs.
    if _holds(wanted, z):
        return
    # The inverse permutation: the user may have listed the image of each place instead of its source.
    inverse = _inverse(motion)
    if inverse is not None:
        back = OutputClaim(claim.path, claim.role, claim.size, (inverse,)).apply(0, y, x)
        if _holds(back, z):
            # only a plain permutation, without signs, can be suggested here
            shown = {"permutation": inverse.index.tolist()} if _has_no_signs(inverse) else {}
            yield state("SYM135", output=claim.path, **shown)
            return
    if _holds(y, z) and claim.role != "invariant":
        yield state("SYM132", output=claim.path)
        return
    permutation = _permutation_that_holds(y, z)
    if permutation is not None and claim.size > 1:
        yield state("SYM136", output=claim.path, permutation=permutation, declared=_declared_permutation(motion))
    # The declared permutation with all signs reversed.
    elif claim.size > 1 and _holds(-wanted, z):
        yield state("SYM137", output=claim.path)


def _inverse(motion: object) -> SignedPermutation | None:
    if not isinstance(motion, SignedPermutation):
        return None
    inverse = np.argsort(motion.index)
    # Signs move with their entries.
    sign = motion.sign[inverse]
    same = np.array_equal(inverse, motion.index) and np.array_equal(sign, motion.sign)
    return None if same else SignedPermutation(inverse, sign)


def _has_no_signs(motion: SignedPermutation) -> bool:
    return bool((motion.sign > 0).all())


def _declared_permutation(motion: object) -> list[int] | str:
    """The declared permutation, one-based if it has signs; otherwise in the form in which it was given."""
    if isinstance(motion, SignedPermutation):
        images: list[int] = (motion.index if _has_no_signs(motion) else (motion.index + 1) * motion.sign).tolist()
        return images
    return "matrix" if isinstance(motion, AffineMap) else "callable"


def _permutation_that_holds(y: Floats, z: Floats) -> list[int] | None:
    """The p with z[p[a]] = y[a] on all inputs, if each column fits exactly one."""
    size = y.shape[1]
    if size > 64:
        return None
    scale = output_scale(y, z)
    # (inputs, entries of y, entries of z): the largest difference over all inputs.
    fits = difference(y[:, :, None], z[:, None, :]).max(axis=0) <= HOLDS * scale
    # The partner of each must be unique: with equal columns, several permutations would fit.
    if not (fits.sum(axis=0) == 1).all() or not (fits.sum(axis=1) == 1).all():
        return None
    return [int(p) for p in fits.argmax(axis=1)]


def _signs_that_hold(
    subject: Subject, inputs: InputClaim, claim: OutputClaim, generator: int, x: Floats, y: Floats
) -> Iterator[Statement]:
    """Observation components; for each, a flipped sign would make the claim hold."""
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
            shown = "+1" if sign[place] > 0 else "-1"
            yield state("SYM014", sign=shown, coordinate=f"observation[{place}]", index=place)
            return
