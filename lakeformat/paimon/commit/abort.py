"""Removes the files of messages that will not be committed."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from lakeformat.errors import InvalidRequestError, LakeError
from lakeformat.paimon.commit.foreign_messages import are_there, check_origin
from lakeformat.paimon.commit.new_files import NewFiles
from lakeformat.paimon.commit.written_paths import written_paths
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot

__all__ = ["abort_messages", "delete_written"]

_log = logging.getLogger(__name__)
_PUBLISHED = (
    "its rows are published, and no file was removed. Leave the messages out that are committed; "
    "rows go by an overwrite, Table.drop_partitions or Table.truncate"
)


def abort_messages(handle: TableHandle, messages: Sequence[CommitMessage]) -> list[str]:
    """Delete what the messages' writers wrote; the URIs of files that would not go.

    Refused if the table has one of the files, or none of them is here.
    """
    try:
        check_origin(handle, messages)
        check = NewFiles(handle, messages, _PUBLISHED)
        check.check(latest_snapshot(handle.storage, handle.layout))
    except InvalidRequestError as reason:
        raise InvalidRequestError(f"these messages cannot be given up: {reason}") from None
    _require_some(handle, messages)
    return delete_written(handle, messages)


def _require_some(handle: TableHandle, messages: Sequence[CommitMessage]) -> None:
    """Of another table, none is found; some are missing where giving up was interrupted."""
    paths = list(written_paths(handle, messages))
    there = are_there(paths)
    if not paths or all(there):
        return
    pairs = zip(paths, there, strict=True)
    missing = [storage.uri(path) for (storage, path), is_there in pairs if not is_there]
    if len(missing) < len(paths):
        _log.warning("giving up: %d files are gone already: %s", len(missing), missing[:10])
        return
    tables = sorted({each.table for each in messages if each.table is not None})
    of = f" They were written for {', '.join(tables)}." if tables else ""
    raise InvalidRequestError(
        f"none of the {len(paths)} files of these messages is in {handle.uri}, so nothing was "
        f"removed: {missing[0]} is not there.{of} They are removed already, or the messages are "
        "of another table: give them up there"
    )


def delete_written(handle: TableHandle, messages: Sequence[CommitMessage]) -> list[str]:
    """Remove files of messages without a look: it is certain that no snapshot refers to them."""
    left: list[str] = []
    for storage, path in [*written_paths(handle, messages)]:  # all are allowed, or none goes
        try:
            storage.delete(path)
        except LakeError:
            left.append(storage.uri(path))
    return left
