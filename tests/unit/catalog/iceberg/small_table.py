"""A small Iceberg table for catalogs to point to."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from tests.unit.iceberg.made_table import MadeTable


def make_small_table(root: Path, ids: tuple[int, ...] = (1, 2), **members: object) -> str:
    """Write a table with a column ``id`` at a place; return the address of its metadata file."""
    made = MadeTable(root, {(1, "id"): "long"}, **members)
    rows = pa.array(ids, pa.int64())
    address = made.write("data.parquet", id=(1, rows))
    made.manifest({"file_path": address, "record_count": len(ids)})
    made.commit()
    return f"{made.location}/metadata/v1.metadata.json"


def ids_of(table: object) -> list[int]:
    """Return the ids of the rows of a table."""
    return sorted(table.scan().to_arrow().column("id").to_pylist())
