"""The reading half of the format's conformance checklist (section 11): rows in metadata.

Each line is a test: binary rows, statistics and partitions, of other writers and made here.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from lakeformat.files.column_statistics import NO_STATISTICS, ColumnStatistics
from lakeformat.paimon.binary_row import decode_row, encode_row, frame_row, hash_row, unframe_row
from lakeformat.paimon.datafile.file_statistics import encode_statistics, file_statistics
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.simple_stats import EMPTY_STATS
from lakeformat.paimon.partition import partition_path, partition_values
from lakeformat.paimon.read.plan import plan_columns, plan_files
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.prune import ColumnTest, Op
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import DataField
from lakeformat.types.values import values_from_arrow
from tests.golden.tables import HOW_TO_UNSKIP, GoldenTable, golden_tables
from tests.golden.values import assert_same_rows, rows_of
from tests.unit.paimon.binary_row.test_binary_row_examples import EXAMPLES, NULLS

TABLES = {table.name: table for table in golden_tables()}
needs_golden_tables = pytest.mark.skipif(not TABLES, reason=HOW_TO_UNSKIP)


def fields(*columns: tuple[int, str, str]) -> tuple[DataField, ...]:
    """Columns by id, name and type."""
    return tuple(DataField(number, name, parse_type(text)) for number, name, text in columns)


def handle_of(golden: GoldenTable) -> TableHandle:
    return lake.open_table(golden.location)._handle


def live(table: lake.Table) -> list[ManifestEntry]:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    return plan_files(table._handle, snapshot)


def rows_in(golden: GoldenTable, **scan: Any) -> list[dict[str, Any]]:
    return rows_of(lake.open_table(golden.location).scan(**scan).to_arrow())


def nested(text: str, value: Any) -> tuple[bytes, tuple[Any, ...]]:
    types = [parse_type(text)]
    row = encode_row((value,), types)
    return row, decode_row(row, types)


def test_binary_rows_of_every_worked_example_and_odd_form_are_decoded():
    assert len(EXAMPLES) >= 38, "every row of 5.7 is there"
    for example in (*EXAMPLES, *NULLS):
        arity, row = unframe_row(example.bytes)
        assert (arity, decode_row(row, example.data_types)) == (len(example.types), example.values)
        assert example.hash in (None, hash_row(row)), example
    wide = [parse_type("DECIMAL(20, 2)"), parse_type("TIMESTAMP(6)")]
    header = "0003000000000000"
    for form in (
        f"{header} 0000000018000000 0000000028000000 {'00' * 24}",  # Java keeps the room
        f"{header} 0000000000000000 0000000000000000",  # pypaimon does not
    ):
        assert decode_row(bytes.fromhex(form), wide) == (None, None), form
    for arity, width in ((56, 8), (57, 16)):
        header_bytes = bytearray(width)
        header_bytes[(arity - 1 + 8) // 8] |= 1 << ((arity - 1 + 8) % 8)
        row = bytes(header_bytes) + struct.pack(f"<{arity}q", *range(arity - 1), 0)
        types = [parse_type("BIGINT")] * arity
        assert decode_row(row, types) == (*range(arity - 1), None), f"arity {arity}"
    for text, slot in (
        ("abcdefg", "6162636465666787"),
        ("hé中é", "0800000010000000 68c3a9e4b8adc3a9"),  # 8 bytes, 4 characters
        ("abcdefgh", "0800000010000000 6162636465666768"),
    ):
        row = bytes.fromhex("0000000000000000" + slot)
        assert decode_row(row, [parse_type("STRING")]) == (text,), text
    for text, value in (
        ("DECIMAL(10, 2)", Decimal("-0.01")),
        ("DECIMAL(38, 0)", Decimal(-(10**37))),
        ("DECIMAL(20, 0)", Decimal(-128)),
        ("TIMESTAMP(3)", -1_000_000),
        ("TIMESTAMP(9)", -1),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", -86_400_000_000_001_000),
        ("ARRAY<INT>", []),
        ("MAP<INT, INT>", []),
        ("ARRAY<ARRAY<STRING>>", [[], None, ["longer than seven", None]]),
        (
            "MAP<STRING, ROW<a DECIMAL(20, 2), b ARRAY<TIMESTAMP(6)>>>",
            [("k", (None, [None, 1000]))],
        ),
        ("ROW<a ROW<b MAP<INT, ARRAY<BIGINT>>>, c STRING>", (([(1, [2, None])],), "12345678")),
    ):
        assert nested(text, value)[1] == (value,), text


@needs_golden_tables
def test_statistics_are_read_whatever_columns_they_cover_and_evolve_with_the_schema():
    old = fields((0, "a", "INT"), (1, "b", "STRING"), (2, "gone", "INT"))
    known = [ColumnStatistics(1, 5, 0), ColumnStatistics("k", "q", 2), ColumnStatistics(7, 9, 1)]
    file = DataFileMeta(
        file_name="data-u-0.parquet",
        file_size=1,
        row_count=10,
        min_sequence_number=0,
        max_sequence_number=9,
        schema_id=0,
        value_stats=encode_statistics(old, known),
    )
    assert file_statistics(file, old, old) == known, "null covers every column"
    none = replace(file, value_stats=EMPTY_STATS, value_stats_cols=())
    assert file_statistics(none, old, old) == [NO_STATISTICS] * 3, "a list of none covers none"
    partial = encode_statistics((old[2], old[0]), [known[2], known[0]])
    partly = replace(file, value_stats=partial, value_stats_cols=("gone", "a"))
    assert file_statistics(partly, old, old) == [known[0], NO_STATISTICS, known[2]]
    uncounted = replace(file, value_stats=replace(file.value_stats, null_counts=None))
    assert file_statistics(uncounted, old, old) == [
        replace(column, null_count=None) for column in known
    ], "without null counts they are not known"
    without_one = replace(file, value_stats=replace(file.value_stats, null_counts=(0, None, 1)))
    assert file_statistics(without_one, old, old)[1].null_count is None
    new = fields((3, "gone", "INT"), (1, "renamed", "STRING"), (0, "a", "BIGINT"))
    assert file_statistics(file, old, new) == [
        ColumnStatistics(None, None, 10),  # a name used again is an added column: all null
        known[1],
        known[0],
    ], "dropped, renamed and widened"
    [as_decimal] = file_statistics(file, old, fields((0, "a", "DECIMAL(12, 2)")))
    assert as_decimal == ColumnStatistics(Decimal("1.00"), Decimal("5.00"), 0)
    [as_text] = file_statistics(file, old, fields((0, "a", "STRING")))
    assert (as_text.minimum, as_text.maximum) == (None, None), "another order has no bounds"

    java = TABLES["format-java/stats_truncation"]
    [entry] = live(lake.open_table(java.location))
    columns = handle_of(java).schema.fields
    found = dict(zip(java.column_names, file_statistics(entry.file, columns, columns), strict=True))
    assert found["s"] == ColumnStatistics("abcdefghijklmnop", "中文abcdefghijklmo", 0)
    assert found["b"] == ColumnStatistics(b"\x01" + b"\xff" * 15, b"\x05", 0)
    assert found["nc"] == found["arr"] == NO_STATISTICS
    # Beyond what the maximum was cut to there may still be the value itself.
    longest = max(row["s"] for row in java.rows())
    snapshot = lake.open_table(java.location).latest_snapshot()
    for op in (Op.EQUAL, Op.GREATER_EQUAL):
        plan = plan_columns(handle_of(java), snapshot, conditions=[ColumnTest("s", op, longest)])
        assert len(plan.columns) == 1, f"s {op} the longest value"


def test_directories_of_partitions_escape_what_the_format_says_and_nothing_else():
    text = parse_type("STRING")
    fields = (DataField(0, "p", text), DataField(1, "a", parse_type("INT")))
    schema = TableSchema(0, fields, 1, ("p",))
    escaped = {chr(code) for code in range(0x20)} | set("\"#%'*/:=?\\{}[]^") | {"\x7f"}
    for code in range(0x100):
        value = f"<{chr(code)}>"
        row = frame_row(encode_row([value], [text]), 1)
        shown = f"%{code:02X}" if chr(code) in escaped else chr(code)
        assert partition_path(schema, row) == f"p=<{shown}>", hex(code)
        assert partition_values(schema, row) == (value,), hex(code)


@needs_golden_tables
def test_partition_values_come_from_the_manifest_in_both_naming_modes():
    seen: dict[str, set[Any]] = {}
    for name in (
        "format-java/partition_names_legacy_true",
        "format-java/partition_names_legacy_false",
        "format/append_partitioned",
        "format/overwritten_partition",
    ):
        golden = TABLES[name]
        handle = handle_of(golden)
        for entry in live(lake.open_table(golden.location)):
            directory = partition_path(handle.schema, entry.partition)
            path = handle.layout.data_file(entry.bucket, entry.file.file_name, directory)
            assert Path(path).is_file(), f"{name}: {directory}"
            rows = pq.read_table(path, partitioning=None)
            values = partition_values(handle.schema, entry.partition)
            for key, value in zip(handle.schema.partition_keys, values, strict=True):
                kind = next(f.type for f in handle.schema.fields if f.name == key)
                stored = set(values_from_arrow(rows[key].combine_chunks(), kind))
                assert stored == {value}, f"{name}: {key}"
                seen.setdefault(name, set()).add(repr(value))
        assert_same_rows(rows_in(golden), golden.rows())
    assert {"None", "'  '", "'a b/c=d:e%é'"} <= seen["format-java/partition_names_legacy_true"]
    both = (seen[f"format-java/partition_names_legacy_{mode}"] for mode in ("true", "false"))
    assert len(set(map(frozenset, both))) == 1, "DATE, TIME and TIMESTAMP by value, not by name"
    assert "''" in seen["format/append_partitioned"], "an empty value is not null"
    assert "None" in seen["format/append_partitioned"]
