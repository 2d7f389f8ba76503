"""Which task writes which rows: those of a bucket go to one, as only one may number them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql
from pyspark.sql import types as spark_types

import lakeformat as lake
from lakeformat.handle import UNAWARE_BUCKET
from lakeformat.schema import TableSchema
from lakeformat.types import DataField
from spark_jobs.frames.bucket_column import bucket_key, with_bucket
from spark_jobs.frames.columns import spark_type
from spark_jobs.frames.conditions import column_named
from spark_jobs.frames.parts import tasks_at_once
from spark_jobs.frames.tables import TableName, find_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["by_bucket", "has_numbered_rows", "routed", "writers_of"]

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


def has_numbered_rows(schema: TableSchema) -> bool:
    """Whether the rows of a bucket are numbered, so that one writer has to do that."""
    return bool(schema.primary_keys) or schema.table_options.bucket != UNAWARE_BUCKET


def writers_of(schema: TableSchema, at_once: int) -> int:
    """How many tasks write a table with buckets: of a partition one per bucket, while that is
    not many more than run at a time.
    """
    several = _TASKS_PER_CORE * at_once
    return several if schema.partition_keys else min(schema.table_options.bucket, several)


def routed(frame: DataFrame, schema: TableSchema) -> DataFrame:
    """The rows where their writers are: by bucket, or so that few files are written."""
    partitions = [field for field in schema.fields if field.name in schema.partition_keys]
    if not has_numbered_rows(schema):
        if frame.isStreaming:
            return frame  # a batch is small, and Spark does not adapt its tasks
        # Spark parts and joins what it shuffled until tasks have about the same size.
        known = [field.name for field in partitions if field.name in frame.columns]
        return frame.hint("rebalance", *map(column_named, known))
    columns = frame.columns
    frame = _with_types_of_table(frame, [*partitions, *bucket_key(schema)])
    frame = with_bucket(frame, schema, _TASK)
    tasks = writers_of(schema, tasks_at_once(frame.sparkSession))
    if partitions:
        spread = sql.hash(*(column_named(field.name) for field in partitions)).cast("bigint")
        task = sql.pmod(spread + sql.col(_TASK), sql.lit(tasks)).cast("int")
        frame = frame.withColumn(_TASK, task)
    return frame.repartitionById(tasks, sql.col(_TASK)).select(*map(column_named, columns))


def _with_types_of_table(frame: DataFrame, fields: list[DataField]) -> DataFrame:
    """Rows of one bucket must meet, so what decides about it is hashed as the table has it."""
    given = {field.name: field.dataType for field in frame.schema.fields}
    for field in fields:
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


def _is_widened(found: spark_types.DataType, wanted: spark_types.DataType) -> bool:
    """Whether every number of one type is one of the other."""
    if isinstance(found, _WIDENED) and isinstance(wanted, _WIDENED):
        return _WIDENED.index(type(found)) <= _WIDENED.index(type(wanted))
    return False
