"""Tables of metadata only: their manifests list many data files, none of which exists."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from lakeformat.environment import SYSTEM
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import TableLayout, database_directory
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.manifest import FileKind, ManifestEntry, write_manifest
from lakeformat.paimon.metadata.manifest_list import ManifestMeta, summarise, write_manifest_list
from lakeformat.paimon.metadata.simple_stats import EMPTY_ROW, EMPTY_STATS, SimpleStats
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.schema import TableSchema
from lakeformat.storage import open_storage
from lakeformat.types.types import DataField, TypeName, atomic

__all__ = [
    "BUCKETS",
    "DATABASE",
    "FIRST_DAY",
    "KEYS_PER_FILE",
    "PARTITIONS",
    "sample_entries",
    "sample_handle",
    "write_sample_snapshot",
    "write_sample_table",
]

DATABASE = "bench"
PARTITIONS = 10_000
FIRST_DAY = 10_000
KEYS_PER_FILE = 1_000
MANIFESTS = 20
BUCKETS = 4
MILLIS = 1_767_225_600_000


def sample_entries(
    count: int, *, is_keyed: bool, partitions: int = PARTITIONS
) -> list[ManifestEntry]:
    """Return entries of files; each file has the next range of ``id`` and the next partition.

    After the last partition, the first one is next.
    """
    chance = random.Random(7)
    return [_entry(number, partitions, chance, is_keyed=is_keyed) for number in range(count)]


def _entry(number: int, partitions: int, chance: random.Random, *, is_keyed: bool) -> ManifestEntry:
    day, least = FIRST_DAY + number % partitions, number * KEYS_PER_FILE
    most = least + KEYS_PER_FILE - 1
    amounts = sorted((chance.randrange(10**6), chance.randrange(10**6)))
    low, high = _row(day, least, amounts[0]), _row(day, most, amounts[1])
    keys = (_row(least), _row(most)) if is_keyed else (EMPTY_ROW, EMPTY_ROW)
    file = DataFileMeta(
        file_name=f"data-{chance.getrandbits(128):032x}-{number % 8}.parquet",
        file_size=chance.randrange(10**6, 10**8),
        row_count=KEYS_PER_FILE,
        min_key=keys[0],
        max_key=keys[1],
        key_stats=SimpleStats(*keys, (0,)) if is_keyed else EMPTY_STATS,
        value_stats=SimpleStats(low, high, (0, 0, chance.randrange(100))),
        min_sequence_number=least,
        max_sequence_number=most,
        schema_id=0,
        creation_time=datetime(2026, 1, 1) + timedelta(milliseconds=number),  # noqa: DTZ001
        delete_row_count=0,
        file_source=0,
    )
    bucket = number % BUCKETS if is_keyed else 0
    return ManifestEntry(FileKind.ADD, _row(day), bucket, BUCKETS if is_keyed else -1, file)


def _row(*numbers: int) -> bytes:
    """Return a framed binary row of numbers that are 0 or more.

    The row is right for columns of INT and BIGINT, because both store such a number in the same
    eight bytes.
    """
    packed = struct.pack(f"<{len(numbers)}q", *numbers)
    return len(numbers).to_bytes(4, "big") + bytes(8) + packed


def sample_handle(warehouse: Path, name: str, *, is_keyed: bool) -> TableHandle:
    """Return the handle of the table; its schema is made here, not read from a file."""
    storage, root = open_storage(str(warehouse))
    layout = TableLayout(f"{database_directory(root, DATABASE)}/{name}")
    return TableHandle(storage, layout, _schema(is_keyed=is_keyed), SYSTEM)


def _schema(*, is_keyed: bool) -> TableSchema:
    day = DataField(0, "day", atomic(TypeName.INT, nullable=not is_keyed))
    key = DataField(1, "id", atomic(TypeName.BIGINT, nullable=not is_keyed))
    return TableSchema(
        id=0,
        fields=(day, key, DataField(2, "amount", atomic(TypeName.BIGINT))),
        highest_field_id=2,
        partition_keys=("day",),
        primary_keys=("day", "id") if is_keyed else (),
        options={"bucket": str(BUCKETS) if is_keyed else "-1", "file.format": "parquet"},
    )


def write_sample_table(warehouse: Path, name: str, count: int, *, is_keyed: bool) -> None:
    """Write a table of one snapshot, with its files spread evenly over the manifests."""
    handle = sample_handle(warehouse, name, is_keyed=is_keyed)
    entries = sample_entries(count, is_keyed=is_keyed)
    storage, layout, options = handle.storage, handle.layout, handle.options
    types = [handle.schema.fields[0].type]
    storage.make_directory(layout.root)
    storage.create(layout.schema(0), handle.schema.to_json())
    per_manifest = -(-count // MANIFESTS)
    metas: list[ManifestMeta] = []
    for first in range(0, count, per_manifest):
        part: Sequence[ManifestEntry] = entries[first : first + per_manifest]
        file_name = f"manifest-{name}-{len(metas)}"
        size = write_manifest(storage, layout, file_name, part, options)
        metas.append(summarise(file_name, size, part, types))
    rows = sum(entry.file.row_count for entry in entries)
    write_sample_snapshot(handle, 1, metas, [], time_millis=MILLIS, rows=rows)


def write_sample_snapshot(
    handle: TableHandle,
    number: int,
    base: Sequence[ManifestMeta],
    delta: Sequence[ManifestMeta],
    *,
    time_millis: int,
    rows: int = 0,
    index_manifest: str | None = None,
) -> None:
    """Write the base and delta manifest lists, then snapshot ``number``.

    ``rows`` is both its total and its delta record count. Snapshot 1 appends; each later one
    overwrites.
    """
    names = [f"manifest-list-{number}-{which}" for which in range(2)]
    sizes = [
        write_manifest_list(handle.storage, handle.layout, name, found, handle.options)
        for name, found in zip(names, (base, delta), strict=True)
    ]
    snapshot = Snapshot(
        id=number,
        schema_id=0,
        base_manifest_list=names[0],
        base_manifest_list_size=sizes[0],
        delta_manifest_list=names[1],
        delta_manifest_list_size=sizes[1],
        commit_user="bench",
        commit_identifier=number,
        commit_kind=CommitKind.OVERWRITE if number > 1 else CommitKind.APPEND,
        time_millis=time_millis,
        total_record_count=rows,
        delta_record_count=rows,
        index_manifest=index_manifest,
    )
    handle.storage.create(handle.layout.snapshot(number), snapshot.to_json())
