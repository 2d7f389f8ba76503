"""Checks of arguments before a commit starts, so that every snapshot can be read back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.types.type_rules import is_text, is_whole_number

__all__ = ["check_arguments", "check_messages", "known_rows"]

_LONG = range(-(2**63), 2**63)


def check_arguments(watermark: int | None, properties: Mapping[str, str] | None) -> None:
    """Raise InvalidRequestError for values that a snapshot file cannot store."""
    if watermark is not None and (not is_whole_number(watermark) or watermark not in _LONG):
        raise InvalidRequestError(f"watermark must be a 64-bit integer, got {watermark!r}")
    if properties is not None and not isinstance(properties, Mapping):
        raise InvalidRequestError(f"properties must map str to str, got {properties!r}")
    for key, value in (properties or {}).items():
        if not is_text(key) or not is_text(value):
            raise InvalidRequestError(
                f"properties must map str to str, got {key!r}: {value!r}; pass str(value)"
            )


def check_messages(messages: Iterable[CommitMessage]) -> list[CommitMessage]:
    """Return the messages as a list; raise if they are not CommitMessages.

    Iterables are read once, so that a generator does not turn into an empty commit.
    """
    if isinstance(messages, CommitMessage | bytes | str | Mapping) or not isinstance(
        messages, Iterable
    ):
        raise _no_messages(messages)
    found = list(messages)
    for each in found:
        if not isinstance(each, CommitMessage):
            raise _no_messages(each)
    return found


def _no_messages(given: object) -> InvalidRequestError:
    shown = f"{len(given)} bytes" if isinstance(given, bytes) else f"a {type(given).__name__}"
    return InvalidRequestError(
        "pass a list of the CommitMessages that writers prepared, as in commit(writer.prepare()); "
        f"convert bytes with CommitMessage.from_bytes. Got {shown}"
    )


def known_rows(data: Any) -> int | None:
    """Return the row count of the data if it is known without reading; else None."""
    rows = getattr(data, "num_rows", None)
    if rows is None and isinstance(shape := getattr(data, "shape", None), tuple) and shape:
        rows = shape[0]
    return rows if is_whole_number(rows) else None
