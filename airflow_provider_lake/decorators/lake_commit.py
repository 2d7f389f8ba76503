# SPDX-License-Identifier: Apache-2.0
"""``@task.lake_commit``: commits the returned rows of a function to a table, once per DAG run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack

from airflow_provider_lake.arguments.task_arguments import (
    FunctionArguments,
    FunctionTaskArguments,
    OnReport,
)
from airflow_provider_lake.decorators.function import (
    LakeDecorator,
    LakeFunctionOperator,
    lake_decorator,
)
from airflow_provider_lake.jobs.cleared_tasks import OnClear, would_add_again
from airflow_provider_lake.jobs.lineage import LakeLineageMixin
from spark_jobs.job_requests.common import BatchRequest, Conflict, JobRequest, Value
from spark_jobs.job_requests.request import refusal
from spark_jobs.job_requests.values import KeyColumns, TableOptionTexts

if TYPE_CHECKING:
    import pyarrow as pa
    from airflow.sdk import Context

    from lakeformat import Catalog, Table
    from spark_jobs.runtime.job import JobResult, Outcome

__all__ = [
    "CommitFunctionArguments",
    "LakeCommitDecoratedOperator",
    "LakeFunctionCommit",
    "Overwrite",
    "lake_commit_task",
]


Overwrite: TypeAlias = Mapping[str, Value] | Literal["dynamic", "partitions", "table"]
"""The rows to replace, as in the argument ``overwrite`` of ``Table.write``."""

_NOTHING = "no rows were returned, so the table is not created yet"
_ONLY_TO_CREATE = ("primary_key", "partition_by", "table_options")


@dataclass(frozen=True, kw_only=True)
class LakeFunctionCommit(BatchRequest):
    """The request to commit the rows that a function returns."""

    kinds: str | None = None
    """The column with the kind of each row: ``+I``, ``-U``, ``+U`` or ``-D``. Not for Iceberg
    tables.
    """
    overwrite: Overwrite | None = None
    """The rows to replace; None adds the rows."""
    create: bool = False
    """If the table does not exist, create it and its database, with the columns of the rows."""
    primary_key: KeyColumns | None = None
    """With ``create``: the primary key of the table."""
    partition_by: KeyColumns | None = None
    """With ``create``: the partition columns of the table; for an Iceberg table also transforms,
    such as ``day(ts)``.
    """
    table_options: TableOptionTexts | None = None
    """With ``create``: the options of the table."""

    def __post_init__(self) -> None:
        BatchRequest.__post_init__(self)
        for name in _ONLY_TO_CREATE:
            if getattr(self, name) is not None and not self.create:
                raise refusal(
                    f"key {name!r} needs create=True for a new table: add create=True, or leave "
                    f"out {name!r}"
                )


class LakeCommitDecoratedOperator(LakeLineageMixin, LakeFunctionOperator):
    """Commits to a table the rows that a function returns, once per DAG run.

    The function returns a pyarrow Table, RecordBatch or RecordBatchReader, a pandas, polars or
    Spark DataFrame, or a list of dicts; or it yields pyarrow, pandas or polars objects. The
    function may have the arguments ``table`` and ``spark``; ``table`` is None if the table does not
    exist yet. If an earlier attempt has published its commit, a retry does not call the function
    again. A task that is cleared after a success calls the function again: see ``on_clear``. The
    result and the asset events are like those of ``LakeIngestOperator``.

    :param kinds: the column with the kind of each row: ``+I``, ``-U``, ``+U`` or ``-D``. Not for
        Iceberg tables
    :param overwrite: replace rows: ``"table"`` replaces all rows, ``"partitions"`` those of the
        partitions that get rows, ``{"dt": "2024-01-01"}`` those of the partitions with these
        values. Default: add the rows
    :param read_snapshot: for rows that were computed from the table: the position at which the
        table was read, such as ``"main/7"``. The commit is refused if other commits have changed
        the same partitions since, unless ``conflict`` keeps the rows of these commits. Only for
        Paimon tables
    :param conflict: with ``read_snapshot``: ``transaction-order`` keeps the rows that other commits
        have written since the table was read, even if this commit has a row with the same key;
        ``optimistic`` refuses the commit if other commits have changed the same partitions.
        Default: the table option ``write.conflict``. A Mixed table takes ``transaction-order``
        without ``read_snapshot``: the rows that other commits write after the start of the function
        are kept
    :param create: if the table does not exist, create it and its database, with the columns of the
        rows
    :param primary_key: with ``create``: the primary key of the table
    :param partition_by: with ``create``: the partition columns of the table; for an Iceberg table
        also transforms, such as ``day(ts)``
    :param table_options: with ``create``: the options of the table, such as ``{"bucket": "4"}``
    :param on_clear: if the task is cleared after a success: ``redo`` does the work again, and the
        same commit deletes the rows without a key that the last success of the task added; a row
        with a key is kept until a new row of the same key replaces it. ``force`` does the work
        again and keeps the rows without a key, too; ``skip`` does nothing. Default: ``redo``
    :param skip_if_noop: skip the task, and its downstream tasks, if the function returned no row
        and nothing was published
    :param on_report: a function, or a list of functions, that gets the result as a dict after the
        commit, in the task's process. An error of such a function is logged as a warning, and the
        task succeeds
    """

    job = "lake_commit"
    request = LakeFunctionCommit
    publishes_once = True
    custom_operator_name = "@task.lake_commit"
    template_fields: Sequence[str] = (
        *LakeFunctionOperator.template_fields,
        "kinds",
        "overwrite",
        "read_snapshot",
        "conflict",
        "create",
        *_ONLY_TO_CREATE,
        "on_clear",
        "skip_if_noop",
    )

    def __init__(
        self,
        *,
        kinds: str | None = None,
        overwrite: Overwrite | None = None,
        read_snapshot: str | None = None,
        conflict: Conflict | None = None,
        create: bool = False,
        primary_key: Sequence[str] | None = None,
        partition_by: Sequence[str] | None = None,
        table_options: Mapping[str, str] | None = None,
        on_clear: OnClear | None = None,
        skip_if_noop: bool = False,
        on_report: OnReport | Sequence[OnReport] | None = None,
        **kwargs: Unpack[FunctionTaskArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.kinds = kinds
        self.overwrite = overwrite
        self.read_snapshot = read_snapshot
        self.conflict = conflict
        self.create = create
        self.primary_key = primary_key
        self.partition_by = partition_by
        self.table_options = table_options
        self.on_clear = on_clear
        self.skip_if_noop = skip_if_noop
        self.on_report = on_report
        self._check_arguments()

    def _adds_rows(self, table: Table) -> bool:
        is_ordered = self.conflict == "transaction-order"
        return self.overwrite is None and would_add_again(table, is_ordered=is_ordered)

    def _run(self, request: JobRequest, context: Context) -> JobResult:
        from spark_jobs.runtime.job import Job

        assert isinstance(request, LakeFunctionCommit)
        job = Job(self.job, self.request, {}, operation="write")
        with self._working_here():
            return job.answer(request, partial(self._commit, context))

    def _commit(self, context: Context, wanted: LakeFunctionCommit) -> Outcome:
        from airflow_provider_lake.decorators.returned_rows import (
            begun_batch,
            columns_of,
            commit_batch,
            readable_rows,
            write,
        )
        from spark_jobs.runtime.job import Outcome, newest_snapshot
        from spark_jobs.runtime.new_table import dropping_if_empty

        commit = wanted.commit_id()
        assert commit is not None
        table = existing = self._existing(wanted)
        if table is not None and (done := table.find_commit(commit)):
            return Outcome.of_commit(table, done, None)
        catalog = self.lake_hook.get_conn()
        if table is not None:
            wanted.require_position(table)
            table.require_arguments("write", **wanted.order)
        with (
            self._spark(context) as spark,
            dropping_if_empty(catalog, wanted.table, existing),
            begun_batch(table, wanted.overwrite, wanted.conflict) as batch,
        ):
            named = self._call_with(context, table=table, **spark)
            returned = self.python_callable(*self.op_args, **named)
            rows = readable_rows(returned, table, wanted.kinds, self.python_callable.__name__)
            if table is None:
                columns, rows = columns_of(rows, wanted.kinds)
                if not columns.names:
                    return Outcome(reason=_NOTHING, report={}, skipped=True)
                table = _created(catalog, wanted, columns)
            before = newest_snapshot(table)
            how: dict[str, Any] = {
                "kinds": wanted.kinds,
                "overwrite": wanted.overwrite,
                "commit": commit,
            }
            if batch is None:
                report = write(table, rows, **how, **wanted.order)
            else:
                report = commit_batch(table, batch, rows, **how)
        return Outcome.of_commit(table, report, before)

    def _existing(self, wanted: LakeFunctionCommit) -> Table | None:
        from lakeformat import NotFoundError
        from lakeformat.types.sentence import sentence
        from spark_jobs.runtime.new_table import refuse_contradiction

        try:
            table = self._opened()
        except NotFoundError as reason:
            if not self.create:
                raise NotFoundError(
                    f"{sentence(reason)} With create=True the task creates the table from the "
                    "columns of the rows"
                ) from None
            table = None
        self._is_open = True  # any later NotFoundError comes from the function
        if table is not None:
            refuse_contradiction(table, wanted)
        return table


class CommitFunctionArguments(FunctionArguments, total=False):
    """The arguments of ``@task.lake_commit``; ``LakeCommitDecoratedOperator`` documents those that
    other decorators do not have.
    """

    kinds: str | None
    overwrite: Overwrite | None
    read_snapshot: str | None
    conflict: Conflict | None
    create: bool
    primary_key: Sequence[str] | None
    partition_by: Sequence[str] | None
    on_clear: OnClear | None
    table_options: Mapping[str, str] | None
    skip_if_noop: bool
    on_report: OnReport | Sequence[OnReport] | None


def lake_commit_task(
    python_callable: None = None,
    multiple_outputs: bool | None = None,
    **kwargs: Unpack[CommitFunctionArguments],
) -> LakeDecorator:
    """Turn a function into a task that commits the returned rows to a table, once per DAG run.

    :param python_callable: the function, if the decorator is written without parentheses; type
        checkers know only the form with parentheses
    :param multiple_outputs: push each member of the result as an XCom of its own. Default: True
    """
    wanted = True if multiple_outputs is None else multiple_outputs
    return lake_decorator(
        LakeCommitDecoratedOperator, python_callable, multiple_outputs=wanted, given=kwargs
    )


def _created(catalog: Catalog, wanted: LakeFunctionCommit, columns: pa.Schema) -> Table:
    """Create the table with ``columns`` and return it; if another run has created the table
    meanwhile, return that table.
    """
    catalog.create_database(wanted.table.rpartition(".")[0], exist_ok=True)
    return catalog.create_table(
        wanted.table,
        columns,
        primary_key=wanted.primary_key or (),
        partition_by=wanted.partition_by or (),
        options=wanted.table_options,
        exist_ok=True,
    )
