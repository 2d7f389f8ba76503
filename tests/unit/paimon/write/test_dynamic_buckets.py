"""Tables with dynamic buckets: a key keeps its bucket, for every writer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.environment import Environment
from lakeformat.errors import BucketsChangedError, CorruptTableError
from lakeformat.paimon.commit.commit import CommitOptions, commit_messages
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.table import load_table
from lakeformat.paimon.write.key_hashes import KeyHashes, Room
from lakeformat.storage import open_storage
from tests import sampling

COLUMNS = [("dt", "STRING"), ("id", "BIGINT"), ("note", "STRING")]


def dynamic(catalog: lake.Catalog, *, by_day: bool = False, **options: str) -> lake.Table:
    named = {f"dynamic-bucket.{key.replace('_', '-')}": value for key, value in options.items()}
    return catalog.create_table(
        "shop.orders",
        COLUMNS if by_day else COLUMNS[1:],
        primary_key=["dt", "id"] if by_day else ["id"],
        partition_by=["dt"] if by_day else [],
        options={"bucket": "-1", **named},
    )


def rows(ids: Any, note: str = "a", dt: str | None = None) -> pa.Table:
    found = {"id": pa.array(ids, pa.int64()), "note": [note] * len(ids)}
    return pa.table({"dt": [dt] * len(ids), **found} if dt else found)


def content(table: lake.Table) -> dict[Any, str]:
    found = [tuple(row.values()) for row in table.scan().to_arrow().to_pylist()]
    kept = {key[0] if len(key) == 1 else tuple(key): note for *key, note in found}
    assert len(kept) == len(found), "a key is there twice"
    return kept


def buckets(table: lake.Table) -> dict[int, int]:
    """The number of rows in the files of each bucket."""
    found: dict[int, int] = {}
    for row in table.system_table("files").scan(["bucket", "record_count"]).to_arrow().to_pylist():
        found[row["bucket"]] = found.get(row["bucket"], 0) + row["record_count"]
    return found


def indexes(table: lake.Table) -> dict[tuple[str, int], int]:
    """The number of hashes in the index of each bucket."""
    columns = ["partition", "bucket", "index_type", "row_count"]
    found = table.system_table("table_indexes").scan(columns).to_arrow().to_pylist()
    assert {row["index_type"] for row in found} <= {"HASH"}
    return {(row["partition"], row["bucket"]): row["row_count"] for row in found}


def test_new_keys_fill_one_bucket_after_the_other_and_known_ones_stay(catalog):
    table = dynamic(catalog, target_row_num="3")
    table.write(rows([1, 2, 3, 4]))
    assert buckets(table) == {0: 3, 1: 1}
    table.write(rows([4, 5, 1, 6, 7], "b"))
    assert buckets(table) == {0: 3 + 1, 1: 1 + 3, 2: 1}
    assert content(table) == {1: "b", 2: "a", 3: "a", 4: "b", 5: "b", 6: "b", 7: "b"}
    assert indexes(table) == {("{}", 0): 3, ("{}", 1): 3, ("{}", 2): 1}


def test_keys_keep_their_bucket_from_batch_to_batch_of_one_write(catalog):
    table = dynamic(catalog, target_row_num="100")
    table.write([rows(range(start, start + 300)) for start in (0, 150, 0, 300)])
    assert content(table) == dict.fromkeys(range(600), "a")
    assert buckets(table) == dict.fromkeys(range(6), 100)


def test_once_there_may_be_no_more_buckets_keys_go_to_any_of_them(catalog):
    table = dynamic(catalog, target_row_num="10", max_buckets="2")
    table.write(rows(range(1000)))
    found = buckets(table)
    assert set(found) == {0, 1}
    assert sum(found.values()) == 1000
    assert min(found.values()) > 300, "by chance, not one after the other"
    table.write(rows(range(1000), "b"))
    assert buckets(table) == {bucket: 2 * count for bucket, count in found.items()}
    assert content(table) == dict.fromkeys(range(1000), "b")


def test_partitions_count_their_buckets_each_for_itself(catalog):
    table = dynamic(catalog, by_day=True, target_row_num="2")
    days = [rows([1, 2, 3], dt="mon"), rows([1, 9], dt="tue"), rows([4], dt="mon")]
    table.write(pa.concat_tables(days))
    assert indexes(table) == {("{mon}", 0): 2, ("{mon}", 1): 2, ("{tue}", 0): 2}
    table.write(rows([9], "b", dt="tue"))
    assert content(table)["tue", 9] == "b"


def test_a_deleted_key_keeps_its_place(catalog):
    table = dynamic(catalog, target_row_num="2")
    table.write(rows([1, 2]))
    table.write(rows([1]), ["-D"])
    table.write(rows([3]))
    table.write(rows([1], "again"))
    assert content(table) == {1: "again", 2: "a", 3: "a"}
    assert indexes(table) == {("{}", 0): 2, ("{}", 1): 1}


@settings(max_examples=sampling.count(8, whole=200))
@given(
    st.lists(st.lists(st.integers(-6, 6), min_size=1, max_size=12), max_size=5),
    st.sets(st.integers(-6, 6), max_size=6),
    st.integers(1, 4),
)
def test_many_keys_at_once_get_what_one_after_the_other_would(batches, known, target):
    room = Room(target, None, lambda: 0.5)
    at_once = KeyHashes({1: np.array(sorted(known), np.int32)} if known else {}, room)
    bucket_of = dict.fromkeys(known, 1)
    for batch in batches:
        found = at_once.assign(np.array(batch, np.int32)).tolist()
        assert found == [one_by_one(key, bucket_of, target) for key in batch]
    changed = at_once.changed()
    for bucket, hashes in changed.items():
        assert sorted(hashes) == sorted(key for key, at in bucket_of.items() if at == bucket)
    new = {key: at for key, at in bucket_of.items() if key not in known}
    assert set(changed) == set(new.values())


def one_by_one(key: int, bucket_of: dict[int, int], target: int) -> int:
    """The rule of the format, for one key."""
    if key not in bucket_of:
        keys = Counter(bucket_of.values())
        free = [bucket for bucket in sorted(keys) if keys[bucket] < target]
        bucket_of[key] = free[0] if free else next(n for n in count() if n not in keys)
    return bucket_of[key]


def test_a_full_table_says_what_to_raise(catalog, monkeypatch):
    monkeypatch.setattr("lakeformat.paimon.write.key_hashes.MOST_BUCKETS", 3)
    table = dynamic(catalog, target_row_num="1")
    with pytest.raises(
        lake.InvalidRequestError, match=r"increase 'dynamic-bucket\.target-row-num'"
    ):
        table.write(rows(range(4)))
    assert table.latest_snapshot() is None


def test_compaction_leaves_the_index_as_it_is(catalog):
    table = dynamic(catalog, target_row_num="2")
    for note in "abc":
        table.write(rows([1, 2, 3], note))
    before = indexes(table)
    assert table.compact().snapshot_ids
    assert indexes(table) == before
    table.write(rows([3, 2], "d"))
    assert content(table) == {1: "c", 2: "d", 3: "d"}


def test_an_overwrite_begins_a_new_index_and_a_dropped_partition_has_none(catalog):
    table = dynamic(catalog, by_day=True, target_row_num="2")
    table.write(pa.concat_tables([rows(range(5), dt="mon"), rows(range(3), dt="tue")]))
    table.write(rows([4, 3], "b", dt="mon"), overwrite={"dt": "mon"})
    assert indexes(table) == {("{mon}", 0): 2, ("{tue}", 0): 2, ("{tue}", 1): 1}
    table.write(rows([4, 9], "c", dt="mon"))
    assert {key: note for key, note in content(table).items() if key[0] == "mon"} == {
        ("mon", 3): "b",
        ("mon", 4): "c",
        ("mon", 9): "c",
    }
    table.drop_partitions([{"dt": "mon"}])
    assert indexes(table) == {("{tue}", 0): 2, ("{tue}", 1): 1}
    table.truncate()
    assert indexes(table) == {}


def test_of_two_writers_the_later_one_is_refused_and_loses_nothing(catalog):
    table = dynamic(catalog, target_row_num="2")
    table.write(rows([1]))
    first, second = table.new_writer(), table.new_writer()
    first.write(rows([2, 3], "first"))
    second.write(rows([3, 2], "second"))
    table.commit(first.prepare())
    late = second.prepare()
    with pytest.raises(BucketsChangedError, match=r"write the rows again.*only one job"):
        table.commit(late)
    table.abort(late)
    assert content(table) == {1: "a", 2: "first", 3: "first"}


def test_rows_of_known_keys_are_refused_too_if_their_partition_was_overwritten(catalog):
    table = dynamic(catalog, target_row_num="2")
    table.write(rows([1, 2, 3]))
    late = table.new_writer()
    late.write(rows([3], "late"))
    messages = late.prepare()
    table.write(rows([3, 2, 1], "b"), overwrite={})
    with pytest.raises(BucketsChangedError):
        table.commit(messages)
    assert content(table) == {1: "b", 2: "b", 3: "b"}


def test_writers_of_different_partitions_do_not_meet(catalog):
    table = dynamic(catalog, by_day=True)
    first, second = table.new_writer(), table.new_writer()
    first.write(rows([1], dt="mon"))
    second.write(rows([1], dt="tue"))
    table.commit(first.prepare())
    table.commit(second.prepare())
    assert content(table) == {("mon", 1): "a", ("tue", 1): "a"}


def test_a_write_that_lost_is_written_again(catalog, monkeypatch):
    table = dynamic(catalog, target_row_num="2")
    table.write(rows([1]))
    rival_was_here = []

    def commit_after_a_rival(handle, messages, options, **how):
        if not rival_was_here:
            rival_was_here.append(True)
            commit_with(monkeypatch, commit_messages)
            table.write(rows([2, 3], "rival"))
        return commit_messages(handle, messages, options, **how)

    commit_with(monkeypatch, commit_after_a_rival)
    report = table.write(rows([3, 4, 2], "late"))
    assert (report.snapshot_id, rival_was_here) == (3, [True])
    assert content(table) == {1: "a", 2: "late", 3: "late", 4: "late"}
    assert indexes(table) == {("{}", 0): 2, ("{}", 1): 2}
    assert len(list_files(table, "index")) == 1 + 2 + 1, "nothing is left of the first try"


def test_an_iterator_that_is_used_up_is_refused(catalog, monkeypatch):
    table = dynamic(catalog)

    def commit_after_a_rival(handle, messages, options, **how):
        commit_with(monkeypatch, commit_messages)
        table.write(rows([1], "rival"))
        return commit_messages(handle, messages, options, **how)

    commit_with(monkeypatch, commit_after_a_rival)

    def once() -> Iterator[pa.Table]:
        yield rows([1])

    with pytest.raises(BucketsChangedError):
        table.write(once())
    assert content(table) == {1: "rival"}
    assert len(list_files(table, "index")) == 1


def commit_with(monkeypatch, commit: Any) -> None:
    monkeypatch.setattr("lakeformat.paimon.table.writes.commit_messages", commit)


def list_files(table: lake.Table, directory: str) -> list[str]:
    handle = table._handle
    return [info.path for info in handle.storage.list(f"{handle.layout.root}/{directory}")]


def test_threads_that_write_at_once_never_put_a_key_into_two_buckets(catalog):
    table = dynamic(catalog, target_row_num="7")
    errors: list[lake.LakeError] = []

    def work(number: int) -> None:
        try:
            for turn in range(4):
                table.write(rows(np.arange(number * 10 + turn, number * 10 + turn + 20), "x"))
        except lake.LakeError as error:
            errors.append(error)

    threads = [Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert content(table) == dict.fromkeys(range(53), "x")
    assert sum(indexes(table).values()) == 53


def test_messages_of_two_writers_in_one_commit_must_not_share_keys(catalog):
    table = dynamic(catalog, target_row_num="1", max_buckets="2")
    table.write(rows([1, 2]))
    first, second = table.new_writer(), table.new_writer()
    messages = []
    for writer in (first, second):
        writer.write(rows([3], "new"))
        messages += writer.prepare()
    with pytest.raises(lake.InvalidRequestError, match=r"two bucket|two HASH files"):
        table.commit(messages)
    assert content(table) == {1: "a", 2: "a"}


def test_a_bucket_without_an_index_is_not_written_to(catalog):
    table = dynamic(catalog)
    writer = table.new_writer()
    writer.write(rows([1]))
    [message] = writer.prepare()
    bare = replace(message, new_index_files=(), assigned_by=None)
    commit_messages(table._handle, [bare], CommitOptions())
    with pytest.raises(
        CorruptTableError, match=r"bucket 0 of .* overwrite the table with its own rows"
    ):
        table.write(rows([1]))
    table.write(table.scan().to_arrow(), overwrite={})
    table.write(rows([1], "b"))
    assert content(table) == {1: "b"}


@pytest.mark.parametrize("left", [None, b"cut"], ids=["lost", "cut short"])
def test_an_index_that_is_lost_is_made_anew_by_the_rows_themselves(catalog, left):
    table = dynamic(catalog, by_day=True)
    for day in ("d1", "d2"):
        table.write(rows([1, 2, 3], dt=day))
    storage, root = open_storage(table.location)
    for info in [*storage.list(f"{root}/index")]:
        storage.delete(info.path)
        if left is not None:
            storage.overwrite(info.path, left)
    with pytest.raises(CorruptTableError, match="overwrite the partition with its own rows"):
        table.write(rows([1], "b", dt="d1"))

    day = {"dt": "d1"}
    table.write(table.scan(partitions=day).to_batches(), overwrite=day)

    table.write(rows([1], "b", dt="d1"))
    assert content(table) == {("d1", 1): "b"} | {
        (day, key): "a" for day in ("d1", "d2") for key in (1, 2, 3) if (day, key) != ("d1", 1)
    }


def test_a_message_of_a_writer_travels_with_its_index(catalog):
    table = dynamic(catalog)
    writer = table.new_writer()
    writer.write(rows([1, 2]))
    table.commit([CommitMessage.from_bytes(each.to_bytes()) for each in writer.prepare()])
    assert indexes(table) == {("{}", 0): 2}


def test_expired_indexes_go_and_those_in_use_are_no_orphans(catalog):
    table = dynamic(catalog, target_row_num="10")
    for first in range(0, 6, 2):
        table.write(rows([first, first + 1]))
    assert len(list_files(table, "index")) == 3
    table.expire_snapshots(retain_max=1, retain_min=1, older_than=0)
    assert len(list_files(table, "index")) == 1
    handle = table._handle
    later = Environment(now_millis=lambda: 4_000_000_000_000)
    assert not load_table(handle.storage, handle.layout, later).remove_orphans(dry_run=False).files
    table.write(rows([0], "b"))
    assert content(table) == {0: "b", **dict.fromkeys(range(1, 6), "a")}
