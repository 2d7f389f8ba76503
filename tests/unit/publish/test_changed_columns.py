"""A change of columns that readers cannot follow is refused, or stops the publication only."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.metadata.schema_file import create_schema
from lakeformat.publish import published_schemas
from lakeformat.publish.check.check import check_publication
from lakeformat.publish.check.readers import Reader
from lakeformat.publish.name_mapping import NAME_MAPPING
from lakeformat.publish.optional_fields import optional_fields
from lakeformat.publish.place import versions_of
from lakeformat.storage import MemoryStorage
from tests.paper import with_options
from tests.unit.publish.published import (
    ROOT,
    catalog_in,
    catalog_of,
    changed_elsewhere,
    content,
    iceberg,
    published_table,
    rows_of,
    seen,
    unobserved,
    uuids,
)

STORAGE = "metadata.iceberg.storage"
REWRITE = lake.set_option("iceberg.on-unpublishable", "rewrite")
BEYOND = {
    "TIME column": lake.add_column("later", "TIME(3)"),
    "VARIANT in an array": lake.add_column("later", "ARRAY<VARIANT>"),
    "nanoseconds": lake.add_column("later", "TIMESTAMP(9)"),
    "other type": lake.update_column_type("id", "STRING"),
    "other files": lake.set_option("file.format", "orc"),
}
"""Changes that no publication can follow."""


@pytest.fixture
def table(request) -> lake.Table:
    """A published table with one row."""
    table = published_table(MemoryStorage(request.node.name), [("id", "INT")])
    table.write(rows_of(id=pa.array([1], pa.int32())))
    return table


@pytest.mark.parametrize("change", BEYOND.values(), ids=BEYOND)
@pytest.mark.parametrize("options", [(), (REWRITE,)], ids=["fail", "rewrite"])
def test_a_change_that_no_publication_can_follow_is_refused_with_nothing_changed(
    table, change, options
):
    catalog = catalog_of(table)
    if options:
        catalog.alter_table("shop.orders", *options)
    before = catalog.table("shop.orders").schema
    with pytest.raises(lake.UnsupportedError):
        catalog.alter_table("shop.orders", lake.add_column("more", "INT"), change)
    assert catalog.table("shop.orders").schema == before
    table = catalog.alter_table("shop.orders", change, lake.set_option(STORAGE, "disabled"))
    assert table.scan().count() == 1


def test_a_refused_type_names_the_column_both_types_and_the_way_out(table):
    reason = r"'id' changes from int to string .*older files\. Add a column of the new"
    with pytest.raises(lake.UnsupportedError, match=reason):
        catalog_of(table).alter_table("shop.orders", lake.update_column_type("id", "STRING"))


NARROWED = [
    ("INT", "SMALLINT"),
    ("SMALLINT", "TINYINT"),
    ("STRING", "VARCHAR(2)"),
    ("VARCHAR(2)", "CHAR(2)"),
    ("CHAR(2)", "CHAR(3)"),
    ("CHAR(3)", "VARCHAR(2)"),
    ("BYTES", "VARBINARY(2)"),
    ("BINARY(2)", "BINARY(3)"),
    ("TIMESTAMP(6)", "TIMESTAMP(3)"),
    ("TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(0)"),
]
"""Types that are the same type in Iceberg; Paimon cuts or pads values in older files."""
WIDENED = [
    ("SMALLINT", "INT"),
    ("VARCHAR(2)", "STRING"),
    ("CHAR(2)", "VARCHAR(2)"),
    ("BINARY(2)", "BYTES"),
    ("TIMESTAMP(0)", "TIMESTAMP(6)"),
]


@pytest.mark.parametrize(("before", "after"), NARROWED)
def test_a_type_whose_older_values_paimon_cuts_or_pads_is_refused(request, before, after):
    columns = [("id", "INT"), ("v", before)]
    catalog = catalog_of(published_table(MemoryStorage(request.node.name), columns))
    reason = r"'v' changes from [A-Z0-9() ]+ to [A-Z0-9() ]+ in schema 1.*do not convert"
    with pytest.raises(lake.UnsupportedError, match=reason):
        catalog.alter_table("shop.orders", lake.update_column_type("v", after))
    assert catalog.table("shop.orders").schema.id == 0
    off = lake.set_option(STORAGE, "disabled")
    assert catalog.alter_table("shop.orders", lake.update_column_type("v", after), off)


@pytest.mark.parametrize(("before", "after"), WIDENED)
def test_a_wider_type_that_is_the_same_type_in_iceberg_is_allowed(request, before, after):
    columns = [("id", "INT"), ("v", before)]
    catalog = catalog_of(published_table(MemoryStorage(request.node.name), columns))
    table = catalog.alter_table("shop.orders", lake.update_column_type("v", after))
    assert table.schema.id == 1


@pytest.mark.parametrize(
    ("kind", "path", "named"),
    [
        ("ARRAY<INT>", "v.element", r"v\.element"),
        ("MAP<STRING, INT>", "v.value", r"v\.value"),
        ("ROW<x ROW<y INT>>", "v.x.y", r"v\.x\.y"),
    ],
)
def test_a_narrower_type_in_a_nested_column_is_refused(request, kind, path, named):
    columns = [("id", "INT"), ("v", kind)]
    catalog = catalog_of(published_table(MemoryStorage(request.node.name), columns))
    change = lake.update_column_type(tuple(path.split(".")), "SMALLINT")
    with pytest.raises(lake.UnsupportedError, match=rf"column '{named}' changes from INT to SMA"):
        catalog.alter_table("shop.orders", change)


def test_a_narrower_type_of_another_engine_is_published_with_a_warning(table, caplog):
    table.write(rows_of(id=pa.array([70000], pa.int32())))
    table = changed_elsewhere(table, lake.update_column_type("id", "SMALLINT"))
    table.write(rows_of(id=pa.array([2], pa.int16())))
    assert "column 'id' changes from INT to SMALLINT in schema 1" in caplog.text
    assert seen(table) == [{"id": 1}, {"id": 2}, {"id": 70000}]
    scan = table.scan()
    table.write(scan.to_arrow(), overwrite="table", read_snapshot=scan.snapshot_id)
    assert seen(table) == content(table.scan().to_arrow())
    assert caplog.text.count("do not convert") == 1


def test_publication_is_switched_on_after_a_narrower_type_with_a_warning(table, caplog):
    catalog, warned = catalog_of(table), "column 'id' changes from INT to SMALLINT in schema 1"
    off, on = lake.set_option(STORAGE, "disabled"), lake.set_option(STORAGE, "table-location")
    catalog.alter_table("shop.orders", lake.update_column_type("id", "SMALLINT"), off)
    assert caplog.text == ""
    table = catalog.alter_table("shop.orders", on)
    assert caplog.text.count(warned) == 1
    lake.publish_table(table)
    table.write(rows_of(id=pa.array([2], pa.int16())))
    assert caplog.text.count(warned) == 2
    other = unobserved(table)
    for number in 3, 4:
        other.write(rows_of(id=pa.array([number], pa.int16())))
    table._handle.storage.delete(f"{ROOT}/snapshot/snapshot-3")
    assert lake.publish_table(table).rebuilt
    assert caplog.text.count(warned) == 2


def test_publication_of_a_table_without_rows_is_switched_on_without_a_warning(request, caplog):
    columns, off = [("id", "INT")], {STORAGE: "disabled"}
    catalog = catalog_of(published_table(MemoryStorage(request.node.name), columns, options=off))
    narrower = lake.update_column_type("id", "SMALLINT")
    catalog.alter_table("shop.orders", narrower, lake.set_option(STORAGE, "table-location"))
    assert caplog.text == ""


def test_a_branch_refuses_the_same_changes(table):
    table.branches.create("dev", snapshot=1)
    with pytest.raises(lake.UnsupportedError, match="'later' has the type TIME"):
        catalog_of(table).alter_table("shop.orders$branch_dev", BEYOND["TIME column"])


def test_publication_is_not_switched_on_for_columns_that_readers_cannot_read(request):
    off = {STORAGE: "disabled"}
    columns = [("id", "INT"), ("t", "TIME(3)")]
    table = published_table(MemoryStorage(request.node.name), columns, options=off)
    on = lake.set_option(STORAGE, "table-location")
    with pytest.raises(lake.UnsupportedError, match="'t' has the type TIME"):
        catalog_of(table).alter_table("shop.orders", on)
    table = catalog_of(table).alter_table("shop.orders", on, lake.drop_column("t"))
    table.write(rows_of(id=pa.array([1], pa.int32())))
    assert seen(table) == [{"id": 1}]


def test_a_column_with_the_full_name_of_a_nested_field_is_refused(request):
    storage, columns = MemoryStorage(request.node.name), [("id", "INT"), ("a", "ROW<b INT>")]
    named = r"columns 'a' and 'a\.b' both have a field with the full name 'a\.b' in schema [01]"
    with pytest.raises(lake.UnsupportedError, match=named):
        published_table(storage, [*columns, ("a.b", "INT")])
    catalog = catalog_of(published_table(storage, [*columns, ("x", "INT"), ("c.b", "INT")]))
    with pytest.raises(lake.UnsupportedError, match=named):
        catalog.alter_table("shop.orders", lake.rename_column("x", "a.b"))
    assert catalog.table("shop.orders").schema.id == 0


def test_two_fields_of_one_full_name_inside_a_column_are_refused(request):
    columns = [("id", "INT"), ("z", "ROW<`b.c` INT, b ROW<c INT>>")]
    named = r"column 'z' has two fields with the full name 'z\.b\.c' in schema 0.*Rename one"
    with pytest.raises(lake.UnsupportedError, match=named):
        published_table(MemoryStorage(request.node.name), columns)


RENAMES = {
    "rename the column": lake.rename_column(("a.b",), "q"),
    "rename the nested field": lake.rename_column(("a", "b"), "c"),
    "drop the column": lake.drop_column(("a.b",)),
    "drop the nested column": lake.drop_column("a"),
}


@pytest.mark.parametrize("change", RENAMES.values(), ids=RENAMES)
def test_a_table_is_published_after_a_change_of_fields_with_one_full_name(request, change):
    columns, off = [("id", "INT"), ("a.b", "INT"), ("a", "ROW<b INT>")], {STORAGE: "disabled"}
    table = published_table(MemoryStorage(request.node.name), columns, options=off)
    one = pa.array([1], pa.int32())
    table.write(pa.table({"id": one, "a.b": one, "a": pa.array([{"b": 1}])}))
    object.__setattr__(table._handle, "environment", uuids(7))
    catalog, on = catalog_of(table), lake.set_option(STORAGE, "table-location")
    named = r"'a\.b' and 'a' both have a field.*If the table has rows, rewrite"
    with pytest.raises(lake.UnsupportedError, match=named):
        catalog.alter_table("shop.orders", on)
    catalog.alter_table("shop.orders", change)
    table = catalog.alter_table("shop.orders", on)
    lake.publish_table(table)
    own = Reader("own", (), lambda _: iceberg(table).scan().to_batches(), needs_local_files=False)
    assert check_publication(table, [own]).failed == ()
    table.write(rows_of(id=one))
    assert seen(table) == content(table.scan().to_arrow())
    assert seen(table, 1) == [{"id": 1, "a.b": 1}]
    scan = table.scan()
    table.write(scan.to_arrow(), overwrite="table", read_snapshot=scan.snapshot_id)
    report = lake.check_publication(table)  # PyIceberg refuses files with both names
    assert (report.readers[0].outcome, report.failed) == ("equal", ())


def test_a_key_keeps_its_name_beside_a_nested_field_that_was_renamed(request):
    columns = [("a.b", "INT"), ("a", "ROW<b INT>"), ("a.b.c", "INT")]
    keys = {"primary_key": ["a.b"], "options": {"bucket": "1", STORAGE: "disabled"}}
    table = catalog_in(MemoryStorage(request.node.name)).create_table(
        "shop.orders", columns, **keys
    )
    table.write(pa.table({"a.b": pa.array([1], pa.int32())}))
    on = lake.set_option(STORAGE, "table-location")
    table = catalog_of(table).alter_table("shop.orders", lake.rename_column(("a", "b"), "c"), on)
    table.compact(strategy="full")
    first, newest = iceberg(table)._loaded().metadata.schemas
    assert [field.name for field in first.fields] == ["a.b", "a.b.c"]
    assert [field.required for field in newest.fields] == [True, False, False]
    assert seen(table) == content(table.scan().to_arrow())


def test_a_column_that_no_longer_allows_nulls_remains_optional_for_readers(request):
    columns = [("id", "INT"), ("v", "INT"), ("r", "ROW<x INT>"), ("list", "ARRAY<INT>")]
    given = {"alter-column-null-to-not-null.disabled": "false"}
    table = published_table(MemoryStorage(request.node.name), columns, options=given)
    ints = pa.array([1], pa.int32())
    table.write(rows_of(id=ints))
    rows = rows_of(id=ints, v=ints, r=[{"x": 1}], list=[[1]])
    for path in ("v",), ("r",), ("r", "x"), ("list", "element"):
        change = lake.update_column_nullability(path, nullable=False)
        table = catalog_of(table).alter_table("shop.orders", change)
    table.write(rows, overwrite="table")
    assert not table.schema.arrow_schema().field("v").nullable
    [*_, newest] = iceberg(table)._loaded().metadata.schemas
    assert optional_fields(newest) == {0, 1, 2, 3, 4, newest.fields[3].type.element_id}
    path = versions_of(table._handle).shown().path
    table = catalog_of(table).alter_table("shop.orders", lake.add_column("more", "INT"))
    table.write(rows)
    metadata = iceberg(table)._loaded().metadata
    assert metadata.metadata_log[-1].metadata_file.endswith(path)  # not published from scratch
    assert {1, 2} <= optional_fields(metadata.schemas[-1])
    assert seen(table) == content(table.scan().to_arrow())


@pytest.mark.parametrize("adds", [False, True], ids=["write", "new column"])
def test_the_next_commit_corrects_required_columns_of_published_schemas(table, monkeypatch, adds):
    on = lake.set_option("alter-column-null-to-not-null.disabled", "false")
    not_null = lake.update_column_nullability("id", nullable=False)
    with monkeypatch.context() as earlier:
        earlier.setattr(published_schemas, "optional_as_before", lambda schemas: schemas)
        catalog_of(table).alter_table("shop.orders", on)
        table = catalog_of(table).alter_table("shop.orders", not_null)
        one = rows_of(id=pa.array([1], pa.int32()))
        table.write(one)
    [*_, newest] = iceberg(table)._loaded().metadata.schemas
    assert newest.fields[0].required
    if adds:
        table = catalog_of(table).alter_table("shop.orders", lake.add_column("more", "INT"))
    table.write(one)
    table.write(one)
    metadata = iceberg(table)._loaded().metadata
    assert not any(schema.fields[0].required for schema in metadata.schemas)
    assert len(metadata.metadata_log) == 3  # not published from scratch
    assert seen(table, 2) == [{"id": 1}, {"id": 1}]


NESTED = {
    "ARRAY<INT>": [1],
    "ARRAY<ARRAY<INT>>": [[1], []],
    "ROW<element INT, item INT>": {"element": 1, "item": 2},
    "MAP<STRING, INT>": [("k", 1)],
}


def values(table: lake.Table, **columns: object) -> pa.Table:
    return pa.Table.from_pylist([columns], schema=table.schema.arrow_schema())


@pytest.mark.sampled(8)
@pytest.mark.parametrize("later", NESTED)
@pytest.mark.parametrize("earlier", NESTED)
@pytest.mark.parametrize("inside", [False, True], ids=["column", "field"])
def test_a_nested_column_with_the_name_of_an_earlier_one_is_read(request, earlier, later, inside):
    columns = [("id", "INT"), ("r", f"ROW<a {earlier}, y INT>") if inside else ("a", earlier)]
    place = ("r", "a") if inside else ("a",)

    def write(table: lake.Table, value: object) -> None:
        table.write(values(table, id=1, **({"r": {"a": value}} if inside else {"a": value})))

    table = published_table(MemoryStorage(request.node.name), columns)
    write(table, NESTED[earlier])
    for change in lake.drop_column(place), lake.add_column(place, later):
        table = catalog_of(table).alter_table("shop.orders", change)
    write(table, NESTED[later])
    assert seen(table) == content(table.scan().to_arrow())
    assert seen(table, 1) == content(table.scan(snapshot=1).to_arrow())


@pytest.mark.parametrize("renamed", ["a", "b"])
def test_an_array_with_the_name_of_a_renamed_or_dropped_array_is_read(request, renamed):
    columns = [("id", "INT"), ("a", "ARRAY<INT>"), ("b", "ARRAY<INT>")]
    table = published_table(MemoryStorage(request.node.name), columns)
    table.write(values(table, id=1, a=[1], b=[2]))
    changes = lake.rename_column("a", "z"), lake.add_column("a", "ARRAY<INT>")
    if renamed == "b":
        changes = lake.drop_column("a"), lake.rename_column("b", "a")
    for change in changes:
        table = catalog_of(table).alter_table("shop.orders", change)
    table.write(values(table, id=2, a=[3]))
    assert seen(table) == content(table.scan().to_arrow())


def test_the_next_commit_corrects_a_name_mapping_of_earlier_versions(request, monkeypatch):
    table = published_table(MemoryStorage(request.node.name), [("id", "INT"), ("a", "ARRAY<INT>")])
    wrong = '[{"field-id":1,"names":["a"],"fields":[{"field-id":2,"names":["item","item"]}]}]'
    with monkeypatch.context() as earlier:
        earlier.setattr(published_schemas, "name_mapping", lambda *_: wrong)
        table.write(values(table, id=1, a=[1]))
    assert iceberg(table).properties[NAME_MAPPING] == wrong
    table.write(values(table, id=2, a=[2]))
    assert iceberg(table).properties[NAME_MAPPING] != wrong
    assert len(iceberg(table)._loaded().metadata.metadata_log) == 1  # not published from scratch
    assert seen(table) == content(table.scan().to_arrow())


@pytest.mark.parametrize("path", [("c",), ("r", "c")], ids=["column", "nested"])
@pytest.mark.parametrize("kind", ["INT", "ROW<x INT NOT NULL>"])
def test_a_column_that_is_added_without_nulls_is_optional_for_readers(request, path, kind):
    given = {"alter-column-null-to-not-null.disabled": "false"}
    columns = [("id", "INT"), ("r", "ROW<x INT>")]
    table = published_table(MemoryStorage(request.node.name), columns, options=given)
    table.write(rows_of(id=pa.array([1], pa.int32()), r=[{"x": 1}]))
    added = lake.add_column(path, kind), lake.update_column_nullability(path, nullable=False)
    table = catalog_of(table).alter_table("shop.orders", *added)
    new = 5 if kind == "INT" else {"x": 5}
    row = (
        {"id": 2, "r": {"x": 2}, "c": new} if len(path) == 1 else {"id": 2, "r": {"x": 2, "c": new}}
    )
    table.write(pa.Table.from_pylist([row], table.schema.arrow_schema()))
    assert seen(table) == content(table.scan().to_arrow())


CHANGED_BEFORE = [
    ("INT", "STRING", r"'v' changes from int to string in schema 1.*copy the rows to a new"),
    ("TIMESTAMP(9)", "TIMESTAMP(6)", r"'v' has the type TIMESTAMP\(9\) in schema 0.*copy the rows"),
    ("TIME(3)", "STRING", r"'v' has the type TIME\(3\) in schema 0.*copy the rows"),
]
"""Two types of a column before its table is published, and the reason why it cannot be."""


@pytest.mark.parametrize(
    ("before", "after", "named"), CHANGED_BEFORE, ids=[each[0] for each in CHANGED_BEFORE]
)
def test_publication_is_not_switched_on_after_a_change_that_readers_cannot_follow(
    request, before, after, named
):
    columns, off = [("id", "INT"), ("v", before)], {STORAGE: "disabled"}
    table = published_table(MemoryStorage(request.node.name), columns, options=off)
    catalog = catalog_of(table)
    catalog.alter_table("shop.orders", lake.update_column_type("v", after))
    on = lake.set_option(STORAGE, "table-location")
    with pytest.raises(lake.UnsupportedError, match=named):
        catalog.alter_table("shop.orders", on)
    assert catalog.table("shop.orders").schema.id == 1


def test_a_nested_column_that_stops_the_publication_is_named_after_it_was_dropped(request):
    columns, off = [("id", "INT"), ("r", "ROW<x INT, t ARRAY<TIME(3)>>")], {STORAGE: "disabled"}
    catalog = catalog_of(published_table(MemoryStorage(request.node.name), columns, options=off))
    catalog.alter_table("shop.orders", lake.drop_column(("r", "t")))
    named = r"column 'r\.t\.element' has the type TIME\(3\) in schema 0.*copy the rows"
    with pytest.raises(lake.UnsupportedError, match=named):
        catalog.alter_table("shop.orders", lake.set_option(STORAGE, "table-location"))


@pytest.mark.parametrize(
    ("before", "after", "named"), CHANGED_BEFORE, ids=[each[0] for each in CHANGED_BEFORE]
)
def test_health_names_the_change_that_stops_the_first_publication(request, before, after, named):
    columns, off = [("id", "INT"), ("v", before)], {STORAGE: "disabled"}
    table = published_table(MemoryStorage(request.node.name), columns, options=off)
    on = lake.set_option(STORAGE, "table-location")
    table = changed_elsewhere(table, lake.update_column_type("v", after))
    table = changed_elsewhere(table, on)
    table.write(rows_of(id=pa.array([1], pa.int32())))
    lag = lake.publication_lag(table)
    assert "no Iceberg metadata yet" in lag.finding
    assert re.search(named, lag.finding)
    assert lag.advice.startswith("change the schema or the options")


@pytest.mark.parametrize("change", [*BEYOND][:4])
def test_a_change_of_another_engine_stops_the_publication_only_and_the_reason_is_named(
    table, caplog, change
):
    table = changed_elsewhere(table, BEYOND[change])
    kind = table.schema.arrow_schema().field("id").type
    assert table.write(pa.table({"id": pa.array([2], pa.int32()).cast(kind)})).snapshot_id == 2
    named = "'id' changes from int" if change == "other type" else "'later[.a-z]*' has the type"
    assert lake.publication_lag(table).snapshots == 1
    with pytest.raises(lake.UnsupportedError, match=named):
        lake.publish_table(table)
    assert "its Iceberg metadata is not published: column" in caplog.text
    assert table.scan().count() == 2
    assert seen(table) == [{"id": 1}]
    with pytest.raises(lake.UnsupportedError, match="Nothing was deleted"):
        table.expire_snapshots(retain_max=1, retain_min=1)


def test_health_names_the_column_that_stops_the_publication(table):
    table = changed_elsewhere(table, BEYOND["TIME column"])
    table.write(rows_of(id=pa.array([2], pa.int32())))
    [reason] = table.health().reasons
    assert "1 snapshot behind" in str(reason)
    assert "'later' has the type TIME" in str(reason)
    assert reason.advice.startswith("change the schema or the options")


def test_a_column_of_another_engine_can_be_dropped_and_the_publication_goes_on(table):
    table = changed_elsewhere(table, BEYOND["TIME column"])
    table = catalog_of(table).alter_table(
        "shop.orders", lake.set_option("target-file-size", "1 gb")
    )
    at = pa.array([dt.time(1, 2, 3)], pa.time32("ms"))
    table.write(pa.table({"id": pa.array([2], pa.int32()), "later": at}))
    table = catalog_of(table).alter_table("shop.orders", lake.drop_column("later"))
    table.write(rows_of(id=pa.array([3], pa.int32())))
    assert seen(table) == content(table.scan().to_arrow())


@pytest.mark.parametrize(
    ("key", "right"), [("metadata.iceberg.format-version", "2"), ("file.format", "parquet")]
)
def test_a_value_of_another_engine_that_cannot_be_read_can_be_corrected(table, key, right):
    handle = table._handle
    newest = replace(handle.schema, id=1, options={**handle.schema.options, key: "x"})
    assert create_schema(handle.storage, handle.layout, newest)
    assert catalog_of(table).alter_table("shop.orders", lake.set_option(key, right))
    table = catalog_of(table).alter_table("shop.orders", lake.remove_option(key))
    table.write(rows_of(id=pa.array([2], pa.int32())))
    assert seen(table) == content(table.scan().to_arrow())


def test_a_table_of_another_engine_without_snapshots_refuses_the_first_commit(request):
    table = published_table(MemoryStorage(request.node.name), [("id", "INT")])
    table = changed_elsewhere(table, BEYOND["TIME column"])
    with pytest.raises(lake.UnsupportedError, match=r"'later' has the type TIME.*Nothing was chan"):
        table.write(rows_of(id=pa.array([1], pa.int32())))
    assert table.snapshots() == []


def test_a_table_that_spark_made_a_chain_table_is_not_published(table):
    """Its rows are merged from two branches, of which readers of Iceberg would see one."""
    options = {**table._handle.schema.options, "chain-table.enabled": "true"}
    with pytest.raises(lake.UnsupportedError, match=r"'chain-table\.enabled' is 'true'"):
        lake.publish_table(lake.Table(with_options(table._handle, options)))
