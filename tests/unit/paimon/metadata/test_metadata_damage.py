"""Any bytes of a JSON metadata file give a printable value, or our error."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.environment import SYSTEM
from lakeformat.errors import CorruptTableError, UnsupportedError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.changelog_directory import read_changelog
from lakeformat.paimon.metadata.consumer import read_consumer
from lakeformat.paimon.metadata.fence import read_fence
from lakeformat.paimon.metadata.schema_file import read_schema
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot
from lakeformat.paimon.metadata.statistics import read_statistics
from lakeformat.paimon.metadata.tag import read_tag
from lakeformat.paimon.schema import new_schema
from lakeformat.paimon.system_tables import Source, SystemScan, find_system_table
from lakeformat.storage import MemoryStorage
from tests.damage import damaged, fuzzed, within_bounds

LAYOUT = TableLayout("t")
PATIENT = replace(SYSTEM, sleep_seconds=lambda seconds: None)
SCHEMA = new_schema([("id", "INT"), ("at", "ROW<x INT, y ARRAY<STRING>>")], time_millis=1)
SNAPSHOT = {
    "version": 3,
    "id": 1,
    "schemaId": 0,
    "baseManifestList": "base",
    "deltaManifestList": "delta",
    "commitUser": "me",
    "commitIdentifier": 3,
    "commitKind": "APPEND",
    "timeMillis": 5,
    "statistics": "stat",
    "properties": {"a": "b"},
}
TAG = {**SNAPSHOT, "tagCreateTime": [2026, 11, 20, 9, 24, 53, 9], "tagTimeRetained": 86400.0}
STATISTICS = {"snapshotId": 1, "schemaId": 0, "colStats": {"id": {"colId": 0, "min": "1"}}}

Read = Callable[[MemoryStorage], object]
FILES: dict[str, tuple[str, bytes, Read, str]] = {
    "schema": (
        LAYOUT.schema(0),
        SCHEMA.to_json(),
        lambda storage: read_schema(storage, LAYOUT, 0),
        "schemas",
    ),
    "snapshot": (
        LAYOUT.snapshot(1),
        json.dumps(SNAPSHOT).encode(),
        lambda storage: read_snapshot(storage, LAYOUT, 1),
        "snapshots",
    ),
    "changelog": (
        LAYOUT.changelog(1),
        json.dumps(SNAPSHOT).encode(),
        lambda storage: read_changelog(storage, LAYOUT, 1),
        "options",
    ),
    "tag": (
        LAYOUT.tag("v1"),
        json.dumps(TAG).encode(),
        lambda storage: read_tag(storage, LAYOUT, "v1"),
        "tags",
    ),
    "consumer": (
        f"{LAYOUT.consumer_directory}/consumer-me",
        b'{"nextSnapshot": 3}',
        lambda storage: read_consumer(storage, LAYOUT, "me", PATIENT),
        "consumers",
    ),
    "fence": (
        LAYOUT.fence("rollback"),
        b'{"removed": ["a"], "rollback": {"target": 1}}',
        lambda storage: read_fence(storage, LAYOUT, "rollback"),
        "snapshots",
    ),
    "statistics": (
        LAYOUT.statistics("stat"),
        json.dumps(STATISTICS).encode(),
        lambda storage: read_statistics(storage, LAYOUT, "stat"),
        "statistics",
    ),
}

PIECES = (
    b"",
    b"null",
    b"-1",
    b"1e999",
    b"[]",
    b"{}",
    b'"\\ud800"',
    b'"x"',
    b"true",
    b"9" * 25,
    b"[" * 40,
)


def error_of(read: Read, storage: MemoryStorage) -> str | None:
    """Return the message of our error; None if there is a value."""
    try:
        read(storage)
    except (CorruptTableError, UnsupportedError) as error:  # an unknown type may be a newer one
        return str(error)
    return None


@pytest.mark.parametrize("kind", FILES)
@given(data=st.data())
@fuzzed(100)
def test_damaged_bytes_give_our_error_or_a_value(kind, data):
    path, content, read, system_table = FILES[kind]
    storage = MemoryStorage("damaged")
    storage.overwrite(LAYOUT.snapshot(1), FILES["snapshot"][1])
    storage.overwrite(path, data.draw(damaged(content, PIECES)))
    with within_bounds():
        complaint = error_of(read, storage)
    if complaint is not None:
        assert path in complaint
        return
    handle = TableHandle(storage, LAYOUT, SCHEMA, PATIENT)
    try:
        SystemScan(find_system_table(system_table), Source(handle)).to_arrow()
    except CorruptTableError:
        assert kind in ("snapshot", "tag")  # a number, a file name that lead nowhere


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[]", b"[" * 100_000, b'{"id": 0'])
def test_what_is_no_object_is_named_with_its_file(kind, content):
    path, _, read, _ = FILES[kind]
    storage = MemoryStorage("damaged")
    storage.overwrite(path, content)
    with pytest.raises(CorruptTableError, match=path):
        read(storage)


@pytest.mark.parametrize("kind", FILES)
def test_every_member_that_is_missing_or_of_another_type_is_our_error_or_optional(kind):
    path, content, read, _ = FILES[kind]
    storage = MemoryStorage("damaged")
    members = json.loads(content)
    for name in members:
        for value in (None, "text", -5, 1.5, [], {}, [None], {"a": None}, 1 << 80):
            storage.overwrite(path, json.dumps({**members, name: value}).encode())
            complaint = error_of(read, storage)
            assert complaint is None or path in complaint
