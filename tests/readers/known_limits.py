"""The tables that a reader cannot read, with the reason that the summary of a run prints.

A reader that reads such a table after all fails the tests until its limit is deleted here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc
import pytest

import lakeformat as lake
from tests.json_process import PeerError
from tests.readers.readers import Reader

__all__ = ["OTHER_VALUES", "check_rows", "refusal"]

OTHER_VALUES = {
    "ClickHouse": {
        "at": "ClickHouse returns times as numbers of seconds",
        "tags": "ClickHouse reads NULL lists as empty ones",
        "counts": "ClickHouse reads NULL maps as empty ones",
        "inner": "ClickHouse reads NULL structs as structs of NULLs",
    },
}
"""Columns of ``tests.interop.test_iceberg_reader`` in which a reader has other values."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of a reader."""

    reader: str
    reason: str
    error: str
    """A part of the reader's error; empty if it has other rows, without an error."""
    applies: Callable[[lake.IcebergTable], bool]
    """True if the newest snapshot of a table is beyond the limit."""


def has_deletion_vectors(table: lake.IcebergTable) -> bool:
    return "PUFFIN" in table.system_table("files").scan().to_arrow()["file_format"].to_pylist()


def specs_of_equality_deletes(table: lake.IcebergTable) -> list[int]:
    files = table.system_table("files").scan().to_arrow()
    found: list[int] = files.filter(pc.equal(files["content"], 2))["spec_id"].to_pylist()
    return found


def has_global_equality_deletes(table: lake.IcebergTable) -> bool:
    """True of the golden table: its first spec has no partitions."""
    return 0 in specs_of_equality_deletes(table)


def keeps_a_null_key(table: lake.IcebergTable) -> bool:
    rows = table.scan(["id"]).to_arrow()
    return bool(specs_of_equality_deletes(table)) and bool(rows["id"].null_count)


def has_uuid_partitions(table: lake.IcebergTable) -> bool:
    return "u" in table.partition_by


def has_nanoseconds_of_paimon(table: lake.IcebergTable) -> bool:
    """True of a published table with nanoseconds: files of Paimon hold them as INT96."""
    metadata = table._loaded().metadata
    snapshot = metadata.current_snapshot
    is_published = snapshot is not None and "paimon-commit-identity" in snapshot.summary
    return is_published and any(str(each.type).endswith("_ns") for each in metadata.schema.fields)


LIMITS = [
    Limit(
        "PyIceberg",
        "PyIceberg reads no equality deletes",
        "PyIceberg does not yet support equality deletes",
        lambda table: bool(specs_of_equality_deletes(table)),
    ),
    Limit(
        "DuckDB",
        "DuckDB drops rows whose key is NULL if any equality delete applies to them",
        "",
        keeps_a_null_key,
    ),
    Limit(
        "ClickHouse",
        "ClickHouse ignores equality deletes of all partitions",
        "",
        has_global_equality_deletes,
    ),
    Limit(
        "ClickHouse",
        "ClickHouse reads no deletion vectors",
        "Position deletes are supported only for parquet format",
        has_deletion_vectors,
    ),
    Limit(
        "ClickHouse",
        "ClickHouse reads no manifests with UUIDs as partition values",
        "Cannot parse uuid",
        has_uuid_partitions,
    ),
    Limit(
        "DuckDB",
        "DuckDB cuts nanoseconds that files hold as INT96 to microseconds",
        "",
        has_nanoseconds_of_paimon,
    ),
    Limit(
        "Iceberg-Rust",
        "Iceberg-Rust reads no manifests with UUIDs as partition values",
        "Failed to convert &str to UUID",
        has_uuid_partitions,
    ),
]


def check_rows(reader: Reader, table: lake.IcebergTable, expected: list[tuple[Any, ...]]) -> str:
    """Check that a reader has the expected rows, or return the reason for its known limit."""
    if reason := refusal(reader, table):
        return reason
    limit = _limit(reader, table)
    found = reader.read(table)
    if limit is None:
        assert found == expected
        return ""
    assert found != expected, f"no longer true: {limit.reason}"
    return limit.reason


def refusal(reader: Reader, table: lake.IcebergTable) -> str:
    """Check that a reader refuses a table with its known error; return the reason, or nothing for
    a table that it reads.
    """
    limit = _limit(reader, table)
    if limit is None or not limit.error:
        return ""
    with pytest.raises((PeerError, ValueError), match=limit.error):
        reader.read_arrow(table)
    return limit.reason


def _limit(reader: Reader, table: lake.IcebergTable) -> Limit | None:
    return next(
        (each for each in LIMITS if each.reader == reader.name and each.applies(table)), None
    )
