# SPDX-License-Identifier: Apache-2.0
"""Recognises change messages in a file of JSON lines that is read as plain rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import lakeformat as lake
from spark_jobs.ingestion.remote_files import opener_of
from spark_jobs.ingestion.source_files import find_paths

if TYPE_CHECKING:
    from spark_jobs.job_requests.ingest import IngestRequest, MessageFormat

__all__ = ["applying", "message_format", "message_format_of"]

_HEAD_BYTES = 1 << 20
_MEMBERS: Final[Mapping[MessageFormat, frozenset[str]]] = {
    "debezium-json": frozenset({"before", "after", "op"}),
    "canal-json": frozenset({"data", "database", "isDdl", "table", "type"}),
    "maxwell-json": frozenset({"data", "database", "table", "type"}),
}
"""The members that each message of a format has."""


def message_format(line: bytes) -> MessageFormat | None:
    """Return the format of which a line of JSON has all members; None for a plain row."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    inner = found.get("payload") if isinstance(found, dict) else None
    names = inner if isinstance(inner, dict) else found
    if not isinstance(names, dict):
        return None
    return next((each for each in _MEMBERS if names.keys() >= _MEMBERS[each]), None)


def message_format_of(wanted: IngestRequest) -> MessageFormat | None:
    """Return the format of the first line of a request's first file.

    None if that line is a plain row, if the file is not JSON, or if it cannot be read, because the
    caller already has the error.
    """
    if wanted.source is None or wanted.holds_messages:
        return None
    options = wanted.catalog_options
    try:
        path = find_paths(wanted.source, options)[0]
        opener = opener_of(path, options)
        with open(path, "rb") if opener is None else opener(path) as file:
            head = file.read(_HEAD_BYTES)
    except (lake.LakeError, OSError):
        return None
    return message_format(head.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0])


def applying(messages: MessageFormat) -> str:
    """Return the sentence that names the value of ``format`` for a source with change messages."""
    return f"The source holds change messages: with format={messages!r} the job applies them"
