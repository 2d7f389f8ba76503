"""Acts of other processes between the plan of a commit and its publication."""

from __future__ import annotations

from collections.abc import Callable

from lakeformat.iceberg.commit.handle import TableHandle
from tests.crash.simulated import simulated
from tests.unit.iceberg.path_table import handle_on

__all__ = ["meanwhile"]


def meanwhile(
    handle: TableHandle, act: Callable[[TableHandle], object], seed: int = 7
) -> list[Callable[[TableHandle], object]]:
    """Let another process act before the next publication of this handle.

    The returned list is empty when it has acted.
    """
    waiting = [act]

    class Slow(type(handle.pointer)):
        def publish(self, base, metadata):
            while waiting:
                waiting.pop()(handle_on(handle.pointer._storage, simulated(seed)))
            return super().publish(base, metadata)

    handle.pointer.__class__ = Slow
    return waiting
