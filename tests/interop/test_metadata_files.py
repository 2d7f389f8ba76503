"""The metadata files are what the format's readers expect, member by member."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.interop.peer import Peer

ROWS = pa.table({"id": [1], "at": [{"x": 1, "y": 2}]})


@pytest.fixture
def table(catalog: lake.Catalog) -> lake.Table:
    return catalog.create_table("shop.orders", [("id", "BIGINT"), ("at", "ROW<x INT, y INT>")])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "warehouse" / "shop.db" / "orders"


def read_json(path: Path) -> dict[str, Any]:
    members = json.loads(path.read_bytes())
    assert isinstance(members, dict)
    return members


def hints(root: Path) -> dict[str, bytes]:
    return {name: (root / "snapshot" / name).read_bytes() for name in ("EARLIEST", "LATEST")}


def test_a_table_without_a_comment_has_no_such_member(table: lake.Table, root: Path):
    members = read_json(root / "schema" / "schema-0")
    assert members.keys() == {
        "version",
        "id",
        "fields",
        "highestFieldId",
        "partitionKeys",
        "primaryKeys",
        "options",
        "timeMillis",
    }


def test_nested_fields_are_numbered_after_the_columns(table: lake.Table, root: Path):
    members = read_json(root / "schema" / "schema-0")
    nested = members["fields"][1]["type"]["fields"]
    assert [field["id"] for field in members["fields"]] == [0, 1]
    assert [field["id"] for field in nested] == [2, 3]
    assert members["highestFieldId"] == 3


def test_a_snapshot_has_no_member_that_is_null(table: lake.Table, root: Path):
    table.write(ROWS)
    members = read_json(root / "snapshot" / "snapshot-1")
    assert None not in members.values()
    assert members.keys() >= {"baseManifestListSize", "deltaManifestListSize", "uuid", "nextRowId"}


def test_the_sizes_in_a_snapshot_are_those_of_its_lists(table: lake.Table, root: Path):
    table.write(ROWS)
    members = read_json(root / "snapshot" / "snapshot-1")
    for name in ("baseManifestList", "deltaManifestList"):
        assert members[f"{name}Size"] == (root / "manifest" / members[name]).stat().st_size


def test_hints_are_bare_numbers_of_the_first_and_last_snapshot(table: lake.Table, root: Path):
    table.write(ROWS)
    table.write(ROWS)
    assert hints(root) == {"EARLIEST": b"1", "LATEST": b"2"}


def test_hints_stay_right_when_pypaimon_commits_in_between(
    table: lake.Table, root: Path, peer: Peer
):
    table.write(ROWS)
    peer.write("shop.orders", ROWS.cast(table.schema.arrow_schema()))
    assert hints(root) == {"EARLIEST": b"1", "LATEST": b"2"}
    table.write(ROWS)
    assert hints(root) == {"EARLIEST": b"1", "LATEST": b"3"}


def test_a_table_pypaimon_began_gets_its_earliest_hint_from_us(
    catalog: lake.Catalog, root: Path, peer: Peer
):
    peer.create_table("shop.orders", ROWS.schema)
    peer.write("shop.orders", ROWS)
    assert not (root / "snapshot" / "EARLIEST").exists()
    catalog.table("shop.orders").write(ROWS)
    assert hints(root) == {"EARLIEST": b"1", "LATEST": b"2"}


def test_a_comment_pypaimon_wrote_as_null_is_no_comment(catalog: lake.Catalog, peer: Peer):
    peer.create_table("shop.orders", ROWS.schema)
    assert catalog.table("shop.orders").schema.comment is None


def test_a_commit_leaves_only_the_files_of_the_table(table: lake.Table, root: Path):
    table.write(ROWS)
    counts = {part.name: len(list(part.iterdir())) for part in root.iterdir()}
    assert counts == {"bucket-0": 1, "manifest": 3, "schema": 1, "snapshot": 3}
