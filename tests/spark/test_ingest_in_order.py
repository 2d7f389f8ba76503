"""Change messages and the changes of a table through Spark's tasks: as with engine python.

The tests of that engine run again on this one, with the messages in several files, which several
tasks read.
"""

import json
import logging

import pyarrow as pa
import pytest

import lakeformat as lake
from spark_jobs.ingest import run
from spark_jobs.ingestion import spark_source
from tests.unit.spark_jobs import test_change_messages as messages
from tests.unit.spark_jobs import test_ingest_sources as sources

# Their fixtures, but for those that run the job.
stock, source = messages.stock, sources.source

test_rows_are_inserted_updated_moved_and_deleted = (
    messages.test_rows_are_inserted_updated_moved_and_deleted
)
test_a_table_is_made_of_what_they_say = messages.test_a_table_is_made_of_what_they_say
test_the_same_run_publishes_once = messages.test_the_same_run_publishes_once
test_a_new_column_is_added_before_the_rows = messages.test_a_new_column_is_added_before_the_rows
test_a_column_becomes_as_wide_as_its_values = messages.test_a_column_becomes_as_wide_as_its_values
test_every_difference_is_named_and_nothing_changes = (
    messages.test_every_difference_is_named_and_nothing_changes
)
test_messages_of_several_tables_are_told_apart = (
    messages.test_messages_of_several_tables_are_told_apart
)
test_a_table_without_a_key_takes_inserts_alone = (
    messages.test_a_table_without_a_key_takes_inserts_alone
)

test_the_first_time_brings_all_and_later_what_changed = (
    sources.test_the_first_time_brings_all_and_later_what_changed
)
test_a_crash_between_commit_and_consumer_brings_nothing_twice = (
    sources.test_a_crash_between_commit_and_consumer_brings_nothing_twice
)
test_a_crash_between_commit_and_consumer_brings_nothing_twice_though_the_commit_expired = (
    sources.test_a_crash_between_commit_and_consumer_brings_nothing_twice_though_the_commit_expired
)
test_a_run_that_is_repeated_brings_nothing_more = (
    sources.test_a_run_that_is_repeated_brings_nothing_more
)
test_columns_that_come_to_the_source_come_to_the_copy = (
    sources.test_columns_that_come_to_the_source_come_to_the_copy
)
test_a_copy_without_a_key_takes_no_update = sources.test_a_copy_without_a_key_takes_no_update
test_an_empty_source_is_nothing_to_do = sources.test_an_empty_source_is_nothing_to_do


@pytest.mark.parametrize(("form", "version"), [("debezium", 3), ("canal", 2)])
def test_messages_change_an_iceberg_table_in_their_order(tmp_path, ingest, form, version):
    """The messages of a key are in files that different tasks read."""
    catalog = lake.open_catalog(str(tmp_path / "warehouse"), format="iceberg")
    catalog.create_database("shop")
    columns = [("sku", "STRING NOT NULL"), ("pieces", "INT"), ("price", "DECIMAL(10, 2)")]
    table = catalog.create_table("shop.stock", columns, primary_key=["sku"], format_version=version)
    old = {"sku": ["pear", "kiwi"], "pieces": pa.array([0, 2], pa.int32())}
    table.write(pa.table(old))
    more = {"catalog_options": {"format": "iceberg"}, "commit_user": "run"}
    for number in (1, 1, 2):
        done = ingest(form, *messages.ONE_STORY[form], commit_identifier=number, **more)
        rows = table.scan(["sku", "pieces"]).to_arrow().to_pylist()
        found = sorted((row["sku"], row["pieces"]) for row in rows)
        assert found == [("date", 9), ("kiwi", 2), ("pear", 5)]
    assert done["report"]["replaced_rows"] == 2
    assert len(table.snapshots()) == 3
    staged = ingest(form, *messages.ONE_STORY[form], commit_identifier=3, stage=True, **more)
    assert table.staged.publish([staged["staged"]]).replaced_rows == 2


@pytest.mark.parametrize("form", ["iceberg", "mixed"])
def test_messages_that_do_not_show_the_key_are_skipped_or_refused(tmp_path, ingest, form):
    catalog = lake.open_catalog(str(tmp_path / "warehouse"), format="iceberg")
    catalog.create_database("shop")
    columns = [("sku", "STRING NOT NULL"), ("note", "STRING")]
    table = catalog.create_table("shop.stock", columns, format=form, primary_key=["sku"])
    more = {"catalog_options": {"format": "iceberg"}}
    of_another = messages.maxwell("insert", {"sku": "pear"}) | {"table": "other"}
    assert ingest("maxwell", of_another, messages_of="shop.stock", **more)["skipped"]
    keyless = messages.maxwell("insert", {"note": "x"}) | {"database": "shop", "table": "stock"}
    with pytest.raises(lake.InvalidRequestError, match=r"column 'sku' is required"):
        ingest("maxwell", keyless, **more)
    assert table.snapshots() == []


@pytest.fixture
def ingest(tmp_path, spark):
    """Ingest messages into ``shop.stock``, each out of a file of its own."""

    def act(form, *given, **more):
        for number, each in enumerate(given):
            line = each if isinstance(each, str) else json.dumps(each)
            path = tmp_path / f"messages-{number:04}.json"
            if not path.exists() or path.read_text() != line + "\n":
                path.write_text(line + "\n")
        request = {
            "warehouse": str(tmp_path / "warehouse"),
            "table": "shop.stock",
            "source": str(tmp_path / "messages-*.json"),
            "format": f"{form}-json",
            "engine": "spark",
            **more,
        }
        return run(request, spark)

    return act


@pytest.fixture
def follow(tmp_path, spark):
    return sources.follower(tmp_path, spark, engine="spark")


def test_the_columns_of_every_file_count(catalog, stock, ingest):
    ingest(
        "maxwell",
        messages.maxwell("insert", {**messages.item("pear", 1 << 40), "note": "x"}),
        messages.maxwell("insert", {**messages.item("plum", 2), "weight": 0.5}),
    )

    assert messages.rows(catalog) == [("pear", 1 << 40, "x", None), ("plum", 2, None, 0.5)]


def test_messages_are_looked_through_and_written_while_progress_is_told(stock, ingest, caplog):
    with caplog.at_level(logging.INFO, "spark_jobs.runtime.progress"):
        ingest("maxwell", *(messages.maxwell("insert", messages.item(f"{n}", n)) for n in range(3)))

    told = [json.loads(each.message) for each in caplog.records]
    looked = [(each["done"], each["total"]) for each in told if each["unit"] != "tasks"]
    assert looked == [(1, 3), (2, 3), (3, 3)]
    assert told[-1]["unit"] == "tasks"


def test_the_last_message_of_a_key_wins_whoever_read_it(catalog, ingest):
    """Many files, buckets and tasks; each key is written by all files, and deleted by the last."""
    table = catalog.create_table(
        "shop.stock",
        [("sku", "STRING"), ("pieces", "INT")],
        primary_key=["sku"],
        options={"bucket": "4"},
    )
    keys = [f"key-{number}" for number in range(20)]
    lines = [
        "\n".join(
            json.dumps(messages.maxwell("insert", messages.item(key, number))) for key in keys
        )
        for number in range(24)
    ]
    gone = [json.dumps(messages.maxwell("delete", messages.item(key, 23))) for key in keys[::2]]

    result = ingest("maxwell", *lines, "\n".join(gone))

    found = {row["sku"]: row["pieces"] for row in table.scan().to_arrow().to_pylist()}
    assert found == {key: 23 for key in keys[1::2]}
    assert result["report"]["files"] == 4, "each bucket has one writer"


def test_staged_messages_are_published_by_the_job_commit(tmp_path, catalog, stock, ingest, spark):
    from spark_jobs import commit

    staged = ingest("maxwell", *messages.ONE_STORY["maxwell"], stage=True)

    assert stock.latest_snapshot() is None
    request = {"warehouse": str(tmp_path / "warehouse"), "table": "shop.stock"}
    assert commit.run({**request, "staged": [staged["staged"]]})["snapshot_id"] == 1
    assert messages.rows(catalog) == [("date", 9), ("pear", 5)]


def test_a_stream_of_files_goes_on_from_its_checkpoint(tmp_path, catalog, stock, ingest):
    where = {"checkpoint": str(tmp_path / "checkpoint"), "files_per_batch": 3}

    first = ingest("maxwell", *messages.ONE_STORY["maxwell"], **where)
    again = ingest("maxwell", *messages.ONE_STORY["maxwell"], **where)

    assert (first["report"]["batches"], again["skipped"]) == (3, True)
    assert messages.rows(catalog) == [("date", 9), ("pear", 5)]


def test_changes_of_a_partitioned_source_come_in_their_order(catalog, follow):
    source = catalog.create_table(
        "shop.source",
        [("dt", "STRING"), ("id", "BIGINT"), ("note", "STRING")],
        primary_key=["dt", "id"],
        partition_by=["dt"],
        options={"bucket": "2"},
    )
    catalog.create_table(
        "shop.copy",
        [("dt", "STRING"), ("id", "BIGINT"), ("note", "STRING")],
        primary_key=["dt", "id"],
        partition_by=["dt"],
        options={"bucket": "3"},
    )

    def put(note, kind="+I"):
        rows = {"dt": ["a", "b"] * 20, "id": [*range(40)], "note": [note] * 40}
        source.write(pa.table(rows), kinds=[kind] * 40)

    put("first")
    follow()
    for number in range(6):
        put(f"later {number}")
    source.write(pa.table({"dt": ["a"], "id": [0], "note": ["later 5"]}), kinds=["-D"])

    result = follow()

    assert (result["snapshot_id"], result["next_snapshot"]) == (2, 9)
    rows = catalog.table("shop.copy").scan().to_arrow().to_pylist()
    assert {row["note"] for row in rows} == {"later 5"}
    assert len(rows) == 39


def test_a_snapshot_is_read_by_several_tasks_and_of_one_key_the_last_row_wins(
    catalog, follow, monkeypatch
):
    source = catalog.create_table("shop.source", [("id", "BIGINT"), ("n", "BIGINT")])
    keyed = {"primary_key": ["id"], "options": {"bucket": "2"}}
    catalog.create_table("shop.copy", [("id", "BIGINT"), ("n", "BIGINT")], **keyed)
    source.write(pa.table({"id": [0], "n": [0]}))
    follow()
    messages_of = []
    for number in range(20):
        with source.new_writer() as writer:
            ids = pa.array(range(5), pa.int64())
            writer.write(pa.table({"id": ids, "n": pa.repeat(number, 5)}))
            messages_of += writer.prepare()
    source.commit(messages_of)
    parts = []
    frame = spark_source.parts_frame
    monkeypatch.setattr(
        spark_source, "parts_frame", lambda *args: (parts.extend(args[1]), frame(*args))[1]
    )

    assert follow()["report"]["rows"] == 5

    assert len(parts) == 20
    assert catalog.table("shop.copy").scan().to_arrow()["n"].to_pylist() == [19] * 5


def test_a_file_that_is_no_message_is_named_and_nothing_is_written(catalog, stock, ingest):
    lines = [json.dumps(each) for each in messages.ONE_STORY["maxwell"]]

    with pytest.raises(
        lake.InvalidRequestError,
        match=r"messages-0008.json: line 1, 'nonsense', is not a JSON object",
    ):
        ingest("maxwell", *lines, "nonsense")

    assert stock.latest_snapshot() is None
