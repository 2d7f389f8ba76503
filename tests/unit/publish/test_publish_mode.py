"""With ``iceberg.publish-mode`` = ``async`` commits publish nothing, and the lag is shown."""

from __future__ import annotations

import pytest

import lakeformat as lake
from lakeformat.errors import CommitOutcomeUnknownError, UnavailableError
from lakeformat.publish.versions import PublishedVersions
from lakeformat.storage import MemoryStorage
from tests.unit.publish.published import (
    ROOT,
    catalog_in,
    catalog_of,
    content,
    iceberg,
    published_table,
    rows_of,
    seen,
)

COLUMNS = [("id", "BIGINT"), ("note", "STRING")]
ASYNC = {"iceberg.publish-mode": "async"}


@pytest.fixture
def table(request) -> lake.Table:
    return published_table(MemoryStorage(request.node.name), COLUMNS, options=ASYNC)


def write(table: lake.Table, *numbers: int) -> None:
    for number in numbers:
        table.write(rows_of(id=[number], note=["x"]))


def test_a_commit_publishes_nothing_until_lake_publish_brings_the_head(table):
    write(table, 1, 2)
    assert table._handle.storage.list(f"{ROOT}/metadata") == []
    assert lake.publication_lag(table).snapshots == 2
    [reason] = table.health().reasons
    assert (reason.advice, table.health().snapshots.publication.snapshots) == (
        "lake publish shop.orders",
        2,
    )
    assert lake.publish_table(table).published == (1, 2)
    write(table, 3)
    [reason] = table.health().reasons
    assert reason.finding.startswith("the Iceberg metadata is 1 snapshot behind")
    assert [row["id"] for row in seen(table)] == [1, 2]
    assert lake.publish_table(table).published == (3,)
    assert (lake.publication_lag(table).snapshots, table.health().reasons) == (0, ())


def before_the_first_file(monkeypatch, change):
    """Make ``change`` before a publication creates its first metadata file.

    Return a list that gets the numbers of the files.
    """
    create, numbers = PublishedVersions.create, []

    def changing(self, number, metadata):
        if not numbers:
            change()
        numbers.append(number)
        return create(self, number, metadata)

    monkeypatch.setattr(PublishedVersions, "create", changing)
    return numbers


@pytest.mark.parametrize("changes_at", [1, 2])
def test_a_publication_goes_on_if_the_schema_changes_meanwhile(table, monkeypatch, changes_at):
    write(table, 1)
    if changes_at == 2:
        lake.publish_table(table)
    write(table, 2)

    def change():
        write(catalog_of(table).alter_table("shop.orders", lake.add_column("v", "INT")), 3)

    before_the_first_file(monkeypatch, change)
    assert lake.publish_table(table).snapshot_id == 3
    changed = catalog_of(table).table("shop.orders")
    assert seen(changed) == content(changed.scan().to_arrow())


@pytest.mark.parametrize(
    "column", [("v", "INT"), ("t", "TIME(3)")], ids=["publishable", "unpublishable"]
)
@pytest.mark.parametrize("begun", [False, True])
def test_a_publication_ends_if_it_is_switched_off_meanwhile(table, monkeypatch, begun, column):
    write(table, 1)
    if begun:
        lake.publish_table(table)
    write(table, 2)

    def change():
        off = lake.set_option("metadata.iceberg.storage", "disabled")
        write(catalog_of(table).alter_table("shop.orders", lake.add_column(*column), off), 3)

    numbers = before_the_first_file(monkeypatch, change)
    assert lake.publish_table(table).reason.startswith("the table is not published any more")
    assert len(numbers) == 1
    assert {each["id"] for each in seen(table)} == {1, 2}


def test_a_publication_goes_on_after_a_new_schema_and_a_rollback(table, monkeypatch):
    write(table, 1)
    lake.publish_table(table)
    write(table, 2)

    def change():
        changed = catalog_of(table).alter_table("shop.orders", lake.add_column("v", "INT"))
        write(changed, 3)
        changed.rollback(snapshot=2, as_latest=True)

    before_the_first_file(monkeypatch, change)
    report = lake.publish_table(table)
    assert (report.snapshot_id, report.published, report.rebuilt) == (4, (2, 3, 4), False)
    assert [each["id"] for each in seen(table)] == [1, 2]


def test_files_are_deleted_only_after_the_publication(table):
    write(table, 1)
    lake.publish_table(table)
    table.write(rows_of(id=[2], note=["new"]), overwrite="table")
    assert [row["id"] for row in seen(table)] == [1]
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert seen(table) == content(table.scan().to_arrow())
    assert [each.id for each in iceberg(table).snapshots()] == [2]


def test_tags_and_rollbacks_are_published_at_once(table):
    write(table, 1, 2)
    table.tags.create("one", snapshot=1)
    assert [row["id"] for row in iceberg(table).scan(tag="one").to_arrow().to_pylist()] == [1]
    write(table, 3)
    table.rollback(snapshot=1, as_latest=False, force=True)
    assert [row["id"] for row in seen(table)] == [1]


def test_a_failed_inline_publication_has_the_same_lag(request, monkeypatch):
    table = published_table(MemoryStorage(request.node.name), COLUMNS)
    write(table, 1)

    def fails(*_):
        raise UnavailableError("the storage is away")

    with monkeypatch.context() as broken:
        broken.setattr(PublishedVersions, "create", fails)
        write(table, 2, 3)
    assert table.latest_snapshot().id == 3
    assert lake.publication_lag(table).snapshots == 2


def test_a_publication_without_an_answer_can_be_repeated(table, monkeypatch):
    write(table, 1)

    def loses_the_answer(*_):
        raise CommitOutcomeUnknownError("with a CommitId just retry")

    with monkeypatch.context() as broken:
        broken.setattr("lakeformat.publish.versions.create_once", loses_the_answer)
        with pytest.raises(CommitOutcomeUnknownError, match=r"v\d+.metadata.json.*Publish again"):
            lake.publish_table(table)
    assert lake.publish_table(table).published == (1,)
    assert lake.publish_table(table).published == ()


def test_another_mode_is_refused_with_the_two_that_there_are(request):
    catalog = catalog_in(MemoryStorage(request.node.name))
    options = {"metadata.iceberg.storage": "table-location", "iceberg.publish-mode": "later"}
    with pytest.raises(lake.InvalidRequestError, match="inline"):
        catalog.create_table("shop.orders", COLUMNS, options=options)


def test_a_table_without_publication_has_no_lag(request):
    table = catalog_in(MemoryStorage(request.node.name)).create_table("shop.orders", COLUMNS)
    with pytest.raises(lake.InvalidRequestError, match="does not publish Iceberg metadata"):
        lake.publication_lag(table)
