"""Actors that change a table without a key: appends, overwrites and compactions of real files."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

import lakeformat as lake
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.deletions import DeletedRows
from lakeformat.paimon.read.plan import plan_files
from lakeformat.paimon.read.scan import Scan
from tests.crash.interleaved import Actor, Background, State


def rows_of(handle: TableHandle, snapshot: Snapshot) -> State:
    """The rows that a reader of a snapshot sees: the note by id, each once."""
    rows = Scan(handle, snapshot, None).to_arrow().to_pylist()
    found = {row["id"]: row["note"] for row in rows}
    assert len(found) == len(rows), "a row is there twice"
    return found


class AppendActor(Actor):
    """Makes rows that no other actor makes."""

    def rows(self) -> pa.Table:
        """Some rows."""
        ids = [next(self.world.sequence) for _ in range(self.random.randint(1, 4))]
        notes = [f"{self.name}-{number}" for number in ids]
        return pa.table({"id": pa.array(ids, pa.int32()), "note": notes})

    def prepared(self, rows: pa.Table) -> list[lake.CommitMessage]:
        """The rows as a file."""
        with self.world.table.new_writer() as writer:
            writer.write(rows)
            return writer.prepare()


def state_of(rows: pa.Table) -> State:
    """Rows as the dict has them."""
    return {row["id"]: (0, row["note"]) for row in rows.to_pylist()}


class Appender(AppendActor):
    """Adds rows."""

    def change(self, commit: lake.CommitId) -> None:
        rows = self.rows()
        self.publish(commit, lambda state: {**state, **state_of(rows)}, self.prepared(rows))


class Replacer(AppendActor):
    """Replaces all rows."""

    def change(self, commit: lake.CommitId) -> None:
        rows = self.rows()
        self.publish(commit, lambda state: state_of(rows), self.prepared(rows), overwrite={})


class Concatenator(AppendActor, Background):
    """Makes one file of all."""

    def files(self, read: Snapshot) -> DataFiles:
        """Read them without a scan, which holds a lock of all scans on Python 3.11."""
        return DataFiles(self.world.handle, read, DeletedRows(self.world.handle, ()))

    def change(self, commit: lake.CommitId) -> None:
        world = self.world
        read = latest_snapshot(world.handle.storage, world.handle.layout)
        if read is None:
            return
        try:
            live, files = plan_files(world.handle, read), self.files(read)
            if len(live) < 2:
                return
            rows = [batch for e in live for batch in files.rows(e, world.handle.schema.fields)]
            [merged] = self.prepared(pa.Table.from_batches(rows))
        except (lake.CorruptTableError, lake.NotFoundError):
            assert world.is_expired(read.id)
            return
        message = replace(
            merged,
            new_files=(),
            compact_before=tuple(e.file for e in live),
            compact_after=merged.new_files,
        )
        self.publish_or_give_up(commit, lambda state: state, [message])
