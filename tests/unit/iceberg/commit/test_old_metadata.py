"""Commits that delete old metadata files never let a paused writer publish an old number again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakeformat.errors import CommitOutcomeUnknownError, UnavailableError
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.metadata.snapshot import Reference
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.metadata.updates import (
    remove_properties,
    remove_reference,
    remove_snapshots,
    set_properties,
    set_reference,
)
from lakeformat.storage import MemoryStorage
from lakeformat.testing import CrashableStorage
from tests.unit.iceberg.path_table import ROOT, appended, handle_on, names, path_table

METADATA = f"{ROOT}/metadata"
HINT = f"{METADATA}/version-hint.text"
DELETES = {
    "write.metadata.previous-versions-max": "1",
    "write.metadata.delete-after-commit.enabled": "true",
}


class Interrupted(MemoryStorage):
    """A storage on which something happens right before or after one call."""

    before = after = ("", "", None)
    """The operation, the end of the path, and the function to call."""
    fails = ""
    """The end of the path of a file that cannot be deleted."""

    def create(self, path, content):
        return self._around("create", path, lambda: super(Interrupted, self).create(path, content))

    def overwrite(self, path, content):
        self._around("overwrite", path, lambda: super(Interrupted, self).overwrite(path, content))

    def delete(self, path):
        if self.fails and path.endswith(self.fails):
            raise UnavailableError("no answer")
        super().delete(path)

    def _around(self, operation, path, call):
        self._meet("before", operation, path)
        result = call()
        self._meet("after", operation, path)
        return result

    def _meet(self, when, operation, path):
        wanted, ending, act = getattr(self, when)
        if act is not None and operation == wanted and path.endswith(ending):
            setattr(self, when, ("", "", None))
            act()


def add(storage, *added: str) -> None:
    for name in added:
        commit_metadata(handle_on(storage), lambda its, name=name: appended(its.metadata, name))


def found(storage) -> list[str]:
    return names(handle_on(storage).load().metadata)


def numbers(storage) -> list[int]:
    stored = [info.name for info in storage.list(METADATA)]
    return sorted(int(each[1:].partition(".")[0]) for each in stored if each != "version-hint.text")


def table_at_4(kept: int = 1) -> Interrupted:
    """A table with the file v4 and at most ``kept`` files before it."""
    storage = Interrupted("t")
    limit = {"write.metadata.previous-versions-max": str(kept)}
    path_table(storage, properties={**DELETES, **limit})
    add(storage, "a", "b", "c")
    assert numbers(storage) == [*range(max(4 - kept, 1), 5)]
    return storage


def commits_of_which_one_dies(storage, kept: str, commits: int) -> None:
    """Make commits of which one does not delete the file ``kept``."""
    storage.fails = kept
    add(storage, "d", "e")
    storage.fails = ""
    add(storage, *(f"f{number}" for number in range(commits)))


@pytest.mark.parametrize("commits", [0, 1, 2, 3])
def test_a_number_above_a_file_that_was_not_deleted_is_never_published_again(commits):
    storage = table_at_4()

    def meanwhile():
        commits_of_which_one_dies(storage, "v4.metadata.json", commits)

    storage.before = ("create", "v5.metadata.json", meanwhile)
    add(storage, "paused")
    others = ["d", "e", *(f"f{number}" for number in range(commits))]
    assert found(storage) == ["a", "b", "c", *others, "paused"]
    add(storage, "last")
    assert found(storage) == ["a", "b", "c", *others, "paused", "last"]
    assert len(numbers(storage)) == 2


@pytest.mark.parametrize("commits", [1, 2, 3])
def test_a_late_version_hint_names_no_file_that_was_not_deleted(commits):
    storage = table_at_4()

    def meanwhile():
        commits_of_which_one_dies(storage, "v5.metadata.json", commits)

    def created():
        storage.before = ("overwrite", HINT, meanwhile)

    storage.after = ("create", "v5.metadata.json", created)
    add(storage, "paused")
    others = ["d", "e", *(f"f{number}" for number in range(commits))]
    assert found(storage) == ["a", "b", "c", "paused", *others]
    add(storage, "last")
    assert found(storage) == ["a", "b", "c", "paused", *others, "last"]


@pytest.mark.parametrize("dies", [False, True])
def test_a_late_version_hint_names_no_number_that_was_published_again(dies):
    """One writer pauses before the hint, and another one creates its number again."""
    storage = table_at_4()
    stale = storage.read(f"{METADATA}/v4.metadata.json")

    def meanwhile():
        add(storage, "d", "e", "f", "g")
        storage.create(f"{METADATA}/v5.metadata.json", stale)

    def created():
        storage.before = ("overwrite", HINT, meanwhile)

    storage.after = ("create", "v5.metadata.json", created)
    add(storage, "paused")
    assert storage.read(HINT) == b"9"
    if not dies:  # the other writer finds that its file is not the newest
        storage.delete(f"{METADATA}/v5.metadata.json")
    add(storage, "last")
    assert found(storage) == ["a", "b", "c", "paused", "d", "e", "f", "g", "last"]


@pytest.mark.parametrize("left", [(4, 7, 8), (4, 6, 7, 8)])
def test_files_that_another_program_deleted_in_any_order_free_no_number(left):
    """The base of the paused commit exists, but the version hint is above its number."""
    storage = table_at_4(kept=9)

    def meanwhile():
        add(storage, "d", "e", "f", "g")
        for number in {*range(1, 9)} - {*left}:
            storage.delete(f"{METADATA}/v{number}.metadata.json")

    storage.before = ("create", "v5.metadata.json", meanwhile)
    add(storage, "paused")
    assert found(storage) == ["a", "b", "c", "d", "e", "f", "g", "paused"]


def test_a_published_commit_is_found_although_the_file_after_it_was_deleted():
    storage = table_at_4(kept=9)

    def meanwhile():
        add(storage, "d", "e", "f")
        storage.delete(f"{METADATA}/v6.metadata.json")

    storage.after = ("create", "v5.metadata.json", meanwhile)
    add(storage, "paused")
    assert found(storage) == ["a", "b", "c", "paused", "d", "e", "f"]


def test_a_version_hint_above_all_files_does_not_refuse_a_commit():
    storage = table_at_4()
    storage.overwrite(HINT, b"99")
    add(storage, "d")
    assert (found(storage), storage.read(HINT)) == (["a", "b", "c", "d"], b"5")


def test_a_file_that_a_slow_commit_deleted_is_not_reported_as_published():
    """A commit that paused before it deletes v5 deletes the file that another commit created."""
    storage = table_at_4()

    def delete():
        storage.delete(f"{METADATA}/v5.metadata.json")

    def meanwhile():
        add(storage, "d", "e", "f", "g")
        storage.after = ("create", "v5.metadata.json", delete)

    storage.before = ("create", "v5.metadata.json", meanwhile)
    with pytest.raises(CommitOutcomeUnknownError, match=r"v5.*lacks the changes"):
        add(storage, "paused")
    assert found(storage) == ["a", "b", "c", "d", "e", "f", "g"]


def move_back(metadata: TableMetadata) -> TableMetadata:
    """Roll ``main`` back to its oldest snapshot."""
    oldest = Reference("main", metadata.snapshots[0].snapshot_id, "branch")
    return set_reference(metadata, oldest, metadata.last_updated_ms + 1)


CHANGES_WITHOUT_SNAPSHOT = {
    "set a property": lambda its: set_properties(its, {"p": "1"}),
    "remove a property": lambda its: remove_properties(its, ["owner"]),
    "add a tag": lambda its: set_reference(
        its, Reference("x", its.current_snapshot_id, "tag"), its.last_updated_ms
    ),
    "remove a tag": lambda its: remove_reference(its, "old"),
    "expire": lambda its: remove_snapshots(its, [its.snapshots[0].snapshot_id]),
    "add a schema": lambda its: replace(
        its, schemas=(*its.schemas, replace(its.schema, schema_id=1)), current_schema_id=1
    ),
    "roll back": move_back,
}


def table_with_tag_at_5() -> Interrupted:
    storage = table_at_4()

    def change(metadata: TableMetadata) -> TableMetadata:
        tag = Reference("old", metadata.current_snapshot_id, "tag")
        return set_properties(set_reference(metadata, tag, 0), {"owner": "shop"})

    commit_metadata(handle_on(storage), lambda its: change(its.metadata))
    return storage


@pytest.mark.parametrize("change", CHANGES_WITHOUT_SNAPSHOT.values(), ids=CHANGES_WITHOUT_SNAPSHOT)
def test_a_lost_change_without_a_snapshot_is_not_reported_as_published(change):
    storage = table_with_tag_at_5()

    def delete():
        storage.delete(f"{METADATA}/v6.metadata.json")

    def meanwhile():
        add(storage, "d", "e", "f", "g")
        storage.after = ("create", "v6.metadata.json", delete)

    storage.before = ("create", "v6.metadata.json", meanwhile)
    with pytest.raises(CommitOutcomeUnknownError, match=r"v6.*lacks the changes"):
        commit_metadata(handle_on(storage), lambda its: change(its.metadata))
    assert found(storage) == ["a", "b", "c", "d", "e", "f", "g"]


@pytest.mark.parametrize("change", CHANGES_WITHOUT_SNAPSHOT.values(), ids=CHANGES_WITHOUT_SNAPSHOT)
def test_a_change_that_later_commits_kept_is_published(change):
    storage = table_with_tag_at_5()
    storage.after = ("create", "v6.metadata.json", lambda: add(storage, "d", "e", "f", "g"))
    result = commit_metadata(handle_on(storage), lambda its: change(its.metadata))
    assert (result.is_published, result.attempts) == (True, 1)
    assert found(storage)[-4:] == ["d", "e", "f", "g"]


@pytest.mark.parametrize("commits", [1, 2, 3])
def test_a_commit_of_a_dropped_table_deletes_nothing_of_the_new_table(commits):
    storage = table_at_4()
    new = [f"n{number}" for number in range(commits)]

    def create_again():
        storage.delete_directory(METADATA)
        path_table(storage, properties=DELETES, **{"table-uuid": "other"})
        add(storage, *new)

    def created():
        storage.before = ("overwrite", HINT, create_again)

    storage.after = ("create", "v5.metadata.json", created)
    add(storage, "old")
    assert found(storage) == new
    assert max(numbers(storage)) == commits + 1


def test_many_files_that_were_not_deleted_are_deleted_by_several_commits():
    storage = MemoryStorage("t")
    path_table(storage, properties={"write.metadata.previous-versions-max": "1"})
    for number in range(205):
        commit_metadata(
            handle_on(storage), lambda its, n=number: set_properties(its.metadata, {"n": str(n)})
        )
    assert numbers(storage) == [*range(1, 207)]
    commit_metadata(handle_on(storage), lambda its: set_properties(its.metadata, DELETES))
    assert numbers(storage) == [*range(101, 208)]
    add(storage, "a")
    assert numbers(storage) == [*range(201, 209)]
    add(storage, "b")
    assert numbers(storage) == [208, 209]


def test_a_shorter_metadata_log_does_not_read_the_new_metadata_for_each_deletion():
    storage = CrashableStorage()
    kept = {"write.metadata.previous-versions-max": "300"}
    path_table(storage, properties={**DELETES, **kept})
    add(storage, *(f"a{number}" for number in range(105)))
    handle = handle_on(storage)
    commit_metadata(handle, lambda its: set_properties(its.metadata, DELETES))
    assert numbers(storage) == [*range(101, 108)]
    reads = [each for each in storage.log if each.operation == "read"]
    assert len([each for each in reads if each.path.endswith("v107.metadata.json")]) == 5
    add(storage, "b")
    assert numbers(storage) == [107, 108]


def test_an_ordinary_commit_that_deletes_metadata_needs_eight_calls_after_the_publication():
    storage = CrashableStorage()
    path_table(storage, properties=DELETES)
    add(storage, "a", "b", "c")
    storage.log.clear()
    add(storage, "d")
    calls = [(each.operation, each.path.rpartition("/")[2]) for each in storage.log]
    assert calls[calls.index(("create", "v5.metadata.json")) + 1 :] == [
        ("read", "v4.metadata.json"),
        ("read", "version-hint.text"),
        ("overwrite", "version-hint.text"),
        ("read", "v5.metadata.json"),
        ("exists", "v2.metadata.json"),
        ("exists", "v2.gz.metadata.json"),
        ("exists", "v2.metadata.json.gz"),
        ("delete", "v3.metadata.json"),
    ]


def test_a_commit_that_deletes_no_metadata_needs_two_calls_after_the_publication():
    storage = CrashableStorage()
    path_table(storage)
    add(storage, "a", "b")
    storage.log.clear()
    add(storage, "c")
    calls = [(each.operation, each.path.rpartition("/")[2]) for each in storage.log]
    after = calls[calls.index(("create", "v4.metadata.json")) + 1 :]
    assert after == [("read", "v3.metadata.json"), ("overwrite", "version-hint.text")]
