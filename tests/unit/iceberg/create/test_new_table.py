"""A new Iceberg table: ids, partitions and sort keys as Java would make them."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.environment import Environment
from lakeformat.errors import AlreadyExistsError, InvalidRequestError, UnsupportedError
from lakeformat.iceberg.create.arrow_schema import new_schema
from lakeformat.iceberg.create.new_table import create_at_path, location_at, new_table_metadata
from lakeformat.iceberg.metadata.metadata_json import metadata_to_json
from lakeformat.iceberg.schema import schema_to_json
from lakeformat.iceberg.sort_order import SortField, SortOrder
from lakeformat.storage import LocalStorage, MemoryStorage
from tests.crash.simulated import NOW_MILLIS, simulated

COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("ts", pa.timestamp("us", tz="Asia/Tokyo")),
        ("name", pa.string()),
        ("address", pa.struct([("city", pa.string())])),
    ]
)


def made(columns: pa.Schema = COLUMNS, **options):
    return new_table_metadata("file:///t", columns, environment=simulated(), **options)


def test_ids_of_one_level_come_before_those_inside():
    nested = pa.schema(
        [
            ("a", pa.struct([("b", pa.int32()), ("c", pa.list_(pa.struct([("d", pa.int8())])))])),
            ("m", pa.map_(pa.string(), pa.list_(pa.float64()))),
            ("z", pa.bool_()),
        ]
    )
    metadata = made(nested)
    [a, m, _] = schema_to_json(metadata.schema)["fields"]
    assert [each["id"] for each in schema_to_json(metadata.schema)["fields"]] == [1, 2, 3]
    [b, c] = a["type"]["fields"]
    assert (b["id"], c["id"], c["type"]["element-id"]) == (4, 5, 6)
    assert c["type"]["element"]["fields"][0] == {
        "id": 7,
        "name": "d",
        "required": False,
        "type": "int",
    }
    assert (m["type"]["key-id"], m["type"]["value-id"]) == (8, 9)
    assert m["type"]["value"]["element-id"] == 10
    assert metadata.last_column_id == 10


@pytest.mark.parametrize(
    ("arrow", "written"),
    [
        (pa.uint8(), "int"),
        (pa.uint32(), "long"),
        (pa.float16(), "float"),
        (pa.date64(), "date"),
        (pa.time32("ms"), "time"),
        (pa.timestamp("ms"), "timestamp"),
        (pa.timestamp("s", tz="UTC"), "timestamptz"),
        (pa.decimal128(10, 2), "decimal(10, 2)"),
        (pa.decimal256(38, 0), "decimal(38, 0)"),
        (pa.binary(16), "fixed[16]"),
        (pa.uuid(), "uuid"),
        (pa.large_string(), "string"),
        (pa.dictionary(pa.int32(), pa.string()), "string"),
    ],
    ids=str,
)
def test_a_type_holds_every_value_of_its_arrow_type(arrow, written):
    [field] = schema_to_json(new_schema(pa.schema([("c", arrow)])))["fields"]
    assert field["type"] == written


@pytest.mark.parametrize("arrow", [pa.uint64(), pa.time64("ns"), pa.decimal256(50, 2)], ids=str)
def test_a_column_without_an_iceberg_type_is_named(arrow):
    with pytest.raises(UnsupportedError, match=r"column 'c': Iceberg has no type for the values"):
        new_schema(pa.schema([("c", arrow)]))


@pytest.mark.parametrize(
    "columns",
    [
        [("c", pa.int64()), ("c", pa.int64())],
        [("a", pa.struct([("b", pa.int64())])), ("a.b", pa.int64())],
    ],
)
def test_a_name_is_given_once_also_inside_of_columns(columns):
    """Iceberg names fields inside of columns with dots, so both would have one name."""
    with pytest.raises(InvalidRequestError, match=r"column '(c|a\.b)' is given more than once"):
        new_schema(pa.schema(columns))


@pytest.mark.parametrize("name", ["_pos", "_row_id", "_last_updated_sequence_number"])
def test_a_column_has_no_name_of_a_metadata_column(name):
    with pytest.raises(InvalidRequestError, match=rf"the name '{name}', .* choose another name"):
        new_schema(pa.schema([("id", pa.int64()), (name, pa.int64())]))
    inside = pa.struct([(name, pa.int64())])
    assert new_schema(pa.schema([("s", inside)])).column_names == ["s"]


def test_a_table_without_columns_is_refused():
    with pytest.raises(InvalidRequestError, match="needs at least one column"):
        new_table_metadata("file:///t", pa.schema([]))


def test_nanoseconds_need_version_3():
    columns = pa.schema([("at", pa.timestamp("ns"))])
    with pytest.raises(UnsupportedError, match=r"column 'at': the type timestamp_ns needs format"):
        new_schema(columns)
    metadata = made(columns, format_version=3)
    assert str(metadata.schema.fields[0].type) == "timestamp_ns"
    assert metadata.next_row_id == 0


def test_partitions_have_the_names_that_java_gives():
    terms = ["day(ts)", "bucket(16, id)", "truncate(4, name)", "name", "years(ts)", "address.city"]
    metadata = made(partitioned_by=terms)
    [spec] = metadata.partition_specs
    assert [(each.field_id, each.name, each.transform, each.source_id) for each in spec.fields] == [
        (1000, "ts_day", "day", 2),
        (1001, "id_bucket", "bucket[16]", 1),
        (1002, "name_trunc", "truncate[4]", 3),
        (1003, "name", "identity", 3),
        (1004, "ts_year", "year", 2),
        (1005, "address.city", "identity", 5),
    ]
    assert metadata.last_partition_id == 1005


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (["day(nme)"], r"'day\(nme\)' names no column of the table; .*; did you mean 'name'\?"),
        (["day(name)"], r"does not take column 'name', whose type is string"),
        (["address"], r"does not take column 'address', whose type is nested"),
        (["week(ts)"], r"'week\(ts\)' is not a transform: write a column, or a transform such as"),
        (["bucket(0, id)"], r"'bucket\(0, id\)' is not a transform"),
        (["id", "id"], r"two partition fields have the name 'id'"),
    ],
)
def test_a_partition_that_cannot_be_is_explained(terms, message):
    with pytest.raises(InvalidRequestError, match=message):
        made(partitioned_by=terms)


def test_a_partition_field_does_not_hide_a_column():
    columns = COLUMNS.append(pa.field("ts_day", pa.date32()))
    with pytest.raises(InvalidRequestError, match="would have the name 'ts_day', which is also a"):
        made(columns, partitioned_by=["day(ts)"])


@pytest.mark.parametrize(("first", "second"), [("a-b", "a_x2Db"), ("1x", "_1x")])
def test_partition_names_that_manifests_cannot_distinguish_are_refused(first, second):
    columns = pa.schema([(first, pa.int32()), (second, pa.int32())])
    with pytest.raises(InvalidRequestError, match=rf"would both have the name '{second}'"):
        made(columns, partitioned_by=[first, second])


def test_sort_keys_put_nulls_where_java_puts_them():
    metadata = made(sorted_by=["name", "id DESC", "hour(ts) asc nulls last"])
    assert metadata.sort_orders == (
        SortOrder(0),
        SortOrder(
            1,
            (
                SortField((3,), "identity", "asc", "nulls-first"),
                SortField((1,), "identity", "desc", "nulls-last"),
                SortField((2,), "hour", "asc", "nulls-last"),
            ),
        ),
    )
    assert metadata.default_sort_order_id == 1


def test_identifier_fields_become_required_and_compare_exactly():
    schema = made(identifier_fields=["name"]).schema
    assert (schema.identifier_field_ids, schema.fields[2].required) == ((3,), True)
    with pytest.raises(InvalidRequestError, match="column 'x' cannot identify rows"):
        made(pa.schema([("x", pa.float64())]), identifier_fields=["x"])


def test_the_format_version_is_an_argument_or_a_property():
    assert made().format_version == 2
    metadata = made(properties={"format-version": "1", "owner": "me"})
    assert (metadata.format_version, dict(metadata.properties)) == (1, {"owner": "me"})
    with pytest.raises(InvalidRequestError, match="must be one of 1, 2, 3, got '4'"):
        made(format_version=4)


def test_a_table_is_created_once(tmp_path):
    root = str(tmp_path / "new table")
    storage = LocalStorage()
    metadata = new_table_metadata(location_at(storage, root), COLUMNS)
    create_at_path(storage, root, metadata)
    table = lake.open_table(root)
    assert table.schema.column_names == ["id", "ts", "name", "address"]
    assert table.scan().to_arrow().num_rows == 0
    assert (tmp_path / "new table/metadata/version-hint.text").read_text() == "1"
    with pytest.raises(AlreadyExistsError, match="has an Iceberg table already"):
        create_at_path(storage, root, metadata)


def test_the_first_metadata_file_is_plain_and_the_codec_of_the_table_holds_from_the_second():
    codec = "write.metadata.compression-codec"
    catalog = lake.open_catalog("memory://first-codec/warehouse", format="iceberg")
    catalog.create_database("shop")
    with pytest.raises(InvalidRequestError, match=r"only the codecs none, gzip"):
        catalog.create_table("shop.t", [("id", "BIGINT")], options={codec: "zstd"})
    table = catalog.create_table("shop.t", [("id", "BIGINT")], options={codec: "gzip"})
    table.write(pa.table({"id": [1]}))
    places = table._handle.load().places
    found = [each.name for each in places.storage.list(f"{places.root}/metadata")]
    found = sorted(each for each in found if each.endswith(".metadata.json"))
    assert found == ["v1.metadata.json", "v2.gz.metadata.json"]
    assert catalog.table("shop.t").scan().to_arrow().num_rows == 1


def test_the_metadata_of_a_new_table_is_whole():
    world = Environment(now_millis=lambda: NOW_MILLIS, new_id=lambda: "a-uuid")
    written = metadata_to_json(new_table_metadata("memory://x/t/", COLUMNS, environment=world))
    assert (written["location"], written["table-uuid"]) == ("memory://x/t", "a-uuid")
    assert written["last-updated-ms"] == NOW_MILLIS
    assert written["current-snapshot-id"] == -1
    storage = MemoryStorage("x")
    assert location_at(storage, "a b") == "memory://x/a b"
