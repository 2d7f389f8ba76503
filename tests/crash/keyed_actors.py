"""Actors that change a table with a primary key: writes, overwrites, compactions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import lakeformat as lake
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.read.plan import plan_files
from lakeformat.paimon.read.scan import Scan
from tests.crash.interleaved import Actor, Background, State, shown
from tests.crash.keyed_runs import Row, bucket_of, merged_rows, partition_of, write_run
from tests.paper import moved

DAYS = ("1", "2")
IDS = range(8)
LEVELS = (3, 5)


def rows_of(handle: TableHandle, snapshot: Snapshot) -> State:
    """The rows that a reader of a snapshot sees: the note by day and id, each once."""
    rows = Scan(handle, snapshot, None).to_arrow().to_pylist()
    found = {(row["dt"], row["id"]): row["note"] for row in rows}
    assert len(found) == len(rows), "a key is there twice"
    return found


@dataclass
class KeyedActor(Actor):
    """Makes rows and files of them."""

    def rows(self, days: tuple[str, ...], *, deletes: bool) -> list[Row]:
        """Some new versions of rows."""
        chance, made = self.random, []
        for day in days:
            for number in chance.sample(IDS, chance.randint(1, 4)):
                sequence = next(self.world.sequence)
                note = None if deletes and chance.random() < 0.25 else f"{self.name}-{sequence}"
                made.append(Row(day, number, sequence, note))
        return made

    def messages(self, rows: list[Row]) -> list[lake.CommitMessage]:
        """The rows as files, one per bucket."""
        handle, base = self.world.handle, self.world.newest()

        def place(row: Row) -> tuple[str, int]:
            return (row.dt, bucket_of(handle, row.id))

        return [
            lake.CommitMessage(
                partition=partition_of(handle, day),
                bucket=bucket,
                base_snapshot=base,
                new_files=write_run(handle, list(group), bucket=bucket),
            )
            for (day, bucket), group in itertools.groupby(sorted(rows, key=place), key=place)
        ]


def upserted(state: State, rows: list[Row]) -> State:
    """Return the state with these rows: the newer version counts, in any order of commits."""
    changed = dict(state)
    for row in rows:
        key = (row.dt, row.id)
        if key not in changed or changed[key][0] < row.sequence:
            changed[key] = (row.sequence, row.note)
    return changed


def replaced(state: State, days: tuple[str, ...], rows: list[Row]) -> State:
    """The rows that replace all rows of some days."""
    return upserted({key: value for key, value in state.items() if key[0] not in days}, rows)


class Upserter(KeyedActor):
    """Puts and deletes rows, and sometimes repeats a commit that has succeeded."""

    def change(self, commit: lake.CommitId) -> None:
        rows = self.rows(self.random.choice([("1",), ("2",), DAYS]), deletes=True)
        messages = self.messages(rows)
        self.publish(commit, lambda state: upserted(state, rows), messages)
        if self.random.random() < 0.3:
            self.repeat(commit, messages)

    def repeat(self, commit: lake.CommitId, messages: list[lake.CommitMessage]) -> None:
        """Found again, or refused after the needed snapshot expired; never committed again."""
        try:
            assert self.world.table.commit(messages, commit=commit).replayed
        except (lake.CommitUndecidableError, lake.InvalidRequestError):
            assert self.world.expired


class Twin(KeyedActor):
    """Two of them make the same commits; the slower one finds them done."""

    def change(self, commit: lake.CommitId) -> None:
        rows = [
            Row(day, number, next(self.world.sequence), f"twin-{commit.identifier}")
            for day in DAYS
            for number in (0, 1)
        ]
        self.publish(commit, lambda state: upserted(state, rows), self.messages(rows))


class Overwriter(KeyedActor):
    """Puts rows in place of a day, of the days it has rows for, or of everything."""

    def change(self, commit: lake.CommitId) -> None:
        way = self.random.choice(["static", "dynamic", "drop", "truncate", "everything"])
        days = (self.random.choice(DAYS),) if way in ("static", "drop") else DAYS
        rows = [] if way in ("drop", "truncate") else self.rows(days, deletes=False)
        overwrite = {"static": {"dt": days[0]}, "drop": {"dt": days[0]}, "dynamic": "dynamic"}
        self.publish(
            commit,
            lambda state: replaced(state, days, rows),
            self.messages(rows),
            overwrite=overwrite.get(way, {}),
        )


class Rewriter(KeyedActor):
    """Computes a day from rows that it has read; gives up if another actor changed it since."""

    def change(self, commit: lake.CommitId) -> None:
        world, day = self.world, self.random.choice(DAYS)
        read = latest_snapshot(world.handle.storage, world.handle.layout)
        if read is None:
            return
        partition = partition_of(world.handle, day)
        try:
            live = [e for e in plan_files(world.handle, read) if e.partition == partition]
            versions = merged_rows(world.handle, read, live)
        except (lake.CorruptTableError, lake.NotFoundError):
            assert world.is_expired(read.id)
            return
        found = {row.id: row.note for row in versions if row.note is not None}
        rows = [
            Row(day, number, next(world.sequence), f"{note}!") for number, note in found.items()
        ]

        def effect(state: State) -> State:
            of_day = {key[1]: note for key, note in shown(state).items() if key[0] == day}
            assert of_day == found, "rows that came in after they were read would be lost"
            return replaced(state, (day,), rows)

        self.publish_or_give_up(
            commit, effect, self.messages(rows), overwrite={"dt": day}, read_snapshot=read.id
        )


class Compactor(Background):
    """Merges some files of a bucket into one of a higher level, or moves one up as it is."""

    def change(self, commit: lake.CommitId) -> None:
        world = self.world
        read = latest_snapshot(world.handle.storage, world.handle.layout)
        if read is None:
            return
        try:
            message = self.plan_and_merge(read)
        except (lake.CorruptTableError, lake.NotFoundError):
            assert world.is_expired(read.id)
            return
        if message is not None:
            self.publish_or_give_up(commit, lambda state: state, [message])

    def plan_and_merge(self, read: Snapshot) -> lake.CommitMessage | None:
        """Return the result of compacting one bucket; None if there is nothing to do."""
        handle, level = self.world.handle, self.random.choice(LEVELS)
        buckets: dict[tuple[bytes, int], list[ManifestEntry]] = {}
        for entry in plan_files(handle, read):
            buckets.setdefault((entry.partition, entry.bucket), []).append(entry)
        if not buckets:
            return None
        (partition, bucket), files = self.random.choice(sorted(buckets.items(), key=str))
        chosen = list(self.some_of(files, level))
        before = tuple(entry.file for entry in chosen)
        if not before or (len(before) == 1 and before[0].level == level):
            return None
        if len(before) == 1:
            after = (moved(before[0], level),)
        else:
            merged = merged_rows(handle, read, chosen)
            after = write_run(handle, merged, bucket=bucket, level=level)
        return lake.CommitMessage(
            partition=partition, bucket=bucket, compact_before=before, compact_after=after
        )

    def some_of(self, files: list[ManifestEntry], level: int) -> Iterator[ManifestEntry]:
        """Some files with all of the level they go to, where no key may be twice."""
        low = [entry for entry in files if entry.file.level != level]
        chosen = self.random.sample(low, self.random.randint(0, len(low)))
        yield from (e for e in files if e in chosen or e.file.level == level)
