"""The reference for residuals: scales of output entries, and the rounding that explains a difference.

Scales come from ordinary inputs and from the current inputs. If a residual exceeds float64 precision at these scales,
other explanations are tested in this order: cancelled terms, amplified rounding, and weights rounded to float32 if
matching found such weights.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch

from symcheck.array_types import Floats
from symcheck.engine.networks.samples.entry_scales import EntryScales, entry_gaps, entry_scales
from symcheck.engine.networks.samples.rounding import EPSILON, MARGIN, OWN_UNITS, Rounding
from symcheck.engine.networks.subject.claims import Motion, OutputClaim
from symcheck.engine.networks.subject.subject import Subject
from symcheck.engine.networks.subject.values import AffineMap, SignedPermutation

EXACT = 1e-12
"""Largest residual of the float64 copy over output scale at which an output is exact: the published level."""
ROUNDED = 1e-5
"""The same for an output that is explained by rounded weights: the published level."""
ENOUGH = 32
"""Minimum number of inputs from which separate scales can be estimated."""
SINGLE = 4 * float(np.finfo(np.float32).eps)
"""Relative change of weights that counts as rounding: the published level."""
AMPLIFIED = 1e-11
"""Effect of one ulp over output scale above which rounding counts as amplified: some ten thousand ulps."""
VISIBLE = 1e-2
"""Deployed rounding over output scale above which the run tests for cancelled terms."""


class Ruler:
    """The scales of a network's outputs on ordinary inputs.

    Args:
        subject: the network.
        typical: ordinary inputs, shape (n, *shape).
        seed: the seed of the perturbations that measure rounding.
        weights_rounded: whether the weights matched up to rounding to float32.
    """

    def __init__(self, subject: Subject, typical: Floats, seed: int, *, weights_rounded: bool = False) -> None:
        self.subject = subject
        self.rounding = Rounding(subject, seed)
        self.weights_rounded = weights_rounded
        self.vanishing: set[str] = set()
        """Outputs that consist of rounding only."""
        self._typical = typical

    @cached_property
    def typical_outputs(self) -> dict[str, Floats]:
        """The outputs of the float64 copy for the ordinary inputs."""
        return self.subject.run(self._typical, exact=True)

    @cached_property
    def reference(self) -> dict[str, EntryScales]:
        """Scales of each output on ordinary inputs."""
        return {path: entry_scales(rows) for path, rows in self.typical_outputs.items()}

    def block(self, x: Floats, before: dict[str, Floats], *, borrows: bool = True) -> Block:
        """Inputs whose outputs are to be compared.

        Args:
            x: shape (n, *shape).
            before: the outputs of the float64 copy.
            borrows: as in `Family`.
        """
        return Block(self, x, before, borrows=borrows)


class Block:
    """Inputs of one kind with their outputs, and the rounding of these."""

    def __init__(self, ruler: Ruler, x: Floats, before: dict[str, Floats], *, borrows: bool) -> None:
        self._ruler = ruler
        self._borrows = borrows
        self._x = x
        self._before = before
        self._noises: dict[float, dict[str, Floats]] = {}
        self._scales: dict[str, EntryScales] = {}

    def scales(self, path: str, *others: Floats) -> EntryScales:
        """The scales of one output: over these inputs, their images (`others`), and ordinary inputs."""
        if len(self._x) < ENOUGH:
            # few inputs give little information on the spread of an output, so ordinary outputs are included
            return entry_scales(self._before[path], *others, self._ruler.typical_outputs[path])
        own, ordinary = entry_scales(self._before[path], *others), self._ruler.reference[path]
        return own.joined(ordinary) if self._borrows else own.beside(ordinary)

    def relative_gaps(
        self, claim: OutputClaim, generator: int, wanted: Floats, actual: Floats, scales: EntryScales
    ) -> tuple[Floats, Floats, int]:
        """Residuals relative to the scale.

        Args:
            claim: the claim of the output.
            generator: index of the generator.
            wanted: K f(x), shape (n, size).
            actual: f(Lx).
            scales: the scales of the output.

        Returns:
            Residual relative to scale, entry by entry, shape (n, size), at most `EXACT` if rounding explains it; the
            scales used, shape (size,); and the number of inputs for which rounding is as large as a violation.
        """
        gap, sizes = entry_gaps(wanted, actual, scales), scales.filled
        relative = gap / sizes
        if self._ruler.subject.coarse or not (relative > EXACT).any():
            return relative, sizes, 0
        sizes = self.sizes_where_it_cancels(claim.path, scales)
        relative = gap / sizes
        if not (relative > EXACT).any():
            return relative, sizes, 0
        own = np.maximum(np.abs(wanted), np.abs(actual))
        noise = self.noise(claim, generator)
        if (noise > AMPLIFIED * sizes).any():
            self._draw_again(EPSILON)
            noise = self.noise(claim, generator)
        allowed = MARGIN * noise + OWN_UNITS * EPSILON * np.where(np.isfinite(own), own, 0.0)
        # if one ulp has the effect of a violation, another draw may have an arbitrarily larger effect
        allowed = np.where(noise > ROUNDED * sizes, np.finfo(np.float64).max, allowed)
        excused = (gap <= allowed) & (relative > EXACT)
        swamped = int((excused & (relative > ROUNDED)).any(axis=1).sum())
        relative = np.where(excused, EXACT * gap / np.maximum(allowed, np.finfo(np.float64).tiny), relative)
        if self._ruler.weights_rounded:
            allowed = MARGIN * self.noise(claim, generator, SINGLE)
            excused = (gap <= allowed) & (relative > ROUNDED)
            relative = np.where(excused, ROUNDED * gap / np.maximum(allowed, np.finfo(np.float64).tiny), relative)
        return relative, sizes, swamped

    def sizes_where_it_cancels(self, path: str, scales: EntryScales) -> Floats:
        """The scales of an output; if terms cancel, those of the terms, shape (size,)."""
        sizes = scales.filled
        terms = self._terms.get(path)
        if terms is None:
            return sizes
        sizes = np.maximum(sizes, terms)
        noise = self._noise_of(EPSILON).get(path)
        if noise is not None:
            # entries that consist of rounding only, for whatever reason they vanish
            void = (scales.spread > 0) & (scales.spread <= MARGIN * np.median(noise, axis=0))
            # only entries around zero: with an offset, the offset is the size
            void &= scales.spread >= 0.5 * scales.size
            if void.all():
                self._ruler.vanishing.add(path)
            others = max(item.largest for item in self._ruler.reference.values())
            sizes = np.where(void, np.maximum(sizes, others), sizes)
        return sizes

    def noise(self, claim: OutputClaim, generator: int, epsilon: float = EPSILON) -> Floats:
        """The change of K f(x) by one unit in the last place, shape (n, size); 0 if unknown."""
        noise = self._noise_of(epsilon).get(claim.path)
        if noise is None:
            return np.zeros((len(self._x), claim.size))
        # one draw may have less effect than another: use at least the typical effect on the entry
        return move_sizes(claim.motions[generator], np.maximum(noise, np.median(noise, axis=0)))

    @property
    def deployed_epsilon(self) -> float:
        """The unit in the last place of the deployed network's arithmetic; 0 if it is not torch's."""
        subject = self._ruler.subject
        return 0.0 if subject.artefact or subject.coarse else self._ruler.rounding.deployed_epsilon

    def deployed_rounding(
        self, claim: OutputClaim, generator: int, wanted: Floats, sizes: Floats, *gaps: Floats
    ) -> Floats:
        """The possible effect of rounding in the deployed dtype on an output, shape (n, size).

        Args:
            claim: the claim of the output.
            generator: index of the generator.
            wanted: K f(x) as deployed, shape (n, size).
            sizes: the scales, shape (size,).
            gaps: differences, shape (n, size); rounding is measured only if they exceed a few ulps.
        """
        own = np.maximum(np.where(np.isfinite(wanted), np.abs(wanted), 0.0), sizes)
        plain = MARGIN * float(torch.finfo(self._ruler.subject.dtype).eps) * own
        if all((gap <= plain).all() for gap in gaps):
            return plain
        epsilon = self.deployed_epsilon
        noise = self.noise(claim, generator, epsilon)
        # The effects of two draws on an entry may differ by a factor of a hundred.
        unexplained = any((gap > MARGIN * (noise + epsilon * own)).any() for gap in gaps)
        if unexplained or (noise > 0.1 * VISIBLE * sizes).any():
            self._draw_again(epsilon)
            noise = self.noise(claim, generator, epsilon)
        # above it, one draw does not bound the effect of another
        return np.where(noise > VISIBLE * sizes, np.finfo(np.float64).max, MARGIN * (noise + epsilon * own))

    def _noise_of(self, epsilon: float) -> dict[str, Floats]:
        if epsilon not in self._noises:
            self._noises[epsilon] = self._ruler.rounding.noise(self._x, self._before, epsilon)
        return self._noises[epsilon]

    def _draw_again(self, epsilon: float) -> None:
        """The largest of several draws, which differ by orders of magnitude if differences double at each step."""
        for draw in range(1, 3):
            for path, noise in self._ruler.rounding.noise(self._x, self._before, epsilon, draw).items():
                self._noises[epsilon][path] = np.maximum(self._noises[epsilon][path], noise)

    @cached_property
    def _terms(self) -> dict[str, Floats]:
        return self._ruler.rounding.terms(self._x, self._ruler.reference)


def move_sizes(motion: Motion, sizes: Floats) -> Floats:
    """The sizes of rounding errors after the action, shape (n, size): signs are ignored, sums add up."""
    if isinstance(motion, SignedPermutation):
        moved = np.empty_like(sizes)
        moved[:, motion.index] = sizes
        return moved
    if isinstance(motion, AffineMap):
        return np.asarray(sizes @ np.abs(motion.matrix).T)
    return np.repeat(sizes.max(axis=1, keepdims=True, initial=0.0), sizes.shape[1], axis=1)
