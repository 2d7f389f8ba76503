"""``format("lake")`` refuses wrong requests early, and Spark shows the reason."""

from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType, YearMonthIntervalType

import lakeformat as lake
from spark_jobs.frames.tables import Warehouse
from spark_jobs.source.lake_source import source_in

SWAPPED = pa.struct([("b", pa.int32()), ("a", pa.int32())])


@pytest.fixture
def orders(catalog):
    columns = [("id", "BIGINT"), ("note", "STRING")]
    table = catalog.create_table("shop.orders", columns, primary_key=["id"])
    table.write(pa.table({"id": [1], "note": ["a"]}))
    return table


@pytest.fixture
def nested(catalog):
    columns = [
        ("id", "BIGINT"),
        ("note", "STRING"),
        ("at", "TIMESTAMP"),
        ("price", "DECIMAL(9, 2)"),
        ("r", "ROW<a INT, b INT>"),
        ("l", "ARRAY<ROW<a INT, b INT>>"),
        ("m", "MAP<STRING, INT>"),
    ]
    table = catalog.create_table("shop.nested", columns)
    pair = {"a": 1, "b": 2}
    row = {"id": 1, "note": "a", "at": datetime(2024, 1, 1, 12), "price": Decimal("1.25")}
    rows = [{**row, "r": pair, "l": [pair], "m": [("a", 1)]}]
    table.write(pa.Table.from_pylist(rows, schema=table.scan().to_arrow().schema))
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


@pytest.mark.parametrize("way", ["writer", "streamWriter"])
def test_an_interval_of_months_is_refused_before_any_row_is_made(source, way):
    """Spark's own failure is a traceback of a task."""
    given = StructType([StructField("note", YearMonthIntervalType())])
    said = r"'note' has type interval year to month, .*cast it to string\. Nothing was written"
    with pytest.raises(lake.InvalidRequestError, match=said):
        getattr(source(), way)(given, False)


def test_a_column_that_is_named_twice_is_refused(source):
    """Spark's own message of two columns of one name is about buffers that were not consumed."""
    with pytest.raises(lake.InvalidRequestError, match="'columns' names 'note' twice"):
        source(columns="note, id,note").schema()


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("r", SWAPPED, r"has type struct<b:int,a:int> in .* returns struct<a:int,b:int>: leave"),
        ("l", pa.list_(SWAPPED), "has type array<struct<b:int,a:int>> in the given schema"),
        ("m", pa.map_(pa.string(), pa.int64()), "has type map<string,bigint> in the given schema"),
        ("at", pa.timestamp("us", tz="UTC"), r"has type timestamp in .* returns timestamp_ntz"),
        ("price", pa.decimal128(9, 1), r"has type decimal\(9,1\) in .* returns decimal\(9,2\)"),
        ("id", pa.int32(), "has type int in the given schema, but the read returns bigint"),
    ],
)
def test_a_given_schema_with_another_type_is_refused(source, nested, name, given, said):
    """Spark would take the bytes of the values for values of the given types."""
    schema = from_arrow_schema(pa.schema([(name, given)]))
    opened = source(path="shop.nested", columns=name, rowkind="false")
    with pytest.raises(lake.InvalidRequestError, match=f"column '{name}' {said}"):
        opened.reader(schema)
    stream = opened.streamReader(schema)
    with pytest.raises(lake.InvalidRequestError, match=f"column '{name}' {said}"):
        stream.initialOffset()


def test_a_given_schema_may_differ_in_nullability_collation_and_comments(lake_spark, nested):
    given = (
        "id bigint not null comment 'number', note string collate utf8_lcase, at timestamp_ntz, "
        "price decimal(9,2), r struct<a:int not null,b:int comment 'b'>, "
        "l array<struct<a:int,b:int>>, m map<string,int>"
    )
    rows = lake_spark.read.format("lake").schema(given).load("shop.nested")
    [found] = rows.where("note = 'A'").collect()
    assert (found.at, found.price, found.r, found.l) == (
        datetime(2024, 1, 1, 12),
        Decimal("1.25"),
        (1, 2),
        [(1, 2)],
    )


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
