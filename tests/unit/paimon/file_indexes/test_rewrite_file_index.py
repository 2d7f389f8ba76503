"""File indexes of existing files: added, removed, rebuilt, without a change of rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.commit import transaction
from lakeformat.paimon.file_indexes import rewrite
from lakeformat.paimon.read.plan import plan_files
from tests.expired import files_of_tables, missing, unneeded

BLOOM = lake.set_option("file-index.bloom-filter.columns", "kind")
FEW_ITEMS = lake.set_option("file-index.bloom-filter.kind.items", "100")
BESIDE = lake.set_option("file-index.in-manifest-threshold", "1 b")


def filled(catalog: lake.Catalog, **how) -> lake.Table:
    table = catalog.create_table(
        "shop.orders",
        [("dt", "STRING"), ("id", "BIGINT"), ("kind", "STRING")],
        partition_by=["dt"],
        **how,
    )
    for number, kinds in enumerate((["a", "c"], ["b", "d"])):
        days = [f"day-{number}"] * 2
        table.write(pa.table({"dt": days, "id": [number, number + 1], "kind": kinds}))
    return table


def altered(catalog: lake.Catalog, *changes) -> lake.Table:
    return catalog.alter_table("shop.orders", *changes)


def entries(table: lake.Table) -> list:
    return plan_files(table._handle, table.latest_snapshot())


def rows(table: lake.Table) -> list[dict]:
    return sorted(table.scan().to_arrow().to_pylist(), key=str)


def read_of(table: lake.Table, where: str) -> int:
    """The number of files that a scan reads."""
    return len(plan_files_of(table, where))


def plan_files_of(table: lake.Table, where: str) -> list:
    return [entry for split in table.scan(where=where).splits() for entry in split.files]


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize(
    "how", [{}, {"primary_key": ["dt", "id"], "options": {"bucket": "1"}}], ids=["append", "keyed"]
)
def test_existing_files_get_the_indexes_the_options_ask_for_now(catalog, how, beside):
    table = filled(catalog, **how)
    before, names = rows(table), [entry.file.file_name for entry in entries(table)]
    table = altered(catalog, BLOOM, FEW_ITEMS, *([BESIDE] if beside else []))
    report = table.rewrite_file_indexes()
    assert (len(report.changed), len(report.snapshot_ids)) == (2, 1)
    assert table.latest_snapshot().commit_kind is lake.CommitKind.COMPACT
    assert [entry.file.file_name for entry in entries(table)] == names
    for entry in entries(table):
        assert (entry.file.embedded_file_index is None) == beside
        assert len(entry.file.extra_files) == beside
    assert rows(table) == before
    assert table.rewrite_file_indexes().changed == ()


def test_scans_leave_out_files_by_a_new_index(catalog):
    table = filled(catalog)
    assert read_of(table, "kind = 'bb'") == 2  # their bounds allow it
    table = altered(catalog, BLOOM, FEW_ITEMS)
    table.rewrite_file_indexes()
    assert read_of(table, "kind = 'bb'") == 0
    assert read_of(table, "kind = 'b'") == 1


def test_indexes_nobody_asks_for_any_more_are_taken_away(catalog):
    table = filled(
        catalog,
        options={"file-index.bitmap.columns": "kind", "file-index.in-manifest-threshold": "1 b"},
    )
    assert all(entry.file.extra_files for entry in entries(table))
    table = altered(catalog, lake.remove_option("file-index.bitmap.columns"))
    report = table.rewrite_file_indexes()
    assert {each.reason for each in report.changed} == {"bitmap of kind is no longer requested"}
    assert not any(entry.file.extra_files for entry in entries(table))


def test_older_snapshots_keep_their_index(catalog):
    table = filled(
        catalog,
        options={"file-index.bitmap.columns": "kind", "file-index.in-manifest-threshold": "1 b"},
    )
    altered(catalog, BLOOM, FEW_ITEMS).rewrite_file_indexes()
    assert table.scan(where="kind = 'a'", snapshot=2).to_arrow().num_rows == 1


def test_columns_are_found_by_id_where_they_were_renamed_and_left_out_where_they_are_new(catalog):
    filled(catalog)
    renamed = lake.rename_column("kind", "sort")
    table = altered(catalog, renamed, lake.add_column("more", "STRING"))
    table.write(pa.table({"dt": ["day-2"], "id": [9], "sort": ["z"], "more": ["m"]}))
    table = altered(catalog, lake.set_option("file-index.bitmap.columns", "sort,more"))
    report = table.rewrite_file_indexes()
    assert sorted(each.reason for each in report.changed) == [
        "bitmap of kind is missing",
        "bitmap of kind is missing",
        "bitmap of more is missing; bitmap of sort is missing",
    ]
    assert read_of(table, "sort = 'a'") == 1
    assert table.rewrite_file_indexes().changed == ()


def test_a_value_no_index_can_hold_leaves_its_file_without_and_nothing_is_committed(catalog):
    table = catalog.create_table("shop.low", [("id", "BIGINT")])
    table.write(pa.table({"id": [-(2**63)]}))
    table = catalog.alter_table("shop.low", lake.set_option("file-index.bsi.columns", "id"))
    report = table.rewrite_file_indexes()
    assert (report.changed, table.latest_snapshot().id) == ((), 1)


def test_partitions_can_be_chosen_and_force_builds_anew(catalog):
    filled(catalog)
    table = altered(catalog, BLOOM, FEW_ITEMS, BESIDE)
    report = table.rewrite_file_indexes(where="dt = 'day-0'")
    assert [each.partition for each in report.changed] == ["dt=day-0"]
    report = table.rewrite_file_indexes(partitions={"dt": "day-0"}, force=True)
    assert [each.reason for each in report.changed] == ["rebuilt, as requested"]


def test_an_index_in_a_manifest_that_is_built_anew_alike_changes_nothing(catalog):
    """pypaimon would treat a file that is removed and added unchanged as deleted."""
    filled(catalog)
    table = altered(catalog, BLOOM, FEW_ITEMS)
    assert len(table.rewrite_file_indexes().changed) == 2
    assert table.rewrite_file_indexes(force=True).changed == ()


def test_manifests_are_merged_once_in_a_run_of_many_commits(catalog, monkeypatch):
    """No later commit of a run restores files that an earlier one deleted."""
    filled(catalog)
    table = altered(catalog, BLOOM, FEW_ITEMS)
    merged = []
    monkeypatch.setattr(rewrite, "pick_deletions", merged.append)
    monkeypatch.setattr(rewrite, "_GROUP_FILES", 1)
    assert len(table.rewrite_file_indexes().snapshot_ids) == 2
    assert len(merged) == 1


def test_rows_that_are_deleted_count_in_an_index(catalog):
    table = catalog.create_table(
        "shop.keyed", [("id", "BIGINT"), ("n", "STRING")], primary_key=["id"],
        options={"bucket": "1", "deletion-vectors.enabled": "true"},
    )  # fmt: skip
    table.write(pa.table({"id": [1, 2, 3], "n": ["a", "b", "c"]}))
    table.compact()
    table.write(pa.table({"id": [1], "n": ["z"]}))
    table.compact(strategy="minor")
    table = catalog.alter_table("shop.keyed", lake.set_option("file-index.bitmap.columns", "n"))
    before = rows(table)
    table.rewrite_file_indexes()
    assert rows(table) == before
    assert table.scan(where="n = 'c'").to_arrow()["id"].to_pylist() == [3]
    assert table.scan(where="n = 'a'").to_arrow().num_rows == 0


def test_a_file_of_which_rows_are_deleted_gets_an_index_and_keeps_its_marks(catalog):
    table = filled(catalog, options={"deletion-vectors.enabled": "true"})
    table.delete("kind = 'a'")
    before = rows(table)
    table = altered(catalog, BLOOM, FEW_ITEMS)
    assert len(table.rewrite_file_indexes().changed) == 2
    assert rows(table) == before
    assert [row["kind"] for row in before] == ["c", "b", "d"]


def test_an_index_built_later_is_the_one_its_writer_would_have_built(catalog):
    options = {
        "bucket": "1",
        "deletion-vectors.enabled": "true",
        "file-index.bitmap.columns": "n",
        "file-index.in-manifest-threshold": "1 mb",
    }
    columns = [("id", "BIGINT"), ("n", "STRING")]
    table = catalog.create_table("shop.orders", columns, primary_key=["id"], options=options)
    table.write(pa.table({"id": [1, 2, 3], "n": ["a", "b", "c"]}))
    table.compact()
    table.write(pa.table({"id": [1], "n": ["z"]}))
    table.compact(strategy="minor")  # which marks a row of the first file as deleted
    written = {e.file.file_name: e.file.embedded_file_index for e in entries(table)}
    assert None not in written.values()
    table = altered(catalog, lake.remove_option("file-index.bitmap.columns"))
    table.rewrite_file_indexes()
    assert {entry.file.embedded_file_index for entry in entries(table)} == {None}
    table = altered(catalog, lake.set_option("file-index.bitmap.columns", "n"))
    table.rewrite_file_indexes()
    assert {e.file.file_name: e.file.embedded_file_index for e in entries(table)} == written


def newer(content: bytes) -> bytes:
    """The container, in format version 2."""
    return content[:11] + b"\2" + content[12:]


@pytest.mark.parametrize(
    ("changed", "error"),
    [(lambda content: b"nothing", lake.CorruptTableError), (newer, lake.UnsupportedError)],
    ids=["damaged", "newer"],
)
def test_an_unreadable_index_is_built_anew(catalog, changed, error):
    table = filled(
        catalog,
        options={"file-index.bitmap.columns": "kind", "file-index.in-manifest-threshold": "1 b"},
    )
    for path in Path(table.location.removeprefix("file://")).rglob("*.index"):
        path.write_bytes(changed(path.read_bytes()))
    with pytest.raises(error):
        table.scan(where="kind = 'a'").to_arrow()
    assert len(table.rewrite_file_indexes().changed) == 2
    assert table.scan(where="kind = 'a'").to_arrow().num_rows == 1


def test_a_dry_run_says_which_and_writes_nothing(catalog):
    filled(catalog)
    table = altered(catalog, BLOOM, BESIDE)
    report = table.rewrite_file_indexes(dry_run=True)
    assert len(report.changed) == 2
    assert table.latest_snapshot().id == 2
    assert not list(Path(table.location.removeprefix("file://")).rglob("*.index"))


def test_an_overwrite_that_comes_first_is_planned_on_and_leaves_no_index_behind(
    catalog, monkeypatch
):
    filled(catalog)
    table = altered(catalog, BLOOM, BESIDE)
    from lakeformat.paimon.file_indexes import rewrite

    asked = []

    def build(handle, unit):
        if not asked:
            asked.append(unit)
            catalog.table("shop.orders").write(
                pa.table({"dt": ["day-0"], "id": [5], "kind": ["x"]}), overwrite={"dt": "day-0"}
            )
        return found(handle, unit)

    found = rewrite.build_index
    monkeypatch.setattr(rewrite, "build_index", build)
    report = table.rewrite_file_indexes()
    assert [each.partition for each in report.changed] == ["dt=day-1"]
    known = {name for entry in entries(table) for name in entry.file.extra_files}
    there = Path(table.location.removeprefix("file://")).rglob("*.index")
    assert {path.name for path in there} == known


def test_postponed_files_keep_their_indexes_so_older_rows_never_become_the_newest(catalog):
    options = {"bucket": "-2", "postpone.merge-on-read": "true", "postpone.default-bucket-num": "1"}
    columns = [("id", "BIGINT"), ("kind", "STRING")]
    table = catalog.create_table("shop.orders", columns, primary_key=["id"], options=options)
    table.write(pa.table({"id": [1], "kind": ["old"]}))
    table = altered(catalog, BLOOM)
    assert table.rewrite_file_indexes().files == 0
    table = altered(catalog, lake.remove_option("file-index.bloom-filter.columns"))
    table.write(pa.table({"id": [1], "kind": ["new"]}))
    assert table.rewrite_file_indexes().changed == ()
    assert rows(table) == [{"id": 1, "kind": "new"}]
    altered(catalog, BLOOM, FEW_ITEMS).compact()
    assert rows(table) == [{"id": 1, "kind": "new"}]
    assert all(entry.file.embedded_file_index for entry in entries(table))


def test_who_interrupts_right_after_the_commit_keeps_the_indexes(catalog, monkeypatch):
    filled(catalog)
    table = altered(catalog, BLOOM, FEW_ITEMS, BESIDE)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(transaction, "write_hints", interrupted)
    with pytest.raises(KeyboardInterrupt):
        table.rewrite_file_indexes()
    monkeypatch.undo()
    assert len(table.snapshots()) == 3
    assert read_of(table, "kind = 'a'") == 1


def test_a_table_that_asks_for_no_index_says_so(catalog):
    table = filled(catalog)
    for dry_run in (True, False):
        report = table.rewrite_file_indexes(dry_run=dry_run)
        assert report.reason == "the table's options ask for no file index, and no file has one"
    assert len(table.snapshots()) == 2


def test_force_without_a_wanted_index_and_numbered_rows_are_refused(catalog):
    table = filled(catalog)
    with pytest.raises(
        lake.InvalidRequestError, match="sets no file index, so none can be rebuilt"
    ):
        table.rewrite_file_indexes(force=True)
    numbered = catalog.create_table(
        "shop.numbered", [("id", "BIGINT")], options={"row-tracking.enabled": "true"}
    )
    with pytest.raises(lake.UnsupportedError, match="row-tracking"):
        numbered.rewrite_file_indexes()


def index_files(table: lake.Table) -> set[str]:
    return {path for path in files_of_tables(table) if path.endswith(".index")}


@pytest.mark.parametrize("keyed", [False, True])
def test_indexes_that_were_replaced_go_with_the_snapshots_and_tags_that_had_them(catalog, keyed):
    how = {"primary_key": ["dt", "id"]} if keyed else {}
    options = {"file-index.bitmap.columns": "kind", "file-index.in-manifest-threshold": "1 b"}
    table = filled(catalog, **how, options={**options, **({"bucket": "1"} if keyed else {})})
    table.tags.create("old")
    old = index_files(table)
    table = altered(catalog, BLOOM, FEW_ITEMS)
    table.rewrite_file_indexes()
    new = index_files(table) - old
    assert (len(old), len(new)) == (2, 2)
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert index_files(table) == old | new
    assert table.scan(where="kind = 'a'", tag="old").to_arrow().num_rows == 1
    table.tags.delete("old")
    assert index_files(table) == new
    assert table.scan(where="kind = 'a'").to_arrow().num_rows == 1


def test_indexes_that_were_replaced_and_nobody_has_tagged_expire(catalog):
    options = {"file-index.bitmap.columns": "kind", "file-index.in-manifest-threshold": "1 b"}
    table = filled(catalog, options=options)
    old = index_files(table)
    table = altered(catalog, BLOOM, FEW_ITEMS)
    table.rewrite_file_indexes()
    new = index_files(table) - old
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert index_files(table) == new
    assert missing(table) == unneeded(table) == set()
