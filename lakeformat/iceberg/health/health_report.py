# SPDX-License-Identifier: Apache-2.0
"""The report of ``table.health()`` for an Iceberg table."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.tables.health.health_summary import HealthSummary
from lakeformat.tables.health.numbers import HistoryNumbers, StorageNumbers

__all__ = [
    "DataFileFacts",
    "DeleteFacts",
    "HistoryFacts",
    "IcebergHealthReport",
    "ManifestFacts",
    "PartitionFacts",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFacts:
    """One partition of one partition spec."""

    partition: str
    """``dt=2024-01-31/shop=a``; empty without partition columns."""
    spec_id: int
    files: int
    bytes: int
    rows: int
    """Rows in data files, including deleted ones."""
    small_files: int
    files_with_deletes: int
    delete_files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFileFacts:
    """The data files of the newest snapshot."""

    files: int = 0
    rows: int = 0
    """Rows in files, including deleted ones."""
    partitions: int = 0
    """Partitions that have data files; those of two partition specs differ."""
    target_file_size: int
    """``write.target-file-size-bytes``."""
    small_files: int = 0
    """Smaller than 0.75 of the target size, as ``rewrite_data_files`` counts them."""
    small_bytes: int = 0
    partitions_due: int = 0
    """Partitions that ``rewrite_data_files`` would rewrite because of the sizes of their files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFacts:
    """Delete files of the newest snapshot, and the data files that they apply to."""

    position_delete_files: int = 0
    deletion_vectors: int = 0
    equality_delete_files: int = 0
    hidden_rows: int = 0
    """Positions in position deletes and deletion vectors that apply to a data file."""
    equality_keys: int = 0
    """Keys in equality deletes that apply to a data file; a key deletes any number of rows."""
    ratio: float = 0.0
    """The share of the hidden rows in all rows of the files."""
    files_with_deletes: int = 0
    """Data files that a delete file applies to, by its partition and sequence number."""
    files_over_limit: int = 0
    """Data files with at least 0.3 of their rows hidden."""
    dangling_files: int = 0
    """Delete files that apply to no data file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFacts:
    """The manifests of the newest snapshot."""

    data_manifests: int = 0
    delete_manifests: int = 0
    bytes: int = 0
    small_manifests: int = 0
    """Smaller than half of ``commit.manifest.target-size-bytes``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFacts(HistoryNumbers):
    """The snapshots of all branches and tags, and the metadata files that the table keeps."""

    overdue: int = 0
    """Snapshots that an expiry by the table's own properties would remove now."""
    metadata_files: int | None = None
    """Files of table metadata in the directory; None without ``time_travel``."""
    logged_metadata_files: int = 0
    """The newest metadata file, and earlier ones that its log names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergHealthReport(HealthSummary):
    """The health of an Iceberg table at the newest snapshot of its branch."""

    files: DataFileFacts
    worst_partitions: tuple[PartitionFacts, ...]
    """The most urgent partitions, not all."""
    deletes: DeleteFacts
    manifests: ManifestFacts
    snapshots: HistoryFacts
    storage: StorageNumbers
    notes: tuple[str, ...] = ()
    """Properties that are ignored or forbid an operation; not in the verdict."""
