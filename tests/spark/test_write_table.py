"""DataFrames into tables: one commit, one writer per bucket, and nothing twice."""

import re
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.write.assign import Assigner, PartitionNumbers
from spark_jobs import write_stream_batch, write_table
from spark_jobs.frames import spark_write
from spark_jobs.frames.bucket_column import with_bucket
from tests.spark.orders import data_files

KEYED = {"primary_key": ["id", "dt"], "partition_by": ["dt"]}
COLUMNS = [("id", "BIGINT"), ("dt", "STRING"), ("note", "STRING")]


def frame_of(spark, numbers, note="a", partitions=3):
    rows = spark.range(numbers.start, numbers.stop, 1, partitions)
    return rows.selectExpr("id", "concat('p', id % 2) AS dt", f"'{note}' AS note")


@pytest.fixture
def orders(catalog):
    return catalog.create_table("shop.orders", COLUMNS, options={"bucket": "2"}, **KEYED)


@pytest.fixture(params=["one machine", "machines"])
def machines(request, monkeypatch):
    """Rows reach their writers by files, or by the JVM's shuffle."""
    is_one = request.param == "one machine"
    monkeypatch.setattr(spark_write, "is_one_machine", lambda session: is_one)


def notes(table, **which):
    rows = table.scan(**which).to_arrow()
    return dict(zip(rows["id"].to_pylist(), rows["note"].to_pylist(), strict=True))


@pytest.mark.sampled(1)
def test_rows_are_upserts_and_each_bucket_gets_one_file(spark, orders, warehouse, machines):
    first = write_table(frame_of(spark, range(100)), orders)
    write_table(frame_of(spark, range(5), note="b"), "shop.orders", warehouse=warehouse)

    assert (first.rows, first.files) == (100, 4)
    assert notes(orders) == {n: "b" if n < 5 else "a" for n in range(100)}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("overwrite", [None, "table"])
def test_a_batch_in_transaction_order_keeps_what_a_stream_changed_since(spark, orders, overwrite):
    write_table(frame_of(spark, range(6)), orders)
    order = {"read_snapshot": orders.position(), "conflict": "transaction-order"}
    orders.write(pa.table({"id": [2, 9], "dt": ["p0", "p1"], "note": ["stream", "stream"]}))

    write_table(frame_of(spark, range(4), note="b"), orders, mode=overwrite or "append", **order)

    kept = {} if overwrite else {4: "a", 5: "a"}
    expected = {0: "b", 1: "b", 2: "stream", 3: "b", 9: "stream"}
    assert notes(orders) == expected | kept


def test_a_column_says_what_rows_do(spark, orders, machines):
    write_table(frame_of(spark, range(10)), orders)
    gone = frame_of(spark, range(4)).selectExpr("*", "'-D' AS does")

    write_table(gone, orders, kinds="does")

    assert sorted(notes(orders)) == [*range(4, 10)]


def test_sequence_numbers_go_on_behind_those_of_the_bucket(spark, orders):
    for note in "abc":
        write_table(frame_of(spark, range(6), note=note), orders)
    files = orders.system_table("files").scan().to_arrow().to_pylist()

    ranges = {}
    for file in files:
        place = (str(file["partition"]), file["bucket"])
        ends = (file["min_sequence_number"], file["max_sequence_number"])
        ranges.setdefault(place, []).append(ends)
    for found in ranges.values():
        ordered = sorted(found)
        assert all(one[1] < other[0] for one, other in pairwise(ordered))
    assert set(notes(orders).values()) == {"c"}


def test_overwriting_replaces_all_some_or_the_partitions_that_get_rows(spark, orders):
    write_table(frame_of(spark, range(10)), orders)
    of_p0 = frame_of(spark, range(4), note="b").where("dt = 'p0'")

    write_table(of_p0, orders, mode="dynamic")
    assert sorted(notes(orders)) == [0, 1, 2, 3, 5, 7, 9]
    write_table(of_p0.limit(1), orders, mode="overwrite", partitions={"dt": "p0"})
    assert sorted(notes(orders)) == [0, 1, 3, 5, 7, 9]
    write_table(of_p0, orders, mode="overwrite")
    assert sorted(notes(orders)) == [0, 2]


def test_the_same_commit_twice_publishes_once(spark, orders):
    commit = lake.CommitId("run", 1)
    first = write_table(frame_of(spark, range(10)), orders, commit=commit)

    again = write_table(frame_of(spark, range(20)), orders, commit=commit)

    assert (again.replayed, again.snapshot_id) == (True, first.snapshot_id)
    assert len(notes(orders)) == 10


def test_few_rows_of_many_partitions_make_few_files(spark, catalog):
    table = catalog.create_table("shop.events", COLUMNS, partition_by=["dt"])

    report = write_table(frame_of(spark, range(40), partitions=10), table)

    assert (report.rows, report.files) == (40, 2)


def test_rows_that_do_not_fit_are_refused_and_leave_nothing(spark, orders, warehouse, machines):
    wrong = frame_of(spark, range(10)).selectExpr("id", "dt", "note", "1 AS extra")

    with pytest.raises(lake.InvalidRequestError, match="no column 'extra'"):
        write_table(wrong, orders)
    with pytest.raises(lake.InvalidRequestError, match=r"leave it out, .*'sequence\.field' orders"):
        write_table(wrong, orders, sequence_by=["id"])

    assert orders.latest_snapshot() is None
    assert data_files(warehouse) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (["CAST(id AS STRING) AS id", "dt"], "'id' is string in the rows and bigint in the table"),
        (["id", "note"], "no column 'dt'"),
    ],
)
def test_what_decides_about_buckets_has_the_tables_type(spark, orders, changed, said, machines):
    with pytest.raises(lake.InvalidRequestError, match=said):
        write_table(frame_of(spark, range(1)).selectExpr(*changed), orders)


def test_a_failing_commit_removes_what_tasks_have_written(spark, orders, warehouse):
    write_table(frame_of(spark, range(10)), orders)
    before = {*data_files(warehouse)}
    read = orders.latest_snapshot().id
    write_table(frame_of(spark, range(4), note="b"), orders)
    both = {*data_files(warehouse)}

    with pytest.raises(lake.CommitConflictError):
        write_table(frame_of(spark, range(9)), orders, mode="overwrite", read_snapshot=read)

    assert before < both == {*data_files(warehouse)}


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (["*", "1 AS extra"], "no column 'extra'"),
        (["id", "dt", "id AS note"], "column 'note' has type"),
    ],
)
def test_columns_that_do_not_fit_are_refused_where_there_is_no_row(
    spark, orders, columns, said, machines
):
    none = frame_of(spark, range(0)).selectExpr(*columns)

    with pytest.raises(lake.InvalidRequestError, match=said):
        write_table(none, orders)


def test_a_table_that_is_dropped_before_a_task_writes_stays_gone(
    spark, catalog, orders, warehouse, machines
):
    """Its handle was opened before."""
    catalog.drop_table("shop.orders")

    with pytest.raises(lake.NotFoundError, match=r"does not exist any more.*Nothing was written"):
        write_table(frame_of(spark, range(10)), orders)

    assert not Path(warehouse, "shop.db/orders").exists()


KEYS = {
    "INT": pa.array([0, -1, 1, -(2**31), 2**31 - 1, *range(100, 3000)], pa.int32()),
    "BIGINT": pa.array([0, -1, 1, -(2**63), 2**63 - 1, *range(7, 10**12, 10**9)], pa.int64()),
    "DATE": pa.array([0, -1, 19_000, *range(-5000, 20000, 7)], pa.int32()).cast(pa.date32()),
    "STRING": pa.array(["", "a", "something longer than eight bytes", *map(str, range(2000))]),
}


@pytest.mark.parametrize(
    ("types", "function"),
    [
        (["BIGINT"], "default"),
        (["INT", "BIGINT", "DATE"], "default"),
        (["BIGINT"], "mod"),
        (["INT"], "mod"),
        (["STRING"], "default"),
        (["INT", "STRING"], "hive"),
    ],
)
def test_a_bucket_is_the_same_as_lakeformat_says(spark, catalog, types, function):
    count = min(len(KEYS[each]) for each in types)
    rows = pa.table({f"k {each}": KEYS[each].slice(0, count) for each in types})
    options = {"bucket": "7", "bucket-function.type": function}
    table = catalog.create_table(
        "shop.t",
        [(f"k {each}", each) for each in types],
        primary_key=rows.column_names,
        options=options,
    )

    found = with_bucket(spark.createDataFrame(rows), table.schema, "bucket").toArrow()

    expected = Assigner(table.schema, PartitionNumbers(table.schema, None))(
        rows.combine_chunks().to_batches()[0], range(count)
    )
    assert found["bucket"].to_pylist() == expected.tolist()
    assert len(set(expected)) == 7


def test_the_jvm_computes_buckets_of_numbers(spark, orders):
    plan = with_bucket(frame_of(spark, range(9)), orders.schema, "bucket")._jdf.queryExecution()

    assert not re.search("Python|Arrow", plan.toString())


@pytest.fixture
def iceberg_orders(tmp_path):
    """An Iceberg table in a catalog, whose connection tasks do not get."""
    uri = f"sqlite:///{tmp_path}/catalog.db"
    catalog = lake.open_catalog(
        str(tmp_path / "iceberg"), format="iceberg", metastore="sql", uri=uri
    )
    catalog.create_database("shop")
    return catalog.create_table("shop.orders", COLUMNS, partition_by=["dt", "bucket(2, id)"])


def test_iceberg_tables_are_written_in_tasks_and_committed_once(spark, iceberg_orders):
    commit = lake.CommitId("run", 1)
    first = write_table(frame_of(spark, range(20)), iceberg_orders, commit=commit)
    assert write_table(frame_of(spark, range(20)), iceberg_orders, commit=commit).replayed
    assert (first.rows, len(iceberg_orders.snapshots())) == (20, 1)
    odd = (
        frame_of(spark, range(1, 21, 2))
        .where("id % 2 = 1")
        .limit(3)
        .selectExpr("id", "dt", "'b' note")
    )
    assert write_table(odd, iceberg_orders, mode="partitions").rows == 3
    with pytest.raises(lake.InvalidRequestError, match="nme"):
        write_table(odd.withColumnRenamed("note", "nme"), iceberg_orders)
    assert sorted(notes(iceberg_orders).values()).count("b") == 3
    assert {number for number, note in notes(iceberg_orders).items() if note == "a"} >= {0, 2, 18}


def test_format_lake_appends_streams_and_overwrites_iceberg_tables(lake_spark, tmp_path):
    catalog = lake.open_catalog(str(tmp_path / "iceberg"), format="iceberg")
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", COLUMNS, partition_by=["dt"])
    place = orders.location.removeprefix("file://")

    frame_of(lake_spark, range(4)).write.format("lake").mode("append").save(place)
    for number in (1, 2):
        frame_of(lake_spark, range(number * 10, number * 10 + 3)).write.json(
            str(tmp_path / f"in/{number}")
        )
        rows = lake_spark.readStream.schema("id LONG, dt STRING, note STRING")
        writer = rows.json(str(tmp_path / "in/*")).writeStream.format("lake")
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start(place).awaitTermination()
    users = [each.commit_user for each in orders.snapshots()]
    assert sorted(notes(orders)) == [0, 1, 2, 3, 10, 11, 12, 20, 21, 22]
    assert (len(users), users[1]) == (3, users[2])  # one commit of the stream for each batch

    frame_of(lake_spark, range(7, 8)).write.format("lake").mode("overwrite").option(
        "overwrite-mode", "dynamic"
    ).save(place)
    assert sorted(notes(orders)) == [0, 2, 7, 10, 12, 20, 22]


def test_the_job_ingests_files_into_an_iceberg_table_in_tasks(spark, tmp_path):
    from spark_jobs import ingest

    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(f"id,day\n{ord(name)},2024-01-31\n")
    request = {
        "warehouse": str(tmp_path / "iceberg"),
        "catalog_options": {"format": "iceberg"},
        "table": "shop.new",
        "source": str(tmp_path / "*.csv"),
        "engine": "spark",
        "create": True,
        "partition_by": ["month(day)"],
        "checkpoint": str(tmp_path / "checkpoint"),
    }
    first, again = ingest.run(request, spark), ingest.run(request, spark)
    table = lake.open_catalog(request["warehouse"], format="iceberg").table("shop.new")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [97, 98]
    assert (first["snapshot_id"], again["skipped"]) == (table.latest_snapshot().id, True)


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_the_job_replaces_rows_of_an_iceberg_table_by_key_in_tasks_once(spark, tmp_path, mode):
    from spark_jobs import ingest

    catalog = lake.open_catalog(str(tmp_path / "iceberg"), format="iceberg")
    catalog.create_database("shop")
    options = {"format-version": "3", "write.merge.mode": mode}
    orders = catalog.create_table("shop.orders", COLUMNS, partition_by=["dt"], options=options)
    write_table(frame_of(spark, range(20)), orders)
    for name, ids in (("a", (3, 30)), ("b", (4, 31))):
        lines = "".join(f"{number},new,b\n" for number in ids)
        (tmp_path / f"{name}.csv").write_text(f"id,dt,note\n{lines}")
    request = {
        "warehouse": str(tmp_path / "iceberg"),
        "catalog_options": {"format": "iceberg"},
        "table": "shop.orders",
        "source": str(tmp_path / "*.csv"),
        "engine": "spark",
        "upsert_by": ["id"],
        "commit_user": "run",
        "commit_identifier": 1,
    }
    first, again = ingest.run(request, spark), ingest.run(request, spark)
    assert notes(orders) == dict.fromkeys(range(20), "a") | dict.fromkeys((3, 4, 30, 31), "b")
    assert (first["report"]["replaced_rows"], again["replayed"]) == (2, True)
    (tmp_path / "c.csv").write_text("id,dt,note\n3,new,c\n")
    with pytest.raises(lake.InvalidRequestError, match="2 of 5 rows have a key that another row"):
        ingest.run(request | {"commit_identifier": 2}, spark)
    batch = write_stream_batch(orders, upsert_by=["id"], query="changes")
    for _ in range(2):
        batch(frame_of(spark, range(4, 6), "d"), 0)
    assert [notes(orders)[number] for number in (3, 4, 5, 6)] == ["b", "d", "d", "a"]
    with pytest.raises(lake.InvalidRequestError, match="upsert_by and mode='table' exclude"):
        write_table(frame_of(spark, range(1)), orders, upsert_by=["id"], mode="table")
    assert len(orders.snapshots()) == 3


def test_rows_with_kinds_change_an_iceberg_table_in_the_order_of_a_column(spark, tmp_path):
    catalog = lake.open_catalog(str(tmp_path / "iceberg"), format="iceberg")
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", [("id", "BIGINT"), ("note", "STRING")])
    first = [(number, "a") for number in (1, 2, 3)]
    write_table(spark.createDataFrame(first, "id long, note string"), orders)
    kinds = ["+I", "-D", "+U", "-D", "+U", "-U", "+U"]
    rows = [
        (id, (9 - number + id) % 7, kind, f"{kind} {number}")
        for id in (1, 2, 30)
        for number, kind in enumerate(kinds)
    ]
    frame = spark.createDataFrame(rows, "id long, at int, op string, note string")
    arguments = {"kinds": "op", "upsert_by": ["id"], "sequence_by": ["at"]}
    for _ in range(2):
        write_table(frame, orders, **arguments, commit=lake.CommitId("changes", 1))
    last = {row[0]: row for row in sorted(rows, key=lambda row: row[1])}
    expected = {id: row[3] for id, row in last.items() if row[2] in ("+I", "+U")} | {3: "a"}
    assert 1 < len(expected) < 4
    assert notes(orders) == expected
    write_table(spark.createDataFrame([(3, 1, "-D", "")], frame.schema), orders, **arguments)
    assert 3 not in notes(orders)
    for left_out, said in (
        ("sequence_by", "kinds='op' needs sequence_by, because the rows of a DataFrame have no"),
        ("upsert_by", "name the columns of the key in upsert_by"),
        ("kinds", "needs the row kinds: name their column"),
    ):
        with pytest.raises(lake.InvalidRequestError, match=said):
            write_table(frame, orders, **{k: v for k, v in arguments.items() if k != left_out})
    dotted = catalog.create_table("shop.dotted", [("an.id", "BIGINT"), ("note", "STRING")])
    rows = [(4, 1, "+U", "b"), (4, 1, "+I", "a"), (4, 0, "-D", "")]
    named = spark.createDataFrame(rows, "`an.id` long, `an.at` int, op string, note string")
    arguments |= {"upsert_by": ["an.id"], "sequence_by": ["an.at", "op"]}
    write_table(named, dotted, **arguments)
    assert dotted.scan().to_arrow().to_pylist() == [{"an.id": 4, "note": "b"}]
    arguments |= {"upsert_by": ["id"], "sequence_by": ["at"]}
    with pytest.raises(
        lake.InvalidRequestError, match=r"names column 'notes'.*did you mean 'note'"
    ):
        write_table(frame, orders, **arguments | {"sequence_by": ["notes"]})
