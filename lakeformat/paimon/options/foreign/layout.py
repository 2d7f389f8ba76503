# SPDX-License-Identifier: Apache-2.0
"""Options that change files but not rows: they have no effect here, and ``health`` names them."""

from __future__ import annotations

from lakeformat.paimon.options.foreign.declaration import ForeignClass, by_key

__all__ = ["LAYOUT", "LAYOUT_PATTERNS"]

LAYOUT = by_key(
    ForeignClass.LAYOUT,
    {
        "size of row groups, stripes and blocks in data files; writers here choose it themselves": (
            "file.block-size",
        ),
        "the highest number of rows of a data file; here only the size is limited": (
            "target-file-row-num",
        ),
        "encodings of columns; writers here choose them themselves": (
            "orc.column.encoding.direct",
            "orc.dictionary.key.threshold",
        ),
        "size of a file of deletion vectors; writers here write one such file per bucket": (
            "deletion-vector.index-file.target-size",
        ),
        "order and content of manifests; those written here are unsorted and keep statistics": (
            "manifest-sort.enabled",
            "manifest-sort.max-rewrite-size",
            "manifest-sort.partition-field",
            "manifest.delete-file-drop-stats",
            "manifest.merge-optimize.enabled",
        ),
        "order of rows in data files; a compaction here sorts only with --order-by": (
            "clustering.columns",
            "clustering.history-partition.idle-to-full-sort",
            "clustering.history-partition.limit",
            "clustering.incremental",
            "clustering.incremental.mode",
            "clustering.incremental.optimize-write",
            "clustering.strategy",
            "sink.clustering.by-columns",
            "sink.clustering.strategy",
        ),
        "shredding of VARIANT columns; writers here do not shred them": (
            "parquet.variant.shreddingSchema",
            "variant.inferShreddingSchema",
            "variant.shredding.adaptive.maxInferBufferRow",
            "variant.shredding.adaptive.retentionRatio",
            "variant.shredding.inferenceMode",
            "variant.shredding.maxInferBufferRow",
            "variant.shredding.maxSchemaDepth",
            "variant.shredding.maxSchemaWidth",
            "variant.shredding.minFieldCardinalityRatio",
            "variant.shreddingSchema",
        ),
        "indexes beside the data files; files written here have none until Java compacts them": (
            "pk-bitmap.index.columns",
            "pk-btree.index.columns",
            "pk-full-text.index.columns",
            "pk-multivalue.index.columns",
            "pk-vector.index.columns",
        ),
    },
)

LAYOUT_PATTERNS = by_key(
    ForeignClass.LAYOUT,
    {
        "other settings of Java's writers of Avro, ORC and Parquet; writers here ignore them": (
            "avro.*",
            "orc.*",
            "parquet.*",
        ),
    },
)
"""The declarations for keys that match a pattern and are not declared by name."""
