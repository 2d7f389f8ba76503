# SPDX-License-Identifier: Apache-2.0
"""The rows of a table as a DataFrame. Spark itself reads some files of Paimon tables, and
Python tasks read the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

import lakeformat as lake
from lakeformat.files.parquet.int96_arrays import leaf_columns
from lakeformat.paimon.read.plain_files import PlainFile
from lakeformat.rows.conditions.filter import Where
from lakeformat.tables.arguments import Partitions, WindowEnd
from lakeformat.tables.moment import Moment
from lakeformat.tables.position import AnyPosition
from lakeformat.types.types import DataField
from spark_jobs.frames.columns import holds_what_spark_reads, spark_schema
from spark_jobs.frames.conditions import column_named, spark_condition
from spark_jobs.frames.parts import spread, tasks_at_once
from spark_jobs.frames.plans import ReadPlan, has_splits, plan_changes, plan_results, plan_splits
from spark_jobs.frames.tables import TableName, find_readable_table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["read_changes", "read_table"]

_SPARK_READS = ("file", "hdfs", "viewfs")
"""URI schemes of storages that Spark reads without further settings."""


def read_table(
    spark: SparkSession,
    table: TableName,
    *,
    columns: Sequence[str] | None = None,
    where: Where | None = None,
    partitions: Partitions | None = None,
    snapshot: AnyPosition | None = None,
    tag: str | None = None,
    as_of: Moment | None = None,
    watermark: int | None = None,
    native: bool | None = None,
    warehouse: str | None = None,
    catalog_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the rows of a table as a DataFrame: those of the newest snapshot, or of the snapshot
    that ``snapshot``, ``tag``, ``as_of`` or ``watermark`` selects, as in ``Table.scan``.

    ``table`` is ``database.table``, the directory of a table, or an open table; ``warehouse`` and
    ``catalog_options`` replace those of ``register``. If Spark can check all conditions and
    read all column types, it reads the files that need no merge, with filters and columns pushed
    down. Python tasks read all other files. Spark pushes nothing down to these tasks: give
    ``columns`` and ``where``, so that they read less.

    ``native=False`` reads everything in Python tasks. ``native=True`` lets Spark also read from
    object stores, for which Spark needs its own keys. By default Spark reads only from local disks
    and HDFS. Iceberg and Mixed tables are always read in Python tasks.

    Raises ``NotFoundError`` for a missing table, and ``UnsupportedError`` for a column type that is
    not passed to Spark, such as VARIANT.
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
    # System tables refuse the arguments that they do not support.
    scan = found.scan(columns, **{key: value for key, value in asked.items() if value is not None})
    if isinstance(scan, lake.Scan):
        return frame_of_scan(spark, scan, native=native)
    if has_splits(scan):
        return _frame(spark, plan_splits(scan, scan.splits(), tasks_at_once(spark)))
    return _frame(spark, plan_results(scan))


def read_changes(
    spark: SparkSession,
    table: TableName,
    after: WindowEnd,
    upto: WindowEnd | None = None,
    mode: str = "auto",
    *,
    columns: Sequence[str] | None = None,
    where: Where | None = None,
    partitions: Partitions | None = None,
    warehouse: str | None = None,
    catalog_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the changes after the snapshot ``after``, up to and including ``upto``, as in
    ``Table.changes``. ``upto=None`` means the newest snapshot.

    For a Paimon table, each task reads files in the order of their snapshots. If two snapshots are
    compared, as with ``mode="diff"``, each task reads whole buckets of both snapshots instead. The
    table's options ``source.split.*`` set how much each task reads. For an Iceberg or Mixed table,
    one task reads all changes. ``table``, ``warehouse`` and ``catalog_options`` are those of
    ``read_table``. Raises ``NotFoundError`` for a missing table, ``UnsupportedError`` for a column
    type that is not passed to Spark, such as VARIANT, and the errors of ``Table.changes``.
    """
    found = find_readable_table(spark, table, warehouse, catalog_options)
    plan = plan_changes(
        found,
        after,
        upto,
        mode,
        tasks_at_once(spark),
        columns=columns,
        where=where,
        partitions=partitions,
    )
    return _frame(spark, plan)


def frame_of_scan(spark: SparkSession, scan: lake.Scan, *, native: bool | None = None) -> DataFrame:
    """Return the rows of ``scan`` as a DataFrame.

    Spark itself reads the files that need no merge, and Python tasks read all other files. But if
    Spark cannot read all files that need no merge, or cannot check all conditions, Python tasks
    read everything. ``native=True`` lets Spark read from every storage, ``native=None`` only from
    local disks and HDFS, ``native=False`` from none. Raises ``UnsupportedError`` for a column type
    that is not passed to Spark, such as VARIANT.
    """
    splits = scan.splits()
    files: Sequence[PlainFile] = ()
    condition = None if native is False else _native_condition(scan)
    if condition is not None:
        plain = scan.plain_files()
        files = [file for file in plain.files if _can_spark_read(file, native)]
        if len(files) == len(plain.files):  # otherwise tasks read all splits
            splits = list(plain.rest)
        else:
            files = ()
    frames = []
    for may_hold_nan in (False, True):
        some = [file for file in files if file.may_hold_nan is may_hold_nan]
        if some:
            frames.append(_native_frame(spark, scan, some, *condition or ()))
    if splits or not frames:
        frames.append(_frame(spark, plan_splits(scan, splits, tasks_at_once(spark))))
    return reduce(lambda one, other: one.unionAll(other), frames)


def _frame(spark: SparkSession, plan: ReadPlan) -> DataFrame:
    return spread(spark, plan.parts, plan.work, plan.schema)


def _native_condition(scan: lake.Scan) -> tuple[Column, ...] | None:
    """Return the conditions of a scan as Spark columns.

    Return None if Spark cannot check one of the conditions, or cannot read one of the needed
    columns. Return None also if the names of two columns of the table, or of two fields of a ROW in
    a needed column, differ only by case.
    """
    by_name = {field.name: field for field in scan.table_schema.fields}
    if len({name.lower() for name in by_name}) < len(by_name):
        return None  # the names would be ambiguous in Spark
    looked_at = {name for each in scan.conditions for name in each.columns}
    read = [*scan.fields, *(by_name[name] for name in looked_at)]
    if not all(holds_what_spark_reads(field.type) for field in read):
        return None
    conditions: list[Column] = []
    for each in scan.conditions:
        condition = spark_condition(each.predicate, by_name)
        if condition is None:
            return None
        conditions.append(condition)
    return tuple(conditions)


def _can_spark_read(file: PlainFile, native: bool | None) -> bool:
    """Return True if Spark can read the file.

    Spark ignores files whose names begin with a dot or an underscore. Unless ``native`` is True,
    the scheme of the storage must be in ``_SPARK_READS``.
    """
    is_hidden = file.path.rpartition("/")[2].startswith((".", "_"))
    return not is_hidden and (native is True or file.storage.scheme in _SPARK_READS)


def _native_frame(
    spark: SparkSession, scan: lake.Scan, files: Sequence[PlainFile], *conditions: Column
) -> DataFrame:
    wanted = [field.name for field in scan.fields]
    looked_at = {name for each in scan.conditions for name in each.columns} - {*wanted}
    by_name = {field.name: field for field in scan.table_schema.fields}
    fields: list[DataField] = [*scan.fields, *(by_name[name] for name in sorted(looked_at))]
    # The files hold the partition columns, so the names of directories are not needed.
    schema = spark_schema(fields)
    reader = spark.read.schema(schema).option("recursiveFileLookup", True)
    if any(pa.types.is_floating(kind) for _, kind in leaf_columns(to_arrow_schema(schema))):
        # Otherwise Spark skips row groups with -0.0 if a condition asks for 0.0, and the reverse.
        for lookup in ("dictionary", "bloom"):
            reader = reader.option(f"parquet.filter.{lookup}.enabled", False)
    if any(file.may_hold_nan for file in files):
        # Otherwise Spark skips row groups by bounds that ignore NaN, which is greater than any
        # bound.
        reader = reader.option("parquet.filter.stats.enabled", False)
    frame = reader.parquet(*map(_address, files))
    for condition in conditions:
        frame = frame.where(condition)
    return frame.select(*map(column_named, wanted)) if looked_at else frame


def _address(file: PlainFile) -> str:
    """Return the path of a file for Spark.

    Characters that Spark would read as a glob are escaped.
    """
    literal = re.sub(r"([\\{}\[\]*?])", r"\\\1", file.path)
    if file.storage.scheme == "file":
        return f"file:{literal}"
    root = file.storage.uri("").rstrip("/")
    return f"{root.replace('s3://', 's3a://', 1)}/{literal.lstrip('/')}"
