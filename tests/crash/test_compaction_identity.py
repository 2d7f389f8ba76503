"""A retried compaction with the same identity resumes where the earlier attempt ended."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.paimon.compact import commit as compact_commit
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.snapshot import CommitKind
from lakeformat.paimon.table import load_table
from lakeformat.storage import MemoryStorage
from lakeformat.testing import CrashableStorage
from tests.crash.interrupted import Interrupted
from tests.crash.simulated import simulated
from tests.sampling import sampled_faults, sampled_moments

LAYOUT = TableLayout("wh/shop.db/orders")
NIGHTLY = lake.CommitId("nightly", 7)
PARTITIONS = ("a", "b")
# Without an identity such compactions find everything due each time.
SORTED = {"order_by": ["id"]}
KEYED = {
    "primary_key": ["p", "id"],
    "options": {"bucket": "1", "compaction.force-rewrite-all-files": "true"},
}
TABLES = pytest.mark.parametrize(
    ("table", "how"), [(KEYED, {}), ({"options": {"bucket": "-1"}}, SORTED)], ids=["keyed", "sort"]
)
_names = itertools.count()


@pytest.fixture(autouse=True)
def _a_snapshot_for_each_bucket(monkeypatch):
    monkeypatch.setattr(compact_commit, "GROUP_UNITS", 1)


def opened(storage) -> lake.Table:
    return load_table(storage, LAYOUT, simulated(next(_names) + 100))


def fill(storage, table: dict):
    """Two files in each partition."""
    catalog = FileSystemCatalog(storage, "wh", simulated())
    catalog.create_database("shop")
    columns = [("p", "STRING"), ("id", "BIGINT")]
    catalog.create_table("shop.orders", columns, partition_by=["p"], **table)
    for number in range(2):
        add(storage, number)
    return storage


def add(storage, number: int) -> None:
    ids = [n + number for n in (5, 3, 1)]
    rows = {"p": [p for p in PARTITIONS for _ in ids], "id": ids * len(PARTITIONS)}
    opened(storage).write(pa.table(rows))


def content(storage) -> list[tuple]:
    return sorted(tuple(row.values()) for row in opened(storage).scan().to_arrow().to_pylist())


def compactions(storage) -> list[lake.Snapshot]:
    found = [each for each in opened(storage).snapshots() if each.commit_kind is CommitKind.COMPACT]
    assert len({each.commit_identifier for each in found}) == len(found)
    assert {each.commit_user for each in found} <= {"nightly.compaction-7"}
    return found


@TABLES
def test_whenever_it_died_each_bucket_is_compacted_once(table, how):
    def compact(storage, acknowledged=None) -> None:
        load_table(storage, LAYOUT, simulated(len(storage.files()))).compact(
            commit=NIGHTLY, executor="serial", **how
        )

    start = fill(CrashableStorage(), table)
    expected = content(start)
    interrupted = 0
    for trial in sampled_faults(compact, start=start):
        trial.run()
        storage = trial.reopened()
        before = [each.id for each in compactions(storage)]
        report = opened(storage).compact(commit=NIGHTLY, executor="serial", **how)
        assert list(report.earlier_snapshot_ids) == before, str(trial)
        assert len(compactions(storage)) == len(PARTITIONS), str(trial)
        assert content(storage) == expected, str(trial)
        interrupted += 0 < len(before) < len(PARTITIONS)
    assert interrupted


@TABLES
def test_a_twin_that_comes_at_any_moment_does_the_same_work_once(table, how):
    def compact(storage) -> lake.CompactReport:
        return opened(storage).compact(commit=NIGHTLY, executor="serial", **how)

    def new_storage():
        return fill(MemoryStorage(f"compaction-identity-{next(_names)}"), table)

    watched = Interrupted(new_storage(), 0, lambda: None)
    compact(watched)
    expected = content(watched._storage)
    for moment in sampled_moments(watched.calls):
        storage = new_storage()
        interrupted = Interrupted(storage, moment, lambda storage=storage: compact(storage))
        report = compact(interrupted)
        assert content(storage) == expected, moment
        found = [each.id for each in compactions(storage)]
        assert len(found) == len(PARTITIONS), f"at {moment}: {interrupted.calls[moment - 1]}"
        assert sorted(report.snapshot_ids + report.earlier_snapshot_ids) == found, moment


@TABLES
def test_what_is_done_is_not_done_again_although_rows_have_come(table, how):
    storage = fill(MemoryStorage(f"compaction-identity-{next(_names)}"), table)
    done = opened(storage).compact(commit=NIGHTLY, **how)
    add(storage, 7)
    again = opened(storage).compact(commit=NIGHTLY, **how)
    assert again.snapshot_ids == ()
    assert again.earlier_snapshot_ids == done.snapshot_ids
    snapshots = "snapshot" if len(done.snapshot_ids) == 1 else "snapshots"
    assert again.reason == (
        "nothing to do: an earlier attempt of this compaction has done this work; an earlier "
        f"attempt had published {snapshots} {', '.join(map(str, done.snapshot_ids))}"
    )
    assert len(opened(storage).compact(commit=lake.CommitId("nightly", 8), **how).snapshot_ids) == 2


def test_what_is_due_is_done_all_the_same():
    """A minor compaction finds by itself what an earlier try has left."""
    table = {"primary_key": ["p", "id"], "options": {"bucket": "1"}}
    storage = fill(MemoryStorage(f"compaction-identity-{next(_names)}"), table)
    for number in range(3):
        add(storage, number)
    first = opened(storage).compact(strategy="minor", commit=NIGHTLY)
    assert len(first.snapshot_ids) == len(PARTITIONS)
    for number in range(5):
        add(storage, number)
    second = opened(storage).compact(strategy="minor", commit=NIGHTLY)
    assert second.earlier_snapshot_ids == first.snapshot_ids
    assert len(second.snapshot_ids) == len(PARTITIONS)


def test_only_a_commit_id_names_a_compaction():
    storage = fill(MemoryStorage(f"compaction-identity-{next(_names)}"), KEYED)
    with pytest.raises(
        lake.InvalidRequestError, match=r"commit must be a CommitId .*, got 'nightly'"
    ):
        opened(storage).compact(commit="nightly")
