"""Scans of tables of old writers and of hostile ones, with schemas that changed."""

from __future__ import annotations

import json
import uuid
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.errors import CorruptTableError, NotFoundError
from tests.unit.iceberg.made_table import SNAPSHOT_ID, MadeTable

ID = {(1, "id"): "long"}
FILE_PATH_ID, POSITION_ID = 2_147_483_546, 2_147_483_545


def longs(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int64())


def one_file(made: MadeTable, *values: int, **members: Any) -> dict[str, Any]:
    """Write a file of the column ``id`` and return its entry."""
    path = made.write(f"{values}.parquet", id=(1, longs(*values)))
    return {"file_path": path, "record_count": len(values), **members}


# Numbers of rows


def test_a_file_whose_number_of_rows_is_not_known_is_read(tmp_path):
    """Early importers of Avro files wrote -1 as their number of rows."""
    made = MadeTable(tmp_path / "t", ID)
    nulls = {"null_value_counts": {1: -1}}
    made.manifest(one_file(made, 1, 2, 3, record_count=-1, **nulls), one_file(made, 4))
    table = made.commit()
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]
    assert (table.scan().count(), table.scan(where="id > 1").count()) == (4, 3)


def test_deletes_apply_to_a_file_whose_number_of_rows_is_not_known(tmp_path):
    made = MadeTable(tmp_path / "t", ID)
    made.manifest(one_file(made, 1, 2, 3, record_count=-1))
    made.manifest(one_file(made, 2, content=2, equality_ids=[1]), number=2)
    assert made.commit().scan().to_arrow()["id"].to_pylist() == [1, 3]


@pytest.mark.parametrize(
    ("listed", "error"),
    [
        ({"added_files_count": 2}, r"m0\.avro has 1 entries, but the manifest list counts 2"),
        (
            {"added_files_count": -1, "existing_files_count": 1},
            "added_files_count of a manifest is -1, but a count",
        ),
    ],
)
def test_a_list_that_counts_other_files_is_damage(tmp_path, listed, error):
    made = MadeTable(tmp_path / "t", ID)
    made.manifest(one_file(made, 1), **listed)
    with pytest.raises(CorruptTableError, match=error):
        made.commit().scan().count()


@pytest.mark.parametrize("where", [None, "id = 1"])
def test_a_manifest_of_an_unknown_spec_is_named_with_the_way_out(tmp_path, where):
    made = MadeTable(tmp_path / "t", ID)
    made.manifest(one_file(made, 1), partition_spec_id=4)
    with pytest.raises(CorruptTableError, match=r"m0\.avro .*, only 0\. Roll back to an earlier"):
        made.commit().scan(where=where).to_arrow()


@pytest.mark.parametrize("content", [0, 1])
def test_a_list_that_takes_data_for_deletes_or_deletes_for_data_is_damage(tmp_path, content):
    """Otherwise a table whose manifests are all listed as deletes would be empty."""
    made = MadeTable(tmp_path / "t", ID)
    deletes = {"content": 2, "equality_ids": [1]} if content == 0 else {}
    made.manifest(one_file(made, 1, **deletes), content=content)
    with pytest.raises(
        CorruptTableError, match=r"m0\.avro is damaged: the content of an entry is \d, but"
    ):
        made.commit().scan().to_arrow()


def test_a_list_that_names_a_manifest_twice_is_damage(tmp_path):
    made = MadeTable(tmp_path / "t", ID)
    made.manifest(one_file(made, 1))
    made.manifest(manifest_path=f"{made.location}/metadata/m0.avro")
    with pytest.raises(CorruptTableError, match="names a manifest more than once"):
        made.commit().scan().count()


# UUIDs


LOW, HIGH = uuid.UUID(int=1), uuid.UUID(int=0x80 << 120)


@pytest.mark.parametrize("wanted", [LOW, HIGH])
def test_a_uuid_is_found_though_java_bounded_it_by_signed_numbers(tmp_path, wanted):
    """Signed, ``HIGH`` is the least of both."""
    sixteen = {"type": "fixed", "size": 16, "name": "u"}
    made = MadeTable(tmp_path / "t", {(1, "u"): "uuid"}, partition=(1, "u", sixteen, "identity"))
    bounds = {"contains_null": False, "lower_bound": HIGH.bytes, "upper_bound": LOW.bytes}
    files = []
    for each in (LOW, HIGH):
        path = made.write(f"{each}.parquet", u=(1, pa.array([each.bytes], pa.binary(16))))
        files.append({"file_path": path, "record_count": 1, "partition": {"u": each.bytes}})
    made.manifest(*files, partitions=[bounds])
    found = made.commit().scan(where=lake.col("u") == wanted)
    assert found.to_arrow()["u"].to_pylist() == [wanted.bytes]


# Unknown transforms


def test_files_of_an_unknown_transform_are_read_with_partitions_of_any_type(tmp_path):
    made = MadeTable(tmp_path / "t", ID, partition=(1, "p", "int", "zorder"))
    parts = [one_file(made, each, partition={"p": each}) for each in (1, 2)]
    made.manifest(*parts)
    made.manifest(one_file(made, 1, 2, partition={"p": 2}, content=2, equality_ids=[1]), number=2)
    assert made.commit().scan(where="id > 0").to_arrow()["id"].to_pylist() == [1]


# Equality deletes


@pytest.mark.parametrize(
    ("types", "values"),
    [
        (("int", "long"), pa.array([1, 2], pa.int32())),
        (("float", "double"), pa.array([1.5, 2.5], pa.float32())),
        (("decimal(9, 2)", "decimal(20, 2)"), pa.array([Decimal("1.25"), Decimal("-2.50")])),
        (("date", "timestamp"), pa.array([date(2024, 1, 1), date(2024, 1, 2)])),
    ],
    ids=lambda each: each[1] if isinstance(each, tuple) else "",
)
def test_keys_delete_rows_also_with_the_type_that_the_column_had(tmp_path, types, values):
    made = MadeTable(tmp_path / "t", *({(1, "x"): kind} for kind in types))
    path = made.write("data.parquet", x=(1, values))
    keys = made.write("keys.parquet", x=(1, values[:1]))
    made.manifest({"file_path": path, "record_count": 2})
    made.manifest(
        {"file_path": keys, "record_count": 1, "content": 2, "equality_ids": [1]}, number=2
    )
    table = made.commit(schema_id=0)
    for scan in (table.scan(), table.scan(snapshot=SNAPSHOT_ID)):
        assert scan.to_arrow()["x"].cast(values.type).to_pylist() == values[1:].to_pylist()


def test_a_delete_file_without_one_of_its_keys_is_damage(tmp_path):
    """Its keys must not become nulls, which delete rows without a value."""
    made = MadeTable(tmp_path / "t", ID | {(2, "x"): "long"})
    made.manifest(one_file(made, 1))
    made.manifest(one_file(made, 1, content=2, equality_ids=[1, 2]), number=2)
    with pytest.raises(CorruptTableError, match="lacks the required column 'x'"):
        made.commit().scan().to_arrow()


def test_columns_may_have_the_name_that_a_key_gets_while_it_is_read(tmp_path):
    columns = {"_key_1": (2, longs(10, 20)), "__key_1": (3, longs(30, 40))}
    made = MadeTable(tmp_path / "t", ID | {(2, "_key_1"): "long", (3, "__key_1"): "long"})
    path = made.write("d.parquet", id=(1, longs(1, 2)), **columns)
    made.manifest({"file_path": path, "record_count": 2})
    made.manifest(of_keys(made, "k.parquet", [1], id=(1, longs(1))), number=2)
    scan = made.commit().scan(columns=["__key_1"], where="_key_1 > 0 AND __key_1 > 0")
    assert scan.to_arrow().to_pylist() == [{"__key_1": 40}]


def struct_of(field_id: int, name: str, kind: Any) -> dict[str, Any]:
    """The type of a struct with one optional field."""
    field = {"id": field_id, "name": name, "required": False, "type": kind}
    return {"type": "struct", "fields": [field]}


def nested(field_id: int, name: str, values: pa.Array, mask: list[bool]) -> pa.StructArray:
    """Structs of one field, as a file stores them; null where the mask is true."""
    field = pa.field(name, values.type, metadata={"PARQUET:field_id": str(field_id)})
    return pa.StructArray.from_arrays([values], fields=[field], mask=pa.array(mask))


def of_keys(made: MadeTable, name: str, ids: list[int], **columns: Any) -> dict[str, Any]:
    """Write a file of equality deletes and return its entry."""
    count = len(next(iter(columns.values()))[1])
    path = made.write(name, **columns)
    return {"file_path": path, "record_count": count, "content": 2, "equality_ids": ids}


@pytest.mark.parametrize("wanted", [["id"], ["id", "s"]])
def test_a_key_inside_of_structs_deletes_rows_with_its_value(tmp_path, wanted):
    """A null struct has a null key. Only field 4 is a key: other fields of the struct are not."""
    inner = struct_of(4, "k", "long")
    made = MadeTable(tmp_path / "t", ID | {(2, "s"): struct_of(3, "t", inner)})
    none, nulls = [False] * 4, [False, False, False, True]
    deep = nested(4, "k", longs(10, 20, None, None), none)
    path = made.write("d.parquet", id=(1, longs(1, 2, 3, 4)), s=(2, nested(3, "t", deep, nulls)))
    made.manifest({"file_path": path, "record_count": 4})
    keys = nested(4, "k", longs(10, None), none[:2])
    made.manifest(of_keys(made, "k.parquet", [4], s=(2, nested(3, "t", keys, none[:2]))), number=2)
    table = made.commit()
    assert table.scan(columns=wanted).to_arrow()["id"].to_pylist() == [2]
    assert table.scan().count() == 1


def test_a_column_and_a_field_inside_of_another_column_are_one_key(tmp_path):
    made = MadeTable(tmp_path / "t", ID | {(2, "s"): struct_of(3, "k", "long")})
    none = [False] * 3
    path = made.write(
        "d.parquet", id=(1, longs(1, 1, 2)), s=(2, nested(3, "k", longs(7, 8, 7), none))
    )
    made.manifest({"file_path": path, "record_count": 3})
    keys = {"id": (1, longs(1)), "s": (2, nested(3, "k", longs(7), none[:1]))}
    made.manifest(of_keys(made, "k.parquet", [1, 3], **keys), number=2)
    rows = made.commit().scan().to_arrow().to_pylist()
    assert [(row["id"], row["s"]["k"]) for row in rows] == [(1, 8), (2, 7)]


def test_a_key_inside_of_a_struct_applies_after_the_field_was_dropped(tmp_path):
    """Files without the struct have null keys."""
    before = ID | {(2, "s"): struct_of(3, "k", "long")}
    made = MadeTable(tmp_path / "t", before, ID | {(2, "s"): struct_of(5, "other", "long")})
    path = made.write(
        "d.parquet", id=(1, longs(1, 2)), s=(2, nested(3, "k", longs(7, 8), [False] * 2))
    )
    made.manifest({"file_path": path, "record_count": 2}, one_file(made, 3))
    keys = nested(3, "k", longs(8, None), [False] * 2)
    made.manifest(of_keys(made, "k.parquet", [3], s=(2, keys)), number=2)
    assert made.commit(schema_id=1).scan().to_arrow()["id"].to_pylist() == [1]


@pytest.mark.parametrize("key", [2, 3])
def test_a_key_that_is_a_list_or_inside_of_one_is_damage(tmp_path, key):
    """The specification allows only single values, in columns or inside of structs."""
    many = {"type": "list", "element-id": 3, "element": "long", "element-required": False}
    made = MadeTable(tmp_path / "t", ID | {(2, "s"): many})
    made.manifest(one_file(made, 1))
    made.manifest(one_file(made, 1, content=2, equality_ids=[key]), number=2)
    with pytest.raises(
        CorruptTableError, match=f"compare the field {key}, but no schema of the table"
    ):
        made.commit().scan().to_arrow()


def test_a_delete_file_without_a_key_inside_of_a_struct_is_damage(tmp_path):
    made = MadeTable(tmp_path / "t", ID | {(2, "s"): struct_of(3, "k", "long")})
    made.manifest(one_file(made, 1))
    keys = nested(9, "x", longs(1), [False])
    made.manifest(of_keys(made, "k.parquet", [3], s=(2, keys)), number=2)
    with pytest.raises(CorruptTableError, match="lacks the required column 'k'"):
        made.commit().scan().to_arrow()


# Deletes by position


@pytest.mark.parametrize(("path", "position"), [(None, 0), ("", None), ("", -1)])
def test_a_delete_without_its_file_or_position_is_damage(tmp_path, path, position):
    made = MadeTable(tmp_path / "t", ID)
    made.manifest(one_file(made, 1))
    deletes = made.write(
        "deletes.parquet",
        file_path=(FILE_PATH_ID, pa.array([path], pa.string())),
        pos=(POSITION_ID, longs(position)),
    )
    made.manifest({"file_path": deletes, "record_count": 1, "content": 1})
    with pytest.raises(CorruptTableError, match=r"deletes\.parquet has a row without a file path"):
        made.commit().scan().to_arrow()


# Times


def test_a_table_without_a_log_of_its_snapshots_proposes_their_ids(tmp_path):
    made = MadeTable(tmp_path / "t", ID)
    made.manifest(one_file(made, 1))
    with pytest.raises(NotFoundError, match="has no snapshot times, so choose a snapshot by"):
        made.commit().scan(as_of="2024-01-31 10:00")


# Names and ids of columns


def test_a_file_with_two_columns_of_one_id_is_damage(tmp_path):
    made = MadeTable(tmp_path / "t", ID)
    path = made.write("a.parquet", a=(1, longs(1)), b=(1, longs(2)))
    made.manifest({"file_path": path, "record_count": 1})
    with pytest.raises(CorruptTableError, match="more than one column of the field id 1"):
        made.commit().scan().to_arrow()


@pytest.mark.parametrize(
    ("mapping", "error"),
    [
        ([{"field-id": "1", "names": ["id"]}], "the field id '1' is not a number"),
        ([{"field-id": 1, "names": "id"}], "names is 'id', not a list"),
        ([{"field-id": 1, "names": [1]}], "not a list of names"),
        ([{"field-id": 1, "names": ["a"]}, {"field-id": 1, "names": ["b"]}], "field id 1 to sev"),
        ([{"field-id": 1, "names": ["a"]}, {"field-id": 2, "names": ["a"]}], "name 'a' to several"),
    ],
)
def test_a_name_mapping_that_is_not_clear_is_damage(tmp_path, mapping, error):
    properties = {"schema.name-mapping.default": json.dumps(mapping)}
    made = MadeTable(tmp_path / "t", ID, properties=properties)
    made.manifest(one_file(made, 1))
    with pytest.raises(CorruptTableError, match=error):
        made.commit().scan().to_arrow()


def test_a_schema_with_two_columns_of_one_name_is_damage(tmp_path):
    made = MadeTable(tmp_path / "t", {(1, "a"): "long", (2, "a"): "long"})
    with pytest.raises(CorruptTableError, match=r"schema 0 gives the names \['a'\] more than once"):
        made.commit()


def test_a_hint_of_far_too_many_digits_names_no_file(tmp_path):
    made = MadeTable(tmp_path / "t", ID)
    made.manifest(one_file(made, 1))
    made.commit()
    (made.root / "metadata/version-hint.text").write_text("9" * 6000)
    assert lake.open_table(str(made.root)).scan().count() == 1
