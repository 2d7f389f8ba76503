"""Staged results and changes of another table: with a fault at any call they come once."""

from __future__ import annotations

import itertools
from contextlib import suppress

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.table import load_table
from lakeformat.storage import MemoryStorage
from lakeformat.testing import CrashableStorage
from spark_jobs.ingestion.table_changes import follow_changes
from spark_jobs.job_requests.ingest import IngestRequest
from tests.crash.interrupted import Interrupted
from tests.crash.simulated import simulated
from tests.sampling import sampled_faults, sampled_moments
from tests.unit.iceberg.path_table import handle_on
from tests.unit.iceberg.write.made_tables import made_table

LAYOUT = TableLayout("wh/shop.db/orders")
WHO = lake.CommitId("run", 1)
_names = itertools.count()


def catalog_of(storage):
    return FileSystemCatalog(storage, "wh", simulated(len(storage.files()) + 100))


def opened(storage) -> lake.Table | lake.IcebergTable:
    environment = simulated(len(storage.files()) + 100)
    if "shop/orders/metadata/v1.metadata.json" in storage.files():
        return IcebergTable(handle_on(storage, environment))
    return load_table(storage, LAYOUT, environment)


def with_table(storage, *names: str):
    catalog = FileSystemCatalog(storage, "wh", simulated())
    catalog.create_database("shop")
    for name in names or ("orders",):
        catalog.create_table(f"shop.{name}", [("id", "BIGINT")])
    return storage


def written(table, *ids):
    with table.new_writer() as writer:
        writer.write(pa.table({"id": list(ids)}))
        return writer.prepare()


def ids(table):
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def with_iceberg_table(storage):
    made_table(storage)
    return storage


def with_two_staged(storage, make=with_table):
    table = opened(make(storage))
    for number in (1, 2):
        table.staged.add(written(table, number), commit=lake.CommitId("writer", number))
    return storage


def addresses(table):
    return [
        table.staged.address(name)
        for name in sorted(
            each.rpartition("staged-")[2]
            for each in table._handle.storage.files()
            if "/staged-" in each
        )
    ]


NAMES = addresses(opened(with_two_staged(MemoryStorage("staged-names"))))


def publish(storage, acknowledged=None) -> None:
    table = opened(storage)
    named = [table.staged.address(each.rpartition("staged-")[2]) for each in NAMES]
    report = table.staged.publish(named)
    if acknowledged is not None:
        acknowledged.append(report.snapshot_id)


def test_a_fault_at_any_call_of_a_publication_is_made_good_by_the_next():
    for trial in sampled_faults(publish, start=with_two_staged(CrashableStorage())):
        trial.run()
        storage = trial.reopened()
        table = opened(storage)
        assert ids(table) in ([], [1, 2]), str(trial)
        publish(storage)
        assert (ids(table), len(table.snapshots())) == ([1, 2], 1), str(trial)
        assert not [name for name in storage.files() if "/staged/" in name and "tmp" not in name]


def stage(storage, acknowledged=None) -> None:
    table = opened(storage)
    found = table.staged.find(WHO) or table.staged.add(written(table, 1), commit=WHO)
    if acknowledged is not None:
        acknowledged.append(found.name)


def test_a_fault_at_any_call_of_staging_is_made_good_by_the_next():
    for trial in sampled_faults(stage, start=with_table(CrashableStorage())):
        trial.run()
        storage = trial.reopened()
        stage(storage)
        table = opened(storage)
        [result] = table.staged.list()
        table.staged.publish([table.staged.address(result.name)])
        assert ids(table) == [1], str(trial)


def discard(storage, acknowledged=None) -> None:
    table = opened(storage)
    for result in table.staged.list():
        table.staged.discard([table.staged.address(result.name)], dry_run=False)


@pytest.mark.parametrize("make", [with_table, with_iceberg_table], ids=["paimon", "iceberg"])
@pytest.mark.parametrize(
    ("works", "meets"), [(publish, discard), (discard, publish), (publish, publish)]
)
def test_who_publishes_and_who_gives_up_never_both_succeed(works, meets, make):
    """At whichever call the other comes in between: all rows are there and readable, or none."""

    def new_storage() -> MemoryStorage:
        return with_two_staged(MemoryStorage(f"staged-crash-{next(_names)}"), make)

    def attempt(work, storage):
        try:
            work(storage)
        except (lake.NotFoundError, lake.InvalidRequestError, lake.CommitConflictError):
            return

    watched = Interrupted(new_storage(), 0, lambda: None)
    works(Watching(watched))
    for moment in sampled_moments(watched.calls):
        storage = new_storage()
        attempt(
            works,
            Watching(Interrupted(storage, moment, lambda s=storage: attempt(meets, s))),
        )
        table = opened(storage)
        assert ids(table) in ([], [1, 2]), moment
        assert len(table.snapshots()) <= 1, moment


class Watching:
    """An interrupted storage that lists its files."""

    def __init__(self, interrupted):
        self._interrupted = interrupted

    def __getattr__(self, name):
        return getattr(self._interrupted, name)


WANTED = IngestRequest(
    warehouse="wh", table="shop.orders", source_table="shop.source", consumer="copy"
)


def follow(storage, acknowledged=None) -> None:
    catalog = catalog_of(storage)
    outcome = follow_changes(catalog, lambda: catalog.table("shop.orders"), WANTED)
    if acknowledged is not None:
        acknowledged.append(outcome.snapshot_ids)


def expire(table):
    """Another writer commits, and only that snapshot is kept, unless a consumer keeps more."""
    with suppress(lake.CorruptTableError):  # a consumer that was cut short
        if table.analyze().snapshot_id is not None:
            table.expire_snapshots(retain_max=1, retain_min=1)


@pytest.mark.parametrize("is_first", [True, False], ids=["all rows", "what changed"])
def test_a_fault_at_any_call_brings_each_change_once(is_first):
    start = with_table(CrashableStorage(), "source", "orders")
    source = catalog_of(start).table("shop.source")
    source.write(pa.table({"id": [1, 2]}))
    if not is_first:
        follow(start)
        catalog_of(start).table("shop.source").write(pa.table({"id": [3]}))
    for trial in sampled_faults(follow, start=start):
        trial.run()
        storage = trial.reopened()
        catalog_of(storage).table("shop.source").write(pa.table({"id": [4]}))
        expire(opened(storage))
        follow(storage)
        expected = [1, 2, 4] if is_first else [1, 2, 3, 4]
        assert ids(opened(storage)) == expected, str(trial)
