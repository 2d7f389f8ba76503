# SPDX-License-Identifier: Apache-2.0
"""Finds missing and truncated files that the newest snapshot needs."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from lakeformat.paimon.datafile.file_presence import what_is_left
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry
from lakeformat.paimon.metadata.manifest import ManifestColumns
from lakeformat.paimon.metadata.manifest_columns.columns import Positions
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present
from lakeformat.paimon.orphans.name_set import Numbers, numbers_of
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.deletions import deleted_rows_of

__all__ = ["LOOKS_AT_ONCE", "find_lost", "not_seen_whole"]

LOOKS_AT_ONCE = 16


def find_lost(
    handle: TableHandle,
    snapshot: Snapshot,
    listed: pa.Table,
    live: ManifestColumns,
    index_files: Sequence[IndexManifestEntry],
) -> tuple[str, ...]:
    """Return the addresses of missing and truncated files of a snapshot, sorted.

    ``listed`` is an earlier listing. A file that is missing or too small in it is checked in
    storage. Return ``()`` if the snapshot expires meanwhile.
    """
    deleted = deleted_rows_of(handle, snapshot, ())
    files = DataFiles(handle, snapshot, deleted)
    names = numbers_of(name or b"" for name in live.file_name.values())
    doubtful = live.entries(not_seen_whole(names, live.file_size.numbers, listed))
    places = [(*files.place(entry), entry.file.file_size) for entry in doubtful]
    names = numbers_of(entry.file_name.encode() for entry in index_files)
    sizes = np.array([entry.file_size for entry in index_files], np.int64)
    doubtful_marks = [index_files[at] for at in not_seen_whole(names, sizes, listed).tolist()]
    places += [(*deleted.place(entry), entry.file_size) for entry in doubtful_marks]
    with ThreadPoolExecutor(LOOKS_AT_ONCE) as pool:
        remains = list(pool.map(lambda place: what_is_left(*place), places))
    lost = [
        storage.uri(path)
        for (storage, path, _), found in zip(places, remains, strict=True)
        if not found.is_whole
    ]
    if lost and read_snapshot_if_present(handle.storage, handle.layout, snapshot.id) is None:
        return ()  # meanwhile an expiry deleted the snapshot and these files
    return tuple(sorted(lost))


def not_seen_whole(names: Numbers, sizes: Numbers, listed: pa.Table) -> Positions:
    """Return the positions in ``names`` of files that are missing or too small in ``listed``.

    A file is too small if its size in ``listed`` is below its size in ``sizes``. ``names`` are
    numbers from ``numbers_of``. If several directories have a file of the same name, the smallest
    of these files counts.
    """
    seen, there = listed["number"].to_numpy(), listed["size"].to_numpy()
    order = np.lexsort((there, seen))
    seen, there = np.append(seen[order], -1), np.append(there[order], -1)
    at = np.searchsorted(seen[:-1], names)
    return np.flatnonzero((seen[at] != names) | (there[at] < sizes))
