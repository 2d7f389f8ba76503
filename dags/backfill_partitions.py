# SPDX-License-Identifier: Apache-2.0
"""Replaces one day's partition with that day's files; any day can be run again.

Prerequisites: files such as ``incoming/orders/2024-01-31/part-1.csv`` with the columns ``id``,
``item`` and ``price``, where the worker can read them. If a file has other columns, or a day has no
file, the task fails and replaces nothing. Change ``incoming`` when triggering, or here. The
connection ``lake_default`` names the warehouse; without it, tables are in ``./warehouse``.

The idea: a run owns one partition and replaces it in one commit. To repair a wrong day, run it
again; to repair a year:

    airflow backfill create --dag-id backfill_partitions --from-date 2024-01-01 \\
        --to-date 2024-12-31 --reprocess-behavior completed --max-active-runs 4

Unlike an append, this needs no commit identity: replacing a partition twice has the same result.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param, get_current_context, task

from airflow_provider_lake.assets.uri import lake_asset
from airflow_provider_lake.compat import CronDataIntervalTimetable

TABLE = "shop.daily_orders"

with DAG(
    dag_id="backfill_partitions",
    schedule=CronDataIntervalTimetable("@daily", timezone="UTC"),
    catchup=False,
    params={
        "incoming": Param(
            "incoming/orders",
            type="string",
            description="The folder that contains a folder for each day, such as 2024-01-31",
        )
    },
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
    doc_md=__doc__,
    tags=["lake"],
):

    @task(outlets=[lake_asset(TABLE)])
    def replace_day(folder: str, day: str) -> dict[str, Any]:
        """Replace the partition of a day with the rows of its folder."""
        import pyarrow as pa
        import pyarrow.dataset as ds

        from airflow_provider_lake.hooks.lake import LakeHook
        from airflow_provider_lake.outlet_events import announce

        catalog = LakeHook().get_conn()
        catalog.create_database(TABLE.partition(".")[0], exist_ok=True)
        table = catalog.create_table(
            TABLE,
            [("id", "BIGINT"), ("item", "STRING"), ("price", "BIGINT"), ("dt", "STRING")],
            partition_by=["dt"],
            exist_ok=True,
        )
        columns = pa.schema([("id", pa.int64()), ("item", pa.string()), ("price", pa.int64())])
        files = ds.dataset(f"{folder}/{day}", format="csv", schema=columns)
        if not files.files:
            raise FileNotFoundError(f"{folder}/{day} has no file: no row was replaced")
        for file in files.get_fragments():  # Arrow reads a missing column as NULL
            if sorted(file.physical_schema.names) != sorted(columns.names):
                raise ValueError(
                    f"{file.path} has the columns {file.physical_schema.names}, not "
                    f"{columns.names}: no row was replaced. Correct the file"
                )
        rows = files.to_table()
        rows = rows.append_column("dt", pa.array([day] * len(rows), pa.string()))
        report = table.write(rows, overwrite={"dt": day})
        published = {"snapshot_id": report.snapshot_id, "table": TABLE, "rows": report.rows}
        if report.snapshot_id is not None:
            context = get_current_context()
            announce(context, context["outlets"], published)
        return published

    replace_day("{{ params.incoming }}", "{{ data_interval_start | ds }}")
