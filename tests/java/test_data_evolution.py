"""Data-evolution tables: Java reads rows appended here, and continues their row ids."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.evolved_rows import DATA_EVOLUTION, EvolvedRows
from tests.java.peer_process import JavaPeer
from tests.java.wire import assert_same, json_rows

COLUMNS = [("id", "INT"), ("name", "STRING"), ("score", "DOUBLE")]


def assert_both_read(people: EvolvedRows, peer: JavaPeer) -> None:
    java = peer.read("shop.people")
    ours = people.table.scan().to_arrow()
    assert_same(java.columns, java.rows, json_rows(ours))
    assert ours.sort_by("id").to_pylist() == sorted(people.rows, key=lambda row: row["id"])


def test_both_append_and_both_join_columns_alike(catalog: lake.Catalog, peer: JavaPeer):
    peer.create_table("shop.people", COLUMNS, DATA_EVOLUTION)
    people = EvolvedRows(catalog.table("shop.people"))
    people.append([{"id": n, "name": f"a{n}", "score": n / 2} for n in range(3)])
    added = {"id": 3, "name": "java", "score": 9.0}
    peer.write(
        "shop.people", pa.Table.from_pylist([added], schema=people.table.schema.arrow_schema())
    )
    people.rows.append(added)
    people.append([{"id": 4, "name": "a4", "score": 2.0}])
    assert_both_read(people, peer)
    people.update(0, [{"name": f"b{n}"} for n in range(3)])
    people.update(3, [{"id": 33, "name": "b3", "score": 3.5}], whole=True)
    people.update(0, [{"score": -1.0}] * 3)
    assert_both_read(people, peer)


@pytest.mark.parametrize("options", [{"row-tracking.enabled": "true"}, DATA_EVOLUTION])
def test_files_that_java_compacted_are_read_and_appended_to(
    catalog: lake.Catalog, peer: JavaPeer, options: dict[str, str]
):
    peer.create_table("shop.people", COLUMNS, {**options, "compaction.min.file-num": "2"})
    people = EvolvedRows(catalog.table("shop.people"))
    people.append([{"id": 1, "name": "a", "score": 0.5}])
    people.append([{"id": 2, "name": "b", "score": 1.0}])
    if options == DATA_EVOLUTION:
        people.update(0, [{"name": "x"}])
    assert peer.call("compact", table="shop.people") == 1
    assert len(peer.call("live_files", table="shop.people")) == 1
    people.append([{"id": 3, "name": "c", "score": 1.5}])
    assert_both_read(people, peer)
    if options == DATA_EVOLUTION:
        people.update(0, [{"score": 7.0}, {"score": 8.0}])
        assert_both_read(people, peer)
    assert people.table.scan(where="id = 2").count() == 1
