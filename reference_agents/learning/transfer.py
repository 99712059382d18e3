"""Asynchronous host-device copies through reusable pinned buffers.

Copies from and to page-locked memory are asynchronous: the device executes them in queue order while the CPU continues.
The memory must not be changed until the copy is finished. `Uploads` keeps page-locked buffers of each shape; an event
after each copy marks when its buffer may be written again. If all buffers of a shape are still in use, another one is
allocated, so no call waits; a loop that reads actions from the device in every step needs one or two buffers per shape.
A `Download` is read after its event.

torch's own allocator of page-locked memory would reuse blocks by the same events. Persistent buffers avoid its overhead
in every step, and define in one place when a buffer may be overwritten.

On the CPU nothing is copied: tensors share the memory of the arrays.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol

import numpy.typing as npt
import torch


class Event(Protocol):
    """A position in the queue of a device."""

    def record(self) -> None:
        """Record the event after all work queued so far."""

    def query(self) -> bool:
        """Whether the device has reached the event."""

    def synchronize(self) -> None:
        """Wait until the device has reached the event."""


def new_event() -> Event:
    """An event of the current CUDA device."""
    event: Event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    return event


class Uploads:
    """Sends arrays to a device.

    Args:
        device: the target device.

    Example:
        >>> import numpy as np
        >>> Uploads(torch.device("cpu")).send(np.array([1, 2])).tolist()
        [1, 2]
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._buffers: dict[tuple[torch.Size, torch.dtype], deque[_Buffer]] = {}

    def send(self, array: npt.NDArray[Any]) -> torch.Tensor:
        """Send an array; returns a tensor of the same shape and dtype on the device.

        On the CPU the tensor shares the array's memory. On other devices the array may be overwritten at once.
        """
        given = torch.from_numpy(array)
        if self._device.type == "cpu":
            # On a CPU the tensor is the array's own memory.
            return given
        buffer = self._free(given)
        buffer.memory.copy_(given)
        # Page-locked memory allows the copy to run in parallel with the host's work.
        sent = buffer.memory.to(self._device, non_blocking=True)
        # The buffer is free again once the device has passed this event.
        buffer.read.record()
        return sent

    def _free(self, given: torch.Tensor) -> _Buffer:
        """A buffer that no copy is reading; it moves to the end of its queue."""
        buffers = self._buffers.setdefault((given.shape, given.dtype), deque())
        # Copies are made in order: if the oldest one is pending, all are.
        buffer = buffers.popleft() if buffers and buffers[0].read.query() else _Buffer(given)
        buffers.append(buffer)
        return buffer


class _Buffer:
    """Page-locked memory, and the event after the last copy from it."""

    def __init__(self, like: torch.Tensor) -> None:
        self.memory = torch.empty(like.shape, dtype=like.dtype, pin_memory=True)
        self.read = new_event()


class Download:
    """A pending copy from the device to the host.

    Args:
        numbers: the tensor on the device; later work may overwrite it.

    Example:
        >>> Download(torch.tensor([1, 2])).get().tolist()
        [1, 2]
    """

    def __init__(self, numbers: torch.Tensor) -> None:
        self._arriving = numbers.to("cpu", non_blocking=True)  # into page-locked memory, allocated by torch
        self._arrived = None if numbers.device.type == "cpu" else new_event()
        if self._arrived is not None:
            self._arrived.record()

    def get(self) -> torch.Tensor:
        """The array; waits only if the copy is not finished."""
        if self._arrived is not None:
            self._arrived.synchronize()
        return self._arriving
