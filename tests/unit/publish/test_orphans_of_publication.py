"""Files that an interrupted publication leaves are orphans, deleted after the age limit."""

from __future__ import annotations

import uuid
from random import Random

import pytest

from lakeformat.catalog import FileSystemCatalog
from lakeformat.environment import Environment
from lakeformat.publish.versions import PublishedVersions
from lakeformat.storage import MemoryStorage
from tests.sampling import SEED
from tests.unit.publish.published import (
    PUBLISHED,
    ROOT,
    catalog_of,
    content,
    file_of,
    rows_of,
    seen,
)

DAY = 86_400_000
METADATA = "wh/shop.db/orders/metadata"


class Clocked:
    """A published table, whose clock is moved by hand."""

    def __init__(self, name: str, **options: str) -> None:
        self.now = 1_700_000_000_000
        self.storage = MemoryStorage(name, clock=lambda: self.now)
        random = Random(SEED)
        world = Environment(
            now_millis=lambda: self.now,
            new_id=lambda: str(uuid.UUID(int=random.getrandbits(128), version=4)),
            sleep_seconds=lambda seconds: None,
        )
        catalog = FileSystemCatalog(self.storage, "wh", world)
        catalog.create_database("shop")
        columns = [("id", "BIGINT")]
        given = {**PUBLISHED, **options}
        self.table = catalog.create_table("shop.orders", columns, options=given)

    def write(self, number: int) -> None:
        self.table.write(rows_of(id=[number]))

    def metadata(self) -> set[str]:
        return {name.rpartition("/")[2] for name in self.storage.files(METADATA)}


@pytest.fixture
def world(request) -> Clocked:
    return Clocked(request.node.name)


def killed(*_):
    raise KeyboardInterrupt


def test_files_of_an_interrupted_publication_are_orphans(world, monkeypatch):
    world.write(1)
    intact = world.metadata()
    with monkeypatch.context() as broken:
        broken.setattr(PublishedVersions, "create", killed)
        with pytest.raises(KeyboardInterrupt):
            world.write(2)
    left = world.metadata() - intact
    assert len(left) == 2
    assert world.table.remove_orphans().orphan_files == 0
    world.now += 3 * DAY
    world.write(3)
    world.now += 2 * DAY
    needed = world.metadata() - left
    report = world.table.remove_orphans(older_than="1 d")
    assert {each.path.rpartition("/")[2] for each in report.files} == left
    assert sorted(each.kind for each in report.files) == ["manifest", "manifest list"]
    assert world.metadata() == needed | left
    world.table.remove_orphans(older_than="1 d", dry_run=False)
    assert world.metadata() == needed
    assert seen(world.table) == content(world.table.scan().to_arrow())


def test_metadata_files_that_the_newest_does_not_name_are_orphans(world):
    for number in range(12):
        world.write(number)
    assert file_of(2) in world.metadata()
    for name in ("v1.metadata.json.gz", "notes.txt", "v0.metadata.json"):
        world.storage.overwrite(f"{METADATA}/{name}", b"{}")
    world.now += 2 * DAY
    report = world.table.remove_orphans(older_than="1 d", dry_run=False)
    [orphan] = report.files
    assert (orphan.path.rpartition("/")[2], orphan.kind) == ("v0.metadata.json", "table metadata")
    assert report.unknown_files == 2
    assert seen(world.table) == content(world.table.scan().to_arrow())


@pytest.mark.parametrize("version", ["2", "3"])
def test_files_of_deletes_are_kept_until_no_snapshot_needs_them(request, monkeypatch, version):
    options = {"deletion-vectors.enabled": "true", "metadata.iceberg.format-version": version}
    world = Clocked(request.node.name, **options)
    world.table.write(rows_of(id=[1, 2, 3, 4]))
    world.table.delete("id = 1")
    needed = world.metadata()
    with monkeypatch.context() as broken:
        broken.setattr(PublishedVersions, "create", killed)
        with pytest.raises(KeyboardInterrupt):
            world.table.delete("id = 2")
    left = world.metadata() - needed
    world.now += 2 * DAY
    world.write(5)
    world.now += 2 * DAY
    report = world.table.remove_orphans(older_than="1 d", dry_run=False)
    kinds = sorted(each.kind for each in report.files)
    assert kinds == ["delete file", "manifest", "manifest", "manifest list"]
    assert not left & world.metadata()
    assert seen(world.table) == content(world.table.scan().to_arrow())


def test_files_of_branches_are_kept_and_their_orphans_are_deleted(request, monkeypatch):
    world = Clocked(request.node.name, **{"deletion-vectors.enabled": "true"})
    world.table.write(rows_of(id=[1, 2, 3, 4]))
    world.table.branches.create("dev", snapshot=1)
    dev = catalog_of(world.table).table("shop.orders$branch_dev")
    dev.delete("id = 1")
    place = f"{ROOT}/branch/branch-dev/metadata"
    needed = {*world.storage.files(place)}
    with monkeypatch.context() as broken:
        broken.setattr(PublishedVersions, "create", killed)
        with pytest.raises(KeyboardInterrupt):
            dev.delete("id = 2")
    left = {*world.storage.files(place)} - needed
    assert len(left) == 4
    world.now += 2 * DAY
    dev.write(rows_of(id=[5]))
    world.now += 2 * DAY
    world.write(5)
    world.now += 2 * DAY
    world.table.remove_orphans(older_than="1 d", dry_run=False)
    assert not left & {*world.storage.files(place)}
    for table in (world.table, dev):
        assert seen(table) == content(table.scan().to_arrow())
