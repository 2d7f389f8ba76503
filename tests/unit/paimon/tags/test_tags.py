"""Tags: snapshots by name, as Java, pypaimon and this library write them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest

from lakeformat.errors import CorruptTableError, InvalidRequestError, NotFoundError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.tag import (
    Tag,
    create_tag,
    delete_tag,
    read_tag,
    read_tags,
    replace_tag,
    tag_names,
)
from lakeformat.storage import MemoryStorage

LAYOUT = TableLayout("t")
MEMBERS = {
    "id": 1,
    "schemaId": 0,
    "baseManifestList": "base",
    "deltaManifestList": "delta",
    "commitUser": "me",
    "commitIdentifier": 3,
    "commitKind": "APPEND",
    "timeMillis": 5,
}
SNAPSHOT = Snapshot.from_json(MEMBERS)
MOMENT = datetime(2026, 11, 20, 9, 24, 53, 934675)


def storage_with(**members) -> MemoryStorage:
    storage = MemoryStorage("tags")
    storage.overwrite(LAYOUT.tag("v1"), json.dumps({**MEMBERS, **members}).encode())
    return storage


def tag_with(**members) -> Tag:
    return read_tag(storage_with(**members), LAYOUT, "v1")


@pytest.mark.parametrize(
    ("created", "moment"),
    [
        ([2026, 11, 20, 9, 24, 53, 934675454], MOMENT),
        ([2026, 11, 20, 9, 24, 53], MOMENT.replace(microsecond=0)),
        ([2026, 11, 20, 9, 24], MOMENT.replace(microsecond=0, second=0)),
        ("2026-11-20T09:24:53.934675454", MOMENT),
        ("2026-11-20T09:24", MOMENT.replace(microsecond=0, second=0)),
        (None, None),
    ],
)
def test_a_creation_time_is_read_however_it_is_written(created, moment):
    assert tag_with(tagCreateTime=created).create_time == moment


@pytest.mark.parametrize(
    ("retained", "duration"),
    [
        (86400.000000000, timedelta(days=1)),
        (90, timedelta(seconds=90)),
        (0.5, timedelta(milliseconds=500)),
        ("PT24H", timedelta(days=1)),
        ("P1DT1H1M1.5S", timedelta(days=1, hours=1, minutes=1, seconds=1.5)),
        (None, None),
    ],
)
def test_a_retention_is_read_however_it_is_written(retained, duration):
    assert tag_with(tagTimeRetained=retained).time_retained == duration


@pytest.mark.parametrize(
    ("moment", "parts"),
    [
        (MOMENT, [2026, 11, 20, 9, 24, 53, 934675000]),
        (MOMENT.replace(microsecond=0), [2026, 11, 20, 9, 24, 53]),
        (MOMENT.replace(microsecond=0, second=0), [2026, 11, 20, 9, 24]),
        (MOMENT.replace(second=0), [2026, 11, 20, 9, 24, 0, 934675000]),
    ],
)
def test_a_creation_time_is_written_as_java_writes_it(moment, parts):
    assert json.loads(Tag("v1", SNAPSHOT, moment).to_json())["tagCreateTime"] == parts


def test_a_tag_without_retention_is_its_snapshot_and_nothing_else():
    assert json.loads(Tag("v1", SNAPSHOT).to_json()) == {**MEMBERS, "version": 0} | {
        "totalRecordCount": 0,
        "deltaRecordCount": 0,
    }


def test_a_tag_leads_back_to_itself():
    storage = MemoryStorage("tags")
    tag = Tag("v1", SNAPSHOT, MOMENT, timedelta(hours=3, microseconds=1))
    assert create_tag(storage, LAYOUT, tag)
    assert read_tag(storage, LAYOUT, "v1") == tag


def test_a_taken_name_keeps_its_meaning_until_it_is_replaced():
    storage = storage_with()
    later = Tag("v1", Snapshot.from_json({**MEMBERS, "id": 2}))
    assert not create_tag(storage, LAYOUT, later)
    assert read_tag(storage, LAYOUT, "v1").snapshot.id == 1
    replace_tag(storage, LAYOUT, later)
    assert read_tag(storage, LAYOUT, "v1").snapshot.id == 2
    delete_tag(storage, LAYOUT, "v1")
    assert tag_names(storage, LAYOUT) == []


def test_strangers_in_the_tag_directory_are_no_tags():
    storage = storage_with()
    for name in (
        "tag-v23f1b1f6e-6a0d-4d3c-9f5f-0d6f8e9c1a2b.tmp",
        ".tag-v3.x.tmp",
        "tag-",
        "tag-success-file/v1_SUCCESS",
    ):
        storage.overwrite(f"{LAYOUT.tag_directory}/{name}", b"")
    assert [tag.name for tag in read_tags(storage, LAYOUT)] == ["v1"]


def test_a_tag_that_is_not_there_names_those_that_are():
    with pytest.raises(NotFoundError, match="no tag 'v7'; its tags are 'v1'"):
        read_tag(storage_with(), LAYOUT, "v7")
    with pytest.raises(NotFoundError, match="the table has no tag"):
        read_tag(MemoryStorage("empty"), LAYOUT, "v7")


@pytest.mark.parametrize("name", ["", "  ", "a/b", "../v1"])
def test_a_name_that_is_no_part_of_a_file_name_is_refused(name):
    with pytest.raises(InvalidRequestError, match="not allowed"):
        read_tag(storage_with(), LAYOUT, name)


@pytest.mark.parametrize(
    "damage",
    [
        {"tagCreateTime": [2026, 13, 1, 0, 0]},
        {"tagCreateTime": [2026]},
        {"tagCreateTime": [10**20, 1, 1, 0, 0]},
        {"tagCreateTime": "soon"},
        {"tagTimeRetained": "a day"},
        {"tagTimeRetained": 1e300},
        {"tagTimeRetained": True},
        {"commitKind": None},
        {"id": 1 << 70},
        {"commitUser": "\ud800"},
    ],
)
def test_a_damaged_tag_is_named_in_the_error(damage):
    with pytest.raises(CorruptTableError, match=r"tag/tag-v1"):
        tag_with(**damage)
