# SPDX-License-Identifier: Apache-2.0
"""Publishes the staged results of earlier tasks, as an Airflow task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Unpack

from airflow_provider_lake.arguments.task_arguments import TableJobArguments
from airflow_provider_lake.jobs.cleared_tasks import OnClear
from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.commit import StagedCommitRequest

if TYPE_CHECKING:
    from lakeformat import InvalidRequestError, Table

__all__ = ["LakeCommitOperator"]


class LakeCommitOperator(LakeJobOperator):
    """Publishes staged results in one snapshot, once per DAG run.

    Give it ``ingest.output["staged"]`` of each ``LakeIngestOperator(stage=True)``. The rows of all
    these tasks become visible together: a reader sees all of them, or none.

    :param staged: addresses of staged results: ``staged`` in the results of ``LakeIngestOperator``
    :param on_clear: if the task is cleared after a success: ``redo`` does the work again. In a
        Paimon table with a primary key, each new row replaces the row of its key, and other rows
        that the last success added are kept. The same holds in an Iceberg table for rows that were
        staged with ``upsert_by`` or from change messages. In all other cases the new commit deletes
        the rows that the last success added. ``force`` does the work again without this deletion;
        ``skip`` does nothing. Default: ``redo``
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

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        from lakeformat import InvalidRequestError

        with super()._guarded():
            try:
                yield
            except InvalidRequestError as reason:
                self._refuse_other_results(reason)
                raise

    def _refuse_other_results(self, reason: InvalidRequestError) -> None:
        """Raise ``InvalidRequestError``, with advice, if this task has published other staged
        results before.

        If that commit was not recorded, record it now. After that, a user can clear the task to
        publish the new results.
        """
        from lakeformat import InvalidRequestError, RunRecord

        commit, table = self._own_commit, self._found_table()
        if commit is None or table is None or not str(reason).startswith(str(commit)):
            return
        if (done := table.find_commit(commit)) is None:
            return
        record = table.find_run(commit.user)
        if record is None or record.identifier < commit.identifier:
            table.record_run(
                RunRecord(
                    user=commit.user, identifier=commit.identifier, snapshot_id=done.snapshot_id
                )
            )
        step = "replace on_clear='skip' by 'redo', then " if self.on_clear == "skip" else ""
        raise InvalidRequestError(
            f"{self.table}: this task has published other staged results before, as snapshot "
            f"{done.snapshot_id}, so nothing was published now. To publish the new results, {step}"
            "clear this task"
        ) from reason

    def _adds_rows(self, table: Table) -> bool:
        return True

    def _input(self) -> str:
        """Return text that identifies the input: the addresses of the staged results, which can be
        published only once.
        """
        return " ".join(sorted(self.staged))
