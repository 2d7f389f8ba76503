# SPDX-License-Identifier: Apache-2.0
"""Reads some fields of all records of a file, and whole records only when they are needed.

Lists in the other fields are skipped, which is several times as fast as reading them.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import IO, Any

import fastavro

from lakeformat.files.avro.avro_container import (
    BlockLimitError,
    NotPlainError,
    read_blocks,
    read_records,
    short_reason,
)
from lakeformat.files.avro.avro_records import record_schema
from lakeformat.paimon.metadata.columnar_file import ORC_MAGIC, PARQUET_MAGIC
from lakeformat.paimon.metadata.record_file import check_version, decode_record_file

__all__ = ["RecordHead", "decode_record_heads"]

_VERSION = "_VERSION"
_FIRST_BYTES = 96
"""The number of first bytes by which a record is looked up among the records decoded before.

In an index manifest these bytes usually include the name of the index file.
"""


@dataclass(frozen=True, slots=True)
class RecordHead:
    """Some fields of a record, and the bytes of the whole record."""

    fields: dict[str, Any]
    raw: bytes | None
    """The bytes of the whole record; None if ``fields`` is the whole record."""
    schema: Any

    def whole(self) -> dict[str, Any]:
        """Return the whole record; raise ``ValueError`` if its bytes are damaged."""
        if self.raw is None:
            return self.fields
        try:
            found: Any = fastavro.schemaless_reader(io.BytesIO(self.raw), self.schema, None)
        except Exception as reason:  # decoders raise errors of many classes for damaged bytes
            raise ValueError(short_reason(reason)) from reason
        whole: dict[str, Any] = found
        return whole


def decode_record_heads(
    content: bytes,
    uri: str,
    *,
    version: int,
    names: Sequence[str],
    known: Iterable[RecordHead] = (),
) -> list[RecordHead]:
    """Return the fields ``names`` of every record of a file, in the order of the records.

    ``known`` are records of a similar file: records with the same bytes are not decoded again.
    Files in ORC and Parquet, and Avro files that lack one of the fields, are read whole. Raise
    ``CorruptTableError`` for a damaged file.
    """
    if not content.startswith((PARQUET_MAGIC, ORC_MAGIC)):
        try:
            return _heads(content, uri, version, tuple(names), known)
        except (BlockLimitError, NotPlainError, ValueError):
            pass  # the general decoder names the damage
    records = decode_record_file(content, uri, version=version)
    return [RecordHead(record, None, None) for record in records]


def _heads(
    content: bytes, uri: str, version: int, names: tuple[str, ...], known: Iterable[RecordHead]
) -> list[RecordHead]:
    blocks = read_blocks(content)
    schema, part = record_schema(blocks.schema), _part_of(blocks.schema, names)
    alike = _by_first_bytes(known, schema)

    def decode(stream: IO[bytes]) -> RecordHead:
        start = stream.tell()
        if (same := _same_record(stream, alike)) is not None:
            return same
        stream.seek(start)
        fields: Any = fastavro.schemaless_reader(stream, schema, part)
        size = stream.tell() - start
        stream.seek(start)
        return RecordHead(fields, stream.read(size), schema)

    heads = list(read_records(blocks, decode))
    for each in heads:
        check_version(each.fields, version, uri)
    return heads


def _by_first_bytes(known: Iterable[RecordHead], schema: Any) -> Mapping[bytes, list[RecordHead]]:
    """Return the records that were read with ``schema``, by their first bytes.

    Records of less than ``_FIRST_BYTES`` bytes are left out: decoding them again costs little.
    """
    found: dict[bytes, list[RecordHead]] = {}
    for each in known:
        if each.raw is not None and len(each.raw) >= _FIRST_BYTES and each.schema is schema:
            found.setdefault(each.raw[:_FIRST_BYTES], []).append(each)
    return found


def _same_record(stream: IO[bytes], alike: Mapping[bytes, list[RecordHead]]) -> RecordHead | None:
    """Return the known record that is next in the stream, and move behind it.

    Return None for a new record; the position of the stream is then undefined.
    """
    start = stream.tell()
    for each in alike.get(stream.read(_FIRST_BYTES), ()) if alike else ():
        assert each.raw is not None
        stream.seek(start)
        if stream.read(len(each.raw)) == each.raw:
            return each
    return None


@lru_cache(maxsize=16)
def _part_of(text: bytes, names: tuple[str, ...]) -> Any:
    """Return the Avro schema ``text`` with only the fields ``names`` and ``_VERSION``.

    Raise ``ValueError`` if one of these fields is missing.
    """
    schema = json.loads(text)
    kept = [field for field in schema["fields"] if field["name"] in (_VERSION, *names)]
    if len(kept) != len(names) + 1:
        raise ValueError("a field is missing")
    return fastavro.parse_schema({**schema, "fields": kept})
