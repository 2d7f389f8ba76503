# SPDX-License-Identifier: Apache-2.0
"""The names of packed changelog files, each of which has the changelogs of many buckets.

Flink's ``precommit-compact`` writes packed files. Their names have the form
``compacted-changelog-<id>$<bucket>-<size>.cc-<format>``. The file is in the directory of bucket
``<bucket>``, and its first ``<size>`` bytes belong to this bucket.

For each other bucket, a manifest lists a name of the form
``compacted-changelog-<id>$<bucket>-<size>-<start>-<length>.cc-<format>``. No file has this name. It
means ``<length>`` bytes of the packed file, from offset ``<start>`` on. ``<bucket>`` and ``<size>``
are the numbers in the name of the packed file.
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
"""The prefix of the format in the name of a packed file, as in ``cc-parquet``."""
PACK_PREFIX = "compacted-changelog-"
_PREFIX_BYTES = PACK_PREFIX.encode()
_NUMBER = r"(\d{1,18})"
_NAME = re.compile(
    rf"({PACK_PREFIX}[^$./]+)\${_NUMBER}-{_NUMBER}(?:-{_NUMBER}-{_NUMBER})?\.({PACK_FORMAT}[a-z]+)"
)


@dataclass(frozen=True, slots=True)
class PackedPart:
    """The bytes of a packed file that belong to one bucket."""

    file_name: str
    bucket: int
    """The bucket whose directory has the packed file; the bytes may belong to another bucket."""
    start: int
    size: int

    @property
    def end(self) -> int:
        """The offset after the last byte; the packed file may be longer."""
        return self.start + self.size


def is_packed(name: bytes) -> bool:
    """Return True if a file name in a manifest has the prefix of packed files."""
    return name.startswith(_PREFIX_BYTES)


def packed_part(name: str) -> PackedPart | None:
    """Return the part of a packed file that ``name`` stands for; None for any other name."""
    if not name.startswith(PACK_PREFIX) or (found := _NAME.fullmatch(name)) is None:
        return None
    pack, bucket, size, start, length, ending = found.groups()
    file_name = f"{pack}${bucket}-{size}.{ending}"
    if start is None:
        return PackedPart(file_name, int(bucket), 0, int(size))
    return PackedPart(file_name, int(bucket), int(start), int(length))


def packed_address(address: str) -> str:
    """Return the address of the packed file that contains the part ``address``; any other address
    is returned unchanged.
    """
    directory, _, name = address.rpartition("/")
    part = packed_part(name)
    if part is None or part.file_name == name:
        return address
    return f"{directory.rpartition('/')[0]}/bucket-{part.bucket}/{part.file_name}"


def real_name(name: bytes) -> bytes:
    """Return the name of the packed file that contains the part ``name``; any other name is
    returned unchanged.
    """
    if not is_packed(name):
        return name
    part = packed_part(name.decode(errors="surrogateescape"))
    return name if part is None else part.file_name.encode()
