"""A random history of one table, with the rows that it must have after each operation."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import lakeformat as lake

__all__ = ["OPERATIONS", "History"]

COLUMNS = {
    "id": pa.int64(),
    "g": pa.int32(),
    "v": pa.string(),
    "price": pa.decimal128(9, 2),
    "at": pa.timestamp("us"),
    "tags": pa.list_(pa.string()),
}
DDL = [
    ("id", "BIGINT NOT NULL"),
    ("g", "INT"),
    ("v", "STRING"),
    ("price", "DECIMAL(9, 2)"),
    ("at", "TIMESTAMP(6)"),
    ("tags", "ARRAY<STRING>"),
]


class History:
    """A table that is partitioned by a bucket, and changed by one random operation at a time."""

    def __init__(self, warehouse: str, version: int, mode: str, seed: str) -> None:
        self.random = Random(seed)
        self.done: list[str] = []
        self.rows: dict[int, dict[str, Any]] = {}
        self.next_id = 0
        catalog = lake.open_catalog(warehouse, format="iceberg")
        catalog.create_database("shop")
        modes = {f"write.{each}.mode": mode for each in ("delete", "update", "merge")}
        granularity = self.random.choice(["file", "partition"])
        self.table: lake.IcebergTable = catalog.create_table(
            "shop.orders",
            DDL,
            partition_by=["bucket(3, g)"],
            primary_key=["id"],
            options=modes | {"write.delete.granularity": granularity},
            format_version=version,
        )

    def step(self) -> None:
        """Do one operation more; the first two append."""
        name = self.random.choice([*OPERATIONS]) if len(self.done) > 1 else "append"
        self.done.append(name)
        OPERATIONS[name](self)

    def expected(self) -> list[tuple[Any, ...]]:
        """All rows, in the order of ``rows_of``."""
        return sorted((tuple(row.values()) for row in self.rows.values()), key=repr)

    def new_rows(self, ids: list[int], prefix: str) -> pa.Table:
        """Rows with these ids, that are in the model from now on; some values are NULL."""
        found = [row(each, prefix) for each in ids]
        self.rows |= {each["id"]: each for each in found}
        self.next_id = max(self.next_id, *(each + 1 for each in ids))
        return pa.Table.from_pylist(found, pa.schema(COLUMNS.items()))

    def some_ids(self) -> tuple[int, int]:
        """A range of ids, with its end."""
        first = self.random.randrange(self.next_id)
        return first, first + self.random.randint(1, 30)


def row(id: int, prefix: str) -> dict[str, Any]:
    return {
        "id": id,
        "g": id % 7 or None,
        "v": f"{prefix}{id}" if id % 5 else None,
        "price": Decimal(-id) / 100,
        "at": datetime(1969, 12, 31) + timedelta(hours=id, microseconds=id),
        "tags": [str(id), "é"],
    }


def append(history: History) -> None:
    first = history.next_id
    ids = [*range(first, first + history.random.randint(1, 60))]
    history.table.write(history.new_rows(ids, "v"))


def delete(history: History) -> None:
    first, end = history.some_ids()
    history.table.delete(f"id >= {first} and id < {end}")
    history.rows = {id: row for id, row in history.rows.items() if not first <= id < end}


def update(history: History) -> None:
    first, end = history.some_ids()
    history.table.update(
        f"id >= {first} and id < {end}",
        {"v": lambda rows: pc.binary_join_element_wise(rows["v"], "u", "")},
    )
    for id, row in history.rows.items():
        if first <= id < end and row["v"] is not None:
            row["v"] += "u"


def upsert(history: History) -> None:
    ids = sorted(history.random.sample(range(history.next_id + 20), 12))
    history.table.upsert(history.new_rows(ids, "p"))


OPERATIONS: dict[str, Callable[[History], Any]] = {
    "append": append,
    "delete": delete,
    "update": update,
    "upsert": upsert,
    "compact full": lambda history: history.table.compact(strategy="full"),
    "compact sorted": lambda history: history.table.compact(strategy="full", order_by=["v"]),
    "compact manifests": lambda history: history.table.compact_manifests(),
    "compact deletes": lambda history: history.table.compact_deletes(),
    "analyze": lambda history: history.table.analyze(),
    "expire": lambda history: history.table.expire_snapshots(older_than="0 s", retain_min=1),
}
