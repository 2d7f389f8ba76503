"""Streams from tables and into tables: each row once, after any interruption and restart."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from spark_jobs import by_bucket, write_stream_batch

COLUMNS = [("id", "BIGINT"), ("note", "STRING")]

pytestmark = pytest.mark.sampled(2, among="interrupted streams")


@pytest.fixture
def source(catalog):
    return catalog.create_table("shop.events", COLUMNS)


@pytest.fixture
def target(catalog):
    return catalog.create_table("shop.copy", COLUMNS, primary_key=["id"], options={"bucket": "2"})


def add(table, *ids, note="a"):
    table.write(pa.table({"id": pa.array(ids, pa.int64()), "note": [note] * len(ids)}))


def copy(spark, checkpoint, sink="format", **options):
    """Everything there is from the one table into the other; the batches that it took."""
    rows = spark.readStream.format("lake").options(**options).load("shop.events")
    if sink == "format":
        writer = by_bucket(rows, "shop.copy").writeStream.format("lake").option("path", "shop.copy")
    else:
        writer = rows.writeStream.foreachBatch(write_stream_batch("shop.copy"))
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return [progress["numInputRows"] for progress in query.recentProgress]


def ids(table):
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def test_a_stream_goes_on_where_it_was(lake_spark, source, target, tmp_path):
    add(source, 1, 2)
    copy(lake_spark, tmp_path / "checkpoint")
    add(source, 3)
    add(source, 4)
    copy(lake_spark, tmp_path / "checkpoint")

    assert ids(target) == [1, 2, 3, 4]
    commits = [(s.commit_user, s.commit_identifier) for s in target.snapshots()]
    assert [number for _, number in commits] == [0, 1]
    assert len({user for user, _ in commits}) == 1


def test_no_batch_has_more_snapshots_than_it_may(lake_spark, source, target, tmp_path):
    """Neither the first one of a stream, nor the first one after it was started again."""
    limit = {"scan.mode": "from-snapshot", "scan.snapshot-id": 1, "max-snapshots-per-batch": 2}
    for first in (1, 10):
        for number in range(first, first + 5):
            add(source, number)
        rows = lake_spark.readStream.format("lake").options(**limit).load("shop.events")
        writer = by_bucket(rows, "shop.copy").writeStream.format("lake")
        query = writer.option("checkpointLocation", tmp_path / "checkpoint").start("shop.copy")
        try:
            query.processAllAvailable()
        finally:
            query.stop()

        assert [each["numInputRows"] for each in query.recentProgress][:3] == [2, 2, 1]
    assert len(ids(target)) == 10


def test_a_batch_whose_commit_spark_forgot_is_published_once(lake_spark, source, target, tmp_path):
    """As when the driver dies after it published a batch and before it noted that."""
    add(source, 1, 2)
    copy(lake_spark, tmp_path / "checkpoint")
    for noted in (tmp_path / "checkpoint" / "commits").glob("*0*"):
        noted.unlink()

    copy(lake_spark, tmp_path / "checkpoint")

    assert ids(target) == [1, 2]
    assert len(target.snapshots()) == 1
    files = [path for path in Path(tmp_path).rglob("shop.db/copy/bucket-*/data-*")]
    assert len(files) == len(target.system_table("files").scan().to_arrow())


@pytest.mark.parametrize("sink", ["format", "foreachBatch"])
def test_a_batch_whose_commit_spark_forgot_and_the_table_too_is_published_once(
    lake_spark, source, target, tmp_path, sink
):
    """The driver is back after its snapshot has expired."""
    add(source, 1, 2)
    copy(lake_spark, tmp_path / "checkpoint", sink)
    for noted in (tmp_path / "checkpoint" / "commits").glob("*0*"):
        noted.unlink()
    target.write(pa.table({"id": [1], "note": ["of somebody else"]}))
    target.expire_snapshots(retain_max=1, retain_min=1)

    copy(lake_spark, tmp_path / "checkpoint", sink)

    assert target.scan(where="id = 1").to_arrow()["note"].to_pylist() == ["of somebody else"]
    assert len(target.snapshots()) == 1


def test_a_first_batch_that_is_repeated_begins_where_it_began(lake_spark, source, target, tmp_path):
    """Spark asks for its start again after the source has advanced."""
    add(source, 1, 2)
    copy(lake_spark, tmp_path / "checkpoint")
    for noted in (tmp_path / "checkpoint" / "commits").glob("*0*"):
        noted.unlink()
    add(source, 3)

    copy(lake_spark, tmp_path / "checkpoint")  # Spark 4.1 runs one batch of a Python source then
    copy(lake_spark, tmp_path / "checkpoint")

    assert ids(target) == [1, 2, 3]
    assert [each.delta_record_count for each in target.snapshots()] == [2, 1]


def test_a_table_that_is_made_anew_while_a_stream_is_down_stops_it(
    lake_spark, catalog, source, target, tmp_path
):
    add(source, 1)
    add(source, 2)
    copy(lake_spark, tmp_path / "checkpoint")
    catalog.drop_table("shop.events")
    made = catalog.create_table("shop.events", COLUMNS)
    for number in (5, 6, 7):
        add(made, number)

    with pytest.raises(
        Exception, match=r"has read .* up to snapshot 2, but another table has this name now"
    ):
        copy(lake_spark, tmp_path / "checkpoint")
    assert ids(target) == [1, 2]


def test_a_running_stream_stops_where_its_columns_change_and_goes_on_from_there(
    lake_spark, catalog, source, target, tmp_path
):
    add(source, 1)
    rows = lake_spark.readStream.format("lake").option("columns", "id, note").load("shop.events")
    writer = by_bucket(rows, "shop.copy").writeStream.format("lake")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.start("shop.copy")
    try:
        query.processAllAvailable()
        catalog.alter_table("shop.events", lake.add_column("more", "INT"))
        with pytest.raises(Exception, match="the stream stops after snapshot 1: the columns of"):
            query.awaitTermination(120)
    finally:
        query.stop()
    add(catalog.table("shop.events"), 2)
    copy(lake_spark, tmp_path / "checkpoint", columns="id, note")

    assert ids(target) == [1, 2]


def test_a_key_may_go_so_its_stream_says_what_rows_do(lake_spark, target, catalog, tmp_path):
    add(target, 1, 2)
    target.write(pa.table({"id": [2], "note": ["a"]}), kinds=["-D"])
    catalog.create_table("shop.log", [("rowkind_", "STRING"), *COLUMNS])

    def logged(**options):
        reader = lake_spark.readStream.format("lake").options(**options)
        rows = reader.load("shop.copy").withColumnRenamed("rowkind", "rowkind_")
        write = write_stream_batch("shop.log")
        query = (
            rows.writeStream.foreachBatch(write)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    start = {"scan.mode": "from-snapshot", "scan.snapshot-id": "1"}
    with pytest.raises(Exception, match=r"set option\('rowkind', 'true'\)"):
        logged(**start)
    shutil.rmtree(tmp_path / "checkpoint")
    logged(rowkind="true", **start)

    rows = catalog.table("shop.log").scan().to_arrow().sort_by([("id", "ascending")]).to_pylist()
    assert sorted((row["rowkind_"], row["id"]) for row in rows) == [("+I", 1), ("+I", 2), ("-D", 2)]


def test_a_new_checkpoint_needs_a_new_query(lake_spark, source, target, tmp_path):
    def copied(checkpoint, query):
        rows = lake_spark.readStream.format("lake").load("shop.events")
        writer = by_bucket(rows, "shop.copy").writeStream.format("lake").option("query", query)
        writer = writer.option("checkpointLocation", str(tmp_path / checkpoint))
        writer.trigger(availableNow=True).start("shop.copy").awaitTermination()

    add(source, 1)
    copied("first", "copy")
    add(source, 2)
    with pytest.raises(Exception, match=r"commit 0 from another checkpoint.* set 'query' to a new"):
        copied("second", "copy")
    assert ids(target) == [1]

    copied("first", "copy")
    copied("third", "another copy")
    assert ids(target) == [1, 2]


@pytest.mark.parametrize("opened", ["neither", "second", "both"])
def test_a_second_write_of_a_batch_needs_its_own_query(
    lake_spark, catalog, source, tmp_path, opened
):
    copies = catalog.create_table("shop.copies", COLUMNS)
    add(source, 1, 2, 3, 4)

    def split(**second):
        def copied(is_open, **query):
            table = catalog.table("shop.copies") if is_open else "shop.copies"
            return write_stream_batch(table, **query)

        def both(rows, number):
            for _ in range(2):  # the same rows again: a repetition
                copied(opened == "both")(rows.where("id % 2 = 0"), number)
            rows.sparkSession.sparkContext.setJobGroup(f"odd {number}", "another group")
            copied(opened != "neither", **second)(rows.where("id % 2 = 1"), number)

        rows = lake_spark.readStream.format("lake").load("shop.events")
        writer = rows.writeStream.foreachBatch(both).trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.start().awaitTermination()

    for _ in range(2):  # also after a restart, which repeats the first write
        with pytest.raises(Exception, match=r"rows .* were not written.* its own 'query'"):
            split()
        assert ids(copies) == [2, 4]

    split(query="odd")
    assert ids(copies) == [1, 2, 3, 4]


def test_a_batch_of_new_rows_is_repeated_after_a_failure(lake_spark, catalog, source, tmp_path):
    """The function sets its own job group, and its rows are of the session that started it."""
    copies = catalog.create_table("shop.copies", COLUMNS)
    add(source, 1)
    fails = iter([True, False])

    def copied(rows, number):
        rows.sparkSession.sparkContext.setJobGroup("copy", "always the same group")
        made = lake_spark.createDataFrame([(7, "made")], "id long, note string")
        write_stream_batch("shop.copies")(made, number)
        if next(fails):
            raise OSError("another target is away")

    def run():
        rows = lake_spark.readStream.format("lake").load("shop.events")
        writer = rows.writeStream.foreachBatch(copied).trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.start().awaitTermination()

    with pytest.raises(Exception, match=r"another target is away"):
        run()
    run()

    assert ids(copies) == [7]


@pytest.mark.parametrize("is_open", [False, True])
def test_a_batch_that_writes_to_two_branches_is_repeated(
    lake_spark, catalog, source, tmp_path, is_open
):
    copies = catalog.create_table("shop.copies", COLUMNS)
    copies.branches.create("odd")
    add(source, 1, 2, 3, 4)

    def both(rows, number):
        names = ["shop.copies", "shop.copies$branch_odd"]
        tables = [catalog.table(name) for name in names] if is_open else names
        even, odd = map(write_stream_batch, tables)
        even(rows.where("id % 2 = 0"), number)
        odd(rows.where("id % 2 = 1"), number)

    for _ in range(2):
        rows = lake_spark.readStream.format("lake").load("shop.events")
        writer = rows.writeStream.foreachBatch(both).trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.start().awaitTermination()
        for noted in (tmp_path / "checkpoint" / "commits").glob("*0*"):
            noted.unlink()

    assert ids(copies) == [2, 4]
    assert ids(catalog.table("shop.copies$branch_odd")) == [1, 3]
