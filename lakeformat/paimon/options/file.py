# SPDX-License-Identifier: Apache-2.0
"""The options of data and changelog files: format, names, directories and statistics.

``TableOptions`` inherits these options.
"""

from __future__ import annotations

from lakeformat.files.codecs import COMPRESSIONS
from lakeformat.paimon.options.kinds import (
    ADDRESSES,
    BOOLEAN,
    FILE_NAME_PART,
    RELATIVE_PATH,
    SCHEME,
    SIZE,
    STATISTICS_MODE,
    TIME_ZONE_NAME,
    WEIGHTS,
    one_of,
    or_unset,
    per_level,
    whole_number,
)
from lakeformat.paimon.options.option import ColumnOption, Group, Option

__all__ = ["FileOptions"]

_FORMAT = one_of("parquet", "orc", "avro")
_COMPRESSION = one_of(*COMPRESSIONS)


class FileOptions:
    """The properties of new files of a table."""

    file_format = Option(
        "file.format",
        _FORMAT,
        "parquet",
        "Format of new data files; the format of an existing file is the ending of its name.",
    )
    file_compression = Option(
        "file.compression",
        _COMPRESSION,
        "zstd",
        "Compression of new data files. lz4 takes less processor time and more storage than zstd; "
        "Avro has no lz4. A compression that the file format does not have is refused. "
        "Engines on the JVM read brotli only with an extra library.",
        group=Group.PERFORMANCE,
    )
    file_format_per_level = Option(
        "file.format.per.level",
        per_level(_FORMAT),
        "",
        "Format of a primary-key table's new files by level, where it differs from file.format.",
    )
    file_compression_per_level = Option(
        "file.compression.per.level",
        per_level(_COMPRESSION),
        "",
        "Compression of a primary-key table's new files by level, where it differs from "
        "file.compression. A light compression suits level 0, whose files are soon rewritten.",
        group=Group.PERFORMANCE,
    )
    file_compression_zstd_level = Option(
        "file.compression.zstd-level",
        whole_number(1, 22),
        "1",
        "Level of zstd for data files and manifests; higher is smaller and slower. With ORC files, "
        "only level 1 is allowed.",
        group=Group.PERFORMANCE,
    )
    parquet_enable_dictionary = Option(
        "parquet.enable.dictionary",
        BOOLEAN,
        "true",
        "Encode repeated values in new Parquet files by a dictionary; false for "
        "readers without dictionary support.",
        group=Group.PERFORMANCE,
    )
    orc_timestamp_ltz_legacy_type = Option(
        "orc.timestamp-ltz.legacy.type",
        BOOLEAN,
        "true",
        "TIMESTAMP_LTZ in ORC files is the local time of the writing JVM, as by default in Java; "
        "false: the instant itself, the same in every zone.",
    )
    orc_writer_timezone = Option(
        "lake.orc-writer-timezone",
        or_unset(TIME_ZONE_NAME),
        "",
        "Time zone of the JVMs that write the table's ORC files. Reads of TIMESTAMP_LTZ use it for "
        "files that name no zone (those without a TIMESTAMP column). Unset: UTC. With "
        "another zone than UTC, this library writes Parquet files instead of ORC files to a table "
        "with a TIMESTAMP_LTZ column, unless orc.timestamp-ltz.legacy.type is false.",
    )
    target_file_size_bytes = Option(
        "target-file-size",
        SIZE,
        "256 mb",
        "Size at which a writer starts a new data file. Unset: 128 mb for primary-key tables.",
        group=Group.PERFORMANCE,
    )
    data_file_prefix = Option(
        "data-file.prefix",
        FILE_NAME_PART,
        "data-",
        "Prefix of names of new data files; set it to distinguish the files of several writers.",
    )
    changelog_file_prefix = Option(
        "changelog-file.prefix",
        FILE_NAME_PART,
        "changelog-",
        "Prefix of names of new changelog files.",
    )
    changelog_file_format = Option(
        "changelog-file.format",
        or_unset(_FORMAT),
        "",
        "Format of new changelog files. Unset: the format of the data files that are written "
        "together with them.",
    )
    changelog_file_compression = Option(
        "changelog-file.compression",
        or_unset(_COMPRESSION),
        "",
        "Compression of new changelog files. Unset: the compression of the data files that are "
        "written together with them.",
        group=Group.PERFORMANCE,
    )
    changelog_statistics_mode = Option(
        "changelog-file.stats-mode",
        or_unset(STATISTICS_MODE),
        "",
        "Like metadata.stats-mode, for changelog files. Unset: as for the data files that are "
        "written together with them.",
        group=Group.PERFORMANCE,
    )
    file_suffix_include_compression = Option(
        "file.suffix.include.compression",
        BOOLEAN,
        "false",
        "Add the compression to names of new files, as in data-….zst.parquet, for other tools.",
    )
    data_file_thin_mode = Option(
        "data-file.thin-mode",
        BOOLEAN,
        "false",
        "Omit the copies of key columns from new files of a primary-key table, to write less.",
        group=Group.PERFORMANCE,
    )
    statistics_mode = Option(
        "metadata.stats-mode",
        STATISTICS_MODE,
        "truncate(16)",
        "Statistics of columns in manifests, by which scans skip files. counts: numbers of nulls. "
        "full: also the smallest and largest value. truncate(n): as full, but texts are cut to n "
        "characters. none: no statistics.",
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
        "Number of leading columns with statistics, for wide tables; -1: all columns.",
        group=Group.PERFORMANCE,
    )
    statistics_dense_store = Option(
        "metadata.stats-dense-store",
        BOOLEAN,
        "true",
        "Omit columns without statistics from manifests; false for readers older than Paimon 0.9.",
        group=Group.PERFORMANCE,
    )
    column_statistics_mode = ColumnOption(
        "fields.<column>.stats-mode",
        STATISTICS_MODE,
        "",
        "Like metadata.stats-mode, for one column.",
        group=Group.PERFORMANCE,
    )
    data_file_path_directory = Option(
        "data-file.path-directory",
        RELATIVE_PATH,
        "",
        "Directory below the table for its data files, to separate them from metadata.",
        mutable=False,
    )
    data_file_external_paths = Option(
        "data-file.external-paths",
        ADDRESSES,
        "",
        "Directories outside the table for new data and changelog files. Set "
        "data-file.external-paths.strategy, too: with its default, none, they are not used. The "
        "catalog option external-roots must allow them.",
    )
    data_file_external_paths_strategy = Option(
        "data-file.external-paths.strategy",
        one_of("none", "round-robin", "specific-fs", "entropy-inject", "weight-robin"),
        "none",
        "The external path of a new file. `none`: no external path. `round-robin`: each path in "
        "turn. `specific-fs`: in turn, those with the scheme of "
        "data-file.external-paths.specific-fs. `entropy-inject`: each in turn, with directories "
        "named by a hash (for stores that limit requests by prefix). `weight-robin`: at random by "
        "weight.",
    )
    data_file_external_paths_specific_fs = Option(
        "data-file.external-paths.specific-fs",
        SCHEME,
        "",
        "Scheme of the external paths that the strategy specific-fs uses.",
    )
    data_file_external_paths_weights = Option(
        "data-file.external-paths.weights",
        WEIGHTS,
        "",
        "Weights of the external paths for the strategy weight-robin, in their order, such as "
        "10,5,15; empty: each in turn.",
    )
    index_file_in_data_file_dir = Option(
        "index-file-in-data-file-dir",
        BOOLEAN,
        "false",
        "Index files are stored beside the data files, not in the directory `index` of the table.",
        mutable=False,
    )
    partition_default_name = Option(
        "partition.default-name",
        FILE_NAME_PART,
        "__DEFAULT_PARTITION__",
        "Text in directory names for a partition value that is null, empty or blank.",
        mutable=False,
    )
    partition_legacy_name = Option(
        "partition.legacy-name",
        BOOLEAN,
        "true",
        "The directory names of partitions contain dates and times as numbers, as in the first "
        "releases of Paimon.",
        mutable=False,
    )
