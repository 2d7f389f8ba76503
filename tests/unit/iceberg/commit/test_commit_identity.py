"""The same CommitId publishes once, also if snapshots expired since its first attempt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakeformat import CommitId
from lakeformat.errors import CommitUndecidableError, InvalidRequestError
from lakeformat.iceberg.commit.identity import find_commit, identity_summary
from lakeformat.iceberg.metadata.snapshot import Reference
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.metadata.updates import remove_snapshots, set_reference
from tests.crash.simulated import NOW_MILLIS, simulated
from tests.unit.iceberg.path_table import appended, empty_metadata

HOUR = 3600 * 1000


def history(*commits: CommitId | None, every: int = 0) -> TableMetadata:
    """Snapshots 1, 2 ... with the identities of these commits, some milliseconds apart."""
    metadata = empty_metadata()
    for number, commit in enumerate(commits, 1):
        summary = {} if commit is None else identity_summary(commit)
        moment = NOW_MILLIS - every * (len(commits) - number)
        metadata = appended(
            metadata, f"s{number}", snapshot_id=number, timestamp_ms=moment, summary=summary
        )
    return metadata


def found(metadata: TableMetadata, commit: CommitId, branch: str = "main") -> int | None:
    snapshot = find_commit(metadata, branch, commit, simulated())
    return None if snapshot is None else snapshot.snapshot_id


def test_a_commit_is_found_by_user_and_identifier():
    metadata = history(CommitId("a", 0), CommitId("b", 7), CommitId("a", 1), None)
    assert found(metadata, CommitId("a", 0)) == 1
    assert found(metadata, CommitId("b", 7)) == 2
    assert found(metadata, CommitId("a", 2)) is None
    assert found(metadata, CommitId("c", 0)) is None
    assert found(empty_metadata(), CommitId("a", 0)) is None


def test_only_the_history_of_the_branch_counts():
    metadata = history(CommitId("a", 0), CommitId("a", 1))
    metadata = set_reference(metadata, Reference("dev", 1, "branch"), NOW_MILLIS)
    assert found(metadata, CommitId("a", 1), "dev") is None
    assert found(metadata, CommitId("a", 0), "dev") == 1


def test_identifiers_of_a_user_ascend():
    with pytest.raises(InvalidRequestError, match=r"arrived after commit 5 of the same user \(sna"):
        found(history(CommitId("a", 5)), CommitId("a", 4))


def test_snapshots_older_than_the_first_attempt_are_not_searched():
    metadata = history(CommitId("a", 0), None, None, every=HOUR)
    recent = CommitId("a", 0, first_try_millis=NOW_MILLIS - HOUR)
    assert found(metadata, recent) is None
    assert found(metadata, replace(recent, first_try_millis=NOW_MILLIS - 2 * HOUR)) == 1


def test_a_commit_that_may_have_expired_is_undecidable():
    metadata = remove_snapshots(history(CommitId("a", 0), None, None, every=HOUR), [1])
    began = CommitId("a", 0, first_try_millis=NOW_MILLIS - 3 * HOUR)
    with pytest.raises(CommitUndecidableError, match=r"but snapshot 1 and older ones have expired"):
        found(metadata, began)
    assert found(metadata, replace(began, first_try_head="2")) is None
    assert found(metadata, replace(began, first_try_head="1")) is None  # the first one since is 2
    assert found(metadata, CommitId("a", 0)) is None


def test_what_cannot_be_decided_or_done_is_refused():
    with pytest.raises(InvalidRequestError, match="which is in the future"):
        found(history(), CommitId("a", 0, first_try_millis=NOW_MILLIS + HOUR))
    foreign = appended(empty_metadata(), "s", summary={"lake.commit-user": "a"})
    with pytest.raises(InvalidRequestError, match="which is not a number"):
        found(foreign, CommitId("a", 0))
