"""Asynchronous host-device copies through reusable pinned buffers.

A copy from or to page-locked memory is only asked for: the device makes it in the order of its work, after what it was
asked for before, and beside what the processor does meanwhile. So that memory is lent out until the copy has been made.
`Uploads` keeps page-locked buffers of each shape, and an event behind each copy says when its buffer may be written
again; a buffer is made where all others of its shape are still being read, so nothing ever waits, and in a loop that
asks the device for actions in every step one or two buffers of a shape are all there ever are. A `Download` is read
when its event has passed.

torch's own allocator of page-locked memory would reuse blocks by the same events. Buffers that are made once save its
book-keeping in every step, and say in one place what may be overwritten when.

On the processor there is nothing to carry: tensors share the memory of the arrays.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol

import numpy.typing as npt
import torch


class Event(Protocol):
    """A place in the order of a device's work."""

    def record(self) -> None:
        """Stand behind everything that the device has been asked for."""

    def query(self) -> bool:
        """Whether the device has got there."""

    def synchronize(self) -> None:
        """Wait until it has."""


def new_event() -> Event:
    """An event of the current CUDA device."""
    event: Event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    return event


class Uploads:
    """Arrays sent to a device.

    Args:
        device: where to.

    Example:
        >>> import numpy as np
        >>> Uploads(torch.device("cpu")).send(np.array([1, 2])).tolist()
        [1, 2]
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._buffers: dict[tuple[torch.Size, torch.dtype], deque[_Buffer]] = {}

    def send(self, array: npt.NDArray[Any]) -> torch.Tensor:
        """A tensor of the same shape and dtype on the device.

        On the processor it shares the array's memory. Elsewhere the array may be overwritten at once.
        """
        given = torch.from_numpy(array)
        if self._device.type == "cpu":
            # On a CPU the tensor is the array's own memory.
            return given
        buffer = self._free(given)
        buffer.memory.copy_(given)
        # Page-locked memory allows the copy to run beside the host's work.
        sent = buffer.memory.to(self._device, non_blocking=True)
        # The buffer is free again once the device has passed this event.
        buffer.read.record()
        return sent

    def _free(self, given: torch.Tensor) -> _Buffer:
        """A buffer that no copy reads; it is the next in use, and so the last in its queue."""
        buffers = self._buffers.setdefault((given.shape, given.dtype), deque())
        # Copies are made in order: if the oldest one has not been, none has.
        buffer = buffers.popleft() if buffers and buffers[0].read.query() else _Buffer(given)
        buffers.append(buffer)
        return buffer


class _Buffer:
    """Page-locked memory, and the event behind the last copy from it."""

    def __init__(self, like: torch.Tensor) -> None:
        self.memory = torch.empty(like.shape, dtype=like.dtype, pin_memory=True)
        self.read = new_event()


class Download:
    """A pending copy from the device to the host.

    Args:
        numbers: where they are now; may be overwritten by later work of the device.

    Example:
        >>> Download(torch.tensor([1, 2])).get().tolist()
        [1, 2]
    """

    def __init__(self, numbers: torch.Tensor) -> None:
        self._arriving = numbers.to("cpu", non_blocking=True)  # into page-locked memory, which torch sees to
        self._arrived = None if numbers.device.type == "cpu" else new_event()
        if self._arrived is not None:
            self._arrived.record()

    def get(self) -> torch.Tensor:
        """The numbers; waits only where they have not arrived."""
        if self._arrived is not None:
            self._arrived.synchronize()
        return self._arriving
