"""Each change of published metadata is a new file, also beside files of other programs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import lakeformat as lake
from lakeformat.errors import UnavailableError
from lakeformat.iceberg.metadata.metadata_file import HINT
from lakeformat.publish.place import versions_of
from lakeformat.storage import MemoryStorage
from tests.unit.publish.published import (
    ROOT,
    catalog_in,
    content,
    file_of,
    iceberg,
    number_of,
    published_table,
    rows_of,
    seen,
)

COLUMNS = [("id", "BIGINT")]
METADATA = f"{ROOT}/metadata"


@pytest.fixture
def storage(request) -> MemoryStorage:
    return MemoryStorage(request.node.name)


def table_with(storage: MemoryStorage, commits: int) -> lake.Table:
    table = published_table(storage, COLUMNS)
    for number in range(commits):
        table.write(rows_of(id=[number]))
    return table


def shown_file(table: lake.Table) -> str:
    shown = versions_of(table._handle).shown()
    assert shown is not None
    return shown.path.rpartition("/")[2]


def test_no_metadata_file_is_overwritten_and_each_change_has_a_new_name(storage, monkeypatch):
    overwrite, names = storage.overwrite, []

    def watched(path, data):
        assert not (path.endswith(".metadata.json") and storage.exists(path))
        overwrite(path, data)

    monkeypatch.setattr(MemoryStorage, "overwrite", lambda _, path, data: watched(path, data))
    table_with(storage, 3)
    changes: list[Callable[[lake.Table], object]] = [
        lambda table: table.tags.create("two", snapshot=2),
        lambda table: table.expire_snapshots(retain_max=1, retain_min=1),
        lambda table: table.tags.delete("two"),
        lambda table: table.write(rows_of(id=[8])),
        lambda table: table.rollback(snapshot=3, as_latest=False),
        with_row_ids,
    ]
    for change in changes:
        change(catalog_in(storage).table("shop.orders"))
        table = catalog_in(storage).table("shop.orders")
        lake.publish_table(table)
        names.append(shown_file(table))
        assert seen(table) == content(table.scan().to_arrow())
    assert names == [file_of(number) for number in range(4, 10)]


def with_row_ids(table: lake.Table) -> None:
    version = lake.set_option("metadata.iceberg.format-version", "3")
    catalog_in(table._handle.storage).alter_table("shop.orders", version)


def test_no_file_is_deleted_while_the_hint_cannot_be_written(storage, monkeypatch):
    table = table_with(storage, 2)
    table.write(rows_of(id=[9]), overwrite="table")
    overwrite = storage.overwrite

    def fails(path, data):
        if path.endswith(HINT):
            raise UnavailableError("the storage is away")
        overwrite(path, data)

    before = {name for name in storage.files() if name.endswith((".parquet", ".avro"))}
    with monkeypatch.context() as broken:
        broken.setattr(MemoryStorage, "overwrite", lambda _, path, data: fails(path, data))
        with pytest.raises(UnavailableError, match="away"):
            table.expire_snapshots(retain_max=1, retain_min=1)
    assert before <= {*storage.files()}
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert [each.id for each in iceberg(table).snapshots()] == [3]


@pytest.mark.parametrize("higher", [1, 7, -number_of(1) + 2])
def test_a_file_of_another_table_with_a_higher_number_passes_nothing_on(storage, higher):
    """A low number is one that Paimon's own publication would use."""
    table = table_with(storage, 1)
    uuid = iceberg(table)._loaded().metadata.table_uuid
    other = table_with(MemoryStorage("other"), 2)
    theirs = versions_of(other._handle).newest()
    assert theirs is not None
    content_of_theirs = other._handle.storage.read(theirs.path)
    assert uuid is not None
    content_of_theirs = content_of_theirs.replace(uuid.encode(), b"f" * len(uuid))
    storage.overwrite(f"{METADATA}/{file_of(1 + higher)}", content_of_theirs)
    table.write(rows_of(id=[5]))
    metadata = iceberg(table)._loaded().metadata
    assert metadata.table_uuid == uuid
    assert [each.snapshot_id for each in metadata.snapshots] == [1, 2]
    assert seen(table) == content(table.scan().to_arrow())
    assert table.health().reasons == ()


@pytest.mark.parametrize("name", ["v99.metadata.json", f"v{number_of(99)}.metadata.json"])
def test_a_copy_with_a_higher_number_does_not_hide_later_commits(storage, name):
    table = table_with(storage, 2)
    storage.overwrite(f"{METADATA}/{name}", storage.read(f"{METADATA}/{file_of(2)}"))
    storage.delete(f"{METADATA}/{HINT}")
    for number in (7, 8):
        table.write(rows_of(id=[number]))
        assert seen(table) == content(table.scan().to_arrow())
        storage.delete(f"{METADATA}/{HINT}")
        assert seen(table) == content(table.scan().to_arrow())


def test_a_number_that_readers_cannot_count_on_from_is_refused(storage):
    table = table_with(storage, 1)
    newest = storage.read(f"{METADATA}/{file_of(1)}")
    storage.overwrite(f"{METADATA}/v{(1 << 31) - 1}.metadata.json", newest)
    table.write(rows_of(id=[5]))
    with pytest.raises(
        lake.InvalidRequestError, match=r"v2147483647\.metadata\.json .*move it away"
    ):
        lake.publish_table(table)
