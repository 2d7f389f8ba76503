# SPDX-License-Identifier: Apache-2.0
"""Appends rows in one commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.commit.identity import find_commit
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.write.file_changes import ChangedFiles
from lakeformat.iceberg.write.new_entries import delete_files
from lakeformat.iceberg.write.publish import Produce, PublishedChange, publish_change
from lakeformat.iceberg.write.report import WriteReport, write_report
from lakeformat.iceberg.write.table_writer import TableWriter
from lakeformat.rows.batches import to_batches
from lakeformat.tables.commit_id import CommitId, require_commit_id
from lakeformat.tables.kept_files import kept_if_published
from lakeformat.types.type_rules import is_text

__all__ = [
    "append",
    "append_of",
    "checked_properties",
    "earlier_commit",
    "publish_rows",
    "write_rows",
]


def append(
    handle: TableHandle,
    data: Any,
    *,
    commit: CommitId | None = None,
    properties: Mapping[str, str] | None = None,
) -> WriteReport:
    """Write rows to new files and publish them in one commit.

    A repeated call with the same ``commit`` publishes nothing again. After an error nothing is
    published and no file is left, except after ``CommitOutcomeUnknownError``.
    """
    change = append_of(handle, commit)
    return publish_rows(
        handle, data, lambda entries: change([entries]), commit=commit, properties=properties
    )


def append_of(
    handle: TableHandle, commit: CommitId | None
) -> Callable[[Sequence[pa.Table]], Produce]:
    """Return a function that takes the manifest entries of new files and returns the change.

    If ``commit.replaces`` is set, the change also removes the rows of the earlier commit that
    ``commit`` replaces. Raise ``InvalidRequestError`` if these rows cannot be removed.
    """
    if commit is not None:
        require_commit_id(commit)
    if commit is None or commit.replaces is None:
        return ChangedFiles
    from lakeformat.iceberg.write.redo import Redo, find_replaced

    loaded = handle.load()
    if earlier_commit(handle, loaded, commit) is None:
        find_replaced(loaded, handle.branch, commit, handle.uri)
    return partial(Redo, handle, commit)


def publish_rows(
    handle: TableHandle,
    data: Any,
    change: Callable[[pa.Table], Produce],
    *,
    commit: CommitId | None,
    properties: Mapping[str, str] | None,
) -> WriteReport:
    """Write rows to new files, and publish the change that ``change`` returns for their entries.

    A repeated call with the same ``commit`` publishes nothing again. After an error the new files
    are deleted, unless the commit may have been published.
    """
    given = checked_properties(properties)
    handle.pointer.require_writable()
    loaded = handle.load()
    if (earlier := earlier_commit(handle, loaded, commit)) is not None:
        return write_report(handle.uri, earlier)
    entries = write_rows(handle, loaded, data)
    paths = entries.column("file_path").to_pylist()
    with kept_if_published(lambda: delete_files(loaded.places, paths)):
        published = publish_change(
            handle, change(entries), commit=commit, properties=given, planned=loaded
        )
    if published.is_replayed:  # another process with the same identity published it meanwhile
        delete_files(loaded.places, paths)
    return write_report(handle.uri, published)


def write_rows(handle: TableHandle, loaded: LoadedMetadata, data: Any) -> pa.Table:
    """Write rows to new files, and return their manifest entries.

    Raise ``InvalidRequestError`` for rows that do not fit the columns. After any exception no file
    is left.
    """
    writer = TableWriter(loaded, handle.environment)
    try:
        for batch in to_batches(data):
            writer.write(batch)
        return writer.finish()
    except BaseException:
        writer.discard()
        raise


def checked_properties(properties: Mapping[str, str] | None) -> dict[str, str]:
    """Return the properties for a snapshot summary; empty for None.

    Raise ``InvalidRequestError`` if a name or a value is not a str.
    """
    found = dict(properties or {})
    for key, value in found.items():
        if not is_text(key) or not is_text(value):
            raise InvalidRequestError(
                f"properties must map str to str; {key!r} is {value!r}: write it as text"
            )
    return found


def earlier_commit(
    handle: TableHandle, loaded: LoadedMetadata, commit: CommitId | None
) -> PublishedChange | None:
    """Return the result of an earlier attempt with the same identity; None if it is not published.

    ``commit=None`` gives None. Errors as in ``find_commit``.
    """
    if commit is None:
        return None
    require_commit_id(commit)
    found = find_commit(loaded.metadata, handle.branch, commit, handle.environment)
    return None if found is None else PublishedChange(found, 0, is_replayed=True)
