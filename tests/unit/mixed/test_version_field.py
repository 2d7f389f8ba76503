"""A version field decides which row of a key is newer, in any order of commits."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.unit.mixed.edited_stores import edit

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("version", pa.int64())])


@pytest.fixture
def catalog(tmp_path: Path) -> lake.IcebergCatalog:
    found = lake.open_catalog(str(tmp_path), format="iceberg")
    found.create_database("db")
    return found


def created(catalog: Any, field: str = "version", columns: Any = COLUMNS, **options: str) -> Any:
    given = {"lake.version-field": field, **{k.replace("_", "."): v for k, v in options.items()}}
    return catalog.create_table("db.t", columns, format="mixed", primary_key=["id"], options=given)


def rows(*given: tuple[Any, ...]) -> pa.Table:
    return pa.table([*map(list, zip(*given, strict=True))], schema=COLUMNS)


def contents(table: Any, **how: Any) -> dict[int, str]:
    found = table.scan(["id", "name"], **how).to_arrow().to_pydict()
    assert len({*found["id"]}) == len(found["id"]), found
    return dict(zip(found["id"], found["name"], strict=True))


def test_a_larger_version_wins_before_and_after_an_optimizing(catalog):
    table = created(catalog)
    table.write(rows((1, "a", 5), (2, "b", 5), (2, "in one write", 4)))
    table.write(rows((1, "late", 3), (2, "new", 7)))
    wanted = {1: "a", 2: "new"}
    assert contents(table) == wanted
    assert contents(table, where="name = 'late'") == {}
    table.compact(strategy="full")
    assert contents(table.base) == contents(table) == wanted
    table.write(rows((1, "later", 4), (2, "same", 7), (3, "c", None)))
    wanted = {1: "a", 2: "same", 3: "c"}
    assert contents(table) == wanted
    assert contents(table, where="name = 'later'") == {}
    assert table.scan().count() == 3
    table.compact(strategy="full")
    assert contents(table.base) == wanted


def test_a_delete_removes_rows_up_to_its_version(catalog):
    table = created(catalog)
    table.write(rows((1, "a", 5), (2, "b", 5)))
    table.write(rows((1, "", 5), (2, "", 4)), kinds=["-D", "-D"])
    assert contents(table) == {2: "b"}
    table.write(rows((1, "late", 4)))
    assert contents(table) == {2: "b"}
    table.compact(strategy="full")
    table.write(rows((1, "after the delete was merged", 4)))
    assert contents(table) == {1: "after the delete was merged", 2: "b"}


@pytest.mark.parametrize("row", [True, False])
def test_a_delete_waits_for_a_late_row_that_waits_for_a_batch(catalog, row):
    """Without a row, the delete would only be recorded as merged."""
    table = created(catalog)
    if row:
        table.write(rows((1, "a", 5), (2, "b", 1)))
        table.compact(strategy="full")
    table.write(rows((1, "a", 7)), kinds=["-D"])
    batch = table.begin()
    table.write(rows((1, "late", 6)))
    wanted = {2: "b"} if row else {}
    assert contents(table) == wanted
    table.compact(strategy="full")
    assert contents(table) == wanted
    batch.abort()
    table.compact(strategy="full")
    assert contents(table) == contents(table.base) == wanted


def test_a_delete_is_not_merged_without_a_late_row_to_reach_the_most_files(catalog, caplog):
    options = {"self-optimizing.max-file-count": "2", "change.file-index.hash-bucket": "1"}
    table = created(catalog, **options)
    table.write(rows((2, "b", 1)))
    table.compact(strategy="full")
    table.write(rows((1, "a", 7)), kinds=["-D"])
    table.write(rows((1, "late", 6)))
    table.compact(strategy="full")
    assert contents(table) == {2: "b"}
    assert "raise 'self-optimizing.max-file-count'" in caplog.text
    with pytest.raises(lake.InvalidRequestError, match="3 files with unmerged changes"):
        catalog.detach_table("db.t", merge=True)
    table = catalog.alter_table("db.t", lake.set_option("self-optimizing.max-file-count", "3"))
    table.compact(strategy="full")
    assert contents(table) == contents(table.base) == {2: "b"}


def test_changes_that_need_no_later_row_are_merged_while_a_batch_is_open(catalog):
    """The delete of key 2 is not newer than the late row, and a stored row hides older ones."""
    table = created(catalog)
    table.write(rows((1, "a", 9), (2, "b", 3)))
    table.write(rows((2, "b", 4)), kinds=["-D"])
    batch = table.begin()
    table.write(rows((1, "late", 6), (2, "late", 6)))
    table.compact(strategy="full")
    assert contents(table.base) == {1: "a"}
    assert contents(table) == {1: "a", 2: "late"}
    batch.abort()


def test_a_delete_needs_a_version_unless_it_is_by_a_condition(catalog):
    table = created(catalog)
    table.write(rows((1, "a", None), (2, "b", 2)))
    with pytest.raises(
        lake.InvalidRequestError, match=r"row 1 is a delete .*table.delete\(where\)"
    ):
        table.write(rows((3, "c", None), (2, None, None)), kinds=["+I", "-D"])
    assert contents(table) == {1: "a", 2: "b"}
    assert table.delete("id < 3").rows == 2
    assert contents(table) == {}


def test_an_update_keeps_its_row_and_no_row_between_its_versions(catalog):
    table = created(catalog)
    table.write(rows((1, "a", 2)))
    table.write(rows((1, "between", 3)))
    table.write(rows((1, "a", 2), (1, "new", 4)), kinds=["-U", "+U"])
    assert contents(table) == {1: "new"}
    table.write(rows((1, "new", 4), (1, "smaller", 1)), kinds=["-U", "+U"])
    assert contents(table) == {1: "new"}


def test_an_update_may_be_divided_between_two_batches(catalog):
    table = created(catalog)
    table.write(rows((1, "a", 4), (2, "b", 4)))
    changes = rows((1, "a", 4), (1, "smaller", 1), (2, "b", 4)).append_column(
        "kind", pa.array(["-U", "+U", "-U"])
    )
    table.write([changes.slice(0, 1), changes.slice(1)], kinds="kind")
    assert contents(table) == {1: "a"}


def test_a_batch_and_a_stream_are_ordered_by_version_first(catalog):
    table = created(catalog)
    table.write(rows((1, "a", 5), (2, "b", 5), (3, "c", 5)))
    with table.begin() as batch:
        table.write(rows((1, "stream", 6), (2, "stream", 6), (3, "stream", 5)))
        batch.write(rows((1, "batch", 7), (2, "batch", 5), (3, "batch", 5)))
    assert contents(table) == {1: "batch", 2: "stream", 3: "stream"}
    with table.begin() as batch:
        table.write(rows((1, "late", 2), (2, "newer", 9)))
        batch.overwrite(rows((1, "over", 3), (2, "over", 3)), "table")
    assert contents(table) == {1: "over", 2: "newer"}


def test_an_update_by_a_condition_may_not_make_a_version_smaller(catalog):
    table = created(catalog)
    table.write(rows((1, "a", 5)))
    for dry_run in (True, False):
        with pytest.raises(lake.InvalidRequestError, match=r"version 4 in a row that has 5"):
            table.update("id = 1", {"version": 4, "name": "x"}, dry_run=dry_run)
    assert table.update("id = 1", {"version": 6, "name": "x"}, dry_run=True).rows == 1
    table.update("id = 1", {"version": 6, "name": "x"})
    table.write(rows((1, "late", 5)))
    assert contents(table) == {1: "x"}


def test_changes_are_in_the_order_of_versions_and_a_late_batch_delivers_what_wins(catalog):
    table = created(catalog)
    table.write(rows((1, "a", 5), (1, "older", 4)))
    with table.begin() as batch:
        table.write(rows((1, "stream", 7), (2, "stream", 7)))
        batch.write(rows((1, "batch", 6), (2, "batch", 8)))
    found = table.changes(0, columns=["id", "name"]).to_arrow()
    assert {*found["rowkind"].to_pylist()} == {"+U"}
    assert [*zip(*found.select(["id", "name"]).to_pydict().values(), strict=True)] == [
        (1, "older"),
        (1, "a"),
        (1, "stream"),
        (2, "stream"),
        (2, "batch"),
    ]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int32(), [-3, 2]),
        (pa.date32(), [dt.date(1969, 1, 1), dt.date(2024, 1, 1)]),
        (pa.timestamp("us"), [dt.datetime(1969, 1, 1), dt.datetime(2024, 1, 1)]),
        (pa.decimal128(18, 2), [Decimal("-9999999999999999.99"), Decimal("0.01")]),
    ],
)
def test_versions_of_each_type_have_the_order_of_their_values(kind, values, catalog):
    columns = pa.schema([("id", pa.int64()), ("name", pa.string()), ("version", kind)])
    table = created(catalog, columns=columns)
    small, large = values
    for each in ((1, "large", large), (1, "small", small), (1, "null", None), (2, "null", None)):
        table.write(pa.Table.from_pylist([dict(zip(columns.names, each, strict=True))], columns))
    table.write(pa.Table.from_pylist([{"id": 2, "name": "small", "version": small}], columns))
    assert contents(table) == {1: "large", 2: "small"}


@pytest.mark.parametrize(
    ("field", "options", "reason"),
    [
        ("versoin", {}, r"names 'versoin', but .*did you mean 'version'"),
        ("id", {}, r"names 'id', a key column"),
        ("name", {}, r"of type string, but a version must be of"),
        ("version", {"write_upsert_enabled": "false"}, r"has one row for each key"),
        ("version", {"self-optimizing_enabled": "true"}, r"Amoro's optimizer does not know"),
        ("version", {"sequence_field": "version"}, r"property of Paimon tables"),
    ],
)
def test_a_version_field_that_cannot_order_rows_is_refused(field, options, reason, catalog):
    with pytest.raises(lake.InvalidRequestError, match=reason):
        created(catalog, field, **options)
    assert catalog.list_tables("db") == []


def test_amoros_optimizer_is_turned_off_and_a_changed_property_is_refused(catalog, tmp_path):
    table = created(catalog)
    assert table.properties["self-optimizing.enabled"] == "false"
    edit(tmp_path / "db/t", properties={"lake.version-field": "name"})
    with pytest.raises(lake.CorruptTableError, match="different version fields"):
        catalog.table("db.t").scan()
    edit(tmp_path / "db/t_change_", properties={"lake.version-field": "name"})
    with pytest.raises(lake.CorruptTableError, match="and a version must be of date, int"):
        catalog.table("db.t").scan()


def test_an_existing_table_with_another_version_field_is_not_opened_instead(catalog):
    given = {"format": "mixed", "primary_key": ["id"], "exist_ok": True}
    catalog.create_table("db.t", COLUMNS, **given)
    with pytest.raises(lake.AlreadyExistsError, match=r"\(not set\).* given one \(version\)"):
        catalog.create_table("db.t", COLUMNS, **given, options={"lake.version-field": "version"})


@pytest.mark.parametrize(
    "change",
    [
        lake.drop_column("version"),
        lake.rename_column("version", "changed"),
        lake.set_option("lake.version-field", "id"),
        lake.remove_option("lake.version-field"),
        lake.set_option("self-optimizing.enabled", "true"),
        lake.remove_option("self-optimizing.enabled"),
        lake.set_option("write.upsert.enabled", "false"),
    ],
)
def test_an_alter_keeps_the_version_field(change, catalog):
    before = created(catalog)
    with pytest.raises(lake.InvalidRequestError, match="version"):
        catalog.alter_table("db.t", change)
    after = catalog.table("db.t")
    assert after.properties == before.properties
    assert after.schema == before.schema


def test_a_version_field_may_get_wider(catalog):
    columns = pa.schema([("id", pa.int64()), ("name", pa.string()), ("version", pa.int32())])
    table = created(catalog, columns=columns)
    table.write(rows((1, "a", 5), (2, "a", 5)).cast(columns))
    with pytest.raises(lake.LakeError):
        catalog.alter_table("db.t", lake.update_column_type("version", "DECIMAL(20, 0)"))
    catalog.alter_table("db.t", lake.update_column_type("version", "BIGINT"))
    catalog.table("db.t").write(rows((1, "late", 4), (2, "new", 1 << 40)))
    assert contents(catalog.table("db.t")) == {1: "a", 2: "new"}


def test_a_pickled_scan_reads_its_splits(catalog):
    """As Spark's tasks do."""
    table = created(catalog)
    table.write(rows((1, "a", 5), (2, "b", 5)))
    table.compact(strategy="full")
    table.write(rows((1, "late", 3), (2, "new", 7)))
    scan = table.scan(["id", "name"])
    other, splits = pickle.loads(pickle.dumps((scan, scan.splits())))
    found = pa.Table.from_batches([batch for split in splits for batch in other.read(split)])
    assert sorted(found["name"].to_pylist()) == ["a", "new"]


def test_an_iceberg_table_has_no_version_field(catalog):
    with pytest.raises(lake.InvalidRequestError, match="pass format='mixed' and primary_key"):
        catalog.create_table("db.t", COLUMNS, options={"lake.version-field": "version"})


def test_a_clone_keeps_the_version_field(catalog):
    table = created(catalog)
    table.write(rows((1, "a", 5)))
    lake.clone_table(table, catalog, "db.copy")
    copy = catalog.table("db.copy")
    copy.write(rows((1, "late", 4), (2, "b", 1)))
    assert contents(copy) == {1: "a", 2: "b"}
