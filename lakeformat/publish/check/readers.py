# SPDX-License-Identifier: Apache-2.0
"""The Iceberg readers that this Python environment may have; none of them is required."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module, resources
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.publish.format_version import HAS_ROW_IDS

__all__ = ["READERS", "Reader", "ReaderLimit"]

_LOCAL = "file"


@dataclass(frozen=True, slots=True)
class ReaderLimit:
    """Tables that a reader cannot read correctly: a limit of the reader, not of the publication."""

    reason: str
    """The limit and the remedy, as a sentence without a full stop."""
    applies: Callable[[TableMetadata], bool]
    error: str = ""
    """A part of the reader's error message; empty if the reader returns wrong rows without an
    error.
    """


@dataclass(frozen=True, slots=True)
class Reader:
    """An Iceberg reader: its packages, and a function that returns all rows of a table."""

    name: str
    packages: tuple[str, ...]
    read: Callable[[LoadedMetadata], Iterable[pa.RecordBatch]]
    needs_local_files: bool = True
    """True if the reader is used only for tables on local disks, because it gets no credentials."""
    limits: tuple[ReaderLimit, ...] = ()

    def missing_packages(self) -> list[str]:
        """Return the packages of this reader that are not installed."""
        return [each for each in self.packages if find_spec(each) is None]

    def can_reach(self, loaded: LoadedMetadata) -> bool:
        """Return False if the reader needs local files and the table is in another storage."""
        return not self.needs_local_files or loaded.places.storage.scheme == _LOCAL

    def limit_of(self, metadata: TableMetadata, error: str = "") -> str | None:
        """Return the reason of the known limit that explains a result; None if no limit does.

        ``error`` is the error message of the reader; empty if the reader returned wrong rows
        without an error.
        """
        for each in self.limits:
            is_alike = each.error in error if each.error else not error
            if is_alike and each.applies(metadata):
                return each.reason
        return None


def _has_deletion_vectors(metadata: TableMetadata) -> bool:
    shown = metadata.current_snapshot
    counted = None if shown is None else shown.summary.get("total-delete-files")
    return metadata.format_version >= HAS_ROW_IDS and counted != "0"


def _has_nanoseconds(metadata: TableMetadata) -> bool:
    return any(str(each.type).endswith("_ns") for each in metadata.schema.fields)


def _with_pyiceberg(loaded: LoadedMetadata) -> Iterable[pa.RecordBatch]:
    from lakeformat.publish.check.pyiceberg_files import pyiceberg_table

    batches: Iterable[pa.RecordBatch] = pyiceberg_table(loaded).scan().to_arrow_batch_reader()
    return batches


def _with_duckdb(loaded: LoadedMetadata) -> Iterable[pa.RecordBatch]:
    duckdb: Any = import_module("duckdb")
    connection = duckdb.connect(config={"autoinstall_known_extensions": False})
    for name in ("avro", "iceberg"):
        connection.execute(f"LOAD '{_duckdb_extension(duckdb.__version__, name)}'")
    query = connection.execute("FROM iceberg_scan(?)", [loaded.metadata_file])
    found: pa.Table = query.to_arrow_table()
    batches: list[pa.RecordBatch] = found.to_batches()
    return batches


def _duckdb_extension(version: str, name: str) -> str:
    """Return the path of a DuckDB extension in an installed package.

    Without such a package, return ``name``: DuckDB then looks for the extension where it installs
    extensions itself.
    """
    package = f"duckdb_extension_{name}"
    if find_spec(package) is None:
        return name
    file = f"v{version}/{name}.duckdb_extension"
    return str(resources.files(package) / "extensions" / file)


def _with_iceberg_rust(loaded: LoadedMetadata) -> Iterable[pa.RecordBatch]:
    context: Any = import_module("datafusion").SessionContext()
    table = import_module("pyiceberg_core.datafusion").IcebergDataFusionTable
    context.register_table("t", table(["d", "t"], loaded.metadata_file, {}))
    found: pa.Table = context.table("t").to_arrow_table()
    batches: list[pa.RecordBatch] = found.to_batches()
    return batches


def _with_clickhouse(loaded: LoadedMetadata) -> Iterable[pa.RecordBatch]:
    from lakeformat.publish.check.clickhouse_process import clickhouse_rows

    return clickhouse_rows(loaded.metadata_file)


READERS = (
    Reader("PyIceberg", ("pyiceberg",), _with_pyiceberg, needs_local_files=False),
    Reader(
        "DuckDB",
        ("duckdb",),
        _with_duckdb,
        limits=(ReaderLimit("DuckDB cuts nanoseconds to microseconds", _has_nanoseconds),),
    ),
    Reader(
        "Iceberg-Rust",
        ("pyiceberg_core", "datafusion"),
        _with_iceberg_rust,
        limits=(
            ReaderLimit(
                "Iceberg-Rust reads no TIMESTAMP of 0 to 3 digits: create such columns with 6 "
                "digits, as 'iceberg.on-unpublishable' = 'rewrite' does",
                lambda _: True,
                error="Unsupported Arrow data type: Timestamp(ms)",
            ),
        ),
    ),
    Reader(
        "ClickHouse",
        ("chdb",),
        _with_clickhouse,
        limits=(
            ReaderLimit(
                "ClickHouse reads no deletion vectors: publish the table in format version 2 for "
                "it",
                _has_deletion_vectors,
                error="Position deletes are supported only for",
            ),
        ),
    ),
)
