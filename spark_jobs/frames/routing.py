# SPDX-License-Identifier: Apache-2.0
"""Routes rows to tasks, so that one task gets all rows of a bucket: only one writer may assign the
sequence numbers of a bucket.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql
from pyspark.sql import types as spark_types

import lakeformat as lake
from lakeformat import TableSchema
from lakeformat.catalog.row_schema import row_schema
from lakeformat.paimon.bucketing import BucketFunction
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET, UNAWARE_BUCKET
from lakeformat.types.types import DataField
from spark_jobs.frames.bucket_column import bucket_key, with_bucket
from spark_jobs.frames.columns import spark_type
from spark_jobs.frames.conditions import column_named
from spark_jobs.frames.parts import tasks_at_once
from spark_jobs.frames.tables import TableName, find_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "Routing",
    "as_routed",
    "by_bucket",
    "crosses_partitions",
    "has_ordered_rows",
    "keyed_rows",
    "routed",
    "routing_of",
    "typed_for_routing",
    "writers_of",
]

_TASK = "__lake_task"
_TASKS_PER_CORE = 2
_KEY_BUCKETS = 256
"""The number of groups into which the keys of an Iceberg table are divided; a task gets several
groups.
"""
_WIDENED = (
    spark_types.ByteType,
    spark_types.ShortType,
    spark_types.IntegerType,
    spark_types.LongType,
)


@dataclass(frozen=True, slots=True)
class Routing:
    """Assigns each row to a bucket of a partition; one task writes all rows of a bucket."""

    schema: TableSchema
    """The columns of the rows, with their key, partition columns and number of buckets."""
    function: BucketFunction | None = None
    """The function that returns the buckets of keys; None for the bucket function of the schema."""


def routing_of(table: lake.Table, *, overwrites: bool = False) -> Routing:
    """Return the routing of the rows of a table: by bucket; in a Mixed table by node (hash bucket).

    ``overwrites`` is True for the rows of an overwrite.
    """
    schema = row_schema(table)
    found = table.writer_buckets(overwrites=overwrites)
    if found is None:
        return Routing(schema)
    # The key alone finds the node: a node is written in all partitions.
    options = {"bucket": str(found.count)}
    return Routing(replace(schema, partition_keys=(), options=options), found)


def by_bucket(
    frame: DataFrame,
    table: TableName,
    *,
    warehouse: str | None = None,
    catalog_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the rows of ``frame``, distributed so that one task has all rows of a bucket of a
    partition; for a Mixed table all rows of a node (a hash bucket).

    Use it before ``format("lake")`` writes a batch or a stream to a table with buckets.
    ``write_table`` does not need it, because it distributes the rows itself. The rows are shuffled,
    but not sorted.

    Raises ``InvalidRequestError`` if a key or partition column is missing, or if a cast to its type
    in the table may change a value. Raises ``NotFoundError`` for a missing table.
    """
    found = find_table(frame.sparkSession, table, warehouse, catalog_options)
    return routed(frame, routing_of(found))


def has_ordered_rows(schema: TableSchema) -> bool:
    """Return True if the rows of a key or a bucket have an order, so that one task must write
    them.
    """
    return bool(schema.primary_keys) or schema.table_options.bucket != UNAWARE_BUCKET


def keyed_rows(table: lake.Table, columns: Collection[str], key: Sequence[str]) -> Routing:
    """Return the routing for upserted rows: it sends all rows with the same key to one task.

    The schema of the routing has only the ``columns`` of the rows and the key, because the writer
    adds all other columns. Raise ``InvalidRequestError`` if the table is a Mixed table with another
    key than ``key``.
    """
    schema, found = row_schema(table), table.writer_buckets()
    if found is not None and {*key} != {*schema.primary_keys}:
        raise lake.InvalidRequestError(
            f"upsert_by must be the key of {table.location}, {' and '.join(schema.primary_keys)}, "
            f"got {[*key]}"
        )
    count = _KEY_BUCKETS if found is None else found.count
    keyed = replace(
        schema,
        fields=tuple(each for each in schema.fields if each.name in {*columns, *key}),
        partition_keys=(),
        # A function of the table takes the columns of its key in their order.
        primary_keys=tuple(key) if found is None else schema.primary_keys,
        options={"bucket": str(count)},
    )
    return Routing(keyed, found)


def writers_of(schema: TableSchema, at_once: int) -> int:
    """Return the number of tasks that write a table whose rows have an order.

    ``at_once`` is the number of tasks that run at the same time. One task writes all rows if keys
    can move between partitions, or if an index assigns the buckets of a table without partitions.
    ``2 * at_once`` tasks write any other table with partitions or postponed buckets. In all other
    cases, each bucket has a task, but there are at most ``2 * at_once`` tasks.
    """
    several, bucket = _TASKS_PER_CORE * at_once, schema.table_options.bucket
    if crosses_partitions(schema):
        return 1
    if schema.partition_keys or bucket == POSTPONE_BUCKET:
        return several
    return 1 if bucket == UNAWARE_BUCKET else min(bucket, several)


def as_routed(schema: TableSchema, tasks: int) -> TableSchema:
    """Return a schema for the routing of rows, in which the key of a row determines its bucket.

    So one task gets all rows of a key. If an index assigns the buckets of the table, the returned
    schema has one bucket for each partition. If the buckets are postponed, it has ``tasks`` buckets
    for each partition.
    """
    routed_as = {UNAWARE_BUCKET: 1, POSTPONE_BUCKET: tasks}.get(schema.table_options.bucket)
    if routed_as is None:
        return schema
    return replace(schema, options={**schema.options, "bucket": str(routed_as)})


def routed(frame: DataFrame, routing: Routing) -> DataFrame:
    """Return the rows, distributed to the tasks that write them.

    If the table has neither a primary key nor buckets, a stream is returned unchanged, and a batch
    is distributed so that tasks write few files. A batch for a table with postponed buckets is
    distributed in the same way. In all other cases, one task gets all rows of a bucket, and the
    rows must have the columns that determine the bucket and the partition. Raise
    ``InvalidRequestError`` if one of these columns is missing, or if a cast to its type in the
    table may change a value.
    """
    schema = routing.schema
    is_ordered = has_ordered_rows(schema)
    if not is_ordered and frame.isStreaming:
        return frame  # a batch of a stream is small, and Spark does not adapt its tasks
    is_numbered_later = schema.table_options.bucket == POSTPONE_BUCKET and not frame.isStreaming
    if not is_ordered or is_numbered_later:
        # Spark splits and merges the shuffled rows until tasks have about the same size.
        known = [field.name for field in _deciding(schema) if field.name in frame.columns]
        return frame.hint("rebalance", *map(column_named, known))
    columns = frame.columns
    frame = typed_for_routing(frame, schema)
    tasks = writers_of(schema, tasks_at_once(frame.sparkSession))
    frame = with_bucket(frame, as_routed(schema, tasks), _TASK, routing.function)
    if partitions := _partition_fields(schema):
        spread = sql.hash(*(column_named(field.name) for field in partitions)).cast("bigint")
        task = sql.pmod(spread + sql.col(_TASK), sql.lit(tasks)).cast("int")
        frame = frame.withColumn(_TASK, task)
    return frame.repartitionById(tasks, sql.col(_TASK)).select(*map(column_named, columns))


def crosses_partitions(schema: TableSchema) -> bool:
    """Return True if a row may replace a row in another partition, because the primary key lacks a
    partition column.
    """
    keys = schema.primary_keys
    return bool(keys) and not {*schema.partition_keys} <= {*keys}


def typed_for_routing(frame: DataFrame, schema: TableSchema) -> DataFrame:
    """Return ``frame`` with the columns that determine the partition or the bucket cast to the
    types of the table, so that equal keys get the same bucket.

    Raise ``InvalidRequestError`` for a missing column, and for a cast that may change a value.
    """
    given = {field.name: field.dataType for field in frame.schema.fields}
    for field in _deciding(schema):
        wanted = spark_type(field.type)
        if field.name not in given:
            raise lake.InvalidRequestError(
                f"the rows have no column {field.name!r}, which determines their bucket or "
                f"partition: add it. The rows have the columns {', '.join(given)}"
            )
        found = given[field.name]
        if found == wanted:
            continue
        if not _is_widened(found, wanted):
            raise lake.InvalidRequestError(
                f"column {field.name!r} is {found.simpleString()} in the rows and "
                f"{wanted.simpleString()} in the table, where it determines the bucket or "
                "partition of a row: cast it"
            )
        frame = frame.withColumn(field.name, column_named(field.name).cast(wanted))
    return frame


def _deciding(schema: TableSchema) -> list[DataField]:
    """Return the columns that determine the partition and the bucket of a row."""
    keys = bucket_key(schema) if has_ordered_rows(schema) else ()
    return [*_partition_fields(schema), *keys]


def _partition_fields(schema: TableSchema) -> list[DataField]:
    return [field for field in schema.fields if field.name in schema.partition_keys]


def _is_widened(found: spark_types.DataType, wanted: spark_types.DataType) -> bool:
    """Return True if every value of the integer type ``found`` fits the integer type ``wanted``."""
    if isinstance(found, _WIDENED) and isinstance(wanted, _WIDENED):
        return _WIDENED.index(type(found)) <= _WIDENED.index(type(wanted))
    return False
