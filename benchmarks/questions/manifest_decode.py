"""Decodes a manifest of a primary-key table."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import fastavro

from benchmarks.question import Question
from benchmarks.sample_manifest import sample_entries
from lakeformat.paimon.metadata.manifest import encode_columns
from lakeformat.paimon.metadata.manifest_columns import ManifestColumns, columns_of, decode_manifest
from lakeformat.paimon.metadata.manifest_columns.encode import entry_record
from lakeformat.paimon.metadata.manifest_columns.read import decode_manifest_by_record
from lakeformat.paimon.metadata.manifest_columns.schema import MANIFEST_SCHEMA
from lakeformat.paimon.metadata.record_file import encode_record_file
from lakeformat.paimon.options import TableOptions

__all__ = ["QUESTION"]

Decoded = Callable[[], bytes]
"""Encodes decoded entries again, outside the measured time, to compare the answers."""


def by_record(content: bytes, _: Path) -> Callable[[], Decoded]:
    """Return a function that decodes with fastavro: a dict for each entry."""

    def work() -> Decoded:
        records = list(fastavro.reader(io.BytesIO(content)))
        assert records
        return lambda: _encoded(columns_of(decode_manifest_by_record(content, "sample")))

    return work


def by_column(content: bytes, _: Path) -> Callable[[], Decoded]:
    """Return a function that decodes to the columns that planning uses."""

    def work() -> Decoded:
        columns = decode_manifest(content, "sample")
        return lambda: _encoded(columns)

    return work


def _encoded(columns: ManifestColumns) -> bytes:
    """Return the encoded entries without the random bytes after the header and each block."""
    content = encode_columns(columns, TableOptions({"manifest.compression": "null"}))
    return content.replace(content[-16:], b"")


def _write(folder: Path, count: int) -> None:
    entries = sample_entries(count, is_keyed=True)
    content = encode_record_file(MANIFEST_SCHEMA, map(entry_record, entries), TableOptions())
    (folder / "manifest").write_bytes(content)


QUESTION: Question[bytes, Decoded] = Question(
    sentence="How much faster than fastavro are manifests decoded?",
    rows=100_000,
    make_data=_write,
    open_data=lambda folder: (folder / "manifest").read_bytes(),
    candidates={"fastavro": by_record, "columns": by_column},
    baseline="fastavro",
    answer=lambda decoded: decoded(),
    targets={"columns": 7.0},
)
