"""PyIceberg reads the rows that were added to Iceberg tables: every type, every transform."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

import lakeformat as lake
from lakeformat.environment import SYSTEM
from lakeformat.iceberg.compact import copies
from lakeformat.iceberg.create.new_table import new_table_metadata
from lakeformat.iceberg.metadata.metadata_json import encode_metadata

COLUMNS = {
    "id": pa.int64(),
    "flag": pa.bool_(),
    "i": pa.int32(),
    "f": pa.float32(),
    "d": pa.float64(),
    "short": pa.decimal128(9, 2),
    "long": pa.decimal128(18, 4),
    "wide": pa.decimal128(38, 10),
    "s": pa.string(),
    "raw": pa.binary(),
    "day": pa.date32(),
    "at": pa.time64("us"),
    "ts": pa.timestamp("us"),
    "tz": pa.timestamp("us", "UTC"),
    "u": pa.uuid(),
    "fixed": pa.binary(4),
    "tags": pa.list_(pa.string()),
    "counts": pa.map_(pa.string(), pa.int64()),
    "inner": pa.struct([("x", pa.int32()), ("y", pa.string())]),
}
PARTITIONS = {
    "none": [],
    "identity": ["s"],
    "numbers": ["flag", "i", "day"],
    "rare": ["short", "u", "tz", "f"],
    "bucket": ["bucket(4, id)", "bucket(3, s)", "bucket(5, u)"],
    "truncate": ["truncate(3, s)", "truncate(10, i)", "truncate(5, short)"],
    "year": ["year(ts)"],
    "month": ["month(day)"],
    "day": ["day(tz)"],
    "hour": ["hour(ts)"],
}
FILTERS = {
    "id == 7": [7],
    "s is not null and id < 6 and ts > '1960-01-01T00:00:00'": [0, 1, 2, 3, 5],
}
GIVEN = pa.schema(
    [(name, pa.binary(16) if name == "u" else kind) for name, kind in COLUMNS.items()]
)


def row(number: int) -> dict[str, Any]:
    """A row with values on both sides of zero and of 1970; each fifth has nothing but its id."""
    if number % 5 == 4:
        return {"id": number}
    moment = datetime(1970, 1, 2, 5, 6, 7, 123456) - timedelta(hours=number * 31)
    return {
        "id": number,
        "flag": number % 2 == 0,
        "i": -number,
        "f": number / 4,
        "d": -number * 1.5,
        "short": Decimal(number) / 100,
        "long": Decimal(-number) / 10_000,
        "wide": Decimal(10**20 + number),
        "s": "é" * number + "x",
        "raw": bytes([number] * 3),
        "day": date(1970, 1, 20) - timedelta(days=number * 17),
        "at": time(number % 24, 1, 2),
        "ts": moment,
        "tz": moment.replace(tzinfo=UTC),
        "u": (number << 100).to_bytes(16, "big"),
        "fixed": bytes([number] * 4),
        "tags": ["a", None],
        "counts": [("k", number)],
        "inner": {"x": number, "y": None},
    }


def make_table(place: Path, version: int, partition: list[str]) -> None:
    """A table of four commits, the last of which merges their manifests."""
    metadata = new_table_metadata(
        f"file://{place}",
        pa.schema(COLUMNS.items()),
        partitioned_by=partition,
        sorted_by=["id"],
        properties={"commit.manifest.min-count-to-merge": "4"},
        format_version=version,
        environment=SYSTEM,
    )
    (place / "metadata").mkdir()
    (place / "metadata/v1.metadata.json").write_bytes(encode_metadata(metadata))
    table = lake.open_table(str(place))
    for commit in range(4):
        rows = [row(commit * 5 + number) for number in range(5)]
        table.write(pa.Table.from_pylist(rows, GIVEN))
    assert table.system_table("manifests").scan().count() == 1


def check_rows(newest: Path) -> None:
    """Read the rows with PyIceberg, all of them and those of some conditions."""
    table = StaticTable.from_metadata(str(newest))
    found = table.scan().to_arrow().sort_by("id")
    expected = pa.Table.from_pylist([row(number) for number in range(20)], GIVEN)
    for column in COLUMNS:
        theirs = [getattr(each, "bytes", each) for each in found[column].to_pylist()]
        assert theirs == expected[column].to_pylist(), column
    for condition, ids in FILTERS.items():
        rows = table.scan(row_filter=condition).to_arrow()
        assert sorted(rows["id"].to_pylist()) == ids


@pytest.mark.parametrize("name", PARTITIONS)
@pytest.mark.parametrize("version", [2, 3])
def test_all_rows_are_read_and_filters_find_theirs(tmp_path, version, name):
    make_table(tmp_path, version, PARTITIONS[name])
    check_rows(tmp_path / "metadata" / "v5.metadata.json")


def test_row_groups_that_a_compaction_copied_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(copies, "_LEAST_GROUP_BYTES", 1)
    make_table(tmp_path, 2, [])
    written = {*tmp_path.glob("data/*.parquet")}
    lake.open_table(str(tmp_path)).compact(strategy="full")
    [copied] = {*tmp_path.glob("data/*.parquet")} - written
    assert pq.read_metadata(copied).num_row_groups == len(written) == 4
    check_rows(tmp_path / "metadata" / "v6.metadata.json")
