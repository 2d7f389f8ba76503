"""Everything a caller may give as rows, as a stream of Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from lakeformat.errors import InvalidRequestError

__all__ = ["to_batches"]


def to_batches(data: Any) -> Iterator[pa.RecordBatch]:
    """Batches of a pyarrow, pandas or polars object, or of an iterable of such objects."""
    if isinstance(data, pa.RecordBatch):
        yield data
    elif isinstance(data, pa.Table | pa.RecordBatchReader):
        yield from data.to_batches() if isinstance(data, pa.Table) else data
    elif _is_pandas(data):
        yield from pa.Table.from_pandas(data, preserve_index=False).to_batches()
    elif hasattr(data, "__arrow_c_stream__"):
        yield from pa.RecordBatchReader.from_stream(data)
    elif isinstance(data, Iterable) and not isinstance(data, str | bytes | dict):
        yield from _each(data)
    else:
        raise _not_rows(data)


def _each(items: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    for item in items:
        if isinstance(item, list | tuple | dict | str | bytes):
            raise _not_rows(item)
        yield from to_batches(item)


def _is_pandas(data: Any) -> bool:
    """Told by its class, so that pandas need not be there."""
    return type(data).__module__.partition(".")[0] == "pandas"


def _not_rows(data: Any) -> InvalidRequestError:
    return InvalidRequestError(
        f"cannot write {type(data).__name__}: give a pyarrow Table, RecordBatch or "
        "RecordBatchReader, a pandas or polars DataFrame, or an iterable of those; "
        "a list of dictionaries becomes one with pyarrow.Table.from_pylist"
    )
