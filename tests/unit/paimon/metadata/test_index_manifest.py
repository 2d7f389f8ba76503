"""Index manifests: a whole state that reads back as written, damage is never half an answer."""

from __future__ import annotations

import io
from dataclasses import replace

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.errors import CorruptTableError
from lakeformat.files.vector_record import DeletionVectorRange
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata import record_heads
from lakeformat.paimon.metadata.index_heads import read_index_heads
from lakeformat.paimon.metadata.index_manifest import (
    DELETION_VECTORS,
    HASH,
    GlobalIndexMeta,
    IndexManifestEntry,
    read_index_manifest,
    write_index_manifest,
)
from lakeformat.paimon.metadata.simple_stats import EMPTY_ROW
from lakeformat.paimon.options import TableOptions
from lakeformat.storage import MemoryStorage

LAYOUT = TableLayout("t")
HASHES = IndexManifestEntry(
    partition=EMPTY_ROW,
    bucket=1,
    index_type=HASH,
    file_name="index-u-0",
    file_size=12,
    row_count=3,
)
VECTORS = replace(
    HASHES,
    index_type=DELETION_VECTORS,
    file_name="index-u-1",
    file_size=33,
    row_count=1,
    ranges=(DeletionVectorRange("data-u-0.parquet", 1, 24, 2),),
)
LONG = replace(VECTORS, file_name=f"index-{'u' * 90}")
GLOBAL = replace(
    HASHES,
    index_type="btree",
    file_name="index-u-2",
    external_path="s3://elsewhere/index-u-2",
    global_index=GlobalIndexMeta(0, 99, 4, (5, 6), b"meta", b"source"),
)


def holding(content: bytes) -> MemoryStorage:
    storage = MemoryStorage("indexes")
    storage.overwrite(LAYOUT.manifest("i"), content)
    return storage


def content_of(entries, compression="zstd") -> bytes:
    storage = MemoryStorage("indexes")
    options = TableOptions({"manifest.compression": compression})
    size = write_index_manifest(storage, LAYOUT, "i", entries, options)
    content = storage.read(LAYOUT.manifest("i"))
    assert size == len(content)
    return content


def read(content: bytes) -> list[IndexManifestEntry]:
    """Read the entries, and again one by one, which must give the same entries or an error."""
    try:
        found = read_index_manifest(holding(content), LAYOUT, "i")
    except CorruptTableError:
        with pytest.raises(CorruptTableError):
            one_by_one(content)
        raise
    assert one_by_one(content) == found
    return found


def one_by_one(content: bytes) -> list[IndexManifestEntry]:
    heads = read_index_heads(holding(content), LAYOUT, "i")
    found = [each.entry() for each in heads]
    for head, entry in zip(heads, found, strict=True):
        names = (head.partition, head.bucket, head.index_type, head.file_name)
        assert names == (entry.partition, entry.bucket, entry.index_type, entry.file_name)
    return found


def rewritten(change) -> bytes:
    """A file whose schema and records ``change`` has edited."""
    reader = fastavro.reader(io.BytesIO(content_of([VECTORS, GLOBAL])))
    schema, records = reader.writer_schema, list(reader)
    change({field["name"]: field for field in schema["fields"]}, schema, records)
    out = io.BytesIO()
    fastavro.writer(out, schema, records)
    return out.getvalue()


@pytest.mark.parametrize("compression", ["zstd", "snappy", "deflate", "null"])
def test_entries_read_back_as_written_in_every_compression(compression):
    entries = [HASHES, VECTORS, GLOBAL]
    assert read(content_of(entries, compression)) == entries


@pytest.mark.parametrize("file_format", ["orc", "parquet"])
def test_entries_read_back_as_written_in_other_formats(file_format):
    options = TableOptions({"manifest.format": file_format})
    storage = MemoryStorage("indexes")
    write_index_manifest(storage, LAYOUT, "i", [HASHES, VECTORS], options)
    assert read(storage.read(LAYOUT.manifest("i"))) == [HASHES, VECTORS]


def test_the_lists_of_vectors_are_decoded_only_for_entries_that_are_asked_for():
    one, two = read_index_heads(holding(content_of([VECTORS, GLOBAL])), LAYOUT, "i")
    assert "_DELETIONS_VECTORS_RANGES" not in one.record.fields
    assert (one.entry(), two.entry()) == (VECTORS, GLOBAL)


def test_records_of_another_manifest_with_the_same_bytes_are_not_decoded_again(monkeypatch):
    before = read_index_heads(holding(content_of([LONG, GLOBAL])), LAYOUT, "i")
    entries = [GLOBAL, replace(LONG, file_name=f"{LONG.file_name}x"), LONG, HASHES]
    decoder, decoded = record_heads.fastavro.schemaless_reader, []

    def counted(*arguments):
        decoded.append(decoder(*arguments))
        return decoded[-1]

    content = content_of(entries)
    monkeypatch.setattr(record_heads.fastavro, "schemaless_reader", counted)
    heads = read_index_heads(holding(content), LAYOUT, "i", known=before)
    names = {each["_FILE_NAME"] for each in decoded}
    assert LONG.file_name not in names
    assert f"{LONG.file_name}x" in names
    assert [each.entry() for each in heads] == entries


def test_a_damaged_record_is_the_same_error_beside_a_known_record():
    [known] = read_index_heads(holding(content_of([LONG])), LAYOUT, "i")
    content = content_of([LONG], "null")
    damaged = content.replace(known.record.raw, known.record.raw[:-9] + b"\x7f" * 9)
    assert damaged != content
    assert decoded_like(damaged, ()) == decoded_like(damaged, [known])


def decoded_like(content: bytes, known) -> str:
    """The entries, or the error."""
    try:
        found = read_index_heads(holding(content), LAYOUT, "i", known=known)
        return str([each.entry() for each in found])
    except CorruptTableError as error:
        return str(error)


def test_a_state_without_index_files_is_a_file_too():
    assert read(content_of([])) == []


def test_the_avro_schema_is_the_format_s_in_names_order_and_nullability():
    schema = fastavro.reader(io.BytesIO(content_of([VECTORS]))).writer_schema
    by_name = {field["name"]: field for field in schema["fields"]}
    assert schema["name"] == "org.apache.paimon.avro.generated.record"
    assert [*by_name] == [
        "_VERSION",
        "_KIND",
        "_PARTITION",
        "_BUCKET",
        "_INDEX_TYPE",
        "_FILE_NAME",
        "_FILE_SIZE",
        "_ROW_COUNT",
        "_DELETIONS_VECTORS_RANGES",
        "_EXTERNAL_PATH",
        "_GLOBAL_INDEX",
    ]
    nullable = [name for name, field in by_name.items() if "default" in field]
    assert nullable == ["_DELETIONS_VECTORS_RANGES", "_EXTERNAL_PATH", "_GLOBAL_INDEX"]
    assert all(by_name[name]["type"][0] == "null" for name in nullable)
    items = by_name["_DELETIONS_VECTORS_RANGES"]["type"][1]["items"]
    assert items[0] == "null"
    assert [field["name"] for field in items[1]["fields"]] == ["f0", "f1", "f2", "_CARDINALITY"]


def test_ranges_that_are_not_nullable_are_pypaimon_s_and_read_the_same():
    def make_plain(fields, schema, records):
        ranges = fields["_DELETIONS_VECTORS_RANGES"]["type"][1]
        ranges["items"] = ranges["items"][1]

    assert read(rewritten(make_plain)) == [VECTORS, GLOBAL]


def test_a_file_of_an_older_release_has_no_cardinality_and_ends_earlier():
    def shorten(fields, schema, records):
        fields["_DELETIONS_VECTORS_RANGES"]["type"][1]["items"][1]["fields"].pop()
        schema["fields"] = schema["fields"][:-2]

    [vectors, other] = read(rewritten(shorten))
    assert vectors == replace(
        VECTORS, ranges=(DeletionVectorRange("data-u-0.parquet", 1, 24, None),)
    )
    assert other == replace(GLOBAL, external_path=None, global_index=None)


def test_fields_of_newer_writers_do_not_matter():
    def extend(fields, schema, records):
        schema["fields"].append({"name": "_FUTURE", "type": "string"})
        for record in records:
            record["_FUTURE"] = "?"

    assert read(rewritten(extend)) == [VECTORS, GLOBAL]


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("_VERSION", 2, r"manifest/i has format version 2, but this library reads 1"),
        ("_KIND", 7, "manifest/i is not an index manifest"),
        ("_DELETIONS_VECTORS_RANGES", [None], "manifest/i is not an index manifest"),
    ],
)
def test_what_nobody_knows_is_refused(field, value, reason):
    def change(fields, schema, records):
        records[0][field] = value

    with pytest.raises(CorruptTableError, match=reason):
        read(rewritten(change))


def test_a_missing_field_is_named():
    def drop(fields, schema, records):
        schema["fields"].remove(fields["_BUCKET"])

    with pytest.raises(CorruptTableError, match="_BUCKET"):
        read(rewritten(drop))


def test_a_missing_file_is_named_with_what_to_do():
    with pytest.raises(CorruptTableError, match=r"manifest/i is missing .* read the newest one"):
        read_index_manifest(MemoryStorage("empty"), LAYOUT, "i")


GOOD = content_of([HASHES, VECTORS, GLOBAL], "null")
HEADER_LENGTH = len(content_of([], "null"))
"""A header alone is a valid Avro file: it does not declare the number of entries."""


@given(st.integers(0, len(GOOD) - 1), st.binary(min_size=1, max_size=8))
def test_changed_bytes_give_our_error_or_valid_entries(position, noise):
    try:
        entries = read(GOOD[:position] + noise + GOOD[position + len(noise) :])
    except CorruptTableError:
        return
    assert all(isinstance(entry.row_count, int) for entry in entries)


@given(st.integers(0, len(GOOD) - 1).filter(lambda length: length != HEADER_LENGTH))
def test_a_truncated_file_is_never_a_partial_answer(length):
    with pytest.raises(CorruptTableError):
        read(GOOD[:length])
