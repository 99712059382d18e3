"""Work that is done again and again on a device, recorded as one CUDA graph after the first few times.

A graph repeats kernels on the memory that they had when they were recorded, and nothing else: no line of Python, no
copy from the processor, no decision about a number. So what is recorded may read only buffers that stay where they are,
or what it has made itself since it began, and must write its results into such buffers.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

WARM_UP = 3  # times before recording, as torch asks for: libraries set themselves up the first time


def seeded_generator(device: str, seed: int) -> torch.Generator:
    """A generator of random numbers on a device."""
    return torch.Generator(device).manual_seed(seed)


def record(work: Callable[[], None], generator: torch.Generator) -> Callable[[], None]:
    """A function that repeats the kernels of `work`; nothing is executed yet.

    Args:
        work: see above.
        generator: what it draws from; every repetition continues from where the generator is then.
    """
    # Nothing may be pending when the recording starts.
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    # The graph then advances the generator at each replay, instead of repeating the numbers of its recording.
    graph.register_generator_state(generator)
    with torch.cuda.graph(graph):
        work()
    return graph.replay


class Repeated:
    """Work to call again and again.

    Args:
        work: what one call does.
        generator: what it draws from.
        device: where it runs; on the processor nothing is recorded.
    """

    def __init__(self, work: Callable[[], None], generator: torch.Generator, device: torch.device) -> None:
        self._work, self._generator = work, generator
        self._records = device.type != "cpu"
        self._calls = 0

    def __call__(self) -> None:
        """Do it once."""
        if self._records and self._calls == WARM_UP:
            self._work = record(self._work, self._generator)
        self._calls += 1
        self._work()
