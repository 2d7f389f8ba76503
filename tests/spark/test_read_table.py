"""Tables as DataFrames: the same rows, by any reader of the files."""

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from spark_jobs import count_table, read_changes, read_table
from spark_jobs.frames.columns import spark_type
from tests.evolved_rows import DATA_EVOLUTION, EvolvedRows
from tests.golden.foreign import unpack_foreign
from tests.golden.iceberg import iceberg_table
from tests.golden.mixed import mixed_table
from tests.golden.tables import HOW_TO_UNSKIP, golden_tables
from tests.hostile import Ground

GOLDEN = [
    "format/all_types_parquet",
    "format/append_partitioned",
    "format/deletion_vectors",
    "format/pk_dynamic_bucket",
    "format/schema_evolved",
    "format-java/all_types_orc",
    "format-java/all_types_parquet",
    "format-java/bucket_fn_default",
    "format-java/pk_dv_bitmap64",
    "format-java/thin_mode",
]

ROWS = pa.table(
    {
        "id": pa.array(range(100), pa.int64()),
        "dt": [f"2024-01-0{1 + number % 3}" for number in range(100)],
        "price": pa.array([Decimal(number) / 4 for number in range(100)], pa.decimal128(9, 2)),
        "ratio": pa.array([float("nan") if n % 10 == 0 else n / 2 for n in range(100)]),
        "note": [None if number % 7 == 0 else f"note {number}" for number in range(100)],
        "day": [date(2024, 1, 1 + number % 28) for number in range(100)],
        "at": pa.array([datetime(2024, 1, 1, 10, 0, n % 60, n) for n in range(100)]),
        "instant": pa.array(range(100), pa.timestamp("us", tz="UTC")),
    }
)


def in_order(rows):
    return sorted(map(repr, rows.to_pylist()))


def supported(table):
    """The columns that Spark has a type for."""
    names = []
    for field in table.schema.fields:
        try:
            spark_type(field.type)
        except lake.UnsupportedError:
            continue
        names.append(field.name)
    return names


def native_files(frame):
    return len(frame.inputFiles())


@pytest.fixture
def orders(catalog):
    """Three partitions: one is compacted, two have newer rows to merge."""
    table = catalog.create_table(
        "shop.orders",
        ROWS.schema,
        primary_key=["id", "dt"],
        partition_by=["dt"],
        options={"bucket": "2"},
    )
    table.write(ROWS)
    table.compact()
    newer = ROWS.filter(pa.compute.not_equal(ROWS["dt"], "2024-01-01")).slice(0, 10)
    table.write(newer.set_column(4, "note", pa.array(["newer"] * 10)))
    return table


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", GOLDEN)
def test_golden_tables_have_the_rows_that_lakeformat_reads(spark, name):
    found = {golden.name: golden for golden in golden_tables()}
    if not found:
        pytest.skip(HOW_TO_UNSKIP)
    table = lake.open_table(found[name].location)
    columns = supported(table)

    read = read_table(spark, table, columns=columns)

    assert in_order(read.toArrow()) == in_order(table.scan(columns).to_arrow())


def test_spark_reads_what_needs_no_merge_and_tasks_the_rest(spark, orders):
    read = read_table(spark, orders)

    assert in_order(read.toArrow()) == in_order(orders.scan().to_arrow())
    assert native_files(read) == 2
    assert native_files(read_table(spark, orders, native=False)) == 0


@pytest.mark.parametrize("asked", ["ratio >= 1000", "ratio = double('NaN')", "NOT (ratio < 900)"])
def test_a_condition_on_the_frame_finds_nan_which_no_bounds_count(spark, orders, asked):
    read = read_table(spark, orders).where(asked)

    assert sorted(row.id for row in read.collect()) == [*range(0, 100, 10)]
    assert native_files(read) == 2


def test_zeros_of_either_sign_are_found(spark, catalog):
    """Dictionary filters of Parquet compare the bits of numbers."""
    columns = [("id", "BIGINT"), ("ratio", "DOUBLE"), ("r", "ROW<part FLOAT>")]
    table = catalog.create_table("shop.plain", columns)
    schema = table.scan().to_arrow().schema
    for number, zero in ((1, -0.0), (2, 0.0)):
        row = {"id": number, "ratio": zero, "r": {"part": zero}}
        table.write(pa.Table.from_pylist([row, row], schema=schema))  # twice, for a dictionary
    read = read_table(spark, table)
    for asked in ("ratio = 0.0", "ratio >= 0.0", "ratio IN (-0.0D, 5.0)", "r.part = 0.0"):
        assert sorted(row.id for row in read.where(asked).collect()) == [1, 1, 2, 2], asked
    assert native_files(read) == 2


def test_zeros_of_either_sign_are_found_by_bloom_filters(spark, warehouse, tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    for number, zero in ((1, -0.0), (2, 0.0)):
        rows = pa.table({"id": [number], "ratio": [zero]})
        how = {"use_dictionary": False, "bloom_filter_options": {"ratio": True}}
        pq.write_table(rows, files / f"{number}.parquet", **how)
    catalog = lake.open_catalog(warehouse, options={"external-roots": str(files)})
    catalog.create_database("shop")
    lake.migrate_directory(catalog, str(files), "shop.plain")
    read = read_table(spark, catalog.table("shop.plain"))
    assert sorted(row.id for row in read.where("ratio = 0.0").collect()) == [1, 2]
    assert native_files(read) == 2


def test_files_with_nan_and_files_without_are_read_together(spark, catalog):
    table = catalog.create_table("shop.plain", [("id", "BIGINT"), ("ratio", "DOUBLE")])
    for first, nan in ((0, -1), (100, 5)):
        ratio = [float("nan") if n == nan else n / 2 for n in range(10)]
        table.write(pa.table({"id": range(first, first + 10), "ratio": ratio}))
    read = read_table(spark, table)

    assert sorted(row.id for row in read.where("ratio > 4.5").collect()) == [105]
    assert native_files(read) == 2


@pytest.mark.parametrize(
    "where",
    [
        "id BETWEEN 10 AND 40 AND dt <> '2024-01-02'",
        "note IS NULL OR note LIKE 'note 1%'",
        "ratio > 40 AND price <= 20.25",
        "ratio >= 1000",
        "NOT (ratio < 1000) AND id > 10",
        "day IN ('2024-01-05', '2024-01-06') AND NOT (note = 'newer')",
        "at < TIMESTAMP '2024-01-01 10:00:30.000040' AND instant >= '1970-01-01 00:00:00.00002Z'",
    ],
)
def test_a_condition_means_the_same_to_both_readers(spark, orders, where):
    orders.compact()
    expected = in_order(orders.scan(["id", "note"], where=where).to_arrow())
    read = read_table(spark, orders, columns=["id", "note"], where=where)

    assert native_files(read) > 0, "Spark was meant to read these files"
    assert in_order(read.toArrow()) == expected
    assert expected


def test_a_condition_spark_does_not_have_is_met_in_tasks(spark, orders):
    orders.compact()
    read = read_table(spark, orders, where="note LIKE 'n_te 1%'")

    assert native_files(read) == 0
    assert read.count() == orders.scan(where="note LIKE 'n_te 1%'").count() > 0


def test_time_travel_reads_the_rows_of_then(spark, orders):
    orders.tags.create("before", snapshot=1)

    for then in ({"snapshot": 1}, {"tag": "before"}):
        read = read_table(spark, orders, **then)
        assert in_order(read.toArrow()) == in_order(ROWS)


def test_an_empty_table_has_its_columns(spark, catalog):
    table = catalog.create_table("shop.empty", ROWS.schema)

    read = read_table(spark, table)

    assert read.columns == ROWS.column_names
    assert read.count() == 0


def test_rows_are_counted_without_spark_where_nothing_is_merged(spark, catalog, orders):
    plain = catalog.create_table("shop.plain", ROWS.schema)
    plain.write(ROWS)

    assert count_table("no Spark may be touched", plain) == 100
    assert count_table(spark, orders) == 100
    assert count_table(spark, orders, where="id < 10") == 10


def test_changes_come_with_their_kind(spark, orders):
    changes = read_changes(spark, orders, 0, columns=["id"]).toArrow()

    assert in_order(changes) == in_order(orders.changes(0, columns=["id"]).to_arrow())
    assert changes.num_rows == 110


def test_changes_come_out_of_changelogs_that_flink_packed(spark, tmp_path):
    table = lake.open_table(unpack_foreign("precommit_changelog", tmp_path))

    changes = read_changes(spark, table, 3, 4).toArrow()

    assert in_order(changes) == in_order(table.changes(3, 4).to_arrow())
    assert changes.num_rows == 10


@pytest.mark.parametrize("name", ["audit_log", "binlog"])
@pytest.mark.parametrize("mode", ["auto", "diff"])
def test_system_tables_tell_of_changes_too(lake_spark, catalog, orders, name, mode):
    wanted = catalog.table(f"shop.orders${name}").changes(1, 3, mode)
    changes = read_changes(lake_spark, f"shop.orders${name}", 1, 3, mode).toArrow()

    assert in_order(changes) == in_order(wanted.to_arrow())
    assert changes.num_rows > 0


def test_system_tables_are_read_too(lake_spark, orders):
    read = read_table(lake_spark, "shop.orders$snapshots")

    assert read.select("snapshot_id").toArrow()["snapshot_id"].to_pylist() == [1, 2, 3]


ICEBERG = ["equality_deletes", "mor_position_deletes", "v3_deletion_vectors", "spec_evolution"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ICEBERG)
def test_an_iceberg_table_is_read_without_its_deleted_rows(lake_spark, name):
    """By ``format("lake")`` and as a function, by its directory and as an open table."""
    place = iceberg_table(name).location
    table = lake.open_table(place)
    rows = in_order(table.scan().to_arrow())
    assert in_order(lake_spark.read.format("lake").load(place).toArrow()) == rows
    assert in_order(read_table(lake_spark, table).toArrow()) == rows
    assert count_table(lake_spark, place) == len(rows)


def test_a_mixed_table_is_read_as_merged_rows(lake_spark):
    place = mixed_table("t1_t6_overwrite").location
    table = lake.open_table(place)
    rows = in_order(table.scan().to_arrow())
    assert in_order(lake_spark.read.format("lake").load(place).toArrow()) == rows
    assert in_order(read_table(lake_spark, table).toArrow()) == rows
    assert count_table(lake_spark, place) == len(rows)
    for name in ("base", "change"):
        store = in_order(table.system_table(name).scan().to_arrow())
        frame = read_table(lake_spark, table.system_table(name))
        assert in_order(frame.toArrow()) == store, name


def test_changes_of_an_iceberg_table_are_read(lake_spark):
    table = lake.open_table(iceberg_table("cow_dml").location)
    changes = in_order(table.changes(0).to_arrow())
    assert in_order(read_changes(lake_spark, table, 0).toArrow()) == changes


def test_a_table_of_this_process_alone_is_refused(spark):
    catalog = lake.open_catalog("memory://spark/warehouse")
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", ROWS.schema)
    table.write(ROWS)

    with pytest.raises(lake.InvalidRequestError, match="memory of this process"):
        read_table(spark, table)


@pytest.mark.parametrize("native", [None, False])
def test_days_that_the_julian_calendar_lacks_are_found(spark, catalog, native):
    table = catalog.create_table("shop.old", [("day", "DATE")])
    days = [date(1582, 10, day) for day in (4, 10, 15)] + [date(1, 1, 1), date(9999, 12, 31)]
    table.write(pa.table({"day": days}))
    for condition, found in {
        "day = DATE '1582-10-10'": {days[1]},
        "day IN (DATE '1582-10-10', DATE '0001-01-01')": {days[1], days[3]},
        "day < DATE '1582-10-10'": {days[0], days[3]},
        "day > DATE '1582-10-14'": {days[2], days[4]},
    }.items():
        frame = read_table(spark, table, where=condition, native=native)
        assert set(frame.toArrow()["day"].to_pylist()) == found, condition


@pytest.mark.parametrize("how", ["where", "filter"])
def test_bounds_of_files_do_not_hide_days_that_the_julian_calendar_lacks(spark, catalog, how):
    table = catalog.create_table("shop.old", [("day", "DATE"), ("at", "TIMESTAMP_LTZ(6)")])
    days = [date(1582, 10, day) for day in (10, 15, 4, 20)]
    for day in days:  # one file of equal rows each
        moment = datetime(day.year, day.month, day.day, 5, tzinfo=UTC)
        table.write(pa.table({"day": [day] * 4, "at": [moment] * 4}, table.scan().schema))
    conditions = {
        "day = DATE '1582-10-10'": days[:1],
        "day > DATE '1582-10-09'": [days[0], days[1], days[3]],
        "day <> DATE '1582-10-10'": days[1:],
        "day IN (DATE '1582-10-10', DATE '1582-10-04')": [days[0], days[2]],
        "at = TIMESTAMP '1582-10-10 05:00:00'": days[:1],
        "at > TIMESTAMP '1582-10-09 05:00:00'": [days[0], days[1], days[3]],
        "at <> TIMESTAMP '1582-10-10 05:00:00'": days[1:],
    }
    setting = "spark.sql.datetime.java8API.enabled"
    before = spark.conf.get(setting)
    if how == "where":  # finds all rows also in a session that has another setting
        spark.conf.set(setting, False)
    try:
        for condition, found in conditions.items():
            where = condition if how == "where" else None
            frame = read_table(spark, table, where=where).where("true" if where else condition)
            assert sorted(frame.toArrow()["day"].to_pylist()) == sorted(found * 4), condition
    finally:
        spark.conf.set(setting, before)


def test_bounds_of_files_do_not_hide_moments_of_local_mean_time(spark, catalog):
    """New York's clocks were set back by four minutes at this moment."""
    table = catalog.create_table("shop.old", [("at", "TIMESTAMP_LTZ(6)")])
    moment = datetime(1883, 11, 18, 16, 58, tzinfo=UTC)
    table.write(pa.table({"at": [moment] * 4}, table.scan().schema))
    setting, zones = "spark.sql.datetime.java8API.enabled", spark._jvm.java.util.TimeZone
    before, zone = spark.conf.get(setting), zones.getDefault()
    spark.conf.set(setting, False)
    zones.setDefault(zones.getTimeZone("America/New_York"))
    try:
        frame = read_table(spark, table, where="at = TIMESTAMP '1883-11-18 16:58:00'")
        assert frame.count() == 4
    finally:
        zones.setDefault(zone)
        spark.conf.set(setting, before)


@pytest.mark.parametrize("native", [None, False])
def test_a_dropped_column_may_have_a_name_that_differs_only_by_case(spark, catalog, native):
    table = catalog.create_table("shop.cases", [("a", "STRING"), ("A", "INT")])
    table.write(pa.table({"a": ["x"], "A": pa.array([1], pa.int32())}))
    table = catalog.alter_table("shop.cases", lake.drop_column("A"))
    assert read_table(spark, table, native=native).toArrow().to_pylist() == [{"a": "x"}]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("ROW<a INT, A INT>", {"a": 1, "A": 2}),
        ("ARRAY<ROW<a INT, A INT>>", [{"a": 1, "A": 2}]),
        ("MAP<INT, ROW<a INT, A INT>>", [(1, {"a": 1, "A": 2})]),
    ],
)
def test_fields_of_a_row_may_have_names_that_differ_only_by_case(spark, catalog, kind, value):
    """Tasks read them, and Spark reads the other columns of the same file."""
    table = catalog.create_table("shop.cases", [("id", "INT"), ("r", kind)])
    schema = table.scan().to_arrow().schema
    table.write(pa.Table.from_pylist([{"id": 1, "r": value}], schema=schema))
    read = read_table(spark, table)
    assert in_order(read.toArrow()) == in_order(table.scan().to_arrow())
    assert native_files(read_table(spark, table, columns=["id"])) == 1


@pytest.mark.parametrize("native", [None, False])
def test_columns_of_several_files_are_joined(spark, catalog, native):
    """Spark reads the file that needs no merge, and tasks read the rest."""
    columns = [("id", "INT"), ("name", "STRING")]
    people = EvolvedRows(catalog.create_table("shop.people", columns, options=DATA_EVOLUTION))
    people.append([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    people.update(0, [{"name": "x"}, {"name": "y"}])
    people.append([{"id": 3, "name": "c"}])
    frame = read_table(spark, people.table, native=native)
    assert [row.asDict() for row in frame.sort("id").collect()] == people.rows
    frame = read_table(spark, people.table, where="name = 'y'", native=native)
    assert [row.asDict() for row in frame.collect()] == [people.rows[1]]
    assert count_table(spark, people.table) == 3


@pytest.mark.parametrize("way", ["address", "link"])
@pytest.mark.parametrize("native", [True, False])
def test_spark_is_given_no_file_that_is_not_the_tables(spark, tmp_path, way, native):
    ground = Ground(tmp_path)
    theirs = ground.victim_entry().file
    if way == "address":
        ground.name_outside(f"file:{ground.data_file}")
    else:
        ground.forge(lambda entry: replace(entry, file=theirs))
        (ground.hostile / "bucket-0" / theirs.file_name).symlink_to(ground.data_file)
    with pytest.raises(Exception, match=r"no external root allows|is a symbolic link"):
        read_table(spark, ground.table(), native=native).collect()
