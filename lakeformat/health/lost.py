"""Files that the newest snapshot needs and that are not there."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from lakeformat.handle import TableHandle
from lakeformat.metadata.index_manifest import IndexManifestEntry
from lakeformat.metadata.manifest import ManifestColumns
from lakeformat.metadata.manifest_columns.columns import Positions
from lakeformat.metadata.snapshot import Snapshot
from lakeformat.metadata.snapshot_directory import read_snapshot_if_present
from lakeformat.orphans.name_set import Numbers, numbers_of
from lakeformat.read.data_files import DataFiles
from lakeformat.read.deletions import deleted_rows_of

__all__ = ["find_lost"]

_LOOKS_AT_ONCE = 16


def find_lost(
    handle: TableHandle,
    snapshot: Snapshot,
    listed: pa.Table,
    live: ManifestColumns,
    index_files: Sequence[IndexManifestEntry],
) -> tuple[str, ...]:
    """Their addresses. What the listing has not seen is looked for by its name."""
    deleted = deleted_rows_of(handle, snapshot, ())
    files = DataFiles(handle, snapshot, deleted)
    seen = listed["number"].to_numpy()
    names = numbers_of(name or b"" for name in live.file_name.values())
    places = [files.place(entry) for entry in live.entries(_unseen(names, seen))]
    names = numbers_of(entry.file_name.encode() for entry in index_files)
    places += [deleted.place(index_files[at]) for at in _unseen(names, seen).tolist()]
    with ThreadPoolExecutor(_LOOKS_AT_ONCE) as pool:
        there = list(pool.map(lambda place: place[0].exists(place[1]), places))
    lost = [
        storage.uri(path)
        for (storage, path), is_there in zip(places, there, strict=True)
        if not is_there
    ]
    if lost and read_snapshot_if_present(handle.storage, handle.layout, snapshot.id) is None:
        return ()  # it has expired meanwhile, and its files with it
    return tuple(sorted(lost))


def _unseen(names: Numbers, seen: Numbers) -> Positions:
    return np.flatnonzero(~np.isin(names, seen))
