"""Files in the table's directories that nothing refers to."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.handle import TableHandle
from lakeformat.health.history import Reachable
from lakeformat.health.report import UnknownFiles
from lakeformat.storage import FileInfo, Storage

__all__ = ["find_unknown", "list_files"]

_READERS = 16
_DAY_MILLIS = 24 * 60 * 60 * 1000
_BUCKET = "bucket-"
_SHARED = ("manifest", "index", "statistics")
"""Directories of the table that hold files and no further directories."""


def list_files(handle: TableHandle) -> pa.Table:
    """Name, size and last change of all data files, index files, manifests and statistics.

    List before looking up what is referred to: a file committed in between is known by then.
    """
    layout, storage = handle.layout, handle.storage
    data = "/".join(part for part in (layout.root, layout.data_path) if part)
    parents = [data]
    for key in handle.schema.partition_keys:
        prefix = f"{key.lower()}="
        parents = [
            entry.path
            for listing in _listings(storage, parents)
            for entry in listing
            if entry.is_directory and entry.name.lower().startswith(prefix)
        ]
    buckets = [
        entry.path
        for listing in _listings(storage, parents)
        for entry in listing
        if entry.is_directory and entry.name.startswith(_BUCKET)
    ]
    shared = [f"{layout.root}/{name}" if layout.root else name for name in _SHARED]
    files = [
        (entry.name.encode(), entry.size, entry.modified_millis)
        for listing in _listings(storage, [*buckets, *shared])
        for entry in listing
        if not entry.is_directory
    ]
    columns = [list(column) for column in zip(*files, strict=True)] or [[], [], []]
    types = (pa.large_binary(), pa.int64(), pa.int64())
    arrays = [pa.array(column, type) for column, type in zip(columns, types, strict=True)]
    return pa.table(arrays, names=["name", "size", "modified"])


def find_unknown(handle: TableHandle, found: pa.Table, reachable: Reachable) -> UnknownFiles:
    """Of the files found, those that nothing leads to."""
    others = [name.encode() for name in (*reachable.index, *reachable.metadata)]
    known = pa.chunked_array(
        [reachable.names(), pa.array(others, pa.large_binary())], pa.large_binary()
    )
    strange = found.filter(pc.invert(pc.is_in(found["name"], known)))
    sizes, modified = strange["size"].to_numpy(), strange["modified"].to_numpy()
    old = modified < handle.environment.now_millis() - _DAY_MILLIS
    return UnknownFiles(
        files=strange.num_rows,
        bytes=int(sizes.sum()),
        old_files=int(np.count_nonzero(old)),
        old_bytes=int(sizes[old].sum()),
    )


def _listings(storage: Storage, paths: Sequence[str]) -> list[list[FileInfo]]:
    with ThreadPoolExecutor(_READERS) as pool:
        return list(pool.map(storage.list, paths))
