"""Changes by key that several writers prepare, in one commit: rows are replaced and deleted."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.iceberg.write.message import IcebergCommitMessage
from lakeformat.storage import MemoryStorage
from tests.unit.iceberg.meanwhile import meanwhile
from tests.unit.iceberg.row_changes.changed_table import (
    MERGE,
    METHODS,
    changed_table,
    pairs_of,
    rows,
)
from tests.unit.iceberg.write.made_tables import referenced_files, stored_files

OLD = {n: f"k{n % 2}" for n in range(10)}


@pytest.fixture
def storage():
    return MemoryStorage("t")


def changes(*given: tuple[str, int, str]) -> pa.Table:
    kinds, ids, values = zip(*given, strict=True)
    one = rows(*ids, k="")
    place = one.schema.get_field_index("k")
    one = one.set_column(place, "k", pa.array(values, one.schema.field("k").type))
    return one.append_column("kind", pa.array(kinds))


def prepared(handle: TableHandle, *given: tuple[str, int, str]) -> list[IcebergCommitMessage]:
    with IcebergTable(handle).new_writer(upsert_by=["id"]) as writer:
        for each in given:
            writer.write(changes(each), "kind")
        return writer.prepare()


def sent(messages: list[IcebergCommitMessage]) -> list[IcebergCommitMessage]:
    return [IcebergCommitMessage.from_bytes(each.to_bytes()) for each in messages]


@METHODS
def test_the_last_change_of_each_key_counts_over_all_writers(storage, version, mode):
    handle = changed_table(storage, version, mode)
    one = prepared(handle, ("+I", 20, "a"), ("-U", 3, ""), ("+U", 3, "b"), ("-D", 5, ""))
    two = prepared(handle, ("+I", 21, "c"), ("-D", 21, ""), ("-D", 8, ""))
    report = IcebergTable(handle).commit(sent([*one, *two]))
    assert (report.rows, report.replaced_rows) == (2, 3)
    assert "3 stored rows replaced or deleted" in report.reason
    left = {key: value for key, value in OLD.items() if key not in (5, 8)}
    assert pairs_of(handle) == sorted((left | {20: "a", 3: "b"}).items())
    assert len(handle.load().metadata.snapshots) == 3
    assert stored_files(storage) == referenced_files(handle)


def test_a_repeated_commit_of_deletes_spares_rows_added_since(storage):
    handle, commit = changed_table(storage, 3, MERGE), lake.CommitId("run", 1)
    for _ in range(2):
        IcebergTable(handle).commit(prepared(handle, ("-D", 50, "")), commit=commit)
        IcebergTable(handle).write(rows(50))
    assert [key for key, _ in pairs_of(handle)] == [*range(10), 50, 50]


def test_a_compaction_meanwhile_brings_no_deleted_row_back(storage):
    handle = changed_table(storage, 3, MERGE)
    messages = prepared(handle, ("-D", 5, ""), ("+U", 3, "b"))
    meanwhile(handle, lambda other: IcebergTable(other).compact(rewrite_all=True))
    assert IcebergTable(handle).commit(messages).attempts == 2
    left = {key: value for key, value in OLD.items() if key != 5}
    assert pairs_of(handle) == sorted((left | {3: "b"}).items())


def test_staged_changes_are_published_once_and_not_read_beside_stored_rows(storage):
    handle = changed_table(storage, 2, MERGE)
    table, commit = IcebergTable(handle), lake.CommitId("run", 1)
    staged = table.staged.add(prepared(handle, ("+U", 3, "b"), ("-D", 5, "")), commit=commit)
    address = table.staged.address(staged.name)
    assert [row["id"] for row in table.staged.scan([address]).to_arrow().to_pylist()] == [3]
    with pytest.raises(lake.UnsupportedError, match="replace published rows"):
        table.staged.scan([address], with_published=True)
    with pytest.raises(lake.UnsupportedError, match="replace published rows"):
        table.check(staged=[address], unique=["id"])
    assert pairs_of(handle) == sorted(OLD.items())
    first = table.staged.publish([address], commit=commit)
    left = {key: value for key, value in OLD.items() if key != 5}
    assert pairs_of(handle) == sorted((left | {3: "b"}).items())
    assert table.staged.publish([address], commit=commit).snapshot_id == first.snapshot_id


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"upsert_by": ["k"]}, r"written with upsert_by=\['id'\]: leave upsert_by out"),
        ({"overwrite": "table"}, "upsert_by and overwrite exclude each other"),
    ],
)
def test_messages_are_committed_only_with_their_key(storage, arguments, error):
    handle = changed_table(storage, 2, MERGE)
    messages = prepared(handle, ("-D", 5, ""))
    with pytest.raises(lake.InvalidRequestError, match=error):
        IcebergTable(handle).commit(messages, **arguments)
    with IcebergTable(handle).new_writer() as writer:
        writer.write(rows(30))
        messages += writer.prepare()
    with pytest.raises(lake.InvalidRequestError, match="different keys: id; no key"):
        IcebergTable(handle).commit(messages)
    assert pairs_of(handle) == sorted(OLD.items())


def test_a_key_that_two_writers_changed_is_refused(storage):
    handle = changed_table(storage, 2, MERGE)
    messages = [*prepared(handle, ("-D", 5, "")), *prepared(handle, ("+I", 5, "b"))]
    with pytest.raises(lake.InvalidRequestError, match="have a key that another row has, too"):
        IcebergTable(handle).commit(messages)
    assert pairs_of(handle) == sorted(OLD.items())


def test_changes_that_need_no_file_make_no_message(storage):
    handle = changed_table(storage, 2, MERGE)
    with IcebergTable(handle).new_writer(upsert_by=["id"]) as writer:
        assert writer.prepare() == []
    [message] = prepared(handle, ("+I", 50, "a"), ("-D", 50, ""))
    assert (message.files, message.rows) == (0, 0)
    assert stored_files(storage) == referenced_files(handle)
