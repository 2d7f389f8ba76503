# SPDX-License-Identifier: Apache-2.0
"""The end of a Parquet file: its footer, the length of the footer, and the magic bytes."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["END_BYTES", "MAGIC", "footer_length", "footer_of", "with_end"]

MAGIC = b"PAR1"
_LENGTH_BYTES = 4
END_BYTES = _LENGTH_BYTES + len(MAGIC)
"""The number of bytes after the footer: its length and the magic bytes."""


def footer_length(end: bytes) -> int:
    """Return the length of the footer in bytes, from the last ``END_BYTES`` of a file or more."""
    return int.from_bytes(end[-END_BYTES : -len(MAGIC)], "little")


def footer_of(content: bytes | pa.Buffer) -> bytes:
    """Return the footer of a Parquet file.

    ``content`` is the whole file, or its last bytes if they include the whole footer.
    """
    view = memoryview(content)
    length = footer_length(bytes(view[-END_BYTES:]))
    return bytes(view[-END_BYTES - length : -END_BYTES])


def with_end(footer: bytes) -> bytes:
    """Return the end of a file: this footer, its length and the magic bytes."""
    return footer + len(footer).to_bytes(_LENGTH_BYTES, "little") + MAGIC
