"""Data files of given rows: their partitions, order, size, field ids and checks of the rows."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.partition_spec import PartitionField, PartitionSpec
from lakeformat.iceberg.schema import Schema, schema_from_json
from lakeformat.iceberg.sort_order import SortField, SortOrder
from lakeformat.iceberg.write.table_writer import TableWriter
from lakeformat.storage import MemoryStorage
from lakeformat.storage.location import location_of
from tests.crash.simulated import simulated


def schema_of(*columns: tuple[str, Any], required: tuple[str, ...] = ()) -> Schema:
    fields = [
        {"id": number, "name": name, "type": kind, "required": name in required}
        for number, (name, kind) in enumerate(columns, 1)
    ]
    return schema_from_json({"type": "struct", "schema-id": 0, "fields": fields})


class Written:
    """A table in memory whose rows are written, but not committed."""

    def __init__(
        self,
        schema: Schema,
        partition: tuple[tuple[int, str], ...] = (),
        order: tuple[SortField, ...] = (),
    ) -> None:
        self.storage = MemoryStorage()
        parts = tuple(
            PartitionField((source,), 1000 + number, f"p{number}", transform)
            for number, (source, transform) in enumerate(partition)
        )
        metadata = TableMetadata(
            format_version=2,
            location=self.storage.uri("t"),
            last_updated_ms=1,
            last_column_id=99,
            schemas=(schema,),
            current_schema_id=0,
            partition_specs=(PartitionSpec(0, parts),),
            default_spec_id=0,
            sort_orders=(SortOrder(1, order),) if order else (SortOrder(0),),
            default_sort_order_id=1 if order else 0,
        )
        self.places = FilePlaces(self.storage, "t", location_of(metadata.location))
        self.loaded = LoadedMetadata(self.places, metadata, "t/metadata/v1.metadata.json")

    def with_properties(self, properties: dict[str, str]) -> Written:
        metadata = replace(self.loaded.metadata, properties=properties)
        self.loaded = replace(self.loaded, metadata=metadata)
        return self

    def writer(self) -> TableWriter:
        return TableWriter(self.loaded, simulated())

    def entries(self, *batches: pa.RecordBatch) -> list[dict[str, Any]]:
        writer = self.writer()
        for batch in batches:
            writer.write(batch)
        found: list[dict[str, Any]] = writer.finish().to_pylist()
        return found

    def rows(self, entry: dict[str, Any]) -> list[dict[str, Any]]:
        _, path = self.places.place(entry["file_path"])
        found: list[dict[str, Any]] = pq.read_table(self.storage.open_input(path)).to_pylist()
        return found

    def files(self) -> list[str]:
        found, directories = [], ["t"]
        while directories:
            for info in self.storage.list(directories.pop()):
                (directories if info.is_directory else found).append(info.path)
        return found


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def test_rows_go_to_the_files_of_their_partitions_in_their_order():
    table = Written(schema_of(("id", "int"), ("k", "string")), ((2, "identity"), (1, "bucket[1]")))
    entries = table.entries(batch(id=[1, 2], k=["b", "a"]), batch(id=[3, 4], k=["b", None]))
    found = {each["partition"]["p0"]: [row["id"] for row in table.rows(each)] for each in entries}
    assert found == {"b": [1, 3], "a": [2], None: [4]}
    assert [each["partition"]["p1"] for each in entries] == [0, 0, 0]


@pytest.mark.parametrize("value", [math.nan, -0.0, math.inf])
def test_a_float_that_repeats_is_one_partition(value):
    table = Written(schema_of(("d", "double")), ((1, "identity"),))
    (entry,) = table.entries(batch(d=[value, value]), batch(d=[value]))
    assert entry["record_count"] == 3


def test_many_partition_fields_do_not_overflow_the_number_of_a_partition():
    """Each field alone has so many values that their product needs more than 64 bits."""
    kinds = [(f"c{n}", "int") for n in range(8)]
    table = Written(schema_of(*kinds), tuple((n, "identity") for n in range(1, 9)))
    rows = {
        name: [(number * 7 + place) % 300 for number in range(300)]
        for place, (name, _) in enumerate(kinds)
    }
    assert len(table.entries(batch(**rows))) == 300


ORDERS = {
    "asc nulls-first": [None, -1.0, 2.0, math.nan],
    "asc nulls-last": [-1.0, 2.0, math.nan, None],
    "desc nulls-first": [None, math.nan, 2.0, -1.0],
    "desc nulls-last": [math.nan, 2.0, -1.0, None],
}


@pytest.mark.parametrize("order", ORDERS)
def test_rows_are_sorted_by_the_order_of_the_table(order):
    direction, nulls = order.split()
    keys = (SortField((1,), "identity", direction, nulls),)
    table = Written(schema_of(("d", "double"), ("n", "int")), order=keys)
    (entry,) = table.entries(batch(d=[2.0, math.nan], n=[1, 2]), batch(d=[None, -1.0], n=[3, 4]))
    found = [row["d"] for row in table.rows(entry)]
    assert list(map(repr, found)) == list(map(repr, ORDERS[order]))
    assert entry["sort_order_id"] == 1


def test_a_sort_key_is_a_transform_and_equal_keys_keep_their_order():
    keys = (SortField((1,), "truncate[1]", "desc", "nulls-last"),)
    table = Written(schema_of(("s", "string")), order=keys)
    (entry,) = table.entries(batch(s=["ab", "ba", "aa", "bb"]))
    assert [row["s"] for row in table.rows(entry)] == ["ba", "bb", "ab", "aa"]


def test_an_order_that_this_version_does_not_know_is_not_claimed():
    keys = (SortField((1,), "zorder", "asc", "nulls-first"),)
    (entry,) = Written(schema_of(("i", "int")), order=keys).entries(batch(i=[2, 1]))
    assert entry["sort_order_id"] == 0


def test_files_are_closed_at_their_target_size():
    table = Written(schema_of(("i", "long"))).with_properties(
        {"write.target-file-size-bytes": "4000", "write.parquet.compression-codec": "none"}
    )
    entries = table.entries(batch(i=[*range(3000)]))
    assert len(entries) > 3
    assert sum(each["record_count"] for each in entries) == 3000
    assert all(each["file_size_in_bytes"] < 10_000 for each in entries)


def test_every_field_has_its_id_in_the_file():
    inner = {
        "type": "struct",
        "fields": [{"id": 12, "name": "x", "required": False, "type": "uuid"}],
    }
    kind = {
        "type": "map",
        "key-id": 10,
        "key": "string",
        "value-id": 11,
        "value": inner,
        "value-required": False,
    }
    listed = {"type": "list", "element-id": 20, "element": "int", "element-required": False}
    table = Written(schema_of(("m", kind), ("l", listed)))
    given = pa.RecordBatch.from_pylist(
        [{"m": [("a", {"x": UUID(int=1).bytes})], "l": [1]}],
        table.loaded.metadata.schema.arrow_schema(),
    )
    (entry,) = table.entries(given)
    _, path = table.places.place(entry["file_path"])
    text = str(pq.ParquetFile(table.storage.open_input(path)).schema)
    for part in ("field_id=1 m", "field_id=10 key", "field_id=11 value", "field_id=12 x (UUID)"):
        assert part in text
    assert "field_id=20 element" in text
    assert [key for key, _ in entry["column_sizes"]] == [10, 12, 20]
    assert entry["value_counts"] == []  # of fields inside of lists and maps nothing else is kept


def test_an_absent_column_gets_its_write_default():
    fields = [
        {"id": 1, "name": "i", "required": False, "type": "int"},
        {"id": 2, "name": "s", "required": True, "type": "string", "write-default": "x"},
        {"id": 3, "name": "n", "required": False, "type": "long"},
    ]
    table = Written(schema_from_json({"type": "struct", "schema-id": 0, "fields": fields}))
    (entry,) = table.entries(batch(i=[1]))
    assert table.rows(entry) == [{"i": 1, "s": "x", "n": None}]


def with_members(**required: Any) -> Schema:
    """A column ``s`` whose default is a struct of the defaults of its members."""
    members = [
        {"id": 3, "name": "a", "type": "int", "initial-default": 1, "write-default": 2},
        {"id": 4, "name": "b", "type": "string", "write-default": "w"},
        {"id": 5, "name": "c", "type": "int", "initial-default": 1} | required,
    ]
    kind = {"type": "struct", "fields": [{"required": False} | each for each in members]}
    empty = {"initial-default": {}, "write-default": {}}
    fields = [
        {"id": 1, "name": "i", "required": False, "type": "int"},
        {"id": 2, "name": "s", "required": False, "type": kind} | empty,
    ]
    return schema_from_json({"type": "struct", "schema-id": 0, "fields": fields})


def test_the_members_of_an_absent_struct_get_their_write_defaults():
    table = Written(with_members())
    (entry,) = table.entries(batch(i=[1, 2]))
    default = {"a": 2, "b": "w", "c": None}
    assert table.rows(entry) == [{"i": 1, "s": default}, {"i": 2, "s": default}]


def test_members_that_given_structs_lack_get_their_write_defaults():
    given = [{"b": "x"}, None, {"b": None}]
    table = Written(with_members())
    (entry,) = table.entries(batch(i=[1, 2, 3], s=given))
    found = [row["s"] for row in table.rows(entry)]
    assert found == [{"a": 2, "b": "x", "c": None}, None, {"a": 2, "b": None, "c": None}]


def test_the_refusal_of_a_struct_shows_the_given_type():
    rows = batch(i=[1], s=pa.array([{"zz": 1}], pa.struct([("zz", pa.int32())])))
    with pytest.raises(InvalidRequestError, match=r"has type struct<zz: int32>, but the table"):
        Written(with_members()).entries(rows)


def test_members_in_lists_and_maps_get_their_write_defaults():
    def struct(first: int) -> dict[str, Any]:
        required = {"name": "a", "type": "int", "required": True, "write-default": 2}
        optional = {"name": "b", "type": "int", "required": False}
        fields = [{"id": first} | required, {"id": first + 1} | optional]
        return {"type": "struct", "fields": fields}

    element = {"element-id": 3, "element": struct(10), "element-required": False}
    key = {"key-id": 4, "key": "string"}
    value = {"value-id": 5, "value": struct(20), "value-required": False}
    in_list, in_map = {"type": "list", **element}, {"type": "map", **key, **value}
    table = Written(schema_of(("l", in_list), ("m", in_map)))
    rows = pa.table(
        {
            "l": pa.array([None, [{"b": 1}, None], []], pa.list_(pa.struct([("b", pa.int32())]))),
            "m": pa.array(
                [None, [("x", {"b": 1})], []],
                pa.map_(pa.string(), pa.struct([("b", pa.int32())])),
            ),
        }
    )
    (entry,) = table.entries(rows.slice(1).to_batches()[0])
    assert table.rows(entry) == [
        {"l": [{"a": 2, "b": 1}, None], "m": [("x", {"a": 2, "b": 1})]},
        {"l": [], "m": []},
    ]


def test_an_absent_struct_with_a_required_member_without_write_default_is_refused():
    with pytest.raises(InvalidRequestError, match=r"column 's\.c' is required, but is null"):
        Written(with_members(required=True)).entries(batch(i=[1]))


REFUSED = {
    "unknown": ({"ident": [1]}, "the table has no column 'ident'; its columns are id, name"),
    "nearest": ({"nmae": ["a"]}, "did you mean 'name'"),
    "absent": ({"name": ["a"]}, r"'id' is required, but .* is row 2 \(rows count from 0\)"),
    "null": ({"id": [1, None]}, "column 'id' is required, but is null in 1 of 2 rows"),
    "row": ({"id": [1, None]}, r"the first .*in row 3 \(rows count from 0\)"),
    "too large": ({"id": [1, 2**40]}, "does not fit into int32 without loss"),
    "other type": ({"id": ["a"]}, "column 'id' has type string, but the table needs int32"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_rows_that_do_not_fit_are_refused(case):
    columns, message = REFUSED[case]
    table = Written(schema_of(("id", "int"), ("name", "string"), required=("id",)))
    writer = table.writer()
    writer.write(batch(id=[8, 9]))
    with pytest.raises(InvalidRequestError, match=message.replace("'", ".")):
        writer.write(batch(**columns))


@pytest.mark.parametrize("kind", ["decimal(4, 2)", "decimal(20, 2)", "decimal(38, 2)"])
def test_a_decimal_whose_truncated_value_has_too_many_digits_is_refused(kind):
    digits = int(kind[8:].partition(",")[0])
    least = Decimal((1, (9,) * digits, -2))
    table = Written(schema_of(("id", "int"), ("m", kind)), ((2, "truncate[7]"),))
    column = pa.array([None, Decimal("-0.01"), least], pa.decimal128(digits, 2))
    with pytest.raises(
        InvalidRequestError, match=rf"a row has {least} in column .m.\. .* by truncate\[7\]"
    ):
        table.writer().write(batch(id=[1, 2, 3], m=column))
    entries = table.entries(batch(id=[1, 2], m=column[:2]))
    values = [each["partition"]["p0"] for each in entries]
    assert sorted(map(str, values)) == ["-0.07", "None"]


def test_a_null_inside_of_a_nested_value_is_refused():
    kind = {"type": "list", "element-id": 2, "element": "int", "element-required": True}
    table = Written(schema_of(("l", kind)))
    with pytest.raises(InvalidRequestError, match=r"column 'l\.element' is required"):
        table.writer().write(batch(l=[[1], [None]]))


def test_discard_deletes_every_file_also_those_still_open():
    table = Written(schema_of(("i", "long"), ("k", "int")), ((2, "identity"),)).with_properties(
        {"write.target-file-size-bytes": "2000", "write.parquet.compression-codec": "none"}
    )
    writer = table.writer()
    writer.write(batch(i=[*range(3000)], k=[number % 2 for number in range(3000)]))
    assert table.files()
    writer.discard()
    assert table.files() == []


PROPERTIES = {
    "write.format.default": ("orc", UnsupportedError, "writes only Parquet files"),
    "write.parquet.compression-codec": (
        "lzo",
        InvalidRequestError,
        "have the codecs zstd.*: set it to one of them",
    ),
    "write.metadata.metrics.default": ("most", InvalidRequestError, "counts, full or truncate"),
    "write.metadata.metrics.column.i": ("truncate(0)", InvalidRequestError, "truncate"),
    "write.target-file-size-bytes": ("1 MB", InvalidRequestError, "not a whole number"),
}


@pytest.mark.parametrize("key", PROPERTIES)
def test_a_property_without_meaning_is_refused_by_name(key):
    value, error, message = PROPERTIES[key]
    table = Written(schema_of(("i", "int"))).with_properties({key: value})
    with pytest.raises(error, match=message) as caught:
        table.writer()
    assert key in str(caught.value)


def test_only_the_first_columns_have_statistics_without_a_default_mode():
    schema = schema_of(*[(f"c{n}", "int") for n in range(4)])
    order = (SortField((4,), "identity", "asc", "nulls-first"),)
    limit = {"write.metadata.metrics.max-inferred-column-defaults": "2"}
    table = Written(schema, order=order).with_properties(limit)
    (entry,) = table.entries(batch(c0=[1], c1=[1], c2=[1], c3=[1]))
    assert [key for key, _ in entry["value_counts"]] == [1, 2, 4]  # 4 is a key of the order
