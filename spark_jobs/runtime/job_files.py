# SPDX-License-Identifier: Apache-2.0
"""Reads the file of a request, and writes the file of a result."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from spark_jobs.job_requests.request import refusal

if TYPE_CHECKING:
    from lakeformat.storage import Storage
    from spark_jobs.runtime.job import JobResult

__all__ = ["open_place", "read_request_text", "write_result"]

_BUCKET = re.compile(r"(?i)(?!file:|memory:|hdfs:|viewfs:)[a-z][a-z0-9+.-]+:/")


def read_request_text(given: str, options: Mapping[str, str] | None) -> str:
    """Return the text of a request: the argument itself if it is a JSON object, else the content of
    the file that it names. Raise ``InvalidRequestError`` if the file cannot be read.
    """
    if given.lstrip().startswith("{"):
        return given
    from lakeformat import LakeError

    try:
        storage, path = open_place(given, options)
        return storage.read(path).decode("utf-8")
    except (LakeError, ValueError) as reason:
        raise refusal(
            f"--request is neither a JSON object nor a file that can be read: {reason}"
        ) from None


def write_result(uri: str, result: JobResult, options: Mapping[str, str] | None) -> None:
    """Write the result to a JSON file; replace the file of an earlier attempt."""
    storage, path = open_place(uri, options)
    storage.overwrite(path, json.dumps(result, indent=1).encode("utf-8"))


def open_place(uri: str, options: Mapping[str, str] | None) -> tuple[Storage, str]:
    """Return the storage of a path or URI, and the path in it. The storage options among
    ``options`` are used only for an object store.
    """
    from lakeformat.storage import is_storage_option, open_storage

    if not _BUCKET.match(uri):  # other places take no options
        return open_storage(uri)
    of_storage = {key: text for key, text in (options or {}).items() if is_storage_option(key)}
    return open_storage(uri, of_storage)
