"""Functions that are followed as what they are composed of: recurrent layers and three-dimensional convolutions.

Attention is in `compositions_attention`, sums of products in `compositions_sums`.

Torch runs a recurrent layer in one call. Written as linear layers, gates and sums it needs no rule of its own: an
action permutes the hidden units of a cell exactly if it permutes every gate's rows alike, which the sums of the gates
check. A convolution over depth, height and width is one over height and width whose channels are pairs of channel and
depth; its filters have a zero wherever a window does not reach, and a flip of the depth permutes those channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
import torch.nn.functional as F  # noqa: N812

LARGEST = 20_000_000
"""Entries of a filter written out over depth, beyond which a convolution is not followed."""
Composition = Callable[..., Any]
_CompositionT = TypeVar("_CompositionT", bound=Composition)
COMPOSITIONS: dict[str, Composition] = {}
"""By the name of the torch function; each returns None, before it computes anything, for arguments that it refuses."""


def composition(*names: str) -> Callable[[_CompositionT], _CompositionT]:
    """Register what torch functions of these names are composed of, with their arguments and results."""

    def register(function: _CompositionT) -> _CompositionT:
        for name in names:
            COMPOSITIONS[name] = function
        return function

    return register


def _gates(
    x: torch.Tensor, h: torch.Tensor, weights: Sequence[torch.Tensor], count: int
) -> tuple[Sequence[torch.Tensor], Sequence[torch.Tensor]]:
    """Of input and hidden state, the parts of each gate; weights: of the input, of the state, and perhaps biases."""
    # torch keeps two biases, one for the input's part and one for the state's.
    from_input, from_state, *biases = weights
    of_input, of_state = biases or (None, None)
    return (
        F.linear(x, from_input, of_input).chunk(count, -1),
        F.linear(h, from_state, of_state).chunk(count, -1),
    )


def _lstm_step(
    x: torch.Tensor, state: tuple[torch.Tensor, ...], weights: Sequence[torch.Tensor]
) -> tuple[torch.Tensor, ...]:
    h, c = state
    # torch's order of gates: input, forget, cell, output.
    given, kept = _gates(x, h, weights, 4)
    enter, forget, new, leave = (a + b for a, b in zip(given, kept, strict=True))
    c = torch.sigmoid(forget) * c + torch.sigmoid(enter) * torch.tanh(new)
    return torch.sigmoid(leave) * torch.tanh(c), c


def _gru_step(
    x: torch.Tensor, state: tuple[torch.Tensor, ...], weights: Sequence[torch.Tensor]
) -> tuple[torch.Tensor, ...]:
    (h,) = state
    given, kept = _gates(x, h, weights, 3)
    reset, update = torch.sigmoid(given[0] + kept[0]), torch.sigmoid(given[1] + kept[1])
    # In torch's form the reset gate acts on the state's part of the new content only.
    new = torch.tanh(given[2] + reset * kept[2])
    return (new + update * (h - new),)


def _elman_step(function: Callable[[torch.Tensor], torch.Tensor]) -> Composition:
    def step(
        x: torch.Tensor, state: tuple[torch.Tensor, ...], weights: Sequence[torch.Tensor]
    ) -> tuple[torch.Tensor, ...]:
        ((given,), (kept,)) = _gates(x, state[0], weights, 1)
        return (function(given + kept),)

    return step


STEPS: dict[str, Composition] = {
    "lstm": _lstm_step,
    "gru": _gru_step,
    "rnn_tanh": _elman_step(torch.tanh),
    "rnn_relu": _elman_step(torch.relu),
}


def _cell(name: str) -> Composition:
    def apply(x: torch.Tensor, state: Any, *weights: torch.Tensor | None) -> Any:
        states = tuple(state) if isinstance(state, tuple | list) else (state,)
        made = STEPS[name](x, states, [w for w in weights if w is not None])
        return made if name == "lstm" else made[0]

    return apply


def _layers(name: str) -> Composition:
    def apply(
        x: torch.Tensor,
        state: Any,
        weights: Any,
        has_biases: Any = True,
        layers: Any = 1,
        dropout: float = 0.0,
        training: bool = False,
        bidirectional: bool = False,
        batch_first: bool = False,
    ) -> Any:
        if not isinstance(weights, list | tuple) or (training and dropout):
            return None  # packed sequences, draws between layers
        # Weights of one run: input, state, and two biases. One run for each layer and direction.
        per_run, ways = (4 if has_biases else 2), (2 if bidirectional else 1)
        if len(weights) != per_run * ways * layers or x.dim() != 3:
            return None  # projections, or no batch
        states = tuple(state) if isinstance(state, tuple | list) else (state,)
        time = 1 if batch_first else 0
        sequence, last = list(x.unbind(time)), []
        for layer in range(layers):
            made = []
            # Run numbers as torch stacks the states: layer by layer, forwards before backwards.
            for run in range(layer * ways, (layer + 1) * ways):  # forwards, then perhaps backwards
                held = tuple(part.select(0, run) for part in states)
                own = weights[run * per_run : (run + 1) * per_run]
                outputs = []
                for moment in sequence[:: 1 if run % ways == 0 else -1]:
                    held = STEPS[name](moment, held, own)
                    outputs.append(held[0])
                # Outputs of the backward run are put back into the order of time.
                made.append(outputs[:: 1 if run % ways == 0 else -1])
                last.append(held)
            sequence = made[0] if ways == 1 else [torch.cat(both, -1) for both in zip(*made, strict=True)]
        final = [torch.stack([held[i] for held in last]) for i in range(len(states))]
        return (torch.stack(sequence, time), *final)

    return apply


for _name in STEPS:
    composition(_name)(_layers(_name))
    composition(f"{_name}_cell")(_cell(_name))


@composition("conv3d")
def conv3d(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> torch.Tensor | None:
    """A convolution over three axes as one over the last two, with a channel for every pair of channel and depth."""
    if isinstance(padding, str) or groups != 1 or x.dim() != 5:
        return None
    s, p, d = _three(stride), _three(padding), _three(dilation)
    out, channels, kernel = weight.shape[:3]
    depth = x.shape[2]
    # Depth of the output: windows that fit, as for any convolution.
    made = (depth + 2 * p[0] - d[0] * (kernel - 1) - 1) // s[0] + 1
    if made < 1 or made * depth * weight.numel() // kernel > LARGEST:
        return None
    # Which depth of the input each kernel place reads for each output depth; (kernel, made).
    reach = torch.arange(made)[None, :] * s[0] - p[0] + torch.arange(kernel)[:, None] * d[0]
    places = (reach[..., None] == torch.arange(depth)).to(weight.dtype)  # (kernel, made, depth): one 1 at most per row
    # (out, made, channels, depth, kernel height, kernel width).
    spread = torch.tensordot(weight, places, dims=([2], [0])).permute(0, 4, 1, 5, 2, 3)
    filters = spread.reshape(out * made, channels * depth, *weight.shape[3:])
    shifts = None if bias is None else bias.repeat_interleave(made)
    planes = F.conv2d(x.flatten(1, 2), filters, shifts, s[1:], p[1:], d[1:])
    return torch.unflatten(planes, 1, (out, made))


def _three(item: Any) -> tuple[int, int, int]:
    items = (item,) * 3 if isinstance(item, int) else tuple(int(i) for i in item)
    return (items[0], items[1], items[2]) if len(items) == 3 else (items[0],) * 3
