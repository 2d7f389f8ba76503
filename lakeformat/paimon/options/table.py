# SPDX-License-Identifier: Apache-2.0
"""Every table option, declared once: key, type, default, meaning, and whether it may change.

Parsing, validation, the typed accessor and ``docs/reference/options.md`` come from the
declarations in ``TableOptions``. Code takes a ``TableOptions``, never a raw dictionary.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, TypeVar

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.options.bucket import BucketOptions
from lakeformat.paimon.options.changelog import ChangelogOptions
from lakeformat.paimon.options.compaction import CompactionOptions
from lakeformat.paimon.options.expiry import ExpiryOptions
from lakeformat.paimon.options.file import FileOptions
from lakeformat.paimon.options.file_index import FileIndexOptions
from lakeformat.paimon.options.foreign import (
    ForeignClass,
    ForeignOption,
    Trait,
    find_foreign,
)
from lakeformat.paimon.options.kinds import (
    BOOLEAN,
    BUCKETS,
    COLUMN_NAMES,
    DURATION,
    FILE_NAME_PART,
    OPTIONAL_DURATION,
    OPTIONAL_SNAPSHOT,
    SIZE,
    TEXT,
    one_of,
    whole_number,
)
from lakeformat.paimon.options.merge import MergeOptions
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.options.option import ColumnOption, Group, Option
from lakeformat.paimon.options.partition import PartitionOptions
from lakeformat.paimon.options.read import ReadOptions
from lakeformat.paimon.options.spelling import check_own_key
from lakeformat.paimon.options.tag import TagOptions
from lakeformat.paimon.options.time_travel import TimeTravelOptions
from lakeformat.paimon.options.write import WriteOptions

__all__ = [
    "TableOptions",
    "declared_options",
    "find_option",
]

T = TypeVar("T")

_TARGET_OF_LEVELS = "128 mb"
"""The default of target-file-size for primary-key tables."""


class TableOptions(
    BucketOptions,
    ChangelogOptions,
    CompactionOptions,
    ExpiryOptions,
    FileIndexOptions,
    FileOptions,
    MergeOptions,
    PartitionOptions,
    ReadOptions,
    TagOptions,
    TimeTravelOptions,
    WriteOptions,
):
    """The options of one table, typed; undeclared keys are kept unchanged."""

    bucket = Option(
        "bucket",
        BUCKETS,
        "-1",
        "Number of buckets; -1: one for an append table, and as many as needed for a primary-key "
        "table; -2: rows of a primary-key table are postponed until a compaction.",
    )
    bucket_key = Option(
        "bucket-key",
        COLUMN_NAMES,
        "",
        "Columns that decide the bucket of a row; unset: the primary key.",
        mutable=False,
    )
    bucket_function = Option(
        "bucket-function.type",
        one_of("default", "mod", "hive"),
        "default",
        "How the bucket key is mapped to a bucket: by hash, by remainder, or like Hive.",
        mutable=False,
    )
    manifest_compression = Option(
        "manifest.compression",
        one_of("zstd", "snappy", "deflate", "gzip", "zlib", "lz4", "none", "null", "uncompressed"),
        "zstd",
        "Compression of new manifests. If manifest.format lacks it, the most similar one is used: "
        "in Avro none becomes null, and lz4 becomes snappy, where Java fails to commit.",
        group=Group.PERFORMANCE,
    )
    manifest_format = Option(
        "manifest.format",
        one_of("avro", "orc", "parquet"),
        "avro",
        "Format of manifests, manifest lists and index manifests; readers other than Java support "
        "only avro.",
        mutable=False,
    )
    manifest_target_size_bytes = Option(
        "manifest.target-file-size",
        SIZE,
        "8 mb",
        "Commits merge small manifests to about this size; a larger size means fewer files per "
        "plan, and larger rewrites per merge.",
        group=Group.PERFORMANCE,
    )
    manifest_full_compaction_size_bytes = Option(
        "manifest.full-compaction-threshold-size",
        SIZE,
        "16 mb",
        "Total size of small and delete-carrying manifests at which a commit rewrites all of them "
        "and drops deleted files; raise it if commits must be short.",
        group=Group.PERFORMANCE,
    )
    manifest_merge_min_count = Option(
        "manifest.merge-min-count",
        whole_number(1, 1_000_000),
        "30",
        "Number of small manifests at which a commit merges them; lower it for tables that are "
        "read far more often than written.",
        group=Group.PERFORMANCE,
    )
    index_file_in_data_file_dir = Option(
        "index-file-in-data-file-dir",
        BOOLEAN,
        "false",
        "Index files are stored beside the data files instead of in one directory.",
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
        "Directory names contain dates and times as numbers, as in the first releases.",
        mutable=False,
    )
    deletion_vectors_enabled = Option(
        "deletion-vectors.enabled",
        BOOLEAN,
        "false",
        "Compaction marks replaced rows, so that reads need no merge; rows that are not compacted "
        "yet are then invisible.",
        mutable=False,
    )
    deletion_vectors_merge_on_read = Option(
        "deletion-vectors.merge-on-read",
        BOOLEAN,
        "false",
        "Reads of a table with deletion vectors include rows that are not compacted yet.",
    )
    add_column_before_partition = Option(
        "add-column-before-partition",
        BOOLEAN,
        "false",
        "New columns are placed before the partition columns instead of last, unless the call "
        "gives a position.",
    )
    alter_column_null_to_not_null_disabled = Option(
        "alter-column-null-to-not-null.disabled",
        BOOLEAN,
        "true",
        "Refuse to make a column NOT NULL; set it to false if you know that the column has no "
        "null.",
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
        "Retries of a commit after another writer committed first; raise it for many writers.",
    )
    commit_min_retry_wait_millis = Option(
        "commit.min-retry-wait",
        DURATION,
        "10 ms",
        "Pause before the first retry of a commit; it doubles with each retry.",
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
        "The longest time that a commit retries; empty: no limit besides the number of retries.",
    )
    commit_user_prefix = Option(
        "commit.user-prefix",
        TEXT,
        "",
        "Prefix of the user of commits without an identity of their own, to distinguish jobs.",
    )
    commit_force_create_snapshot = Option(
        "commit.force-create-snapshot",
        BOOLEAN,
        "false",
        "A commit without any change creates a snapshot nevertheless.",
    )
    snapshot_ignore_empty_commit = Option(
        "snapshot.ignore-empty-commit",
        BOOLEAN,
        "true",
        "A commit without any change creates no snapshot.",
    )
    commit_discard_duplicate_files = Option(
        "commit.discard-duplicate-files",
        BOOLEAN,
        "false",
        "An append skips files that the table already has, instead of adding them again.",
    )
    commit_last_safe_snapshot = Option(
        "commit.strict-mode.last-safe-snapshot",
        OPTIONAL_SNAPSHOT,
        "",
        "Refuse a commit if another user changed its partitions after this snapshot (0: in the "
        "whole history); empty: no check.",
    )
    overwrite_upgrade = Option(
        "overwrite-upgrade",
        BOOLEAN,
        "true",
        "Files that overwrite a primary-key table go directly to the highest level.",
        group=Group.PERFORMANCE,
    )
    row_tracking_enabled = Option(
        "row-tracking.enabled",
        BOOLEAN,
        "false",
        "Every row gets a number that never changes.",
        mutable=False,
    )
    row_tracking_partition_group = Option(
        "row-tracking.partition-group-on-commit",
        BOOLEAN,
        "true",
        "A commit numbers the rows partition by partition.",
    )
    data_evolution_enabled = Option(
        "data-evolution.enabled",
        BOOLEAN,
        "false",
        "Files may hold new values of single columns, matched to the rows by row number; needs "
        "'row-tracking.enabled'. This library reads such tables and appends rows; only other "
        "engines change single columns.",
        mutable=False,
    )
    write_only = Option(
        "write-only",
        BOOLEAN,
        "false",
        "Writers of other engines leave compaction and expiry to separate jobs, as writers of "
        "this library always do.",
        older_keys=("write.compaction-skip",),
    )

    @property
    def level_count(self) -> int:
        """The number of levels of a primary-key table."""
        levels = self.num_levels
        return self.compaction_trigger + 1 if levels is None else levels

    @property
    def keeps_moved_rows(self) -> bool:
        """True if a row that moves to another partition is not deleted in the old one."""
        return self.merge_engine == "deduplicate" and self.ignore_delete

    @property
    def looks_up(self) -> bool:
        """True if compactions of a primary-key table merge new rows with all older ones."""
        return (
            self.changelog_producer == "lookup"
            or self.merge_engine == "first-row"
            or self.deletion_vectors_enabled
            or self.force_lookup
        )

    @property
    def makes_changelog(self) -> bool:
        """True if compactions of the table make its changelog."""
        return self.changelog_producer in ("lookup", "full-compaction")

    def strategy_of_changelog(self) -> str:
        """Return the cheapest strategy of a compaction that completes the changelog."""
        if not self.makes_changelog:
            raise InvalidRequestError(
                f"option 'changelog-producer' is {self.changelog_producer!r}: no compaction makes "
                "a changelog of this table. Use `lake compact`; docs/changelog.md lists the "
                "tables that may get another producer"
            )
        return "minor" if self.changelog_producer == "lookup" else "full"

    def aggregate_function_of(self, column: str) -> str | None:
        """Return the function of a column outside key and sequence; None if it has none."""
        named = self.of_column(TableOptions.aggregate_function, column)
        return named or self.default_aggregate_function or None

    @property
    def asks_for_file_indexes(self) -> bool:
        """True if the table sets any option about the index that each data file may have."""
        return any(key.startswith("file-index.") for key in self._raw)

    def __init__(self, raw: Mapping[str, str] | None = None) -> None:
        self._raw = dict(raw or {})

    def differing(self, asked: Mapping[str, str]) -> dict[str, tuple[str | None, str]]:
        """Return the options whose value differs from the asked one, with both texts."""
        found = {}
        for key, value in asked.items():
            option = find_option(key)
            current = self._raw.get(key)
            if option is not None and not isinstance(option, ColumnOption):
                current = self.text(option)
            same = current == value or (
                option is not None
                and current is not None
                and option.parse(current) == option.parse(value)
            )
            if not same:
                found[key] = (current, value)
        return found

    def of_level(self, level: int) -> TableOptions:
        """Return the options for the data files of one level of a primary-key table."""
        return self._with(
            {
                TableOptions.target_file_size_bytes: self._raw.get(
                    TableOptions.target_file_size_bytes.key, _TARGET_OF_LEVELS
                ),
                TableOptions.file_format: self.file_format_per_level.get(level),
                TableOptions.file_compression: self.file_compression_per_level.get(level),
                TableOptions.statistics_mode: self.statistics_mode_per_level.get(level),
            }
        )

    def of_changelog(self, level: int) -> TableOptions:
        """Return the options for the changelog files beside data files of a level."""
        return self.of_level(level)._with(
            {
                TableOptions.file_format: self.changelog_file_format,
                TableOptions.file_compression: self.changelog_file_compression,
                TableOptions.statistics_mode: self.changelog_statistics_mode,
            }
        )

    def of_postponed(self, prefix: str, file_format: str) -> TableOptions:
        """Return the options for files of postponed rows, in which readers never search for
        keys."""
        return self.of_level(0)._with(
            {
                TableOptions.data_file_prefix: prefix,
                TableOptions.file_format: file_format,
                TableOptions.statistics_mode: "none",
            }
        )

    def _with(self, values: Mapping[Option[Any], str | None]) -> TableOptions:
        """Return these options with ``values`` in place of their own; None or an empty text keeps
        the own.
        """
        known = {option.key: value for option, value in values.items() if value}
        return TableOptions({**self._raw, **known})

    def text(self, option: Option[Any]) -> str:
        """Return the text of an option in the table, or its default."""
        for key in (option.key, *option.older_keys):
            if key in self._raw:
                return self._raw[key]
        return option.default

    def of_column(self, option: Option[T], column: str) -> T | None:
        """Return the value of an option for one column; None if it is not set."""
        assert isinstance(option, ColumnOption)
        text = self._raw.get(option.key_of(column))
        return None if text is None else option.parse(text)

    def to_dict(self) -> dict[str, str]:
        """Return the options that the table sets explicitly, declared or not."""
        return dict(self._raw)

    def unknown(self) -> list[str]:
        """Return the keys that this version does not list: kept for the engine that set them."""
        return sorted(
            key for key in self._raw if find_option(key) is None and find_foreign(key) is None
        )

    def ignored_layout(self) -> list[str]:
        """Return the keys that shape files in other engines and have no effect here."""
        found = ((key, find_foreign(key)) for key in self._raw if find_option(key) is None)
        return sorted(key for key, option in found if option and option.kind is ForeignClass.LAYOUT)

    def forbidding(
        self, operation: Operation, traits: frozenset[Trait]
    ) -> list[tuple[str, ForeignOption]]:
        """Return the options that make an operation wrong, each with its declaration."""
        found = []
        for key, value in self._raw.items():
            if find_option(key) is not None or (option := find_foreign(key)) is None:
                continue
            if option.forbids(operation, value, traits):
                found.append((key, option))
        return sorted(found, key=lambda each: each[0])

    def validate(self) -> None:
        """Raise if an option decides about rows and this version does not support it.

        For options that a caller gives here; a table of another engine may have any.
        """
        for key, value in self._raw.items():
            if find_option(key) is not None:
                continue
            check_own_key(key, declared_options())
            option = find_foreign(key)
            if option is not None and not option.is_harmless(value):
                raise InvalidRequestError(
                    f"option {key!r} {option.says}, which this version does not support: remove "
                    "it here; create and maintain tables that need it with another engine"
                )
        self.check_values()

    def misread(self) -> dict[str, InvalidRequestError]:
        """Return the error of each value that does not have its option's type, by key."""
        found = {}
        for key, text in self._raw.items():
            if (option := find_option(key)) is not None:
                try:
                    option.parse(text)
                except InvalidRequestError as error:
                    found[key] = error
        return found

    @staticmethod
    def uses(key: str, operation: Operation) -> bool:
        """Return True if ``operation`` reads the option ``key``, or may read it in one of its
        steps.
        """
        return find_option(key) in _used_by(operation)

    def check_values(self, operation: Operation | None = None) -> None:
        """Raise unless every value has its option's type; checks only those that an operation
        reads."""
        used = _used_by(operation)
        for key, text in self._raw.items():
            option = find_option(key)
            if option is None or option not in used:
                continue
            if isinstance(option, ColumnOption) or text == self.text(option):
                option.parse(text)


@cache
def declared_options() -> tuple[Option[Any], ...]:
    """Return every declaration, by key."""
    members = (vars(owner).values() for owner in TableOptions.__mro__)
    found = [value for values in members for value in values if isinstance(value, Option)]
    return tuple(sorted(found, key=lambda option: option.key))


@lru_cache(maxsize=4096)
def find_option(key: str) -> Option[Any] | None:
    """Return the declaration of a key, older names included; None if it has none."""
    return next((option for option in declared_options() if option.sets(key)), None)


@cache
def _used_by(operation: Operation | None) -> frozenset[Option[Any]]:
    """Return the options that an operation reads, or may read in some step; None is all."""
    if operation is None:
        return frozenset(declared_options())
    if operation in (Operation.WRITE, Operation.COMPACT):
        others = (ExpiryOptions, PartitionOptions, TagOptions, TimeTravelOptions)
        return frozenset(declared_options()).difference(*map(_of, others))
    if operation is Operation.COMMIT:
        starts = ("commit.", "manifest.")
        return frozenset(each for each in declared_options() if each.key.startswith(starts))
    if operation is Operation.EXPIRE:  # the rules of retention are read first
        return frozenset(
            {
                TableOptions.file_operation_threads,
                TableOptions.snapshot_clean_empty_directories,
            }
        )
    if operation is Operation.TAG:
        return frozenset(
            {
                TableOptions.tag_default_time_retained_millis,
                TableOptions.tag_create_success_file,
            }
        )
    return frozenset()


def _of(group: type) -> tuple[Option[Any], ...]:
    return tuple(value for value in vars(group).values() if isinstance(value, Option))
