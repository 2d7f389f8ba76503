"""The job writes keyed tables: a later row replaces the one of its key."""

from __future__ import annotations

import lakeformat as lake
from spark_jobs.ingest import run


def test_the_python_engine_ingests_into_keyed_tables(tmp_path):
    catalog = lake.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.orders",
        [("dt", "STRING"), ("id", "BIGINT"), ("note", "STRING")],
        primary_key=["dt", "id"],
        partition_by=["dt"],
        options={"bucket": "2"},
    )
    for number, text in enumerate(["mon,1,a\nmon,2,b\n", "mon,2,new\ntue,1,c\n"]):
        source = tmp_path / f"{number}.csv"
        source.write_text(f"dt,id,note\n{text}")
        request = {
            "warehouse": str(tmp_path / "warehouse"),
            "table": "shop.orders",
            "source": str(source),
            "engine": "python",
        }
        assert run(request)["report"]["rows"] == 2
    found = table.scan().to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [
        ("mon", 1, "a"),
        ("mon", 2, "new"),
        ("tue", 1, "c"),
    ]
