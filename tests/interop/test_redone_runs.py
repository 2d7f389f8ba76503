# SPDX-License-Identifier: Apache-2.0
"""pypaimon reads the rows of a run that was cleared and done again."""

import pyarrow as pa

import lakeformat as lake

REPETITION = lake.CommitId("run", 2, replaces=1)


def rows(ids, note):
    return pa.table({"id": ids, "note": [note] * len(ids)})


def found(peer):
    read = peer.read("shop.events").select(["id", "note"]).to_pydict()
    return sorted(zip(read["id"], read["note"], strict=True))


def test_appended_rows_of_the_first_run_are_replaced(catalog, peer):
    table = catalog.create_table("shop.events", [("id", "BIGINT"), ("note", "STRING")])
    table.write(rows([1, 2], "first"), commit=lake.CommitId("run", 1))
    table.write(rows([7], "another"))

    table.write(rows([1, 3], "again"), commit=REPETITION)

    assert found(peer) == [(1, "again"), (3, "again"), (7, "another")]


def test_rows_with_keys_are_written_over(catalog, peer):
    table = catalog.create_table(
        "shop.events", [("id", "BIGINT"), ("note", "STRING")], primary_key=["id"]
    )
    table.write(rows([1, 2], "first"), commit=lake.CommitId("run", 1))

    table.write(rows([1, 3], "again"), commit=REPETITION)

    assert found(peer) == [(1, "again"), (2, "first"), (3, "again")]
