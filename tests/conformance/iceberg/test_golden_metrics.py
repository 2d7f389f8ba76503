"""The rows of Java's data files, written again: the statistics are those that Java wrote."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeformat.environment import SYSTEM
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.loaded_metadata import LoadedMetadata, load_metadata
from lakeformat.iceberg.metadata.manifest import DATA, live_entries, read_entries
from lakeformat.iceberg.metadata.manifest_list import read_manifest_list
from lakeformat.iceberg.metadata.metadata_file import find_metadata_file
from lakeformat.iceberg.write.table_writer import TableWriter
from lakeformat.storage import NO_ROOTS, MemoryStorage, open_storage
from lakeformat.storage.location import location_of
from tests.golden.iceberg import iceberg_table

TABLES = (
    "all_types",
    "bucket_truncate",
    "hour_action",
    "identity_partitions",
    "java_types",
    "metrics_modes",
    "time_transforms",
)
ZEROS = {bytes(3) + b"\x80": bytes(4), bytes(7) + b"\x80": bytes(8)}
COMPARED = (
    "status",
    "spec_id",
    "partition",
    "content",
    "file_format",
    "record_count",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
    "split_offsets",
    "sort_order_id",
)


def written_again(loaded: LoadedMetadata, address: str) -> list[dict[str, Any]]:
    """The entries of the rows of one file in a table of the same metadata, in memory."""
    storage, path = loaded.places.place(address)
    memory = MemoryStorage()
    metadata = replace(loaded.metadata, location=memory.uri("t"))
    places = FilePlaces(memory, "t", location_of(metadata.location))
    writer = TableWriter(LoadedMetadata(places, metadata, "t/metadata"), SYSTEM)
    with storage.open_input(path) as stream:
        for batch in pq.read_table(stream).to_batches():
            writer.write(batch)
    entries: list[dict[str, Any]] = writer.finish().to_pylist()
    return entries


@pytest.mark.parametrize("name", TABLES)
def test_statistics_partitions_and_directories_are_those_of_java(name):
    storage, root = open_storage(iceberg_table(name).location)
    loaded = load_metadata(storage, root, find_metadata_file(storage, root), NO_ROOTS)
    listed = read_manifest_list(loaded.places, loaded.metadata.current_snapshot)
    found = read_entries(loaded.places, loaded.metadata, listed).values()
    for java in live_entries(pa.concat_tables(found)).to_pylist():
        assert java["content"] == DATA
        (ours,) = written_again(loaded, java["file_path"])
        java = with_both_zeros(java)
        assert {key: in_order(ours[key]) for key in COMPARED} == {
            key: in_order(java[key]) for key in COMPARED
        }
        assert [key for key, _ in ours["column_sizes"]] == sorted(
            key for key, _ in java["column_sizes"]
        )
        assert directory_of(ours["file_path"]) == directory_of(java["file_path"])


def in_order(value: Any) -> Any:
    return sorted(value) if isinstance(value, list) else value


def directory_of(address: str) -> str:
    return address.partition("/data/")[2].rpartition("/")[0]


def with_both_zeros(java: dict[str, Any]) -> dict[str, Any]:
    """Java writes -0.0 as the upper bound of a file of zeros, which hides 0.0 from some readers."""
    lower = dict(java["lower_bounds"])
    upper = [
        (key, ZEROS.get(each, each) if lower.get(key) == each else each)
        for key, each in java["upper_bounds"]
    ]
    return {**java, "upper_bounds": sorted(upper)}
