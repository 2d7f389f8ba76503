# SPDX-License-Identifier: Apache-2.0
"""Checks rows before or after they are published, as an Airflow task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Unpack

from airflow_provider_lake.arguments.open_values import is_open, sources_of
from airflow_provider_lake.arguments.task_arguments import TableJobArguments
from airflow_provider_lake.jobs.cleared_tasks import replaced_snapshot
from airflow_provider_lake.jobs.identity import (
    ONLY_COMMIT,
    TaskIdentity,
    commit_user,
    earliest_millis,
)
from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.check import CheckRequest
from spark_jobs.job_requests.common import Value

if TYPE_CHECKING:
    from airflow.sdk import Context

    from spark_jobs.job_requests.common import JobRequest

__all__ = ["LakeCheckOperator"]

_LATER = "known when the task runs"
_RESULT_KEY = "return_value"


class LakeCheckOperator(LakeJobOperator):
    """Checks rows; give at least one check. If a check fails, the task fails at once, without
    retries. A null fails only ``not_null``.

    Between ``LakeIngestOperator(stage=True)`` and ``LakeCommitOperator`` it checks the staged rows,
    so that no reader sees bad rows. The member ``staged`` of the result has their addresses for the
    commit. The error names each failed check, with the number of bad rows, examples and advice. The
    result is pushed to XCom even if a check fails.

    :param staged: addresses of staged results: ``staged`` in the results of ``LakeIngestOperator``.
        Default: the published rows
    :param replaces: with ``staged``: the number of a snapshot (in an Iceberg table its id) whose
        rows the commit will replace; ``unique`` ignores these rows. Default: if the
        ``LakeCommitOperator`` downstream of this task has already published a snapshot in the same
        DAG run, that snapshot; otherwise, or if that operator has ``on_clear="force"``, None. A
        mapped ``LakeCommitOperator`` is found only if its ``expand`` has a single argument, which
        uses the results of this task. Between the two tasks, these results may pass through other
        mapped tasks, if the ``expand`` of each of them also has a single argument
    :param where: check only rows that meet this SQL condition
    :param min_rows: the least number of rows. Default: no limit
    :param max_rows: the largest number of rows. Default: no limit
    :param not_null: columns that must not have nulls
    :param unique: columns, or lists of columns, whose values no two rows may share, such as
        ``["id", ["shop", "number"]]``. Staged rows are compared with the table as it will be after
        the commit. One process reads these columns, even with engine ``spark``
    :param accepted_values: the values that a column may have, such as
        ``{"status": ["new", "paid"]}``
    :param freshness: for DATE and TIMESTAMP columns: the age that the newest time in the column
        must not exceed, such as ``{"ordered_at": "1 d"}``. The check fails if no row has a time
    :param conditions: SQL conditions that each row must meet, such as ``["amount >= 0"]``
    :param warn_only: checks that only warn, by their names, such as ``["not_null(note)"]``, or by
        their kind, such as ``["unique"]``; ``rows`` names the check of ``min_rows`` and
        ``max_rows``
    :param discard_failed: with ``staged``: if a check fails, delete the staged results with their
        files
    """

    job = "check"
    request = CheckRequest
    result_members = (
        *LakeJobOperator.result_members,
        "staged",
    )
    moves_rows = True
    reads_only = True

    def __init__(
        self,
        *,
        staged: Sequence[str] | None = None,
        replaces: int | None = None,
        where: str | None = None,
        min_rows: int | None = None,
        max_rows: int | None = None,
        not_null: Sequence[str] | None = None,
        unique: Sequence[str | Sequence[str]] | None = None,
        accepted_values: Mapping[str, Sequence[Value]] | None = None,
        freshness: Mapping[str, str] | None = None,
        conditions: Sequence[str] | None = None,
        warn_only: Sequence[str] | None = None,
        discard_failed: bool = False,
        **kwargs: Unpack[TableJobArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.staged = staged
        self.replaces = replaces
        self.where = where
        self.min_rows = min_rows
        self.max_rows = max_rows
        self.not_null = not_null
        self.unique = unique
        self.accepted_values = accepted_values
        self.freshness = freshness
        self.conditions = conditions
        self.warn_only = warn_only
        self.discard_failed = discard_failed
        self._check_arguments()

    def _given(self) -> dict[str, Any]:
        """Return the arguments that are keys of the request. If the addresses in ``staged`` are
        known only when the task runs, a placeholder replaces them while the DAG is parsed, so that
        all other arguments are checked.
        """
        given = super()._given()
        return {**given, "staged": [_LATER]} if is_open(given.get("staged")) else given

    def _request(self, context: Context) -> JobRequest:
        request = super()._request(context)
        assert isinstance(request, CheckRequest)
        if request.staged is None or request.replaces is not None:
            return request
        return replace(request, replaces=self._replaced_snapshot(context))

    def _replaced_snapshot(self, context: Context) -> int | None:
        """Return the number of the snapshot that the ``LakeCommitOperator`` after this task has
        published in an earlier attempt of this run. Return None if none is found, if another commit
        has this number after a rollback, or if ``on_clear="force"`` keeps the rows of the snapshot.
        """
        from lakeformat import CommitId

        task = self._commit_after()
        if task is None:
            return None
        on_clear = _commit_arguments(task).get("on_clear")
        if self.render_template(on_clear, context) == "force":
            return None
        ti: TaskIdentity = context["ti"]
        group = task.get_closest_mapped_task_group()
        is_beside = group is not None and group is self.get_closest_mapped_task_group()
        commit = SimpleNamespace(
            dag_id=ti.dag_id,
            run_id=ti.run_id,
            task_id=task.task_id,
            map_index=ti.map_index if is_beside or task.is_mapped else -1,
        )
        first = CommitId(
            commit_user(commit, self.table),
            ONLY_COMMIT,
            first_try_millis=earliest_millis(context["dag_run"]),
        )
        return replaced_snapshot(
            self.lake_hook.table(self.table),
            first,
            is_first_try=context["ti"].try_number == 1,
        )

    def _commit_after(self) -> Any:
        """Return the ``LakeCommitOperator`` after this task that publishes the checked rows. Return
        None if there is none, or if it is not clear which task or map index publishes them.

        Candidates are the operators on the same table that use this task's result, or the staged
        results that this task checks. If there are none, every ``LakeCommitOperator`` on this table
        after this task is a candidate. The nearest candidate is returned.
        """
        tables = self.table, self._before.get("table", self.table)
        after = {
            task.task_id: task
            for task in self.get_flat_relatives(upstream=False)
            if _commit_arguments(task).get("table") in tables
        }
        sources = {self.task_id, *(task for task, _ in sources_of(self._before.get("staged")))}
        users = {
            name: task
            for name, task in after.items()
            if sources & {source for source, _ in sources_of(_commit_arguments(task)["staged"])}
        } or after
        nearest = [
            task
            for task in users.values()
            if not users.keys() & task.get_flat_relative_ids(upstream=True)
        ]
        if len(nearest) != 1:
            return None
        if nearest[0].is_mapped and not self._is_mapped_into(nearest[0]):
            return None
        return nearest[0]

    def _is_mapped_into(self, task: Any) -> bool:
        """Return True if each map index of ``task`` uses the result of the same map index of this
        task, directly or through other mapped tasks.
        """
        while task.task_id != self.task_id:
            mapped = _mapped_arguments(task)
            sources = {source for source, _ in sources_of(mapped)}
            if len(mapped) != 1 or len(sources) != 1:
                return False
            task = self.dag.get_task(sources.pop())
        return True

    def execute(self, context: Context) -> Any:
        """Check the rows; push the result to XCom even if a check fails."""
        with self._keeping_results(context):
            return super().execute(context)

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> Any:
        """Return the result of the process or driver for which the trigger has waited; push it to
        XCom even if a check fails.
        """
        with self._keeping_results(context):
            return super().execute_complete(context, event)

    def _report(self, result: Mapping[str, Any]) -> None:
        self.published = result
        super()._report(result)

    @contextmanager
    def _keeping_results(self, context: Context) -> Iterator[None]:
        try:
            yield
        except Exception:
            if self.published is not None:
                context["ti"].xcom_push(_RESULT_KEY, self.published)
            raise


def _commit_arguments(task: Any) -> Mapping[str, Any]:
    """Return the arguments of a ``LakeCommitOperator``, which may be mapped; empty for other
    tasks.
    """
    from airflow_provider_lake.operators.commit import LakeCommitOperator

    if isinstance(task, LakeCommitOperator):
        return {name: getattr(task, name) for name in ("table", "staged", "on_clear")}
    if task.is_mapped and issubclass(task.operator_class, LakeCommitOperator):
        # Airflow adds the default arguments only when it unmaps the task.
        group = {} if task.task_group is None else task.task_group.default_args
        defaults = {**task.dag.default_args, **group}
        return {"staged": None, **defaults, **task.partial_kwargs, **_mapped_arguments(task)}
    return {}


def _mapped_arguments(task: Any) -> dict[str, Any]:
    """Return the arguments in ``expand`` of a task; empty if the task is not mapped, or is mapped
    with ``expand_kwargs``.
    """
    given = getattr(task, "op_kwargs_expand_input", None) or getattr(task, "expand_input", None)
    lists = getattr(given, "value", None)
    return lists if isinstance(lists, dict) else {}
