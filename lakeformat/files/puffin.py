# SPDX-License-Identifier: Apache-2.0
"""Puffin files: blobs such as deletion vectors, and a footer of JSON that describes each."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

__all__ = ["PuffinWriter"]

_MAGIC = b"PFA1"
_PLAIN_FOOTER = b"\0\0\0\0"
"""The flags of a footer that is not compressed."""
_INHERITED = -1
"""Stands for the snapshot and sequence number of a blob that is written before its snapshot exists.
"""


class _Output(Protocol):
    def write(self, content: bytes, /) -> object: ...


class PuffinWriter:
    """Writes blobs one after the other to a stream, and then the footer."""

    def __init__(self, stream: _Output) -> None:
        self._stream = stream
        self._blobs: list[dict[str, Any]] = []
        self.size = 0
        """The bytes written so far."""
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
        """Write an uncompressed blob about the columns with these ids; return its offset."""
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
        """Write the footer with the properties of the file; return the size of the footer."""
        described = {"blobs": self._blobs, "properties": dict(properties)}
        content = json.dumps(described, separators=(",", ":"), ensure_ascii=False).encode()
        before = self.size
        self._write(_MAGIC + content + struct.pack("<i", len(content)) + _PLAIN_FOOTER + _MAGIC)
        return self.size - before

    def _write(self, content: bytes) -> None:
        self._stream.write(content)
        self.size += len(content)
