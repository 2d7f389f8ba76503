"""ANALYZE: what is counted, how it is written, and who inherits it."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.paimon.analyze.column import ColumnSummary
from lakeformat.paimon.analyze.distinct import DistinctCount
from lakeformat.paimon.metadata.statistics import ColumnStatistics, read_statistics
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import DataField

EVERY_TYPE = [
    ("flag", "BOOLEAN", pa.bool_(), [True, False, None], ("false", "true", 1)),
    ("tiny", "TINYINT", pa.int8(), [-1, 5, 5], ("-1", "5", 1)),
    ("small", "SMALLINT", pa.int16(), [-300, 5, 5], ("-300", "5", 2)),
    ("number", "INT", pa.int32(), [1, 2, None], ("1", "2", 4)),
    ("big", "BIGINT", pa.int64(), [1 << 60, 2, 3], ("2", str(1 << 60), 8)),
    ("real", "FLOAT", pa.float32(), [1.5, -2.0, None], ("-2.0", "1.5", 4)),
    ("double", "DOUBLE", pa.float64(), [1.5, float("nan"), 0.0], ("0.0", "NaN", 8)),
    ("price", "DECIMAL(10, 2)", pa.decimal128(10, 2), [Decimal("1.10"), None, Decimal("-3.00")],
     ("-3.00", "1.10", 8)),
    ("wide", "DECIMAL(30, 2)", pa.decimal128(30, 2), [Decimal("1.10")] * 3, ("1.10", "1.10", 16)),
    ("day", "DATE", pa.date32(), [date(2024, 1, 1), date(1969, 12, 31), None], ("-1", "19723", 4)),
    ("hour", "TIME(3)", pa.time32("ms"), [time(0, 0, 1), time(1), None], ("1000", "3600000", 4)),
    ("at", "TIMESTAMP(3)", pa.timestamp("ms"), [datetime(2024, 1, 1, 10), None, None],
     ("2024-01-01 10:00:00.000", "2024-01-01 10:00:00.000", 8)),
    ("instant", "TIMESTAMP_LTZ(6)", pa.timestamp("us", "UTC"),
     [datetime(2024, 1, 1, 10, tzinfo=UTC)] * 3,
     ("2024-01-01 10:00:00.000000", "2024-01-01 10:00:00.000000", 8)),
]  # fmt: skip


def every_type(catalog: lake.Catalog) -> lake.Table:
    columns = [(name, text) for name, text, *_ in EVERY_TYPE]
    nested = [("name", "STRING"), ("raw", "BYTES"), ("list", "ARRAY<INT>")]
    table = catalog.create_table("shop.types", [*columns, *nested])
    values = {name: pa.array(values, kind) for name, _, kind, values, _ in EVERY_TYPE}
    values["name"] = pa.array(["béé", "a", None])
    values["raw"] = pa.array([b"12345", b"", None])
    values["list"] = pa.array([[1], [2], None], pa.list_(pa.int32()))
    table.write(pa.table(values))
    return table


def test_every_type_is_summed_up_as_java_has_it(catalog):
    report = every_type(catalog).analyze("all")
    found = report.statistics.columns
    for name, _, _, values, (low, high, size) in EVERY_TYPE:
        known = {str(value) for value in values if value is not None}
        assert found[name].min == low, name
        assert found[name].max == high, name
        assert (found[name].average_length, found[name].max_length) == (size, size), name
        assert found[name].null_count == values.count(None), name
        assert found[name].distinct_count == len(known), name
    assert found["name"] == ColumnStatistics(len(EVERY_TYPE), 2, None, None, 1, 2, 3)
    assert found["raw"] == ColumnStatistics(len(EVERY_TYPE) + 1, 2, None, None, 1, 2, 5)
    assert report.skipped == ("list",)


def test_a_snapshot_of_its_own_names_the_file_and_changes_no_row(catalog):
    table = every_type(catalog)
    report = table.analyze(["number"])
    snapshot = table.latest_snapshot()
    assert (snapshot.id, snapshot.commit_kind) == (2, lake.CommitKind.ANALYZE)
    assert snapshot.total_record_count == 3
    stored = read_statistics(table._handle.storage, table._handle.layout, snapshot.statistics)
    assert stored == report.statistics
    assert (stored.snapshot_id, stored.schema_id, stored.merged_record_count) == (1, 0, 3)


def test_the_file_has_the_members_java_writes_in_its_order(catalog):
    table = every_type(catalog)
    table.analyze(["number"])
    [path] = Path(table.location.removeprefix("file://"), "statistics").iterdir()
    members = json.loads(path.read_text())
    assert list(members) == [
        "snapshotId", "schemaId", "mergedRecordCount", "mergedRecordSize", "colStats"
    ]  # fmt: skip
    assert members["colStats"] == {
        "number": {
            "colId": 3, "distinctCount": 2, "min": "1", "max": "2",
            "nullCount": 1, "avgLen": 4, "maxLen": 4,
        }
    }  # fmt: skip


def test_rows_are_counted_merged_and_their_size_in_proportion(catalog):
    table = catalog.create_table(
        "shop.keyed", [("id", "BIGINT"), ("n", "INT")], primary_key=["id"],
        options={"bucket": "1"},
    )  # fmt: skip
    for _ in range(2):
        table.write(pa.table({"id": [1, 2], "n": pa.array([1, 2], pa.int32())}))
    size = sum(table.system_table("files").scan().to_arrow()["file_size_in_bytes"].to_pylist())
    found = table.analyze().statistics
    assert (found.merged_record_count, found.merged_record_size) == (2, size * 2 // 4)
    assert found.columns == {}


def test_later_snapshots_inherit_statistics_until_the_schema_changes(catalog):
    table = every_type(catalog)
    table.analyze()
    table.write(pa.table({"number": pa.array([1], pa.int32())}))
    assert table.latest_snapshot().statistics is not None
    table = catalog.alter_table("shop.types", lake.add_column("more", "INT"))
    table.write(pa.table({"number": pa.array([1], pa.int32())}))
    assert table.latest_snapshot().statistics is None


def test_a_dry_run_counts_and_publishes_nothing(catalog):
    table = every_type(catalog)
    report = table.analyze("all", dry_run=True)
    assert report.statistics.merged_record_count == 3
    assert (report.snapshot_id, table.latest_snapshot().id) == (None, 1)


def test_the_same_identity_publishes_once(catalog):
    table, commit = every_type(catalog), lake.CommitId("job", 1)
    first = table.analyze(commit=commit)
    again = table.analyze(commit=commit)
    assert (again.snapshot_id, again.replayed) == (first.snapshot_id, True)
    assert table.latest_snapshot().id == first.snapshot_id


def test_a_table_without_a_snapshot_has_nothing_to_look_at(catalog):
    table = catalog.create_table("shop.empty", [("id", "BIGINT")])
    assert table.analyze("all").snapshot_id is None


def test_an_emptied_table_has_columns_without_values(catalog):
    table = every_type(catalog)
    table.truncate()
    found = table.analyze(["number", "name"]).statistics
    assert (found.merged_record_count, found.merged_record_size) == (0, 0)
    assert found.columns["number"] == ColumnStatistics(3, 0, None, None, 0, 4, 4)
    assert found.columns["name"] == ColumnStatistics(13, 0, None, None, 0, 0, 0)


@pytest.mark.parametrize("columns", ["number", [], ["nothing"], [1], 7])
def test_columns_that_are_none_are_refused(catalog, columns):
    with pytest.raises(
        lake.InvalidRequestError, match=r"columns must be 'all' or list some of .*name, raw"
    ):
        every_type(catalog).analyze(columns)


def test_a_nested_column_is_refused_by_name(catalog):
    with pytest.raises(lake.UnsupportedError, match="'list'"):
        every_type(catalog).analyze(["list"])


def summed(kind: str, batches: list[pa.Array]) -> ColumnStatistics:
    summary = ColumnSummary(DataField(7, "c", parse_type(kind)))
    for batch in batches:
        summary.add(batch)
    return summary.result()


@given(st.lists(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1))))
def test_batches_add_up_to_what_the_whole_column_holds(batches):
    found = summed("BIGINT", [pa.array(batch, pa.int64()) for batch in batches])
    values = [value for batch in batches for value in batch]
    known = [value for value in values if value is not None]
    assert found.null_count == len(values) - len(known)
    assert found.distinct_count == len(set(known))
    assert found.min == (str(min(known)) if known else None)
    assert found.max == (str(max(known)) if known else None)


@given(st.lists(st.lists(st.none() | st.text(max_size=9))))
def test_lengths_are_of_characters_and_a_null_counts_as_empty(batches):
    found = summed("STRING", [pa.array(batch, pa.string()) for batch in batches])
    lengths = [len(value or "") for batch in batches for value in batch]
    assert found.max_length == max(lengths, default=0)
    assert found.average_length == (-(-sum(lengths) // len(lengths)) if lengths else 0)


@settings(max_examples=12)
@given(seed=st.integers(0, 2**32), size=st.integers(1, 200_000))
@pytest.mark.parametrize("kind", ["int64", "text", "decimal"])
def test_very_many_values_are_estimated_to_a_few_in_a_hundred(kind, seed, size):
    numbers = np.random.default_rng(seed).integers(-(2**62), 2**62, size)
    column = {
        "int64": lambda: pa.array(numbers),
        "text": lambda: pa.array(numbers).cast(pa.string()),
        "decimal": lambda: pa.array(numbers).cast(pa.decimal128(38, 0)),
    }[kind]()
    counted = DistinctCount(exact_values=100)
    for start in range(0, size, 30_000):
        counted.add(column.slice(start, 30_000))
        counted.add(column.slice(start, 30_000))  # seen before, so not counted again
    assert abs(counted.count - size) <= max(0.04 * size, 3)
