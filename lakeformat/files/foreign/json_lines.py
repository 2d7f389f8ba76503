# SPDX-License-Identifier: Apache-2.0
"""Reads a file of JSON lines, one object in each line, in blocks of whole lines."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from lakeformat.errors import InvalidRequestError

__all__ = ["BYTE_ORDER_MARK", "object_blocks", "require_objects"]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLOCK_BYTES = 16 << 20
_SHOWN = 60


def object_blocks(path: str, ignored: Collection[bytes] = ()) -> Iterator[bytes]:
    """Yield blocks of lines, without a byte order mark, blank lines and lines in ``ignored``.

    ``ignored`` lists lines without leading and trailing spaces. Raise ``InvalidRequestError`` for a
    line that is not an object: Arrow's JSON reader would crash, or return rows of nulls.
    """
    first = 1
    with open(path, "rb") as file:
        while lines := file.readlines(_BLOCK_BYTES):
            if first == 1:
                lines[0] = lines[0].removeprefix(BYTE_ORDER_MARK)
            kept = []
            for number, line in enumerate(lines, first):
                text = line.strip()
                if not text or text in ignored:
                    continue
                if not (text.startswith(b"{") and text.endswith(b"}")):
                    raise _not_an_object(path, number, text)
                kept.append(line)
            first += len(lines)
            if kept:
                yield b"".join(kept)


def require_objects(path: str) -> None:
    """Raise ``InvalidRequestError`` if a line of a file is neither an object nor blank."""
    for _ in object_blocks(path):
        pass


def _not_an_object(path: str, number: int, text: bytes) -> InvalidRequestError:
    shown = text[:_SHOWN].decode(errors="replace")
    return InvalidRequestError(
        f"cannot read {path}: line {number}, {shown!r}, is not a JSON object. Write one JSON "
        'object to each line, such as {"k": 1}'
    )
