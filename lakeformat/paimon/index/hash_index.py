# SPDX-License-Identifier: Apache-2.0
"""Hash index files: the hashes of all keys in one bucket of a dynamic-bucket table.

The file is a plain sequence of big-endian int32; each hash occurs once, in any order. To add a
hash, a writer writes a new file with all hashes.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from lakeformat.errors import CorruptTableError, InvalidRequestError, NotFoundError
from lakeformat.paimon.index.damage import missing_file
from lakeformat.storage import Storage
from lakeformat.storage.base import SMALL_FILE
from lakeformat.types.count_text import counted

__all__ = [
    "decode_hash_index",
    "encode_hash_index",
    "names_digest",
    "read_hash_index",
    "write_hash_index",
]

_HASH_BYTES = 4
_WRITE_ANEW = (
    "overwrite the partition with its own rows, or the whole table if it has no partitions: that "
    "creates a new index"
)


def encode_hash_index(hashes: npt.NDArray[np.int32]) -> bytes:
    """Return the content of a hash index file; raise InvalidRequestError if a hash appears
    twice.
    """
    if hashes.dtype != np.int32 or hashes.ndim != 1:
        raise InvalidRequestError(
            f"hashes must be a 1-d array of int32, got {hashes.ndim}-d {hashes.dtype}"
        )
    in_order = np.sort(hashes)  # numpy's unique takes many times as long
    distinct = len(hashes) - int((in_order[1:] == in_order[:-1]).sum())
    if distinct < len(hashes):
        raise InvalidRequestError(
            f"{len(hashes)} hashes have {distinct} distinct values; a hash index has each hash once"
        )
    return hashes.astype(">i4").tobytes()


def decode_hash_index(content: bytes, source: str, *, count: int) -> npt.NDArray[np.int32]:
    """Return the hashes in the order of the file; ``count`` is the row count in the manifest entry.

    Raise CorruptTableError if the content has another number of hashes.
    """
    if len(content) != _HASH_BYTES * count:
        raise CorruptTableError(
            f"{source} has {counted(len(content), 'byte')}, but its manifest entry has "
            f"{counted(count, 'hash', 'hashes')} ({_HASH_BYTES * count:,} bytes); {_WRITE_ANEW}"
        )
    return np.frombuffer(content, ">i4").astype(np.int32)


def write_hash_index(storage: Storage, path: str, hashes: npt.NDArray[np.int32]) -> int:
    """Write a hash index file to ``path``, which must be new; return its size in bytes.

    Raise InvalidRequestError if a hash appears twice.
    """
    content = encode_hash_index(hashes)
    with storage.open_output(path) as stream:
        stream.write(content)
    return len(content)


def read_hash_index(storage: Storage, path: str, *, count: int) -> npt.NDArray[np.int32]:
    """Return the hashes of one file; ``count`` is the row count in the index manifest entry.

    Raise CorruptTableError if the file is missing or has another number of hashes.
    """
    uri = storage.uri(path)
    try:
        content = storage.read(path, max(count * _HASH_BYTES, SMALL_FILE))
    except NotFoundError:
        raise missing_file(uri, "an index manifest", _WRITE_ANEW) from None
    return decode_hash_index(content, uri, count=count)


def names_digest(names: Iterable[str]) -> str:
    """Return a digest (32 hex digits) of the names of a partition's index files.

    Index files never change, so equal digests mean equal content.
    """
    return sha256("\n".join(sorted(names)).encode()).hexdigest()[:32]
