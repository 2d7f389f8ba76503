# SPDX-License-Identifier: Apache-2.0
"""Deletes the files of messages that will not be committed."""

from __future__ import annotations

from collections.abc import Sequence

from lakeformat.errors import LakeError
from lakeformat.paimon.commit.written_paths import written_paths
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.commit_message import CommitMessage

__all__ = ["delete_written"]


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
