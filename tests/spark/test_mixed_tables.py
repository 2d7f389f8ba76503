"""Mixed tables in Spark: each node has one writer, each batch one commit, and keys are unique."""

import json
import random
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.mixed.file_names import parse_file_name
from spark_jobs import by_bucket, ingest, write_stream_batch, write_table
from spark_jobs.frames import spark_write, write
from tests.sampling import SEED
from tests.unit.spark_jobs.messages import ONE_STORY
from tests.unit.spark_jobs.test_change_messages_on_iceberg import LAST

COLUMNS = [("id", "BIGINT NOT NULL"), ("dt", "STRING NOT NULL"), ("note", "STRING")]
ROW = "id long, dt string, note string"
CHANGE = f"{ROW}, at int, op string"


@pytest.fixture
def catalog(tmp_path):
    made = lake.open_catalog(str(tmp_path / "lake"), format="iceberg")
    made.create_database("shop")
    return made


@pytest.fixture
def orders(catalog):
    how = {"primary_key": ["id", "dt"], "partition_by": ["dt"]}
    return catalog.create_table("shop.orders", COLUMNS, format="mixed", **how)


def place_of(table):
    return table.location.removeprefix("file://")


def data_files(root):
    return {*(root / "lake").rglob("*.parquet")}


def contents(table):
    rows = table.scan().to_arrow().to_pylist()
    found = {(row["id"], row["dt"]): row["note"] for row in rows}
    assert len(found) == len(rows)
    return found


def save(rows, table, mode="append", **options):
    writer = by_bucket(rows, table).write.format("lake").mode(mode).options(**options)
    writer.save(place_of(table))


def test_writes_of_spark_and_of_python_in_turns_agree_with_a_dict(lake_spark, orders, monkeypatch):
    chance, expected = random.Random(SEED), {}
    for number in range(5):
        changes = {}
        for _ in range(12):
            key = chance.randrange(9), chance.choice(["p", "q"])
            changes[key] = (*key, f"{number}", chance.choice(["+I", "+U", "-D"]))
        for *key, note, op in changes.values():
            expected.pop(tuple(key), None)
            if op != "-D":
                expected[tuple(key)] = note
        rows = [*changes.values()]
        if number % 2:
            columns = pa.table([*zip(*rows, strict=True)], names=["id", "dt", "note", "op"])
            orders.write(columns, "op")
            continue
        frame = lake_spark.createDataFrame(rows, f"{ROW}, op string").repartition(3)
        if number:  # rows reach their writers by the JVM's shuffle, else in files
            monkeypatch.setattr(spark_write, "is_one_machine", lambda session: False)
        if number == 4:
            save(frame, orders, kinds="op")
        else:
            assert write_table(frame, orders, kinds="op").rows == len(rows)
        assert contents(orders) == expected
    assert len(orders.snapshots()) == 5


def test_each_node_gets_one_file_of_a_kind_and_a_repeated_commit_publishes_once(spark, orders):
    rows = spark.range(0, 60, 1, 3).selectExpr("id", "'p' AS dt", "'a' AS note")
    commit = lake.CommitId("nightly", 1)
    reports = [write_table(rows, orders, commit=commit) for _ in range(2)]
    assert [(each.rows, each.files, each.replayed) for each in reports] == [
        (60, 8, False),
        (60, 8, True),
    ]
    paths = Path(orders.locations[1].removeprefix("file://")).rglob("*.parquet")
    names = [parse_file_name(each.name) for each in paths]
    assert len({(each.node, each.kind) for each in names}) == len(names) == 8
    assert len(contents(orders)) == 60


def test_changes_of_a_key_count_in_the_order_of_a_column(spark, orders):
    rows = [(1, "p", "old", 1, "+I"), (1, "p", "new", 3, "+U"), (1, "p", "mid", 2, "-D")]
    rows += [(2, "p", "x", 2, "-D"), (2, "p", "x", 1, "+I")]
    frame = spark.createDataFrame(rows, CHANGE).repartition(3)
    how = {"kinds": "op", "upsert_by": ["id", "dt"], "sequence_by": ["at"]}
    write_table(frame, orders, **how)
    assert contents(orders) == {(1, "p"): "new"}
    with pytest.raises(
        lake.InvalidRequestError, match=r"upsert_by must be the key of .*, id and dt"
    ):
        write_table(frame, orders, **how | {"upsert_by": ["id"]})


def test_what_cannot_be_written_is_refused_and_leaves_nothing(lake_spark, orders, tmp_path):
    rows = lake_spark.range(0, 20, 1, 2).selectExpr("id % 4 AS id", "'p' AS dt", "'a' AS note")
    with pytest.raises(Exception, match=r"the rows that spark_jobs\.by_bucket\(rows, table\)"):
        rows.write.format("lake").mode("append").save(place_of(orders))
    with pytest.raises(lake.InvalidRequestError, match="'dt' is required"):
        write_table(rows.selectExpr("id", "nullif(dt, 'p') AS dt", "note"), orders)
    with pytest.raises(lake.InvalidRequestError, match="nme"):
        write_table(rows.withColumnRenamed("note", "nme"), orders)
    assert (orders.snapshots(), data_files(tmp_path)) == ([], set())


def test_each_batch_of_a_stream_is_one_commit(lake_spark, orders, tmp_path):
    for number in (1, 2):
        rows = lake_spark.range(number, number + 2).selectExpr(
            "id", "'p' AS dt", f"'{number}' note"
        )
        rows.write.json(str(tmp_path / f"in/{number}"))
        stream = lake_spark.readStream.schema(ROW).json(str(tmp_path / "in/*"))
        writer = by_bucket(stream, orders).writeStream.format("lake")
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start(place_of(orders)).awaitTermination()
    users = {each.commit_user for each in orders.snapshots()}
    assert contents(orders) == {(1, "p"): "1", (2, "p"): "2", (3, "p"): "2"}
    assert (len(orders.snapshots()), len(users)) == (2, 1)
    batch = write_stream_batch(orders, query="mine")
    for _ in range(2):  # Spark repeats a batch of which it does not know the outcome
        batch(lake_spark.createDataFrame([(3, "p", "last")], ROW), 0)
    assert contents(orders)[3, "p"] == "last"
    assert len(orders.snapshots()) == 3


def test_the_job_applies_messages_and_files_in_tasks_once(spark, catalog, tmp_path):
    columns = [("sku", "STRING NOT NULL"), ("pieces", "INT")]
    stock = catalog.create_table("shop.stock", columns, format="mixed", primary_key=["sku"])
    lines = [each if isinstance(each, str) else json.dumps(each) for each in ONE_STORY["debezium"]]
    for number, line in enumerate(lines):  # files of one task each, in the order of their names
        (tmp_path / f"{number:02}.json").write_text(line + "\n")
    request = {
        "warehouse": str(tmp_path / "lake"),
        "catalog_options": {"format": "iceberg"},
        "table": "shop.stock",
        "source": str(tmp_path / "*.json"),
        "format": "debezium-json",
        "engine": "spark",
        "commit_user": "run",
        "commit_identifier": 1,
    }
    first, again = ingest.run(request, spark), ingest.run(request, spark)
    assert sorted(tuple(each.values()) for each in stock.scan().to_arrow().to_pylist()) == LAST
    assert (first["replayed"], again["replayed"], len(stock.snapshots())) == (False, True, 1)
    (tmp_path / "a.csv").write_text("sku,pieces\nnew,1\n")
    more = {"source": str(tmp_path / "a.csv"), "format": "csv", "commit_identifier": 2}
    ingest.run(request | more | {"upsert_by": ["sku"]}, spark)
    assert stock.scan(where="sku = 'new'").count() == 1


def with_default(catalog, tmp_path, type_text):
    """Return a new table whose column ``state`` has a write default."""
    columns = [("id", "INT NOT NULL"), ("note", "STRING"), ("state", type_text)]
    how = {"primary_key": ["id"], "options": {"format-version": "3"}}
    made = catalog.create_table("shop.states", columns, format="mixed", **how)
    paths = [*(tmp_path / "lake/shop").glob("states*/metadata/*.json")]
    assert len(paths) == 2
    for path in paths:
        metadata = json.loads(path.read_text())
        metadata["schemas"][0]["fields"][2]["write-default"] = "new"
        path.write_text(json.dumps(metadata))
    return made


@pytest.mark.parametrize(
    ("type_text", "upsert_by"), [("STRING", None), ("STRING NOT NULL", ["id"])]
)
def test_a_column_that_a_file_lacks_gets_its_write_default_in_tasks(
    spark, catalog, tmp_path, type_text, upsert_by
):
    made = with_default(catalog, tmp_path, type_text)
    (tmp_path / "1.csv").write_text("id,note\n1,a\n")
    (tmp_path / "2.csv").write_text("id,note,state\n2,b,old\n")
    request = {
        "warehouse": str(tmp_path / "lake"),
        "catalog_options": {"format": "iceberg"},
        "table": "shop.states",
        "source": str(tmp_path / "*.csv"),
        "engine": "spark",
        "upsert_by": upsert_by,
    }
    ingest.run(request, spark)
    write_table(spark.range(3, 4).selectExpr("cast(id as int) id", "'c' note"), made)
    found = sorted(tuple(each.values()) for each in made.scan().to_arrow().to_pylist())
    assert found == [(1, "a", "new"), (2, "b", "old"), (3, "c", "new")]


def copied(spark, source, target, checkpoint, **options):
    """Copy what a stream of the source delivers; return the numbers of rows of its batches."""
    rows = spark.readStream.format("lake").option("rowkind", "true").options(**options)
    writer = by_bucket(rows.load(place_of(source)), target).writeStream.format("lake")
    writer = writer.options(kinds="rowkind", checkpointLocation=str(checkpoint))
    query = writer.trigger(availableNow=True).start(place_of(target))
    query.awaitTermination()
    return [progress["numInputRows"] for progress in query.recentProgress]


def change(table, *rows):
    """Write rows, each with its kind, in one commit."""
    columns = pa.table([*zip(*rows, strict=True)], names=["id", "dt", "note", "op"])
    table.write(columns, "op")


def test_a_stream_has_all_rows_and_then_each_change_once(lake_spark, catalog, orders, tmp_path):
    how = {"primary_key": ["id", "dt"], "options": {"write.upsert.enabled": "false"}}
    copy = catalog.create_table("shop.copy", COLUMNS, format="mixed", **how)
    change(orders, (1, "p", "a", "+I"), (2, "p", "a", "+I"))
    orders.compact(strategy="full")
    change(orders, (1, "p", "b", "+U"), (3, "q", "b", "+I"))
    read = partial(copied, lake_spark, orders, copy, tmp_path / "checkpoint")
    stream = {"consumer-id": "mirror"}
    assert sum(read(**stream)) == 3  # merged rows
    assert contents(copy) == contents(orders) == {(1, "p"): "b", (2, "p"): "a", (3, "q"): "b"}
    change(orders, (1, "p", "b", "-U"), (1, "p", "c", "+U"), (2, "p", None, "-D"))
    orders.compact(strategy="full")
    change(orders, (4, "p", "d", "+I"))
    orders.expire_snapshots(older_than="0 s")
    assert sum(read(**stream)) == 4
    assert contents(copy) == contents(orders) == {(1, "p"): "c", (3, "q"): "b", (4, "p"): "d"}
    assert sum(read(**stream)) == 0
    [consumer] = orders.consumers.list()
    assert (consumer.id, consumer.behind) == ("mirror", 0)


def test_a_stream_stops_where_an_overwrite_has_no_changes(lake_spark, orders, tmp_path):
    change(orders, (1, "p", "a", "+I"))
    stream = lake_spark.readStream.format("lake").option("rowkind", "false").load(place_of(orders))
    found = []

    def run():
        writer = stream.writeStream.foreachBatch(lambda rows, _: found.extend(rows.collect()))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    run()
    assert [row.note for row in found] == ["a"]
    orders.write(pa.table({"id": [7], "dt": ["p"], "note": ["z"]}), overwrite="table")
    with pytest.raises(Exception, match="is an overwrite or an adoption") as stopped:
        run()
    assert "and start a stream with a new checkpoint" in str(stopped.value)
    with pytest.raises(Exception, match="set option\\('rowkind', 'true'\\)"):
        lake_spark.readStream.format("lake").load(place_of(orders)).writeStream.format(
            "noop"
        ).start().awaitTermination()


def test_a_version_field_orders_rows_of_spark_and_python(lake_spark, catalog):
    columns = [("id", "BIGINT NOT NULL"), ("note", "STRING"), ("version", "INT")]
    how = {"primary_key": ["id"], "options": {"lake.version-field": "version"}}
    table = catalog.create_table("shop.versioned", columns, format="mixed", **how)

    def of(*rows):
        return lake_spark.createDataFrame(rows, "id long, note string, version int")

    save(of((1, "a", 5), (2, "older", 4), (2, "b", 5)), table)
    table.compact(strategy="full")
    save(of((1, "late", 3), (2, "new", 7)), table)
    table.write(pa.table({"id": [2, 3], "note": ["late", "c"], "version": [6, None]}))
    read = lake_spark.read.format("lake").load(place_of(table)).collect()
    assert sorted((row.id, row.note) for row in read) == [(1, "a"), (2, "new"), (3, "c")]


def test_an_overwrite_keeps_what_a_stream_has_changed_since_its_begin(
    lake_spark, orders, tmp_path, monkeypatch
):
    rows = [(1, "p", "old"), (2, "p", "old"), (3, "q", "old")]
    write_table(lake_spark.createDataFrame(rows, ROW), orders)
    new = lake_spark.range(1, 9, 1, 3).selectExpr("id", "'p' AS dt", "'new' AS note")
    writes = write.write_rows

    def beside_a_stream(*args, **more):
        change(orders, (2, "p", "stream", "+U"))
        return writes(*args, **more)

    monkeypatch.setattr(write, "write_rows", beside_a_stream)
    report = write_table(new, orders, mode="partitions", commit=lake.CommitId("run", 1))
    again = write_table(new, orders, mode="partitions", commit=lake.CommitId("run", 1))
    assert (report.rows, report.replayed, again.replayed) == (8, False, True)
    expected = {(number, "p"): "new" for number in range(1, 9)} | {(2, "p"): "stream"}
    assert contents(orders) == expected | {(3, "q"): "old"}
    late = lake_spark.createDataFrame([(1, "p", "late"), (2, "p", "late")], ROW)
    write_table(late, orders, conflict="transaction-order")
    assert contents(orders) == expected | {(1, "p"): "late", (3, "q"): "old"}
    before = data_files(tmp_path)
    for refused, how, match in (
        (new.union(new), {"mode": "overwrite"}, "8 keys|occurs? more than once"),
        (new.selectExpr("*", "'+I' AS op"), {"mode": "table", "kinds": "op"}, "takes no kinds"),
    ):
        with pytest.raises(lake.InvalidRequestError, match=match):
            write_table(refused, orders, **how)
    with pytest.raises(Exception, match=r"does not take overwrite.*write_table"):
        save(new, orders, mode="overwrite")
    assert {each for each in before if each not in data_files(tmp_path)} == set()
    assert contents(orders)[2, "p"] == "stream"
    with orders.begin():  # the batches of the refused writes have ended
        pass


def test_an_overwrite_replaces_the_partitions_of_a_condition(lake_spark, orders, catalog, tmp_path):
    change(orders, *((number, part, "old", "+I") for number, part in enumerate("pqrs")))
    new = lake_spark.range(7, 9).selectExpr("id", "'p' AS dt", "'new' AS note")
    write_table(new, orders, mode="overwrite", where="dt <= 'q'")
    expected = {(7, "p"): "new", (8, "p"): "new", (2, "r"): "old", (3, "s"): "old"}
    assert contents(orders) == expected
    before = data_files(tmp_path)
    plain = catalog.create_table("shop.plain", COLUMNS, partition_by=["dt"])
    for rows, table, how, match in (
        (new.selectExpr("id", "'z' dt", "note"), orders, {}, r"partition 'dt=z', which is not one"),
        (new, orders, {"where": "id < 9"}, "but partition values do not decide a condition on id"),
        (new, orders, {"mode": "append"}, r"without 'partitions', got mode='append'"),
        (new, orders, {"partitions": {"dt": "p"}}, r"got partitions=\{'dt': 'p'\}: correct"),
        (new, plain, {}, r"does not take where.*call delete\(where\) and append the rows"),
    ):
        with pytest.raises(lake.InvalidRequestError, match=match):
            write_table(rows, table, **{"mode": "overwrite", "where": "dt <= 'q'"} | how)
    assert (contents(orders), data_files(tmp_path)) == (expected, before)
    with orders.begin():  # the batches of the refused writes have ended
        pass


def test_the_job_replaces_partitions_in_tasks(spark, catalog, orders, tmp_path):
    change(orders, (1, "p", "old", "+I"), (3, "q", "old", "+I"))
    (tmp_path / "a.csv").write_text("id,dt,note\n2,p,new\n")
    request = {
        "warehouse": str(tmp_path / "lake"),
        "catalog_options": {"format": "iceberg"},
        "table": "shop.orders",
        "source": str(tmp_path / "*.csv"),
        "engine": "spark",
        "overwrite": "partitions",
    }
    ingest.run(request, spark)
    assert contents(orders) == {(2, "p"): "new", (3, "q"): "old"}
    (tmp_path / "a.csv").write_text("id,dt,note\n3,q,batch\n")
    ingest.run(request | {"overwrite": None, "conflict": "transaction-order"}, spark)
    assert contents(orders) == {(2, "p"): "new", (3, "q"): "batch"}
