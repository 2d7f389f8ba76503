"""An option forbids the operations it concerns, and no other."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import lakeformat as lake


def with_options(catalog, tmp_path, options, *, rows=2, name="t"):
    """A table that another engine has given options which create_table would refuse."""
    table = catalog.create_table(
        f"shop.{name}", [("id", "BIGINT"), ("v", "BIGINT")], primary_key=["id"]
    )
    for row in range(rows):
        table.write(pa.table({"id": [row], "v": [row]}))
    path = tmp_path / f"shop.db/{name}/schema/schema-0"
    members = json.loads(path.read_bytes())
    members["options"] |= options
    path.write_text(json.dumps(members))
    return catalog.table(f"shop.{name}")


def test_health_reads_no_row_and_so_no_meaning_of_rows_refuses_it(catalog, tmp_path):
    table = with_options(catalog, tmp_path, {"scan.fallback-branch": "dev"})
    assert table.health().snapshots.count == 2


@pytest.mark.parametrize("rows", [0, 1])
def test_rows_of_another_branch_are_never_left_out_unsaid(catalog, tmp_path, rows):
    table = with_options(catalog, tmp_path, {"scan.fallback-branch": "dev"}, rows=rows)
    with pytest.raises(lake.UnsupportedError, match=r"scan\.fallback-branch"):
        table.scan().count()
