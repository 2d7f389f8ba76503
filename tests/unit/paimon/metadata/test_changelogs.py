"""Long-lived changelogs, and the hints that snapshots and changelogs share."""

from __future__ import annotations

import json

import pytest

from lakeformat.errors import CorruptTableError, NotFoundError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.changelog_directory import (
    changelog_ids,
    read_changelog,
    write_changelog,
)
from lakeformat.paimon.metadata.hints import numbered_changelogs
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.storage import MemoryStorage

LAYOUT = TableLayout("t")
MEMBERS = {
    "schemaId": 0,
    "baseManifestList": "base",
    "deltaManifestList": "delta",
    "changelogManifestList": "changes",
    "commitUser": "me",
    "commitIdentifier": 3,
    "commitKind": "APPEND",
    "timeMillis": 5,
}


def snapshot(number: int) -> Snapshot:
    return Snapshot.from_json({**MEMBERS, "id": number})


def storage_with(*ids: int) -> MemoryStorage:
    storage = MemoryStorage("changelogs")
    for number in ids:
        write_changelog(storage, LAYOUT, snapshot(number))
    return storage


def test_a_changelog_is_the_snapshot_it_was():
    storage = storage_with(4)
    assert read_changelog(storage, LAYOUT, 4) == snapshot(4)
    assert storage.read(f"{LAYOUT.changelog_directory}/LATEST") == b"4"
    assert not storage.exists(f"{LAYOUT.changelog_directory}/EARLIEST")


@pytest.mark.parametrize("hint", [None, b"", b"-1", b"2", b"9", b"x", b"3", b"9" * 30, b"\xff"])
def test_no_answer_depends_on_a_hint(hint):
    storage = storage_with(2, 3, 4)
    for name in ("LATEST", "EARLIEST"):
        path = f"{LAYOUT.changelog_directory}/{name}"
        storage.delete(path) if hint is None else storage.overwrite(path, hint)
    files = numbered_changelogs(storage, LAYOUT)
    assert (files.ids(), files.latest_id()) == ([2, 3, 4], 4)


def test_without_changelogs_there_is_none_to_read():
    storage = MemoryStorage("empty")
    assert changelog_ids(storage, LAYOUT) == []
    with pytest.raises(NotFoundError, match="no changelog 1; it has none"):
        read_changelog(storage, LAYOUT, 1)


def test_a_changelog_that_is_not_there_names_those_that_are():
    with pytest.raises(NotFoundError, match="changelogs 2 to 4 exist"):
        read_changelog(storage_with(2, 4), LAYOUT, 9)


def test_a_changelog_under_the_wrong_number_is_corrupt():
    storage = storage_with()
    storage.overwrite(LAYOUT.changelog(2), json.dumps({**MEMBERS, "id": 1}).encode())
    with pytest.raises(CorruptTableError, match="contains snapshot 1 instead of snapshot 2"):
        read_changelog(storage, LAYOUT, 2)
