"""Options that mean something to other engines' jobs alone: kept, and no reason to refuse a table.

None of them decides which rows a table has, or which bytes hold them. Whatever does is declared in
``TableOptions``, or refused where it would have to be honoured.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["OTHER_ENGINES_OPTIONS"]

_BY_REASON: Mapping[str, tuple[str, ...]] = {
    "how many tasks and how much memory another engine's job takes; here the caller says": (
        "cross-partition-upsert.bootstrap-parallelism",
        "dynamic-bucket.assigner-parallelism",
        "dynamic-bucket.initial-buckets",
        "file-reader-async-threshold",
        "scan.infer-parallelism",
        "scan.infer-parallelism.max",
        "scan.manifest.parallelism",
        "scan.parallelism",
        "scan.split-enumerator.batch-size",
        "scan.split-enumerator.mode",
        "sink.committer-cpu",
        "sink.committer-memory",
        "sink.committer-operator-chaining",
        "sink.cross-partition.managed-memory",
        "sink.managed.writer-buffer-memory",
        "sink.parallelism",
        "sink.use-managed-memory-allocator",
        "source.checkpoint-align.enabled",
        "source.checkpoint-align.timeout",
        "unaware-bucket.compaction.parallelism",
    ),
    "how another engine's writer holds and sorts what it writes; the rows are the same": (
        "async-file-write",
        "local-merge-buffer-size",
        "page-size",
        "read.batch-size",
        "sort-engine",
        "sort-spill-buffer-size",
        "sort-spill-threshold",
        "write.batch-size",
    ),
    "whether another engine's writer compacts before it commits; writers here never compact": (
        "commit.force-compact",
    ),
    "how long another engine's job remembers where a key is; a writer here looks it up": (
        "cross-partition-upsert.index-ttl",
    ),
    "how another engine's batch job gives rows a bucket at once; here a compaction does": (
        "postpone.batch-write-fixed-bucket",
        "postpone.batch-write-fixed-bucket.rescale-load-factor",
    ),
    "where and when another engine's job begins to read; here the call says": (
        "continuous.discovery-interval",
        "scan.push-down",
        "scan.remove-normalize",
        "scan.watermark.alignment.group",
        "scan.watermark.alignment.max-drift",
        "scan.watermark.alignment.update-interval",
        "scan.watermark.emit.strategy",
        "scan.watermark.idle-timeout",
    ),
    "how another engine's lookup join caches what it reads": (
        "lookup.async",
        "lookup.async-thread-number",
        "lookup.bootstrap-parallelism",
        "lookup.cache",
        "lookup.cache-file-retention",
        "lookup.cache-max-disk-size",
        "lookup.cache-max-memory-size",
        "lookup.cache-rows",
        "lookup.cache-spill-compression",
        "lookup.cache.bloom.filter.enabled",
        "lookup.cache.bloom.filter.fpp",
        "lookup.cache.high-priority-pool-ratio",
        "lookup.dynamic-partition",
        "lookup.dynamic-partition.refresh-interval",
        "lookup.hash-load-factor",
        "lookup.local-file-type",
        "lookup.refresh.async",
        "lookup.refresh.async.pending-snapshot-count",
    ),
    "who owns a table, and whether another engine makes its directories when it needs them": (
        "auto-create",
        "owner",
    ),
    "nothing since numbers have their full length: tables of older releases may have it still": (
        "sequence.auto-padding",
    ),
}

OTHER_ENGINES_OPTIONS: Mapping[str, str] = {
    key: reason for reason, keys in _BY_REASON.items() for key in keys
}
"""Each with what it says, and so why nothing here depends on it."""
