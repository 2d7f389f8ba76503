# SPDX-License-Identifier: Apache-2.0
"""The options of commits, of their manifests, and of the Iceberg metadata that follows commits.

``TableOptions`` inherits these options.
"""

from __future__ import annotations

from lakeformat.paimon.options.kinds import (
    BOOLEAN,
    DURATION,
    OPTIONAL_DURATION,
    OPTIONAL_SNAPSHOT,
    SIZE,
    TEXT,
    one_of,
    or_unset,
    whole_number,
)
from lakeformat.paimon.options.option import Group, Option

__all__ = [
    "ASYNC",
    "AT_TABLE",
    "PUBLISHED_PREFIX",
    "REWRITE",
    "CommittingOptions",
    "PublicationOptions",
]

PUBLISHED_PREFIX = "metadata.iceberg."
"""The prefix of the option keys for published Iceberg metadata, in tables and connections."""

INLINE, ASYNC = "inline", "async"
"""The values of ``iceberg.publish-mode``."""
FAIL, REWRITE = "fail", "rewrite"
"""The values of ``iceberg.on-unpublishable``."""
AT_TABLE, AT_WAREHOUSE = "table-location", "catalog-location"


class CommittingOptions:
    """Options for retries and checks of commits, and for the size and merging of manifests."""

    commit_max_retries = Option(
        "commit.max-retries",
        whole_number(0, 1_000_000),
        "10",
        "Number of retries of a commit if other writers commit first; raise it for many writers.",
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
        "The longest time for which a commit is tried again; empty: only commit.max-retries limits "
        "it.",
    )
    commit_user_prefix = Option(
        "commit.user-prefix",
        TEXT,
        "",
        "Prefix of the commit user that is generated if a call names none, to distinguish jobs.",
    )
    commit_force_create_snapshot = Option(
        "commit.force-create-snapshot",
        BOOLEAN,
        "false",
        "An append without rows creates a snapshot, too.",
    )
    snapshot_ignore_empty_commit = Option(
        "snapshot.ignore-empty-commit",
        BOOLEAN,
        "true",
        "An append without rows creates no snapshot, unless commit.force-create-snapshot is true.",
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
        "Refuse a commit if another commit user compacted or overwrote one of its partitions after "
        "the snapshot with this number (0: in the whole history). An overwrite is also refused if "
        "another commit user added rows to one of its partitions. Empty: no check.",
    )
    manifest_compression = Option(
        "manifest.compression",
        one_of("zstd", "snappy", "deflate", "gzip", "zlib", "lz4", "none", "null", "uncompressed"),
        "zstd",
        "Compression of new manifests. If manifest.format does not support it, the most similar "
        "one is used: in Avro, none becomes null, and lz4 becomes snappy (with lz4, Java fails to "
        "commit).",
        group=Group.PERFORMANCE,
    )
    manifest_format = Option(
        "manifest.format",
        one_of("avro", "orc", "parquet"),
        "avro",
        "Format of manifests, manifest lists and index manifests. Java and this library support "
        "every format; other readers support only avro.",
        mutable=False,
    )
    manifest_target_size_bytes = Option(
        "manifest.target-file-size",
        SIZE,
        "8 mb",
        "Commits merge small manifests to about this size; a larger size means fewer files per "
        "scan, and larger rewrites per merge.",
        group=Group.PERFORMANCE,
    )
    manifest_full_compaction_size_bytes = Option(
        "manifest.full-compaction-threshold-size",
        SIZE,
        "16 mb",
        "Total size of manifests that are small or have entries of deleted files. From this size "
        "on, a commit rewrites all of them without these entries. Raise it if commits must be "
        "short.",
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


class PublicationOptions:
    """The options for published Iceberg metadata: its version, place and entries in catalogs."""

    iceberg_format_version = Option(
        "metadata.iceberg.format-version",
        whole_number(2, 3),
        "2",
        "Version of Iceberg's format in which the table is published. It can be raised; the next "
        "publication then upgrades the metadata.",
    )

    iceberg_storage_location = Option(
        "metadata.iceberg.storage-location",
        or_unset(one_of(AT_TABLE, AT_WAREHOUSE)),
        "",
        "The place of published Iceberg metadata: the table, or `iceberg/<database>/<table>` in "
        "the warehouse. Empty: the table for `metadata.iceberg.storage` = `table-location`, else "
        "the warehouse.",
    )
    iceberg_database = Option(
        "metadata.iceberg.database",
        TEXT,
        "",
        "Database of the table in catalogs of Iceberg tables. For entries in several databases, "
        "separate their names by semicolons. "
        "Empty: the database of the table.",
    )
    iceberg_table = Option(
        "metadata.iceberg.table",
        TEXT,
        "",
        "Name of the table in catalogs of Iceberg tables. Empty: the name of the table.",
    )
    iceberg_uri = Option(
        "metadata.iceberg.uri",
        TEXT,
        "",
        "Address of the Hive metastore in which `metadata.iceberg.storage` = `hive-catalog` makes "
        "an entry. Empty: the address in the catalog option of the same name, or in "
        "`metadata.iceberg.hive-conf-dir`.",
    )
    iceberg_hive_conf_dir = Option(
        "metadata.iceberg.hive-conf-dir",
        TEXT,
        "",
        "Directory of a `hive-site.xml` that names the Hive metastore.",
    )
    iceberg_sql_catalog = Option(
        "metadata.iceberg.sql-catalog",
        TEXT,
        "",
        "Name of a catalog of Iceberg tables in a SQL database, in which each publication makes "
        "an entry. The catalog option `metadata.iceberg.sql.uri` is the address of the database. "
        "Other engines ignore this table option.",
    )
    iceberg_publish_history = Option(
        "iceberg.publish-history",
        whole_number(0, 1_000_000),
        "100",
        "A publication from scratch, such as the first one, shows the newest snapshot, and at most "
        "this many older ones: tagged ones first, then the newest of the rest. Other engines "
        "ignore the option.",
    )
    iceberg_publish_mode = Option(
        "iceberg.publish-mode",
        one_of(INLINE, ASYNC),
        INLINE,
        "The time at which a commit is published as Iceberg metadata. `inline`: directly after the "
        "commit. `async`: when `lake publish`, its job or its operator runs. Other engines ignore "
        "it.",
    )
    iceberg_on_unpublishable = Option(
        "iceberg.on-unpublishable",
        one_of(FAIL, REWRITE),
        FAIL,
        "Some readers of Iceberg cannot read `TIMESTAMP` and `TIMESTAMP_LTZ` with at most 3 "
        "digits. If a published table gets such a column, `rewrite` gives it 6 digits, and `fail` "
        "keeps its type. Despite this name, nothing fails. Types that cannot be published are "
        "always refused. "
        "Other engines ignore the option.",
    )
