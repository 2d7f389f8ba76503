"""A task that only adds rows of files ingests each file once, in all of its runs."""

from __future__ import annotations

import json
import os
from unittest.mock import Mock

import pyarrow as pa
import pytest
from airflow.sdk import BaseOperator

import lakeformat as lake
from airflow_provider_lake.operators.ingest import LakeIngestOperator
from lakeformat.iceberg.own_files import OwnRecords
from lakeformat.iceberg.table import IcebergTable
from spark_jobs.ingestion import run_files
from spark_jobs.ingestion.run_files import RunFiles
from tests.airflow.contexts import StateStore, cleared, task_context
from tests.airflow.versions import AirflowFailException


@pytest.fixture
def log(monkeypatch):
    told = Mock()
    monkeypatch.setattr(BaseOperator, "log", told)
    return lambda: [each.args[0] % each.args[1:] for each in told.info.mock_calls]


@pytest.fixture
def incoming(tmp_path):
    """Write a file of ids into the source directory."""
    (tmp_path / "incoming").mkdir()

    def write(name, *ids):
        file = tmp_path / "incoming" / name
        file.write_text("id\n" + "".join(f"{each}\n" for each in ids))
        return file

    return write


def day(number, map_index=-1):
    return task_context("land", run_id=f"scheduled__{number}", map_index=map_index)


@pytest.fixture(params=["paimon", "iceberg"])
def land(request, tmp_path, monkeypatch):
    extra = {"warehouse": str(tmp_path / "warehouse"), "format": request.param}
    connection = {"conn_type": "lake", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE_DEFAULT", json.dumps(connection))

    def execute(context, **more):
        task = {"task_id": "land", "table": "shop.orders", "create": True}
        source = str(tmp_path / "incoming" / "*.csv")
        return LakeIngestOperator(**{**task, "source": source, **more}).execute(context)

    execute.table = lambda: lake.open_catalog(extra["warehouse"], format=request.param).table(
        "shop.orders"
    )
    execute.drop = lambda: lake.open_catalog(extra["warehouse"], format=request.param).drop_table(
        "shop.orders", purge=True
    )
    execute.ids = lambda: sorted(execute.table().scan().to_arrow()["id"].to_pylist())
    return execute


def test_a_run_ingests_only_files_that_are_new(land, incoming):
    incoming("1.csv", 1)
    land(day(1))
    incoming("2.csv", 2)
    land(day(2))
    third = land(day(3))

    assert land.ids() == [1, 2]
    assert third["skipped"]
    assert third["reason"].startswith("no new file: earlier runs have ingested 2 of 2 files of ")


def test_a_file_that_has_changed_is_refused_by_name(land, incoming):
    file = incoming("1.csv", 1)
    land(day(1))
    incoming("1.csv", 1, 2)
    with pytest.raises(AirflowFailException, match="changed since an earlier run") as refused:
        land(day(2))
    assert str(file) in str(refused.value)
    assert "from 5 to 7 bytes" in str(refused.value)
    os.utime(incoming("1.csv", 1), (0, 0))
    with pytest.raises(AirflowFailException, match="its time"):
        land(day(2))
    assert land.ids() == [1]


def test_a_task_may_ingest_all_files_in_every_run(land, incoming):
    incoming("1.csv", 1)
    land(day(1), ingest_again=True)
    incoming("1.csv", 5)
    land(day(2), ingest_again=True)
    assert land.ids() == [1, 5]


def test_a_cleared_task_ingests_its_own_files_again(land, incoming):
    incoming("1.csv", 1)
    land(day(1))
    incoming("2.csv", 2)
    land(day(2))
    incoming("1.csv", 7)
    land(cleared(day(1)))
    assert land.ids() == [2, 7]
    land(day(3))
    assert land.ids() == [2, 7]


def test_a_retry_after_a_failure_takes_a_corrected_file(land, incoming):
    incoming("1.csv", 1)
    land(day(1))
    incoming("2.csv", "no number")
    with pytest.raises(AirflowFailException):
        land(day(2))
    incoming("2.csv", 2)
    land(day(2))
    assert land.ids() == [1, 2]


def test_another_task_has_files_of_its_own(land, incoming):
    incoming("1.csv", 1)
    land(day(1))
    land(task_context("other", run_id="scheduled__1"), task_id="other")
    assert land.ids() == [1, 1]


def land_mapped(land, of_index, *files):
    """Run a mapped task with one map index for each file; return which of them add nothing."""
    tasks = enumerate(map(str, files))
    return [land(of_index(index), source=file)["skipped"] for index, file in tasks]


def test_a_mapped_task_ingests_each_file_once_in_any_order_of_its_files(land, incoming):
    a, b, c = (incoming(f"{number}.csv", number) for number in (1, 2, 3))
    land_mapped(land, lambda index: day(1, index), a, b)
    assert land_mapped(land, lambda index: day(2, index), c, a, b) == [False, True, True]
    assert land.ids() == [1, 2, 3]


def test_a_mapped_task_that_is_cleared_redoes_its_files_in_another_order(land, incoming, caplog):
    a, b = (incoming(f"{number}.csv", number) for number in (1, 2))
    land_mapped(land, lambda index: day(1, index), a, b)
    incoming("1.csv", 10)
    with caplog.at_level("WARNING", logger="spark_jobs"):
        land_mapped(land, lambda index: cleared(day(1, index)), b, a)
    assert land.ids() == [2, 10]
    warning = f"also ingesting {b}, which another map index of this run has ingested"
    assert caplog.messages[0].startswith(warning)
    assert land_mapped(land, lambda index: day(2, index), a, b) == [True, True]


def test_a_file_without_rows_removes_the_rows_of_a_map_index_that_a_shorter_list_left(
    land, incoming, caplog
):
    a, b, c = (incoming(f"{number}.csv", number) for number in (1, 2, 3))
    context = {index: day(1, index) for index in range(3)}
    land_mapped(land, context.get, a, b, c)
    with caplog.at_level("WARNING", logger="spark_jobs"):
        land_mapped(land, lambda index: cleared(context[index]), b, c)
    assert land.ids() == [2, 3, 3]
    advice = (
        "add one file without rows for each removed index to the end of the list of files, and "
        "clear all map indexes again"
    )
    assert [advice in each for each in caplog.messages if "also ingesting" in each] == [True] * 2
    land_mapped(land, lambda index: cleared(context[index]), b, c, incoming("none.csv"))
    assert land.ids() == [2, 3]


def test_rows_that_replace_others_come_from_all_files(land, incoming):
    incoming("1.csv", 1)
    for number in (1, 2):
        land(day(number), overwrite="table")
    assert land.ids() == [1]
    assert not land(day(3), overwrite="table")["skipped"]


SUMS = {"merge-engine": "aggregation", "fields.id.aggregate-function": "sum"}
SEQUENCE = {"merge-engine": "partial-update", "fields.at.sequence-group": "id"}


@pytest.fixture(
    params=[
        {"format": "mixed", "options": {"write.upsert.enabled": "false"}},
        {"options": {"bucket": "1", **SUMS}},
        {"options": {"bucket": "1", **SEQUENCE, "fields.id.aggregate-function": "sum"}},
    ],
    ids=["mixed", "aggregation", "partial-update"],
)
def adding(request, tmp_path, monkeypatch):
    """A function that lands files in a table with a key that adds repeated rows or values."""
    how = request.param
    extra = {"warehouse": str(tmp_path / "w"), "format": "iceberg" if "format" in how else "paimon"}
    connection = {"conn_type": "lake", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE_DEFAULT", json.dumps(connection))
    catalog = lake.open_catalog(extra["warehouse"], format=extra["format"])
    catalog.create_database("shop")
    columns = [("k", "BIGINT"), ("at", "BIGINT"), ("id", "BIGINT")]
    catalog.create_table("shop.orders", columns, primary_key=["k"], **how)
    source = str(tmp_path / "incoming" / "*.csv")

    def execute(context, **more):
        task = {"task_id": "land", "table": "shop.orders", "source": source}
        return LakeIngestOperator(**task, **more).execute(context)

    execute.drop = lambda: lake.open_catalog(extra["warehouse"], format=request.param).drop_table(
        "shop.orders", purge=True
    )
    execute.ids = lambda: sorted(
        catalog.table("shop.orders").scan().to_arrow().select(["k", "id"]).to_pylist(), key=str
    )
    return execute


def test_a_table_with_a_key_that_would_add_rows_twice_gets_each_file_once(adding, tmp_path):
    (tmp_path / "incoming").mkdir()
    (tmp_path / "incoming/1.csv").write_text("k,at,id\n1,1,10\n")
    adding(day(1))
    assert adding(day(2))["skipped"]
    (tmp_path / "incoming/2.csv").write_text("k,at,id\n2,1,20\n")
    assert [each[-5:] for each in adding(day(3), dry_run=True)["report"]["files"]] == ["2.csv"]
    adding(day(3))
    once = [{"k": 1, "id": 10}, {"k": 2, "id": 20}]
    assert adding.ids() == once
    refusal = "cannot take the place of (?s:.*) Nothing was published"
    with pytest.raises(AirflowFailException, match=refusal):
        adding(cleared(day(1)))
    assert adding.ids() == once
    adding(cleared(day(3)), on_clear="force")
    assert adding.ids() != once
    assert adding(day(4))["skipped"]


def test_a_dry_run_shows_new_files_and_records_none(land, incoming):
    incoming("1.csv", 1)
    land(day(1))
    new = incoming("2.csv", 2)
    for _ in range(2):
        shown = land(day(2), dry_run=True)
        assert shown["report"]["files"] == [str(new)]


def test_the_log_names_the_number_of_skipped_files(land, incoming, caplog):
    incoming("1.csv", 1)
    land(day(1))
    incoming("2.csv", 2)
    with caplog.at_level("INFO", logger="spark_jobs"):
        land(day(2))
    assert any("skipping 1 of 2 files of" in each for each in caplog.messages)


def test_the_log_names_the_numbers_of_added_rows_and_files(land, incoming, log):
    incoming("1.csv", 1)
    incoming("2.csv", 2, 3)
    done = land(day(1))
    assert log()[-1] == f"shop.orders: {done['reason']}: 3 rows in 1 file"


def files_of(runs):
    return [each for each in runs.storage.list(runs.directory) if "files-" in each.name]


def test_records_of_many_runs_are_merged(land, incoming, monkeypatch):
    monkeypatch.setattr(run_files, "_MERGED_FROM", 4)
    for number in range(1, 8):
        incoming(f"{number}.csv", number)
        land(day(number))
    incoming("1.csv", 11)
    land(cleared(day(1)))
    assert land.ids() == [2, 3, 4, 5, 6, 7, 11]
    assert land(day(9))["skipped"]
    assert len(files_of(land.table().runs)) <= 5


def test_records_that_are_merged_between_two_pages_of_a_listing_are_found(
    land, incoming, monkeypatch
):
    """The first listing misses the merged record, and all records that it replaces."""
    for number in (1, 2):
        incoming(f"{number}.csv", number)
        land(day(number))
    earlier, listed = RunFiles._listed, []

    def listed_while_merged(self):
        names = earlier(self)
        if not listed:
            self._merge(names)
            names = set()
        listed.append(names)
        return names

    monkeypatch.setattr(RunFiles, "_listed", listed_while_merged)
    assert land(day(3))["skipped"]
    assert land.ids() == [1, 2]
    assert [each.name[-4:] for each in files_of(land.table().runs)] == [".all"]


def test_marks_that_a_killed_merge_has_left_are_deleted_by_the_next_one(
    land, incoming, monkeypatch
):
    incoming("0.csv", 0)
    land(day(0))
    records = land.table().runs
    prefix, _, _ = files_of(records)[0].name.rpartition("-")
    left = f"{records.directory}/{prefix}-left.done"
    records.storage.create(left, b"{}")
    monkeypatch.setattr(run_files, "_MERGED_FROM", 4)
    for number in (1, 2):
        incoming(f"{number}.csv", number)
        land(day(number))
    assert not records.storage.exists(left)
    assert land(day(3))["skipped"]


class Killed(BaseException):
    """The process is dead."""


def die(*_, **__):
    raise Killed


@pytest.mark.parametrize("moment", ["before the commit", "after the commit"])
def test_a_killed_run_without_a_retry_neither_hides_nor_doubles_files(
    land, incoming, monkeypatch, moment
):
    incoming("0.csv", 0)
    land(day(0))
    incoming("1.csv", 1)
    with monkeypatch.context() as patch:
        if moment == "before the commit":
            patch.setattr("spark_jobs.ingest._ingest_rows", die)
        else:
            patch.setattr(run_files.RunFiles, "_mark", die)
        with pytest.raises(Killed):
            land(day(1))
    incoming("2.csv", 2)
    land(day(2))
    assert land.ids() == [0, 1, 2]
    if moment == "after the commit":
        land(day(1))  # the retry marks the record
    assert land(day(3))["skipped"]
    assert land.ids() == [0, 1, 2]


def test_attempts_of_one_run_with_different_files_are_decided_by_a_person(
    land, incoming, monkeypatch
):
    incoming("1.csv", 1)
    for place in (
        "spark_jobs.ingest._ingest_rows",
        "spark_jobs.ingestion.run_files.RunFiles._mark",
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, die)
            with pytest.raises(Killed):
                land(day(1))
        incoming("2.csv", 2)
    with pytest.raises(AirflowFailException, match="Delete the record of each attempt"):
        land(day(2))


def test_files_of_several_runs_are_corrected_together(land, incoming, caplog):
    for number in (1, 2):
        incoming(f"{number}.csv", number)
        land(day(number))
    for number in (1, 2):
        incoming(f"{number}.csv", 10 * number)
    with caplog.at_level("WARNING", logger="spark_jobs"):
        land(cleared(day(1)))
    land(cleared(day(2)))
    assert land.ids() == [10, 20]
    [warning] = caplog.messages
    assert "has ingested this file, which has changed since" in warning
    assert "2.csv: run " in warning
    assert land(day(3))["skipped"]


def test_a_cleared_task_whose_files_are_missing_keeps_its_rows_and_fails(land, incoming):
    incoming("1.csv", 1)
    land(day(1))
    file = incoming("2.csv", 2)
    land(day(2))
    file.unlink()
    with pytest.raises(AirflowFailException, match=r"are missing now \(.*2\.csv\)"):
        land(cleared(day(2)))
    assert land.ids() == [1, 2]
    assert land(cleared(day(2)), on_clear="force")["skipped"]


def test_force_keeps_the_files_of_the_first_run_recorded_with_its_rows(land, incoming, tmp_path):
    file, first = incoming("1.csv", 1), day(1)
    land(first)
    archived = file.rename(tmp_path / "1.csv")
    incoming("2.csv", 2)
    land(cleared(first), on_clear="force")
    archived.rename(file)
    assert land(day(2))["skipped"]
    assert land.ids() == [1, 2]

    file.rename(archived)
    incoming("2.csv", 3)
    land(cleared(first))  # replaces only the rows of the second commit
    archived.rename(file)
    assert land(day(3))["skipped"]
    assert land.ids() == [1, 3]


def test_a_cleared_task_warns_of_each_file_whose_rows_it_removes(land, incoming, caplog):
    file = incoming("1.csv", 1)
    incoming("2.csv", 2)
    land(day(1))
    file.unlink()
    with caplog.at_level("WARNING", logger="spark_jobs"):
        land(cleared(day(1)))
    assert land.ids() == [2]
    [warning] = caplog.messages
    assert f"has ingested before and that are missing now: {file}." in warning


def test_an_attempt_that_outlived_its_task_and_published_first_has_its_files_recorded(
    land, incoming, monkeypatch
):
    """The second attempt sees one more file, but its commit finds that of the first one."""
    incoming("1.csv", 1)
    earlier = RunFiles.ingest

    def published_meanwhile(self, files, commit):
        monkeypatch.setattr(RunFiles, "ingest", earlier)
        (late := incoming("2.csv", 2)).rename(hidden := late.with_name(".2.csv"))
        land(day(1))
        hidden.rename(late)
        more = {**files, str(late): (late.stat().st_size, late.stat().st_mtime_ns // 1_000_000)}
        return earlier(self, more, commit)

    monkeypatch.setattr(RunFiles, "ingest", published_meanwhile)
    assert land(day(1))["replayed"]
    assert land.ids() == [1]
    land(day(2))
    assert land.ids() == [1, 2]


def with_state(number):
    return day(number) | {"task_state_store": StateStore()}


def expire(table):
    """Let two more commits arrive, and all older ones expire."""
    for number in (100, 101):
        table.write(pa.table({"id": pa.array([number], pa.int64())}))
    table.expire_snapshots(retain_max=1, retain_min=1)


@pytest.mark.parametrize("land", ["paimon"], indirect=True)
@pytest.mark.parametrize("place", ["ingest._ingest_rows", "ingestion.run_files.RunFiles._mark"])
def test_a_killed_run_whose_files_another_run_has_found_stops_no_later_run(
    land, incoming, monkeypatch, place
):
    incoming("0.csv", 0)
    land(with_state(0))
    incoming("1.csv", 1)
    with monkeypatch.context() as patch:
        patch.setattr(f"spark_jobs.{place}", die)
        with pytest.raises(Killed):
            land(with_state(1))
    land(with_state(2))
    expire(land.table())
    assert land(with_state(3))["skipped"]
    assert land.ids() == [0, 1, 100, 101]


@pytest.mark.parametrize("land", ["paimon"], indirect=True)
def test_a_killed_run_whose_snapshots_have_expired_stops_only_runs_with_its_files(
    land, incoming, monkeypatch
):
    incoming("0.csv", 0)
    land(with_state(0))
    file = incoming("1.csv", 1)
    with monkeypatch.context() as patch:
        patch.setattr("spark_jobs.ingest._ingest_rows", die)
        with pytest.raises(Killed):
            land(with_state(1))
    expire(land.table())
    with pytest.raises(AirflowFailException, match="delete the record"):
        land(with_state(4))
    incoming("5.csv", 5)
    file.unlink()
    land(with_state(5))
    assert land.ids() == [0, 5, 100, 101]


def as_of_earlier_releases(table):
    """Move the records to the place of earlier releases, outside of the UUID's directory."""
    runs = table.runs
    for each in runs.storage.list(runs.directory):
        runs.storage.overwrite(f"{runs.old_directory}/{each.name}", runs.storage.read(each.path))
        runs.storage.delete(each.path)


@pytest.mark.parametrize("land", ["iceberg"], indirect=True)
@pytest.mark.parametrize("is_expired", [False, True])
def test_files_that_an_earlier_release_has_ingested_are_skipped(
    land, incoming, monkeypatch, is_expired
):
    if is_expired:
        monkeypatch.setattr(OwnRecords, "has_all_snapshots", False)
    for number in (1, 2):
        incoming(f"{number}.csv", number)
        land(day(number))
    as_of_earlier_releases(land.table())
    assert land(day(3))["skipped"]
    incoming("3.csv", 3)
    land(day(4))
    runs = land.table().runs
    for each in runs.storage.list(runs.old_directory):
        if not each.is_directory:
            runs.storage.delete(each.path)  # the records were moved
    assert land(day(5))["skipped"]
    assert land.ids() == [1, 2, 3]


@pytest.mark.parametrize("land", ["iceberg"], indirect=True)
@pytest.mark.parametrize("is_old", [False, True])
def test_files_are_ingested_into_a_new_table_with_the_directory_of_another(land, incoming, is_old):
    incoming("1.csv", 1)
    land(day(1))
    table = land.table()
    if is_old:
        as_of_earlier_releases(table)
    runs = table.runs
    files = {each: runs.storage.read(each) for each in _files_below(runs)}
    land.drop()
    for path, content in files.items():  # as a drop in a SQL catalog leaves them
        runs.storage.overwrite(path, content)
    incoming("2.csv", 2)
    land(day(2))
    assert land.ids() == [1, 2]
    assert land(day(3))["skipped"]


@pytest.mark.parametrize("land", ["iceberg"], indirect=True)
def test_the_commits_of_an_earlier_release_are_looked_up_together(land, incoming, monkeypatch):
    for number in (1, 2, 3):
        incoming(f"{number}.csv", number)
        land(day(number))
    as_of_earlier_releases(land.table())
    found = []
    monkeypatch.setattr(IcebergTable, "find_commit", lambda _, commit: found.append(commit.user))
    assert land(day(4))["skipped"]
    assert len({*found}) <= 1  # only the commit of this run


def _files_below(runs):
    old = runs.storage.list(runs.old_directory)
    inside = [*old, *runs.storage.list(runs.directory)]
    return [each.path for each in inside if not each.is_directory]


@pytest.mark.parametrize("land", ["iceberg"], indirect=True)
def test_a_killed_run_of_an_earlier_release_is_found(land, incoming, monkeypatch):
    incoming("1.csv", 1)
    with monkeypatch.context() as patch:
        patch.setattr(run_files.RunFiles, "_mark", die)
        with pytest.raises(Killed):
            land(day(1))
    as_of_earlier_releases(land.table())
    incoming("2.csv", 2)
    land(day(2))
    assert land.ids() == [1, 2]
    assert land(day(3))["skipped"]
