"""Random histories of everything that keeps or deletes files, compared with a dict.

Commits, overwrites, compactions, partitions that are dropped, tags, branches, consumers, rollbacks
both ways, expiry of snapshots and of changelogs, removal of orphans and clones. At every step every
snapshot, tag, branch and change reads as it did at first, and every referenced file exists. Without
a rollback no other file exists; after full expiry and orphan removal no other file exists in any
history.

``SEED=7 HISTORIES=1`` runs the history of that seed; every third one is on a local disk.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.metadata.changelog_directory import changelog_ids, read_changelog
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot, snapshot_ids
from lakeformat.paimon.metadata.tag import read_tags
from lakeformat.paimon.read.scan import Scan
from tests.expired import missing, unneeded
from tests.keyed_rows import KeyedRows
from tests.sampling import SEED, count

HISTORIES = count(1, 3, "HISTORIES")
STEPS = int(os.environ.get("STEPS", "30"))
KEYS = 4
TWO_DAYS = 2 * 24 * 60 * 60 * 1000
Key = tuple[str, int]
Rows = dict[Key, str]
LONG = {
    "changelog.num-retained.min": "4",
    "changelog.num-retained.max": "6",
    "snapshot.num-retained.min": "1",
    "snapshot.num-retained.max": "4",
}
FEW = {"compaction.min.file-num": "2"}
TABLES: Mapping[str, tuple[bool, Mapping[str, str]]] = {
    "keyed": (True, {}),
    "append": (False, {}),
    "told": (True, {"changelog-producer": "input", "manifest.merge-min-count": "3"}),
    "told long": (True, {"changelog-producer": "lookup", **LONG}),
    "written long": (False, {**FEW, **LONG}),
}


class History:
    """A table, and what each of its states held when it was made: by uuid of the snapshot."""

    def __init__(self, seed: int, kind: str, directory: Path) -> None:
        self.chance = Random(seed)
        self.keyed, options = TABLES[kind]
        self.is_told = "changelog-producer" in options
        self.is_long = "changelog.num-retained.min" in options
        self.is_local = is_local = seed % 3 == 2
        self.rows = KeyedRows(
            options,
            keyed=self.keyed,
            partitioned=True,
            warehouse=f"{directory}/{kind}-{seed}" if is_local else None,
            began=int(time.time() * 1000) if is_local else 0,
        )
        if not is_local:  # files are as old as commits
            self.rows.table._handle.storage._clock = self.rows.clock
        self.main = self.rows.table
        self.model: dict[str, Rows | list] = {}
        self.told: dict[str, list[dict]] = {}
        self.done: list[str] = []
        self.names = 0
        self.leaves_orphans = False

    def step(self) -> None:
        """One thing that is possible now, or is refused for a reason the model knows."""
        acts: list[Callable[[], str]] = [
            *[self.commit] * 5,
            *[self.compact] * 2,
            self.drop,
            self.overwrite,
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
            if self.is_told or self.is_long:
                self.check_changes(table)
        assert missing(self.main) == set()
        if not self.leaves_orphans:
            assert unneeded(self.main) == set()

    def check_changes(self, table: lake.Table) -> None:
        """Every change reads as before, also after its snapshot has expired."""
        storage, layout = table._handle.storage, table._handle.layout
        ids = snapshot_ids(storage, layout)
        there = [read_snapshot(storage, layout, number) for number in ids[1:]]
        there += [read_changelog(storage, layout, each) for each in changelog_ids(storage, layout)]
        for snapshot in there:
            is_compaction = snapshot.commit_kind is CommitKind.COMPACT
            if not self.is_told and is_compaction:
                continue  # of rows that were told before; what it wrote may have gone
            if self.is_told and snapshot.changelog_manifest_list is None:
                continue
            found = table.changes(snapshot.id - 1, snapshot.id).to_arrow().to_pylist()
            rows = sorted(found, key=str)
            assert self.told.setdefault(snapshot.uuid, rows) == rows, snapshot.id

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

    def overwrite(self) -> str:
        table, partition = self.some(), self.chance.choice("ab")
        before, value = self.newest(table), self.new_name("v")
        key = (partition, self.chance.randint(1, KEYS))
        self.rows.table, self.rows.clock.millis = table, self.rows.clock.millis + 1
        data = pa.table({"p": [partition], "k": pa.array([key[1]], pa.int32()), "v": [value]})
        table.write(data, overwrite={"p": partition})
        left = [each for each in self.pairs(before) if each[0][0] != partition]
        self.note(
            table, {**dict(left), key: value} if self.keyed else sorted([*left, (key, value)])
        )
        return f"overwrite {partition} with {value}"

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

    def _age(self) -> None:
        """Let two days go by: of a local disk, whose clock nothing moves, make the files older."""
        if not self.is_local:
            self.rows.clock.millis += TWO_DAYS
            return
        for path in Path(self.main._handle.layout.root).rglob("*"):
            if path.is_file() and path.parent.name != "snapshot":  # those are as old as commits
                moment = path.stat().st_mtime - TWO_DAYS / 1000
                os.utime(path, (moment, moment))

    def clean(self) -> str:
        self._age()
        self.main.remove_orphans("1 d", dry_run=False, max_share=1)
        assert unneeded(self.main) == set()
        self.leaves_orphans = False
        return "remove orphans"

    def clone(self) -> str:
        """Clone everything, a snapshot or a tag."""
        numbers = self.numbers(self.main)
        tags = [tag.name for tag in self.main.tags.list()]
        whats: list[dict] = [{"full": True}, *[{"snapshot": each} for each in numbers[-1:]]]
        whats += [{"tag": each} for each in tags[:1]]
        return self.clone_of(self.chance.choice(whats))

    def clone_of(self, what: dict) -> str:
        name, numbers = f"shop.{self.new_name('clone')}", self.numbers(self.main)
        lake.clone_table(self.main, self.rows.catalog, name, **what)
        copy = self.rows.catalog.table(name)
        if "full" in what:
            assert self.numbers(copy) == numbers
        for snapshot in copy.snapshots():
            self.require(copy, snapshot)
        assert (missing(copy), unneeded(copy)) == (set(), set())
        self.rows.catalog.drop_table(name)
        return f"clone {what}"

    def end(self) -> None:
        """Nothing is kept but the newest snapshot of main, and what that needs."""
        self.done.append(self.clone_of({"full": True}))
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


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", TABLES)
def test_whatever_happens_everything_with_a_name_reads_as_it_did(kind, tmp_path):
    for seed in range(SEED, SEED + HISTORIES):
        history = History(seed, kind, tmp_path)
        try:
            for _ in range(STEPS):
                history.step()
                history.check()
            history.end()
        except BaseException as error:
            error.add_note(f"replay with SEED={seed} HISTORIES=1: {'; '.join(history.done)}")
            raise
