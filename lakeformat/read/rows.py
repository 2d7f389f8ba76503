"""Rows that are read when a result is asked for, in whatever form the caller wants them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from lakeformat.errors import InvalidRequestError

if TYPE_CHECKING:
    import pandas
    import polars

__all__ = ["Rows"]


class Rows:
    """A stream of batches that starts again with every result."""

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
        """The columns the rows will have."""
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

    def to_arrow(self) -> pa.Table:
        """All rows as one Arrow table."""
        return pa.Table.from_batches(self.to_batches(), schema=self.schema)

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """All rows as a polars DataFrame."""
        try:
            import polars as pl
        except ImportError:
            raise InvalidRequestError(
                "to_polars needs polars, which is not installed: pip install polars"
            ) from None
        found = pl.from_arrow(self.to_arrow())
        assert isinstance(found, pl.DataFrame)
        return found

    def count(self) -> int:
        """How many rows there are; they are read for that."""
        return sum(batch.num_rows for batch in self.to_batches())
