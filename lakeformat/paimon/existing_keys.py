# SPDX-License-Identifier: Apache-2.0
"""Finds the partition and bucket of each of many keys in a snapshot, by one scan of all files.

Only the key columns, and the columns that the merge needs, are read. The hashes of the wanted keys,
sorted, select candidate rows. Only these candidates are kept and compared with the keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.binary_row import decode_columns, encode_columns
from lakeformat.paimon.bucketing import row_hashes
from lakeformat.paimon.expiry_race import explaining_expiry
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.partition import partition_path
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.deletions import find_deleted_rows
from lakeformat.paimon.read.merged_rows_with_kind import MergedRowsWithKind
from lakeformat.paimon.read.scan import Scan
from lakeformat.paimon.read.splits import Split
from lakeformat.paimon.write.assign import Place
from lakeformat.paimon.write.key_hashes import Hashes
from lakeformat.paimon.write.key_places import NOWHERE, DeletedKeys, FoundKeys
from lakeformat.rows.groups import Mask
from lakeformat.rows.row_kinds import is_retract
from lakeformat.types.types import DataType

__all__ = ["find_keys"]


def find_keys(handle: TableHandle, snapshot: Snapshot | None, keys: pa.Array) -> FoundKeys:
    """Return the partition and bucket of each of ``keys`` in ``snapshot``.

    ``keys`` are distinct framed binary rows of the primary key. ``snapshot=None`` stands for an
    empty table. A key without a row gets ``NOWHERE``. Raise CorruptTableError if one of ``keys``
    has two rows. If compactions write the table's changelog, deleted keys are returned, too.
    """
    by_name = {field.name: field for field in handle.schema.fields}
    types = [by_name[name].type for name in handle.schema.primary_keys]
    found = _Found(handle, np.sort(row_hashes(decode_columns(keys, types), types)), types)
    scan = Scan(_with_every_row(handle), snapshot, list(handle.schema.primary_keys))
    splits = scan.splits()
    needs_merge = any(not split.raw_convertible for split in splits)
    if snapshot is None or not handle.options.makes_changelog or not needs_merge:
        for split in splits:
            found.look_through(split, _as_inserts(scan, split))
        return found.among(keys)
    with explaining_expiry(handle, snapshot):
        files = DataFiles(handle, snapshot, find_deleted_rows(handle, snapshot))
        merged = MergedRowsWithKind(scan.table_schema, files, scan.fields)
        for split in splits:
            rows = _as_inserts(scan, split) if split.raw_convertible else _merged(merged, split)
            found.look_through(split, rows)
    return found.among(keys)


def _as_inserts(scan: Scan, split: Split) -> Iterator[tuple[pa.RecordBatch, Mask]]:
    for batch in scan.read(split):
        yield batch, np.zeros(batch.num_rows, np.bool_)


def _merged(merged: MergedRowsWithKind, split: Split) -> Iterator[tuple[pa.RecordBatch, Mask]]:
    """Stream the merged keys of a split, and a mask of those that are deletions."""
    for batch in merged.read(split.files, keep_retracts=True):
        is_deleted = is_retract(batch.column(0).to_numpy())
        yield batch.select(batch.schema.names[1:]), is_deleted


def _with_every_row(handle: TableHandle) -> TableHandle:
    """Return the handle with options that make a scan also return the rows of level 0."""
    options = {**handle.schema.options, "deletion-vectors.merge-on-read": "true"}
    if handle.options.merge_engine == "first-row":
        options["merge-engine"] = "deduplicate"
    return replace(handle, schema=replace(handle.schema, options=options))


class _Found:
    """The rows whose key hash is one of the wanted hashes, and the number of rows in each
    bucket.
    """

    def __init__(self, handle: TableHandle, hashes: Hashes, types: list[DataType]) -> None:
        self._handle = handle
        self._hashes = hashes
        self._types = types
        self._partitions: dict[bytes, int] = {}
        self._counts: dict[Place, int] = {}
        self._keys: list[pa.Array] = []
        self._partition_of: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
        self._bucket_of: list[np.ndarray[tuple[int], np.dtype[np.int32]]] = []
        self._is_deleted: list[Mask] = []

    def look_through(self, split: Split, rows: Iterator[tuple[pa.RecordBatch, Mask]]) -> None:
        """Keep those rows of a split whose key hash is one of the wanted hashes.

        ``rows`` are batches of keys, each with a mask of the keys that are deletions.
        """
        place = Place(split.partition, split.bucket)
        number = self._partitions.setdefault(place.partition, len(self._partitions))
        self._counts.setdefault(place, 0)
        for batch, is_deleted in rows:
            self._counts[place] += batch.num_rows - int(np.count_nonzero(is_deleted))
            hashes = row_hashes(batch.columns, self._types)
            at = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
            found = np.flatnonzero(self._hashes[at] == hashes)
            if len(found):
                keys = encode_columns(batch.take(pa.array(found)).columns, self._types)
                self._keys.append(keys.cast(pa.large_binary()))
                self._partition_of.append(np.full(len(found), number, np.int64))
                self._bucket_of.append(np.full(len(found), place.bucket, np.int32))
                self._is_deleted.append(is_deleted[found])

    def among(self, keys: pa.Array) -> FoundKeys:
        """Return the partition and bucket of each of ``keys``; ``NOWHERE`` for a key without a row.

        Raise CorruptTableError if one of ``keys`` has two rows.
        """
        partition_of = np.full(len(keys), NOWHERE, np.int64)
        bucket_of = np.full(len(keys), NOWHERE, np.int32)
        partitions = list(self._partitions)
        if not self._keys:
            none = np.empty(0, np.int64)
            deleted = DeletedKeys(none, none, np.empty(0, np.int32))
            return FoundKeys(partitions, partition_of, bucket_of, self._counts, deleted)
        looked_at = pc.index_in(pa.chunked_array(self._keys), keys).combine_chunks()
        at = looked_at.fill_null(NOWHERE).to_numpy().astype(np.int64)
        of_rows, buckets = np.concatenate(self._partition_of), np.concatenate(self._bucket_of)
        is_deleted = np.concatenate(self._is_deleted)
        live, left = (np.flatnonzero((at != NOWHERE) & each) for each in (~is_deleted, is_deleted))
        self._require_one_place(at[live], of_rows[live], partitions)
        partition_of[at[live]] = of_rows[live]
        bucket_of[at[live]] = buckets[live]
        deleted = DeletedKeys(at[left], of_rows[left], buckets[left])
        return FoundKeys(partitions, partition_of, bucket_of, self._counts, deleted)

    def _require_one_place(
        self,
        keys: np.ndarray[tuple[int], np.dtype[np.int64]],
        partitions: np.ndarray[tuple[int], np.dtype[np.int64]],
        names: list[bytes],
    ) -> None:
        different, first = np.unique(keys, return_index=True)
        if len(different) == len(keys):
            return
        again = int(np.setdiff1d(np.arange(len(keys)), first)[0])
        other = int(np.flatnonzero(keys == keys[again])[0])
        schema = self._handle.schema
        places = [partition_path(schema, names[partitions[n]]) for n in (other, again)]
        raise CorruptTableError(
            f"{self._handle.uri} has two rows with one key, in {places[0]} and in {places[1]}: "
            "probably two writers added the key at the same time. Nothing was written. Find the "
            f"key with table.check(unique={[list(schema.primary_keys)]}), and roll the table back "
            "to the last snapshot that has only one of these two rows"
        )
