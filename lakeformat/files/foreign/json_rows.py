# SPDX-License-Identifier: Apache-2.0
"""Reads the rows of files with one JSON object in each line; an error names the row."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import pyarrow as pa
from pyarrow import json as arrow_json

from lakeformat.errors import InvalidRequestError
from lakeformat.files.foreign.json_lines import require_objects
from lakeformat.files.foreign.text_checks import (
    cast_text,
    first_refused,
    not_utf_8,
    read_growing,
    times_as_text,
    type_name,
)
from lakeformat.files.nested_arrays import with_nullable_parts

__all__ = ["is_blank", "open_json", "read_json"]

_LINES_AT_ONCE = 4096
_SHOWN = 80


def read_json(path: str, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, with all ``columns`` that JSON can hold.

    A missing value is null, even in a NOT NULL column, so the caller must check for nulls. Raise
    ``InvalidRequestError``, with the row, for a key that is not in ``columns``, and for a value
    that does not fit its column.
    """
    require_objects(path)
    if is_blank(path):
        return
    # For Arrow's JSON reader a null ROW has a null in each of its members.
    nullable = with_nullable_parts(pa.struct([*columns]))
    readable = pa.schema(each for each in nullable if _is_readable(each.type))
    options = _options(readable)
    try:
        for batch in read_growing(lambda size: open_json(path, size, options)):
            yield _typed(batch, readable)
    except (pa.ArrowInvalid, UnicodeDecodeError) as reason:
        raise _named(path, columns, readable) or reason from None


def open_json(
    path: str, block_bytes: int, options: arrow_json.ParseOptions | None = None
) -> arrow_json.JSONStreamingReader:
    """Open a file of JSON lines for Arrow; without ``options`` Arrow infers the columns."""
    read_options = arrow_json.ReadOptions(block_size=block_bytes)
    return arrow_json.open_json(path, read_options=read_options, parse_options=options)


def is_blank(path: str) -> bool:
    """Return True if a file has only blank lines: it has no rows, but Arrow would raise an
    error.
    """
    with open(path, "rb") as file:
        return os.path.getsize(path) == 0 or not any(map(bytes.strip, file))


def _options(columns: pa.Schema) -> arrow_json.ParseOptions:
    return arrow_json.ParseOptions(
        explicit_schema=times_as_text(columns), unexpected_field_behavior="error"
    )


def _typed(batch: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    batch.validate(full=True)  # Arrow's JSON reader accepts text that is not UTF-8
    values = zip(batch.columns, columns.types, strict=True)
    return pa.RecordBatch.from_arrays([cast_text(*each) for each in values], schema=columns)


def _is_readable(kind: pa.DataType) -> bool:
    """Return True if Arrow can read values of this type from JSON."""
    if pa.types.is_binary(kind) or pa.types.is_map(kind):
        return False
    parts = [kind.field(number).type for number in range(kind.num_fields)]
    return all(map(_is_readable, parts))


def _named(path: str, columns: pa.Schema, readable: pa.Schema) -> InvalidRequestError | None:
    """Return the error of the first bad row, with its number in the file; None if all rows can be
    read.

    Arrow's own error counts rows from the start of a block.
    """
    row = 1
    with open(path, "rb") as file:
        while lines := [*islice((line for line in file if line.strip()), _LINES_AT_ONCE)]:
            number = first_refused(len(lines), partial(_fails, readable, lines))
            if number >= 0:
                return _of_line(path, row + number, lines[number], columns, readable)
            row += len(lines)
    return None


def _fails(columns: pa.Schema, lines: Sequence[bytes], first: int, count: int) -> bool:
    return _failure(b"".join(lines[first : first + count]), columns) is not None


def _failure(block: bytes, columns: pa.Schema) -> Exception | None:
    read_options = arrow_json.ReadOptions(block_size=len(block) + 1)
    try:
        table = arrow_json.read_json(io.BytesIO(block), read_options, _options(columns))
        for batch in table.to_batches():
            _typed(batch, columns)
    except (pa.ArrowInvalid, UnicodeDecodeError) as reason:
        return reason
    return None


def _of_line(
    path: str, row: int, line: bytes, columns: pa.Schema, readable: pa.Schema
) -> InvalidRequestError:
    try:
        values: dict[str, Any] = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as reason:
        return not_utf_8(path, f"row {row}: {reason}")
    except ValueError as reason:
        shown = line[:_SHOWN].decode(errors="replace").strip()
        return InvalidRequestError(
            f"cannot read {path}: row {row} is not JSON: {shown}: {reason}. Write one JSON object "
            "in each line"
        )
    for name, value in values.items():
        if name not in columns.names:
            return InvalidRequestError(
                f"cannot read {path}: row {row} has a value for {name!r}, and the table has no "
                f"column {name!r}, only {', '.join(columns.names)}: remove the value, or add the "
                "column to the table"
            )
        if name not in readable.names:
            return InvalidRequestError(
                f"cannot read {path}: row {row}: JSON cannot hold column {name!r} of type "
                f"{type_name(columns.field(name).type)}: write the rows as Parquet"
            )
        alone = json.dumps({name: value}).encode()
        if refused := _failure(alone, pa.schema([readable.field(name)])):
            shown = json.dumps(value, ensure_ascii=False)[:_SHOWN]
            kind = type_name(columns.field(name).type)
            return InvalidRequestError(
                f"cannot read {path}: row {row}, column {name!r}: {shown} is not a value of type "
                f"{kind} ({_reason_text(refused)}): correct it, or change the column's type"
            )
    return InvalidRequestError(
        f"cannot read {path}: row {row}: {_reason_text(_failure(line, readable))}"
    )


def _reason_text(reason: Exception | None) -> str:
    """Return Arrow's reason for a bad line, without Arrow's row number, which counts from the start
    of a block.
    """
    return re.sub(r"^JSON parse error: (Column\(\S+\) )?| in row 0$", "", str(reason))
