"""Java uses our file indexes: it finds all matching rows and opens no other file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.index.file_index import (
    encode_bitmap_index,
    encode_bloom_filter,
    encode_bsi,
    encode_file_index,
    encode_range_bitmap,
)
from lakeformat.types.type_text import parse_type
from tests.java.peer_process import JavaPeer
from tests.java.wire import json_rows

ENCODERS: dict[str, Callable[..., bytes]] = {
    "bloom-filter": encode_bloom_filter,
    "bitmap": encode_bitmap_index,
    "bsi": encode_bsi,
    "range-bitmap": encode_range_bitmap,
}

# Values that are stored, and one between the smallest and the largest that is not.
VALUES = {
    "BIGINT": ([-5, 10, 10, 300, None], 20),
    "INT": ([-5, 10, 10, 300, None], 20),
    "DATE": ([-5, 10, 10, 300, None], 20),
    "TIMESTAMP(3)": ([-5, 10, 10, 300, None], 20_000_000),
    "STRING": (["a", "b", "b", "zé", None], "m"),
}
CASES = [
    (name, type_text)
    for name in ENCODERS
    for type_text in VALUES
    if (name, type_text) != ("bsi", "STRING")
]


@pytest.mark.parametrize(("index_type", "type_text"), CASES)
def test_a_value_is_found_by_our_index_and_a_file_without_it_is_skipped(
    catalog: lake.Catalog, peer: JavaPeer, index_type: str, type_text: str
):
    table = catalog.create_table("shop.t", [("v", type_text)])
    values, absent = VALUES[type_text]
    schema = table.schema.arrow_schema()
    rows = pa.Table.from_arrays([pa.array(values, schema.types[0])], schema=schema)
    with table.new_writer() as writer:
        writer.write(rows)
        [message] = writer.prepare()
    body = ENCODERS[index_type](rows["v"], parse_type(type_text))
    [file] = message.new_files
    index = encode_file_index({"v": {index_type: body}})
    table.commit([replace(message, new_files=(replace(file, embedded_file_index=index),))])

    for [value] in json_rows(rows):
        found = peer.read("shop.t", where=("v", "is null" if value is None else "=", value))
        assert {row[0] for row in found.rows} == {value}
    for path in Path(table.location.removeprefix("file://")).rglob("data-*"):
        path.unlink()  # a file that is skipped need not be there
    assert peer.read("shop.t", where=("v", "=", absent)).rows == []


OPTIONS = {
    "file-index.bloom-filter.columns": "v",
    "file-index.bloom-filter.v.items": "100",
    "file-index.bitmap.columns": "v",
    "file-index.range-bitmap.columns": "v,k",
    "file-index.bsi.columns": "k",
}


@pytest.mark.parametrize("keyed", [False, True], ids=["append", "keyed"])
@pytest.mark.parametrize("threshold", ["0 b", "1 mb"], ids=["beside", "embedded"])
def test_a_table_we_write_with_indexes_is_read_and_pruned(
    catalog: lake.Catalog, peer: JavaPeer, keyed: bool, threshold: str
):
    table = catalog.create_table(
        "shop.t",
        [("k", "INT"), ("v", "STRING")],
        primary_key=["k"] if keyed else [],
        options={
            **OPTIONS,
            "file-index.in-manifest-threshold": threshold,
            "bucket": "1" if keyed else "-1",
        },
    )
    schema = table.schema.arrow_schema()
    table.write(pa.Table.from_pylist([{"k": 1, "v": "a"}, {"k": 5, "v": "z"}], schema))
    assert sorted(peer.read("shop.t").rows) == [[1, "a"], [5, "z"]]
    assert [1, "a"] in peer.read("shop.t", where=("v", "=", "a")).rows
    for path in Path(table.location.removeprefix("file://")).rglob("data-*.parquet"):
        path.unlink()  # a file that is skipped need not be there
    assert peer.read("shop.t", where=("v", "=", "m")).rows == []
