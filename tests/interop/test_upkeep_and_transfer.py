"""pypaimon reads what an upkeep of partitions, statistics, indexes and manifests leaves."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

import lakeformat as lake
from tests.golden.values import rows_of
from tests.interop.peer import Peer

DAYS = ("2020-01-01", "2999-01-01")


def filled(catalog: lake.Catalog, **how) -> lake.Table:
    columns = [("dt", "STRING"), ("id", "BIGINT"), ("kind", "STRING")]
    table = catalog.create_table("shop.t", columns, partition_by=["dt"], **how)
    for number in range(3):
        rows = {"dt": list(DAYS), "id": [number, number + 10], "kind": ["a", f"k{number}"]}
        table.write(pa.table(rows))
    return table


def reads_the_same(table: lake.Table, peer: Peer, name: str = "shop.t") -> bool:
    theirs, ours = (sorted(map(repr, rows_of(each))) for each in _both(table, peer, name))
    return theirs == ours


def _both(table: lake.Table, peer: Peer, name: str) -> tuple[pa.Table, pa.Table]:
    ours = table.scan().to_arrow()
    return peer.read(name).select(ours.column_names), ours


def test_pypaimon_reads_after_each_of_them(catalog, peer: Peer):
    table = filled(catalog)
    assert table.expire_partitions(expiration_time="7 d").snapshot_ids
    assert reads_the_same(table, peer)
    assert table.compact_manifests().snapshot_id
    assert reads_the_same(table, peer)
    assert table.analyze("all").snapshot_id
    assert reads_the_same(table, peer)
    table.mark_partitions_done([{"dt": DAYS[1]}], actions=["success-file", "done-partition"])
    assert reads_the_same(table, peer)
    table = catalog.alter_table("shop.t", lake.set_option("file-index.bitmap.columns", "kind"))
    assert table.rewrite_file_indexes().changed
    assert reads_the_same(table, peer)


def test_pypaimon_reads_clones(catalog, peer: Peer):
    table = filled(catalog, primary_key=["dt", "id"], options={"bucket": "1"})
    table.compact()
    for name, how in (("shop.newest", {}), ("shop.full", {"full": True})):
        lake.clone_table(table, catalog, name, **how)
        assert reads_the_same(catalog.table(name), peer, name)


def test_pypaimon_reads_a_directory_that_became_a_table(catalog, peer: Peer, tmp_path):
    directory = tmp_path / "plain"
    directory.mkdir()
    pq.write_table(pa.table({"id": [1, 2], "n": ["x", None]}), directory / "a.parquet")
    lake.migrate_directory(catalog, str(directory), "shop.t")
    assert reads_the_same(catalog.table("shop.t"), peer)
