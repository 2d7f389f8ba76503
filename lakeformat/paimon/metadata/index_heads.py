# SPDX-License-Identifier: Apache-2.0
"""The index files of a snapshot by partition, bucket and name, without their deletion vectors.

An index file may have many deletion vectors, one for each data file with deleted rows. Their list
is decoded only on request.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.index_manifest import (
    FORMAT_VERSION,
    IndexManifestEntry,
    index_entry_from_record,
)
from lakeformat.paimon.metadata.manifest import read_manifest_bytes
from lakeformat.paimon.metadata.record_file import fault_of
from lakeformat.paimon.metadata.record_heads import RecordHead, decode_record_heads
from lakeformat.storage import Storage

__all__ = ["IndexHead", "read_index_heads"]

_NAMES = ("_PARTITION", "_BUCKET", "_INDEX_TYPE", "_FILE_NAME")
_TYPES = (bytes, int, str, str)


@dataclass(frozen=True, slots=True)
class IndexHead:
    """One index file of one bucket, whose list of deletion vectors is not decoded yet."""

    partition: bytes
    bucket: int
    index_type: str
    file_name: str
    record: RecordHead
    source: str
    """The URI of the index manifest, for errors."""

    def entry(self) -> IndexManifestEntry:
        """Return the whole entry; raise CorruptTableError if it is damaged."""
        try:
            return index_entry_from_record(self.record.whole())
        except (KeyError, TypeError, ValueError) as reason:
            raise _damaged(self.source, reason) from None


def read_index_heads(
    storage: Storage, layout: TableLayout, name: str, known: Iterable[IndexHead] = ()
) -> list[IndexHead]:
    """Return the index files that the index manifest ``name`` lists, in the order of its list.

    ``known`` are index files of another index manifest: records with the same bytes are not decoded
    again. Raise CorruptTableError if the index manifest is missing or damaged.
    """
    content, uri = read_manifest_bytes(storage, layout, name)
    heads = decode_record_heads(
        content,
        uri,
        version=FORMAT_VERSION,
        names=_NAMES,
        known=(each.record for each in known),
    )
    try:
        return [_head(each, uri) for each in heads]
    except (KeyError, TypeError) as reason:
        raise _damaged(uri, reason) from None


def _head(record: RecordHead, uri: str) -> IndexHead:
    partition, bucket, kind, name = (record.fields[each] for each in _NAMES)
    for value, expected in zip((partition, bucket, kind, name), _TYPES, strict=True):
        if type(value) is not expected:
            raise TypeError(f"{value!r} is not of type {expected.__name__}")
    return IndexHead(partition, bucket, kind, name, record, uri)


def _damaged(uri: str, reason: Exception) -> CorruptTableError:
    return CorruptTableError(
        f"{uri} is not an index manifest: {fault_of(reason)}; "
        "restore the file from a backup or roll the table back to an earlier snapshot"
    )
