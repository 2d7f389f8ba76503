"""Orders as files of each format, and the table they belong to."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import lakeformat as lake

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "note": ['say "hi",\nthen go', "", None],
        "price": pa.array([Decimal("1.10"), None, Decimal("-3.00")], pa.decimal128(9, 2)),
        "paid": [True, None, False],
        "day": [date(2024, 1, 31), None, date(1969, 12, 31)],
        "at": pa.array([datetime(2024, 1, 31, 10, 0, 0, 123456), None, None], pa.timestamp("us")),
        "instant": pa.array(
            [datetime(2024, 1, 31, 10, tzinfo=UTC), None, None], pa.timestamp("us", tz="UTC")
        ),
    }
)
"""Every value here is one that some reader of text files changes."""

_MORE = {"id": [4], "note": ["from the second file"]}


def write_orders(folder: Path, file_format: str) -> pa.Table:
    """Two files, the second with fewer columns; returns the rows they hold."""
    if file_format == "parquet":
        pq.write_table(ROWS, folder / "orders-1.parquet")
        pq.write_table(pa.table(_MORE), folder / "orders-2.parquet")
    elif file_format == "csv":
        (folder / "orders-1.csv").write_text(_csv(), "utf-8")
        (folder / "orders-2.csv").write_text("note,id\nfrom the second file,4\n", "utf-8")
    else:
        (folder / "orders-1.jsonl").write_text(_json_lines(ROWS), "utf-8")
        (folder / "orders-2.jsonl").write_text(_json_lines(pa.table(_MORE)), "utf-8")
    return pa.concat_tables([ROWS, pa.table(_MORE)], promote_options="default")


def _csv() -> str:
    return (
        "id,note,price,paid,day,at,instant\n"
        '1,"say ""hi"",\nthen go",1.10,true,2024-01-31,2024-01-31 10:00:00.123456,'
        "2024-01-31T12:00:00+02:00\n"
        '2,"",,,,,\n'
        "3,,-3.00,false,1969-12-31,,\n"
    )


def _json_lines(rows: pa.Table) -> str:
    return "".join(json.dumps(row, default=str) + "\n" for row in rows.to_pylist())


def make_orders(warehouse: str) -> lake.Table:
    """The empty table those rows belong to."""
    catalog = lake.open_catalog(warehouse)
    catalog.create_database("shop")
    return catalog.create_table("shop.orders", ROWS.schema)


def data_files(warehouse: str) -> list[str]:
    """Every data file in the warehouse, published or not."""
    return sorted(path.name for path in Path(warehouse).rglob("data-*"))
