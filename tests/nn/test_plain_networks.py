"""Plain networks of the same function: nothing in them that a hand-written one would not have, and the same shapes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from symcheck import groups
from symcheck import representations as reps
from symcheck.nn import (
    BasisConv2d,
    BasisLinear,
    EquivariantBatchNorm,
    EquivariantHeads,
    EquivariantSequential,
    GlobalAveragePool,
    MergeChannels,
    SplitChannels,
    to_dense,
)

C2, C4 = groups.named("C2"), groups.named("C4")
MIRROR = reps.signed_permutation(C2, [[-1, -1, -1, -1]])
SWAP = reps.permutation(C2, [[1, 0]])
TWO, FOUR = reps.regular(C2), reps.regular(C4)
CLOSE = 2e-6  # float32 sums of up to 128 products of size one, in another order


def policy_and_value(*, flat: bool) -> EquivariantHeads:
    """CartPole's network, on (batch, 4) and with (batch, 2) logits where flat, else with separate channels."""
    torch.manual_seed(0)
    ends: tuple[list[nn.Module], list[nn.Module]] = ([SplitChannels(MIRROR)], [MergeChannels()]) if flat else ([], [])
    body = EquivariantSequential(
        *ends[0], BasisLinear(MIRROR, TWO, 1, 64), nn.ReLU(), BasisLinear(TWO, TWO, 64, 64), nn.ReLU()
    )
    return EquivariantHeads(
        body,
        {
            "action": EquivariantSequential(BasisLinear(TWO, SWAP, 64, 1), *ends[1]),
            "value": EquivariantSequential(BasisLinear(TWO, reps.trivial(C2), 64, 1), *ends[1]),
        },
    )


class Around(nn.Module):
    """A user's network around one of ours."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, ...]:
        """What the inner network answers."""
        made: Tensor | tuple[Tensor, ...] = self.inner(x)
        return made


def test_a_plain_network_holds_the_layers_of_a_hand_written_one_and_no_others() -> None:
    dense = to_dense(policy_and_value(flat=True))
    leaves = [(name, type(m)) for name, m in dense.named_modules() if not list(m.children())]
    assert leaves == [
        ("body.0", nn.Linear),
        ("body.1", nn.ReLU),
        ("body.2", nn.Linear),
        ("body.3", nn.ReLU),
        ("heads.action", nn.Linear),
        ("heads.value", nn.Linear),
    ]


@pytest.mark.parametrize("flat", [True, False])
def test_a_network_with_heads_inside_a_users_own_keeps_its_shapes(flat: bool) -> None:
    net = Around(policy_and_value(flat=flat))
    dense = to_dense(net)
    x = torch.randn(*(5, 4) if flat else (5, 1, 4))
    for given, expected in zip(dense(x), net(x), strict=True):
        torch.testing.assert_close(given, expected, atol=CLOSE, rtol=0.0)
    assert sum(isinstance(m, nn.Flatten | nn.Unflatten) for m in dense.modules()) == (0 if flat else 3)


def test_sequences_of_vectors_keep_their_leading_axes() -> None:
    net = Around(EquivariantSequential(BasisLinear(MIRROR, TWO, 1, 8), nn.ReLU(), BasisLinear(TWO, SWAP, 8, 3)))
    x = torch.randn(7, 5, 1, 4)  # time, batch
    made = to_dense(net)(x)
    assert made.shape == (7, 5, 3, 2)
    torch.testing.assert_close(made, net(x), atol=CLOSE, rtol=0.0)


def test_normalised_images_inside_a_users_own_network_become_plain() -> None:
    one = reps.trivial(C4)
    images = EquivariantSequential(
        BasisConv2d(one, FOUR, 2, 3, 3, spatial=["rot90"]), EquivariantBatchNorm(FOUR, 3, images=True), nn.ReLU()
    )
    for inner in (images, EquivariantSequential(*images, GlobalAveragePool(), BasisLinear(FOUR, one, 3, 1))):
        net = Around(inner)
        net(torch.rand(16, 2, 1, 9, 9))  # statistics other than those at the start
        net.eval()
        x = torch.rand(4, 2, 1, 9, 9)
        torch.testing.assert_close(to_dense(net)(x), net(x), atol=CLOSE, rtol=0.0)
