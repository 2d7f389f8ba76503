"""Brings rows into a table as an Airflow task."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook
from airflow.sdk.log import mask_secret

from airflow_provider_lake.arguments import LakeArgumentError
from airflow_provider_lake.operators.job import LakeJobOperator
from lakeformat.files.foreign.dialect import Compression, SourceFormat
from spark_jobs.job_requests.ingest import IngestRequest, MessageFormat

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["LakeIngestOperator"]

_SECRET_NAME = re.compile(r"(?i)passw|secret|token|credential|private")
# The last is Oracle's: ``jdbc:oracle:thin:scott/tiger@//host``.
_SECRET_URL = re.compile(
    r"(?i)//[^/@?]*:[^@?]+@|[?;&]\s*\w*(passw|pwd|secret|token)\w*\s*=|:thin:[^@/]+/[^@]+@"
)


class LakeIngestOperator(LakeJobOperator):
    """Brings rows into a table, once per DAG run: of files, of a SQL table, of another table.

    A retry or a cleared task finds what its run has published and publishes nothing twice; to
    bring the same rows again, start another run. A retry also notices that the snapshot it looks
    for may have expired, and fails. What the first try found is in the task's state store; once
    Airflow has dropped it (``[state_store] default_retention_days``), a cleared task does not
    find what has expired.

    :param source: path, address or glob of files: local ones, or in a bucket or on HDFS, which is
        opened with the storage options of the catalog
    :param format: the format of the files; by default the ending of their names. JSON means one
        object per line. The formats of change messages (one per line, too) are never guessed:
        their rows are upserted and deleted, and columns that are new or have become wider are
        added to the table
    :param delimiter: of CSV files: the character between two values; a comma by default, ``\\t``
        is a tab
    :param quote: of CSV files: the character around values that hold a delimiter or a line
        break; ``"`` by default, empty if there is none
    :param escape: of CSV files: the character before one that is meant literally; by default
        there is none
    :param header: of CSV files: whether the first line names the columns, which is the default.
        Without it the files have the columns of the table, in their order
    :param null_values: of CSV files: the unquoted texts that stand for NULL, as
        ``["", "NULL"]``; by default the empty one
    :param encoding: of text files: ``utf-8`` by default, or another such as ``latin-1`` or
        ``utf-16``
    :param compression: the compression of the files; by default the ending of their names:
        ``.gz``, ``.bz2`` or ``.zst``
    :param messages_of: of change messages only those of this source table, as
        ``database.table``
    :param source_table: another table of the warehouse, ``database.table``: what changed since
        the last time
    :param consumer: with ``source_table``: who reads it. Its position is moved once the rows
        are committed; the first time all rows are read
    :param jdbc_url: a SQL database: of SQLAlchemy for engine ``python``, of JDBC for ``spark``
    :param jdbc_table: with ``jdbc_url``: the table whose rows are read, all of them
    :param jdbc_conn_id: with ``jdbc_url``: the connection whose login and password are used; of
        that connection nothing else is
    :param source_options: with ``jdbc_url``: Spark's other options for it; nothing secret
    :param checkpoint: with ``source``: a directory, path or URI, that keeps which files have been
        taken, so that each is taken once and later runs take what has come since. The commits are
        the checkpoint's own: a commit pair does nothing
    :param files_per_batch: with ``checkpoint``: at most so many files in one commit
    :param poll: with ``checkpoint`` or ``source_table``: go on as a stream, and look for more so
        often, as ``"10 s"``, until the process is ended
    :param create: create a missing table, and its database, from the columns of the source
    :param primary_key: with ``create``: the primary key of the table
    :param partition_by: with ``create``: its partition columns
    :param table_options: with ``create``: its options, as ``{"bucket": "4"}``
    :param stage: write the files of the table and leave their publication to the job
        ``commit``: the result names the staged result under ``staged``
    """

    job = "ingest"
    request = IngestRequest
    publishes_once = True
    moves_rows = True
    waits_for = ("source",)
    _tables_named = ("table", "source_table")

    def __init__(
        self,
        *,
        source: str | None = None,
        format: SourceFormat | MessageFormat | None = None,
        delimiter: str | None = None,
        quote: str | None = None,
        escape: str | None = None,
        header: bool | None = None,
        null_values: Sequence[str] | None = None,
        encoding: str | None = None,
        compression: Compression | None = None,
        messages_of: str | None = None,
        source_table: str | None = None,
        consumer: str | None = None,
        jdbc_url: str | None = None,
        jdbc_table: str | None = None,
        jdbc_conn_id: str | None = None,
        source_options: Mapping[str, str] | None = None,
        checkpoint: str | None = None,
        files_per_batch: int | None = None,
        poll: str | None = None,
        create: bool = False,
        primary_key: Sequence[str] | None = None,
        partition_by: Sequence[str] | None = None,
        table_options: Mapping[str, str] | None = None,
        stage: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source = source
        self.format = format
        self.delimiter = delimiter
        self.quote = quote
        self.escape = escape
        self.header = header
        self.null_values = null_values
        self.encoding = encoding
        self.compression = compression
        self.messages_of = messages_of
        self.source_table = source_table
        self.consumer = consumer
        self.jdbc_url = jdbc_url
        self.jdbc_table = jdbc_table
        self.jdbc_conn_id = jdbc_conn_id
        self.source_options = source_options
        self.checkpoint = checkpoint
        self.files_per_batch = files_per_batch
        self.poll = poll
        self.create = create
        self.primary_key = primary_key
        self.partition_by = partition_by
        self.table_options = table_options
        self.stage = stage
        self._check_arguments()

    def _request(self, context: Context) -> dict[str, Any]:
        """What the job is asked, with the login for the SQL database if it needs one."""
        request = super()._request(context)
        if self.jdbc_conn_id is not None:
            options = self.source_options or {}
            request["source_options"] = {**options, **_login_of(self.jdbc_conn_id)}
        return request

    @classmethod
    def _check_values(cls, task_id: str, given: Mapping[str, Any]) -> None:
        """Refuse secrets, too, in what mapped tasks share as well."""
        _refuse_secrets(task_id, given.get("source_options"), given.get("jdbc_url"))
        super()._check_values(task_id, given)

    def _check_together(self) -> None:
        super()._check_together()
        if self.jdbc_conn_id is not None and self.jdbc_url is None:
            raise LakeArgumentError(f"task {self.task_id!r}: jdbc_conn_id goes with jdbc_url")

    def _tables_read(self) -> list[str]:
        return [] if self.source_table is None else [self.source_table]


def _refuse_secrets(task_id: str, options: Any, url: Any) -> None:
    """Arguments are shown to everybody: in the DAG, in the web interface, in logs."""
    known = options if isinstance(options, dict) else {}  # else Airflow resolves it later
    named = [name for name in known if _SECRET_NAME.search(name)]
    if named or (isinstance(url, str) and _SECRET_URL.search(url)):
        what = f"source_options[{named[0]!r}]" if named else "jdbc_url"
        raise LakeArgumentError(
            f"task {task_id!r}: {what} would show a password: leave login and password to the "
            "connection jdbc_conn_id"
        )


def _login_of(conn_id: str) -> dict[str, str]:
    connection = BaseHook.get_connection(conn_id)
    given = {"user": connection.login, "password": connection.password}
    if connection.password:
        mask_secret(connection.password)
    return {name: value for name, value in given.items() if value}
