"""Java and this library leave the rows of a compaction in the same order."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.java.iceberg.conftest import JavaIceberg
from tests.sampling import SEED

COLUMNS = {
    "id": (pa.int64(), "BIGINT"),
    "n": (pa.int32(), "INT"),
    "f": (pa.float64(), "DOUBLE"),
    "s": (pa.string(), "STRING"),
    "flag": (pa.bool_(), "BOOLEAN"),
    "day": (pa.date32(), "DATE"),
    "ts": (pa.timestamp("us"), "TIMESTAMP_NTZ"),
    "tz": (pa.timestamp("us", "UTC"), "TIMESTAMP"),
}
ROWS = 300
START = datetime(1969, 12, 1)


def rows_of(chance: Random) -> pa.Table:
    """Rows whose values differ in their last places, some of them null."""

    def value(name: str, number: int) -> Any:
        if name != "id" and chance.random() < 0.05:
            return None
        time = START + timedelta(microseconds=chance.randrange(10**13))
        return {
            "id": number,
            "n": chance.randrange(-(2**31), 2**31),
            "f": chance.gauss(0, 1),
            "s": "".join(chance.choices("abcäé€", k=chance.randrange(12))),
            "flag": chance.random() < 0.5,
            "day": date(1969, 1, 1) + timedelta(days=chance.randrange(1000)),
            "ts": time,
            "tz": time.replace(tzinfo=UTC),
        }[name]

    made = [{name: value(name, number) for name in COLUMNS} for number in range(ROWS)]
    return pa.Table.from_pylist(made, pa.schema([(k, kind) for k, (kind, _) in COLUMNS.items()]))


@pytest.mark.parametrize("java_iceberg", ["sql"], indirect=True)
@pytest.mark.parametrize(
    "order",
    ["n, ts", "f, ts", "f, tz", "s, ts, day", "flag, day, n", "ts, tz, f, s"],
    ids=lambda order: order.replace(", ", "-"),
)
def test_rows_lie_along_the_same_curve(java_iceberg: JavaIceberg, order: str):
    columns = ", ".join(f"{name} {kind}" for name, (_, kind) in COLUMNS.items())
    java_iceberg.sql(f"CREATE TABLE {{table}} ({columns}) USING iceberg")
    rows = rows_of(Random(f"{SEED} {order}"))
    for part in (rows.slice(0, ROWS // 2), rows.slice(ROWS // 2)):
        java_iceberg.ours().write(part)
    before = java_iceberg.ours().latest_snapshot().snapshot_id
    found: list[pa.Table] = []
    for compact in (we_sort, java_sorts):
        java_iceberg.call("rollback_to_snapshot", f"snapshot_id => {before}")
        compact(java_iceberg, order)
        found.append(java_iceberg.ours().scan().to_arrow())
        assert sorted(found[-1]["id"].to_pylist()) == list(range(ROWS))
    compared = order.split(", ")  # Java leaves rows with equal values in any order
    assert found[0].select(compared).to_pylist() == found[1].select(compared).to_pylist()


def we_sort(java: JavaIceberg, order: str) -> None:
    java.ours().compact(strategy="full", order_by=order.split(", "), order_strategy="zorder")


def java_sorts(java: JavaIceberg, order: str) -> None:
    java.call(
        "rewrite_data_files",
        f"strategy => 'sort', sort_order => 'zorder({order})', "
        "options => map('rewrite-all', 'true')",
    )
