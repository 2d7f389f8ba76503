"""A table of PostgreSQL, ingested: what its driver makes objects of comes as the text it is."""

from __future__ import annotations

import json

import lakeformat as lake
from spark_jobs.ingest import run


def test_uuids_and_json_come_as_their_texts(tmp_path, postgres):
    database = postgres.make_database()
    identity, document = "6ecd8c99-4036-403d-bf84-cf8400f67836", {"a": [1, 2.50], "b": None}
    postgres.execute("CREATE TABLE orders (id UUID PRIMARY KEY, said JSON, kept JSONB)", database)
    postgres.execute(
        f"INSERT INTO orders VALUES ('{identity}', '{json.dumps(document)}', 'null')", database
    )
    request = {
        "warehouse": str(tmp_path / "warehouse"),
        "table": "shop.orders",
        "jdbc_url": postgres.url(database),
        "jdbc_table": "orders",
        "create": True,
    }
    run(request)
    run(request)
    table = lake.open_catalog(str(tmp_path / "warehouse")).table("shop.orders")
    row = {"id": identity, "said": json.dumps(document), "kept": "null"}
    assert table.scan().to_arrow().to_pylist() == [row, row]
