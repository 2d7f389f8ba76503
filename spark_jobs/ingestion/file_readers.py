"""Reads source files strictly: no value comes to mean something else without a word.

Text is parsed as the column wants it: a number in a FLOAT or DOUBLE column becomes the nearest
one there is (infinity beyond the largest), ``007`` in a BIGINT column is 7, and what cannot be
parsed refuses the file. Text is UTF-8 or is refused, except that the bytes of a CSV field may go
into a BYTES column that exists.

Where the columns are inferred, a CSV column is a number only if each of its values is written
the way that number prints (``1.50`` may be 1.5): a leading zero, a plus sign, a space, more than
15 digits of a DOUBLE or a whole number beyond BIGINT make it a STRING. JSON says itself what is
a number, so there numbers from 10^15 on are refused in a DOUBLE, where they may be rounded.

Both engines read text files here. Spark's own CSV reader changes values without a word even
when told to fail fast (``""`` becomes NULL, ``1d`` becomes 1.0, a timestamp's time of day is
cut where a date is wanted).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

import lakeformat as lake
from lakeformat.files.parquet.dictionary_columns import repeating_texts
from lakeformat.files.parquet.sound_footer import require_sound_footer
from lakeformat.files.text_files import (
    BLOCK_BYTES,
    cast_text,
    read_growing,
    require_closed_quotes,
    require_objects,
)
from spark_jobs.ingestion.remote_files import is_read_from_copy, local_copy
from spark_jobs.ingestion.source_files import SourceFiles
from spark_jobs.job_requests.request import SourceFormat

__all__ = [
    "infer_columns",
    "naming",
    "read_files",
    "rounded_numbers",
    "rounded_refusal",
    "times_as_text",
]

# A DOUBLE keeps 15 digits of any number; from 10^15 on, whole ones may have had more.
_WHOLE = r"^(?:0|-?[1-9][0-9]*)$"
_FLOAT = r"^-?(?:0|[1-9][0-9]*)?(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?$"
_NO_DIGITS = r"^-?0*\.?0*|\.|[eE].*$"
_ZERO = r"^-?[0.]+(?:[eE].*)?$"
_NOT_FINITE = ["nan", "NaN", "inf", "-inf"]
_DOUBLE_DIGITS = 15
_DOUBLE_SMALLEST = 1e-290


def infer_columns(source: SourceFiles) -> pa.Schema:
    """The columns of all files together, for a table that does not exist yet."""
    if any(map(is_read_from_copy, source.paths)):
        with ExitStack() as copies:
            local = [copies.enter_context(local_copy(p, source.options)) for p in source.paths]
            return infer_columns(SourceFiles(source.format, tuple(local)))
    found = []
    for path in source.paths:
        with naming(path):
            _require_records(path, source.format)
            columns = _columns_of(path, source.format)
            columns.names  # noqa: B018 - decodes them: here it is known which file they are of
            found.append(columns)
    try:
        merged = pa.unify_schemas(found, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as reason:
        raise lake.InvalidRequestError(
            f"the files' columns differ in type: {reason}; create the table first, then ingest"
        ) from None
    merged = _EXACT[source.format](source.paths, merged)
    empty = [field.name for field in merged if pa.types.is_null(field.type)]
    if empty:
        raise lake.InvalidRequestError(
            f"no value shows the type of column {', '.join(map(repr, empty))}: "
            "create the table first, then ingest"
        )
    return merged


def read_files(
    paths: Sequence[str],
    source_format: SourceFormat,
    columns: pa.Schema,
    options: Mapping[str, str] | None = None,
    encoded: Collection[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Rows of the files, file after file; text is parsed as ``columns`` of the table want it.

    Columns ``encoded`` may come as dictionaries.
    """
    for path in paths:
        with naming(path), local_copy(path, options) as local:
            _require_records(local, source_format)
            yield from _rows_of(local, source_format, columns, encoded)


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Say which file could not be read."""
    try:
        yield
    except UnicodeDecodeError as reason:
        raise _not_utf8(path, str(reason)) from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError) as reason:
        if "utf8" in str(reason).lower():
            raise _not_utf8(path, str(reason)) from None
        raise lake.InvalidRequestError(f"cannot read {path}: {reason}") from None


def _not_utf8(path: str, reason: str) -> lake.InvalidRequestError:
    return lake.InvalidRequestError(
        f"cannot read {path}: it is not UTF-8 ({reason}); convert it, as in "
        "'iconv -f LATIN1 -t UTF-8'"
    )


def _require_records(path: str, source_format: SourceFormat) -> None:
    """Refuse what Arrow would make other rows of than are meant, or crash on."""
    if source_format == "csv":
        require_closed_quotes(path)
    elif source_format == "json":
        require_objects(path)


def _columns_of(path: str, source_format: SourceFormat) -> pa.Schema:
    if source_format == "parquet":
        return pyarrow.parquet.read_schema(path)
    if source_format == "csv":
        with _open_csv(path, {}) as reader:
            columns = reader.schema
        for field in columns:
            if pa.types.is_binary(field.type):  # what Arrow makes of text that is not UTF-8
                raise _not_utf8(path, f"column {field.name!r}")
        return columns
    if _is_empty(path):
        return pa.schema([])
    with _open_json(path, pyarrow.json.ParseOptions()) as reader:
        return times_as_text(reader.schema)  # text that looks like a time is still text


def _exact_csv(paths: Sequence[str], columns: pa.Schema) -> pa.Schema:
    """Numbers stay numbers where all values of all files print as they are written."""
    fits = {
        field.name: {pa.int64(), pa.float64()}
        for field in columns
        if field.type in (pa.int64(), pa.float64())
    }
    texts = {name: pa.string() for name in fits}
    for path in paths if texts else ():
        with naming(path), _open_csv(path, texts) as reader:
            for batch in reader:
                for name in fits.keys() & set(batch.schema.names):
                    fits[name] = {kind for kind in fits[name] if _FITS[kind](batch[name])}
    for number, field in enumerate(columns):
        if field.name in fits:
            kinds = [kind for kind in (pa.int64(), pa.float64()) if kind in fits[field.name]]
            columns = columns.set(number, field.with_type([*kinds, pa.string()][0]))
    return columns


def _are_whole(texts: pa.Array) -> bool:
    if not _all(pc.match_substring_regex(texts, _WHOLE)):
        return False
    try:
        texts.cast(pa.int64())
    except pa.ArrowInvalid:  # beyond it
        return False
    return True


def _are_doubles(texts: pa.Array) -> bool:
    texts = texts.filter(pc.invert(pc.is_in(texts, pa.array(_NOT_FINITE))))
    digits = pc.utf8_length(pc.replace_substring_regex(texts, _NO_DIGITS, ""))
    if not _all(pc.match_substring_regex(texts, _FLOAT)) or not _all(
        pc.less_equal(digits, _DOUBLE_DIGITS)
    ):
        return False
    try:
        values = pc.abs(texts.cast(pa.float64()))
    except pa.ArrowInvalid:  # no digit at all
        return False
    not_lost = pc.or_(pc.greater(values, _DOUBLE_SMALLEST), pc.match_substring_regex(texts, _ZERO))
    return _all(pc.and_(pc.is_finite(values), not_lost))


def _all(answers: pa.Array) -> bool:
    """Whether it holds for every value there is."""
    return bool(pc.all(answers, min_count=0).as_py())


_FITS = {pa.int64(): _are_whole, pa.float64(): _are_doubles}


def _exact_json(paths: Sequence[str], columns: pa.Schema) -> pa.Schema:
    """Refuse whole numbers that Arrow has made a DOUBLE of and may have rounded."""
    if any(_holds_doubles(field.type) for field in columns):
        for path in paths:
            with naming(path):
                for batch in _rows_of(path, "json", columns):
                    for name, values in zip(batch.schema.names, batch.columns, strict=True):
                        for found in rounded_numbers(values, name):
                            raise rounded_refusal(*found)
    return columns


def _holds_doubles(kind: pa.DataType) -> bool:
    parts = [kind.field(number).type for number in range(kind.num_fields)]
    return bool(pa.types.is_float64(kind)) or any(map(_holds_doubles, parts))


def rounded_numbers(values: pa.Array, name: str) -> Iterator[tuple[str, float]]:
    """Of each part of a column a number too large for a DOUBLE to be sure of its digits."""
    if pa.types.is_list(values.type):
        yield from rounded_numbers(values.flatten(), f"{name}.element")
    elif pa.types.is_struct(values.type):
        for field, part in zip(values.type, values.flatten(), strict=True):
            yield from rounded_numbers(part, f"{name}.{field.name}")
    elif pa.types.is_float64(values.type):
        large = pc.greater_equal(pc.abs(values), 10.0**_DOUBLE_DIGITS)
        found = values.filter(pc.and_(large, pc.is_finite(values)))
        if len(found):
            yield name, found[0].as_py()


def rounded_refusal(name: str, number: float) -> lake.InvalidRequestError:
    """No column is made of numbers that are not what was written any more."""
    return lake.InvalidRequestError(
        f"column {name!r} holds a number near {number!r}, more than an inferred column keeps "
        "exactly: create the table first, or this column in it (as DOUBLE if that is near enough), "
        "or write the number as text"
    )


_EXACT = {
    "parquet": lambda _, columns: columns,
    "csv": _exact_csv,
    "json": _exact_json,
}


def _rows_of(
    path: str, source_format: SourceFormat, columns: pa.Schema, encoded: Collection[str] = ()
) -> Iterator[pa.RecordBatch]:
    if source_format == "parquet":
        few = _repeating_texts(path, encoded) if encoded else []
        with pyarrow.parquet.ParquetFile(path, read_dictionary=few) as file:
            yield from file.iter_batches()
    elif source_format == "csv":
        types = {field.name: field.type for field in columns}
        yield from read_growing(lambda size: _named_csv(path, types, size), BLOCK_BYTES)
    elif not _is_empty(path):
        options = pyarrow.json.ParseOptions(
            explicit_schema=times_as_text(columns), unexpected_field_behavior="error"
        )
        for batch in read_growing(lambda size: _open_json(path, options, size), BLOCK_BYTES):
            batch.validate(full=True)  # the JSON reader lets text pass that is not UTF-8
            values = zip(batch.columns, columns.types, strict=True)
            arrays = [cast_text(*each) for each in values]
            yield pa.RecordBatch.from_arrays(arrays, schema=columns)


def _repeating_texts(path: str, encoded: Collection[str]) -> list[str]:
    with pyarrow.parquet.ParquetFile(path) as file:
        try:
            require_sound_footer(file.metadata, os.path.getsize(path))
        except OSError:  # whatever can be read of such a file is read without a look at its footer
            return []
        return repeating_texts(file.metadata, file.schema_arrow, encoded)


def _named_csv(
    path: str, types: dict[str, pa.DataType], block_bytes: int
) -> pyarrow.csv.CSVStreamingReader:
    reader = _open_csv(path, types, block_bytes)
    reader.schema.names  # noqa: B018 - decodes them: here it is known which file they are of
    return reader


def _open_csv(
    path: str, types: dict[str, pa.DataType], block_bytes: int | None = None
) -> pyarrow.csv.CSVStreamingReader:
    """An empty field is NULL and ``""`` an empty text; a quoted text may hold line breaks."""
    return pyarrow.csv.open_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(block_size=block_bytes or BLOCK_BYTES),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=types,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _open_json(
    path: str, options: pyarrow.json.ParseOptions, block_bytes: int | None = None
) -> pyarrow.json.JSONStreamingReader:
    """One object per line."""
    read_options = pyarrow.json.ReadOptions(block_size=block_bytes or BLOCK_BYTES)
    return pyarrow.json.open_json(path, read_options=read_options, parse_options=options)


def _is_empty(path: str) -> bool:
    """A file of no lines is one of no rows, though the JSON reader calls it an error."""
    return os.path.getsize(path) == 0


def times_as_text(columns: pa.Schema) -> pa.Schema:
    """The JSON reader takes no dates, and drops time zones; casting from text is exact."""
    return pa.schema(_time_as_text(field) for field in columns)


def _time_as_text(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_temporal(kind):
        return field.with_type(pa.string())
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(_time_as_text(kind.value_field)))
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([_time_as_text(part) for part in kind]))
    return field
