"""Files that the newest snapshot needs and that are not there."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from lakeformat.handle import TableHandle
from lakeformat.metadata.index_manifest import IndexManifestEntry
from lakeformat.metadata.manifest import ManifestColumns
from lakeformat.metadata.snapshot import Snapshot
from lakeformat.metadata.snapshot_directory import read_snapshot_if_present
from lakeformat.orphans.name_set import NameSet, numbers_of
from lakeformat.orphans.references import encoded
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
    names = live.file_name.to_arrow()
    seen = NameSet()
    seen.add(listed["number"].to_numpy())
    unseen = ~seen.contains(numbers_of(names.to_pylist()))
    places = [files.place(entry) for entry in live.entries(np.flatnonzero(unseen))]
    unseen = ~seen.contains(numbers_of(encoded(entry.file_name) for entry in index_files))
    places += [deleted.place(index_files[number]) for number in np.flatnonzero(unseen).tolist()]
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
