"""Clones and migrations die at every storage call: the source is whole, and repeating ends them."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.catalog.options import CatalogOptions
from lakeformat.catalog.transfer.clone import CLONE_MARK
from lakeformat.catalog.transfer.ownership import MARK
from lakeformat.paimon.metadata.tag import Tag, create_tag
from lakeformat.storage import open_storage
from lakeformat.testing import CrashableStorage
from tests.crash.simulated import simulated
from tests.sampling import sampled_faults

SOURCE, COPY = "wh/shop.db/orders", "wh/shop.db/copy"


def opened(storage) -> FileSystemCatalog:
    plain_files = CatalogOptions({"external-roots": "memory://migrated-False/plain"})
    return FileSystemCatalog(storage, "wh", simulated(len(storage.files()) + 100), plain_files)


def rows(catalog: lake.Catalog, name: str, **at) -> list[tuple]:
    found = catalog.table(name).scan(**at).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def filled() -> CrashableStorage:
    """Two snapshots under two schemas, and a tag."""
    storage = CrashableStorage()
    catalog = opened(storage)
    catalog.create_database("shop")
    catalog.create_table(
        "shop.orders",
        [("id", "BIGINT"), ("n", "STRING")],
        primary_key=["id"],
        options={"bucket": "1", "file-operation.thread-num": "1"},
    )
    opened(storage).table("shop.orders").write(pa.table({"id": [1], "n": ["a"]}))
    table = opened(storage).alter_table("shop.orders", lake.add_column("more", "INT"))
    table.write(pa.table({"id": [2], "n": ["b"], "more": pa.array([7], pa.int32())}))
    handle = table._handle
    create_tag(storage, handle.layout, Tag("v1", table.snapshots()[0]))
    return storage


def clone(storage, acknowledged=None) -> None:
    catalog = opened(storage)
    report = lake.clone_table(catalog.table("shop.orders"), catalog, "shop.copy", full=True)
    if acknowledged is not None:
        acknowledged.append(report.files)


def test_a_clone_is_not_there_or_whole_and_repeating_it_ends_it():
    start = filled()
    source = start.files(SOURCE)
    expected = [rows(opened(start), "shop.orders", snapshot=number) for number in (1, 2)]
    alone = start.reopened()
    clone(alone)
    whole = {path for path in alone.files(COPY) if not path.endswith(("LATEST", "EARLIEST"))}
    for trial in sampled_faults(clone, start=start):
        trial.run()
        storage = trial.reopened()
        assert storage.files(SOURCE) == source, str(trial)
        with suppress(lake.NotFoundError, lake.CorruptTableError):
            # Nobody sees half of it: there is no table, or one that says what it lacks.
            assert rows(opened(storage), "shop.copy") == expected[1], str(trial)
        with suppress(lake.AlreadyExistsError):  # it was whole
            clone(storage)
        catalog = opened(storage)
        found = [rows(catalog, "shop.copy", snapshot=number) for number in (1, 2)]
        assert found == expected, str(trial)
        assert rows(catalog, "shop.copy", tag="v1") == expected[0], str(trial)
        assert not storage.exists(f"{COPY}/{CLONE_MARK}"), str(trial)
        assert set(storage.files(COPY)) >= whole, str(trial)
        catalog.table("shop.copy").write(pa.table({"id": [9], "n": ["c"]}))
        assert storage.files(SOURCE) == source, str(trial)


def plain(name: str) -> str:
    """A directory with a file to register or copy, and one to convert."""
    address = f"memory://{name}/plain"
    storage, root = open_storage(address)
    files = {
        "dt=1/a.parquet": pa.table({"id": pa.array([1], pa.int64())}),
        "dt=2/b.parquet": pa.table({"id": pa.array([2], pa.int32())}),
    }
    for path, table in files.items():
        if not storage.exists(f"{root}/{path}"):
            with storage.open_output(f"{root}/{path}") as stream:
                pq.write_table(table, stream)
    return address


def test_a_migration_comes_in_once_and_whole_and_the_source_stays_as_it_is():
    for copy in (False, True):
        source = plain(f"migrated-{copy}")
        plain_storage, root = open_storage(source)
        before = plain_storage.files(root)  # type: ignore[attr-defined]

        def migrate(storage, acknowledged=None, *, source=source, copy=copy) -> None:
            report = lake.migrate_directory(opened(storage), source, "shop.new", copy=copy)
            if acknowledged is not None:
                acknowledged.append(report.rows)

        start = CrashableStorage()
        opened(start).create_database("shop")
        for trial in sampled_faults(migrate, start=start):
            plain_storage.delete(f"{root}/{MARK}")  # of the table of another trial
            trial.run()
            storage = trial.reopened()
            with suppress(lake.NotFoundError):
                assert rows(opened(storage), "shop.new") in ([], [(1, "1"), (2, "2")]), str(trial)
            migrate(storage)
            assert rows(opened(storage), "shop.new") == [(1, "1"), (2, "2")], str(trial)
            assert len(opened(storage).table("shop.new").snapshots()) == 1, str(trial)
            after = plain_storage.files(root)  # type: ignore[attr-defined]
            assert (after.pop(f"{root}/{MARK}", None) is None) is copy, str(trial)
            assert after == before, str(trial)
