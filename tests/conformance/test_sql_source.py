"""A table of PostgreSQL, ingested: what its driver makes objects of comes as the text it is."""

from __future__ import annotations

import json

import pytest

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


class NeverStarted:
    """A Spark that no refusal needs."""

    def __getattr__(self, name):
        raise AssertionError(f"Spark was asked for {name}")


@pytest.fixture(params=["python", "spark"])
def refused(request, tmp_path, postgres):
    """The refusal of a table of a database with ``shop.orders`` and ``secret``."""
    database = postgres.make_database()
    postgres.execute("CREATE SCHEMA shop; CREATE TABLE shop.orders (id INT)", database)
    postgres.execute("CREATE TABLE secret (word TEXT); CREATE TABLE odd (ids INT[])", database)
    is_spark = request.param == "spark"

    def act(name, kind=lake.NotFoundError, **more):
        wanted = {
            "warehouse": str(tmp_path / "warehouse"),
            "table": "shop.orders",
            "engine": request.param,
            "jdbc_url": postgres.jdbc_url(database) if is_spark else postgres.url(database),
            "jdbc_table": name,
            "source_options": {"user": "lake", "password": "hush"},
            "create": True,
            **more,
        }
        with pytest.raises(kind) as caught:
            run(wanted, NeverStarted())
        assert "hush" not in str(caught.value)
        assert not (tmp_path / "warehouse" / "shop.db" / "orders").exists()
        return str(caught.value)

    return act


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("secrets", "did you mean 'secret'?"),
        ("shop.order", "did you mean 'shop.orders'?"),
        ("shops.orders", "did you mean 'shop.orders'?"),
        ("orders", "correct 'jdbc_table', such as 'schema.table'"),
        ('"SECRET"', "did you mean 'secret'?"),
        ("secret t", "did you mean 'secret'?"),
        ("(select * from secret) t", "correct 'jdbc_table', such as 'schema.table'"),
        ('secret"; drop table secret; --', "correct 'jdbc_table', such as 'schema.table'"),
        ("shop.orders union select 1", "correct 'jdbc_table', such as 'schema.table'"),
    ],
)
def test_a_missing_table_is_refused_with_one_sentence_by_both_engines(refused, name, advice):
    assert refused(name) == f"the SQL database has no table {name!r}: {advice}"
