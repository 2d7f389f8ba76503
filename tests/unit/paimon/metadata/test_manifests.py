"""Manifests and manifest lists: what is written reads back, damage is never half an answer."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import datetime

import fastavro
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.manifest import (
    FileKind,
    ManifestEntry,
    live_files,
    read_manifests,
    write_manifest,
)
from lakeformat.paimon.metadata.manifest_list import (
    read_manifest_list,
    summarise,
    write_manifest_list,
)
from lakeformat.paimon.metadata.simple_stats import EMPTY_ROW, SimpleStats
from lakeformat.paimon.options import TableOptions
from lakeformat.storage import MemoryStorage
from tests.manifest_entries import entries_in

LAYOUT = TableLayout("t")
PLAIN = DataFileMeta(
    file_name="data-u-0.parquet",
    file_size=100,
    row_count=3,
    min_sequence_number=0,
    max_sequence_number=2,
    schema_id=0,
)
FULL = replace(
    PLAIN,
    file_name="data-u-1.parquet",
    value_stats=SimpleStats(b"min", b"max", (0, None, 2)),
    level=2,
    extra_files=("data-u-1.parquet.index",),
    creation_time=datetime(2026, 1, 2, 3, 4, 5, 6000),
    delete_row_count=0,
    embedded_file_index=b"index",
    file_source=1,
    value_stats_cols=("a", "b", "c"),
    external_path="s3://elsewhere/data-u-1.parquet",
    first_row_id=7,
    write_cols=("a",),
    write_cols_sequences=(1, 2),
)


def entry(file=PLAIN, kind=FileKind.ADD, bucket=0, partition=EMPTY_ROW) -> ManifestEntry:
    return ManifestEntry(kind, partition, bucket, -1, file)


def written(entries, options=None) -> MemoryStorage:
    storage = MemoryStorage("manifests")
    write_manifest(storage, LAYOUT, "m", entries, TableOptions(options))
    return storage


def content_of(entries) -> bytes:
    return written(entries).read(LAYOUT.manifest("m"))


def holding(content: bytes) -> MemoryStorage:
    storage = MemoryStorage("manifests")
    storage.overwrite(LAYOUT.manifest("m"), content)
    return storage


@pytest.mark.parametrize("compression", ["zstd", "snappy", "deflate", "null"])
def test_entries_read_back_as_written_in_every_compression(compression):
    entries = [entry(), entry(FULL), entry(kind=FileKind.DELETE, bucket=3)]
    storage = written(entries, {"manifest.compression": compression})
    assert entries_in(storage, LAYOUT, "m") == entries


def test_the_avro_schema_is_the_format_s_in_names_order_and_nullability():
    schema = fastavro.reader(io.BytesIO(content_of([entry()]))).writer_schema
    assert schema["name"] == "org.apache.paimon.avro.generated.record"
    assert [field["name"] for field in schema["fields"]] == [
        "_VERSION",
        "_KIND",
        "_PARTITION",
        "_BUCKET",
        "_TOTAL_BUCKETS",
        "_FILE",
    ]
    file = schema["fields"][-1]["type"]
    assert file["name"] == "org.apache.paimon.avro.generated.record__FILE"
    assert len(file["fields"]) == 21
    optional = [field for field in file["fields"] if isinstance(field["type"], list)]
    assert all(field["type"][0] == "null" and field["default"] is None for field in optional)
    assert [field["name"] for field in file["fields"]][12] == "_CREATION_TIME"


def test_a_list_says_what_is_in_its_manifests():
    entries = [entry(), entry(FULL, bucket=2), entry(kind=FileKind.DELETE)]
    storage = MemoryStorage("lists")
    manifest = summarise("m", 10, entries)
    size = write_manifest_list(storage, LAYOUT, "l", [manifest], TableOptions())

    assert read_manifest_list(storage, LAYOUT, "l") == [manifest]
    assert size == len(storage.read(LAYOUT.manifest("l")))
    assert (manifest.num_added_files, manifest.num_deleted_files) == (2, 1)
    assert (manifest.min_bucket, manifest.max_bucket) == (0, 2)
    assert (manifest.min_level, manifest.max_level) == (0, 2)


def test_a_list_without_manifests_is_a_file_too():
    storage = MemoryStorage("lists")
    write_manifest_list(storage, LAYOUT, "l", [], TableOptions())
    assert read_manifest_list(storage, LAYOUT, "l") == []


def test_a_deleted_file_is_not_live():
    gone = replace(PLAIN, file_name="gone")
    entries = [entry(gone), entry(), entry(gone, kind=FileKind.DELETE)]
    assert live_files(entries, "t") == [entry()]


def test_an_upgraded_file_keeps_its_name_and_lives_on_at_the_new_level():
    upgraded = replace(PLAIN, level=5)
    entries = [entry(), entry(kind=FileKind.DELETE), entry(upgraded)]
    assert live_files(entries, "t") == [entry(upgraded)]


def test_the_same_name_in_another_bucket_or_partition_is_another_file():
    entries = [entry(), entry(bucket=1), entry(partition=b"p")]
    assert live_files([*entries, entry(kind=FileKind.DELETE)], "t") == entries[1:]


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([entry(), entry()], "adds data-u-0.parquet of bucket 0 twice"),
        (
            [entry(kind=FileKind.DELETE)],
            "deletes data-u-0.parquet of bucket 0, which no earlier commit added",
        ),
    ],
)
def test_entries_that_contradict_one_another_are_corruption(entries, reason):
    with pytest.raises(CorruptTableError, match=reason):
        live_files(entries, "t")


def rewritten(change) -> bytes:
    """A manifest whose records and schema ``change`` has edited."""
    reader = fastavro.reader(io.BytesIO(content_of([entry(FULL)])))
    schema, records = reader.writer_schema, list(reader)
    change(schema, records[0])
    out = io.BytesIO()
    fastavro.writer(out, schema, records)
    return out.getvalue()


@pytest.mark.parametrize("kept", [13, 14, 15, 16, 17, 18, 20])
def test_manifests_of_older_releases_end_earlier(kept):
    def shorten(schema, record):
        file = schema["fields"][-1]["type"]
        file["fields"] = file["fields"][:kept]

    [old] = entries_in(holding(rewritten(shorten)), LAYOUT, "m")
    assert old.file.creation_time == FULL.creation_time
    assert old.file.write_cols_sequences is None
    assert old.file.external_path == (FULL.external_path if kept > 17 else None)


def test_fields_and_record_names_of_newer_or_other_writers_do_not_matter():
    def extend(schema, record):
        schema["name"] = "ManifestEntry"
        schema["fields"].append({"name": "_FUTURE", "type": "string"})
        record["_FUTURE"] = "?"

    assert entries_in(holding(rewritten(extend)), LAYOUT, "m") == [entry(FULL)]


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [("_VERSION", 3, "format version 3"), ("_KIND", 7, "is not a manifest")],
)
def test_a_version_or_kind_nobody_knows_is_refused(field, value, reason):
    def change(schema, record):
        record[field] = value

    with pytest.raises(CorruptTableError, match=reason):
        entries_in(holding(rewritten(change)), LAYOUT, "m")


def test_a_missing_manifest_is_named_with_what_to_do():
    with pytest.raises(CorruptTableError, match=r"manifest/m is missing .* read the newest one"):
        entries_in(MemoryStorage("empty"), LAYOUT, "m")


@pytest.mark.parametrize("content", [b"", b"Obj", b"not avro at all", b"Obj\x01" + bytes(50)])
def test_what_is_not_avro_is_named_in_the_error(content):
    with pytest.raises(CorruptTableError, match=r"manifest/m .* is not a readable Avro file"):
        entries_in(holding(content), LAYOUT, "m")


GOOD = content_of([entry(), entry(FULL)])


@given(st.integers(0, len(GOOD) - 1), st.binary(min_size=1, max_size=8))
def test_changed_bytes_give_our_error_or_valid_entries(position, noise):
    damaged = GOOD[:position] + noise + GOOD[position + len(noise) :]
    try:
        entries = entries_in(holding(damaged), LAYOUT, "m")
    except CorruptTableError:
        return
    assert all(isinstance(found, ManifestEntry) for found in entries)


@given(st.integers(0, len(GOOD) - 1))
@example(GOOD.index(GOOD[-16:]) + 16)
def test_a_truncated_manifest_is_never_a_partial_answer(length):
    """Cut after its header, a manifest is a valid empty file: only the list has the counts."""
    listed = summarise("m", len(GOOD), [entry(), entry(FULL)])
    with pytest.raises(CorruptTableError):
        read_manifests(holding(GOOD[:length]), LAYOUT, [listed])


def test_a_list_sums_up_row_ids_and_schemas():
    first = replace(PLAIN, first_row_id=10, row_count=5, schema_id=2)
    second = replace(PLAIN, file_name="b", first_row_id=4, row_count=3, schema_id=1)
    found = summarise("m", 1, [entry(first), entry(second)])
    assert (found.min_row_id, found.max_row_id) == (4, 14), "the last row id, not the one after"
    assert found.schema_id == 2, "the newest"


def test_row_ids_of_a_manifest_are_unknown_unless_every_file_has_some():
    some = replace(PLAIN, first_row_id=10)
    found = summarise("m", 1, [entry(some), entry(replace(PLAIN, file_name="b"))])
    assert (found.min_row_id, found.max_row_id) == (None, None)
