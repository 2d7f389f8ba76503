"""Random histories: after any expiry the kept snapshots read as before, and no file is left over.

``EXAMPLES=1000`` sets the number of histories of each kind of table.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.environment import Environment
from lakeformat.paimon.expire.retention import is_decoupled
from lakeformat.paimon.layout import MAIN_BRANCH, TableLayout
from lakeformat.paimon.metadata.changelog_directory import changelog_ids
from lakeformat.paimon.metadata.consumer import read_consumers
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot, snapshot_ids
from lakeformat.paimon.metadata.tag import Tag, create_tag, tag_names
from lakeformat.paimon.table import load_table
from lakeformat.storage import Storage
from tests.expired import missing, unneeded
from tests.sampling import count

HISTORIES = count(3, 15, "EXAMPLES")
BRANCH = "dev"
KEYED = {"bucket": "1"}
TABLES: dict[str, tuple[bool, Mapping[str, str]]] = {
    "append": (False, {"bucket": "-1", "compaction.min.file-num": "2"}),
    "keyed": (True, KEYED),
    "small manifests": (True, {**KEYED, "manifest.merge-min-count": "2"}),
    "changelog": (True, {**KEYED, "changelog-producer": "input"}),
    "marked rows": (True, {**KEYED, "deletion-vectors.enabled": "true"}),
    "long changelogs": (
        True,
        {
            **KEYED,
            "changelog-producer": "lookup",
            "changelog.num-retained.min": "4",
            "changelog.num-retained.max": "6",
            "snapshot.num-retained.min": "1",
            "snapshot.num-retained.max": "2",
        },
    ),
    "long changes": (
        False,
        {
            "bucket": "-1",
            "compaction.min.file-num": "2",
            "changelog.num-retained.min": "4",
            "changelog.num-retained.max": "6",
            "snapshot.num-retained.min": "1",
            "snapshot.num-retained.max": "2",
        },
    ),
}
_warehouses = itertools.count()

STEPS = st.one_of(
    st.tuples(st.just("write"), st.lists(st.integers(0, 5), min_size=1, max_size=3)),
    st.tuples(st.just("write"), st.lists(st.integers(0, 5), min_size=1, max_size=3)),
    st.tuples(st.just("compact"), st.just(None)),
    st.tuples(st.just("truncate"), st.just(None)),
    st.tuples(st.just("tag"), st.integers(0, 10)),
    st.tuples(st.just("consumer"), st.integers(0, 10)),
    st.tuples(st.just("forget"), st.just(None)),
    st.tuples(st.just("branch"), st.integers(0, 10)),
    st.tuples(st.just("expire"), st.integers(1, 4)),
    st.tuples(st.just("on branch"), st.just(None)),
)


class History:
    """A table, and the rows each of its snapshots had when it was made."""

    def __init__(self, keyed: bool, options: Mapping[str, str]) -> None:
        self.millis = 0
        self.environment = Environment(now_millis=lambda: self.millis)
        catalog = lake.open_catalog(
            f"memory://expiry-{next(_warehouses)}/wh", environment=self.environment
        )
        catalog.create_database("shop")
        self.main = catalog.create_table(
            "shop.t",
            [("k", "INT NOT NULL"), ("v", "INT")],
            primary_key=["k"] if keyed else [],
            options=options,
        )
        self.branch: lake.Table | None = None
        self.rows: dict[tuple[str, int], list[tuple]] = {}
        self.tags: dict[str, list[tuple]] = {}
        self.told: dict[int, list[tuple]] = {}
        self.is_told_long = is_decoupled(self.main.options)
        self.written = 0
        self.table = self.main

    @property
    def storage(self) -> Storage:
        return self.main._handle.storage

    def layout(self, table: lake.Table) -> TableLayout:
        return table._handle.layout

    def do(self, step: str, argument: Any) -> None:
        getattr(self, f"do_{step.replace(' ', '_')}")(argument)
        self.millis += 60_000
        self.remember()
        self.check()

    def do_write(self, keys: list[int]) -> None:
        self.written += 1
        keys = sorted(set(keys))
        values = pa.array([self.written] * len(keys), pa.int32())
        self.table.write(pa.table({"k": pa.array(keys, pa.int32()), "v": values}))

    def do_compact(self, _: None) -> None:
        self.table.compact(executor="serial")

    def do_truncate(self, _: None) -> None:
        self.table.truncate()

    def do_tag(self, which: int) -> None:
        number = self.some_snapshot(which)
        if number is not None:
            name, layout = f"t{len(self.tags)}", self.layout(self.table)
            create_tag(self.storage, layout, Tag(name, read_snapshot(self.storage, layout, number)))
            if self.table is self.main:
                self.tags[name] = self.rows[MAIN_BRANCH, number]

    def do_consumer(self, which: int) -> None:
        number = self.some_snapshot(which)
        if number is not None:
            self.table.consumers.set("job", next_snapshot=number)

    def do_forget(self, _: None) -> None:
        self.table.consumers.clear()

    def do_branch(self, which: int) -> None:
        """A branch of a snapshot: its own copy of the snapshot and of the schemas."""
        number, layout = self.some_snapshot(which), self.layout(self.main)
        if number is None or self.branch is not None or self.table is not self.main:
            return
        place = layout.on_branch(BRANCH)
        self.storage.overwrite(place.schema(0), self.storage.read(layout.schema(0)))
        snapshot = self.storage.read(layout.snapshot(number))
        self.storage.make_directory(place.snapshot_directory)
        self.storage.overwrite(place.snapshot(number), snapshot)
        self.branch = load_table(self.storage, TableLayout(layout.root, BRANCH), self.environment)
        self.rows[BRANCH, number] = self.rows[MAIN_BRANCH, number]

    def do_on_branch(self, _: None) -> None:
        """Go on with the other one."""
        if self.branch is not None:
            self.table = self.branch if self.table is self.main else self.main

    def do_expire(self, count: int) -> None:
        consumers = read_consumers(self.storage, self.layout(self.table), self.environment)
        before = snapshot_ids(self.storage, self.layout(self.table))
        report = self.table.expire_snapshots(retain_max=count, retain_min=count)
        assert report.is_complete
        assert not report.notes
        left = snapshot_ids(self.storage, self.layout(self.table))
        assert left[-count:] == before[-count:]
        assert all(
            each.next_snapshot >= left[0] for each in consumers if each.next_snapshot in before
        )

    def some_snapshot(self, which: int) -> int | None:
        there = snapshot_ids(self.storage, self.layout(self.table))
        return there[which % len(there)] if there else None

    def remember(self) -> None:
        """The rows of snapshots that are new."""
        for table in filter(None, (self.main, self.branch)):
            name = self.layout(table).branch
            for snapshot in table.snapshots():
                if (name, snapshot.id) not in self.rows:
                    self.rows[name, snapshot.id] = read(table, snapshot=snapshot.id)
                    if name == MAIN_BRANCH and self.is_told_long and is_told(snapshot):
                        self.told[snapshot.id] = changes(table, snapshot.id)

    def check(self) -> None:
        """Everything that is there reads as it did."""
        for table in filter(None, (self.main, self.branch)):
            name = self.layout(table).branch
            for snapshot in table.snapshots():
                assert read(table, snapshot=snapshot.id) == self.rows[name, snapshot.id]
        for tag, rows in self.tags.items():
            assert read(self.main, tag=tag) == rows
        there = {*changelog_ids(self.storage, self.layout(self.main))}
        there |= {*snapshot_ids(self.storage, self.layout(self.main))}
        for number in there & self.told.keys():
            assert changes(self.main, number) == self.told[number]
        assert not missing(self.main)

    def end(self) -> None:
        """Without holders, an expiry leaves no unreferenced file."""
        for table in filter(None, (self.main, self.branch, self.main)):
            self.table = table
            self.do_forget(None)
            self.do_expire(1)
            self.check()
        assert not unneeded(self.main)
        assert tag_names(self.storage, self.layout(self.main)) == sorted(self.tags)


def read(table: lake.Table, **when: Any) -> list[tuple]:
    return sorted(tuple(row.values()) for row in table.scan(**when).to_arrow().to_pylist())


def is_told(snapshot: Snapshot) -> bool:
    """True if a stream would deliver it."""
    is_append = snapshot.commit_kind is CommitKind.APPEND
    return snapshot.changelog_manifest_list is not None or is_append


def changes(table: lake.Table, number: int) -> list[tuple]:
    """Return the changes of a snapshot, as a stream delivers them."""
    found = table.changes(number - 1, number).to_arrow()
    return sorted(tuple(row.values()) for row in found.to_pylist())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", TABLES)
def test_what_stays_reads_as_before_and_nothing_is_left_over(kind: str):
    @settings(
        max_examples=HISTORIES,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        phases=[Phase.explicit, Phase.reuse, Phase.generate],  # what fails is short enough to read
        print_blob=True,
    )
    @given(st.lists(STEPS, min_size=5, max_size=25))
    def holds(steps: list[tuple[str, Any]]) -> None:
        history = History(*TABLES[kind])
        for step, argument in steps:
            history.do(step, argument)
        history.end()

    holds()
