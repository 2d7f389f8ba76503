"""JSON metadata files, read with errors that name the file and what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from lakeformat.errors import CorruptTableError, InvalidRequestError

__all__ = ["decode_json_file"]

T = TypeVar("T")


def decode_json_file(content: bytes, uri: str, build: Callable[[dict[str, Any]], T]) -> T:
    """Parse a metadata file and build its value; whatever is wrong, the error names the file."""
    try:
        members = json.loads(content)
    except (ValueError, RecursionError) as reason:
        raise CorruptTableError(
            f"{uri} ({len(content)} bytes) is not JSON: {reason}; "
            "restore the file from a backup or roll the table back to an earlier snapshot"
        ) from None
    if not isinstance(members, dict):
        raise CorruptTableError(f"{uri} holds {type(members).__name__} where an object belongs")
    try:
        return build(members)
    except KeyError as missing:
        raise CorruptTableError(f"{uri} lacks the member {missing}") from None
    except (InvalidRequestError, TypeError, ValueError, AttributeError) as reason:
        raise CorruptTableError(f"{uri} holds a value that is not allowed: {reason}") from None
