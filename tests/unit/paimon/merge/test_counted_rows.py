"""The aggregate function ``count`` of older releases: rows count when written, then counts add."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.keyed_rows import KeyedRows


def counting(engine: str = "aggregation", **options: str) -> lake.Table:
    options = {
        "bucket": "1",
        "merge-engine": engine,
        "fields.c.aggregate-function": "count",
        **options,
    }
    columns = [("k", "INT NOT NULL"), ("c", "BIGINT"), ("g", "INT")]
    catalog = KeyedRows().catalog
    return catalog.create_table("shop.counts", columns, primary_key=["k"], options=options)


def add(table: lake.Table, *values: int | None, kind: str = "+I", g: int = 1) -> None:
    rows = {"k": [1] * len(values), "c": list(values), "g": [g] * len(values)}
    table.write(pa.Table.from_pydict(rows, table.schema.arrow_schema()), [kind] * len(values))


def count(table: lake.Table) -> int:
    return table.scan(columns=["c"]).to_arrow()["c"].to_pylist()[0]


def test_values_count_and_nulls_do_not():
    table = counting()
    add(table, 700, None, 0)
    assert count(table) == 2


def test_a_row_alone_counts_as_one():
    table = counting()
    add(table, 700)
    assert count(table) == 1


def test_stored_counts_add_up_whenever_files_are_merged():
    table = counting()
    for _ in range(3):
        add(table, 7, 8)
        table.compact()
        add(table, 9)
    assert count(table) == 9
    table.compact()
    assert count(table) == 9


def test_a_retract_takes_one_back():
    table = counting()
    add(table, 1, 2, 3)
    add(table, 9, kind="-U")
    assert count(table) == 2


def test_a_sequence_group_counts_late_rows_too():
    table = counting("partial-update", **{"fields.g.sequence-group": "c"})
    add(table, 7, g=5)
    add(table, 8, g=3)
    assert count(table) == 2


@pytest.mark.parametrize("column", ["STRING", "DOUBLE", "SMALLINT"])
def test_a_count_is_a_whole_number(column):
    with pytest.raises(lake.InvalidRequestError, match="takes INT or BIGINT"):
        KeyedRows().catalog.create_table(
            "shop.counts",
            [("k", "INT NOT NULL"), ("c", column)],
            primary_key=["k"],
            options={
                "bucket": "1",
                "merge-engine": "aggregation",
                "fields.default-aggregate-function": "count",
            },
        )
