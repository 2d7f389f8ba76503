"""A writer prepares files as messages; any process commits them once, or removes them."""

from __future__ import annotations

import pickle
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.metadata.updates import set_properties
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.iceberg.write.message import IcebergCommitMessage
from lakeformat.storage import MemoryStorage
from tests.unit.iceberg.write.made_tables import (
    head_of,
    ids_of,
    made_table,
    referenced_files,
    stored_files,
)


@pytest.fixture
def orders(storage) -> IcebergTable:
    return IcebergTable(made_table(storage, partition={"k": "identity"}))


def rows(*ids: int) -> pa.Table:
    keys = pa.array([f"k{each % 3}" for each in ids], pa.string())
    return pa.table({"id": pa.array(ids, pa.int64()), "k": keys})


def prepared(table: IcebergTable, *ids: int) -> list[IcebergCommitMessage]:
    """Messages as another process gets them: as bytes."""
    with table.new_writer() as writer:
        writer.write(rows(*ids))
        return [table.read_message(each.to_bytes()) for each in writer.prepare()]


def ids(table: IcebergTable) -> list[int]:
    return ids_of(table._handle)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_files_of_several_writers_are_published_in_one_snapshot(storage, version):
    table = IcebergTable(made_table(storage, version, partition={"k": "bucket[4]"}))
    table.write(rows(9))
    messages = prepared(table, 1, 2, 3) + prepared(table, 4)
    assert ids(table) == [9]
    assert [each.rows for each in messages] == [3, 1]
    report = table.commit(messages, properties={"source": "s"})
    assert ids(table) == [1, 2, 3, 4, 9]
    assert (report.kind, report.rows, len(table.snapshots())) == ("append", 4, 2)
    assert head_of(table._handle).summary["source"] == "s"
    assert stored_files(storage) == referenced_files(table._handle)


def test_a_message_can_be_pickled(orders):
    [message] = prepared(orders, 1)
    assert pickle.loads(pickle.dumps(message)) == message
    assert message.paths[0].startswith(f"{orders.location}/data/k_part=k1/")


def test_without_rows_there_is_no_message_and_no_snapshot(orders):
    assert prepared(orders) == []
    assert orders.commit([]).snapshot_id is None


def test_the_same_commit_publishes_once_and_counts_the_files_of_the_repetition(orders, storage):
    commit, first = lake.CommitId("run", 1), prepared(orders, 1)
    orders.commit(first, commit=commit)
    assert orders.commit(first, commit=commit).unpublished_files == 0  # a lost answer
    again = prepared(orders, 1, 2)
    report = orders.commit(again, commit=commit)
    assert (report.replayed, report.unpublished_files) == (True, 2)
    assert orders.abort(again) == []
    assert ids(orders) == [1]
    assert stored_files(storage) == referenced_files(orders._handle)


def test_an_overwrite_replaces_the_partitions_of_the_files(orders):
    orders.write(rows(1, 2, 3))
    with orders.new_writer(overwrite="partitions") as writer:
        writer.write(rows(7))
        messages = writer.prepare()
    assert orders.commit(messages, overwrite="partitions").deleted_files == 1
    assert ids(orders) == [2, 3, 7]
    assert orders.commit([], overwrite="table").kind == "delete"
    assert ids(orders) == []


def test_a_writer_that_fails_leaves_no_file(orders, storage):
    writer = orders.new_writer()
    writer.write(rows(1))
    with pytest.raises(InvalidRequestError, match="nme"):
        writer.write(pa.table({"nme": ["x"]}))
    with pytest.raises(InvalidRequestError, match="create a new writer"):
        writer.write(rows(1))
    with pytest.raises(UnsupportedError, match="does not take kinds"):
        orders.new_writer().write(rows(1), "k")
    assert stored_files(storage) == set()


def test_a_message_is_committed_only_once(orders):
    messages = prepared(orders, 1)
    orders.commit(messages)
    orders.write(rows(2))
    for call in (orders.commit, orders.abort):
        with pytest.raises(InvalidRequestError, match="is published already"):
            call(messages)
    with pytest.raises(InvalidRequestError, match=r"they name the file .* more than once"):
        orders.commit(prepared(orders, 3) * 2)
    assert ids(orders) == [1, 2]


def test_a_message_is_committed_only_once_although_its_files_were_rewritten(orders):
    messages = prepared(orders, 1)
    orders.commit(messages)
    orders.write(rows(4))
    orders.compact(rewrite_all=True)
    with pytest.raises(InvalidRequestError, match="is published already"):
        orders.commit(messages)
    assert ids(orders) == [1, 4]


def test_a_message_is_committed_only_once_although_its_snapshot_has_expired(orders):
    orders.write(rows(7))
    messages = prepared(orders, 1)
    orders.commit(messages)
    orders.write(rows(4))
    older = [each.id for each in orders.snapshots()][:-1]
    orders.expire_snapshots(snapshots=older, retain_min=1)
    assert len(orders.snapshots()) == 1
    orders.compact(rewrite_all=True)  # the snapshot before it still has the file
    with pytest.raises(InvalidRequestError, match="is published already"):
        orders.commit(messages)
    assert ids(orders) == [1, 4, 7]


def test_files_that_only_an_older_snapshot_has_are_not_aborted(orders):
    messages = prepared(orders, 1)
    first = orders.commit(messages)
    orders.truncate()
    with pytest.raises(InvalidRequestError, match="is published already"):
        orders.abort(messages)
    assert orders.scan(snapshot=first.snapshot_id).to_arrow()["id"].to_pylist() == [1]


def test_aborted_files_cannot_be_committed(orders, storage):
    messages = prepared(orders, 1)
    orders.abort(messages)
    with pytest.raises(InvalidRequestError, match=r"1 of 1 files .* does not exist"):
        orders.commit(messages)
    assert stored_files(storage) == set()


def test_files_of_another_table_are_refused(orders):
    other = replace(prepared(orders, 1)[0], table_uuid="another", table="memory://t/other")
    for call in (orders.commit, orders.abort):
        with pytest.raises(InvalidRequestError, match=r"written for memory://t/other, not for"):
            call([other])


def changed(message: IcebergCommitMessage, **columns: object) -> IcebergCommitMessage:
    """A message with another value in some columns."""
    entries = message.entries
    for name, value in columns.items():
        place = entries.schema.get_field_index(name)
        kind = entries.schema.field(place).type
        values = pa.array([value] * len(entries), kind)
        entries = entries.set_column(place, pa.field(name, kind), values)
    return replace(message, entries=entries)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"file_path": "memory://t/shop/orders/metadata/v1.metadata.json"}, "is not a data file"),
        ({"file_path": "memory://t/shop/orders/metadata/a.parquet"}, "is not a data file below"),
        (
            {"file_path": "memory://t/shop/orders/data/../../other/data/a.parquet"},
            "outside|not a data",
        ),
        ({"file_path": "file:///etc/a.parquet"}, "outside|not a data file"),
        ({"file_path": "data/a.parquet"}, "outside|not a data file|address"),
        ({"spec_id": 7}, r"no partition spec 7; .* write the rows again"),
        ({"status": 2}, "the status 2, but must have 1"),
        ({"content": 1}, "the content 1, but must have 0"),
        ({"file_format": "ORC"}, "the file_format ORC, but must have PARQUET"),
        ({"snapshot_id": 3}, "a value for snapshot_id"),
        ({"sequence_number": 1}, "a value for sequence_number"),
        ({"key_metadata": b"k"}, "a value for key_metadata"),
        ({"record_count": 0}, "record_count 0"),
        ({"file_size_in_bytes": -1}, "file_size_in_bytes -1"),
        ({"record_count": None}, "record_count"),
    ],
)
def test_a_hostile_message_is_neither_committed_nor_does_it_delete_a_file(
    orders, storage, columns, reason
):
    orders.write(rows(2))
    [message] = prepared(orders, 1)
    before = stored_files(storage)
    for call in (orders.commit, orders.abort):
        with pytest.raises(InvalidRequestError, match=reason):
            call([changed(message, **columns)])
    assert stored_files(storage) == before
    assert ids(orders) == [2]


@pytest.mark.parametrize("name", ["spec_id", "file_path", "partition", "record_count"])
def test_a_message_whose_files_lack_a_member_is_refused(orders, name):
    [message] = prepared(orders, 1)
    lacking = replace(message, entries=message.entries.drop_columns([name]))
    twice = replace(message, entries=message.entries.append_column(name, message.entries[name]))
    for each in (lacking, twice):
        with pytest.raises(InvalidRequestError, match="these messages cannot be used with"):
            orders.commit([table_message(orders, each)])


def table_message(table: IcebergTable, message: IcebergCommitMessage) -> IcebergCommitMessage:
    return table.read_message(message.to_bytes())


def test_what_is_no_message_is_refused(orders):
    for given_ in (b"x", [b"x"], 7, prepared(orders, 1)[0]):
        with pytest.raises(InvalidRequestError, match="pass a list of the messages"):
            orders.commit(given_)
    with pytest.raises(InvalidRequestError, match="must be bytes, got str"):
        orders.read_message("x")


@given(st.binary(max_size=40), st.integers(0, 400), st.integers(0, 255))
def test_damaged_bytes_raise_no_other_error(noise, place, value):
    table = IcebergTable(made_table(MemoryStorage("t")))
    content = bytearray(prepared(table, 1)[0].to_bytes())
    content[place * len(content) // 401] = value
    for each in (noise, bytes(content), bytes(content[: -1 - place])):
        with suppress(InvalidRequestError):
            table.read_message(each)


def test_files_of_an_older_partition_spec_and_place_are_still_published(orders):
    messages = prepared(orders, 1, 2)
    commit_metadata(
        orders._handle, lambda loaded: set_properties(loaded.metadata, {"owner": "ada"})
    )
    orders.commit(messages)
    assert ids(orders) == [1, 2]
