# SPDX-License-Identifier: Apache-2.0
"""Holds rows until their keys are looked up: in memory, and on disk above a limit."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lakeformat.paimon.options import TableOptions
from lakeformat.rows.spill import Spill

__all__ = ["HeldRows"]

_ALL = 0


class HeldRows:
    """Holds batches of one schema, and yields them in the order in which they were added."""

    def __init__(self, options: TableOptions) -> None:
        self._limit = options.write_buffer_size_bytes
        self._spill = Spill(options)
        self._held: list[pa.RecordBatch] = []
        self._bytes = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Add a batch."""
        self._held.append(rows)
        self._bytes += rows.nbytes
        if self._bytes >= self._limit and self._spill.has_room:
            table = pa.Table.from_batches(self._held)
            self._spill.add(table.schema, [(_ALL, table)])
            self._held, self._bytes = [], 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows; batches may be cut or joined."""
        if len(self._spill):
            with self._spill.opened() as spilled:
                for run in spilled.runs(_ALL):
                    yield from run
        yield from self._held

    def clear(self) -> None:
        """Drop all rows, including those on disk."""
        self._held, self._bytes = [], 0
        self._spill.clear()
