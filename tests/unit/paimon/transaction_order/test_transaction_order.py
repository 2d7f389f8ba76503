"""Batches in transaction order: later changes of a stream win, although the batch commits last."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.commit.commit import commit_messages
from lakeformat.paimon.transaction_order import write
from lakeformat.paimon.transaction_order.newer_files import _kept
from tests.keyed_rows import KeyedRows, listed

ORDER = "transaction-order"


def rows_of(rows: KeyedRows) -> dict[int, str]:
    return dict(listed(rows.table.scan()))


def batch(*rows: tuple[int, str]) -> pa.Table:
    keys, values = zip(*rows, strict=True)
    return pa.table({"k": keys, "v": values})


def began() -> tuple[KeyedRows, lake.Position]:
    """T1 to T4: a batch begins between two commits of a stream, and a third one follows."""
    rows = KeyedRows()
    rows.commit(("+I", 1, "join"), ("+I", 2, "amy"))  # T1
    position = rows.table.position()  # T2: the batch begins
    rows.commit(("-D", 1, "join"), ("+I", 1, "john"))  # T3
    rows.commit(("+I", 3, "bob"))  # T4
    return rows, position


@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("overwrite", ["table", None])
def test_the_stream_of_t1_to_t6_wins_over_the_batch_that_began_before(overwrite, is_compacted):
    rows, position = began()
    if is_compacted:
        rows.table.compact()
    rows.table.write(
        batch((1, "join-fixed"), (2, "AMY"), (9, "zed")),
        overwrite=overwrite,
        read_snapshot=position,
        conflict=ORDER,
    )
    assert rows_of(rows) == {1: "john", 2: "AMY", 3: "bob", 9: "zed"}
    rows.commit(("-D", 2, "AMY"))  # T5
    assert rows_of(rows) == {1: "john", 3: "bob", 9: "zed"}
    rows.commit(("-D", 9, "zed"), ("+I", 9, "zoe"))  # T6
    assert rows_of(rows) == {1: "john", 3: "bob", 9: "zoe"}
    rows.table.compact()
    assert rows_of(rows) == {1: "john", 3: "bob", 9: "zoe"}


def test_a_key_that_the_stream_deleted_is_not_written_again():
    rows, position = began()
    rows.commit(("-D", 2, "amy"))
    rows.table.write(batch((2, "AMY")), overwrite="table", read_snapshot=position, conflict=ORDER)
    assert rows_of(rows) == {1: "john", 3: "bob"}


def test_files_of_the_stream_are_kept_and_not_written_again():
    rows, position = began()
    before = {
        *rows.table.system_table("files").scan(["file_path"]).to_arrow()["file_path"].to_pylist()
    }
    rows.table.write(batch((2, "AMY")), overwrite="table", read_snapshot=position, conflict=ORDER)
    after = rows.table.system_table("files").scan(["file_path"]).to_arrow()["file_path"].to_pylist()
    assert len(before.intersection(after)) == 2
    assert len(after) == 3


def test_an_overwrite_of_a_partition_keeps_its_newer_rows_only():
    rows = KeyedRows(partitioned=True)
    rows.commit(("+I", "a", 1, "old"), ("+I", "a", 2, "old"), ("+I", "b", 1, "old"))
    position = rows.table.position()
    rows.commit(("+U", "a", 2, "new"), ("+I", "a", 3, "new"))
    rows.table.compact()
    data = pa.table({"p": ["a", "a"], "k": [1, 2], "v": ["batch", "batch"]})
    rows.table.write(data, overwrite={"p": "a"}, read_snapshot=position, conflict=ORDER)
    assert sorted(listed(rows.table.scan())) == [
        ("a", 1, "batch"),
        ("a", 2, "new"),
        ("a", 3, "new"),
        ("b", 1, "old"),
    ]


def test_a_partition_loses_its_old_rows_even_if_no_row_of_the_batch_is_left():
    rows = KeyedRows(partitioned=True)
    rows.commit(("+I", "a", 1, "old"), ("+I", "a", 2, "old"))
    position = rows.table.position()
    rows.commit(("-D", "a", 2, "old"))
    data = pa.table({"p": ["a"], "k": [2], "v": ["batch"]})
    rows.table.write(data, overwrite="partitions", read_snapshot=position, conflict=ORDER)
    assert listed(rows.table.scan()) == []


@pytest.mark.parametrize("overwrite", ["table", None])
def test_a_writer_that_was_open_before_the_batch_committed_wins_after_it(overwrite):
    rows = KeyedRows()
    rows.commit(("+I", 1, "old"), ("+I", 2, "old"))
    position = rows.table.position()
    stream = rows.table.new_writer()
    stream.write(pa.table({"k": pa.array([100, 2], pa.int32()), "v": ["stream", "stream"]}))
    messages = stream.prepare()
    many = [(key, "batch") for key in range(1, 30)]
    rows.table.write(batch(*many), overwrite=overwrite, read_snapshot=position, conflict=ORDER)
    rows.table.commit(messages)
    found = rows_of(rows)
    assert (found[1], found[2], found[100]) == ("batch", "stream", "stream")


def test_rows_are_changed_as_they_were_unless_the_stream_changed_them_since():
    rows, position = began()
    how = {"read_snapshot": position, "conflict": ORDER}
    assert rows.table.update("k <= 9", {"v": "x"}, dry_run=True, **how).rows == 1
    report = rows.table.update("k <= 9", {"v": "x"}, **how)
    assert (report.rows, report.read_snapshot_id) == (1, 1)
    assert rows_of(rows) == {1: "john", 2: "x", 3: "bob"}
    with pytest.raises(lake.CommitConflictError, match="another batch"):
        rows.table.delete("k = 2", **how)
    rows, position = began()
    how = {"read_snapshot": position, "conflict": ORDER}
    assert rows.table.delete("v IN ('join', 'amy', 'bob')", **how).rows == 1
    assert rows_of(rows) == {1: "john", 3: "bob"}
    with pytest.raises(lake.InvalidRequestError, match="needs conflict='transaction-order'"):
        rows.table.delete("k = 2", read_snapshot=position)


@pytest.mark.parametrize("is_compacted", [False, True])
def test_an_overwrite_that_is_done_again_replaces_its_first_rows_and_keeps_the_stream(is_compacted):
    """As an Airflow task that is cleared, while the task before it keeps its position."""
    rows, position = began()
    how = {"overwrite": "table", "read_snapshot": position, "conflict": ORDER}
    rows.table.write(batch((1, "A"), (2, "A"), (8, "A")), commit=lake.CommitId("job", 1), **how)
    rows.commit(("+U", 8, "stream"), ("+I", 4, "stream"))
    if is_compacted:
        rows.table.compact()
    rows.table.write(batch((1, "B"), (8, "B"), (9, "B")), commit=lake.CommitId("job", 2), **how)
    expected = {1: "john", 3: "bob", 4: "stream", 8: "stream", 9: "B"}
    assert rows_of(rows) == expected
    rows.table.compact()
    assert rows_of(rows) == expected
    with pytest.raises(lake.CommitConflictError, match="but another batch, snapshot"):
        rows.table.write(batch((1, "C")), commit=lake.CommitId("other", 1), **how)


def test_an_overwrite_that_is_done_again_finds_changes_of_a_key_in_several_dynamic_buckets():
    """The first run gave the keys of the stream to other buckets."""
    rows = KeyedRows({"bucket": "-1", "dynamic-bucket.target-row-num": "1"})
    how = {"overwrite": "table", "read_snapshot": 0, "conflict": ORDER}
    rows.commit(("+I", 1, "old"), ("+I", 2, "old"), ("+I", 3, "old"))
    rows.table.write(batch((5, "A")), commit=lake.CommitId("job", 1), **how)
    rows.commit(("-D", 1, "old"), ("+U", 2, "new"))
    rows.table.write(batch((5, "B")), commit=lake.CommitId("job", 2), **how)
    assert rows_of(rows) == {2: "new", 3: "old", 5: "B"}


def test_rows_that_are_added_again_as_of_the_same_snapshot_are_refused_with_the_way_out():
    rows, position = began()
    how = {"read_snapshot": position, "conflict": ORDER}
    rows.table.write(batch((2, "A")), commit=lake.CommitId("job", 1), **how)
    with pytest.raises(lake.CommitConflictError) as refused:
        rows.table.write(batch((2, "B")), commit=lake.CommitId("job", 2), **how)
    said = str(refused.value)
    assert "but a commit of the same user, snapshot 4 (" in said
    assert "clear the task that read the table, too, or set on_clear='skip'" in said
    assert rows_of(rows) == {1: "john", 2: "A", 3: "bob"}


def test_the_table_option_decides_where_the_call_does_not():
    rows, position = began()
    rows.catalog.alter_table("shop.t", lake.set_option("write.conflict", ORDER))
    table = rows.catalog.table("shop.t")
    table.write(batch((1, "join-fixed"), (2, "AMY")), read_snapshot=position)
    assert rows_of(rows) == {1: "john", 2: "AMY", 3: "bob"}
    with pytest.raises(lake.CommitConflictError, match="was computed from snapshot 1"):
        table.write(batch((1, "x")), read_snapshot=position, conflict="optimistic")


def test_another_batch_in_between_is_refused():
    rows, position = began()
    rows.table.write(batch((2, "AMY")), read_snapshot=position, conflict=ORDER)
    with pytest.raises(lake.CommitConflictError, match="another batch, snapshot 4 "):
        rows.table.write(batch((2, "x")), read_snapshot=position, conflict=ORDER)
    rows.table.write(batch((5, "eve")), overwrite="table")
    with pytest.raises(lake.CommitConflictError, match=r"snapshot 5 \(OVERWRITE"):
        rows.table.write(batch((2, "x")), overwrite="table", read_snapshot=position, conflict=ORDER)
    assert rows_of(rows) == {5: "eve"}


def test_a_batch_is_refused_once_the_changes_since_have_expired():
    rows, position = began()
    rows.commit(("+I", 4, "dan"))
    for number in (1, 2):
        rows.expire(number)
    with pytest.raises(lake.CommitConflictError, match="snapshot 1 has expired"):
        rows.table.write(batch((2, "x")), read_snapshot=position, conflict=ORDER)
    with pytest.raises(lake.CommitConflictError, match="snapshot 2 has expired"):
        rows.table.write(batch((2, "x")), read_snapshot=0, conflict=ORDER)


@pytest.mark.parametrize(
    ("options", "keyed", "reason"),
    [
        ({}, False, "no primary key"),
        ({"merge-engine": "first-row"}, True, "keeps the first row"),
        ({"merge-engine": "aggregation"}, True, "'aggregation' combines"),
        ({"merge-engine": "partial-update"}, True, "'partial-update' combines"),
        ({"sequence.field": "v"}, True, "'sequence.field' = 'v' decides"),
        ({"bucket": "-2"}, True, "a compaction assigns buckets"),
    ],
)
def test_tables_without_an_order_of_transactions_are_refused_by_name(options, keyed, reason):
    rows = KeyedRows(options, keyed=keyed)
    with pytest.raises(lake.UnsupportedError, match=reason):
        rows.table.write(batch((1, "a")), read_snapshot=0, conflict=ORDER)
    assert rows.table.latest_snapshot() is None


def test_a_batch_names_the_snapshot_that_it_was_computed_from():
    rows, _ = began()
    with pytest.raises(lake.InvalidRequestError, match="needs read_snapshot"):
        rows.table.write(batch((2, "x")), conflict=ORDER)
    with pytest.raises(lake.InvalidRequestError, match="did you mean 'transaction-order'"):
        rows.table.write(batch((2, "x")), conflict="transaction_order")
    with pytest.raises(lake.CommitConflictError, match="is not in its history"):
        rows.table.write(batch((2, "x")), read_snapshot=9, conflict=ORDER)


def test_a_batch_keeps_its_snapshots_and_releases_them_at_its_end():
    rows = KeyedRows()
    rows.commit(("+I", 1, "a"))
    with rows.table.begin() as position:
        rows.commit(("+U", 1, "b"))
        rows.table.expire_snapshots(retain_max=1, retain_min=1)
        assert [each.id for each in rows.table.snapshots()] == [1, 2]
    assert position.number == 1
    rows.table.expire_snapshots(retain_max=1, retain_min=1)
    assert [each.id for each in rows.table.snapshots()] == [2]


def test_a_delete_that_the_stream_commits_just_before_the_batch_wins(monkeypatch):
    rows = KeyedRows()
    rows.commit(("+I", 1, "old"))
    position = rows.table.position()

    def overtaken(*arguments, **options):
        if rows.table.latest_snapshot().id == 1:
            rows.commit(("-D", 1, "old"))
        return commit_messages(*arguments, **options)

    monkeypatch.setattr(write, "commit_messages", overtaken)
    data = batch((1, "batch"), (2, "batch")).to_reader()  # which can be read only once
    rows.table.write(data, read_snapshot=position, conflict=ORDER)
    assert rows_of(rows) == {2: "batch"}


def test_a_newer_row_wins_over_an_older_one_that_an_overwrite_of_many_runs_writes_again():
    """Each time that the overwrite empties its buffer, its sequence numbers rise."""
    rows = KeyedRows({"write-buffer-size": "64 kb", "write-buffer-spillable": "false"})
    rows.commit(("+I", 0, "base"))
    position = rows.table.position()
    rows.commit(("+I", 1, "old"))
    rows.table.compact()
    rows.commit(("+I", 1, "new"))
    keys = range(1000, 7000)
    data = pa.table({"k": keys, "v": ["batch"] * len(keys)}).to_reader(1000)
    rows.table.write(data, overwrite="table", read_snapshot=position, conflict=ORDER)
    assert rows_of(rows) == {1: "new", **dict.fromkeys(keys, "batch")}


def test_files_are_kept_only_if_they_are_newer_than_all_rows_that_are_written_again():
    def entry(name: str, least: int) -> SimpleNamespace:
        file = SimpleNamespace(file_name=name, min_sequence_number=least)
        return SimpleNamespace(file=file)

    merged = (2, entry("merged", 5))
    assert _kept([merged, (3, entry("new", 6))], {"new"}, 5) == {"new"}
    assert _kept([merged, (3, entry("new", 6))], {"new"}, None) == set()
    assert _kept([(1, entry("older", 6)), merged], {"older"}, 0) == set()
    assert _kept([merged, (3, entry("restarted", 5))], {"restarted"}, 5) == set()
    assert _kept([(3, entry("alone", 0))], {"alone"}, None) == {"alone"}


def test_commits_of_a_stream_do_not_make_an_overwrite_beside_a_compaction_start_again(monkeypatch):
    rows = KeyedRows()
    rows.commit(("+I", 0, "base"))
    position = rows.table.position()
    rows.commit(("+I", 1, "old"))
    rows.table.compact()
    rows.commit(("+I", 1, "new"))
    attempts = []

    def overtaken(*arguments, **options):
        attempts.append(arguments[1])
        if len(attempts) < 4:
            rows.commit(("+I", 10 + len(attempts), "late"))
        return commit_messages(*arguments, **options)

    monkeypatch.setattr(write, "commit_messages", overtaken)
    rows.table.write(batch((5, "batch")), overwrite="table", read_snapshot=position, conflict=ORDER)
    assert attempts[0] == attempts[3]  # the rows were written once
    assert rows_of(rows) == {1: "new", 5: "batch", 11: "late", 12: "late", 13: "late"}
