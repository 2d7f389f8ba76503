# SPDX-License-Identifier: Apache-2.0
"""Turns a caller's rows into Arrow batches, and checks their columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.files.check_values import is_ascii
from lakeformat.types.closest import closest

__all__ = ["check_given", "check_names", "to_batches"]

_FEW = 512
"""With fewer values than this, Arrow's full check is faster than ``is_ascii``."""
_COLUMN_LIBRARIES = {"numpy", "pandas", "polars", "pyarrow"}


def to_batches(data: Any) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a pyarrow, pandas or polars object, or of an iterable of such objects, as
    batches.

    Raise InvalidRequestError for other data.
    """
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


def check_names(names: Sequence[str], known: Sequence[str]) -> None:
    """Raise InvalidRequestError if ``names`` has a column that is not in ``known``, or a column
    twice.
    """
    has = set(known)
    unknown = [name for name in names if name not in has]
    if unknown:
        raise InvalidRequestError(
            f"the table has no column {' or '.join(map(repr, unknown))}; "
            f"its columns are {', '.join(known)}"
            f"{closest(unknown[0], known)}"
        )
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidRequestError(
            f"the rows have more than one column named {' and '.join(map(repr, repeated))}; keep "
            "one of each name, or rename them"
        )


def check_given(values: pa.Array, name: str) -> None:
    """Raise InvalidRequestError if a value is invalid for its Arrow type.

    Arrow allows texts that are not UTF-8, and decimals with more digits than their type. A sum
    that a table computes may have more digits, but values of input rows must not.
    """
    try:
        for part in _doubtful_in(values):
            part.validate()
            if len(part) < _FEW or not (pa.types.is_string(part.type) and is_ascii(part)):
                part.validate(full=True)
    except pa.ArrowInvalid as reason:
        remedy = "convert texts to UTF-8 before writing, or store bytes in a BYTES column"
        if "Decimal" in str(reason):
            remedy = "give the column a type with more digits"
        raise InvalidRequestError(
            f"column {name!r} has an invalid {values.type} value: {reason}; {remedy}"
        ) from None


def _doubtful_in(values: pa.Array) -> Iterator[pa.Array]:
    """Yield the arrays of texts and decimals in a column, whose values must be checked.

    Of nested columns, only the values that the rows use are yielded.
    """
    if pa.types.is_string(values.type) or pa.types.is_decimal(values.type):
        yield values
    elif pa.types.is_map(values.type):
        first, end = values.offsets[0].as_py(), values.offsets[-1].as_py()
        yield from _doubtful_in(values.keys.slice(first, end - first))
        yield from _doubtful_in(values.items.slice(first, end - first))
    elif pa.types.is_nested(values.type):
        parts = values.flatten()
        for part in parts if isinstance(parts, list) else [parts]:
            yield from _doubtful_in(part)


def _each(items: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    for item in items:
        if isinstance(item, list | tuple | dict | str | bytes):
            raise _not_rows(item)
        yield from to_batches(item)


def _is_pandas_frame(data: Any) -> bool:
    """Return True for a pandas DataFrame; pandas is not imported to find out."""
    return any(_library(kind) == "pandas" and kind.__name__ == "DataFrame" for kind in _kinds(data))


def _from_pandas(frame: Any) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError, OverflowError) as reason:
        # Arrow's error has the reason as its first argument and the column as its second.
        detail = ": ".join(str(part) for part in reversed(reason.args))
        raise InvalidRequestError(
            f"cannot write this DataFrame: {detail}; give each column a name of its own, and "
            "values of one type"
        ) from None


def _stream(data: Any) -> pa.RecordBatchReader:
    try:
        return pa.RecordBatchReader.from_stream(data)
    except pa.ArrowInvalid:  # a stream that yields single values
        raise _not_rows(data) from None


def _is_one_column(data: Any) -> bool:
    """Return True if the items of ``data`` are single values instead of rows."""
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
