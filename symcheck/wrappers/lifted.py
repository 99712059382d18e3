"""Lifts networks that were trained on `Quotient` to the environment's own observations.

    f_lifted(s) = average over the elements g that lead s to its representative r of K_g^-1 f(r).

The lifted network is equivariant for any f: for h in the group, g leads s to r if and only if g h^-1 leads L_h s to r.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from symcheck.errors import SpecError
from symcheck.symmetry.symmetry import Symmetry
from symcheck.wrappers.orbit import Elements, leading

if TYPE_CHECKING:
    from torch import Tensor, nn


def lifted_network(net: nn.Module, symmetry: Symmetry, *, env: gym.Env[Any, Any]) -> nn.Module:
    """The network on `env` that corresponds to a policy learned on `Quotient(env, symmetry)`.

    Outputs as wide as the action vector are mapped back; outputs of width one stay unchanged. If there are several
    outputs, each is treated by its own width.

    Args:
        net: maps observations (n, ...) of the quotient to action vectors (n, A), values (n, 1), the logits of a
            distribution, or a tuple of these.
        symmetry: the symmetry of the quotient; its action entries must be data on a vector.
        env: the environment, with or without the wrapper; its spaces are used.

    Returns:
        A module that takes observations of the environment, for acting and for `verify_net`; no gradient passes
        through it.

    Raises:
        SpecError: the symmetry does not fit, its action maps are not data, or an output has another width.

    Example:
        >>> import gymnasium, torch, symcheck as sc
        >>> mirror = sc.Symmetry("mirror", sc.groups.cyclic(2), [[-1, -1, -1, -1]], [[1, 0]])
        >>> lifted = lifted_network(torch.nn.Linear(4, 2), mirror, env=gymnasium.make("CartPole-v1"))
        >>> s = torch.rand(5, 4)
        >>> bool((lifted(-s) == lifted(s).flip(1)).all())
        True
    """
    import torch

    bound = symmetry.bind(env.observation_space, env.action_space)
    elements = Elements(bound)
    width = symmetry.action_representation.dim
    group = symmetry.group
    # The inverse maps the output at the representative back to the observation's frame.
    back = [torch.tensor(symmetry.action_representation.matrix(~g), dtype=torch.float64) for g in group.elements()]

    class Lifted(torch.nn.Module):
        """See `lifted_network`."""

        def __init__(self) -> None:
            super().__init__()
            self.net = net

        @torch.no_grad()
        def forward(self, observations: Tensor) -> Any:
            given = observations.cpu().numpy()
            # (elements, batch): every observation under every element.
            images = [np.asarray(bound.observation_batch(word, given)) for word in elements.words]
            # alive[g, i]: whether element g leads observation i to its representative.
            alive = leading(images, len(given))
            total: list[Tensor] | None = None
            # an empty batch has outputs with a shape too
            used = np.flatnonzero(alive.any(axis=1)) if len(given) else [0]
            for element in used:
                # Only the rows that this element leads to their representatives.
                rows = torch.as_tensor(np.flatnonzero(alive[element]))
                representatives = torch.as_tensor(np.ascontiguousarray(images[element][rows.numpy()])).to(observations)
                answers = self.net(representatives)
                parts = list(answers) if isinstance(answers, tuple) else [answers]
                moved = [_map_output_back(part, back[element], width) for part in parts]
                # Allocated when the shapes of the first outputs are known.
                if total is None:
                    total = [part.new_zeros((len(given), *part.shape[1:])) for part in moved]
                for whole, part in zip(total, moved, strict=True):
                    # Several elements may lead to one representative: average their outputs.
                    whole.index_add_(0, rows, part)
                several = isinstance(answers, tuple)
            count = torch.as_tensor(alive.sum(axis=0)).to(observations)
            outputs = [_divide_rows(whole, count) for whole in total or []]
            return tuple(outputs) if several else outputs[0]

    return Lifted()


def _map_output_back(output: Tensor, back: Tensor, width: int) -> Tensor:
    # Action vectors transform by K; values are invariant.
    if output.ndim == 2 and output.shape[1] == width:
        return output @ back.to(output).T
    if output.ndim <= 2 and output.shape[1:].numel() == 1:
        return output
    raise SpecError(
        f"each output must have {width} components (action) or 1 component (invariant), got shape "
        f"{tuple(output.shape)}.",
        where="lifted_network",
        remedy="Lift a module that returns the action vector and the value only.",
    )


def _divide_rows(total: Tensor, count: Tensor) -> Tensor:
    # The count has one axis; outputs may have further axes.
    return total / count.reshape(-1, *[1] * (total.ndim - 1)).to(total)
