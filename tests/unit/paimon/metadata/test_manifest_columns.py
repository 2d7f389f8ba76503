"""Manifests as columns: equal to what a record-by-record decoder gives, bytes included."""

from __future__ import annotations

import io
import json
import random
import struct
from dataclasses import replace
from datetime import datetime, timedelta

import fastavro
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakeformat.errors import CorruptTableError
from lakeformat.files.avro import avro_container
from lakeformat.files.avro.avro_container import NotPlainError, read_blocks
from lakeformat.files.avro.avro_packing import avro_number
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.manifest import FileKind, ManifestEntry, live_files
from lakeformat.paimon.metadata.manifest_columns import ManifestColumns, columns_of, decode_manifest
from lakeformat.paimon.metadata.manifest_columns import decode as decode_module
from lakeformat.paimon.metadata.manifest_columns.encode import encode_manifest, entry_record
from lakeformat.paimon.metadata.manifest_columns.live import cancel_pairs, live_rows
from lakeformat.paimon.metadata.manifest_columns.read import (
    decode_manifest_by_record,
    join_manifests,
    open_manifest,
)
from lakeformat.paimon.metadata.manifest_columns.schema import MANIFEST_SCHEMA
from lakeformat.paimon.metadata.record_file import encode_avro_file
from lakeformat.paimon.metadata.simple_stats import EMPTY_ROW, EMPTY_STATS, SimpleStats
from tests import sampling

LONG = st.integers(-(2**63), 2**63 - 1)
SIZES = st.integers(0, 2**63 - 1) | st.integers(0, 300)
NAMES = st.text(max_size=40)
NAME_LISTS = st.none() | st.lists(NAMES, max_size=4).map(tuple)
COUNTS = st.none() | st.lists(st.none() | SIZES, max_size=5).map(tuple)


@st.composite
def rows(draw):
    """A framed row of numbers, as partitions, keys and statistics are."""
    numbers = draw(st.lists(st.integers(0, 2**64 - 1), max_size=3))
    return len(numbers).to_bytes(4, "big") + bytes(8) + struct.pack(f"<{len(numbers)}Q", *numbers)


STATS = st.just(EMPTY_STATS) | st.builds(SimpleStats, rows(), rows(), COUNTS)
TIMES = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(
    lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000)
)
FILES = st.builds(
    DataFileMeta,
    file_name=NAMES,
    file_size=SIZES,
    row_count=SIZES,
    min_sequence_number=LONG,
    max_sequence_number=LONG,
    schema_id=SIZES,
    min_key=rows(),
    max_key=rows(),
    key_stats=STATS,
    value_stats=STATS,
    level=st.integers(0, 5),
    extra_files=st.lists(NAMES, max_size=3).map(tuple),
    creation_time=st.none() | TIMES,
    delete_row_count=st.none() | SIZES,
    embedded_file_index=st.none() | st.binary(max_size=40),
    file_source=st.none() | st.integers(0, 1),
    value_stats_cols=NAME_LISTS,
    external_path=st.none() | NAMES,
    first_row_id=st.none() | LONG,
    write_cols=NAME_LISTS,
    write_cols_sequences=st.none() | st.lists(LONG, max_size=3).map(tuple),
)

ENTRIES = st.lists(
    st.builds(
        ManifestEntry,
        st.sampled_from(FileKind),
        rows(),
        st.integers(-2, 300),
        st.integers(-1, 300),
        FILES,
    ),
    min_size=1,
    max_size=12,
)


def row(*numbers: int) -> bytes:
    packed = struct.pack(f"<{len(numbers)}q", *numbers)
    return len(numbers).to_bytes(4, "big") + bytes(8) + packed


def many(count: int, seed: int = 0) -> list[ManifestEntry]:
    """Entries like those of a real table, in several blocks and groups."""
    chance = random.Random(seed)
    return [
        ManifestEntry(
            FileKind(chance.random() < 0.1),
            row(chance.randrange(9)),
            chance.randrange(4),
            4,
            DataFileMeta(
                file_name=f"data-{chance.getrandbits(64):x}-{number}.parquet",
                file_size=chance.randrange(10**9),
                row_count=chance.randrange(10**6),
                min_sequence_number=number,
                max_sequence_number=number * 3,
                schema_id=0,
                value_stats=SimpleStats(row(number, 1), row(2**40, 5), (0, chance.randrange(200))),
                creation_time=datetime(2026, 1, 1) + timedelta(milliseconds=number),
                delete_row_count=None if number % 7 else 0,
                value_stats_cols=("a", "b") if number % 5 else None,
            ),
        )
        for number in range(count)
    ]


def by_fastavro(entries, compression="null") -> bytes:
    return encode_avro_file(
        MANIFEST_SCHEMA, map(entry_record, entries), compression=compression, zstd_level=1
    )


def sync_of(content: bytes) -> bytes:
    return content[-16:]


def is_plain(content: bytes) -> bool:
    """True if the vectorised decoder reads a file itself."""
    opened = open_manifest(content, "m")
    try:
        read_blocks(content)
    except NotPlainError:
        return False
    return opened.blocks is not None


@given(ENTRIES)
def test_random_entries_encode_to_the_bytes_fastavro_writes(entries):
    expected = by_fastavro(entries)
    columns = columns_of(entries)
    found = encode_manifest(columns, compression="null", zstd_level=1, sync=sync_of(expected))
    assert found == expected


@given(ENTRIES)
def test_random_entries_decode_to_what_they_were(entries):
    assert decode_manifest(by_fastavro(entries), "m").entries() == entries
    assert columns_of(entries).entries() == entries


def test_many_blocks_have_the_boundaries_and_bytes_fastavro_gives_them():
    entries = many(9_000)
    expected = by_fastavro(entries)
    columns = decode_manifest(expected, "m")
    found = encode_manifest(columns, compression="null", zstd_level=1, sync=sync_of(expected))
    assert found == expected


@pytest.mark.parametrize("compression", ["zstd", "snappy", "deflate", "null"])
def test_every_compression_is_read_and_written_like_fastavro_does(compression):
    entries = many(300)
    ours = encode_manifest(columns_of(entries), compression=compression, zstd_level=3)
    assert decode_manifest_by_record(ours, "m") == entries
    assert decode_manifest(by_fastavro(entries, compression), "m").entries() == entries


def test_plain_manifests_never_need_the_general_decoder(monkeypatch):
    def refuse(content, uri):
        raise AssertionError("the general decoder was asked")

    monkeypatch.setattr(
        "lakeformat.paimon.metadata.manifest_columns.read.decode_manifest_by_record", refuse
    )
    entries = many(5_000)
    assert decode_manifest(by_fastavro(entries, "zstd"), "m").entries() == entries


def test_frames_that_do_not_say_their_size_are_read_too():
    """Java compresses in a stream and does not know the size when it writes the frame's head."""

    def stream(block: bytes) -> bytes:
        compressor = avro_container.zstd.ZstdCompressor()
        return compressor.compress(block) + compressor.flush()

    content = by_fastavro(many(50))
    blocks = read_blocks(content)
    packed = [stream(bytes(blocks.content[: blocks.ends[0]]))]
    assert [avro_container._frame_size(frame) for frame in packed] == [None]
    found = avro_container._unpack_zstd(packed, 1 << 20)
    assert bytes(found.content[: found.ends[-1]]) == bytes(blocks.content[: blocks.ends[0]])


def test_what_only_looks_like_an_entry_is_none():
    trap = b"\x04\x00" + bytes([24]) + EMPTY_ROW + bytes(60)
    entries = [
        replace(entry, file=replace(entry.file, embedded_file_index=trap * 3))
        for entry in many(500)
    ]
    content = by_fastavro(entries)
    assert decode_manifest(content, "m").entries() == entries


@pytest.mark.parametrize("kept", [13, 14, 15, 16, 17, 18, 20])
def test_older_releases_end_earlier_and_newer_ones_later(kept):
    def shape(fields):
        return [*fields[:kept], {"name": "_NEW", "type": ["null", "long"], "default": None}]

    schema = json.loads(json.dumps(MANIFEST_SCHEMA))
    file = schema["fields"][-1]["type"]
    file["fields"] = shape(file["fields"])
    schema["name"] = "ManifestEntry"
    records = list(fastavro.reader(io.BytesIO(by_fastavro(many(40)))))
    content = encode_avro_file(schema, records, compression="null", zstd_level=1)
    assert is_plain(content)
    assert decode_manifest(content, "m").entries() == decode_manifest_by_record(content, "m")


def test_a_schema_of_another_shape_is_left_to_the_general_decoder():
    schema = json.loads(json.dumps(MANIFEST_SCHEMA))
    schema["fields"].insert(2, schema["fields"].pop(3))  # _BUCKET before _PARTITION
    entries = many(20)
    records = list(fastavro.reader(io.BytesIO(by_fastavro(entries))))
    content = encode_avro_file(schema, records, compression="zstd", zstd_level=1)
    assert decode_manifest(content, "m").entries() == entries


def test_manifests_of_several_writers_join_in_order():
    first, second, third = many(30, 1), many(30, 2), many(30, 3)
    schema = json.loads(json.dumps(MANIFEST_SCHEMA))
    schema["name"] = "Other"
    records = list(fastavro.reader(io.BytesIO(by_fastavro(second))))
    other = encode_avro_file(schema, records, compression="null", zstd_level=1)
    files = [(by_fastavro(first), "1"), (other, "2"), (by_fastavro(third), "3")]
    columns, lengths = join_manifests([open_manifest(*file) for file in files])
    assert (columns.entries(), lengths) == ([*first, *second, *third], [30, 30, 30])
    assert join_manifests([])[0].entries() == []


def test_columns_can_be_filtered_taken_and_joined():
    entries = many(100)
    columns = columns_of(entries)
    odd = columns.filter(np.arange(100) % 2 == 1)
    assert odd.entries() == entries[1::2]
    assert columns.entries(np.array([5, 3])) == [entries[5], entries[3]]
    assert ManifestColumns.concat([odd, columns]).entries() == [*entries[1::2], *entries]


SMALL = by_fastavro(many(6))
PACKED = by_fastavro(many(6), "zstd")
CHANGES = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=6)),
    min_size=1,
    max_size=3,
)


def outcome(decode):
    try:
        return decode()
    except CorruptTableError:
        return None


@settings(max_examples=sampling.count(8, whole=300))
@given(st.sampled_from([SMALL, PACKED]), CHANGES)
def test_damage_is_our_error_or_what_fastavro_makes_of_it(content, changes):
    for place, noise in changes:
        at = int(place * len(content))
        content = content[:at] + noise + content[at + len(noise) :]
    found = outcome(lambda: decode_manifest(content, "m").entries())
    if found is not None:
        assert found == outcome(lambda: decode_manifest_by_record(content, "m"))


@given(st.sampled_from([SMALL, PACKED]), st.integers(0, 10_000))
def test_a_truncated_manifest_is_never_a_partial_answer(content, length):
    with pytest.raises(CorruptTableError, match="m "):
        decode_manifest(content[: length % len(content)], "m")


@settings(max_examples=sampling.count(8, whole=200))
@given(st.binary(max_size=200), st.integers(0, 3))
def test_damaged_records_behind_a_whole_container_are_told_apart(noise, count):
    """Noise inside the block: the container cannot notice."""
    start = SMALL.index(sync_of(SMALL)) + 16
    block = avro_number(count) + avro_number(len(noise)) + noise + sync_of(SMALL)
    content = SMALL[:start] + block
    found = outcome(lambda: decode_manifest(content, "m").entries())
    if found is not None:
        assert found == outcome(lambda: decode_manifest_by_record(content, "m"))


def test_a_block_that_claims_to_be_huge_is_refused_without_making_room():
    bomb = avro_container.zstd.compress(bytes(200 << 20))
    header = PACKED[: PACKED.index(sync_of(PACKED)) + 16]
    block = b"\x02" + avro_number(len(bomb)) + bomb + sync_of(PACKED)
    with pytest.raises(CorruptTableError, match=r"m .* far more bytes or records than a manifest"):
        decode_manifest(header + block, "m")


def test_join_needs_no_manifest():
    columns, lengths = join_manifests([])
    assert (len(columns), lengths) == (0, [])


IDENTITIES = st.builds(
    lambda name, bucket, level, partition, extra, external: ManifestEntry(
        FileKind.ADD,
        row(partition),
        bucket,
        -1,
        DataFileMeta(
            file_name=name,
            file_size=1,
            row_count=1,
            min_sequence_number=0,
            max_sequence_number=0,
            schema_id=0,
            level=level,
            extra_files=extra,
            external_path=external,
        ),
    ),
    st.sampled_from(["a", "b", "a-longer-name-0", "a-longer-name-1"]),
    st.integers(0, 1),
    st.integers(0, 1),
    st.integers(0, 1),
    st.sampled_from([(), ("x",)]),
    st.sampled_from([None, "e"]),
)


@settings(max_examples=sampling.count(8, whole=300))
@given(st.lists(st.tuples(IDENTITIES, st.booleans()), max_size=20))
def test_columns_and_objects_agree_on_the_files_left(story):
    entries = [replace(entry, kind=FileKind(is_delete)) for entry, is_delete in story]
    columns = columns_of(entries)

    def expected():
        return live_files(entries, "t")

    def found():
        return columns.entries(live_rows(columns, "t"))

    assert _result_or_message(found) == _result_or_message(expected)


def _result_or_message(call):
    try:
        return call()
    except CorruptTableError as error:
        return str(error)


def test_pairs_cancel_and_other_deletes_stay_in_order():
    a, b, c = (replace(entry, kind=FileKind.ADD) for entry in many(3))
    gone = [replace(entry, kind=FileKind.DELETE) for entry in (a, b, c)]
    columns = columns_of([gone[2], a, b, gone[0]])
    assert columns.entries(cancel_pairs(columns, "t")) == [gone[2], b]


def test_colliding_hashes_are_told_apart(monkeypatch):
    from lakeformat.paimon.metadata.manifest_columns import live

    entries = [replace(entry, kind=FileKind.ADD) for entry in many(20)]
    story = [*entries, replace(entries[3], kind=FileKind.DELETE)]
    columns = columns_of(story)
    monkeypatch.setattr(live, "_hash", lambda columns: np.zeros(len(columns), np.uint64))
    assert columns.entries(live_rows(columns, "t")) == live_files(story, "t")


def test_groups_of_blocks_may_be_as_small_as_one_block(monkeypatch):
    monkeypatch.setattr(decode_module, "_GROUP_BYTES", 1)
    entries = many(500)
    assert decode_manifest(by_fastavro(entries), "m").entries() == entries


def test_buffers_too_large_for_views_are_read_value_by_value(monkeypatch):
    from lakeformat.paimon.metadata.manifest_columns import columns as module

    names = columns_of(many(5)).file_name
    expected = names.to_arrow()
    monkeypatch.setattr(module, "_LARGEST_VIEWED", 0)
    assert names.to_arrow() == expected
    assert names.is_text()
    assert not module.BytesColumn.of([b"\xff"]).is_text()
