"""The door through which a device may take over large operations; it is shut unless `streamlabel.scale` opens it.

A solver that is about to do large work asks `accelerated` first, and does the work itself if the answer is None: no
device was chosen, or the work is too small or too large for it. So there is one course of learning, wherever it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol


class Accelerator(Protocol):
    """A device that can do some of the operations."""

    def run(self, operation: str, *arguments: Any) -> Any:
        """The result of an operation, as the solvers make it themselves; None if it is not for this device."""
        ...


_CHOSEN: ContextVar[Accelerator | None] = ContextVar("accelerator", default=None)


def accelerated(operation: str, *arguments: Any) -> Any:
    """The result of an operation on the device that was chosen, or None."""
    device = _CHOSEN.get()
    return None if device is None else device.run(operation, *arguments)


@contextmanager
def accelerating(device: Accelerator | None) -> Iterator[None]:
    """Offer large operations to this device inside the block, in this thread."""
    token = _CHOSEN.set(device)
    try:
        yield
    finally:
        _CHOSEN.reset(token)
