# SPDX-License-Identifier: Apache-2.0
"""Deletes the files of messages that will not be committed."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from lakeformat.errors import InvalidRequestError, LakeError
from lakeformat.paimon.commit.foreign_messages import are_there, check_origin
from lakeformat.paimon.commit.new_files import NewFileCheck
from lakeformat.paimon.commit.written_paths import written_paths
from lakeformat.paimon.expiry_race import again_if_overtaken
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot

__all__ = ["abort_messages", "delete_written"]

_log = logging.getLogger(__name__)
_PUBLISHED = (
    "its rows are published, so no file was removed. Pass only messages that are not committed; "
    "to delete rows, use an overwrite, Table.drop_partitions or Table.truncate"
)


def abort_messages(handle: TableHandle, messages: Sequence[CommitMessage]) -> list[str]:
    """Delete the files of messages that were not committed.

    Return the URIs of files that could not be deleted. Raise InvalidRequestError if the messages
    belong to another table, if this table refers to one of the files, or if no file exists.
    """
    try:
        check_origin(handle, messages)
        check = NewFileCheck(handle, messages, _PUBLISHED)
        again_if_overtaken(
            handle, lambda: check.check(latest_snapshot(handle.storage, handle.layout))
        )
    except InvalidRequestError as reason:
        raise InvalidRequestError(f"these messages cannot be aborted: {reason}") from None
    _require_some(handle, messages)
    return delete_written(handle, messages)


def _require_some(handle: TableHandle, messages: Sequence[CommitMessage]) -> None:
    """Raise InvalidRequestError if no file of ``messages`` exists.

    The messages then probably belong to another table. If only some files are missing, log a
    warning: an earlier abort was probably interrupted.
    """
    paths = list(written_paths(handle, messages))
    there = are_there(paths)
    if not paths or all(there):
        return
    pairs = zip(paths, there, strict=True)
    missing = [storage.uri(path) for (storage, path), is_there in pairs if not is_there]
    if len(missing) < len(paths):
        _log.warning(
            "abort on %s: deletes %d of %d files; the rest, such as %s, does not exist here. No "
            "action needed if an earlier abort was interrupted. Otherwise some messages may belong "
            "to another table: abort them there",
            *(handle.uri, len(paths) - len(missing), len(paths), missing[0]),
        )
        return
    tables = sorted({each.table for each in messages if each.table is not None})
    of = f" The messages were written for {', '.join(tables)}." if tables else ""
    raise InvalidRequestError(
        f"no file of these messages is in {handle.uri}, so nothing was "
        f"removed: {missing[0]} does not exist.{of} Either the files are removed already, or the "
        "messages belong to another table: abort them there"
    )


def delete_written(handle: TableHandle, messages: Sequence[CommitMessage]) -> list[str]:
    """Delete the files of messages, and return the URIs of those that could not be deleted.

    The caller must know that no snapshot refers to the files: this function does not check it.
    """
    left: list[str] = []
    for storage, path in [
        *written_paths(handle, messages)
    ]:  # resolve all paths first: if one is refused, nothing is deleted
        try:
            storage.delete(path)
        except LakeError:
            left.append(storage.uri(path))
    return left
