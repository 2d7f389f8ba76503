"""``table.remove_missing_files()`` and ``table.repair()``: a table matches its files again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from lakeformat.paimon.metadata.snapshot import CommitKind
from lakeformat.paimon.read.deletions import find_vectors
from lakeformat.paimon.read.plan import plan_files
from tests.paper import commit, file, head, live, message, paper_table, vectors

COLUMNS = [("id", "BIGINT"), ("dt", "STRING")]


@pytest.fixture
def catalog(tmp_path) -> lake.Catalog:
    catalog = lake.open_catalog(
        str(tmp_path / "warehouse"), options={"external-roots": str(tmp_path / "outside")}
    )
    catalog.create_database("shop")
    return catalog


def made(catalog: lake.Catalog, **how) -> lake.Table:
    """Rows 0 to 3, each in a file of its own."""
    table = catalog.create_table("shop.orders", COLUMNS, **how)
    for number in range(4):
        table.write(pa.table({"id": [number], "dt": ["ab"[number % 2]]}))
    return table


def data_files(table: lake.Table) -> Iterator[Path]:
    """By the rows they hold, oldest first."""
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    root = Path(table.location.removeprefix("file://"))
    for entry in plan_files(table._handle, snapshot):
        [path] = root.rglob(entry.file.file_name)
        yield path


def ids(table: lake.Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("how", [{}, {"partition_by": ["dt"]}, {"primary_key": ["id"]}])
def test_files_that_are_gone_are_taken_out_and_the_rest_can_be_read(catalog, how):
    options = {"bucket": "2"} if "primary_key" in how else {}
    table = made(catalog, options=options, **how)
    gone = next(data_files(table))
    gone.unlink()
    with pytest.raises(lake.CorruptTableError):
        ids(table)
    report = table.remove_missing_files(dry_run=False)
    assert (report.checked_files, report.missing_files, report.missing_rows) == (4, 1, 1)
    assert [Path(each.path).name for each in report.files] == [gone.name]
    head = table.latest_snapshot()
    assert (head.id, head.commit_kind) == (report.published, CommitKind.OVERWRITE)
    assert ids(table) == [1, 2, 3]
    assert head.total_record_count == 3
    again = table.remove_missing_files(dry_run=False)
    assert (again.published, again.reason) == (
        None,
        "checked 3 data files of the newest snapshot 5: none is missing or truncated",
    )


def cut_short(path: Path) -> int:
    """Only so many bytes are left, as of a file that was being restored."""
    path.write_bytes(content := path.read_bytes()[:-1])
    return len(content)


def test_files_that_are_cut_short_count_as_well_and_stay_where_they_are(catalog):
    table = made(catalog)
    gone, cut, *_ = data_files(table)
    gone.unlink()
    left = cut_short(cut)
    asked = table.remove_missing_files()
    assert "1 is missing, 1 is truncated, with 2 rows" in asked.reason
    assert [(Path(each.path).name, each.bytes_left) for each in asked.files] == [
        (gone.name, None),
        (cut.name, left),
    ]
    table.remove_missing_files(dry_run=False)
    assert ids(table) == [2, 3]
    assert cut.exists()


def test_a_shorter_file_with_an_end_is_another_one_that_can_be_read(catalog):
    """Another program wrote the file again."""
    table = catalog.create_table("shop.orders", COLUMNS, options={"file.compression": "none"})
    table.write(pa.table({"id": [*range(1000)], "dt": ["a"] * 1000}))
    [path] = data_files(table)
    written = path.stat().st_size
    pq.write_table(pq.read_table(path), path, compression="zstd")
    assert path.stat().st_size < written
    assert table.remove_missing_files().missing_files == 0
    assert len(ids(table)) == 1000


def test_a_file_that_has_more_than_was_said_is_whole(catalog):
    """Encryption on the way, for one, makes files longer."""
    table = made(catalog)
    first = next(data_files(table))
    first.write_bytes(first.read_bytes() + b"more")
    assert table.remove_missing_files().missing_files == 0


def test_asking_first_changes_nothing(catalog):
    table = made(catalog)
    next(data_files(table)).unlink()
    report = table.remove_missing_files()
    assert (report.dry_run, report.missing_files, report.published) == (True, 1, None)
    said = "checked 4 data files of the newest snapshot 4: 1 is missing, with 1 row; nothing was"
    assert report.reason.startswith(said)
    assert "or remove it from the table with dry_run=False. Older snapshots" in report.reason
    assert table.latest_snapshot().id == 4
    assert json.loads(json.dumps(report.to_dict()))["files"][0]["rows"] == 1


def test_a_row_appears_again_if_the_file_that_deleted_it_is_lost(catalog):
    table = catalog.create_table("shop.keyed", COLUMNS, primary_key=["id"], options={"bucket": "1"})
    table.write(pa.table({"id": [1, 2], "dt": ["a", "a"]}))
    table.write(pa.table({"id": [3], "dt": ["a"]}))
    table.delete("id = 1")
    before = {*data_files(table)}
    table.delete("id = 2")
    [lost] = {*data_files(table)} - before
    lost.unlink()
    warning = "earlier rows, which they deleted or replaced, appear again"
    assert warning in table.remove_missing_files().reason
    assert warning in table.remove_missing_files(dry_run=False).reason
    assert ids(table) == [2, 3]


def test_an_append_table_needs_no_warning_of_earlier_rows(catalog):
    table = made(catalog)
    next(data_files(table)).unlink()
    assert "appear again" not in table.remove_missing_files().reason
    assert "appear again" not in table.remove_missing_files(dry_run=False).reason


def test_more_than_half_of_a_table_needs_another_word(catalog):
    """Probably the storage is not mounted."""
    table = made(catalog)
    for path in [*data_files(table)][:3]:
        path.unlink()
    planned = table.remove_missing_files()
    assert "Check that the storage is mounted" in planned.objection
    assert "dry_run=False" not in planned.reason
    with pytest.raises(lake.InvalidRequestError, match=r"3 of 4 data files .* max_share=50%"):
        table.remove_missing_files(dry_run=False)
    assert table.remove_missing_files(dry_run=False, max_share=1).missing_files == 3
    assert ids(table) == [3]


def test_a_dry_run_reports_that_a_table_with_row_ids_keeps_its_missing_files(catalog):
    table = made(catalog, options={"row-tracking.enabled": "true"})
    assert table.remove_missing_files(dry_run=False).objection is None
    next(data_files(table)).unlink()

    planned = table.remove_missing_files()

    assert planned.objection is not None
    assert "tracks row ids" in planned.objection
    assert "dry_run=False" not in planned.reason
    with pytest.raises(lake.UnsupportedError, match=r"tracks row ids .* restore the missing files"):
        table.remove_missing_files(dry_run=False)


def test_a_share_that_is_none_is_refused(catalog):
    with pytest.raises(lake.InvalidRequestError, match="max_share"):
        made(catalog).remove_missing_files(max_share=0)


def test_files_outside_of_the_table_are_looked_for_where_they_are(catalog, tmp_path):
    options = {
        "data-file.external-paths": f"file://{tmp_path}/outside",
        "data-file.external-paths.strategy": "round-robin",
    }
    table = made(catalog, options=options)
    assert table.remove_missing_files().missing_files == 0
    next((tmp_path / "outside").rglob("data-*")).unlink()
    cut = next((tmp_path / "outside").rglob("data-*"))
    whole = cut.read_bytes()
    left = cut_short(cut)
    assert {each.bytes_left for each in table.remove_missing_files().files} == {None, left}
    cut.write_bytes(whole)
    report = table.remove_missing_files(dry_run=False)
    assert report.missing_files == 1
    assert report.files[0].path.startswith(f"file://{tmp_path}/outside/bucket-0/")
    assert len(ids(table)) == 3


def test_deletion_vectors_forget_the_files_that_are_gone():
    """One index file marks rows of a missing file and of an existing one."""
    handle = paper_table(options={"deletion-vectors.enabled": "true"})
    one, two = file("one"), file("two")
    commit(handle, message(handle, one, two))
    marks = vectors(handle, "marks", "one", "two")
    commit(handle, message(handle, new_index_files=[marks]))
    handle.storage.overwrite(handle.layout.data_file(0, "two"), b"rows" * 250)
    report = lake.Table(handle).remove_missing_files(dry_run=False)
    assert report.missing_files == 1
    assert live(handle) == ["two"]
    [left] = find_vectors(handle, head(handle)).values()
    assert [(each.file_name, each.row_count) for each in left] == [("marks", 1)]
    assert [each.data_file_name for each in left[0].ranges] == ["two"]


def test_a_table_without_a_snapshot_has_nothing_missing(catalog):
    table = catalog.create_table("shop.empty", COLUMNS)
    report = table.remove_missing_files(dry_run=False)
    assert (report.snapshot_id, report.checked_files) == (None, 0)


def test_a_commit_is_made_once_however_often_it_is_repeated(catalog):
    table = made(catalog)
    next(data_files(table)).unlink()
    identity = lake.CommitId("repair", 1)
    assert table.remove_missing_files(dry_run=False, commit=identity).published == 5
    assert table.remove_missing_files(dry_run=False, commit=identity).published is None


# ---------------------------------------------------------------- hints


def hints(table: lake.Table) -> dict[str, str]:
    directory = Path(table.location.removeprefix("file://")) / "snapshot"
    return {name: (directory / name).read_text() for name in ("EARLIEST", "LATEST")}


@pytest.mark.parametrize("wrong", ["", "nonsense", "3", "99", None])
def test_hints_say_again_what_is_there(catalog, wrong):
    table = made(catalog)
    directory = Path(table.location.removeprefix("file://")) / "snapshot"
    for name in ("EARLIEST", "LATEST"):
        if wrong is None:
            (directory / name).unlink()
        else:
            (directory / name).write_text(wrong)
    asked = table.repair(dry_run=True)
    assert {each.before for each in asked.changes} == {wrong}
    report = table.repair()
    assert [Path(each.path).name for each in report.changes] == ["EARLIEST", "LATEST"]
    assert hints(table) == {"EARLIEST": "1", "LATEST": "4"}
    assert table.repair().changes == ()


def test_snapshots_that_are_missing_between_others_are_named(catalog):
    table = made(catalog)
    directory = Path(table.location.removeprefix("file://")) / "snapshot"
    for number in (2, 3):
        (directory / f"snapshot-{number}").unlink()
    [gap] = table.repair().gaps
    assert gap.endswith("/snapshot: snapshot-2 to snapshot-3")


def test_hints_of_branches_and_changelogs_are_put_right_too(catalog):
    table = made(catalog)
    root = Path(table.location.removeprefix("file://"))
    for copy in ("branch/branch-dev/snapshot/snapshot-2", "changelog/changelog-1"):
        (root / copy).parent.mkdir(parents=True)
        (root / copy).write_bytes((root / "snapshot/snapshot-2").read_bytes())
    assert {each.path.removeprefix(f"{table.location}/") for each in table.repair().changes} == {
        f"{directory}/{name}"
        for directory in ("branch/branch-dev/snapshot", "changelog")
        for name in ("EARLIEST", "LATEST")
    }
