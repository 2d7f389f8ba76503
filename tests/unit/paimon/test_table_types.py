"""The option 'type': a materialized table is a table, and every other kind is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake

ROWS = pa.table({"id": [1, 2]})


def table_of_type(tmp_path: Path, kind: str, **options: str) -> lake.Table:
    """A table with a snapshot whose schema another engine gave a type."""
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    catalog.create_table("shop.orders", [("id", "BIGINT")]).write(ROWS)
    schema = tmp_path / "shop.db/orders/schema/schema-0"
    members = json.loads(schema.read_text())
    members["options"] |= {"type": kind, **options}
    schema.write_text(json.dumps(members))
    return catalog.table("shop.orders")


@pytest.mark.parametrize("kind", ["table", "materialized-table"])
def test_a_materialized_table_is_cared_for_like_any_other(tmp_path, kind):
    table = table_of_type(tmp_path, kind, **{"materialized-table.refresh-mode": "FULL"})
    table.write(ROWS)
    table.compact()
    table.expire_snapshots(retain_min=1, retain_max=1, older_than="0 ms")
    assert table.scan().count() == 4
    assert lake.open_catalog(str(tmp_path)).list_tables("shop") == ["orders"]


@pytest.mark.parametrize(
    "operation",
    [
        lambda table: table.scan().to_arrow(),
        lambda table: table.write(ROWS),
        lambda table: table.compact(),
        lambda table: table.expire_snapshots(retain_min=1, retain_max=1),
    ],
)
@pytest.mark.parametrize("kind", ["format-table", "object-table", "iceberg-table", "lance-table"])
def test_another_kind_of_table_is_refused_with_what_to_do(
    tmp_path, kind: str, operation: Callable[[lake.Table], object]
):
    table = table_of_type(tmp_path, kind)
    with pytest.raises(lake.UnsupportedError, match=f"'type' = '{kind}'.*{kind}"):
        operation(table)
    assert len([*tmp_path.rglob("snapshot-*")]) == 1
