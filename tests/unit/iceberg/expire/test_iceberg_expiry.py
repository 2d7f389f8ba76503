"""An expiry of an Iceberg table: what it refuses, what it keeps, and what it deletes outside."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.environment import SYSTEM, Environment
from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.directory_pointer import DirectoryPointer
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.expire.expire import ExpiryRequest, expire_snapshots
from lakeformat.iceberg.metadata.statistics import StatisticsFile
from lakeformat.iceberg.metadata.updates import set_properties
from lakeformat.iceberg.partition_spec import PartitionSpec
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.table import IcebergTable
from lakeformat.iceberg.types import Field, PrimitiveType
from lakeformat.storage import NO_ROOTS, ExternalRoots, MemoryStorage, open_storage
from tests.crash.simulated import NOW_MILLIS
from tests.unit.iceberg.compact.made_deletes import delete_by_key
from tests.unit.iceberg.path_table import ROOT, appended, handle_on, path_table
from tests.unit.iceberg.write.made_tables import made_table

DAY = 24 * 3600 * 1000
LATER = Environment(now_millis=lambda: NOW_MILLIS + 30 * DAY)
INSIDE, OUTSIDE = (
    "memory://expiry/shop/orders/metadata/s1.puffin",
    "memory://expiry/other/s2.puffin",
)


@pytest.fixture
def storage() -> MemoryStorage:
    """A table with the snapshots 1 to 4, a day apart, and statistics of two of them."""
    storage = MemoryStorage("expiry")
    path_table(storage)
    for number in (1, 2, 3, 4):
        commit_metadata(handle_on(storage), lambda loaded, at=number: with_snapshot(loaded, at))
    storage.overwrite("shop/orders/metadata/s1.puffin", b"12345")
    storage.overwrite("other/s2.puffin", b"1")
    return storage


def with_snapshot(loaded, number: int):
    metadata = appended(
        loaded.metadata,
        f"s{number}",
        snapshot_id=number,
        timestamp_ms=NOW_MILLIS + number * DAY,
        manifest_list=None,
    )
    known = {1: INSIDE, 2: OUTSIDE}
    if number not in known:
        return metadata
    file = StatisticsFile(number, known[number], 5, 2)
    return replace(metadata, statistics=(*metadata.statistics, file))


def table(storage: MemoryStorage, roots: ExternalRoots = NO_ROOTS) -> IcebergTable:
    pointer = DirectoryPointer(storage, ROOT, roots, LATER)
    return IcebergTable(TableHandle(pointer, "main", LATER))


def kept(storage: MemoryStorage) -> list[int]:
    return [each.snapshot_id for each in handle_on(storage).load().metadata.snapshots]


def test_the_age_and_the_number_of_kept_snapshots_are_arguments(storage):
    report = table(storage).expire_snapshots(older_than=NOW_MILLIS + 3 * DAY)
    assert (report.snapshots, report.earliest_snapshot, kept(storage)) == ((1, 2), 3, [3, 4])
    assert table(storage).expire_snapshots(older_than="1 d", retain_min=2).snapshots == ()
    assert table(storage).expire_snapshots(older_than="1 d").snapshots == (3,)


def test_the_properties_of_the_table_are_the_defaults(storage):
    keep = {"history.expire.min-snapshots-to-keep": "3"}
    commit_metadata(handle_on(storage), lambda loaded: set_properties(loaded.metadata, keep))
    assert table(storage).expire_snapshots().snapshots == (1,)


def test_a_file_outside_is_deleted_only_below_an_allowed_directory(storage):
    report = table(storage).expire_snapshots(dry_run=True)
    assert [(each.uri, each.size) for each in report.removals] == [(INSIDE, 5)]
    roots = ExternalRoots.of(["memory://expiry/other"])
    assert len(table(storage, roots).expire_snapshots(dry_run=True).removals) == 2
    assert kept(storage) == [1, 2, 3, 4]
    report = table(storage).expire_snapshots()
    assert (report.outside, report.deleted.total) == (1, 1)
    assert report.lines == (
        "3 snapshots expired",
        "deleted 1 file of 5 B: 1 statistics file",
        "kept 1 file that is outside of the table and of the directories that external_roots "
        "allows",
    )
    assert (storage.exists("other/s2.puffin"), storage.exists(f"{ROOT}/metadata/s1.puffin")) == (
        True,
        False,
    )


def test_an_allowed_directory_is_cleaned_too(storage):
    roots = ExternalRoots.of(["memory://expiry/other"])
    assert table(storage, roots).expire_snapshots().deleted.total == 2
    assert not storage.exists("other/s2.puffin")


@pytest.mark.parametrize("name", ["v6.metadata.json", "version-hint.text"])
def test_metadata_that_a_damaged_snapshot_names_as_statistics_is_kept(storage, name):
    own = f"{ROOT}/metadata/{name}"
    file = StatisticsFile(1, f"memory://expiry/{own}", 5, 2)
    commit_metadata(handle_on(storage), lambda loaded: replace(loaded.metadata, statistics=(file,)))
    assert storage.exists(own)
    assert table(storage).expire_snapshots().deleted.total == 0
    assert storage.exists(own)


def test_a_live_data_file_that_a_damaged_snapshot_names_as_statistics_is_kept(tmp_path):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", [("id", "INT")])
    for number in (1, 2):
        orders.write(pa.table({"id": pa.array([number], pa.int32())}))
    first, newest = orders.snapshots()
    [live] = orders.system_table("files").scan(snapshot=first.snapshot_id).to_arrow()["file_path"]
    file = StatisticsFile(first.snapshot_id, live.as_py(), 5, 2)
    handle = TableHandle(
        DirectoryPointer(*open_storage(str(tmp_path / "shop/orders")), NO_ROOTS, SYSTEM),
        "main",
        SYSTEM,
    )
    commit_metadata(handle, lambda loaded: replace(loaded.metadata, statistics=(file,)))

    report = orders.expire_snapshots(older_than="0 s", retain_min=1)

    assert report.snapshots == (first.snapshot_id,)
    rows = orders.scan(snapshot=newest.snapshot_id).to_arrow()
    assert sorted(rows["id"].to_pylist()) == [1, 2]


def test_files_are_kept_on_request(storage):
    report = table(storage).expire_snapshots(delete_files=False)
    assert (report.snapshots, report.deleted.total) == ((1, 2, 3), 0)
    assert storage.exists(f"{ROOT}/metadata/s1.puffin")


def test_a_tag_that_is_created_meanwhile_keeps_its_snapshot(storage):
    class Racing(MemoryStorage):
        def create(self, path, content):
            if self.racing:
                self.racing = False
                IcebergTable(handle_on(storage)).tags.create("kept", snapshot=1)
            return storage.create(path, content)

        racing = True

    raced = Racing("expiry")
    raced._files = storage._files
    assert table(raced).expire_snapshots().snapshots == (2, 3)
    assert storage.exists(f"{ROOT}/metadata/s1.puffin")


def test_commits_that_a_consumer_has_not_read_are_kept_with_the_state_before_them(storage):
    followed = table(storage)
    followed.consumers.set("copy", next_snapshot=3)
    report = followed.expire_snapshots()
    assert (report.snapshots, report.held, kept(storage)) == ((1,), 2, [2, 3, 4])
    assert report.lines[1] == (
        f"kept 2 snapshots for the consumers that `lake consumer list {report.table}` shows"
    )
    followed.consumers.clear()
    assert followed.expire_snapshots().snapshots == (2, 3)


def test_a_tag_or_branch_that_is_too_old_is_removed_with_its_snapshots(storage):
    IcebergTable(handle_on(storage)).tags.create("old", snapshot=1, retain="7 d")
    IcebergTable(handle_on(storage)).tags.create("kept", snapshot=2)
    report = table(storage).expire_snapshots()
    assert (report.snapshots, report.references, kept(storage)) == ((1, 3), ("old",), [2, 4])
    assert report.to_dict()["references"] == ["old"]


def test_snapshots_expire_by_id_unless_a_branch_or_tag_names_them(storage):
    year = Environment(now_millis=lambda: NOW_MILLIS + 5 * DAY)
    request = ExpiryRequest(snapshots=[2, 77])
    report = expire_snapshots(handle_on(storage, year), request, dry_run=False)
    assert (report.snapshots, kept(storage)) == ((2,), [1, 3, 4])
    with pytest.raises(
        InvalidRequestError, match=r"the branch 'main' names it: leave the snapshot"
    ):
        table(storage).expire_snapshots(snapshots=[4])
    IcebergTable(handle_on(storage)).tags.create("kept", snapshot=3)
    with pytest.raises(
        InvalidRequestError, match=r"'kept' names it: delete this tag first, or leave"
    ):
        table(storage).expire_snapshots(snapshots=[3])


def test_without_anything_to_expire_nothing_is_published(storage):
    before = len(storage.list(f"{ROOT}/metadata"))
    report = table(storage).expire_snapshots(retain_min=9)
    assert report.reason == "no snapshot expired"
    assert len(storage.list(f"{ROOT}/metadata")) == before


def test_a_table_that_shares_its_files_is_refused(storage):
    shares = {"gc.enabled": "false"}
    commit_metadata(handle_on(storage), lambda loaded: set_properties(loaded.metadata, shares))
    with pytest.raises(UnsupportedError, match=r"'gc.enabled' of .* is false.*nothing was deleted"):
        table(storage).expire_snapshots()


def test_arguments_without_meaning_are_refused_by_name(storage):
    for name in ("retain_max", "limit"):
        with pytest.raises(UnsupportedError, match=f"whose expire_snapshots does not take {name}"):
            table(storage).expire_snapshots(**{name: 3})
    with pytest.raises(InvalidRequestError, match="retain_min must be a whole number"):
        table(storage).expire_snapshots(retain_min=0)


def test_a_removal_of_unused_schemas_alone_is_reported_as_work(storage):
    def with_new_schema(loaded):
        newer = replace(loaded.metadata.schemas[0], schema_id=1)
        return replace(
            loaded.metadata, schemas=(*loaded.metadata.schemas, newer), current_schema_id=1
        )

    commit_metadata(handle_on(storage), with_new_schema)
    commit_metadata(handle_on(storage), lambda loaded: with_snapshot(loaded, 5))
    table(storage).expire_snapshots(retain_min=1)
    before = len(handle_on(storage).load().metadata.schemas)
    planned, done = (
        table(storage).expire_snapshots(retain_min=1, clean_metadata=True, dry_run=dry_run)
        for dry_run in (True, False)
    )
    assert before - len(handle_on(storage).load().metadata.schemas) == done.schemas == 1
    assert planned.has_work
    assert done.has_work
    assert planned.lines[1:] == ("would remove 1 schema that no kept snapshot uses",)
    assert done.reason == "no snapshot expired; removed 1 schema that no kept snapshot uses"
    assert (done.to_dict()["schemas"], done.to_dict()["partition_specs"]) == (1, 0)
    again = table(storage).expire_snapshots(retain_min=1, clean_metadata=True)
    assert not again.has_work


def test_schemas_with_dropped_columns_of_equality_deletes_are_kept():
    handle = made_table(MemoryStorage("t"))
    table = IcebergTable(handle)
    table.write(pa.table({"id": [1, 2], "k": ["a", "b"]}))
    delete_by_key(handle, 1)
    with_schemas(handle, ["id", "k", "x"], ["k", "x"], ["k"], ["k", "y"], ["k"])
    table.write(pa.table({"k": ["c"]}))
    clean_metadata(handle)
    # The newest with id, the newest with x, the newest with y, and the current one.
    assert schemas_of(handle) == [1, 2, 4, 5]
    assert sorted(table.scan().to_arrow()["k"].to_pylist()) == ["b", "c"]


@pytest.mark.parametrize("transform", ["identity", "truncate[2]"])
def test_schemas_with_dropped_columns_of_kept_partition_specs_are_kept(transform):
    handle = made_table(MemoryStorage("t"), partition={"id": transform})
    table = IcebergTable(handle)
    table.write(pa.table({"id": [1, 2], "k": ["a", "b"]}))
    commit_metadata(
        handle,
        lambda loaded: replace(
            loaded.metadata,
            partition_specs=(*loaded.metadata.partition_specs, PartitionSpec(1, ())),
            default_spec_id=1,
        ),
    )
    with_schemas(handle, ["k", "x"], ["k"])
    table.write(pa.table({"k": ["c"]}))
    clean_metadata(handle)
    assert schemas_of(handle) == [0, 2]
    assert sorted(table.scan().to_arrow()["k"].to_pylist()) == ["a", "b", "c"]


def test_the_partition_spec_with_the_highest_id_is_kept():
    """The next spec gets the id after it, and prepared files name their spec by its id."""
    handle = made_table(MemoryStorage("t"))
    commit_metadata(
        handle,
        lambda loaded: replace(
            loaded.metadata, partition_specs=tuple(PartitionSpec(number) for number in range(3))
        ),
    )
    IcebergTable(handle).write(pa.table({"id": [1], "k": ["a"]}))
    clean_metadata(handle)
    assert [each.spec_id for each in handle.load().metadata.partition_specs] == [0, 2]


def with_schemas(handle: TableHandle, *listed: list[str]) -> None:
    """Publish further schemas of the named columns; the last becomes the current one."""

    def changed(loaded):
        metadata = loaded.metadata
        known = {each.name: each for each in metadata.schemas[0].fields}
        for number, name in enumerate("xy", 8):
            known[name] = Field(number, name, PrimitiveType("long"))
        schemas = [
            Schema(number, tuple(known[name] for name in names))
            for number, names in enumerate(listed, 1)
        ]
        return replace(
            metadata,
            schemas=(*metadata.schemas, *schemas),
            current_schema_id=len(schemas),
            last_column_id=9,
        )

    commit_metadata(handle, changed)


def clean_metadata(handle: TableHandle) -> None:
    own = IcebergTable(replace(handle, environment=LATER))
    own.expire_snapshots(older_than="1 d", retain_min=1, clean_metadata=True)


def schemas_of(handle: TableHandle) -> list[int]:
    return sorted(each.schema_id for each in handle.load().metadata.schemas)


def test_the_dict_of_a_report_has_each_count(storage):
    report = table(storage).expire_snapshots(retain_min=1, dry_run=True)
    counts = replace(report, held=2, needed=3, outside=4).to_dict()
    assert [counts[key] for key in ("held", "needed", "outside")] == [2, 3, 4]
