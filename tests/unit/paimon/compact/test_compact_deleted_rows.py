"""Compaction of append tables with rows deleted by marks: no deleted row reappears."""

from __future__ import annotations

import itertools

import pytest

import lakeformat as lake
from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.files.vector_record import VectorForm
from lakeformat.paimon.index.deletion_vector_file import encode_deletion_vectors
from lakeformat.paimon.metadata.index_manifest import DELETION_VECTORS, IndexManifestEntry
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.read.deletions import find_vectors
from lakeformat.paimon.read.plan import plan_files
from tests.keyed_rows import KeyedRows, listed

_names = itertools.count()
OPTIONS = {"deletion-vectors.enabled": "true"}
QUEUE = {**OPTIONS, "bucket": "1", "bucket-key": "k"}
PLACES = pytest.mark.parametrize("options", [OPTIONS, QUEUE], ids=["unaware", "queue"])


def live(table: lake.Table) -> list[ManifestEntry]:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    return plan_files(table._handle, snapshot)


def vectors(table: lake.Table) -> list[IndexManifestEntry]:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    return [each for found in find_vectors(table._handle, snapshot).values() for each in found]


def delete_rows(rows: KeyedRows, deleted: dict[int, list[int]]) -> None:
    """Mark positions of files, which are numbered as they were written, in one index file."""
    storage, layout = rows.place
    files = sorted(live(rows.table), key=lambda entry: entry.file.file_name)
    marked = {
        files[at].file.file_name: DeletionVector.of(positions) for at, positions in deleted.items()
    }
    content, ranges = encode_deletion_vectors(marked, VectorForm.BITMAP32)
    name = f"index-{next(_names)}"
    with storage.open_output(layout.index_file(name)) as stream:
        stream.write(content)
    entry = IndexManifestEntry(
        partition=files[0].partition,
        bucket=0,
        index_type=DELETION_VECTORS,
        file_name=name,
        file_size=len(content),
        row_count=len(ranges),
        ranges=ranges,
    )
    message = lake.CommitMessage(partition=files[0].partition, bucket=0, new_index_files=(entry,))
    rows.table.commit([message])


def three_files(options: dict[str, str]) -> KeyedRows:
    rows = KeyedRows(options, keyed=False)
    for number in range(3):
        rows.commit(*(("+I", number * 3 + at, "x") for at in range(3)))
    return rows


@PLACES
def test_deleted_rows_are_left_out_and_their_marks_go_with_them(options):
    rows = three_files(options)
    delete_rows(rows, {0: [1], 1: [0, 2]})
    before = sorted(listed(rows.table.scan()))
    assert len(before) == 6
    [unit, *_] = rows.table.plan_compaction().units
    assert unit.deleted_rows == 3
    report = rows.table.compact()
    assert sorted(listed(rows.table.scan())) == before
    assert sum(entry.file.row_count for entry in live(rows.table)) == 6
    assert report.rows_in == report.rows_out
    assert vectors(rows.table) == []
    assert rows.table.plan_compaction().units == ()


@PLACES
def test_a_row_that_is_deleted_meanwhile_does_not_come_back(options):
    rows = three_files(options)

    def rival(done: object) -> None:
        if not heard:
            delete_rows(rows, {0: [1]})
        heard.append(done)

    heard: list[object] = []
    report = rows.table.compact(executor="serial", on_progress=rival)
    assert [each.outcome for each in report.buckets][:1] == ["refused"]
    assert "deleted rows would reappear" in report.buckets[0].reason
    assert rows.table.scan().count() == 8
    assert vectors(rows.table) == []


@PLACES
def test_marks_that_are_lost_are_named_with_who_refers_to_them(options):
    rows = three_files(options)
    delete_rows(rows, {0: [0]})
    storage, layout = rows.place
    [entry] = vectors(rows.table)
    storage.delete(layout.index_file(entry.file_name))
    with pytest.raises(lake.CorruptTableError, match=rf"{entry.file_name}.*named by .*/manifest/"):
        rows.table.compact()
