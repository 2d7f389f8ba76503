"""Ingests the changes of a shop's database, compacts the table and expires its snapshots.

Each run is one round of the demo. ``bin/demo`` writes the files of each round and starts the run.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, Param, get_current_context, task

from airflow_provider_lake.assets.uri import lake_asset
from airflow_provider_lake.operators.compact import LakeCompactOperator
from airflow_provider_lake.operators.expire_snapshots import LakeExpireSnapshotsOperator
from airflow_provider_lake.operators.health import LakeHealthOperator

TABLE = "shop.web_orders"

with DAG(
    "demo_orders",
    schedule=None,
    max_active_runs=1,
    # No retry publishes anything twice, so a busy machine may retry as often as needed.
    default_args={"retries": 5, "retry_delay": timedelta(seconds=2)},
    params={
        "incoming": Param("incoming", type="string", description="Folder of the CSV files to load"),
        "engine": Param("python", enum=["python", "spark"], description="Engine of the compaction"),
    },
    doc_md=__doc__,
    tags=["lake", "demo"],
):

    @task
    def land_changes(incoming: str) -> dict[str, int]:
        """Commit each CSV file in ``incoming`` as one snapshot, and return the number of rows.

        The column ``op`` has the kind of each row: insert, update or delete.
        """
        from pathlib import Path

        import pyarrow as pa
        from pyarrow import csv

        import lakeformat as lake
        from airflow_provider_lake.hooks.lake import LakeHook
        from airflow_provider_lake.jobs.identity import commit_user

        context = get_current_context()
        catalog = LakeHook().get_conn()
        catalog.create_database("shop", exist_ok=True)
        orders = catalog.create_table(
            TABLE,
            [("id", "BIGINT"), ("item", "STRING"), ("price", "BIGINT")],
            primary_key=["id"],
            # The files of a demo are small, so the sizes that count as large are small, too.
            options={
                "bucket": "1",
                "changelog-producer": "lookup",
                "target-file-size": "16 kb",
            },
            exist_ok=True,
        )
        # The commits need no start of their first attempt: this task runs after them, and only one
        # run is active at a time, so no snapshot that a retry looks for has expired.
        user = commit_user(context["ti"], TABLE)
        types = {"id": pa.int64(), "item": pa.string(), "price": pa.int64(), "op": pa.string()}
        rows = 0
        for number, path in enumerate(sorted(Path(incoming).glob("*.csv")), start=1):
            batch = csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=types))
            identity = lake.CommitId(user, number)
            kinds = batch["op"]
            report = orders.write(batch.drop_columns(["op"]), kinds=kinds, commit=identity)
            rows += report.rows
        return {"rows": rows}

    before = LakeHealthOperator(task_id="health_before", table=TABLE)
    compact = LakeCompactOperator(
        task_id="compact", table=TABLE, engine="{{ params.engine }}", outlets=[lake_asset(TABLE)]
    )
    expire = LakeExpireSnapshotsOperator(
        task_id="expire", table=TABLE, retain_max=2, retain_min=1, older_than="0 s"
    )
    after = LakeHealthOperator(task_id="health_after", table=TABLE)
    land_changes("{{ params.incoming }}") >> before >> compact >> expire >> after
