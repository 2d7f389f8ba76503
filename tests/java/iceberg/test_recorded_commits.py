"""Java reads and continues snapshots that only record a commit of this library."""

from __future__ import annotations

import pytest

import lakeformat as lake
from tests.java.iceberg.conftest import JavaIceberg


@pytest.mark.parametrize("version", [2, 3])
def test_java_reads_snapshots_that_change_nothing(java_iceberg: JavaIceberg, version):
    java_iceberg.sql(
        "CREATE TABLE {table} (id BIGINT, k STRING) USING iceberg "
        f"TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read')"
    )
    table, first, second = java_iceberg.ours(), lake.CommitId("a", 0), lake.CommitId("a", 1)
    assert table.delete("id = 1", commit=first).rows == 0
    assert java_iceberg.rows() == []
    java_iceberg.sql("INSERT INTO {table} VALUES (1, 'a'), (2, 'b')")
    assert table.update("id = 7", {"k": "c"}, commit=second).rows == 0
    java_iceberg.sql("DELETE FROM {table} WHERE id = 2")
    java_iceberg.call("rewrite_manifests")
    assert java_iceberg.rows() == [(1, "a")]
    assert table.delete("id = 1", commit=second).replayed
    operations = [row[0] for row in java_iceberg.sql("SELECT operation FROM {table}.snapshots")]
    assert operations[:3] == ["delete", "append", "delete"]
    assert table.scan().to_arrow()["id"].to_pylist() == [1]
