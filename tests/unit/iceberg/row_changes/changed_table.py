"""Tables whose rows are changed, in every version and by every method."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.metadata.manifest import DATA, DELETED
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.storage import Storage
from tests.unit.iceberg.write.made_tables import entries_of, made_table

__all__ = ["LINEAGE", "METHODS", "changed_table", "live_files", "pairs_of", "rows"]

COPY = "copy-on-write"
MERGE = "merge-on-read"
METHODS = pytest.mark.parametrize(
    ("version", "mode"), [(1, MERGE), (2, COPY), (2, MERGE), (3, COPY), (3, MERGE)]
)
LINEAGE = ["id", "_row_id", "_last_updated_sequence_number"]


def rows(*ids: int, k: str | None = None) -> pa.Table:
    """Rows whose ``k`` follows from the id, unless it is given."""
    texts = [f"k{each % 2}" if k is None else k for each in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "k": pa.array(texts, pa.string())})


def changed_table(storage: Storage, version: int, mode: str, **more: Any) -> TableHandle:
    """Two files of five rows each: 0 to 4, and 5 to 9."""
    modes = {f"write_{each}_mode": mode for each in ("delete", "update", "merge")}
    handle = made_table(storage, version, **modes, **more)
    for first in (0, 5):
        IcebergTable(handle).write(rows(*range(first, first + 5)))
    return handle


def pairs_of(handle: TableHandle, columns: list[str] | None = None) -> list[tuple[Any, ...]]:
    """The rows as tuples, by id."""
    found = IcebergTable(handle).scan(columns).to_arrow().sort_by("id")
    return [tuple(row.values()) for row in found.to_pylist()]


def live_files(handle: TableHandle, content: int = DATA) -> list[dict[str, Any]]:
    """The entries of live data files, or of live deletes by position."""
    live = [each for each in entries_of(handle) if each["status"] != DELETED]
    return [each for each in live if each["content"] == content]
