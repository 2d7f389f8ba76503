"""Rows in files of other programs: CSV, JSON lines and Parquet, streamed as a table's types.

An error names the file and the row. Rows count from 1; the names in the first line of a CSV file
are not counted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet
from pyarrow import json as arrow_json

from lakeformat.cli.row_files import Form, form_of_file
from lakeformat.errors import InvalidRequestError
from lakeformat.files.text_files import (
    cast_text,
    read_growing,
    require_closed_quotes,
    require_objects,
)
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.write.checked_rows import CheckedRows

__all__ = ["read_rows"]

FIRST_ROW = 1
_HOW_COUNTED = f"rows count from {FIRST_ROW}, after the line of names"

_NAMES_A_ROW = re.compile(r"\brow \d")
_BAD_COLUMN = re.compile(r"^In CSV column #(\d+): ")
_BAD_VALUE = re.compile(r"'(.*)'", re.DOTALL)
_BAD_ROW = re.compile(r" in row (\d+)$")


def read_rows(
    inputs: Sequence[str], schema: TableSchema, kinds: str | None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files, one after the other; values are read as the table's types."""
    forms = [form_of_file(path) for path in inputs]  # before anything is read
    for path in inputs:
        _require_file(path)
    for path, form in zip(inputs, forms, strict=True):
        with _naming(path):
            checked = CheckedRows(schema, kinds, first_row=FIRST_ROW)
            for batch in _read(path, form, schema, kinds):
                yield checked.add(batch)


def _read(
    path: str, form: Form, schema: TableSchema, kinds: str | None
) -> Iterator[pa.RecordBatch]:
    if form is Form.PARQUET:
        with parquet.ParquetFile(path) as file:
            yield from file.iter_batches()
        return
    stored = schema.arrow_schema()
    wanted = {field.name: field.type for field in stored} | ({kinds: pa.string()} if kinds else {})
    yield from (_read_csv if form is Form.CSV else _read_json)(path, wanted)


def _require_file(path: str) -> None:
    if os.path.isdir(path) or not os.path.exists(path):
        state = "is a directory" if os.path.isdir(path) else "does not exist"
        raise InvalidRequestError(
            f"{path} {state}; nothing was written: name files that hold rows, such as orders.csv"
        )


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Name the file in every error that is raised inside."""
    try:
        yield
    except (pa.ArrowException, OSError) as reason:
        raise InvalidRequestError(f"{path} cannot be read: {reason}") from None
    except UnicodeDecodeError as reason:
        raise InvalidRequestError(f"{path} cannot be read: it is not UTF-8 ({reason})") from None
    except InvalidRequestError as reason:
        if path in str(reason):
            raise
        counted = f" ({_HOW_COUNTED})" if _NAMES_A_ROW.search(str(reason)) else ""
        raise InvalidRequestError(f"{path}: {reason}{counted}") from None


def _read_csv(path: str, wanted: dict[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
    """Read a CSV file: an empty value is null, an empty value in quotes is an empty text.

    Columns are found by name.
    """
    types = {name: kind for name, kind in wanted.items() if _is_readable(kind, Form.CSV)}
    require_closed_quotes(path)

    @contextmanager
    def opened(block_bytes: int) -> Iterator[Iterator[pa.RecordBatch]]:
        with _open_csv(path, types, block_bytes) as reader:
            _require_readable(path, reader.schema.names, wanted, Form.CSV)
            yield reader

    try:
        yield from read_growing(opened)
    except pa.ArrowInvalid as reason:
        raise _named_in_csv(path, reason, wanted) or reason from None


def _open_csv(path: str, types: dict[str, pa.DataType], block_bytes: int) -> csv.CSVStreamingReader:
    return csv.open_csv(
        path,
        read_options=csv.ReadOptions(block_size=block_bytes),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types=types,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _named_in_csv(
    path: str, reason: pa.ArrowInvalid, wanted: dict[str, pa.DataType]
) -> InvalidRequestError | None:
    """Return the error with the name of the column, and the row if the value is found again."""
    column, value = _BAD_COLUMN.match(str(reason)), _BAD_VALUE.search(str(reason))
    if column is None:
        return None
    with csv.open_csv(path, parse_options=csv.ParseOptions(newlines_in_values=True)) as reader:
        names = reader.schema.names
    name = names[int(column[1])]
    row = _row_of(path, names, name, None if value is None else value[1], wanted[name])
    where = f"column {name!r}" if row is None else f"row {row}, column {name!r}"
    said = str(reason)[column.end() :]
    return InvalidRequestError(
        f"{path} cannot be read: {where}: {said}" + ("" if row is None else f" ({_HOW_COUNTED})")
    )


def _row_of(
    path: str, names: Sequence[str], name: str, value: str | None, kind: pa.DataType | None
) -> int | None:
    """Return the first row with a value that cannot be read in a column; None if it is not found.

    Arrow names a text that it cannot parse. For a value that does not fit it names none; ``value``
    is then None.
    """
    row = FIRST_ROW
    with suppress(pa.ArrowInvalid):
        texts = dict.fromkeys(names, pa.string())
        for batch in read_growing(lambda size: _open_csv(path, texts, size)):
            column = batch.column(name)
            found = pc.index(column, value).as_py() if value is not None else -1
            if value is None and kind is not None:
                found = _first_refused(column, kind)
            if found >= 0:
                return int(row + found)
            row += batch.num_rows
    return None


def _first_refused(column: pa.Array, kind: pa.DataType) -> int:
    """Return the index of the first value that cannot be cast; -1 if all can."""
    first, count = 0, len(column)
    if not _is_refused(column, kind):
        return -1
    while count > 1:  # by halves: the first one is in these rows
        half = count // 2
        if _is_refused(column.slice(first, half), kind):
            count = half
        else:
            first, count = first + half, count - half
    return first


def _read_json(path: str, wanted: dict[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
    """Read one object per line; a column that no line has is absent."""
    known = {name: kind for name, kind in wanted.items() if _is_readable(kind, Form.JSON)}
    explicit = pa.schema([_times_as_text(pa.field(name, kind)) for name, kind in known.items()])
    options = arrow_json.ParseOptions(explicit_schema=explicit)
    require_objects(path)

    def opened(block_bytes: int) -> arrow_json.JSONStreamingReader:
        read_options = arrow_json.ReadOptions(block_size=block_bytes)
        return arrow_json.open_json(path, read_options=read_options, parse_options=options)

    row = 0
    try:
        for batch in read_growing(opened):
            _require_readable(path, batch.schema.names, wanted, Form.JSON)
            arrays = [
                _typed(column, name, known, row)
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, batch.schema.names)
            row += batch.num_rows
    except pa.ArrowInvalid as reason:
        in_block = _BAD_ROW.search(str(reason))
        if in_block is None:
            raise
        said = str(reason)[: in_block.start()]
        raise InvalidRequestError(
            f"{path} cannot be read: {said} in row {row + int(in_block[1]) + 1} (the first is 1)"
        ) from None


def _times_as_text(field: pa.Field) -> pa.Field:
    """Read times as text: Arrow's JSON reader knows no dates and drops or invents time zones."""
    kind = field.type
    if pa.types.is_temporal(kind):
        return field.with_type(pa.string())
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(_times_as_text(kind.value_field)))
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([_times_as_text(part) for part in kind]))
    return field


def _typed(column: pa.Array, name: str, known: dict[str, pa.DataType], first_row: int) -> pa.Array:
    """Return a column with the table's type; a column that the table does not have is unchanged."""
    kind = known.get(name)
    if kind is None or column.type == kind:
        return column
    try:
        return cast_text(column, kind)
    except pa.ArrowInvalid as reason:
        row = _first_refused(column, kind)
        where = f"row {FIRST_ROW + first_row + row} (the first is {FIRST_ROW}), "
        raise pa.ArrowInvalid(f"{where}column {name!r}: {reason}") from None


def _is_refused(column: pa.Array, kind: pa.DataType) -> bool:
    try:
        cast_text(column, kind)
    except pa.ArrowInvalid:
        return True
    return False


def _is_readable(kind: pa.DataType, form: Form) -> bool:
    if pa.types.is_binary(kind) or pa.types.is_map(kind):
        return False
    return form is not Form.CSV or not pa.types.is_nested(kind)


def _require_readable(
    path: str, names: Sequence[str], wanted: dict[str, pa.DataType], form: Form
) -> None:
    for name in names:
        if name in wanted and not _is_readable(wanted[name], form):
            raise InvalidRequestError(
                f"{path}: {form} cannot hold column {name!r} of type {wanted[name]}: write the "
                "file as Parquet"
            )
