"""The calls of a network: consecutive operators at one place, with their nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from symcheck.array_types import Floats, Ints
from symcheck.engine.networks.capture.places import Place
from symcheck.engine.networks.graph.nodes import BATCH, Graph, Step


@dataclass(frozen=True, eq=False)
class Part:
    """The computation of one call of the network.

    Attributes:
        place: the call.
        steps: its operators.
        first: index of its first node.
        last: index after its last node.
    """

    place: Place
    steps: tuple[Step, ...]
    first: int
    last: int

    @property
    def reads(self) -> Ints:
        """The input entries of the call."""
        return _entries([ids for step in self.steps for ids in step.given])


def parts_of(graph: Graph) -> list[Part]:
    """The calls of a network in order; consecutive operators at one place form one call."""
    parts: list[Part] = []
    reached = 0
    for step in graph.steps:
        if step.first > reached:  # the input node belongs to no call
            parts.append(Part(Place(), (), reached, step.first))
        before = parts[-1] if parts else None
        if before is not None and before.steps and before.place == step.place:
            parts[-1] = replace(before, steps=(*before.steps, step), last=step.last)
        else:
            parts.append(Part(step.place, (step,), step.first, step.last))
        reached = step.last
    return parts


def span_of(graph: Graph, part: Part) -> tuple[int, int]:
    """The first entry that a call computes, and the one after the last."""
    nodes = graph.nodes[part.first : part.last]
    return (nodes[0].start, nodes[-1].start + nodes[-1].size) if nodes else (0, 0)


def _entries(tensors: Sequence[Floats]) -> Ints:
    ids = [np.asarray(ids).reshape(-1) for ids in tensors]
    joint = np.concatenate(ids) if ids else np.zeros(0)
    return np.unique(joint[joint >= 0].astype(np.int64) // BATCH)


def are_answers(part: Part) -> bool:
    """Whether the result is boolean. The action may negate a boolean, and later operators may compensate for that."""
    value = part.steps[-1].operator.meta.get("val") if part.steps else None
    return isinstance(value, torch.Tensor) and value.dtype == torch.bool
