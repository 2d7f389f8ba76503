"""Lands files in a table as an Airflow task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from airflow_provider_lake.failures import failing_for_good
from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.identity import ONLY_COMMIT, commit_user, first_try_millis

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["LakeIngestOperator"]


class LakeIngestOperator(BaseOperator):
    """Appends the files of a glob to a table, once per DAG run, without Spark.

    A retry or a cleared task finds what its run has published and publishes nothing twice; to
    land the same files again, start another run. Returns the report of the commit.

    A retry also notices that the snapshot it looks for may have expired, and fails. After a clear
    Airflow does not say any more when the run began: what has expired then is not found.
    """

    template_fields: Sequence[str] = ("source", "table", "lake_conn_id")

    def __init__(
        self,
        *,
        source: str,
        table: str,
        lake_conn_id: str = LakeHook.default_conn_name,
        create: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source = source
        self.table = table
        self.lake_conn_id = lake_conn_id
        self.create = create

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the job ``ingest`` with the identity of this task."""
        from spark_jobs.ingest import run

        with failing_for_good():
            return run(self._request(context))

    def _request(self, context: Context) -> dict[str, Any]:
        hook = LakeHook(self.lake_conn_id)
        began = first_try_millis(context["dag_run"])
        since = {} if began is None else {"commit_first_try_millis": began}
        return {
            "warehouse": hook.warehouse,
            "catalog_options": hook.catalog_options,
            "table": self.table,
            "source": self.source,
            "create": self.create,
            "commit_user": commit_user(context["ti"], self.table),
            "commit_identifier": ONLY_COMMIT,
            **since,
        }
