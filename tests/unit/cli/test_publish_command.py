"""``lake publish``: a line for people, JSON for programs."""

from __future__ import annotations

import json

import pyarrow as pa

import lakeformat as lake
from tests.lake_command import lake_refuses, lake_says


def test_a_table_is_published_up_to_its_newest_snapshot(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", [("id", "BIGINT")])
    orders.write(pa.table({"id": [1]}))
    refused = lake_refuses(catalog, "publish", "shop.orders", error=lake.LakeError)
    assert "metadata.iceberg.storage" in refused
    catalog.alter_table(
        "shop.orders", lake.set_option("metadata.iceberg.storage", "table-location")
    )
    shown = lake_says(catalog, "publish", "shop.orders")
    assert "the Iceberg metadata shows snapshot 1, 1 published now" in shown
    [report] = json.loads(lake_says(catalog, "publish", "shop.orders", "--json"))
    assert (report["snapshot_id"], report["published"]) == (1, [])
    assert report["metadata_file"].endswith("shop.db/orders/metadata/v1.metadata.json")
    found = lake.open_table(report["metadata_file"])
    assert found.scan().to_arrow().to_pylist() == [{"id": 1}]
