"""Every decoder of the package, given its own bytes damaged: our error or a value, in bounds."""

from __future__ import annotations

import contextlib
import importlib
import io
import pkgutil
import re
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakeformat
from lakeformat.environment import Environment
from lakeformat.errors import CorruptTableError, InvalidRequestError, LakeError, UnsupportedError
from lakeformat.files import puffin, roaring, vector_record
from lakeformat.files.avro import avro_container
from lakeformat.files.byte_cursor import ByteCursor
from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.files.vector_record import DeletionVectorRange, VectorForm
from lakeformat.paimon import binary_row, partition
from lakeformat.paimon.binary_row import column_decoder, decode, encode_row, frame_row, layout
from lakeformat.paimon.index import deletion_vector_file, hash_index
from lakeformat.paimon.index.deletion_vector_file import encode_deletion_vectors
from lakeformat.paimon.index.file_index import container, encode_file_index
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata import (
    columnar_file,
    commit_message,
    index_heads,
    index_manifest,
    manifest,
    manifest_list,
    record_file,
)
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.hints import NumberedFiles
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry
from lakeformat.paimon.metadata.manifest import FileKind, ManifestEntry
from lakeformat.paimon.metadata.manifest_columns import decode as decode_columns_module
from lakeformat.paimon.metadata.manifest_columns import read as manifest_read
from lakeformat.paimon.metadata.manifest_columns import shape
from lakeformat.paimon.metadata.simple_stats import EMPTY_ROW
from lakeformat.paimon.metadata.staged_results import staged_results
from lakeformat.paimon.options import TableOptions, declared_options
from lakeformat.paimon.schema import new_schema
from lakeformat.storage.memory import MemoryStorage
from lakeformat.tables.run_record import RunRecords
from lakeformat.types import type_text
from lakeformat.types.type_text import parse_type, type_to_json
from tests.damage import MOST_BYTES, MOST_CPU_SECONDS, damaged, fuzzed, within_bounds

LAYOUT = TableLayout("t")
DAMAGE = (CorruptTableError, UnsupportedError)


@dataclass(frozen=True)
class Decoder:
    """A decoder, its input, and its allowed errors."""

    decode: Callable[[bytes], object]
    samples: list[bytes]
    covers: tuple[Any, ...]
    errors: tuple[type[LakeError], ...] = DAMAGE
    pieces: tuple[bytes, ...] = ()


def puffin_file() -> bytes:
    """A Puffin file with two blobs."""
    stream = io.BytesIO()
    writer = puffin.PuffinWriter(stream)
    for number in range(2):
        writer.add("kind", bytes(number + 3), fields=[number], properties={"key": "value"})
    writer.finish({"created-by": "tests"})
    return stream.getvalue()


def stored(path: str, read: Callable[[MemoryStorage], object]) -> Callable[[bytes], object]:
    """A reader that is given its bytes as a file."""

    def decode_stored(content: bytes) -> object:
        storage = MemoryStorage("damaged")
        storage.overwrite(path, content)
        return read(storage)

    return decode_stored


FILE = DataFileMeta(
    file_name="data-u-0.parquet",
    file_size=100,
    row_count=3,
    min_sequence_number=0,
    max_sequence_number=2,
    schema_id=0,
    embedded_file_index=b"index",
    value_stats_cols=("a", "b"),
    external_path="s3://elsewhere/f",
)
ENTRIES = [
    ManifestEntry(FileKind(n % 2), EMPTY_ROW, n, -1, replace(FILE, file_name=f"data-u-{n}.parquet"))
    for n in range(3)
]
INDEXES = [
    IndexManifestEntry(
        partition=EMPTY_ROW,
        bucket=1,
        index_type=index_manifest.DELETION_VECTORS,
        file_name="index-u-1",
        file_size=33,
        row_count=1,
        ranges=(DeletionVectorRange("data-u-0.parquet", 1, 24, 2),),
    )
]


def written(
    write: Callable[..., object], value: object, manifest_format: str = "avro"
) -> list[bytes]:
    """One metadata file in every compression; not compressed, damage reaches the records."""
    contents = []
    for compression in ("null", "zstd", "snappy", "deflate"):
        storage = MemoryStorage("whole")
        options = {"manifest.compression": compression, "manifest.format": manifest_format}
        write(storage, LAYOUT, "m", value, TableOptions(options))
        contents.append(storage.read(LAYOUT.manifest("m")))
    return contents


MANIFESTS = written(manifest.write_manifest, ENTRIES)
LISTS = written(
    manifest_list.write_manifest_list, [manifest_list.summarise("manifest-u-0", 9, ENTRIES)]
)
INDEX_MANIFESTS = written(index_manifest.write_index_manifest, INDEXES)
MESSAGE = commit_message.CommitMessage(bucket=0, total_buckets=-1, new_files=(FILE, FILE))


def staged() -> bytes:
    storage = MemoryStorage("staged")
    files = staged_results(storage, LAYOUT)
    files.write("s", [MESSAGE, MESSAGE], Environment())
    return storage.read(files.path("s"))


AVRO_PIECES = (b'"null"', b'"long"', b'"string"', b'{"type":"array","items":"null"}', b'["null"]')

ROW_TYPES = [
    parse_type(text)
    for text in ("STRING", "DECIMAL(20, 2)", "TIMESTAMP(9)", "ARRAY<STRING>", "MAP<INT, STRING>")
] + [parse_type("ROW<a INT, b ARRAY<INT>>"), parse_type("TIME")]
ROW = encode_row(
    ["a long text", Decimal(5), 7_000_001, ["x", None], [(1, "y")], (1, [2]), 5], ROW_TYPES
)
ROWS = [frame_row(ROW, len(ROW_TYPES)), frame_row(encode_row([None] * 7, ROW_TYPES), 7)]
BY_PARTS = [
    new_schema(
        [("dt", "STRING"), ("n", "INT"), ("at", "TIMESTAMP(3)"), ("v", "INT")],
        partition_by=("dt", "n", "at"),
        options={"partition.legacy-name": legacy},
        time_millis=1,
    )
    for legacy in ("true", "false")
]
PART_TYPES = [field.type for field in BY_PARTS[0].fields[:3]]
PARTITIONS = [frame_row(encode_row(["2026-01-01 long", 3, 5_000_000], PART_TYPES), 3)]


def of_checksummed(body: bytes) -> object:
    """A vector with a correct checksum for any body."""
    record = struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    length = len(body) + (8 if body[:4].hex() == "d1d33964" else 0)
    return vector_record.decode_deletion_vector(
        record, DeletionVectorRange("f", 1, length), "index-0", remedy="restore it"
    )


def with_checksum(content: bytes) -> object:
    frame = 8 if content[5:9].hex() == "d1d33964" else 0
    ranges = (DeletionVectorRange("f", 1, len(content) - 9 + frame),)
    read = deletion_vector_file.read_deletion_vectors
    return stored("index-0", lambda storage: read(storage, "index-0", ranges))(content)


VECTORS = [
    encode_deletion_vectors({"f": DeletionVector.of(rows)}, form)[0]
    for form in VectorForm
    for rows in ([1, 3], range(0, 90_000, 2), range(5000))
]
EMBEDDED = encode_file_index({"a": {"bloom-filter": b"body", "bitmap": None}, "b": {"bsi": b"x"}})


def option_values(content: bytes) -> object:
    text = content.decode("latin-1")
    for option in declared_options():
        TableOptions({option.key: text}).validate()
    return text


def hint(content: bytes) -> object:
    read = stored("d/LATEST", lambda storage: NumberedFiles(storage, "d", "n-").latest_id())
    assert read(content) is None, "no file is there, whatever a hint says"
    return True


DECODERS: dict[str, Decoder] = {
    "manifest, columns": Decoder(
        lambda content: manifest_read.decode_manifest(content, "m").entries(),
        MANIFESTS,
        (
            manifest_read.decode_manifest,
            manifest_read.open_manifest,
            manifest.read_manifests,
            avro_container.read_blocks,
            decode_columns_module.decode_columns,
            shape.parse_shape,
        ),
        pieces=AVRO_PIECES,
    ),
    "manifest, records": Decoder(
        stored(
            LAYOUT.manifest("m"),
            lambda storage: manifest_read.decode_manifest_by_record(
                *manifest.read_manifest_bytes(storage, LAYOUT, "m")
            ),
        ),
        MANIFESTS,
        (
            manifest.read_manifest_bytes,
            manifest_read.decode_manifest_by_record,
            record_file.decode_avro_file,
        ),
        pieces=AVRO_PIECES,
    ),
    "manifest, rows": Decoder(
        stored(
            LAYOUT.manifest("m"), lambda storage: manifest.read_manifests(storage, LAYOUT, ["m"])
        ),
        [
            *written(manifest.write_manifest, ENTRIES, "orc"),
            *written(manifest.write_manifest, ENTRIES, "parquet"),
        ],
        (record_file.decode_record_file, columnar_file.decode_rows),
    ),
    "manifest list": Decoder(
        stored(
            LAYOUT.manifest("m"),
            lambda storage: manifest_list.read_manifest_list(storage, LAYOUT, "m"),
        ),
        LISTS,
        (manifest_list.read_manifest_list,),
        pieces=AVRO_PIECES,
    ),
    "index manifest": Decoder(
        stored(
            LAYOUT.manifest("m"),
            lambda storage: index_manifest.read_index_manifest(storage, LAYOUT, "m"),
        ),
        INDEX_MANIFESTS,
        (index_manifest.read_index_manifest,),
        pieces=AVRO_PIECES,
    ),
    "heads of an index manifest": Decoder(
        stored(
            LAYOUT.manifest("m"),
            lambda storage: index_heads.read_index_heads(storage, LAYOUT, "m"),
        ),
        INDEX_MANIFESTS,
        (index_heads.read_index_heads,),
        pieces=AVRO_PIECES,
    ),
    "commit message": Decoder(
        commit_message.CommitMessage.from_bytes,
        [MESSAGE.to_bytes()],
        (),
        errors=(InvalidRequestError,),
        pieces=AVRO_PIECES,
    ),
    "staged result": Decoder(
        stored(
            f"{LAYOUT.staged_directory}/staged-s",
            lambda storage: staged_results(storage, LAYOUT).read("s"),
        ),
        [staged()],
        (),
        errors=(InvalidRequestError,),
        pieces=(b"[" * 5000, b"1e999", b"null", b'{"version":1}'),
    ),
    "record of a run": Decoder(
        stored(
            f"{LAYOUT.run_directory}/run-job",
            lambda storage: RunRecords(storage, LAYOUT.run_directory).read("job"),
        ),
        [b'{"user":"job","identifier":1,"snapshotId":3,"mark":0}'],
        (),
        errors=(CorruptTableError,),
        pieces=(b"[" * 5000, b"1e999", b"null"),
    ),
    "hint": Decoder(hint, [b"1", b"12345"], (), errors=()),
    "binary row, one": Decoder(
        lambda content: binary_row.decode_row(binary_row.unframe_row(content)[1], ROW_TYPES),
        ROWS,
        (decode.decode_row, decode.decode_field, layout.unframe_row),
    ),
    "binary row, many": Decoder(
        lambda content: [
            column.validate(full=True)
            for column in binary_row.decode_columns(pa.array([*ROWS, content]), ROW_TYPES)
        ],
        ROWS,
        (
            column_decoder.decode_columns,
            importlib.import_module("lakeformat.types.wide_decimal").decode_wide,
        ),
    ),
    "partition": Decoder(
        lambda content: [partition.partition_path(schema, content) for schema in BY_PARTS],
        PARTITIONS,
        (partition.partition_path, partition.partition_texts, partition.partition_values),
    ),
    "deletion vector": Decoder(
        of_checksummed,
        [content[5:-4] for content in VECTORS],
        (vector_record.decode_deletion_vector,),
    ),
    "deletion vector file": Decoder(
        with_checksum, VECTORS, (deletion_vector_file.read_deletion_vectors,)
    ),
    "Puffin file": Decoder(
        lambda content: [*puffin.read_blobs(content, "p")], [puffin_file()], (puffin.read_blobs,)
    ),
    "bitmap": Decoder(
        lambda content: roaring.read_bitmap(ByteCursor(content, "b", remedy="")),
        [roaring.encode_bitmap(roaring.bitmap_of(np.arange(0, 9000, step))) for step in (1, 7)],
        (roaring.read_bitmap,),
    ),
    "hash index": Decoder(
        stored("h", lambda storage: hash_index.read_hash_index(storage, "h", count=3)),
        [hash_index.encode_hash_index(np.array([1, -2, 3], np.int32))],
        (hash_index.read_hash_index, hash_index.decode_hash_index),
    ),
    "file index, embedded": Decoder(
        lambda content: container.decode_file_index(content, "m"),
        [EMBEDDED],
        (container.decode_file_index,),
    ),
    "file index": Decoder(
        stored("i", lambda storage: container.read_file_index(storage, "i")),
        [EMBEDDED],
        (container.read_file_index,),
    ),
    "type": Decoder(
        lambda content: type_to_json(parse_type(content.decode("latin-1"))),
        [b"INT NOT NULL", b"ARRAY<ROW<a MAP<STRING, DECIMAL(20, 2)>, `b c` VARCHAR(9)>>"],
        (type_text.parse_type,),
        errors=(InvalidRequestError,),
        pieces=(b"<" * 3, b"ARRAY<" * 40, b"9" * 25, b"ROW<", b">", b"`", b"MULTISET<"),
    ),
    "option": Decoder(
        option_values,
        [b"128 mb", b"3 d", b"true", b"full", b"0:parquet,1:orc", b"a,b", b"truncate(16)"],
        (),
        errors=(InvalidRequestError,),
        pieces=(b"9" * 25, b",", b":", b"-", b"mb", b"\xb2", b"."),
    ),
}

FUZZED_ELSEWHERE = {
    "paimon/metadata/test_metadata_damage.py": {
        "read_schema",
        "read_snapshot",
        "read_changelog",
        "read_tag",
        "read_consumer",
        "read_fence",
        "read_statistics",
    },
    "iceberg/metadata/test_iceberg_metadata_damage.py": {
        "read_metadata_file",
        "read_manifest_list",
        "read_entries",
    },
    "paimon/datafile/test_datafile_damage.py": {"read_batches"},
    "paimon/index/test_file_index_damage.py": {"open_column_index"},
    "paimon/compact/test_joined_files.py": {"read_row_groups"},
}
"""Other tests on damaged bytes, and the decoders that stand in them by name."""

PART_OF = {
    "decode_record_heads": "read_index_heads",
    "decode_json_file": "read_schema",
    "read_members": "read_snapshot",
    "read_snapshot_if_present": "read_snapshot",
    "read_snapshots": "read_snapshot",
    "read_changelog_if_present": "read_changelog",
    "read_tags": "read_tag",
    "read_tag_if_present": "read_tag",
    "read_consumers": "read_consumer",
    "decode_by_id": "read_entries",
    "decode_metadata": "read_metadata_file",
    "read_record_file": "read_entries",
    "read_records": "read_entries",
    "read_windows": "read_entries",
    "read_key_values": "read_batches",
    "read_orc": "read_batches",
    "read_footer": "read_batches",
    "read_parquet": "read_batches",
    "read_avro": "read_batches",
    "read_tail": "read_batches",
    "parse_message": "read_batches",
    "read_bloom_filter": "open_column_index",
    "read_bitmap_index": "open_column_index",
    "read_bsi": "open_column_index",
    "read_range_bitmap": "open_column_index",
    "read_dictionary": "open_column_index",
    "read_key": "open_column_index",
    "read_row_count": "open_column_index",
    "read_rows": "open_column_index",
    "read_utf": "decode_file_index",
    "read_each": "read_entries",
}
"""Decoders without a test of their own, and the one that calls them with what it was given."""

OF_THIS_PROCESS = {"parse_struct"}
"""Decoders of what pyarrow made a moment ago, and never of what lies on storage."""

DECODES = re.compile(r"(read|decode|open|parse|unframe)_|partition_(path|texts|values)")
PLACES = (
    "lakeformat.files.",
    "lakeformat.paimon.binary_row.",
    "lakeformat.paimon.datafile.",
    "lakeformat.paimon.index.",
    "lakeformat.paimon.metadata.",
    "lakeformat.paimon.partition.",
    "lakeformat.iceberg.metadata.",
    "lakeformat.tables.json_file.",
    "lakeformat.types.type_text.",
    "lakeformat.types.wide_decimal.",
)
NO_DECODERS = "lakeformat.files.foreign."
"""Reads files that a user gives, never what lies on storage."""


def public_decoders() -> set[str]:
    """The names of all functions that turn bytes or text of a table into values."""
    names = set()
    for module in pkgutil.walk_packages(lakeformat.__path__, "lakeformat."):
        name = f"{module.name}."
        if name.startswith(PLACES) and not name.startswith(NO_DECODERS):
            public = getattr(importlib.import_module(module.name), "__all__", ())
            names.update(name for name in public if DECODES.match(name))
    return names


def test_every_decoder_of_the_package_is_fuzzed():
    here = {cover.__name__ for decoder in DECODERS.values() for cover in decoder.covers}
    elsewhere = set().union(*FUZZED_ELSEWHERE.values())
    assert public_decoders() == here | elsewhere | set(PART_OF) | OF_THIS_PROCESS
    assert set(PART_OF.values()) <= here | elsewhere


@pytest.mark.parametrize("file", FUZZED_ELSEWHERE)
def test_the_other_tests_damage_what_they_are_said_to(file):
    text = (Path(__file__).parent / file).read_text()
    assert "damaged(" in text
    assert "within_bounds()" in text
    assert all(name in text for name in FUZZED_ELSEWHERE[file])


@pytest.mark.parametrize("name", DECODERS)
def test_what_is_not_damaged_is_a_value(name):
    decoder = DECODERS[name]
    for sample in decoder.samples:
        if name != "option":  # no text is right for every option
            assert decoder.decode(sample) is not None


@pytest.mark.parametrize("name", DECODERS)
@given(data=st.data())
@fuzzed(60)
def test_damaged_bytes_are_our_error_or_a_value_within_bounds(name, data):
    decoder = DECODERS[name]
    sample = data.draw(st.sampled_from(decoder.samples))
    content = data.draw(damaged(sample, decoder.pieces))
    with within_bounds() as cost, contextlib.suppress(*decoder.errors):
        decoder.decode(content)
    assert cost.grown_bytes < MOST_BYTES
    assert cost.cpu_seconds < MOST_CPU_SECONDS
