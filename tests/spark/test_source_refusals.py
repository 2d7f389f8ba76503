"""``format("lake")`` refuses wrong requests early, and Spark shows the reason."""

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

import lakeformat as lake
from spark_jobs.frames.tables import Warehouse
from spark_jobs.source.lake_source import source_in


@pytest.fixture
def orders(catalog):
    columns = [("id", "BIGINT"), ("note", "STRING")]
    table = catalog.create_table("shop.orders", columns, primary_key=["id"])
    table.write(pa.table({"id": [1], "note": ["a"]}))
    return table


@pytest.fixture
def source(catalog, orders):
    """As a session opens it, with options: ``__`` stands for a hyphen, ``_`` for a dot."""

    def build(**options):
        said = {name.replace("__", "-").replace("_", "."): text for name, text in options.items()}
        return source_in(Warehouse(catalog.location), at_once=1)({"path": "shop.orders", **said})

    return build


@pytest.mark.parametrize("way", ["writer", "streamWriter"])
@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"id": [1], "extra": [2]}, "no column 'extra'"),
        ({"id": ["one"]}, "column 'id' has type string"),
        ({"note": ["a"]}, "column 'id' is NOT NULL, but the rows do not have it"),
    ],
)
def test_columns_that_do_not_fit_are_refused_before_any_row_is_made(source, way, columns, said):
    """There may be no rows, and computing them may take hours."""
    given = from_arrow_schema(pa.table(columns).schema)

    with pytest.raises(lake.InvalidRequestError, match=said):
        getattr(source(), way)(given, False)


def test_a_column_that_is_named_twice_is_refused(source):
    """Spark's own message of two columns of one name is about buffers that were not consumed."""
    with pytest.raises(lake.InvalidRequestError, match="'columns' names 'note' twice"):
        source(columns="note, id,note").schema()


@pytest.mark.parametrize(
    "option", ["scan.snapshot-id", "scan.tag-name", "scan.timestamp-millis", "scan.watermark"]
)
def test_a_time_to_read_at_is_refused_where_changes_are_asked_for(source, option):
    said = {option.replace("-", "__").replace(".", "_"): "1"}

    with pytest.raises(lake.InvalidRequestError, match=f"{option}.*incremental-between"):
        source(incremental__between="0,1", **said).schema()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, r"set option\('rowkind', 'true'\)"),
        ({"rowkind": "true", "max__snapshots__per__batch": "0"}, "must be at least 1, got 0"),
        ({"rowkind": "true", "incremental__between": "0,1"}, "has no effect in a stream read"),
    ],
)
def test_a_stream_that_is_refused_says_so_whatever_spark_asks_of_it_first(source, options, said):
    opened = source(**options)

    for ask in (
        lambda reader: reader.initialOffset(),
        lambda reader: reader.latestOffset(),
        lambda reader: reader.partitions({}, {}),
    ):
        reader = opened.streamReader(opened.schema())
        with pytest.raises(lake.InvalidRequestError, match=said):
            ask(reader)
        reader.stop()


def test_spark_tells_why_a_stream_is_refused(lake_spark, orders, tmp_path):
    rows = lake_spark.readStream.format("lake").load("shop.orders")
    written = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "kept"))

    with pytest.raises(Exception, match=r"set option\('rowkind', 'true'\)"):
        written.trigger(availableNow=True).start().awaitTermination()
