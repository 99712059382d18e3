"""Builds bases, checks them, and caches them by content.

Signed permutations: orbits, exact. Other matrices: characters give the rank; that number of Gaussian matrices is
averaged over the group and orthonormalised; then the equations and the completeness of the basis are checked.
Continuous groups: highest weights, see `symcheck.intertwiners.lie_build`. A basis whose rank differs from the
prediction is never returned.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from symcheck import arrays
from symcheck.array_types import Floats
from symcheck.errors import OptionError, RepresentationError, suggestion
from symcheck.intertwiners import orbits
from symcheck.intertwiners.basis import KINDS, Certificate, IntertwinerBasis, Kind
from symcheck.intertwiners.block_basis import BlockBasis
from symcheck.intertwiners.dense_basis import (
    Complement,
    DenseBasis,
    Given,
    Projector,
    RandomRows,
    gaussian,
    identity,
    orthonormal_rows,
)
from symcheck.intertwiners.lie_build import lie_basis
from symcheck.intertwiners.oblique import (
    SOLVED_LIMIT,
    ObliqueProjection,
    ProjectedRows,
    SplitProjection,
    largest_entry,
    null_rows,
)
from symcheck.intertwiners.orbit_basis import OrbitBasis, OrbitComplementBasis
from symcheck.intertwiners.reynolds import Reynolds
from symcheck.representations import characters, grids, validation
from symcheck.representations.lie import LieRepresentation
from symcheck.representations.representation import (
    Representation,
    SignedPermutationRepresentation,
    require_same_group,
)

CACHED = 256
"""Maximum number of cached bases."""
CACHED_ENTRIES = 4_000_000
"""Bases with more entries than this are not cached."""
MISSING = 1e-6
"""Threshold for a missing direction of a basis, which has a residual of order one; rounding is below 1e-12 times the
condition number."""
ROUNDING = 1e4 * float(np.finfo(np.float64).eps)
"""Largest residual due to rounding, relative to the matrices' largest entry: sums of up to 1e4 rounded terms."""
_cache: OrderedDict[tuple[object, ...], IntertwinerBasis] = OrderedDict()


def intertwiner_basis(
    rho_in: Representation, rho_out: Representation, *, kind: Kind = "equivariant", seed: int = 0
) -> IntertwinerBasis:
    """A basis of the matrices W with rho_out(g) W = W rho_in(g) for all g.

    Args:
        rho_in: the representation on the input.
        rho_out: the representation on the output, of the same group.
        kind: "equivariant", its orthogonal complement "nullspace", or all matrices in a "random" orthonormal basis.
        seed: the seed of the random basis.

    Returns:
        The basis of (dim_out, dim_in) matrices, orthogonal to each other: integers for signed permutations,
        orthonormal otherwise.

    Raises:
        RepresentationError: different groups, or matrices too ill-conditioned to certify the rank.
        OptionError: an unknown kind.

    Example:
        >>> from symcheck.groups import cyclic
        >>> from symcheck.representations import regular
        >>> basis = intertwiner_basis(regular(cyclic(4)), regular(cyclic(4)))
        >>> basis.rank, basis.certificate.kind
        (4, 'exact')

    Cost: signed permutations dim_out * dim_in per generator; others |G| * rank * dim^3.

    Source: E. van der Pol et al., "MDP Homomorphic Networks" (2020), section 3.2, for the definition of the basis;
    orbits and character theory replace its Algorithm 1.
    """
    require_same_group(rho_in, rho_out, names=("rho_in", "rho_out"))
    return _basis(rho_in, rho_out, (rho_out.dim, rho_in.dim), None, kind, seed)


def conv_intertwiner_basis(
    rho_in: Representation,
    rho_out: Representation,
    kernel_size: int | tuple[int, int],
    *,
    spatial: Sequence[str],
    kind: Kind = "equivariant",
    seed: int = 0,
) -> IntertwinerBasis:
    """A basis of the filters whose convolution commutes with the group acting on pixels and components together.

    rho_out(g) W[..., g pixel] = W[..., pixel] rho_in(g): the filter rotates with the image.

    Args:
        rho_in: the representation on the input's component axis.
        rho_out: the representation on the output's component axis.
        kernel_size: the filter's height and width in pixels, one number for a square.
        spatial: one operator per generator: "rot90", "flip_ud", "flip_lr", "transpose", "rot180", "rot270",
            "anti_transpose", "identity".
        kind: as for `intertwiner_basis`.
        seed: the seed of the random basis.

    Returns:
        The basis of (dim_out, dim_in, height, width) filters.

    Raises:
        RepresentationError: different groups, operators that violate a relation of the group, or a non-square filter
            under an operator that exchanges height and width.
        OptionError: an unknown kind or an impossible kernel size.

    Example:
        >>> from symcheck.groups import cyclic
        >>> from symcheck.representations import regular, trivial
        >>> C4 = cyclic(4)
        >>> conv_intertwiner_basis(trivial(C4), regular(C4), 7, spatial=["rot90"]).rank
        49
    """
    height, width = read_kernel_size(kernel_size)
    require_same_group(rho_in, rho_out, names=("rho_in", "rho_out"))
    validation.require_finite(rho_in.group, "conv_intertwiner_basis")
    grids.check_spatial(rho_in.group, spatial, size=(height, width))
    return _basis(rho_in, rho_out, (rho_out.dim, rho_in.dim, height, width), tuple(spatial), kind, seed)


def read_kernel_size(kernel_size: int | tuple[int, int]) -> tuple[int, int]:
    """Height and width from one number or two.

    Raises:
        OptionError: not one or two positive integers.
    """
    # A single number means a square.
    both: tuple[object, ...] = tuple(kernel_size) if isinstance(kernel_size, tuple | list) else (kernel_size,) * 2
    sizes = [int(n) for n in both if isinstance(n, int | np.integer) and n >= 1]
    if len(both) != 2 or len(sizes) != 2:
        raise OptionError(f"expected one or two positive integers, got {kernel_size!r}.", where="kernel_size")
    return sizes[0], sizes[1]


def _basis(
    rho_in: Representation,
    rho_out: Representation,
    shape: tuple[int, ...],
    spatial: tuple[str, ...] | None,
    kind: Kind,
    seed: int,
) -> IntertwinerBasis:
    """The basis between rho_in, with a filter's pixels, and rho_out, from the cache if present."""
    if kind not in KINDS:
        raise OptionError(f"no kind of basis is called {kind!r}.", where="kind", remedy=suggestion(str(kind), KINDS))
    # The seed distinguishes `random` bases only.
    key = (rho_in.content, rho_out.content, shape, spatial, kind, seed if kind == "random" else 0)
    if key not in _cache:
        # Filters are matrices on components times pixels: the input representation is enlarged by the pixels.
        patch = rho_in if spatial is None else grids.with_grid(rho_in, shape[2], shape[3], spatial)
        built = _build(rho_in, rho_out, patch, shape, kind, seed)
        if built.size > CACHED_ENTRIES:
            # Not cached: one such basis would displace all others.
            return built
        _cache[key] = built
        # Remove the least recently used basis.
        while len(_cache) > CACHED:
            _cache.popitem(last=False)
    # Mark it as most recently used.
    _cache.move_to_end(key)
    return _cache[key]


def clear_cache() -> None:
    """Clears the cache of bases."""
    _cache.clear()


def _build(
    rho_in: Representation,
    rho_out: Representation,
    patch: Representation,
    shape: tuple[int, ...],
    kind: Kind,
    seed: int,
) -> IntertwinerBasis:
    equivariant: OrbitBasis | DenseBasis | BlockBasis
    # Both representations are integer: use orbits, without rounding.
    if isinstance(patch, SignedPermutationRepresentation) and isinstance(rho_out, SignedPermutationRepresentation):
        equivariant = _orbit_basis(rho_in, rho_out, patch, shape)
        if kind == "nullspace":
            return OrbitComplementBasis(equivariant)
    elif isinstance(patch, LieRepresentation) and isinstance(rho_out, LieRepresentation):
        equivariant = lie_basis(patch, rho_out)
        if kind == "nullspace":
            return _dense_complement(equivariant)
    else:
        equivariant = _dense_basis(rho_in, rho_out, patch, shape)
        if kind == "nullspace":
            return _dense_complement(equivariant)
    return equivariant if kind == "equivariant" else _random_basis(equivariant, seed)


def _orbit_basis(
    rho_in: Representation,
    rho_out: SignedPermutationRepresentation,
    patch: SignedPermutationRepresentation,
    shape: tuple[int, ...],
) -> OrbitBasis:
    maps = orbits.entry_maps(rho_out.images, patch.images)
    # The orbits of matrix entries under (i, j) -> (K i, L j).
    entry_orbits = orbits.find(maps)
    for m in maps:  # K B = B L, entry by entry, in integers
        moved = entry_orbits.sign[m.index] == entry_orbits.sign * m.sign
        if not (moved.all() and (entry_orbits.index[m.index] == entry_orbits.index).all()):
            raise RepresentationError("an orbit is not closed under the generators.", where="intertwiner_basis")
    predicted, by = _predicted_rank(patch, rho_out, entry_orbits.count)
    _require_rank(entry_orbits.count, predicted, by)
    certificate = Certificate("exact", 0.0, 0.0, entry_orbits.count, predicted, by)
    return OrbitBasis(rho_in, rho_out, shape, certificate, entry_orbits)


def _predicted_rank(
    patch: Representation, rho_out: Representation, counted: int
) -> tuple[int, Literal["characters", "orbits"]]:
    # Up to 5,000 elements, the sum over characters is faster than the orbits.
    if characters.can_enumerate(patch, rho_out) and patch.group.order <= 5_000:
        return characters.intertwiner_dimension(patch, rho_out), "characters"
    return counted, "orbits"


def _require_rank(rank: int, predicted: int, by: str) -> None:
    if rank != predicted:
        raise RepresentationError(
            f"the basis has rank {rank}, but {by} predict {predicted}: the matrices do not represent the group.",
            where="intertwiner_basis",
        )


def _dense_basis(
    rho_in: Representation, rho_out: Representation, patch: Representation, shape: tuple[int, ...]
) -> DenseBasis:
    average = Reynolds.between(patch, rho_out)
    rank, by = _dense_rank(patch, rho_out, average)
    straight = _averaged_rows(average, rank)
    given = _in_given_coordinates(straight, patch, rho_out, average)
    residual, missing = _residual(given.rows, patch, rho_out), _missing(straight, average)
    if not (residual <= given.tolerance and missing <= MISSING):
        raise RepresentationError(
            f"the basis of rank {rank} is not accurate enough: its residual is {residual:.1e} (at most "
            f"{given.tolerance:.1e} is allowed), and it does not contain {missing:.1e} of a random sample "
            f"(at most {MISSING:.0e} is allowed).",
            where="intertwiner_basis",
            remedy="Change to a basis in which the matrices are orthogonal.",
        )
    certificate = Certificate(
        "numeric",
        residual,
        given.tolerance,
        rank,
        rank,
        by,
        span_error=given.condition * float(np.finfo(np.float64).eps),
        projection_norm=given.norm,
        projection_residual=float(np.abs(given.projector(given.rows) - given.rows).max(initial=0)),
    )
    return DenseBasis(
        rho_in,
        rho_out,
        "equivariant",
        shape,
        rank,
        certificate,
        Given(given.rows),
        given.projector,
        patch.portable_content,
    )


def _in_given_coordinates(
    straight: Floats, patch: Representation, rho_out: Representation, average: Reynolds
) -> ProjectedRows:
    """Convert rows from the orthogonal forms to the given representations, and give the projection onto them."""
    if average.root_in is None and average.root_out is None:
        return ProjectedRows(straight, average, 1.0, 1.0, ROUNDING)
    rows = _orthonormal(average.back(straight))
    if rows.shape[1] > SOLVED_LIMIT:
        norm = average.norm_bound
        # The rounding of averages grows with the entries' size on both sides of the change of coordinates.
        growth = max(largest_entry(patch), largest_entry(rho_out)) ** 2
        return ProjectedRows(rows, SplitProjection(rows, average), norm, norm, min(ROUNDING * growth, 1e-3))
    solutions, condition = null_rows(patch, rho_out, len(rows))
    # Among all bases of the solutions, take the one nearest to the averaged rows, so that coefficients keep their
    # meaning.
    refined = _orthonormal((rows @ solutions.T) @ solutions)
    oblique = ObliqueProjection(refined, null_rows(patch, rho_out, len(rows), dual=True)[0])
    return ProjectedRows(refined, SplitProjection(refined, oblique), oblique.norm, condition, ROUNDING)


def _dense_rank(
    patch: Representation, rho_out: Representation, average: Reynolds
) -> tuple[int, Literal["characters", "trace"]]:
    """The rank from characters.

    For groups too large to list, the trace of the averaging projector on all unit matrices.
    """
    if characters.can_enumerate(patch, rho_out):
        return characters.intertwiner_dimension(patch, rho_out), "characters"
    size = patch.dim * rho_out.dim
    # The trace of a projector is its rank: the sum of the diagonal over all unit matrices.
    trace = float(np.trace(average(np.eye(size))))
    if abs(trace - round(trace)) > 1e-3:
        raise RepresentationError(
            f"the averaging projector has trace {trace:.6f}, which must be an integer.", where="intertwiner_basis"
        )
    return round(trace), "trace"


def _averaged_rows(average: Reynolds, rank: int) -> Floats:
    """Orthonormal rows (rank, size) that span the intertwiners of the orthogonal forms."""
    size = average.shape[0] * average.shape[1]
    # The space is zero: a Gaussian sample would consist of rounding only.
    if rank == 0:
        return np.zeros((0, size))
    # Fixed seeds: the same basis on every machine; a sample that is nearly dependent is replaced.
    for seed in range(8):
        averaged = average.straight(gaussian(rank, size, seed))
        spread = np.linalg.svd(averaged, compute_uv=False)
        if spread[-1] > 1e-8 * spread[0]:  # for Gaussian samples in their own span, rarely below 1e-4
            break
    # Average twice: the second average removes the rounding of the orthonormalisation.
    return orthonormal_rows(average.straight(orthonormal_rows(averaged)))


def _residual(rows: Floats, patch: Representation, rho_out: Representation) -> float:
    """The largest entry of |K B - B L| over generators, relative to the largest entry of K and L."""
    if not len(rows):
        return 0.0
    # (rank, dim_out, dim_in): all basis matrices are compared at once.
    B = rows.reshape(len(rows), rho_out.dim, patch.dim)
    pairs = zip(rho_out.generator_matrices, patch.generator_matrices, strict=True)
    worst = max(float(np.abs(K @ B - B @ L).max()) for K, L in pairs)
    return worst / max(largest_entry(patch), largest_entry(rho_out))


def _missing(rows: Floats, average: Reynolds) -> float:
    """The component of two new averaged samples outside the span, relative to their size: 0 up to rounding.

    Between the orthogonal forms, so rounding errors are not amplified.
    """
    # A separate seed: the samples from which the rows were built lie in their span.
    samples = gaussian(2, rows.shape[1], 1_000)
    averaged = average.straight(samples)
    outside = averaged - (averaged @ rows.T) @ rows
    return float(np.abs(outside).max()) / float(np.abs(samples).max())


def _orthonormal(rows: Floats) -> Floats:
    return orthonormal_rows(rows) if len(rows) else rows


def _dense_complement(basis: DenseBasis | BlockBasis) -> DenseBasis:
    complement = Complement(basis.rows)
    return _like(basis, "nullspace", basis.size - basis.rank, complement, complement.project)


def _random_basis(basis: OrbitBasis | DenseBasis | BlockBasis, seed: int) -> DenseBasis:
    return _like(basis, "random", basis.size, RandomRows(basis.size, seed), identity, f"seed {seed}")


def _like(
    basis: OrbitBasis | DenseBasis | BlockBasis,
    kind: Kind,
    rank: int,
    build: Callable[[], Floats],
    projector: Projector,
    note: str = "",
) -> DenseBasis:
    # The fingerprint of the equivariant basis identifies the derived one.
    arrangement = arrays.content_hash(note, np.frombuffer(basis.fingerprint, dtype=np.uint8))
    return DenseBasis(
        basis.rho_in, basis.rho_out, kind, basis.shape, rank, basis.certificate, build, projector, arrangement
    )
