"""How work is parted for tasks, and rows for those that write them; no Spark runs for that."""

import pyarrow as pa
import pytest

import lakeformat as lake
from spark_jobs.frames import split_rows
from spark_jobs.frames.parts import pack


def packed(*sizes, at_once=2, target=100, least=1):
    pieces = [(size, size) for size in sizes]
    return pack(pieces, at_once=at_once, target_bytes=target, least_bytes=least)


@pytest.mark.parametrize("sizes", [[10] * 8, [11, 10, 10, 10, 10, 10, 9, 9], [19, 20, 21, 20]])
def test_pieces_about_alike_are_one_part_for_each_core(sizes):
    parts = packed(*sizes)

    assert len(parts) == 2
    assert abs(sum(parts[0]) - sum(parts[1])) <= 2
    assert sorted(size for part in parts for size in part) == sorted(sizes)


def test_parts_are_about_as_large_as_the_target_and_the_largest_comes_first():
    parts = packed(*range(1, 61), at_once=4)

    sums = [sum(part) for part in parts]
    assert len(parts) == 19
    assert max(sums) <= 4 / 3 * 100
    assert sums == sorted(sums, reverse=True)
    assert parts[0][0] >= 50


def test_a_piece_above_the_target_is_a_part_of_its_own():
    assert packed(500, 10, 10)[0] == [500]


@pytest.mark.parametrize(("sizes", "parts"), [([], []), ([0, 0], [[0, 0]])])
def test_nothing_makes_no_part_and_what_has_no_size_one(sizes, parts):
    assert packed(*sizes, least=0) == parts


def test_a_refused_row_is_named_by_its_number_among_all_rows_of_the_task(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.orders", [("id", "INT")], primary_key=["id"], options={"bucket": "2"}
    )
    batches = [pa.record_batch({"id": pa.array(ids)}) for ids in ([1, 2, 3], [4, 2**40])]

    pieces = split_rows._split(
        split_rows.to_send(table), lambda table, batches: batches, 2, iter(batches)
    )

    refused = [piece["refused"] for batch in pieces for piece in batch.to_pylist()]
    assert "row 4" in refused[-1]
