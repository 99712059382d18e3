"""One independent random stream per run and purpose, so that a run's curve depends only on its own seed.

`numpy.random.SeedSequence` derives the streams. A stream is addressed by (seed, purpose, index): its numbers do not
depend on the number or order of other runs in the program, or on the use of any other stream.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from symcheck.array_types import Floats


class Purpose(enum.IntEnum):
    """The purpose of a stream. The values must not change, because they determine the results of a seed."""

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
        purpose: the purpose of the stream.
        index: the index of the stream among those of that purpose (such as the number of an evaluation).

    Returns:
        A fresh PCG64 generator at the start of the stream.

    Example:
        >>> a, b = generator(0, Purpose.ACTIONS).random(), generator(0, Purpose.ACTIONS).random()
        >>> a == b
        True
    """
    # spawn_key separates streams: streams with the same seed and different keys are independent.
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
    """Seeds of 32 bits for `count` generators that accept only an integer, derived from one stream.

    Example:
        >>> len(set(stream_seeds(0, Purpose.ENVIRONMENT, 0, 16)))
        16
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(int(purpose), index))
    return [int(child.generate_state(1)[0]) for child in sequence.spawn(count)]


class UniformStreams:
    """Uniform numbers in [0, 1) for each step, drawn for every run from its own stream.

    Numbers are drawn in blocks of many steps, because one call for each run and step would cost more than a step of
    the environments. The numbers of step t of a run depend only on the run's seed, the purpose and t.

    Args:
        seeds: one seed per run.
        purpose: the purpose of the numbers.
        shape: the shape of the numbers per run and step.
        index: the index of the stream among those of that purpose.
        block: the number of steps drawn at once.
    """

    def __init__(
        self, seeds: Sequence[int], purpose: Purpose, shape: tuple[int, ...], *, index: int = 0, block: int = 64
    ) -> None:
        self._generators = [generator(seed, purpose, index) for seed in seeds]
        self._values = np.empty((len(seeds), block, *shape))
        # Start at the end of the block, so that the first call draws.
        self._position = block

    def state(self) -> dict[str, Any]:
        """The complete state for `restore`, in tensors, numbers and strings."""
        states = [json.dumps(stream.bit_generator.state) for stream in self._generators]
        # Store the block too, because generators have drawn ahead.
        return {"generators": states, "values": self._values.tobytes(), "position": self._position}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state of the same seeds and shape."""
        for stream, text in zip(self._generators, state["generators"], strict=True):
            stream.bit_generator.state = json.loads(text)
        self._values[:] = np.frombuffer(state["values"]).reshape(self._values.shape)
        self._position = int(state["position"])

    def next(self) -> Floats:
        """The numbers of the next step, shape (runs, *shape); valid until the block after it is drawn."""
        if self._position == self._values.shape[1]:
            for run, stream in enumerate(self._generators):
                # Each run fills its part from its own generator, independent of the other runs.
                stream.random(out=self._values[run])
            self._position = 0
        self._position += 1
        return self._values[:, self._position - 1]
