"""Batches and streams beside an alter read and write the columns that they mean."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake

ROWS = pa.table({"id": [1], "a": ["of a"], "b": ["of b"]})
SWAPPED = [
    lake.rename_column("a", "c"),
    lake.rename_column("b", "a"),
    lake.rename_column("c", "b"),
]
CALLS: dict[str, Any] = {
    "update": lambda batch: batch.update("id = 1", {"id2": 2}),
    "delete": lambda batch: batch.delete("id = 1"),
    "write": lambda batch: batch.write(batch.scan(["id", "a", "b"]).to_arrow()),
    "overwrite": lambda batch: batch.overwrite(batch.scan(["id", "a", "b"]).to_arrow(), "table"),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_batch_is_refused_if_a_name_is_that_of_another_column_now(tmp_path, call):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("db")
    columns = ROWS.schema.append(pa.field("id2", pa.int64()))
    table = catalog.create_table("db.t", columns, format="mixed", primary_key=["id"])
    table.write(ROWS)
    with table.begin() as batch:
        catalog.alter_table("db.t", *SWAPPED)
        with pytest.raises(lake.CommitConflictError, match="column 'a' was dropped or renamed"):
            CALLS[call](batch)
    found = catalog.table("db.t").scan(["a", "b", "id2"]).to_arrow().to_pylist()
    assert found == [{"a": "of b", "b": "of a", "id2": None}]


def test_a_stream_begins_with_the_columns_of_an_alter_without_a_write(tmp_path):
    """The newest state was written with the columns before the alter."""
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("db")
    table = catalog.create_table("db.t", ROWS.schema, format="mixed", primary_key=["id"])
    table.write(ROWS)
    catalog.alter_table(
        "db.t", lake.drop_column("b"), lake.rename_column("a", "c"), lake.add_column("b", "INT")
    )
    commit = next(iter(catalog.table("db.t").stream(where="c = 'of a'")))
    assert commit.to_arrow().to_pylist() == [{"rowkind": "+I", "id": 1, "c": "of a", "b": None}]
