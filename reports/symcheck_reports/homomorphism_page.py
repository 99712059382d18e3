"""The page of an MDP homomorphism: the original coloured by block, the abstract MDP, and a table of blocks."""

from __future__ import annotations

from collections import defaultdict

from symcheck_reports.formatting import count, number, one_line, plural
from symcheck_reports.homomorphism_drawing import MOST_DRAWN, draw
from symcheck_reports.homomorphism_model import HomomorphismModel
from symcheck_reports.templating import PageHead, Section, document, section

MOST_ROWS = 200
_SHOWN_STATES = 12


def render_homomorphism(model: HomomorphismModel) -> str:
    """The page.

    Args:
        model: the maps and their properties.

    Returns:
        A complete HTML document that makes no network requests.

    Raises:
        ValueError: `model` has no state.

    Example:
        >>> model = HomomorphismModel("two rooms", "coarsest partition", [0, 0, 1], 6, 4, [False, False, False])
        >>> "two rooms: 3 states become 2" in render_homomorphism(model)
        True
    """
    if not model.block:
        raise ValueError("expected at least one state, got none")
    head = PageHead("MDP homomorphism", _sentence(model), _exactness_sentence(model), facts=_facts(model))
    again = _again(model)
    return document(head, [*homomorphism_sections(model), *([again] if again is not None else [])])


def homomorphism_sections(model: HomomorphismModel) -> list[Section]:
    """The drawings, the blocks and the matched actions, for this page or as part of another.

    Args:
        model: the maps and their properties.

    Returns:
        Two or three sections.
    """
    matched = _matched(model)
    return [_pictures(model), _block_table(model), *([matched] if matched is not None else [])]


def _sentence(model: HomomorphismModel) -> str:
    return f"{one_line(model.target, 80)}: {plural(len(model.block), 'state')} become {count(model.blocks)}."


def _exactness_sentence(model: HomomorphismModel) -> str:
    if model.exact:
        return (
            "Exact: states of one block have the same rewards and the same distribution over blocks, once their "
            "actions are matched. A policy that is optimal for the blocks is optimal when lifted."
        )
    cost = "" if model.loss_bound is None else f" The lifted policy loses at most {number(model.loss_bound)}."
    return (
        f"Approximate: within a block, rewards deviate from their mean by up to "
        f"{number(model.reward_error)} and distributions by up to {number(model.transition_error)} (L1).{cost}"
    )


def _facts(model: HomomorphismModel) -> list[tuple[str, str]]:
    facts = [
        ("states", f"{count(len(model.block))} → {count(model.blocks)}"),
        ("state-action pairs", f"{count(model.pairs)} → {count(model.abstract_pairs)}"),
        ("found by", model.origin),
    ]
    if model.group:
        facts.append(("symmetry group", f"{model.group}, order {model.order}"))
    return facts


def _pictures(model: HomomorphismModel) -> Section:
    drawn = draw(model)
    return section("homomorphism", "pictures", "Original and abstract", drawn=drawn, limit=MOST_DRAWN)


def _block_table(model: HomomorphismModel) -> Section:
    members: dict[int, list[int]] = defaultdict(list)
    for state, block in enumerate(model.block):
        members[block].append(state)
    rows = [
        (
            block,
            _name_states(model, members[block]),
            len(members[block]),
            None if model.values is None else number(model.values[block]),
        )
        for block in sorted(members)[:MOST_ROWS]
    ]
    left_out = max(0, len(members) - MOST_ROWS)
    valued = model.values is not None
    return section("homomorphism_blocks", "blocks", "The blocks", rows=rows, left_out=left_out, valued=valued)


def _name_states(model: HomomorphismModel, states: list[int]) -> str:
    names = [model.labels[s] if model.labels else str(s) for s in states[:_SHOWN_STATES]]
    rest = len(states) - len(names)
    return ", ".join(names) + (f" and {count(rest)} more" if rest else "")


def _matched(model: HomomorphismModel) -> Section | None:
    if not model.matchings:
        return None
    tables = []
    for matching in model.matchings:
        width = max(len(row) for row in matching.actions)
        rows = [
            (_name_states(model, [state]), [", ".join(map(str, actions)) for actions in row])
            for state, row in zip(matching.states, matching.actions, strict=True)
        ]
        tables.append((matching.block, width, rows))
    return section("homomorphism_actions", "actions", "How actions are matched", tables=tables)


def _again(model: HomomorphismModel) -> Section | None:
    versions = ", ".join(f"{name} {version}" for name, version in model.versions)
    if not (model.command or versions):
        return None
    return section("basis_again", "again", "Run it again", command=model.command, versions=versions)
