"""A commit takes the documented number of storage calls, for a table of any age."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from lakeformat.paimon.commit.commit import CommitOptions, commit_messages
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.snapshot_directory import publish_snapshot, write_hints
from lakeformat.tables.commit_id import CommitId
from tests.counting import CountingStorage
from tests.paper import commit, file, head, message, paper_table

PAGE = Path(__file__).resolve().parents[4] / "docs" / "commit-cost.md"
MINUTE = 60_000


def a_table(*, commits: int, files_each: int, keyed: bool = False) -> TableHandle:
    handle = paper_table(keyed=keyed)
    for number in range(commits):
        commit(handle, message(handle, *(file(f"f-{number}-{n}") for n in range(files_each))))
    return handle


def calls_of_an_append(handle: TableHandle, commit_id: CommitId | None = None) -> list[str]:
    """Each call as operation and kind of file: ``read manifest-list``."""
    counting = CountingStorage(handle.storage)
    watched = TableHandle(counting, handle.layout, handle.schema, handle.environment)
    options = CommitOptions(commit=commit_id)
    report = commit_messages(watched, [message(watched, file("new"))], options)
    assert report.attempts == 1
    return [f"{operation} {kind_of(path)}" for operation, path in counting.calls]


def kind_of(path: str) -> str:
    """``snapshot/snapshot-12`` is a snapshot."""
    return re.sub(r"-[0-9a-f].*", "", path.rpartition("/")[2])


def published_calls() -> list[str]:
    """The calls on the page, one row each."""
    return re.findall(r"^\| \d+ \| `([a-z_]+ [\w-]+)` \|", PAGE.read_text(), re.MULTILINE)


def test_an_append_to_ten_thousand_files_makes_the_calls_that_are_published():
    calls = calls_of_an_append(a_table(commits=100, files_each=100))
    assert calls == published_calls()
    assert f"**{len(calls)} storage calls**" in PAGE.read_text()


def test_a_keyed_table_costs_two_reads_more_for_its_bucket_count():
    plain = calls_of_an_append(a_table(commits=5, files_each=5))
    keyed = calls_of_an_append(a_table(commits=5, files_each=5, keyed=True))
    assert sorted(keyed) == sorted([*plain, "read manifest-list", "read manifest"])


def aged(snapshots: int) -> TableHandle:
    """A table of one file with so many snapshots, one a minute."""
    handle = a_table(commits=1, files_each=1)
    first = head(handle)
    for number in range(2, snapshots + 1):
        then = first.time_millis - (snapshots - number) * MINUTE
        later = replace(first, id=number, uuid=f"u-{number}", time_millis=then)
        assert publish_snapshot(handle.storage, handle.layout, later)
    write_hints(handle.storage, handle.layout, snapshots)
    return handle


@pytest.mark.parametrize("identified", [False, True])
def test_the_number_of_snapshots_costs_nothing(identified):
    """With an identity, what counts is how many came since its first try began."""
    found = []
    for snapshots in (30, 3000):
        handle = aged(snapshots)
        began = head(handle).time_millis
        identity = CommitId("run", 1, first_try_millis=began) if identified else None
        calls = calls_of_an_append(handle, identity)
        assert "list snapshot" not in calls
        found.append(calls)
    young, old = found
    assert young == old
    # One of them looks, once it is published, whether the head is there still.
    assert len([call for call in old if call == "read snapshot"]) == (13 if identified else 2)


def manifests_read(handle: TableHandle, change: CommitMessage) -> int:
    counting = CountingStorage(handle.storage)
    watched = TableHandle(counting, handle.layout, handle.schema, handle.environment)
    commit_messages(watched, [change], CommitOptions())
    return sum(
        operation == "read" and kind_of(path) == "manifest" for operation, path in counting.calls
    )


def test_manifests_of_other_partitions_are_not_read():
    handle = paper_table(keyed=True, partitioned=True)
    for day in "1234":
        commit(handle, message(handle, file(f"a{day}"), dt=day))
    moved_up = {"compact_before": [file("a2")], "compact_after": [file("m2", level=5)]}
    assert manifests_read(handle, message(handle, file("b2"), dt="2")) == 1
    assert manifests_read(handle, message(handle, dt="2", **moved_up)) == 2
