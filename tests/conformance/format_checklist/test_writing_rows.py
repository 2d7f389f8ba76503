"""The writing half of the format's conformance checklist (section 11): rows and indexes.

Independent decoders (json, fastavro, pyarrow, struct), the values of the specification and the
golden tables check the bytes. ``tests/interop/test_checklist_round_trip.py`` has the last line, the
round trip through pypaimon.
"""

from __future__ import annotations

import math
import struct
import zlib
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from lakeformat.environment import SYSTEM
from lakeformat.files.column_statistics import ColumnStatistics
from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.files.vector_record import VectorForm
from lakeformat.paimon.binary_row import (
    decode_row,
    encode_columns,
    encode_row,
    frame_row,
    unframe_row,
)
from lakeformat.paimon.bucketing import bucket_function, row_hashes
from lakeformat.paimon.datafile.file_statistics import file_statistics, key_statistics
from lakeformat.paimon.index.combination import combine
from lakeformat.paimon.index.deletion_vector_file import encode_deletion_vectors
from lakeformat.paimon.index.hash_index import encode_hash_index
from lakeformat.paimon.merge.order import MergeOrder
from lakeformat.paimon.metadata.index_manifest import HASH, IndexManifestEntry
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.simple_stats import EMPTY_ROW, EMPTY_STATS
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.read.plan import plan_files
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.type_text import parse_type
from lakeformat.types.values import values_to_arrow
from tests.conformance.format_checklist.keyed_table import DELETE, UPDATE_BEFORE, KeyedTable
from tests.unit.paimon.binary_row.test_binary_row_examples import EXAMPLES, NULLS


def new_catalog(folder: Path, **environment: Any) -> lake.Catalog:
    catalog = lake.open_catalog(str(folder), environment=replace(SYSTEM, **environment))
    catalog.create_database("shop")
    return catalog


def new_table(folder: Path, *columns: tuple[str, str], **options: str) -> lake.Table:
    texts = {key.replace("__", ".").replace("_", "-"): text for key, text in options.items()}
    named = columns or [("id", "BIGINT")]
    return new_catalog(folder).create_table("shop.t", named, options=texts)


def avro(path: Path | str) -> tuple[dict[str, Any], list[Any], str]:
    """Schema, records and codec, by fastavro."""
    with Path(path).open("rb") as stream:
        reader = fastavro.reader(stream)
        return reader.writer_schema, list(reader), reader.metadata["avro.codec"]


def latest(table: lake.Table) -> Snapshot:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    return snapshot


def live(table: lake.Table) -> list[ManifestEntry]:
    return plan_files(table._handle, latest(table))


HASHES = IndexManifestEntry(
    partition=EMPTY_ROW,
    bucket=1,
    index_type=HASH,
    file_name="index-u-0",
    file_size=12,
    row_count=3,
)


PADDED = (
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "FLOAT",
    "DATE",
    "STRING",
    "BYTES",
    "DECIMAL(20, 2)",
    "TIMESTAMP(6)",
)
PADDED_VALUES = (True, -1, -1, -1, -1.5, -1, "123456789", b"\xff" * 9, Decimal("-0.01"), -1000)


def test_rows_keep_room_for_wide_nulls_have_kind_0_and_padding_of_zeros():
    for example in NULLS:
        row = encode_row(example.values, example.data_types)
        assert frame_row(row, len(example.types)) == example.bytes, example
        columns = encode_columns(example.columns, example.data_types).to_pylist()
        assert columns == [example.bytes], f"columns of {example}"
    for example in EXAMPLES:
        row = encode_row(example.values, example.data_types)
        assert frame_row(row, len(example.types)) == example.bytes, example
        assert row[0] == 0, f"the kind of {example}"
        assert len(row) % 8 == 0
    types = [parse_type(text) for text in PADDED]
    row = encode_row(PADDED_VALUES, types)
    arrays = [
        values_to_arrow([value], kind) for value, kind in zip(PADDED_VALUES, types, strict=True)
    ]
    assert encode_columns(arrays, types).to_pylist() == [frame_row(row, len(types))]
    assert row[:8] == bytes(8), "kind and null bits"
    for position, used in enumerate((1, 1, 2, 4, 4, 4)):
        slot = row[8 + 8 * position :][:8]
        assert slot[used:] == bytes(8 - used), f"after the {PADDED[position]}"
    variable = row[8 + 8 * len(types) :]
    assert variable[:16] == b"123456789" + bytes(7)
    assert variable[16:32] == b"\xff" * 9 + bytes(7)
    assert variable[32:48] == b"\xff" + bytes(15), "a wide decimal in its 16 bytes"
    assert variable[48:] == struct.pack("<q", -1)
    for length in range(8):
        slot = encode_row(("x" * length,), [parse_type("STRING")])[8:]
        assert slot == b"x" * length + bytes(7 - length) + bytes([0x80 | length])
    nulls = encode_row((None,) * 10, types)
    assert nulls[:8] == b"\0\xff\x03" + bytes(5), "null bits, and zeros behind the last"


BUCKETS_OF_5 = {
    -9_000_000_000: (3, 0, 0),
    -7: (2, 3, 1),
    -1: (2, 4, 0),
    0: (4, 0, 0),
    1: (3, 1, 1),
    2: (4, 2, 2),
    3: (0, 3, 3),
    4: (1, 4, 4),
    42: (2, 2, 2),
    9_000_000_000: (4, 0, 0),
    None: (4, 0, 0),
}


def test_bucket_numbers_are_those_of_the_tables_for_all_three_functions():
    bigint = parse_type("BIGINT")
    keys = pa.array([*BUCKETS_OF_5], pa.int64())
    for position, kind in enumerate(("default", "mod", "hive")):
        expected = [buckets[position] for buckets in BUCKETS_OF_5.values()]
        assert bucket_function(kind, [bigint], 5)([keys]).tolist() == expected, kind

    def buckets(kind: str, count: int, types: list[str], *rows: tuple[Any, ...]) -> list[int]:
        parsed = [parse_type(text) for text in types]
        arrays = [
            values_to_arrow(list(values), data_type)
            for values, data_type in zip(zip(*rows, strict=True), parsed, strict=True)
        ]
        return bucket_function(kind, parsed, count)(arrays).tolist()

    two = ["STRING", "DECIMAL(10, 2)"]
    for kind, expected_bucket in (("default", 87), ("hive", 822)):
        assert buckets(kind, 1_000, two, ("hé", Decimal("12.50"))) == [expected_bucket], kind
    one, moment = Decimal("1.00"), 1_700_000_000_123_456_000
    wide = [(None, None), (one, None), (None, moment), (-one, -1000)]
    assert buckets("default", 7, ["DECIMAL(20, 2)", "TIMESTAMP(6)"], *wide) == [6, 2, 6, 3]
    with pytest.raises(lake.LakeError):
        bucket_function("mod", [parse_type("STRING")], 5)
    with pytest.raises(lake.UnsupportedError):
        bucket_function("hive", [parse_type("TIMESTAMP(3)")], 5)
    with pytest.raises(lake.UnsupportedError):
        bucket_function("other", [bigint], 5)


# Keys in the order of section 7.3, as Arrow holds them.
KEY_ORDERS: dict[str, list[Any]] = {
    "BOOLEAN": [False, True],
    "TINYINT": [-128, -1, 0, 127],
    "INT": [-(2**31), -1, 0, 256, 2**31 - 1],
    "BIGINT": [-(2**63), -1, 0, 2**63 - 1],
    "DATE": [date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29)],
    "FLOAT": [-math.inf, -1.5, -0.0, 0.0, 1.5, math.inf, math.nan],
    "DOUBLE": [-math.inf, -1.5, -0.0, 0.0, 1.5, math.inf, math.nan],
    "STRING": ["", "Z", "a", "aa", "b", "é", "中", "\uffff", "\U0001f427"],
    "BYTES": [b"", b"\x00", b"\x01", b"\x01\x00", b"\x7f", b"\x80", b"\xff"],
    "DECIMAL(20, 2)": [Decimal("-10.00"), Decimal("-9.99"), Decimal("0.00"), Decimal("100.00")],
    "DECIMAL(9, 2)": [Decimal("-1.00"), Decimal("0.00"), Decimal("0.01")],
    "TIMESTAMP(6)": [datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(1970, 1, 1)],
}


def test_key_files_are_sorted_and_described_exactly_and_numbers_continue(tmp_path):
    for text, ordered in KEY_ORDERS.items():
        data_type = parse_type(f"{text} NOT NULL")
        keys = pa.array(ordered[::-1], to_arrow_type(data_type))
        given = pa.table(
            {
                "_SEQUENCE_NUMBER": pa.array(range(len(keys)), pa.int64()),
                "_VALUE_KIND": pa.array([0] * len(keys), pa.int8()),
                "k": keys,
            }
        )
        groups = MergeOrder(("k",)).group(given)
        found = given["k"].take(pa.array(groups.newest)).to_pylist()
        assert list(map(repr, found)) == list(map(repr, ordered)), f"the order of {text}"

    columns = (("v", "STRING"), ("b", "STRING NOT NULL"), ("a", "INT NOT NULL"))
    table = KeyedTable(str(tmp_path / "t"), columns, ["a", "b"], {"bucket": "1"})
    long = "x" * 200
    rows = [
        {"v": "c", "b": "é", "a": 2},
        {"v": None, "b": long, "a": 2, "kind": DELETE},
        {"v": "d", "b": "z", "a": 1, "kind": UPDATE_BEFORE},
        {"v": "e", "b": "", "a": 2, "kind": 2},
    ]
    [first] = table.write(rows)
    path = table.layout.data_file(0, first.file.file_name)
    stored = pq.read_table(path, partitioning=None)
    in_order = [(1, "z"), (2, ""), (2, long), (2, "é")]
    for prefix in ("_KEY_", ""):
        pairs = zip(*(stored[prefix + name].to_pylist() for name in "ab"), strict=True)
        assert [*pairs] == in_order
    assert stored["_SEQUENCE_NUMBER"].to_pylist() == [2, 3, 1, 0]
    types = [table.schema.fields[position].type for position in (2, 1)]
    assert decode_row(unframe_row(first.file.min_key)[1], types) == in_order[0]
    assert decode_row(unframe_row(first.file.max_key)[1], types) == in_order[-1]
    key_fields = [table.schema.fields[2], table.schema.fields[1]]
    assert key_statistics(first.file, key_fields) == [
        ColumnStatistics(1, 2, 0),
        ColumnStatistics("", "é", 0),
    ]
    assert first.file.delete_row_count == 2
    ends = (first.file.min_sequence_number, first.file.max_sequence_number)
    assert ends == (0, 3)
    table.commit([first])
    highest = max(entry.file.max_sequence_number for entry in live(table.open()))
    table.next_sequence_number = highest + 1
    [second] = table.write([{"v": "newer", "b": "é", "a": 2}])
    assert second.file.min_sequence_number == 4
    table.commit([second])
    assert table.open().scan().to_arrow().to_pylist() == [
        {"v": "e", "b": "", "a": 2},
        {"v": "newer", "b": "é", "a": 2},
    ]


def test_system_columns_come_first_and_every_column_has_its_field_id(tmp_path):
    columns = (("v", "ARRAY<INT>"), ("k2", "STRING NOT NULL"), ("k", "INT NOT NULL"))
    row = {"v": [1], "k2": "a", "k": 1}
    system = {"_SEQUENCE_NUMBER": 2147483646, "_VALUE_KIND": 2147483645}
    keys = {"_KEY_k": 1073741823 + 2, "_KEY_k2": 1073741823 + 1}
    values = {"v": 0, "k2": 1, "k": 2}
    for kind in ("parquet", "orc", "avro"):
        for thin in ("false", "true"):
            table = KeyedTable(
                str(tmp_path / f"{kind} {thin}"),
                columns,
                ["k", "k2"],
                {"bucket": "1", "file.format": kind, "data-file.thin-mode": thin},
            )
            [entry] = table.write([row])
            path = table.layout.data_file(0, entry.file.file_name)
            ids = {**(keys if thin == "false" else {}), **system, **values}
            case = f"{kind}, thin mode {thin}"
            if kind == "avro":  # which has no field ids
                schema, _, _ = avro(path)
                assert [column["name"] for column in schema["fields"]] == [*ids], case
                continue
            by_parquet = kind == "parquet"
            arrow = pq.read_schema(path) if by_parquet else orc.ORCFile(path).schema
            name = b"PARQUET:field_id" if by_parquet else b"paimon.id"
            found = {column.name: int(column.metadata[name]) for column in arrow}
            assert list(found.items()) == list(ids.items()), case
            element = arrow.field("v").type.value_field
            assert int(element.metadata[name]) == 536870911 + 1, case
            if by_parquet:
                nullable = {column.name: column.nullable for column in arrow}
                assert [c for c in nullable if nullable[c]] == ["v"], (
                    "keys and numbers are required"
                )


def test_nested_columns_have_the_field_ids_that_follow_from_their_own(tmp_path):
    columns = (
        ("m", "MAP<STRING, ARRAY<INT>>"),
        ("r", "ROW<x INT, y ARRAY<INT>>"),
        ("s", "MULTISET<STRING>"),
        ("v", "VARIANT"),
    )
    item, key = 536870911, 536870911
    for kind in ("parquet", "orc"):
        held = columns if kind == "parquet" else columns[:2]  # ORC holds no MULTISET or VARIANT
        table = new_table(tmp_path / kind, *held, file__format=kind)
        table.write(table.schema.arrow_schema().empty_table())
        with table.new_writer() as writer:
            rows = [{"m": [("a", [1])], "r": {"x": 1, "y": [1]}}]
            writer.write(pa.Table.from_pylist(rows, schema=table.schema.arrow_schema()))
            table.commit(writer.prepare())
        [entry] = live(table)
        path = table._handle.layout.data_file(0, entry.file.file_name)
        found = pq.read_schema(path) if kind == "parquet" else orc.ORCFile(path).schema
        name = b"PARQUET:field_id" if kind == "parquet" else b"paimon.id"

        def field_id(field: pa.Field, name: bytes = name) -> int:
            return int(field.metadata[name])

        ids = {field.name: field.id for field in table.schema.fields}
        assert {field.name: field_id(field) for field in found} == ids, kind
        by_map, by_row = found.field("m").type, found.field("r").type
        assert field_id(by_map.key_field) == key - 1024 * ids["m"] - 1, kind
        assert field_id(by_map.item_field) == item + 1024 * ids["m"] + 1, kind
        deeper = by_map.item_type.value_field
        assert field_id(deeper) == item + 1024 * ids["m"] + 2, "one level deeper"
        [row] = [field.type for field in table.schema.fields if field.name == "r"]
        inside = {field.name: field.id for field in row.fields}
        assert {f.name: field_id(f) for f in by_row} == inside, kind
        of_list = by_row.field("y").type.value_field
        assert field_id(of_list) == item + 1024 * inside["y"] + 1, "ids restart inside a ROW"
        if kind == "parquet":
            by_multiset = found.field("s").type
            assert field_id(by_multiset.key_field) == key - 1024 * ids["s"] - 1
            assert field_id(by_multiset.item_field) == item + 1024 * ids["s"] + 1


def test_statistics_follow_their_modes_and_say_which_columns_they_cover(tmp_path):
    columns = (("s", "STRING"), ("b", "BYTES"), ("n", "INT"), ("a", "ARRAY<INT>"))
    text = "中文abcdefghijklmnopqrst"
    rows = {
        "s": ["abcdefghijklmnopqrstuvwxyz", text, None],
        "b": [b"\x01" + b"\xff" * 19, b"\xff" * 20, None],
        "n": [3, None, None],
        "a": [[1], None, []],
    }
    exact = (ColumnStatistics(*sorted(rows["s"][:2]), 1), ColumnStatistics(*rows["b"][:2], 1))
    cut = ColumnStatistics("abcdefghijklmnop", "中文abcdefghijklmo", 1)
    number, nothing = ColumnStatistics(3, 3, 2), ColumnStatistics()
    no_upper = ColumnStatistics(None, None, 1)  # of all 0xff: both bounds are dropped

    def counted(*counts: int) -> list[ColumnStatistics]:
        return [ColumnStatistics(null_count=count) for count in counts]

    three = ("s", "b", "n")
    cases: list[tuple[dict[str, str], list[ColumnStatistics], tuple[str, ...] | None]] = [
        ({}, [cut, no_upper, number, nothing], three),
        ({"metadata__stats_mode": "full"}, [*exact, number, nothing], three),
        ({"metadata__stats_mode": "counts"}, [*counted(1, 1, 2), nothing], three),
        ({"metadata__stats_mode": "none"}, [nothing] * 4, ()),
        ({"fields__b__stats_mode": "none"}, [cut, nothing, number, nothing], ("s", "n")),
        ({"metadata__stats_keep_first_n_columns": "1"}, [cut, *[nothing] * 3], ("s",)),
        ({"metadata__stats_dense_store": "false"}, [cut, no_upper, number, nothing], None),
    ]
    each = ((kind, *case) for kind in ("parquet", "orc", "avro") for case in cases)
    for position, (kind, options, expected, covered) in enumerate(each):
        table = new_table(tmp_path / str(position), *columns, file__format=kind, **options)
        table.write(pa.table(rows, schema=table.schema.arrow_schema()))
        [entry] = live(table)
        fields = table.schema.fields
        if kind != "parquet" and (covered is None or "n" in covered):
            # Only Parquet has nothing to say about a nested column: others count its nulls.
            expected = [*expected[:-1], *counted(1)]
            covered = None if covered in (None, three) else (*covered, "a")
        if kind == "orc" and expected[1].null_count is not None:
            expected = [expected[0], *counted(1), *expected[2:]]  # ORC has no bounds of bytes
        case = f"{options} in {kind}"
        assert file_statistics(entry.file, fields, fields) == expected, case
        assert entry.file.value_stats_cols == covered, case
        if covered == ():
            assert entry.file.value_stats == EMPTY_STATS
    table = new_table(tmp_path / "all", *columns[:3])
    table.write(pa.table({name: rows[name] for name in three}))
    assert live(table)[0].file.value_stats_cols is None, "null when every column is covered"


def test_index_files_have_big_endian_hashes_once_and_vectors_where_the_ranges_say():
    int_type = parse_type("INT")
    hashes = row_hashes([pa.array([1, 2, 3], pa.int32())], [int_type])
    assert encode_hash_index(hashes).hex(" ", 4) == "5759f99e 4fe4bbf0 d206e547"
    with pytest.raises(lake.InvalidRequestError):
        encode_hash_index(np.array([1, 2, 1], np.int32))
    newer, elsewhere = replace(HASHES, file_name="newer"), replace(HASHES, bucket=2)
    assert combine([HASHES, elsewhere], added=[newer]) == [elsewhere, newer], "one per bucket"
    with pytest.raises(lake.InvalidRequestError):
        combine([], added=[HASHES, newer])

    rows = {"a": {1, 3}, "b": set(range(100, 9_000)), "c": {0, 2**16, 2**31 - 1}}
    vectors = {name: DeletionVector.of(deleted) for name, deleted in rows.items()}
    for form in VectorForm:
        content, ranges = encode_deletion_vectors(vectors, form)
        wide = form is VectorForm.BITMAP64
        assert content[0] == 1, "the version of the file"
        offset = 1
        for found, (name, deleted) in zip(ranges, rows.items(), strict=True):
            assert (found.data_file_name, found.offset) == (name, offset)
            (length,) = struct.unpack_from(">i", content, offset)
            body = content[offset + 4 : offset + 4 + length]
            assert body[:4].hex() == ("d1d33964" if wide else "5e43f2d0")
            (crc,) = struct.unpack_from(">I", content, offset + 4 + length)
            assert crc == zlib.crc32(body)
            assert found.length == (length + 8 if wide else length), form
            assert found.cardinality == len(deleted)
            offset += length + 8
        assert offset == len(content), "and nothing more"
        [example, _, _] = ranges
        assert (example.offset, example.length) == (1, 44 if wide else 24)
