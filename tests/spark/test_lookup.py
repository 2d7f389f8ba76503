"""A stream of Spark that looks up rows of a table sees its updates; a joined DataFrame does not."""

import pyarrow as pa
import pytest

import lakeformat as lake
from spark_jobs import read_table


@pytest.fixture
def people(tmp_path):
    catalog = lake.open_catalog(str(tmp_path / "lakehouse"), format="iceberg")
    catalog.create_database("shop")
    columns = [("id", "BIGINT NOT NULL"), ("name", "STRING")]
    return catalog.create_table("shop.people", columns, format="mixed", primary_key=["id"])


def test_a_later_micro_batch_sees_an_update_of_the_table(lake_spark, catalog, people, tmp_path):
    people.write(pa.table({"id": [1], "name": ["a"]}))
    visits = catalog.create_table("shop.visits", [("id", "BIGINT")])
    lookup = lake.Lookup(people, ["name"], reload_seconds=0)
    frame = read_table(lake_spark, people)
    found = []

    def name(rows, batch):
        ids = rows.toArrow().select(["id"])
        joined = rows.join(frame, "id", "left").collect()
        found.append(
            (lookup.get_many(ids).column("name").to_pylist(), [row.name for row in joined])
        )

    stream = lake_spark.readStream.format("lake").load("shop.visits").writeStream
    stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).foreachBatch(name)
    visits.write(pa.table({"id": [1]}))
    query = stream.start()
    try:
        query.processAllAvailable()
        people.write(pa.table({"id": [1], "name": ["b"]}))
        visits.write(pa.table({"id": [1]}))
        query.processAllAvailable()
    finally:
        query.stop()
    assert found == [(["a"], ["a"]), (["b"], ["a"])]
