"""Values of a network as linear forms in atoms on which every generator acts by a matrix.

An atom is an entry of the input, a function of what the group leaves alone, or a product of two forms. With u for all
atoms and 1 in front, u(L x) = M u(x) for a matrix M of each generator. A form a u becomes a M u under L, so that linear
layers need no declared representation: whether a form is invariant, or a set of forms is carried into itself, is read
off its coefficients. Laws of three kinds make new atoms:

* a function of invariant forms is invariant; if forms are exchanged, so are the functions of them;
* of forms p and q, each from a set that is carried into itself by matrices P and Q, the products are carried by P x Q:
  gates, norms, inner products and all other bilinear maps are linear forms in these products;
* any operator whose operands are all invariant has invariant results.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from symcheck.array_types import Floats, Ints

CARRIED = 1e-11
"""How far coefficients may be from their images, over the largest: float64 rounding of a few products of matrices."""
MOST_ATOMS = 4093
"""Atoms beyond which a network is not followed: products with matrices of this size take seconds."""
LARGEST_SET = 64
"""Forms in one set that is carried into itself."""


class NotCarriedError(Exception):
    """A value of which no law here says how the group acts on it."""


class NoRoomError(Exception):
    """More atoms than there is room for."""


class Atoms:
    """The atoms, and how each generator moves them.

    Args:
        maps: per generator matrix and offset of its action on the input, shapes (n, n) and (n,).
        room: how many atoms there may be, the number 1 among them.

    Attributes:
        room: the same.
        matrices: per generator, shape (room, room); row k is the image of atom k.
    """

    def __init__(self, maps: Sequence[tuple[Floats, Floats]], room: int) -> None:
        self.room = room
        self.inputs = len(maps[0][1])
        self.matrices: list[Floats] = [np.zeros((room, room)) for _ in maps]
        self._known: dict[Hashable, int] = {}
        self._used = 1 + self.inputs
        for matrix, (linear, offset) in zip(self.matrices, maps, strict=True):
            matrix[0, 0] = 1.0
            matrix[1 : self._used, 0] = offset
            matrix[1 : self._used, 1 : self._used] = linear

    @property
    def count(self) -> int:
        """How many there are."""
        return self._used

    def images(self, forms: Floats) -> list[Floats]:
        """What each generator makes of forms, shape (count, room)."""
        used = self._used
        made = []
        for matrix in self.matrices:
            image = np.zeros_like(forms)
            image[:, :used] = forms[:, :used] @ matrix[:used, :used]
            made.append(image)
        return made

    def are_invariant(self, forms: Floats) -> bool:
        """Whether no generator changes any of the forms."""
        return all(_agree_closely(image, forms) for image in self.images(forms))

    def functions(self, labels: Sequence[Hashable], forms: Floats, *, odd: bool, even: bool) -> Floats:
        """Functions of single forms, which the generators leave alone, or exchange with or without a sign.

        Args:
            labels: which function each is.
            forms: their arguments, shape (count, room).
            odd: whether a sign of the argument comes out.
            even: whether it vanishes.

        Returns:
            The functions as forms.

        Raises:
            NotCarriedError: the image of an argument is not an argument.
        """
        rows, place = _distinct_pairs(labels, forms)
        keys = [("function", labels[row], forms[row].tobytes()) for row in rows]
        arguments = forms[rows]
        moved = []
        for image in self.images(arguments):
            index, sign = _partners([labels[row] for row in rows], image, arguments)
            if (sign < 0).any() and not (odd or even):
                raise NotCarriedError("a function that is neither odd nor even of a form that changes its sign")
            moved.append((index, sign if odd else np.ones_like(sign)))
        new = [key not in self._known for key in keys]
        if any(new) and not all(new):  # all of one set are made at once
            keys = [("again", len(self._known), key) for key in keys]
            new = [True] * len(keys)
        numbers = self._add(keys) if new[0] else np.array([self._known[key] for key in keys])
        if new[0]:
            for matrix, (index, sign) in zip(self.matrices, moved, strict=True):
                matrix[numbers, numbers[index]] = sign
        return self._units(numbers[place])

    def invariants(self, key: Hashable, count: int) -> Floats:
        """New forms that no generator changes, known by a key."""
        keys = [("invariant", key, k) for k in range(count)]
        if count and keys[0] not in self._known:
            numbers = self._add(keys)
            for matrix in self.matrices:
                matrix[numbers, numbers] = 1.0
        return self._units(np.array([self._known[item] for item in keys], dtype=np.int64))

    def products(self, left: Floats, right: Floats) -> Floats:
        """Products of forms, pair by pair; shapes (count, room)."""
        firsts, seconds = self._sets(left), self._sets(right)
        made = np.zeros_like(left)
        for k in range(len(left)):
            first, second = firsts.where(k), seconds.where(k)
            if first is None or second is None:
                continue  # a factor that is zero
            (a, i, by), (b, j, times) = first, second
            made[k, self._product_atoms(firsts, a, seconds, b)[i, j]] = by * times
        return made

    def _product_atoms(self, firsts: _Sets, a: int, seconds: _Sets, b: int) -> Ints:
        """The atoms for all products of two sets, shape (size of the first, size of the second)."""
        p, q = firsts.sets[a], seconds.sets[b]
        label = ("product", firsts.forms[p].tobytes(), seconds.forms[q].tobytes())
        shape = (len(p), len(q))
        keys = [(label, k) for k in range(shape[0] * shape[1])]
        if keys[0] in self._known:
            return np.array([self._known[key] for key in keys]).reshape(shape)
        numbers = self._add(keys)
        for matrix, one, other in zip(self.matrices, firsts.matrices[a], seconds.matrices[b], strict=True):
            matrix[np.ix_(numbers, numbers)] = np.kron(one, other)
        return numbers.reshape(shape)

    def _sets(self, forms: Floats) -> _Sets:
        return _Sets(self, forms)

    def _add(self, keys: Sequence[Hashable]) -> Ints:
        if self._used + len(keys) > self.room:
            raise NoRoomError
        numbers = np.arange(self._used, self._used + len(keys))
        self._known.update(zip(keys, numbers.tolist(), strict=True))
        self._used += len(keys)
        return numbers

    def _units(self, numbers: Ints) -> Floats:
        forms = np.zeros((len(numbers), self.room))
        forms[np.arange(len(numbers)), numbers] = 1.0
        return forms


class _Sets:
    """Forms sorted, up to factors, into sets that every generator carries into themselves.

    Args:
        atoms: the atoms.
        given: forms, shape (count, room).

    Attributes:
        forms: the distinct ones, the largest coefficient 1.
        sets: places in `forms`.
        matrices: per set and generator, how it is carried.

    Raises:
        NotCarriedError: a form's images are not spanned by the forms that are there.
    """

    def __init__(self, atoms: Atoms, given: Floats) -> None:
        largest = np.argmax(np.abs(given), axis=1)
        self._scale = given[np.arange(len(given)), largest]
        zero = self._scale == 0
        normal = given / np.where(zero, 1.0, self._scale)[:, None]
        # forms that agree to 12 digits are one: less than what is tolerated of their images
        _, first, self._place = np.unique(np.round(normal, 12) + 0.0, axis=0, return_index=True, return_inverse=True)
        self._place = self._place.reshape(-1)
        self._zero = zero
        self.forms = normal[first]
        self.sets: list[Ints] = []
        self.matrices: list[list[Floats]] = []
        self._set_of = np.full(len(first), -1)
        self._within = np.zeros(len(first), dtype=np.int64)
        for k in range(len(self.forms)):
            if self._set_of[k] < 0 and np.abs(self.forms[k]).max() > 0:
                self._close_set(atoms, k)

    def where(self, k: int) -> tuple[int, int, float] | None:
        """Set, place in it and factor of a form; None if it is zero."""
        if self._zero[k]:
            return None
        form = self._place[k]
        return int(self._set_of[form]), int(self._within[form]), float(self._scale[k])

    def _close_set(self, atoms: Atoms, start: int) -> None:
        span = _orbit_span(atoms, self.forms[start])
        outside = self.forms - (self.forms @ span.T) @ span
        inside = np.abs(outside).max(axis=1) <= CARRIED
        members = np.flatnonzero(inside & (np.abs(self.forms).max(axis=1) > 0))
        if len(members) > LARGEST_SET or (self._set_of[members] >= 0).any():
            raise NotCarriedError("sets of forms that overlap")
        forms = self.forms[members]
        inverse = np.linalg.pinv(forms[:, : atoms.count])
        matrices = []
        for image in atoms.images(forms):
            matrix = image[:, : atoms.count] @ inverse
            if not _agree_closely(matrix @ forms, image):
                raise NotCarriedError("forms whose images are other forms")
            matrices.append(matrix)
        self._set_of[members] = len(self.sets)
        self._within[members] = np.arange(len(members))
        self.sets.append(members)
        self.matrices.append(matrices)


def _orbit_span(atoms: Atoms, form: Floats) -> Floats:
    """An orthonormal basis of the span of all images of a form, shape (dimension, room)."""
    basis = form[None] / np.linalg.norm(form)
    fresh = basis
    while len(fresh):
        candidates = np.concatenate(atoms.images(fresh))
        fresh_rows = []
        for row in candidates:
            rest = row / np.linalg.norm(row)
            for _ in range(2):  # twice, against rounding
                rest = rest - (rest @ basis.T) @ basis
            size = np.linalg.norm(rest)
            if size > np.sqrt(CARRIED):
                basis = np.concatenate([basis, rest[None] / size])
                fresh_rows.append(rest / size)
            if len(basis) > LARGEST_SET:
                raise NotCarriedError("a form with too many images")
        fresh = np.array(fresh_rows)
    return basis


def _distinct_pairs(labels: Sequence[Hashable], forms: Floats) -> tuple[list[int], Ints]:
    """The first place of each distinct pair of label and form, and which of them each is."""
    seen: dict[Hashable, int] = {}
    rows: list[int] = []
    place = np.empty(len(forms), dtype=np.int64)
    for k, label in enumerate(labels):
        key = (label, forms[k].tobytes())
        if key not in seen:
            seen[key] = len(rows)
            rows.append(k)
        place[k] = seen[key]
    return rows, place


def _partners(labels: Sequence[Hashable], images: Floats, forms: Floats) -> tuple[Ints, Ints]:
    """Of each image the form of the same label that it is, and its sign.

    Raises:
        NotCarriedError: one is none.
    """
    index, sign = np.empty(len(forms), dtype=np.int64), np.ones(len(forms), dtype=np.int64)
    for k, image in enumerate(images):
        size = CARRIED * max(float(np.abs(image).max()), float(np.abs(forms[k]).max()))
        for factor in (1, -1):
            near = np.flatnonzero(np.abs(forms - factor * image).max(axis=1) <= size)
            match = next((j for j in near.tolist() if labels[j] == labels[k]), None)
            if match is not None:
                index[k], sign[k] = match, factor
                break
        else:
            raise NotCarriedError("a function of a form whose image is none of the forms")
    return index, sign


def _agree_closely(left: Floats, right: Floats) -> bool:
    """Whether forms agree within rounding, each over its own largest coefficient."""
    size = np.maximum(np.abs(left).max(axis=1, initial=0.0), np.abs(right).max(axis=1, initial=0.0))
    return bool((np.abs(left - right).max(axis=1, initial=0.0) <= CARRIED * size).all())
