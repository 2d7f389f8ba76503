"""Orphan files: made by writes that died at any call, removed by a removal that dies at any call.

``SEED=7 HISTORIES=1`` runs the history of that seed; ``HISTORIES=2000`` runs many more.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.environment import Environment
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import MAIN_BRANCH, TableLayout
from lakeformat.paimon.metadata.branch_directory import branches, unfinished_branches
from lakeformat.paimon.metadata.index_manifest import read_index_manifest
from lakeformat.paimon.metadata.manifest_list import ListKind, manifests_of
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    latest_snapshot,
    read_snapshot,
    snapshot_ids,
)
from lakeformat.paimon.metadata.tag import Tag, create_tag, delete_tag, read_tags, tag_names
from lakeformat.paimon.read.plan import plan_files
from lakeformat.paimon.read.scan import Scan
from lakeformat.paimon.table import load_table
from lakeformat.storage import MemoryStorage
from lakeformat.testing import CrashableStorage
from lakeformat.testing.faults import Fault, FaultKind, PowerCut
from tests.crash.interrupted import Interrupted
from tests.manifest_entries import entries_in
from tests.sampling import IS_WHOLE, SEED, count, sampled_faults, sampled_moments

HISTORIES = count(4, 40, "HISTORIES")
BLOCKS = min(8, HISTORIES)
LAYOUT = TableLayout("wh/shop.db/orders")
DAY = 86_400_000
NOON = 1_700_000_000_000
APPEND: dict = {"options": {"bucket": "-1"}}
KEYED: dict = {
    "primary_key": ["id"],
    "options": {
        "bucket": "2",
        "changelog-producer": "lookup",
        "deletion-vectors.enabled": "true",
    },
}
TABLES = pytest.mark.parametrize("kind", [APPEND, KEYED], ids=["append", "keyed"])
_names = itertools.count()

State = dict[str, list[tuple]]


def world(now: int, first: int) -> Environment:
    """An environment in which every run makes the same calls; names differ by a number."""
    names = itertools.count(first * 100_000)
    return Environment(
        now_millis=lambda: now,
        new_id=lambda: str(uuid.UUID(int=next(names), version=4)),
        sleep_seconds=lambda seconds: None,
        random_fraction=lambda: 0.5,
    )


def opened(storage, *, days: int = 0, first: int | None = None) -> lake.Table:
    """The table as a new process sees it some days after everything was written."""
    number = next(_names) + 100 if first is None else first
    return load_table(storage, LAYOUT, world(NOON + days * DAY, number))


def made(storage, kind: dict) -> None:
    options = {
        **kind["options"],
        "file-operation.thread-num": "1",
        "manifest.merge-min-count": "3",
    }
    catalog = FileSystemCatalog(storage, "wh", world(NOON, 1))
    catalog.create_database("shop")
    columns = [("id", "BIGINT"), ("note", "STRING")]
    catalog.create_table("shop.orders", columns, **{**kind, "options": options})


def rows(note: str, ids) -> pa.Table:
    ids = list(ids)
    return pa.table({"id": ids, "note": [note] * len(ids)})


def aged(storage: CrashableStorage, days: int = 2) -> CrashableStorage:
    """The same files some days later, by the storage's clock."""
    storage._clock = storage._disk._clock = lambda: NOON + days * DAY
    return storage


def removed(storage, *, days: int = 2, **how):
    how = {"older_than": "1 d", "dry_run": False, "max_share": 1, **how}
    return opened(storage, days=days).remove_orphans(**how)


# ------------------------------------------------------- what readers see, and what they need


def states(handle: TableHandle) -> Iterator[tuple[str, TableHandle, Snapshot]]:
    """Every snapshot and tag of every branch, also of one that a repetition would finish."""
    storage = handle.storage
    names = [MAIN_BRANCH, *(branch.name for branch in branches(storage, LAYOUT))]
    names += unfinished_branches(storage, LAYOUT)
    for name in names:
        layout = LAYOUT.on_branch(name)
        seen = replace(handle, layout=layout)
        for number in snapshot_ids(storage, layout):
            yield f"{name} {number}", seen, read_snapshot(storage, layout, number)
        for tag in read_tags(storage, layout):
            yield f"{name} tag {tag.name}", seen, tag.snapshot


def read_all(storage) -> State:
    """The rows of each of them."""
    found = {}
    for name, handle, snapshot in states(opened(storage)._handle):
        seen = Scan(handle, snapshot, None).to_arrow().to_pylist()
        found[name] = sorted(tuple(row.values()) for row in seen)
    return found


def needed(storage) -> set[str]:
    """The names of all files that a reader of any of them opens."""
    found: set[str] = set()
    for name, handle, snapshot in states(opened(storage)._handle):
        lists = [snapshot.base_manifest_list, snapshot.delta_manifest_list]
        kinds = [ListKind.BASE, ListKind.DELTA]
        if "tag" not in name:
            lists.append(snapshot.changelog_manifest_list)
            kinds.append(ListKind.CHANGELOG)
            changes = manifests_of(storage, handle.layout, snapshot, ListKind.CHANGELOG)
            found |= changelog_files(handle, [each.file_name for each in changes])
        found |= {each for each in (*lists, snapshot.index_manifest, snapshot.statistics) if each}
        manifests = manifests_of(storage, handle.layout, snapshot, *kinds)
        found |= {each.file_name for each in manifests}
        found |= {entry.file.file_name for entry in plan_files(handle, snapshot)}
        if snapshot.index_manifest:
            entries = read_index_manifest(storage, handle.layout, snapshot.index_manifest)
            found |= {entry.file_name for entry in entries}
    return found


def changelog_files(handle: TableHandle, manifests: list[str]) -> set[str]:
    return {
        entry.file.file_name
        for name in manifests
        for entry in entries_in(handle.storage, handle.layout, name)
    }


def there(storage) -> set[str]:
    """The names of all files in places where orphans may be.

    An unfinished branch is left alone: a repetition finishes it, or a deletion removes it whole.
    """
    unfinished = unfinished_branches(storage, LAYOUT)
    kept = tuple(LAYOUT.on_branch(name).metadata_root + "/" for name in unfinished)
    return {
        path.rpartition("/")[2]
        for path in storage.files(LAYOUT.root)
        if any(part in path for part in ("/bucket-", "/manifest/", "/index/", "/statistics/"))
        or (path.endswith(".tmp") and not path.startswith(kept))
    }


# ------------------------------------------------------- histories in which writes die


@dataclass
class History:
    """One table, changed by processes that may die at any call."""

    random: Random
    storage: CrashableStorage
    numbers: Iterator[int]

    def act(self) -> None:
        """Do something; half of those who do it run into a fault."""
        often = (self.append, self.overwrite, self.compact, self.give_up)
        rarely = (self.tag, self.untag, self.branch, self.expire)
        act = self.random.choice((*often, *often, *rarely))
        faults = []
        if self.random.random() < 0.5:
            faults = [Fault(self.random.randint(1, 40), self.random.choice(list(FaultKind)))]
        broken = self.storage.reopened(*faults, seed=self.random.getrandbits(32))
        with suppress(PowerCut, lake.LakeError):
            act(broken, opened(broken))
        self.storage = broken.reopened()

    def some_rows(self) -> pa.Table:
        number = next(self.numbers)
        return rows(f"{number}", self.random.sample(range(12), self.random.randint(1, 4)))

    def append(self, storage, table: lake.Table) -> None:
        table.write(self.some_rows())

    def overwrite(self, storage, table: lake.Table) -> None:
        table.write(self.some_rows(), overwrite={})

    def compact(self, storage, table: lake.Table) -> None:
        table.compact(executor="serial")

    def give_up(self, storage, table: lake.Table) -> None:
        """A writer that never commits."""
        with table.new_writer() as writer:
            writer.write(self.some_rows())
            writer.prepare()

    def tag(self, storage, table: lake.Table) -> None:
        head = latest_snapshot(storage, LAYOUT)
        if head is not None:
            create_tag(storage, LAYOUT, Tag(f"t{next(self.numbers)}", head))

    def untag(self, storage, table: lake.Table) -> None:
        """Every file that only the tag needed is an orphan now."""
        names = tag_names(storage, LAYOUT)
        if names:
            delete_tag(storage, LAYOUT, self.random.choice(names))

    def branch(self, storage, table: lake.Table) -> None:
        """A branch from the newest snapshot, with a commit of its own."""
        head = latest_snapshot(storage, LAYOUT)
        if head is None:
            return
        name = f"b{next(self.numbers)}"
        table.branches.create(name, snapshot=head.id)
        layout = LAYOUT.on_branch(name)
        load_table(storage, layout, table._handle.environment).write(self.some_rows())

    def expire(self, storage, table: lake.Table) -> None:
        """Only the snapshots go: an expiry that died right after."""
        for number in snapshot_ids(storage, LAYOUT)[: -self.random.randint(1, 3)]:
            storage.delete(LAYOUT.snapshot(number))


@pytest.mark.parametrize("block", range(BLOCKS))
def test_exactly_what_nothing_leads_to_goes_whatever_has_died(block):
    removals = 0
    for seed in itertools.count(SEED + block, BLOCKS):
        # Some histories leave no orphan: continue until one of this block did.
        if seed >= SEED + HISTORIES and removals:
            break
        random = Random(f"{seed}:history")
        storage = CrashableStorage(clock=lambda: NOON)
        made(storage, random.choice([APPEND, KEYED]))
        history = History(random, storage.reopened(), itertools.count())
        for _ in range(random.randint(4, 14)):
            history.act()
        storage = aged(history.storage)
        try:
            before, wanted = read_all(storage), needed(storage)
            report = removed(storage)
            removals += report.removed_files
            assert read_all(storage) == before
            assert there(storage) == wanted & there(storage), "an orphan stayed"
            assert wanted <= there(storage), "a file is gone that somebody needs"
            assert removed(storage).removed_files == 0
            opened(storage, days=2).write(rows("after", [1]))
        except BaseException as error:
            error.add_note(f"replay with SEED={seed} HISTORIES=1")
            raise


# ------------------------------------------------------- the removal dies


def left_over(kind: dict) -> CrashableStorage:
    """Two snapshots, a tag of an expired one, and orphans of every kind."""
    storage = CrashableStorage(clock=lambda: NOON)
    made(storage, kind)
    for number in range(3):
        table = opened(storage, first=number + 10)
        table.write(
            rows(f"{number}", range(number, number + 4)), overwrite={} if number == 1 else None
        )
        table.compact(executor="serial")
        if number == 0:
            head = latest_snapshot(storage, LAYOUT)
            assert head is not None
            create_tag(storage, LAYOUT, Tag("kept", head))
    for number in snapshot_ids(storage, LAYOUT)[:-2]:
        storage.delete(LAYOUT.snapshot(number))
    with opened(storage, first=20).new_writer() as writer:
        writer.write(rows("lost", range(8)))
        writer.prepare()
    storage.overwrite(f"{LAYOUT.snapshot_directory}/.snapshot-9.{uuid.UUID(int=1)}.tmp", b"{")
    return aged(storage)


@TABLES
def test_a_removal_that_dies_at_any_call_harms_nobody_and_the_next_one_finishes(kind):
    start = left_over(kind)
    before, wanted = read_all(start), needed(start)
    assert there(start) - wanted
    files = start.files()

    def remove(storage, acknowledged) -> None:
        load_table(storage, LAYOUT, world(NOON + 2 * DAY, 50)).remove_orphans(
            "1 d", dry_run=False, max_share=1
        )

    deletes = 0
    for trial in sampled_faults(remove, start=start):
        trial.run()
        storage = trial.reopened()
        if storage.files() == files:
            continue  # it died before it removed anything, as another trial shows what comes next
        deletes += 1
        removed(aged(storage, days=4), days=4)
        assert there(storage) == wanted, str(trial)
        assert read_all(storage) == before, str(trial)
    assert deletes > (len(there(start) - wanted) if IS_WHOLE else 0)


@pytest.mark.sampled(1)
@TABLES
def test_nothing_goes_when_a_directory_cannot_be_listed_or_a_manifest_not_read(kind):
    """All of that comes before the first deletion."""
    start = left_over(kind)
    files = start.files()
    rehearsal = start.reopened()
    removed(rehearsal)
    calls = [call.operation for call in rehearsal.log]
    own = calls.index("delete")  # of the file it learns the storage's clock from
    looks = calls.index("delete", own + 1)
    assert looks > 20
    for at in {*range(looks)} - {own}:
        storage = start.reopened(Fault(at + 1, FaultKind.FAIL_BEFORE))
        with pytest.raises(lake.UnavailableError):
            removed(storage)
        assert storage.files() == files


# ------------------------------------------------------- others act at every call of a removal


def at_every_call(
    kind: dict, happens: Callable[[MemoryStorage, list], object], **how
) -> Iterator[tuple[MemoryStorage, list[lake.CommitMessage], State, Exception | None]]:
    """A removal, and before each of its calls in turn something else that happens."""
    start = left_over(kind)
    with opened(start, first=30).new_writer() as writer:
        writer.write(rows("slow", [100, 101]))
        messages = writer.prepare()

    def copied() -> MemoryStorage:
        storage = MemoryStorage(f"orphans-{next(_names)}", clock=lambda: NOON)
        for path, content in start.files().items():
            storage.overwrite(path, content)
        storage._clock = lambda: NOON + 2 * DAY
        return storage

    alone = Interrupted(copied(), 0, lambda: None)
    removed(alone, **{key: value(messages) for key, value in how.items()})
    for at in sampled_moments(alone.calls):
        storage = copied()
        before = read_all(storage)
        seen = Interrupted(storage, at, lambda: happens(storage, messages))  # noqa: B023 - now
        error = None
        try:
            removed(seen, **{key: value(messages) for key, value in how.items()})
        except lake.LakeError as reason:
            error = reason
        assert seen.happened
        yield storage, messages, before, error


def commit_slowly(storage: MemoryStorage, messages: list) -> None:
    opened(storage, days=2).commit(messages)


@pytest.mark.sampled(1)
@TABLES
def test_the_files_of_a_write_that_takes_days_stay_if_they_are_known(kind):
    for storage, _, before, error in at_every_call(kind, commit_slowly, in_use=lambda kept: kept):
        assert error is None
        after = read_all(storage)
        assert {name: after[name] for name in before} == before
        assert len(after) == len(before) + 1


@pytest.mark.sampled(1)
@TABLES
def test_a_write_that_began_within_the_day_loses_nothing(kind):
    """It writes and commits everything before any one call of the removal."""

    def write(storage: MemoryStorage, messages: list) -> None:
        younger = MemoryStorage("younger", clock=lambda: NOON + 2 * DAY)
        younger._files = storage._files  # the same disk, two days later
        opened(younger, days=2).write(rows("new", [200, 201]))

    for storage, _, before, error in at_every_call(kind, write):
        assert error is None
        after = read_all(storage)
        assert {name: after[name] for name in before} == before
        assert len(after) == len(before) + 1


def expire_all(storage: MemoryStorage, messages: list) -> None:
    """A retention of one snapshot: the rest expires, with the files that only they need."""
    for number in snapshot_ids(storage, LAYOUT)[:-1]:
        storage.delete(LAYOUT.snapshot(number))
    for name in there(storage) - needed(storage):
        [path] = [path for path in storage.files() if path.endswith(f"/{name}")]
        storage.delete(path)


@pytest.mark.sampled(1)
@TABLES
def test_beside_a_fast_expiry_a_removal_is_right_or_gives_up(kind):
    for storage, _, before, error in at_every_call(kind, expire_all):
        assert error is None or isinstance(error, lake.CorruptTableError | lake.NotFoundError)
        after = read_all(storage)
        assert after
        assert after == {name: before[name] for name in after}
        assert removed(storage).failures == 0
        assert read_all(storage) == after
