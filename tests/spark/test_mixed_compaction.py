"""A Mixed table is compacted in Spark's tasks as it is in this process."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.mixed.compact.run import MergeWork
from lakeformat.mixed.file_names import parse_file_name
from spark_jobs import SparkExecutor, compact
from spark_jobs.frames import executor

COLUMNS = pa.schema([("k", pa.int64()), ("p", pa.string()), ("v", pa.string())])
EAGER = {
    "self-optimizing.minor.trigger.interval": "0",
    "self-optimizing.major.trigger.duplicate-ratio": "2",
    "change.file-index.hash-bucket": "2",
    "base.file-index.hash-bucket": "2",
}
"""A minor optimizing is due with any change, and no major one because of deleted rows."""


def rows(part, keys, value):
    given = [*keys]
    return pa.table([given, [part] * len(given), [value] * len(given)], schema=COLUMNS)


def new_table(root):
    catalog = lake.open_catalog(str(root), format="iceberg")
    catalog.create_database("db")
    how = {"primary_key": ["k", "p"], "partition_by": ["p"], "options": EAGER}
    return catalog, catalog.create_table("db.t", COLUMNS, format="mixed", **how)


@pytest.fixture
def pair(tmp_path):
    """Two equal tables in catalogs of their own: one for this process, one for Spark."""
    return [new_table(tmp_path / name) for name in ("here", "tasks")]


def only_in_tasks(monkeypatch):
    """Let each unit have a task of its own, and no unit be merged in this process."""

    def refuse(self, unit):
        raise AssertionError(f"{unit.task} was merged in the driver")

    monkeypatch.setattr(executor, "_LEAST_BYTES", 1)
    monkeypatch.setattr(MergeWork, "__call__", refuse)


def state_of(table):
    """The rows, the live files without their random names, and the record of merged changes."""
    found = table.scan().to_arrow().sort_by([("p", "ascending"), ("k", "ascending")])
    files = table.system_table("files").scan().to_arrow().to_pylist()
    shown = []
    for each in files:
        name = parse_file_name(each.pop("file_path").rpartition("/")[2])
        del each["file_size_in_bytes"]
        shown.append((*each.values(), str(name.kind)))
    merged = table.scan()._state.merged
    return found.to_pylist(), sorted(shown, key=str), dict(merged.sequences)


def first_rows(catalog, table):
    for part, count in (("x", 40), ("y", 10)):
        table.write(rows(part, range(count), "old"))


def changes_beside_a_batch(catalog, table):
    """Changes of files that remain, as they are large now; the batch is older than the stream."""
    catalog.alter_table("db.t", lake.set_option("self-optimizing.target-size", "600"))
    with table.begin() as batch:
        table.write(rows("x", [3, 4], "stream"))
        batch.write(rows("x", [4, 5, 90], "batch"))
    table.write(rows("y", [7], None), kinds=["-D"])


def more_nodes(catalog, table):
    catalog.alter_table("db.t", lake.set_option("base.file-index.hash-bucket", "4"))
    table.write(rows("y", [8], "new"))


STEPS = [
    (first_rows, "minor", "minor"),
    (changes_beside_a_batch, "minor", "minor"),
    (more_nodes, "full", "full"),
]
"""Each change, the strategy after it, and the kind of optimizing that this is."""


def test_tasks_make_the_rows_files_and_record_of_the_serial_executor(spark, pair, monkeypatch):
    for change, strategy, kind in STEPS:
        (here, table), (there, other) = pair
        change(here, table)
        change(there, other)
        serial = here.table("db.t").compact(strategy=strategy, executor="serial")
        with monkeypatch.context() as patched:
            only_in_tasks(patched)
            report = there.table("db.t").compact(strategy=strategy, executor=SparkExecutor(spark))
        assert (serial.type, report.type, report.tasks) == (kind, kind, serial.tasks)
        assert serial.tasks > 1
        assert (report.files_in, report.files_out) == (serial.files_in, serial.files_out)
        assert state_of(there.table("db.t")) == state_of(here.table("db.t"))
        deletes = [each.deletes for each in there.table("db.t").base.scan().splits()]
        assert any(deletes) is (change is changes_beside_a_batch)


def test_the_job_compacts_in_tasks_once(spark, pair, tmp_path, monkeypatch):
    catalog, table = pair[1]
    first_rows(catalog, table)
    before = state_of(table)[0]
    request = {
        "warehouse": str(tmp_path / "tasks"),
        "catalog_options": {"format": "iceberg"},
        "table": "db.t",
        "engine": "spark",
        "strategy": "minor",
        "commit_user": "optimize",
        "commit_identifier": 1,
    }
    only_in_tasks(monkeypatch)
    done, again = compact.run(request, spark), compact.run(request, spark)
    assert (done["skipped"], done["report"]["type"], done["report"]["tasks"]) == (False, "minor", 4)
    assert (again["snapshot_id"], again["replayed"]) == (done["snapshot_id"], True)
    assert state_of(table)[0] == before
    assert compact.run(request | {"commit_identifier": 2}, spark)["skipped"]
