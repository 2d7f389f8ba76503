# SPDX-License-Identifier: Apache-2.0
"""Cleared tasks: a task that is cleared after its success does the work again.

A task's commit has an identifier. A second commit with the same identifier publishes nothing. A
retry keeps the identifier, so the commit of the task is published once.

At its end the task records its success in the directory of the table. If the task is cleared, or
its run is deleted and created again, the next attempt finds the record. It commits with a new
identifier, so the work is done again. With ``on_clear="skip"`` it keeps the result instead.

A retry finds a record only if Airflow did not get the report of the success. Such a retry keeps the
recorded result.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast

from airflow_provider_lake.jobs.identity import first_try_millis, now_millis
from airflow_provider_lake.jobs.job import LakeJobMixin
from spark_jobs.job_requests.common import CommitKeys

if TYPE_CHECKING:
    from airflow.sdk import Context

    from lakeformat import CommitId, RunRecord, Table
    from spark_jobs.job_requests.common import JobRequest
    from spark_jobs.runtime.job import JobResult, Outcome

__all__ = ["LakeRepeatedMixin", "OnClear", "replaced_snapshot", "would_add_again"]

OnClear: TypeAlias = Literal["redo", "skip", "force"]
"""The choice for a task that is cleared after a success: ``redo`` does the work again and deletes
the rows without a key that the last success added, ``force`` does it again and keeps these rows,
``skip`` does nothing.
"""


class LakeRepeatedMixin(LakeJobMixin):
    """The part of an operator that distinguishes a cleared task from a retry."""

    publishes_once: ClassVar[bool] = False
    """True if the work of the job is one commit: when this commit is published, the task has no
    more work.
    """
    on_clear: OnClear | None = None
    """The choice for a task that is cleared after a success; None means ``redo``."""
    _own_commit: CommitId | None = None
    """The commit identity of this attempt; None before it is known."""
    _kept: RunRecord | None = None
    """The record of the success whose result this attempt keeps; None if it does its work."""

    if TYPE_CHECKING:
        table: str

    def _commit_id(self, context: Context) -> CommitId:
        """Return the commit identity of this attempt. A retry has the identity of the earlier
        attempts. A cleared task that does its work again has a new identity.
        """
        self._own_commit = self._identity_of_try(context)
        return self._own_commit

    def _identity_of_try(self, context: Context) -> CommitId:
        self._kept = None
        first = self.lake_hook.commit_id(context, self.table, is_resumed=self._is_resumed)
        table = self._found_table() if self._is_repeated() else None
        record = None if table is None else table.find_run(first.user)
        if table is None or record is None:
            return first
        if (why := self._reason_to_keep(record, context)) is not None:
            self._kept = record
            if record.snapshot_id is None:
                why = "the earlier success published no snapshot, so the work is done again"
        elif record.input is not None and record.input == self._input():
            why = "the staged results are published already: clear the tasks that staged them, too"
        if why is None:
            return self._again(table, first, record)
        self._tell(why)
        return self._unrecorded(table, first, record) or replace(
            first, identifier=record.identifier
        )

    def _reason_to_keep(self, record: RunRecord, context: Context) -> str | None:
        """Return the reason why the task keeps the result of a recorded success and does nothing;
        None if the task was cleared and must do its work again.
        """
        if not self._is_cleared(record, context):
            return (
                "an earlier attempt of this run has succeeded, so this attempt does nothing; to "
                "repeat the work, clear the task"
            )
        if self.on_clear == "skip":
            return (
                "the task was cleared after a success, or its run was created again: "
                "on_clear='skip' keeps its result"
            )
        return None

    def _is_cleared(self, record: RunRecord, context: Context) -> bool:
        """Return True if the task was cleared, or its run created again, after the recorded
        success.

        A clear sets ``max_tries`` to the tries so far plus ``retries``, so a changed ``max_tries``
        shows a clear. If ``retries`` was lowered, ``max_tries`` may be unchanged. Then the task was
        cleared if two conditions are met: the run has a new ``clear_number``, and the tries before
        the last clear (``max_tries`` minus ``retries``) include the recorded attempt.
        """
        mark, clears, stock = _mark_of(context), _clears_of(context), cast("Any", self)
        if mark is None or mark != record.mark or _is_of_another_run(record, context):
            return True
        if clears == record.clears or None in (clears, record.clears) or record.attempt is None:
            return False
        return bool(mark - (stock.retries or 0) >= record.attempt)

    def _recorded_result(self, request: JobRequest) -> JobResult | None:
        """Return the recorded result if the job must not run; None if it may run.

        The job must not run if two conditions are met: this attempt keeps the result of a recorded
        success, and the snapshot of that success is not found. The job would commit again, or fail.
        But if the snapshot is found, the job recognises its own commit, and publishes nothing. If
        ``publishes_once`` is False, the job may always run.
        """
        kept, commit = self._kept, self._own_commit
        if kept is None or kept.snapshot_id is None or commit is None or not self.publishes_once:
            return None
        from lakeformat import CommitUndecidableError
        from spark_jobs.runtime.job import Job

        if (table := self._found_table()) is None:
            return None
        with suppress(CommitUndecidableError):
            if table.find_commit(commit) is not None:
                return None
        outcome = _outcome_of(table, kept.snapshot_id)
        return Job(self.job, self.request, {}, operation="write").answer(request, lambda _: outcome)

    def _again(self, table: Table, first: CommitId, record: RunRecord) -> CommitId:
        """Return the commit identity with which a cleared task does its work again. ``first`` is
        the identity of the task before any clear.

        The first attempt after the clear stores its start time and the newest snapshot in the
        record, for later attempts.
        """
        adds = self._adds_rows(table)
        if record.again_millis is None:
            head = table.latest_snapshot()
            identity = None if head is None else head.identity
            if adds and record.snapshot_id is None:
                record = _with_late_snapshot(table, record)
            record = replace(record, again_millis=now_millis(), again_head=identity)
            table.record_run(record)
        kept = record.snapshot_id if adds else None
        replaces = None if self.on_clear == "force" else kept
        how = "" if kept is None else f", and the new commit replaces the rows of snapshot {kept}"
        if kept is not None and replaces is None:
            how = f", and on_clear='force' keeps the rows of snapshot {kept}"
        self._tell(
            "the task was cleared after a success, or its run was created again: its work is done "
            f"again{how}"
        )
        return replace(_next_of(first, record), replaces=replaces)

    def _unrecorded(self, table: Table, first: CommitId, record: RunRecord) -> CommitId | None:
        """Return the identity of an earlier repetition that was published, but ended before it
        recorded its success; None if there is none, or if its snapshot may have expired.
        """
        from lakeformat import CommitUndecidableError

        if record.again_millis is None:
            return None
        commit = _next_of(first, record)
        with suppress(CommitUndecidableError):
            if table.find_commit(commit) is not None:
                return commit
        return None

    def _record_success(self, result: JobResult, context: Context) -> None:
        """Record the success in the directory of the table. Without the record, a cleared task does
        not do its work again. If the record cannot be written, log a warning.
        """
        from lakeformat import LakeError, RunRecord

        if not issubclass(self.request, CommitKeys) or not self._is_repeated():
            return
        stock: Any = self  # every operator has a log
        commit = self._own_commit or self._commit_id(context)
        try:
            table = self._found_table()
            if table is None:
                return
            found = table.find_run(commit.user)
            if found is not None and found.identifier > commit.identifier:
                return  # a later attempt has succeeded before this one, which outlived its task
            table.record_run(
                RunRecord(
                    user=commit.user,
                    identifier=commit.identifier,
                    snapshot_id=result["snapshot_id"],
                    mark=_mark_of(context),
                    clears=_clears_of(context),
                    attempt=getattr(context["ti"], "try_number", None),
                    input=self._input(),
                    began_millis=first_try_millis(context["dag_run"]),
                )
            )
        except LakeError as reason:
            stock.log.warning(
                "%s: the success could not be recorded (%s), so a clear of this task will do "
                "nothing. To repeat its work, trigger another run of the DAG",
                self.table,
                reason,
            )

    def _found_table(self) -> Table | None:
        from lakeformat import NotFoundError

        try:
            return self.lake_hook.table(self.table)
        except NotFoundError:
            return None

    def _is_repeated(self) -> bool:
        """Return True if a cleared task does its work again. Return False for a job that publishes
        nothing, such as a dry run, and for a job that itself records which input it has finished.
        """
        return not getattr(self, "is_dry_run", False)

    def _adds_rows(self, table: Table) -> bool:
        """Return True if doing the work again would add the same rows a second time."""
        return False

    def _input(self) -> str | None:
        """Return text that identifies the input, if it can be published only once; else None."""
        return None

    def _tell(self, sentence: str) -> None:
        if self._is_resumed:
            return
        stock: Any = self  # every operator has a log
        stock.log.info("%s: %s", self.table, sentence)


def would_add_again(table: Table, *, is_ordered: bool) -> bool:
    """Return True if a repeated write would add the same rows a second time. ``is_ordered`` is True
    for ``conflict="transaction-order"``.
    """
    if "replace_commit" in table.instead:
        return not table.replaces_repeated_rows
    return not is_ordered


def replaced_snapshot(table: Table, first: CommitId, *, is_first_try: bool) -> int | None:
    """Return the number of the snapshot whose rows a redo of a task replaces; None if there is
    none. ``first`` is the identity of the task before any clear.

    If an attempt ended after its commit, but before it recorded its success, its snapshot is found
    by the commit identity. In the first try of a run there was no such attempt.
    """
    record = table.find_run(first.user)
    if record is None:
        return None if is_first_try else _snapshot_of(table, first)
    if record.again_millis is not None:
        again = _snapshot_of(table, _next_of(first, record))
        if again is not None:
            return again
    number = record.snapshot_id
    if number is None or not table.numbers_snapshots:
        return number
    snapshot = table.snapshot(number)
    # After a rollback, a commit of another user may have the number.
    is_other = snapshot is not None and snapshot.commit_user != first.user
    return None if is_other else number


def _snapshot_of(table: Table, commit: CommitId) -> int | None:
    """Return the number of the snapshot of a commit; None if it is not found."""
    from lakeformat import CommitUndecidableError, InvalidRequestError

    with suppress(CommitUndecidableError, InvalidRequestError):
        if (found := table.find_commit(commit)) is not None:
            return found.snapshot_id
    return None


def _outcome_of(table: Table, snapshot_id: int) -> Outcome:
    """Return the outcome of a recorded success; its snapshot may have expired."""
    from spark_jobs.runtime.job import Outcome

    reason = (
        f"an earlier attempt of this run has published snapshot {snapshot_id}; nothing was done"
    )
    return Outcome(
        reason=reason,
        report={"table": table.location, "snapshot_id": snapshot_id, "reason": reason},
        snapshot_ids=(snapshot_id,),
        numbered=table.numbers_snapshots,
        replayed=True,
    )


def _next_of(first: CommitId, record: RunRecord) -> CommitId:
    """Return the identity of the repetition after a recorded success."""
    return replace(
        first,
        identifier=record.identifier + 1,
        first_try_millis=record.again_millis,
        first_try_head=record.again_head,
    )


def _with_late_snapshot(table: Table, record: RunRecord) -> RunRecord:
    """Return ``record`` with the snapshot of its commit; unchanged if there is no snapshot.

    If an attempt published nothing, the record of its success has no snapshot. A later attempt with
    the same identity may have published a snapshot, but ended before it recorded its own success.
    """
    from lakeformat import CommitId

    commit = CommitId(record.user, record.identifier, first_try_millis=record.began_millis)
    return replace(record, snapshot_id=_snapshot_of(table, commit))


def _is_of_another_run(record: RunRecord, context: Context) -> bool:
    """Return True if the recorded success is of a deleted run that had the same id.

    The new run has a later start, or fewer clears. But two runs of ``dag.test()`` for the same
    logical date have the same start. Then the run is new if the number of this attempt is not
    higher than that of the recorded attempt.
    """
    run, clears = context["dag_run"], _clears_of(context)
    if clears is not None and record.clears is not None and clears < record.clears:
        return True
    began = first_try_millis(run)
    if began is None or record.began_millis is None:
        return False
    if began == record.began_millis and run.start_date == getattr(run, "logical_date", None):
        return record.attempt is not None and context["ti"].try_number <= record.attempt
    return began > record.began_millis


def _mark_of(context: Context) -> int | None:
    return getattr(context["ti"], "max_tries", None)


def _clears_of(context: Context) -> int | None:
    return getattr(context["dag_run"], "clear_number", None)
