# SPDX-License-Identifier: Apache-2.0
"""Adds rows to a table as an Airflow task."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, get_args
from urllib.parse import unquote_plus

from airflow.sdk import BaseHook
from airflow.sdk.log import mask_secret

from airflow_provider_lake.arguments.declared import LakeArgumentError
from airflow_provider_lake.arguments.task_arguments import TableJobArguments
from airflow_provider_lake.compat import AirflowNotFoundException
from airflow_provider_lake.jobs.cleared_tasks import OnClear, would_add_again
from airflow_provider_lake.jobs.identity import run_name, task_name
from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.common import Conflict
from spark_jobs.job_requests.ingest import (
    Compression,
    IngestRequest,
    MessageFormat,
    OnSchemaChange,
    Replaced,
    SourceFormat,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

    from lakeformat import Table

__all__ = ["LakeIngestOperator"]

# A password in a URL; SQLAlchemy also takes one with a ``?``; the last form is Oracle's:
# ``jdbc:oracle:thin:scott/tiger@//host``.
_LOGIN = re.compile(r"(?i)//[^/@?]*:[^@?]+@|^[\w+]+://[^:/@]*:[^@]+@|:(?:thin|oci):[^@/]+/[^@]+@")
# In JDBC addresses, ``;`` begins a parameter, such as ``;principal=hive/_HOST@REALM``.
_JDBC_LOGIN = re.compile(
    r"(?i)//[^/@?;]*:(?:[^@?;]|;(?!\s*[\w.]+\s*=))+@|:(?:thin|oci):[^@/]+/[^@]+@"
)
# Not paths such as ``credentials_path``. The last form is MySQL's: ``(host=h,password=…)``.
_SECRET_PARAMETER = re.compile(
    r"(?i)[?;&]\s*\w*(?:passw|passphrase|pwd|secret|token)\w*\s*="
    r"|[?;&]\s*\w*(?:credentials?|(?:private|api|access)_?key)(?:_base64)?\s*="
    r"|[(,]\s*(?:password\d?|passwd|pwd)\s*="
)


class LakeIngestOperator(LakeJobOperator):
    """Adds rows to a table, once per DAG run: from files, a SQL table or another lake table. Give
    one of ``source``, ``source_table`` and ``jdbc_url``.

    A retry finds the snapshot that its run has published, and publishes nothing twice. It fails if
    that snapshot may have expired. A task that is cleared after a success does its work again: see
    ``on_clear``. With ``checkpoint`` or ``source_table`` a cleared task reads only what it has not
    read before.

    :param source: path, URI or glob of files. Files whose name begins with ``.`` or ``_`` are
        ignored. Files in a bucket or on HDFS are opened with the storage options of the catalog
    :param format: format of the files. Default: by their suffix. JSON means one object per line.
        For change messages, one per line, name their format, such as ``debezium-json``. The task
        then upserts and deletes rows, adds new columns and widens types
    :param delimiter: for CSV files: the character between two values; ``\\t`` is a tab. Default: a
        comma
    :param quote: for CSV files: the character around values that hold a delimiter or a line break;
        empty for none. Default: ``"``
    :param escape: for CSV files: the character that escapes a delimiter or quote in a value.
        Default: none
    :param header: for CSV files: True if the first line names the columns. If False, the files have
        the columns of the table, in the order of the table. Default: True
    :param null_values: for CSV files: the unquoted texts that stand for NULL, such as
        ``["", "NULL"]``. Default: the empty text
    :param encoding: for CSV and JSON files: their encoding, such as ``latin-1`` or ``utf-16``.
        Default: ``utf-8``
    :param compression: compression of the files. Default: by their suffix, ``.gz``, ``.bz2`` or
        ``.zst``
    :param messages_of: required if change messages come from several source tables: the one to
        ingest, such as ``shop.orders``. The messages of the other tables are ignored
    :param source_table: another table of the warehouse, ``database.table``: ingest its changes
        since the last run. Both tables must be Paimon tables
    :param consumer: required with ``source_table``: a name under which the source table stores the
        position of this task. The position moves after the rows are committed. The first run reads
        all rows. Each target table needs its own consumer, also in mapped tasks
    :param jdbc_url: address of a SQL database: with engine ``python`` a URL of SQLAlchemy
        (``postgresql://host/db``), with ``spark`` one of JDBC (``jdbc:postgresql://host/db``)
    :param jdbc_table: required with ``jdbc_url``: the table or view; all of its rows are read
    :param jdbc_conn_id: with ``jdbc_url``: the connection whose login and password are used; its
        other fields are ignored
    :param source_options: with ``jdbc_url`` and engine ``spark``: further options of Spark's JDBC
        source. Passwords are refused here: use ``jdbc_conn_id``
    :param checkpoint: with ``source``: the path or URI of a directory that records the ingested
        files. A later run ingests only new files, and refuses files that have changed since. So a
        task that is cleared ingests no file again
    :param files_per_batch: with ``checkpoint``: the most files in one commit. Default: all new
        files
    :param poll: with ``checkpoint`` or ``source_table``: run as a stream that looks for new files
        or changes at this interval, such as ``"10 s"``, until the process ends
    :param columns: for files and SQL tables: the columns of the table that have another name in the
        source. Map each of them to its name in the source: ``{"amount": "Amount (EUR)"}``
    :param casts: for files and SQL tables: columns of the table whose values are cast, as in SQL,
        before they are written: ``{"amount": "DECIMAL(10, 2)"}``. A new column gets this type
    :param overwrite: replace rows, in one commit: ``partitions`` replaces all rows of the
        partitions that get rows, ``table`` all rows of the table, even if the source has no rows.
        Default: add the rows
    :param read_snapshot: for files and SQL tables whose rows were computed from the target table:
        the position at which the table was read, such as ``"main/7"``. The commit is refused if
        other commits have changed the same partitions since, unless ``conflict`` keeps the rows of
        these commits. Only for Paimon tables
    :param conflict: with ``read_snapshot``: ``transaction-order`` keeps the rows that other commits
        have written since the table was read, even if this commit has a row with the same key;
        ``optimistic`` refuses the commit if other commits have changed the same partitions.
        Default: the table option ``write.conflict``. A Mixed table takes ``transaction-order``
        without ``read_snapshot``: the rows that other commits write after the task begins to read
        the source are kept
    :param upsert_by: for Iceberg and Mixed tables: the key columns (for a Mixed table its key).
        New rows replace the stored rows with the same key, in one commit. An Iceberg table refuses
        two new rows with the same key. Change messages may repeat a key, and need ``upsert_by``
        only if the table has no identifier fields
    :param on_schema_change: for files and SQL tables whose columns differ from the table's:
        ``fail`` refuses new columns and values that do not fit, ``add`` adds the new columns,
        ``widen`` also widens types. Change messages and ``source_table`` always add and widen
    :param create: if the table does not exist, create it and its database, with the columns of the
        source
    :param primary_key: with ``create``: the primary key of the table; of an Iceberg table its
        identifier fields
    :param partition_by: with ``create``: the partition columns of the table; for an Iceberg table
        also transforms, such as ``day(ts)``
    :param table_options: with ``create``: the options of the table, such as ``{"bucket": "4"}``
    :param dry_run: only show the files, the columns of a new table, and the changes of an existing
        table that ``on_schema_change`` allows. Values are not checked
    :param stage: only write the data files. ``LakeCommitOperator`` publishes them later; give it
        the address ``staged`` from the result. Not for Mixed tables
    :param ingest_again: ingest all files of ``source`` in every run. Default: skip files that
        earlier runs of the task have ingested. No file is skipped with change messages,
        ``overwrite``, ``upsert_by`` or ``stage``. The same holds for most Paimon and Mixed tables
        with a primary key, where a repeated row changes nothing
    :param on_clear: if the task is cleared after a success: ``redo`` does the work again. In a
        Paimon or Mixed table with a primary key, each new row replaces the row of its key, and
        other rows that the last success added are kept. The same holds in an Iceberg table with
        ``upsert_by`` or change messages. In all other cases the new commit deletes the rows that
        the last success added, unless the task has ``overwrite`` or ``source_table``. ``force``
        does the work again without this deletion; ``skip`` does nothing. Default: ``redo``
    """

    job = "ingest"
    request = IngestRequest
    result_members = (*LakeJobOperator.result_members, "staged", "next_snapshot")
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
        columns: Mapping[str, str] | None = None,
        casts: Mapping[str, str] | None = None,
        overwrite: Replaced | None = None,
        read_snapshot: str | None = None,
        conflict: Conflict | None = None,
        upsert_by: Sequence[str] | None = None,
        on_schema_change: OnSchemaChange = "fail",
        create: bool = False,
        primary_key: Sequence[str] | None = None,
        partition_by: Sequence[str] | None = None,
        table_options: Mapping[str, str] | None = None,
        dry_run: bool = False,
        stage: bool = False,
        ingest_again: bool = False,
        on_clear: OnClear | None = None,
        **kwargs: Unpack[TableJobArguments],
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
        self.columns = columns
        self.casts = casts
        self.overwrite = overwrite
        self.read_snapshot = read_snapshot
        self.conflict = conflict
        self.upsert_by = upsert_by
        self.on_schema_change = on_schema_change
        self.create = create
        self.primary_key = primary_key
        self.partition_by = partition_by
        self.table_options = table_options
        self.is_dry_run = dry_run
        self.stage = stage
        self.ingest_again = ingest_again
        self.on_clear = on_clear
        self._check_arguments()

    def _of_connections(self) -> dict[str, object]:
        keys = super()._of_connections()
        if self.jdbc_conn_id is not None:
            options = self.source_options or {}
            keys["source_options"] = {**options, **_login_of(self.jdbc_conn_id)}
        return keys

    @classmethod
    def _check_values(cls, task_id: str, given: Mapping[str, Any]) -> None:
        """Raise ``LakeArgumentError`` for invalid values, and for secrets in the DAG file."""
        _refuse_secrets(task_id, given.get("source_options"), given.get("jdbc_url"))
        super()._check_values(task_id, given)

    def _check_together(self) -> None:
        super()._check_together()
        if self.jdbc_conn_id is not None and self.jdbc_url is None:
            raise LakeArgumentError(
                f"task {self.task_id!r}: argument 'jdbc_conn_id' needs argument 'jdbc_url', the "
                "address of the SQL database: add 'jdbc_url', or leave out 'jdbc_conn_id'"
            )
        if self.ingest_again:
            self._check_ingest_again()
        if self.on_clear is not None and self.checkpoint is not None:
            raise LakeArgumentError(
                f"task {self.task_id!r}: argument 'on_clear' has no effect with 'checkpoint': the "
                "checkpoint records the ingested files, and even a cleared task does not ingest "
                "them again. Leave out one of the two"
            )

    def _check_ingest_again(self) -> None:
        """Raise ``LakeArgumentError`` for ``ingest_again`` where it would have no effect."""
        if self.source is None:
            raise LakeArgumentError(
                f"task {self.task_id!r}: argument 'ingest_again' has no effect without argument "
                "'source', the path of files: leave out 'ingest_again'"
            )
        if self.checkpoint is not None:
            raise LakeArgumentError(
                f"task {self.task_id!r}: argument 'ingest_again' has no effect with 'checkpoint': "
                "no file that it records is ingested again. To ingest all files in every run, "
                "leave out 'checkpoint'; otherwise leave out 'ingest_again'"
            )
        for name in ("overwrite", "upsert_by", "stage"):
            if getattr(self, name):
                raise LakeArgumentError(
                    f"task {self.task_id!r}: argument 'ingest_again' has no effect: with {name!r} "
                    "the task ingests all files in every run anyway. Leave out 'ingest_again'"
                )

    def _identity(self, context: Context) -> dict[str, object]:
        """Return the commit identity. For ``source`` without ``checkpoint`` and without
        ``ingest_again``, also return the names of the task and the run. The table records the
        ingested files under these names.
        """
        keys = super()._identity(context)
        adds_files = self.source is not None and self.checkpoint is None
        if adds_files and not self.ingest_again:
            keys["ingested_by"] = task_name(context["ti"], self.table)
            keys["ingested_in"] = run_name(context["ti"], self.table)
        return keys

    def _adds_rows(self, table: Table) -> bool:
        if self.overwrite is not None or self.source_table is not None or self.stage:
            return False
        is_upsert = self.upsert_by is not None or self.format in get_args(MessageFormat)
        if is_upsert and "replace_commit" in table.instead:
            return False
        return would_add_again(table, is_ordered=self.conflict == "transaction-order")

    def _is_repeated(self) -> bool:
        """Return True if a cleared task does its work again. Return False for a dry run, and for a
        task with a checkpoint, because the checkpoint decides which files are new.
        """
        return self.checkpoint is None and super()._is_repeated()

    def _tables_read(self) -> list[str]:
        return [] if self.source_table is None else [self.source_table]


def _refuse_secrets(task_id: str, options: Any, url: Any) -> None:
    """Raise ``LakeArgumentError`` for secrets: arguments are visible in the DAG, in the web
    interface and in logs.
    """
    # Airflow resolves other values later.
    named = _secret_names(options) if isinstance(options, dict) else []
    if named or (isinstance(url, str) and _shows_secret(url)):
        what = f"source_options[{named[0]!r}]" if named else "jdbc_url"
        raise LakeArgumentError(
            f"task {task_id!r}: {what} would show a password in the web interface: put login and "
            "password into a connection, and name it with jdbc_conn_id"
        )


def _secret_names(options: Mapping[str, str]) -> list[str]:
    from lakeformat.types.secret_names import names_secret  # not in each parsed DAG

    return [name for name in options if names_secret(name)]


def _shows_secret(url: str) -> bool:
    """Return True if the address of a SQL database has a password or a secret parameter."""
    plain = unquote_plus(url)  # such as the parameters inside ``odbc_connect``
    login = _JDBC_LOGIN if url.lower().startswith("jdbc:") else _LOGIN
    return login.search(url) is not None or _SECRET_PARAMETER.search(plain) is not None


def _login_of(conn_id: str) -> dict[str, str]:
    try:
        connection = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        raise AirflowNotFoundException(
            f"connection {conn_id!r} does not exist: create it with the login and password of the "
            "SQL database, or correct jdbc_conn_id"
        ) from None
    given = {"user": connection.login, "password": connection.password}
    if connection.password:
        mask_secret(connection.password)
    return {name: value for name, value in given.items() if value}
