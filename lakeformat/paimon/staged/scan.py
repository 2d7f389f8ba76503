# SPDX-License-Identifier: Apache-2.0
"""Scans the rows of staged results before they are published."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from lakeformat.errors import UnsupportedError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.manifest_entry import FileKind, ManifestEntry
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.read.scan import Scan
from lakeformat.paimon.read.where import row_filter
from lakeformat.rows.conditions.filter import Where
from lakeformat.tables.staged.files import StagedResult

__all__ = ["scan_staged"]


def scan_staged(
    handle: TableHandle,
    results: Sequence[StagedResult[CommitMessage]],
    columns: Sequence[str] | None,
    where: Where | None,
    *,
    after: Snapshot | None,
    without: Collection[str] = (),
) -> Scan:
    """Return a scan of staged rows, merged with the rows of the snapshot ``after``.

    With ``after=None``, only the staged rows are scanned. Files of the snapshot whose names are in
    ``without`` are skipped. Raise UnsupportedError if a staged result replaces files of the table.
    """
    files = [entry for result in results for entry in _added_files(handle, result)]
    asked = row_filter(handle.schema, where, None)
    return Scan(handle, after, columns, asked, unpublished=files, without=without)


def _added_files(
    handle: TableHandle, result: StagedResult[CommitMessage]
) -> Iterator[ManifestEntry]:
    for message in result.messages:
        if message.deleted_files or message.compact_before or message.compact_after:
            raise UnsupportedError(
                f"staged result {result.name} of {handle.uri} replaces files of the table, so its "
                "rows cannot be read before it is published: publish it, then read the table"
            )
        total = message.total_buckets
        buckets = int(handle.options.bucket) if total is None else total
        for file in message.new_files:
            yield ManifestEntry(FileKind.ADD, message.partition, message.bucket, buckets, file)
