"""Spark's reader of Iceberg sees the rows of published Paimon tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake

COLUMNS = [("id", "BIGINT"), ("day", "INT"), ("note", "STRING")]
VERSION = "metadata.iceberg.format-version"


class Published:
    """A published table with deletion vectors, and Spark as its reader."""

    def __init__(self, spark: Any, folder: Path, name: str, version: str, *, keyed: bool) -> None:
        self.spark, self.name = spark, name
        self.catalog = lake.open_catalog(f"{folder}/path")
        self.catalog.create_database("paimon", exist_ok=True)
        options = {
            "metadata.iceberg.storage": "table-location",
            "deletion-vectors.enabled": "true",
            VERSION: version,
            **({"bucket": "1"} if keyed else {}),
        }
        keys = {"primary_key": ["day", "id"]} if keyed else {}
        self.table = self.catalog.create_table(
            f"paimon.{name}", COLUMNS, partition_by=["day"], options=options, **keys
        )

    def write(self, ids: range, note: str) -> None:
        days = pa.array([each % 2 for each in ids], pa.int32())
        self.table.write(pa.table({"id": [*ids], "day": days, "note": [note] * len(ids)}))

    def check(self) -> None:
        """Compare the rows of each published snapshot."""
        for snapshot in self.table.snapshots():
            place = f"path.`paimon.db`.{self.name} VERSION AS OF {snapshot.id}"
            found = sorted(tuple(row) for row in self.spark.sql(f"SELECT * FROM {place}").collect())
            rows = self.table.scan(snapshot=snapshot.id).to_arrow().to_pylist()
            assert found == sorted(tuple(row.values()) for row in rows)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("version", ["2", "3"])
def test_spark_sees_no_row_that_a_vector_deletes(
    spark_with_iceberg: tuple[Any, Path], version: str
):
    there = Published(*spark_with_iceberg, f"append_{version}", version, keyed=False)
    there.write(range(20), "first")
    there.table.delete("id in (1, 2, 7)")
    there.table.update("id in (4, 5)", {"note": "updated"})
    if version == "2":
        option = lake.set_option(VERSION, "3")
        there.table = there.catalog.alter_table(f"paimon.{there.name}", option)
    there.table.delete("id in (4, 6)")
    there.check()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("version", ["2", "3"])
def test_spark_sees_each_compaction_of_a_keyed_table(
    spark_with_iceberg: tuple[Any, Path], version: str
):
    there = Published(*spark_with_iceberg, f"keyed_{version}", version, keyed=True)
    there.write(range(2000), "first")
    there.table.compact(strategy="full")
    there.write(range(5, 9), "second")
    there.table.compact(strategy="minor")
    there.check()


def test_spark_finds_the_ids_of_rows_and_their_snapshots(spark_with_iceberg: tuple[Any, Path]):
    there = Published(*spark_with_iceberg, "lineage", "3", keyed=False)
    there.write(range(0, 4, 2), "first")
    there.write(range(4, 8, 2), "second")
    there.table.delete("id = 0")
    columns = "id, _row_id, _last_updated_sequence_number"
    rows = there.spark.sql(f"SELECT {columns} FROM path.`paimon.db`.lineage").collect()
    assert sorted(tuple(row) for row in rows) == [(2, 1, 1), (4, 2, 2), (6, 3, 2)]
