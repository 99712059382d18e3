"""The first place in a network that produces a bad value, found by running it with hooks on its modules."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from symcheck.array_types import Floats
from symcheck.engine.networks.subject.subject import Subject
from symcheck.errors import SymcheckError


def first_nonfinite_module(subject: Subject, x: Floats) -> str | None:
    """The first module with NaN or infinite output although its inputs are finite; None if there is none.

    Args:
        subject: the network.
        x: one input, shape (*shape,).
    """
    # Try the float64 copy first: a value that is infinite there is not an overflow of the deployed dtype.
    for exact in (True, False):
        nonfinite: list[str] = []
        handles = [
            m.register_forward_hook(_watcher(name, nonfinite)) for name, m in subject.modules(exact=exact).items()
        ]
        try:
            subject.run(x[None], exact=exact)
        except SymcheckError:
            return nonfinite[0] if nonfinite else None
        finally:
            for handle in handles:
                handle.remove()
        if nonfinite:
            return nonfinite[0]
    return None


# Bind name and list per module: closures created in a loop would share the last name.
def _watcher(name: str, nonfinite: list[str]) -> Any:
    def watch(module: nn.Module, inputs: Any, output: Any) -> None:
        tensors = [t for t in inputs if isinstance(t, torch.Tensor)]
        if (
            isinstance(output, torch.Tensor)
            and not output.isfinite().all()
            and all(t.isfinite().all() for t in tensors)
        ):
            nonfinite.append(name)

    return watch
