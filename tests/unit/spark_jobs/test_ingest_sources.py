"""Rows from elsewhere: another table's changes, each once; a SQL table; and what is refused."""

from __future__ import annotations

import os
import re
import sqlite3
import sys
from datetime import datetime, time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from spark_jobs.ingest import run
from spark_jobs.ingestion import jdbc_frame, table_changes
from spark_jobs.ingestion.copied_table import require_no_deletes
from spark_jobs.ingestion.jdbc_table import find_jdbc_table
from spark_jobs.ingestion.sql_table import require_table_name
from spark_jobs.job_requests.ingest import IngestRequest


@pytest.fixture
def catalog(tmp_path):
    catalog = lake.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    return catalog


@pytest.fixture
def source(catalog):
    return catalog.create_table(
        "shop.source",
        [("sku", "STRING"), ("pieces", "INT")],
        primary_key=["sku"],
        options={"bucket": "1", "changelog-producer": "input"},
    )


def put(table, sku, pieces, kind="+I"):
    table.write(pa.table({"sku": [sku], "pieces": [pieces]}), kinds=[kind])


def follower(tmp_path, spark=None, **always):
    """Brings what is new of ``shop.source`` into ``shop.copy``."""

    def act(**more):
        request = {
            "warehouse": str(tmp_path / "warehouse"),
            "table": "shop.copy",
            "source_table": "shop.source",
            "consumer": "copy",
            "create": True,
            **always,
            **more,
        }
        return run(request, spark)

    return act


@pytest.fixture
def follow(tmp_path):
    return follower(tmp_path)


def rows(catalog, name="shop.copy"):
    return sorted(
        tuple(each.values()) for each in catalog.table(name).scan().to_arrow().to_pylist()
    )


def consumer(source):
    return {each.id: each.next_snapshot for each in source.consumers.list()}


def test_the_first_time_brings_all_and_later_what_changed(catalog, source, follow):
    put(source, "pear", 1)
    put(source, "plum", 2)
    first = follow()
    assert (first["snapshot_id"], first["next_snapshot"]) == (1, 3)
    put(source, "pear", 5, "+U")
    put(source, "plum", 2, "-D")
    second = follow()
    assert (second["snapshot_id"], rows(catalog)) == (2, [("pear", 5)])
    third = follow()
    assert (third["skipped"], third["snapshot_id"], consumer(source)) == (True, None, {"copy": 5})
    assert third["reason"] == third["report"]["reason"]
    assert third["reason"] == (
        "no new changes in shop.source, so nothing was written: consumer 'copy' reads snapshot 5 "
        "next"
    )


def test_a_source_without_snapshots_brings_nothing_until_it_has_rows(catalog, source, follow):
    assert follow()["reason"] == (
        "no new changes in shop.source, so nothing was written: shop.source has no snapshots"
    )
    put(source, "pear", 1)
    assert (follow()["snapshot_id"], rows(catalog)) == (1, [("pear", 1)])


def test_a_crash_between_commit_and_consumer_brings_nothing_twice(
    catalog, source, follow, monkeypatch
):
    copy = catalog.create_table("shop.copy", [("sku", "STRING"), ("pieces", "INT")])
    put(source, "pear", 1)

    def crash(stream):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("lakeformat.paimon.read.changes.streaming.ChangeStream.acknowledge", crash)
        with pytest.raises(KeyboardInterrupt):
            follow()
    assert (rows(catalog), consumer(source)) == ([("pear", 1)], {})
    put(source, "plum", 2)
    follow()
    assert rows(catalog) == [("pear", 1), ("plum", 2)]
    assert (consumer(source), copy.latest_snapshot().id) == ({"copy": 3}, 2)


def test_a_crash_between_commit_and_consumer_brings_nothing_twice_though_the_commit_expired(
    catalog, source, follow, monkeypatch
):
    catalog.create_table("shop.copy", [("sku", "STRING"), ("pieces", "INT")])
    put(source, "pear", 1)
    monkeypatch.setattr("lakeformat.paimon.read.changes.streaming.ChangeStream.acknowledge", die)
    with pytest.raises(KeyboardInterrupt):
        follow()
    monkeypatch.undo()
    copy = catalog.table("shop.copy")
    copy.write(pa.table({"sku": ["of somebody else"], "pieces": [0]}))
    copy.expire_snapshots(retain_max=1, retain_min=1)

    put(source, "plum", 2)
    follow()

    assert rows(catalog) == [("of somebody else", 0), ("pear", 1), ("plum", 2)]
    assert consumer(copy) == {}


def test_a_retry_of_a_run_that_crashed_before_the_consumer_moved_moves_it(
    catalog, source, follow, monkeypatch
):
    run_of_task = {"commit_user": "task", "commit_identifier": 1}
    put(source, "pear", 1)
    with monkeypatch.context() as patched:
        patched.setattr("lakeformat.paimon.read.changes.streaming.ChangeStream.acknowledge", die)
        with pytest.raises(KeyboardInterrupt):
            follow(**run_of_task)
    retry = follow(**run_of_task)
    assert (retry["replayed"], consumer(source)) == (True, {"copy": 2})
    for sku in ("plum", "fig"):
        put(source, sku, 1)
    source.expire_snapshots(retain_max=1, retain_min=1)
    follow(**run_of_task | {"commit_identifier": 2})
    assert rows(catalog) == [("fig", 1), ("pear", 1), ("plum", 1)]


def test_a_retry_of_a_finished_run_succeeds_although_the_source_was_rolled_back(
    catalog, source, follow, caplog
):
    for pieces in range(3):
        put(source, "pear", pieces)
    run_of_task = {"commit_user": "task", "commit_identifier": 1}
    follow(**run_of_task)
    source.rollback(snapshot=1, as_latest=False)
    assert follow(**run_of_task)["replayed"] is True
    assert "but consumer 'copy' was not moved: " in caplog.text


def test_a_source_that_was_rolled_back_is_refused(catalog, source, follow):
    for pieces in range(5):
        put(source, "pear", pieces)
    follow()
    source.rollback(snapshot=3, as_latest=False)
    refusal = r"rolled back or recreated: snapshot 5, .*copy into a new table, with another"
    with pytest.raises(lake.NotFoundError, match=refusal):
        follow()
    for pieces in range(3):
        put(source, "plum", pieces)
    with pytest.raises(lake.NotFoundError, match=refusal):
        follow()
    assert (rows(catalog), consumer(source)) == ([("pear", 4)], {"copy": 4})
    follow(table="shop.second", consumer="second")
    assert rows(catalog, "shop.second") == [("pear", 2), ("plum", 2)]


def test_a_rollback_to_the_last_copied_snapshot_is_not_refused(catalog, source, follow):
    put(source, "pear", 1)
    follow()
    put(source, "plum", 1)
    source.rollback(snapshot=1, as_latest=False)
    put(source, "fig", 1)
    follow()
    assert rows(catalog) == [("fig", 1), ("pear", 1)]


@pytest.mark.parametrize("writes", [0, 1, 7])
def test_a_source_that_was_created_again_is_refused(catalog, source, follow, writes):
    for pieces in range(5):
        put(source, "pear", pieces)
    follow()
    catalog.drop_table("shop.source")
    again = merging_source(catalog, {"changelog-producer": "input"})
    for pieces in range(writes):
        put(again, f"plum {pieces}", pieces)
    with pytest.raises(lake.NotFoundError, match=r"Nothing was written"):
        follow()
    assert (rows(catalog), consumer(again)) == ([("pear", 4)], {})


@pytest.mark.parametrize("earlier_version", [False, True])
def test_a_source_that_was_created_again_is_refused_also_after_expiry(
    catalog, source, follow, monkeypatch, earlier_version
):
    if earlier_version:
        monkeypatch.setattr(table_changes, "_properties", lambda *_: {table_changes._NEXT: "2"})
    put(source, "pear", 1)
    follow()
    monkeypatch.undo()
    catalog.drop_table("shop.source")
    again = merging_source(catalog, {"changelog-producer": "input"})
    for sku in ("plum", "fig"):
        put(again, sku, 1)
    again.expire_snapshots(retain_max=1, retain_min=1)
    assert again.snapshot(1) is None
    if earlier_version:  # its commits do not record the table
        follow()
        assert rows(catalog) == [("fig", 1), ("pear", 1)]
        return
    with pytest.raises(lake.NotFoundError, match=r"was recreated: .*Nothing was written; copy"):
        follow()
    assert (rows(catalog), consumer(again)) == ([("pear", 1)], {})


def test_a_renamed_source_is_copied_further(catalog, source, follow):
    put(source, "pear", 1)
    follow()
    catalog.rename_table("shop.source", "shop.renamed")
    put(catalog.table("shop.renamed"), "plum", 1)
    follow(source_table="shop.renamed")
    put(catalog.table("shop.renamed"), "fig", 1)
    follow(source_table="shop.renamed")
    assert rows(catalog) == [("fig", 1), ("pear", 1), ("plum", 1)]


@pytest.mark.parametrize("first", [True, False])
def test_a_retry_after_a_rename_of_the_source_moves_the_consumer(
    catalog, source, follow, monkeypatch, caplog, first
):
    catalog.create_table("shop.copy", [("sku", "STRING"), ("pieces", "INT")])
    put(source, "pear", 1)
    if not first:
        follow(commit_user="task", commit_identifier=1)
        put(source, "plum", 1)
    with monkeypatch.context() as patch:
        patch.setattr("lakeformat.paimon.read.changes.streaming.ChangeStream.acknowledge", die)
        with pytest.raises(KeyboardInterrupt):
            follow(commit_user="task", commit_identifier=2)
    catalog.rename_table("shop.source", "shop.renamed")
    again = follow(source_table="shop.renamed", commit_user="task", commit_identifier=2)
    assert again["replayed"]
    put(catalog.table("shop.renamed"), "fig", 1)
    follow(source_table="shop.renamed", commit_user="task", commit_identifier=3)
    copied = [("fig", 1), ("pear", 1)] if first else [("fig", 1), ("pear", 1), ("plum", 1)]
    assert (rows(catalog), caplog.text) == (copied, "")


def test_a_renamed_source_whose_consumer_was_not_moved_is_warned_of(
    catalog, source, follow, monkeypatch, caplog
):
    catalog.create_table("shop.copy", [("sku", "STRING"), ("pieces", "INT")])
    put(source, "pear", 1)
    with monkeypatch.context() as patch:
        patch.setattr("lakeformat.paimon.read.changes.streaming.ChangeStream.acknowledge", die)
        with pytest.raises(KeyboardInterrupt):
            follow()
    catalog.rename_table("shop.source", "shop.renamed")
    follow(source_table="shop.renamed")
    assert rows(catalog) == [("pear", 1), ("pear", 1)]
    assert "roll the target back to snapshot 1, set a new consumer to 2" in caplog.text
    catalog.table("shop.copy").rollback(snapshot=1, as_latest=False)
    catalog.table("shop.renamed").consumers.set("new", next_snapshot=2)
    caplog.clear()
    put(catalog.table("shop.renamed"), "fig", 1)
    follow(source_table="shop.renamed", consumer="new")
    assert (rows(catalog), caplog.text) == ([("fig", 1), ("pear", 1)], "")


@pytest.mark.parametrize("engine", ["deduplicate", "first-row"])
def test_rows_that_replace_themselves_are_not_warned_of(
    catalog, source, follow, monkeypatch, caplog, engine
):
    put(source, "pear", 1)
    with monkeypatch.context() as patch:
        patch.setattr("lakeformat.paimon.read.changes.streaming.ChangeStream.acknowledge", die)
        with pytest.raises(KeyboardInterrupt):
            follow(table_options={"merge-engine": engine})
    catalog.rename_table("shop.source", "shop.renamed")
    follow(source_table="shop.renamed")
    catalog.table("shop.copy").compact(strategy="full")  # before that, readers see no first rows
    assert (rows(catalog), caplog.text) == ([("pear", 1)], "")


def test_rows_that_are_added_up_twice_are_warned_of(catalog, source, follow, caplog):
    catalog.create_table(
        "shop.copy",
        [("sku", "STRING"), ("pieces", "INT")],
        primary_key=["sku"],
        options={"merge-engine": "aggregation", "fields.pieces.aggregate-function": "sum"},
    )
    put(source, "pear", 1)
    follow()
    follow(consumer="second")
    assert rows(catalog) == [("pear", 2)]
    assert "shop.db/source twice: snapshot 1 of the target" in caplog.text


def test_a_source_that_was_renamed_there_and_back_is_warned_of(
    catalog, source, follow, monkeypatch, caplog
):
    catalog.create_table("shop.copy", [("sku", "STRING"), ("pieces", "INT")])
    put(source, "pear", 1)
    follow()
    put(source, "plum", 1)
    catalog.rename_table("shop.source", "shop.renamed")
    with monkeypatch.context() as patch:
        patch.setattr("lakeformat.paimon.read.changes.streaming.ChangeStream.acknowledge", die)
        with pytest.raises(KeyboardInterrupt):
            follow(source_table="shop.renamed")
    catalog.rename_table("shop.renamed", "shop.source")
    put(catalog.table("shop.source"), "fig", 1)
    follow()
    assert rows(catalog) == [("fig", 1), ("pear", 1), ("plum", 1), ("plum", 1)]
    assert "roll the target back to snapshot 2, set a new consumer to 3" in caplog.text
    catalog.table("shop.copy").rollback(snapshot=2, as_latest=False)
    catalog.table("shop.source").consumers.set("new", next_snapshot=3)
    caplog.clear()
    follow(consumer="new")
    assert (rows(catalog), caplog.text) == ([("fig", 1), ("pear", 1), ("plum", 1)], "")


def test_a_second_consumer_of_one_target_is_warned_of_only_at_first(
    catalog, source, follow, caplog
):
    catalog.create_table("shop.copy", [("sku", "STRING"), ("pieces", "INT")])
    warned = []
    for number in range(3):
        put(source, f"pear {number}", 1)
        follow()
        caplog.clear()
        follow(consumer="late")
        warned.append("twice" in caplog.text)
    assert warned == [True, False, False]


def test_a_copied_snapshot_of_the_source_may_expire(catalog, source, follow):
    for pieces in range(3):
        put(source, "pear", pieces)
    follow()
    put(source, "plum", 1)
    source.expire_snapshots(retain_max=1, retain_min=1)
    assert source.snapshot(3) is None
    follow()
    assert rows(catalog) == [("pear", 2), ("plum", 1)]


def test_a_copy_of_an_earlier_version_goes_on(catalog, source, follow, monkeypatch):
    put(source, "pear", 1)
    monkeypatch.setattr(table_changes, "_properties", lambda *_: {table_changes._NEXT: "2"})
    follow()
    monkeypatch.undo()
    put(source, "plum", 1)
    follow()
    assert rows(catalog) == [("pear", 1), ("plum", 1)]


def test_a_new_table_with_a_used_consumer_is_warned_of(catalog, source, follow, caplog):
    put(source, "pear", 1)
    follow()
    put(source, "plum", 1)
    catalog.drop_table("shop.copy")
    follow()
    assert rows(catalog) == [("plum", 1)]
    assert "may lack rows: consumer 'copy' of" in caplog.text


def test_a_target_of_which_all_copies_were_rolled_back_is_warned_of(
    catalog, source, follow, caplog
):
    copy = catalog.create_table("shop.copy", [("sku", "STRING"), ("pieces", "INT")])
    copy.write(pa.table({"sku": ["own row"], "pieces": [0]}))
    put(source, "pear", 1)
    follow()
    assert caplog.text == ""
    copy.rollback(snapshot=1, as_latest=False)
    put(source, "plum", 1)
    follow()
    assert rows(catalog) == [("own row", 0), ("plum", 1)]
    assert "may lack rows: consumer 'copy' of" in caplog.text


@pytest.mark.parametrize("kept", [1, 2])
def test_a_target_that_was_rolled_back_is_refused(catalog, source, follow, tmp_path, kept):
    for pieces in range(3):
        put(source, "pear", pieces)
        follow()
    catalog.table("shop.copy").rollback(snapshot=kept, as_latest=False)
    files = {*tmp_path.rglob("shop.db/copy/bucket-0/data-*")}
    put(source, "plum", 1)
    for _ in range(2):
        with pytest.raises(
            lake.CommitConflictError,
            match=r"wrote nothing\. .*rolled back or restored: copy into a new table, with",
        ):
            follow()
    assert rows(catalog) == [("pear", kept - 1)]
    assert {*tmp_path.rglob("shop.db/copy/bucket-0/data-*")} == files


def test_a_skipped_overwrite_is_warned_of(catalog, source, follow, caplog):
    source.write(pa.table({"sku": ["fig"], "pieces": [1]}), overwrite="table")
    follow()
    assert caplog.text == ""
    put(source, "plum", 1)
    source.truncate()
    follow()
    assert rows(catalog) == [("fig", 1), ("plum", 1)]
    assert "overwrites of the source, in snapshots 3," in caplog.text


def test_an_overwrite_that_is_read_is_not_warned_of(catalog, follow, caplog):
    source = merging_source(catalog, {"streaming-read-overwrite": "true"})
    put(source, "pear", 1)
    follow()
    source.truncate()
    follow()
    assert (rows(catalog), caplog.text) == ([], "")


def test_a_consumer_that_was_set_before_the_first_run_is_where_it_begins(catalog, source, follow):
    put(source, "pear", 1)
    put(source, "plum", 1)
    source.consumers.set("copy", next_snapshot=2)
    follow()
    assert rows(catalog) == [("plum", 1)]


def test_no_warning_comes_after_runs_that_found_no_rows(catalog, source, follow, caplog):
    put(source, "pear", 1)
    source.truncate()
    first = follow()
    assert (first["skipped"], consumer(source)) == (True, {})
    put(source, "plum", 1)
    follow()
    assert (rows(catalog), consumer(source)) == ([("plum", 1)], {"copy": 4})
    assert "may lack rows" not in caplog.text


def test_changes_without_rows_may_expire_before_the_next_rows(catalog, source, follow, caplog):
    put(source, "pear", 1)
    follow()
    source.compact(strategy="full")
    follow()
    put(source, "plum", 1)
    source.expire_snapshots(retain_max=1, retain_min=1)
    follow()
    assert (rows(catalog), consumer(source)) == ([("pear", 1), ("plum", 1)], {"copy": 4})
    assert "may lack rows" not in caplog.text


def die(*_):
    raise KeyboardInterrupt


def test_a_consumer_that_a_power_cut_has_emptied_is_where_the_copy_says(
    catalog, source, follow, tmp_path
):
    put(source, "pear", 1)
    follow()
    put(source, "plum", 2)
    [file] = tmp_path.rglob("consumer-copy")
    file.write_bytes(b"")
    follow()
    assert (rows(catalog), consumer(source)) == ([("pear", 1), ("plum", 2)], {"copy": 3})


def test_a_twin_that_was_faster_is_believed(catalog, source, follow, monkeypatch):
    put(source, "pear", 1)
    follow()
    put(source, "plum", 2)
    position = consumer(source)["copy"]
    follow()
    source.consumers.set("copy", next_snapshot=position)  # as if it had not come so far
    user = catalog.table("shop.copy").latest_snapshot().commit_user
    with monkeypatch.context() as patched:
        late_one = lake.CommitId(user, position)
        patched.setattr(table_changes, "_finish_earlier", lambda *args: late_one)
        late = follow()
    assert (late["replayed"], late["snapshot_id"]) == (True, 2)
    assert (rows(catalog), consumer(source)) == ([("pear", 1), ("plum", 2)], {"copy": 3})


def test_a_twin_that_has_read_more_is_believed(catalog, source, follow, monkeypatch, tmp_path):
    put(source, "pear", 1)
    commit = lake.Table.commit

    def twin_first(*args, **kwargs):
        monkeypatch.setattr(lake.Table, "commit", commit)
        put(source, "plum", 2)
        follow()
        return commit(*args, **kwargs)

    monkeypatch.setattr(lake.Table, "commit", twin_first)
    late = follow()
    assert (late["replayed"], late["snapshot_id"], late["next_snapshot"]) == (True, 1, 3)
    assert (rows(catalog), consumer(source)) == ([("pear", 1), ("plum", 2)], {"copy": 3})
    assert len([*tmp_path.rglob("shop.db/copy/bucket-0/data-*")]) == 1


def test_twins_that_begin_behind_other_snapshots_without_rows_publish_one_commit(
    catalog, source, follow, monkeypatch
):
    catalog.create_table("shop.copy", [("sku", "STRING"), ("pieces", "INT")])
    put(source, "pear", 1)
    follow()
    source.compact(strategy="full")  # a snapshot without rows
    before, commit = table_changes._finish_earlier, lake.Table.commit

    def twin_passes_over_it(*args):
        monkeypatch.setattr(table_changes, "_finish_earlier", before)
        found = before(*args)
        follow()
        put(source, "plum", 2)
        return found

    def twin_goes_on(*args, **kwargs):
        monkeypatch.setattr(lake.Table, "commit", commit)
        report = commit(*args, **kwargs)
        follow()
        return report

    def twin_had_nothing(*args, **kwargs):
        monkeypatch.setattr(lake.Table, "commit", twin_goes_on)
        return commit(*args, **kwargs)

    monkeypatch.setattr(table_changes, "_finish_earlier", twin_passes_over_it)
    monkeypatch.setattr(lake.Table, "commit", twin_had_nothing)
    follow()
    assert (rows(catalog), consumer(source)) == ([("pear", 1), ("plum", 2)], {"copy": 4})


def test_a_run_that_is_repeated_brings_nothing_more(catalog, source, follow):
    put(source, "pear", 1)
    who = {"commit_user": "run", "commit_identifier": 1}
    first = follow(**who)
    put(source, "plum", 2)
    again = follow(**who)
    assert (again["replayed"], again["snapshot_id"]) == (True, first["snapshot_id"])
    assert rows(catalog) == [("pear", 1)]
    assert not follow(commit_user="run", commit_identifier=2)["replayed"]


def test_each_round_of_a_stream_with_a_commit_identity_copies_new_rows(
    catalog, source, follow, monkeypatch
):
    def next_round(seconds):
        if len(source.snapshots()) >= 3:
            raise KeyboardInterrupt
        put(source, f"plum {len(source.snapshots())}", 2)

    monkeypatch.setattr("spark_jobs.ingestion.file_stream.time.sleep", next_round)
    stream = {"poll": "10 s", "commit_user": "run", "commit_identifier": 1}
    put(source, "pear", 1)
    with pytest.raises(KeyboardInterrupt):
        follow(**stream)
    assert rows(catalog) == [("pear", 1), ("plum 1", 2), ("plum 2", 2)]
    source.delete("sku = 'pear'")
    with pytest.raises(KeyboardInterrupt):  # a retry of the task
        follow(**stream)
    assert rows(catalog) == [("plum 1", 2), ("plum 2", 2)]


def test_columns_that_come_to_the_source_come_to_the_copy(catalog, source, follow):
    put(source, "pear", 1)
    follow()
    wider = catalog.alter_table(
        "shop.source",
        lake.add_column("note", "STRING"),
        lake.update_column_type("pieces", "BIGINT"),
    )
    wider.write(pa.table({"sku": ["plum"], "pieces": [1 << 40], "note": ["x"]}))
    follow()
    assert rows(catalog) == [("pear", 1, None), ("plum", 1 << 40, "x")]


def test_nested_columns_come_to_the_copy_however_their_fields_are_numbered(catalog, follow):
    catalog.create_table(
        "shop.source",
        [("sku", "STRING"), ("place", "ROW<hall INT>"), ("counts", "ARRAY<ROW<n INT>>")],
        primary_key=["sku"],
        options={"bucket": "1"},
    )
    source = catalog.alter_table("shop.source", lake.add_column(("place", "shelf"), "INT"))
    counts = [{"n": 1}]
    pear = {"sku": "pear", "place": {"hall": 1, "shelf": 2}, "counts": counts}
    source.write(pa.Table.from_pylist([pear], schema=source.schema.arrow_schema()))
    follow()
    assert rows(catalog) == [("pear", {"hall": 1, "shelf": 2}, counts)]

    source = catalog.alter_table(
        "shop.source",
        lake.add_column(("place", "label"), "STRING"),
        lake.update_column_type(("counts", "element", "n"), "BIGINT"),
    )
    plum = {"sku": "plum", "place": {"hall": 1, "label": "x"}, "counts": [{"n": 1 << 40}]}
    source.write(pa.Table.from_pylist([plum], schema=source.schema.arrow_schema()))
    follow()
    assert rows(catalog) == [
        ("pear", {"hall": 1, "shelf": 2, "label": None}, counts),
        ("plum", {"hall": 1, "shelf": None, "label": "x"}, [{"n": 1 << 40}]),
    ]


def test_a_copy_without_a_key_takes_no_update(catalog, source, follow):
    catalog.create_table("shop.copy", [("sku", "STRING"), ("pieces", "INT")])
    put(source, "pear", 1)
    follow()
    put(source, "pear", 1, "-D")
    with pytest.raises(lake.InvalidRequestError):
        follow()
    assert (rows(catalog), consumer(source)) == ([("pear", 1)], {"copy": 2})


@pytest.mark.parametrize("producer", ["none", "input", "lookup", "full-compaction"])
def test_a_key_that_moves_to_another_partition_moves_in_the_copy(catalog, follow, producer):
    source = moving_source(catalog, **{"changelog-producer": producer})
    write_days(source, ("mon", 1), ("tue", 2))
    source.compact()
    follow()
    write_days(source, ("tue", 1), ("mon", 2))
    source.compact()
    follow()
    assert rows(catalog) == [("mon", 2), ("tue", 1)]
    assert catalog.table("shop.copy").schema.primary_keys == ("id", "day")


def test_a_copy_that_would_lose_keys_that_move_is_refused(catalog, follow):
    write_days(moving_source(catalog), ("mon", 1))
    with pytest.raises(lake.UnsupportedError, match="with the primary key id, day"):
        follow(primary_key=["id"])
    with pytest.raises(lake.NotFoundError):
        catalog.table("shop.copy")
    columns = [("day", "STRING"), ("id", "INT")]
    copy = catalog.create_table("shop.copy", columns, primary_key=["id"], options={"bucket": "1"})
    with pytest.raises(lake.UnsupportedError, match=r"shop\.source lacks day"):
        follow()
    assert copy.snapshots() == []


def test_the_first_row_of_a_key_never_moves(catalog, follow):
    source = moving_source(catalog, **{"merge-engine": "first-row"})
    write_days(source, ("mon", 1), ("tue", 1))
    follow(primary_key=["id"])
    catalog.table("shop.copy").compact()
    assert rows(catalog) == [("mon", 1)]


def moving_source(catalog, **options):
    """``shop.source`` with keys that move between partitions."""
    return catalog.create_table(
        "shop.source",
        [("day", "STRING"), ("id", "INT")],
        primary_key=["id"],
        partition_by=["day"],
        options={"bucket": "-1", **options},
    )


def write_days(table, *days):
    table.write(pa.table({"day": [day for day, _ in days], "id": [id for _, id in days]}))


ASCENDING = {"sequence.field.sort-order": "ascending"}
ADDING = {"merge-engine": "aggregation", "fields.pieces.aggregate-function": "sum"}


@pytest.mark.parametrize("producer", ["none", "input", "full-compaction"])
def test_written_rows_that_are_merged_in_the_source_are_merged_in_the_copy(
    catalog, follow, producer
):
    source = merging_source(catalog, {**ADDING, "changelog-producer": producer})
    for pieces in (1, 2):
        put(source, "pear", pieces)
        source.compact()
        follow()
    assert rows(catalog) == [("pear", 3)]


def test_a_copy_that_merges_written_rows_otherwise_is_refused(catalog, follow):
    source = merging_source(catalog, ADDING)
    put(source, "pear", 1)
    follow()
    catalog.alter_table(
        "shop.source",
        lake.add_column("boxes", "INT"),
        lake.set_option("fields.boxes.aggregate-function", "max"),
    )
    with pytest.raises(
        lake.UnsupportedError, match=r"differ in fields\.boxes\.aggregate-function\."
    ):
        follow()
    catalog.alter_table("shop.copy", lake.set_option("fields.boxes.aggregate-function", "max"))
    catalog.table("shop.source").write(pa.table({"sku": ["pear"], "pieces": [2], "boxes": [4]}))
    follow()
    assert rows(catalog) == [("pear", 3, 4)]
    columns = [("sku", "STRING"), ("pieces", "INT")]
    catalog.create_table("shop.last", columns, primary_key=["sku"], options={"bucket": "1"})
    with pytest.raises(lake.UnsupportedError, match=r"fields\.pieces.*, merge-engine\. No row was"):
        follow(table="shop.last", consumer="last")


BY_PIECES = {"sequence.field": "pieces"}


@pytest.mark.parametrize("producer", ["none", "input"])
def test_deletes_of_a_source_with_a_sequence_are_refused(catalog, follow, producer):
    source = merging_source(catalog, {**BY_PIECES, "changelog-producer": producer})
    put(source, "pear", 10)
    put(source, "pear", 11)
    follow()
    put(source, "pear", 9)
    follow()
    assert rows(catalog) == [("pear", 11)]
    put(source, "plum", 10)
    source.delete("sku = 'pear'")
    source.compact()
    with pytest.raises(
        lake.UnsupportedError, match=r"deleted the row of the key.*Nothing was written. Set"
    ):
        follow()
    assert rows(catalog) == [("pear", 11)]

    source = catalog.alter_table(
        "shop.source", lake.set_option("changelog-producer", "full-compaction")
    )
    for pieces in (5, 6):
        put(source, "pear", pieces)
        source.compact()
        follow(table="shop.second", consumer="second")
    assert rows(catalog, "shop.second") == rows(catalog, "shop.source")


@pytest.mark.parametrize("rows_at_once", [1, 2, 3])
def test_an_old_row_before_its_new_row_deletes_nothing(catalog, source, rows_at_once):
    kinds = ["-U", "+U", "-U", "+U", "+I"]
    changes = pa.table({"rowkind": kinds, "sku": ["fig", "fig", "pear", "pear", "plum"]})
    batches = changes.to_batches(rows_at_once)
    kept = pa.Table.from_batches(require_no_deletes(source, batches, "rowkind"))
    assert kept.equals(changes)
    for wrong in (["fig", "kiwi", "pear", "pear", "plum"], ["fig", "fig", "kiwi", "pear", "plum"]):
        moved = changes.set_column(1, "sku", [wrong]).to_batches(rows_at_once)
        with pytest.raises(lake.UnsupportedError, match="deleted the row of the key"):
            list(require_no_deletes(source, moved, "rowkind"))
    with pytest.raises(lake.UnsupportedError, match=r"key \{'sku': 'pear'\}"):
        list(require_no_deletes(source, changes.slice(0, 3).to_batches(rows_at_once), "rowkind"))


def test_deletes_by_a_sequence_group_are_refused(catalog, follow):
    groups = {
        "merge-engine": "partial-update",
        "fields.pieces.sequence-group": "note",
        "partial-update.remove-record-on-sequence-group": "pieces",
    }
    columns = [("sku", "STRING"), ("pieces", "INT"), ("note", "STRING")]
    options = {"bucket": "1", **groups}
    source = catalog.create_table("shop.source", columns, primary_key=["sku"], options=options)
    row = pa.table({"sku": ["pear"], "pieces": [1], "note": ["x"]})
    source.write(row)
    follow()
    source.write(row, kinds=["-D"])
    with pytest.raises(lake.UnsupportedError, match="deleted the row of the key"):
        follow()


@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
def test_deletes_of_a_source_that_merges_rows_are_refused(catalog, follow, engine):
    removing = {"merge-engine": engine, f"{engine}.remove-record-on-delete": "true"}
    source = merging_source(catalog, removing)
    put(source, "pear", 1)
    follow()
    source.delete("sku = 'pear'")
    with pytest.raises(lake.UnsupportedError, match="deleted the row of the key"):
        follow()
    assert rows(catalog) == [("pear", 1)]


def test_ignored_deletes_of_a_source_with_a_sequence_are_no_reason_to_refuse(catalog, follow):
    source = merging_source(catalog, {**BY_PIECES, "ignore-delete": "true"})
    put(source, "pear", 1)
    follow()
    put(source, "pear", 2, "-D")
    put(source, "pear", 3)
    follow()
    assert rows(catalog) == [("pear", 3)]


@pytest.mark.parametrize("kind", ["+I", "+U", "-U", "-D"])
def test_spark_refuses_the_same_deletes(catalog, source, kind):
    pytest.importorskip("pyspark")
    from spark_jobs.ingestion import spark_rows

    put(source, "pear", 1)
    put(source, "pear", 1, kind)
    [part] = source.changes(1, 2).parts()
    if kind[0] == "+":
        [batch] = spark_rows._read_changes(True, source, part)
        assert batch.num_rows == 1
        return
    with pytest.raises(lake.UnsupportedError, match="deleted the row of the key"):
        [*spark_rows._read_changes(True, source, part)]


@pytest.mark.parametrize(
    ("of_source", "of_target"),
    [
        ({"merge-engine": "DEDUPLICATE"}, {}),
        ({"merge-engine": "Aggregation"}, {"merge-engine": "aggregation"}),
        ({"sequence.field": "pieces"}, {"sequence.field": "pieces", **ASCENDING}),
    ],
)
def test_options_that_merge_alike_may_be_spelled_otherwise(catalog, follow, of_source, of_target):
    put(merging_source(catalog, of_source), "pear", 1)
    columns = [("sku", "STRING"), ("pieces", "INT")]
    options = {"bucket": "1", **of_target}
    catalog.create_table("shop.copy", columns, primary_key=["sku"], options=options)
    follow()
    assert rows(catalog) == [("pear", 1)]


def test_no_table_is_created_with_options_that_merge_otherwise(catalog, follow):
    put(merging_source(catalog, {"sequence.field": "pieces"}), "pear", 1)
    with pytest.raises(lake.UnsupportedError, match=r"differ in sequence\.field\.sort-order"):
        follow(table_options={"sequence.field.sort-order": "descending"})
    with pytest.raises(lake.NotFoundError):
        catalog.table("shop.copy")


def test_a_copy_without_a_key_gets_no_options_that_merge(catalog, follow):
    put(merging_source(catalog, {"merge-engine": "first-row"}), "pear", 1)
    follow(primary_key=[], table_options={"bucket": "-1"})
    assert rows(catalog) == [("pear", 1)]


def test_deletes_that_the_first_run_cannot_see_must_be_compacted(catalog, follow):
    source = merging_source(catalog, {"sequence.field": "pieces"})
    put(source, "pear", 5)
    put(source, "pear", 6, "-D")
    with pytest.raises(lake.UnsupportedError, match="compact the source completely"):
        follow()
    source.compact()
    follow()
    put(source, "pear", 3)
    follow()
    assert rows(catalog) == rows(catalog, "shop.source") == [("pear", 3)]


def merging_source(catalog, options):
    return catalog.create_table(
        "shop.source",
        [("sku", "STRING"), ("pieces", "INT")],
        primary_key=["sku"],
        options={"bucket": "1", **options},
    )


def test_a_target_that_publishes_empty_commits_is_followed(catalog, source, follow):
    follow(table_options={"snapshot.ignore-empty-commit": "false"})
    for sku in ("pear", "plum"):
        put(source, sku, 1)
        follow()
        source.compact(strategy="full")
        follow()
        follow()
    assert rows(catalog) == [("pear", 1), ("plum", 1)]


def test_an_empty_source_is_nothing_to_do(catalog, source, follow):
    assert follow()["skipped"]
    put(source, "pear", 1)
    assert not follow()["skipped"]
    assert rows(catalog) == [("pear", 1)]


@pytest.fixture
def shop(tmp_path):
    """A SQL database with one table."""
    path = tmp_path / "shop.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE orders (id BIGINT PRIMARY KEY, note TEXT, day DATE)")
        database.executemany(
            "INSERT INTO orders VALUES (?, ?, ?)", [(1, "a", "2024-01-31"), (2, None, None)]
        )
    database.close()
    return f"sqlite:///{path}"


def sql_request(tmp_path, shop, **more):
    return {
        "warehouse": str(tmp_path / "warehouse"),
        "table": "shop.orders",
        "jdbc_url": shop,
        "jdbc_table": "orders",
        "create": True,
        **more,
    }


def test_a_sql_table_is_read_whole(tmp_path, catalog, shop):
    result = run(sql_request(tmp_path, shop, primary_key=["id"], table_options={"bucket": "1"}))
    assert result["report"]["rows"] == 2
    found = catalog.table("shop.orders").scan().to_arrow()
    assert [str(each) for each in found.schema.types] == ["int64", "string", "date32[day]"]
    assert found["note"].to_pylist() == ["a", None]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux lists open files")
def test_no_connection_to_a_sql_table_stays_open(tmp_path, catalog, shop):
    run(sql_request(tmp_path, shop))

    opened = [os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()]
    assert shop.removeprefix("sqlite:///") not in opened


@pytest.mark.parametrize(
    ("sql_type", "value", "type"),
    [
        ("FLOAT", 1.5, "BIGINT"),
        ("NUMERIC(10, 2)", 1.5, "INT"),
        ("TIMESTAMP", "2024-01-31 10:00:00.123456", "TIMESTAMP(3)"),
        ("TIMESTAMP", "2024-01-31 10:00:00.000000", "DATE"),
        ("TIMESTAMP", "2024-01-31 10:00:00.000000", "TIMESTAMP_LTZ(6)"),
        ("TIME", "10:00:00.123456", "TIME(3)"),
        ("DATE", "31.01.2024", "DATE"),
        ("BIGINT", "many", "BIGINT"),
    ],
)
def test_no_value_of_a_sql_table_is_changed(tmp_path, catalog, sql_type, value, type):
    path = tmp_path / "shop.sqlite"
    with sqlite3.connect(path) as database:
        database.execute(f"CREATE TABLE orders (value {sql_type})")
        database.execute("INSERT INTO orders VALUES (?)", [value])
    database.close()
    catalog.create_table("shop.orders", [("value", type)])
    with pytest.raises(lake.InvalidRequestError, match="value"):
        run(sql_request(tmp_path, f"sqlite:///{path}"))
    assert catalog.table("shop.orders").latest_snapshot() is None


def test_sql_values_that_fit_are_taken(tmp_path, catalog):
    path = tmp_path / "shop.sqlite"
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE TABLE orders (n NUMERIC(10, 0), f FLOAT, at TIMESTAMP, t TIME, none INT)"
        )
        row = (7, 0.1, "2024-01-31 10:00:00.123000", "10:00:00.500000", None)
        database.execute("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", row)
    database.close()
    columns = [("n", "INT"), ("f", "FLOAT"), ("at", "TIMESTAMP(3)"), ("t", "TIME(3)")]
    catalog.create_table("shop.orders", [*columns, ("none", "DATE")])
    run(sql_request(tmp_path, f"sqlite:///{path}"))
    [found] = rows(catalog, "shop.orders")
    at = datetime(2024, 1, 31, 10, 0, 0, 123000)
    assert found == (7, pytest.approx(0.1), at, time(10, 0, 0, 500000), None)


def decimals_of_sqlite(tmp_path, catalog, sql_type, values, type=None, **more):
    """Ingest a SQLite table with one column; return the values in the lake."""
    path = tmp_path / "shop.sqlite"
    with sqlite3.connect(path) as database:
        database.execute(f"CREATE TABLE orders (value {sql_type})")
        database.executemany("INSERT INTO orders VALUES (?)", [(each,) for each in values])
    database.close()
    if type is not None:
        catalog.create_table("shop.orders", [("value", type)])
    run(sql_request(tmp_path, f"sqlite:///{path}", **more))
    return catalog.table("shop.orders").scan().to_arrow()["value"].to_pylist()


@pytest.mark.parametrize(
    ("sql_type", "values", "type", "stored"),
    [
        ("DECIMAL(20, 0)", [2**53 + 1, 2**53], None, [Decimal(2**53 + 1), Decimal(2**53)]),
        ("NUMERIC", [2**53 + 1, 1], "BIGINT", [2**53 + 1, 1]),
        ("DECIMAL(10, 2)", [1.239], "DECIMAL(10, 4)", [Decimal("1.2390")]),
        ("DECIMAL(10, 0)", [1.5], "DECIMAL(10, 2)", [Decimal("1.50")]),
        ("NUMERIC", [1e-12], "DECIMAL(30, 15)", [Decimal("1.000E-12")]),
        (
            "DECIMAL(10, 2)",
            [0.1 + 0.2, 7, None, 99.99999999999],
            "DECIMAL(10, 2)",
            [Decimal("0.30"), Decimal("7.00"), None, Decimal("100.00")],
        ),
    ],
)
def test_numbers_of_sqlite_keep_their_digits(tmp_path, catalog, sql_type, values, type, stored):
    assert decimals_of_sqlite(tmp_path, catalog, sql_type, values, type) == stored


@pytest.mark.parametrize("type", ["DOUBLE", "FLOAT"])
def test_decimals_of_a_sql_table_become_the_nearest_float(tmp_path, catalog, type):
    values = [1.5, 2, None, 2**53 + 1]
    found = decimals_of_sqlite(tmp_path, catalog, "DECIMAL(20, 2)", values, type)
    assert found == [1.5, 2.0, None, float(2**53)]


def test_decimals_of_sqlite_become_text_with_the_digits_that_their_column_declares(
    tmp_path, catalog
):
    texts = {"casts": {"value": "STRING"}}
    found = decimals_of_sqlite(tmp_path, catalog, "DECIMAL(10, 2)", [1, 1.5], **texts)
    assert found == ["1.00", "1.50"]


@pytest.mark.parametrize("value", [1.239, "many", b"1", 1e300, float("inf")])
def test_a_value_of_sqlite_that_its_decimal_type_cannot_hold_is_refused(tmp_path, catalog, value):
    with pytest.raises(lake.InvalidRequestError, match=r"column 'value' does not fit"):
        decimals_of_sqlite(tmp_path, catalog, "DECIMAL(10, 2)", [value], "DECIMAL(10, 2)")


def test_what_a_sql_table_lacks_or_has_more_is_named(tmp_path, catalog, shop):
    with pytest.raises(lake.NotFoundError, match="no table 'nothing'"):
        run(sql_request(tmp_path, shop, jdbc_table="nothing"))
    catalog.create_table("shop.orders", [("id", "BIGINT")])
    with pytest.raises(lake.InvalidRequestError, match=r"does not have: note, day"):
        run(sql_request(tmp_path, shop))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"jdbc_url": "jdbc:postgresql://h/d"}, "needs engine 'spark'"),
        ({"jdbc_url": "nonsense"}, "not an address that SQLAlchemy can open"),
        ({"source_options": {"fetchsize": "9"}}, "'user' and 'password'"),
        ({"jdbc_table": None}, "key 'jdbc_table' must be|jdbc_url' needs key 'jdbc_table'"),
        ({"source": "*.csv"}, "give exactly one of the keys"),
        (
            {
                "jdbc_url": None,
                "jdbc_table": None,
                "source_table": "shop.orders",
                "consumer": "x",
            },
            "name another table",
        ),
        ({"consumer": "x"}, "key 'consumer' needs key 'source_table'"),
        ({"messages_of": "a.b"}, "key 'messages_of' needs"),
        ({"create": False, "primary_key": ["id"]}, "needs create=True"),
    ],
)
def test_a_key_that_does_not_belong_is_refused(tmp_path, catalog, shop, more, words):
    request = {**sql_request(tmp_path, shop), **more}
    request = {key: value for key, value in request.items() if value is not None}
    with pytest.raises(lake.InvalidRequestError, match=words):
        run(request)


def test_no_password_is_told(tmp_path, catalog):
    pytest.importorskip("psycopg2", reason="needs the extra jdbc")
    request = sql_request(tmp_path, "postgresql+psycopg2://127.0.0.1:1/d?password=hush1")
    request["source_options"] = {"user": "u", "password": "hush2"}
    with pytest.raises(lake.UnavailableError) as refused:
        run(request)
    assert "hush" not in str(refused.value)


def test_a_password_at_the_place_of_the_port_is_not_shown(tmp_path, catalog):
    with pytest.raises(lake.InvalidRequestError, match=r"that SQLAlchemy can open") as refused:
        run(sql_request(tmp_path, "postgresql+psycopg2://lake:hush/db"))
    assert "hush" not in str(refused.value)


NO_TABLES = [
    "(select * from secret) t",
    "users where 1=1 union select * from secret",
    "users; drop table users",
    'users"; drop table users; --',
    "users t",
    "users--",
    "",
]


def refusal(tmp_path, shop, engine, name):
    """The sentence that refuses a table; no Spark is started for it."""
    address = f"jdbc:sqlite:{shop.removeprefix('sqlite:///')}" if engine == "spark" else shop
    with pytest.raises(lake.NotFoundError) as refused:
        run(sql_request(tmp_path, address, jdbc_table=name, engine=engine), NeverStarted())
    return str(refused.value)


class NeverStarted:
    """A Spark that no refusal needs."""

    def __getattr__(self, name):
        raise AssertionError(f"Spark was asked for {name}")


@pytest.mark.parametrize("name", [*filter(None, NO_TABLES), "order", "nosuch.orders", '"ORDERS t"'])
def test_what_is_no_table_is_refused_alike_on_both_engines(tmp_path, shop, name):
    on_python = refusal(tmp_path, shop, "python", name)
    assert on_python.startswith(f"the SQL database has no table {name!r}: ")
    assert refusal(tmp_path, shop, "spark", name) == on_python


def test_a_table_with_a_name_close_to_the_missing_one_is_offered(tmp_path, shop):
    assert refusal(tmp_path, shop, "spark", "Ordesr").endswith(": did you mean 'orders'?")
    assert refusal(tmp_path, shop, "spark", "man.orders").endswith("mean 'main.orders'?")


@pytest.mark.parametrize("name", NO_TABLES)
def test_spark_looks_up_no_query_in_place_of_a_table(name):
    with pytest.raises(lake.NotFoundError, match=re.escape(f"no table {name!r}")):
        require_table_name(name)


@pytest.mark.parametrize(
    "name", ["orders", "shop.orders", "c.s.t", '"my table"', '"a""b"', "`a b`.`c`", "[x]"]
)
def test_a_table_is_named_with_its_schema_and_quoted_where_it_has_to_be(name):
    assert require_table_name(name) is None


@pytest.mark.parametrize("name", ["ORDERS", "main.orders", '"orders"', "[main].`orders`"])
def test_a_sql_table_is_found_by_each_form_of_its_name(tmp_path, catalog, shop, name):
    run(sql_request(tmp_path, shop, jdbc_table=name))
    assert catalog.table("shop.orders").scan().count() == 2


def spark_lookup(url, **options):
    return find_jdbc_table(
        IngestRequest(
            warehouse="w",
            table="a.b",
            engine="spark",
            jdbc_url=url,
            jdbc_table="orders",
            source_options=options,
        )
    )


@pytest.mark.parametrize(
    ("url", "missing", "reason"),
    [
        (
            "jdbc:sqlite:{}",
            "sqlalchemy",
            "sqlalchemy is not installed (run pip install 'airflow-provider-",
        ),
        ("jdbc:postgresql://127.0.0.1:1/d", "psycopg2", "psycopg2 is not installed (run pip"),
        (
            "jdbc:oracle:thin:scott/hush@//host",
            None,
            "looks up columns only in SQLite and PostgreSQL",
        ),
        ("jdbc:postgresql://127.0.0.1:1/d?socketFactory=x", None, "with parameters that their"),
        ("jdbc:postgresql://127.0.0.1:1/d?password=hush", None, "Python gets no answer"),
    ],
)
def test_spark_looks_a_table_up_where_python_cannot(
    tmp_path, shop, monkeypatch, caplog, url, missing, reason
):
    caplog.set_level("INFO")
    if missing:
        monkeypatch.setitem(sys.modules, missing, None)
    address = url.format(tmp_path / "shop.sqlite")
    assert spark_lookup(address, user="u", password="hush") is None
    assert reason in caplog.text
    assert "hush" not in caplog.text


def test_options_of_spark_do_not_hinder_the_lookup(tmp_path, shop):
    url = f"jdbc:sqlite:{tmp_path / 'shop.sqlite'}"
    found = spark_lookup(url, partitioncolumn="id", FetchSize="9", driver="org.sqlite.JDBC")
    assert found.quoted == '"orders"'
    assert found.new_columns() == [("id", "BIGINT"), ("note", "STRING"), ("day", "DATE")]


@pytest.mark.parametrize(
    ("reason", "error", "words"),
    [
        (
            "Bad value for type BigDecimal : hush",
            lake.InvalidRequestError,
            r"such as NaN .* a view",
        ),
        ("This connection has been closed: hush", lake.UnavailableError, r"\(PSQLException\)"),
    ],
)
def test_a_value_that_spark_cannot_read_needs_no_retry(
    tmp_path, catalog, shop, monkeypatch, reason, error, words
):
    def fail(*_, **__):
        raise RuntimeError(f"Task failed: org.postgresql.util.PSQLException: {reason}")

    monkeypatch.setattr(jdbc_frame, "_loaded", lambda *_: None)
    monkeypatch.setattr(jdbc_frame, "write_rows", fail)
    table = catalog.create_table(
        "shop.orders", [("id", "BIGINT"), ("note", "STRING"), ("day", "DATE")]
    )
    wanted = IngestRequest(**sql_request(tmp_path, f"jdbc:{shop}", engine="spark"))
    with pytest.raises(error, match=words) as refused:
        jdbc_frame.JdbcFrame(None, wanted).written(table, None, None)
    assert "hush" not in str(refused.value)
