# SPDX-License-Identifier: Apache-2.0
"""Java's modified UTF-8: ``DataOutput.writeUTF`` writes two bytes of length, then the text."""

from __future__ import annotations

from lakeformat.errors import InvalidRequestError
from lakeformat.files.byte_cursor import ByteCursor

__all__ = ["encode_utf", "read_utf"]

_LONGEST = 0xFFFF
_NUL = b"\xc0\x80"
"""The two bytes for U+0000, so that no byte of a text is zero."""


def encode_utf(text: str) -> bytes:
    """Return length and bytes of a text; a character beyond U+FFFF takes six bytes.

    Raise InvalidRequestError for a text of more than 65,535 bytes.
    """
    units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    single = "".join(map(chr, units))
    content = single.encode("utf-8", "surrogatepass").replace(b"\0", _NUL)
    if len(content) > _LONGEST:
        raise InvalidRequestError(
            f"the name {text[:40]!r}… takes {len(content)} bytes, more than the {_LONGEST} that a "
            "file index can hold: index other columns"
        )
    return len(content).to_bytes(2, "big") + content


def read_utf(cursor: ByteCursor) -> str:
    """Read length and bytes of a text at the cursor, and return the text.

    Raise CorruptTableError for bytes that are not UTF-8.
    """
    content = bytes(cursor.take(cursor.int16() & _LONGEST))
    try:
        single = content.replace(_NUL, b"\0").decode("utf-8", "surrogatepass")
        return single.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError as reason:
        shown = content[:40].decode("utf-8", "replace")
        raise cursor.error(f"the name {shown!r} in it is not UTF-8: {reason}") from None
