"""Every table option, declared once: key, type, default, meaning, and whether it may change.

Parsing, validation, the typed accessor and ``docs/reference/options.md`` come from the
declarations in ``TableOptions``. Code takes a ``TableOptions``, never a raw dictionary.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Generic, TypeVar, overload

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.option_kinds import (
    ADDRESSES,
    BOOLEAN,
    BUCKETS,
    COLUMN_NAMES,
    DURATION,
    FILE_NAME_PART,
    OPTIONAL_DURATION,
    OPTIONAL_NUMBER,
    RELATIVE_PATH,
    SCHEME,
    SIZE,
    STATISTICS_MODE,
    TEXT,
    UNAWARE,
    Kind,
    one_of,
    or_unset,
    per_level,
    whole_number,
)

__all__ = [
    "ColumnOption",
    "Group",
    "Option",
    "TableOptions",
    "declared_options",
    "require_unaware_buckets",
    "unknown_option_message",
]

T = TypeVar("T")
_FORMAT = one_of("parquet", "orc", "avro")
_COMPRESSION = one_of("zstd", "snappy", "lz4", "gzip", "deflate", "none", "null")


class Group(StrEnum):
    """Why somebody sets an option."""

    BEHAVIOUR = "behaviour"
    PERFORMANCE = "performance"


class Option(Generic[T]):
    """One declared option; read on a ``TableOptions`` it is the typed value."""

    def __init__(
        self,
        key: str,
        kind: Kind[T],
        default: str,
        description: str,
        *,
        group: Group = Group.BEHAVIOUR,
        mutable: bool = True,
    ) -> None:
        self.key = key
        self.kind = kind
        self.default = default
        self.description = description
        self.group = group
        self.mutable = mutable

    @overload
    def __get__(self, instance: None, owner: type[TableOptions]) -> Option[T]: ...
    @overload
    def __get__(self, instance: TableOptions, owner: type[TableOptions]) -> T: ...
    def __get__(self, instance: TableOptions | None, owner: type[TableOptions]) -> Option[T] | T:
        return self if instance is None else self.parse(instance.text(self))

    def parse(self, text: str) -> T:
        """The typed value of a text, or an error that names the option."""
        try:
            return self.kind.parse(text)
        except ValueError as reason:
            raise InvalidRequestError(
                f"option {self.key!r} is {text!r}, but must be {self.kind.name}: {reason}"
            ) from None


class ColumnOption(Option[T]):
    """An option with one value per column, such as ``fields.price.stats-mode``.

    Its key has ``<column>`` where the name goes; it is read with ``TableOptions.of_column``.
    """

    def key_of(self, column: str) -> str:
        """The key that sets it for one column."""
        return self.key.replace(_COLUMN, column)

    def sets(self, key: str) -> bool:
        """Whether a key of a table is this option for some column."""
        start, end = self.key.split(_COLUMN)
        return key.startswith(start) and key.endswith(end) and len(key) > len(start + end)


_COLUMN = "<column>"


class TableOptions:
    """The options of one table, typed; keys that are not declared are kept as they are."""

    bucket = Option(
        "bucket",
        BUCKETS,
        "-1",
        "Number of buckets; -1 is one for an append table and as many as it needs for a "
        "primary-key table, whose rows -2 puts off until a compaction. This version writes append "
        "tables with -1.",
    )
    bucket_key = Option(
        "bucket-key",
        COLUMN_NAMES,
        "",
        "Columns that decide which bucket a row is in; unset, the primary key does.",
        mutable=False,
    )
    bucket_function = Option(
        "bucket-function.type",
        one_of("default", "mod", "hive"),
        "default",
        "How the bucket key becomes a bucket: by hash, by remainder, or as Hive does.",
        mutable=False,
    )
    file_format = Option(
        "file.format",
        _FORMAT,
        "parquet",
        "Format of new data files; files that exist are read by their own name's ending.",
    )
    file_compression = Option(
        "file.compression",
        _COMPRESSION,
        "zstd",
        "Compression of new data files; lz4 when processor time is scarcer than storage.",
        group=Group.PERFORMANCE,
    )
    file_format_per_level = Option(
        "file.format.per.level",
        per_level(_FORMAT),
        "",
        "Format of a primary-key table's new files by level, where it is not file.format.",
    )
    file_compression_per_level = Option(
        "file.compression.per.level",
        per_level(_COMPRESSION),
        "",
        "Compression of a primary-key table's new files by level, where it is not "
        "file.compression: little for level 0, which is soon rewritten.",
        group=Group.PERFORMANCE,
    )
    file_compression_zstd_level = Option(
        "file.compression.zstd-level",
        whole_number(1, 22),
        "1",
        "Level of zstd for data files and manifests; higher is smaller and slower, and not for "
        "ORC files.",
        group=Group.PERFORMANCE,
    )
    target_file_size_bytes = Option(
        "target-file-size",
        SIZE,
        "256 mb",
        "A writer starts a new data file once the current one has reached this size.",
        group=Group.PERFORMANCE,
    )
    data_file_prefix = Option(
        "data-file.prefix",
        FILE_NAME_PART,
        "data-",
        "How names of new data files begin; set it to tell the files of several writers apart.",
    )
    changelog_file_prefix = Option(
        "changelog-file.prefix",
        FILE_NAME_PART,
        "changelog-",
        "How names of new changelog files begin.",
    )
    changelog_file_format = Option(
        "changelog-file.format",
        or_unset(_FORMAT),
        "",
        "Format of new changelog files, where it is not that of data files of their level.",
    )
    changelog_file_compression = Option(
        "changelog-file.compression",
        or_unset(_COMPRESSION),
        "",
        "Compression of new changelog files, where it is not that of data files of their level.",
        group=Group.PERFORMANCE,
    )
    changelog_statistics_mode = Option(
        "changelog-file.stats-mode",
        or_unset(STATISTICS_MODE),
        "",
        "Like metadata.stats-mode, for changelog files, which few readers filter.",
        group=Group.PERFORMANCE,
    )
    file_suffix_include_compression = Option(
        "file.suffix.include.compression",
        BOOLEAN,
        "false",
        "Put the compression into names of new files, as in data-….zst.parquet, for other tools.",
    )
    data_file_thin_mode = Option(
        "data-file.thin-mode",
        BOOLEAN,
        "false",
        "Leave the copies of key columns out of new files of a primary-key table: less to write.",
        group=Group.PERFORMANCE,
    )
    statistics_mode = Option(
        "metadata.stats-mode",
        STATISTICS_MODE,
        "truncate(16)",
        "Which statistics manifests keep of each column, for scans to skip files by.",
        group=Group.PERFORMANCE,
    )
    statistics_mode_per_level = Option(
        "metadata.stats-mode.per.level",
        per_level(STATISTICS_MODE),
        "",
        "Like metadata.stats-mode, for new files of some levels of a primary-key table.",
        group=Group.PERFORMANCE,
    )
    statistics_keep_first_n_columns = Option(
        "metadata.stats-keep-first-n-columns",
        whole_number(-1, 2**31 - 1),
        "-1",
        "Keep statistics of so many leading columns only, for wide tables; -1 is all of them.",
        group=Group.PERFORMANCE,
    )
    statistics_dense_store = Option(
        "metadata.stats-dense-store",
        BOOLEAN,
        "true",
        "Leave columns without statistics out of manifests; false is for readers before 0.9.",
        group=Group.PERFORMANCE,
    )
    column_statistics_mode = ColumnOption(
        "fields.<column>.stats-mode",
        STATISTICS_MODE,
        "none",
        "Like metadata.stats-mode, for one column; if it is not set, that option decides.",
        group=Group.PERFORMANCE,
    )
    manifest_compression = Option(
        "manifest.compression",
        one_of("zstd", "snappy", "deflate", "null"),
        "zstd",
        "Compression of new manifests; every reader of the format knows all four.",
        group=Group.PERFORMANCE,
    )
    manifest_target_size_bytes = Option(
        "manifest.target-file-size",
        SIZE,
        "8 mb",
        "Commits merge small manifests into ones of about this size; larger is fewer files to "
        "read for a plan and more to write for a merge.",
        group=Group.PERFORMANCE,
    )
    manifest_full_compaction_size_bytes = Option(
        "manifest.full-compaction-threshold-size",
        SIZE,
        "16 mb",
        "Once manifests that are small or delete files take this much, a commit rewrites all of "
        "them and drops deleted files; raise it where commits must stay short.",
        group=Group.PERFORMANCE,
    )
    manifest_merge_min_count = Option(
        "manifest.merge-min-count",
        whole_number(1, 1_000_000),
        "30",
        "How many small manifests are left before a commit merges them; lower it for tables that "
        "are read far more often than written.",
        group=Group.PERFORMANCE,
    )
    data_file_path_directory = Option(
        "data-file.path-directory",
        RELATIVE_PATH,
        "",
        "Directory below the table that holds its data files, to keep them apart from metadata.",
        mutable=False,
    )
    data_file_external_paths = Option(
        "data-file.external-paths",
        ADDRESSES,
        "",
        "Directories outside the table that new data and changelog files go to, once "
        "data-file.external-paths.strategy says how.",
    )
    data_file_external_paths_strategy = Option(
        "data-file.external-paths.strategy",
        one_of("none", "round-robin", "specific-fs"),
        "none",
        "Whether new files go to no external path, to each in turn, or in turn to those with the "
        "scheme of data-file.external-paths.specific-fs.",
    )
    data_file_external_paths_specific_fs = Option(
        "data-file.external-paths.specific-fs",
        SCHEME,
        "",
        "Which of the external paths the strategy specific-fs uses.",
    )
    index_file_in_data_file_dir = Option(
        "index-file-in-data-file-dir",
        BOOLEAN,
        "false",
        "Whether index files lie beside the data files instead of in one directory.",
        mutable=False,
    )
    partition_default_name = Option(
        "partition.default-name",
        FILE_NAME_PART,
        "__DEFAULT_PARTITION__",
        "Directory of rows whose partition value is null, empty or blank.",
        mutable=False,
    )
    partition_legacy_name = Option(
        "partition.legacy-name",
        BOOLEAN,
        "true",
        "Whether directories spell dates and times as numbers, as the first releases did.",
        mutable=False,
    )
    merge_engine = Option(
        "merge-engine",
        one_of("deduplicate"),
        "deduplicate",
        "What becomes of several rows with one primary key: the last one wins.",
        mutable=False,
    )
    deletion_vectors_enabled = Option(
        "deletion-vectors.enabled",
        BOOLEAN,
        "false",
        "Whether compaction marks replaced rows instead of leaving them to be merged when read; "
        "rows not compacted yet are then invisible.",
        mutable=False,
    )
    deletion_vectors_merge_on_read = Option(
        "deletion-vectors.merge-on-read",
        BOOLEAN,
        "false",
        "Whether reads of a table with deletion vectors also see rows not compacted yet.",
    )
    add_column_before_partition = Option(
        "add-column-before-partition",
        BOOLEAN,
        "false",
        "New columns go before the partition columns instead of last, where nobody says where.",
    )
    alter_column_null_to_not_null_disabled = Option(
        "alter-column-null-to-not-null.disabled",
        BOOLEAN,
        "true",
        "Refuse to make a column NOT NULL; false is for those who know that it holds no null.",
    )
    disable_explicit_type_casting = Option(
        "disable-explicit-type-casting",
        BOOLEAN,
        "false",
        "Refuse to change a column to a type that cannot hold each of its values.",
    )
    commit_max_retries = Option(
        "commit.max-retries",
        whole_number(0, 1_000_000),
        "10",
        "How often a commit tries again after another writer was first; raise it for many writers.",
    )
    commit_min_retry_wait_millis = Option(
        "commit.min-retry-wait",
        DURATION,
        "10 ms",
        "Pause before the first retry of a commit; it doubles with each further one.",
        group=Group.PERFORMANCE,
    )
    commit_max_retry_wait_millis = Option(
        "commit.max-retry-wait",
        DURATION,
        "10 s",
        "Longest pause between two attempts of a commit.",
        group=Group.PERFORMANCE,
    )

    commit_timeout_millis = Option(
        "commit.timeout",
        OPTIONAL_DURATION,
        "",
        "How long a commit goes on trying; empty is as long as its retries last.",
    )
    commit_user_prefix = Option(
        "commit.user-prefix",
        TEXT,
        "",
        "How the user of commits without an identity of their own begins, to tell jobs apart.",
    )
    commit_force_create_snapshot = Option(
        "commit.force-create-snapshot",
        BOOLEAN,
        "false",
        "Whether a commit without any change makes a snapshot all the same.",
    )
    snapshot_ignore_empty_commit = Option(
        "snapshot.ignore-empty-commit",
        BOOLEAN,
        "true",
        "Whether a commit without any change makes no snapshot.",
    )
    commit_discard_duplicate_files = Option(
        "commit.discard-duplicate-files",
        BOOLEAN,
        "false",
        "Whether an append leaves out files the table has already, instead of adding them again.",
    )
    commit_last_safe_snapshot = Option(
        "commit.strict-mode.last-safe-snapshot",
        OPTIONAL_NUMBER,
        "",
        "Refuse a commit if another user has changed its partitions after this snapshot; empty is "
        "not to look.",
    )
    dynamic_partition_overwrite = Option(
        "dynamic-partition-overwrite",
        BOOLEAN,
        "true",
        "Whether other engines' INSERT OVERWRITE replaces only the partitions that get rows; here "
        "the call says which are meant.",
    )
    overwrite_upgrade = Option(
        "overwrite-upgrade",
        BOOLEAN,
        "true",
        "Whether files that overwrite a primary-key table go to the highest level at once.",
        group=Group.PERFORMANCE,
    )
    compaction_trigger = Option(
        "num-sorted-run.compaction-trigger",
        whole_number(1, 1_000_000),
        "5",
        "How many sorted runs of a bucket start a compaction; fewer is faster to read.",
        group=Group.PERFORMANCE,
    )
    num_levels = Option(
        "num-levels",
        OPTIONAL_NUMBER,
        "",
        "Number of levels of a primary-key table; empty is one more than the compaction trigger.",
        group=Group.PERFORMANCE,
    )
    row_tracking_enabled = Option(
        "row-tracking.enabled",
        BOOLEAN,
        "false",
        "Whether every row gets a number that stays its own.",
        mutable=False,
    )
    row_tracking_partition_group = Option(
        "row-tracking.partition-group-on-commit",
        BOOLEAN,
        "true",
        "Whether a commit numbers the rows of one partition after the other.",
    )
    write_only = Option(
        "write-only",
        BOOLEAN,
        "false",
        "Whether other engines' writers leave compaction and expiry to jobs of their own, as "
        "writers here always do.",
    )

    @property
    def level_count(self) -> int:
        """How many levels a primary-key table has."""
        levels = self.num_levels
        return self.compaction_trigger + 1 if levels is None else levels

    def __init__(self, raw: Mapping[str, str] | None = None) -> None:
        self._raw = dict(raw or {})

    def of_level(self, level: int) -> TableOptions:
        """As they hold for the data files of one level of a primary-key table."""
        return self._with(
            {
                TableOptions.file_format: self.file_format_per_level.get(level),
                TableOptions.file_compression: self.file_compression_per_level.get(level),
                TableOptions.statistics_mode: self.statistics_mode_per_level.get(level),
            }
        )

    def of_changelog(self, level: int) -> TableOptions:
        """As they hold for the changelog files that are written beside data files of a level."""
        return self.of_level(level)._with(
            {
                TableOptions.file_format: self.changelog_file_format,
                TableOptions.file_compression: self.changelog_file_compression,
                TableOptions.statistics_mode: self.changelog_statistics_mode,
            }
        )

    def _with(self, values: Mapping[Option[str], str | None]) -> TableOptions:
        """With other values, as far as they are known."""
        known = {option.key: value for option, value in values.items() if value}
        return TableOptions({**self._raw, **known})

    def text(self, option: Option[Any]) -> str:
        """The text of an option as the table sets it, or its default."""
        return self._raw.get(option.key, option.default)

    def of_column(self, option: Option[T], column: str) -> T | None:
        """What a table sets for one column; None if it does not say."""
        assert isinstance(option, ColumnOption)
        text = self._raw.get(option.key_of(column))
        return None if text is None else option.parse(text)

    def to_dict(self) -> dict[str, str]:
        """What the table sets explicitly, declared or not."""
        return dict(self._raw)

    def unknown(self) -> list[str]:
        """Keys this version does not know; it must not write where they are set."""
        known = {option.key for option in declared_options()}
        by_column = [option for option in declared_options() if isinstance(option, ColumnOption)]
        return sorted(
            key
            for key in self._raw
            if key not in known and not any(option.sets(key) for option in by_column)
        )

    def validate(self) -> None:
        """Raise unless every option is known and its value is one this version can honour."""
        for key in self.unknown():
            raise InvalidRequestError(unknown_option_message(key))
        for option in declared_options():
            if isinstance(option, ColumnOption):
                for key in filter(option.sets, self._raw):
                    option.parse(self._raw[key])
            else:
                option.parse(self.text(option))


def require_unaware_buckets(options: TableOptions, table: str) -> None:
    """Refuse to write a table whose rows would have to be spread over buckets."""
    if options.bucket != UNAWARE:
        raise UnsupportedError(
            f"option 'bucket' of {table} is '{options.bucket}': this version reads such tables, "
            "but writes only those with -1"
        )


def declared_options() -> list[Option[Any]]:
    """Every declaration, by key."""
    found = [value for value in vars(TableOptions).values() if isinstance(value, Option)]
    return sorted(found, key=lambda option: option.key)


def unknown_option_message(key: str) -> str:
    """Say that an option cannot be honoured, and which one may have been meant."""
    close = difflib.get_close_matches(key, [option.key for option in declared_options()], n=1)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    return f"option {key!r} is not supported by this version{meant}"
