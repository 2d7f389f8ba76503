"""Batches in transaction order whose table, or whose earlier attempt, has changed meanwhile."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.commit.commit import commit_messages
from lakeformat.paimon.row_changes import attempt
from lakeformat.paimon.transaction_order import write
from tests.keyed_rows import KeyedRows, listed

ORDER = "transaction-order"
COMMIT = lake.CommitId("batch", 1)


def batch(*rows: tuple[int, str]) -> pa.Table:
    keys, values = zip(*rows, strict=True)
    return pa.table({"k": keys, "v": values})


def began() -> tuple[KeyedRows, dict[str, Any]]:
    """A table with the keys 1 and 2, and the arguments of a batch that begins now."""
    rows = KeyedRows()
    rows.commit(("+I", 1, "old"), ("+I", 2, "old"))
    return rows, {"read_snapshot": rows.table.position(), "conflict": ORDER}


@pytest.mark.parametrize("are_prepared", [False, True])
def test_a_column_that_was_added_since_keeps_the_values_of_the_stream(are_prepared):
    rows, order = began()
    table = rows.table
    with table.new_writer(overwrite="table", **order) as writer:
        writer.write(batch((1, "batch"), (2, "batch")))
    prepared = writer.prepare()
    rows.catalog.alter_table("shop.t", lake.add_column("c", "STRING"))
    newest = rows.catalog.table("shop.t")
    newest.write(pa.table({"k": [1], "v": ["stream"], "c": ["x"]}))
    newest.compact()
    if are_prepared:
        table.commit(prepared, overwrite="table", **order)
    else:
        table.write(batch((1, "batch"), (2, "batch")), overwrite="table", **order)
    assert sorted(listed(newest.scan())) == [(1, "stream", "x"), (2, "batch", None)]


@pytest.mark.parametrize("overwrite", ["table", None])
@pytest.mark.parametrize("keys", [(1,), (1, 2)])
def test_prepared_files_that_were_written_again_are_committed_once(keys, overwrite):
    rows, order = began()
    order |= {"overwrite": overwrite}
    with rows.table.new_writer(**order) as writer:
        writer.write(batch(*((key, "batch") for key in keys)))
    messages = writer.prepare()
    rows.commit(("+U", 1, "stream"))
    first = rows.table.commit(messages, commit=COMMIT, **order)
    again = rows.table.commit(messages, commit=COMMIT, **order)
    assert (again.replayed, again.snapshot_id, again.unpublished_files) == (True, 3, 0)
    assert first.snapshot_id == 3


def test_a_batch_of_which_every_row_is_left_out_is_committed_once():
    rows, order = began()
    rows.commit(("+U", 1, "stream"))
    first = rows.table.write(batch((1, "batch")), commit=COMMIT, **order)
    rows.expire(1)
    again = rows.table.write(batch((1, "batch")), commit=COMMIT, **order)
    assert (first.snapshot_id, again.snapshot_id, again.replayed) == (3, 3, True)


def test_a_rollback_while_the_batch_is_published_hides_no_change(monkeypatch):
    rows, order = began()
    rows.commit(("+I", 3, "stream"))
    attempts = []

    def overtaken(*arguments, **options):
        attempts.append(1)
        if len(attempts) == 1:
            rows.table.rollback(snapshot=1, as_latest=False, force=True)
            rows.commit(("-D", 1, "old"))
            rows.table.compact()
        return commit_messages(*arguments, **options)

    monkeypatch.setattr(write, "commit_messages", overtaken)
    rows.table.write(batch((1, "batch"), (2, "batch")), **order)
    assert dict(listed(rows.table.scan())) == {2: "batch"}


def test_a_negative_number_is_no_snapshot():
    rows, order = began()
    order |= {"read_snapshot": -1}
    for change in (rows.table.delete, rows.table.write):
        with pytest.raises(lake.InvalidRequestError, match=r"read_snapshot is -1, but must be 0"):
            change("k = 1" if change == rows.table.delete else batch((1, "x")), **order)


def test_a_batch_cannot_begin_where_consumers_keep_no_snapshots():
    options = {"changelog-producer": "input", "consumer.changelog-only": "true"}
    rows = KeyedRows({**options, "changelog.num-retained.min": "50"})
    with pytest.raises(lake.InvalidRequestError, match=r"'consumer.changelog-only' is 'true'"):
        rows.table.begin().__enter__()
    assert rows.table.consumers.list() == []
    with KeyedRows(options).table.begin() as position:  # changelogs expire with their snapshots
        assert position.number == 0


def on_level_0(table: lake.Table) -> int:
    return table.system_table("files").scan(["level"]).to_arrow()["level"].to_pylist().count(0)


@pytest.mark.parametrize(
    "options",
    [{"deletion-vectors.enabled": "true"}, {"metadata.iceberg.storage": "table-location"}],
    ids=["deletion vectors", "published"],
)
@pytest.mark.parametrize("are_prepared", [False, True])
def test_no_key_is_hidden_after_an_overwrite_where_readers_skip_level_0(
    are_prepared, options, monkeypatch
):
    rows = KeyedRows(options)
    rows.commit(("+I", 1, "old"), ("+I", 2, "old"), ("+I", 3, "old"))
    rows.table.compact()
    order = {
        "overwrite": "table",
        "read_snapshot": rows.table.position(),
        "conflict": ORDER,
    }
    with rows.table.new_writer(**order) as writer:
        writer.write(batch((1, "batch"), (2, "batch")))
    rows.commit(("+U", 1, "stream"), ("-D", 2, "old"))
    attempts = []

    def overtaken(*arguments, **options):
        attempts.append(arguments[1])
        if len(attempts) < 3:
            rows.commit(("+I", 10 + len(attempts), "late"))
        return commit_messages(*arguments, **options)

    monkeypatch.setattr(write, "commit_messages", overtaken)
    if are_prepared:
        rows.table.commit(writer.prepare(), **order)
    else:
        rows.table.write(batch((1, "batch"), (2, "batch")), **order)
    assert on_level_0(rows.table) == 2
    assert attempts[0] == attempts[2]  # the rows were not written again
    if "deletion-vectors.enabled" in options:
        assert dict(listed(rows.table.scan())) == {1: "stream"}
    rows.table.compact()
    assert dict(listed(rows.table.scan())) == {1: "stream", 11: "late", 12: "late"}


@pytest.mark.parametrize("is_ordered", [False, True])
def test_a_rollback_while_rows_are_deleted_hides_no_change(is_ordered, monkeypatch):
    rows, order = began()
    rows.commit(("+I", 3, "old"))
    attempts = []

    def overtaken(*arguments, **options):
        attempts.append(1)
        if len(attempts) == 1:
            rows.table.rollback(snapshot=1, as_latest=False, force=True)
            rows.commit(("+U", 1, "stream"))  # which gets the number 2 again
        return commit_messages(*arguments, **options)

    monkeypatch.setattr(attempt, "commit_messages", overtaken)
    rows.table.delete("v = 'old'", **(order if is_ordered else {}))
    assert dict(listed(rows.table.scan())) == {1: "stream"}
