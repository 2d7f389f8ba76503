"""Text that repeats itself, each value once: moving and writing numbers is much faster."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.datafile.file_format import FileFormat
from lakeformat.datafile.parquet.dictionary_columns import SAMPLE_ROWS, repeats_itself
from lakeformat.merge.deduplicate import Deduplicate
from lakeformat.merge.of_table import merge_engine, merge_order
from lakeformat.schema import TableSchema
from lakeformat.types import STRING
from lakeformat.write.defaults import default_value

__all__ = ["texts_as_numbers", "with_dictionaries", "without_dictionaries"]

_MAX_DISTINCT_FRACTION = 0.1
"""In the sample: dictionaries stay so small that they fit into the processor's cache."""
_LONGEST = 256
_FEWEST_ROWS = 4 * SAMPLE_ROWS


def texts_as_numbers(schema: TableSchema) -> frozenset[str]:
    """The columns a writer takes as dictionaries: of such rows nobody looks at a text."""
    options = schema.table_options
    is_moved = bool(schema.primary_keys) and isinstance(merge_engine(schema), Deduplicate)
    formats = {options.of_level(0).file_format, options.of_changelog(0).file_format}
    if not is_moved or options.bucket <= 0 or formats != {FileFormat.PARQUET.value}:
        return frozenset()
    used = {*schema.primary_keys, *schema.partition_keys, *merge_order(schema).sequence}
    used |= {options.row_kind_field, *(options.bucket_key or ())}
    return frozenset(
        field.name
        for field in schema.fields
        if field.name not in used and field.type == STRING and default_value(field) is None
    )


def without_dictionaries(rows: pa.Table) -> pa.Table:
    """The rows with texts in place of their numbers."""
    for number, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type):
            texts = rows.column(number).cast(field.type.value_type)
            rows = rows.set_column(number, field.with_type(texts.type), texts)
    return rows


def with_dictionaries(rows: pa.Table, besides: Collection[str]) -> pa.Table:
    """The rows with such columns as dictionaries, but for some columns."""
    if rows.num_rows < _FEWEST_ROWS:
        return rows
    for number, name in enumerate(rows.column_names):
        column = rows.column(number)
        if name in besides or column.num_chunks != 1 or not _is_worth_it(column.chunk(0)):
            continue
        encoded = column.chunk(0).dictionary_encode()
        rows = rows.set_column(number, name, encoded)
    return rows


def _is_worth_it(column: pa.Array) -> bool:
    if not pa.types.is_string(column.type):
        return False
    if not repeats_itself(column.slice(0, SAMPLE_ROWS), _MAX_DISTINCT_FRACTION):
        return False
    longest = pc.max(pc.binary_length(column)).as_py()
    return longest is not None and longest <= _LONGEST
