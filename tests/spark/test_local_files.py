"""Rows that go to Python by files of the JVM are the same as those that go by Arrow."""

from contextlib import contextmanager

import pyarrow as pa
import pytest

from spark_jobs import write_table
from spark_jobs.frames import local_files
from spark_jobs.frames.local_files import in_local_files, pays_in_files

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
SETTINGS = {
    "as they are": {},
    "of old": {
        "spark.sql.parquet.writeLegacyFormat": "true",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
        "spark.sql.session.timeZone": "America/New_York",
    },
    "other": {
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "EXCEPTION",
        "spark.sql.parquet.compression.codec": "gzip",
        "spark.sql.files.maxRecordsPerFile": "1",
        "spark.sql.ansi.enabled": "false",
    },
}


@contextmanager
def settings(spark, wanted):
    before = {name: spark.conf.get(name, None) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)


@pytest.mark.parametrize("name", SETTINGS)
def test_every_value_is_the_same_whatever_settings_say(spark, catalog, monkeypatch, name):
    rows = {}
    for way, least in (("files", 0), ("arrow", 1 << 62)):
        monkeypatch.setattr(local_files, "LEAST_BYTES", least)
        table = catalog.create_table(
            f"shop.{way}", COLUMNS, primary_key=["id"], options={"bucket": "2"}
        )
        with settings(spark, SETTINGS[name]):
            write_table(spark.sql(VALUES).repartition(2), table)
        rows[way] = table.scan().to_arrow().sort_by("id")

    assert rows["files"].num_rows == 3
    assert rows["files"].schema == rows["arrow"].schema
    assert repr(rows["files"].to_pylist()) == repr(rows["arrow"].to_pylist())


def test_columns_keep_their_names_and_order_whatever_they_are_called(spark, catalog, monkeypatch):
    monkeypatch.setattr(local_files, "LEAST_BYTES", 0)
    names = ["id", "a b,c;{}()=", "ä.`x`", "c0"]
    table = catalog.create_table(
        "shop.named",
        [(name, "BIGINT") for name in names],
        primary_key=["id"],
        options={"bucket": "2"},
    )

    write_table(spark.range(4).selectExpr("id", "id + 1", "id + 2", "id + 3").toDF(*names), table)

    found = table.scan().to_arrow().sort_by("id")
    assert found.column_names == names
    assert found.to_pylist()[3] == dict(zip(names, [3, 4, 5, 6], strict=True))


def test_rows_stay_in_the_order_they_have_in_their_partition(spark, tmp_path):
    frame = spark.range(0, 10_000, 1, 3)

    numbers, read = in_local_files(frame, tmp_path / "rows")

    parts = numbers.select("id").toArrow().to_batches()
    found = [row for part in parts for batch in read(None, iter([part])) for row in batch["id"]]
    assert pa.array(found).to_pylist() == [*range(10_000)]


def test_few_rows_and_nested_ones_go_by_arrow(spark):
    many = spark.range(1 << 40)

    assert pays_in_files(many)
    assert not pays_in_files(spark.range(1000))
    assert not pays_in_files(many.selectExpr("id", "array(id) AS each"))
    assert not pays_in_files(many.select())


def test_a_failing_row_leaves_no_file_behind(spark, catalog, monkeypatch, tmp_path):
    monkeypatch.setattr(local_files, "LEAST_BYTES", 0)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    table = catalog.create_table(
        "shop.failing", [("id", "BIGINT")], primary_key=["id"], options={"bucket": "2"}
    )
    failing = spark.range(100).selectExpr("if(id = 99, raise_error('no such row'), id) AS id")

    with pytest.raises(Exception, match="no such row"):
        write_table(failing, table)

    assert table.latest_snapshot() is None
    assert not [*tmp_path.glob("lake-spill-*")]
