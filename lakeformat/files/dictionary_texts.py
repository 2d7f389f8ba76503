"""Texts that come to a writer as dictionaries, as the files they were read from have them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakeformat.types.arrow_types import in_full

__all__ = ["table_of"]


def table_of(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """All rows; a column is a dictionary, and one and the same, if it is one in every batch."""
    schema = batches[0].schema
    if any(batch.schema != schema for batch in batches):
        batches = [_in_full(batch) for batch in batches]
    rows = pa.Table.from_batches(batches)
    if any(map(pa.types.is_dictionary, rows.schema.types)):
        return rows.unify_dictionaries()
    return rows


def _in_full(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.cast(pa.schema([field.with_type(in_full(field.type)) for field in rows.schema]))
