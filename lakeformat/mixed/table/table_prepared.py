# SPDX-License-Identifier: Apache-2.0
"""The methods of a Mixed table for writers in other processes, whose files one commit publishes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakeformat.errors import InvalidRequestError
from lakeformat.mixed.table.table_upkeep import TableUpkeep
from lakeformat.types.type_rules import is_list, is_whole_number

if TYPE_CHECKING:
    from lakeformat.mixed.batch.prepared_overwrite import PreparedOverwriteWriter
    from lakeformat.mixed.write.message import MixedCommitMessage
    from lakeformat.mixed.write.prepared_changes import PreparedChangeWriter
    from lakeformat.mixed.write.writer_nodes import WriterNodes
    from lakeformat.tables.arguments import Overwritten
    from lakeformat.tables.commit_id import CommitId
    from lakeformat.tables.write_report import WriteReport

__all__ = ["TablePrepared"]


class TablePrepared(TableUpkeep):
    """The methods of a Mixed table for writers in other processes, whose files one commit
    publishes.
    """

    def new_writer(
        self,
        *,
        overwrite: Overwritten | None = None,
        upsert_by: Sequence[str] | None = None,
        transaction: int | None = None,
        **options: Any,
    ) -> PreparedChangeWriter | PreparedOverwriteWriter:
        """Return a writer of changes; any process can commit its messages later.

        One writer must get all rows of a node (a hash bucket of keys), in their order;
        ``writer_buckets`` finds the node of a key. With ``upsert_by``, which must be the key of the
        table, a new row always replaces the row of its key. Otherwise the table property
        ``write.upsert.enabled`` decides. If ``batch.commit`` will publish the messages, pass
        ``transaction=batch.transaction`` here. If you will pass ``overwrite`` to ``batch.commit``,
        pass the same ``overwrite`` here, too. Raise ``InvalidRequestError`` for a transaction that
        no batch can have.
        """
        from lakeformat.mixed.write.change_writer import OWN_SEQUENCE
        from lakeformat.mixed.write.prepared_changes import PreparedChangeWriter

        self._require_options("commit", self.new_writer, options)
        if transaction is not None and not (is_whole_number(transaction) and transaction > 0):
            raise InvalidRequestError(
                f"transaction must be a whole number from 1, got {transaction!r}. For "
                "batch.commit, pass batch.transaction. For table.commit, leave transaction out"
            )
        if upsert_by is not None:
            self._require_key("upsert_by", upsert_by)
        if overwrite is not None:
            from lakeformat.mixed.batch.prepared_overwrite import PreparedOverwriteWriter

            if transaction is None:
                self.require_arguments("commit", overwrite=overwrite)
            assert transaction is not None
            return PreparedOverwriteWriter(self._pair, overwrite, transaction)
        return PreparedChangeWriter(
            self._pair,
            replaces=True if upsert_by is not None else None,
            transaction=OWN_SEQUENCE if transaction is None else transaction,
        )

    def commit(
        self,
        messages: Iterable[MixedCommitMessage],
        *,
        commit: CommitId | None = None,
        properties: Mapping[str, str] | None = None,
        **options: Any,
    ) -> WriteReport:
        """Publish the changes of prepared files in one commit of the change store.

        Commit each message only once. Raise ``InvalidRequestError`` if a message belongs to another
        table, or names a file that is outside of the directory of data files, missing, or already
        published. Raise ``UnsupportedError`` if two messages have rows of the same node in the same
        partition. After an error the files are kept: call ``abort``, or commit them again.
        """
        from lakeformat.mixed.write.message import check_messages
        from lakeformat.mixed.write.prepared_changes import commit_changes

        self._require_options("commit", self.commit, options)
        return commit_changes(
            self._pair, check_messages(messages), commit=commit, properties=properties
        )

    def abort(self, messages: Iterable[MixedCommitMessage]) -> list[str]:
        """Delete the files of messages that will not be committed.

        Return the URIs of files that could not be deleted. Raise ``InvalidRequestError`` if a
        snapshot has one of the files; then no file is deleted. Call ``abort`` only if no commit of
        these messages is in progress. After ``CommitOutcomeUnknownError`` first repeat the commit.
        """
        from lakeformat.mixed.write.message import check_messages
        from lakeformat.mixed.write.prepared_changes import abort_changes

        return abort_changes(self._pair, check_messages(messages))

    def read_message(self, content: bytes) -> MixedCommitMessage:
        """Return the message that ``to_bytes`` has encoded.

        Raise ``InvalidRequestError`` for other bytes.
        """
        from lakeformat.mixed.write.message import MixedCommitMessage

        return MixedCommitMessage.from_bytes(content)

    def writer_buckets(self, *, overwrites: bool = False) -> WriterNodes:
        """Return the function that finds the node, or hash bucket, of each key.

        One writer must get all rows of a node. With ``overwrites`` the nodes are those of new files
        of the base store, otherwise those of new files of the change store.
        """
        if overwrites:
            from lakeformat.mixed.batch.prepared_overwrite import base_nodes

            return base_nodes(self._pair)
        from lakeformat.mixed.write.prepared_changes import change_nodes

        return change_nodes(self._pair)

    def _require_key(self, argument: str, given: Sequence[str]) -> None:
        key = self.key_columns
        if not is_list(given) or sorted(map(str, given)) != sorted(key):
            raise InvalidRequestError(
                f"{argument} must be the key, {' and '.join(key)}, got {given!r}: leave it out"
            )
