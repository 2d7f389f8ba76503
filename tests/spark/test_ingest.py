"""Files land in a table: the same rows from either engine, and once."""

import json
import logging
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from spark_jobs.frames import spark_write
from spark_jobs.frames.pieces import shared_directory
from spark_jobs.frames.spark_write import write_in_tasks
from spark_jobs.ingest import run
from spark_jobs.runtime import spark_progress
from tests.spark.orders import ROWS, data_files, make_orders, write_orders


def rows_of(warehouse):
    table = lake.open_catalog(warehouse).table("shop.orders")
    return table.scan().to_arrow().sort_by("id")


@pytest.mark.parametrize("file_format", ["parquet", "csv", "json"])
@pytest.mark.parametrize("engine", ["python", "spark"])
def test_every_value_arrives_as_it_is(tmp_path, warehouse, request_for, spark, engine, file_format):
    make_orders(warehouse)
    expected = write_orders(tmp_path, file_format)

    report = run(request_for("orders-*", engine=engine), spark)

    assert rows_of(warehouse).to_pylist() == expected.to_pylist()
    assert (report["report"]["rows"], report["snapshot_id"], report["replayed"]) == (4, 1, False)


@pytest.mark.parametrize("file_format", ["parquet", "csv", "json"])
def test_both_engines_make_the_same_table(tmp_path, request_for, spark, file_format):
    write_orders(tmp_path, file_format)
    made = []
    for engine in ("python", "spark"):
        run(request_for("orders-*", engine=engine, warehouse=str(tmp_path / engine)), spark)
        made.append(rows_of(str(tmp_path / engine)))

    assert made[0].equals(made[1])


def test_tasks_say_how_far_they_have_come_while_they_run(
    tmp_path, request_for, spark, caplog, monkeypatch
):
    for number in range(12):
        path = tmp_path / f"rows-{number}.csv"
        path.write_text("id\n" + "".join(f"{n}\n" for n in range(20_000)))
    monkeypatch.setattr(spark_progress, "_LOOK_SECONDS", 0.02)
    group = spark.sparkContext.getLocalProperty("spark.jobGroup.id")

    with caplog.at_level(logging.INFO, "spark_jobs.runtime.progress"):
        run(request_for("rows-*", engine="spark"), spark)

    told = [json.loads(each.message) for each in caplog.records if "tasks" in each.message]
    assert {each["unit"] for each in told} == {"tasks"}
    assert [each["done"] for each in told] == sorted(each["done"] for each in told)
    assert any(0 < each["done"] < each["total"] for each in told)
    assert told[-1]["done"] == told[-1]["total"] > 1
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") == group


@pytest.mark.parametrize("engine", ["python", "spark"])
def test_a_repeated_commit_reads_nothing_and_publishes_nothing(
    tmp_path, warehouse, request_for, spark, engine
):
    write_orders(tmp_path, "csv")
    request = request_for("orders-*", engine=engine, commit_user="run", commit_identifier=1)
    first = run(request, spark)
    for path in tmp_path.glob("orders-*"):
        path.unlink()

    again = run(request, spark="no Spark may be touched")

    assert again["replayed"]
    assert again["snapshot_id"] == first["snapshot_id"]
    assert len(lake.open_catalog(warehouse).table("shop.orders").snapshots()) == 1


def test_a_retried_task_publishes_its_rows_once(warehouse, spark):
    table = make_orders(warehouse)

    def fail_the_first_time(opened, batches):
        from pyspark import TaskContext

        yield from batches
        if TaskContext.get().attemptNumber() == 0:
            raise RuntimeError("the first attempt breaks after its rows were written")

    messages = write_in_tasks(spark.range(10).repartition(2), table, fail_the_first_time)
    table.commit(messages)

    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(10))
    assert len(data_files(warehouse)) == len(messages)


def test_rows_of_a_job_that_fails_are_never_visible(warehouse, spark):
    table = make_orders(warehouse)

    def fail_always(opened, batches):
        yield from batches
        raise RuntimeError("no attempt gets through")

    with pytest.raises(Exception, match="no attempt gets through"):
        write_in_tasks(spark.range(10), table, fail_always)

    assert table.latest_snapshot() is None
    assert data_files(warehouse) == []


def test_files_of_tasks_that_succeeded_go_when_their_job_fails(warehouse, spark):
    table = make_orders(warehouse)

    def fail_the_last(opened, batches):
        from pyspark import TaskContext

        if TaskContext.get().partitionId() == 3:
            # A task that still runs when the job fails is killed, and leaves its file.
            end = time.monotonic() + 60
            while len(data_files(warehouse)) < 3 and time.monotonic() < end:
                time.sleep(0.05)
            time.sleep(1)  # until the task is reported, after its file is written
            raise RuntimeError("no attempt of the last gets through")
        yield from batches

    with pytest.raises(Exception, match="no attempt of the last gets through"):
        write_in_tasks(spark.range(0, 8, 1, 4), table, fail_the_last)

    assert data_files(warehouse) == []


@pytest.mark.parametrize("engine", ["python", "spark"])
@pytest.mark.parametrize("file_format", ["parquet", "csv", "json"])
def test_a_column_the_table_does_not_have_is_refused(
    tmp_path, warehouse, request_for, spark, engine, file_format
):
    catalog = lake.open_catalog(warehouse)
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", ROWS.schema.remove(ROWS.schema.names.index("note")))
    write_orders(tmp_path, file_format)

    with pytest.raises(lake.InvalidRequestError, match=r"no column 'note'|unexpected field"):
        run(request_for("orders-*", engine=engine), spark)

    assert table.latest_snapshot() is None


def test_directory_names_do_not_become_columns(tmp_path, warehouse, request_for, spark):
    folder = tmp_path / "day=2024-01-31" / "a [b]{c} %20"
    folder.mkdir(parents=True)
    expected = write_orders(folder, "parquet")

    run(request_for("day=*/*/orders-*", engine="spark"), spark)

    assert rows_of(warehouse).column_names == expected.column_names


@pytest.mark.parametrize("is_shared", [True, False])
def test_files_land_in_buckets_one_writer_each_in_the_order_of_the_files(
    tmp_path, catalog, request_for, spark, monkeypatch, is_shared
):
    temporary, waited = tmp_path / "temporary", []

    @contextmanager
    def directory_of(session):
        with shared_directory(session) as found:
            yield found if is_shared else None
            waited.extend(Path(found).iterdir())

    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(spark_write, "shared_directory", directory_of)
    options = {"bucket": "3"}
    table = catalog.create_table(
        "shop.orders", [("id", "BIGINT"), ("note", "STRING")], primary_key=["id"], options=options
    )
    for number in range(4):
        rows = {"id": [*range(50)], "note": [f"file {number}"] * 50}
        pa.parquet.write_table(pa.table(rows), tmp_path / f"orders-{number}.parquet")

    report = run(request_for("orders-*", engine="spark"), spark)

    assert (report["report"]["rows"], report["report"]["files"]) == (50, 3)
    assert set(table.scan().to_arrow()["note"].to_pylist()) == {"file 3"}
    assert len(waited) == (4 if is_shared else 0)
    assert [*temporary.iterdir()] == []


@pytest.mark.parametrize("engine", ["python", "spark"])
def test_nanoseconds_are_kept(tmp_path, warehouse, request_for, spark, engine):
    times = pa.table({"at": pa.array([1, 2], pa.timestamp("ns"))})
    pa.parquet.write_table(times, tmp_path / "times.parquet")

    run(request_for("times.parquet", engine=engine), spark)

    table = lake.open_catalog(warehouse).table("shop.orders")
    assert table.scan().to_arrow() == times


def test_spark_cannot_write_into_the_memory_of_this_process(tmp_path, request_for, spark):
    write_orders(tmp_path, "parquet")
    request = request_for("orders-*", engine="spark", warehouse="memory://spark-tests/warehouse")

    with pytest.raises(lake.InvalidRequestError, match="memory of this process"):
        run(request, spark)


@pytest.mark.parametrize(
    "options", [{"snapshot.ignore-empty-commit": "false"}, {"commit.force-create-snapshot": "true"}]
)
def test_looking_for_an_earlier_run_makes_no_snapshot_of_its_own(
    tmp_path, warehouse, request_for, options
):
    """If every commit creates a snapshot, an empty one would be taken for the run's."""
    catalog = lake.open_catalog(warehouse)
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", [("id", "BIGINT")], options=options)
    (tmp_path / "orders-1.csv").write_text("id\n1\n2\n")
    request = request_for("orders-*", commit_user="run", commit_identifier=1)

    reports = [run(request) for _ in "ab"]

    assert [(report["report"]["rows"], report["replayed"]) for report in reports] == [
        (2, False),
        (2, True),
    ]
    assert (orders.scan().count(), len(orders.snapshots())) == (2, 1)


def test_the_files_of_a_run_whose_twin_was_faster_are_removed(
    tmp_path, warehouse, request_for, spark, monkeypatch
):
    make_orders(warehouse)
    write_orders(tmp_path, "csv")
    request = request_for("orders-*", engine="spark", commit_user="run", commit_identifier=1)
    run(request, spark)
    monkeypatch.setattr(lake.Table, "find_commit", lambda table, commit: None)  # not there yet

    report = run(request, spark)

    live = lake.open_catalog(warehouse).table("shop.orders$files").scan().to_arrow()
    assert report["replayed"]
    assert len(data_files(warehouse)) == live.num_rows


@pytest.mark.parametrize(
    ("overwrite", "left"), [("partitions", [1, 3]), ("table", [3]), (None, [1, 2, 3])]
)
@pytest.mark.parametrize("keys", [{}, {"primary_key": ["dt", "id"]}], ids=["append", "keyed"])
def test_tasks_replace_what_the_request_says(
    tmp_path, warehouse, request_for, spark, keys, overwrite, left
):
    (tmp_path / "old.csv").write_text("dt,id\n2024-01-01,1\n2024-01-02,2\n")
    (tmp_path / "new.csv").write_text("dt,id\n2024-01-02,3\n")
    table = {**keys, "partition_by": ["dt"], "table_options": {"bucket": "1" if keys else "-1"}}
    run(request_for("old.csv", **table))
    again = {"engine": "spark", "commit_user": "run", "commit_identifier": 1}

    first = run(request_for("new.csv", overwrite=overwrite, **again), spark)
    repeated = run(request_for("new.csv", overwrite=overwrite, **again), "no Spark is touched")

    assert rows_of(warehouse)["id"].to_pylist() == left
    assert first["report"]["kind"] == ("APPEND" if overwrite is None else "OVERWRITE")
    assert (repeated["replayed"], repeated["snapshot_id"]) == (True, first["snapshot_id"])


def test_tasks_without_rows_empty_the_table_but_no_partition(
    tmp_path, warehouse, request_for, spark
):
    (tmp_path / "old.csv").write_text("dt,id\n2024-01-01,1\n")
    (tmp_path / "none.csv").write_text("dt,id\n")
    run(request_for("old.csv", partition_by=["dt"], table_options={"bucket": "-1"}))

    for overwrite, left in (("partitions", [1]), ("table", [])):
        run(request_for("none.csv", overwrite=overwrite, engine="spark"), spark)
        assert rows_of(warehouse)["id"].to_pylist() == left


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_tasks_write_new_and_wider_columns(tmp_path, warehouse, request_for, spark, file_format):
    catalog = lake.open_catalog(warehouse)
    catalog.create_database("shop")
    catalog.create_table("shop.orders", [("id", "INT")])
    rows = pa.table({"id": [3_000_000_000], "note": ["a"]})
    if file_format == "csv":
        (tmp_path / "new.csv").write_text("id,note\n3000000000,a\n")
    else:
        pq.write_table(rows, tmp_path / "new.parquet")
    (tmp_path / "small.csv").write_text("id,note\n3,a\n")

    with pytest.raises(lake.InvalidRequestError, match="With on_schema_change='add' the job adds"):
        run(request_for("small.csv", engine="spark"), spark)
    run(request_for("new.*", engine="spark", on_schema_change="widen"), spark)

    assert rows_of(warehouse).equals(rows)


@pytest.mark.parametrize("file_format", ["parquet", "csv", "json"])
def test_tasks_rename_and_cast_columns_as_this_process_does(
    tmp_path, warehouse, request_for, spark, file_format
):
    rows = [{"No": number, "Amount (EUR)": 1.235} for number in range(3)]
    if file_format == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "new.parquet")
    elif file_format == "json":
        (tmp_path / "new.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        (tmp_path / "new.csv").write_text("No,Amount (EUR)\n0,1.235\n1,1.235\n2,1.235\n")
    mapping = {
        "columns": {"id": "No", "amount": "Amount (EUR)"},
        "casts": {"amount": "DECIMAL(10, 2)"},
        "primary_key": ["id"],
        "table_options": {"bucket": "2"},
    }
    made = []
    for engine in ("python", "spark"):
        place = str(tmp_path / engine)
        run(request_for("new.*", engine=engine, warehouse=place, **mapping), spark)
        made.append(rows_of(place))

    assert made[0].equals(made[1])
    assert [str(value) for value in made[1]["amount"].to_pylist()] == ["1.24"] * 3
