"""Any process is killed while rows wait in files for writing tasks: no file is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import lakeformat as lake
from spark_jobs import write_table
from tests.spark.orders import data_files
from tests.spark.standalone import environment

DRIVER = Path(__file__).parent / "drivers" / "write_by_pieces.py"
_PATIENCE_SECONDS = 500

pytestmark = pytest.mark.cluster


@pytest.fixture
def temporary(tmp_path):
    place = tmp_path / "temporary"
    place.mkdir()
    return place


def spilled(temporary):
    return [*temporary.glob("lake-spill-*")]


def jvm_of(driver):
    """The process that Spark's tasks run in: the driver's only child, which launched nothing."""
    found = Path(f"/proc/{driver.pid}/task").glob("*/children")
    [pid] = [int(child) for path in found for child in path.read_text().split()]
    assert b"java" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return pid


@pytest.mark.sampled(1, among="Sparks of their own")
@pytest.mark.parametrize("victim", ["the driver", "the JVM", "both"])
def test_a_retry_publishes_once_and_no_temporary_file_stays(
    spark, catalog, warehouse, temporary, monkeypatch, victim
):
    orders = catalog.create_table(
        "shop.orders",
        [("id", "BIGINT"), ("note", "STRING")],
        primary_key=["id"],
        options={"bucket": "2"},
    )
    mark = temporary / "mark"
    env = {**environment(), "TMPDIR": str(temporary), "PYSPARK_SUBMIT_ARGS": "pyspark-shell"}
    driver = subprocess.Popen(
        [sys.executable, str(DRIVER), warehouse, str(mark)],
        env=env,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_for(mark, driver)
        [left] = spilled(temporary)
        jvm = jvm_of(driver)
        if victim in ("the JVM", "both"):
            os.kill(jvm, signal.SIGKILL)
        if victim in ("the driver", "both"):
            driver.kill()
        assert driver.wait(_PATIENCE_SECONDS) != 0
        wait_until_gone(jvm)
    finally:
        end_group(driver.pid)
    # A driver that outlives its JVM cleans up itself.
    assert left.exists() is (victim != "the JVM")
    assert orders.latest_snapshot() is None
    assert data_files(warehouse) == []

    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    rows = spark.range(0, 100, 1, 2).selectExpr("id", "'a' AS note")
    again = write_table(rows, orders, commit=lake.CommitId("run", 1))

    assert not again.replayed
    assert len(orders.snapshots()) == 1
    assert sorted(orders.scan().to_arrow()["id"].to_pylist()) == [*range(100)]
    assert spilled(temporary) == []
    assert len(data_files(warehouse)) == orders.system_table("files").scan().to_arrow().num_rows


def wait_for(mark, driver):
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not mark.exists():
        assert driver.poll() is None, "the driver has ended"
        assert time.monotonic() < deadline, "the driver never came so far"
        time.sleep(0.1)


def wait_until_gone(pid):
    """A JVM that has lost its driver ends by itself."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    status = Path(f"/proc/{pid}/stat")
    while time.monotonic() < deadline:
        try:
            if status.read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except OSError:
            return
        time.sleep(0.1)
    raise AssertionError(f"process {pid} does not end")


def end_group(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
