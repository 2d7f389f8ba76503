"""Index files of other writers are read exactly, and written again they have the same bytes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from lakeformat.files.deletion_vector import DeletionVector, keep_mask
from lakeformat.files.vector_record import VectorForm
from lakeformat.paimon.index.deletion_vector_file import (
    encode_deletion_vectors,
    read_deletion_vectors,
)
from lakeformat.paimon.index.file_index import (
    BloomFilter,
    decode_file_index,
    encode_bitmap_index,
    encode_bloom_filter,
    encode_bsi,
    encode_file_index,
    encode_range_bitmap,
    open_column_index,
    read_file_index,
)
from lakeformat.paimon.index.hash_index import encode_hash_index, read_hash_index
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.index_manifest import (
    IndexManifestEntry,
    read_index_manifest,
    write_index_manifest,
)
from lakeformat.paimon.options import TableOptions
from lakeformat.storage import LocalStorage, MemoryStorage
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import DataType
from tests.golden.tables import HOW_TO_UNSKIP, GoldenTable, golden_tables
from tests.golden.values import assert_same_rows, rows_of
from tests.manifest_entries import entries_in

TABLES = {table.name: table for table in golden_tables()}
needs_golden_tables = pytest.mark.skipif(not TABLES, reason=HOW_TO_UNSKIP)
STORAGE = LocalStorage()
FORMS = {
    "format/deletion_vectors": VectorForm.BITMAP32,
    "format-java/pk_dv_bitmap32": VectorForm.BITMAP32,
    "format-java/pk_dv_bitmap64": VectorForm.BITMAP64,
}
HASHED = ["format/pk_dynamic_bucket", "format-java/pk_dynamic_bucket"]
ROW_HASHES = {1: 1465514398, 2: 1340390384, 3: -771300025}
"""Hashes of the INT keys, from the examples of the format."""


def each(names: list[str]) -> pytest.MarkDecorator:
    """One test per table; without the tables one skipped test that names the missing ones."""
    missing = pytest.param("none", marks=needs_golden_tables)
    return pytest.mark.parametrize("name", names if TABLES else [missing])


with_vectors = each([*FORMS])
with_hashes = each(HASHED)
with_indexes = each([*FORMS, *HASHED])


def latest_manifest(golden: GoldenTable) -> str:
    """The index manifest of the latest snapshot."""
    snapshots = Path(golden.location, "snapshot")
    number = (snapshots / "LATEST").read_text()
    name = json.loads((snapshots / f"snapshot-{number}").read_text())["indexManifest"]
    assert isinstance(name, str)
    return name


def entries_of(golden: GoldenTable) -> list[IndexManifestEntry]:
    return read_index_manifest(STORAGE, TableLayout(golden.location), latest_manifest(golden))


def index_path(golden: GoldenTable, entry: IndexManifestEntry) -> str:
    return f"{golden.location}/index/{entry.file_name}"


def vectors_of(golden: GoldenTable, entry: IndexManifestEntry) -> dict[str, DeletionVector]:
    assert entry.ranges is not None
    return read_deletion_vectors(STORAGE, index_path(golden, entry), entry.ranges)


def data_files(golden: GoldenTable) -> list[Path]:
    return sorted(Path(golden.location).glob("bucket-*/data-*.parquet"))


@with_indexes
def test_an_index_manifest_written_again_has_the_same_entries(name):
    entries = entries_of(TABLES[name])
    storage, layout = MemoryStorage("again"), TableLayout("t")
    write_index_manifest(storage, layout, "i", entries, TableOptions())
    assert read_index_manifest(storage, layout, "i") == entries


@with_indexes
def test_an_index_manifest_knows_the_size_of_its_files(name):
    golden = TABLES[name]
    for entry in entries_of(golden):
        assert Path(index_path(golden, entry)).stat().st_size == entry.file_size


@with_vectors
def test_the_rows_that_are_not_deleted_are_the_expected_ones(name):
    golden = TABLES[name]
    vectors = {
        data_file: vector
        for entry in entries_of(golden)
        for data_file, vector in vectors_of(golden, entry).items()
    }
    left = pa.concat_tables(live_rows(golden, vectors))
    assert_same_rows(rows_of(left), golden.rows())


def live_rows(golden: GoldenTable, vectors: dict[str, DeletionVector]) -> Iterator[pa.Table]:
    """Each data file without the rows its vector deletes."""
    for path in data_files(golden):
        rows = pq.read_table(path, columns=golden.column_names, partitioning=None)
        vector = vectors.get(path.name, DeletionVector.of([]))
        # Level 0 of a primary-key table is not read while it has deletion vectors.
        if path.name in vectors or not golden.expected["primary_keys"] or is_compacted(path):
            yield rows.filter(pa.array(keep_mask(vector, 0, len(rows))))


def is_compacted(path: Path) -> bool:
    """True if a data file is above level 0 in a manifest of its table."""
    layout = TableLayout(str(path.parent.parent))
    manifests = Path(layout.root, "manifest").glob("manifest-*-[0-9]*")
    names = [found.name for found in manifests if not found.name.startswith("manifest-list-")]
    entries = [entry for name in names for entry in entries_in(STORAGE, layout, name)]
    return any(entry.file.level > 0 for entry in entries if entry.file.file_name == path.name)


@needs_golden_tables
def test_the_deleted_positions_are_the_expected_ones():
    golden = TABLES["format/deletion_vectors"]
    [entry] = entries_of(golden)
    [vector] = vectors_of(golden, entry).values()
    assert vector.to_numpy().tolist() == golden.expected["deleted_positions"]


@with_vectors
def test_deletion_vectors_written_again_have_the_same_bytes_and_ranges(name):
    golden = TABLES[name]
    for entry in entries_of(golden):
        content, ranges = encode_deletion_vectors(vectors_of(golden, entry), FORMS[name])
        assert content == Path(index_path(golden, entry)).read_bytes()
        assert ranges == entry.ranges


@with_hashes
def test_each_bucket_has_as_many_hashes_as_keys(name):
    golden = TABLES[name]
    for entry in entries_of(golden):
        hashes = read_hash_index(STORAGE, index_path(golden, entry), count=entry.row_count)
        files = Path(golden.location, f"bucket-{entry.bucket}").glob("*.parquet")
        keys = {key for path in files for key in pq.read_table(path)["k"].to_pylist()}
        assert len(hashes) == len(keys)


@with_hashes
def test_hashes_written_again_have_the_same_bytes(name):
    golden = TABLES[name]
    for entry in entries_of(golden):
        path = index_path(golden, entry)
        hashes = read_hash_index(STORAGE, path, count=entry.row_count)
        assert encode_hash_index(hashes) == Path(path).read_bytes()


@needs_golden_tables
def test_the_hashes_of_a_java_table_are_those_of_its_keys():
    golden = TABLES["format-java/pk_dynamic_bucket"]
    hashes = [
        read_hash_index(STORAGE, index_path(golden, entry), count=entry.row_count)
        for entry in entries_of(golden)
    ]
    assert set(ROW_HASHES.values()) <= set(np.concatenate(hashes).tolist())


@with_hashes
def test_a_table_is_written_to_by_the_hash_index_others_have_left(name: str, tmp_path: Path):
    place = shutil.copytree(TABLES[name].location, tmp_path / "table")
    table = lake.open_table(str(place))
    rows = table.scan().to_arrow()
    indexes = table.system_table("table_indexes")
    before = indexes.scan(["bucket", "file_name"]).to_arrow()
    table.write(rows)
    assert indexes.scan(["bucket", "file_name"]).to_arrow() == before, "every key is known"
    assert table.scan().count() == rows.num_rows
    counted = sum(indexes.scan(["row_count"]).to_arrow()["row_count"].to_pylist())
    table.write(pa.Table.from_pylist([{**rows.to_pylist()[0], "k": 1_000_003}], rows.schema))
    assert table.scan().count() == rows.num_rows + 1
    assert sum(indexes.scan(["row_count"]).to_arrow()["row_count"].to_pylist()) == counted + 1


def types_of(golden: GoldenTable) -> dict[str, DataType]:
    return {column["name"]: parse_type(column["type"]) for column in golden.expected["columns"]}


def side_car(golden: GoldenTable) -> tuple[pa.Table, bytes]:
    [path] = data_files(golden)
    return pq.read_table(path, partitioning=None), Path(f"{path}.index").read_bytes()


def embedded(golden: GoldenTable) -> tuple[pa.Table, bytes]:
    [path] = data_files(golden)
    [name] = Path(golden.location, "manifest").glob("manifest-[!l]*")
    [entry] = entries_in(STORAGE, TableLayout(golden.location), name.name)
    assert entry.file.embedded_file_index is not None
    return pq.read_table(path, partitioning=None), entry.file.embedded_file_index


CONTAINERS = {
    "format-java/file_index": side_car,
    "format-java/file_index_embedded": embedded,
}
with_containers = each([*CONTAINERS])


@with_containers
def test_a_container_written_again_has_the_same_bytes(name):
    _, content = CONTAINERS[name](TABLES[name])
    assert encode_file_index(decode_file_index(content, name)) == content


@with_containers
def test_every_index_built_again_from_the_rows_has_the_same_bytes(name):
    rows, content = CONTAINERS[name](TABLES[name])
    types = types_of(TABLES[name])
    for column, by_type in decode_file_index(content, name).items():
        built = {kind: build(kind, rows[column], types[column], name) for kind in by_type}
        assert built == by_type


def build(index_type: str, column: pa.ChunkedArray, data_type: DataType, name: str) -> bytes:
    """With the options of the golden tables."""
    match index_type:
        case "bloom-filter":
            return encode_bloom_filter(column, data_type, items=10)
        case "bitmap":
            version = 1 if name.endswith("embedded") else 2
            return encode_bitmap_index(column, data_type, version=version)
        case "bsi":
            return encode_bsi(column, data_type)
        case "range-bitmap":
            return encode_range_bitmap(column, data_type)
    raise AssertionError(index_type)


@with_containers
def test_every_index_finds_the_rows_of_every_value(name):
    rows, content = CONTAINERS[name](TABLES[name])
    types = types_of(TABLES[name])
    for column, by_type in decode_file_index(content, name).items():
        values = rows[column].to_pylist()
        for kind, body in by_type.items():
            index = open_column_index(kind, types[column], body, name)
            for value in {value for value in values if value is not None}:
                found = [row for row, other in enumerate(values) if other == value]
                if isinstance(index, BloomFilter):
                    assert index.may_contain(value)
                else:
                    assert [*index.equal_to(value)] == found


@needs_golden_tables
def test_a_side_car_is_read_from_storage_by_column():
    golden = TABLES["format-java/file_index"]
    [path] = data_files(golden)
    found = read_file_index(STORAGE, f"{path}.index", {"e", "f"})
    assert {column: [*by_type] for column, by_type in found.items()} == {
        "e": ["bsi"],
        "f": ["range-bitmap"],
    }
