# SPDX-License-Identifier: Apache-2.0
"""Writes changes to files of the change store: by partition, node and kind, with offsets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from lakeformat.environment import Environment
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.properties import int_property
from lakeformat.iceberg.write.given_rows import GivenRows
from lakeformat.mixed.file_names import FileKind
from lakeformat.mixed.stores.file_offset import FILE_OFFSET
from lakeformat.mixed.stores.store_pair import LoadedPair
from lakeformat.mixed.write.changes import Changes, ChangesOf
from lakeformat.mixed.write.node_writer import NodeWriter
from lakeformat.rows.row_kinds import INSERT, Kinds

__all__ = ["CHANGE_BUCKETS", "DEFAULT_BUCKETS", "OWN_SEQUENCE", "ChangeWriter"]

CHANGE_BUCKETS = "change.file-index.hash-bucket"
"""The table property with the number of nodes of new changes."""
DEFAULT_BUCKETS = 4
_LEVEL, _FAST = "write.parquet.compression-level", "1"
OWN_SEQUENCE = 0
"""The transaction id in the file names of a write without a batch.

Readers use the sequence number that the file gets at its commit instead.
"""


class ChangeWriter(NodeWriter):
    """Writes the changes of one transaction; at the end call ``finish``, or ``discard`` after an
    error.
    """

    def __init__(
        self,
        pair: LoadedPair,
        environment: Environment,
        *,
        replaces: bool,
        transaction: int = OWN_SEQUENCE,
    ) -> None:
        """Start a writer; with ``replaces`` an inserted row first deletes the rows with its key."""
        buckets = int_property(pair.base.metadata.properties, CHANGE_BUCKETS, DEFAULT_BUCKETS)
        super().__init__(
            _with_level(pair.change),
            environment,
            pair.key,
            buckets,
            option=CHANGE_BUCKETS,
            kind=FileKind.INSERT,
            transaction=transaction,
            more=(FILE_OFFSET,),
        )
        self._of_table = GivenRows(pair.change.metadata.schema)
        self._changes = ChangesOf(
            pair.change.metadata, self._key, replaces=replaces, version=pair.version
        )
        self._offset = 1
        self.schema = pair.base.metadata.schema
        """The columns of the table."""
        self.changed_rows = 0
        """The number of rows that were given so far."""

    def change(
        self, batch: pa.RecordBatch, kinds: Kinds | None, *, of_stored: bool = False
    ) -> None:
        """Add changes: a row of kind ``-U`` or ``-D`` is a delete, any other row an insert.

        ``kinds=None`` makes all rows inserts. With ``of_stored`` the rows to delete were read from
        the table, so their version field may be null. Raise ``InvalidRequestError`` for a row that
        does not fit the table, has no key, or is a delete that needs a version and has none.
        """
        numbers = range(self.changed_rows, self.changed_rows + batch.num_rows)
        if kinds is None:
            kinds = np.full(len(numbers), INSERT, np.int8)
        rows = self._of_table(batch, numbers)
        self._add(self._changes(rows, kinds, numbers, self._offset, of_stored=of_stored))
        self.changed_rows = numbers.stop

    def finish(self) -> pa.Table:
        """Write the remaining rows, and return the manifest entries of all files."""
        if (last := self._changes.held_back(self.changed_rows, self._offset)) is not None:
            self._add(last)
        return super().finish()

    def _add(self, made: Changes) -> None:
        self._offset = made.next_offset
        for kind, changed in (
            (FileKind.CHANGE_DELETE, made.deletes),
            (FileKind.INSERT, made.inserts),
        ):
            self._kind = kind
            self.write(changed)


def _with_level(change: LoadedMetadata) -> LoadedMetadata:
    """Return the change store with a low level of compression, unless a property sets one.

    A low level is enough, because the next optimizing writes the rows again, to the base store.
    """
    metadata = change.metadata
    properties = {_LEVEL: _FAST, **metadata.properties}
    return replace(change, metadata=replace(metadata, properties=properties))
