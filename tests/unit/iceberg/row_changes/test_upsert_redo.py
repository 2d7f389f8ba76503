"""An upsert that is done again replaces the rows of its first run, but no newer ones."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.table.table import IcebergTable
from tests.unit.iceberg.row_changes.changed_table import METHODS, changed_table, pairs_of, rows
from tests.unit.iceberg.write.made_tables import made_table, stored_files

FIRST = lake.CommitId("run", 1)


def redo(replaced: int) -> lake.CommitId:
    return lake.CommitId("run", 2, replaces=replaced)


def upserted(table: IcebergTable, *ids: int, k: str, commit: lake.CommitId | None = None) -> int:
    found = table.upsert(rows(*ids, k=k), by=["id"], commit=commit).snapshot_id
    assert found is not None
    return found


def upserted_by_message(
    table: IcebergTable, *ids: int, k: str, commit: lake.CommitId | None = None
) -> int:
    with table.new_writer(upsert_by=["id"]) as writer:
        writer.write(rows(*ids, k=k))
        messages = writer.prepare()
    try:
        found = table.commit(messages, commit=commit).snapshot_id
    except lake.LakeError:
        table.abort(messages)
        raise
    assert found is not None
    return found


WAYS = pytest.mark.parametrize("upsert", [upserted, upserted_by_message])


@pytest.mark.sampled(4)
@METHODS
@WAYS
def test_the_new_row_of_a_key_wins_also_after_a_compaction(storage, version, mode, upsert):
    table = IcebergTable(changed_table(storage, version, mode))
    replaced = upsert(table, 3, 20, k="first", commit=FIRST)
    table.compact(strategy="full", rewrite_all=True)
    table.write(rows(30, 31))  # of other keys, outside of the bounds
    upsert(table, 3, k="second", commit=redo(replaced))
    found = dict(pairs_of(table._handle, ["id", "k"]))
    assert (found[3], found[20], found[30]) == ("second", "first", "k0")


def newer_row(table: IcebergTable) -> None:
    upserted(table, 3, k="newer")


def newer_key(table: IcebergTable) -> None:
    table.write(rows(21, k="newer"))


def mixed_in(table: IcebergTable) -> None:
    table.write(rows(21, k="newer"))
    table.compact(strategy="full", rewrite_all=True)


def deleted(table: IcebergTable) -> None:
    table.delete("id = 20")


def whole_file_deleted(table: IcebergTable) -> None:
    table.delete("id in (3, 20)")


def all_replaced(table: IcebergTable) -> None:
    table.write(rows(100), overwrite="table")


def deleted_and_compacted(table: IcebergTable) -> None:
    table.delete("id >= 3")
    table.compact(strategy="full", rewrite_all=True)


REMOVED = [whole_file_deleted, all_replaced, deleted_and_compacted]


@pytest.mark.sampled(5)
@METHODS
@pytest.mark.parametrize("meanwhile", REMOVED)
def test_rows_that_others_removed_with_their_files_are_not_added_again(
    storage, version, mode, meanwhile
):
    table = IcebergTable(changed_table(storage, version, mode))
    replaced = upserted(table, 3, 20, k="first", commit=FIRST)
    meanwhile(table)
    before, files = pairs_of(table._handle), stored_files(storage)
    with pytest.raises(
        InvalidRequestError, match=r"removed files of the earlier|rows of the earlier commit were"
    ):
        upserted(table, 20, k="second", commit=redo(replaced))
    assert (pairs_of(table._handle), stored_files(storage)) == (before, files)


@pytest.mark.sampled(4)
@METHODS
@WAYS
@pytest.mark.parametrize("meanwhile", [newer_row, newer_key, mixed_in, deleted])
def test_newer_rows_of_others_are_not_undone(storage, version, mode, upsert, meanwhile):
    table = IcebergTable(changed_table(storage, version, mode))
    replaced = upsert(table, 3, 20, k="first", commit=FIRST)
    meanwhile(table)
    before, files = pairs_of(table._handle), stored_files(storage)
    with pytest.raises(InvalidRequestError, match=r"cannot take the place .*on_clear='force'"):
        upsert(table, 3, 21, k="second", commit=redo(replaced))
    assert (pairs_of(table._handle), stored_files(storage)) == (before, files)
    upsert(table, 3, 21, k="second", commit=lake.CommitId("run", 2))
    assert dict(pairs_of(table._handle, ["id", "k"]))[3] == "second"


def test_keys_in_other_partitions_do_not_matter(storage):
    table = IcebergTable(made_table(storage, partition={"k": "identity"}))
    replaced = table.upsert(rows(1, 9, k="a"), by=["k", "id"], commit=FIRST).snapshot_id
    table.write(rows(5, k="b"))
    table.upsert(rows(1, k="a"), by=["k", "id"], commit=redo(replaced))
    assert pairs_of(table._handle, ["id"]) == [(1,), (5,), (9,)]


def test_only_deleted_keys_can_be_deleted_again(storage):
    table = IcebergTable(changed_table(storage, 2, "merge-on-read"))
    one = pa.array(["-D"])
    replaced = table.upsert(rows(3), by=["id"], kinds=one, commit=FIRST).snapshot_id
    table.write(rows(3, k="newer"))
    with pytest.raises(InvalidRequestError, match="rows that may have the same keys"):
        table.upsert(rows(3), by=["id"], kinds=one, commit=redo(replaced))
