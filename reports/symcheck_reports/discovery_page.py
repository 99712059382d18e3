"""The page of `symcheck discover`: what was found, what was refused and why, and what pruned the search."""

from __future__ import annotations

from symcheck_reports import discovery_words as words
from symcheck_reports.basis_page import hinton
from symcheck_reports.discovery_model import DiscoveryCandidate, DiscoveryModel
from symcheck_reports.formatting import count, one_line, plural, scientific, seconds
from symcheck_reports.homomorphism_page import homomorphism_sections
from symcheck_reports.templating import PageHead, Section, document, section

SHOWN = 60  # candidates on a page; JSON has them all
MOST_DRAWN = 64  # coordinates; beyond, the table of effects is a grey patch


def render_discovery(model: DiscoveryModel) -> str:
    """The page.

    Args:
        model: the search.

    Returns:
        A complete HTML document; it requests nothing.

    Example:
        >>> "no symmetry of the forms searched holds" in render_discovery(
        ...     DiscoveryModel("X-v0", "failed", "C1", 1, "", (("8", "maps"),), "", ())
        ... )
        True
    """
    verdict = model.verdict if model.order > 1 or model.verdict == "undecided" else None
    head = PageHead("Discovery of symmetries", words.found_sentence(model), _lead(model), verdict, _facts(model))
    orbits = [] if model.orbits is None else homomorphism_sections(model.orbits)
    before = [_spec(model), *orbits, _candidates(model)]
    sections = [*before, _narrowing(model), _rotations(model), _effects(model), _again(model)]
    return document(head, [built for built in sections if built is not None])


def _lead(model: DiscoveryModel) -> str:
    refused = sum(one.verdict in words.REFUSALS for one in model.candidates)
    said = f"{plural(refused, 'candidate was', 'candidates were')} refused. " if refused else ""
    if model.exhaustive and model.order == 1:
        return "The table was searched completely: no permutation of its states is a symmetry."
    if model.exhaustive:
        return "The table was searched completely: these are all symmetries of its states."
    return f"{said}The search is no proof that there is no other symmetry: it covers the maps listed below."


def _facts(model: DiscoveryModel) -> list[tuple[str, str]]:
    return [
        ("environment", model.target),
        ("group", f"{model.group} (order {count(model.order)})"),
        ("error budget", words.budget_sentence(model)),
        ("time", seconds(model.duration_s)),
    ]


def _spec(model: DiscoveryModel) -> Section | None:
    return section("discovery_spec", "spec", "The symmetry, ready to use", spec=model.spec) if model.spec else None


def _candidates(model: DiscoveryModel) -> Section | None:
    if not model.candidates:
        return None
    rows = [(candidate, _residual(candidate)) for candidate in model.candidates[:SHOWN]]
    rest = model.candidates[SHOWN:]
    return section(
        "discovery_candidates",
        "candidates",
        "What was tried, and what became of it",
        rows=rows,
        more=len(rest),
        refused=all(one.verdict in words.REFUSALS for one in rest),
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
    figure = hinton(model.effects, "effects", title)
    columns = ", ".join(f"{place}: {name}" for place, name in enumerate(model.names))
    return section(
        "discovery_effects", "effects", "What pruned it: which coordinate acts on which", figure=figure, columns=columns
    )


def _again(model: DiscoveryModel) -> Section | None:
    return (
        section("basis_again", "again", "Run it again", command=model.command, versions="") if model.command else None
    )
