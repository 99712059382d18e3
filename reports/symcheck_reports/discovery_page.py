"""The page of `symcheck discover`: the group, rejected candidates with reasons, and the pruning of the search."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from symcheck_reports import discovery_words as words
from symcheck_reports import svg
from symcheck_reports.basis_page import CELL, squares
from symcheck_reports.discovery_model import DiscoveryCandidate, DiscoveryModel
from symcheck_reports.formatting import count, one_line, plural, scientific, seconds
from symcheck_reports.homomorphism_page import homomorphism_sections
from symcheck_reports.templating import PageHead, Section, document, section

SHOWN = 60  # maximum number of candidates on a page; the JSON report contains all
# maximum number of candidates with the same verdict and reason; of more, one is shown and the others are counted
MOST_ALIKE = 8
MOST_DRAWN = 64  # maximum number of coordinates in a readable table of effects
_LONGEST = 28  # maximum length of a coordinate's name next to its row
_CHARACTER = 7.5  # pixels, at 13 pixels of type


def render_discovery(model: DiscoveryModel) -> str:
    """The page.

    Args:
        model: the search.

    Returns:
        A complete HTML document that makes no network requests.

    Example:
        >>> "no symmetry of the forms searched holds" in render_discovery(
        ...     DiscoveryModel("X-v0", "failed", "C1", 1, "", (("8", "maps"),), "", ())
        ... )
        True
    """
    verdict = model.verdict if model.order > 1 or model.verdict == "undecided" else None
    head = PageHead(
        "Discovery of symmetries",
        words.found_sentence(model),
        _refused_sentence(model),
        verdict,
        _search_facts(model),
        "discovery",
    )
    orbits = [] if model.orbits is None else homomorphism_sections(model.orbits)
    before = [_spec(model), *orbits, _candidates(model)]
    sections = [*before, _narrowing(model), _rotations(model), _effects(model), _again(model)]
    return document(head, [built for built in sections if built is not None])


def _refused_sentence(model: DiscoveryModel) -> str:
    refused = sum(candidate.verdict in words.REFUSALS for candidate in model.candidates)
    said = f"{plural(refused, 'candidate was', 'candidates were')} rejected. " if refused else ""
    if model.exhaustive and model.order == 1:
        return "The table was searched completely: no permutation of its states is a symmetry."
    if model.exhaustive:
        return "The table was searched completely: these are all symmetries of its states."
    return f"{said}The search does not prove that there is no other symmetry: it covers only the maps listed below."


def _search_facts(model: DiscoveryModel) -> list[tuple[str, str]]:
    return [
        ("environment", model.target),
        ("group", f"{model.group} (order {count(model.order)})"),
        ("error budget", words.budget_sentence(model)),
        ("time", seconds(model.duration_s)),
    ]


def _spec(model: DiscoveryModel) -> Section | None:
    if not model.spec:
        return None
    evidence = words.evidence_lines(model)
    return section("discovery_spec", "spec", "The symmetry, ready to use", spec=model.spec, evidence=evidence)


def _candidates(model: DiscoveryModel) -> Section | None:
    if not model.candidates:
        return None
    listed = words.gather(model.candidates, MOST_ALIKE)
    rows = [
        (candidate, _residual(candidate), words.more_of_a_kind(candidate, more)) for candidate, more in listed[:SHOWN]
    ]
    rest = listed[SHOWN:]
    return section(
        "discovery_candidates",
        "candidates",
        "Candidates and their results",
        rows=rows,
        more=sum(1 + more for _, more in rest),
        refused=all(candidate.verdict in words.REFUSALS for candidate, _ in rest),
    )


def _residual(candidate: DiscoveryCandidate) -> str:
    return "" if candidate.residual is None else scientific(candidate.residual)


def _narrowing(model: DiscoveryModel) -> Section:
    remarks = [one_line(text, 400) for text in model.remarks]
    return section(
        "discovery_narrowing",
        "narrowing",
        "How the search narrowed",
        stages=model.narrowing,
        forms=words.form_lines(model),
        how=model.how,
        remarks=remarks,
    )


def _rotations(model: DiscoveryModel) -> Section | None:
    if not model.rotations:
        return None
    said = [words.rotation_sentence(rotation) for rotation in model.rotations]
    return section("discovery_rotations", "rotations", "Continuous symmetries, not claimed", said=said)


def _effects(model: DiscoveryModel) -> Section | None:
    if not model.effects or len(model.names) > MOST_DRAWN:
        return None
    title = "Effect of each coordinate and action (columns) on each coordinate (rows)"
    heading = "What pruned the search: which coordinate acts on which"
    figure = _labelled(model.effects, [one_line(name, _LONGEST) for name in model.names], title)
    acting = [f"{place}: {name}" for place, name in enumerate(model.names)][len(model.effects) :]
    return section("discovery_effects", "effects", heading, figure=figure, acting=acting)


def _labelled(effects: Sequence[Sequence[float]], names: Sequence[str], title: str) -> Markup:
    """The squares of a table of effects, each row named and each column numbered; in pixels."""
    height, width = len(effects), len(effects[0])
    cell = 24.0 if width <= 16 else 18.0
    parts, description = squares(effects)
    rows = [f"{name}  {place}" for place, name in enumerate(names[:height])]
    left, top = 10 + _CHARACTER * max(map(len, rows)), 22.0
    middle = cell / 2 + 5
    labels = [
        *(
            svg.element("text", row, x=left - 8, y=top + i * cell + middle, class_="tick end")
            for i, row in enumerate(rows)
        ),
        *(svg.element("text", str(j), x=left + (j + 0.5) * cell, y=top - 8, class_="tick mid") for j in range(width)),
    ]
    drawn = svg.element(
        "g", *parts, transform=f"translate({svg.coordinate(left)} {svg.coordinate(top)}) scale({cell / CELL:g})"
    )
    size = {"width": left + width * cell + 1, "height": top + height * cell + 1, "pixels": 1.0}
    return svg.figure([drawn, *labels], name="effects", title=title, description=description, **size)


def _again(model: DiscoveryModel) -> Section | None:
    return (
        section("basis_again", "again", "Run it again", command=model.command, versions="") if model.command else None
    )
