# SPDX-License-Identifier: Apache-2.0
"""Staged results: files ``staged/staged-<name>`` below the directory of a branch.

Each stores commit messages until another job publishes them.
"""

from __future__ import annotations

from collections.abc import Iterator

from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.storage import Storage
from lakeformat.tables.staged.files import StagedFiles

__all__ = ["staged_results"]


def staged_results(storage: Storage, layout: TableLayout) -> StagedFiles[CommitMessage]:
    """Return the staged results of the branch ``layout.branch``."""
    return StagedFiles(storage, layout.staged_directory, CommitMessage.from_bytes, _sizes)


def _sizes(message: CommitMessage) -> Iterator[tuple[int, int]]:
    return ((file.row_count, file.file_size) for file in message.new_files)
