"""Sketches of distinct values equal those that Java wrote, byte for byte."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
from pyiceberg.table import StaticTable

import lakeformat as lake
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.metadata.statistics import StatisticsFile
from tests.golden.iceberg import iceberg_table
from tests.golden.relocated import relocate


def blobs_of(table: lake.Table, file: StatisticsFile) -> list[bytes]:
    """The content of the blobs that the footer of a Puffin file describes."""
    storage, path = table._handle.load().places.place(file.statistics_path)
    content = storage.read(path)
    described = json.loads(content[-file.file_footer_size_in_bytes + 4 : -12])
    found = []
    for blob in described["blobs"]:
        stored = content[blob["offset"] : blob["offset"] + blob["length"]]
        if blob.get("compression-codec") == "zstd":
            size = 16 + 8 * int(blob["properties"]["ndv"])
            stored = pa.Codec("zstd").decompress(stored, size).to_pybytes()
        found.append(stored)
    return found


def test_the_sketches_are_those_of_java(tmp_path):
    golden = iceberg_table("puffin_statistics")
    target = tmp_path / "t"
    relocate(golden.as_written, target, golden.expected["original_root"])
    table = lake.open_table(str(target))
    first = golden.expected["snapshots"][0]["snapshot_id"]
    table.rollback(snapshot=first)
    [java] = [e for e in table._handle.load().metadata.statistics if e.snapshot_id == first]
    assert table.analyze().statistics == {"id": 100, "v": 7, "p": 2}
    commit_metadata(table._handle, lambda loaded: replace(loaded.metadata, statistics=()))

    assert table.analyze().statistics == {"id": 100, "v": 7, "p": 2}

    [ours] = table._handle.load().metadata.statistics
    assert blobs_of(table, ours) == blobs_of(table, java)
    assert [*ours.blob_metadata] == [*java.blob_metadata]
    newest = table.system_table("metadata_log_entries").scan().to_arrow()["file"].to_pylist()[-1]
    [read] = StaticTable.from_metadata(newest).metadata.statistics
    assert [each.properties["ndv"] for each in read.blob_metadata] == ["100", "7", "2"]
