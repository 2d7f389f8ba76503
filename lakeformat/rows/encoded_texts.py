# SPDX-License-Identifier: Apache-2.0
"""Keeps dictionary-encoded texts encoded through a merge.

The text of a row that the merge drops is then never decoded. The text of a kept row is moved as a
number.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.rows.memory import merge_memory

__all__ = ["decoded", "one_table"]


def one_table(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Return all rows as one table; dictionaries are decoded if the batches' schemas differ."""
    schemas = [batch.schema for batch in batches]
    schema = schemas[0]
    if any(other != schema for other in schemas):
        batches = [decoded(batch) for batch in batches]
        schema = batches[0].schema
    rows = pa.Table.from_batches(batches)
    if not any(pa.types.is_dictionary(kind) for kind in schema.types):
        return rows
    return rows.unify_dictionaries()


def decoded(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the same rows with plain texts in place of dictionaries."""
    if not any(pa.types.is_dictionary(kind) for kind in rows.schema.types):
        return rows
    columns = [
        _texts(column) if pa.types.is_dictionary(column.type) else column for column in rows.columns
    ]
    fields = [
        field.with_type(column.type) for field, column in zip(rows.schema, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _texts(column: pa.DictionaryArray) -> pa.Array:
    return pc.take(column.dictionary, column.indices, memory_pool=merge_memory())
