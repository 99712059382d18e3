"""Built-in state access for the Arcade Learning Environment: the console's 128 bytes of RAM and its other state.

A state is the RAM, uint8 of shape (128,), which carries a clone of the whole machine (`CarriedState`). Setting a state
restores the clone and then writes the bytes that differ from it, so a state map changes only the bytes that it maps.
Paddles, registers and the screen are not in the RAM: a map cannot change them, so an image keeps those of its original
state. A plain array of bytes, as in a report, is written over the machine state after the first reset.

The console's random numbers (sticky actions) are not part of the state: the generator continues, so both sides use
different numbers. The last action, which a sticky action repeats, is not part of a clone either: setting a state does
not change it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symcheck.envs.state_access.carried import CarriedState
from symcheck.envs.state_access.record import Origin, StateAccess
from symcheck.statements.statement import Statement

_CLASS = "ale_py.env:AtariEnv"


def built_in(env: Any) -> StateAccess | None:
    """The built-in access of an unwrapped Atari environment, or None for any other class.

    Args:
        env: the unwrapped environment.

    Returns:
        Access whose states are RAM arrays that carry a clone of the machine.
    """
    if not any(f"{base.__module__}:{base.__name__}" == _CLASS for base in type(env).__mro__):
        return None
    first: list[Any] = []  # the machine state into which plain arrays are written

    def get_state(target: Any) -> CarriedState:
        if not first:
            first.append(target.ale.cloneState(include_rng=False))
        return CarriedState(target.ale.getRAM(), target.ale.cloneState(include_rng=False))

    def set_state(target: Any, state: Any) -> None:
        machine = getattr(state, "rest", None)
        if machine is None:
            machine = first[0] if first else target.ale.cloneState(include_rng=False)
        target.ale.restoreState(machine)
        wanted = np.asarray(state).astype(np.uint8)
        for address in np.flatnonzero(target.ale.getRAM() != wanted).tolist():
            target.ale.setRAM(address, int(wanted[address]))

    return StateAccess(
        set_state,
        "the Arcade Learning Environment: RAM, with the rest of the emulator's state",
        Origin.BUILT_IN,
        get=get_state,
        inexact=(Statement("inexact_registers"),),
        get_random=lambda target: target.ale.cloneState(include_rng=True),
        set_random=lambda target, machine: target.ale.restoreState(machine),
    )
