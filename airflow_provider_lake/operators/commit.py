# SPDX-License-Identifier: Apache-2.0
"""Publishes the staged results of earlier tasks, as an Airflow task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from airflow_provider_lake.arguments.task_arguments import TableJobArguments
from airflow_provider_lake.jobs.cleared_tasks import OnClear
from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.commit import StagedCommitRequest

if TYPE_CHECKING:
    from lakeformat import Table

__all__ = ["LakeCommitOperator"]


class LakeCommitOperator(LakeJobOperator):
    """Publishes staged results in one snapshot, once per DAG run.

    Give it ``ingest.output["staged"]`` of each ``LakeIngestOperator(stage=True)``. The rows of all
    these tasks become visible at once, or none.

    :param staged: addresses of staged results: ``staged`` in the results of ``LakeIngestOperator``
    :param on_clear: if the task is cleared after a success: ``redo`` does the work again, and the
        same commit deletes the rows of the first run; ``force`` does the work again and keeps these
        rows; ``skip`` does nothing. Default: ``redo``
    """

    job = "commit"
    request = StagedCommitRequest
    publishes_once = True

    def __init__(
        self,
        *,
        staged: Sequence[str],
        on_clear: OnClear | None = None,
        **kwargs: Unpack[TableJobArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.staged = staged
        self.on_clear = on_clear
        self._check_arguments()

    def _adds_rows(self, table: Table) -> bool:
        return True

    def _input(self) -> str:
        """Return the addresses of the staged results as one text. These results can be published
        only once.
        """
        return " ".join(sorted(self.staged))
