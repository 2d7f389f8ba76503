# SPDX-License-Identifier: Apache-2.0
"""Lazy rows of a scan: a method such as ``to_arrow`` reads them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from lakeformat.errors import InvalidRequestError

if TYPE_CHECKING:
    import pandas
    import polars

__all__ = ["Results", "Rows", "total_up_to"]


class Results(ABC):
    """The rows of a result. A subclass streams them, and this class converts them."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The schema of the rows."""

    @abstractmethod
    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Stream the rows as Arrow batches."""

    def to_arrow(self) -> pa.Table:
        """Return all rows as one Arrow table."""
        return pa.Table.from_batches(self.to_batches(), schema=self.schema)

    def to_pandas(self) -> pandas.DataFrame:
        """Return all rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Return all rows as a polars DataFrame; raise ``InvalidRequestError`` if polars is not
        installed.
        """
        try:
            import polars as pl
        except ImportError:
            raise InvalidRequestError(
                "to_polars needs polars, which is not installed: pip install polars"
            ) from None
        found = pl.from_arrow(self.to_arrow())
        assert isinstance(found, pl.DataFrame)
        return found


class Rows(Results):
    """Rows that can be read again; each call reads the files anew."""

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
        """The schema of the rows."""
        return self._schema

    @property
    def waits_for_compaction(self) -> bool:
        """True if changes can be read only after a compaction has written them as changelog."""
        return False

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Stream the rows as Arrow batches."""
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


def total_up_to(limit: int | None, counts: Iterable[int]) -> int:
    """Return the sum of the row counts, at most ``limit``. Counts after the limit are not
    computed.
    """
    found = 0
    for count in () if limit == 0 else counts:
        found += count
        if limit is not None and found >= limit:
            return limit
    return found
