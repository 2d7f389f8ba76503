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


def opened(storage) -> lake.Table:
    table = catalog_in(storage).table("shop.orders")
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
