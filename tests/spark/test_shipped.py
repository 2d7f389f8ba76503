"""A job on Spark from what ``lake package`` makes, where no other copy of our packages is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path, PurePosixPath

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli import archive
from lakeformat.cli.app import app
from lakeformat.cli.archive import needed_distributions
from lakeformat.doctor import DISTRIBUTION
from spark_jobs.runtime.command import REPORT_MARKER


@pytest.fixture
def shipped(tmp_path):
    """The folder that ``lake package`` has filled."""
    done = CliRunner().invoke(app, ["package", str(tmp_path / "dist")])
    assert done.exit_code == 0, done.output
    return tmp_path / "dist"


@pytest.fixture
def python(tmp_path):
    """A Python that finds Spark and what ``lake package --environment`` packs, and nothing else."""
    here, site = Path(sysconfig.get_path("purelib")), tmp_path / "site-packages"
    site.mkdir()
    packed = needed_distributions(DISTRIBUTION, ["spark"])
    names = {
        PurePosixPath(name).parts[0] for each in packed for name, _ in archive._installed(each)
    }
    for name in {*names, "pyspark", "py4j"}:  # whole folders, which hold what is compiled
        (site / name).symlink_to(here / name)
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{site}" exec {sys.executable} -S "$@"\n')
    path.chmod(0o755)
    return path


@pytest.mark.sampled(1, among="Sparks of their own")
def test_driver_and_tasks_find_our_packages_in_the_archive(tmp_path, shipped, python, spark):
    import pyspark

    catalog = lake.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    stock = catalog.create_table(
        "shop.stock", [("sku", "STRING")], primary_key=["sku"], options={"bucket": "1"}
    )
    for _ in "ab":
        stock.write(pa.table({"sku": ["pear"]}))
    request = {"warehouse": str(tmp_path / "warehouse"), "table": "shop.stock", "engine": "spark"}
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    done = subprocess.run(
        [
            str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
            *("--master", "local[1]", "--conf", "spark.ui.enabled=false"),
            *("--py-files", str(shipped / "lake.zip"), str(shipped / "lake_job.py")),
            *("compact", "--request", json.dumps(request)),
        ],
        env={**clean, "PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"},
        cwd=elsewhere,
        capture_output=True,
        text=True,
        timeout=290,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    [line] = [line for line in done.stdout.splitlines() if line.startswith(REPORT_MARKER)]
    assert json.loads(line.removeprefix(REPORT_MARKER))["snapshot_id"] == 3
    assert stock.latest_snapshot().commit_kind == "COMPACT"
