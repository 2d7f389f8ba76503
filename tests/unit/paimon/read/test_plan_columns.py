"""Planning on columns: the same files as entry by entry, in commit order, grouped by bucket."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.environment import Environment
from lakeformat.errors import CorruptTableError
from lakeformat.paimon.binary_row import encode_row, frame_row
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.manifest import FileKind, ManifestEntry, write_manifest
from lakeformat.paimon.metadata.manifest_list import summarise, write_manifest_list
from lakeformat.paimon.metadata.schema_file import create_schema
from lakeformat.paimon.metadata.simple_stats import SimpleStats
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.read.plan import plan_columns, plan_files
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.prune import ColumnTest, Op
from lakeformat.storage import MemoryStorage
from lakeformat.types.types import DataField, TypeName, atomic

DAY = DataField(0, "day", atomic(TypeName.INT))
SCHEMA = TableSchema(0, (DAY, DataField(1, "id", atomic(TypeName.BIGINT))), 1, ("day",))


def entry(number: int, *, day: int = 1, bucket: int = 0, deleted: bool = False) -> ManifestEntry:
    file = DataFileMeta(
        file_name=f"data-{number}",
        file_size=1,
        row_count=1,
        min_sequence_number=0,
        max_sequence_number=0,
        schema_id=0,
    )
    partition = frame_row(encode_row([day], [DAY.type]), 1)
    return ManifestEntry(FileKind(deleted), partition, bucket, 2, file)


def table_of(*manifests) -> tuple[TableHandle, Snapshot]:
    """A snapshot whose base list has all manifests but the last."""
    handle = TableHandle(MemoryStorage("plan"), TableLayout("t"), SCHEMA, Environment())
    storage, layout, options = handle.storage, handle.layout, handle.options
    metas = []
    for number, entries in enumerate(manifests):
        size = write_manifest(storage, layout, f"m{number}", entries, options)
        metas.append(summarise(f"m{number}", size, entries, [DAY.type]))
    write_manifest_list(storage, layout, "base", metas[:-1], options)
    write_manifest_list(storage, layout, "delta", metas[-1:], options)
    snapshot = Snapshot(
        id=1,
        schema_id=0,
        base_manifest_list="base",
        delta_manifest_list="delta",
        commit_user="u",
        commit_identifier=1,
        commit_kind=CommitKind.APPEND,
        time_millis=0,
    )
    return handle, snapshot


def names(entries) -> list[str]:
    return [each.file.file_name for each in entries]


def test_the_files_left_are_in_commit_order():
    table = table_of([entry(3), entry(1)], [entry(3, deleted=True), entry(2)])
    assert names(plan_files(*table)) == ["data-1", "data-2"]
    plan = plan_columns(*table)
    assert names(plan.entries()) == ["data-1", "data-2"]
    assert (plan.manifests, plan.manifests_read) == (2, 2)


def test_manifests_of_other_partitions_are_not_read():
    table = table_of([entry(1, day=1)], [entry(2, day=2), entry(3, day=4)], [entry(4, day=9)])
    plan = plan_columns(*table, conditions=[ColumnTest("day", Op.EQUAL, 4)])
    assert names(plan.entries()) == ["data-3"]
    assert plan.manifests_read == 1


def test_only_files_of_the_buckets_asked_for_are_planned():
    table = table_of([entry(1, bucket=0), entry(2, bucket=1)], [entry(3, bucket=1)])
    assert names(plan_columns(*table, buckets=[1]).entries()) == ["data-2", "data-3"]


def test_groups_come_in_the_order_of_their_first_file():
    places = [(5, 1), (1, 0), (5, 1), (5, 0), (1, 0), (5, 1)]
    entries = [entry(n, day=day, bucket=bucket) for n, (day, bucket) in enumerate(places)]
    groups = plan_columns(*table_of(entries)).buckets()
    assert groups.rows.tolist() == [0, 2, 5, 1, 4, 3]
    assert groups.starts.tolist() == [0, 3, 5]


def test_a_plan_without_files_has_no_groups():
    table = table_of([entry(1)], [entry(1, deleted=True)])
    plan = plan_columns(*table)
    assert plan.entries() == []
    assert plan.buckets().starts.tolist() == []


def test_a_file_deleted_without_having_been_added_is_corruption():
    table = table_of([entry(1)], [entry(2, deleted=True)])
    with pytest.raises(CorruptTableError, match=r"snapshot 1 of .* deletes data-2 of bucket 0"):
        plan_columns(*table)


def test_files_of_some_columns_are_not_left_out_by_their_statistics():
    """The other columns of the row are in another file."""
    [id_field] = [field for field in SCHEMA.fields if field.name == "id"]
    low = frame_row(encode_row([1], [id_field.type]), 1)
    stats = SimpleStats(low, low, (0,))

    def of_value_1(number: int, write_cols: tuple[str, ...] | None) -> ManifestEntry:
        plain = entry(number)
        file = replace(
            plain.file, value_stats=stats, value_stats_cols=("id",), write_cols=write_cols
        )
        return replace(plain, file=file)

    wanted = [ColumnTest("id", Op.EQUAL, 9)]
    whole = table_of([of_value_1(1, None)])
    assert names(plan_columns(*whole, conditions=wanted).entries()) == []
    partial = table_of([of_value_1(1, ("id",)), of_value_1(2, ("id",))])
    assert names(plan_columns(*partial, conditions=wanted).entries()) == ["data-1", "data-2"]


def test_a_snapshot_of_a_schema_that_is_lost_is_not_read_without_its_newest_columns():
    handle, snapshot = table_of([entry(1)])
    create_schema(handle.storage, handle.layout, SCHEMA)
    told = "snapshot 1 of .* committed under schema 3, but the newest schema is 0"
    with pytest.raises(CorruptTableError, match=told):
        plan_columns(handle, replace(snapshot, schema_id=3))


def test_a_table_opened_before_its_schema_changed_reads_newer_snapshots():
    handle, snapshot = table_of([entry(1)])
    for number in (0, 1):
        create_schema(handle.storage, handle.layout, replace(SCHEMA, id=number))
    assert names(plan_files(handle, replace(snapshot, schema_id=1))) == ["data-1"]


def test_a_table_written_in_many_commits_is_planned_whole():
    catalog = lake.open_catalog("memory://plan-columns")
    catalog.create_database("d")
    table = catalog.create_table("d.t", [("id", "BIGINT")])
    for number in range(40):
        table.write(pa.table({"id": [number]}))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(40))
