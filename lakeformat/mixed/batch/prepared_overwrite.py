# SPDX-License-Identifier: Apache-2.0
"""Overwrites by writers in several processes: a batch publishes their files in one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakeformat.iceberg.properties import int_property
from lakeformat.iceberg.write.append import checked_properties, earlier_commit
from lakeformat.iceberg.write.commit_prepared import PublishedOnce, with_unpublished
from lakeformat.iceberg.write.foreign_entries import checked_entries, require_present
from lakeformat.iceberg.write.prepared_writer import PreparedWriter
from lakeformat.mixed.batch.base_writer import BASE_BUCKETS, DEFAULT_BUCKETS, BaseWriter
from lakeformat.mixed.batch.begin import BegunBatch
from lakeformat.mixed.batch.overwrite import (
    OverwriteChange,
    Replaced,
    publish_overwrite,
    refuse_kinds,
)
from lakeformat.mixed.file_names import FileKind
from lakeformat.mixed.stores.store_pair import StorePair
from lakeformat.mixed.write.message import (
    MixedCommitMessage,
    entries_of_new_files,
    require_names,
    require_one_writer,
)
from lakeformat.mixed.write.write_changes import change_report
from lakeformat.mixed.write.writer_nodes import WriterNodes
from lakeformat.rows.batches import to_batches
from lakeformat.tables.arguments import Overwritten
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.table import offer_arguments
from lakeformat.tables.write_report import WriteReport

__all__ = ["PreparedOverwriteWriter", "base_nodes", "commit_overwrite"]


@offer_arguments
class PreparedOverwriteWriter(PreparedWriter):
    """Writes new rows of an overwrite; one writer must get all rows of a node.

    Nothing is visible before the batch commits the messages of ``prepare``. If a call raises an
    error, or a ``with`` block ends with one, the writer deletes its files and cannot be used again.
    """

    def __init__(self, pair: StorePair, overwritten: Overwritten, transaction: int) -> None:
        super().__init__(pair.base)
        loaded = pair.load()
        Replaced(partitions=overwritten).require_valid(loaded.base.metadata)
        self._writer = BaseWriter(loaded.base, pair.base.environment, loaded.key, transaction)
        self._given = 0

    def write(self, data: Any, kinds: Any = None, *, checked: bool = False) -> None:
        """Add rows: a pyarrow, pandas or polars object, or an iterable of these.

        ``kinds`` is refused. ``checked`` has no effect, because this writer checks all rows.
        """
        self._require_unfinished()
        try:
            refuse_kinds(kinds)
            for batch in to_batches(data):
                self._writer.write(batch)
                self._given += batch.num_rows
        except BaseException:
            self.abort()
            raise

    def _message(self, entries: pa.Table) -> MixedCommitMessage:
        return MixedCommitMessage(
            table=self._uri,
            table_uuid=self._uuid,
            base_snapshot=self._base,
            entries=entries,
            given_rows=self._given,
        )


def commit_overwrite(
    batch: BegunBatch,
    messages: Sequence[MixedCommitMessage],
    replaced: Replaced,
    *,
    commit: CommitId | None,
    properties: Mapping[str, str] | None,
) -> WriteReport:
    """Replace the rows of partitions by those of prepared files, in one commit of the base store.

    After an error the files are kept: abort the messages.
    """
    handle, given = batch.pair.base, checked_properties(properties)
    loaded, uri = batch.pair.load().base, handle.uri
    entries = checked_entries(loaded, uri, messages)
    if (earlier := earlier_commit(handle, loaded, commit)) is not None:
        report = change_report(uri, earlier)
        return with_unpublished(loaded, report, earlier.snapshot, entries)
    replaced.require_valid(loaded.metadata)
    require_names(messages, uri, (FileKind.BASE,), batch.transaction)
    require_one_writer(messages, uri)
    added = entries_of_new_files(loaded, uri, entries)
    require_present(loaded, uri, entries)
    bases = {each.base_snapshot for each in messages}
    published = publish_overwrite(
        OverwriteChange(batch, replaced, added),
        loaded,
        commit=commit,
        properties=given,
        guarded=lambda change: PublishedOnce(uri, change, bases, entries),
    )
    report = change_report(uri, published)
    if not published.is_replayed:
        return report
    return with_unpublished(handle.load(), report, published.snapshot, entries)


def base_nodes(pair: StorePair) -> WriterNodes:
    """Return the function that finds the node of a key in new files of the base store."""
    loaded = pair.load()
    buckets = int_property(loaded.base.metadata.properties, BASE_BUCKETS, DEFAULT_BUCKETS)
    return WriterNodes(loaded.key, buckets, BASE_BUCKETS)
