# SPDX-License-Identifier: Apache-2.0
"""Converts the rows a caller passes to a stream of Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from lakeformat.errors import InvalidRequestError

__all__ = ["to_batches"]

_COLUMN_LIBRARIES = {"numpy", "pandas", "polars", "pyarrow"}


def to_batches(data: Any) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a pyarrow, pandas or polars object, or of an iterable of them."""
    if isinstance(data, pa.RecordBatch):
        yield data
    elif isinstance(data, pa.Table | pa.RecordBatchReader):
        yield from data.to_batches() if isinstance(data, pa.Table) else data
    elif _is_pandas_frame(data):
        yield from _from_pandas(data).to_batches()
    elif hasattr(data, "__arrow_c_stream__"):
        yield from _stream(data)
    elif isinstance(data, Iterable) and not _is_one_column(data):
        yield from _each(data)
    else:
        raise _not_rows(data)


def _each(items: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    for item in items:
        if isinstance(item, list | tuple | dict | str | bytes):
            raise _not_rows(item)
        yield from to_batches(item)


def _is_pandas_frame(data: Any) -> bool:
    """Return True for a pandas DataFrame, found by class name so that pandas is not imported."""
    return any(_library(kind) == "pandas" and kind.__name__ == "DataFrame" for kind in _kinds(data))


def _from_pandas(frame: Any) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError, OverflowError) as reason:
        # Arrow's error has the reason first and the column second.
        detail = ": ".join(str(part) for part in reversed(reason.args))
        raise InvalidRequestError(
            f"cannot write this DataFrame: {detail}; give each column one name and one type"
        ) from None


def _stream(data: Any) -> pa.RecordBatchReader:
    try:
        return pa.RecordBatchReader.from_stream(data)
    except pa.ArrowInvalid:  # a stream of single values
        raise _not_rows(data) from None


def _is_one_column(data: Any) -> bool:
    """Return True if the items are single values instead of rows."""
    libraries = {_library(kind) for kind in _kinds(data)}
    return isinstance(data, str | bytes | dict) or not libraries.isdisjoint(_COLUMN_LIBRARIES)


def _kinds(data: Any) -> tuple[type, ...]:
    return type(data).__mro__


def _library(kind: type) -> str:
    return kind.__module__.partition(".")[0]


def _not_rows(data: Any) -> InvalidRequestError:
    return InvalidRequestError(
        f"cannot write {type(data).__name__}: pass a pyarrow Table, RecordBatch or "
        "RecordBatchReader, a pandas or polars DataFrame, or an iterable of those; "
        "for a list of dicts, use pyarrow.Table.from_pylist"
    )
