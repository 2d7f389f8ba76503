# SPDX-License-Identifier: Apache-2.0
"""Changes of rows whose files are published later, in this process or in another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakeformat.iceberg.properties import bool_property, int_property
from lakeformat.iceberg.write.append import checked_properties
from lakeformat.iceberg.write.commit_prepared import delete_prepared, unpublished_entries
from lakeformat.iceberg.write.publish import publish_change
from lakeformat.mixed.file_names import FileKind
from lakeformat.mixed.key_hash import require_hashable
from lakeformat.mixed.stores.properties import UPSERT
from lakeformat.mixed.stores.store_pair import StorePair
from lakeformat.mixed.write.change_writer import (
    CHANGE_BUCKETS,
    DEFAULT_BUCKETS,
    OWN_SEQUENCE,
    ChangeWriter,
)
from lakeformat.mixed.write.message import MixedCommitMessage
from lakeformat.mixed.write.prepared import PreparedNodeWriter, publish_prepared
from lakeformat.mixed.write.write_changes import (
    WRITTEN_ROWS,
    BatchPlace,
    added_changes,
    change_handle,
    earlier_write,
    fill_given,
    refuse_replacing,
    require_changeable,
)
from lakeformat.mixed.write.writer_nodes import WriterNodes
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.table import offer_arguments
from lakeformat.tables.write_report import WriteReport

__all__ = ["PreparedChangeWriter", "abort_changes", "change_nodes", "commit_changes"]


@offer_arguments
class PreparedChangeWriter(PreparedNodeWriter):
    """Writes changes of rows; one writer must get all rows of a node (a hash bucket of keys).

    Nothing is visible before the messages of ``prepare`` are committed. If a call raises an error,
    or a ``with`` block ends with one, the writer deletes its files and cannot be used again.
    """

    def __init__(
        self, pair: StorePair, *, replaces: bool | None, transaction: int = OWN_SEQUENCE
    ) -> None:
        """Start a writer; with ``replaces`` an inserted row replaces the row of its key.

        If ``replaces`` is None, the table property ``write.upsert.enabled`` decides.
        ``transaction`` is that of the batch that commits the files; leave it out without a batch.
        """
        pair.base.pointer.require_writable()
        handle = change_handle(pair)
        super().__init__(handle)
        loaded = pair.load()
        require_changeable(loaded)
        if replaces is None:
            replaces = bool_property(loaded.base.metadata.properties, UPSERT, default=True)
        self._changes = ChangeWriter(
            loaded, handle.environment, replaces=replaces, transaction=transaction
        )
        self._writer = self._changes

    @property
    def _given_rows(self) -> int:
        return self._changes.changed_rows

    def _fill(self, data: Any, kinds: Any) -> None:
        fill_given(self._changes, data, kinds)


def commit_changes(
    pair: StorePair,
    messages: Sequence[MixedCommitMessage],
    *,
    commit: CommitId | None,
    properties: Mapping[str, str] | None,
    batch: BatchPlace | None = None,
) -> WriteReport:
    """Publish the changes of prepared files in one commit of the change store.

    If ``batch`` is given, the commit ends it. If an earlier call has published ``commit``, this
    call publishes nothing. After an error the files are kept: abort the messages, or commit them
    again.
    """
    given = checked_properties(properties)
    refuse_replacing(pair, commit)
    pair.base.pointer.require_writable()
    handle, loaded = change_handle(pair), pair.load_to_change()
    earlier = earlier_write(pair, loaded, commit)
    if earlier is None:
        require_changeable(loaded)
    written = str(sum(each.rows for each in messages))
    return publish_prepared(
        handle,
        loaded.change,
        pair.base.uri,
        messages,
        earlier=earlier,
        kinds=(FileKind.INSERT, FileKind.CHANGE_DELETE),
        transaction=OWN_SEQUENCE if batch is None else batch.transaction,
        publish=lambda added, guarded: publish_change(
            handle,
            guarded(lambda base: added_changes(base, added, batch)),
            commit=commit,
            properties={**given, WRITTEN_ROWS: written},
            planned=loaded.change,
        ),
    )


def abort_changes(pair: StorePair, messages: Sequence[MixedCommitMessage]) -> list[str]:
    """Delete the files of messages; return the URIs of files that could not be deleted.

    Raise ``InvalidRequestError`` if a snapshot has one of the files; then no file is deleted.
    """
    base = pair.base.load().metadata.table_uuid
    of_base = [each for each in messages if each.table_uuid == base]
    of_change = [each for each in messages if each.table_uuid != base]
    found = [unpublished_entries(change_handle(pair), of_change)]
    if of_base:
        found.append(unpublished_entries(pair.base, of_base))
    return [address for of_store in found for address in delete_prepared(*of_store)]


def change_nodes(pair: StorePair) -> WriterNodes:
    """Return the function that finds the node of each key for new files of the change store.

    Raise ``UnsupportedError`` if the table cannot be written.
    """
    loaded = pair.load_to_change()
    require_changeable(loaded)
    require_hashable(loaded.key)
    buckets = int_property(loaded.base.metadata.properties, CHANGE_BUCKETS, DEFAULT_BUCKETS)
    return WriterNodes(loaded.key, buckets, CHANGE_BUCKETS)
