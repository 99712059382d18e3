"""The claims of a symmetry about one network: the action of every generator on its input and on each output.

The claim on each output is f(L x) = K f(x). K is the action's representation on policy vectors and on means, the
identity on values, or the observation's own on predictions of observations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from symcheck.array_types import Array, Floats
from symcheck.engine.networks.subject.values import AffineMap, SignedPermutation
from symcheck.entries.forms import (
    AffineEntry,
    Entry,
    FunctionEntry,
    IdentityEntry,
    SpatialEntry,
    TreeEntry,
    parse_entry,
)
from symcheck.entries.lie_forms import ElementEntry
from symcheck.errors import SpecError, SymcheckError, described, suggestion
from symcheck.representations.representation import Representation
from symcheck.symmetry.symmetry import Symmetry

Motion: TypeAlias = SignedPermutation | AffineMap | Callable[[Array, Array], Array]
ROLES = ("action", "invariant", "observation", "action_scale")


@dataclass(frozen=True, eq=False)
class InputClaim:
    """The action of the generators on inputs of one shape (without a batch axis)."""

    shape: tuple[int, ...]
    motions: tuple[Motion, ...]

    @property
    def is_data(self) -> bool:
        """Whether every map is given as data, none only as a callable."""
        return not any(callable(motion) for motion in self.motions)

    def apply(self, generator: int, inputs: Array) -> Array:
        """L x for stacked inputs, shape (n, *shape); the dtype is preserved."""
        return move(self.motions[generator], inputs, inputs)


@dataclass(frozen=True)
class Logits:
    """The action of the generators on the outputs that have the role `action`.

    Attributes:
        entries: one per generator.
        choices: as in `OutputClaim`.
    """

    entries: Sequence[Entry]
    choices: tuple[slice, ...] = ()


@dataclass(frozen=True, eq=False)
class OutputClaim:
    """The action of the generators on one output.

    Attributes:
        path: its path in the network's return value ("output", "output[1]", "output['value']").
        role: action, invariant, observation, action_scale or given.
        size: entries per sample.
        motions: one per generator.
        choices: the logits of each value that an agent chooses, if it chooses several at once; one logit for a bit.
    """

    path: str
    role: str
    size: int
    motions: tuple[Motion, ...]
    choices: tuple[slice, ...] = ()

    def apply(self, generator: int, outputs: Array, inputs: Array) -> Array:
        """K f(x) for stacked flat outputs, shape (n, size); `inputs` are the original x."""
        return move(self.motions[generator], outputs, inputs)


def move(motion: Motion, values: Array, inputs: Array) -> Array:
    """Apply one motion to stacked values, shape (n, ...), computed in float64 and rounded once to their dtype."""
    if isinstance(motion, SignedPermutation):
        flat = values.reshape(len(values), -1)
        moved = np.empty_like(flat)
        # Multiply by signs only if there are any, so that integers and booleans keep their dtype.
        moved[:, motion.index] = flat if (motion.sign > 0).all() else flat * motion.sign.astype(flat.dtype)
        return moved.reshape(values.shape)
    if isinstance(motion, AffineMap):
        flat = values.reshape(len(values), -1).astype(np.float64)
        image = flat @ motion.matrix.T + motion.offset
        # Round once, to the dtype of the input.
        return image.astype(values.dtype).reshape(values.shape)
    return motion(values, inputs)


def input_claim(symmetry: Symmetry, shape: tuple[int, ...]) -> InputClaim:
    """The symmetry's observation entries on network inputs of a given shape.

    Args:
        symmetry: the claim.
        shape: the shape of one input, without the batch axis.

    Returns:
        One map per generator.

    Raises:
        SpecError: an entry does not fit the shape; the message gives both sizes.
    """
    size = int(np.prod(shape))
    entries = symmetry.observation
    motions = [_motion(e, shape, size, f"observation[{i}]", "the network's input") for i, e in enumerate(entries)]
    return InputClaim(shape, tuple(motions))


def output_claims(
    symmetry: Symmetry,
    sizes: Mapping[str, tuple[int, ...]],
    outputs: Sequence[Any] | None,
    constant: Collection[str] = (),
    logits: Logits | None = None,
) -> tuple[OutputClaim, ...]:
    """The symmetry's claims on each output.

    Args:
        symmetry: the claim.
        sizes: maps the path of each output to its shape without the batch axis, in order.
        outputs: a role or entries per output; None to infer roles from sizes.
        constant: paths of outputs that are the same for every input; next to a mean, these are deviations.
        logits: how the generators act on the logits of several values; None if they act as on actions.

    Returns:
        One claim per output, in order.

    Raises:
        SpecError: a size fits neither action nor invariant, an unknown role, or not one role per output.
    """
    logits = Logits(symmetry.action) if logits is None else logits
    if outputs is None:
        outputs = _infer_roles(logits.entries, sizes, constant)
    if len(outputs) != len(sizes):
        raise SpecError(
            f"expected {len(sizes)} roles, one for each output ({', '.join(sizes)}), got {len(outputs)}.",
            where="outputs",
            remedy=f"Name the role of each output, for instance {','.join(['action', 'invariant'][: len(sizes)])}.",
        )
    return tuple(
        _output_claim(symmetry, logits, path, shape, role)
        for (path, shape), role in zip(sizes.items(), outputs, strict=True)
    )


def entry_motion(entry: Entry, shape: tuple[int, ...], where: str, what: str) -> Motion:
    """The action of one entry on tensors of a given shape (without the batch axis).

    Raises:
        SpecError: the entry does not fit; `what` names the tensor and `where` the entry in the message.
    """
    return _motion(entry, shape, int(np.prod(shape)), where, what)


def joined_motion(parts: Sequence[Motion], where: str) -> Motion:
    """Maps of several tensors as one map of their concatenated entries.

    Raises:
        SpecError: one of the maps is a callable.
    """
    if any(callable(part) for part in parts):
        raise SpecError("callables are not supported within a mapping of a network's inputs.", where=where)
    if all(isinstance(part, SignedPermutation) for part in parts):
        signed = [part for part in parts if isinstance(part, SignedPermutation)]
        # Where each part's entries start in the joint vector.
        starts = np.cumsum([0, *(part.size for part in signed)])
        index = np.concatenate([part.index + start for part, start in zip(signed, starts, strict=False)])
        return SignedPermutation(index, np.concatenate([part.sign for part in signed]))
    maps = [as_affine(part) for part in parts]
    # Block diagonal: parts do not mix.
    matrix = np.zeros((sum(len(m.offset) for m in maps),) * 2)
    start = 0
    for affine in maps:
        stop = start + len(affine.offset)
        matrix[start:stop, start:stop] = affine.matrix
        start = stop
    return AffineMap(matrix, np.concatenate([affine.offset for affine in maps]))


def as_affine(motion: Motion) -> AffineMap:
    """A map given as data, as a matrix and an offset.

    Raises:
        TypeError: the map is a callable.
    """
    if isinstance(motion, AffineMap):
        return motion
    if isinstance(motion, SignedPermutation):
        matrix = np.zeros((motion.size, motion.size))
        # Column j has the sign of entry j in row index[j].
        matrix[motion.index, np.arange(motion.size)] = motion.sign
        return AffineMap(matrix, np.zeros(motion.size))
    raise TypeError("callables have no matrix")


def action_dim(action: Sequence[Entry]) -> int | None:
    """Dimension of the action representation; None if the entries do not determine it."""
    # Callables do not determine the dimension; several different dimensions leave it undetermined.
    dims = {
        entry.dim if isinstance(entry, AffineEntry) else entry.least
        for entry in action
        if isinstance(entry, AffineEntry | ElementEntry)
    }
    return dims.pop() if len(dims) == 1 else None


def _infer_roles(action: Sequence[Entry], sizes: Mapping[str, tuple[int, ...]], constant: Collection[str]) -> list[str]:
    dim = action_dim(action)
    roles: list[str] = []
    for path, shape in sizes.items():
        size = int(np.prod(shape))
        # With an action of dimension 1, the first scalar output is the action and the second the value.
        second_scalar = dim == 1 and size == 1 and "action" in roles
        if len(shape) == 2 and size not in (1, dim) and shape[-1] in (1, dim):  # a sequence of actions or values
            size = shape[-1]
        if (size == dim and not second_scalar) or (dim is None and size != 1 and "action" not in roles):
            roles.append("action_scale" if "action" in roles and path in constant else "action")
        elif size == 1:
            roles.append("invariant")
        else:
            raise SpecError(
                f"{path} has {size} entries, so it is neither an action (dimension {dim}) nor an "
                "invariant (dimension 1).",
                where="outputs",
                remedy="Say how each output transforms, for instance outputs=['observation'] or "
                "--outputs action,invariant. For logits of MultiDiscrete actions, name the environment: --env ID.",
            )
    return roles


def _output_claim(symmetry: Symmetry, logits: Logits, path: str, shape: tuple[int, ...], role: Any) -> OutputClaim:
    size = int(np.prod(shape))
    count = len(symmetry.group.generators)
    if role == "invariant":
        # Every generator acts trivially on an invariant output.
        return OutputClaim(path, role, size, (SignedPermutation.identity(size),) * count)
    if isinstance(role, str):
        if role not in ROLES:
            raise SpecError(
                f"expected one of {', '.join(ROLES)}, got {role!r}.", where="outputs", remedy=suggestion(role, ROLES)
            )
        entries: Sequence[Entry] = symmetry.observation if role == "observation" else logits.entries
        part = "observation" if role == "observation" else "action"
        motions = [_motion(e, shape, size, f"{part}[{i}]", path) for i, e in enumerate(entries)]
        if role == "action_scale":
            motions = [_without_signs(motion) for motion in motions]
        return OutputClaim(path, role, size, tuple(motions), logits.choices if role == "action" else ())
    return OutputClaim(path, "given", size, tuple(_given_motions(symmetry, path, shape, role)))


def _given_motions(symmetry: Symmetry, path: str, shape: tuple[int, ...], written: Any) -> list[Motion]:
    count = len(symmetry.group.generators)
    if isinstance(written, Representation):
        # One matrix per generator, as if the user had given them.
        written = [written.matrix(g) for g in symmetry.group.generators]
    if not isinstance(written, list | tuple) or len(written) != count:
        raise SpecError(
            f"expected a role, a Representation or a list of {count} entries, one per generator; got {written!r}.",
            where="outputs",
        )
    size = int(np.prod(shape))
    return [_motion(parse_entry(e, f"outputs[{i}]"), shape, size, f"outputs[{i}]", path) for i, e in enumerate(written)]


def _without_signs(motion: Motion) -> Motion:
    if isinstance(motion, SignedPermutation):
        return SignedPermutation(motion.index, np.ones_like(motion.sign))
    if isinstance(motion, AffineMap):
        # An offset moves the mean alone.
        sizes = np.abs(motion.matrix)
        moved = SignedPermutation(sizes.argmax(0), np.ones(len(sizes), dtype=np.int64))
        if moved.is_permutation and np.array_equal(sizes, np.eye(len(sizes))[:, moved.index]):
            return moved
        raise SpecError(
            "the role action_scale needs an action map that only permutes and negates components, but "
            "this map mixes them.",
            where="outputs",
            remedy="Name the entries of this output instead of action_scale.",
        )
    return motion


def _motion(entry: Entry, shape: tuple[int, ...], size: int, where: str, what: str) -> Motion:
    if isinstance(entry, IdentityEntry):
        return SignedPermutation.identity(size)
    if isinstance(entry, ElementEntry) and entry.least <= size:
        return _affine_motion(entry.sized(size), shape, size, where, what)
    if isinstance(entry, ElementEntry):
        return _affine_motion(entry.sized(entry.least), shape, size, where, what)  # raises with the sizes
    if isinstance(entry, AffineEntry):
        return _affine_motion(entry, shape, size, where, what)
    if isinstance(entry, SpatialEntry):
        return _spatial_motion(entry, shape, where, what)
    if isinstance(entry, TreeEntry):
        raise SpecError(
            f"a mapping of entries cannot act on {what}, which is a single tensor of shape {shape}.",
            where=where,
            remedy="If the network takes a dictionary or tuple, name an environment with such observations (--env ID), "
            "or give the network an attribute example_input. Otherwise, give the symmetry of the flat vector.",
        )
    return _function_motion(entry, where)


def _affine_motion(entry: AffineEntry, shape: tuple[int, ...], size: int, where: str, what: str) -> Motion:
    if len(shape) > 1 and entry.dim == shape[-1] != size:  # a sequence: the same action at every time step
        step = _affine_motion(entry, shape[-1:], shape[-1], where, what)
        return joined_motion([step] * (size // shape[-1]), where)
    if entry.dim != size:
        raise SpecError(
            f"the entry acts on {entry.dim} components, but {what} has {size} components (shape {shape}).",
            where=where,
            remedy=(
                "Give the symmetry of this network's input and outputs, or the shape of the input with --input-shape."
            ),
        )
    if entry.index is not None and entry.sign is not None and entry.offset is None:
        return SignedPermutation(entry.index, entry.sign)
    return AffineMap(entry.dense(), np.zeros(size) if entry.offset is None else entry.offset)


def _spatial_motion(entry: SpatialEntry, shape: tuple[int, ...], where: str, what: str) -> SignedPermutation:
    if len(shape) < (3 if entry.channels_last else 2):
        raise SpecError(f"{entry.operator!r} acts on two axes of an image, but {what} has shape {shape}.", where=where)
    size = int(np.prod(shape))
    # Transforming the position numbers shows where each entry comes from; index is the inverse permutation.
    moved = entry.apply(np.arange(size).reshape(shape))
    if moved.shape != shape:
        raise SpecError(
            f"{entry.operator!r} needs square images, but {what} has shape {shape}.",
            where=where,
            remedy="Crop or pad the image to a square, or use flip_ud and flip_lr only.",
        )
    index = np.empty(size, dtype=np.int64)
    index[moved.reshape(-1)] = np.arange(size)
    return SignedPermutation(index, np.ones(size, dtype=np.int64))


def _function_motion(entry: FunctionEntry, where: str) -> Motion:
    def apply(values: Array, inputs: Array) -> Array:
        try:
            # Observation callables get one argument, action callables two; for inputs, `values` are the inputs.
            if values is inputs:
                return np.stack([_moved_input(entry, row, where) for row in values]).astype(values.dtype)
            return np.stack([_moved_output(entry, y, x) for y, x in zip(values, inputs, strict=True)])
        except SymcheckError:
            raise
        except Exception as error:
            raise SpecError(
                f"the callable raised {described(error)} on an input of shape {inputs.shape[1:]}.",
                where=where,
                remedy="A callable takes one unbatched value: observation(obs) or action(action, obs).",
            ) from error

    return apply


def _moved_input(entry: FunctionEntry, row: Array, where: str) -> Array:
    # Copied: a callable may modify its argument.
    image = np.asarray(entry.function(row.copy()))
    if image.shape != row.shape:
        raise SpecError(
            f"the callable returned an array of shape {image.shape} for a network input of shape {row.shape}.",
            where=where,
            remedy="Return the image in the same shape as the input.",
        )
    return image


def _moved_output(entry: FunctionEntry, output: Floats, obs: Array) -> Floats:
    """K on one output vector: for policies, by the images of all discrete actions; for continuous actions, directly."""
    images = _discrete_images(entry, len(output), obs)
    if images is None:
        return np.asarray(entry.function(output.copy(), obs.copy()), dtype=output.dtype)
    moved = np.empty_like(output)
    # The probability of action a becomes the probability of its image.
    moved[images] = output
    return moved


def _discrete_images(entry: FunctionEntry, count: int, obs: Array) -> list[int] | None:
    try:
        images = [entry.function(np.int64(a), obs.copy()) for a in range(count)]
    except Exception:  # it takes action vectors, not indices; errors on vectors are reported there
        return None
    # One index per action, all different: the callable permutes discrete actions.
    if any(np.asarray(image).size != 1 for image in images):
        return None
    numbers = [float(np.asarray(image).reshape(-1)[0]) for image in images]
    return [int(n) for n in numbers] if sorted(numbers) == list(range(count)) else None
