"""Every state of every golden Iceberg table is read as Java reads it."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from lakeformat.iceberg.file_places import FilePlaces, places_of
from lakeformat.iceberg.metadata.metadata_file import find_metadata_file, read_metadata_file
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.read.scan import Scan
from lakeformat.iceberg.read.time_travel import find_state
from lakeformat.storage import NO_ROOTS, open_storage
from tests.golden.iceberg import ICEBERG_TABLES, IcebergTable, iceberg_table
from tests.golden.iceberg_values import json_rows, sorted_rows

LINEAGE = ["_row_id", "_last_updated_sequence_number"]


@cache
def opened(name: str) -> tuple[IcebergTable, TableMetadata, FilePlaces]:
    table = iceberg_table(name)
    storage, root = open_storage(table.location)
    metadata = read_metadata_file(storage, find_metadata_file(storage, root))
    return table, metadata, places_of(storage, root, metadata.location, NO_ROOTS)


def scan(name: str, columns: list[str] | None = None, **chosen: Any) -> Scan:
    _, metadata, places = opened(name)
    return Scan(find_state(places, metadata, **chosen), columns)


def rows_of(found: Scan) -> list[str]:
    return sorted_rows(json_rows(found.to_arrow(), found.fields))


@pytest.mark.parametrize("name", ICEBERG_TABLES)
def test_each_snapshot_has_its_rows(name):
    for expected in opened(name)[0].expected["snapshots"]:
        found = scan(name, snapshot=expected["snapshot_id"])
        if "rows" not in expected:  # of a table with many files, only their number is known
            assert found.count() == int(expected["summary"]["total-records"])
            continue
        assert rows_of(found) == sorted_rows(expected["rows"])
        assert found.count() == len(expected["rows"])


@pytest.mark.parametrize("name", ICEBERG_TABLES)
def test_branches_and_tags_have_their_rows(name):
    for ref, expected in opened(name)[0].expected["refs"].items():
        if "rows" in expected:
            found = scan(name, **{expected["type"]: ref})
            assert rows_of(found) == sorted_rows(expected["rows"])


@pytest.mark.parametrize("name", ["v2_upgraded_to_v3", "v3_deletion_vectors"])
def test_rows_keep_their_lineage(name):
    for expected in opened(name)[0].expected["snapshots"]:
        if not expected.get("lineage"):
            continue
        state = scan(name, snapshot=expected["snapshot_id"])
        keys = [key for key in expected["lineage"][0] if key not in LINEAGE]
        found = scan(name, [*keys, *LINEAGE], snapshot=state.snapshot_id)
        assert rows_of(found) == sorted_rows(expected["lineage"])
