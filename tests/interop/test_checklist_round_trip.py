"""The last line of the format's conformance checklist (section 11): pypaimon reads our tables.

The other lines are in ``tests/conformance/format_checklist``; tables of every type and layout are
in the other files of this folder.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa

import lakeformat as lake
from lakeformat.paimon.bucketing import row_hashes
from lakeformat.paimon.index.hash_index import encode_hash_index
from lakeformat.paimon.metadata.index_manifest import HASH, IndexManifestEntry
from lakeformat.paimon.metadata.simple_stats import EMPTY_ROW
from tests.conformance.format_checklist.keyed_table import (
    DELETE,
    INSERT,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    KeyedTable,
)
from tests.golden.values import Row, assert_same_rows, rows_of
from tests.interop.every_type import all_values, column_list
from tests.interop.peer import Peer

FORMATS = ("parquet", "orc", "avro")
COLUMNS = (
    ("day", "DATE NOT NULL"),
    ("amount", "DECIMAL(20, 2)"),
    ("name", "STRING NOT NULL"),
    ("id", "BIGINT NOT NULL"),
)


def test_what_we_write_is_read_by_pypaimon_and_equal_rows_come_back(
    catalog: lake.Catalog, peer: Peer
):
    every_type = catalog.create_table("shop.every_type", column_list())
    written = all_values(every_type.schema.arrow_schema())
    every_type.write(written)
    assert_same_rows(rows_of(peer.read("shop.every_type")), rows_of(written))

    for file_format in FORMATS:
        name = f"append_{file_format}"
        table = catalog.create_table(
            f"shop.{name}",
            [("id", "BIGINT"), ("s", "STRING")],
            options={"file.format": file_format},
        )
        for start in (0, 3):
            table.write(pa.table({"id": range(start, start + 3), "s": ["a", None, ""]}))
        both_read(catalog, peer, name, rows_of(table.scan().to_arrow()))
        assert peer.read(f"shop.{name}").num_rows == 6

    for file_format in FORMATS:
        name = f"keyed_{file_format}"
        both_read(catalog, peer, name, write_keyed(catalog, name, file_format))
    both_read(catalog, peer, "dynamic", write_dynamic(catalog, peer))


def both_read(catalog: lake.Catalog, peer: Peer, name: str, expected: list[Row]) -> None:
    for reader, found in (
        ("pypaimon", peer.read(f"shop.{name}")),
        ("lakeformat", catalog.table(f"shop.{name}").scan().to_arrow()),
    ):
        try:
            assert_same_rows(rows_of(found), expected)
        except AssertionError as difference:
            raise AssertionError(f"{reader} reads shop.{name}: {difference}") from None


def write_keyed(catalog: lake.Catalog, name: str, file_format: str) -> list[Row]:
    """Two partitions of three buckets, changed by a second commit; the rows that are left."""
    table = KeyedTable(
        f"{catalog.location.removeprefix('file://')}/shop.db/{name}",
        COLUMNS,
        ["id", "name"],
        {"bucket": "3", "file.format": file_format},
        partitions=["day"],
    )
    state: dict[Any, Row] = {}
    for turn in range(2):
        rows = pa.Table.from_pylist(
            changes(turn), schema=table.schema.arrow_schema().append(pa.field("kind", pa.int8()))
        )
        buckets = table.bucket_of(rows)
        groups: dict[tuple[Any, int], list[Row]] = {}
        for row, bucket in zip(rows.to_pylist(), buckets, strict=True):
            groups.setdefault((row["day"], bucket), []).append(row)
            key = (row["day"], row["id"], row["name"])
            kind = row["kind"]
            state.pop(key, None)
            if kind in (INSERT, UPDATE_AFTER):
                state[key] = {column: row[column] for column, _ in COLUMNS}
        assert {bucket for _, bucket in groups} == {0, 1, 2}
        table.commit(
            [
                entry
                for (day, bucket), group in groups.items()
                for entry in table.write(
                    group, bucket=bucket, partition=[(day - date(1970, 1, 1)).days]
                )
            ]
        )
    return list(state.values())


def changes(turn: int) -> list[Row]:
    days = [date(2024, 1, 1), date(1969, 12, 31)]
    if turn == 0:
        return [row(days[n % 2], n, INSERT, Decimal(n)) for n in range(40)]
    kinds = (UPDATE_AFTER, DELETE, UPDATE_BEFORE, INSERT)
    return [row(days[n % 2], n, kinds[n // 2 % 4], None) for n in range(20, 60)]


def row(day: Any, number: int, kind: int, amount: Decimal | None) -> Row:
    name = "a longer name" if number % 3 else "é"
    return {"day": day, "amount": amount, "name": name, "id": number - 30, "kind": kind}


def write_dynamic(catalog: lake.Catalog, peer: Peer) -> list[Row]:
    """A dynamic-bucket table with our HASH files, which pypaimon then writes to by them."""
    table = KeyedTable(
        f"{catalog.location.removeprefix('file://')}/shop.db/dynamic",
        (("k", "BIGINT NOT NULL"), ("v", "STRING")),
        ["k"],
        {"bucket": "-1"},
    )
    entries, indexes = [], []
    for bucket, keys in enumerate((range(5), range(5, 9))):
        entries += table.write([{"k": k, "v": "ours"} for k in keys], bucket=bucket)
        key_type = table.schema.fields[0].type
        content = encode_hash_index(row_hashes([pa.array(keys, pa.int64())], [key_type]))
        path = table.layout.index_file(f"index-u-{bucket}")
        with table.storage.open_output(path) as stream:
            stream.write(content)
        indexes.append(
            IndexManifestEntry(
                partition=EMPTY_ROW,
                bucket=bucket,
                index_type=HASH,
                file_name=f"index-u-{bucket}",
                file_size=len(content),
                row_count=len(keys),
            )
        )
    table.commit(entries, indexes=indexes)
    both_read(catalog, peer, "dynamic", [{"k": k, "v": "ours"} for k in range(9)])
    theirs = pa.table({"k": [8, 0, 9], "v": ["theirs"] * 3}, schema=table.schema.arrow_schema())
    peer.write("shop.dynamic", theirs)
    changed = {**dict.fromkeys(range(9), "ours"), **dict.fromkeys((0, 8, 9), "theirs")}
    return [{"k": key, "v": value} for key, value in changed.items()]
