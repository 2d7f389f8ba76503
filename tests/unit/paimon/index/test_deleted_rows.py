"""The deletion vector of a data file, and damaged vectors."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lakeformat.errors import CorruptTableError
from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.files.vector_record import VectorForm
from lakeformat.paimon.index.deletion_vector_file import encode_deletion_vectors
from lakeformat.paimon.metadata.index_manifest import DELETION_VECTORS, IndexManifestEntry
from tests.conformance.format_checklist.keyed_table import KeyedTable

KEYS = [10, 20, 30]


class Deleting:
    """A table of three rows in one bucket, and index files that delete some of them."""

    def __init__(self, root: Path, bucket: int = 0, partition: str = "a") -> None:
        self.table = KeyedTable(
            str(root),
            (("p", "STRING NOT NULL"), ("k", "INT NOT NULL")),
            ["k"],
            {"bucket": "3", "deletion-vectors.enabled": "true"},
            ["p"],
        )
        rows = [{"p": partition, "k": key} for key in KEYS]
        self.entries = self.table.write(rows, bucket=bucket, level=5, partition=[partition])
        self.table.commit(self.entries)
        [self.entry] = self.entries
        self.file = self.entry.file.file_name
        os.mkdir(Path(self.table.root, "index"))

    def index(self, name: str, vectors: dict[str, list[int]], **members) -> IndexManifestEntry:
        content, ranges = encode_deletion_vectors(
            {file: DeletionVector.of(rows) for file, rows in vectors.items()}, VectorForm.BITMAP32
        )
        Path(self.table.layout.index_file(name)).write_bytes(content)
        plain = {
            "partition": self.entry.partition,
            "bucket": self.entry.bucket,
            "index_type": DELETION_VECTORS,
            "file_name": name,
            "file_size": len(content),
            "row_count": len(ranges),
            "ranges": ranges,
        }
        return IndexManifestEntry(**{**plain, **members})

    def keys(self, *indexes: IndexManifestEntry) -> list[int]:
        self.table.commit([], indexes=indexes)
        scan = self.table.open().scan()
        found = scan.to_arrow()["k"].to_pylist()
        assert scan.count() == len(found)
        return found


@pytest.fixture
def deleting(tmp_path) -> Deleting:
    return Deleting(tmp_path / "t")


@pytest.mark.parametrize("bucket", [0, 1, 2])
def test_a_vector_deletes_rows_in_its_own_bucket(tmp_path, bucket):
    deleting = Deleting(tmp_path / "t", bucket)
    assert deleting.keys(deleting.index("index-1", {deleting.file: [0, 2]})) == [20]


def test_a_vector_of_another_bucket_or_partition_deletes_nothing(deleting, tmp_path):
    vectors = {deleting.file: [0]}
    elsewhere = Deleting(tmp_path / "other", partition="b").entry.partition
    there = [
        deleting.index("index-1", vectors, bucket=1),
        deleting.index("index-2", vectors, partition=elsewhere),
    ]
    assert deleting.keys(*there) == KEYS


def test_vectors_may_lie_in_several_index_files(deleting):
    others = {"data-gone.parquet": [5]}
    found = [deleting.index("index-1", others), deleting.index("index-2", {deleting.file: [1]})]
    assert deleting.keys(*found) == [10, 30]


def test_a_vector_that_names_no_live_file_means_nothing(deleting):
    """Java leaves the vectors of files that it compacted away, even of rows beyond any file."""
    index = deleting.index("index-1", {"data-gone.parquet": [0, 99], deleting.file: [1]})
    assert deleting.keys(index) == [10, 30]


def test_two_vectors_for_one_file_are_damage(deleting):
    indexes = [
        deleting.index("index-1", {deleting.file: [0]}),
        deleting.index("index-2", {deleting.file: [1]}),
    ]
    told = f"index-manifest-.* two deletion vectors for {deleting.file}"
    with pytest.raises(CorruptTableError, match=told):
        deleting.keys(*indexes)


def test_two_vectors_for_one_file_in_one_index_file_are_damage(deleting):
    index = deleting.index("index-1", {deleting.file: [0]})
    twice = deleting.index(
        "index-1", {deleting.file: [0]}, ranges=(*index.ranges, *index.ranges), row_count=2
    )
    with pytest.raises(CorruptTableError, match=f"two deletion vectors for {deleting.file}"):
        deleting.keys(twice)


def test_an_index_file_has_as_many_vectors_as_its_entry_says(deleting):
    index = deleting.index("index-1", {deleting.file: [0]}, row_count=2)
    with pytest.raises(
        CorruptTableError, match=r"counts 2 deletion vectors in .*index-1, but lists 1"
    ):
        deleting.keys(index)


def test_an_index_file_without_vectors_of_a_live_file_may_name_too_few(deleting):
    """The missing vector may be the one of a live file: no deleted row may be visible again."""
    index = deleting.index("index-1", {"data-gone.parquet": [0]}, row_count=2)
    with pytest.raises(
        CorruptTableError, match=r"counts 2 deletion vectors in .*index-1, but lists 1"
    ):
        deleting.keys(index)


@pytest.mark.parametrize("ask", ["to_arrow", "count"])
@pytest.mark.parametrize("rows", [[3], [0, 1, 2, 50]])
def test_a_vector_deletes_no_row_beyond_its_file(deleting, ask, rows):
    deleting.table.commit([], indexes=[deleting.index("index-1", {deleting.file: rows})])
    told = f"deletes row {rows[-1]} of {deleting.file}, which has 3 rows"
    with pytest.raises(CorruptTableError, match=told):
        getattr(deleting.table.open().scan(), ask)()
