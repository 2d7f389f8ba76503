"""Readable metrics of columns whose values are not read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakeformat.iceberg.metadata.metadata_json import metadata_to_json
from lakeformat.iceberg.table.table import IcebergTable
from tests.unit.iceberg.write.made_tables import edited, made_table


@pytest.mark.parametrize("kind", ["variant", "geometry(OGC:CRS84)", "geography"])
@pytest.mark.parametrize("name", ["files", "entries"])
def test_bounds_of_a_type_that_is_not_read_are_null(storage, name, kind):
    handle = made_table(storage, 3)
    IcebergTable(handle).write(pa.table({"id": [1], "k": ["a"]}))
    [old] = metadata_to_json(handle.load().metadata)["schemas"]
    added = {"id": 3, "name": "v", "required": False, "type": kind}
    new = old | {"schema-id": 1, "fields": [*old["fields"], added]}
    table = edited(handle, schemas=[old, new], current_schema_id=1, last_column_id=3)
    [row] = table.system_table(name).scan().to_arrow().to_pylist()
    metrics = row["readable_metrics"]
    assert (metrics["id"]["lower_bound"], metrics["id"]["upper_bound"]) == (1, 1)
    assert set(metrics["v"].values()) == {None}
