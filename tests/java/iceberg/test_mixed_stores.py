"""Java's Iceberg reads the two stores of Mixed tables that this library changes."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

import lakeformat as lake
from tests.java.iceberg.conftest import JavaIceberg
from tests.java.iceberg.test_in_turns import read_by_us

STORES = {"$base": "", "$change": "_change_"}


def store_in_java(java: JavaIceberg, store: str) -> JavaIceberg:
    return replace(java, name=java.name + STORES[store])


def check(java: JavaIceberg, expected: dict[int, str], column: str = "name") -> None:
    """Java reads of each store the rows that this library reads; the table has those expected."""
    found = java.ours().scan(["id", column]).to_arrow().to_pydict()
    assert dict(zip(found["id"], found[column], strict=True)) == expected
    assert len(found["id"]) == len(expected)
    for store in STORES:
        ours = java.catalog.table(f"shop.{java.name}{store}")
        there = store_in_java(java, store)
        assert there.rows() == read_by_us(ours), store
        assert there.spark.table(there.identifier).columns == ours.schema.column_names, store


def check_history(java: JavaIceberg) -> None:
    """Both read the same rows of each snapshot of each store."""
    for store in STORES:
        ours = java.catalog.table(f"shop.{java.name}{store}")
        there = store_in_java(java, store)
        for snapshot in ours.snapshots():
            id = snapshot.snapshot_id
            assert there.rows(id) == read_by_us(ours, snapshot=id), (store, id)


def base_in_java(java: JavaIceberg) -> dict[int, str]:
    return {row[0]: row[1] for row in java.sql("SELECT id, name FROM {table}")}


def names(java: JavaIceberg, given: dict[int, str]) -> pa.Table:
    """Rows by id; columns that are not given are null."""
    schema = java.ours().schema.arrow_schema()
    rows = [{"id": id, "name": name} for id, name in given.items()]
    return pa.Table.from_pylist(rows, schema=schema)


def test_java_reads_each_store_of_an_altered_table(java_iceberg: JavaIceberg):
    columns = [("id", "BIGINT"), ("name", "STRING"), ("n", "INT"), ("old", "STRING")]
    java, catalog = java_iceberg, java_iceberg.catalog
    catalog.create_table(
        f"shop.{java.name}",
        columns,
        format="mixed",
        primary_key=["id"],
        partition_by=["bucket(2, id)"],
    )
    expected = {number: f"v{number}" for number in range(20)}
    java.ours().write(names(java, expected))
    java.ours().compact(strategy="full")
    java.ours().write(names(java, {3: "", 4: ""}), kinds=["-D", "-D"])
    del expected[3], expected[4]
    catalog.alter_table(
        f"shop.{java.name}",
        lake.add_column("added", "STRING", after="id"),
        lake.update_column_type("n", "BIGINT"),
        lake.drop_column("old"),
        lake.set_option("change.file-index.hash-bucket", "8"),
    )
    check(java, expected)
    later = {4: "later", 5: "later", 30: "later"}
    java.ours().write(names(java, later))
    expected |= later
    check(java, expected)
    with java.ours().begin() as batch:
        java.ours().write(names(java, {6: "stream"}))
        batch.write(names(java, {6: "batch", 7: "batch"}))
    expected |= {6: "stream", 7: "batch"}
    check(java, expected)
    java.ours().compact(strategy="full")
    check(java, expected)
    assert base_in_java(java) == expected
    check_history(java)
    catalog.alter_table(f"shop.{java.name}", lake.rename_column("name", "title"))
    check(java, expected, "title")


def test_java_reads_each_store_of_an_adopted_table_and_writes_it_after_it_is_detached(
    java_iceberg: JavaIceberg,
):
    java, name = java_iceberg, f"shop.{java_iceberg.name}"
    java.sql(
        "CREATE TABLE {table} (id BIGINT NOT NULL, name STRING) USING iceberg "
        "PARTITIONED BY (bucket(2, id)) TBLPROPERTIES ('write.delete.mode'='merge-on-read')"
    )
    java.sql("INSERT INTO {table} VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')")
    java.sql("DELETE FROM {table} WHERE id = 4")
    java.catalog.adopt_table(name, primary_key=["id"])
    check(java, {1: "a", 2: "b", 3: "c"})
    java.ours().write(names(java, {2: "B", 4: "D", 5: "e"}))
    java.ours().write(names(java, {1: ""}), kinds=["-D"])
    expected = {2: "B", 3: "c", 4: "D", 5: "e"}
    check(java, expected)
    assert base_in_java(java) == {1: "a", 2: "b", 3: "c"}
    java.ours().compact(strategy="full")
    check(java, expected)
    assert base_in_java(java) == expected
    check_history(java)
    java.ours().write(names(java, {6: "f"}))
    java.catalog.detach_table(name, merge=True)
    java.sql("INSERT INTO {table} VALUES (7, 'java')")
    java.sql("DELETE FROM {table} WHERE id = 3")
    del expected[3]
    expected |= {6: "f", 7: "java"}
    assert java.rows() == read_by_us(java.ours()) == sorted(expected.items())
    java.catalog.adopt_table(name, primary_key=["id"])
    java.ours().write(names(java, {7: "again"}))
    check(java, expected | {7: "again"})
