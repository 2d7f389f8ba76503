"""Tables whose compactions look rows up or mark them: pypaimon reads what our compaction left."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.golden.values import assert_same_rows, rows_of
from tests.interop.peer import Peer

SCHEMA = pa.schema([pa.field("k", pa.int32(), nullable=False), pa.field("v", pa.int32())])
OPTIONS = {
    "vectors": {"deletion-vectors.enabled": "true"},
    "lookup and vectors": {"deletion-vectors.enabled": "true", "changelog-producer": "lookup"},
    "lookup": {"changelog-producer": "lookup"},
    "full-compaction": {"changelog-producer": "full-compaction"},
    "first-row": {"merge-engine": "first-row", "changelog-producer": "lookup"},
}


def rows(*changes: tuple[int, int]) -> pa.Table:
    keys, values = zip(*changes, strict=True)
    return pa.table([keys, values], schema=SCHEMA)


@pytest.mark.parametrize("case", OPTIONS)
def test_pypaimon_reads_the_rows_of_every_level(catalog: lake.Catalog, peer: Peer, case: str):
    table = catalog.create_table(
        "shop.orders", SCHEMA, primary_key=["k"], options={"bucket": "1", **OPTIONS[case]}
    )
    table.write(rows(*((key, key) for key in range(300))))
    table.compact()
    table.write(rows((5, -5), (300, 1)))
    if case != "first-row":
        table.write(rows((7, 7)), kinds=["-D"])
    table.compact(strategy="minor")
    found = rows_of(table.scan().to_arrow())
    assert len(found) == (301 if case == "first-row" else 300)
    assert_same_rows(rows_of(peer.read("shop.orders")), found)
