# SPDX-License-Identifier: Apache-2.0
"""Pages of a Parquet file, with compression and checksums; their bytes are the same as Arrow's."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from lakeformat.files import codecs
from lakeformat.files.file_format import FileFormat
from lakeformat.files.file_writer import FileSettings
from lakeformat.files.parquet.thrift_compact import StructWriter

__all__ = [
    "CODECS",
    "PAGE_ROWS",
    "Content",
    "Encoding",
    "PageCodec",
    "PageKind",
    "Pages",
    "PhysicalType",
]

CODECS = {"none": 0, "snappy": 1, "gzip": 2, "brotli": 4, "zstd": 6}
"""The number of each codec in the format. ``pa.Codec`` compresses to the same bytes as Arrow's
writer.
"""
PAGE_ROWS = 20_000
"""The largest number of rows in a page of Arrow; values of up to eight bytes never fill a page
earlier.
"""

Content: TypeAlias = "bytes | pa.Buffer"


class PageKind:
    """The numbers of the kinds of pages in the format."""

    DATA, DICTIONARY = 0, 2


class Encoding:
    """The numbers of the encodings in the format."""

    PLAIN, RLE, RLE_DICTIONARY = 0, 3, 8


class PhysicalType:
    """The numbers of the physical types that this package can encode."""

    INT32, INT64, FLOAT, DOUBLE, BYTE_ARRAY = 1, 2, 4, 5, 6


# Member numbers of a page's header,
_KIND, _RAW_SIZE, _SIZE, _CHECKSUM, _VALUES, _DICTIONARY = 1, 2, 3, 4, 5, 7
# of the headers of both kinds of pages, of values and of a dictionary.
_COUNT, _ENCODING = 1, 2
_NULLS_BY, _REPEATS_BY, _STATISTICS = 3, 4, 5
_IS_SORTED = 3
_SIGN = 1 << 31


@dataclass(frozen=True, slots=True)
class PageCodec:
    """The compression of the pages of a file."""

    number: int
    codec: pa.Codec | None

    @classmethod
    def of(cls, settings: FileSettings) -> PageCodec | None:
        """Return the codec of these settings; None if this package cannot compress with it."""
        name = codecs.CODECS[FileFormat.PARQUET][settings.compression]
        if name not in CODECS:
            return None
        level = settings.zstd_level if name == "zstd" else None
        return cls(CODECS[name], None if name == "none" else pa.Codec(name, level))

    def compress(self, content: Content) -> Content:
        return content if self.codec is None else self.codec.compress(content)


class Pages:
    """The pages of one column in one row group."""

    def __init__(self, codec: PageCodec) -> None:
        self.codec = codec
        self.parts: list[Content] = []
        """The header and the content of each page, one after the other."""
        self.raw_size = self.size = 0
        self.dictionary_size = 0
        """The size of the dictionary page in bytes: the offset of the first page with values."""
        self.count = 0
        """The number of pages with values."""

    def add_dictionary(self, content: bytes, values: int) -> None:
        """Add the dictionary page, which must be first; ``values`` is the number of its values."""
        about = StructWriter()
        about.i32(_COUNT, values)
        about.i32(_ENCODING, Encoding.PLAIN)
        about.flag(_IS_SORTED, value=False)
        self._add(PageKind.DICTIONARY, content, _DICTIONARY, about)
        self.dictionary_size = self.size

    def add_values(self, content: Content, rows: int, encoding: int, statistics: bytes) -> None:
        """Add a page with the values of the next rows.

        ``rows`` is their number; ``statistics`` must be serialised already.
        """
        about = StructWriter()
        about.i32(_COUNT, rows)
        about.i32(_ENCODING, encoding)
        about.i32(_NULLS_BY, Encoding.RLE)
        about.i32(_REPEATS_BY, Encoding.RLE)
        about.struct(_STATISTICS, statistics)
        self._add(PageKind.DATA, content, _VALUES, about)
        self.count += 1

    def _add(self, kind: int, content: Content, member: int, about: StructWriter) -> None:
        stored = self.codec.compress(content)
        raw_size, size = len(content), len(stored)
        header = StructWriter()
        header.i32(_KIND, kind)
        header.i32(_RAW_SIZE, raw_size)
        header.i32(_SIZE, size)
        header.i32(_CHECKSUM, (zlib.crc32(stored) ^ _SIGN) - _SIGN)
        header.struct(member, about.close())
        head = header.close()
        self.parts += [head, stored]
        self.raw_size += len(head) + raw_size
        self.size += len(head) + size
