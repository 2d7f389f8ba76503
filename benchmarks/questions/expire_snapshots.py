"""Expires the same number of snapshots of two tables, a small one and a large one.

The small table keeps one snapshot. In the large table, half of the snapshots expire, and all
snapshots share 100,000 files, which are kept. Each snapshot replaces all other files of the
snapshot before. So the expiry deletes files, manifests and manifest lists of each expired snapshot.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.question import Question
from benchmarks.sample_manifest import write_sample_snapshot
from lakeformat.environment import SYSTEM
from lakeformat.paimon.expire import expire_snapshots
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.manifest import FileKind, ManifestEntry, write_manifest
from lakeformat.paimon.metadata.manifest_list import ManifestMeta, summarise
from lakeformat.paimon.metadata.simple_stats import EMPTY_ROW
from lakeformat.paimon.schema import TableSchema
from lakeformat.storage import LocalStorage
from lakeformat.types.types import DataField, TypeName, atomic

__all__ = ["QUESTION"]

FILES_PER_SNAPSHOT = 25
STAYING = 100
"""The large table has this many shared files for each expired snapshot. At scale 1, 1,000 snapshots
expire, so it has 100,000 shared files.
"""
PER_MANIFEST = 10_000
OLD_MILLIS = 1_700_000_000_000
SIZE = 1_000

Work = Callable[[], dict[Any, int]]


def _write(folder: Path, going: int) -> None:
    """Write a table in which half of the snapshots expire, and one in which all but one expire."""
    _write_table(folder / "half", going, snapshots=2 * going, staying=STAYING * going)
    _write_table(folder / "most", going, snapshots=going + 1, staying=0)
    (folder / "going").write_text(str(going))


def _write_table(folder: Path, going: int, *, snapshots: int, staying: int) -> None:
    handle = _handle(folder)
    handle.storage.make_directory(handle.layout.root)
    handle.storage.create(handle.layout.schema(0), handle.schema.to_json())
    lasting = [
        _manifest(
            handle,
            f"manifest-lasting-{first}",
            [
                _entry(FileKind.ADD, f"lasting-{number}")
                for number in range(first, min(first + PER_MANIFEST, staying))
            ],
        )
        for first in range(0, staying, PER_MANIFEST)
    ]
    buckets = folder / "bucket-0"
    buckets.mkdir()
    for number in range(1, snapshots + 1):
        before, now = _batch(number - 1), _batch(number)
        if number <= going:  # the files that will be deleted exist
            for name in now:
                (buckets / name).write_bytes(b"x")
        base, delta = [*lasting], [_entry(FileKind.ADD, name) for name in now]
        if number > 1:
            state = [_entry(FileKind.ADD, name) for name in before]
            base.append(_manifest(handle, f"manifest-state-{number}", state))
            delta = [*(_entry(FileKind.DELETE, name) for name in before), *delta]
        changes = [_manifest(handle, f"manifest-delta-{number}", delta)]
        write_sample_snapshot(handle, number, base, changes, time_millis=OLD_MILLIS + number)


def _batch(number: int) -> list[str]:
    return [f"data-{number}-{which}.parquet" for which in range(FILES_PER_SNAPSHOT)]


def _entry(kind: FileKind, name: str) -> ManifestEntry:
    file = DataFileMeta(
        file_name=name,
        file_size=SIZE,
        row_count=1,
        min_sequence_number=0,
        max_sequence_number=0,
        schema_id=0,
    )
    return ManifestEntry(kind, EMPTY_ROW, 0, -1, file)


def _manifest(handle: TableHandle, name: str, entries: list[ManifestEntry]) -> ManifestMeta:
    size = write_manifest(handle.storage, handle.layout, name, entries, handle.options)
    return summarise(name, size, entries)


def _handle(folder: Path) -> TableHandle:
    schema = TableSchema(
        id=0,
        fields=(DataField(0, "id", atomic(TypeName.BIGINT)),),
        highest_field_id=0,
        options={"bucket": "-1"},
    )
    return TableHandle(LocalStorage(), TableLayout(str(folder)), schema, SYSTEM)


def _expiring(data: Path, folder: Path, *, table: str) -> Work:
    """Return a function that expires snapshots of a copy of a table, and returns the number of
    deleted files of each kind.
    """
    going = int((data / "going").read_text())
    copy = folder / table
    shutil.copytree(data / table, copy)
    handle = _handle(copy)

    def work() -> dict[Any, int]:
        report = expire_snapshots(handle, retain_max=1, retain_min=1, limit=going)
        assert report.is_complete
        return report.deleted.files

    return work


QUESTION: Question[Path, dict[Any, int]] = Question(
    sentence="Does the time of an expiry depend only on the deleted files?",
    rows=1_000,
    make_data=_write,
    open_data=lambda folder: folder,
    candidates={
        "half of the snapshots expire, 100,000 files are kept": partial(_expiring, table="half"),
        "all snapshots but one expire, 25 files are kept": partial(_expiring, table="most"),
    },
    baseline="all snapshots but one expire, 25 files are kept",
    answer=lambda counts: counts,
    targets={"half of the snapshots expire, 100,000 files are kept": 0.7},
)
