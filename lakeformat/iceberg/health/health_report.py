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
    """Numbers about one partition of one partition spec."""

    partition: str
    """The partition as ``dt=2024-01-31/shop=a``; empty for a table without partitions."""
    spec_id: int
    files: int
    bytes: int
    rows: int
    """The number of rows in data files, including deleted rows."""
    small_files: int
    files_with_deletes: int
    delete_files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFileFacts:
    """Numbers about the data files of the newest snapshot."""

    files: int = 0
    rows: int = 0
    """The number of rows in data files, including deleted rows."""
    partitions: int = 0
    """The number of partitions with data files; partitions of two specs count separately."""
    target_file_size: int
    """The property ``write.target-file-size-bytes``, in bytes."""
    small_files: int = 0
    """The number of files below 0.75 of the target size, as ``rewrite_data_files`` counts them."""
    small_bytes: int = 0
    partitions_due: int = 0
    """The number of partitions that ``rewrite_data_files`` would rewrite because of file sizes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFacts:
    """Numbers about the delete files of the newest snapshot."""

    position_delete_files: int = 0
    deletion_vectors: int = 0
    equality_delete_files: int = 0
    hidden_rows: int = 0
    """The number of positions in position deletes and deletion vectors that apply to data files."""
    equality_keys: int = 0
    """The number of keys in equality deletes that apply; each key deletes any number of rows."""
    ratio: float = 0.0
    """The number of hidden rows, divided by the number of all rows in data files."""
    files_with_deletes: int = 0
    """The number of data files to which a delete file applies."""
    files_over_limit: int = 0
    """The number of data files with a share of deleted rows of at least 0.3. Delete files that may
    apply to several data files are ignored.
    """
    dangling_files: int = 0
    """The number of delete files that apply to no data file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFacts:
    """Numbers about the manifests of the newest snapshot."""

    data_manifests: int = 0
    delete_manifests: int = 0
    bytes: int = 0
    small_manifests: int = 0
    """The number of manifests below half of ``commit.manifest.target-size-bytes``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFacts(HistoryNumbers):
    """Numbers about the snapshots of all branches and tags, and about metadata files."""

    overdue: int = 0
    """The number of snapshots that an expiry with the table's properties would remove now."""
    metadata_files: int | None = None
    """The number of metadata files in the directory; None without ``time_travel``."""
    logged_metadata_files: int = 0
    """The number of metadata files that are needed: the newest one, and those in its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergHealthReport(HealthSummary):
    """The health of an Iceberg table at the newest snapshot of its branch."""

    files: DataFileFacts
    worst_partitions: tuple[PartitionFacts, ...]
    """The most urgent partitions, at most ten."""
    deletes: DeleteFacts
    manifests: ManifestFacts
    snapshots: HistoryFacts
    storage: StorageNumbers
    notes: tuple[str, ...] = ()
    """Notes about properties that are invalid or that forbid an operation."""
