"""Tables for tests, with a primary key or without: rows are written and read as tuples."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

import lakeformat as lake
from lakeformat.environment import Environment
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot
from lakeformat.paimon.metadata.tag import Tag, create_tag
from lakeformat.storage import open_storage
from tests.crash.simulated import Clock

__all__ = ["KeyedRows", "listed"]

_warehouses = itertools.count()
MINUTE = 60_000


class KeyedRows:
    """A table of ``k`` and ``v`` with the key ``k``, or an append table of the same columns."""

    def __init__(
        self,
        options: Mapping[str, str] | None = None,
        *,
        keyed: bool = True,
        partitioned: bool = False,
        warehouse: str | None = None,
        began: int = 0,
    ) -> None:
        self.clock = Clock(began)
        self.catalog = lake.open_catalog(
            warehouse or f"memory://keyed-{next(_warehouses)}/wh",
            environment=Environment(now_millis=self.clock),
        )
        self.catalog.create_database("shop")
        columns = [("p", "STRING NOT NULL")] if partitioned else []
        partitions = ["p"] if partitioned else []
        self.table = self.catalog.create_table(
            "shop.t",
            [*columns, ("k", "INT"), ("v", "STRING")],
            primary_key=[*partitions, "k"] if keyed else [],
            partition_by=partitions,
            options={"bucket": "1" if keyed else "-1", **(options or {})},
        )

    def commit(self, *rows: Sequence[Any], watermark: int | None = None) -> int:
        """Rows are kind, then values; the number of the snapshot they made."""
        self.clock.millis += MINUTE
        names = self.table.schema.column_names
        columns = dict(zip(names, zip(*(row[1:] for row in rows), strict=True), strict=True))
        data = pa.table(
            {
                name: pa.array(values, pa.int32() if name == "k" else pa.string())
                for name, values in columns.items()
            }
        )
        kinds = [row[0] for row in rows] if self.table.schema.primary_keys else None
        self.table.write(data, kinds, watermark=watermark)
        snapshot = self.table.latest_snapshot()
        assert snapshot is not None
        return snapshot.id

    @property
    def place(self) -> tuple[Any, TableLayout]:
        """Storage and layout."""
        storage, root = open_storage(self.table.location)
        return storage, TableLayout(root)

    def tag(self, name: str, snapshot_id: int) -> None:
        storage, layout = self.place
        assert create_tag(storage, layout, Tag(name, read_snapshot(storage, layout, snapshot_id)))

    def expire(self, snapshot_id: int) -> None:
        """Delete the file of a snapshot, which is the last step of an expiry."""
        storage, layout = self.place
        storage.delete(layout.snapshot(snapshot_id))


def listed(rows: Any) -> list[tuple]:
    """Rows as tuples, in the order they come."""
    table = rows.to_arrow()
    assert table.schema == rows.schema
    return [tuple(row.values()) for row in table.to_pylist()]
