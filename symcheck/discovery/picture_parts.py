"""Observations that contain images, reduced to smaller arrays; all images rotate together with the other components."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from symcheck.array_types import Floats
from symcheck.discovery.blocks import Block, blocks_of, lift_picture, picture_elements, sides_of, turn_picture, upright
from symcheck.discovery.maps import SignedMap, apply_square

_SMALL, _SMALLER = 24, 8  # pixels per side: of a single image, and of images among other parts
_MOST_NUMBERS = 3  # maximum size of a part besides the images; larger parts have too many signed permutations
_MOST_BESIDE = 64  # maximum number of maps of the other parts


@dataclass(frozen=True)
class Parts:
    """The parts of an observation, at least one of which is an image.

    Attributes:
        blocks: all of them, in the order in which observations are flattened.
    """

    blocks: tuple[Block, ...]

    @staticmethod
    def of(space: spaces.Space[Any]) -> Parts:
        """The parts of a space."""
        return Parts(tuple(blocks_of(space)))

    @property
    def pictures(self) -> list[Block]:
        """The image parts."""
        return [block for block in self.blocks if block.layout is not None]

    @property
    def beside(self) -> list[Block]:
        """The other parts."""
        return [block for block in self.blocks if block.layout is None]

    @property
    def width(self) -> int:
        """The size of a flattened observation."""
        return self.blocks[-1].first + self.blocks[-1].size

    def list_maps(self) -> tuple[list[tuple[str, SignedMap]], bool]:
        """All maps but the identity, as (element of the square's group, map of other parts); whether all are listed.

        Example:
            >>> maps, listed = Parts.of(spaces.Dict(a=spaces.Box(0, 1, (4, 4)), b=spaces.Box(-1, 1, (2,)))).list_maps()
            >>> len(maps), listed
            (63, True)
        """
        of_each = [picture_elements(block.space) for block in self.pictures]
        elements = [name for name in of_each[0] if all(name in other for other in of_each)]
        beside, listed = self._list_beside()
        maps = [(name, cells * each) for name in elements for each in beside for cells in self._turn_cells(name)]
        return [each for each in maps if each[0] != "identity" or not each[1].is_identity], listed

    def _turn_cells(self, name: str) -> list[SignedMap]:
        """Parts with one number for each pixel, such as a mask of legal moves: unchanged, or turned like the image."""
        still = SignedMap.identity(self.width)
        height, width = sides_of(self.pictures[0].space)
        cells = [block for block in self.beside if block.size == height * width]
        if name == "identity" or not cells:
            return [still]
        index = np.arange(self.width)
        for block in cells:
            index[block.at] = block.first + np.array(turn_picture(name, (height, width), "first"))
        return [still, SignedMap.of(index)]

    def _list_beside(self) -> tuple[list[SignedMap], bool]:
        """Signed permutations of every part that is not an image, as maps of the flattened observation."""
        still = SignedMap.identity(self.width)
        choices = [self._maps_of(block) for block in self.beside]
        count = int(np.prod([len(each) for each in choices])) if choices else 1
        if count > _MOST_BESIDE:
            return [still], False
        made = []
        for chosen in itertools.product(*choices):
            whole = still
            for each in chosen:
                whole = each * whole
            made.append(whole)
        return made, all(block.size <= _MOST_NUMBERS for block in self.beside)

    def _maps_of(self, block: Block) -> list[SignedMap]:
        still = SignedMap.identity(self.width)
        if block.size > _MOST_NUMBERS:
            return [still]
        centre = np.zeros(self.width)
        centre[block.at] = block.middle
        maps = []
        for index in itertools.permutations(range(block.size)):
            for sign in itertools.product((1, -1), repeat=block.size):
                images, signs = list(range(self.width)), [1] * self.width
                images[block.at], signs[block.at] = [block.first + i for i in index], list(sign)
                maps.append(SignedMap.about(images, signs, centre))
        return maps

    def lift(self, name: str, beside: SignedMap) -> SignedMap:
        """The map of the flattened observation."""
        whole = beside
        for block in self.pictures:
            whole = lift_picture(name, block, self.width) * whole
        return whole

    def shrink(self, flat: Floats) -> Floats:
        """Smaller images, flattened, followed by the other parts, shape (n, numbers)."""
        small = [each.reshape(len(flat), -1) for each in self._small(flat)]
        return np.concatenate([*small, *(flat[:, block.at] for block in self.beside)], axis=1)

    def join_pictures(self, flat: Floats) -> Floats:
        """All images of one shape, reduced and combined into one image, shape (n, height, width)."""
        small = self._small(flat)
        alike = [each for each in small if each.shape == small[0].shape]
        # Unequal weights, as for channels.
        return np.asarray(np.tensordot(_weights(len(alike)), np.stack(alike), axes=(0, 0)))

    def reduce(self, flat: Floats) -> Floats:
        """The rows of `shrink`, each followed by the image of `join_pictures`, flattened."""
        return np.concatenate([self.shrink(flat), self.join_pictures(flat).reshape(len(flat), -1)], axis=1)

    def split(self, rows: Floats) -> tuple[Floats, Floats]:
        """The two arrays in rows produced by `reduce`."""
        height, width = self._small_shape(self.pictures[0])
        return rows[:, : -height * width], rows[:, -height * width :].reshape(-1, height, width)

    def move(self, name: str, beside: SignedMap, rows: Floats) -> Floats:
        """The map on rows produced by `shrink`."""
        moved, first = [], 0
        for block in self.pictures:
            shape = self._small_shape(block)
            size = shape[0] * shape[1]
            turned = apply_square(name, rows[:, first : first + size].reshape(len(rows), *shape))
            moved.append(turned.reshape(len(rows), -1))
            first += size
        # Only the other parts: an image has tens of thousands of components.
        at = [i for block in self.beside for i in range(self.width)[block.at]]
        return np.concatenate([*moved, beside.restrict(at).apply(rows[:, first:])], axis=1)

    def _side(self) -> int:
        return _SMALL if len(self.blocks) == 1 else _SMALLER

    def _small_shape(self, block: Block) -> tuple[int, int]:
        empty = np.zeros((1, block.size))
        height, width = small_pictures(empty, block, self._side()).shape[1:]
        return height, width

    def _small(self, flat: Floats) -> list[Floats]:
        return [small_pictures(flat[:, block.at], block, self._side()) for block in self.pictures]


def _weights(count: int) -> Floats:
    """Unequal weights, because images may be complements of each other, whose mean is constant."""
    weights = np.linspace(1.0, 2.0, count)
    return np.asarray(weights / weights.sum())


def small_pictures(flat: Floats, block: Block, side: int) -> Floats:
    """Images averaged over channels and blocks of pixels, centred, so that few numbers remain.

    Args:
        flat: flattened images, shape (n, numbers).
        block: provides their shape.
        side: maximum number of pixels per side.

    Returns:
        Shape (n, height, width). The blocks cover a centre with equal margins, so rotations and reflections act in the
        same way on the small and the large image.
    """
    pictures = upright(flat.reshape(len(flat), *(block.space.shape or (1, 1))), block.layout or "first")
    stacked = pictures.reshape(len(flat), -1, *pictures.shape[-2:])
    pictures = np.tensordot(stacked, _weights(stacked.shape[1]), axes=(1, 0))
    for axis in (1, 2):
        size = pictures.shape[axis]
        tile = -(-size // side)
        margin = (size % tile) // 2
        kept = size - size % tile
        pictures = np.take(pictures, range(margin, margin + kept), axis=axis)
        shape = list(pictures.shape)
        shape[axis : axis + 1] = [kept // tile, tile]
        pictures = pictures.reshape(shape).mean(axis=axis + 1)
    return np.asarray(pictures)
