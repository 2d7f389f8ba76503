# SPDX-License-Identifier: Apache-2.0
"""Selects the data files that Iceberg readers may read: those whose rows need no merge."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from lakeformat.paimon.metadata.manifest_columns import ManifestColumns
from lakeformat.paimon.metadata.manifest_columns.columns import Mask
from lakeformat.paimon.read.buckets import has_unique_rows
from lakeformat.paimon.schema import TableSchema

__all__ = ["buckets_of", "marks_of", "shows_such_files", "shows_top_levels", "visible_files"]

_VECTORS = "paimon-deletion-vectors"


def marks_of(schema: TableSchema) -> dict[str, str]:
    """Return the summary entry that marks snapshots of a primary-key table with deletion vectors.

    Return an empty dict for any other table. If the entry is there, readers see all levels above 0.
    """
    has_vectors = bool(schema.primary_keys) and schema.table_options.deletion_vectors_enabled
    return {_VECTORS: "true"} if has_vectors else {}


def shows_such_files(summary: Mapping[str, str], schema: TableSchema) -> bool:
    """Return True if the setting of deletion vectors is unchanged since a snapshot was published.

    ``summary`` is the summary of that snapshot. If the setting has changed, readers see files of
    other levels in the next snapshot.
    """
    return (_VECTORS in summary) is (_VECTORS in marks_of(schema))


def shows_top_levels(schema: TableSchema) -> bool:
    """Return True if Iceberg readers see only the highest level of each bucket.

    Then all files of a bucket are needed to find those that readers see.
    """
    return bool(schema.primary_keys) and not has_unique_rows(schema)


def visible_files(schema: TableSchema, files: ManifestColumns) -> Mask:
    """Return a mask of the files that readers can read without a merge.

    In an append table these are all files. In a primary-key table these are the files of the
    highest level of each bucket, if that level is above 0. Each key occurs there once. With
    deletion vectors or the merge engine ``first-row`` these are the files of all levels above 0. In
    a primary-key table, a file with delete markers is never selected. If ``shows_top_levels``
    returns True, ``files`` must have all files of each bucket.
    """
    levels = files.level.numbers
    if not schema.primary_keys:
        every: Mask = levels == levels
        return every
    is_whole = (levels > 0) & (files.delete_row_count.numbers == 0)
    if shows_top_levels(schema) and len(files):
        bucket = buckets_of(files)
        highest = np.zeros(bucket.max() + 1, levels.dtype)
        np.maximum.at(highest, bucket, levels)
        is_whole &= levels == highest[bucket]
    found: Mask = is_whole
    return found


def buckets_of(files: ManifestColumns) -> NDArray[np.int64]:
    """Return a number for each file, equal only for files of the same partition and bucket."""
    partitions = files.partition.to_arrow().dictionary_encode().indices.to_numpy()
    _, bucket = np.unique(files.bucket.numbers, return_inverse=True)
    found: NDArray[np.int64] = partitions.astype(np.int64) * (bucket.max(initial=0) + 1) + bucket
    return found
