# SPDX-License-Identifier: Apache-2.0
"""``tag/tag-success-file/<tag>_SUCCESS``: the file that signals a tag to waiting programs."""

from __future__ import annotations

import json
import logging

from lakeformat.errors import LakeError, NotFoundError
from lakeformat.paimon.handle import TableHandle
from lakeformat.storage.base import TooLargeError
from lakeformat.tables.json_file import NO_JSON
from lakeformat.types.sentence import sentence

__all__ = ["remove_success_file", "write_success_file"]

_log = logging.getLogger(__name__)


def write_success_file(handle: TableHandle, tag: str) -> None:
    """Write a tag's success file if ``tag.create-success-file`` is set.

    An existing file keeps its creation time.
    """
    if not handle.options.tag_create_success_file:
        return
    path, now = handle.layout.tag_success_file(tag), handle.environment.now_millis()
    created = now
    try:
        created = int(json.loads(handle.storage.read(path))["creationTime"])
    except NotFoundError:
        pass
    except (TooLargeError, *NO_JSON, KeyError, TypeError):
        _log.warning("the damaged success file %s is written again", handle.storage.uri(path))
    content = {"creationTime": created, "modificationTime": now}
    handle.storage.overwrite(path, json.dumps(content).encode())


def remove_success_file(handle: TableHandle, tag: str) -> None:
    """Delete the success file of a deleted tag, if ``tag.create-success-file`` is set.

    A failure is only logged.
    """
    if not handle.options.tag_create_success_file:
        return
    try:
        handle.storage.delete(handle.layout.tag_success_file(tag))
    except LakeError as error:
        _log.warning(
            "tag %r does not exist any more, but its success file %s could not be deleted: %s You "
            "can delete the file",
            *(tag, handle.storage.uri(handle.layout.tag_success_file(tag)), sentence(error)),
        )
