# SPDX-License-Identifier: Apache-2.0
"""Creates a file that only one writer can create, even if the answer of the storage is lost."""

from __future__ import annotations

import logging

from lakeformat.errors import (
    CommitOutcomeUnknownError,
    LakeError,
    NotFoundError,
    UnavailableError,
)
from lakeformat.storage import Storage
from lakeformat.storage.base import LARGE_FILE

__all__ = ["create_once"]

_log = logging.getLogger(__name__)
_TRIES = 3


def create_once(storage: Storage, path: str, content: bytes) -> bool:
    """Create a file; return False if another writer created it.

    If the answer of the storage is lost, the file is read to see who wrote it.
    ``CommitOutcomeUnknownError`` means that the file may exist with this content. After any other
    error this call has not created the file.
    """
    is_open = False
    for _ in range(_TRIES):
        try:
            is_created = storage.create(path, content)
        except LakeError as error:
            if not isinstance(error, UnavailableError) or error.nothing_was_written:
                if is_open:
                    break
                raise
            is_open = True
            _log.warning(
                "the storage did not confirm %s: %s. The file is read to find out if it is written",
                storage.uri(path),
                error,
            )
        else:
            if is_created or not is_open:
                return is_created
        if (is_ours := _read_back(storage, path, content)) is not None:
            return is_ours
    raise CommitOutcomeUnknownError(
        f"the commit of {storage.uri(path)} got no answer from the storage and may have been "
        "published. Look for the change in the table before you retry; with a CommitId just retry: "
        "it publishes once. No file was removed"
    )


def _read_back(storage: Storage, path: str, content: bytes) -> bool | None:
    """Return True if the file has ``content``, False if it has another one, None if that is
    unknown.
    """
    try:
        return storage.read(path, LARGE_FILE) == content
    except NotFoundError:
        return None  # the caller tries to create it again
    except LakeError:
        return None
