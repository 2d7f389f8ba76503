"""Metadata files too large to be honest: refused by name, size and limit, in little memory."""

from __future__ import annotations

import io
import json
import os
import tracemalloc
from dataclasses import replace
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from backports import zstd

import lakeformat as lake
from lakeformat.files.avro.avro_container import most_unpacked
from lakeformat.paimon.metadata.manifest_list import ListKind, manifests_of, write_manifest_list
from lakeformat.storage import open_storage
from lakeformat.storage.base import LARGE_FILE, SMALL_FILE, TooLargeError
from lakeformat.storage.memory import MemoryStorage

HUGE = 20 << 30
FEW_MB = 100 << 20


@pytest.fixture
def orders(catalog):
    """An append table with a snapshot and a tag."""
    table = catalog.create_table("shop.orders", [("id", "BIGINT")])
    table.write(pa.table({"id": [1, 2, 3]}))
    table.tags.create("first")
    return table


@pytest.fixture
def folder(tmp_path) -> Path:
    """The directory of the table."""
    return tmp_path / "shop.db" / "orders"


def stretch(path: Path, size: int = HUGE) -> None:
    """Make a file large without taking room on disk."""
    with path.open("r+b") as stream:
        stream.truncate(size)


def peak_of(work) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def refusal(work) -> str:
    with pytest.raises(lake.CorruptTableError) as refused:
        work()
    return str(refused.value)


@pytest.mark.parametrize("name", ["snapshot/snapshot-1", "schema/schema-0", "tag/tag-first"])
def test_a_file_of_json_is_refused_by_name_size_and_limit(orders, catalog, folder, name):
    stretch(folder / name)
    asks = {
        "snapshot/snapshot-1": lambda: orders.scan().count(),
        "schema/schema-0": lambda: catalog.table("shop.orders"),
        "tag/tag-first": lambda: orders.scan(tag="first").count(),
    }
    said: list[str] = []
    peak = peak_of(lambda: said.append(refusal(asks[name])))
    assert f"{name} has {HUGE} bytes" in said[0]
    assert f"at most {SMALL_FILE}" in said[0]
    assert "Restore it from a backup" in said[0]
    assert peak < FEW_MB


def test_a_consumer_and_a_statistics_file_are_refused(orders, folder):
    orders.consumers.set("c", next_snapshot=1)
    stretch(folder / "consumer" / "consumer-c")
    assert f"consumer-c has {HUGE} bytes" in refusal(lambda: orders.consumers.list())
    orders.analyze()
    [statistics] = (folder / "statistics").iterdir()
    stretch(statistics)
    said = refusal(lambda: orders.system_table("statistics").scan().to_arrow())
    assert f"{statistics.name} has {HUGE} bytes" in said


def test_a_hint_of_any_size_is_ignored(orders, folder):
    stretch(folder / "snapshot" / "LATEST")
    assert peak_of(lambda: orders.scan().count()) < FEW_MB
    assert orders.scan().count() == 3


@pytest.mark.parametrize("kind", ["manifest-list-", "manifest-"])
def test_a_manifest_is_read_up_to_the_size_its_referrer_says(orders, folder, kind):
    found = [
        path
        for path in (folder / "manifest").iterdir()
        if path.name.startswith(kind) and ("list" in path.name) is ("list" in kind)
    ]
    for path in found:
        stretch(path)
    said: list[str] = []
    peak = peak_of(lambda: said.append(refusal(lambda: orders.scan().count())))
    assert f"has {HUGE} bytes" in said[0]
    assert "bytes instead of" in said[0]
    assert peak < FEW_MB


def test_a_size_that_the_referrer_forges_is_no_leave_to_read_it(orders, folder):
    snapshot = folder / "snapshot" / "snapshot-1"
    members = json.loads(snapshot.read_bytes())
    members["deltaManifestListSize"] = HUGE
    snapshot.write_text(json.dumps(members))
    stretch(folder / "manifest" / members["deltaManifestList"])
    assert f"at most {LARGE_FILE}" in refusal(lambda: orders.scan().count())


def bomb(content: bytes, blocks: int, entries: int) -> bytes:
    """A manifest that repeats its first entry so often, in blocks of zstd."""
    reader = fastavro.reader(io.BytesIO(content))
    record, schema = next(reader), reader.writer_schema
    one, head, sync = io.BytesIO(), io.BytesIO(), b"s" * 16
    fastavro.schemaless_writer(one, fastavro.parse_schema(schema), record)
    fastavro.writer(head, fastavro.parse_schema(schema), [], codec="zstandard", sync_marker=sync)
    packed = zstd.compress(one.getvalue() * entries, 3)
    numbers = io.BytesIO()
    fastavro.schemaless_writer(numbers, "long", entries)
    fastavro.schemaless_writer(numbers, "long", len(packed))
    return head.getvalue() + (numbers.getvalue() + packed + sync) * blocks


@pytest.mark.parametrize("is_said", [True, False], ids=["counted", "uncounted"])
def test_a_manifest_that_unpacks_to_far_more_is_refused(orders, folder, is_said):
    handle, snapshot = orders._handle, orders.latest_snapshot()
    [manifest] = manifests_of(handle.storage, handle.layout, snapshot, ListKind.DELTA)
    path = folder / "manifest" / manifest.file_name
    content = bomb(path.read_bytes(), blocks=20, entries=100_000)
    path.write_bytes(content)
    counted = {"num_added_files": 2_000_000} if is_said else {}
    forged = replace(manifest, file_size=len(content), **counted)
    listed = folder / "manifest" / snapshot.delta_manifest_list
    listed.unlink()
    size = write_manifest_list(handle.storage, handle.layout, listed.name, [forged], handle.options)
    members = json.loads((folder / "snapshot" / "snapshot-1").read_bytes())
    members["deltaManifestListSize"] = size
    (folder / "snapshot" / "snapshot-1").write_text(json.dumps(members))
    said: list[str] = []
    peak = peak_of(lambda: said.append(refusal(lambda: orders.scan().count())))
    assert "claims far more bytes or records than a manifest of its size can have" in said[0]
    assert manifest.file_name in said[0]
    assert peak < FEW_MB


def test_a_small_file_unpacks_to_half_a_gigabyte_at_most_and_a_large_one_to_its_share():
    assert most_unpacked(0) == 64 << 20
    assert most_unpacked(1 << 20) == 512 << 20
    assert most_unpacked(100 << 20) == 3200 << 20


@pytest.mark.parametrize("name", ["snapshot/snapshot-1", "schema/schema-0", "tag/tag-first"])
def test_json_nested_without_end_is_damage(orders, catalog, folder, name):
    (folder / name).write_text("[" * 10_000_000)
    asks = {
        "snapshot/snapshot-1": lambda: orders.scan().count(),
        "schema/schema-0": lambda: catalog.table("shop.orders"),
        "tag/tag-first": lambda: orders.scan(tag="first").count(),
    }
    said = refusal(asks[name])
    assert f"{name} (10000000 bytes) is not JSON" in said


def test_a_table_of_ten_thousand_columns_is_read(catalog):
    columns = [(f"a_column_with_a_rather_long_name_{number}", "INT") for number in range(10_000)]
    catalog.create_table("shop.wide", columns)
    assert len(catalog.table("shop.wide").schema.fields) == 10_000


def test_a_list_of_a_hundred_thousand_manifests_is_read(orders):
    handle, snapshot = orders._handle, orders.latest_snapshot()
    [manifest] = manifests_of(handle.storage, handle.layout, snapshot, ListKind.DELTA)
    many = [replace(manifest, file_name=f"{manifest.file_name}-{n}") for n in range(100_000)]
    size = write_manifest_list(handle.storage, handle.layout, "many", many, handle.options)
    found = manifests_of(
        handle.storage,
        handle.layout,
        replace(snapshot, delta_manifest_list="many", delta_manifest_list_size=size),
        ListKind.DELTA,
    )
    assert len(found) == 100_000


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_a_storage_reads_a_file_up_to_the_limit(kind, tmp_path):
    storage, path = MemoryStorage(), "/t/f"
    if kind == "local":
        storage, root = open_storage(str(tmp_path))
        path = f"{root}/f"
    storage.overwrite(path, b"12345")
    assert storage.read(path, 5) == b"12345"
    with pytest.raises(TooLargeError, match=r"f has 5 bytes, and a file of its kind has at most 4"):
        storage.read(path, 4)


def test_a_hint_file_that_is_too_large_is_repaired(orders, folder):
    stretch(folder / "snapshot" / "LATEST")
    orders.repair()
    assert (folder / "snapshot" / "LATEST").read_text() == "1"
    assert os.path.getsize(folder / "snapshot" / "LATEST") == 1
