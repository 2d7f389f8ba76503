"""A file of Avro that lost whole blocks is in order by itself: what refers to it knows better."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.errors import CorruptTableError
from lakeformat.files.avro.avro_container import SYNC_SIZE
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.manifest import (
    FileKind,
    ManifestEntry,
    read_manifests,
    write_manifest,
)
from lakeformat.paimon.metadata.manifest_list import (
    ListKind,
    manifests_of,
    read_manifest_list,
    summarise,
    write_manifest_list,
)
from lakeformat.paimon.metadata.simple_stats import EMPTY_ROW
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.options import TableOptions
from lakeformat.storage import MemoryStorage
from tests.manifest_entries import entries_in
from tests.rewriting import delta_of, rewrite_list

LAYOUT, OPTIONS = TableLayout("t"), TableOptions()
MANY = 300
"""Enough for several blocks."""


def entry(number: int, kind: FileKind = FileKind.ADD) -> ManifestEntry:
    file = DataFileMeta(
        file_name=f"data-{number}.parquet",
        file_size=1,
        row_count=1,
        min_sequence_number=0,
        max_sequence_number=0,
        schema_id=0,
    )
    return ManifestEntry(kind, EMPTY_ROW, 0, 1, file)


def cuts(content: bytes) -> list[int]:
    """The position between two blocks."""
    marker = content[-SYNC_SIZE:]
    ends = [at + SYNC_SIZE for at in range(len(content)) if content[at:].startswith(marker)]
    assert len(ends) > 2, "the file has several blocks"
    return ends[:-1]


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage("cut")


@pytest.fixture
def manifest(storage):
    entries = [*map(entry, range(MANY)), entry(0, FileKind.DELETE)]
    size = write_manifest(storage, LAYOUT, "manifest-0", entries, OPTIONS)
    write_manifest_list(
        storage, LAYOUT, "list-0", [summarise("manifest-0", size, entries)], OPTIONS
    )
    [found] = read_manifest_list(storage, LAYOUT, "list-0")
    return found


def cut(storage: MemoryStorage, name: str, end: int) -> None:
    path = LAYOUT.manifest(name)
    storage.overwrite(path, storage.read(path)[:end])


def test_a_manifest_that_is_whole_is_read_by_its_name_and_by_its_entry(storage, manifest):
    by_name, by_entry = (read_manifests(storage, LAYOUT, [m]) for m in ("manifest-0", manifest))
    assert by_name.entries() == by_entry.entries()


def test_a_manifest_without_its_last_blocks_is_damaged(storage, manifest):
    for end in cuts(storage.read(LAYOUT.manifest("manifest-0"))):
        cut(storage, "manifest-0", end)
        told = rf"manifest-0 has {end} bytes instead of {manifest.file_size}.*named by .*list-0"
        with pytest.raises(CorruptTableError, match=told):
            read_manifests(storage, LAYOUT, [manifest])
        assert len(entries_in(storage, LAYOUT, "manifest-0")) < MANY, "else all would be well"
        storage.delete(LAYOUT.manifest("manifest-0"))
        entries = [*map(entry, range(MANY)), entry(0, FileKind.DELETE)]
        write_manifest(storage, LAYOUT, "manifest-0", entries, OPTIONS)


@pytest.mark.parametrize("change", [{"num_added_files": 299}, {"num_deleted_files": 0}])
def test_a_manifest_has_as_many_entries_as_its_list_says(storage, manifest, change):
    expected = replace(manifest, file_size=None, **change)
    told = r"manifest-0 adds 300 files and deletes 1, .*list-0 records (299 and 1|300 and 0)"
    with pytest.raises(CorruptTableError, match=told):
        read_manifests(storage, LAYOUT, [expected])


def test_the_manifest_that_is_wrong_is_told_from_those_beside_it(storage, manifest):
    size = write_manifest(storage, LAYOUT, "manifest-1", [entry(1)], OPTIONS)
    other = replace(summarise("manifest-1", size, [entry(1)]), num_added_files=2)
    with pytest.raises(CorruptTableError, match="manifest-1 adds 1 file "):
        read_manifests(storage, LAYOUT, [manifest, other, manifest])


def snapshot_of(size: int | None, **members: object) -> Snapshot:
    plain = {
        "base_manifest_list": "long",
        "base_manifest_list_size": size,
        "delta_manifest_list": "list-0",
    }
    return Snapshot(
        id=7,
        schema_id=0,
        commit_user="",
        commit_identifier=0,
        commit_kind=CommitKind.APPEND,
        time_millis=0,
        **{**plain, **members},
    )


@pytest.mark.parametrize("kind", ["base", "delta", "changelog"])
def test_a_list_without_its_last_blocks_is_damaged(storage, manifest, kind):
    manifests = [replace(manifest, file_name=f"manifest-{n:040}") for n in range(MANY)]
    size = write_manifest_list(storage, LAYOUT, "long", manifests, OPTIONS)
    members = {"base_manifest_list": "list-0", "base_manifest_list_size": None}
    members |= {f"{kind}_manifest_list": "long", f"{kind}_manifest_list_size": size}
    snapshot = snapshot_of(None, **members)
    which = ListKind[kind.upper()]
    assert manifests_of(storage, LAYOUT, snapshot, which) == manifests
    [*_, end] = cuts(storage.read(LAYOUT.manifest("long")))
    cut(storage, "long", end)
    told = rf"long has {end} bytes instead of {size}.*named by snapshot 7"
    with pytest.raises(CorruptTableError, match=told):
        manifests_of(storage, LAYOUT, snapshot, which)


def test_older_snapshots_do_not_say_how_long_their_lists_are(storage, manifest):
    write_manifest_list(storage, LAYOUT, "long", [manifest], OPTIONS)
    assert manifests_of(storage, LAYOUT, snapshot_of(None)) == [manifest, manifest]
    assert manifests_of(storage, LAYOUT, snapshot_of(None), ListKind.CHANGELOG) == []


@pytest.fixture
def orders(tmp_path) -> lake.Table:
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.orders", [("id", "BIGINT")], options={"manifest.merge-min-count": "2"}
    )
    table.write(pa.table({"id": [1]}))
    return table


READERS = {
    "rows": lambda table: table.scan().to_arrow(),
    "count": lambda table: table.scan().count(),
    "files": lambda table: table.system_table("files").scan().to_arrow(),
    "partitions": lambda table: table.system_table("partitions").scan().to_arrow(),
}


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_compares_a_manifest_with_what_its_list_says(orders, reader):
    [manifest] = delta_of(orders)
    rewrite_list(orders, [replace(manifest, num_added_files=2)])
    with pytest.raises(CorruptTableError, match=r"adds 1 file and deletes 0, .* records 2 and 0"):
        READERS[reader](orders)


def test_a_merge_of_manifests_compares_before_it_writes_what_is_left_of_them(orders):
    [manifest] = delta_of(orders)
    rewrite_list(orders, [replace(manifest, num_added_files=2)])
    orders.write(pa.table({"id": [2]}))  # which takes over the list, and merges nothing yet
    with pytest.raises(CorruptTableError, match=r"adds 1 file and deletes 0, .* records 2 and 0"):
        orders.write(pa.table({"id": [3]}))
