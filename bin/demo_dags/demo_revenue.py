"""Keeps the revenue per item up to date from the changes of the orders.

The event of the asset ``lake://shop/web_orders`` starts this DAG.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, get_current_context, task

from airflow_provider_lake.assets.uri import lake_asset

ORDERS, REVENUE = "shop.web_orders", "shop.revenue"

with DAG(
    "demo_revenue",
    schedule=[lake_asset(ORDERS)],
    max_active_runs=1,
    # No retry publishes anything twice, so a busy machine may retry as often as needed.
    default_args={"retries": 5, "retry_delay": timedelta(seconds=2)},
    doc_md=__doc__,
    tags=["lake", "demo"],
):

    @task(outlets=[lake_asset(REVENUE)])
    def add_changes() -> dict[str, Any]:
        """Add the changes that this DAG has not read yet; a retry does not add them again."""
        import pyarrow as pa
        import pyarrow.compute as pc

        import lakeformat as lake
        from airflow_provider_lake.assets.snapshot_range import snapshot_range
        from airflow_provider_lake.hooks.lake import LakeHook
        from airflow_provider_lake.jobs.identity import ONLY_COMMIT, commit_user, first_try_millis

        context = get_current_context()
        part = snapshot_range(context)
        if part.is_empty:
            return part.to_dict()
        changes = part.open_table().changes(after=part.after, upto=part.upto).to_arrow()
        is_new = pc.is_in(changes["rowkind"], pa.array(["+I", "+U"]))
        signed = pc.if_else(is_new, changes["price"], pc.negate(changes["price"]))
        sums = pa.table({"item": changes["item"], "revenue": signed}).group_by("item")
        rows = sums.aggregate([("revenue", "sum")]).rename_columns(["item", "revenue"])
        revenue = (
            LakeHook()
            .get_conn()
            .create_table(
                REVENUE,
                [("item", "STRING"), ("revenue", "BIGINT")],
                primary_key=["item"],
                options={
                    "bucket": "1",
                    "merge-engine": "aggregation",
                    "fields.revenue.aggregate-function": "sum",
                },
                exist_ok=True,
            )
        )
        began = first_try_millis(context["dag_run"])
        user = commit_user(context["ti"], REVENUE)
        report = revenue.write(
            rows, commit=lake.CommitId(user, ONLY_COMMIT, first_try_millis=began)
        )
        part.acknowledge()
        return {**part.to_dict(), "changes": len(changes), "published": report.snapshot_id}

    add_changes()
