"""Conversions of streamed rows to Arrow, pandas and polars."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from lakeformat.errors import InvalidRequestError

if TYPE_CHECKING:
    import pandas
    import polars

__all__ = ["Results"]


class Results(ABC):
    """Rows that can be streamed; all other forms are built from the stream."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of the rows."""

    @abstractmethod
    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Stream the rows."""

    def to_arrow(self) -> pa.Table:
        """Return all rows as one Arrow table."""
        return pa.Table.from_batches(self.to_batches(), schema=self.schema)

    def to_pandas(self) -> pandas.DataFrame:
        """Return all rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Return all rows as a polars DataFrame."""
        try:
            import polars as pl
        except ImportError:
            raise InvalidRequestError(
                "to_polars needs polars, which is not installed: pip install polars"
            ) from None
        found = pl.from_arrow(self.to_arrow())
        assert isinstance(found, pl.DataFrame)
        return found
