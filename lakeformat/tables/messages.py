# SPDX-License-Identifier: Apache-2.0
"""Checks the commit messages that a caller passes, and their bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from lakeformat.errors import InvalidRequestError
from lakeformat.types.count_text import counted

__all__ = ["require_bytes", "require_messages", "unreadable_message"]

_M = TypeVar("_M")


def require_messages(given: object, kind: type[_M], advice: str) -> list[_M]:
    """Return the messages as a list; raise ``InvalidRequestError`` for an object that is not a
    ``kind``.

    ``advice`` begins the message of the error. Use the returned list instead of ``given``, because
    this call consumes ``given`` if it is a generator.
    """
    if isinstance(given, kind | bytes | str | Mapping) or not isinstance(given, Iterable):
        raise _no_messages(given, advice)
    found = [*given]
    for each in found:
        if not isinstance(each, kind):
            raise _no_messages(each, advice)
    return found


def require_bytes(content: object, made_by: str) -> None:
    """Raise ``InvalidRequestError`` if ``content`` is not bytes.

    ``made_by`` names the function that makes the bytes, for the message.
    """
    if not isinstance(content, bytes | bytearray | memoryview):
        raise InvalidRequestError(
            f"a commit message must be bytes, got {type(content).__name__}: pass the result of "
            f"{made_by}"
        )


def unreadable_message(content: bytes, reason: object) -> InvalidRequestError:
    """Return the error for bytes that are not a commit message of this version."""
    return InvalidRequestError(
        f"content of {counted(len(content), 'byte')} is not a commit message of this version: "
        f"{reason}; prepare and commit with the same version of the library"
    )


def _no_messages(given: object, advice: str) -> InvalidRequestError:
    shown = counted(len(given), "byte") if isinstance(given, bytes) else type(given).__name__
    return InvalidRequestError(f"{advice}. Got {shown}")
