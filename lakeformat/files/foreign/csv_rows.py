# SPDX-License-Identifier: Apache-2.0
"""Reads the rows of CSV files with given column types; an error names the row."""

from __future__ import annotations

import csv as python_csv
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from lakeformat.errors import InvalidRequestError
from lakeformat.files.foreign.dialect import TextDialect
from lakeformat.files.foreign.text_checks import (
    cast_text,
    first_refused,
    not_utf_8,
    read_growing,
    require_closed_quotes,
    type_name,
)
from lakeformat.types.count_text import counted

__all__ = ["has_empty_rows", "naming_rows", "open_csv", "read_csv", "require_named_columns"]

_BAD_COLUMN = re.compile(r"^In CSV column #(\d+): ")
_BAD_VALUE = re.compile(r"'(.*)'", re.DOTALL)
_WHOLE_NUMBER = re.compile(r"-?\d+")
_BIGINT_DIGITS, _DECIMAL_DIGITS = 19, 38
_BAD_WIDTH = re.compile(r"Expected (\d+) columns, got (\d+)")


def read_csv(path: str, columns: pa.Schema, dialect: TextDialect) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file; Arrow infers the types of columns that are not in ``columns``.

    A file without a header must have all ``columns``, in their order. In a file with only one
    column, an empty line is a row, except if it is the last line, or if it means NULL and the
    column is NOT NULL. Raise ``InvalidRequestError``, with row and column, for a value that
    cannot be parsed.
    """
    require_closed_quotes(path, dialect)
    empty_rows = has_empty_rows(path, columns, dialect)

    @contextmanager
    def opened(block_bytes: int) -> Iterator[Iterator[pa.RecordBatch]]:
        types = {each.name: each.type for each in columns if not pa.types.is_nested(each.type)}
        with open_csv(path, types, dialect, block_bytes, columns.names, empty_rows) as reader:
            _require_readable(reader.schema.names, columns, dialect)
            yield reader

    with naming_rows(path, columns, dialect):
        yield from read_growing(opened)


def has_empty_rows(path: str, columns: pa.Schema, dialect: TextDialect) -> bool:
    """Return True if empty lines of a file are rows.

    They are rows only in a file with one column. If an empty line means NULL, they are rows only if
    this column is nullable.
    """
    names = columns.names
    if dialect.header:
        with suppress(python_csv.Error):
            names = next(_lines(path, dialect), [])
    [name, *more] = names or [""]
    if not names or more:
        return False
    if "" not in dialect.null_values or name not in columns.names:
        return True
    return bool(columns.field(name).nullable)


def _without_empty_end(path: str) -> pa.NativeFile:
    """Open a file without its last line if this line is empty."""
    file = pa.OSFile(path)
    size = file.size()
    file.seek(max(0, size - 4))
    [*_, last] = file.read().splitlines(keepends=True) or [b""]
    return file.get_stream(0, size if last.strip(b"\r\n") else size - len(last))


@contextmanager
def naming_rows(path: str, columns: pa.Schema, dialect: TextDialect) -> Iterator[None]:
    """Turn Arrow's errors about values in a with block into ``InvalidRequestError``.

    The new error names the row, column and value if they are found. Any other error of Arrow
    remains ``ArrowInvalid``. An empty file is an error only if the dialect has a header.
    """
    try:
        yield
    except pa.ArrowInvalid as reason:
        if "Empty CSV file" not in str(reason):
            raise _named(path, str(reason), columns, dialect) or reason from None
        if dialect.header:
            raise InvalidRequestError(
                f"cannot read {path}: it is empty and has no header: leave the file out or, "
                "if the other files have no header either, set header to false (--no-header)"
            ) from None


def require_named_columns(path: str, names: Sequence[str], dialect: TextDialect) -> None:
    """Raise ``InvalidRequestError`` if the names in a header cannot be those of a new table.

    Blank names and repeated names are refused. So is a header of one name that looks like several
    names, such as ``a;b``.
    """
    for number, name in enumerate(names, 1):
        if not name.strip():
            raise InvalidRequestError(
                f"cannot read {path}: column {number} has no name in the header: name it, or "
                "remove it"
            )
        if names.count(name) > 1:
            raise InvalidRequestError(
                f"cannot read {path}: the header has more than one column {name!r}: keep one, and "
                "rename or remove the rest"
            )
    if len(names) == 1 and (found := other_delimiter(names[0])) is not None:
        raise InvalidRequestError(
            f"cannot read {path}: the header has one column, {names[0]!r}: {found}. If one column "
            "really has this name, declare it first, with create_table or with alter_table and "
            "lake.add_column"
        )


def other_delimiter(name: str) -> str | None:
    """Return advice if ``name``, the only name in a header, looks like several names, such as
    ``a;b``; else None.
    """
    for delimiter in ";\t|,":
        parts = name.split(delimiter)
        if len(parts) > 1 and all(part.strip() for part in parts):
            return f"write delimiter={delimiter!r} if these are {len(parts)} columns"
    return None


def open_csv(
    path: str,
    types: dict[str, pa.DataType],
    dialect: TextDialect,
    block_bytes: int,
    names: Sequence[str] = (),
    empty_rows: bool = False,
    only: Sequence[str] = (),
) -> csv.CSVStreamingReader:
    """Open a CSV file for Arrow; a quoted value may have line breaks, and is never NULL.

    ``types`` are the types by column, ``names`` the columns of a file without a header, and
    ``block_bytes`` the size of Arrow's blocks. With ``empty_rows``, an empty line is a row,
    unless it is the last line. ``only`` are the columns to read, with nulls for a column that the
    file lacks; empty for all columns of the file.
    """
    return csv.open_csv(
        _without_empty_end(path) if empty_rows else path,
        read_options=csv.ReadOptions(
            block_size=block_bytes, column_names=None if dialect.header else names
        ),
        parse_options=csv.ParseOptions(
            delimiter=dialect.delimiter,
            quote_char=dialect.quote or False,
            escape_char=dialect.escape or False,
            newlines_in_values=True,
            ignore_empty_lines=not empty_rows,
        ),
        convert_options=csv.ConvertOptions(
            column_types=types,
            include_columns=only,
            include_missing_columns=True,
            null_values=list(dialect.null_values),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _require_readable(names: Sequence[str], columns: pa.Schema, dialect: TextDialect) -> None:
    advice = other_delimiter(names[0]) if len(names) == 1 else None
    if advice is not None and names[0] not in columns.names:
        raise InvalidRequestError(f"the header has one column, {names[0]!r}: {advice}")
    for each in columns:
        if each.name not in names:
            continue
        if pa.types.is_nested(each.type):
            raise InvalidRequestError(
                f"CSV cannot hold column {each.name!r} of type {type_name(each.type)}: write the "
                "rows as Parquet"
            )
        if pa.types.is_binary(each.type) and not dialect.is_utf_8:
            raise InvalidRequestError(
                f"column {each.name!r} is {type_name(each.type)}, whose bytes would change when "
                f"the file is decoded from {dialect.encoding}: write the rows as Parquet"
            )


def _named(
    path: str, reason: str, columns: pa.Schema, dialect: TextDialect
) -> InvalidRequestError | None:
    """Return an error with row, column and value, made from ``reason``, the text of Arrow's error.

    If a row has too many or too few values, the returned error has the row and the number of its
    values. Return None if Arrow's error is any other error that names no column.
    """
    if width := _BAD_WIDTH.search(reason):
        header = next(_records(path, dialect)) if dialect.header else []
        if len(header) == 1 and (advice := other_delimiter(header[0])) is not None:
            return InvalidRequestError(
                f"cannot read {path}: the header has one column, {header[0]!r}: {advice}"
            )
        row = _row_of_width(path, columns, int(width[1]), dialect)
        where = "a row" if row is None else f"row {row}"
        return InvalidRequestError(
            f"cannot read {path}: {where} has {counted(int(width[2]), 'value')} for "
            f"{counted(int(width[1]), 'column')}: quote values that hold the delimiter, and write "
            "a delimiter for each missing value"
        )
    if (column := _BAD_COLUMN.match(reason)) is None:
        return None
    names = next(_records(path, dialect)) if dialect.header else columns.names
    name = names[int(column[1])]
    kind = columns.field(name).type if name in columns.names else pa.string()
    value = _BAD_VALUE.search(reason)
    empty_rows = has_empty_rows(path, columns, dialect)
    row, text = _found_again(
        path, names, name, value[1] if value else None, kind, dialect, empty_rows
    )
    where = f"column {name!r}" if row is None else f"row {row}, column {name!r}"
    if "UTF8" in reason or "\ufffd" in (text or ""):
        return not_utf_8(path, where)
    shown = "a value" if text is None else repr(text)
    if text is not None and pa.types.is_integer(kind) and _WHOLE_NUMBER.fullmatch(text):
        return InvalidRequestError(
            f"cannot read {path}: {where}: {shown} is beyond the range of {type_name(kind)}: "
            f"correct it, or make the column a {_wider(text)}"
        )
    return InvalidRequestError(
        f"cannot read {path}: {where}: {shown} is not a value of type {type_name(kind)} "
        f"({reason[column.end() :]}): correct it or, if it stands for NULL, "
        "add it to null_values and write it without quotes"
    )


def _wider(text: str) -> str:
    digits = text.lstrip("-").lstrip("0")
    if len(digits) <= _BIGINT_DIGITS and -(1 << 63) <= int(text) < 1 << 63:
        return "BIGINT"
    return "DECIMAL(38, 0)" if len(digits) <= _DECIMAL_DIGITS else "STRING"


def _row_of_width(path: str, columns: pa.Schema, width: int, dialect: TextDialect) -> int | None:
    """Return the number of the first row that does not have ``width`` values.

    Return None if there is no such row, or if Python cannot parse the file. Rows are
    numbered from 1, without the header. Arrow's error does not name the row.
    """
    records = _lines if has_empty_rows(path, columns, dialect) else _records
    with suppress(python_csv.Error):
        for row, values in enumerate(records(path, dialect), 0 if dialect.header else 1):
            if max(len(values), 1) != width:
                return row
    return None


def _records(path: str, dialect: TextDialect) -> Iterator[list[str]]:
    yield from filter(None, _lines(path, dialect))


def _lines(path: str, dialect: TextDialect) -> Iterator[list[str]]:
    """Yield the values of each record; an empty list for an empty line."""
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
        yield from python_csv.reader(
            file,
            delimiter=dialect.delimiter,
            quotechar=dialect.quote or None,
            escapechar=dialect.escape or None,
            quoting=python_csv.QUOTE_MINIMAL if dialect.quote else python_csv.QUOTE_NONE,
        )


def _found_again(
    path: str,
    names: Sequence[str],
    name: str,
    value: str | None,
    kind: pa.DataType,
    dialect: TextDialect,
    empty_rows: bool,
) -> tuple[int | None, str | None]:
    """Return the number of the first bad row, from 1, and its value.

    If no bad row is found, return None and ``value``. ``value`` is the text that Arrow's error
    names. If ``value`` is None, search for the first value that cannot be cast to ``kind``.
    """
    row = 1
    with suppress(pa.ArrowInvalid):
        texts = dict.fromkeys(names, pa.binary())  # also for bytes that are not valid text
        for batch in read_growing(
            lambda size: open_csv(path, texts, dialect, size, names, empty_rows)
        ):
            column = batch.column(name)
            if value is not None:
                found = pc.index(column, value.encode()).as_py()
            else:
                found = first_refused(len(column), _refusing(column, kind))
            if found >= 0:
                return int(row + found), column[found].as_py().decode(errors="replace")
            row += batch.num_rows
    return None, value


def _refusing(column: pa.Array, kind: pa.DataType) -> Callable[[int, int], bool]:
    def is_refused(first: int, count: int) -> bool:
        try:
            cast_text(column.slice(first, count).cast(pa.string()), kind)
        except pa.ArrowInvalid:
            return True
        return False

    return is_refused
