"""Missing manifests: the remaining rows, and refusals."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from lakeformat.errors import CommitOutcomeUnknownError, CorruptTableError, UnavailableError
from lakeformat.paimon.commit import publish
from lakeformat.paimon.metadata.manifest_list import ListKind, manifests_of
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot
from tests.expired import missing
from tests.keyed_rows import KeyedRows


def lose_manifest_of(table: lake.Table, number: int) -> str:
    """Delete the manifest of a snapshot's changes, although later snapshots name it."""
    handle = table._handle
    snapshot = read_snapshot(handle.storage, handle.layout, number)
    [manifest] = manifests_of(handle.storage, handle.layout, snapshot, ListKind.DELTA)
    handle.storage.delete(handle.layout.manifest(manifest.file_name))
    return manifest.file_name


def keys(table: lake.Table) -> list[int]:
    return sorted(row["k"] for row in table.scan().to_arrow().to_pylist())


def shop(*, keyed: bool = False) -> KeyedRows:
    """Each of three snapshots has added a row."""
    rows = KeyedRows(keyed=keyed)
    for number in (1, 2, 3):
        rows.commit(("+I", number, "x"))
    return rows


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
def test_what_the_other_manifests_name_can_be_read_again(keyed):
    rows = shop(keyed=keyed)
    table, lost = rows.table, lose_manifest_of(rows.table, 2)
    with pytest.raises(CorruptTableError):
        keys(table)
    report = table.remove_missing_manifests(dry_run=False)
    assert (report.missing_manifests, report.missing_files) == ((lost,), 1)
    assert (report.rows_before, report.rows_after, report.published) == (3, 2, 4)
    assert keys(table) == [1, 3]
    rows.commit(("+I", 4, "x"))
    assert keys(table) == [1, 3, 4]
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert missing(table) == set()
    assert table.remove_orphans().dry_run


def test_a_dry_run_says_what_is_lost_and_changes_nothing():
    table = shop().table
    lose_manifest_of(table, 1)
    report = table.remove_missing_manifests()
    assert "checked 3 manifests of the newest snapshot 3: 1 is missing" in report.reason
    assert "and with it the record of 1 data file: 2 of 3 rows would remain" in report.reason
    assert (report.published, report.objection) == (None, None)
    assert table.latest_snapshot().id == 3


def test_a_row_appears_again_if_the_manifest_of_its_delete_is_lost():
    rows = shop(keyed=True)
    rows.commit(("-D", 1, "x"))
    rows.commit(("+I", 4, "x"))
    table = rows.table
    lose_manifest_of(table, 4)
    warning = "earlier rows, which they deleted or replaced, appear again"
    assert warning in table.remove_missing_manifests().reason
    assert warning in table.remove_missing_manifests(dry_run=False).reason
    assert keys(table) == [1, 2, 3, 4]


def test_a_branch_of_a_lost_manifest_is_deleted_and_its_files_after_the_expiry():
    rows = shop()
    table = rows.table
    table.branches.create("dev", snapshot=3)
    lose_manifest_of(table, 2)
    table.remove_missing_manifests(dry_run=False)
    deleted = r"branch 'dev' of \S+ is deleted, but .* then delete the branch again"
    for _ in range(2):
        with pytest.raises(CorruptTableError, match=deleted):
            table.branches.delete("dev")
    assert table.branches.list() == []
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert table.branches.delete("dev").deleted == ("dev",)
    assert keys(table) == [1, 3]


def test_a_tag_of_a_lost_manifest_is_deleted_before_the_expiry():
    table = shop().table
    table.tags.create("bad", snapshot=3)
    table.branches.create("dev", tag="bad")
    lose_manifest_of(table, 2)
    table.remove_missing_manifests(dry_run=False)
    table.compact()
    with pytest.raises(CorruptTableError):
        table.expire_snapshots(retain_max=1, retain_min=1)
    with pytest.raises(CorruptTableError, match=r"'dev' of \S+ is deleted"):
        table.branches.delete("dev")
    table.tags.delete("bad")
    assert table.expire_snapshots(retain_max=1, retain_min=1).earliest_snapshot == 5
    table.branches.delete("dev")
    assert missing(table) == set()


def test_a_published_snapshot_that_cannot_be_checked_keeps_its_manifests(monkeypatch):
    table = shop().table
    lose_manifest_of(table, 2)

    def fail(*_: object) -> None:
        raise UnavailableError("no answer")

    with monkeypatch.context() as storage_fails:
        storage_fails.setattr(publish, "read_snapshot_if_present", fail)
        with pytest.raises(CommitOutcomeUnknownError, match=r"snapshot 4 of .* repeat the dry run"):
            table.remove_missing_manifests(dry_run=False)
    assert table.remove_missing_manifests().missing_manifests == ()
    assert keys(table) == [1, 3]


def test_where_none_is_gone_nothing_is_published():
    table = shop().table
    report = table.remove_missing_manifests(dry_run=False)
    assert (report.published, report.missing_manifests) == (None, ())
    assert "none is missing" in report.reason
    assert table.latest_snapshot().id == 3


def test_a_file_that_was_taken_out_later_does_not_come_back():
    rows = shop()
    rows.table.truncate()
    rows.commit(("+I", 5, "x"))
    lose_manifest_of(rows.table, 2)
    assert rows.table.remove_missing_manifests(dry_run=False).rows_after == 1
    assert keys(rows.table) == [5]


def test_a_manifest_that_took_files_out_is_not_guessed_at():
    rows = shop()
    rows.table.truncate()
    lose_manifest_of(rows.table, 4)
    planned = rows.table.remove_missing_manifests()
    assert "recorded the deletion of 3 files" in planned.objection
    assert "dry_run=False" not in planned.reason
    assert "would remain" not in planned.reason
    with pytest.raises(lake.InvalidRequestError, match="their names are unknown; roll back") as no:
        rows.table.remove_missing_manifests(dry_run=False)
    assert rows.table.latest_snapshot().id == 4
    assert "rollback(snapshot=…, as_latest=False) or `lake rollback " in str(no.value)
    assert "--snapshot NUMBER --cut-history`" in str(no.value)
    with pytest.raises(CorruptTableError, match="as_latest=False"):
        rows.table.rollback(snapshot=3)
    rows.table.rollback(snapshot=3, as_latest=False)
    assert keys(rows.table) == [1, 2, 3]


def test_the_command_finds_them_by_default_and_removes_them_if_told_to(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", [("k", "INT")])
    for number in (1, 2):
        table.write(pa.table({"k": pa.array([number], pa.int32())}))
    lost = lose_manifest_of(table, 1)
    runner = CliRunner()
    found = runner.invoke(app, ["-w", str(tmp_path), "missing-manifests", "shop.orders"])
    assert found.exit_code == 1
    assert found.output.splitlines()[0] == lost
    assert "remove it with --remove" in found.output
    done = runner.invoke(
        app, ["-w", str(tmp_path), "missing-manifests", "shop.orders", "--remove", "--json"]
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)[0]["published"] == 3
    assert keys(table) == [2]
