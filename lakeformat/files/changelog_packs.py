# SPDX-License-Identifier: Apache-2.0
"""Names of packed changelog files, each of which holds the changelogs of many buckets.

Flink's ``precommit-compact`` writes them. ``compacted-changelog-<id>$<bucket>-<size>.cc-<format>``
is a file in the directory of that bucket; its first ``<size>`` bytes belong to the bucket. A name
with ``-<start>-<length>`` before the ending is not a file: it means ``<length>`` bytes of that
file, from ``<start>`` on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = [
    "PACK_FORMAT",
    "PACK_PREFIX",
    "PackedPart",
    "is_packed",
    "packed_address",
    "packed_part",
    "real_name",
]

PACK_FORMAT = "cc-"
"""The beginning of the format in the name of a packed file."""
PACK_PREFIX = "compacted-changelog-"
_PREFIX_BYTES = PACK_PREFIX.encode()
_NUMBER = r"(\d{1,18})"
_NAME = re.compile(
    rf"({PACK_PREFIX}[^$./]+)\${_NUMBER}-{_NUMBER}(?:-{_NUMBER}-{_NUMBER})?\.({PACK_FORMAT}[a-z]+)"
)


@dataclass(frozen=True, slots=True)
class PackedPart:
    """The part of a packed file that belongs to one bucket: a range of bytes."""

    file_name: str
    bucket: int
    """The bucket whose directory contains the file; the partition is the one of the manifest entry.
    """
    start: int
    size: int

    @property
    def end(self) -> int:
        """The end of the range: the file has at least as many bytes."""
        return self.start + self.size


def is_packed(name: bytes) -> bool:
    """Return True if a name in a manifest begins like the name of a packed file."""
    return name.startswith(_PREFIX_BYTES)


def packed_part(name: str) -> PackedPart | None:
    """Return the byte range that a name means; None if it is not the name of a packed file."""
    if not name.startswith(PACK_PREFIX) or (found := _NAME.fullmatch(name)) is None:
        return None
    pack, bucket, size, start, length, ending = found.groups()
    file_name = f"{pack}${bucket}-{size}.{ending}"
    if start is None:
        return PackedPart(file_name, int(bucket), 0, int(size))
    return PackedPart(file_name, int(bucket), int(start), int(length))


def packed_address(address: str) -> str:
    """Return the address of the file that contains the bytes that an address means."""
    directory, _, name = address.rpartition("/")
    part = packed_part(name)
    if part is None or part.file_name == name:
        return address
    return f"{directory.rpartition('/')[0]}/bucket-{part.bucket}/{part.file_name}"


def real_name(name: bytes) -> bytes:
    """Return the name of the file that contains the bytes that a name in a manifest means."""
    if not is_packed(name):
        return name
    part = packed_part(name.decode(errors="surrogateescape"))
    return name if part is None else part.file_name.encode()
