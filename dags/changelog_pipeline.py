# SPDX-License-Identifier: Apache-2.0
"""Keeps totals per item up to date from the changes of a table, each counted once.

Prerequisites: a table ``shop.orders`` with the columns ``item`` and ``price``, append-only or with
a ``changelog-producer``; a triggerer runs. With the producer ``lookup`` or ``full-compaction``,
only compactions of the table publish its changes. The connection ``lake_default`` names the
warehouse. The first run creates ``shop.item_totals``.

The idea: a run reads from the position of this DAG's consumer up to the newest snapshot in the
run's events. It publishes the totals, and then moves the consumer. Airflow may give several events
to one run, or an older event to a later run; still each change is counted once. The identity of
the totals' commit contains the position. So if a run dies after the commit, before it has moved the
consumer, a retry or a later run continues after that commit.

The changes do not contain the rows of overwrites. For example, a cleared ingest task overwrites its
earlier rows if the table has no primary key. After an overwrite the run adds up all rows of
``shop.orders``, and replaces the totals. But with the producer ``lookup`` or ``full-compaction``
the run fails instead, and the log names the next step.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, AssetWatcher, get_current_context, task

from airflow_provider_lake.assets.uri import lake_asset
from airflow_provider_lake.triggers.snapshot_event import LakeSnapshotEventTrigger

ORDERS = "shop.orders"
TOTALS = "shop.item_totals"
# True for a table with a changelog-producer: then only commits with a changelog start a run.
HAS_CHANGELOG = False
# False ignores overwrites, so rows of expired partitions remain in the totals.
FOLLOWS_OVERWRITES = True
CHANGES = AssetWatcher(
    "changes_of_orders", LakeSnapshotEventTrigger(table=ORDERS, changelog=HAS_CHANGELOG)
)


def open_totals() -> Any:
    """Open the table of the totals, and create it in the first run."""
    from airflow_provider_lake.hooks.lake import LakeHook

    return (
        LakeHook()
        .get_conn()
        .create_table(
            TOTALS,
            [("item", "STRING NOT NULL"), ("total", "BIGINT"), ("orders", "BIGINT")],
            primary_key=["item"],
            options={
                "bucket": "1",
                "merge-engine": "aggregation",
                "fields.default-aggregate-function": "sum",
            },
            exist_ok=True,
        )
    )


def all_rows(table: Any, position: Any) -> Any:
    """Return all rows at a position, each as an inserted row."""
    import pyarrow as pa

    rows = table.scan(snapshot=position).to_arrow()
    return rows.append_column("rowkind", pa.repeat("+I", len(rows)))


def sums_per_item(changes: Any) -> Any:
    """Add up the changes of each item; an old row counts as negative."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_new = pc.is_in(changes["rowkind"], pa.array(["+I", "+U"]))
    price = changes["price"].cast(pa.int64())
    signed = pc.if_else(is_new, price, pc.negate(price))
    one = pc.if_else(is_new, 1, -1).cast(pa.int64())
    rows = pa.table({"item": changes["item"], "total": signed, "orders": one})
    sums = rows.group_by("item").aggregate([("total", "sum"), ("orders", "sum")])
    return sums.rename_columns(["item", "total", "orders"])


with DAG(
    dag_id="changelog_pipeline",
    schedule=[lake_asset(ORDERS, watchers=[CHANGES])],
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=1)},
    doc_md=__doc__,
    tags=["lake"],
):

    @task(outlets=[lake_asset(TOTALS)])
    def add_to_totals() -> dict[str, Any]:
        """Add the changes to the totals, once."""
        import lakeformat as lake
        from airflow_provider_lake.assets.snapshot_range import snapshot_range
        from airflow_provider_lake.compat import AirflowFailException, AirflowSkipException

        context = get_current_context()
        part = snapshot_range(context, ORDERS)
        if part.is_empty:
            raise AirflowSkipException(
                f"the changes up to position {part.upto} have already been read"
            )
        if part.rewound:
            raise AirflowFailException(  # a retry would fail in the same way
                f"{ORDERS} was rolled back or recreated: drop the totals (lake drop-table "
                f"{TOTALS}), set the consumer to the first snapshot (lake consumer set {ORDERS} "
                f"{part.consumer} --next 1), and run this DAG by hand"
            )
        table = part.open_table()
        producer = table.schema.options.get("changelog-producer", "none")
        if table.schema.primary_keys and producer == "none":
            raise AirflowFailException(
                f"{ORDERS} has a primary key and no changelog, so the old values of updated rows "
                f"are unknown: run lake set-option {ORDERS} changelog-producer=lookup, then lake "
                f"compact {ORDERS}. Then set HAS_CHANGELOG = True in the file of this DAG, so that "
                "only commits with a changelog start a run"
            )
        totals = open_totals()
        # The identifier of a commit is the last snapshot that it has counted.
        ours = [each for each in totals.snapshots() if each.commit_user == part.consumer]
        counted = max((each.commit_identifier for each in ours), default=0)
        if counted >= part.upto.number:
            part.acknowledge()
            raise AirflowSkipException(f"an earlier attempt has counted position {part.upto}")
        after = max(part.after, table.position(counted))
        snapshots = table.since(after, part.upto).snapshots
        has_overwrite = FOLLOWS_OVERWRITES and any(s.commit_kind == "OVERWRITE" for s in snapshots)
        if has_overwrite and producer in ("lookup", "full-compaction"):
            raise AirflowFailException(
                f"{ORDERS} has an overwrite after position {after}. The changelog does not contain "
                "the changes of an overwrite, so the totals were not changed. If the overwrite is "
                "an expiry of partitions or a rescale, set FOLLOWS_OVERWRITES = False in the file "
                f"of this DAG. Otherwise, while nothing writes to {ORDERS}, compact it fully, "
                "compute the totals again from all rows, and run: lake consumer set "
                f"{ORDERS} {part.consumer} --next N, where N is the number of the newest snapshot "
                "plus 1"
            )
        if has_overwrite:
            changes = all_rows(table, part.upto)
        else:
            changes = table.changes(after=after, upto=part.upto).to_arrow()
        if not len(changes) and producer in ("lookup", "full-compaction"):
            raise AirflowSkipException(
                f"no changes up to position {part.upto}: only compactions publish the changes of "
                f"{ORDERS}. Compact it with LakeChangelogOperator, and set HAS_CHANGELOG = True in "
                "the file of this DAG, so that only commits with changes start a run"
            )
        commit = lake.CommitId(part.consumer, part.upto.number)
        replaced = "table" if has_overwrite else None
        report = totals.write(sums_per_item(changes), commit=commit, overwrite=replaced)
        part.acknowledge()
        return {**part.to_dict(), "published": report.snapshot_id, "changes": len(changes)}

    add_to_totals()
