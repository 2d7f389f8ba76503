"""Which task writes which rows: those of a bucket go to one, as only one may number them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql
from pyspark.sql import types as spark_types

import lakeformat as lake
from lakeformat import TableSchema
from lakeformat.paimon.handle import UNAWARE_BUCKET
from lakeformat.paimon.layout import POSTPONE_BUCKET
from lakeformat.types.types import DataField
from spark_jobs.frames.bucket_column import bucket_key, with_bucket
from spark_jobs.frames.columns import spark_type
from spark_jobs.frames.conditions import column_named
from spark_jobs.frames.parts import tasks_at_once
from spark_jobs.frames.tables import TableName, find_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "as_routed",
    "by_bucket",
    "crosses_partitions",
    "has_ordered_rows",
    "routed",
    "typed_for_routing",
    "writers_of",
]

_TASK = "__lake_task"
_TASKS_PER_CORE = 2
_WIDENED = (
    spark_types.ByteType,
    spark_types.ShortType,
    spark_types.IntegerType,
    spark_types.LongType,
)


def by_bucket(
    frame: DataFrame,
    table: TableName,
    *,
    warehouse: str | None = None,
    catalog_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The same rows, those of one bucket of one partition together in one task.

    ``format("lake")`` writes tables with buckets from such rows only, as batch or as stream;
    ``write_table`` does this by itself. Rows are shuffled and not sorted.
    """
    found = find_table(frame.sparkSession, table, warehouse, catalog_options)
    return routed(frame, found.schema)


def has_ordered_rows(schema: TableSchema) -> bool:
    """Whether rows of one key have an order, so that they have to meet in one task."""
    return bool(schema.primary_keys) or schema.table_options.bucket != UNAWARE_BUCKET


def writers_of(schema: TableSchema, at_once: int) -> int:
    """How many tasks write a table whose rows have an order.

    That is one per bucket, unless those are many more than run at a time; one per partition
    where an index places keys, and one for all where keys move between partitions.
    """
    several, bucket = _TASKS_PER_CORE * at_once, schema.table_options.bucket
    if crosses_partitions(schema):
        return 1
    if schema.partition_keys or bucket == POSTPONE_BUCKET:
        return several
    return 1 if bucket == UNAWARE_BUCKET else min(bucket, several)


def as_routed(schema: TableSchema, tasks: int) -> TableSchema:
    """The table as if a function of the key said the bucket of every row.

    A partition whose buckets an index fills has one then, and rows that get their bucket later are
    in one for each task: rows of one key meet, whoever writes them.
    """
    routed_as = {UNAWARE_BUCKET: 1, POSTPONE_BUCKET: tasks}.get(schema.table_options.bucket)
    if routed_as is None:
        return schema
    return replace(schema, options={**schema.options, "bucket": str(routed_as)})


def routed(frame: DataFrame, schema: TableSchema) -> DataFrame:
    """The rows where their writers are: by bucket, or so that few files are written."""
    is_ordered = has_ordered_rows(schema)
    if not is_ordered and frame.isStreaming:
        return frame  # a batch is small, and Spark does not adapt its tasks
    is_numbered_later = schema.table_options.bucket == POSTPONE_BUCKET and not frame.isStreaming
    if not is_ordered or is_numbered_later:
        # Spark parts and joins what it shuffled until tasks have about the same size.
        known = [field.name for field in _deciding(schema) if field.name in frame.columns]
        return frame.hint("rebalance", *map(column_named, known))
    columns = frame.columns
    frame = typed_for_routing(frame, schema)
    tasks = writers_of(schema, tasks_at_once(frame.sparkSession))
    frame = with_bucket(frame, as_routed(schema, tasks), _TASK)
    if partitions := _partition_fields(schema):
        spread = sql.hash(*(column_named(field.name) for field in partitions)).cast("bigint")
        task = sql.pmod(spread + sql.col(_TASK), sql.lit(tasks)).cast("int")
        frame = frame.withColumn(_TASK, task)
    return frame.repartitionById(tasks, sql.col(_TASK)).select(*map(column_named, columns))


def crosses_partitions(schema: TableSchema) -> bool:
    """Whether a row may take the place of one in another partition."""
    keys = schema.primary_keys
    return bool(keys) and not {*schema.partition_keys} <= {*keys}


def typed_for_routing(frame: DataFrame, schema: TableSchema) -> DataFrame:
    """Rows of one bucket must meet, so what decides about it is hashed as the table has it."""
    given = {field.name: field.dataType for field in frame.schema.fields}
    for field in _deciding(schema):
        wanted = spark_type(field.type)
        if field.name not in given:
            raise lake.InvalidRequestError(
                f"the rows have no column {field.name!r}, which decides about their bucket or "
                f"partition; there are {', '.join(given)}"
            )
        found = given[field.name]
        if found == wanted:
            continue
        if not _is_widened(found, wanted):
            raise lake.InvalidRequestError(
                f"column {field.name!r} is {found.simpleString()} in the rows and "
                f"{wanted.simpleString()} in the table, and decides about the bucket or partition "
                "of a row: cast it"
            )
        frame = frame.withColumn(field.name, column_named(field.name).cast(wanted))
    return frame


def _deciding(schema: TableSchema) -> list[DataField]:
    """The columns that say where a row is written."""
    keys = bucket_key(schema) if has_ordered_rows(schema) else ()
    return [*_partition_fields(schema), *keys]


def _partition_fields(schema: TableSchema) -> list[DataField]:
    return [field for field in schema.fields if field.name in schema.partition_keys]


def _is_widened(found: spark_types.DataType, wanted: spark_types.DataType) -> bool:
    """Whether every number of one type is one of the other."""
    if isinstance(found, _WIDENED) and isinstance(wanted, _WIDENED):
        return _WIDENED.index(type(found)) <= _WIDENED.index(type(wanted))
    return False
