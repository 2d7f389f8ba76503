"""Publishes a table from scratch: its newest snapshot alone, or with 100 older ones.

The first snapshot adds all files, 1,000 in each partition. Each later one replaces 10 files of
another partition, so that consecutive snapshots change different manifests.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.question import Question
from benchmarks.sample_manifest import write_sample_snapshot
from lakeformat.environment import SYSTEM
from lakeformat.paimon.binary_row import encode_row, frame_row
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.manifest import FileKind, ManifestEntry, write_manifest
from lakeformat.paimon.metadata.manifest_list import ManifestMeta, summarise
from lakeformat.paimon.metadata.simple_stats import SimpleStats
from lakeformat.paimon.schema import TableSchema
from lakeformat.publish.publish import publish_head
from lakeformat.storage import LocalStorage
from lakeformat.types.types import STRING, DataField, TypeName, atomic

__all__ = ["QUESTION"]

FILES_OF_PARTITION = 1_000
PER_MANIFEST = 10_000
OLDER = 100
REPLACED = 10
STEP = 37
"""The distance from a changed partition to the next one."""
MILLIS = 1_700_000_000_000
INT, BIGINT = atomic(TypeName.INT), atomic(TypeName.BIGINT)
COLUMNS = (("id", BIGINT), ("note", STRING), ("dt", INT))


def _write(folder: Path, files: int) -> None:
    handle = _handle(folder)
    handle.storage.make_directory(handle.layout.root)
    handle.storage.create(handle.layout.schema(0), handle.schema.to_json())
    partitions = max(files // FILES_OF_PARTITION, 1)
    added = [
        _entry(FileKind.ADD, day, f"data-{day}-{number}.parquet")
        for day in range(partitions)
        for number in range(FILES_OF_PARTITION)
    ]
    base = [
        _manifest(handle, f"manifest-{start}", added[start : start + PER_MANIFEST])
        for start in range(0, len(added), PER_MANIFEST)
    ]
    write_sample_snapshot(handle, 1, [], base, time_millis=MILLIS, rows=len(added))
    for number in range(2, OLDER + 2):
        day = number * STEP % partitions
        first = number // partitions % (FILES_OF_PARTITION // REPLACED) * REPLACED
        names = [f"data-{day}-{first + place}.parquet" for place in range(REPLACED)]
        changes = [_entry(FileKind.DELETE, day, name) for name in names]
        changes += [_entry(FileKind.ADD, day, f"new-{number}-{name}") for name in names]
        delta = [_manifest(handle, f"manifest-changes-{number}", changes)]
        write_sample_snapshot(handle, number, base, delta, time_millis=MILLIS + number)
        base += delta


def _entry(kind: FileKind, day: int, name: str) -> ManifestEntry:
    low, high = ([1, "a", day], [99, "z", day])
    kinds = [each for _, each in COLUMNS]
    file = DataFileMeta(
        file_name=name,
        file_size=1_000,
        row_count=1,
        min_sequence_number=0,
        max_sequence_number=0,
        schema_id=0,
        value_stats=SimpleStats(
            frame_row(encode_row(low, kinds), 3), frame_row(encode_row(high, kinds), 3), (0, 0, 0)
        ),
    )
    return ManifestEntry(kind, frame_row(encode_row([day], [INT]), 1), 0, -1, file)


def _manifest(handle: TableHandle, name: str, entries: list[ManifestEntry]) -> ManifestMeta:
    size = write_manifest(handle.storage, handle.layout, name, entries, handle.options)
    return summarise(name, size, entries, [INT])


def _handle(folder: Path) -> TableHandle:
    schema = TableSchema(
        id=0,
        fields=tuple(DataField(place, *each) for place, each in enumerate(COLUMNS)),
        highest_field_id=2,
        partition_keys=("dt",),
        options={"bucket": "-1", "metadata.iceberg.storage": "table-location"},
    )
    return TableHandle(LocalStorage(), TableLayout(str(folder / "table")), schema, SYSTEM)


def _publishing(data: Path, folder: Path, *, older: int) -> Callable[[], dict[str, str]]:
    """Delete published metadata; return a function that publishes the newest snapshot and ``older``
    earlier ones.
    """
    handle = _handle(data)
    options = {**handle.schema.options, "iceberg.publish-history": str(older)}
    limited = replace(handle, schema=replace(handle.schema, options=options))
    shutil.rmtree(Path(handle.layout.root) / "metadata", ignore_errors=True)

    def work() -> dict[str, str]:
        report = publish_head(limited, None, follows_upkeep=False)
        assert len(report.published) == older + 1
        return {"newest": str(report.snapshot_id)}

    return work


QUESTION: Question[Path, dict[str, str]] = Question(
    sentence="How long does it take to publish a table of 100,000 files from scratch?",
    rows=100_000,
    make_data=_write,
    open_data=lambda folder: folder,
    candidates={
        "the newest snapshot alone": partial(_publishing, older=0),
        "with 100 older snapshots": partial(_publishing, older=OLDER),
    },
    baseline="the newest snapshot alone",
    answer=lambda counts: counts,
)
