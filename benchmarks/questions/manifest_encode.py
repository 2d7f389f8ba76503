"""Encodes a manifest of a primary-key table, compressed as by default."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro

from benchmarks.question import Question
from benchmarks.sample_manifest import sample_entries
from lakeformat.paimon.metadata.manifest import encode_columns
from lakeformat.paimon.metadata.manifest_columns import columns_of, decode_manifest
from lakeformat.paimon.metadata.manifest_columns.encode import entry_record
from lakeformat.paimon.metadata.manifest_columns.schema import MANIFEST_SCHEMA
from lakeformat.paimon.metadata.record_file import encode_record_file
from lakeformat.paimon.options import TableOptions

__all__ = ["QUESTION"]


def by_record(content: bytes, _: Path) -> Callable[[], bytes]:
    """Return a function that encodes existing dicts with fastavro."""
    records = list(fastavro.reader(io.BytesIO(content)))
    schema = fastavro.parse_schema(MANIFEST_SCHEMA)

    def work() -> bytes:
        buffer = io.BytesIO()
        fastavro.writer(buffer, schema, records, codec="zstandard", codec_compression_level=1)
        return buffer.getvalue()

    return work


def by_column(content: bytes, _: Path) -> Callable[[], bytes]:
    """Return a function that encodes existing columns, as a merge of manifests has them."""
    columns = decode_manifest(content, "sample")
    return lambda: encode_columns(columns, TableOptions())


def by_entry(content: bytes, _: Path) -> Callable[[], bytes]:
    """Return a function that encodes existing entries, as a commit has them."""
    entries = decode_manifest(content, "sample").entries()
    return lambda: encode_columns(columns_of(entries), TableOptions())


def _records(content: bytes) -> list[Any]:
    return list(fastavro.reader(io.BytesIO(content)))


def _write(folder: Path, count: int) -> None:
    entries = sample_entries(count, is_keyed=True)
    content = encode_record_file(MANIFEST_SCHEMA, map(entry_record, entries), TableOptions())
    (folder / "manifest").write_bytes(content)


QUESTION: Question[bytes, bytes] = Question(
    sentence="How much faster than fastavro are manifests encoded?",
    rows=100_000,
    make_data=_write,
    open_data=lambda folder: (folder / "manifest").read_bytes(),
    candidates={"fastavro": by_record, "columns": by_column, "entries": by_entry},
    baseline="fastavro",
    answer=_records,
    targets={"columns": 4.5},
)
