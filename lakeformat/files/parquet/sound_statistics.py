# SPDX-License-Identifier: Apache-2.0
"""Statistics of the column chunks whose bounds in a Parquet footer are complete.

pyarrow does not catch C++ exceptions when it decodes the bounds of a chunk, so a bound that is
shorter than its type would end the process. This module lets Arrow serialise the footer again, and
checks the lengths of all bounds in the result before pyarrow decodes one.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cached_property
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from lakeformat.files.parquet.end import END_BYTES, MAGIC, footer_length, footer_of
from lakeformat.files.parquet.thrift_walk import (
    binary_lengths,
    find_member,
    list_at,
    skip_struct,
)
from lakeformat.types.count_text import counted

__all__ = ["SoundStatistics", "read_footer"]

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}
"""The size of a bound in bytes, by physical type. Texts may have any length, and pyarrow does not
decode bounds of INT96.
"""
_CUT_BY_WRITERS = "FIXED_LEN_BYTE_ARRAY"
_ROW_GROUPS, _CHUNKS, _META_DATA, _STATISTICS = 4, 1, 3, 12
"""The numbers of the members that lead from a footer to the statistics of a chunk."""
_ENCRYPTION = 8
_PAIRS = ((1, 2), (5, 6))
"""The numbers of the members with the two bounds, in the old and the new form. A form with
only one of its bounds is not checked.
"""
_TAIL = 64 * 1024


class SoundStatistics:
    """The statistics of all column chunks of one footer.

    The first call of ``of`` for a column of a fixed width checks the footer. It raises ``OSError``
    if the footer is cut off, or if a bound is shorter than its type. Only the bounds of
    FIXED_LEN_BYTE_ARRAY may be shorter, because writers cut them.
    """

    def __init__(self, metadata: pq.FileMetaData, stored: bytes) -> None:
        self.metadata = metadata
        self._stored = stored
        leaves = [metadata.schema.column(number) for number in range(len(metadata.schema))]
        self._kinds = [leaf.physical_type for leaf in leaves]
        self._widths = [
            leaf.length if leaf.physical_type == _CUT_BY_WRITERS else _WIDTHS.get(kind, 0)
            for leaf, kind in zip(leaves, self._kinds, strict=True)
        ]

    def of(self, group: int, leaf: int) -> pq.Statistics | None:
        """Return the statistics of column ``leaf`` in row group ``group``.

        Return None if there are none, or if a bound is incomplete.
        """
        if self._widths[leaf] and (group, leaf) in self._cut:
            return None
        return self.metadata.row_group(group).column(leaf).statistics

    def require(self) -> None:
        """Check the footer now, as the first call of ``of`` does. Raise the same ``OSError``."""
        if any(self._widths):
            _ = self._cut

    @cached_property
    def _cut(self) -> frozenset[tuple[int, int]]:
        """The row group and column numbers of each chunk with a bound shorter than its type.

        If the footer is encrypted, these are the numbers of all chunks. Raise ``OSError`` if the
        footer is cut off, or if a short bound is not of the type FIXED_LEN_BYTE_ARRAY.
        """
        try:
            return frozenset(self._found_cut())
        except IndexError:
            raise OSError("its footer ends inside a value") from None

    def _found_cut(self) -> Iterator[tuple[int, int]]:
        leaves, groups = len(self._widths), self.metadata.num_row_groups
        if (
            self._is_encrypted()
        ):  # Arrow cannot serialise such a footer without the key, and raises nothing
            yield from ((group, leaf) for group in range(groups) for leaf in range(leaves))
            return
        for group, chunks in enumerate(_bound_lengths(self.metadata)):
            for leaf, lengths in enumerate(chunks):
                width = self._widths[leaf]
                for pair in _PAIRS:
                    ends = [lengths[member] for member in pair if member in lengths]
                    if len(ends) < len(pair) or min(ends) >= width:
                        continue
                    if self._kinds[leaf] != _CUT_BY_WRITERS:
                        raise OSError(
                            f"its footer has a bound of {counted(min(ends), 'byte')} for column "
                            f"{leaf} in row group {group}, but the type {self._kinds[leaf]} has "
                            f"{width}"
                        )
                    yield group, leaf

    def _is_encrypted(self) -> bool:
        return find_member(self._stored, 0, _ENCRYPTION)[1]


def read_footer(stream: IO[bytes]) -> tuple[pq.FileMetaData, bytes]:
    """Return the metadata of a Parquet file, and the bytes of its footer."""
    size = stream.seek(0, io.SEEK_END)
    stream.seek(max(size - _TAIL, 0))
    tail = stream.read(_TAIL)
    length = footer_length(tail) + END_BYTES
    if len(tail) < length <= size:
        stream.seek(size - length)
        tail = stream.read(length)
    metadata = pq.read_metadata(io.BytesIO(MAGIC + tail))
    return metadata, footer_of(tail)


def _bound_lengths(metadata: pq.FileMetaData) -> Iterator[list[dict[int, int]]]:
    """Yield, for each row group, a list with one dict for each column chunk.

    The dict maps the Thrift number of each binary member of the statistics, such as a bound, to its
    length in bytes. It is empty for a chunk without statistics.
    """
    sink = pa.BufferOutputStream()
    metadata.write_metadata_file(sink)
    content = sink.getvalue().to_pybytes()
    place, _ = find_member(content, len(MAGIC), _ROW_GROUPS)
    groups, place = list_at(content, place)
    for _ in range(groups):
        place, _ = find_member(content, place, _CHUNKS)
        chunks, place = list_at(content, place)
        lengths = []
        for _ in range(chunks):
            known: dict[int, int] = {}
            place, has_meta_data = find_member(content, place, _META_DATA)
            if has_meta_data:
                place, has_statistics = find_member(content, place, _STATISTICS)
                if has_statistics:
                    known, place = binary_lengths(content, place)
                place = skip_struct(content, place)
            place = skip_struct(content, place)
            lengths.append(known)
        yield lengths
        place = skip_struct(content, place)
