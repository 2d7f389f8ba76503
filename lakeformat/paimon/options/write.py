# SPDX-License-Identifier: Apache-2.0
"""The options of writers for conflicts, memory, temporary files and compaction.

``TableOptions`` inherits these options.
"""

from __future__ import annotations

from lakeformat.paimon.options.kinds import (
    BOOLEAN,
    OPTIONAL_SIZE,
    SIZE,
    one_of,
    whole_number,
)
from lakeformat.paimon.options.option import Group, Option

__all__ = ["WriteOptions"]


class WriteOptions:
    """Options for conflicts of writes, for the buffer of a writer, for rows that do not fit into
    it, and for compaction.
    """

    write_conflict = Option(
        "write.conflict",
        one_of("optimistic", "transaction-order"),
        "optimistic",
        "The outcome of a write with the argument read_snapshot, if other commits have changed the "
        "same partitions since that snapshot. optimistic: the write fails with "
        "CommitConflictError. transaction-order: the write succeeds, and keeps what those commits "
        "have changed, even if the write has rows with the same keys. A write with the argument "
        "`conflict` ignores this option.",
    )
    write_buffer_size_bytes = Option(
        "write-buffer-size",
        SIZE,
        "256 mb",
        "Number of bytes of rows that a writer holds in memory, over all its buckets, before it "
        "spills them or writes files.",
        group=Group.PERFORMANCE,
    )
    write_buffer_spillable = Option(
        "write-buffer-spillable",
        BOOLEAN,
        "true",
        "true: rows that do not fit into the buffer are kept in local temporary files until the "
        "write ends. false: each time the buffer is full, its rows become files of the table, so "
        "the write makes more and smaller files.",
        group=Group.PERFORMANCE,
    )
    write_buffer_spill_max_disk_size_bytes = Option(
        "write-buffer-spill.max-disk-size",
        OPTIONAL_SIZE,
        "",
        "The most bytes of temporary files of a writer; further rows become files of the table. "
        "Empty: limited only by the disk.",
        group=Group.PERFORMANCE,
    )
    write_buffer_for_append = Option(
        "write-buffer-for-append",
        BOOLEAN,
        "false",
        "Writers of append tables hold rows in the buffer, instead of one open file per bucket.",
        group=Group.PERFORMANCE,
    )
    write_max_writers_to_spill = Option(
        "write-max-writers-to-spill",
        whole_number(0, 1_000_000),
        "10",
        "Number of buckets of an append table for which a writer keeps files open; with more "
        "buckets, further rows are held in the buffer and written bucket by bucket. With 'bucket' "
        "= '-2': if a writer has open files in more partitions than this number after it has "
        "written its buffer, it closes all of these files.",
        group=Group.PERFORMANCE,
    )
    spill_compression = Option(
        "spill-compression",
        one_of("zstd", "lz4", "none"),
        "zstd",
        "Compression of temporary files; set none if the local disk is fast and large.",
        group=Group.PERFORMANCE,
    )
    spill_compression_zstd_level = Option(
        "spill-compression.zstd-level",
        whole_number(1, 22),
        "1",
        "Level of zstd for temporary files.",
        group=Group.PERFORMANCE,
    )
    local_sort_max_num_file_handles = Option(
        "local-sort.max-num-file-handles",
        whole_number(2, 1_000_000),
        "128",
        "The largest number of temporary files of a writer. When the writer has this many and its "
        "buffer is full again, it merges these files and the buffer into files of the table. Then "
        "it deletes the temporary files.",
        group=Group.PERFORMANCE,
    )
    write_only = Option(
        "write-only",
        BOOLEAN,
        "false",
        "Writers of other engines leave compaction and expiry to separate jobs, as writers of "
        "this library always do.",
        older_keys=("write.compaction-skip",),
    )
    overwrite_upgrade = Option(
        "overwrite-upgrade",
        BOOLEAN,
        "true",
        "Files that overwrite a primary-key table are added to the highest level, if no two of "
        "them in one bucket have overlapping keys.",
        group=Group.PERFORMANCE,
    )
