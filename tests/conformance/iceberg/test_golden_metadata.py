"""The metadata of every golden Iceberg table is read as Java reads it, at each snapshot."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from lakeformat.iceberg.file_places import FilePlaces, places_of
from lakeformat.iceberg.metadata.manifest import live_entries, read_entries
from lakeformat.iceberg.metadata.manifest_list import read_manifest_list
from lakeformat.iceberg.metadata.metadata_file import find_metadata_file, read_metadata_file
from lakeformat.iceberg.metadata.metadata_json import metadata_to_json
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata, metadata_from_json
from lakeformat.storage import NO_ROOTS, open_storage
from tests.golden.iceberg import ICEBERG_TABLES, IcebergTable, iceberg_table

APP = "spark.app.id"
pytestmark = pytest.mark.parametrize("name", ICEBERG_TABLES)


@cache
def opened(name: str) -> tuple[IcebergTable, TableMetadata, FilePlaces]:
    table = iceberg_table(name)
    storage, root = open_storage(table.location)
    metadata = read_metadata_file(storage, find_metadata_file(storage, root))
    return table, metadata, places_of(storage, root, metadata.location, NO_ROOTS)


def states(name: str) -> list[tuple[Snapshot, dict[str, Any]]]:
    """Each snapshot with what is expected of it."""
    table, metadata, _ = opened(name)
    return list(zip(metadata.snapshots, table.expected["snapshots"], strict=True))


def test_the_current_metadata_file_is_found(name):
    table, metadata, places = opened(name)
    found = find_metadata_file(places.storage, places.root)
    assert found == f"{places.root}/{table.expected['current_metadata']}"
    assert metadata.format_version == table.expected["format_version"]
    assert metadata.current_snapshot_id == table.expected["current_snapshot_id"]


def test_every_metadata_file_is_written_again_as_java_wrote_it(name):
    directory = iceberg_table(name).as_written / "metadata"
    found = [path for path in sorted(directory.glob("*.metadata.json")) if "temp" not in path.name]
    assert found
    for path in found:
        members = json.loads(path.read_bytes())
        assert metadata_to_json(metadata_from_json(members)) == members


def test_snapshots_have_their_numbers_and_summaries(name):
    for snapshot, expected in states(name):
        found = {
            "snapshot_id": snapshot.snapshot_id,
            "parent_id": snapshot.parent_id,
            "sequence_number": snapshot.sequence_number,
            "timestamp_ms": snapshot.timestamp_ms,
            "schema_id": snapshot.schema_id,
            "operation": snapshot.operation,
            # Java's process, which the expectations leave out
            "summary": {key: snapshot.summary[key] for key in snapshot.summary if key != APP},
            "first_row_id": snapshot.first_row_id,
            "added_rows": snapshot.added_rows,
        }
        assert found == {key: expected[key] for key in found}


def test_branches_and_tags_have_their_retention(name):
    table, metadata, _ = opened(name)
    found = {
        each.name: {
            "snapshot-id": each.snapshot_id,
            "type": each.type,
            "min-snapshots-to-keep": each.min_snapshots_to_keep,
            "max-snapshot-age-ms": each.max_snapshot_age_ms,
            "max-ref-age-ms": each.max_ref_age_ms,
        }
        for each in metadata.references.values()
    }
    expected = {
        ref: {key: members.get(key) for key in found[ref]}
        for ref, members in table.expected["refs"].items()
    }
    assert found == expected


def test_entries_have_the_numbers_that_they_inherit(name):
    table, metadata, places = opened(name)
    for snapshot, expected in states(name):
        entries = read_entries(places, metadata, read_manifest_list(places, snapshot))
        columns = ("content", "status", "snapshot_id", "sequence_number", "file_sequence_number")
        found = [
            [table.relative(row["file_path"]), *(row[column] for column in columns)]
            for part in entries.values()
            for row in part.to_pylist()
        ]
        if "entries" in expected:
            assert sorted(found) == sorted(expected["entries"])
        else:  # of some states Java listed no entries
            assert len(found) >= int(snapshot.summary["total-data-files"])


def test_live_files_make_up_the_totals_of_the_summary(name):
    _, metadata, places = opened(name)
    for snapshot, _ in states(name):
        entries = read_entries(places, metadata, read_manifest_list(places, snapshot))
        live = [row for part in entries.values() for row in live_entries(part).to_pylist()]
        data = [row for row in live if row["content"] == 0]
        found = [len(data), sum(row["record_count"] for row in data), len(live) - len(data)]
        keys = ("total-data-files", "total-records", "total-delete-files")
        assert found == [int(snapshot.summary[key]) for key in keys]
