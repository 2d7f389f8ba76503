"""Spark Connect: what works with a session of this process works with one elsewhere."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.standalone import LOADED, environment

_PATIENCE_SECONDS = 500
DRIVER = Path(__file__).parent / "drivers" / "connect.py"


@pytest.mark.sampled(1, among="Sparks of their own")
def test_a_connect_session_writes_compacts_reads_and_streams(catalog, warehouse, tmp_path, spark):
    """In a process of its own: one that has a classic session cannot have the other kind."""
    columns = [("id", "BIGINT"), ("note", "STRING")]
    for name in ("shop.orders", "shop.copy"):
        catalog.create_table(name, columns, primary_key=["id"], options={"bucket": "2"})
    done = subprocess.run(
        [sys.executable, str(DRIVER), warehouse, str(tmp_path / "checkpoint")],
        env={**environment(), "PYSPARK_SUBMIT_ARGS": f"{LOADED} pyspark-shell"},
        capture_output=True,
        text=True,
        timeout=_PATIENCE_SECONDS,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    [line] = [line for line in done.stdout.splitlines() if line.startswith("TOLD ")]
    told = json.loads(line.removeprefix("TOLD "))
    assert told.pop("kind").startswith("pyspark.sql.connect")
    assert told.pop("rescaled") == [100]
    stopped = told.pop("stopped")
    assert {how: each["end"] for how, each in stopped.items()} == {
        "by_event": "nothing came of it",
        "by_ctrl_c": "KeyboardInterrupt",
        "by_interrupt_all": "UnknownException",
    }
    assert [each for each in stopped.values() if max(each["driver"], each["tasks"]) > 45] == []
    heard = told.pop("heard")
    assert {each["unit"] for each in heard} == {"tasks"}
    assert [each["done"] for each in heard] == sorted(each["done"] for each in heard)
    assert any(0 < each["done"] < each["total"] for each in heard)
    assert heard[-1]["done"] == heard[-1]["total"] > 1
    assert told == {
        "written": 100,
        "merged": 100,
        "files_out": 2,
        "read": 10,
        "source": 100,
        "filtered before": 103,
        "views": True,
        "viewed": 10,
        "copied": 100,
    }
