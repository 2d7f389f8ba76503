"""A compaction alone, committed with ``overwrite='partitions'``, which then replaces nothing."""

from __future__ import annotations

import pyarrow as pa

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.paimon.compact.run import run_unit
from lakeformat.storage import MemoryStorage

IDENTITY = lake.CommitId("job", 1)


def test_the_report_names_its_snapshot_and_a_retry_finds_it():
    catalog = FileSystemCatalog(MemoryStorage("compaction-alone"), "wh")
    catalog.create_database("shop")
    days = catalog.create_table(
        "shop.days", [("id", "BIGINT"), ("dt", "STRING")], partition_by=["dt"]
    )
    for number in range(6):
        days.write(pa.table({"id": [number], "dt": ["1"]}))
    [unit] = days.plan_compaction().units
    compacted = run_unit(days._handle, unit)
    report = days.commit([compacted], overwrite="partitions", commit=IDENTITY)
    assert (report.kind, report.snapshot_id, report.compact_snapshot_id) == ("COMPACT", 7, None)
    again = days.commit([compacted], overwrite="partitions", commit=IDENTITY)
    assert (again.replayed, again.snapshot_id) == (True, 7)
    assert days.scan().count() == 6
