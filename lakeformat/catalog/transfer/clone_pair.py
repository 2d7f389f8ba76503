# SPDX-License-Identifier: Apache-2.0
"""Copies one state of a Mixed table (merged rows, columns, properties) to a new pair of stores.

Iceberg metadata names each file by its URI, so rows are copied, not files. One commit writes them
to the base store. Then the rows of both tables are compared.

Until the clone is complete, a mark in the properties of both stores names the source, and the clone
cannot be opened. A repeated call begins again; if the rows were already compared, it only removes
the mark.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from lakeformat.catalog.iceberg.catalog import IcebergCatalog
from lakeformat.catalog.iceberg.metastore import Describe
from lakeformat.catalog.iceberg.new_pair import make_pair
from lakeformat.catalog.iceberg.pair_stores import new_change_store
from lakeformat.catalog.names import TableName
from lakeformat.catalog.transfer.transfer_reports import CloneReport, drop_advice
from lakeformat.environment import Environment
from lakeformat.errors import AlreadyExistsError, CorruptTableError, InvalidRequestError
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.metadata.updates import remove_properties
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.sort_order import SortOrder
from lakeformat.mixed.batch.base_writer import RepeatedKeysError
from lakeformat.mixed.read.scan import MixedScan
from lakeformat.mixed.stores.alter_record import ALTERED
from lakeformat.mixed.stores.log_store import OF_LOG_STORE
from lakeformat.mixed.stores.properties import (
    CHANGE_IDENTIFIER,
    CLONING,
    PRIMARY_KEY,
    RENAMED_TO,
    REPEATED_KEYS,
    TABLE_STORE,
)
from lakeformat.mixed.stores.store_pair import StorePair
from lakeformat.mixed.table import MixedTable
from lakeformat.rows.row_hashes import row_hashes
from lakeformat.tables.clone_mark import shown_mark
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.position import AnyPosition
from lakeformat.types.count_text import counted

__all__ = ["clone_pair"]

_log = logging.getLogger(__name__)

_ROWS = CommitId("lake-clone", 0)
"""The id of the commit that writes all rows of a clone."""
_OWN = (
    TABLE_STORE,
    PRIMARY_KEY,
    CHANGE_IDENTIFIER,
    RENAMED_TO,
    REPEATED_KEYS,
    ALTERED,
    CLONING,
)
_PLACES = (
    "write.data.path",
    "write.folder-storage.path",
    "write.metadata.path",
    "write.object-storage.path",
)
"""Properties that would make the clone write into the directories of the source."""
_VERSION_3 = 3


@dataclass(slots=True)
class _Content:
    """The number of rows, and the sum of their hashes. The order of the rows changes neither."""

    rows: int = 0
    hashes: list[int] = field(default_factory=lambda: [0, 0])

    def add(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        if batch.num_rows:
            sums = row_hashes(batch.columns).sum(axis=0, dtype=np.uint64)
            self.hashes = [
                (old + int(new)) % (1 << 64) for old, new in zip(self.hashes, sums, strict=True)
            ]


@dataclass(frozen=True, slots=True)
class _PairClone:
    """The clone of one state of ``source`` under the name ``name``."""

    source: MixedTable
    catalog: IcebergCatalog
    name: TableName
    scan: MixedScan
    mark: str
    on_progress: Callable[[int, int], None] | None

    @property
    def change(self) -> TableName:
        return new_change_store(self.name)

    @property
    def stores(self) -> list[TableName]:
        return [self.name, self.change]

    def handle(self, store: TableName) -> TableHandle:
        return TableHandle(
            self.catalog._metastore.pointer(store), environment=self.catalog._environment
        )

    def table(self) -> MixedTable:
        """Open the clone, even if it has the mark of an unfinished clone."""
        return MixedTable(StorePair(self.handle(self.name), self.handle(self.change).pointer))

    def is_compared(self) -> bool:
        """Return True if an earlier attempt has compared all rows.

        An attempt marks both stores as an unfinished clone, and removes these marks only after the
        comparison. So if the change store exists without the mark, all rows were compared.
        Otherwise drop the stores that an earlier attempt has left, and return False.
        """
        left = self.require_free()
        if len(left) > 1 and CLONING not in self.handle(self.change).load().metadata.properties:
            return True
        if left:
            self.catalog.drop_table(str(left[0]), purge=True)
        return False

    def require_free(self) -> list[TableName]:
        """Return the stores that an earlier attempt of this clone has left.

        Raise ``AlreadyExistsError`` if another table or another clone has the name.
        """
        there = {*self.catalog._metastore.tables(self.name.database)}
        left = [each for each in self.stores if each.table in there]
        for store in left[:1]:  # the last step removes the mark of the change store first
            self._require_mark(store)
        return left

    def _require_mark(self, store: TableName) -> None:
        found = self.handle(store).load().metadata.properties.get(CLONING)
        if found == self.mark:
            return
        if found is None:
            raise AlreadyExistsError(
                f"table '{store}' exists in {self.catalog.location}: choose another name for the "
                "clone, or, if you need none of the table's rows, drop the table first"
            )
        raise AlreadyExistsError(
            f"'{store}' in {self.catalog.location} is another unfinished clone{shown_mark(found)}: "
            "repeat that one, or remove it with "
            f"{drop_advice(self.catalog.location, store, is_iceberg=True)}"
        )

    def make_stores(self) -> None:
        state = self.scan._state
        given = state.base.metadata.properties
        kept = {
            name: value
            for name, value in given.items()
            if name not in (*_OWN, *_PLACES) and not name.startswith(OF_LOG_STORE)
        }
        kept[CLONING] = self.mark

        def describe(more: Mapping[str, str]) -> Describe:
            return lambda location: _empty_copy(
                state.base.metadata,
                state.schema,
                location,
                {**kept, **more},
                self.catalog._environment,
            )

        key = [each.name for each in state.key]
        if not make_pair(self.catalog._metastore, self.name, key, describe):
            raise AlreadyExistsError(
                f"another program has just created table '{self.name}': choose another name"
            )

    def copy_rows(self) -> None:
        """Write all rows in one commit, read them again, and compare them with the rows of the
        source.

        Raise ``CorruptTableError`` if they differ. If two source rows have the same key, drop the
        clone and raise ``InvalidRequestError``.
        """
        read, stored = _Content(), _Content()
        rows = pa.RecordBatchReader.from_batches(self.scan.schema, self._rows(read))
        clone = self.table()
        try:
            with clone.begin() as batch:
                batch.overwrite(rows, "table", commit=_ROWS)
        except RepeatedKeysError as repeated:
            self.catalog.drop_table(str(self.name), purge=True)
            raise InvalidRequestError(
                f"{self.source.location} was not cloned to '{self.name}': "
                f"{counted(repeated.rows, 'row')} have a key that occurs more than once, such as "
                f"{repeated.examples}, but a clone can have only one row of each key. For "
                "each of these keys, choose the row to keep. Call upsert() of the source with the "
                "chosen rows: each one replaces all rows of its key in its partition. If a key has "
                "rows in other partitions, delete those rows with delete() of the source. Then "
                "clone again"
            ) from None
        for batch in clone.scan(self.scan.schema.names).to_batches():
            stored.add(batch)
        if read != stored:
            raise CorruptTableError(
                f"the content of the clone '{self.name}' ({counted(stored.rows, 'row')}) differs "
                f"from that of {self.source.location} ({counted(read.rows, 'row')}), so the clone "
                "remains unfinished: repeat the clone, and check the storage of the target if it "
                "fails again"
            )

    def _rows(self, read: _Content) -> Iterator[pa.RecordBatch]:
        splits = self.scan.splits()
        files, done = sum(len(each.files) for each in splits), 0
        for split in splits:
            for batch in self.scan.read(split):
                read.add(batch)
                yield batch
            done += len(split.files)
            if self.on_progress is not None:
                self.on_progress(files, done)

    def finish(self) -> None:
        """Remove the mark of an unfinished clone from both stores.

        The base store is the last, because the mark there hides the table.
        """
        for store in reversed(self.stores):
            commit_metadata(
                self.handle(store), lambda base: remove_properties(base.metadata, [CLONING])
            )

    def report(self, *, dry_run: bool, outcome: str, copies: bool = True) -> CloneReport:
        """Log and return the report of the clone.

        In a dry run the report counts the source files that would be read. ``copies`` is False if
        an earlier attempt has copied the rows.
        """
        files: list[int] = []
        ids: tuple[int, ...] = ()
        if dry_run:
            splits = self.scan.splits()
            files = [each.split.file.size_bytes for split in splits for each in split.files]
        else:
            base = self.table().base
            files = [each.file.size_bytes for each in base.scan().splits()]
            ids = tuple(each.snapshot_id for each in base.snapshots())
        target = self.catalog.location_of(str(self.name))
        report = CloneReport(
            source=self.source.location,
            target=target,
            what=f"position {self.scan.position}",
            dry_run=dry_run,
            files=len(files),
            copied=len(files) if copies and not dry_run else 0,
            bytes=sum(files),
            snapshot_ids=ids,
            reason=outcome,
        )
        _log.info("clone of %s to %s: %s", report.source, report.target, report.reason)
        return report


def clone_pair(
    source: MixedTable,
    catalog: IcebergCatalog,
    name: str,
    *,
    snapshot: AnyPosition | str | None = None,
    dry_run: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> CloneReport:
    """Copy the merged rows of one state into a new Mixed table ``database.table``.

    ``snapshot`` is a position or the id of a snapshot of either store; default: the newest state. A
    repeated call completes an interrupted clone. ``dry_run`` only counts rows and files. If another
    table has the name, ``AlreadyExistsError`` is raised.
    """
    target = catalog._plain_name(name)
    catalog._require_database(target.database)
    state = None if snapshot is None else source.position(snapshot)
    asked = "the newest state" if state is None else f"position {state}"
    mark = json.dumps({"source": source.location, "what": asked})
    clone = _PairClone(source, catalog, target, source.scan(snapshot=state), mark, on_progress)
    if dry_run:
        clone.require_free()
        rows = counted(clone.scan.count(), "row")
        return clone.report(dry_run=True, outcome=f"{rows} would be copied")
    if clone.is_compared():
        clone.finish()
        return clone.report(
            dry_run=False,
            copies=False,
            outcome="an earlier attempt had copied and compared all rows; the clone is complete "
            "now",
        )
    clone.make_stores()
    clone.copy_rows()
    clone.finish()
    rows = counted(clone.table().scan().count(), "row")
    return clone.report(dry_run=False, outcome=f"{rows} copied and compared")


def _empty_copy(
    base: TableMetadata,
    schema: Schema,
    location: str,
    properties: Mapping[str, str],
    environment: Environment,
) -> TableMetadata:
    """Return the metadata of a new, empty store with the columns ``schema``.

    Its partitions, its sort order, and the last assigned ids of columns and partition fields are
    those of ``base``, the store that is cloned.
    """
    order = base.sort_order
    return TableMetadata(
        format_version=base.format_version,
        location=location.rstrip("/"),
        last_updated_ms=environment.now_millis(),
        last_column_id=base.last_column_id,
        schemas=(replace(schema, schema_id=0),),
        current_schema_id=0,
        partition_specs=(replace(base.spec_of(base.default_spec_id), spec_id=0),),
        default_spec_id=0,
        table_uuid=environment.new_id(),
        last_partition_id=base.last_partition_id,
        sort_orders=(SortOrder(0), replace(order, order_id=1)) if order.fields else (SortOrder(0),),
        default_sort_order_id=1 if order.fields else 0,
        properties=properties,
        next_row_id=0 if base.format_version >= _VERSION_3 else None,
    )
