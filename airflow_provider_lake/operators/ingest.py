"""Lands files in a table as an Airflow task."""

from __future__ import annotations

from typing import Any

from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.request import SourceFormat

__all__ = ["LakeIngestOperator"]


class LakeIngestOperator(LakeJobOperator):
    """Appends the files of a glob to a table, once per DAG run.

    A retry or a cleared task finds what its run has published and publishes nothing twice; to
    land the same files again, start another run. A retry also notices that the snapshot it looks
    for may have expired, and fails. After a clear Airflow does not say any more when the run
    began: what has expired then is not found.

    :param source: path or glob of local files
    :param format: what the files hold; by default their ending says it. JSON means one object
        per line
    :param create: whether an absent table, and its database, is made from the columns of the
        files
    :param stage: write the files of the table and leave their publication to the job
        ``commit``: the result names the staged result under ``staged``
    """

    job = "ingest"
    request_keys = (
        "source",
        "format",
        "create",
        "stage",
    )
    commits = True
    publishes_once = True
    moves_rows = True

    def __init__(
        self,
        *,
        source: str,
        format: SourceFormat | None = None,
        create: bool = False,
        stage: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source = source
        self.format = format
        self.create = create
        self.stage = stage
        self._check_arguments()
