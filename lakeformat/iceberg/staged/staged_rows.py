# SPDX-License-Identifier: Apache-2.0
"""Reads the rows of staged results before they are published."""

from __future__ import annotations

from collections.abc import Sequence

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.read.plan import TableState
from lakeformat.iceberg.read.unpublished_files import UnpublishedFiles
from lakeformat.iceberg.write.foreign_entries import checked_entries
from lakeformat.iceberg.write.message import IcebergCommitMessage
from lakeformat.iceberg.write.redo import files_replaced
from lakeformat.tables.staged.files import StagedResult

__all__ = ["staged_files"]


def staged_files(
    loaded: LoadedMetadata,
    state: TableState,
    results: Sequence[StagedResult[IcebergCommitMessage]],
    *,
    replaces: int | None = None,
    with_published: bool = False,
) -> UnpublishedFiles:
    """Return the files of staged results, for a scan.

    ``replaces`` is the id of a published snapshot whose rows the commit of the results will
    replace. The scan leaves out the data files that this commit will remove. With
    ``with_published`` the scan also reads the published rows. In that case, raise
    ``UnsupportedError`` if the staged rows replace published rows by their keys.
    """
    messages = [message for result in results for message in result.messages]
    if with_published and any(each.upsert_by is not None for each in messages):
        raise UnsupportedError(
            f"the staged rows of {loaded.places.uri} replace published rows with the same keys. "
            "Before the commit the replaced rows are unknown, so staged and published rows cannot "
            "be read together. Read or check only the staged rows, or publish them first"
        )
    entries = checked_entries(loaded, loaded.places.uri, messages)
    removed = frozenset[str]()
    if replaces is not None and state.snapshot is not None:
        removed = files_replaced(loaded, state.snapshot, replaces)
    return UnpublishedFiles.of(loaded.metadata, entries, removed)
