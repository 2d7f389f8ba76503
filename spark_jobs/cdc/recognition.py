# SPDX-License-Identifier: Apache-2.0
"""Recognises change messages in a source that a request reads as plain rows, for a better error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lakeformat as lake
from lakeformat.files.foreign.change_messages import message_format_at
from spark_jobs.ingestion.remote_files import opener_of
from spark_jobs.ingestion.source_files import find_paths

if TYPE_CHECKING:
    from spark_jobs.job_requests.ingest import IngestRequest, MessageFormat

__all__ = ["applying", "message_format_of"]


def message_format_of(wanted: IngestRequest) -> MessageFormat | None:
    """Return the format of change messages in the first line of a request's first file.

    Return None if that line is a plain row, or if the file is not JSON or cannot be read. Return
    None also for a request without files, and for a request that names a format of change messages.
    """
    if wanted.source is None or wanted.holds_messages:
        return None
    options = wanted.catalog_options
    try:
        path = find_paths(wanted.source, options)[0]
        return message_format_at(path, opener_of(path, options))
    except (lake.LakeError, OSError):
        return None


def applying(messages: MessageFormat) -> str:
    """Return a sentence for errors and warnings about a source with change messages. It advises
    setting the key ``format`` to the format of the messages.
    """
    return f"The source holds change messages: with format={messages!r} the job applies them"
