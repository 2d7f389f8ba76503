# SPDX-License-Identifier: Apache-2.0
"""Begins and ends batches. A batch has a transaction, and holds the lease of the table."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from lakeformat.errors import CommitConflictError, LockUnavailableError, TableReplacedError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.read.plan import TableState
from lakeformat.iceberg.schema import Schema, named_fields
from lakeformat.iceberg.write.file_changes import ChangedFiles
from lakeformat.iceberg.write.publish import Base, FileChange, publish_change
from lakeformat.mixed.batch.lease import Lease, leases_of, take_lease
from lakeformat.mixed.batch.open_batches import (
    BEGIN,
    LEASE,
    ended_mark,
    leased_batches,
    overwrite_transactions,
    overwritten_by,
    transactions_ended,
)
from lakeformat.mixed.read.state import MixedState
from lakeformat.mixed.stores.detaching import require_not_detaching
from lakeformat.mixed.stores.optimized_sequences import optimized_sequences
from lakeformat.mixed.stores.partition_path import partition_paths
from lakeformat.mixed.stores.store_pair import LoadedPair, StorePair
from lakeformat.mixed.write.write_changes import BatchPlace, change_handle, require_changeable
from lakeformat.tables.position import MAIN_BRANCH, Position

__all__ = ["BegunBatch", "begin_batch", "end_dead_batches"]


@dataclass(frozen=True, slots=True)
class BegunBatch:
    """A batch with its transaction, its lease and the state of the table that it reads."""

    pair: StorePair
    transaction: int
    begin: Snapshot
    """The empty snapshot of the change store that took the transaction."""
    lease: Lease
    state: MixedState
    """The table when the batch began."""

    def place(self) -> BatchPlace:
        """Return the transaction and the checks with which the changes of the batch are
        committed.
        """
        return BatchPlace(
            self.transaction, ended_mark([self.transaction]), self._require_may_change
        )

    def require_open(self, change: LoadedMetadata) -> None:
        """Raise an error if this batch may no longer commit.

        Raise ``LockUnavailableError`` if the batch has lost its lease, or if the change store
        records its end. Raise ``TableReplacedError`` if the change store was created again, and
        ``CommitConflictError`` if the table is being detached.
        """
        if not self._began_in(change):
            raise TableReplacedError(
                f"{self} was not published: since it began, the change store {change.places.uri} "
                f"was dropped and created again, with the id {change.metadata.table_uuid}. Open "
                "the table again. If the rows belong in the new table, write them in a new batch"
            )
        self.lease.require(str(self))
        require_not_detaching(change)
        if self.transaction in transactions_ended(change):
            self.lease.release()  # no commit of this batch can follow
            raise LockUnavailableError(
                f"{self} has already ended. An earlier call has published its changes, or its "
                "lease was stale and a compaction, `lake end-batch` or another batch ended it. "
                "Nothing was published now. If the table lacks the rows, write them in a new batch"
            )

    def require_no_other_overwrite(self, base: LoadedMetadata, head: int | None) -> bool:
        """Raise ``CommitConflictError`` if another batch has overwritten the base store meanwhile.

        Return True if no other batch has overwritten it since this batch began. Return False if
        that is unknown, because base snapshots have expired or were rolled back. ``head`` is the id
        of the newest base snapshot.
        """
        began, oldest = self.state.base.snapshot, None
        for each in base.metadata.ancestry(head):
            if began is not None and each.snapshot_id == began.snapshot_id:
                return True
            oldest = each
            for other in overwritten_by(each) - {self.transaction}:
                order = "later" if other > self.transaction else "earlier"
                raise CommitConflictError(
                    f"{self} was not published: the {order} batch with transaction {other} has "
                    f"overwritten the base store in snapshot {each.snapshot_id}, after this batch "
                    "had read it. Begin a new batch"
                )
        return began is None and (oldest is None or oldest.parent_id is None)

    def require_history(self, change: LoadedMetadata) -> list[Snapshot]:
        """Return the snapshots of the change store since this batch began, newest first.

        Raise ``CommitConflictError`` if the snapshot with which it began is not in the history.
        """
        newer: list[Snapshot] = []
        for each in change.metadata.ancestry(change.metadata.current_snapshot_id):
            if each.snapshot_id == self.begin.snapshot_id:
                return newer
            newer.append(each)
        raise CommitConflictError(
            f"{self} was not published: the snapshot {self.begin.snapshot_id} with which it began "
            f"is no longer in the history of the change store {change.places.uri}, because it "
            "expired or the store was rolled back. So it is unknown which changes are newer. Begin "
            "a new batch. If Amoro expires snapshots of the table, set 'snapshot.keep.duration' "
            "to more than the time that batches take"
        )

    def require_columns(self, now: Schema, *, all_kept: bool = False) -> None:
        """Raise ``CommitConflictError`` if a column name now belongs to another column.

        Only names that the table had when the batch began are checked. With ``all_kept``, raise it
        also if no column has the name any more.
        """
        found = {name: each.id for name, each in named_fields(now.struct)}
        for name, each in named_fields(self.state.schema.struct):
            if found.get(name, None if all_kept else each.id) != each.id:
                raise CommitConflictError(
                    f"{self} was not published: column {name!r} was dropped or renamed since the "
                    "batch began. Rows of the batch could get values of another column. Begin a "
                    "new batch, which reads the current columns"
                )

    def end(self) -> None:
        """Record in the change store that this batch has ended, and release the lease.

        If the change store was created again, or has the record already, only release the lease.
        """

        def change(base: Base) -> FileChange | None:
            loaded = base.loaded
            if not self._began_in(loaded) or self.transaction in transactions_ended(loaded):
                return None
            return _empty_change(base, ended_mark([self.transaction]))

        try:
            publish_change(change_handle(self.pair), change, commit=None)
        finally:
            self.lease.release()

    def __str__(self) -> str:
        return f"the batch with transaction {self.transaction} on {self.pair.base.uri}"

    def _began_in(self, change: LoadedMetadata) -> bool:
        """Return True if ``change`` is the change store in which this batch began.

        Return False if another table now has its name.
        """
        return change.metadata.table_uuid == self.state.change.metadata.table_uuid

    def _require_may_change(self, base: Base, entries: pa.Table) -> None:
        """Check that the files of ``entries`` may be committed as changes of this batch.

        Raise ``LockUnavailableError`` if this batch has ended. Raise ``CommitConflictError`` for a
        conflict with another commit, such as one that has merged newer changes.
        """
        self.require_open(base.loaded)
        self.require_history(base.loaded)
        if not len(entries):
            return
        store = self.pair.base.load()
        merged = optimized_sequences(store, store.metadata.current_snapshot)
        for each in sorted({*partition_paths(base.loaded.metadata, entries)}):
            if (found := merged.sequence(each)) >= self.transaction:
                where = f"of partition {each!r} " if each else ""
                raise CommitConflictError(
                    f"{self} was not published: the base store has merged changes "
                    f"{where}up to sequence number {found}, so the older changes of this batch "
                    "can no longer be merged before them. An optimizer or a batch that does not "
                    "respect the lease of this library, such as Amoro's, did that. Begin a new "
                    "batch, and stop Amoro's optimizing of the table while batches run"
                )
        self.require_no_other_overwrite(store, store.metadata.current_snapshot_id)


def begin_batch(pair: StorePair) -> BegunBatch:
    """Begin a batch with an empty commit to the change store.

    The sequence number of the new snapshot is the transaction of the batch. Batches whose lease is
    stale are ended. Raise ``LockUnavailableError`` while another batch runs.
    """
    pair.base.pointer.require_writable()
    handle = change_handle(pair)
    require_changeable(pair.load_to_change())
    environment = handle.environment
    lease = take_lease(leases_of(pair), pair.base.load().places, environment)
    try:
        # Under the lease, so no older batch overwrites the base store after this. Before the batch
        # begins, so the base store has no newer changes than the batch.
        loaded = pair.load()
        published = publish_change(
            handle,
            lambda base: _empty_change(base, ended_mark(leased_batches(base.loaded.metadata))),
            commit=None,
            properties={BEGIN: environment.new_id(), LEASE: str(lease.number)},
            planned=loaded.change,
        )
        begin = published.snapshot
        assert begin is not None
        state = _state(pair.load(), begin)
        return BegunBatch(pair, begin.sequence_number, begin, lease, state)
    except BaseException:
        lease.release()
        raise


def end_dead_batches(pair: StorePair) -> None:
    """Record the end of each batch of this library whose lease is stale or released.

    The record is in the change store. Later commits of these batches are refused.
    """
    overwritten = overwrite_transactions(pair.base.load().metadata)
    # Read before the lease, so a batch that begins meanwhile is not among them.
    known = leased_batches(pair.change.load().metadata).keys() - overwritten
    if not known:
        return
    newest = leases_of(pair).newest()
    running = None
    if newest is not None and newest.is_held(pair.base.environment.now_millis()):
        running = newest.number

    def change(base: Base) -> FileChange | None:
        leased = leased_batches(base.loaded.metadata).items()
        dead = {each for each, number in leased if each in known and number != running}
        return _empty_change(base, ended_mark(dead)) if dead else None

    publish_change(change_handle(pair), change, commit=None)


def _empty_change(base: Base, more: dict[str, str]) -> FileChange:
    change = ChangedFiles(is_recorded=True)(base)
    assert change is not None
    return replace(change, operation="append", more=more)


def _base_at(base: LoadedMetadata, begin: Snapshot) -> Snapshot | None:
    """Return the newest base snapshot that has merged only changes older than ``begin``.

    ``begin`` is the change snapshot with which a batch began. Return None if the base store has no
    such snapshot. An expiry keeps the snapshot while the batch is open.
    """
    for each in base.metadata.ancestry(base.metadata.current_snapshot_id):
        merged = optimized_sequences(base, each).sequences
        if all(number < begin.sequence_number for number in merged.values()):
            return each
    return None


def _state(pair: LoadedPair, begin: Snapshot) -> MixedState:
    base, change = pair.base, pair.change
    newest, schema = _base_at(base, begin), base.metadata.schema
    identity = f"{begin.snapshot_id}-{'' if newest is None else newest.snapshot_id}"
    number = 0 if newest is None else newest.sequence_number
    return MixedState(
        base=TableState(base.places, base.metadata, newest, schema),
        change=TableState(change.places, change.metadata, begin, schema),
        key=pair.key,
        merged=optimized_sequences(base, newest),
        position=Position((begin.sequence_number, number), MAIN_BRANCH, identity, base.places.uri),
        version=pair.version,
    )
