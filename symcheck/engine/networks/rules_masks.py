"""Masks that do not depend on the input: what they leave out becomes a constant, and the action must keep it there."""

from __future__ import annotations

from typing import Any

import torch

from symcheck.engine.networks.rules_movement import moved_entries
from symcheck.engine.networks.tracing import Call, NotUnderstoodError, as_array, rule
from symcheck.engine.networks.values import Value
from symcheck.statements.statement import state


@rule("masked_fill", "masked_fill_")
def masked_fill(call: Call, x: Any, mask: Any, number: Any) -> Value | list[Value]:
    """x, with one number where the mask is true."""
    return _select_by_mask(call, mask, number, x)


@rule("where")
def where(call: Call, x: Any, *others: Any) -> Value | list[Value]:
    """`torch.where(mask, a, b)`, or `a.where(mask, b)`: one of two by a mask."""
    if len(others) != 2:
        raise NotUnderstoodError(state("SYM154", operation=call.name, argument="a condition alone"))
    # `torch.where` has the condition first, the method has it second.
    is_function = isinstance(x, torch.Tensor) and x.dtype == torch.bool
    mask, a, b = (x, *others) if is_function else (others[0], x, others[1])
    return _select_by_mask(call, mask, a, b)


@rule("tril", "triu")
def triangle(call: Call, x: Any, diagonal: int = 0) -> Value | list[Value]:
    """One triangle of the last two axes, zeros in the other."""
    kept = getattr(torch, call.name)(torch.ones(call.shape[-2:]), diagonal).bool()
    return _select_by_mask(call, _constant(call, kept), x, 0.0)


def _constant(call: Call, tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, known as a constant from now on."""
    call.tracer.learn(tensor, None)
    return tensor


def _select_by_mask(call: Call, mask: Any, a: Any, b: Any) -> Value | list[Value]:
    if call.value(mask) is not None:
        raise NotUnderstoodError(state("SYM155", operation=call.name, depends="a mask"))
    chosen = torch.from_numpy(as_array(mask).astype(bool))
    # A number on one side becomes a constant tensor of one entry.
    sides = [
        side if isinstance(side, torch.Tensor) else _constant(call, torch.full((1,), float(side))) for side in (a, b)
    ]
    return moved_entries(call, lambda marks: torch.where(chosen, marks[0], marks[1]), sides)
