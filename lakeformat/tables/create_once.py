# SPDX-License-Identifier: Apache-2.0
"""Creates a file that only one writer can create.

If the answer of the storage is lost, the file is read to find out which writer created it. A
Paimon table commits by the creation of such a file.
"""

from __future__ import annotations

import logging
from enum import Enum

from lakeformat.errors import (
    CommitOutcomeUnknownError,
    LakeError,
    NotFoundError,
    UnavailableError,
)
from lakeformat.storage import Storage
from lakeformat.storage.base import LARGE_FILE

__all__ = ["PublishOutcome", "create_once", "create_or_find", "try_to_create"]

_log = logging.getLogger(__name__)
_TRIES = 3


class PublishOutcome(Enum):
    """The result of an attempt to publish a file under a name that writers compete for."""

    COMMITTED = "the file is published"
    LOST = "another writer's file has the name"
    UNKNOWN = "the storage gave no answer"


def try_to_create(storage: Storage, path: str, content: bytes) -> PublishOutcome:
    """Create a file whose content no other writer has, and return the outcome.

    If the name is taken, or if the answer of the storage is lost, the file is read: its content
    shows which writer created it. A taken name alone does not show this: a client library may have
    sent the request of this call twice, and its first request may have created the file. If a
    ``LakeError`` is raised, this call has not created the file.
    """
    is_open = False
    for _ in range(_TRIES):
        try:
            is_created = storage.create(path, content)
        except LakeError as error:
            if not isinstance(error, UnavailableError) or error.nothing_was_written:
                if is_open:
                    return PublishOutcome.UNKNOWN
                raise
            from lakeformat.types.sentence import sentence  # only for a message

            is_open = True
            _log.warning(
                "the storage did not confirm %s: %s The file is read to check if it was written",
                storage.uri(path),
                sentence(error),
            )
        else:
            if is_created:
                return PublishOutcome.COMMITTED
        if (outcome := _read_back(storage, path, content)) is not PublishOutcome.UNKNOWN:
            return outcome
    return PublishOutcome.UNKNOWN


def create_once(storage: Storage, path: str, content: bytes) -> bool:
    """Create a file as ``try_to_create`` does; return False if another writer created it.

    Raise ``CommitOutcomeUnknownError`` if it remains unknown whether this call created the file.
    """
    outcome = try_to_create(storage, path, content)
    if outcome is PublishOutcome.UNKNOWN:
        raise CommitOutcomeUnknownError(
            f"the commit of {storage.uri(path)} got no answer from the storage and may have been "
            "published. If you committed with a CommitId, just retry: the change is published "
            "once. If not, look for the change, or for the new table, before you retry. No file "
            "was removed"
        )
    return outcome is PublishOutcome.COMMITTED


def create_or_find(storage: Storage, path: str, content: bytes) -> bool:
    """Create a file and return True; return False if it exists.

    If the storage gives no answer, the file is read. The result is then True if the file has
    ``content``, even if another writer created it, and False if the file has other content. Raise
    ``UnavailableError`` if the file was not created.
    """
    try:
        return storage.create(path, content)
    except UnavailableError as error:
        if error.nothing_was_written:
            raise
        try:
            return storage.read(path, LARGE_FILE) == content
        except NotFoundError:
            pass  # it was not created: raise the original error
        raise


def _read_back(storage: Storage, path: str, content: bytes) -> PublishOutcome:
    try:
        found = storage.read(path, LARGE_FILE)
    except LakeError:  # if the file is missing, the caller tries to create it again
        return PublishOutcome.UNKNOWN
    return PublishOutcome.COMMITTED if found == content else PublishOutcome.LOST
