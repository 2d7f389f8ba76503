"""The columns, options and files that can be published, and how they appear in the metadata."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.iceberg.types import StructType
from lakeformat.paimon.metadata.manifest_columns import columns_of
from lakeformat.paimon.read.plan import plan_files
from lakeformat.publish.entries import FileEntries
from lakeformat.publish.publish import publish_table
from lakeformat.storage import MemoryStorage
from tests.evolved_rows import DATA_EVOLUTION, EvolvedRows
from tests.unit.publish.published import (
    KEYED,
    PUBLISHED,
    catalog_in,
    catalog_of,
    iceberg,
    published_table,
    rows_of,
    seen,
)


@pytest.fixture
def storage(request) -> MemoryStorage:
    return MemoryStorage(request.node.name)


TYPES = [
    ("flag", "BOOLEAN", [True, None]),
    ("tiny", "TINYINT", [-3, None]),
    ("small", "SMALLINT", [300, None]),
    ("whole", "INT", [-70_000, None]),
    ("big", "BIGINT", [1 << 40, None]),
    ("single", "FLOAT", [-0.0, None]),
    ("double", "DOUBLE", [float("inf"), None]),
    ("short_amount", "DECIMAL(9, 2)", [Decimal("1.25"), None]),
    ("amount", "DECIMAL(30, 3)", [Decimal("-12345678901234567890.125"), None]),
    ("day", "DATE", [dt.date(1969, 12, 31), None]),
    ("millis", "TIMESTAMP(3)", [dt.datetime(2024, 1, 1, 1, 2, 3, 4000), None]),
    ("micros", "TIMESTAMP(6)", [dt.datetime(1969, 1, 1, 1, 2, 3, 4005), None]),
    ("text", "STRING", ["a" * 40, None]),
    ("code", "CHAR(3)", ["abc", None]),
    ("bytes", "BYTES", [b"\0\xff", None]),
    ("numbers", "ARRAY<INT>", [[1, None], None]),
    ("by_name", "MAP<STRING, ARRAY<BIGINT>>", [[("k", [1])], None]),
    ("place", "ROW<x INT, y ROW<z STRING>>", [{"x": 1, "y": {"z": "s"}}, None]),
]


def test_every_publishable_type_is_read_back(storage):
    table = published_table(storage, [(name, kind) for name, kind, _ in TYPES])
    schema = table.schema.arrow_schema()
    columns = [pa.array(values, schema.field(name).type) for name, _, values in TYPES]
    table.write(pa.table(columns, schema=schema))
    expected = [{name: values[row] for name, _, values in TYPES} for row in (0, 1)]
    assert seen(table) == sorted(expected, key=repr)
    [entry] = iceberg(table).system_table("files").scan().to_arrow().to_pylist()
    assert dict(entry["null_value_counts"]) == dict.fromkeys(range(15), 1)
    assert dict(entry["value_counts"]) == dict.fromkeys(range(15), 2)
    lower, upper = dict(entry["lower_bounds"]), dict(entry["upper_bounds"])
    assert (lower[1], lower[9]) == (b"\xfd\xff\xff\xff", b"\xff\xff\xff\xff")
    assert lower[10] == upper[10]
    assert (lower[12], upper[12]) == (b"a" * 16, b"a" * 15 + b"b")


@pytest.mark.parametrize(
    "kind", ["TIME(3)", "TIMESTAMP(9)", "VARIANT", "ARRAY<TIME(0)>", "MAP<STRING, TIMESTAMP(7)>"]
)
def test_a_column_that_readers_cannot_read_is_refused_before_the_first_commit(storage, kind):
    with pytest.raises(lake.UnsupportedError, match=r"column 'odd[.a-z]*' has the type"):
        published_table(storage, [("id", "INT"), ("odd", kind)])
    assert catalog_in(storage).list_tables("shop") == []


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"file.format": "orc"}, "only Parquet files are published: set 'file.format'"),
        ({"file.format.per.level": "0:orc"}, "published: remove 'file.format.per.level' and set"),
    ],
)
def test_an_option_that_cannot_be_published_is_refused(storage, options, named):
    with pytest.raises(lake.UnsupportedError, match=named):
        published_table(storage, [("id", "INT")], options=options, primary_key=["id"])


def test_a_table_of_one_orc_file_is_published_by_the_advice_of_the_refusal(storage):
    catalog = catalog_in(storage)
    table = catalog.create_table("shop.orders", [("id", "INT")], options={"file.format": "orc"})
    table.write(rows_of(id=pa.array([1], pa.int32())))
    options = [lake.set_option(key, value) for key, value in PUBLISHED.items()]
    with pytest.raises(lake.UnsupportedError, match="overwrite it with them"):
        catalog.alter_table("shop.orders", *options)
    table = catalog.alter_table("shop.orders", lake.set_option("file.format", "parquet"), *options)
    table.compact(strategy="full", executor="serial")  # leaves the file, because it is the only one
    with pytest.raises(lake.UnsupportedError, match=r"\.orc .*overwrite it with them"):
        publish_table(table)
    scan = table.scan()
    table.write(scan.to_arrow(), overwrite="table", read_snapshot=scan.snapshot_id)
    assert seen(table) == [{"id": 1}]


@pytest.mark.parametrize("place", ["glue-catalog"])
def test_a_place_that_this_version_does_not_publish_to_is_refused(storage, place):
    options = {"metadata.iceberg.storage": place}
    with pytest.raises(lake.InvalidRequestError, match=r"metadata\.iceberg\.storage"):
        published_table(storage, [("id", "INT")], options=options)


def test_a_mistyped_place_gets_the_nearest_one(storage):
    options = {"metadata.iceberg.storage": "table-locaton"}
    with pytest.raises(lake.InvalidRequestError, match="did you mean 'table-location'"):
        published_table(storage, [("id", "INT")], options=options)


def test_the_primary_key_identifies_rows_and_the_ids_of_key_columns_are_known(storage):
    table = published_table(storage, [("id", "INT"), ("v", "ARRAY<INT>")], **KEYED)
    table.write(rows_of(id=pa.array([1], pa.int32()), v=[[1]]))
    metadata = iceberg(table)._loaded().metadata
    assert metadata.schema.identifier_field_ids == (0,)
    assert metadata.schema.fields[1].type.element_id == 536_870_911 + 1024 + 1
    assert metadata.last_column_id == 1_073_741_823


def test_names_of_files_without_ids_are_mapped_to_a_dropped_column_if_used_twice(storage):
    table = published_table(storage, [("id", "INT"), ("a", "ROW<x INT>"), ("b", "ARRAY<INT>")])
    table = catalog_in(storage).alter_table(
        "shop.orders", lake.rename_column("id", "key"), lake.drop_column("b")
    )
    table = catalog_in(storage).alter_table("shop.orders", lake.add_column("b", "INT"))
    table.write(pa.table({"key": pa.array([1], pa.int32())}))
    metadata = iceberg(table)._loaded().metadata
    mapping = json.loads(metadata.properties["schema.name-mapping.default"])
    assert mapping[0] == {"field-id": 0, "names": ["key", "id"]}
    assert mapping[1]["fields"] == [{"field-id": 3, "names": ["x"]}]
    assert [each["names"] for each in mapping[2:]] == [["b"], []]  # that of the dropped column
    assert mapping[2]["fields"][0]["names"] == ["element", "item"]


def test_exchanged_names_are_mapped_to_no_column(storage):
    table = published_table(storage, [("a", "INT"), ("b", "INT")])
    for old, new in ("a", "c"), ("b", "a"):
        table = catalog_of(table).alter_table("shop.orders", lake.rename_column(old, new))
    table.write(pa.table({"c": pa.array([1], pa.int32()), "a": pa.array([2], pa.int32())}))
    properties = iceberg(table)._loaded().metadata.properties
    mapping = json.loads(properties["schema.name-mapping.default"])
    assert [(each["field-id"], each["names"]) for each in mapping] == [
        (0, ["c"]),
        (1, ["b"]),
        (1_000_000_000, ["a"]),
    ]


def test_bounds_skip_files(storage):
    table = published_table(storage, [("id", "BIGINT"), ("note", "STRING")])
    for number in range(4):
        table.write(rows_of(id=[number * 10, number * 10 + 5], note=["n", None]))
    scan = iceberg(table).scan(where="id > 24")
    assert sorted(row["id"] for row in scan.to_arrow().to_pylist()) == [25, 30, 35]
    assert len(scan.splits()) == 2


def test_a_file_that_cannot_be_published_is_named_with_its_table(storage):
    columns, options = [("id", "INT")], {"file.format": "orc"}
    table = catalog_in(storage).create_table("shop.orders", columns, options=options)
    table.write(rows_of(id=pa.array([1], pa.int32())))
    as_parquet = lake.set_option("file.format", "parquet")
    publish = [lake.set_option(key, value) for key, value in PUBLISHED.items()]
    table = catalog_of(table).alter_table("shop.orders", as_parquet, *publish)
    named = r"the data file data-\S+\.orc of memory:\S+/shop\.db/orders is not a Parquet file"
    with pytest.raises(lake.UnsupportedError, match=named):
        lake.publish_table(table)


def test_a_file_with_some_of_the_columns_is_named_with_its_table(storage):
    catalog = catalog_in(storage)
    catalog.create_database("shop", exist_ok=True)
    columns = [("id", "INT"), ("name", "STRING")]
    people = EvolvedRows(catalog.create_table("shop.people", columns, options=DATA_EVOLUTION))
    people.append([{"id": 1, "name": "a"}])
    update = people.update(0, [{"name": "b"}])
    handle = people.table._handle
    entries = FileEntries(handle, handle.uri, StructType(()), lambda _: pytest.fail("not needed"))
    with pytest.raises(lake.UnsupportedError) as refused:
        entries.added(columns_of(plan_files(handle, people.table.latest_snapshot())))
    assert f"data file {update.file_name} of {handle.uri} has only some" in str(refused.value)
