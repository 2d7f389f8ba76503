"""The delete files that apply to a data file are those of the specification's rules."""

from __future__ import annotations

import struct
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.errors import CorruptTableError, UnsupportedError
from lakeformat.files.file_format import FileFormat
from lakeformat.iceberg.metadata.manifest import (
    DATA,
    EQUALITY_DELETES,
    POSITION_DELETES,
    entry_schema,
)
from lakeformat.iceberg.partition_spec import PartitionField, PartitionSpec
from lakeformat.iceberg.read.data_file import DataFile
from lakeformat.iceberg.read.delete_index import DeleteIndex
from lakeformat.iceberg.read.entry_columns import EntryColumns, scopes
from lakeformat.iceberg.read.key_ranges import ranges_of
from lakeformat.iceberg.types import Field, PrimitiveType, StructType

INT = PrimitiveType("int")
ID = Field(1, "id", INT)
BY_P = PartitionSpec(0, (PartitionField((2,), 1000, "p", "identity"),))
NOT_PARTITIONED = PartitionSpec(1)
PARTITION = {0: StructType((Field(1000, "p", INT),)), 1: StructType(())}


def entry(path: str, content: int, number: int, p: int | None, **more: Any) -> dict[str, Any]:
    return {
        "status": 1,
        "snapshot_id": 1,
        "sequence_number": number,
        "file_sequence_number": number,
        "spec_id": 1 if p is None else 0,
        "partition": {} if p is None else {"p": p},
        "content": content,
        "file_path": path,
        "file_format": "PARQUET",
        "record_count": 3,
        "file_size_in_bytes": 1,
        **more,
    }


def entries(rows: list[dict[str, Any]], spec_id: int) -> pa.Table:
    chosen = [row for row in rows if row["spec_id"] == spec_id]
    return pa.Table.from_pylist(chosen, entry_schema(PARTITION[spec_id]))


def found(data: dict[str, Any], deletes: list[dict[str, Any]]) -> set[str]:
    """The paths of the deletes that the index finds for a data file."""
    index = DeleteIndex({1: ID})
    for spec in (BY_P, NOT_PARTITIONED):
        index.add(entries(deletes, spec.spec_id), spec)
    index.sort()
    table = entries([data], data["spec_id"])
    file = DataFile(data["file_path"], FileFormat.PARQUET, 3, 1, data["sequence_number"])
    [scope], [keys] = scopes(table), ranges_of(EntryColumns(table), [ID])
    return {each.path for each in index.find(file, scope, keys)}


def applies(data: dict[str, Any], delete: dict[str, Any]) -> bool:
    """The rule of the specification for one delete file, without deletion vectors."""
    same_place = (data["spec_id"], data["partition"]) == (delete["spec_id"], delete["partition"])
    if delete["content"] == EQUALITY_DELETES:
        everywhere = delete["spec_id"] == 1
        return delete["sequence_number"] > data["sequence_number"] and (everywhere or same_place)
    named = delete.get("referenced_data_file")
    return (
        delete["sequence_number"] >= data["sequence_number"]
        and (named == data["file_path"] if named else same_place)
    )  # fmt: skip


PLACES = st.sampled_from([None, 1, 2])
NUMBERS = st.integers(1, 4)


@given(
    number=NUMBERS,
    place=PLACES,
    deletes=st.lists(
        st.tuples(
            st.sampled_from([POSITION_DELETES, EQUALITY_DELETES]),
            NUMBERS,
            PLACES,
            st.sampled_from([None, "a", "b"]),
        ),
        max_size=6,
    ),
)
def test_a_delete_applies_by_its_number_and_place(number, place, deletes):
    data, names = entry("a", DATA, number, place), count()
    written = []
    for content, each, p, target in deletes:
        more: dict[str, Any] = {"equality_ids": [1]} if content == EQUALITY_DELETES else {}
        if content == POSITION_DELETES and target is not None:
            # Java deletes rows of a file only under the spec and partition of the file.
            p, more = (place, {"referenced_data_file": target}) if target == "a" else (p, more)
        written.append(entry(f"d{next(names)}", content, each, p, **more))
    expected = {each["file_path"] for each in written if applies(data, each)}
    assert found(data, written) == expected


def test_a_deletion_vector_replaces_the_position_deletes_of_its_file():
    data = entry("a", DATA, 1, 1)
    vector = entry(
        "v.puffin",
        POSITION_DELETES,
        3,
        1,
        file_format="PUFFIN",
        referenced_data_file="a",
        content_offset=4,
        content_size_in_bytes=40,
    )
    older = entry("p", POSITION_DELETES, 2, 1)
    keys = entry("e", EQUALITY_DELETES, 2, 1, equality_ids=[1])
    assert found(data, [older, vector, keys]) == {"v.puffin", "e"}
    assert found(entry("b", DATA, 1, 1), [older, vector, keys]) == {"p", "e"}


def test_a_position_delete_with_one_path_in_its_bounds_is_of_that_file_alone():
    path = [(2_147_483_546, b"a")]
    delete = entry("p", POSITION_DELETES, 2, 1, lower_bounds=path, upper_bounds=path)
    assert found(entry("a", DATA, 1, 1), [delete]) == {"p"}
    assert found(entry("b", DATA, 1, 1), [delete]) == set()


def ranged(least: int, most: int, nulls: int) -> dict[str, Any]:
    return {
        "lower_bounds": [(1, struct.pack("<i", least))],
        "upper_bounds": [(1, struct.pack("<i", most))],
        "null_value_counts": [(1, nulls)],
    }


@pytest.mark.parametrize(
    ("rows", "keys", "expected"),
    [
        (ranged(1, 5, 0), ranged(5, 9, 0), True),
        (ranged(1, 5, 0), ranged(6, 9, 0), False),
        (ranged(1, 5, 1), ranged(6, 9, 1), True),  # a null equals a null
        (ranged(1, 5, 1), ranged(6, 9, 0), False),
        (ranged(1, 5, 0), ranged(1, 5, 3), False),  # all keys are null
        ({}, ranged(6, 9, 0), True),
        (ranged(1, 5, 0), {}, True),
    ],
)
def test_keys_outside_the_bounds_of_a_file_delete_nothing_in_it(rows, keys, expected):
    delete = entry("e", EQUALITY_DELETES, 2, None, equality_ids=[1], **keys)
    assert found(entry("a", DATA, 1, 1, **rows), [delete]) == ({"e"} if expected else set())


@pytest.mark.parametrize(
    ("delete", "error"),
    [
        (entry("e", EQUALITY_DELETES, 2, 1), r"content 2 and the equality ids \[\]"),
        (entry("p", POSITION_DELETES, 2, 1, equality_ids=[1]), r"content 1 and .* \[1\]"),
        (entry("v", POSITION_DELETES, 2, 1, file_format="PUFFIN"), "without its data file"),
    ],
)
def test_a_delete_that_its_manifest_does_not_describe_is_damage(delete, error):
    with pytest.raises(CorruptTableError, match=error):
        found(entry("a", DATA, 1, 1), [delete])


def vector(number: int = 2, **more: Any) -> dict[str, Any]:
    place = {"content_offset": 4, "content_size_in_bytes": 40} | more
    of_a = {"file_format": "PUFFIN", "referenced_data_file": "a"}
    return entry("v.puffin", POSITION_DELETES, number, 1, **of_a, **place)


@pytest.mark.parametrize(
    ("vectors", "error"),
    [
        ([vector(), vector(3)], "more than one deletion vector of a"),
        ([vector(1)], "sequence number 1, but must have at least 2"),
        ([vector(content_size_in_bytes=-1)], r"of v\.puffin with -1 bytes"),
        ([vector(content_size_in_bytes=None)], r"of v\.puffin with 0 bytes"),
        ([vector(content_offset=-4)], r"at byte -4 of v\.puffin"),
    ],
)
def test_a_deletion_vector_that_is_not_the_only_and_whole_one_is_damage(vectors, error):
    with pytest.raises(CorruptTableError, match=error):
        found(entry("a", DATA, 2, 1), vectors)


def test_a_position_delete_with_bounds_that_are_no_text_is_of_its_partition():
    path = [(2_147_483_546, b"\xff")]
    delete = entry("p", POSITION_DELETES, 2, 1, lower_bounds=path, upper_bounds=path)
    assert found(entry("a", DATA, 1, 1), [delete]) == {"p"}


def test_a_delete_file_of_an_unknown_format_is_refused():
    delete = entry("e.x", EQUALITY_DELETES, 2, 1, equality_ids=[1], file_format="LANCE")
    with pytest.raises(UnsupportedError, match=r"e\.x has the format 'LANCE'"):
        found(entry("a", DATA, 1, 1), [delete])
