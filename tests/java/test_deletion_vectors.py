"""Deletion vectors: Java's are read at every step of a table's life, and Java reads ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.files.vector_record import VectorForm
from lakeformat.paimon.index.deletion_vector_file import encode_deletion_vectors
from lakeformat.paimon.metadata.index_manifest import DELETION_VECTORS, IndexManifestEntry
from tests.conformance.format_checklist.keyed_table import KeyedTable
from tests.java.peer_process import JavaPeer

COLUMNS = [("k", "INT NOT NULL"), ("p", "INT NOT NULL"), ("v", "STRING")]


def write(
    catalog: lake.Catalog, peer: JavaPeer, keys: Sequence[int], kind: str = "+I", **more: Any
) -> None:
    """Rows with these keys, even ones in partition 0 and odd ones in 1."""
    rows = {"k": list(keys), "p": [key % 2 for key in keys], "v": ["x"] * len(keys)}
    table = pa.table(rows, schema=catalog.table("shop.t").schema.arrow_schema())
    peer.write("shop.t", table, kinds=[kind] * len(keys), **more)


def check(catalog: lake.Catalog, peer: JavaPeer, expected: set[int]) -> None:
    """Both read the same rows."""
    assert set(peer.read("shop.t").column("k")) == expected
    found = catalog.table("shop.t").scan().to_arrow()
    assert sorted(found["k"].to_pylist()) == sorted(expected)


def vectors_of_no_file(peer: JavaPeer) -> list[str]:
    """Files that have a vector and are not in the table any more."""
    live = {file["name"] for file in peer.call("live_files", table="shop.t")}
    named = {vector["data_file"] for vector in peer.call("vectors", table="shop.t")}
    return sorted(named - live)


@pytest.mark.parametrize("partition_keys", [[], ["p"]], ids=["whole", "partitioned"])
@pytest.mark.parametrize("bucket", ["-1", "2"])
@pytest.mark.parametrize("bitmap64", ["false", "true"])
def test_an_append_table_is_read_after_each_delete_and_compaction(
    catalog: lake.Catalog, peer: JavaPeer, bucket: str, partition_keys: list[str], bitmap64: str
):
    options = {
        "bucket": bucket,
        **({"bucket-key": "k"} if bucket == "2" else {}),
        "deletion-vectors.enabled": "true",
        "deletion-vectors.bitmap64": bitmap64,
        "compaction.min.file-num": "2",
        "write-only": "true",
    }
    peer.create_table("shop.t", COLUMNS, options, partition_keys=partition_keys)
    for start in range(0, 60, 10):
        write(catalog, peer, range(start, start + 10))
    left = set(range(60))
    for turn in range(3):
        files = peer.call("live_files", table="shop.t")
        whole, part = files[turn], files[turn + 2]
        before = set(peer.read("shop.t").column("k"))
        gone = {whole["name"]: list(range(whole["rows"])), part["name"]: [0]}
        peer.call("delete", table="shop.t", positions=gone)
        left = set(peer.read("shop.t").column("k"))
        assert left < before
        check(catalog, peer, left)
    assert peer.call("vectors", table="shop.t")
    peer.call("compact", table="shop.t", options={"write-only": "false"})
    check(catalog, peer, left)
    assert vectors_of_no_file(peer) == []
    write(catalog, peer, [60, 61])
    check(catalog, peer, left | {60, 61})
    if partition_keys:
        peer.call("drop_partition", table="shop.t", partition={"p": "1"})
        check(catalog, peer, {key for key in left | {60} if key % 2 == 0})


@pytest.mark.parametrize("write_only", ["false", "true"])
def test_a_keyed_table_is_read_after_each_change_and_compaction(
    catalog: lake.Catalog, peer: JavaPeer, write_only: str
):
    options = {"bucket": "2", "deletion-vectors.enabled": "true", "write-only": write_only}
    keys = ["k", "p"]
    peer.create_table("shop.t", COLUMNS, options, primary_keys=keys, partition_keys=["p"])

    def compact() -> None:
        peer.call("compact", table="shop.t", options={"write-only": "false"})

    write(catalog, peer, range(100))
    compact()
    for turn in range(6):
        write(catalog, peer, range(turn, 100, 9))
        check(catalog, peer, set(range(100)))
    compact()
    check(catalog, peer, set(range(100)))
    write(catalog, peer, range(0, 100, 3), "-D")
    compact()
    check(catalog, peer, {key for key in range(100) if key % 3})
    write(catalog, peer, range(0, 100, 5))
    peer.call("drop_partition", table="shop.t", partition={"p": "1"})
    compact()
    check(catalog, peer, {key for key in range(0, 100, 2) if key % 3 or key % 5 == 0})


def test_a_vector_that_java_left_of_a_file_it_compacted_away_does_not_disturb(
    catalog: lake.Catalog, peer: JavaPeer
):
    options = {"bucket": "1", "deletion-vectors.enabled": "true"}
    peer.create_table("shop.t", COLUMNS, options, primary_keys=["k"])
    write(catalog, peer, range(20))
    write(catalog, peer, range(5), "-D")  # nothing but a vector of the file at the highest level
    [vector] = peer.call("vectors", table="shop.t")
    peer.call("compact", table="shop.t")  # rewrites the file without its deleted rows
    assert vectors_of_no_file(peer) == [vector["data_file"]]
    check(catalog, peer, set(range(5, 20)))
    write(catalog, peer, [3])
    check(catalog, peer, {3, *range(5, 20)})


@pytest.mark.parametrize("form", VectorForm)
@pytest.mark.parametrize("deleted", [[2, 3, 19], [*range(1, 15)], [0]], ids=len)
def test_java_does_not_see_rows_that_our_vectors_delete_and_compacts_them_away(
    catalog: lake.Catalog, peer: JavaPeer, form: VectorForm, deleted: list[int]
):
    options = {
        "bucket": "1",
        "deletion-vectors.enabled": "true",
        "deletion-vectors.bitmap64": str(form is VectorForm.BITMAP64).lower(),
    }
    table = KeyedTable(
        catalog.location.removeprefix("file://") + "/shop.db/t", COLUMNS, ["k"], options
    )
    entries = table.write([{"k": k, "p": 0, "v": "x"} for k in range(20)], level=5)
    vectors = {entries[0].file.file_name: DeletionVector.of(deleted)}
    content, ranges = encode_deletion_vectors(vectors, form)
    with table.storage.open_output(table.layout.index_file("index-ours-0")) as stream:
        stream.write(content)
    index = IndexManifestEntry(
        partition=entries[0].partition,
        bucket=0,
        index_type=DELETION_VECTORS,
        file_name="index-ours-0",
        file_size=len(content),
        row_count=len(ranges),
        ranges=ranges,
    )
    table.commit(entries, indexes=[index])
    left = set(range(20)) - set(deleted)
    check(catalog, peer, left)
    write(catalog, peer, [4, 100])
    peer.call("compact", table="shop.t")
    check(catalog, peer, left | {4, 100})
