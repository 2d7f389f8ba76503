"""The frame rows have in manifests: their arity, then their bytes. Hashing takes no frame."""

from __future__ import annotations

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.binary_row.layout import FRAME_SIZE, fixed_size

__all__ = ["frame_row", "unframe_row"]


def frame_row(row: bytes, arity: int) -> bytes:
    """Put the arity before a row."""
    return arity.to_bytes(FRAME_SIZE, "big") + row


def unframe_row(framed: bytes) -> tuple[int, bytes]:
    """The arity, and the row that has room for that many fields."""
    arity = int.from_bytes(framed[:FRAME_SIZE], "big", signed=True)
    row = framed[FRAME_SIZE:]
    if len(framed) < FRAME_SIZE or arity < 0 or len(row) < fixed_size(arity):
        raise CorruptTableError(
            f"{len(framed)} bytes are not a framed binary row of {arity} fields; "
            "restore the file they come from, or roll the table back to an earlier snapshot"
        )
    return arity, bytes(row)
