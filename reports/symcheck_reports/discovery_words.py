"""The sentences about a search, written once for the terminal and the page."""

from __future__ import annotations

from symcheck_reports.discovery_model import DiscoveryModel, DiscoveryRotation
from symcheck_reports.formatting import count, one_line, plural, scientific

REFUSALS = ("failed", "refused")


def found_sentence(model: DiscoveryModel) -> str:
    """What was found, no stronger than its evidence.

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
    """How the error budget was shared."""
    if model.level == model.alpha:
        return f"alpha {model.alpha:g}"
    return f"alpha {model.level:.2g} for each verification, {model.alpha:g} over all candidates tried"


def rotation_sentence(rotation: DiscoveryRotation) -> str:
    """A continuous symmetry with its residuals and what verification says about a generic angle, or a finite one."""
    reward = scientific(rotation.reward_residual)
    residuals = f"residual {scientific(rotation.residual)} in the dynamics, {reward} in the reward"
    turned = f"turned by {rotation.angle:g} degrees" if rotation.angle else "at a generic angle, and so at all,"
    return (
        f"{one_line(rotation.description, 400)}: {residuals}; {turned} it is "
        f"{rotation.verdict}: {one_line(rotation.why, 400)}"
    )


def narrowing_lines(model: DiscoveryModel) -> list[str]:
    """How the search narrowed, one line a stage."""
    return [f"{number} {what}" for number, what in model.narrowing]


def left_out(model: DiscoveryModel, shown: int) -> str:
    """How many candidates a short report leaves out; "" where it shows all."""
    rest = model.candidates[shown:]
    if not rest:
        return ""
    fate = " refused" if all(candidate.verdict in REFUSALS for candidate in rest) else ""
    return f"{plural(len(rest), 'more candidate')}{fate}; --json has them all"
