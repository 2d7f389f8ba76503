"""Any bytes of a metadata file, a manifest list or a manifest give a value, or our error."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.errors import CorruptTableError, InvalidRequestError, UnsupportedError
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.metadata.manifest import live_entries, read_entries
from lakeformat.iceberg.metadata.manifest_list import read_manifest_list
from lakeformat.iceberg.metadata.metadata_file import read_metadata_file
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.storage import MemoryStorage
from lakeformat.storage.location import location_of
from tests.damage import damaged, fuzzed, within_bounds
from tests.golden.iceberg import iceberg_table

DAMAGE = (CorruptTableError, InvalidRequestError, UnsupportedError)
"""A changed path may lie outside of the table, which is an ``InvalidRequestError``."""
TABLES = ("v3_deletion_vectors", "bucket_truncate", "v1_append")
"""Deletes and row ids; partitions of every kind; no sequence numbers."""
JSON_PIECES = (b"null", b"-1", b"1e999", b"[]", b"{}", b'"\\ud800"', b"true", b"9" * 25, b"[" * 40)
AVRO_PIECES = (b'"null"', b'"long"', b'"string"', b'{"type":"array","items":"null"}', b'["null"]')


class InMemory:
    """A golden table in memory, one of whose files may be damaged."""

    def __init__(self, name: str) -> None:
        table = iceberg_table(name)
        self.location = table.location
        self.metadata_file = table.expected["current_metadata"]
        self.files = {
            path.relative_to(table.location).as_posix(): path.read_bytes()
            for path in Path(table.location, "metadata").iterdir()
        }

    def read(self, changed: str | None = None, content: bytes = b"") -> int:
        """Read all metadata and return the number of live files of all snapshots."""
        storage = MemoryStorage("damaged")
        for name, whole in self.files.items():
            storage.overwrite(f"t/{name}", content if name == changed else whole)
        metadata = read_metadata_file(storage, f"t/{self.metadata_file}")
        places = FilePlaces(storage, "t", location_of(self.location))
        return sum(_live_files(places, metadata, each) for each in metadata.snapshots[:3])

    def kind(self, name: str) -> str:
        if name == self.metadata_file:
            return "metadata"
        return "list" if "/snap-" in name else "manifest"


def _live_files(places: FilePlaces, metadata: TableMetadata, snapshot: Snapshot) -> int:
    entries = read_entries(places, metadata, read_manifest_list(places, snapshot)).values()
    for each in entries:
        each.validate(full=True)
    return sum(live_entries(each).num_rows for each in entries)


WHOLE = {name: InMemory(name) for name in TABLES}


@pytest.mark.parametrize("name", TABLES)
def test_whole_files_are_read(name):
    assert WHOLE[name].read() > 0


@pytest.mark.parametrize("kind", ["metadata", "list", "manifest"])
@pytest.mark.parametrize("name", TABLES)
@given(data=st.data())
@fuzzed(40)
def test_damaged_files_are_our_error_or_a_value_within_bounds(name, kind, data):
    whole = WHOLE[name]
    read = [each for each in sorted(whole.files) if each.endswith((".avro", whole.metadata_file))]
    changed = data.draw(st.sampled_from([each for each in read if whole.kind(each) == kind]))
    pieces = JSON_PIECES if kind == "metadata" else AVRO_PIECES
    content = data.draw(damaged(whole.files[changed], pieces))
    with within_bounds(), contextlib.suppress(*DAMAGE):
        whole.read(changed, content)
