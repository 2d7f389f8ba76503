"""Random histories of all that keeps or removes something, against a dictionary.

Commits, compactions, partitions that are dropped, tags, branches, consumers, rollbacks both ways,
expiry, removal of orphans and clones. At every step every snapshot, tag and branch reads as it did
when it was made, and whatever they lead to is there. Where nothing was rolled back, nothing else
is; and once all has expired and orphans are gone, nothing else is either way.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

import pytest

import lakeformat as lake
from lakeformat.metadata.snapshot import Snapshot
from lakeformat.metadata.snapshot_directory import read_snapshot, snapshot_ids
from lakeformat.metadata.tag import read_tags
from lakeformat.read.scan import Scan
from tests.expired import missing, unneeded
from tests.keyed_rows import KeyedRows

SEED = int(os.environ.get("SEED", "0"))
HISTORIES = int(os.environ.get("HISTORIES", "6"))
STEPS = int(os.environ.get("STEPS", "30"))
KEYS = 4
TWO_DAYS = 2 * 24 * 60 * 60 * 1000
Key = tuple[str, int]
Rows = dict[Key, str]


class History:
    """A table, and what each of its states held when it was made: by uuid of the snapshot."""

    def __init__(self, seed: int, *, keyed: bool) -> None:
        self.chance = Random(seed)
        self.keyed = keyed
        self.rows = KeyedRows(keyed=keyed, partitioned=True)
        self.rows.table._handle.storage._clock = self.rows.clock  # files are as old as commits
        self.main = self.rows.table
        self.model: dict[str, Rows | list] = {}
        self.done: list[str] = []
        self.names = 0
        self.leaves_orphans = False

    def step(self) -> None:
        """One thing that is possible now, or is refused for a reason the model knows."""
        acts: list[Callable[[], str]] = [
            *[self.commit] * 5,
            *[self.compact] * 2,
            self.drop,
            self.rewrite,
            *[self.tag] * 2,
            self.untag,
            self.retag,
            self.branch,
            self.unbranch,
            self.forward,
            self.roll_back,
            *[self.return_to] * 2,
            *[self.expire] * 2,
            self.consume,
            self.forget,
            self.clean,
            self.clone,
        ]
        self.done.append(self.chance.choice(acts)())

    def check(self) -> None:
        """Everything reads as before, and nothing is missing."""
        for table in self.tables():
            handle = table._handle
            for number in snapshot_ids(handle.storage, handle.layout):
                self.require(table, read_snapshot(handle.storage, handle.layout, number))
            for tag in read_tags(handle.storage, handle.layout):
                self.require(table, tag.snapshot)
        assert missing(self.main) == set()
        if not self.leaves_orphans:
            assert unneeded(self.main) == set()

    def require(self, table: lake.Table, snapshot: Snapshot) -> None:
        expected = self.model[snapshot.uuid]
        assert self.seen(Scan(table._handle, snapshot, None)) == expected, snapshot.id

    def seen(self, scan: Scan) -> Rows | list:
        found = scan.to_arrow().to_pylist()
        rows = [((row["p"], row["k"]), row["v"]) for row in found]
        return dict(rows) if self.keyed else sorted(rows)

    def tables(self) -> list[lake.Table]:
        names = [branch.name for branch in self.main.branches.list()]
        return [self.main, *(self.on(name) for name in names)]

    def on(self, name: str) -> lake.Table:
        return self.rows.catalog.table(f"shop.t$branch_{name}")

    def some(self) -> lake.Table:
        return self.chance.choice(self.tables())

    def new_name(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"

    def note(self, table: lake.Table, rows: Rows | list) -> None:
        self.model[table.latest_snapshot().uuid] = rows

    def newest(self, table: lake.Table) -> Rows | list:
        snapshot = table.latest_snapshot()
        return self.model[snapshot.uuid] if snapshot else ({} if self.keyed else [])

    def commit(self) -> str:
        table = self.rows.table = self.some()
        before, key = self.newest(table), (self.chance.choice("ab"), self.chance.randint(1, KEYS))
        value = self.new_name("v")
        self.rows.commit(("+I", *key, value))
        after = {**before, key: value} if self.keyed else sorted([*before, (key, value)])
        self.note(table, after)
        return f"commit {value}"

    def compact(self) -> str:
        table = self.some()
        before = self.newest(table)
        if table.compact(executor="serial").snapshot_ids:
            self.note(table, before)
        return "compact"

    def drop(self) -> str:
        table, partition = self.some(), self.chance.choice("ab")
        before = self.newest(table)
        if table.drop_partitions([{"p": partition}]).snapshot_id is None:
            return "no partition to drop"
        left = [(key, value) for key, value in self.pairs(before) if key[0] != partition]
        self.note(table, dict(left) if self.keyed else sorted(left))
        return f"drop {partition}"

    def pairs(self, rows: Rows | list) -> list[tuple[Key, str]]:
        return [*rows.items()] if isinstance(rows, dict) else rows

    def rewrite(self) -> str:
        """Metadata made anew: no row changes."""
        table = self.some()
        before = self.newest(table)
        made = [table.compact_manifests().snapshot_id, table.analyze("all").snapshot_id]
        for number in filter(None, made):
            handle = table._handle
            self.model[read_snapshot(handle.storage, handle.layout, number).uuid] = before
        return f"rewrite as {made}"

    def numbers(self, table: lake.Table) -> list[int]:
        return [snapshot.id for snapshot in table.snapshots()]

    def tag(self) -> str:
        table = self.some()
        numbers = self.numbers(table)
        if not numbers:
            return "nothing to tag"
        name, number = self.new_name("t"), self.chance.choice(numbers)
        table.tags.create(name, snapshot=number)
        return f"tag {name} = {number}"

    def untag(self) -> str:
        table = self.some()
        names = [tag.name for tag in table.tags.list()]
        if not names:
            return "no tag to delete"
        chosen = self.chance.sample(names, self.chance.randint(1, min(2, len(names))))
        table.tags.delete(*chosen, force=True)
        return f"delete {chosen}"

    def retag(self) -> str:
        table = self.some()
        names = [tag.name for tag in table.tags.list()]
        if not names:
            return "no tag to rename"
        name, new = self.chance.choice(names), self.new_name("t")
        if not name.startswith("t"):
            return "a protection keeps its name"
        table.tags.rename(name, new)
        return f"rename {name} {new}"

    def branch(self) -> str:
        name = self.new_name("b")
        tags = [tag.name for tag in self.main.tags.list()]
        numbers = self.numbers(self.main)
        if tags and self.chance.random() < 0.5:
            tag = self.chance.choice(tags)
            self.main.branches.create(name, tag=tag)
            return f"branch {name} from {tag}"
        if numbers:
            number = self.chance.choice(numbers)
            self.main.branches.create(name, snapshot=number)
            return f"branch {name} from {number}"
        return "nothing to branch from"

    def unbranch(self) -> str:
        names = [branch.name for branch in self.main.branches.list()]
        if not names:
            return "no branch to delete"
        name = self.chance.choice(names)
        self.main.branches.delete(name)
        return f"delete {name}"

    def forward(self) -> str:
        names = [branch.name for branch in self.main.branches.list()]
        if not names:
            return "no branch to forward"
        name = self.chance.choice(names)
        expected = self.newest(self.on(name))
        try:
            report = self.main.branches.fast_forward(name)
        except lake.InvalidRequestError as refused:
            assert "cannot be fast-forwarded" in str(refused)  # noqa: PT017 - or it is possible
            return f"{name} cannot be forwarded"
        if report.snapshots:
            assert self.newest(self.main) == expected
        return f"forward {name}"

    def roll_back(self) -> str:
        table = self.some()
        numbers = self.numbers(table)
        if not numbers:
            return "nothing to go back to"
        number = self.chance.choice(numbers[-3:])
        report = table.rollback(snapshot=number, force=True, as_latest=False)
        self.leaves_orphans |= bool(report.removed_snapshots)
        return f"roll back to {number}"

    def return_to(self) -> str:
        table = self.some()
        tags = [tag for tag in read_tags(table._handle.storage, table._handle.layout)]
        snapshots = [*table.snapshots(), *(tag.snapshot for tag in tags)]
        if not table.snapshots():
            return "nothing to go back to"
        target = self.chance.choice(snapshots)
        expected = self.model[target.uuid]
        table.rollback(snapshot=target.id, as_latest=True)
        chosen = read_snapshot(
            table._handle.storage, table._handle.layout, table.latest_snapshot().id
        )
        self.model.setdefault(chosen.uuid, expected)
        return f"return to {target.id}"

    def expire(self) -> str:
        table, keep = self.some(), self.chance.randint(1, 4)
        if table.latest_snapshot() is None:
            return "nothing expires"
        table.expire_snapshots(retain_max=keep, retain_min=keep)
        return f"expire all but {keep}"

    def consume(self) -> str:
        table = self.some()
        numbers = self.numbers(table)
        if not numbers:
            return "nothing to read"
        number = self.chance.choice([*numbers, numbers[-1] + 1])
        table.consumers.set("job", next_snapshot=number)
        return f"consumer at {number}"

    def forget(self) -> str:
        self.some().consumers.clear()
        return "forget consumers"

    def clean(self) -> str:
        self.rows.clock.millis += TWO_DAYS
        self.main.remove_orphans(dry_run=False, max_share=1)
        assert unneeded(self.main) == set()
        self.leaves_orphans = False
        return "remove orphans"

    def clone(self) -> str:
        name = f"shop.{self.new_name('clone')}"
        lake.clone_table(self.main, self.rows.catalog, name, full=True)
        copy = self.rows.catalog.table(name)
        assert self.numbers(copy) == self.numbers(self.main)
        for snapshot in copy.snapshots():
            self.require(copy, snapshot)
        assert (missing(copy), unneeded(copy)) == (set(), set())
        self.rows.catalog.drop_table(name)
        return "clone"

    def end(self) -> None:
        """Nothing is kept but the newest snapshot of main, and what that needs."""
        for name in [branch.name for branch in self.main.branches.list()]:
            self.main.branches.delete(name)
            self.check()
        self.main.tags.delete(*[tag.name for tag in self.main.tags.list()], force=True)
        self.main.consumers.clear()
        if self.numbers(self.main):
            self.main.expire_snapshots(retain_max=1, retain_min=1)
        self.check()
        self.clean()
        self.check()


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
def test_whatever_happens_everything_with_a_name_reads_as_it_did(keyed):
    for seed in range(SEED, SEED + HISTORIES):
        history = History(seed, keyed=keyed)
        try:
            for _ in range(STEPS):
                history.step()
                history.check()
            history.end()
        except BaseException as error:
            error.add_note(f"replay with SEED={seed} HISTORIES=1: {'; '.join(history.done)}")
            raise
