"""TorchScript is converted where it can be, and run where it cannot; either way nothing is printed and nothing ends."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from net_catalogue import mirror, mirror_mlp
from torch import nn

from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.engine.networks.subject.torchscript import calls_python, followable

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.jit.trace(mirror_mlp(8).eval(), torch.zeros(3, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.net(x)
        return y


class Branching(Plain):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.net(x)
        return y * y[:1] if float(x.max()) > 500.0 else y


class Ignoring(Plain):
    """Calls Python code from TorchScript. Converting such a graph, torch ends the process."""

    def __init__(self, shift: float = 0.0) -> None:
        super().__init__()
        self.shift = shift

    @torch.jit.ignore
    def in_python(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.tensor([self.shift, 0.0], dtype=x.dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.in_python(self.net(x))


def scripted(net: nn.Module) -> nn.Module:
    return torch.jit.script(net.eval())  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("build", "verdict"),
    [(Plain, "proved"), (Branching, "passed"), (Ignoring, "passed"), (partial(Ignoring, 0.1), "failed")],
    ids=["plain", "a branch on values", "calls Python", "calls Python that is wrong"],
)
def test_a_scripted_network_is_judged_without_output(
    build: Callable[[], nn.Module], verdict: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_net(scripted(build()), mirror(), options=NetOptions(samples=64, input_shape=(4,))).verdict == verdict
    assert capfd.readouterr() == ("", "")


def test_only_a_graph_without_python_code_is_converted() -> None:
    assert calls_python(scripted(Ignoring()))
    assert calls_python(nn.Sequential(scripted(Ignoring())))
    assert not calls_python(scripted(Plain()))
    assert not calls_python(mirror_mlp(8))
    kept = scripted(Ignoring()).double()
    assert followable(kept, (4,)) is kept
    assert not isinstance(followable(scripted(Plain()).double(), (4,)), torch.jit.ScriptModule)
