"""Snapshot files and their directory: lenient to other writers, strict for written files."""

from __future__ import annotations

import json

import pytest

from lakeformat.errors import CorruptTableError, NotFoundError, UnsupportedError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    latest_snapshot,
    latest_snapshot_id,
    publish_snapshot,
    read_snapshot,
    snapshot_ids,
    write_hints,
)
from lakeformat.storage import MemoryStorage

LAYOUT = TableLayout("t")
MINIMAL = {
    "id": 1,
    "schemaId": 0,
    "baseManifestList": "base",
    "deltaManifestList": "delta",
    "commitUser": "me",
    "commitIdentifier": 9223372036854775807,
    "commitKind": "APPEND",
    "timeMillis": 5,
}


def storage_with(*ids: int, latest: bytes | None = None) -> MemoryStorage:
    storage = MemoryStorage("snapshots")
    for number in ids:
        content = json.dumps({**MINIMAL, "id": number}).encode()
        storage.overwrite(LAYOUT.snapshot(number), content)
    if latest is not None:
        storage.overwrite(LAYOUT.latest_hint, latest)
    return storage


def test_a_snapshot_with_nothing_optional_reads_as_java_reads_it():
    snapshot = Snapshot.from_json(MINIMAL)
    assert (snapshot.version, snapshot.total_record_count, snapshot.uuid) == (0, 0, None)
    assert snapshot.commit_kind is CommitKind.APPEND


def test_nulls_and_unknown_members_are_ignored():
    members = {**MINIMAL, "watermark": None, "logOffsets": {"0": 1}, "totalRecordCount": None}
    assert Snapshot.from_json(members) == Snapshot.from_json(MINIMAL)


def test_a_written_snapshot_reads_back_and_holds_no_null():
    snapshot = Snapshot.from_json({**MINIMAL, "version": 3, "properties": {"a": "b"}})
    members = json.loads(snapshot.to_json())
    assert None not in members.values()
    assert Snapshot.from_json(members) == snapshot


@pytest.mark.parametrize(
    "hint", [None, b"", b"3", b"2", b"1", b"99", b"-1", b"0", b"abc", b"\xff", b" 3\n", b"1_0"]
)
def test_the_newest_snapshot_is_found_whatever_the_hint_says(hint):
    assert latest_snapshot(storage_with(1, 2, 3, latest=hint), LAYOUT).id == 3


def test_a_hint_that_is_right_saves_the_listing():
    storage = storage_with(3, latest=b"3")
    storage.list = None
    assert latest_snapshot(storage, LAYOUT).id == 3


def test_a_table_without_snapshots_has_no_newest():
    assert latest_snapshot(storage_with(), LAYOUT) is None


def test_strangers_in_the_snapshot_directory_are_no_snapshots():
    storage = storage_with(1, 2)
    for name in (
        "snapshot-3.tmp",
        ".snapshot-4.x.tmp",
        "snapshot-1abc",
        "snapshot-",
        "snapshot-03",
    ):
        storage.overwrite(f"{LAYOUT.snapshot_directory}/{name}", b"x")
    assert snapshot_ids(storage, LAYOUT) == [1, 2]


def test_a_snapshot_that_is_not_there_names_those_that_are():
    with pytest.raises(NotFoundError, match=r"snapshot 7 .* snapshots 2 to 3 exist"):
        read_snapshot(storage_with(2, 3), LAYOUT, 7)


def test_numbers_that_are_absent_read_as_zero():
    numbers = ("schemaId", "commitIdentifier", "timeMillis", "version")
    members = {key: value for key, value in MINIMAL.items() if key not in numbers}
    found = Snapshot.from_json(members)
    assert (found.schema_id, found.commit_identifier, found.time_millis, found.version) == (0,) * 4


def test_a_snapshot_of_a_newer_version_is_refused_by_name():
    storage = storage_with(1)
    storage.overwrite(LAYOUT.snapshot(1), json.dumps({**MINIMAL, "version": 4}).encode())
    with pytest.raises(
        UnsupportedError, match=r"snapshot-1: .*version is 4, .* up to 3: .*upgrade"
    ):
        read_snapshot(storage, LAYOUT, 1)


def test_a_hint_beyond_the_newest_snapshot_changes_nothing_but_is_reported(caplog):
    storage = storage_with(1, 2)
    storage.overwrite(LAYOUT.snapshot_directory + "/LATEST", b"3")
    assert latest_snapshot(storage, LAYOUT).id == 2
    assert "has 3, but the newest file is snapshot-2" in caplog.text
    assert "newer files up to snapshot-3 were lost" in caplog.text
    assert "before the next commit: a commit takes the number 3 again" in caplog.text
    assert "`lake repair-hints TABLE`" in caplog.text


def test_a_commit_after_a_loss_does_not_advise_to_restore_the_lost_snapshot(caplog):
    storage = storage_with(1, 2, latest=b"3")
    assert latest_snapshot_id(storage, LAYOUT, for_commit=True) == 2
    assert "This commit takes the number 3. If it succeeds, do not restore" in caplog.text


def test_a_snapshot_under_the_wrong_number_is_corrupt():
    storage = storage_with(1)
    storage.overwrite(LAYOUT.snapshot(2), json.dumps(MINIMAL).encode())
    with pytest.raises(CorruptTableError, match="contains snapshot 1 instead of snapshot 2"):
        read_snapshot(storage, LAYOUT, 2)


@pytest.mark.parametrize(
    "damage",
    [
        {"id": "one"},
        {"commitKind": "DELETE"},
        {"commitKind": None},
        {"baseManifestList": None},
        {"totalRecordCount": "many"},
        {"properties": 3},
    ],
)
def test_a_snapshot_with_a_value_that_cannot_be_is_corrupt(damage):
    storage = MemoryStorage("damaged")
    storage.overwrite(LAYOUT.snapshot(1), json.dumps({**MINIMAL, **damage}).encode())
    with pytest.raises(CorruptTableError, match="snapshot-1"):
        read_snapshot(storage, LAYOUT, 1)


def test_a_number_is_published_once_and_the_hints_follow():
    storage = storage_with()
    first = Snapshot.from_json(MINIMAL)
    assert publish_snapshot(storage, LAYOUT, first)
    assert not publish_snapshot(storage, LAYOUT, first)
    write_hints(storage, LAYOUT, 1)
    assert storage.read(LAYOUT.latest_hint) == b"1"
    assert storage.read(LAYOUT.earliest_hint) == b"1"


@pytest.mark.parametrize("name", ["a\0b", "../snapshot/snapshot-1", ""])
def test_a_file_name_that_leads_elsewhere_is_damage(name):
    with pytest.raises(CorruptTableError, match="which is not a valid file name"):
        LAYOUT.manifest(name)
