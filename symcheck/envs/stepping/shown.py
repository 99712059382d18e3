"""Observations from a few episodes under the uniform policy, from which the amounts of translations are chosen."""

from __future__ import annotations

from typing import Any

from symcheck.envs.stepping.stepper import Stepper
from symcheck.symmetry.compositions import Seen

_STEPS = 400


def shown_values(stepper: Stepper) -> Seen:
    """Observations of some episodes, and internal states if they can be read.

    Args:
        stepper: the environment; it is reset and stepped.

    Returns:
        Values of about 400 steps.
    """
    readable = stepper.access is not None and stepper.access.get is not None
    observations: list[Any] = []
    states: list[Any] = []
    while len(observations) < _STEPS:
        played = stepper.play(_STEPS - len(observations), read=readable)
        observations += played.seen
        states += [state for state in played.states if state is not None]
    return Seen(observations, states)
