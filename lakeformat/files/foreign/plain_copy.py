# SPDX-License-Identifier: Apache-2.0
"""Copies files to this machine, decompressed and in UTF-8, if Arrow cannot read them directly.

Text is checked before it is parsed, so it is read more than once; a stream could be read only once.
"""

from __future__ import annotations

import codecs
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import IO, Any, TypeAlias

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.files.foreign.dialect import SourceFormat, TextDialect, unpacked_name

__all__ = ["Opener", "plain_copy"]

Opener: TypeAlias = Callable[[str], AbstractContextManager[Any]]
"""A function that opens a file in another storage; its argument is the path."""
_CHUNK_BYTES = 4 << 20


@contextmanager
def plain_copy(
    path: str, source_format: SourceFormat, dialect: TextDialect, opener: Opener | None = None
) -> Iterator[str]:
    """Yield the path of a local copy of a file, decompressed and, if it is text, in UTF-8.

    If no copy is needed, this is ``path`` itself. A copy is deleted when the with block ends;
    errors name ``path``. ``opener`` opens the file; ``opener=None`` opens a file on this machine.
    Raise ``InvalidRequestError`` if the content does not have the compression or the encoding of
    ``dialect``.
    """
    dialect.require_fits(path, source_format)
    compression = dialect.compression_of(path)
    encoding = None if dialect.is_utf_8 or source_format == "parquet" else dialect.encoding
    if opener is None and compression == "none" and encoding is None:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="lake-source-") as folder:
        local = os.path.join(folder, os.path.basename(unpacked_name(path)))
        with (_open if opener is None else opener)(path) as packed, open(local, "wb") as file:
            for chunk in _decoded(_chunks(packed, compression, path), encoding, path):
                file.write(chunk)
        try:
            yield local
        except InvalidRequestError as reason:
            raise InvalidRequestError(str(reason).replace(local, path)) from None


def _open(path: str) -> IO[bytes]:
    return open(path, "rb")


def _chunks(packed: Any, compression: str, path: str) -> Iterator[bytes]:
    content = packed
    if compression != "none":
        content = pa.CompressedInputStream(pa.PythonFile(packed, mode="r"), compression)
    while True:
        try:
            chunk = content.read(_CHUNK_BYTES)
        except OSError as reason:
            if compression == "none" or reason.errno is not None:
                raise
            raise InvalidRequestError(
                f"cannot read {path}: it is a damaged {compression} file, or ends too early "
                f"({reason}): copy it again, or set compression to the right one, such as none"
            ) from None
        if not chunk:
            return
        yield chunk


def _decoded(chunks: Iterator[bytes], encoding: str | None, path: str) -> Iterator[bytes]:
    if encoding is None:
        yield from chunks
        return
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for chunk in chunks:
            yield decoder.decode(chunk).encode()
        yield decoder.decode(b"", final=True).encode()
    except UnicodeError as reason:
        raise InvalidRequestError(
            f"cannot read {path}: it is not {encoding} ({reason}): set encoding to that of the file"
        ) from None
