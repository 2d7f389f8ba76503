# SPDX-License-Identifier: Apache-2.0
"""Keys of the job ``ingest``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from dataclasses import field as declared
from itertools import product
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from spark_jobs.job_requests.common import BatchRequest
from spark_jobs.job_requests.request import refusal
from spark_jobs.job_requests.values import (
    ColumnCasts,
    ColumnSources,
    ConsumerName,
    DialectCharacter,
    Interval,
    KeyColumns,
    MessageTable,
    NullValues,
    Numbered,
    OptionalCharacter,
    TableOptionTexts,
    TextEncoding,
)

if TYPE_CHECKING:
    from lakeformat.files.foreign.column_mapping import ColumnMapping
    from lakeformat.files.foreign.dialect import TextDialect

__all__ = [
    "DIALECT_NAMES",
    "Compression",
    "IngestRequest",
    "MessageFormat",
    "OnSchemaChange",
    "Replaced",
    "SourceFormat",
]

# The same as in lakeformat/files/foreign/change_messages.py and dialect.py, which a scheduler does
# not load; a test compares them.
MessageFormat: TypeAlias = Literal["debezium-json", "canal-json", "maxwell-json"]
SourceFormat: TypeAlias = Literal["parquet", "csv", "json"]
Compression: TypeAlias = Literal["none", "gzip", "bz2", "zstd"]
Replaced: TypeAlias = Literal["partitions", "table"]
OnSchemaChange: TypeAlias = Literal["fail", "add", "widen"]
DIALECT_NAMES = ("delimiter", "quote", "escape", "header", "null_values", "encoding", "compression")

_SOURCES = ("source", "source_table", "jdbc_url")
_NEEDED = (
    (
        "source_table",
        "consumer",
        "the name under which the source table keeps the position of this reader",
    ),
    ("jdbc_url", "jdbc_table", "the table or view to read"),
)
_ONLY_WITH = {
    "format": ("source",),
    **dict.fromkeys(DIALECT_NAMES, ("source",)),
    "messages_of": ("source",),
    "stage": ("source", "jdbc_url"),
    "overwrite": ("source", "jdbc_url"),
    "upsert_by": ("source", "jdbc_url"),
    "read_snapshot": ("source", "jdbc_url"),
    "conflict": ("source", "jdbc_url"),
    "on_schema_change": ("source", "jdbc_url"),
    "columns": ("source", "jdbc_url"),
    "casts": ("source", "jdbc_url"),
    "dry_run": ("source", "jdbc_url"),
    "checkpoint": ("source",),
    "ingested_by": ("source",),
    "ingested_in": ("source",),
    "files_per_batch": ("source",),
    "poll": ("source", "source_table"),
    "consumer": ("source_table",),
    "jdbc_table": ("jdbc_url",),
    "source_options": ("jdbc_url",),
}
_OF_THE_KEYS = ("url", "dbtable", "query")
_ADDRESS_FOR_PYTHON = (
    "key 'jdbc_url' is a JDBC address, which needs engine 'spark': for engine 'python' write a "
    "SQLAlchemy address, such as postgresql+psycopg2://host/database"
)
_ADDRESS_FOR_SPARK = (
    "key 'jdbc_url' is a SQLAlchemy address, which needs engine 'python': for engine 'spark' write "
    "a JDBC address, such as jdbc:postgresql://host/database"
)
_ONLY_TO_CREATE = ("primary_key", "partition_by", "table_options")


@dataclass(frozen=True, kw_only=True)
class IngestRequest(BatchRequest):
    """Add rows to a table: from files, change messages, a SQL table, or the changes of another
    Paimon table. Jobs with the same commit identity add the rows once. Give exactly one of the keys
    ``source``, ``source_table`` and ``jdbc_url``.
    """

    source: str | None = None
    """Path, URI or glob of files; not a directory. Files whose name begins with ``.`` or ``_`` are
    ignored. Files in a bucket or on HDFS are opened with the storage options of the catalog.
    """
    format: SourceFormat | MessageFormat | None = None
    """Format of the files. Default: by their suffix. JSON means one object per line. [Change
    messages](ingest-changes.md), also one per line, need their format here. For them the job
    upserts and deletes rows, adds new columns and widens types.
    """
    delimiter: DialectCharacter | None = None
    """For CSV files: the character between two values; ``\\t`` is a tab. Default: a comma."""
    quote: OptionalCharacter | None = None
    """For CSV files: the character around values that hold a delimiter or a line break; empty for
    none. Default: ``"``.
    """
    escape: OptionalCharacter | None = None
    """For CSV files: the character that escapes a delimiter or quote in a value. Default: none."""
    header: bool | None = None
    """For CSV files: true if the first line names the columns. If false, the files must have the
    columns of the table, in the order of the table. Default: true.
    """
    null_values: NullValues | None = None
    """For CSV files: the unquoted texts that stand for NULL, such as ``["", "NULL"]``. Default: the
    empty text.
    """
    encoding: TextEncoding | None = None
    """For CSV and JSON files: their encoding, such as ``latin-1``. Default: ``utf-8``."""
    compression: Compression | None = None
    """Compression of the files. Default: by their suffix, ``.gz``, ``.bz2`` or ``.zst``."""
    messages_of: MessageTable | None = None
    """Required if change messages come from several source tables: the one to ingest, such as
    ``shop.orders``. The messages of the other tables are ignored.
    """
    source_table: str | None = None
    """Another table of the warehouse, ``database.table``: ingest its changes since the last run.
    Both tables must be Paimon tables.
    """
    consumer: ConsumerName | None = None
    """Required with ``source_table``: a name under which the source table stores the position of
    this job. The position moves after the rows are committed. The first run reads all rows.
    """
    jdbc_url: str | None = None
    """Address of a SQL database: with engine ``python`` a URL of SQLAlchemy
    (``postgresql://host/db``), with ``spark`` one of JDBC (``jdbc:postgresql://host/db``).
    """
    jdbc_table: str | None = None
    """Required with ``jdbc_url``: the table or view, ``shop.orders`` or ``"My Shop"."Orders"``."""
    source_options: Mapping[str, str] | None = declared(default=None, repr=False)
    """With ``jdbc_url``: ``user`` and ``password``; with engine ``spark`` also further options of
    Spark's JDBC source.
    """
    checkpoint: str | None = None
    """With ``source``: the path or URI of a directory that records the ingested files. A later run
    ingests only new files, and refuses files that have changed since. The checkpoint has its own
    commit identity: ``commit_user`` and ``commit_identifier`` have no effect.
    """
    ingested_by: str | None = None
    """With ``source`` and a commit identity: a name of the task, the same in all of its runs. The
    table records the files of each run under this name; a later run ingests only new files, and
    refuses changed ones. The key has no effect in tables in which [a repeated row changes
    nothing](ingest-new-files.md#without-a-checkpoint), or with change messages, ``overwrite``,
    ``upsert_by``, ``stage`` or ``checkpoint``.
    """
    ingested_in: str | None = None
    """With ``ingested_by``: a name of the run. Set it if several jobs with different commit users,
    such as the map indexes of an Airflow task, divide the files of a run. A job skips only files
    that other runs have ingested. If the division changes, repeat all jobs of the run: otherwise
    rows can be in the table twice, and a warning names their files. Default: the commit user.
    """
    files_per_batch: Numbered | None = None
    """With ``checkpoint``: the most files in one commit. Default: all new files."""
    poll: Interval | None = None
    """With ``checkpoint`` or ``source_table``: run as a stream that looks for new files or changes
    at this interval, until the process ends.
    """
    columns: ColumnSources | None = None
    """For files and SQL tables: the columns of the table that have another name in the source. Map
    each of them to its name in the source: ``{"amount": "Amount (EUR)"}``.
    """
    casts: ColumnCasts | None = None
    """For files and SQL tables: columns of the table whose values are cast, as in SQL, before they
    are written: ``{"amount": "DECIMAL(10, 2)"}``. A new column gets this type.
    """
    overwrite: Replaced | None = None
    """Replace rows, in one commit: ``partitions`` replaces all rows of the partitions that get
    rows, ``table`` all rows of the table, even if the source has no rows. Default: add the rows.
    """
    upsert_by: KeyColumns | None = None
    """For Iceberg and Mixed tables: the key columns; in a Mixed table, those of its primary key.
    New rows replace the stored rows with the same key, in one commit. An Iceberg table refuses two
    new rows with the same key. Change messages may repeat a key. They need ``upsert_by`` only for
    an Iceberg table without identifier fields.
    """
    on_schema_change: OnSchemaChange = "fail"
    """For files and SQL tables whose columns differ from the table's: ``fail`` refuses new columns
    and values that do not fit, ``add`` adds the new columns, ``widen`` also widens types. Change
    messages and ``source_table`` always add and widen.
    """
    create: bool = False
    """If the table does not exist, create it and its database, with the columns of the source."""
    primary_key: KeyColumns | None = None
    """With ``create``: the primary key of the table; of an Iceberg table its identifier fields."""
    partition_by: KeyColumns | None = None
    """With ``create``: the partition columns of the table; for an Iceberg table also transforms,
    such as ``day(ts)``.
    """
    table_options: TableOptionTexts | None = None
    """With ``create``: the options of the table, such as ``{"bucket": "4"}``."""
    dry_run: bool = False
    """Only show the files, the columns of a new table, and the changes that ``on_schema_change``
    allows to the columns of an existing table. Values are not checked.
    """
    stage: bool = False
    """Only write data files. To publish them, pass the address ``staged`` of the result to the job
    ``commit``. Not for Mixed tables.
    """

    def __post_init__(self) -> None:
        BatchRequest.__post_init__(self)
        given = [name for name in _SOURCES if getattr(self, name) is not None]
        if len(given) != 1:
            got = f"got {' and '.join(given)}" if given else "got none"
            raise refusal(f"give exactly one of the keys {', '.join(_SOURCES)}: {got}")
        self._require_belonging(given[0])
        if self.source_table == self.table:
            raise refusal(
                f"key 'source_table' is the target table {self.table!r} itself: name another table"
            )
        for name in _ONLY_TO_CREATE:
            if getattr(self, name) is not None and not self.create:
                needs = f"key {name!r} needs create=True for a new table"
                raise refusal(f"{needs}: add create=True, or leave out {name!r}")
        for name, option in (("primary_key", "primary-key"), ("partition_by", "partition")):
            if getattr(self, name) and option in (self.table_options or {}):
                raise refusal(f"key {name!r} and option {option!r} are the same: give only one")
        if "format" in (self.table_options or {}):
            raise refusal(
                "key 'table_options' has 'format', which only the catalog can set: leave it out. "
                "`lake --format iceberg create-table --mixed` makes a Mixed table"
            )
        if self.jdbc_url is not None:
            self._require_address(self.jdbc_url, self.source_options or {})

    def _require_address(self, url: str, options: Mapping[str, str]) -> None:
        """Raise ``InvalidRequestError`` if the address or an option does not belong to ``engine``.
        The message does not show the address, which may have a password.
        """
        is_of_spark = self.engine == "spark"
        if url.startswith("jdbc:") != is_of_spark:
            raise refusal(_ADDRESS_FOR_SPARK if is_of_spark else _ADDRESS_FOR_PYTHON)
        if is_of_spark and (keys := [name for name in _OF_THE_KEYS if name in options]):
            raise refusal(
                f"source_options has {keys[0]!r}: use the keys 'jdbc_url' and 'jdbc_table' instead"
            )
        if not is_of_spark and (strange := sorted(options.keys() - {"user", "password"})):
            raise refusal(
                f"source_options has {', '.join(map(repr, strange))}, but engine 'python' takes "
                "only 'user' and 'password': leave out the other options, or use engine 'spark'"
            )

    def _require_belonging(self, source: str) -> None:
        defaults = {each.name: each.default for each in fields(self)}
        for name, sources in _ONLY_WITH.items():
            if getattr(self, name) != defaults[name] and source not in sources:
                raise refusal(
                    f"key {name!r} needs key {' or '.join(map(repr, sources))}, but key "
                    f"{source!r} is given: leave out {name!r}"
                )
        for name, needed, meaning in _NEEDED:
            if source == name and getattr(self, needed) is None:
                raise refusal(f"key {name!r} needs key {needed!r}, {meaning}: add it")
        self._require_stream()
        if self.format is not None:
            self.dialect.require_fits("the source", self.file_format or "json")
        if self.messages_of is not None and not self.holds_messages:
            raise refusal(
                "key 'messages_of' needs a format of change messages: set 'format', such as "
                "'debezium-json', or leave out 'messages_of'"
            )

    def _require_stream(self) -> None:
        for name in ("files_per_batch", "poll"):
            if getattr(self, name) is not None and self.checkpoint is self.source_table is None:
                raise refusal(
                    f"with key 'source', key {name!r} needs key 'checkpoint', the record of "
                    f"ingested files: add it, or leave out {name!r}"
                )
        if self.stage and self.checkpoint is not None:
            raise refusal("keys 'stage' and 'checkpoint' exclude each other: leave one of them out")
        if self.dry_run and self.checkpoint is not None:
            raise refusal(
                "keys 'dry_run' and 'checkpoint' exclude each other: leave out 'checkpoint' to see "
                "the columns of all files"
            )
        if self.ingested_by is not None and self.commit_user is None:
            raise refusal(
                "key 'ingested_by' needs keys 'commit_user' and 'commit_identifier': add both, or "
                "leave out 'ingested_by'"
            )
        if self.ingested_in is not None and self.ingested_by is None:
            raise refusal(
                "key 'ingested_in' needs key 'ingested_by', the name of the task: add it, or leave "
                "out 'ingested_in'"
            )
        if self.overwrite is not None:
            self._require_all_rows()
        self._require_one_batch()
        self._require_plain_rows()

    def _require_plain_rows(self) -> None:
        """Refuse keys that cannot be used with change messages or with ``header=False``."""
        if self.on_schema_change != "fail" and self.holds_messages:
            raise refusal(
                f"key 'on_schema_change' cannot be used with format {self.format!r}: change "
                "messages always add new columns and widen types. Leave out 'on_schema_change'"
            )
        for name in ("columns", "casts"):
            if getattr(self, name) is not None and self.holds_messages:
                raise refusal(
                    f"key {name!r} cannot be used with format {self.format!r}: change messages "
                    f"have the names and types of their source table. Leave out {name!r}"
                )
        if self.columns is not None and self.header is False:
            raise refusal(
                "key 'columns' cannot be used with header=False: such files must have the table's "
                "columns in the table's order. Leave out 'columns', or add a header to the files"
            )

    def _require_all_rows(self) -> None:
        """Raise ``InvalidRequestError`` for keys that cannot be used with ``overwrite``."""
        if self.checkpoint is not None:
            raise refusal(
                "keys 'overwrite' and 'checkpoint' exclude each other: only new files are read, so "
                "they would replace the rows of earlier files. Leave one of them out"
            )
        if self.holds_messages:
            raise refusal(
                f"key 'overwrite' cannot be used with format {self.format!r}: change messages hold "
                "changes of rows, not all rows. Leave out 'overwrite'"
            )
        if self.stage:
            raise refusal(
                "keys 'overwrite' and 'stage' exclude each other: the job 'commit' adds the rows "
                "of staged results. Leave one of them out"
            )

    def _require_one_batch(self) -> None:
        """Raise ``InvalidRequestError`` for two keys that exclude each other."""
        pairs = [*product(self.order, ("checkpoint", "stage", "upsert_by"))]
        if self.upsert_by is not None:
            pairs += [("upsert_by", "overwrite")]
            pairs += [] if self.holds_messages else [("upsert_by", "stage")]
        for name, other in pairs:
            if getattr(self, other):
                raise refusal(f"keys {name!r} and {other!r} exclude each other: leave one out")

    @property
    def takes_new_files(self) -> bool:
        """True if the request asks to skip files that earlier runs of the task have ingested.

        The job still ingests all files if writing a row again does not change the table's rows.
        """
        replaces = self.overwrite is not None or self.upsert_by is not None or self.holds_messages
        return self.ingested_by is not None and not (replaces or self.stage or self.checkpoint)

    @property
    def dialect(self) -> TextDialect:
        """The keys that describe text files: delimiter, quote, escape, header, null values,
        encoding and compression.
        """
        from lakeformat.files.foreign.dialect import TextDialect

        return TextDialect.of({name: getattr(self, name) for name in DIALECT_NAMES})

    @property
    def mapping(self) -> ColumnMapping:
        """The keys ``columns`` and ``casts``: names and types that differ between source and
        table.
        """
        from lakeformat.files.foreign.column_mapping import ColumnMapping
        from lakeformat.types.type_text import parse_type

        casts = {name: parse_type(text) for name, text in (self.casts or {}).items()}
        return ColumnMapping(self.columns or {}, casts)

    @property
    def holds_messages(self) -> bool:
        """True if ``format`` is a format of change messages."""
        return self.format is not None and self.file_format is None

    @property
    def file_format(self) -> SourceFormat | None:
        """The key ``format`` if it is ``parquet``, ``csv`` or ``json``; None for change messages,
        and if ``format`` is not given.
        """
        for known in get_args(SourceFormat):
            if self.format == known:
                return known  # type: ignore[no-any-return]
        return None
