# SPDX-License-Identifier: Apache-2.0
"""Index files of deletion vectors: the deleted rows of each data file.

The file has one byte of version, then a record per data file. The index manifest entry has offset
and length of each record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import IO

from lakeformat.errors import CorruptTableError, InvalidRequestError, NotFoundError
from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.files.vector_record import (
    FRAME_BYTES,
    DeletionVectorRange,
    VectorForm,
    decode_deletion_vector,
    encode_deletion_vector,
)
from lakeformat.paimon.index.damage import RESTORE, missing_file
from lakeformat.storage import Storage
from lakeformat.types.count_text import counted

__all__ = ["encode_deletion_vectors", "read_deletion_vectors"]

FILE_VERSION = 1
_LARGEST_INT32 = 2**31 - 1


def encode_deletion_vectors(
    vectors: Mapping[str, DeletionVector], form: VectorForm
) -> tuple[bytes, tuple[DeletionVectorRange, ...]]:
    """Return the content of one index file, and the range of each vector in it.

    ``vectors`` are by data file name. Raise InvalidRequestError if the file would exceed 2 GiB.
    """
    parts = [bytes([FILE_VERSION])]
    ranges = []
    offset = len(parts[0])
    for data_file_name, vector in vectors.items():
        record, length = encode_deletion_vector(vector, form)
        if offset + len(record) > _LARGEST_INT32:
            raise InvalidRequestError(
                f"the deletion vectors of {counted(len(vectors), 'data file')} do not fit into one "
                "index file of 2 GiB; write the vectors of fewer data files into it"
            )
        parts.append(record)
        ranges.append(DeletionVectorRange(data_file_name, offset, length, vector.cardinality))
        offset += len(record)
    return b"".join(parts), tuple(ranges)


def read_deletion_vectors(
    storage: Storage, path: str, ranges: Iterable[DeletionVectorRange]
) -> dict[str, DeletionVector]:
    """Return the deletion vectors at ``ranges`` of one index file, by data file name.

    Raise CorruptTableError if the file is missing or damaged.
    """
    uri = storage.uri(path)
    try:
        stream = storage.open_input(path)
    except NotFoundError:
        raise missing_file(uri, "an index manifest") from None
    with stream:
        size = stream.seek(0, 2)
        return {
            found.data_file_name: decode_deletion_vector(
                _read_record(stream, found, size, uri), found, uri, remedy=RESTORE
            )
            for found in sorted(ranges, key=lambda found: found.offset)
        }


def _read_record(stream: IO[bytes], found: DeletionVectorRange, size: int, uri: str) -> bytes:
    """Return the record of a vector, and maybe some bytes of the next record after it.

    More bytes than the range are read, because the range of a 32-bit vector omits 8 bytes of its
    record. Raise CorruptTableError if the range is outside of the file.
    """
    if found.offset < 1 or found.length < 0 or found.offset + found.length > size:
        raise CorruptTableError(
            f"{uri} has {size} bytes, but the deletion vector of {found.data_file_name} should "
            f"take {found.length} bytes from byte {found.offset} on; {RESTORE}"
        )
    stream.seek(found.offset)
    return stream.read(min(found.length + FRAME_BYTES, size - found.offset))
