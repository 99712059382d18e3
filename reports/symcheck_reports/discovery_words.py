"""The sentences about a search, written once for the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence

from symcheck_reports.bounds import bound_sentence
from symcheck_reports.discovery_model import DiscoveryCandidate, DiscoveryForm, DiscoveryModel, DiscoveryRotation
from symcheck_reports.formatting import count, one_line, plural, scientific

REFUSALS = ("failed", "rejected")


def found_sentence(model: DiscoveryModel) -> str:
    """A sentence on the result, no stronger than its evidence.

    Args:
        model: the search.

    Returns:
        For instance "CartPole-v1: C2 (order 2) found and verified.".

    Example:
        >>> found_sentence(DiscoveryModel("X-v0", "failed", "C1", 1, "", (), "", ()))
        'X-v0: no symmetry of the forms searched holds.'
    """
    target = one_line(model.target, 120)
    if model.order > 1:
        done = "proved" if model.verdict == "proved" else "found and verified"
        return f"{target}: {one_line(model.group, 60)} (order {count(model.order)}) {done}."
    if model.interrupted:
        return f"{target}: interrupted before a symmetry was verified."
    if model.verdict == "undecided":
        return f"{target}: no symmetry was verified, and some candidates are undecided or untried."
    if model.exhaustive:
        return f"{target}: proved to have no symmetry."
    return f"{target}: no symmetry of the forms searched holds."


def budget_sentence(model: DiscoveryModel) -> str:
    """The error budget in words: alpha for the accepted group, and the part of it for each screened candidate."""
    if model.level == model.alpha:
        return f"alpha {model.alpha:g}"
    return f"alpha {model.alpha:g} for the group as a whole, {model.level:.2g} for each candidate screened"


def evidence_lines(model: DiscoveryModel) -> list[str]:
    """The violations that the verification of the group excludes, one line for properties with the same bound."""
    said: dict[str, list[str]] = {}
    for name, bound in model.bounds:
        said.setdefault(bound_sentence(bound, with_region=False), []).append(name)
    return [f"{', '.join(names)}: {sentence}" for sentence, names in said.items() if sentence]


def form_lines(model: DiscoveryModel) -> list[str]:
    """The completeness of the search, one line per form of maps."""
    return [_form_line(form) for form in model.forms]


def _form_line(form: DiscoveryForm) -> str:
    if not form.decided and form.open == 0:
        return f"{form.name}: no further map"
    rest = "more were not listed" if form.open is None else f"{count(form.open)} not decided"
    return f"{form.name}: {count(form.decided)} decided, {rest}"


def rotation_sentence(rotation: DiscoveryRotation) -> str:
    """A sentence on a continuous symmetry: its residuals, and the verification at a generic or a finite angle."""
    reward = scientific(rotation.reward_residual)
    residuals = f"residual {scientific(rotation.residual)} in the dynamics, {reward} in the reward"
    tested = (
        f"under a rotation by {rotation.angle:g} degrees"
        if rotation.angle
        else " at a generic angle, which is enough for all angles"
    )
    why = one_line(rotation.why, 400)
    return f"{one_line(rotation.description, 400)}: {residuals}; {rotation.verdict} {tested}: {why}"


def narrowing_lines(model: DiscoveryModel) -> list[str]:
    """The stages of the search, one line each."""
    return [f"{number} {what}" for number, what in model.narrowing]


def gather(candidates: Sequence[DiscoveryCandidate], most: int) -> list[tuple[DiscoveryCandidate, int]]:
    """Group candidates for reports: one candidate represents others with the same verdict and kind of reason.

    Args:
        candidates: the candidates, accepted ones first.
        most: the number of candidates of one kind that are listed; the rest is counted.

    Returns:
        (candidate, number of similar ones that it represents).

    Example:
        >>> one = DiscoveryCandidate("(o0) -> (-o0)", "", 2, "rejected", "it moves nothing", None, "it moves nothing")
        >>> [more for _, more in gather([one] * 5, 1)]
        [4]
    """
    groups: dict[tuple[str, str], list[DiscoveryCandidate]] = {}
    for place, candidate in enumerate(candidates):
        groups.setdefault((candidate.verdict, candidate.kind or str(place)), []).append(candidate)
    listed = []
    for own in groups.values():
        shown = own if len(own) <= most else own[:1]
        listed += [(candidate, len(own) - len(shown)) for candidate in shown]
    return listed


def more_of_a_kind(candidate: DiscoveryCandidate, more: int) -> str:
    """The line for candidates similar to a listed one; "" if there are none."""
    # "follows" is the only verdict that is a verb.
    verdict = "follow" if candidate.verdict == "follows" and more > 1 else candidate.verdict
    return f"and {plural(more, 'more map')} {verdict}: {one_line(candidate.kind, 300)}" if more else ""


def left_out(rest: Sequence[tuple[DiscoveryCandidate, int]]) -> str:
    """A sentence on the number of candidates that a short report leaves out; "" if it shows all.

    Args:
        rest: the groups from `gather` that are not shown.
    """
    missing = sum(1 + more for _, more in rest)
    if not missing:
        return ""
    fate = " rejected" if all(candidate.verdict in REFUSALS for candidate, _ in rest) else ""
    return f"{plural(missing, 'more candidate')}{fate}; --json has them all"
