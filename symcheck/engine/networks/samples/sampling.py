"""Inputs for testing a network: several scales, edges, fixed points and observations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.networks.subject.claims import InputClaim
from symcheck.engine.networks.subject.domain import Domain
from symcheck.errors import SpecError

# Longer orbits are skipped: their mean would need one application of the generator per element.
FAR = 1e3
"""Scale of a second input on which graph and network are compared: beyond thresholds that clip or guard typical
inputs."""
LONGEST_ORBIT = 64
Draw: TypeAlias = Callable[[np.random.Generator, tuple[int, ...]], Floats]


@dataclass(frozen=True, eq=False)
class Family:
    """Inputs of one kind.

    Attributes:
        name: its description.
        inputs: shape (n, *shape), float64.
        borrows: whether its outputs use at least the scale of ordinary inputs. At a fixed point an output that changes
            sign must vanish, so only rounding remains.
    """

    name: str
    inputs: Floats
    borrows: bool = False


def stacked_observations(observations: Any, shape: tuple[int, ...]) -> Floats | None:
    """Observations as one array of float64, shape (n, *shape); None if there are none.

    Raises:
        SpecError: the shape of observations differs from that of the network's input.
    """
    if observations is None:
        return None
    stacked = np.asarray(observations, dtype=np.float64)
    if stacked.shape[1:] != shape:
        raise SpecError(
            f"observations of shape {stacked.shape[1:]} do not fit the network's input {shape}.",
            where="--env",
            remedy="Name an environment whose observations fit the network.",
        )
    return stacked


def families(
    claim: InputClaim,
    count: int,
    rng: np.random.Generator,
    observations: Floats | None = None,
    domain: Domain | None = None,
) -> list[Family]:
    """About `count` inputs, in families with separate scales.

    Args:
        claim: the action on inputs; its shape distinguishes vectors from images.
        count: the total number of inputs, at least 1.
        rng: the source of randomness.
        observations: observed inputs, shape (n, *shape), placed first.
        domain: the domain of inputs; None if no observation space is known.

    Returns:
        Non-empty families; `count` inputs, or at least the edge inputs.
    """
    shape = claim.shape
    drawn: list[Family] = []
    if observations is not None and len(observations):
        # At most half: generated inputs also cover regions that a policy does not visit.
        chosen = rng.permutation(len(observations))[: max(1, count // 2)]
        drawn.append(Family("observations", np.asarray(observations, dtype=np.float64)[np.sort(chosen)]))
        count = max(1, count - len(drawn[0].inputs))
    few = min(64, max(1, count // 8))
    edges = _edge_inputs(shape, rng, few) if domain is None else domain.corners(rng, few)
    fixed = _fixed_points(claim, rng, few, domain)
    rest = max(1, count - len(edges) - len(fixed))
    makers = _makers(shape, domain)
    for i, (name, make) in enumerate(makers):
        # The remainder goes to the first families, so that the counts add up.
        n = rest // len(makers) + (i < rest % len(makers))
        if n:
            drawn.append(Family(name, make(rng, (n, *shape))))
    drawn.append(Family("edges" if domain is None else "bounds of the observation space", edges, borrows=True))
    if len(fixed):
        drawn.append(Family("fixed points", fixed, borrows=True))
    return drawn


def typical_inputs(
    shape: tuple[int, ...], count: int, rng: np.random.Generator, domain: Domain | None = None
) -> Floats:
    """Inputs of the first random family, shape (count, *shape)."""
    return _makers(shape, domain)[0][1](rng, (count, *shape))


def _makers(shape: tuple[int, ...], domain: Domain | None) -> Sequence[tuple[str, Draw]]:
    if domain is not None:
        return _domain_makers(domain)
    return _image_makers() if len(shape) > 1 else _vector_makers()


def _domain_makers(domain: Domain) -> Sequence[tuple[str, Draw]]:
    if domain.is_bounded:
        uniform: tuple[str, Draw] = ("uniform in the observation space", lambda rng, s: domain.draw(rng, s[0]))
        sparse: tuple[str, Draw] = ("few entries above the lowest", lambda rng, s: _sparse(domain, rng, s))
        return [uniform, sparse] if domain.low.ndim > 1 else [uniform]

    def at_scale(scale: float) -> Draw:
        return lambda rng, s: domain.draw(rng, s[0], scale)

    return [(f"in the observation space, at scale {scale:g}", at_scale(scale)) for scale in (1.0, 0.1, 10.0, 100.0)]


def _sparse(domain: Domain, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return np.where(rng.random(shape) < 0.05, domain.draw(rng, shape[0]), domain.low)


def _vector_makers() -> Sequence[tuple[str, Draw]]:
    return [
        ("normal at scale 1", lambda rng, s: rng.normal(size=s)),
        ("normal at scale 0.1", lambda rng, s: 0.1 * rng.normal(size=s)),
        ("normal at scale 10", lambda rng, s: 10.0 * rng.normal(size=s)),
        ("normal at scale 100", lambda rng, s: 100.0 * rng.normal(size=s)),
    ]


def _image_makers() -> Sequence[tuple[str, Draw]]:
    return [
        ("uniform in 0..1", lambda rng, s: rng.random(size=s)),
        ("sparse 0/1", lambda rng, s: (rng.random(size=s) < 0.05).astype(np.float64)),
        ("normal at scale 1", lambda rng, s: rng.normal(size=s)),
        ("whole numbers 0..255", lambda rng, s: rng.integers(0, 256, size=s).astype(np.float64)),
    ]


def _edge_inputs(shape: tuple[int, ...], rng: np.random.Generator, count: int) -> Floats:
    """Zero, one, minus one, and unit vectors of both signs."""
    size = int(np.prod(shape))
    constant = [np.ones(size), -np.ones(size), np.zeros(size)]
    places = rng.permutation(size)[:count]
    units = [sign * np.eye(1, size, place)[0] for place in places for sign in (1.0, -1.0)]
    # Of fewer than three inputs, zero comes first, then minus one.
    return np.array((units + constant)[-count:] if count < 3 else (constant + units)[:count]).reshape(-1, *shape)


def _fixed_points(claim: InputClaim, rng: np.random.Generator, count: int, domain: Domain | None) -> Floats:
    """Means over the orbit of the first generator that acts non-trivially, if that orbit is short and linear."""
    start = rng.normal(size=(count, *claim.shape)) if domain is None else domain.draw(rng, count)
    # the mean of integers need not be an integer
    if domain is not None and domain.whole.any():
        return start[:0]
    if not claim.is_data:
        return start[:0]
    for generator in range(len(claim.motions)):
        total, image = start.copy(), claim.apply(generator, start)
        if np.array_equal(image, start):
            continue
        length = 1
        # Sum over the orbit of each start: its mean is fixed by the generator.
        while length < LONGEST_ORBIT and not np.allclose(image, start, rtol=1e-9, atol=1e-12):
            total += image
            image = claim.apply(generator, image)
            length += 1
        if length < LONGEST_ORBIT:
            return np.asarray(total / length)
    return start[:0]
