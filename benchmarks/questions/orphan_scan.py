"""Finds the unreferenced files among a million, on a storage that can only list.

The storage computes each listing on request, so it takes no memory itself. Every tenth object of a
bucket is in no manifest. Other scales show how time and memory grow.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.question import Question
from benchmarks.sample_manifest import write_sample_snapshot
from lakeformat.environment import SYSTEM
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.manifest import (
    FileKind,
    ManifestEntry,
    live_rows,
    read_manifests,
    write_manifest,
)
from lakeformat.paimon.metadata.manifest_list import ManifestMeta, manifests_of, summarise
from lakeformat.paimon.metadata.simple_stats import EMPTY_ROW
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot
from lakeformat.paimon.orphans.remove import OrphanOptions, remove_orphans
from lakeformat.paimon.schema import TableSchema
from lakeformat.storage import FileInfo, Storage, open_storage
from lakeformat.types.types import DataField, TypeName, atomic

__all__ = ["QUESTION"]

PER_BUCKET = 1_000
PER_MANIFEST = 10_000
ONE_IN = 10
"""One of this many objects is unreferenced."""
OLD_MILLIS = 1_700_000_000_000
COMMIT_MILLIS = OLD_MILLIS + 2 * 86_400_000
"""The time of the newest commit: two days after all files, so that none is too young to delete."""
SIZE = 1_000_000
READERS = 16

Found = Callable[[], tuple[int, int]]
"""Returns the number of orphans, and their bytes."""


class ListedStore:
    """A storage whose buckets exist only in listings; its metadata is in a folder."""

    def __init__(self, inner: Storage, root: str, objects: int) -> None:
        self._inner, self._root, self._objects = inner, root, objects

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def list(self, path: str) -> builtins.list[FileInfo]:
        """List the directories of buckets, and their objects."""
        if path == self._root:
            buckets = (f"bucket-{number}" for number in range(-(-self._objects // PER_BUCKET)))
            made = [FileInfo(f"{path}/{name}", name, True, 0, 0) for name in buckets]
            return [*self._inner.list(path), *made]
        if not path.startswith(f"{self._root}/bucket-"):
            return self._inner.list(path)
        first = int(path.rpartition("-")[2]) * PER_BUCKET
        names = map(_name, range(first, min(first + PER_BUCKET, self._objects)))
        return [FileInfo(f"{path}/{name}", name, False, SIZE, OLD_MILLIS) for name in names]


def _name(number: int) -> str:
    return f"data-{number * 0x9E3779B1 % 2**32:08x}-0000-4000-8000-{number:012x}-0.parquet"


def _handle(folder: Path) -> TableHandle:
    storage, root = open_storage(str(folder / "orders"))
    schema = TableSchema(
        id=0,
        fields=(DataField(0, "id", atomic(TypeName.BIGINT)),),
        highest_field_id=0,
        options={"bucket": "1000000", "bucket-key": "id"},
    )
    return TableHandle(storage, TableLayout(root), schema, SYSTEM)


def _write(folder: Path, rows: int) -> None:
    """Write manifests of nine tenths of all objects, and a snapshot of these manifests."""
    handle = _handle(folder)
    storage, layout, options = handle.storage, handle.layout, handle.options
    storage.make_directory(layout.root)
    storage.create(layout.schema(0), handle.schema.to_json())
    metas: list[ManifestMeta] = []
    for first in range(0, rows, PER_MANIFEST):
        numbers = range(first, min(first + PER_MANIFEST, rows))
        entries = [_entry(number) for number in numbers if number % ONE_IN]
        name = f"manifest-{len(metas)}"
        size = write_manifest(storage, layout, name, entries, options)
        metas.append(summarise(name, size, entries))
    write_sample_snapshot(handle, 1, metas, [], time_millis=COMMIT_MILLIS)
    (folder / "objects").write_text(str(rows))


def _entry(number: int) -> ManifestEntry:
    file = DataFileMeta(
        file_name=_name(number),
        file_size=SIZE,
        row_count=1,
        min_sequence_number=number,
        max_sequence_number=number,
        schema_id=0,
    )
    return ManifestEntry(FileKind.ADD, EMPTY_ROW, number // PER_BUCKET, 1_000_000, file)


def _open(folder: Path) -> TableHandle:
    handle = _handle(folder)
    objects = int((folder / "objects").read_text())
    store: Any = ListedStore(handle.storage, handle.layout.root, objects)
    return TableHandle(store, handle.layout, handle.schema, handle.environment)


def all_names(handle: TableHandle, _: Path) -> Callable[[], Found]:
    """Return a function that keeps all listed names and all names in manifests, and compares them
    at the end.
    """

    def work() -> Found:
        storage, layout = handle.storage, handle.layout
        buckets = [info.path for info in storage.list(layout.root) if "bucket-" in info.name]
        with ThreadPoolExecutor(READERS) as pool:
            listed = [info for found in pool.map(storage.list, buckets) for info in found]
        snapshot = read_snapshot(storage, layout, 1)
        manifests = manifests_of(storage, layout, snapshot)
        entries = read_manifests(storage, layout, manifests)
        live = entries.take(live_rows(entries, handle.uri))
        names = pa.array([info.name.encode() for info in listed], pa.large_binary())
        is_orphan = pc.invert(pc.is_in(names, live.file_name.to_arrow()))
        sizes = pa.array([info.size for info in listed]).filter(is_orphan)
        return lambda: (len(sizes), pc.sum(sizes).as_py())

    return work


def scanning(handle: TableHandle, _: Path) -> Callable[[], Found]:
    """Return a function that calls ``remove_orphans``, which keeps hashes instead of names."""

    def work() -> Found:
        report = remove_orphans(handle, OrphanOptions(), dry_run=True)
        return lambda: (report.orphan_files, report.orphan_bytes)

    return work


QUESTION: Question[TableHandle, Found] = Question(
    sentence="Can a scan for orphans check a million objects without keeping all their names?",
    rows=1_000_000,
    make_data=_write,
    open_data=_open,
    candidates={"all names in memory": all_names, "remove_orphans, dry run": scanning},
    baseline="all names in memory",
    answer=lambda found: found(),
    targets={"remove_orphans, dry run": 0.4},
)
