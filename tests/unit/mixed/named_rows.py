"""A Mixed table of names by id, and the example of the design up to the commit of its batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import lakeformat as lake

__all__ = [
    "IMPORTED",
    "contents",
    "file_count",
    "names",
    "new_catalog",
    "new_table",
    "optimized",
    "up_to_the_begin",
]

NAMES = pa.schema([("id", pa.int64()), ("name", pa.string())])
IMPORTED = {"_1": "join-fixed", "_2": "AMY", "_9": "zed"}
"""The rows of the batch of the example."""


def new_catalog(root: Path) -> lake.IcebergCatalog:
    catalog = lake.open_catalog(str(root), format="iceberg")
    catalog.create_database("db")
    return catalog


def new_table(catalog: lake.IcebergCatalog) -> lake.MixedTable:
    made = catalog.create_table("db.t", NAMES, format="mixed", primary_key=["id"])
    assert isinstance(made, lake.MixedTable)
    return made


def names(**given: str | None) -> pa.Table:
    """Rows by id: ``names(_1="amy")``."""
    ids = [int(each[1:]) for each in given]
    return pa.table([ids, pa.array(given.values(), pa.string())], schema=NAMES)


def contents(table: Any, **how: Any) -> dict[int, str]:
    found = table.scan(["id", "name"], **how).to_arrow().to_pydict()
    assert len({*found["id"]}) == len(found["id"]), found
    return dict(zip(found["id"], found["name"], strict=True))


def optimized(table: lake.MixedTable) -> dict[str, int]:
    return {**table.scan()._state.merged.sequences}


def file_count(table: lake.MixedTable) -> int:
    root = Path(table.location.removeprefix("file://")).parent
    return sum("_lake" not in path.parts for path in root.rglob("*.parquet"))


def up_to_the_begin(table: lake.MixedTable) -> Any:
    """T1 to T4: the batch begins at T2, and the stream writes further rows."""
    table.write(names(_1="join", _2="amy"))
    batch = table.begin()
    table.write(names(_1="john"))
    table.write(names(_3="bob"))
    assert batch.transaction == 2
    assert contents(batch) == {1: "join", 2: "amy"}
    assert contents(table) == {1: "john", 2: "amy", 3: "bob"}
    return batch
