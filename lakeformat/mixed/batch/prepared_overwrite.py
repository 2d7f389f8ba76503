# SPDX-License-Identifier: Apache-2.0
"""Writes the new rows of an overwrite in several processes; one commit publishes all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakeformat.iceberg.properties import int_property
from lakeformat.iceberg.write.append import checked_properties, earlier_commit
from lakeformat.mixed.batch.base_writer import BASE_BUCKETS, DEFAULT_BUCKETS, BaseWriter
from lakeformat.mixed.batch.begin import BegunBatch
from lakeformat.mixed.batch.overwrite import (
    OverwriteChange,
    Replaced,
    publish_overwrite,
    refuse_kinds,
)
from lakeformat.mixed.file_names import FileKind
from lakeformat.mixed.stores.log_store import require_no_log_store
from lakeformat.mixed.stores.store_pair import StorePair
from lakeformat.mixed.write.message import MixedCommitMessage
from lakeformat.mixed.write.prepared import PreparedNodeWriter, publish_prepared
from lakeformat.mixed.write.writer_nodes import WriterNodes
from lakeformat.rows.batches import to_batches
from lakeformat.tables.arguments import Overwritten
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.table import offer_arguments
from lakeformat.tables.write_report import WriteReport

__all__ = ["PreparedOverwriteWriter", "base_nodes", "commit_overwrite"]


@offer_arguments
class PreparedOverwriteWriter(PreparedNodeWriter):
    """Writes new rows of an overwrite; one writer must get all rows of a node (a hash bucket).

    Nothing is visible before the batch commits the messages of ``prepare``. If a call raises an
    error, or a ``with`` block ends with one, the writer deletes its files and cannot be used again.
    """

    def __init__(self, pair: StorePair, overwritten: Overwritten, transaction: int) -> None:
        super().__init__(pair.base)
        loaded = pair.load()
        Replaced(partitions=overwritten).require_valid(loaded.base.metadata)
        self._writer = BaseWriter(loaded.base, pair.base.environment, loaded.key, transaction)
        self._given = 0

    @property
    def _given_rows(self) -> int:
        return self._given

    def _fill(self, data: Any, kinds: Any) -> None:
        refuse_kinds(kinds)
        for batch in to_batches(data):
            self._writer.write(batch)
            self._given += batch.num_rows


def commit_overwrite(
    batch: BegunBatch,
    messages: Sequence[MixedCommitMessage],
    replaced: Replaced,
    *,
    commit: CommitId | None,
    properties: Mapping[str, str] | None,
) -> WriteReport:
    """Replace the rows of partitions by those of prepared files, in one commit of the base store.

    After an error the files are kept: call ``table.abort`` with the messages.
    """
    handle, given = batch.pair.base, checked_properties(properties)
    pair = batch.pair.load()
    loaded = pair.base
    earlier = earlier_commit(handle, loaded, commit)
    if earlier is None:
        require_no_log_store(pair)
        replaced.require_valid(loaded.metadata)
    return publish_prepared(
        handle,
        loaded,
        handle.uri,
        messages,
        earlier=None if earlier is None else (loaded, earlier),
        kinds=(FileKind.BASE,),
        transaction=batch.transaction,
        publish=lambda added, guarded: publish_overwrite(
            OverwriteChange(batch, replaced, added),
            loaded,
            commit=commit,
            properties=given,
            guarded=guarded,
        ),
    )


def base_nodes(pair: StorePair) -> WriterNodes:
    """Return the function that finds the node of each key for new files of the base store."""
    loaded = pair.load()
    buckets = int_property(loaded.base.metadata.properties, BASE_BUCKETS, DEFAULT_BUCKETS)
    return WriterNodes(loaded.key, buckets, BASE_BUCKETS)
