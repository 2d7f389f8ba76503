"""A commit of Iceberg metadata dies at every storage call, or meets another: nothing is lost."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from lakeformat import AlreadyExistsError, CommitId, LakeError
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.identity import find_commit, identity_summary
from lakeformat.iceberg.create.new_table import create_at_path, location_at, new_table_metadata
from lakeformat.iceberg.metadata.updates import set_properties
from lakeformat.storage import LocalStorage
from lakeformat.testing import CrashableStorage
from tests.crash.simulated import simulated
from tests.sampling import SEED, count, sampled_faults, sampled_states
from tests.unit.iceberg.path_table import ROOT, appended, handle_on, names, path_table

PROJECT = Path(__file__).resolve().parents[2]
DELETES = {
    "write.metadata.previous-versions-max": "1",
    "write.metadata.delete-after-commit.enabled": "true",
}
PACKED = {"write.metadata.compression-codec": "gzip"}


def append_once(storage, name: str, number: int, user: str = "run") -> None:
    """Append a snapshot, unless the commit of this number has published before."""
    handle, commit = handle_on(storage, simulated(first=number)), CommitId(user, number)

    def change(loaded):
        if find_commit(loaded.metadata, "main", commit, handle.environment):
            return None
        return appended(loaded.metadata, name, summary=identity_summary(commit))

    commit_metadata(handle, change)


def table_of_two_commits() -> CrashableStorage:
    storage = CrashableStorage()
    path_table(storage, properties=DELETES)
    append_once(storage, "a", 0)
    append_once(storage, "b", 1)
    return storage


def third_commit(storage, acknowledged):
    append_once(storage, "c", 2)
    acknowledged.append("c")


@pytest.mark.parametrize("seed", range(SEED, SEED + count(1, whole=3)))
def test_a_fault_at_any_call_leaves_the_state_before_or_after_and_a_retry_publishes_once(seed):
    for trial in sampled_states(third_commit, start=table_of_two_commits(), seed=seed):
        storage = trial.reopened()
        found = names(handle_on(storage).load().metadata)
        try:
            assert found == ["a", "b", "c"] or (found == ["a", "b"] and not trial.acknowledged)
            third_commit(storage, [])
            assert names(handle_on(storage).load().metadata) == ["a", "b", "c"]
        except (AssertionError, LakeError) as error:
            error.add_note(f"after {trial}\n{trial.storage.trace()}")
            raise


class Interrupted(CrashableStorage):
    """A storage on which something happens right before one call."""

    before: tuple[int, object] = (0, None)

    def _call(self, operation, path, act, torn=None):
        number, meanwhile = self.before
        if meanwhile is not None and len(self.log) + 1 == number:
            self.before = (0, None)
            meanwhile()
        return super()._call(operation, path, act, torn)


def test_another_commit_before_any_call_is_kept():
    calls = [
        trial.call.number for trial in sampled_faults(third_commit, start=table_of_two_commits())
    ]
    for number in sorted(set(calls)):
        origin = table_of_two_commits()
        storage = Interrupted()
        storage._disk = origin._disk
        storage.before = (number, lambda disk=origin: append_once(disk, "other", 5, "else"))
        append_once(storage, "c", 2)
        found = names(handle_on(origin).load().metadata)
        assert sorted(found) == ["a", "b", "c", "other"], f"other commit before call {number}"


def pack(storage):
    """Change the compression of the metadata files."""
    handle = handle_on(storage, simulated(first=5))
    commit_metadata(handle, lambda loaded: set_properties(loaded.metadata, PACKED))


def append_d(storage):
    append_once(storage, "d", 2)


@pytest.mark.parametrize(("first", "second"), [(append_d, pack), (pack, append_d)])
def test_a_change_of_the_compression_and_another_commit_never_get_the_same_number(first, second):
    calls = table_of_two_commits()
    calls.log.clear()
    first(calls)
    for number in range(1, len(calls.log) + 1):
        origin = table_of_two_commits()
        storage = Interrupted()
        storage._disk = origin._disk
        storage.before = (number, lambda disk=origin: second(disk))
        first(storage)
        found = handle_on(origin).load().metadata
        assert names(found) == ["a", "b", "d"], f"second commit before call {number}"
        assert found.properties.items() >= PACKED.items(), f"second commit before call {number}"


def test_two_tables_with_different_compression_are_never_both_created():
    def create(storage, owner, **options):
        properties = {"owner": owner, **options}
        columns = pa.schema([("id", pa.int64())])
        new = new_table_metadata(location_at(storage, ROOT), columns, properties=properties)
        create_at_path(storage, ROOT, new)

    number = 0
    while True:
        number, created, storage, origin = number + 1, [], Interrupted(), CrashableStorage()
        storage._disk = origin._disk

        def meanwhile(created=created, origin=origin):
            with suppress(AlreadyExistsError):
                create(origin, "second", **PACKED)
                created.append("second")

        storage.before = (number, meanwhile)
        with suppress(AlreadyExistsError):
            create(storage, "first")
            created.append("first")
        if storage.before[0]:
            break  # the storage had fewer calls
        assert created == [handle_on(origin).load().metadata.properties["owner"]]
    assert number > 3


WRITER = """
import sys
from lakeformat.environment import SYSTEM
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.metadata.updates import set_properties
from lakeformat.storage import LocalStorage
from tests.unit.iceberg import path_table

path_table.ROOT = sys.argv[1]
handle = path_table.handle_on(LocalStorage(), SYSTEM)

def count(loaded):
    number = int(loaded.metadata.properties.get("n", "0")) + 1
    return set_properties(loaded.metadata, {"n": str(number)})

for _ in range(int(sys.argv[2])):
    commit_metadata(handle, count)
"""


def test_four_processes_that_read_and_write_one_number_lose_no_commit(tmp_path, monkeypatch):
    root, processes, commits = str(tmp_path / "t"), 4, count(6, whole=50)
    monkeypatch.setattr("tests.unit.iceberg.path_table.ROOT", root)
    (tmp_path / "t/metadata").mkdir(parents=True)
    path_table(LocalStorage(), properties={"commit.retry.num-retries": "1000"})
    command = [sys.executable, "-c", WRITER, root, str(commits)]
    writers = [subprocess.Popen(command, cwd=PROJECT) for _ in range(processes)]
    assert [writer.wait() for writer in writers] == [0] * processes
    metadata = handle_on(LocalStorage()).load().metadata
    assert metadata.properties["n"] == str(processes * commits)
    assert len(metadata.metadata_log) == min(processes * commits, 100)
