"""How the hidden state of a recurrent network transforms, read from the layers of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from symcheck.engine.results import RunResult
from symcheck.groups import Group
from symcheck.representations import Representation, signed_permutation

_GATES = {nn.RNN: (1, 0), nn.RNNCell: (1, 0), nn.GRU: (3, 2), nn.GRUCell: (3, 2), nn.LSTM: (4, 2), nn.LSTMCell: (4, 2)}
"""For each kind of layer, the number of gates, and the gate that has the sign of the state."""


def hidden_representation(net: nn.Module, result: RunResult, group: Group) -> Representation | None:
    """The representation rho with h(L x) = rho(g) h(x) for the hidden state h of a recurrent network.

    Args:
        net: the network.
        result: the result of a run on it.
        group: the group of the claim.

    Returns:
        A representation on the concatenated states of all recurrent modules, each as torch returns it: layer by layer,
        the forward direction before the backward direction. LSTM cell states transform in the same way. None if there
        is no recurrent module, or if the run did not determine how one transforms.
    """
    if result.verdict not in ("proved", "passed"):
        return None
    images: list[list[int]] = [[] for _ in group.generators]
    for name, module in net.named_modules():
        gates = _GATES.get(type(module))
        if gates is None:
            continue
        parts = _images_of_parts(module, [layer for layer in result.layers if layer["name"] == name], gates)
        if parts is None:
            return None
        for part in parts:
            for written, image in zip(images, part, strict=True):
                start = len(written)
                written += [entry + start if entry > 0 else entry - start for entry in image]
    return signed_permutation(group, images) if images and images[0] else None


def _images_of_parts(
    module: nn.Module, layers: Sequence[Mapping[str, Any]], gates: tuple[int, int]
) -> list[list[list[int]]] | None:
    """For each layer and direction and each generator, the signed images of the state; None if one is unknown."""
    directions = 2 if getattr(module, "bidirectional", False) else 1
    count = int(getattr(module, "num_layers", 1)) * directions
    if not layers or len(layers) % count:
        return None
    parts = []
    for part in range(count):
        # every layer has the same number of records: one for its inputs, and one for each step
        images = layers[part * len(layers) // count]["images"]
        states = [_images_of_state(image, int(module.hidden_size), *gates) for image in images]  # type: ignore[arg-type]
        if not states or any(state is None for state in states):
            return None
        parts.append([state for state in states if state is not None])
    return parts


def _images_of_state(image: Sequence[int], size: int, gates: int, signed: int) -> list[int] | None:
    """The signed images of the units of the state, from those of the rows of its gates."""
    if len(image) != gates * size:
        return None  # two units have the same weights, so their images are ambiguous
    rows = image[signed * size : (signed + 1) * size]
    state = [entry - signed * size if entry > 0 else entry + signed * size for entry in rows]
    return state if all(0 < abs(entry) <= size for entry in state) else None
