"""Repeated work on a device, recorded as one CUDA graph after the first few calls.

A graph repeats kernels on the memory addresses at which they were recorded. It repeats no Python code, no copies from
the CPU, and no branches on values. Recorded work may therefore read only fixed buffers and its own intermediate
results, and must write its results into fixed buffers.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

WARM_UP = 3  # number of warm-up calls before recording, as torch requires: libraries initialise themselves


def seeded_generator(device: str, seed: int) -> torch.Generator:
    """A generator of random numbers on a device."""
    return torch.Generator(device).manual_seed(seed)


def record(work: Callable[[], None], generator: torch.Generator) -> Callable[[], None]:
    """A function that repeats the kernels of `work`; nothing is executed yet.

    Args:
        work: the work to record.
        generator: the generator that it draws from; every repetition continues from the generator's current state.
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
    """Work that is called repeatedly.

    Args:
        work: the work of one call.
        generator: the generator that it draws from.
        device: the device; on the CPU nothing is recorded.
    """

    def __init__(self, work: Callable[[], None], generator: torch.Generator, device: torch.device) -> None:
        self._work, self._generator = work, generator
        self._records = device.type != "cpu"
        self._calls = 0

    def __call__(self) -> None:
        """Do the work once."""
        if self._records and self._calls == WARM_UP:
            self._work = record(self._work, self._generator)
        self._calls += 1
        self._work()
