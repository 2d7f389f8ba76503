"""Metadata that another program changed cannot make a publication delete files of the table."""

from __future__ import annotations

import json

import pytest

import lakeformat as lake
from lakeformat.storage import MemoryStorage
from tests.unit.publish.published import (
    ROOT,
    content,
    file_of,
    published_table,
    rows_of,
    seen,
)


def table_with(commits: int) -> lake.Table:
    table = published_table(MemoryStorage("changed"), [("id", "BIGINT")])
    for number in range(commits):
        table.write(rows_of(id=[number]))
    return table


def with_another_file(table: lake.Table, newest: int, members: str, member: str, named: str) -> str:
    """Let the oldest entry of the newest metadata name a file of the table; return its path."""
    storage, path = table._handle.storage, f"{ROOT}/metadata/{file_of(newest)}"
    victim = max(name for name in storage.files(ROOT) if f"/{named}" in name)
    metadata = json.loads(storage.read(path))
    metadata[members][0][member] = storage.uri(victim)
    storage.overwrite(path, json.dumps(metadata).encode())
    return victim


@pytest.mark.parametrize("named", ["snapshot/snapshot-2", "schema/schema-0", "bucket-0/"])
def test_an_expiry_deletes_no_file_of_the_table_as_a_manifest_list(named):
    table = table_with(2)
    victim = with_another_file(table, 2, "snapshots", "manifest-list", named)
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert table._handle.storage.exists(victim)
    assert seen(table) == content(table.scan().to_arrow())


def test_a_commit_deletes_no_file_of_the_table_as_old_metadata():
    table = table_with(12)
    victim = with_another_file(table, 12, "metadata-log", "metadata-file", "schema/schema-0")
    table.write(rows_of(id=[99]))
    assert table._handle.storage.exists(victim)
    assert seen(table) == content(table.scan().to_arrow())
