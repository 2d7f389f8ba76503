"""Compactions of Mixed tables: changes move to the base store, and merged rows do not change."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from lakeformat.iceberg.table import load_iceberg_table
from lakeformat.mixed.compact import compact as driver
from lakeformat.mixed.compact.merge_commit import MergeCommit
from lakeformat.storage import LocalStorage
from spark_jobs import compact as compact_job
from tests.unit.mixed.edited_stores import edit, newest_metadata

COLUMNS = pa.schema([("k", pa.int64()), ("p", pa.string()), ("v", pa.string())])
ICEBERG = {"format": "iceberg"}
EAGER = {"self-optimizing.minor.trigger.interval": "0"}
"""A minor optimizing is due with any change."""


@pytest.fixture
def table(tmp_path: Path) -> lake.MixedTable:
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("db")
    made = catalog.create_table(
        "db.t",
        COLUMNS,
        format="mixed",
        primary_key=["k", "p"],
        partition_by=["p"],
        options={"change.file-index.hash-bucket": "2"},
    )
    assert isinstance(made, lake.MixedTable)
    edit(tmp_path / "db/t", properties=EAGER)
    return made


def rows(*given: tuple[int, str, str | None]) -> pa.Table:
    keys, parts, values = zip(*given, strict=True)
    return pa.table([keys, parts, values], schema=COLUMNS)


def contents(table: Any) -> list[tuple[Any, ...]]:
    found = table.scan().to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def files(root: Path) -> set[Path]:
    return {path for path in root.rglob("*") if path.is_file()}


def test_a_compaction_moves_the_merged_rows_to_the_base_store(table):
    table.write(rows((1, "x", "a"), (2, "x", "b"), (1, "y", "c")))
    table.write(rows((1, "x", "A"), (2, "x", None)), kinds=["+U", "-D"])
    merged = contents(table)
    report = table.compact()
    assert contents(table) == contents(table.base) == merged == [(1, "x", "A"), (1, "y", "c")]
    assert (report.type, report.partitions, report.rows_in, report.rows_out) == ("minor", 2, 4, 2)
    assert report.sentence.startswith("minor optimizing: 9 files of ")
    assert report.sentence.endswith(f"published as snapshot {report.snapshot_ids[0]}")
    assert table.snapshots()[-1].commit_kind == "COMPACT"
    explained = table.scan().explain()
    assert (explained.insert_files, explained.delete_files) == (0, 0)
    again = table.compact()
    assert (again.snapshot_ids, again.sentence) == (
        (),
        "no action needed: no partition of 2 is due",
    )


def test_changes_without_a_row_that_remains_are_recorded_as_merged(table):
    table.write(rows((1, "x", "a"), (1, "x", None)), kinds=["+I", "-D"])
    report = table.compact()
    assert (report.rows_in, report.rows_out, report.files_out) == (1, 0, 0)
    assert table.scan()._state.merged.sequences == {"p=x": 1}
    assert contents(table) == []


def test_large_files_remain_and_get_positions_of_deleted_rows(table, tmp_path):
    size = {"self-optimizing.target-size": "600", "self-optimizing.fragment-ratio": "8"}
    table.write(rows(*((number, "x", "v") for number in range(20))))
    table.compact()
    ratio = {"self-optimizing.major.trigger.duplicate-ratio": "2"}
    edit(tmp_path / "db/t", properties=size | ratio)
    table = lake.open_table(table.location)
    kept = {each.file.path for each in table.base.scan().splits()}
    for key in (3, 4):
        table.write(rows((key, "x", "new")))
        report = table.compact()
        assert (report.type, report.rows_out) == ("minor", 1)
        found = table.base.scan().splits()
        assert kept <= {each.file.path for each in found}
        deletes = [each for split in found for each in split.deletes]
        assert len(deletes) == len({each.data_file for each in deletes})
        assert all("-PD-" in each.path for each in deletes)
    assert contents(table) == contents(table.base)
    assert [each[2] for each in contents(table)] == ["v"] * 3 + ["new"] * 2 + ["v"] * 15
    assert table.compact(strategy="full").type == "full"
    assert not any(each.deletes for each in table.base.scan().splits())
    assert [each[2] for each in contents(table)] == ["v"] * 3 + ["new"] * 2 + ["v"] * 15


def test_random_writes_and_compactions_agree_with_a_dict(table, tmp_path):
    seed = random.randrange(1 << 30)
    print(f"SEED={seed}")
    draw = random.Random(seed)
    model: dict[tuple[int, str], str | None] = {}
    for number in range(9):
        if draw.random() < 0.3:
            counts = {
                f"{store}.file-index.hash-bucket": draw.choice(["1", "2", "8"])
                for store in ("base", "change")
            }
            size = {"self-optimizing.target-size": draw.choice(["600", "3000", "134217728"])}
            edit(tmp_path / "db/t", properties=counts | size)
        table = lake.open_table(str(tmp_path / "db/t"))
        if draw.random() < 0.5:
            table.compact(strategy=draw.choice(["minor", "minor", "full"]), executor="serial")
        else:
            given = [
                (draw.randrange(6), draw.choice("xy"), f"{number}-{place}")
                for place in range(draw.randrange(1, 9))
            ]
            kinds = [draw.choice(["+I", "+U", "-D"]) for _ in given]
            for (key, part, value), kind in zip(given, kinds, strict=True):
                if kind[0] == "+":
                    model[key, part] = value
                else:
                    model.pop((key, part), None)
            table.write(rows(*given), kinds=kinds)
        assert contents(table) == sorted((*key, value) for key, value in model.items())
    table.compact(strategy="full")  # few deletes alone are not due for a minor one
    assert contents(table.base) == contents(table)
    assert contents(table) == sorted((*key, value) for key, value in model.items())


def meanwhile(monkeypatch: pytest.MonkeyPatch, *acts: Any) -> None:
    """Run each act once, right before a commit."""
    waiting, publish = [*acts], driver.publish_change

    def publishing(*args: Any, **how: Any) -> Any:
        if waiting:
            waiting.pop(0)()
        return publish(*args, **how)

    monkeypatch.setattr(driver, "publish_change", publishing)


def test_a_second_compaction_at_the_same_time_merges_nothing_twice(table, tmp_path, monkeypatch):
    table.write(rows((1, "x", "a"), (2, "x", "b")))
    second: list[Any] = []
    meanwhile(monkeypatch, lambda: second.append(table.compact()))
    first = table.compact()
    assert len(second[0].snapshot_ids) == 1
    assert (first.snapshot_ids, first.type) == ((), None)
    assert contents(table) == contents(table.base) == [(1, "x", "a"), (2, "x", "b")]
    stored = {path.name for path in files(tmp_path / "db/t/data") if "-B-" in path.name}
    assert stored == {each.file.path.rpartition("/")[2] for each in table.base.scan().splits()}
    assert len(files(tmp_path / "db/t/data/puffin")) == 1


def test_changes_that_another_compaction_has_merged_without_a_row_are_planned_again(
    table, monkeypatch
):
    table.write(rows((1, "x", "a")))
    table.compact()
    table.write(rows((1, "y", "a"), (1, "y", None)), kinds=["+I", "-D"])
    second: list[Any] = []
    meanwhile(monkeypatch, lambda: second.append(table.compact()))
    assert table.compact().snapshot_ids == ()
    assert len(second[0].snapshot_ids) == 1
    assert table.scan()._state.merged.sequences == {"p=x": 1, "p=y": 2}


def test_rows_that_reach_the_base_store_meanwhile_are_a_conflict_of_their_partition(
    table, tmp_path, monkeypatch
):
    base = load_iceberg_table(LocalStorage(), str(tmp_path / "db/t"))
    table.write(rows((1, "x", "a")))
    table.compact()
    table.write(rows((1, "y", "new")))
    meanwhile(monkeypatch, lambda: base.write(rows((1, "y", "old"), (2, "y", "b"))))
    assert table.compact().rows_in == 3
    in_y = [(1, "y", "new"), (2, "y", "b")]
    assert contents(table) == contents(table.base) == [(1, "x", "a"), *in_y]
    table.write(rows((1, "x", "c")))
    meanwhile(monkeypatch, lambda: base.write(rows((9, "y", "other"))))
    assert table.compact().rows_in == 2
    assert contents(table) == [(1, "x", "c"), *in_y, (9, "y", "other")]


def test_changes_that_are_rolled_back_meanwhile_are_not_merged(table, tmp_path, monkeypatch):
    change = load_iceberg_table(LocalStorage(), str(tmp_path / "db/t_change_"))
    table.write(rows((1, "x", "a")))
    kept = change.latest_snapshot().snapshot_id
    table.write(rows((1, "x", "rolled back"), (2, "x", "rolled back")))
    meanwhile(monkeypatch, lambda: change.rollback(snapshot=kept))
    assert table.compact().rows_in == 1
    assert contents(table.base) == contents(table) == [(1, "x", "a")]


def test_changes_that_come_meanwhile_remain_for_the_next_compaction(table, monkeypatch):
    table.write(rows((1, "x", "a")))
    meanwhile(monkeypatch, lambda: table.write(rows((1, "x", "b"))))
    assert table.compact().rows_in == 1
    assert (contents(table.base), contents(table)) == ([(1, "x", "a")], [(1, "x", "b")])
    assert table.compact().rows_in == 2
    assert contents(table.base) == [(1, "x", "b")]


def test_a_repeated_commit_publishes_once(table):
    table.write(rows((1, "x", "a")))
    commit = lake.CommitId("optimize", 1)
    first = table.compact(commit=commit)
    table.write(rows((1, "x", "b")))
    again = table.compact(commit=commit)
    assert (again.snapshot_ids, again.earlier_snapshot_ids) == ((), first.snapshot_ids)
    assert contents(table.base) == [(1, "x", "a")]


def test_a_task_that_fails_leaves_no_file(table, tmp_path, monkeypatch):
    table.write(rows((1, "x", "a"), (2, "x", "b"), (1, "y", "c")))
    before = files(tmp_path)
    monkeypatch.setattr(MergeCommit, "_files", lambda self, base: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        table.compact()
    monkeypatch.undo()
    victim = next(path for path in before if "-I-" in path.name and "p=y" in str(path))
    content = victim.read_bytes()
    victim.write_bytes(b"")
    left = files(tmp_path)
    with pytest.raises(lake.CorruptTableError):
        table.compact()
    assert files(tmp_path) == left
    victim.write_bytes(content)
    table.compact()
    assert contents(table.base) == [(1, "x", "a"), (1, "y", "c"), (2, "x", "b")]


def test_arguments_that_do_not_fit_are_refused(table, tmp_path):
    with pytest.raises(lake.UnsupportedError, match="whose compact does not take where: leave"):
        table.compact(where="p = 'x'")
    with pytest.raises(lake.InvalidRequestError, match="must be one of minor, full, got 'sort'"):
        table.plan_compaction(strategy="sort")
    with pytest.raises(lake.InvalidRequestError, match="strateg"):
        table.compact(strategi="full")
    edit(tmp_path / "db/t", **{"format-version": 3, "next-row-id": 0})
    with pytest.raises(lake.UnsupportedError, match="has version 3 of the Iceberg format, and"):
        lake.open_table(str(tmp_path / "db/t")).compact()


def test_the_reason_of_a_single_insert_is_in_the_singular(table, tmp_path):
    edit(tmp_path / "db/t", properties={"write.upsert.enabled": "false"})
    table = lake.open_table(str(tmp_path / "db/t"))
    table.write(rows((1, "x", "a")))
    [partition] = table.plan_optimizing().partitions
    assert partition.decision.reason == "1 fragment or delete, and the minor interval has passed"


def test_the_command_compacts_the_table_and_shows_its_plan(table, tmp_path):
    table.write(rows((1, "x", "a"), (2, "x", "b")))

    def show(*arguments: str) -> str:
        shown = CliRunner().invoke(app, ["compact", str(tmp_path / "db/t"), *arguments])
        assert shown.exit_code == 0, shown.output
        return shown.output

    planned = show("--dry-run", "--strategy", "minor")
    assert "minor optimizing of 1 of 1 partitions in 2 tasks" in planned
    assert "  p=x: 2 tasks (4 fragments and deletes, and the minor interval has passed, " in planned
    [as_json] = json.loads(show("--dry-run", "--json"))
    assert (as_json["strategy"], as_json["type"]) == ("full", "full")
    assert contents(table.base) == []
    assert show().startswith("full optimizing: 4 files of ")
    [report] = json.loads(show("--json"))
    assert report["reason"] == "no action needed: no partition of 1 is due"
    assert contents(table.base) == [(1, "x", "a"), (2, "x", "b")]


def test_the_job_compacts_the_table_and_a_condition_sees_what_is_due(table, tmp_path):
    table.write(rows((1, "x", "a"), (2, "x", "b")))
    plan = table.plan_compaction()
    assert (sum(len(each.files) for each in plan.units), plan.snapshot_id) == (4, None)
    wanted = {"warehouse": str(tmp_path), "table": "db.t", "catalog_options": ICEBERG}
    planned = compact_job.run({**wanted, "dry_run": True})
    assert planned["reason"] == "2 buckets or groups of files would be compacted"
    done = compact_job.run({**wanted, "commit_user": "run", "commit_identifier": 1})
    again = compact_job.run({**wanted, "commit_user": "run", "commit_identifier": 1})
    assert (done["skipped"], again["replayed"]) == (False, True)
    assert compact_job.run(wanted)["skipped"]
    assert contents(table.base) == [(1, "x", "a"), (2, "x", "b")]


def test_a_partition_with_two_names_is_read_but_not_compacted(table, tmp_path):
    table.write(rows((1, "x", "a")))
    table.compact()
    for store in ("t", "t_change_"):
        place = tmp_path / "db" / store
        metadata = json.loads(newest_metadata(place).read_text())
        [spec] = metadata["partition-specs"]
        [field] = spec["fields"]
        renamed = {"spec-id": 1, "fields": [{**field, "name": "q"}]}
        edit(place, **{"partition-specs": [spec, renamed], "default-spec-id": 1})
    table = lake.open_table(str(tmp_path / "db/t"))
    table.write(rows((1, "x", "b")))

    assert contents(table) == [(1, "x", "b")]
    with pytest.raises(lake.UnsupportedError, match="has the partition 'p=x' also as 'q=x'"):
        table.compact(strategy="full")
    assert contents(table) == [(1, "x", "b")]
