"""The files around a job: a request that lies somewhere, and a result to leave somewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from spark_jobs.job_requests.request import refusal

if TYPE_CHECKING:
    from lakeformat.storage import Storage

__all__ = ["open_place", "read_request_text", "write_result"]

_BUCKET = re.compile(r"(?i)(?!file:|memory:|hdfs:|viewfs:)[a-z][a-z0-9+.-]+:/")


def read_request_text(given: str, options: Mapping[str, str] | None) -> str:
    """The text of a request: itself if it is an object, or what a file holds."""
    if given.lstrip().startswith("{"):
        return given
    from lakeformat import LakeError

    try:
        storage, path = open_place(given, options)
        return storage.read(path).decode("utf-8")
    except (LakeError, ValueError) as reason:
        raise refusal(f"--request is no JSON object and no file: {reason}") from None


def write_result(uri: str, result: Mapping[str, Any], options: Mapping[str, str] | None) -> None:
    """Leave the result as a JSON file; one of an earlier try is replaced."""
    storage, path = open_place(uri, options)
    storage.overwrite(path, json.dumps(result, indent=1).encode("utf-8"))


def open_place(uri: str, options: Mapping[str, str] | None) -> tuple[Storage, str]:
    """A storage and a path in it; a bucket is opened with the catalog's options for buckets."""
    from lakeformat.storage import is_storage_option, open_storage

    if not _BUCKET.match(uri):  # other places take no options
        return open_storage(uri)
    of_storage = {key: text for key, text in (options or {}).items() if is_storage_option(key)}
    return open_storage(uri, of_storage)
