# SPDX-License-Identifier: Apache-2.0
"""Puffin files: blobs such as deletion vectors, and a footer of JSON that describes each."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from lakeformat.errors import CorruptTableError, UnsupportedError

__all__ = ["PuffinWriter", "read_blobs"]

_MAGIC = b"PFA1"
_PLAIN_FOOTER = b"\0\0\0\0"
"""The flags of a footer that is not compressed."""
_FOOTER_END = 12
"""The number of bytes after the JSON of the footer: the size of the JSON, the flags and the magic
bytes.
"""
_INHERITED = -1
"""Stands for the snapshot id and sequence number of a blob that is written before its snapshot."""


class _Output(Protocol):
    def write(self, content: bytes, /) -> object: ...


class PuffinWriter:
    """Writes blobs to a stream, one after the other, and then the footer."""

    def __init__(self, stream: _Output) -> None:
        self._stream = stream
        self._blobs: list[dict[str, Any]] = []
        self.size = 0
        """The number of bytes written so far."""
        self._write(_MAGIC)

    def add(
        self,
        kind: str,
        content: bytes,
        *,
        fields: Sequence[int],
        properties: Mapping[str, str],
        snapshot_id: int = _INHERITED,
        sequence_number: int = _INHERITED,
    ) -> int:
        """Write an uncompressed blob; return its offset in the file.

        ``kind`` is the type of the blob. ``fields`` are the ids of the columns that the blob
        describes.
        """
        offset = self.size
        self._write(content)
        self._blobs.append(
            {
                "type": kind,
                "fields": [*fields],
                "snapshot-id": snapshot_id,
                "sequence-number": sequence_number,
                "offset": offset,
                "length": len(content),
                "properties": dict(properties),
            }
        )
        return offset

    def finish(self, properties: Mapping[str, str]) -> int:
        """Write the footer with these properties of the file; return the footer's size in bytes."""
        described = {"blobs": self._blobs, "properties": dict(properties)}
        content = json.dumps(described, separators=(",", ":"), ensure_ascii=False).encode()
        before = self.size
        self._write(_MAGIC + content + struct.pack("<i", len(content)) + _PLAIN_FOOTER + _MAGIC)
        return self.size - before

    def _write(self, content: bytes) -> None:
        self._stream.write(content)
        self.size += len(content)


def read_blobs(content: bytes, uri: str) -> Iterator[tuple[Mapping[str, Any], bytes]]:
    """Yield each blob of a Puffin file: its description in the footer, and its content.

    Raise ``CorruptTableError`` for a damaged file, and ``UnsupportedError`` for compressed blobs or
    a compressed footer.
    """
    for blob in _described(content, uri):
        offset, length = blob.get("offset"), blob.get("length")
        if (
            type(offset) is not int
            or type(length) is not int
            or not 0 <= offset <= offset + length <= len(content)
        ):
            raise _damaged(
                uri,
                f"it describes a blob with offset {offset!r} and length {length!r}, which is not a "
                "range in the file",
            )
        if (codec := blob.get("compression-codec")) is not None:
            raise UnsupportedError(
                f"{uri} has a blob that is compressed with {codec!r}, which this version does not "
                "read: use the engine that wrote it"
            )
        yield blob, content[offset : offset + length]


def _described(content: bytes, uri: str) -> list[Mapping[str, Any]]:
    end = len(content) - _FOOTER_END
    if end < 2 * len(_MAGIC) or not (content.startswith(_MAGIC) and content.endswith(_MAGIC)):
        raise _damaged(uri, "it does not begin and end as a Puffin file")
    if content[end + 4 : end + 8] != _PLAIN_FOOTER:
        raise UnsupportedError(
            f"{uri} has a compressed footer, which this version does not read: use the engine that "
            "wrote it"
        )
    [size] = struct.unpack("<i", content[end : end + 4])
    first = end - size
    if size < 0 or first < 2 * len(_MAGIC) or content[first - len(_MAGIC) : first] != _MAGIC:
        raise _damaged(uri, f"its footer with length {size} does not begin as a Puffin footer")
    try:
        blobs = json.loads(content[first:end])["blobs"]
    except (KeyError, TypeError):
        raise _damaged(uri, "its footer lists no blobs") from None
    except (ValueError, RecursionError) as reason:
        raise _damaged(uri, f"its footer is not JSON: {reason}") from None
    if not isinstance(blobs, list) or not all(isinstance(each, dict) for each in blobs):
        raise _damaged(uri, "its footer lists no blobs")
    return blobs


def _damaged(uri: str, reason: str) -> CorruptTableError:
    return CorruptTableError(
        f"{uri} is not a complete Puffin file: {reason}; restore the file from a backup"
    )
