"""A snapshot outside of a branch's history is published on it, once."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from lakeformat.errors import InvalidRequestError, NotFoundError, UnsupportedError
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.metadata.snapshot import Reference
from lakeformat.iceberg.metadata.updates import set_reference
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.iceberg.write.append import append
from lakeformat.iceberg.write.publish import publish_change
from tests.unit.iceberg.write.made_tables import (
    entries_of,
    head_of,
    ids_of,
    keep_newest,
    made_table,
    referenced_files,
    stored_files,
)

VERSIONS = pytest.mark.parametrize("version", [1, 2, 3])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "k": ["a"] * len(ids)})


def on_branch(handle: TableHandle, name: str) -> TableHandle:
    return replace(handle, branch=name)


def with_branch(storage, version: int = 2) -> TableHandle:
    """A table with the row 1 on main, and a branch that begins there."""
    handle = made_table(storage, version)
    append(handle, rows(1))
    head = Reference("dev", head_of(handle).snapshot_id, "branch")
    commit_metadata(handle, lambda loaded: set_reference(loaded.metadata, head, 0))
    return handle


@VERSIONS
def test_the_files_of_an_append_are_added_to_another_state(storage, version):
    handle = with_branch(storage, version)
    append(handle, rows(2))
    source = append(on_branch(handle, "dev"), rows(8, 9)).snapshot_id
    report = IcebergTable(handle).cherry_pick(source)
    assert (report.action, report.snapshot_id) == ("added", head_of(handle).snapshot_id)
    assert ids_of(handle) == [1, 2, 8, 9]
    summary = head_of(handle).summary
    assert (summary["source-snapshot-id"], summary["total-records"]) == (str(source), "4")
    assert stored_files(storage) == referenced_files(handle)


def test_a_snapshot_that_expires_meanwhile_is_not_added(storage, monkeypatch):
    handle = with_branch(storage)
    append(handle, rows(2))
    source = append(on_branch(handle, "dev"), rows(8)).snapshot_id
    table = IcebergTable(handle)

    def expire_and_publish(*given, **named):
        table.branches.delete("dev")
        table.expire_snapshots(snapshots=[source], delete_files=False)  # its files are next
        return publish_change(*given, **named)

    monkeypatch.setattr("lakeformat.iceberg.cherry_pick.publish_change", expire_and_publish)
    with pytest.raises(NotFoundError, match=f"has no snapshot {source}"):
        table.cherry_pick(source)
    assert ids_of(handle) == [1, 2]


def test_row_ids_are_given_anew(storage):
    handle = with_branch(storage, 3)
    append(handle, rows(2))
    source = append(on_branch(handle, "dev"), rows(8, 9)).snapshot_id
    IcebergTable(handle).cherry_pick(source)
    assert sorted(each["first_row_id"] for each in entries_of(handle)) == [0, 1, 4]
    assert handle.load().metadata.next_row_id == 6


def test_a_snapshot_made_from_the_head_becomes_the_head(storage):
    handle = with_branch(storage)
    source = append(on_branch(handle, "dev"), rows(8)).snapshot_id
    report = IcebergTable(handle).cherry_pick(source)
    assert (report.action, head_of(handle).snapshot_id) == ("moved", source)
    assert ids_of(handle) == [1, 8]


def test_a_repetition_changes_nothing(storage):
    handle = with_branch(storage)
    append(handle, rows(2))
    source = append(on_branch(handle, "dev"), rows(8)).snapshot_id
    first = IcebergTable(handle).cherry_pick(source)
    append(handle, rows(3))
    again = IcebergTable(handle).cherry_pick(source)
    assert (again.action, again.snapshot_id) == ("kept", first.snapshot_id)
    assert ids_of(handle) == [1, 2, 3, 8]
    assert stored_files(storage) == referenced_files(handle)


@VERSIONS
def test_a_repetition_after_an_expiry_changes_nothing(storage, version):
    handle = with_branch(storage, version)
    append(handle, rows(2))
    source = append(on_branch(handle, "dev"), rows(8)).snapshot_id
    IcebergTable(handle).cherry_pick(source)
    append(handle, rows(3))
    keep_newest(handle)
    again = IcebergTable(handle).cherry_pick(source)
    assert (again.action, again.snapshot_id) == ("kept", head_of(handle).snapshot_id)
    assert ids_of(handle) == [1, 2, 3, 8]
    assert stored_files(storage) == referenced_files(handle)


def test_a_tagged_snapshot_of_the_branch_changes_nothing_after_an_expiry(storage):
    handle = made_table(storage)
    for number in (1, 2, 3):
        append(handle, rows(number))
        if number == 1:
            IcebergTable(handle).tags.create("first")
    source = IcebergTable(handle).snapshots()[0].snapshot_id
    keep_newest(handle)
    assert IcebergTable(handle).cherry_pick(source).action == "kept"
    assert ids_of(handle) == [1, 2, 3]


def test_rows_that_came_over_another_branch_are_added_once(storage):
    handle = with_branch(storage)
    append(handle, rows(2))
    IcebergTable(handle).branches.create("b")
    b = on_branch(handle, "b")
    append(b, rows(7))
    source = append(on_branch(handle, "dev"), rows(8)).snapshot_id
    IcebergTable(handle).cherry_pick(source)
    picked = IcebergTable(b).cherry_pick(source).snapshot_id
    assert IcebergTable(handle).cherry_pick(picked).action == "kept"
    assert ids_of(handle) == [1, 2, 8]


def test_a_first_publication_after_an_expiry_is_added(storage):
    handle = with_branch(storage)
    source = append(on_branch(handle, "dev"), rows(8)).snapshot_id
    for number in (2, 3):
        append(handle, rows(number))
    keep_newest(handle)
    assert IcebergTable(handle).cherry_pick(source).action == "added"
    assert ids_of(handle) == [1, 2, 3, 8]


def test_a_snapshot_whose_files_are_there_in_part_is_refused(storage):
    handle = made_table(storage, partition={"k": "identity"})
    append(handle, rows(1))
    IcebergTable(handle).branches.create("dev")
    append(handle, rows(2))
    both = pa.table({"id": [8, 9], "k": ["b", "c"]})
    source = append(on_branch(handle, "dev"), both).snapshot_id
    IcebergTable(handle).cherry_pick(source)
    IcebergTable(handle).delete(where="k = 'b'")
    keep_newest(handle)
    with pytest.raises(InvalidRequestError, match=r"1 of 2 files of snapshot \d+ are in branch"):
        IcebergTable(handle).cherry_pick(source)
    assert ids_of(handle) == [1, 2, 9]


def test_a_wap_id_is_published_once(storage):
    handle = with_branch(storage)
    append(handle, rows(2))
    dev = on_branch(handle, "dev")
    append(dev, rows(8), properties={"wap.id": "w"})
    assert IcebergTable(handle).cherry_pick(wap_id="w").action == "added"
    assert head_of(handle).summary["published-wap-id"] == "w"
    twin = append(dev, rows(9), properties={"wap.id": "w"}).snapshot_id
    with pytest.raises(InvalidRequestError, match=r"'w' of snapshot \d+ was published before"):
        IcebergTable(handle).cherry_pick(twin)
    with pytest.raises(NotFoundError, match=r"no snapshot with the wap\.id 'v'"):
        IcebergTable(handle).cherry_pick(wap_id="v")


def test_other_changes_than_appends_are_refused(storage):
    handle = with_branch(storage)
    append(handle, rows(2))
    dev = IcebergTable(on_branch(handle, "dev"))
    source = dev.truncate().snapshot_id
    with pytest.raises(UnsupportedError, match=r"append data files \(operation 'delete'\)"):
        IcebergTable(handle).cherry_pick(source)
    assert ids_of(handle) == [1, 2]


@pytest.mark.parametrize("given", [{}, {"snapshot": 1, "wap_id": "w"}])
def test_one_snapshot_is_named(storage, given):
    with pytest.raises(InvalidRequestError, match="pass either snapshot or wap_id, to choose"):
        IcebergTable(with_branch(storage)).cherry_pick(**given)
