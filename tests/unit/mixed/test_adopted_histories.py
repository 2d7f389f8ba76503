"""Consumers, retries and marks of a table from before it was adopted or detached."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakeformat as lake
from lakeformat.catalog.iceberg import adopt_pair
from tests.unit.mixed.aged_table import HOUR, AgedTable
from tests.unit.mixed.edited_stores import edit
from tests.unit.mixed.named_rows import contents, names, new_catalog

COLUMNS = [("id", "BIGINT"), ("name", "STRING")]


@pytest.fixture
def catalog(tmp_path: Path) -> lake.IcebergCatalog:
    found = new_catalog(tmp_path)
    found.create_table("db.t", COLUMNS).write(names(_1="a"))
    return found


def adopted(catalog: lake.IcebergCatalog) -> lake.MixedTable:
    catalog.adopt_table("db.t", primary_key=["id"])
    found = catalog.table("db.t")
    assert isinstance(found, lake.MixedTable)
    return found


def test_a_table_with_a_consumer_is_not_adopted(catalog):
    """No reader and no expiry could read its position."""
    table = catalog.table("db.t")
    table.consumers.set("mirror", after=table.position())
    with pytest.raises(lake.InvalidRequestError, match="the consumer 'mirror' follows its commits"):
        catalog.adopt_table("db.t", primary_key=["id"])
    table.consumers.reset("mirror")
    adopted(catalog).expire_snapshots(older_than="0 s")


def test_a_retry_of_a_write_before_the_adoption_publishes_nothing_again(catalog):
    commit = lake.CommitId("load", 0)
    catalog.table("db.t").write(names(_2="old"), commit=commit)
    mixed = adopted(catalog)
    mixed.write(names(_2="new"))
    assert mixed.write(names(_2="old"), commit=commit).replayed
    assert contents(mixed) == {1: "a", 2: "new"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lake.cloning", "x"),
        ("lake.altered", "{}"),
        ("lake.detaching", "db.t"),
        ("lake.renamed-to", "db.other"),
    ],
)
def test_marks_of_other_pairs_are_not_taken_over(catalog, tmp_path, name, value):
    edit(tmp_path / "db/t", properties={name: value})
    mixed = adopted(catalog)
    mixed.write(names(_2="b"))
    assert catalog.detach_table("db.t", merge=True).merged
    assert contents(catalog.table("db.t")) == {1: "a", 2: "b"}


def test_properties_that_change_during_an_adoption_are_noticed(catalog, tmp_path, monkeypatch):
    """The change store would have another version field than the base store."""
    publish = adopt_pair.publish_adoption

    def late(*arguments: object) -> None:
        edit(tmp_path / "db/t", properties={"lake.version-field": "id"})
        publish(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(adopt_pair, "publish_adoption", late)
    with pytest.raises(lake.CommitConflictError, match="another program has changed it"):
        catalog.adopt_table("db.t", primary_key=["id"])
    assert contents(catalog.table("db.t")) == {1: "a"}


def test_a_dry_run_of_a_detach_that_merges_says_so(catalog):
    mixed = adopted(catalog)
    mixed.write(names(_2="b"))
    report = catalog.detach_table("db.t", merge=True, dry_run=True)
    assert report.merged
    expected = "db.t would be an ordinary Iceberg table, after a merge of its changes; would"
    assert report.sentence.startswith(expected)
    assert contents(mixed) == {1: "a", 2: "b"}


def test_a_table_that_was_opened_before_a_detach_says_so(catalog):
    mixed = adopted(catalog)
    catalog.detach_table("db.t")
    for call in (mixed.scan, lambda: mixed.write(names(_2="b")), mixed.begin):
        with pytest.raises(lake.TableReplacedError, match="no longer a Mixed table: it was det"):
            call()


def test_a_table_that_was_detached_and_adopted_again_expires_and_is_maintained(tmp_path):
    """A detach deletes the records of merged changes, so older states cannot be read."""
    aged = AgedTable(tmp_path)
    aged.write((1, "x", "a"))
    aged.merge()
    old = aged.table.position()
    aged.now += 2 * HOUR
    aged.write((2, "x", "b"))
    catalog = aged.catalog()
    catalog.detach_table("db.t", merge=True)
    catalog.adopt_table("db.t", primary_key=["k", "p"])
    table = catalog.table("db.t")
    assert table.expire_snapshots(dry_run=True).merged_files == 0
    assert table.expire_snapshots().merged_files == 0
    table.health()
    table.maintain(executor="serial")
    assert sorted(table.scan().to_arrow()["k"].to_pylist()) == [1, 2]
    with pytest.raises(lake.NotFoundError, match=r"the table was detached.*adopted again") as found:
        table.scan(snapshot=table.snapshots()[0].snapshot_id)
    assert "table.base.scan(snapshot=…)" in str(found.value)
    [base, *_] = table.base.snapshots()
    assert table.base.scan(snapshot=base.id).to_arrow()["k"].to_pylist() == [1]
    with pytest.raises(lake.NotFoundError):
        table.scan(snapshot=old)
