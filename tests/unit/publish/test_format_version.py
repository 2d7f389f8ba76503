"""Tables are published in version 2 or 3 of Iceberg's format, and the version can be raised."""

from __future__ import annotations

import shutil
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog.open_table import alter_table_at
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.schema_file import alter_schema
from lakeformat.publish.place import versions_of
from lakeformat.storage import MemoryStorage
from tests.crash.simulated import simulated
from tests.unit.publish.published import (
    PUBLISHED,
    ROOT,
    catalog_in,
    content,
    file_of,
    iceberg,
    number_of,
    published_table,
    rows_of,
    seen,
    unobserved,
)

COLUMNS = [("id", "BIGINT"), ("note", "STRING")]
OPTION = "metadata.iceberg.format-version"
THREE = {OPTION: "3"}


@pytest.fixture
def storage(request) -> MemoryStorage:
    return MemoryStorage(request.node.name)


def row_ids(table: lake.Table) -> dict[str, int]:
    """The first row id of each live data file, by its only note."""
    found = {}
    for entry in iceberg(table).system_table("files").scan().to_arrow().to_pylist():
        found[dict(entry["lower_bounds"])[1].decode()] = entry["first_row_id"]
    return found


def lineage(table: lake.Table) -> list[tuple[Any, Any]]:
    return [
        (each.first_row_id, each.added_rows) for each in iceberg(table)._loaded().metadata.snapshots
    ]


def with_version(storage, version: str) -> lake.Table:
    return catalog_in(storage).alter_table("shop.orders", lake.set_option(OPTION, version))


def test_rows_of_version_three_have_ids_that_stay(storage):
    table = published_table(storage, [*COLUMNS, ("dt", "INT")], partition_by=["dt"], options=THREE)
    for day, note in ((1, "a"), (2, "b"), (1, "c")):
        days = pa.array([day] * 2, pa.int32())
        table.write(pa.table({"id": [1, 2], "note": [note] * 2, "dt": days}))
    assert row_ids(table) == {"a": 0, "b": 2, "c": 4}
    one = pa.table({"id": [3], "note": ["d"], "dt": pa.array([2], pa.int32())})
    table.write(one, overwrite="partitions")
    assert row_ids(table) == {"a": 0, "c": 4, "d": 6}
    assert lineage(table) == [(0, 2), (2, 2), (4, 2), (6, 1)]
    metadata = iceberg(table)._loaded().metadata
    assert (metadata.format_version, metadata.next_row_id) == (3, 7)
    assert seen(table) == content(table.scan().to_arrow())


def test_a_row_id_is_not_used_twice_when_the_history_is_published_again(storage):
    table = published_table(storage, COLUMNS, options=THREE)
    for note in ("a", "b"):
        table.write(rows_of(id=[1], note=[note]))
    theirs = unobserved(table)
    theirs.rollback(snapshot=1, as_latest=False)
    theirs.write(rows_of(id=[1], note=["c"]))
    assert lake.publish_table(table).rebuilt
    assert row_ids(table) == {"a": 2, "c": 3} or row_ids(table) == {"c": 2, "a": 3}


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_row_id_is_not_used_twice_after_a_rollback_that_cuts_the_history(storage, version):
    table = published_table(storage, COLUMNS, options={OPTION: version})
    table.write(rows_of(id=[1], note=["a"]))
    table = with_version(storage, "3")
    for note in ("b", "c"):
        table.write(rows_of(id=[1], note=[note]))
    table.rollback(snapshot=1, as_latest=False)
    table.write(rows_of(id=[1], note=["d"]))
    assert row_ids(table)["d"] == 3
    assert seen(table) == content(table.scan().to_arrow())


def test_a_row_id_is_not_used_twice_after_a_power_cut_restores_a_deleted_file(storage):
    table = published_table(storage, COLUMNS, options={OPTION: "3"})
    table.write(rows_of(id=[1], note=["a"]))
    kept = []
    for note in ("b", "c"):
        table.write(rows_of(id=[1], note=[note]))
        kept.append(versions_of(table._handle).newest())
        table.rollback(snapshot=1, as_latest=False)
    storage.delete(kept[1].path)
    storage.overwrite(f"{ROOT}/metadata/version-hint.text", str(number_of(2)).encode())
    assert kept[0].path.endswith(file_of(2))
    other = unobserved(table)
    for note in ("d", "e"):
        other.write(rows_of(id=[1], note=[note]))
    other.expire_snapshots(retain_max=1, retain_min=1)
    lake.publish_table(table)
    assert min(row_ids(table).values()) >= 3
    assert seen(table) == content(table.scan().to_arrow())


@pytest.mark.parametrize("by_commit", [True, False])
def test_a_raised_version_upgrades_the_published_table(storage, by_commit):
    table = published_table(storage, COLUMNS)
    for note in ("a", "b"):
        table.write(rows_of(id=[1], note=[note]))
    before = iceberg(table)._loaded().metadata
    table = with_version(storage, "3")
    if not by_commit:
        report = lake.publish_table(table)
        assert (report.published, report.updated) == ((), False)
        assert report.reason.endswith("already; the metadata's format version is now 3")
        assert iceberg(table)._loaded().metadata.next_row_id == 0
        assert row_ids(table) == {"a": None, "b": None}
    table.write(rows_of(id=[1], note=["c"]))
    after = iceberg(table)._loaded().metadata
    assert (after.format_version, after.table_uuid) == (3, before.table_uuid)
    assert after.next_row_id == 3
    assert sorted(row_ids(table).values()) == [0, 1, 2]
    assert lineage(table) == [(None, None), (None, None), (0, 3)]
    for snapshot in (1, 2, 3):
        assert seen(table, snapshot) == content(table.scan(snapshot=snapshot).to_arrow())


def test_a_lowered_version_is_refused_with_the_ways_out(storage, caplog):
    table = published_table(storage, COLUMNS, options=THREE)
    table.write(rows_of(id=[1], note=["a"]))
    table = lowered_by_another_engine(storage)
    with pytest.raises(lake.UnsupportedError, match=r"Set the option to 3\. Or, .*publish shop.or"):
        lake.publish_table(table)
    assert table.write(rows_of(id=[2], note=["b"])).snapshot_id == 2
    assert "has the format version 3" in caplog.text
    assert [row["id"] for row in seen(table)] == [1]
    for name in storage.files():
        if name.startswith(f"{ROOT}/metadata/"):
            storage.delete(name)
    assert lake.publish_table(table).rebuilt
    assert iceberg(table)._loaded().metadata.format_version == 2
    assert [row["id"] for row in seen(table)] == [1, 2]


def lowered_by_another_engine(storage) -> lake.Table:
    alter_schema(storage, TableLayout(ROOT), [lake.set_option(OPTION, "2")], simulated())
    return catalog_in(storage).table("shop.orders")


REFUSED = r"has the format version 3, .* Set the option to 3\. .* delete the directory .*/metadata"


@pytest.mark.parametrize("change", [lake.set_option(OPTION, "2"), lake.remove_option(OPTION)])
@pytest.mark.parametrize("kind", ["filesystem", "sql", "path"])
def test_an_older_version_is_refused_when_the_option_is_set(tmp_path, change, kind):
    options = {"metastore": "jdbc", "uri": f"sqlite:///{tmp_path}/c.db"} if kind == "sql" else {}
    catalog = lake.open_catalog(str(tmp_path / "wh"), options=options)
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", COLUMNS, options={**PUBLISHED, **THREE})
    table.write(rows_of(id=[1], note=["a"]))
    alter = partial(catalog.alter_table, "shop.orders", change)
    if kind == "path":
        alter = partial(alter_table_at, str(tmp_path / "wh/shop.db/orders"), [change])
    with pytest.raises(lake.UnsupportedError, match=REFUSED):
        alter()
    assert catalog.table("shop.orders").schema.options[OPTION] == "3"
    shutil.rmtree(tmp_path / "wh/shop.db/orders/metadata")
    lowered = catalog.alter_table("shop.orders", change)
    lake.publish_table(lowered)
    assert iceberg(lowered)._loaded().metadata.format_version == 2


@pytest.mark.parametrize("place", ["table-location", "hadoop-catalog"])
def test_a_publication_of_a_newer_version_cannot_be_switched_on_again(storage, place):
    given = {"metadata.iceberg.storage": place, **THREE}
    table = published_table(storage, COLUMNS, options=given)
    table.write(rows_of(id=[1], note=["a"]))
    key, catalog = "metadata.iceberg.storage", catalog_in(storage)
    catalog.alter_table("shop.orders", lake.set_option(key, "disabled"))
    catalog.alter_table("shop.orders", lake.set_option(OPTION, "2"))
    with pytest.raises(lake.UnsupportedError, match=REFUSED):
        catalog.alter_table("shop.orders", lake.set_option(key, place))
    both = lake.set_option(key, place), lake.set_option(OPTION, "3")
    assert lake.publish_table(catalog.alter_table("shop.orders", *both)).published == ()


@pytest.mark.parametrize("kind", ["TIMESTAMP(9)", "TIMESTAMP_LTZ(7)"])
def test_nanoseconds_are_published_in_version_three_only(storage, kind):
    with pytest.raises(lake.UnsupportedError, match=r"or set .*format-version' to '3'"):
        published_table(storage, [("id", "INT"), ("at", kind)])
    table = published_table(storage, [("id", "INT"), ("at", kind)], options=THREE)
    schema = table.schema.arrow_schema()
    times = pa.array([-1_000_000_100, None, 1_700_000_000_123_456_700], pa.timestamp("ns"))
    ids = pa.array([1, 2, 3], pa.int32())
    table.write(pa.table([ids, times.cast(schema.field("at").type)], schema=schema))
    shown = iceberg(table)
    assert str(shown._loaded().metadata.schema.fields[1].type).endswith("_ns")
    assert shown.scan().to_arrow().column("at").equals(table.scan().to_arrow().column("at"))
    where = "at > TIMESTAMP '2023-01-01 00:00:00'"
    assert shown.scan(where=where).to_arrow().column("id").to_pylist() == [3]


@pytest.mark.parametrize("version", ["1", "4", "three"])
def test_other_versions_are_refused(storage, version):
    with pytest.raises(lake.InvalidRequestError, match="a whole number from 2 to 3"):
        published_table(storage, COLUMNS, options={OPTION: version})
