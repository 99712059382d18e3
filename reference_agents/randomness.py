"""One independent random stream per run and purpose, so that a run's curve depends on its own seed alone.

`numpy.random.SeedSequence` derives the streams. A stream is addressed by (seed, purpose, index): its numbers do not
depend on how many other runs share the program, on their order, or on how much any other stream has been used.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from symcheck.array_types import Floats


class Purpose(enum.IntEnum):
    """What a stream is for; the numbers are part of what a seed means and must not change."""

    PARAMETERS = 0
    ENVIRONMENT = 1
    ACTIONS = 2
    MINIBATCHES = 3
    DECORRELATION = 4
    EVALUATION_ENVIRONMENT = 5
    EVALUATION_ACTIONS = 6
    AUGMENTATION = 7


def generator(seed: int, purpose: Purpose, index: int = 0) -> np.random.Generator:
    """The generator of one stream.

    Args:
        seed: the run's seed, 0 or more.
        purpose: what the stream is for.
        index: which of several streams of that purpose (an evaluation's number).

    Returns:
        A fresh PCG64 generator at the start of the stream.

    Example:
        >>> a, b = generator(0, Purpose.ACTIONS).random(), generator(0, Purpose.ACTIONS).random()
        >>> a == b
        True
    """
    # spawn_key separates streams: equal seeds with other keys are independent.
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(int(purpose), index)))


def episode_seed(seed: int, purpose: Purpose, index: int, environment: int, episode: int) -> int:
    """A seed of 32 bits for one episode of one environment of a run.

    Example:
        >>> len({episode_seed(0, Purpose.ENVIRONMENT, 0, environment, 0) for environment in range(16)})
        16
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(int(purpose), index, environment, episode))
    return int(sequence.generate_state(1)[0])


def stream_seeds(seed: int, purpose: Purpose, index: int, count: int) -> list[int]:
    """Seeds of 32 bits for `count` generators that only take a number, derived from one stream.

    Example:
        >>> len(set(stream_seeds(0, Purpose.ENVIRONMENT, 0, 16)))
        16
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(int(purpose), index))
    return [int(child.generate_state(1)[0]) for child in sequence.spawn(count)]


class UniformStreams:
    """Uniform numbers in [0, 1), step by step, for every run from its own stream.

    Numbers are drawn in blocks of many steps, because one call for each run and step would cost more than a step of
    the environments. What step t of a run gets depends on the run's seed, the purpose and t alone.

    Args:
        seeds: one seed per run.
        purpose: what the numbers are for.
        shape: numbers per run and step.
        index: which of several streams of that purpose.
        block: steps drawn at once.
    """

    def __init__(
        self, seeds: Sequence[int], purpose: Purpose, shape: tuple[int, ...], *, index: int = 0, block: int = 64
    ) -> None:
        self._generators = [generator(seed, purpose, index) for seed in seeds]
        self._values = np.empty((len(seeds), block, *shape))
        # At the end of its block, so that the first call draws.
        self._position = block

    def state(self) -> dict[str, Any]:
        """Everything that later numbers depend on, in tensors, numbers and strings."""
        states = [json.dumps(stream.bit_generator.state) for stream in self._generators]
        # The block is stored too: generators have drawn ahead of what was used.
        return {"generators": states, "values": self._values.tobytes(), "position": self._position}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state of the same seeds and shape."""
        for stream, text in zip(self._generators, state["generators"], strict=True):
            stream.bit_generator.state = json.loads(text)
        self._values[:] = np.frombuffer(state["values"]).reshape(self._values.shape)
        self._position = int(state["position"])

    def next(self) -> Floats:
        """The numbers of the next step, shape (runs, *shape); valid until the block after it is drawn."""
        if self._position == self._values.shape[1]:
            for run, stream in enumerate(self._generators):
                # Each run fills its part from its own generator, whatever the other runs are.
                stream.random(out=self._values[run])
            self._position = 0
        self._position += 1
        return self._values[:, self._position - 1]
