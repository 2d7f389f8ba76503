"""Rows that are read only when a result is requested."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from lakeformat.paimon.read.results import Results

__all__ = ["Rows"]


class Rows(Results):
    """A stream of batches that restarts for every result."""

    def __init__(
        self,
        schema: pa.Schema,
        read: Callable[[], Iterator[pa.RecordBatch]],
        limit: int | None = None,
    ) -> None:
        self._schema = schema
        self._read = read
        self._limit = limit

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        return self._schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Stream the rows."""
        left = self._limit
        for batch in self._read() if left != 0 else ():
            if left is not None and batch.num_rows >= left:
                yield batch.slice(0, left)
                return
            left = None if left is None else left - batch.num_rows
            yield batch

    def count(self) -> int:
        """Read all rows and return their number."""
        return sum(batch.num_rows for batch in self.to_batches())
