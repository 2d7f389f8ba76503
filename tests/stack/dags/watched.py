"""Started by commits of any writer to a table; reads the changes since its last run."""

from airflow.sdk import DAG, AssetWatcher, get_current_context, task

from airflow_provider_lake.assets.uri import lake_asset
from airflow_provider_lake.triggers.snapshot_event import LakeSnapshotEventTrigger

TRIGGER = LakeSnapshotEventTrigger(table="shop.orders", after_snapshot=0, poll_interval=2)
COMMITS = AssetWatcher("commits", TRIGGER)

with DAG("watched", schedule=[lake_asset("shop.orders", watchers=[COMMITS])], max_active_runs=1):

    @task
    def read_what_is_new():
        from airflow_provider_lake.assets.snapshot_range import snapshot_range

        part = snapshot_range(get_current_context())
        ids = []
        if not part.is_empty:
            changes = part.open_table().changes(after=part.after, upto=part.upto)
            ids = changes.to_arrow()["id"].to_pylist()
        part.acknowledge()
        return {"after": part.after.number, "upto": part.upto.number, "ids": ids}

    read_what_is_new()
