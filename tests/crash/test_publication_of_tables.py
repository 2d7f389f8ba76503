"""A published table dies at every storage call: readers of Iceberg see the old or the new head."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

import lakeformat as lake
from lakeformat.publish.versions import PublishedVersions
from lakeformat.testing import CrashableStorage, every_fault
from tests.sampling import IS_WHOLE, SEED, sample
from tests.unit.publish.published import (
    ROOT,
    catalog_in,
    content,
    iceberg,
    published_table,
    seen,
    unobserved,
    uuids,
)

COLUMNS = [("id", "BIGINT")]


def start() -> CrashableStorage:
    storage = CrashableStorage()
    published_table(storage, COLUMNS)
    opened(storage).write(pa.table({"id": [0]}))
    return storage


def opened(storage, name: str = "shop.orders") -> lake.Table:
    table = catalog_in(storage).table(name)
    object.__setattr__(table._handle, "environment", uuids(len(storage.files()) + 1))
    return table


def work(storage, acknowledged):
    """A commit, an overwrite, a tag and an expiry."""
    table = opened(storage)
    table.write(pa.table({"id": [1]}))
    table.tags.create("two", exist_ok=True)
    table.write(pa.table({"id": [2]}), overwrite="table")
    table.expire_snapshots(retain_max=1, retain_min=1)
    acknowledged.append("done")


def test_readers_see_a_state_of_the_table_and_the_next_publication_mends_it():
    faults = every_fault(work, start=start(), seed=SEED)
    for trial in sample(faults, 10, kind=lambda each: each.call.operation):
        storage = trial.run().reopened()
        table = opened(storage)
        try:
            assert seen(table) in ([{"id": 0}], [{"id": 0}, {"id": 1}], [{"id": 2}])
            lake.publish_table(table)
            check(table, storage)
            table.write(pa.table({"id": [3]}))
            check(table, storage)
        except (AssertionError, lake.LakeError) as error:
            error.add_note(f"in {trial}\n{trial.storage.trace()}")
            raise


def cut(storage, acknowledged):
    """A rollback that deletes newer snapshots, of which one has replaced all files."""
    opened(storage).rollback(snapshot=1, as_latest=False)
    acknowledged.append("done")


def long_history() -> CrashableStorage:
    storage = start()
    for number in (1, 2):
        opened(storage).write(
            pa.table({"id": [number]}), overwrite="table" if number == 1 else None
        )
    return storage


def commit(table: lake.Table) -> None:
    table.write(pa.table({"id": [9]}))


def commits_of_another_engine(table: lake.Table) -> None:
    theirs = unobserved(table)
    for number in (7, 8, 9):
        theirs.write(pa.table({"id": [number]}))
    lake.publish_table(table)


def expire(table: lake.Table) -> None:
    table.expire_snapshots(retain_max=1, retain_min=1)


MENDS = (commit, commits_of_another_engine, expire, lake.publish_table)


def test_an_interrupted_rollback_is_mended_by_whatever_publishes_next():
    faults = every_fault(cut, start=long_history(), seed=SEED)
    for place, trial in enumerate(sample(faults, 10, kind=lambda each: each.call.operation)):
        left = trial.run()
        for mend in MENDS if IS_WHOLE else [MENDS[place % len(MENDS)]]:
            try:
                check_mended(left.reopened(), mend)
            except (AssertionError, lake.LakeError) as error:
                error.add_note(f"{mend.__name__} in {trial}\n{trial.storage.trace()}")
                raise


def check_mended(storage: CrashableStorage, mend: Callable[[lake.Table], object]) -> None:
    assert_hinted_file_is_there(storage)
    table = opened(storage)
    table.remove_orphans(dry_run=False, allow_younger=True, max_share=1)
    assert seen(table)
    mend(table)
    check(table, storage)
    hint = storage.files()[f"{ROOT}/metadata/version-hint.text"].decode()
    found = PublishedVersions(storage, ROOT).newest()
    assert found is not None
    assert found.path == f"{ROOT}/metadata/v{hint}.metadata.json"


def assert_hinted_file_is_there(storage) -> None:
    """Readers that follow the hint do not look for lower numbers."""
    hint = storage.files().get(f"{ROOT}/metadata/version-hint.text", b"").decode()
    assert not hint or storage.exists(f"{ROOT}/metadata/v{hint}.metadata.json")


def check(table: lake.Table, storage) -> None:
    """The newest metadata shows the table, and every file of every snapshot and tag is there."""
    shown = iceberg(table)
    assert seen(table) == content(table.scan().to_arrow())
    for snapshot in shown.snapshots():
        assert shown.scan(snapshot=snapshot.id).to_arrow().num_rows
    newest = table.latest_snapshot()
    assert newest is not None
    found = PublishedVersions(storage, ROOT).newest()
    assert found is not None
    assert found.metadata.current_snapshot_id == newest.id


def unpublished_history() -> CrashableStorage:
    """Snapshots 1 and 2 have expired. A tag keeps 1, whose file 2 has replaced."""
    storage = CrashableStorage()
    table = published_table(storage, COLUMNS, options={"metadata.iceberg.format-version": "3"})
    theirs = unobserved(table)
    for number in range(4):
        theirs.write(pa.table({"id": [number]}), overwrite="table" if number == 1 else None)
        if not number:
            theirs.tags.create("one", snapshot=1)
    theirs.expire_snapshots(retain_max=2, retain_min=1)
    return storage


def publish(storage, acknowledged):
    """The first publication of a table with a history."""
    lake.publish_table(opened(storage))
    acknowledged.append("done")


def test_readers_see_no_history_or_all_of_it():
    faults = every_fault(publish, start=unpublished_history(), seed=SEED)
    for trial in sample(faults, 5, kind=lambda each: each.call.operation):
        storage = trial.run().reopened()
        table = opened(storage)
        try:
            if PublishedVersions(storage, ROOT).newest() is not None:
                check_history(table)
            lake.publish_table(table)
            check_history(table)
            table.write(pa.table({"id": [9]}))
            check(table, storage)
        except (AssertionError, lake.LakeError) as error:
            error.add_note(f"in {trial}\n{trial.storage.trace()}")
            raise


def check_history(table: lake.Table) -> None:
    assert [row["id"] for row in seen(table)] == [1, 2, 3]
    assert [row["id"] for row in seen(table, 3)] == [1, 2]
    assert iceberg(table).scan(tag="one").to_arrow().to_pylist() == [{"id": 0}]


def make_branch(storage, acknowledged):
    """A new branch, and a commit to it."""
    table = opened(storage)
    table.branches.create("dev", snapshot=1)
    opened(storage, "shop.orders$branch_dev").write(pa.table({"id": [7]}))
    acknowledged.append("done")


def test_a_branch_is_mended_by_its_next_publication_and_main_is_not_changed():
    faults = every_fault(make_branch, start=start(), seed=SEED)
    for trial in sample(faults, 5, kind=lambda each: each.call.operation):
        storage = trial.run().reopened()
        table = opened(storage)
        try:
            assert seen(table) == [{"id": 0}]
            for each in table.branches.list():
                branch = opened(storage, f"shop.orders$branch_{each.name}")
                lake.publish_table(branch)
                assert files_in(iceberg(branch)) == files_in(branch)
                branch.write(pa.table({"id": [9]}))
                assert files_in(iceberg(branch)) == files_in(branch)
        except (AssertionError, lake.LakeError) as error:
            error.add_note(f"in {trial}\n{trial.storage.trace()}")
            raise


def files_in(table: lake.Table | lake.IcebergTable) -> list[str]:
    """The names of the data files; those of a branch are outside of its directory, and no storage
    opens the addresses of this test.
    """
    paths = table.system_table("files").scan().to_arrow()["file_path"].to_pylist()
    return sorted(path.rpartition("/")[2] for path in paths)
