"""Which partitions a compaction is about."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from typing import TypeAlias

import pyarrow as pa

from lakeformat.arrow_types import to_arrow_schema
from lakeformat.binary_row import FramedRows
from lakeformat.errors import InvalidRequestError
from lakeformat.option_kinds import DURATION
from lakeformat.partition import partition_fields
from lakeformat.read.predicate_filter import Where
from lakeformat.read.where import Partitions, row_filter
from lakeformat.schema import TableSchema

__all__ = ["Idle", "Places", "chosen_partitions", "idle_millis"]

Idle: TypeAlias = timedelta | str
"""How long, as a timedelta or a text such as ``"1 h"``."""

Places: TypeAlias = Collection[tuple[bytes, int]]
"""Buckets, each as its partition's framed row and its number."""


def chosen_partitions(
    schema: TableSchema, where: Where | None, partitions: Partitions | None
) -> Callable[[set[bytes]], set[bytes]]:
    """Which of some partitions, given as framed rows, are meant."""
    asked = row_filter(schema, where, partitions)
    if asked is None:
        return lambda there: there
    fields = partition_fields(schema)
    names = {field.name for field in fields}
    if others := sorted(asked.columns - names):
        known = ", ".join(schema.partition_keys) or "nothing"
        raise InvalidRequestError(
            f"a compaction takes whole buckets: choose by partition columns only, not by "
            f"{others[0]!r}; the table is partitioned by {known}"
        )

    def meant(there: set[bytes]) -> set[bytes]:
        rows = sorted(there)
        framed = FramedRows(pa.array(rows, pa.binary()), [field.type for field in fields])
        columns = [framed.column(position) for position in range(len(fields))]
        batch = pa.RecordBatch.from_arrays(
            [*columns, pa.nulls(len(rows))],  # a batch needs a column to have rows
            schema=pa.schema([*to_arrow_schema(fields), pa.field("", pa.null())]),
        )
        mask = asked.mask(batch).to_pylist()
        return {row for row, is_meant in zip(rows, mask, strict=True) if is_meant}

    return meant


def idle_millis(idle: Idle) -> int:
    """A duration in milliseconds."""
    try:
        millis = (
            idle // timedelta(milliseconds=1)
            if isinstance(idle, timedelta)
            else DURATION.parse(idle)
        )
    except (ValueError, AttributeError) as reason:
        raise InvalidRequestError(f"idle is a time such as '1 h', got {idle!r}: {reason}") from None
    if millis < 0:
        raise InvalidRequestError(f"idle is how long ago, got {idle!r}")
    return millis
