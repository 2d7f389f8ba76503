"""``ingest`` with a checkpoint: files that come one after another, each once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.storage.local import LocalStorage
from spark_jobs import ingest
from spark_jobs.ingestion import file_checkpoint, file_stream


class Killed(BaseException):
    """The process is dead."""


def die(*args):
    raise Killed


@pytest.fixture
def wanted(tmp_path):
    (tmp_path / "incoming").mkdir()
    return {
        "warehouse": str(tmp_path / "warehouse"),
        "table": "shop.orders",
        "source": str(tmp_path / "incoming" / "*.jsonl"),
        "checkpoint": str(tmp_path / "checkpoint"),
        "create": True,
    }


@pytest.fixture
def drop(tmp_path):
    def put(*numbers):
        for number in numbers:
            path = tmp_path / "incoming" / f"{number}.jsonl"
            path.write_text(json.dumps({"id": number, "note": "x"}) + "\n")

    return put


def table_of(wanted):
    return lake.open_catalog(wanted["warehouse"]).table("shop.orders")


def ids(wanted):
    return sorted(table_of(wanted).scan().to_arrow()["id"].to_pylist())


def test_each_run_takes_what_has_come_since(wanted, drop):
    assert ingest.run(wanted)["reason"] == "no new file"
    drop(1, 2)
    first = ingest.run(wanted)
    drop(3)
    second, third = ingest.run(wanted), ingest.run(wanted)

    assert (first["snapshot_id"], second["snapshot_id"], third["snapshot_id"]) == (1, 2, None)
    assert [each["skipped"] for each in (first, second, third)] == [False, False, True]
    assert second["report"]["files_taken"] == 1
    assert ids(wanted) == [1, 2, 3]


def test_a_batch_has_no_more_files_than_asked_for(wanted, drop):
    drop(1, 2, 3)
    report = ingest.run({**wanted, "files_per_batch": 2})["report"]
    assert (report["files_taken"], report["batches"]) == (3, 2)
    assert [each.delta_record_count for each in table_of(wanted).snapshots()] == [2, 1]


@pytest.mark.parametrize("moment", ["before the commit", "after the commit", "after the mark"])
def test_a_run_that_is_killed_around_its_commit_takes_each_file_once(
    wanted, drop, monkeypatch, moment
):
    drop(1, 2)
    mark = file_checkpoint.Checkpoint.mark

    def die(*args):
        if moment == "after the mark":
            mark(*args)
        raise Killed

    with monkeypatch.context() as patch:
        if moment == "before the commit":
            patch.setattr(ingest, "_ingest_rows", die)
        else:
            patch.setattr(file_stream.Checkpoint, "mark", die)
        with pytest.raises(Killed):
            ingest.run(wanted)
    drop(3)
    ingest.run(wanted)

    assert ids(wanted) == [1, 2, 3]
    assert len(table_of(wanted).snapshots()) == 2


def dies_after_its_commit(wanted, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(file_stream.Checkpoint, "mark", die)
        with pytest.raises(Killed):
            ingest.run(wanted)


def others_commit_and_expire(wanted):
    table = table_of(wanted)
    table.write(pa.table({"id": [100], "note": ["of somebody else"]}))
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert len(table.snapshots()) == 1


def test_a_batch_is_published_once_whose_commit_has_expired_when_the_job_is_back(
    wanted, drop, tmp_path, monkeypatch
):
    drop(1)
    dies_after_its_commit(wanted, monkeypatch)
    others_commit_and_expire(wanted)
    (tmp_path / "incoming" / "1.jsonl").unlink()  # its rows are in the table

    again = ingest.run(wanted)

    assert again["snapshot_id"] is None
    assert "was published before, and its snapshot has expired" in again["report"]["reason"]
    assert ids(wanted) == [1, 100]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_run_that_dies_inside_its_publication_is_kept_until_it_is_back(
    wanted, drop, monkeypatch, moment
):
    drop(0)
    ingest.run(wanted)
    drop(1)
    write = lake.Table.write

    def dying(table, rows, *args, **kwargs):
        if moment == "after":
            write(table, rows, *args, **kwargs)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(lake.Table, "write", dying)
        with pytest.raises(Killed):
            ingest.run(wanted)
    table = table_of(wanted)
    for number in (100, 101):
        table.write(pa.table({"id": [number], "note": ["of somebody else"]}))
    table.expire_snapshots(retain_max=1, retain_min=1)

    ingest.run(wanted)

    assert ids(wanted) == [0, 1, 100, 101]
    assert table.consumers.list() == []


def test_a_new_batch_is_taken_whatever_others_have_just_expired(wanted, drop):
    drop(1)
    ingest.run(wanted)
    others_commit_and_expire(wanted)
    drop(2)

    ingest.run(wanted)

    assert ids(wanted) == [1, 2, 100]


def test_a_batch_of_a_checkpoint_from_before_there_were_notes_is_refused_if_it_may_have_expired(
    wanted, drop, tmp_path, monkeypatch
):
    drop(1)
    dies_after_its_commit(wanted, monkeypatch)
    batch = tmp_path / "checkpoint" / "0.json"
    batch.write_text(
        json.dumps({**json.loads(batch.read_text()), "began_millis": time.time_ns() // 10**6})
    )
    [note] = tmp_path.rglob("stream-stream-*")
    note.unlink()
    others_commit_and_expire(wanted)

    with pytest.raises(lake.CommitUndecidableError):
        ingest.run(wanted)


def test_a_batch_that_fails_keeps_no_snapshot(wanted, drop, tmp_path):
    drop(1)
    ingest.run(wanted)
    (tmp_path / "incoming" / "2.jsonl").write_text("no JSON at all")

    with pytest.raises(Exception, match=r"2\.jsonl"):
        ingest.run(wanted)

    assert table_of(wanted).consumers.list() == []


def test_a_file_that_goes_before_it_is_taken_is_named(wanted, drop, tmp_path, monkeypatch):
    drop(1)
    with monkeypatch.context() as patch:
        patch.setattr(ingest, "_ingest_batch", die)
        with pytest.raises(Killed):
            ingest.run(wanted)
    gone = tmp_path / "incoming" / "1.jsonl"
    gone.unlink()
    catalog = lake.open_catalog(wanted["warehouse"])
    catalog.create_database("shop")
    catalog.create_table("shop.orders", [("id", "BIGINT"), ("note", "STRING")])

    with pytest.raises(
        lake.NotFoundError, match=r"batch 0 of .* includes .*1\.jsonl, which is missing"
    ):
        ingest.run(wanted)
    gone.touch()
    drop(2)
    ingest.run(wanted)
    assert ids(wanted) == [2]


@pytest.fixture
def change(tmp_path):
    """Give a file new content of the same or another size, and a later time."""

    def act(number, text):
        path = tmp_path / "incoming" / f"{number}.jsonl"
        path.write_text(text + "\n")
        later = path.stat().st_mtime + 10
        os.utime(path, (later, later))

    return act


@pytest.mark.parametrize(
    ("text", "difference"),
    [
        ('{"id": 1, "note": "xyz"}', r"from 23 to 25 bytes"),
        ('{"id": 2, "note": "x"}', "its time"),
    ],
)
def test_a_file_that_has_changed_since_it_was_ingested_is_refused_by_name(
    wanted, drop, change, text, difference
):
    drop(1)
    ingest.run(wanted)
    change(1, text)
    drop(2)

    with pytest.raises(lake.InvalidRequestError, match=rf"1\.jsonl has changed .*{difference}"):
        ingest.run(wanted)
    assert ids(wanted) == [1]


def test_a_changed_file_is_refused_also_after_its_record_was_merged(
    wanted, drop, change, monkeypatch
):
    monkeypatch.setattr(file_checkpoint, "BATCHES_APART", 2)
    run_one_by_one(wanted, drop, 0, 1, 2)
    ingest.run(wanted)
    change(0, '{"id": 9}')

    with pytest.raises(lake.InvalidRequestError, match=r"0\.jsonl has changed"):
        ingest.run(wanted)


def test_a_file_that_was_corrected_before_it_was_ingested_is_not_refused(wanted, drop, change):
    drop(1)
    change(1, "no JSON at all")
    with pytest.raises(lake.InvalidRequestError, match=r"line 1, .*, is not a JSON object"):
        ingest.run(wanted)
    change(1, '{"id": 1, "note": "x"}')

    for _ in range(2):
        ingest.run(wanted)
    assert ids(wanted) == [1]


def test_a_file_that_changes_after_its_batch_was_published_but_not_marked_is_refused(
    wanted, drop, change, monkeypatch
):
    drop(1)
    dies_after_its_commit(wanted, monkeypatch)
    change(1, '{"id": 2, "note": "xyz"}')

    for _ in range(2):
        with pytest.raises(
            lake.InvalidRequestError, match=r"1\.jsonl has changed .*23 to 25 bytes"
        ):
            ingest.run(wanted)
    assert ids(wanted) == [1]


@pytest.mark.parametrize("merged", [False, True])
def test_a_file_of_a_resumed_batch_is_refused_if_it_changes_later(
    wanted, drop, change, monkeypatch, merged
):
    if merged:
        monkeypatch.setattr(file_checkpoint, "BATCHES_APART", 1)
    drop(1)
    change(1, "no JSON at all")
    with pytest.raises(lake.InvalidRequestError, match=r"is not a JSON object"):
        ingest.run(wanted)
    change(1, '{"id": 1, "note": "x"}')
    ingest.run(wanted)
    change(1, '{"id": 2, "note": "xyz"}')

    with pytest.raises(lake.InvalidRequestError, match=r"1\.jsonl has changed .*23 to 25 bytes"):
        ingest.run(wanted)


def test_a_file_is_not_refused_if_it_is_unknown_which_of_its_states_was_published(
    wanted, drop, change, monkeypatch
):
    drop(1)
    with monkeypatch.context() as patch:
        patch.setattr(ingest, "_ingest_rows", die)
        with pytest.raises(Killed):
            ingest.run(wanted)
    change(1, '{"id": 2, "note": "xyz"}')
    dies_after_its_commit(wanted, monkeypatch)

    for _ in range(2):
        ingest.run(wanted)
    assert ids(wanted) == [2]


def test_a_batch_that_an_earlier_release_has_resumed_is_not_compared(
    wanted, drop, change, tmp_path
):
    drop(1)
    ingest.run(wanted)
    (tmp_path / "checkpoint" / "0.again").touch()
    change(1, '{"id": 9}')

    assert ingest.run(wanted)["reason"] == "no new file"


def test_files_of_a_checkpoint_without_states_are_not_compared(wanted, drop, change, tmp_path):
    drop(1)
    ingest.run(wanted)
    record = tmp_path / "checkpoint" / "0.json"
    record.write_text(json.dumps({"files": json.loads(record.read_text())["files"]}))
    change(1, '{"id": 9}')
    drop(2)

    ingest.run(wanted)

    assert ids(wanted) == [1, 2]


@pytest.mark.parametrize(
    ("source", "place"), [("*.json", ""), ("**/*.json", "seen"), ("*/*.json", "seen/")]
)
def test_the_files_of_the_checkpoint_itself_are_not_ingested(wanted, tmp_path, source, place):
    root = tmp_path / "incoming"
    request = {**wanted, "source": f"{root}/{source}", "checkpoint": f"{root}/{place}"}
    for number in (1, 2):
        folder = root if source == "*.json" else root / "east"
        folder.mkdir(exist_ok=True)
        (folder / f"new-{number}.json").write_text(json.dumps({"id": number}) + "\n")
        assert ingest.run(request)["report"]["files_taken"] == 1
    assert ingest.run(request)["reason"] == "no new file"
    assert ids(wanted) == [1, 2]


@pytest.mark.parametrize("linked", ["source", "checkpoint"])
def test_a_link_to_the_checkpoint_does_not_make_its_files_source_files(wanted, tmp_path, linked):
    (tmp_path / "link").symlink_to(tmp_path / "incoming")
    names = {"source": "incoming", "checkpoint": "incoming", linked: "link"}
    request = {
        **wanted,
        "source": f"{tmp_path}/{names['source']}/**/*.json",
        "checkpoint": f"{tmp_path}/{names['checkpoint']}/seen",
    }
    for number in (1, 2):
        (tmp_path / f"incoming/{number}.json").write_text(json.dumps({"id": number}) + "\n")
        assert ingest.run(request)["report"]["files_taken"] == 1
    assert ingest.run(request)["reason"] == "no new file"
    assert ids(wanted) == [1, 2]


def test_change_messages_widen_the_table_batch_by_batch(wanted, tmp_path):
    def message(number, **row):
        path = tmp_path / "incoming" / f"{number}.jsonl"
        path.write_text(json.dumps({"op": "c", "after": row}) + "\n")

    asked = {**wanted, "format": "debezium-json", "primary_key": ["id"]}
    asked["table_options"] = {"bucket": "1"}
    message(1, id=1)
    ingest.run(asked)
    message(2, id=1, note="new")
    ingest.run(asked)

    assert table_of(wanted).scan().to_arrow().to_pylist() == [{"id": 1, "note": "new"}]


def test_a_stream_looks_again_until_it_is_ended(wanted, drop, tmp_path):
    drop(1)
    words = [sys.executable, "-m", "spark_jobs.ingest", "--request"]
    job = subprocess.Popen([*words, json.dumps({**wanted, "poll": "100 ms"})], env={**os.environ})
    try:
        wait_until((tmp_path / "checkpoint" / "0.done").exists, job)
        drop(2)
        wait_until((tmp_path / "checkpoint" / "1.done").exists, job)
        job.send_signal(signal.SIGTERM)
        assert job.wait(60) == 143
    finally:
        job.kill()
        job.wait()
    assert ids(wanted) == [1, 2]


def wait_until(is_there, job):
    deadline = time.monotonic() + 120
    while not is_there():
        assert job.poll() is None, "the job has ended"
        assert time.monotonic() < deadline, "the job never came so far"
        time.sleep(0.05)


def test_a_stream_of_a_table_follows_it_until_it_is_ended(wanted, tmp_path):
    catalog = lake.open_catalog(wanted["warehouse"])
    catalog.create_database("shop")
    source = catalog.create_table("shop.source", [("id", "BIGINT")])
    source.write(pa.table({"id": [1]}))
    asked = {key: wanted[key] for key in ("warehouse", "table", "create")}
    asked |= {"source_table": "shop.source", "consumer": "copy", "poll": "100 ms"}
    words = [sys.executable, "-m", "spark_jobs.ingest", "--request", json.dumps(asked)]
    job = subprocess.Popen(words)
    try:
        wait_until(lambda: consumed(source) == 2, job)
        source.write(pa.table({"id": [2]}))
        wait_until(lambda: consumed(source) == 3, job)
        job.send_signal(signal.SIGTERM)
        assert job.wait(60) == 143
    finally:
        job.kill()
        job.wait()
    assert ids(wanted) == [1, 2]


def consumed(table):
    return max((each.next_snapshot for each in table.consumers.list()), default=0)


def test_a_checkpoint_is_of_one_stream(wanted, drop, tmp_path):
    drop(1)
    ingest.run(wanted)
    with pytest.raises(lake.InvalidRequestError, match="one for each stream"):
        ingest.run({**wanted, "source": str(tmp_path / "other" / "*.jsonl")})


@pytest.mark.parametrize("format", ["paimon", "iceberg"])
@pytest.mark.parametrize("is_created", [True, False])
def test_a_checkpoint_belongs_to_one_table_also_if_another_one_gets_its_name(
    wanted, drop, checkpoint, tmp_path, format, is_created
):
    wanted = {**wanted, "catalog_options": {"format": format}}
    catalog = lake.open_catalog(wanted["warehouse"], format=format)
    drop(1)
    ingest.run(wanted)
    former = catalog.table("shop.orders").identity
    catalog.drop_table("shop.orders", **({"purge": True} if format == "iceberg" else {}))
    if is_created:
        catalog.create_table("shop.orders", [("id", "BIGINT"), ("note", "STRING")])
        assert catalog.table("shop.orders").identity != former
    for _ in range(2):  # without a new file, and with one
        with pytest.raises(lake.InvalidRequestError, match=r"lacks the rows .* another checkpoint"):
            ingest.run(wanted)
        drop(2)
    assert checkpoint() == {"0.json", "0.done"}
    assert catalog.list_tables("shop") == ["orders"] * is_created

    another = {**wanted, "checkpoint": str(tmp_path / "another")}
    assert ingest.run(another)["report"]["files_taken"] == 2
    (tmp_path / "checkpoint" / "table.json").unlink()
    drop(3)
    assert ingest.run(wanted)["report"]["files_taken"] == 2
    assert ingest.run(wanted)["reason"] == "no new file"


def test_a_checkpoint_is_not_used_for_a_table_of_another_warehouse(wanted, drop, tmp_path):
    drop(1)
    ingest.run(wanted)
    with pytest.raises(lake.InvalidRequestError, match=r"does not exist any more.*Nothing was"):
        ingest.run({**wanted, "warehouse": str(tmp_path / "another")})


def test_a_checkpoint_without_a_table_accepts_the_table_that_is_there(
    wanted, drop, checkpoint, tmp_path
):
    """Earlier releases did not record the table."""
    drop(1)
    ingest.run(wanted)
    (tmp_path / "checkpoint" / "table.json").unlink()
    drop(2)
    ingest.run(wanted)
    assert ids(wanted) == [1, 2]
    assert (tmp_path / "checkpoint" / "table.json").exists()


def test_two_processes_of_one_stream_are_told_apart(wanted, drop, monkeypatch):
    drop(1)
    find = file_stream.find_states

    def twin_is_faster(*asked):
        monkeypatch.setattr(file_stream, "find_states", find)
        ingest.run(wanted)
        return find(*asked)

    monkeypatch.setattr(file_stream, "find_states", twin_is_faster)
    with pytest.raises(lake.CommitConflictError, match="Run only one process for each stream"):
        ingest.run(wanted)
    assert ids(wanted) == [1]


@pytest.fixture
def checkpoint(tmp_path):
    """The content of the checkpoint, without its owner and its table."""
    return lambda: (
        {path.name for path in (tmp_path / "checkpoint").iterdir()} - {"stream.json", "table.json"}
    )


def run_one_by_one(wanted, drop, *numbers):
    for number in numbers:
        drop(number)
        ingest.run(wanted)


def test_a_checkpoint_does_not_grow_with_its_batches(wanted, drop, checkpoint, monkeypatch):
    monkeypatch.setattr(file_checkpoint, "BATCHES_APART", 3)
    run_one_by_one(wanted, drop, *range(7))
    assert checkpoint() == {"upto-5.json", "6.json", "6.done"}

    run_one_by_one(wanted, drop, 7)
    assert ids(wanted) == [*range(8)]
    assert [each.commit_identifier for each in table_of(wanted).snapshots()] == [*range(8)]


@pytest.mark.parametrize("call", ["create", "delete"])
@pytest.mark.parametrize("after", range(5))
def test_a_checkpoint_may_die_while_it_is_cut_short(
    wanted, drop, checkpoint, monkeypatch, call, after
):
    monkeypatch.setattr(file_checkpoint, "BATCHES_APART", 3)
    run_one_by_one(wanted, drop, 0, 1)
    drop(2)
    done, calls = getattr(LocalStorage, call), iter(range(after))

    def until_then(storage, path, *args):
        is_of_it = "/checkpoint/" in path and ("upto-" in path or call == "delete")
        if is_of_it and next(calls, None) is None:
            raise Killed
        return done(storage, path, *args)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, call, until_then)
        with suppress(Killed):
            ingest.run(wanted)
    run_one_by_one(wanted, drop, 3, 4, 5)
    assert ids(wanted) == [*range(6)]
    assert checkpoint() == {"upto-5.json"}


def test_a_process_that_slept_while_its_checkpoint_was_cut_short_is_told(
    wanted, drop, checkpoint, monkeypatch
):
    monkeypatch.setattr(file_checkpoint, "BATCHES_APART", 3)
    run_one_by_one(wanted, drop, 0)
    find = file_stream.find_states

    def twin_goes_on(*asked):
        monkeypatch.setattr(file_stream, "find_states", find)
        run_one_by_one(wanted, drop, 1, 2, 3)
        return find(*asked)

    monkeypatch.setattr(file_stream, "find_states", twin_goes_on)
    with pytest.raises(lake.CommitConflictError, match="Run only one process for each stream"):
        ingest.run(wanted)
    run_one_by_one(wanted, drop, 4)
    assert ids(wanted) == [*range(5)]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"poll": "1 s", "checkpoint": None}, "'poll' needs key 'checkpoint'"),
        ({"files_per_batch": 1, "checkpoint": None}, "'files_per_batch' needs key 'checkpoint'"),
        ({"files_per_batch": 0}, "must be a whole number from 1 on, got 0"),
        ({"poll": "soon"}, "key 'poll' must be a duration"),
        ({"poll": "0 s"}, "key 'poll' must be a duration.*it is zero"),
        ({"stage": True}, "'stage' and 'checkpoint' exclude each other"),
    ],
)
def test_keys_that_mean_nothing_together_are_refused(wanted, keys, words):
    asked = {key: value for key, value in {**wanted, **keys}.items() if value is not None}
    with pytest.raises(lake.InvalidRequestError, match=words):
        ingest.run(asked)
