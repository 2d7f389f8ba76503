"""Removes the files of messages that will not be committed."""

from __future__ import annotations

from collections.abc import Sequence

from lakeformat.commit.new_files import NewFiles
from lakeformat.commit.written_paths import written_paths
from lakeformat.errors import InvalidRequestError, LakeError
from lakeformat.handle import TableHandle
from lakeformat.metadata.commit_message import CommitMessage
from lakeformat.metadata.snapshot_directory import latest_snapshot

__all__ = ["abort_messages", "delete_written"]


def abort_messages(handle: TableHandle, messages: Sequence[CommitMessage]) -> list[str]:
    """Delete what the messages' writers wrote; the URIs of files that would not go.

    Refused if the table has one of the files.
    """
    try:
        NewFiles(handle, messages).check(latest_snapshot(handle.storage, handle.layout))
    except InvalidRequestError as reason:
        raise InvalidRequestError(f"these messages cannot be given up: {reason}") from None
    return delete_written(handle, messages)


def delete_written(handle: TableHandle, messages: Sequence[CommitMessage]) -> list[str]:
    """The same without a look, where it is certain that no snapshot refers to the files."""
    left: list[str] = []
    for storage, path in written_paths(handle, messages):
        try:
            storage.delete(path)
        except LakeError:
            left.append(storage.uri(path))
    return left
