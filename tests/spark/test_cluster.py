"""A real standalone cluster: executors and drivers are killed, and every row is there once."""

import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

import lakeformat as lake
from spark_jobs import write_table
from tests.spark.standalone import standalone_cluster
from tests.unit.spark_jobs import test_change_messages as messages

DRIVERS = Path(__file__).parent / "drivers"
_PATIENCE_SECONDS = 500

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def cluster(spark, tmp_path_factory):
    """Two hosts, since Spark starts no double of a task on the host it is on.

    ``spark`` skips where there is no Java.
    """
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def orders(catalog):
    return catalog.create_table(
        "shop.orders",
        [("id", "BIGINT"), ("note", "STRING")],
        primary_key=["id"],
        options={"bucket": "2"},
    )


def wait_for(mark, driver):
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not mark.exists():
        if driver.poll() is not None:
            raise AssertionError(f"the driver ended: {driver.communicate()[1][-3000:]}")
        assert time.monotonic() < deadline, "the driver never came so far"
        time.sleep(0.1)


def killed(driver):
    driver.kill()
    driver.communicate()


STORY = pytest.mark.sampled(1, among="Sparks of their own")


@STORY
@pytest.mark.parametrize(
    ("moment", "published"), [("before", False), ("during", True), ("after", True)]
)
def test_a_driver_that_is_killed_around_its_commit_publishes_once(
    cluster, spark, orders, warehouse, tmp_path, moment, published
):
    mark = tmp_path / "mark"
    driver = cluster.driver(DRIVERS / "write_once.py", warehouse, moment, str(mark))
    try:
        wait_for(mark, driver)
    finally:
        killed(driver)
    assert (orders.latest_snapshot() is not None) is published

    rows = spark.range(0, 100, 1, 2).selectExpr("id", "'a' AS note")
    again = write_table(rows, orders, commit=lake.CommitId("run", 1))

    assert again.replayed is published
    assert len(orders.snapshots()) == 1
    assert sorted(orders.scan().to_arrow()["id"].to_pylist()) == [*range(100)]


@STORY
def test_an_executor_that_is_killed_costs_no_row_and_makes_none_twice(
    cluster, orders, warehouse, tmp_path
):
    mark = tmp_path / "mark"
    driver = cluster.driver(DRIVERS / "lose_an_executor.py", warehouse, str(mark))
    try:
        wait_for(mark, driver)
        victims = cluster.executors()
        for victim in victims:
            os.kill(victim, signal.SIGKILL)
        out, err = driver.communicate(timeout=_PATIENCE_SECONDS)
    finally:
        killed(driver)

    assert victims
    assert driver.returncode == 0, err[-3000:]
    [line] = [line for line in out.splitlines() if line.startswith("TOLD ")]
    told = json.loads(line.removeprefix("TOLD "))
    assert told == {"rows": 1000, "files_out": 2, "notes": {"a": 990, "b": 10}}
    kinds = [str(snapshot.commit_kind) for snapshot in orders.snapshots()]
    assert kinds == ["APPEND", "APPEND", "COMPACT"]


@STORY
def test_rows_of_each_source_come_in_and_tables_are_looked_after(
    cluster, catalog, warehouse, tmp_path
):
    columns = [("dt", "STRING"), ("id", "BIGINT"), ("note", "STRING")]
    keys = {"primary_key": ["dt", "id"], "partition_by": ["dt"], "options": {"bucket": "1"}}
    catalog.create_table("shop.days", columns, **keys)
    catalog.create_table("shop.stock", [("sku", "STRING"), ("pieces", "INT")], primary_key=["sku"])
    for name, note in (("days-1", "a"), ("days-2", "b"), ("later-1", "c")):
        rows = "".join(f"p{n % 20},{n},{note}\n" for n in range(100))
        (tmp_path / f"{name}.csv").write_text(f"dt,id,note\n{rows}")
    for number, each in enumerate(messages.ONE_STORY["maxwell"]):
        (tmp_path / f"stock-{number}.json").write_text(json.dumps(each))
    lost = Path(warehouse) / "shop.db/days/dt=p7/bucket-0"
    lost.mkdir(parents=True)
    lost = lost / "data-00000000-0000-0000-0000-000000000000-0.parquet"
    lost.write_bytes(b"x")
    os.utime(lost, (1_000_000_000, 1_000_000_000))

    driver = cluster.driver(DRIVERS / "every_job.py", warehouse, str(tmp_path))
    try:
        out, err = driver.communicate(timeout=_PATIENCE_SECONDS)
    finally:
        killed(driver)

    assert driver.returncode == 0, err[-3000:]
    [line] = [line for line in out.splitlines() if line.startswith("TOLD ")]
    assert json.loads(line.removeprefix("TOLD ")) == {
        "changes": 100,
        "rescaled": 20,
        "removed": 1,
        "rows": {"days": 100, "stock": 2, "copy": 100},
        "same": True,
    }
    assert {*catalog.table("shop.days").scan().to_arrow()["note"].to_pylist()} == {"c"}
    assert messages.rows(catalog) == [("date", 9), ("pear", 5)]


ATTEMPTS = pytest.mark.sampled(1, among="Sparks of their own", story="attempts")


@pytest.fixture(scope="module")
def attempts(cluster, tmp_path_factory):
    """Return the results of tables whose tasks were speculative or cancelled, from one driver."""
    folder = tmp_path_factory.mktemp("attempts")
    catalog = lake.open_catalog(str(folder / "warehouse"))
    catalog.create_database("shop")
    file_by_file = {"source.split.target-size": "1 mb"}  # so that there are several tasks to read
    for name in ("events", "copy"):
        columns = [("id", "BIGINT"), ("note", "STRING")]
        catalog.create_table(f"shop.{name}", columns, options=file_by_file)
    driver = cluster.driver(DRIVERS / "speculate.py", str(folder / "warehouse"), str(folder))
    try:
        out, err = driver.communicate(timeout=_PATIENCE_SECONDS)
    finally:
        killed(driver)

    assert driver.returncode == 0, err[-3000:]
    [line] = [line for line in out.splitlines() if line.startswith("TOLD ")]
    return Attempts(json.loads(line.removeprefix("TOLD ")), catalog, folder)


@dataclass
class Attempts:
    told: dict
    catalog: lake.Catalog
    folder: Path

    def ids(self, name):
        return sorted(self.catalog.table(name).scan().to_arrow()["id"].to_pylist())


@ATTEMPTS
def test_of_two_attempts_that_both_write_one_counts(attempts):
    assert (attempts.folder / "tasks.double").exists()
    assert attempts.told["by_tasks"] == {"rows": 1000, "files": 4}
    assert attempts.ids("shop.events") == [*range(1000)]


@ATTEMPTS
def test_the_format_reads_and_writes_rows_once_though_a_task_had_a_double(attempts):
    assert (attempts.folder / "format.double").exists()
    assert attempts.ids("shop.copy") == [*range(1000)]
    assert len(attempts.catalog.table("shop.copy").snapshots()) == 1


@ATTEMPTS
def test_a_cancelled_write_or_read_of_the_format_ends_within_seconds(attempts):
    for each in attempts.told["cancelled"]:
        assert "cancel" in each["error"].lower()
        assert each["seconds"] < 45, "a task went on after it was cancelled"
        assert each["jobs"] == []


@ATTEMPTS
def test_orphan_removal_finds_what_doubles_and_cancelled_tasks_of_the_format_left(attempts):
    """The write that was cancelled is among them: its rows are nowhere but there."""
    copy = attempts.catalog.table("shop.copy")
    place = attempts.folder / "warehouse/shop.db/copy/bucket-0"
    files = copy.system_table("files").scan(["file_path"]).to_arrow()["file_path"].to_pylist()
    live = {Path(file).name for file in files}
    left = {path.name for path in place.iterdir()} - live

    report = copy.remove_orphans("0 s", dry_run=False, allow_younger=True, max_share=1)

    assert report.removed_files == len(left) > 0
    assert {path.name for path in place.iterdir()} == live
