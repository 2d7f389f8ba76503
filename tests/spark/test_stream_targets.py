"""A stream into a table stops where that is dropped or loses a column, before the next batch."""

import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle

import lakeformat as lake
from spark_jobs.frames.tables import Warehouse
from spark_jobs.source.lake_source import source_in
from tests.spark.orders import data_files


@pytest.fixture
def copy(catalog):
    return catalog.create_table("shop.copy", [("id", "BIGINT"), ("note", "STRING")])


@pytest.fixture
def writer(catalog, copy):
    """Return the writer of a stream that has written a batch, pickled as Spark does."""
    source = source_in(Warehouse(catalog.location), at_once=1)({"path": "shop.copy", "query": "q"})
    made = pickle.loads(cloudpickle.dumps(source.streamWriter(source.schema(), False)))
    batch(made, 0)
    return made


def batch(writer, number):
    answers = [writer.write(iter([pa.record_batch({"id": [number], "note": ["a"]})]))]
    try:
        writer.commit(answers, number)
    except lake.LakeError:
        writer.abort(answers, number)  # as Spark does
        raise


def test_a_column_that_is_gone_stops_the_stream_and_nothing_of_the_batch_stays(
    catalog, copy, writer, warehouse
):
    catalog.alter_table("shop.copy", lake.drop_column("note"))

    with pytest.raises(
        lake.InvalidRequestError, match=r"before its batch 1: .* has no column 'note' any more"
    ):
        batch(writer, 1)

    assert len(copy.snapshots()) == 1
    assert len(data_files(warehouse)) == 1
    assert copy.consumers.list() == []


def test_a_column_that_is_new_stays_null_and_the_stream_goes_on(catalog, copy, writer):
    now = catalog.alter_table("shop.copy", lake.add_column("more", "INT"))
    batch(writer, 1)

    assert now.scan().to_arrow()["more"].to_pylist() == [None, None]


def test_a_table_that_is_dropped_stops_the_stream_and_stays_gone(catalog, copy, writer, warehouse):
    catalog.drop_table("shop.copy")

    with pytest.raises(lake.NotFoundError, match=r"the stream stops, before its batch 1: table"):
        batch(writer, 1)

    assert not Path(warehouse, "shop.db/copy").exists()
