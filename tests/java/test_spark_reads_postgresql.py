"""Spark reads tables of PostgreSQL by Java's driver, and finds them as engine ``python`` does."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

import pytest

import lakeformat as lake
from spark_jobs.ingest import run
from spark_jobs.runtime.spark_session import start_session

# Pyspark leaves the sockets over which it collected rows to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning")

MADE = '''
CREATE SCHEMA "My Shop";
CREATE TABLE "My Shop"."Orders ""24""" (
    id INTEGER PRIMARY KEY, small SMALLINT, many BIGINT, near REAL, nearer DOUBLE PRECISION,
    price NUMERIC(10, 2), is_paid BOOLEAN, day DATE, at TIMESTAMP, instant TIMESTAMPTZ,
    note TEXT, code VARCHAR(9), identity UUID, document JSON, kept JSONB, bytes BYTEA);
INSERT INTO "My Shop"."Orders ""24""" VALUES
    (1, 2, 3, 0.5, 0.25, 9.99, true, '2024-01-31', '2024-01-31 02:30:00.123456',
     '2024-01-31 02:30:00.123456+05', 'a', 'b', '6ecd8c99-4036-403d-bf84-cf8400f67836',
     '{"a": [1, 2.50]}', 'null', '\\x00ff');
INSERT INTO "My Shop"."Orders ""24""" (id) VALUES (2);
CREATE VIEW "My Shop".paid AS SELECT id, note FROM "My Shop"."Orders ""24""" WHERE is_paid;
CREATE TABLE secret (word TEXT);
INSERT INTO secret VALUES ('hush');
CREATE TABLE measured (amount NUMERIC);
INSERT INTO measured VALUES (0.1234567890123456789);
'''
DRIVER = {"driver": "org.postgresql.Driver"}


@pytest.fixture(scope="module")
def spark(java_start):
    folder = Path(java_start["classpath"].split(os.pathsep)[-1]).parent
    [driver] = folder.glob("postgresql-*.jar")
    session = start_session("postgresql", master="local[1]", conf={"spark.jars": str(driver)})
    yield session
    session.stop()


@pytest.fixture
def database(postgres):
    name = postgres.make_database()
    postgres.execute(MADE, name)
    return name


@pytest.fixture
def ingest(tmp_path, postgres, database, spark):
    """Brings one table into ``shop.copy`` and returns that."""

    def act(jdbc_table, engine="spark", warehouse="warehouse", **more):
        address = {"jdbc_url": postgres.url(database)}
        if engine == "spark":
            address = {
                "jdbc_url": postgres.jdbc_url(database),
                "source_options": {**DRIVER, "user": "lake", **more.pop("options", {})},
            }
        request = {
            "warehouse": str(tmp_path / warehouse),
            "table": "shop.copy",
            "engine": engine,
            "jdbc_table": jdbc_table,
            "create": True,
        }
        run({**request, **address, **more}, spark)
        return lake.open_catalog(str(tmp_path / warehouse)).table("shop.copy")

    return act


def test_both_engines_make_the_same_table_of_a_quoted_name(ingest):
    name = '"My Shop"."Orders ""24"""'
    on_spark, on_python = ingest(name), ingest(name, "python", "other")
    assert on_spark.schema.fields == on_python.schema.fields
    found, expected = (
        sorted(each.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
        for each in (on_spark, on_python)
    )
    assert found == expected
    assert len(found) == 2


@pytest.mark.parametrize("name", ['"My Shop".paid', '"My Shop".PAID'])
def test_a_view_is_read_by_its_schema_and_its_name_in_any_case(ingest, name):
    assert ingest(name).scan().to_arrow().to_pylist() == [{"id": 1, "note": "a"}]


def test_the_current_schema_of_the_address_decides_where_a_name_is_looked_up(ingest):
    found = ingest("paid", options={"currentSchema": '"My Shop"'})
    assert found.scan().count() == 1


@pytest.mark.parametrize(
    "name",
    ["(SELECT word FROM secret) t", "secret UNION SELECT 1", 'secret" t; DROP TABLE secret; --"'],
)
def test_a_query_in_place_of_a_table_is_never_run(ingest, postgres, database, name):
    with pytest.raises(lake.NotFoundError, match="the SQL database has no table"):
        ingest(name)
    assert postgres.execute("SELECT word FROM secret", database) == [("hush",)]


def test_a_table_whose_name_is_a_query_is_read_as_that_table(ingest, postgres, database):
    name = '(SELECT word FROM secret) "t"'
    quoted = name.replace('"', '""')
    postgres.execute(f'CREATE TABLE "{quoted}" AS SELECT 7 AS id', database)
    assert ingest(name).scan().to_arrow().to_pylist() == [{"id": 7}]


def test_a_number_of_any_length_is_not_rounded_without_a_word(ingest, tmp_path):
    with pytest.raises(
        lake.InvalidRequestError,
        match="without a declared precision, or with more than 38 digits: set its type",
    ):
        ingest("measured")
    catalog = lake.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    table = catalog.create_table("shop.copy", [("amount", "DECIMAL(38, 18)")])
    with pytest.raises(lake.InvalidRequestError, match="which Spark would round: use engine"):
        ingest("measured")
    assert table.latest_snapshot() is None

    ingest("measured", options={"customSchema": "amount DECIMAL(38, 18)"})
    assert table.scan().count() == 1


def test_what_python_cannot_reach_spark_looks_up(ingest, caplog):
    caplog.set_level("INFO")
    options = {"reWriteBatchedInserts": "true", "password": "hush"}  # not known to libpq
    assert ingest('"My Shop".paid', options=options).scan().count() == 1
    assert "Python looks up columns only in SQLite and PostgreSQL" in caplog.text
    with pytest.raises(lake.NotFoundError, match="has no table 'nothing'"):
        ingest("nothing", options=options)
    assert "hush" not in caplog.text


def test_no_word_of_the_driver_is_passed_on_when_a_task_fails(ingest, postgres, database, tmp_path):
    postgres.execute(
        "CREATE FUNCTION fail() RETURNS INT LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'hush'; END $$; CREATE VIEW failing AS SELECT fail() AS id",
        database,
    )
    with pytest.raises(lake.UnavailableError, match=r"'failing'.* \(PSQLException\)") as refused:
        ingest("failing")
    shown = "".join(traceback.format_exception(refused.value))
    assert "hush" not in shown
    table = lake.open_catalog(str(tmp_path / "warehouse")).table("shop.copy")
    assert table.latest_snapshot() is None
