# SPDX-License-Identifier: Apache-2.0
"""Restores an earlier state of a table, as an Airflow task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, Unpack

from airflow_provider_lake.arguments.task_arguments import TableJobArguments
from airflow_provider_lake.jobs.identity import now_millis
from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.rollback import RollbackRequest
from spark_jobs.job_requests.values import Moment

if TYPE_CHECKING:
    from airflow.sdk import Context

    from lakeformat import CommitId

__all__ = ["LakeRollbackOperator"]


class LakeRollbackOperator(LakeJobOperator):
    """Restores an earlier snapshot of a Paimon or Iceberg table. Give one of the arguments
    ``snapshot``, ``tag``, ``as_of`` and ``watermark``.

    :param snapshot: the number of the snapshot; in an Iceberg table its id
    :param tag: the tag of the snapshot
    :param as_of: restore the snapshot that was the newest at this time
    :param watermark: restore the last snapshot whose watermark, in epoch milliseconds, is at most
        this value. Only for Paimon tables
    :param as_latest: True publishes the old rows of a Paimon table as a new snapshot; False deletes
        the newer snapshots instead. In an Iceberg table the branch moves back to the old snapshot,
        and False is refused
    :param force: with ``as_latest=False``: delete the newer snapshots even if tags or branches need
        them
    :param dry_run: only report what would be done
    """

    job = "rollback"
    request = RollbackRequest
    waits_for = ("watermark",)
    _began_millis: int | None = None

    def __init__(
        self,
        *,
        snapshot: int | None = None,
        tag: str | None = None,
        as_of: Moment | None = None,
        watermark: int | None = None,
        as_latest: bool = True,
        force: bool = False,
        dry_run: bool = False,
        **kwargs: Unpack[TableJobArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.snapshot = snapshot
        self.tag = tag
        self.as_of = as_of
        self.watermark = watermark
        self.as_latest = as_latest
        self.force = force
        self.is_dry_run = dry_run
        self._check_arguments()

    def _commit_id(self, context: Context) -> CommitId:
        """Return the commit identity of this attempt.

        Usually ``first_try_millis`` is the start of the DAG run, and ``first_try_head`` is the
        newest snapshot at the start of the first attempt. Suppose that ``first_try_head`` is
        unknown, and that another task has rolled back the same Iceberg table since the start of the
        run. This rollback would be taken for a rollback by this task. So in a first attempt without
        ``first_try_head`` the identity has no ``first_try_millis`` either: there is no earlier
        commit to find.

        But after a deferral, the process of this first attempt may have published the commit. Then
        ``first_try_millis`` is a time before the start of that process, or the start of the DAG run
        if that time is unknown.
        """
        commit = super()._commit_id(context)
        if not self._is_resumed:
            self._began_millis = now_millis()
        is_first = context["ti"].try_number == 1 and self._kept is None
        if not is_first or commit.first_try_head is not None:
            return commit
        if not self._is_resumed:
            return replace(commit, first_try_millis=None)
        if self._began_millis is None:
            return commit
        return replace(commit, first_try_millis=self._began_millis)

    def defer(self, **given: Any) -> NoReturn:
        """Defer the task. If this attempt has started the process of the job, pass a time before
        the start of that process to ``execute_complete``.
        """
        if self._supervised is not None:  # it has started the process
            given["kwargs"] = {"began_millis": self._began_millis}
        super().defer(**given)

    def execute_complete(
        self, context: Context, event: Mapping[str, Any], began_millis: int | None = None
    ) -> Any:
        """Return the result of the process or driver for which the trigger has waited.

        ``began_millis`` is a time before the start of the process, in epoch milliseconds. It is
        None for a driver on a cluster. It is also None if an earlier attempt started the process,
        or if an earlier release of the provider deferred the task.
        """
        self._began_millis = began_millis
        return super().execute_complete(context, event)
