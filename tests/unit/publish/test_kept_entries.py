"""Entries of written manifests that are kept are those that a reader finds in the files."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.iceberg.metadata.manifest import read_entries
from lakeformat.iceberg.write.kept_entries import KeptEntries
from lakeformat.iceberg.write.manifest_files import ManifestFiles
from lakeformat.storage import MemoryStorage
from tests.unit.publish.published import content, published_table, rows_of, seen, unobserved


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("from_scratch", [True, False], ids=["scratch", "behind"])
def test_kept_entries_are_those_of_the_files(request, monkeypatch, version, from_scratch):
    options = {"deletion-vectors.enabled": "true", "metadata.iceberg.format-version": version}
    table = published_table(
        MemoryStorage(request.node.name),
        [("id", "BIGINT"), ("day", "INT"), ("at", "DOUBLE")],
        partition_by=["day"],
        options=options,
    )
    theirs = unobserved(table)
    first = table if not from_scratch else theirs
    for number in range(4):
        writer = first if not number else theirs
        days = pa.array([number % 3, 1], pa.int32())
        writer.write(rows_of(id=[number, number + 100], day=days, at=[-0.0, float("nan")]))
    theirs.delete("id in (0, 101)")
    theirs.write(rows_of(id=[9], day=pa.array([1], pa.int32()), at=[1.0]), overwrite="partitions")
    theirs.delete("id = 2")
    theirs.compact(strategy="full")
    kept = []

    def compared(files: ManifestFiles, metadata, manifest, statistics_of=None) -> Any:
        ((_, read),) = read_entries(files._places, metadata, manifest).items()
        if (found := files._kept.of(manifest)) is not None:
            assert found.combine_chunks().equals(read.combine_chunks())
            kept.append(len(found))
        return read

    monkeypatch.setattr(ManifestFiles, "entries", compared)
    assert lake.publish_table(table).rebuilt is from_scratch
    assert sum(kept) > 5
    assert seen(table) == content(table.scan().to_arrow())


def test_tables_beyond_the_limit_and_of_earlier_snapshots_are_forgotten():
    def listed(uri: str) -> pa.Table:
        return pa.table({"manifest_path": [uri]})

    table = pa.table({"file_path": pa.array(["x" * 100])})
    kept = KeptEntries(3 * table.nbytes)
    kept.keep("large", pa.concat_tables([table] * 4))
    assert not kept
    for number in range(4):
        kept.keep(f"m{number}", table.slice(0, 1))
    assert kept.of(listed("m0")) is None
    kept.keep_only(["m0", "m2"])
    assert [*kept._tables] == ["m2"]
