"""Mistakes in DAGs, with the answer to each; ``test_mistakes.py`` makes them all."""

# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["MISTAKES", "Mistake"]


@dataclass(frozen=True, slots=True)
class Mistake:
    """A part of a DAG file with a mistake in it."""

    what: str
    where: Literal["parse", "run", "retry", "warning"]
    code: str
    line: str
    """The message that is shown; ``HERE`` is the directory of the worker, ``UID`` its user, and
    ``ICEBERG`` the warehouse of the connection ``iceberg``.
    """
    connections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


MISTAKES = [
    Mistake(
        "a table with a typo",
        "run",
        'LakeCompactOperator(task_id="t", table="shop.ordrs")',
        "NotFoundError: table 'shop.ordrs' does not exist in file://HERE/warehouse: list_tables('shop') lists the tables there; did you mean 'shop.orders'?",
    ),
    Mistake(
        "create=True forgotten",
        "run",
        'LakeIngestOperator(task_id="t", table="shop.new", source="in/a.csv")',
        "NotFoundError: table 'shop.new' does not exist in file://HERE/warehouse: list_tables('shop') lists the tables there. With create=True the job creates the table from the columns of the source",
    ),
    Mistake(
        "an argument with a typo",
        "parse",
        'LakeCompactOperator(task_id="t", table="shop.orders", stratgy="full")',
        "task 't': LakeCompactOperator has no argument 'stratgy'; did you mean 'strategy'?",
    ),
    Mistake(
        "a day without its file",
        "retry",
        'LakeIngestOperator(task_id="t", table="shop.orders", source="in/{{ ds }}.csv")',
        "NotFoundError: source 'in/2024-02-02.csv' matches no file: the directory HERE/in has 2 files with other names (a relative path begins in the working directory). Check the path, or let a sensor wait for the file before this task; with soft_fail=True the sensor skips a run whose file does not arrive",
    ),
    Mistake(
        "a partition that does not exist",
        "warning",
        'LakeCompactOperator(task_id="t", table="shop.orders", partitions={"dt": "{{ ds }}"})',
        "shop.orders: nothing was done, because partition dt=2024-02-02 has no rows; the nearest are dt=2024-01-31 and dt=2024-02-03",
    ),
    Mistake(
        "the executor of a job's request",
        "parse",
        'LakeCompactOperator(task_id="t", table="shop.orders", executor="threads")',
        "task 't': argument 'executor' must be the name of an Airflow executor, and 'threads' is none: leave it out, or write bucket_executor='threads' if the operator compacts",
    ),
    Mistake(
        "a warehouse that may not be written",
        "run",
        'LakeIngestOperator(task_id="t", table="shop.new", source="in/a.csv", create=True, lake_conn_id="locked")',
        "AccessDeniedError: Cannot make directory /proc/warehouse/shop.db: Permission denied. Give user id UID the permission, or run as the owner of the warehouse.",
        {"locked": {"conn_type": "lake", "extra": {"warehouse": "/proc/warehouse"}}},
    ),
    Mistake(
        "a connection that does not exist",
        "run",
        'LakeHealthOperator(task_id="t", table="shop.orders", lake_conn_id="lake_eu")',
        "connection 'lake_eu' does not exist: create it with type 'lake' and a warehouse, or leave out lake_conn_id to use lake_default",
    ),
    Mistake(
        "a connection of another type",
        "run",
        'LakeHealthOperator(task_id="t", table="shop.orders", lake_conn_id="aws")',
        "InvalidRequestError: connection 'aws' has type 'aws': use a connection of type 'lake'",
        {"aws": {"conn_type": "aws"}},
    ),
    Mistake(
        "a Spark connection that does not exist",
        "run",
        'LakeCompactOperator(task_id="t", table="shop.orders", spark_conn_id="spark_eu")',
        "Spark connection 'spark_eu' does not exist: create it, or leave out spark_conn_id to use spark_default; if spark_default does not exist, Spark runs on this machine (local[*])",
    ),
    Mistake(
        "a column that is no partition column",
        "run",
        'LakeCompactOperator(task_id="t", table="shop.orders", partitions={"day": "2024-01-31"})',
        "InvalidRequestError: 'day' is not a partition column: the table is partitioned by dt",
    ),
    Mistake(
        "a condition that no partition meets",
        "warning",
        'LakeCompactOperator(task_id="t", table="shop.orders", where="dt = \'2024-02-04\'")',
        "shop.orders: nothing was done, because no rows match the condition \"dt = '2024-02-04'\"; the table has 3 partitions, dt=2024-01-30 to dt=2024-02-03",
    ),
    Mistake(
        "two partitions that do not exist",
        "warning",
        'LakeRescaleOperator(task_id="t", table="shop.orders", bucket=1, partitions=[{"dt": "2024-02-01"}, {"dt": "2024-02-02"}])',
        "shop.orders: nothing was done, because no rows match the 2 given partitions; the table has 3 partitions, dt=2024-01-30 to dt=2024-02-03",
    ),
    Mistake(
        "a condition on another column",
        "run",
        'LakeCompactOperator(task_id="t", table="shop.orders", where="item = \'apple\'")',
        "InvalidRequestError: whole partitions are chosen, so 'where' may name partition columns only, not 'item'; the table is partitioned by dt",
    ),
    Mistake(
        "a key column that the source does not have",
        "run",
        'LakeIngestOperator(task_id="t", table="shop.new", source="in/a.csv", create=True, primary_key=["order_id"])',
        "InvalidRequestError: primary_key names 'order_id', which is not a column; the columns are id, item",
    ),
    Mistake(
        "a snapshot that does not exist",
        "run",
        'LakeRollbackOperator(task_id="t", table="shop.orders", snapshot=99)',
        "NotFoundError: snapshot 99 of file://HERE/warehouse/shop.db/orders does not exist or has expired; snapshots 1 to 3 exist",
    ),
    Mistake(
        "a tag that exists",
        "run",
        'LakeTagOperator(task_id="t", table="shop.orders", action="create", tag="v1")',
        "AlreadyExistsError: file://HERE/warehouse/shop.db/orders already has a tag 'v1' of snapshot 3: choose another name, or replace the tag to move it",
    ),
    Mistake(
        "deploy mode cluster without a folder for the result",
        "run",
        'LakeCompactOperator(task_id="t", table="shop.orders", engine="spark", deploy_mode="cluster")',
        "task 't': deploy mode 'cluster' needs argument 'result_folder', a path or URI that the driver and this worker both reach",
    ),
    Mistake(
        "create=True with another key than the table's",
        "run",
        'LakeIngestOperator(task_id="t", table="shop.plain", source="in/a.csv", create=True, primary_key=["id"])',
        "InvalidRequestError: table 'shop.plain' exists and contradicts the request: primary_key is [] in the table and ['id'] in the request. Nothing was written: correct the request, leave out the keys that describe a new table, or drop the table",
    ),
    Mistake(
        "a retention that never expires anything",
        "warning",
        'LakeExpirePartitionsOperator(task_id="t", table="shop.orders", expiration_time="7 d", timestamp_formatter="yyyyMMdd")',
        "shop.orders: 3 of 3 partitions never expire because their age is unknown, such as dt=2024-01-30: '2024-01-30' does not match the time format 'yyyyMMdd'. Give the format of the values, as timestamp_formatter (--formatter) or as option 'partition.timestamp-formatter': 'yyyyMMdd' for 20240131, 'yyyy-MM-dd' for 2024-01-31",
    ),
    Mistake(
        "a table without its database",
        "parse",
        'LakeCompactOperator(task_id="t", table="orders")',
        "task 't': argument 'table' must be database.table, got 'orders'",
    ),
    Mistake(
        "a table with its catalog",
        "parse",
        'LakeCompactOperator(task_id="t", table="lake.shop.orders")',
        "task 't': argument 'table' must be database.table, got 'lake.shop.orders': write 'shop.orders', because the connection names the lake",
    ),
    Mistake(
        "a table with a slash",
        "parse",
        'LakeCompactOperator(task_id="t", table="shop/orders")',
        "task 't': argument 'table' must be database.table, got 'shop/orders'",
    ),
    Mistake(
        "a table with a space inside",
        "parse",
        'LakeCompactOperator(task_id="t", table="shop. orders")',
        "task 't': argument 'table' must be database.table, got 'shop. orders': the table name ' orders' of 'shop. orders' is not allowed: it begins with a space",
    ),
    Mistake(
        "a table with a space at its end",
        "run",
        'LakeCompactOperator(task_id="t", table="shop.orders ")',
        "NotFoundError: table 'shop.orders ' does not exist in file://HERE/warehouse: list_tables('shop') lists the tables there; did you mean 'shop.orders'?",
    ),
    Mistake(
        "a table in wrong case",
        "run",
        'LakeCompactOperator(task_id="t", table="shop.Orders")',
        "NotFoundError: table 'shop.Orders' does not exist in file://HERE/warehouse: list_tables('shop') lists the tables there; did you mean 'shop.orders'?",
    ),
    Mistake(
        "a database in wrong case",
        "run",
        'LakeCompactOperator(task_id="t", table="Shop.orders")',
        "NotFoundError: database 'Shop' does not exist in file://HERE/warehouse; create it with create_database('Shop'); did you mean 'shop'?",
    ),
    Mistake(
        "a list of tables",
        "parse",
        'LakeCompactOperator(task_id="t", table=["shop.orders", "shop.plain"])',
        "task 't': argument 'table' must be a non-empty str, got a list: for one task per value, write .partial(…).expand(table=[…])",
    ),
    Mistake(
        "a tag with a slash",
        "run",
        'LakeTagOperator(task_id="t", table="shop.orders", action="create", tag="release/1")',
        "InvalidRequestError: tag name 'release/1' is not allowed: it becomes part of a file name, so it must not be blank, '.' or '..', and must not contain a slash or a null character",
    ),
    Mistake(
        "a tag that does not exist",
        "run",
        'LakeRollbackOperator(task_id="t", table="shop.orders", tag="v2")',
        "NotFoundError: file://HERE/warehouse/shop.db/orders has no tag 'v2'; its tags are 'v1'",
    ),
    Mistake(
        "a number as a tag",
        "parse",
        'LakeTagOperator(task_id="t", table="shop.orders", action="create", tag=20240131)',
        "task 't': argument 'tag' must be a non-empty str, got 20240131: write '20240131'",
    ),
    Mistake(
        "an unknown action",
        "parse",
        'LakeTagOperator(task_id="t", table="shop.orders", action="creat", tag="v2")',
        "task 't': argument 'action' must be 'create' or 'delete' or 'replace' or 'rename', got 'creat'; did you mean 'create'?",
    ),
    Mistake(
        "a column to sort by with a typo",
        "run",
        'LakeCompactOperator(task_id="t", table="shop.plain", order_by=["itm"])',
        "InvalidRequestError: order_by names 'itm', which is not a column; the columns are id, item; did you mean 'item'?",
    ),
    Mistake(
        "a column to analyze with a typo",
        "run",
        'LakeAnalyzeOperator(task_id="t", table="shop.orders", columns=["itm"])',
        "InvalidRequestError: columns must be 'all' or list some of id, item, dt; got ['itm']; did you mean 'item'?",
    ),
    Mistake(
        "a publication without the option of the table",
        "run",
        'LakePublishOperator(task_id="t", table="shop.orders")',
        "InvalidRequestError: file://HERE/warehouse/shop.db/orders does not publish Iceberg metadata: set its option 'metadata.iceberg.storage' to 'table-location'",
    ),
    Mistake(
        "a database that no table matches",
        "run",
        'LakeCompactDatabaseOperator(task_id="t", database="shopp")',
        "NotFoundError: no table matches database='shopp', including='.*', excluding=None: these are regular expressions for whole names, such as 'shop' or 'shop.*' for 'database', 'shop\\..*_daily' for 'including'",
    ),
    Mistake(
        "conn_id, as other providers have it",
        "parse",
        'LakeHealthOperator(task_id="t", table="shop.orders", conn_id="lake_eu")',
        "task 't': write lake_conn_id for the lake, or spark_conn_id for Spark, instead of conn_id",
    ),
    Mistake(
        "no task_id",
        "parse",
        'LakeCompactOperator(table="shop.orders")',
        "LakeCompactOperator: missing 1 required keyword-only argument: 'task_id'",
    ),
    Mistake(
        "positional arguments",
        "parse",
        'LakeCompactOperator("t", "shop.orders")',
        "LakeCompactOperator: Use keyword arguments when initializing operators",
    ),
    Mistake(
        "a boolean as text",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.new", source="in/a.csv", create="True")',
        "task 't': argument 'create' must be True or False, got 'True': leave out the quotes",
    ),
    Mistake(
        "yes instead of True",
        "parse",
        'LakeExpireSnapshotsOperator(task_id="t", table="shop.orders", dry_run="yes")',
        "task 't': argument 'dry_run' must be True or False, got 'yes'",
    ),
    Mistake(
        "a number as text",
        "parse",
        'LakeExpireSnapshotsOperator(task_id="t", table="shop.orders", retain_max="5")',
        "task 't': argument 'retain_max' must be a whole number, got '5': leave out the quotes",
    ),
    Mistake(
        "a text where a list is wanted",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.new", source="in/a.csv", create=True, primary_key="id")',
        "task 't': argument 'primary_key' must be a list, each item a non-empty str, got 'id': write ['id']",
    ),
    Mistake(
        "a list where a text is wanted",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.orders", source=["in/a.csv"])',
        "task 't': argument 'source' must be a non-empty str, got a list: leave out the brackets",
    ),
    Mistake(
        "a DataFrame as a source",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.orders", source=pa.table({"id": [1]}))',
        "task 't': argument 'source' must be a non-empty str, got a Table: to write rows, return them from a function with @task.lake_commit",
    ),
    Mistake(
        "a dict as a source",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.orders", source={"id": 1})',
        "task 't': argument 'source' must be a non-empty str, got a dict with 'id' as int",
    ),
    Mistake(
        "a list where a dict is wanted",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.orders", source="in/a.csv", columns=["id"])',
        "task 't': argument 'columns' must be a dict of str, got a list: write {'name': 'value'}",
    ),
    Mistake(
        "a partition as text",
        "parse",
        'LakeCompactOperator(task_id="t", table="shop.orders", partitions="dt=2024-01-31")',
        "task 't': argument 'partitions' must be a dict or a list, each item a dict, got a str: write {'dt': '2024-01-31'}",
    ),
    Mistake(
        "a list of days as partitions",
        "parse",
        'LakeCompactOperator(task_id="t", table="shop.orders", partitions=["2024-01-30", "2024-01-31"])',
        "task 't': argument 'partitions' must be a dict or a list, each item a dict, got ['2024-01-30', '2024-01-31']: write {'dt': '2024-01-31'}",
    ),
    Mistake(
        "a datetime as the value of a partition",
        "parse",
        'LakePartitionSensor(task_id="t", table="shop.orders", partition={"dt": datetime(2024, 1, 31)})',
        "task 't': argument 'partition' must be a dict, got a dict with 'dt' as datetime: write times as str, such as '2024-01-31'",
    ),
    Mistake(
        "the engine in wrong case",
        "parse",
        'LakeCompactOperator(task_id="t", table="shop.orders", engine="Spark")',
        "task 't': argument 'engine' must be 'auto' or 'python' or 'spark', got 'Spark'; did you mean 'spark'?",
    ),
    Mistake(
        "settings of Spark as text",
        "parse",
        'LakeCompactOperator(task_id="t", table="shop.orders", conf="spark.cores.max=2")',
        "task 't': argument 'conf' must be a dict, got a str: write {'name': 'value'}",
    ),
    Mistake(
        "settings of Spark for the Python engine",
        "parse",
        'LakeCompactOperator(task_id="t", table="shop.orders", engine="python", driver_memory="4g")',
        "task 't': engine 'python' starts no Spark: leave out driver_memory, or choose engine 'spark'",
    ),
    Mistake(
        "options of CSV files in a dict",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.orders", source="in/*.csv", csv_options={"delimiter": ";"})',
        "task 't': LakeIngestOperator has no argument 'csv_options': use delimiter, quote, escape, header, null_values, encoding",
    ),
    Mistake(
        "all files in every run, beside a checkpoint",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.orders", source="in/*.csv", checkpoint="seen", ingest_again=True)',
        "task 't': argument 'ingest_again' has no effect with 'checkpoint': no file that it records is ingested again. To ingest all files in every run, leave out 'checkpoint'; otherwise leave out 'ingest_again'",
    ),
    Mistake(
        "all files in every run, of a table",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.copy", source_table="shop.orders", consumer="copy", ingest_again=True)',
        "task 't': argument 'ingest_again' has no effect without argument 'source', the path of files: leave out 'ingest_again'",
    ),
    Mistake(
        "a cron expression as the pause of a stream",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.orders", source="in/*.csv", checkpoint="seen", poll="*/5 * * * *")',
        "task 't': argument 'poll' must be a duration such as '10 s', got '*/5 * * * *': a cron expression belongs to the schedule of a DAG",
    ),
    Mistake(
        "several units as the pause of a stream",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.orders", source="in/*.csv", checkpoint="seen", poll="1 d 2 h 3 m")',
        "task 't': argument 'poll' must be a duration such as '10 s', got '1 d 2 h 3 m': write a whole number and one of the units ns, µs, ms, s, m, h, d, w",
    ),
    Mistake(
        "a bare number of days",
        "parse",
        'LakeExpireSnapshotsOperator(task_id="t", table="shop.orders", older_than=7)',
        "task 't': argument 'older_than' must be a time such as '2024-01-31 10:00', an age such as '7 d', or epoch milliseconds, got 7: it is too small for epoch milliseconds; it looks like seconds or a number of days: write '90 d' for an age",
    ),
    Mistake(
        "a bare number of days as text",
        "parse",
        'LakeExpireSnapshotsOperator(task_id="t", table="shop.orders", older_than="7")',
        "task 't': argument 'older_than' must be a time such as '2024-01-31 10:00', an age such as '7 d', or epoch milliseconds, got '7'",
    ),
    Mistake(
        "a unit with a typo",
        "parse",
        'LakeExpireSnapshotsOperator(task_id="t", table="shop.orders", older_than="7 dayz")',
        "task 't': argument 'older_than' must be a time such as '2024-01-31 10:00', an age such as '7 d', or epoch milliseconds, got '7 dayz': write a whole number and one of the units ns, µs, ms, s, m, h, d, w",
    ),
    Mistake(
        "a negative age",
        "parse",
        'LakeExpireSnapshotsOperator(task_id="t", table="shop.orders", older_than=timedelta(days=-7))',
        "task 't': argument 'older_than' must be a time such as '2024-01-31 10:00', an age such as '7 d', or epoch milliseconds, got '-7 d'",
    ),
    Mistake(
        "epoch seconds",
        "parse",
        'LakeSnapshotSensor(task_id="t", table="shop.orders", since=1700000000)',
        "task 't': argument 'since' must be a time in epoch milliseconds, got 1700000000: it is too small for epoch milliseconds; it looks like seconds or a number of days",
    ),
    Mistake(
        "a datetime without a time zone",
        "warning",
        'LakeExpireSnapshotsOperator(task_id="t", table="shop.orders", older_than=datetime(2024, 1, 31))',
        "task 't': argument 'older_than' is 2024-01-31 00:00:00, which has no time zone and is read as UTC: write datetime(…, tzinfo=UTC)",
    ),
    Mistake(
        "a day before the table",
        "run",
        'LakeRollbackOperator(task_id="t", table="shop.orders", as_of="2020-01-01")',
        "NotFoundError: file://HERE/warehouse/shop.db/orders has no snapshot of 2020-01-01 00:00:00.000Z or before: the table was empty then, or those snapshots have expired. A tag may keep one: pass tag=",
    ),
    Mistake(
        "a format of Python for a time",
        "parse",
        'LakeExpirePartitionsOperator(task_id="t", table="shop.orders", expiration_time="7 d", timestamp_formatter="%Y-%m-%d")',
        "task 't': argument 'timestamp_formatter' must be the format of a time, such as 'yyyyMMdd', got '%Y-%m-%d': option 'partition.timestamp-formatter' is '%Y-%m-%d': the letter 'Y' is not supported, only y, u, M, d, H, m, s, S are; write something like 'yyyy-MM-dd HH:mm:ss', 'yyyyMMdd' or \"yyyy-MM-dd'T'HH\"",
    ),
    Mistake(
        "orphans younger than a day",
        "parse",
        'LakeRemoveOrphansOperator(task_id="t", table="shop.orders", older_than="1 h")',
        "task 't': argument 'older_than' is '1 h', but files of the last day may belong to running writes: give at least one day; or stop every writer and set 'allow_younger'",
    ),
    Mistake(
        "a percentage as a share",
        "parse",
        'LakeRemoveOrphansOperator(task_id="t", table="shop.orders", max_share=50)',
        "task 't': argument 'max_share' must be a share above 0 and up to 1, got 50",
    ),
    Mistake(
        "a directory as a source",
        "run",
        'LakeIngestOperator(task_id="t", table="shop.orders", source="in")',
        "InvalidRequestError: source 'in' is a directory: write in/* for its files",
    ),
    Mistake(
        "a source of unknown format",
        "run",
        'LakeIngestOperator(task_id="t", table="shop.orders", source="in/a.xlsx")',
        "InvalidRequestError: the format of 'HERE/in/a.xlsx' is unknown: use a name that ends in .parquet, .csv, .json, .jsonl, .ndjson, or give the format. The name of a compressed file may have one more ending, one of .gz, .bz2, .zst, as in .csv.gz",
    ),
    Mistake(
        "a source on the web",
        "run",
        'LakeIngestOperator(task_id="t", table="shop.orders", source="https://example.org/a.csv")',
        "UnsupportedError: Cannot open https://example.org: no storage for the scheme 'https'. Supported: a local path, file://, memory://, s3://, gs://, abfss:// and hdfs://.",
    ),
    Mistake(
        "an address without a bucket",
        "run",
        'LakeIngestOperator(task_id="t", table="shop.orders", source="s3:/bucket/a.csv")',
        "InvalidRequestError: s3:/bucket has no bucket: write s3://bucket/path.",
    ),
    Mistake(
        "no source",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.orders", create=True)',
        "task 't': give exactly one of the arguments source, source_table, jdbc_url: got none",
    ),
    Mistake(
        "two sources",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.orders", source="in/a.csv", source_table="shop.plain")',
        "task 't': give exactly one of the arguments source, source_table, jdbc_url: got source and source_table",
    ),
    Mistake(
        "a source table without a consumer",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.orders", source_table="shop.plain")',
        "task 't': argument 'source_table' needs argument 'consumer', the name under which the source table keeps the position of this reader: add it",
    ),
    Mistake(
        "a source table with a typo",
        "run",
        'LakeIngestOperator(task_id="t", table="shop.orders", source_table="shop.plan", consumer="orders")',
        "NotFoundError: table 'shop.plan' does not exist in file://HERE/warehouse: list_tables('shop') lists the tables there; did you mean 'shop.plain'?",
    ),
    Mistake(
        "a key without create=True",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.orders", source="in/a.csv", primary_key=["id"])',
        "task 't': argument 'primary_key' needs create=True for a new table: add create=True, or leave out 'primary_key'",
    ),
    Mistake(
        "an option with an underscore",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.new", source="in/a.csv", create=True, table_options={"merge_engine": "first-row"})',
        "task 't': argument 'table_options' must be a dict of table options, got a dict with 'merge_engine': there is no option 'merge_engine'; did you mean 'merge-engine'? A key of your own is kept if it differs from every option by more than a few letters",
    ),
    Mistake(
        "the value of an option with an underscore",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.new", source="in/a.csv", create=True, table_options={"merge-engine": "first_row"})',
        "task 't': argument 'table_options' must be a dict of table options, got a dict with 'merge-engine': option 'merge-engine' is 'first_row', but must be deduplicate or partial-update or aggregation or first-row: this version supports no other",
    ),
    Mistake(
        "a password in the address of a database",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.orders", jdbc_url="postgresql://me:secret@host/shop", jdbc_table="orders")',
        "task 't': jdbc_url would show a password in the web interface: put login and password into a connection, and name it with jdbc_conn_id",
    ),
    Mistake(
        "a login that does not exist",
        "run",
        'LakeIngestOperator(task_id="t", table="shop.orders", jdbc_url="sqlite:///x.db", jdbc_table="orders", jdbc_conn_id="pg")',
        "connection 'pg' does not exist: create it with the login and password of the SQL database, or correct jdbc_conn_id",
    ),
    Mistake(
        "an address of JDBC for the Python engine",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.orders", engine="python", jdbc_url="jdbc:postgresql://host/shop", jdbc_table="orders")',
        "task 't': argument 'jdbc_url' is a JDBC address, which needs engine 'spark': for engine 'python' write a SQLAlchemy address, such as postgresql+psycopg2://host/database",
    ),
    Mistake(
        "a mode, as Spark has it",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.orders", source="in/a.csv", mode="overwrite")',
        "task 't': LakeIngestOperator has no argument 'mode': use overwrite",
    ),
    Mistake(
        "True where overwrite wants a word",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.orders", source="in/a.csv", overwrite=True)',
        "task 't': argument 'overwrite' must be 'partitions' or 'table', got True",
    ),
    Mistake(
        "a type with a typo",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.orders", source="in/a.csv", casts={"id": "INTEGR"})',
        "task 't': argument 'casts' must be a dict of table columns, each with a type, got a dict with 'id': not a type: 'INTEGR': unknown type 'INTEGR'; did you mean 'INTEGER'?",
    ),
    Mistake(
        "a template in single braces",
        "parse",
        'LakeCompactOperator(task_id="t", table="shop.orders", where="dt = \'{ ds }\'")',
        "task 't': argument 'where' has '{ ds }', which is not a template: write '{{ ds }}', and in an f-string '{{{{ ds }}}}'",
    ),
    Mistake(
        "a template that is not closed",
        "parse",
        'LakeCompactOperator(task_id="t", table="shop.orders", where="dt = \'{{ ds }\'")',
        "task 't': argument 'where' is \"dt = '{{ ds }'\", which opens a template and does not close it: write }} after it",
    ),
    Mistake(
        "a parameter that does not exist",
        "run",
        'LakeCompactOperator(task_id="t", table="shop.{{ params.tabel }}")',
        "task 't': a template of argument 'table' cannot be rendered: UndefinedError: 'dict object' has no attribute 'tabel'",
    ),
    Mistake(
        "a parameter that does not exist, beside another template",
        "run",
        'LakeCompactOperator(task_id="t", table="shop.{{ params.tabel }}", engine="spark", conf={"spark.x": "{{ ds }}"})',
        "task 't': a template of argument 'table' cannot be rendered: UndefinedError: 'dict object' has no attribute 'tabel'",
    ),
    Mistake(
        "a table that renders to None",
        "run",
        'LakeCompactOperator(task_id="t", table="shop.{{ params.day }}")',
        "task 't': argument 'table' renders to 'shop.None': the value that its template uses is missing in this run. Correct the template, or give the value a default",
    ),
    Mistake(
        "a condition that renders to nothing",
        "run",
        'LakeCompactOperator(task_id="t", table="shop.orders", where="{{ params.day or \'\' }}")',
        "task 't': argument 'where' must be a non-empty str, but its template renders to ''",
    ),
    Mistake(
        "a number that renders to a text",
        "run",
        'LakeExpireSnapshotsOperator(task_id="t", table="shop.orders", retain_max="{{ ds }}")',
        "task 't': argument 'retain_max' must be a whole number, but its template renders to '2024-02-02'",
    ),
    Mistake(
        "a list that renders to a text",
        "run",
        'LakeCompactOperator(task_id="t", table="shop.orders", buckets="{{ params.list }}")',
        "task 't': argument 'buckets' must be a list, each item a whole number, but its template renders to 'a,b'",
    ),
    Mistake(
        "a result that no task has",
        "parse",
        """
            land = LakeIngestOperator(task_id="land", table="shop.orders", source="in/*.csv", stage=True)
            LakeTagOperator(task_id="t", table="shop.orders", action="create", tag="v2", snapshot=land.output["snapshot"])
        """,
        "task 't': argument 'snapshot' is result 'snapshot' of task 'land', which has no such result; did you mean 'snapshot_id'?",
    ),
    Mistake(
        "the result of a task that was skipped",
        "run",
        """
            @task
            def find_source():
                return {}

            LakeIngestOperator(task_id="t", table="shop.plain", source=find_source()["path"], trigger_rule="none_failed")
        """,
        "task 't': argument 'source' is the result 'path' of task 'find_source', and this result does not exist: that task was skipped, or pushed no XCom with this key. A returned dict gives an XCom for each key only with @task(multiple_outputs=True)",
    ),
    Mistake(
        "the result of a task that returns nothing",
        "run",
        """
            @task
            def find_source():
                pass

            LakeIngestOperator(task_id="t", table="shop.plain", source=find_source())
        """,
        "task 't': give exactly one of the arguments source, source_table, jdbc_url: got none; argument 'source' is None, because task 'find_source' was skipped or returned None",
    ),
    Mistake(
        "a tag of a snapshot that was not published",
        "run",
        """
            @task
            def publish():
                pass

            LakeTagOperator(task_id="t", table="shop.orders", action="create", tag="v2", snapshot=publish())
        """,
        "task 't': argument 'snapshot' is None, because task 'publish' was skipped or has no such result. Nothing was done, because None would select the default of 'snapshot'. Pass another value, or skip this task",
    ),
    Mistake(
        "an overwrite of nothing",
        "run",
        """
            @task
            def mode():
                pass

            LakeIngestOperator(task_id="t", table="shop.plain", source="in/a.csv", overwrite=mode())
        """,
        "task 't': argument 'overwrite' is None, because task 'mode' was skipped or has no such result. Nothing was done, because None would select the default of 'overwrite'. Pass another value, or skip this task",
    ),
    Mistake(
        "an expiry without an age",
        "run",
        """
            @task
            def age():
                pass

            LakeExpireSnapshotsOperator(task_id="t", table="shop.plain", older_than=age())
        """,
        "task 't': argument 'older_than' is None, because task 'age' was skipped or has no such result. Nothing was done, because None would select the default of 'older_than'. Pass another value, or skip this task",
    ),
    Mistake(
        "an update of rows that were not read",
        "run",
        """
            @task
            def read():
                pass

            LakeUpdateOperator(task_id="t", table="shop.orders", set={"item": "'x'"}, where="id = 1", read_snapshot=read(), conflict="transaction-order")
        """,
        "task 't': argument 'read_snapshot' is None, because task 'read' was skipped or has no such result. Nothing was done, because None would select the default of 'read_snapshot'. Pass another value, or skip this task",
    ),
    Mistake(
        "the result of a task in a list",
        "run",
        """
            @task
            def stage():
                pass

            LakeCommitOperator(task_id="t", table="shop.plain", staged=[stage()])
        """,
        "task 't': argument 'staged' must be a list, each item a non-empty str, but task 'stage' returned None: that task was skipped, or has no such result",
    ),
    Mistake(
        "a task instead of its result",
        "parse",
        """
            land = LakeIngestOperator(task_id="land", table="shop.orders", source="in/*.csv", stage=True)
            LakeCommitOperator(task_id="t", table="shop.orders", staged=[land])
        """,
        "task 't': argument 'staged' must be a list, each item a non-empty str, got a list: write the results of tasks, such as first.output['staged']",
    ),
    Mistake(
        "an address that was never staged",
        "run",
        'LakeCommitOperator(task_id="t", table="shop.orders", staged=["/tmp/staged"])',
        "InvalidRequestError: '/tmp/staged' is not a staged result of file://HERE/warehouse/shop.db/orders: pass the address that the staging job returned, and open the table for which that job staged rows",
    ),
    Mistake(
        "expand over an argument with a typo",
        "parse",
        'LakeCompactOperator.partial(task_id="t").expand(tables=["shop.orders"])',
        "task 't': LakeCompactOperator has no argument 'tables'; did you mean 'table'?",
    ),
    Mistake(
        "expand over a text",
        "parse",
        'LakeCompactOperator.partial(task_id="t").expand(table="shop.orders")',
        "task 't': expand(table=…) takes a list, one value for each task, got 'shop.orders': write ['shop.orders']",
    ),
    Mistake(
        "expand over a wrong value",
        "parse",
        'LakeCompactOperator.partial(task_id="t", table="shop.orders").expand(strategy=["full", "most"])',
        "task 't': argument 'strategy' must be 'full' or 'minor' or 'sort' or 'zorder', got 'most'",
    ),
    Mistake(
        "expand over a table without its database",
        "parse",
        'LakeCompactOperator.partial(task_id="t").expand(table=["orders"])',
        "task 't': argument 'table' must be database.table, got 'orders'",
    ),
    Mistake(
        "expand over an argument that is shared",
        "parse",
        'LakeCompactOperator.partial(task_id="t", table="shop.orders").expand(table=["shop.plain"])',
        "task 't': unmappable or already specified argument: table",
    ),
    Mistake(
        "partial with a typo",
        "parse",
        'LakeCompactOperator.partial(task_id="t", stratgy="full").expand(table=["shop.orders"])',
        "task 't': LakeCompactOperator has no argument 'stratgy'; did you mean 'strategy'?",
    ),
    Mistake(
        "dicts of arguments with a typo",
        "parse",
        'LakeHealthOperator.partial(task_id="t").expand_kwargs([{"tabel": "shop.orders"}])',
        "task 't': LakeHealthOperator has no argument 'tabel'; did you mean 'table'?",
    ),
    Mistake(
        "a sensor without what it waits for",
        "parse",
        'LakePartitionSensor(task_id="t", table="shop.orders")',
        "task 't': missing keyword argument 'partition'",
    ),
    Mistake(
        "a sensor that waits for an empty partition",
        "parse",
        'LakePartitionSensor(task_id="t", table="shop.orders", partition={})',
        "task 't': argument 'partition' is empty: write {'dt': '2024-01-31'}",
    ),
    Mistake(
        "a sensor that waits for a column that is no partition column",
        "run",
        'LakePartitionSensor(task_id="t", table="shop.orders", partition={"day": "2024-01-31"})',
        "InvalidRequestError: 'day' is not a partition column: the table is partitioned by dt",
    ),
    Mistake(
        "a sensor that waits for a word",
        "parse",
        'LakeWatermarkSensor(task_id="t", table="shop.orders", watermark="yesterday")',
        "task 't': argument 'watermark' must be a time such as '2024-01-31 10:00' or epoch milliseconds, got 'yesterday'",
    ),
    Mistake(
        "a sensor that waits for a kind of commit in lower case",
        "parse",
        'LakeSnapshotSensor(task_id="t", table="shop.orders", kinds=["append"])',
        "task 't': kinds must be a list of one or more of APPEND, COMPACT, OVERWRITE, ANALYZE, got ['append']; did you mean 'APPEND'?",
    ),
    Mistake(
        "a sensor that waits for no file",
        "parse",
        'LakeCompactionNeededSensor(task_id="t", table="shop.orders", min_files=0)',
        "task 't': argument 'min_files' must be a whole number from 1 on, got 0",
    ),
    Mistake(
        "a sensor without a pause",
        "parse",
        'LakeSnapshotSensor(task_id="t", table="shop.orders", deferrable=True, poke_interval=0)',
        "task 't': argument 'poke_interval' must be a number of seconds above 0, got 0: without a pause the triggerer would check the table all the time",
    ),
    Mistake(
        "a sensor with a typo",
        "parse",
        'LakeWatermarkSensor(task_id="t", table="shop.orders", watermark="2024-01-31", poke_intervall=60)',
        "task 't': LakeWatermarkSensor has no argument 'poke_intervall'; did you mean 'poke_interval'?",
    ),
    Mistake(
        "a sensor that waits for a table with a typo",
        "warning",
        'LakeSnapshotSensor(task_id="t", table="shop.ordrs", deferrable=True)',
        "still waiting: table 'shop.ordrs' does not exist in file://HERE/warehouse: list_tables('shop') lists the tables there; did you mean 'shop.orders'?",
    ),
    Mistake(
        "a sensor that waits for no partition column",
        "run",
        'LakePartitionSensor(task_id="t", table="shop.plain", partition={"dt": "2024-01-31"})',
        "InvalidRequestError: 'dt' is not a partition column: the table has no partitions",
    ),
    Mistake(
        "a decorator without parentheses",
        "parse",
        """
            @lake_commit_task
            def rows():
                return []

            rows()
        """,
        "task 'rows' has no table: write @task.lake_commit(table='database.table'), or rows(table='database.table')",
    ),
    Mistake(
        "a decorator with a positional table",
        "parse",
        """
            @lake_commit_task("shop.plain")
            def rows():
                return []

            rows()
        """,
        "@task.lake_commit takes only named arguments, got 'shop.plain': write @task.lake_commit(table='database.table')",
    ),
    Mistake(
        "a decorator with a typo",
        "parse",
        """
            @lake_commit_task(table="shop.plain", creat=True)
            def rows():
                return []

            rows()
        """,
        "task 'rows': @task.lake_commit has no argument 'creat'; did you mean 'create'?",
    ),
    Mistake(
        "a function that returns one row",
        "run",
        """
            @lake_commit_task(table="shop.plain")
            def rows():
                return {"id": 1, "item": "apple"}

            rows()
        """,
        "InvalidRequestError: function 'rows' returned a value of type dict: return the rows as a list of dicts, [{'column': value}], or as a DataFrame or Arrow table",
    ),
    Mistake(
        "a function that returns tuples",
        "run",
        """
            @lake_commit_task(table="shop.plain")
            def rows():
                return [(1, "apple")]

            rows()
        """,
        "InvalidRequestError: function 'rows' returned a list with a value of type tuple: return a list of dicts, [{'column': value}], because a row names its columns",
    ),
    Mistake(
        "a function that returns nothing",
        "run",
        """
            @lake_commit_task(table="shop.plain")
            def rows():
                pass

            rows()
        """,
        "InvalidRequestError: function 'rows' returned None: return rows, or an empty list if there are none",
    ),
    Mistake(
        "a row with an unknown column",
        "run",
        """
            @lake_commit_task(table="shop.plain")
            def rows():
                return [{"id": 1, "itm": "apple"}]

            rows()
        """,
        "InvalidRequestError: function 'rows' returned rows with unknown column 'itm': file://HERE/warehouse/shop.db/plain has the columns id, item; did you mean 'item'?",
    ),
    Mistake(
        "a row with a value of another type",
        "run",
        """
            @lake_commit_task(table="shop.plain")
            def rows():
                return [{"id": "one", "item": "apple"}]

            rows()
        """,
        "InvalidRequestError: function 'rows' returned rows that cannot be read: Could not convert 'one' with type str: tried to convert to int64. Use values of type int64 in column 'id'",
    ),
    Mistake(
        "a function without the argument table",
        "parse",
        """
            @lake_job_task(table="shop.plain")
            def rows():
                return 1

            rows()
        """,
        "@task.lake_job: function 'rows' has neither an argument 'table' nor 'spark': add one, or write @task",
    ),
    Mistake(
        "a function that is async",
        "parse",
        """
            @lake_job_task(table="shop.plain")
            async def rows(table):
                return 1

            rows()
        """,
        "@task.lake_job: function 'rows' is async: write 'def' instead of 'async def'",
    ),
    Mistake(
        "a call without an argument",
        "parse",
        """
            @lake_job_task(table="shop.plain")
            def rows(table, day):
                return 1

            rows()
        """,
        "task 'rows': missing a required argument: 'day'",
    ),
    Mistake(
        "settings for a function without Spark",
        "parse",
        """
            @lake_job_task(table="shop.plain", conf={"spark.cores.max": "2"})
            def rows(table):
                return 1

            rows()
        """,
        "@task.lake_job: function 'rows' has no argument 'spark', so 'conf' has no effect: add the argument, or leave out 'conf'",
    ),
    Mistake(
        "partitions of a table that has none",
        "run",
        """
            @lake_commit_task(table="shop.plain", overwrite="partitions")
            def rows():
                return [{"id": 1, "item": "apple"}]

            rows()
        """,
        "InvalidRequestError: file://HERE/warehouse/shop.db/plain has no partitions, so overwrite='partitions' would replace all its rows: write overwrite='table' if you want that",
    ),
    Mistake(
        "an argument with its old name",
        "warning",
        """
            @lake_job_task(table="shop.orders")
            def expire(table):
                table.expire_snapshots(tell=print)

            expire()
        """,
        "TableExpiry.expire_snapshots(tell=...) is deprecated: write on_progress=...",
    ),
    Mistake(
        "a Spark connection of another type",
        "run",
        'LakeCompactOperator(task_id="t", table="shop.orders", spark_conn_id="aws")',
        "connection 'aws' has type 'aws': use a connection of type 'spark'",
        {"aws": {"conn_type": "aws"}},
    ),
    Mistake(
        "a text as an outlet",
        "parse",
        'LakeCompactOperator(task_id="t", table="shop.orders", outlets=["shop.orders"])',
        "task 't': argument 'outlets' must be a list of assets, and Airflow ignores a str: write [lake_asset('database.table')]",
    ),
    Mistake(
        "an outlet twice",
        "parse",
        'LakeCompactOperator(task_id="t", table="shop.orders", outlets=[lake_asset("shop.orders"), Asset("orders", uri="lake://shop/orders")])',
        "task 't': argument 'outlets' has two assets of 'lake://shop/orders': keep one of them",
    ),
    Mistake(
        "an asset with a dot in its URI",
        "parse",
        'LakeCompactOperator(task_id="t", table="shop.orders", outlets=[Asset("lake://shop.orders")])',
        "'lake://shop.orders/' is not a URI of a lake table: write lake://<database>/<table>",
    ),
    Mistake(
        "an asset of a table without its database",
        "parse",
        'LakeCompactOperator(task_id="t", table="shop.orders", outlets=[lake_asset("orders")])',
        "'orders' is not a table name: write database.table",
    ),
    Mistake(
        "a connection without a warehouse",
        "run",
        'LakeHealthOperator(task_id="t", table="shop.orders", lake_conn_id="lake_eu")',
        "InvalidRequestError: connection 'lake_eu' has no warehouse: set it to a path or URI",
        {"lake_eu": {"conn_type": "lake", "extra": {}}},
    ),
    Mistake(
        "a connection with a typo",
        "run",
        'LakeHealthOperator(task_id="t", table="shop.orders", lake_conn_id="lake_eu")',
        "InvalidRequestError: connection 'lake_eu' sets 'warehous', which a lake connection does not have; did you mean 'warehouse'?",
        {"lake_eu": {"conn_type": "lake", "extra": {"warehous": "warehouse"}}},
    ),
    Mistake(
        "a connection with two warehouses",
        "run",
        'LakeHealthOperator(task_id="t", table="shop.orders", lake_conn_id="lake_eu")',
        "InvalidRequestError: connection 'lake_eu' names two warehouses, 's3://bucket/lake' as host and 'warehouse' in extra: keep one",
        {
            "lake_eu": {
                "conn_type": "lake",
                "host": "s3://bucket/lake",
                "extra": {"warehouse": "warehouse"},
            }
        },
    ),
    Mistake(
        "a connection with a field of another type",
        "run",
        'LakeHealthOperator(task_id="t", table="shop.orders", lake_conn_id="lake_eu")',
        "InvalidRequestError: connection 'lake_eu' sets 'schema', which a lake connection does not have: its fields are 'warehouse', 'options', 'secret_options', 'engine', 'spark_conn_id', 'format', 'metastore', 'uri', 'external_roots', 's3_endpoint', 's3_region', 's3_access_key', 's3_secret_key', 's3_session_token', 'gs_key_file', 'gs_access_token', 'azure_account', 'azure_account_key', 'azure_sas_token', 'azure_tenant_id', 'azure_client_id', 'azure_client_secret'",
        {"lake_eu": {"conn_type": "lake", "schema": "shop", "extra": {"warehouse": "warehouse"}}},
    ),
    Mistake(
        "a connection with an option with an underscore",
        "run",
        'LakeHealthOperator(task_id="t", table="shop.orders", lake_conn_id="lake_eu")',
        "InvalidRequestError: catalog option 's3_endpoint' is not supported by this version: leave it out; did you mean 's3.endpoint'?",
        {
            "lake_eu": {
                "conn_type": "lake",
                "extra": {
                    "warehouse": "warehouse",
                    "options": {"s3_endpoint": "http://minio:9000"},
                },
            }
        },
    ),
    Mistake(
        "a connection with an option that is no text",
        "run",
        'LakeHealthOperator(task_id="t", table="shop.orders", lake_conn_id="lake_eu")',
        "InvalidRequestError: connection 'lake_eu': the value of option 's3.path-style-access' is not a string: write it in quotes",
        {
            "lake_eu": {
                "conn_type": "lake",
                "extra": {"warehouse": "warehouse", "options": {"s3.path-style-access": True}},
            }
        },
    ),
    Mistake(
        "a connection with a warehouse that does not exist",
        "run",
        'LakeHealthOperator(task_id="t", table="shop.orders", lake_conn_id="lake_eu")',
        "NotFoundError: database 'shop' does not exist in file://HERE/nowhere; create it with create_database('shop')",
        {"lake_eu": {"conn_type": "lake", "extra": {"warehouse": "nowhere"}}},
    ),
    Mistake(
        "a connection with a space at the end of its warehouse",
        "run",
        'LakeHealthOperator(task_id="t", table="shop.orders", lake_conn_id="lake_eu")',
        "InvalidRequestError: connection 'lake_eu' has spaces around its warehouse 'warehouse ': remove them",
        {"lake_eu": {"conn_type": "lake", "extra": {"warehouse": "warehouse "}}},
    ),
    Mistake(
        "a connection with an unknown scheme",
        "run",
        'LakeHealthOperator(task_id="t", table="shop.orders", lake_conn_id="lake_eu")',
        "UnsupportedError: Cannot open ftp://bucket/lake: no storage for the scheme 'ftp'. Supported: a local path, file://, memory://, s3://, gs://, abfss:// and hdfs://.",
        {"lake_eu": {"conn_type": "lake", "extra": {"warehouse": "ftp://bucket/lake"}}},
    ),
    Mistake(
        "a policy without a schedule",
        "parse",
        'lake_dags({"databases": {"shop": {"tables": {"orders": {"compact": True}}}}})',
        "shop.orders has no schedule: set one for the table, for its database, or in defaults",
    ),
    Mistake(
        "a policy with a typo",
        "parse",
        'lake_dags({"databases": {"shop": {"tables": {"orders": {"schedule": "@daily", "compat": True}}}}})',
        "shop.orders has an unknown name 'compat': did you mean 'compact'?",
    ),
    Mistake(
        "a policy with a schedule in words",
        "parse",
        'lake_dags({"databases": {"shop": {"tables": {"orders": {"schedule": "every day", "compact": True}}}}})',
        "shop.orders: Airflow does not accept schedule 'every day': write a cron expression such as '0 3 * * *', or '@daily' (Exactly 5, 6 or 7 columns has to be specified for iterator expression.)",
    ),
    Mistake(
        "a policy with a dash in an argument",
        "parse",
        'lake_dags({"databases": {"shop": {"tables": {"orders": {"schedule": "@daily", "expire_snapshots": {"older-than": "7 d"}}}}}})',
        "shop.orders: expire_snapshots has an unknown name 'older-than': did you mean 'older_than'?",
    ),
    Mistake(
        "a policy with a value of an argument that does not exist",
        "parse",
        'lake_dags({"databases": {"shop": {"tables": {"orders": {"schedule": "@daily", "compact": {"strategy": "most"}}}}}})',
        "task 'shop_orders.compact': argument 'strategy' must be 'full' or 'minor' or 'sort' or 'zorder', got 'most'",
    ),
    Mistake(
        "a policy with a number as text",
        "parse",
        'lake_dags({"databases": {"shop": {"tables": {"orders": {"schedule": "@daily", "compact": True, "retries": "2"}}}}})',
        "shop.orders: retries must be a whole number from 0 on, got '2'",
    ),
    Mistake(
        "a policy without the level of tables",
        "parse",
        'lake_dags({"databases": {"shop": {"orders": {"schedule": "@daily", "compact": True}}}})',
        "the policy names no tables for database 'shop': name them below the key 'tables', as in tables: {orders: {…}}",
    ),
    Mistake(
        "a policy with the database in the name of a table",
        "parse",
        'lake_dags({"databases": {"shop": {"tables": {"shop.orders": {"schedule": "@daily", "compact": True}}}}})',
        "'shop.shop.orders' is not a table name: write plain names, such as databases: {shop: {tables: {orders: {…}}}}",
    ),
    Mistake(
        "a policy file that does not exist",
        "parse",
        'lake_dags("lake.yml")',
        "policy file HERE/lake.yml does not exist: correct its path",
    ),
    Mistake(
        "a policy file with tabs",
        "parse",
        """
            Path("lake.yaml").write_text("databases:\\n\\tshop: {}\\n")
            lake_dags("lake.yaml")
        """,
        "lake.yaml cannot be read as YAML in line 2: found character '\\t' that cannot start any token",
    ),
    Mistake(
        "a group of unknown steps",
        "parse",
        'LakeMaintenanceTaskGroup(table="shop.orders", steps={"compct": True})',
        "shop.orders: steps has an unknown name 'compct': did you mean 'compact'?",
    ),
    Mistake(
        "a group of listed steps",
        "parse",
        'LakeMaintenanceTaskGroup(table="shop.orders", steps=["compact"])',
        "shop.orders: steps must be a mapping of names to values, got ['compact']",
    ),
    Mistake(
        "a group with a typo",
        "parse",
        'LakeMaintenanceTaskGroup(table="shop.orders", steps={"compact": True}, poool="lake")',
        "shop.orders: LakeMaintenanceTaskGroup has no argument 'poool'; did you mean 'pool'?",
    ),
    Mistake(
        "a gate as a dict",
        "parse",
        'LakeMaintenanceTaskGroup(table="shop.orders", steps={"compact": True}, gate={"min_files": 3})',
        "shop.orders: gate must be a Gate(min_files=…, max_bytes=…), got {'min_files': 3}",
    ),
    Mistake(
        "a position as a number",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.plain", source="in/a.csv", read_snapshot=7)',
        "task 't': argument 'read_snapshot' must be a non-empty str, got 7: write '7'",
    ),
    Mistake(
        "a position in words",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.plain", source="in/a.csv", read_snapshot="yesterday")',
        "task 't': argument 'read_snapshot' must be a position, as str(table.position()) returns it, got 'yesterday': 'yesterday' is not a position: give a snapshot number, or the text of a position as str(table.position()) returns it",
    ),
    Mistake(
        "a position that the table has not reached",
        "run",
        'LakeIngestOperator(task_id="t", table="shop.plain", source="in/a.csv", read_snapshot="main/99")',
        "CommitConflictError: file://HERE/warehouse/shop.db/plain was read at snapshot 99, but its newest is 1: the table was rolled back, or the snapshot belongs to another table. Nothing was published; read again and repeat the work",
    ),
    Mistake(
        "a treatment of conflicts with an underscore",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.plain", source="in/a.csv", read_snapshot="main/1", conflict="transaction_order")',
        "task 't': argument 'conflict' must be 'optimistic' or 'transaction-order', got 'transaction_order'; did you mean 'transaction-order'?",
    ),
    Mistake(
        "a treatment of conflicts without a position",
        "run",
        'LakeIngestOperator(task_id="t", table="shop.plain", source="in/a.csv", conflict="transaction-order")',
        "InvalidRequestError: key 'conflict' needs key 'read_snapshot', the position at which the table was read: add it, or leave out 'conflict'. Only for a Mixed table can 'conflict' be 'transaction-order' without 'read_snapshot'",
    ),
    Mistake(
        "a position for rows that are staged",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.plain", source="in/a.csv", read_snapshot="main/1", stage=True)',
        "task 't': arguments 'read_snapshot' and 'stage' exclude each other: leave one out",
    ),
    Mistake(
        "a position for changes of a table",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.plain", source_table="shop.orders", consumer="c", read_snapshot="main/1")',
        "task 't': argument 'read_snapshot' needs argument 'source' or 'jdbc_url', but argument 'source_table' is given: leave out 'read_snapshot'",
    ),
    Mistake(
        "an overwrite of one partition by its values",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.plain", source="in/a.csv", overwrite={"dt": "2024-01-31"})',
        "task 't': argument 'overwrite' must be 'partitions' or 'table', got a dict with 'dt'",
    ),
    Mistake(
        "an overwrite of partitions of a table that has none",
        "run",
        'LakeIngestOperator(task_id="t", table="shop.plain", source="in/a.csv", overwrite="partitions")',
        "InvalidRequestError: file://HERE/warehouse/shop.db/plain has no partitions, so overwrite='partitions' would replace all its rows: write overwrite='table' if you want that",
    ),
    Mistake(
        "an upsert by a key of a Paimon table",
        "run",
        'LakeIngestOperator(task_id="t", table="shop.plain", source="in/a.csv", upsert_by=["id"])',
        "UnsupportedError: file://HERE/warehouse/shop.db/plain is a Paimon table, which has no operation 'upsert': write(rows) replaces rows by the primary key, if the table has one",
    ),
    Mistake(
        "an overwrite by new files only",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.plain", source="in/a.csv", checkpoint="seen", overwrite="table")',
        "task 't': arguments 'overwrite' and 'checkpoint' exclude each other: only new files are read, so they would replace the rows of earlier files. Leave one of them out",
    ),
    Mistake(
        "a choice for clears beside a checkpoint",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.plain", source="in/a.csv", checkpoint="seen", on_clear="redo")',
        "task 't': argument 'on_clear' has no effect with 'checkpoint': the checkpoint records the ingested files, and even a cleared task does not ingest them again. Leave out one of the two",
    ),
    Mistake(
        "True as the choice for clears",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.plain", source="in/a.csv", on_clear=True)',
        "task 't': argument 'on_clear' must be 'redo' or 'skip' or 'force', got True",
    ),
    Mistake(
        "all files in every run, where they are ingested anyway",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.plain", source="in/a.csv", ingest_again=True, overwrite="table")',
        "task 't': argument 'ingest_again' has no effect: with 'overwrite' the task ingests all files in every run anyway. Leave out 'ingest_again'",
    ),
    Mistake(
        "a header as pandas has it",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.plain", source="in/a.csv", header="infer")',
        "task 't': argument 'header' must be True or False, got 'infer'",
    ),
    Mistake(
        "a column of the source with a typo",
        "run",
        'LakeIngestOperator(task_id="t", table="shop.plain", source="in/a.csv", columns={"item": "Itm"})',
        "InvalidRequestError: HERE/in/a.csv: columns={'item': 'Itm'} reads column 'Itm', which the source does not have: name one of its columns, id, item. Write columns={'Itm': 'item'} if the table has 'Itm'",
    ),
    Mistake(
        "a staged write of a Mixed table",
        "run",
        'LakeIngestOperator(task_id="t", table="shop.pair", lake_conn_id="iceberg", source="in/a.csv", stage=True)',
        "UnsupportedError: file://ICEBERG/shop/pair is a Mixed table, which has no operation 'staged': table.write(rows, commit=CommitId(…)) writes and commits at once",
    ),
    Mistake(
        "a rollback of a Mixed table",
        "run",
        'LakeRollbackOperator(task_id="t", table="shop.pair", lake_conn_id="iceberg", snapshot=1)',
        "UnsupportedError: file://ICEBERG/shop/pair is a Mixed table, which has no operation 'rollback': the stores have histories of their own; scan(as_of=…) reads an earlier state",
    ),
    Mistake(
        "a tag of a Mixed table",
        "run",
        'LakeTagOperator(task_id="t", table="shop.pair", lake_conn_id="iceberg", action="create", tag="v1")',
        "UnsupportedError: file://ICEBERG/shop/pair is a Mixed table, which has no operation 'tags': the stores have histories of their own; scan(as_of=…) reads an earlier state",
    ),
    Mistake(
        "rows for the change store of a Mixed table",
        "run",
        'LakeIngestOperator(task_id="t", table="shop.pair_change_", lake_conn_id="iceberg", source="in/a.csv")',
        "UnsupportedError: file://ICEBERG/shop/pair_change_ is the change store of a Mixed table, which plain Iceberg commits would damage, so it is read-only: write to the Mixed table itself",
    ),
    Mistake(
        "a Mixed table by an option",
        "parse",
        'LakeIngestOperator(task_id="t", table="shop.new", lake_conn_id="iceberg", source="in/a.csv", create=True, table_options={"format": "mixed"})',
        "task 't': argument 'table_options' has 'format', which only the catalog can set: leave it out. `lake --format iceberg create-table --mixed` makes a Mixed table",
    ),
    Mistake(
        "a system table",
        "parse",
        'LakeCompactOperator(task_id="t", table="shop.plain$snapshots")',
        "task 't': argument 'table' must be database.table, got 'shop.plain$snapshots': a job works on the table itself: write 'shop.plain'",
    ),
    Mistake(
        "an asset as a table",
        "parse",
        'LakeCompactOperator(task_id="t", table=lake_asset("shop.orders"))',
        "task 't': argument 'table' must be database.table, got 'lake://shop/orders': write 'shop.orders' instead of the asset's URI",
    ),
    Mistake(
        "a strategy of Iceberg tables",
        "run",
        'LakeCompactOperator(task_id="t", table="shop.plain", strategy="zorder")',
        "InvalidRequestError: strategy must be 'full' (all files) or 'minor' (only what is due), got 'zorder'. To sort the rows of a Paimon table, use order_by and order_strategy instead",
    ),
    Mistake(
        "a text where a dict of lists is wanted",
        "parse",
        'LakeCheckOperator(task_id="t", table="shop.plain", accepted_values={"item": "apple"})',
        "task 't': argument 'accepted_values' must be a dict of lists, got a dict with 'item': write a list for each name, such as {'name': ['value']}, also for a single value",
    ),
    Mistake(
        "no check",
        "parse",
        'LakeCheckOperator(task_id="t", table="shop.plain")',
        "task 't': no check was given: pass min_rows, max_rows, not_null, unique, accepted_values, freshness or conditions",
    ),
    Mistake(
        "a tag renamed without a new name",
        "parse",
        'LakeTagOperator(task_id="t", table="shop.orders", action="rename", tag="v1")',
        "task 't': action 'rename' needs argument 'new_name', the name that the tag gets: add it",
    ),
    Mistake(
        "a delete without a condition",
        "parse",
        'LakeDeleteOperator(task_id="t", table="shop.orders")',
        "task 't': missing keyword argument 'where'",
    ),
    Mistake(
        "a delete of all rows with an empty condition",
        "parse",
        'LakeDeleteOperator(task_id="t", table="shop.orders", where="")',
        "task 't': argument 'where' must be a non-empty str, got ''",
    ),
    Mistake(
        "a text without quotes in a condition",
        "run",
        'LakeDeleteOperator(task_id="t", table="shop.orders", where="item = apple")',
        "InvalidRequestError: apple in 'item = apple' is not supported: a condition compares columns with values by =, <>, <, <=, >, >=, IN, BETWEEN, LIKE and IS NULL, joined by AND, OR, NOT and parentheses; dates are written '2024-01-31', bytes X'0AFF'",
    ),
    Mistake(
        "a condition on a column with a typo",
        "run",
        'LakeUpdateOperator(task_id="t", table="shop.orders", where="itm = 1", set={"item": "fig"})',
        "InvalidRequestError: the condition names 'itm', which is not a column; the columns are id, item, dt; did you mean 'item'?",
    ),
    Mistake(
        "an update without new values",
        "parse",
        'LakeUpdateOperator(task_id="t", table="shop.orders", where="id = 1", set={})',
        "task 't': argument 'set' must be a dict with a new value for each column, got a dict with nothing in it: the dict is empty",
    ),
    Mistake(
        "an update with SQL",
        "parse",
        'LakeUpdateOperator(task_id="t", table="shop.orders", where="id = 1", set="item = 2")',
        "task 't': argument 'set' must be a dict, got a str: write {'name': 'value'}",
    ),
    Mistake(
        "an update with an expression",
        "run",
        'LakeUpdateOperator(task_id="t", table="shop.plain", where="id = 1", set={"id": "id + 1"})',
        "InvalidRequestError: 'id + 1' is not a value of column 'id', which is BIGINT: write a number",
    ),
    Mistake(
        "an update of a key",
        "run",
        'LakeUpdateOperator(task_id="t", table="shop.orders", where="item = \'apple\'", set={"id": 2})',
        "InvalidRequestError: UPDATE of rows of file://HERE/warehouse/shop.db/orders is not possible: 'id' is part of the primary key, which cannot change: delete the row and write another. Nothing was changed",
    ),
    Mistake(
        "an update of a column with a typo",
        "run",
        'LakeUpdateOperator(task_id="t", table="shop.orders", where="id = 1", set={"itm": "fig"})',
        "InvalidRequestError: 'set' names 'itm', which is not a column; the columns are id, item, dt; did you mean 'item'?",
    ),
    Mistake(
        "an update that keeps its first rows",
        "parse",
        'LakeUpdateOperator(task_id="t", table="shop.orders", where="id = 1", set={"item": "fig"}, on_clear="force")',
        "task 't': argument 'on_clear' must be 'redo' or 'skip', got 'force'",
    ),
    Mistake(
        "a delete with a position alone",
        "run",
        'LakeDeleteOperator(task_id="t", table="shop.orders", where="id = 1", read_snapshot="main/1")',
        "InvalidRequestError: read_snapshot needs conflict='transaction-order' on file://HERE/warehouse/shop.db/orders: without it, the call finds and changes the rows of the newest snapshot. Nothing was changed; pass both arguments, or leave out read_snapshot",
    ),
    Mistake(
        "a delete in optimistic order",
        "parse",
        'LakeDeleteOperator(task_id="t", table="shop.orders", where="id = 1", conflict="optimistic")',
        "task 't': argument 'conflict' must be 'transaction-order', got 'optimistic'",
    ),
    Mistake(
        "a position of a Mixed table for a delete",
        "run",
        'LakeDeleteOperator(task_id="t", table="shop.pair", lake_conn_id="iceberg", where="id = 1", read_snapshot="main/1.1")',
        "UnsupportedError: file://ICEBERG/shop/pair is a Mixed table, whose delete does not take read_snapshot: leave it out, because with conflict='transaction-order' the call itself begins a batch. To compute rows from the table, call batch = table.begin() in Python, and read with batch.scan()",
    ),
    Mistake(
        "rows of a batch in a table without a key",
        "run",
        'LakeDeleteOperator(task_id="t", table="shop.plain", where="id = 1", read_snapshot="main/1", conflict="transaction-order")',
        "UnsupportedError: file://HERE/warehouse/shop.db/plain cannot be written with conflict='transaction-order': the table has no primary key, so a row of the batch and a newer row cannot be recognised as the same: leave out read_snapshot and conflict, so that the call finds and changes the rows of the newest snapshot. Nothing was written",
    ),
    Mistake(
        "a rollback to two states",
        "parse",
        'LakeRollbackOperator(task_id="t", table="shop.orders", snapshot=1, tag="v1")',
        "task 't': give exactly one of the arguments snapshot, tag, as_of, watermark: got snapshot and tag",
    ),
    Mistake(
        "a sensor with a snapshot and a position",
        "parse",
        'LakeSnapshotSensor(task_id="t", table="shop.plain", after_snapshot=3, after_position="main/3")',
        "task 't': arguments 'after_snapshot' and 'after_position' exclude each other: leave one of them out",
    ),
]
