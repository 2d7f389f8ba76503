"""A run that is done again takes the place of its earlier rows, in one commit."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.metadata.updates import remove_snapshots
from lakeformat.iceberg.table.table import IcebergTable
from tests.unit.iceberg.meanwhile import meanwhile
from tests.unit.iceberg.write.made_tables import ids_of, made_table, referenced_files, stored_files


@pytest.fixture
def orders(storage) -> IcebergTable:
    table = IcebergTable(made_table(storage, partition={"k": "identity"}))
    table.write(rows(90, 91), commit=lake.CommitId("other", 1))
    return table


def rows(*ids: int) -> pa.Table:
    keys = pa.array([f"k{each % 3}" for each in ids], pa.string())
    return pa.table({"id": pa.array(ids, pa.int64()), "k": keys})


def redo(replaced: int, identifier: int = 2) -> lake.CommitId:
    return lake.CommitId("run", identifier, replaces=replaced)


def first_try(table: IcebergTable, *ids: int) -> int:
    found = table.write(rows(*ids), commit=lake.CommitId("run", 1)).snapshot_id
    assert found is not None
    return found


@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_rows_of_the_earlier_commit_are_taken_out_in_the_same_commit(storage, version):
    table = IcebergTable(made_table(storage, version, partition={"k": "identity"}))
    table.write(rows(90, 91))
    replaced = first_try(table, 1, 2, 3)
    table.write(rows(92))
    report = table.write(rows(2, 4), commit=redo(replaced))
    assert ids_of(table._handle) == [2, 4, 90, 91, 92]
    assert (report.kind, report.rows, report.deleted_files) == ("overwrite", 2, 3)
    assert stored_files(storage) == referenced_files(table._handle)


def test_the_repetition_is_published_once_and_can_be_repeated_itself(orders):
    replaced = first_try(orders, 1, 2)
    second = orders.write(rows(3), commit=redo(replaced)).snapshot_id
    assert orders.write(rows(3), commit=redo(replaced)).replayed
    orders.write(rows(4), commit=redo(second, 4))
    assert ids_of(orders._handle) == [4, 90, 91]
    with pytest.raises(InvalidRequestError, match="arrived after commit 4"):
        orders.write(rows(5), commit=redo(second, 3))


def test_without_new_rows_the_earlier_ones_are_only_taken_out(orders):
    assert orders.write(rows(), commit=redo(first_try(orders, 1))).kind == "delete"
    assert ids_of(orders._handle) == [90, 91]


def test_prepared_files_take_the_place_of_the_earlier_rows(orders):
    replaced = first_try(orders, 1, 2)
    with orders.new_writer() as writer:
        writer.write(rows(3))
        orders.commit(writer.prepare(), commit=redo(replaced))
    assert ids_of(orders._handle) == [3, 90, 91]


def test_after_a_rollback_nothing_is_left_to_take_out(orders):
    before = orders.latest_snapshot().id
    replaced = first_try(orders, 1)
    orders.rollback(snapshot=before)
    assert orders.write(rows(2), commit=redo(replaced)).kind == "append"
    assert ids_of(orders._handle) == [2, 90, 91]


def test_an_overwrite_ignores_what_it_replaces(orders):
    replaced = first_try(orders, 1)
    orders.write(rows(2), overwrite="table", commit=redo(replaced))
    assert ids_of(orders._handle) == [2]


def test_the_snapshot_of_another_user_is_refused_and_nothing_is_published(orders):
    replaced = orders.latest_snapshot().id
    with pytest.raises(InvalidRequestError, match="not a commit of rows by the user 'run'"):
        orders.write(rows(1), commit=redo(replaced))
    assert ids_of(orders._handle) == [90, 91]


def test_deletes_from_other_rows_do_not_matter(orders):
    orders.write(rows(94, 97))
    replaced = first_try(orders, 1, 2)
    orders.delete("id = 97")
    orders.write(rows(3), commit=redo(replaced))
    assert ids_of(orders._handle) == [3, 90, 91, 94]


def in_two_files(table: IcebergTable) -> int:
    """Commit 1 and 4, of one partition, in a file each."""
    messages = []
    for each in (1, 4):
        with table.new_writer() as writer:
            writer.write(rows(each))
            messages += writer.prepare()
    found = table.commit(messages, commit=lake.CommitId("run", 1)).snapshot_id
    assert found is not None
    return found


@pytest.mark.parametrize("version", [1, 2, 3])
def test_rows_that_were_compacted_among_themselves_are_taken_out(storage, version):
    table = IcebergTable(made_table(storage, version, partition={"k": "identity"}))
    table.write(rows(90))
    replaced = in_two_files(table)
    for _ in range(2):
        table.compact(strategy="full", rewrite_all=True)
    assert len(table.snapshots()) == 4
    report = table.write(rows(1), commit=redo(replaced))
    assert (ids_of(table._handle), report.deleted_files) == ([1, 90], 1)
    assert stored_files(storage) >= referenced_files(table._handle)


def test_a_check_leaves_out_the_compacted_rows_that_the_commit_takes_out(storage):
    table = IcebergTable(made_table(storage, partition={"k": "identity"}))
    replaced = in_two_files(table)
    table.compact(strategy="full", rewrite_all=True)
    with table.new_writer() as writer:
        writer.write(rows(1, 7))
        address = table.staged.address(
            table.staged.add(writer.prepare(), commit=redo(replaced)).name
        )
    assert table.check(staged=[address], unique=["id"]).failed
    assert table.check(staged=[address], replaces=replaced, unique=["id"]).failed == ()


def test_rows_that_are_compacted_while_the_new_ones_are_published_are_taken_out(storage):
    table = IcebergTable(made_table(storage, partition={"k": "identity"}))
    table.write(rows(90))
    replaced = in_two_files(table)
    compact = {"strategy": "full", "rewrite_all": True}
    meanwhile(table._handle, lambda other: IcebergTable(other).compact(**compact))
    table.write(rows(1), commit=redo(replaced))
    assert ids_of(table._handle) == [1, 90]


def test_rows_that_are_mixed_with_others_meanwhile_are_refused_and_no_file_is_left(orders, storage):
    replaced = in_two_files(orders)
    compact = {"strategy": "full", "rewrite_all": True}
    meanwhile(orders._handle, lambda other: IcebergTable(other).compact(**compact))
    with pytest.raises(InvalidRequestError, match="has rewritten or removed files of the earlier"):
        orders.write(rows(1), commit=redo(replaced))
    assert ids_of(orders._handle) == [1, 4, 90, 91]
    assert stored_files(storage) == referenced_files(orders._handle)


def test_rows_compacted_after_some_were_deleted_bring_none_back(orders):
    replaced = in_two_files(orders)
    orders.delete("id = 4")
    orders.compact(strategy="full", rewrite_all=True)
    with pytest.raises(InvalidRequestError, match="has rewritten"):
        orders.write(rows(1), commit=redo(replaced))


def test_a_repetition_without_rows_can_be_repeated(orders):
    second = orders.write(rows(), commit=redo(first_try(orders, 1))).snapshot_id
    orders.write(rows(2), commit=redo(second, 3))
    assert ids_of(orders._handle) == [2, 90, 91]


def tagged_run(table: IcebergTable) -> int:
    """Let a snapshot after a run expire, so that only a tag leads to the run."""
    replaced = first_try(table, 1, 2)
    table.tags.create("run", snapshot=replaced)
    middle = table.write(rows(93)).snapshot_id
    table.write(rows(94))
    commit_metadata(table._handle, lambda loaded: remove_snapshots(loaded.metadata, [middle]))
    return replaced


def test_a_tagged_run_is_found_after_later_snapshots_expired(orders):
    replaced = tagged_run(orders)
    orders.write(rows(3), commit=redo(replaced))
    assert ids_of(orders._handle) == [3, 90, 91, 93, 94]


def test_a_tagged_run_of_another_user_is_not_replaced(orders):
    replaced = tagged_run(orders)
    with pytest.raises(InvalidRequestError, match="is not a commit of rows by the user 'another'"):
        orders.write(rows(3), commit=lake.CommitId("another", 2, replaces=replaced))
    assert ids_of(orders._handle) == [1, 2, 90, 91, 93, 94]


def compacted(table: IcebergTable, replaced: int) -> None:
    table.compact(strategy="full", rewrite_all=True)


def deleted(table: IcebergTable, replaced: int) -> None:
    table.delete("k = 'k1'")


def one_deleted(table: IcebergTable, replaced: int) -> None:
    table.delete("id = 4")


def expired(table: IcebergTable, replaced: int) -> None:
    table.write(rows(93))
    commit_metadata(table._handle, lambda loaded: remove_snapshots(loaded.metadata, [replaced]))


@pytest.mark.parametrize(
    ("meanwhile", "reason"),
    [
        (compacted, r"snapshot \d+ .* has rewritten or removed files of the earlier"),
        (deleted, r"snapshot \d+ .* has rewritten or removed files of the earlier"),
        (one_deleted, "rows of the earlier commit were deleted or updated"),
        (expired, "this snapshot, or a later one, has expired"),
    ],
)
def test_rows_that_cannot_be_taken_out_are_refused_before_anything_is_written(
    orders, storage, meanwhile, reason
):
    replaced = first_try(orders, 1, 4, 2)
    meanwhile(orders, replaced)
    before, files = ids_of(orders._handle), stored_files(storage)
    with pytest.raises(
        InvalidRequestError, match=f"cannot take the place of .*{reason}"
    ) as refused:
        orders.write(rows(3), commit=redo(replaced))
    assert "on_clear='force'" in str(refused.value)
    assert (ids_of(orders._handle), stored_files(storage)) == (before, files)
