# SPDX-License-Identifier: Apache-2.0
"""Recognises change messages in a file of JSON lines that is read as plain rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import BinaryIO, Final, Literal, TypeAlias

from lakeformat.files.foreign.json_lines import BYTE_ORDER_MARK
from lakeformat.files.foreign.plain_copy import Opener

__all__ = ["MessageFormat", "message_format", "message_format_at"]

MessageFormat: TypeAlias = Literal["debezium-json", "canal-json", "maxwell-json"]
"""A format of change messages, as the job ``ingest`` names it."""

_HEAD_BYTES = 1 << 20
_MEMBERS: Final[Mapping[MessageFormat, frozenset[str]]] = {
    "debezium-json": frozenset({"before", "after", "op"}),
    "canal-json": frozenset({"data", "database", "isDdl", "table", "type"}),
    "maxwell-json": frozenset({"data", "database", "table", "type"}),
}
"""The members that each message of a format has."""


def message_format(line: bytes) -> MessageFormat | None:
    """Return the format of the change message in ``line``; None for any other line.

    The message is recognised by the members of its JSON object.
    """
    try:
        found = json.loads(line)
    except ValueError:
        return None
    inner = found.get("payload") if isinstance(found, dict) else None
    names = inner if isinstance(inner, dict) else found
    if not isinstance(names, dict):
        return None
    return next((each for each in _MEMBERS if names.keys() >= _MEMBERS[each]), None)


def message_format_at(path: str, opener: Opener | None = None) -> MessageFormat | None:
    """Return the format of the change message in a file's first line that is not blank.

    Return None if the line is not a change message, or is longer than 1 MiB. ``opener`` opens the
    file; ``opener=None`` opens a file on this machine, and raises ``OSError`` if that fails.
    """
    file: BinaryIO
    with open(path, "rb") if opener is None else opener(path) as file:
        head = file.read(_HEAD_BYTES)
    return message_format(head.removeprefix(BYTE_ORDER_MARK).lstrip().partition(b"\n")[0])
