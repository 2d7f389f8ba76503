# SPDX-License-Identifier: Apache-2.0
"""Runs storage operations of a table in as many threads as its options allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from lakeformat.paimon.handle import TableHandle
from lakeformat.tables import parallel

__all__ = ["in_parallel"]

T = TypeVar("T")
R = TypeVar("R")


def in_parallel(handle: TableHandle, act: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Return the results of ``act`` for all items, in their order."""
    return parallel.in_parallel(act, items, handle.options.file_operation_threads)
