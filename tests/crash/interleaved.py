"""Actors that change one table at the same time, and a dict with the expected rows.

An actor announces the changes of its commit first. As soon as a snapshot exists, they are applied
to the dict of the previous snapshot, and the table must hold the same rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

import lakeformat as lake
from lakeformat.environment import Environment
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    latest_snapshot_id,
    read_snapshot,
    snapshot_ids,
)
from lakeformat.paimon.read.plan import plan_files
from lakeformat.paimon.table import Table
from lakeformat.storage import MemoryStorage
from tests.crash.references import metadata_files, referenced_metadata
from tests.crash.scheduler import ScheduledStorage, Scheduler
from tests.paper import paper_table

State: TypeAlias = dict[Any, Any]
Effect: TypeAlias = Callable[[State], State]

_names = itertools.count()
_KEPT_SNAPSHOTS = 3
_LONGEST_IDLENESS = 60


class World:
    """One table, its actors, and the state that every snapshot must have."""

    def __init__(self, seed: object, *, keyed: bool) -> None:
        self.random = Random(f"{seed}:world")
        self.scheduler = Scheduler(seed)
        memory = MemoryStorage(f"interleaved-{next(_names)}")
        options = {
            "commit.max-retries": "1000",
            "manifest.merge-min-count": self.random.choice(["2", "3", "30"]),
            "manifest.full-compaction-threshold-size": self.random.choice(["2 kb", "16 mb"]),
        }
        table = paper_table(keyed=keyed, partitioned=keyed, options=options, storage=memory)
        self.storage = ScheduledStorage(memory, self.scheduler)
        world = _simulated(seed)
        self.seen = TableHandle(memory, table.layout, table.schema, world)
        """The table without waiting for turns."""
        self.handle = TableHandle(self.storage, table.layout, table.schema, world)
        self.table = Table(self.handle)
        self.sequence = itertools.count(1)
        self.states: dict[int, State] = {0: {}}
        self.doing: dict[str, Effect] = {}
        """The announced changes of each actor."""
        self.published: dict[tuple[str, int, str], int] = {}
        """The snapshot of each commit, by user, identifier and kind."""
        self.began: dict[tuple[str, int], int] = {}
        self.writers = 0
        """The number of actors that still have rows to write."""
        self.compacted = self.refused = self.expired = self.undecidable = 0

    def run(self, rows_of: Callable[[TableHandle, Snapshot], State]) -> None:
        """Let every actor act, and compare each snapshot as soon as it is published."""

        def look() -> None:
            while self.storage.published:
                actor, number = self.storage.published.pop(0)
                self._compare(actor, read_snapshot(*self._place, number), rows_of)

        self.scheduler.run(look)
        for number in snapshot_ids(*self._place):
            assert rows_of(self.seen, read_snapshot(*self._place, number)) == shown(
                self.states[number]
            )
        self._check_files()

    @property
    def _place(self) -> tuple[MemoryStorage, Any]:
        return self.seen.storage, self.seen.layout

    def _compare(self, actor: str, snapshot: Snapshot, rows_of: Callable[..., State]) -> None:
        key = (snapshot.commit_user, snapshot.commit_identifier, str(snapshot.commit_kind))
        assert key not in self.published, f"{key} is there twice"
        assert snapshot.id == max(self.states) + 1, "numbers have a gap"
        self.published[key] = snapshot.id
        before = self.states[snapshot.id - 1]
        if snapshot.commit_kind is CommitKind.COMPACT:
            self.compacted += 1
            self.states[snapshot.id] = before
        else:
            self.states[snapshot.id] = self.doing[actor](before)
        assert rows_of(self.seen, snapshot) == shown(self.states[snapshot.id]), (
            f"snapshot {snapshot.id} ({snapshot.commit_kind} of {actor})"
        )
        live = plan_files(self.seen, snapshot)
        assert snapshot.total_record_count == sum(entry.file.row_count for entry in live)
        check_levels(live)

    def _check_files(self) -> None:
        """Actors that lost have cleaned up: no unreferenced file exists."""
        assert metadata_files(self.seen) - referenced_metadata(self.seen) == set()
        referenced = set().union(*(_data_files(self.seen, n) for n in snapshot_ids(*self._place)))
        names = {
            path.rpartition("/")[2] for path in self.seen.storage.files() if "/bucket-" in path
        }
        assert names - referenced == set(), "data files that nobody refers to"
        assert referenced - names == set(), "data files that are gone"

    def acknowledge(self, commit: lake.CommitId, report: lake.CommitReport) -> None:
        """The reported result of a commit must be true."""
        key = (commit.user, commit.identifier, report.kind)
        assert self.published[key] == report.snapshot_id

    def newest(self) -> int:
        """The number of the newest snapshot."""
        return latest_snapshot_id(self.handle.storage, self.handle.layout) or 0

    def is_expired(self, number: int) -> bool:
        """True if a snapshot existed and no longer does."""
        return not self.seen.storage.exists(self.seen.layout.snapshot(number))


@dataclass
class Actor:
    """An actor that commits one change after the other under a name."""

    world: World
    name: str
    turns: int
    random: Random
    user: str = ""
    identifiers: Iterable[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.user = self.user or self.name
        self.identifiers = iter(self.identifiers)

    def act(self) -> None:
        """One change per turn."""
        self.world.writers += 1
        for _ in range(self.turns):
            self.turn()
        self.world.writers -= 1

    def turn(self) -> None:
        """One change, after a while."""
        self.idle()
        number, now = next(self.identifiers), self.world.handle.environment.now_millis()
        # Twins and repeats say when the first of them began.
        since = self.world.began.setdefault((self.user, number), now)
        self.change(lake.CommitId(self.user, number, first_try_millis=since))

    def idle(self) -> None:
        """Let other actors run first, so that not all begin with an empty table."""
        for _ in range(self.random.randint(0, _LONGEST_IDLENESS)):
            self.world.storage.exists("idle")

    def change(self, commit: lake.CommitId) -> None:
        """Make one change."""
        raise NotImplementedError

    def publish(
        self, commit: lake.CommitId, effect: Effect, messages: list[lake.CommitMessage], **how: Any
    ) -> None:
        """Commit what nothing can conflict with."""
        world = self.world
        world.doing[self.name] = effect
        try:
            report = world.table.commit(messages, commit=commit, **how)
        except lake.CommitUndecidableError:
            # Snapshots have expired: nothing shows any more if a twin has published.
            assert world.expired
            world.undecidable += 1
            world.table.abort(messages)
            return
        except lake.LakeError:
            world.table.abort(messages)
            raise
        if report.replayed:  # a twin was faster
            world.table.abort(messages)
        world.acknowledge(commit, report)

    def publish_or_give_up(
        self, commit: lake.CommitId, effect: Effect, messages: list[lake.CommitMessage], **how: Any
    ) -> None:
        """Commit what another commit may have made impossible."""
        try:
            self.publish(commit, effect, messages, **how)
        except lake.CommitConflictError:
            self.world.refused += 1
            mine = {
                key for key in self.world.published if key[:2] == (self.user, commit.identifier)
            }
            assert mine == set(), "refused, and there all the same"


class Background(Actor):
    """An actor that cleans up as long as other actors write."""

    def act(self) -> None:
        self.idle()
        while self.world.writers:
            self.turn()
        self.turn()


class Expirer(Background):
    """Deletes old snapshots and what only they refer to; a stand-in until expiry is there."""

    def change(self, commit: lake.CommitId) -> None:
        handle, world = self.world.handle, self.world
        there = snapshot_ids(handle.storage, handle.layout)
        old, kept = there[:-_KEPT_SNAPSHOTS], there[-_KEPT_SNAPSHOTS:]
        if not old:
            return
        # What is to go is found without waiting; only deleting it takes turns.
        data = [_data_paths(world.seen, number) for number in old]
        needed = set().union(*(_data_files(world.seen, number) for number in kept))
        metadata = referenced_metadata(world.seen, old) - referenced_metadata(world.seen, kept)
        for path in sorted(set().union(*data)):
            if path.rpartition("/")[2] not in needed:
                handle.storage.delete(path)
        for path in sorted(metadata):
            handle.storage.delete(path)
        for number in old:
            handle.storage.delete(handle.layout.snapshot(number))
            world.expired += 1
        handle.storage.overwrite(handle.layout.earliest_hint, str(kept[0]).encode())


def shown(state: State) -> State:
    """The rows a reader sees: without those that are deleted."""
    return {key: note for key, (_, note) in state.items() if note is not None}


def check_levels(live: list[Any]) -> None:
    """On one level above 0 no two files of a bucket share a key."""
    for _, group in itertools.groupby(
        sorted(
            (e for e in live if e.file.level > 0),
            key=lambda e: (e.partition, e.bucket, e.file.level, e.file.min_key),
        ),
        key=lambda e: (e.partition, e.bucket, e.file.level),
    ):
        files = [entry.file for entry in group]
        # Keys are small positive ints, whose framed rows are ordered by their last bytes alone.
        ranges = sorted((_key(file.min_key), _key(file.max_key)) for file in files)
        assert all(one[1] < other[0] for one, other in itertools.pairwise(ranges))


def _key(framed: bytes) -> int:
    return int.from_bytes(framed[-8:], "little")


def _data_files(handle: TableHandle, number: int) -> set[str]:
    snapshot = read_snapshot(handle.storage, handle.layout, number)
    return {entry.file.file_name for entry in plan_files(handle, snapshot)}


def _data_paths(handle: TableHandle, number: int) -> set[str]:
    wanted = _data_files(handle, number)
    files = handle.storage.files(handle.layout.root)
    return {path for path in files if path.rpartition("/")[2] in wanted}


def _simulated(seed: object) -> Environment:
    # Ticks longer than clocks may be apart: a commit looks back to when it began, no further.
    ticks, names = itertools.count(1_700_000_000_000, 15 * 60_000), itertools.count()
    jitter = Random(f"{seed}:jitter")
    return Environment(
        now_millis=lambda: next(ticks),
        new_id=lambda: f"{next(names):08d}",
        sleep_seconds=lambda seconds: None,
        random_fraction=jitter.random,
    )
