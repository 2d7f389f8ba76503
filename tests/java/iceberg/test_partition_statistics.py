"""Java and this library write the same statistics of partitions."""

from __future__ import annotations

from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from lakeformat.iceberg.commit.commit import commit_metadata
from tests.java.iceberg.conftest import JavaIceberg


def statistics_file(table: JavaIceberg) -> pq.ParquetFile:
    loaded = table.ours()._handle.load()
    [file] = loaded.metadata.partition_statistics
    storage, path = loaded.places.place(file.statistics_path)
    with storage.open_input(path) as stream:
        return pq.ParquetFile(stream.read_buffer())


@pytest.mark.parametrize("version", [2, 3])
def test_both_write_the_same_columns_and_rows(java_iceberg, version):
    java_iceberg.sql(
        "CREATE TABLE {table} (id BIGINT, k STRING) USING iceberg PARTITIONED BY (k) TBLPROPERTIES "
        f"('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read')"
    )
    java_iceberg.sql("INSERT INTO {table} VALUES (1, 'b'), (2, 'a'), (3, NULL), (4, 'a')")
    java_iceberg.sql("ALTER TABLE {table} ADD PARTITION FIELD bucket(4, id)")
    java_iceberg.sql("INSERT INTO {table} VALUES (5, 'b'), (6, 'b'), (7, 'c'), (8, 'd')")
    java_iceberg.sql("DELETE FROM {table} WHERE k = 'd'")
    java_iceberg.sql("DELETE FROM {table} WHERE id = 2")
    java_iceberg.call("compute_partition_stats")
    java = statistics_file(java_iceberg)
    assert java_iceberg.ours().analyze_partitions().replayed
    commit_metadata(
        java_iceberg.ours()._handle,
        lambda loaded: replace(loaded.metadata, partition_statistics=()),
    )
    java_iceberg.ours().analyze_partitions()
    ours = statistics_file(java_iceberg)
    assert ours.schema_arrow.remove_metadata() == java.schema_arrow.remove_metadata()
    assert ours.read().to_pylist() == java.read().to_pylist()
