"""The DAGs of ``benchmarks.airflow_speed``. Two have one task each, which works on table metadata.
The third one runs when a watcher sees a commit.
"""

from airflow.sdk import DAG, AssetWatcher, task

from airflow_provider_lake.assets.uri import lake_asset
from airflow_provider_lake.operators.expire_snapshots import LakeExpireSnapshotsOperator
from airflow_provider_lake.operators.health import LakeHealthOperator
from airflow_provider_lake.triggers.snapshot_event import LakeSnapshotEventTrigger

POLL_SECONDS = 5
COMMITS = AssetWatcher(
    "commits", LakeSnapshotEventTrigger(table="bench.watched", poll_interval=POLL_SECONDS)
)

with DAG("watched", schedule=[lake_asset("bench.watched", watchers=[COMMITS])], max_active_runs=1):

    @task
    def look() -> None:
        """Do nothing; a watcher runs only if a DAG waits for its asset."""

    look()


with DAG("health", schedule=None):
    LakeHealthOperator(task_id="work", table="bench.orders")

with DAG("expire_snapshots", schedule=None):
    LakeExpireSnapshotsOperator(task_id="work", table="bench.orders", older_than="7 d")
