# SPDX-License-Identifier: Apache-2.0
"""Infers, from files of other programs, the columns that a table does not have yet.

A CSV column becomes a number only if no digit of a value is lost; ``1.50`` counts as 1.5. The
column is a STRING if a value has a leading zero, a plus sign or a space, or is a whole number
beyond BIGINT. A column with fractions is a STRING, too, if a value has more than 15 digits.

A JSON column of numbers is a DOUBLE if a value has a fraction or is beyond BIGINT. A DOUBLE may
round a number whose absolute value is 10^15 or more. So a DOUBLE column with such a number is
refused, unless the column is cast.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from lakeformat.errors import InvalidRequestError
from lakeformat.files.foreign import text_checks
from lakeformat.files.foreign.column_mapping import ColumnMapping
from lakeformat.files.foreign.csv_rows import (
    has_empty_rows,
    naming_rows,
    open_csv,
    require_named_columns,
)
from lakeformat.files.foreign.dialect import CSV_AND_PLAIN, SourceFormat, TextDialect
from lakeformat.files.foreign.json_lines import require_objects
from lakeformat.files.foreign.json_rows import is_blank, open_json, read_json
from lakeformat.files.foreign.plain_copy import Opener, plain_copy
from lakeformat.files.foreign.rounded_numbers import (
    EXACT_DIGITS,
    exact_decimals,
    rounded_numbers,
    rounded_refusal,
)
from lakeformat.files.foreign.rows import naming
from lakeformat.files.foreign.text_checks import (
    not_utf_8,
    read_growing,
    require_closed_quotes,
    times_as_text,
)
from lakeformat.types.arrow_types import to_arrow_type

__all__ = ["infer_columns", "with_shown_types"]

_WHOLE = r"^(?:0|-?[1-9][0-9]*)$"
_FLOAT = r"^-?(?:0|[1-9][0-9]*)?(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?$"
_NO_DIGITS = r"^-?0*\.?0*|\.|[eE].*$"
_ZERO = r"^-?[0.]+(?:[eE].*)?$"
_NOT_FINITE = ["nan", "NaN", "inf", "-inf"]
_FLOATS = (pa.float32(), pa.float64())
_DOUBLE_SMALLEST = 1e-290
_NO_COLUMNS = pa.schema([])
_CHANGED_TYPE = re.compile(r"Column\(/(\S+)\) changed from (\w+) to (\w+) in row (\d+)")
_ONE_TYPE = "write all values of the column in one type"  # JSON values are not read as other types


def infer_columns(
    paths: Sequence[str],
    source_format: SourceFormat,
    dialect: TextDialect = CSV_AND_PLAIN,
    *,
    opener: Callable[[str], Opener | None] = lambda path: None,
    known: pa.Schema = _NO_COLUMNS,
    to_cast: Collection[str] = (),
) -> pa.Schema:
    """Return each column that at least one file has, without the columns in ``known``.

    A column in ``to_cast`` is STRING in CSV files, and in other files if all its values are null.
    ``opener`` returns a function that opens the file, or None for a file on this machine. Raise
    ``InvalidRequestError`` if a CSV file has no header, if a column that is not in ``to_cast`` has
    only nulls, or if the types of a column in several files have no common type.
    """
    if source_format == "csv" and not dialect.header:
        raise InvalidRequestError(
            "files without a header have no column names: create the table first, with the columns "
            "in the order of the file"
        )
    with ExitStack() as copies:
        files = [
            copies.enter_context(plain_copy(path, source_format, dialect, opener(path)))
            for path in paths
        ]
        found = []
        for path in files:
            with naming(path):
                columns = _columns_of(path, source_format, dialect)
                columns.names  # noqa: B018 - decodes them: here it is known which file they are of
                columns = pa.schema([c for c in columns if c.name not in known.names])
                found.append(_texts_to_cast(columns, source_format, to_cast))
        merged = _merged(found, _ONE_TYPE if source_format == "json" else _declare(known))
        fits = {each.name: _kinds_from(each.type) for each in merged if each.type in _FITS}
        for path in files if len(merged) else ():
            with naming(path):
                if source_format == "csv":
                    _exact_csv(path, merged, dialect, fits)
                elif source_format == "json":
                    _require_exact_json(path, merged, known, to_cast)
    if source_format == "csv":
        kinds = {name: [*left, pa.string()][0] for name, left in fits.items()}
        merged = pa.schema([each.with_type(kinds.get(each.name, each.type)) for each in merged])
    merged = pa.schema([_text_if_empty(each) if each.name in to_cast else each for each in merged])
    empty = [field.name for field in merged if pa.types.is_null(field.type)]
    if empty:
        named = f"column{'s' if len(empty) > 1 else ''} {', '.join(map(repr, empty))}"
        raise InvalidRequestError(f"no value shows the type of {named}: {_declare(known)}")
    return merged


def _merged(columns_of_files: Sequence[pa.Schema], advice: str) -> pa.Schema:
    """Return the columns of all files.

    Raise ``InvalidRequestError`` if the types of a column have no common type; ``advice`` ends the
    message.
    """
    try:
        return pa.unify_schemas(columns_of_files, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as reason:
        raise InvalidRequestError(
            f"the files' columns differ in type: {reason}; {advice}"
        ) from None


def _declare(known: pa.Schema) -> str:
    if len(known):  # the table exists
        return "add the column to the table first, with alter_table and lake.add_column"
    return "create the table first, with the types of its columns"


def with_shown_types(
    mapping: ColumnMapping,
    paths: Sequence[str],
    source_format: SourceFormat,
    dialect: TextDialect,
    *,
    opener: Callable[[str], Opener | None] = lambda path: None,
) -> ColumnMapping:
    """Return ``mapping`` with the types that JSON files show for the columns to cast.

    Numbers that a DOUBLE may round get a DECIMAL, unless they are cast to FLOAT or DOUBLE. For
    other formats, or without casts, return ``mapping`` unchanged. Raise ``InvalidRequestError`` if
    the types of a column in several files have no common type, or if no DECIMAL holds the numbers.
    """
    if source_format != "json" or not mapping.casts:
        return mapping
    names, found, files = mapping.cast_sources, [], []
    with ExitStack() as copies:
        for path in paths:
            files.append(copies.enter_context(plain_copy(path, "json", dialect, opener(path))))
            with naming(path):
                columns = _columns_of(files[-1], "json", dialect)
                found.append(pa.schema([each for each in columns if each.name in names]))
        shown = {c.name: _text_if_empty(c).type for c in _merged(found, _ONE_TYPE)}
        exact = [
            source
            for source, wanted in zip(names, mapping.casts.values(), strict=True)
            if shown.get(source) == pa.float64() and to_arrow_type(wanted) not in _FLOATS
        ]
        return replace(mapping, shown_types={**shown, **exact_decimals(files, exact)})


def _texts_to_cast(
    columns: pa.Schema, source_format: SourceFormat, to_cast: Collection[str]
) -> pa.Schema:
    if source_format != "csv":
        return columns
    texts = [each.with_type(pa.string()) if each.name in to_cast else each for each in columns]
    return pa.schema(texts)


def _text_if_empty(column: pa.Field) -> pa.Field:
    return column.with_type(pa.string()) if pa.types.is_null(column.type) else column


def _columns_of(path: str, source_format: SourceFormat, dialect: TextDialect) -> pa.Schema:
    if source_format == "parquet":
        return pyarrow.parquet.read_schema(path)
    if source_format == "csv":
        with naming_rows(path, pa.schema([]), dialect):
            require_closed_quotes(path, dialect)
            empty_rows = has_empty_rows(path, pa.schema([]), dialect)
            size = text_checks.BLOCK_BYTES
            with open_csv(path, {}, dialect, size, empty_rows=empty_rows) as reader:
                columns = reader.schema
        require_named_columns(path, columns.names, dialect)
        for field in columns:
            if pa.types.is_binary(field.type):  # Arrow's type for text that is not UTF-8
                raise not_utf_8(path, f"column {field.name!r}")
        return columns
    require_objects(path)
    if is_blank(path):
        return pa.schema([])
    try:
        with open_json(path, text_checks.BLOCK_BYTES) as reader:
            return times_as_text(reader.schema)  # text that looks like a time stays text
    except pa.ArrowInvalid as reason:
        if (found := _CHANGED_TYPE.search(str(reason))) is None:
            raise
        raise InvalidRequestError(
            f"cannot read {path}: row {int(found[4]) + 1}: column {found[1]!r} changed from "
            f"{found[2]} to {found[3]}: {_ONE_TYPE}"
        ) from None


def _kinds_from(kind: pa.DataType) -> list[pa.DataType]:
    """Return the types of ``_FITS`` from ``kind`` on."""
    return [*_FITS][[*_FITS].index(kind) :]


def _exact_csv(
    path: str,
    columns: pa.Schema,
    dialect: TextDialect,
    fits: dict[str, list[pa.DataType]],
) -> None:
    """Remove from ``fits``, the possible types of columns of numbers and of nulls, those that a
    value in the file does not fit.

    The other columns are read with their types, so that a value that does not fit raises an error.
    """
    texts = {each.name: pa.string() if each.name in fits else each.type for each in columns}
    empty_rows = has_empty_rows(path, columns, dialect)
    with naming_rows(path, columns, dialect):
        for batch in read_growing(
            # Columns of the table are not read: Arrow would infer their types.
            lambda size: open_csv(path, texts, dialect, size, empty_rows=empty_rows, only=[*texts])
        ):
            for name, kinds in fits.items():
                fits[name] = [kind for kind in kinds if _FITS[kind](batch[name])]


def _are_whole(texts: pa.Array) -> bool:
    if not _all(pc.match_substring_regex(texts, _WHOLE)):
        return False
    try:
        texts.cast(pa.int64())
    except pa.ArrowInvalid:  # beyond BIGINT
        return False
    return True


def _are_doubles(texts: pa.Array) -> bool:
    texts = texts.filter(pc.invert(pc.is_in(texts, pa.array(_NOT_FINITE))))
    digits = pc.utf8_length(pc.replace_substring_regex(texts, _NO_DIGITS, ""))
    if not _all(pc.match_substring_regex(texts, _FLOAT)) or not _all(
        pc.less_equal(digits, EXACT_DIGITS)
    ):
        return False
    try:
        values = pc.abs(texts.cast(pa.float64()))
    except pa.ArrowInvalid:  # the text has no digit
        return False
    not_lost = pc.or_(pc.greater(values, _DOUBLE_SMALLEST), pc.match_substring_regex(texts, _ZERO))
    return _all(pc.and_(pc.is_finite(values), not_lost))


def _all(answers: pa.Array) -> bool:
    """Return True if no value of ``answers`` is False. Nulls are ignored."""
    return bool(pc.all(answers, min_count=0).as_py())


def _are_nulls(texts: pa.Array) -> bool:
    return bool(texts.null_count == len(texts))


_FITS = {pa.null(): _are_nulls, pa.int64(): _are_whole, pa.float64(): _are_doubles}


def _require_exact_json(
    path: str, columns: pa.Schema, known: pa.Schema, to_cast: Collection[str]
) -> None:
    """Raise ``InvalidRequestError`` if Arrow may have rounded numbers, which it read as DOUBLE.

    A column of numbers in ``to_cast`` is not checked, because ``with_shown_types`` finds its type.
    """
    names = [
        each.name
        for each in columns
        if _holds_doubles(each.type) and not (each.name in to_cast and each.type == pa.float64())
    ]
    for batch in read_json(path, pa.schema([*known, *columns])) if names else ():
        for name in names:
            for found in rounded_numbers(batch.column(name), name):
                raise rounded_refusal(*found)


def _holds_doubles(kind: pa.DataType) -> bool:
    parts = [kind.field(number).type for number in range(kind.num_fields)]
    return bool(pa.types.is_float64(kind)) or any(map(_holds_doubles, parts))
