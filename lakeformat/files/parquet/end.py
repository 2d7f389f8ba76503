"""The end of a Parquet file: its footer, how long that is, and the mark of the format."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["END_BYTES", "MAGIC", "footer_length", "footer_of", "with_end"]

MAGIC = b"PAR1"
_LENGTH_BYTES = 4
END_BYTES = _LENGTH_BYTES + len(MAGIC)
"""What follows the footer."""


def footer_length(end: bytes) -> int:
    """What the last bytes of a file say of the footer before them."""
    return int.from_bytes(end[-END_BYTES : -len(MAGIC)], "little")


def footer_of(content: bytes | pa.Buffer) -> bytes:
    """The footer of a whole file, or of the end of one with all of it."""
    view = memoryview(content)
    length = footer_length(bytes(view[-END_BYTES:]))
    return bytes(view[-END_BYTES - length : -END_BYTES])


def with_end(footer: bytes) -> bytes:
    """A footer and what follows it: all that comes after the pages."""
    return footer + len(footer).to_bytes(_LENGTH_BYTES, "little") + MAGIC
