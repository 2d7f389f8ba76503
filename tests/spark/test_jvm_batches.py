"""Rows come from the JVM as they are however Spark counts batches, and wide ones come safely."""

import logging
from contextlib import contextmanager
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import functions as sql

from spark_jobs import write_table
from spark_jobs.frames import spark_write
from spark_jobs.frames.jvm_batches import (
    BATCH_ROWS,
    WIDEST_BYTES,
    counted_by_rows,
    in_tasks,
    is_for_width,
    narrow_rows,
)

BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
VALUES = """
SELECT * FROM VALUES
  (1L, true, 1Y, 2S, 3, 1.5F, double('NaN'), 12.34BD, 'one', X'00FF', DATE'0001-01-01',
   TIMESTAMP'0001-01-01 00:00:00.000001', TIMESTAMP_NTZ'9999-12-31 23:59:59.999999',
   -99999999999999999999999999999999999.123BD),
  (2L, false, -128Y, -32768S, -2147483648, float('-inf'), -0.0D, -0.01BD, '', X'',
   DATE'1582-10-10', TIMESTAMP'1582-10-10 12:00:00', TIMESTAMP_NTZ'0001-01-01 00:00:00', 0.001BD),
  (3L, null, null, null, null, null, null, null, null, null, null, null, null, null)
AS t(id, yes, tiny, small, whole, real, wide, price, note, bytes, day, instant, clock, long)
"""
COLUMNS = [
    ("id", "BIGINT"),
    ("yes", "BOOLEAN"),
    ("tiny", "TINYINT"),
    ("small", "SMALLINT"),
    ("whole", "INT"),
    ("real", "FLOAT"),
    ("wide", "DOUBLE"),
    ("price", "DECIMAL(4, 2)"),
    ("note", "STRING"),
    ("bytes", "BYTES"),
    ("day", "DATE"),
    ("instant", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
    ("clock", "TIMESTAMP(6)"),
    ("long", "DECIMAL(38, 3)"),
]
KEYED = {"primary_key": ["id"], "options": {"bucket": "2"}}


@contextmanager
def setting(spark, name, value):
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name) if before is None else spark.conf.set(name, before)


@pytest.fixture
def notes(catalog):
    return catalog.create_table("shop.notes", [("id", "BIGINT"), ("note", "STRING")], **KEYED)


@pytest.fixture(params=["one machine", "machines"])
def machines(request, monkeypatch):
    is_one = request.param == "one machine"
    monkeypatch.setattr(spark_write, "is_one_machine", lambda session: is_one)


def lengths(table):
    rows = table.scan().to_arrow()
    return {
        number: len(note)
        for number, note in zip(rows["id"].to_pylist(), rows["note"].to_pylist(), strict=True)
    }


def test_every_value_is_the_same_however_batches_are_counted(spark, catalog):
    rows = {}
    for way, limit in (("by rows", None), ("by bytes", "64m")):
        table = catalog.create_table(f"shop.{way.replace(' ', '_')}", COLUMNS, **KEYED)
        if limit is None:
            write_table(spark.sql(VALUES).repartition(2), table)
        else:
            with setting(spark, BYTES, limit):
                write_table(spark.sql(VALUES).repartition(2), table)
        rows[way] = table.scan().to_arrow().sort_by("id")

    assert rows["by rows"].num_rows == 3
    assert rows["by rows"].schema == rows["by bytes"].schema
    assert repr(rows["by rows"].to_pylist()) == repr(rows["by bytes"].to_pylist())


def test_columns_keep_their_names_and_order_whatever_they_are_called(spark, catalog, machines):
    names = ["id", "a b,c;{}()=", "ä.`x`", "c0"]
    columns = [(name, "BIGINT" if name == "id" else "STRING") for name in names]
    table = catalog.create_table("shop.named", columns, **KEYED)

    rows = spark.range(4).selectExpr("id", "string(id + 1)", "string(id + 2)", "string(id + 3)")
    write_table(rows.toDF(*names), table)

    found = table.scan().to_arrow().sort_by("id")
    assert found.column_names == names
    assert found.to_pylist()[3] == dict(zip(names, [3, "4", "5", "6"], strict=True))


@pytest.mark.sampled(1)
def test_a_row_with_long_texts_is_written_with_all_the_others(
    spark, notes, machines, caplog, warehouse
):
    rows = spark.range(100).selectExpr("id", f"repeat('ä', if(id = 77, {WIDEST_BYTES}, 3)) AS note")

    with caplog.at_level(logging.WARNING, "spark_jobs"):
        report = write_table(rows, notes)

    assert lengths(notes) == {n: WIDEST_BYTES if n == 77 else 3 for n in range(100)}
    assert len(notes.snapshots()) == 1
    assert report.files == notes.system_table("files").scan().to_arrow().num_rows
    assert "more than 16 KiB" in caplog.text
    assert f"set {BYTES}" in caplog.text


def test_rows_just_narrow_enough_are_written_at_once(spark, notes, caplog):
    rows = spark.range(3).selectExpr("id", f"repeat('x', {WIDEST_BYTES}) AS note")

    with caplog.at_level(logging.WARNING, "spark_jobs"):
        write_table(rows, notes)

    assert set(lengths(notes).values()) == {WIDEST_BYTES}
    assert not caplog.text


def test_who_has_set_the_limit_of_bytes_keeps_it_and_may_have_long_texts(spark, notes, caplog):
    rows = spark.range(3).selectExpr("id", f"repeat('x', {2 * WIDEST_BYTES}) AS note")

    with setting(spark, BYTES, "64m"), caplog.at_level(logging.WARNING, "spark_jobs"):
        assert counted_by_rows(rows) is None
        write_table(rows, notes)

    assert set(lengths(notes).values()) == {2 * WIDEST_BYTES}
    assert not caplog.text


def test_a_session_keeps_its_settings_while_rows_are_handed_over(spark):
    before = {name: spark.conf.get(name, None) for name in (BYTES, ROWS)}

    counted = counted_by_rows(spark.range(3 * BATCH_ROWS).coalesce(1))

    assert {name: spark.conf.get(name, None) for name in (BYTES, ROWS)} == before
    assert batch_sizes(counted) == [BATCH_ROWS] * 3
    assert batch_sizes(spark.range(3 * BATCH_ROWS).coalesce(1)) != [BATCH_ROWS] * 3


def test_short_decimals_that_a_writer_never_looks_at_are_handed_over_as_numbers(spark):
    most = "9" * 16 + ".99"
    rows = spark.sql(
        f"SELECT * FROM VALUES ({most}BD, 1.5BD, 2.5BD, -{most}BD), (null, null, 0.0BD, 0.01BD) "
        "AS t(`a.b`, small, seen, other)"
    ).selectExpr("`a.b`", "small", "seen", "cast(other AS DECIMAL(19, 2)) AS wide")

    handed = counted_by_rows(rows.coalesce(1), {"a.b", "small", "wide"})

    given = [field.dataType.simpleString() for field in handed.schema.fields]
    assert given == ["bigint", "bigint", "decimal(2,1)", "decimal(19,2)"]
    kinds, values = seen_in_tasks(handed)
    assert kinds == ["decimal64(18, 2)", "decimal64(2, 1)", "decimal128(2, 1)", "decimal128(19, 2)"]
    assert values == [
        f"[('a.b', {Decimal(most)!r}), ('small', Decimal('1.5')), ('seen', Decimal('2.5')), "
        f"('wide', Decimal('-{most}'))]",
        "[('a.b', None), ('small', None), ('seen', Decimal('0.0')), ('wide', Decimal('0.01'))]",
    ]


def seen_in_tasks(frame):
    """The types that a task is given, and its rows."""

    def tell(batches):
        for batch in batches:
            kinds = [str(kind) for kind in batch.schema.types]
            rows = [repr([*row.items()]) for row in batch.to_pylist()]
            yield pa.record_batch({"kinds": [kinds], "rows": [rows]})

    [found] = in_tasks(frame, tell, "kinds array<string>, rows array<string>").collect()
    return found.kinds, found.rows


def batch_sizes(frame):
    def sizes(batches):
        for batch in batches:
            yield pa.record_batch({"rows": pa.array([batch.num_rows])})

    return [row.rows for row in frame.mapInArrow(sizes, "rows bigint").collect()]


def test_a_function_that_makes_texts_is_called_once_for_each_row(spark, notes):
    calls = spark.sparkContext.accumulator(0)

    def text(number):
        calls.add(1)
        return f"note {number}"

    write_table(spark.range(100).select("id", sql.udf(text, "string")("id").alias("note")), notes)

    assert len(lengths(notes)) == 100
    assert calls.value == 100


def test_a_failure_of_another_kind_is_told_and_nothing_is_tried_again(spark, notes):
    failing = spark.range(9).selectExpr("if(id = 8, raise_error('no such row'), id) id", "'a' note")

    with pytest.raises(Exception, match="no such row") as failed:
        write_table(failing, notes)

    assert not is_for_width(failed.value)
    assert notes.latest_snapshot() is None


def test_a_failing_row_leaves_no_file_behind(spark, notes, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    failing = spark.range(100).selectExpr(
        "if(id = 99, raise_error('no such row'), id) AS id", "'a' AS note"
    )

    with pytest.raises(Exception, match="no such row"):
        write_table(failing, notes)

    assert notes.latest_snapshot() is None
    assert not [*tmp_path.glob("lake-spill-*")]


@pytest.mark.parametrize("column", ["array(id)", "struct(id)", "map(id, id)"])
def test_of_nested_columns_nobody_can_tell_how_wide_rows_are(spark, column):
    assert narrow_rows(spark.range(3).selectExpr("id", f"{column} AS nested")) is None


def test_rows_without_texts_need_no_look(spark):
    numbers = spark.range(3)
    assert narrow_rows(numbers) is numbers
