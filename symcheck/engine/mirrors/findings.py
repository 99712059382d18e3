"""Why columns are wrong: a finding code for every wrong column, and one cause for all columns of the same mistake.

Mistakes in a whole group are tested first (no images, another plane, another order of the history), then mistakes in a
term, then in a single joint. Each accounts for the columns that it explains.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from symcheck.engine.mirrors.context import MirrorContext, WrongColumn
from symcheck.engine.mirrors.hypotheses import (
    Seen,
    other_histories,
    other_orders,
    other_plane,
    other_terms,
)
from symcheck.engine.mirrors.rows import describe_row, expected_row
from symcheck.mujoco.layouts.laid_out import ACTION, LaidGroup
from symcheck.mujoco.layouts.vocabulary import JOINT_TERMS
from symcheck.statements.statement import Statement, state

_SHOWN = 6  # maximum number of column names in a sentence


@dataclass
class _Claims:
    """The columns explained so far, in one group under one element."""

    seen: Seen
    codes: dict[int, str] = field(default_factory=dict)
    extra: dict[str, dict[str, object]] = field(default_factory=dict)

    def left(self, term: int | None = None) -> list[int]:
        """Wrong columns without a code, of one term or of all."""
        return [
            c
            for c in self.seen.wrong
            if c not in self.codes and (term is None or self.seen.group.columns[c].term == term)
        ]

    def claim(self, code: str, columns: list[int], **fields: object) -> None:
        self.codes.update(dict.fromkeys(columns, code))
        if columns and fields:
            self.extra[code] = fields


def code_columns(context: MirrorContext) -> tuple[list[tuple[WrongColumn, str]], tuple[Statement, ...]]:
    """A code for every wrong column, and the causes.

    Args:
        context: the run.

    Returns:
        (column, code) pairs in column order, and one statement per mistake, the one with most columns first.
    """
    if context.explained is not None:
        return context.explained
    coded: list[tuple[WrongColumn, str]] = []
    causes: list[Statement] = []
    for name, group in context.groups().items():
        wrong = [item for item in context.wrong if item.group == name]
        for element in sorted({item.element for item in wrong}):
            chosen = [item for item in wrong if item.element == element]
            claims = _Claims(Seen(group, element, {item.index: item.found for item in chosen}))
            _explain(context, claims)
            coded += [(item, claims.codes[item.index]) for item in chosen]
            causes += _state_causes(claims)
    place = {name: k for k, name in enumerate(context.groups())}
    coded.sort(key=lambda pair: (place[pair[0].group], pair[0].index))
    causes.sort(key=lambda cause: -int(cause.fields["count"]))
    context.explained = coded, tuple(causes)
    return context.explained


def _explain(context: MirrorContext, claims: _Claims) -> None:
    if context.misplaced_blocks:
        claims.claim("SYM234", claims.left(), order=context.misplaced_blocks)
        return
    if claims.seen.group.name in context.answer.narrowed:
        # Rounding does not distinguish mistakes.
        claims.claim("SYM235", claims.left(), dtype=context.answer.narrowed[claims.seen.group.name])
        return
    _whole_group(context, claims)
    for t, term in enumerate(claims.seen.group.terms):
        if claims.left(t):
            _whole_term(context, claims, t, term.written.kind)
    # For a single term, its own mistakes come first, such as a scan flipped along the wrong axis.
    if len(claims.seen.group.terms) == 1 and not claims.codes:
        _another_plane(context, claims)
    for column in claims.left():
        claims.claim(_single_column(claims.seen, column), [column])


def _whole_group(context: MirrorContext, claims: _Claims) -> None:
    seen = claims.seen
    if all(row.kind == "absent" for row in seen.wrong.values()):
        claims.claim("SYM201", claims.left())
        return
    untouched = all(seen.row(c).is_only(c, 1.0) for c in range(seen.group.width))
    if untouched and seen.group.name != ACTION and len(seen.group.terms) > 1:
        claims.claim("SYM202", claims.left())
        return
    for reading, matrix in other_histories(context, seen):
        if seen.is_explained(matrix, list(seen.wrong)):
            claims.claim("SYM204", claims.left(), reading=reading)
            return
    if len(seen.group.terms) > 1 and not untouched:
        _another_plane(context, claims)


def _another_plane(context: MirrorContext, claims: _Claims) -> None:
    """The mirror in the other vertical plane, if it explains every column; a single sign does not determine a plane."""
    seen = claims.seen
    other = other_plane(context, seen.group.name) if len(claims.left()) > 1 else None
    if other is not None and seen.is_explained(other.matrices[seen.element], list(range(seen.group.width))):
        plane = "yz" if context.layout.written.plane == "xz" else "xz"
        claims.claim("SYM203", claims.left(), plane=plane)


def _whole_term(context: MirrorContext, claims: _Claims, term: int, kind: str) -> None:
    seen, left = claims.seen, claims.left(term)
    columns = seen.columns_of(term)
    untouched = [c for c in left if seen.row(c).is_only(c, 1.0)]
    moving = [c for c in columns if not expected_row(seen.group, seen.element, c).is_only(c, 1.0)]
    # Some frames are mirrored and others are not.
    frames = {seen.group.columns[c].frame for c in left}
    if untouched == left and 0 < len(frames) < seen.group.frames[term]:
        forgotten = [c for c in moving if seen.group.columns[c].frame in frames]
        if forgotten == left:
            claims.claim("SYM205", left, frames=sorted(frames))
            return
    if untouched == left == moving and len(columns) > 1:
        claims.claim("SYM214" if kind == "last_action" else _UNTOUCHED.get(kind, "SYM218"), left)
        return
    for code, matrix in other_terms(context, seen, term):
        if seen.is_explained_by_frame(matrix, term):
            claims.claim(code, left)
            return
    for name, labels, matrix in other_orders(context, seen, term):
        if seen.is_explained_by_frame(matrix, term):
            claims.claim("SYM217", left, order=name, names=list(labels))
            return
    if kind in ("phase", "contacts"):
        own = [c for c in left if seen.row(c).is_only(c, 1.0) or seen.row(c).is_only(c, -1.0)]
        if own == left and len(untouched) < len(left):
            claims.claim("SYM210", left)
    if kind == "command":
        claims.claim("SYM209", [c for c in left if seen.group.label(c) == "wz" and seen.row(c).is_only(c, 1.0)])


_UNTOUCHED = {"clock": "SYM211"}


def _single_column(seen: Seen, column: int) -> str:
    """The code of a single column."""
    group, found = seen.group, seen.row(column)
    expected = expected_row(group, seen.element, column)
    if found.kind != "linear":
        return "SYM227"
    if found.is_zero:
        return "SYM220"
    if len(found.terms) != 1 or len(expected.terms) != 1 or abs(abs(found.terms[0][1]) - 1) > 1e-4 or found.constant:
        return "SYM228"
    source, (image, wanted) = found.terms[0][0], expected.terms[0]
    if source == image:
        return _code_of_sign(seen, column, image, wanted)
    if source == column:
        return "SYM224"
    return "SYM225" if group.columns[source].term == group.columns[column].term else "SYM226"


def _code_of_sign(seen: Seen, column: int, image: int, wanted: float) -> str:
    """The code of a column with the wrong sign: on one side only, missing, or superfluous."""
    # The mistake is on one side of an exchanged pair only if the other side is right.
    paired = image != column and seen.group.term_name(column) in JOINT_TERMS
    if paired and image not in seen.wrong:
        return "SYM221"
    return "SYM222" if wanted < 0 else "SYM223"


def _state_causes(claims: _Claims) -> Iterator[Statement]:
    group = claims.seen.group
    by_mistake: dict[tuple[str, str], list[int]] = {}
    for column, code in claims.codes.items():
        term = "" if code in _OF_GROUPS else group.term_name(column)
        by_mistake.setdefault((code, term), []).append(column)
    for (code, term), columns in by_mistake.items():
        first = min(columns)
        yield state(
            code,
            group=group.name,
            term=term,
            place="the action" if group.name == ACTION else f"{term} of {group.name}",
            count=len(columns),
            columns=[group.full_label(c) for c in sorted(columns)],
            indices=sorted(columns),
            shown=_names_in_short(group, sorted(columns)),
            expected=describe_row(group, expected_row(group, claims.seen.element, first), first),
            found=describe_row(group, claims.seen.row(first), first),
            **claims.extra.get(code, {}),
        )


_OF_GROUPS = ("SYM201", "SYM202", "SYM203", "SYM204", "SYM234", "SYM235")


def _names_in_short(group: LaidGroup, columns: list[int]) -> str:
    """The names of columns for a sentence, the first few."""
    names = list(dict.fromkeys(group.label(c) for c in columns))
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
