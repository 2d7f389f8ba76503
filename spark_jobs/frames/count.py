# SPDX-License-Identifier: Apache-2.0
"""Counts the rows of a table: from metadata, or in tasks if files must be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakeformat.rows.conditions.filter import Where
from lakeformat.tables.arguments import Partitions
from lakeformat.tables.moment import Moment
from lakeformat.tables.position import AnyPosition
from spark_jobs.frames.parts import spread, tasks_at_once
from spark_jobs.frames.plans import AnyScan, has_splits, pack_splits
from spark_jobs.frames.tables import TableName, find_readable_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["count_table"]


def count_table(
    spark: SparkSession,
    table: TableName,
    *,
    where: Where | None = None,
    partitions: Partitions | None = None,
    snapshot: AnyPosition | None = None,
    tag: str | None = None,
    as_of: Moment | None = None,
    watermark: int | None = None,
    warehouse: str | None = None,
    catalog_options: Mapping[str, str] | None = None,
) -> int:
    """Return the number of rows that ``read_table`` would return. Spark jobs run only for files
    that must be merged or read. Raises ``NotFoundError`` for a missing table.
    """
    found = find_readable_table(spark, table, warehouse, catalog_options)
    asked: dict[str, Any] = {
        "where": where,
        "partitions": partitions,
        "snapshot": snapshot,
        "tag": tag,
        "as_of": as_of,
        "watermark": watermark,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    scan: Any = found.scan(**given)
    if not has_splits(scan):
        return sum(batch.num_rows for batch in scan.to_batches())
    # One column is enough to count rows; without a key, only columns of conditions are read.
    scan = found.scan(scan.schema.names[:1], **given)
    splits: Sequence[Any] = scan.splits()
    known, unknown = 0, []
    for split in splits:
        count = scan.known_count(split)
        if count is None:
            unknown.append(split)
        else:
            known += count
    return known + (_counted(spark, scan, unknown) if unknown else 0)


def _counted(spark: SparkSession, scan: AnyScan, splits: Sequence[Any]) -> int:
    parts = pack_splits(scan, splits, tasks_at_once(spark))
    counted = spread(spark, parts, partial(_count, scan), "rows long")
    return sum(row.rows for row in counted.collect())


def _count(scan: AnyScan, splits: Sequence[Any]) -> Iterator[pa.RecordBatch]:
    rows = sum(batch.num_rows for split in splits for batch in scan.read(split))
    yield pa.RecordBatch.from_pydict({"rows": pa.array([rows], pa.int64())})
