"""Rows that get their bucket later: unseen until a compaction gives it to them."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.paimon.compact.plan import plan_compaction
from lakeformat.paimon.compact.run import run_messages
from tests import sampling

COLUMNS = [("dt", "STRING"), ("id", "BIGINT"), ("note", "STRING")]


@pytest.fixture
def catalog() -> lake.Catalog:
    return new_catalog()


def new_catalog() -> lake.Catalog:
    catalog = lake.open_catalog(f"memory://{uuid4()}/")
    catalog.create_database("shop")
    return catalog


def postponed(catalog: lake.Catalog, **options: str) -> lake.Table:
    return catalog.create_table(
        "shop.orders",
        COLUMNS,
        primary_key=["dt", "id"],
        partition_by=["dt"],
        options={"bucket": "-2", **options},
    )


def rows(ids: Any, note: str = "a", dt: str = "mon") -> pa.Table:
    ids = list(ids)
    return pa.table({"dt": [dt] * len(ids), "id": ids, "note": [note] * len(ids)})


def content(table: lake.Table) -> dict[tuple[str, int], str]:
    found = table.scan().to_arrow().to_pylist()
    kept = {(row["dt"], row["id"]): row["note"] for row in found}
    assert len(kept) == len(found), "a key is there twice"
    return kept


def files(table: lake.Table, *columns: str) -> list[tuple[Any, ...]]:
    found = table.system_table("files").scan(list(columns)).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def buckets(table: lake.Table) -> set[tuple[str, int]]:
    return set(files(table, "partition", "bucket"))


def test_rows_are_not_seen_until_a_compaction_gives_them_a_bucket(catalog):
    table = postponed(catalog, **{"postpone.default-bucket-num": "3"})
    table.write(rows(range(20)))
    table.write(rows(range(5), "b"))
    assert (content(table), buckets(table)) == ({}, {("{mon}", -2)})
    report = table.compact()
    expected = {("mon", n): "b" if n < 5 else "a" for n in range(20)}
    assert content(table) == expected
    assert buckets(table) == {("{mon}", bucket) for bucket in range(3)}
    assert [snapshot.commit_kind.value for snapshot in table.snapshots()] == [
        *("APPEND", "APPEND"),
        *("COMPACT", "COMPACT"),
    ]
    assert report.buckets[0].reason.startswith("25 rows wait for a bucket")
    assert files(table, "level") == [(5,)] * 3, "what has got a bucket is compacted there at once"
    assert "nothing to do" in table.compact().reason


def test_waiting_files_look_as_java_s_do(catalog):
    table = postponed(catalog)
    table.write(rows([2, 1, 2], "a"), ["+I", "+I", "-D"])
    [(path, level, count, deleted, first, last)] = files(
        table,
        *("file_path", "level", "record_count", "deleteRowCount"),
        *("min_sequence_number", "max_sequence_number"),
    )
    assert re.search(r"/bucket-postpone/data--u-[-\w]+-s-\d+-w-[-\w]+-0\.avro$", path)
    assert (level, count, deleted, first, last) == (0, 3, 1, -1, -1)
    delta = table.changes(0, 1, "delta").to_arrow().to_pylist()
    assert [(row["rowkind"], row["id"]) for row in delta] == [("+I", 2), ("+I", 1), ("-D", 2)]


def test_later_rows_win_whatever_they_met_before(catalog):
    table = postponed(catalog, **{"postpone.default-bucket-num": "2"})
    table.write(rows(range(6)))
    table.compact()
    table.write(rows([1, 2], "b"))
    table.write(rows([2], "c"))
    table.write(rows([3]), ["-D"])
    table.write(rows([9], dt="tue"))
    table.compact(strategy="minor")
    assert content(table) == {
        **{("mon", n): note for n, note in {0: "a", 1: "b", 2: "c", 4: "a", 5: "a"}.items()},
        ("tue", 9): "a",
    }


@pytest.mark.parametrize(
    ("options", "count", "why"),
    [
        ({}, 1, "1 new bucket, up to 1.0 GiB for each"),
        ({"postpone.target-row-num-per-bucket": "7"}, 3, "3 new buckets, up to 7 rows for each"),
        ({"postpone.target-size-per-bucket": "1 b"}, 4, "4 new buckets, the most that"),
        (
            {"postpone.target-row-num-per-bucket": "7", "postpone.default-bucket-num": "5"},
            5,
            "'postpone.default-bucket-num' is 5",
        ),
    ],
)
def test_a_new_partition_gets_as_many_buckets_as_the_options_say(catalog, options, count, why):
    most = {"postpone.batch-write-fixed-bucket.max-parallelism": "4"}
    table = postponed(catalog, **options, **most)
    table.write(rows(range(20)))
    assert why in table.compact().buckets[0].reason
    partitions = table.system_table("partitions").scan(["total_buckets"]).to_arrow()
    assert partitions["total_buckets"].to_pylist() == [count]


def test_a_partition_keeps_its_number_of_buckets(catalog):
    table = postponed(catalog, **{"postpone.default-bucket-num": "2"})
    table.write(rows(range(20)))
    table.compact()
    catalog.alter_table("shop.orders", lake.set_option("postpone.default-bucket-num", "5"))
    table = catalog.table("shop.orders")
    table.write(pa.concat_tables([rows(range(20), "b"), rows(range(20), dt="tue")]))
    table.compact()
    totals = table.system_table("partitions").scan(["partition", "total_buckets"]).to_arrow()
    assert {tuple(row.values()) for row in totals.to_pylist()} == {("dt=mon", 2), ("dt=tue", 5)}
    assert len(content(table)) == 40


def test_an_overwrite_replaces_what_waits_too(catalog):
    table = postponed(catalog)
    table.write(rows([1, 2]))
    table.compact()
    table.write(rows([3]))
    table.write(rows([4]), overwrite={"dt": "mon"})
    table.compact()
    assert content(table) == {("mon", 4): "a"}


def test_many_partitions_and_a_small_buffer(catalog):
    table = postponed(catalog, **{"write-buffer-size": "1 b", "write-max-writers-to-spill": "2"})
    days = [rows(range(3), dt=f"d{n}") for n in range(6)]
    table.write([day.slice(at, 1) for at in range(3) for day in days])
    table.compact()
    assert content(table) == {(f"d{n}", at): "a" for n in range(6) for at in range(3)}


def test_a_writer_that_gives_up_leaves_no_file(catalog):
    table = postponed(catalog)
    writer = table.new_writer()
    writer.write(rows([1, 2]))
    messages = writer.prepare()
    assert [message.bucket for message in messages] == [-2]
    table.abort(messages)
    handle = table._handle
    assert [path for path in handle.storage.files(handle.layout.root) if "postpone" in path] == []


def test_of_two_compactions_one_gives_rows_their_bucket(catalog):
    table = postponed(catalog)
    table.write(rows([1, 2]))
    plan = plan_compaction(table._handle)
    table.write(rows([2, 3], "b"))
    late = run_messages(table._handle, plan.units[0])
    table.compact()
    with pytest.raises(lake.CommitConflictError, match="not in the table any more"):
        table.commit(late)
    table.abort(late)
    assert content(table) == {("mon", 1): "a", ("mon", 2): "b", ("mon", 3): "b"}


def test_a_compaction_that_was_overtaken_plans_again(catalog, monkeypatch):
    from lakeformat.paimon.compact import run

    table = postponed(catalog)
    table.write(rows([1, 2]))
    met = []

    def run_after_a_rival(handle, unit):
        made = run_messages(handle, unit)
        if not met:
            met.append(True)
            table.write(rows([3]))
            table.compact()
        return made

    monkeypatch.setattr(run, "run_messages", run_after_a_rival)
    report = table.compact()
    assert content(table) == {("mon", 1): "a", ("mon", 2): "a", ("mon", 3): "a"}
    assert report.groups_refused > 0


def test_the_changelog_of_rows_is_told_when_they_get_their_bucket(catalog):
    table = postponed(catalog, **{"changelog-producer": "input"})
    table.write(rows([1, 2]))
    table.write(rows([1], "b"), ["+U"])
    table.compact()
    kinds = [
        (row["rowkind"], row["id"], row["note"])
        for row in table.changes(0, mode="changelog").to_arrow().to_pylist()
    ]
    assert sorted(kinds) == [("+I", 1, "a"), ("+I", 2, "a"), ("+U", 1, "b")]


@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_looked_up_changelogs_are_those_of_the_buckets(catalog, producer):
    table = postponed(catalog, **{"changelog-producer": producer})
    table.write(rows([1, 2]))
    table.compact()
    table.write(rows([1], "b"))
    table.compact()
    told = table.changes(0, mode="changelog").to_arrow().to_pylist()
    kinds = sorted((row["rowkind"], row["id"], row["note"]) for row in told)
    assert kinds == [("+I", 1, "a"), ("+I", 2, "a"), ("+U", 1, "b"), ("-U", 1, "a")]


def test_only_some_partitions_can_be_asked_for(catalog):
    table = postponed(catalog)
    table.write(pa.concat_tables([rows([1]), rows([1], dt="tue")]))
    table.compact(partitions={"dt": "tue"})
    assert content(table) == {("tue", 1): "a"}


def test_waiting_rows_alone_can_be_asked_for(catalog):
    table = postponed(catalog, **{"postpone.default-bucket-num": "2"})
    table.write(rows(range(6)))
    table.compact()
    catalog.alter_table("shop.orders", lake.set_option("postpone.default-bucket-num", "5"))
    table = catalog.table("shop.orders")
    table.write(rows(range(3, 9), "b"))
    assert "nothing to do" in table.compact(buckets=[0]).reason
    table.compact(buckets=[-2])
    assert content(table) == {("mon", n): "a" if n < 3 else "b" for n in range(9)}


def test_append_tables_cannot_postpone(catalog):
    with pytest.raises(lake.InvalidRequestError, match="but the table has no primary key"):
        catalog.create_table("shop.orders", COLUMNS, options={"bucket": "-2"})


DAYS = st.sampled_from(["mon", "tue"])
CHANGES = st.lists(
    st.tuples(st.sampled_from(["+I", "+U", "-D"]), DAYS, st.integers(0, 4), st.sampled_from("abc")),
    min_size=1,
    max_size=8,
)


def test_a_merging_read_sees_rows_that_wait(catalog):
    merging = {"postpone.merge-on-read": "true", "postpone.default-bucket-num": "2"}
    table = postponed(catalog, **merging)
    table.write(rows(range(4)))
    assert content(table) == {("mon", n): "a" for n in range(4)}
    table.compact()
    table.write(pa.concat_tables([rows([1, 9], "b"), rows([1], dt="tue")]))
    table.write(rows([2], "c"), ["-D"])
    expected = {("mon", 0): "a", ("mon", 1): "b", ("mon", 3): "a", ("mon", 9): "b"}
    assert content(table) == {**expected, ("tue", 1): "a"}
    assert table.scan().count() == 5
    assert table.scan(["id"], where="note = 'b'").to_arrow()["id"].to_pylist() == [1, 9]
    assert table.scan(["id"], where="note = 'a'").to_arrow()["id"].to_pylist() == [0, 3, 1]
    assert table.scan(where="dt = 'tue' AND id = 1").count() == 1
    plan = table.scan(where="dt = 'mon' AND id = 9").explain()
    assert plan.left_out_by_statistics == plan.left_out_otherwise == 0
    assert plan.files_to_read == plan.files - plan.left_out_by_partition
    assert table.scan(where="id = 2").count() == 0
    assert table.system_table("ro").scan().to_arrow().num_rows == 4


@pytest.mark.parametrize(
    ("merges", "what"), [("false", "do not see them"), ("true", "merge them in memory")]
)
def test_the_health_report_knows_if_reads_include_rows_without_a_bucket(catalog, merges, what):
    table = postponed(catalog, **{"postpone.merge-on-read": merges})
    table.write(rows([1]))
    [reason] = table.health().reasons
    assert reason.finding == f"the rows of 1 file have no bucket yet: batch reads {what}"


@pytest.mark.parametrize("engine", ["partial-update", "first-row", "aggregation"])
def test_a_merging_read_says_what_a_compaction_will_make_of_it(catalog, engine):
    table = postponed(catalog, **{"merge-engine": engine, "postpone.merge-on-read": "true"})
    table.write(rows([1, 2]))
    table.compact()
    table.write(rows([2, 3, 2], "b"))
    table.write(rows([3], "c"))
    before = content(table)
    table.compact()
    assert content(table) == before


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "aggregation"])
def test_a_delete_finds_the_same_rows_before_and_after_a_compaction(engine):
    removes = {} if engine == "deduplicate" else {f"{engine}.remove-record-on-delete": "true"}
    tables = [postponed(new_catalog(), **{"merge-engine": engine}, **removes) for _ in range(2)]
    for table in tables:
        table.write(pa.concat_tables([rows(range(4)), rows(range(3), dt="tue")]))
        table.compact()
        table.write(rows([1, 2, 5], "b"))
        table.write(rows([2, 5], "c"), ["-D", "-D"])
        table.write(rows([2, 7], "d"))
    tables[1].compact()
    for table in tables:
        assert table.delete("note IN ('a', 'd')").rows == 7
        table.compact()
        assert content(table) == {("mon", 1): "b"}


@settings(max_examples=sampling.count(5, whole=50))
@given(
    st.lists(st.tuples(CHANGES, st.booleans()), min_size=1, max_size=5),
    st.integers(1, 3),
    st.booleans(),
)
def test_whatever_waits_the_last_row_of_a_key_wins(commits, count, merges):
    options = {"postpone.merge-on-read": str(merges).lower()}
    table = postponed(new_catalog(), **options, **{"postpone.default-bucket-num": str(count)})
    expected: dict[tuple[str, int], str] = {}
    for changes, compacts in commits:
        kinds, days, ids, notes = map(list, zip(*changes, strict=True))
        table.write(pa.table({"dt": days, "id": ids, "note": notes}), kinds)
        for kind, day, number, note in changes:
            expected[day, number] = note
            if kind == "-D":
                del expected[day, number]
        if compacts:
            table.compact(strategy="minor")
        if compacts or merges:
            assert content(table) == expected
    table.compact()
    assert content(table) == expected
