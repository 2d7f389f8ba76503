"""The request of the job ``ingest``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from dataclasses import field as declared
from typing import Literal, TypeAlias, get_args

from lakeformat.files.foreign.dialect import (
    DIALECT_NAMES,
    Compression,
    SourceFormat,
    TextDialect,
)
from spark_jobs.job_requests.common import CommitRequest
from spark_jobs.job_requests.request import refusal
from spark_jobs.job_requests.values import (
    ConsumerName,
    DialectCharacter,
    Duration,
    KeyColumns,
    MessageTable,
    NullValues,
    Numbered,
    TableOptionTexts,
    TextEncoding,
)

__all__ = ["IngestRequest", "MessageFormat"]

MessageFormat: TypeAlias = Literal["debezium-json", "canal-json", "maxwell-json"]

_SOURCES = ("source", "source_table", "jdbc_url")
_ONLY_WITH = {
    "format": ("source",),
    **dict.fromkeys(DIALECT_NAMES, ("source",)),
    "messages_of": ("source",),
    "stage": ("source", "jdbc_url"),
    "checkpoint": ("source",),
    "files_per_batch": ("source",),
    "poll": ("source", "source_table"),
    "consumer": ("source_table",),
    "jdbc_table": ("jdbc_url",),
    "source_options": ("jdbc_url",),
}
_OF_THE_KEYS = ("url", "dbtable", "query")
_ADDRESS_FOR_PYTHON = (
    "key 'jdbc_url' is of JDBC, for engine 'spark'; for engine 'python' write it as SQLAlchemy "
    "does, such as postgresql+psycopg2://host/database"
)
_ADDRESS_FOR_SPARK = (
    "key 'jdbc_url' is of SQLAlchemy, for engine 'python'; for engine 'spark' write it as JDBC "
    "does, such as jdbc:postgresql://host/database"
)
_ONLY_TO_CREATE = ("primary_key", "partition_by", "table_options")


@dataclass(frozen=True, kw_only=True)
class IngestRequest(CommitRequest):
    """Bring rows of files, of change messages, of a SQL table or of another lake table's changes
    into a table; with the same commit pair, once."""

    source: str | None = None
    """Path, address or glob of files: local ones, or in a bucket or on HDFS, which is opened with
    the storage options of the catalog."""
    format: SourceFormat | MessageFormat | None = None
    """The format of the files; by default the ending of their names. JSON means one object per
    line. The formats of change messages (one per line, too) are never guessed: their rows are
    upserted and deleted, and columns that are new or have become wider are added to the table."""
    delimiter: DialectCharacter | None = None
    """Of CSV files: the character between two values; a comma by default, ``\\t`` is a tab."""
    quote: DialectCharacter | None = None
    """Of CSV files: the character around values that hold a delimiter or a line break; ``"`` by
    default, empty if there is none."""
    escape: DialectCharacter | None = None
    """Of CSV files: the character before one that is meant literally; by default there is none."""
    header: bool | None = None
    """Of CSV files: whether the first line names the columns, which is the default. Without it
    the files have the columns of the table, in their order."""
    null_values: NullValues | None = None
    """Of CSV files: the unquoted texts that stand for NULL, as ``["", "NULL"]``; by default the
    empty one."""
    encoding: TextEncoding | None = None
    """Of text files: ``utf-8`` by default; or another such as ``latin-1`` or ``utf-16``."""
    compression: Compression | None = None
    """The compression of the files; by default the ending of their names: ``.gz``, ``.bz2`` or
    ``.zst``."""
    messages_of: MessageTable | None = None
    """Of change messages only those of this source table, as ``database.table``."""
    source_table: str | None = None
    """Another table of the warehouse, ``database.table``: what changed since the last time."""
    consumer: ConsumerName | None = None
    """With ``source_table``: who reads it. Its position is moved once the rows are committed; the
    first time all rows are read."""
    jdbc_url: str | None = None
    """A SQL database: of SQLAlchemy for engine ``python``, of JDBC for ``spark``."""
    jdbc_table: str | None = None
    """With ``jdbc_url``: the table or view whose rows are read, all of them, such as
    ``shop.orders`` or ``"My Shop"."Orders"``."""
    source_options: Mapping[str, str] | None = declared(default=None, repr=False)
    """With ``jdbc_url``: ``user`` and ``password``, and with Spark its other options."""
    checkpoint: str | None = None
    """With ``source``: a directory, path or URI, that keeps which files have been taken, so that
    each is taken once and later runs take what has come since. The commits are the checkpoint's
    own: a commit pair does nothing."""
    files_per_batch: Numbered | None = None
    """With ``checkpoint``: at most so many files in one commit."""
    poll: Duration | None = None
    """With ``checkpoint`` or ``source_table``: go on as a stream, and look for more so often, as
    ``"10 s"``, until the process is ended."""
    create: bool = False
    """Create a missing table, and its database, from the columns of the source."""
    primary_key: KeyColumns | None = None
    """With ``create``: the primary key of the table."""
    partition_by: KeyColumns | None = None
    """With ``create``: its partition columns."""
    table_options: TableOptionTexts | None = None
    """With ``create``: its options, as ``{"bucket": "4"}``."""
    stage: bool = False
    """Write the files of the table and leave their publication to the job ``commit``: the result
    names the staged result under ``staged``."""

    def __post_init__(self) -> None:
        CommitRequest.__post_init__(self)
        given = [name for name in _SOURCES if getattr(self, name) is not None]
        if len(given) != 1:
            said = f"got {' and '.join(given)}" if given else "got none"
            raise refusal(f"the rows come from one of {', '.join(_SOURCES)}: {said}")
        self._require_belonging(given[0])
        if self.source_table == self.table:
            raise refusal(f"key 'source_table' is {self.table!r} itself: a table follows another")
        for name in _ONLY_TO_CREATE:
            if getattr(self, name) is not None and not self.create:
                raise refusal(f"key {name!r} is for a table that is made: it goes with 'create'")
        for name, option in (("primary_key", "primary-key"), ("partition_by", "partition")):
            if getattr(self, name) and option in (self.table_options or {}):
                raise refusal(f"key {name!r} and option {option!r} say the same: say it once")
        if self.jdbc_url is not None:
            self._require_address(self.jdbc_url, self.source_options or {})

    def _require_address(self, url: str, options: Mapping[str, str]) -> None:
        """No message shows the address: it may hold a password."""
        is_of_spark = self.engine == "spark"
        if url.startswith("jdbc:") != is_of_spark:
            raise refusal(_ADDRESS_FOR_SPARK if is_of_spark else _ADDRESS_FOR_PYTHON)
        if is_of_spark and (said := [name for name in _OF_THE_KEYS if name in options]):
            raise refusal(
                f"source_options say {said[0]!r}, which keys 'jdbc_url' and 'jdbc_table' say"
            )
        if not is_of_spark and (strange := sorted(options.keys() - {"user", "password"})):
            raise refusal(
                f"source_options {', '.join(map(repr, strange))}: with engine 'python' they are "
                "'user' and 'password'"
            )

    def _require_belonging(self, source: str) -> None:
        defaults = {each.name: each.default for each in fields(self)}
        for name, sources in _ONLY_WITH.items():
            if getattr(self, name) != defaults[name] and source not in sources:
                raise refusal(f"key {name!r} goes with {' or '.join(map(repr, sources))}")
        for name, needed in (("source_table", "consumer"), ("jdbc_url", "jdbc_table")):
            if source == name and getattr(self, needed) is None:
                raise refusal(f"key {name!r} wants key {needed!r}, too")
        self._require_stream()
        if self.format is not None:
            self.dialect.require_fits("the source", self.file_format or "json")
        if self.messages_of is not None and not self.holds_messages:
            raise refusal("key 'messages_of' goes with a format of change messages")

    def _require_stream(self) -> None:
        for name in ("files_per_batch", "poll"):
            if getattr(self, name) is not None and self.checkpoint is self.source_table is None:
                raise refusal(f"key {name!r} wants key 'checkpoint', too")
        if self.stage and self.checkpoint is not None:
            raise refusal("keys 'stage' and 'checkpoint' do not go together: a stream commits")

    @property
    def dialect(self) -> TextDialect:
        """The form of text files."""
        return TextDialect.of({name: getattr(self, name) for name in DIALECT_NAMES})

    @property
    def holds_messages(self) -> bool:
        """True if the source holds change messages."""
        return self.format is not None and self.file_format is None

    @property
    def file_format(self) -> SourceFormat | None:
        """The format of plain files; None without a format, or with one of messages."""
        for known in get_args(SourceFormat):
            if self.format == known:
                return known  # type: ignore[no-any-return]
        return None
