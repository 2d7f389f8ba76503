"""``lake publish``: a line for people, JSON for programs."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import lakeformat as lake
from spark_jobs.check import FailedChecksError
from spark_jobs.publish import run
from tests.lake_command import lake_refuses, lake_says
from tests.unit.publish.published import unobserved


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
    assert "the Iceberg metadata shows snapshot 1; published 1 snapshot" in shown
    [report] = json.loads(lake_says(catalog, "publish", "shop.orders", "--json"))
    assert (report["snapshot_id"], report["published"]) == (1, [])
    assert report["metadata_file"].endswith("shop.db/orders/metadata/v1000000001.metadata.json")
    found = lake.open_table(report["metadata_file"])
    assert found.scan().to_arrow().to_pylist() == [{"id": 1}]


def test_a_check_shows_each_reader_and_fails_if_the_metadata_is_behind(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    options = {"metadata.iceberg.storage": "table-location"}
    orders = catalog.create_table("shop.orders", [("id", "BIGINT")], options=options)
    orders.write(pa.table({"id": [1, 2]}))
    shown = lake_says(catalog, "publish", "shop.orders", "--check")
    assert "snapshot 1 has 2 rows in its published files; equal: PyIceberg" in shown
    [line] = [each for each in shown.splitlines() if each.startswith("PyIceberg")]
    assert line.split() == ["PyIceberg", "equal", "2", "0", "0"]
    unobserved(orders).write(pa.table({"id": [3]}))
    behind = lake_says(catalog, "publish", "shop.orders", "--check", code=1)
    assert "the Iceberg metadata is 1 snapshot behind" in behind
    request = {"warehouse": str(tmp_path), "table": "shop.orders", "check": True}
    with pytest.raises(FailedChecksError, match="1 snapshot behind"):
        run(request)
    assert run({**request, "check": False})["report"]["published"] == [2]
    checked = run(request)["report"]
    assert (checked["rows"], checked["outstanding"]) == (3, None)
