# SPDX-License-Identifier: Apache-2.0
"""Finds system tables by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.system_tables.files import entries, files, partitions
from lakeformat.iceberg.system_tables.history import (
    history,
    metadata_log_entries,
    references,
    snapshots,
)
from lakeformat.iceberg.system_tables.manifests import manifests
from lakeformat.types.closest import closest
from lakeformat.types.type_rules import require_text

__all__ = ["SYSTEM_TABLES", "SystemTableDeclaration", "find_system_table"]


@dataclass(frozen=True, slots=True)
class SystemTableDeclaration:
    """The declaration of one system table."""

    name: str
    of_snapshot: bool
    """True if the system table describes a single snapshot, which a call may choose."""
    rows: Callable[[LoadedMetadata, Snapshot | None], pa.Table]


def _of_table(
    name: str, rows: Callable[[LoadedMetadata], pa.Table]
) -> tuple[str, SystemTableDeclaration]:
    return name, SystemTableDeclaration(name, False, lambda loaded, _: rows(loaded))


def _of_snapshot(
    name: str, rows: Callable[[LoadedMetadata, Snapshot | None], pa.Table]
) -> tuple[str, SystemTableDeclaration]:
    return name, SystemTableDeclaration(name, True, rows)


SYSTEM_TABLES = dict(
    [
        _of_snapshot("entries", entries),
        _of_snapshot("files", files),
        _of_table("history", history),
        _of_snapshot("manifests", manifests),
        _of_table("metadata_log_entries", metadata_log_entries),
        _of_snapshot("partitions", partitions),
        _of_table("refs", references),
        _of_table("snapshots", snapshots),
    ]
)


def find_system_table(name: str) -> SystemTableDeclaration:
    """Return the declaration of a system table; upper and lower case are equal.

    Raise ``InvalidRequestError``, with the nearest name, for an unknown name.
    """
    require_text("the name of a system table", name)
    found = SYSTEM_TABLES.get(name.lower())
    if found is None:
        there = ", ".join(f"${known}" for known in SYSTEM_TABLES)
        raise InvalidRequestError(
            f"there is no system table ${name} of Iceberg tables; the system tables are {there}"
            f"{closest(name.lower(), SYSTEM_TABLES)}"
        )
    return found
