"""Partitioning of work for tasks, and of rows for writers; without Spark."""

import gc
import importlib
import platform
import subprocess
import sys
import zipfile
from itertools import pairwise
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pytest

import lakeformat as lake
from spark_jobs.frames import split_rows, worker
from spark_jobs.frames.parts import pack, pack_in_order
from spark_jobs.frames.pieces import PieceWriter
from spark_jobs.frames.routing import routing_of
from spark_jobs.frames.worker import prepare_worker


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


@pytest.mark.parametrize(
    ("sizes", "parts"),
    [
        ([], []),
        ([10] * 8, [[10] * 4, [10] * 4]),
        ([60, 50, 70, 30, 500, 1, 2], [[60], [50], [70, 30], [500], [1, 2]]),
    ],
)
def test_pieces_whose_order_counts_stay_beside_each_other(sizes, parts):
    pieces = [(size, size) for size in sizes]
    assert pack_in_order(pieces, at_once=2, target_bytes=100, least_bytes=1) == parts


def test_a_thousand_small_pieces_are_not_as_many_parts():
    pieces = [(number, 10) for number in range(1000)]
    parts = pack_in_order(pieces, at_once=2, target_bytes=100_000, least_bytes=1000)
    assert [len(part) for part in parts] == [100] * 10
    assert [number for part in parts for number in part] == [*range(1000)]


@pytest.mark.parametrize(
    ("last", "refused"), [((2**40, "+I"), "row 4"), ((5, "upsert"), "row 4 has 'upsert'")]
)
def test_a_refused_row_is_named_by_its_number_among_all_rows_of_the_task(tmp_path, last, refused):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.orders", [("id", "INT")], primary_key=["id"], options={"bucket": "2"}
    )
    rows = pa.table({"id": [1, 2, 3, 4, last[0]], "op": [*["+I"] * 4, last[1]]})
    batches = rows.to_batches(max_chunksize=3)

    pieces = split_rows._split(
        split_rows.to_send(table),
        lambda table, batches: batches,
        2,
        None,
        "op",
        routing_of(table),
        iter(batches),
    )

    with pytest.raises(lake.InvalidRequestError, match=rf"{refused}.*\(rows count from 0\)"):
        list(split_rows.read_pieces(table, pieces))


@pytest.mark.parametrize("kind", [lake.InvalidRequestError, lake.UnsupportedError])
def test_a_refusal_keeps_its_class(table, kind):
    def read_rows(table, batches):
        yield from batches
        raise kind("a row is deleted")

    routing = routing_of(table)
    sent = split_rows.to_send(table)
    pieces = split_rows._split(sent, read_rows, 2, None, None, routing, iter(()))
    with pytest.raises(kind, match=r"^a row is deleted$") as refused:
        list(split_rows.read_pieces(table, pieces))
    assert refused.type is kind


@pytest.fixture
def table(tmp_path):
    catalog = lake.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    return catalog.create_table(
        "shop.orders",
        [("id", "INT"), ("note", "STRING")],
        primary_key=["id"],
        options={"bucket": "4"},
    )


@pytest.mark.parametrize("is_shared", [False, True])
def test_each_task_gets_its_rows_in_order_through_spark_or_a_file(table, tmp_path, is_shared):
    directory = tmp_path / "shared"
    directory.mkdir()
    ids = pa.array([7, 1, 7, 3, 2, 7, 9, 1], pa.int32())
    rows = pa.record_batch({"id": ids, "note": list("abcdefgh")})
    batches = [rows.slice(0, 5), rows.slice(5)]

    pieces = [
        *split_rows._split(
            split_rows.to_send(table),
            lambda table, batches: batches,
            3,
            str(directory) if is_shared else None,
            None,
            routing_of(table),
            iter(batches),
        )
    ]

    got = {task: [] for task in range(3)}
    for piece in pieces:
        for part in split_rows.read_pieces(table, iter([piece])):
            got[piece["task"][0].as_py()] += part.to_pylist()
    tasks_of = {row["id"]: {task for task in got if row in got[task]} for row in rows.to_pylist()}
    assert {len(tasks) for tasks in tasks_of.values()} == {1}
    assert len(set.union(*tasks_of.values())) > 1
    for task, mine in got.items():
        expected = [row for row in rows.to_pylist() if tasks_of[row["id"]] == {task}]
        assert sorted(mine, key=itemgetter("id")) == sorted(expected, key=itemgetter("id"))
    sent = sum(len(piece["rows"][0].as_py() or b"") for piece in pieces)
    kept = [path.stat().st_size for path in directory.iterdir()]
    assert (sent > 0, len(kept)) == ((False, 1) if is_shared else (True, 0))


@pytest.mark.parametrize("bucket", ["4", "-2"])
def test_rows_of_a_key_stay_in_order_from_piece_to_piece_and_keys_are_sorted_in_each(
    table, tmp_path, bucket, monkeypatch
):
    monkeypatch.setattr(split_rows, "_HELD_BYTES", 4_000)
    keys = np.random.default_rng(1).integers(0, 50, 2_000).astype(np.int32)
    rows = pa.record_batch({"id": keys, "note": [f"{number:04}" for number in range(len(keys))]})
    batches = [rows.slice(start, 100) for start in range(0, len(keys), 100)]
    options = {**table.schema.options, "bucket": bucket}
    catalog = lake.open_catalog(str(tmp_path / "warehouse"))
    other = catalog.create_table(
        "shop.other", table.schema.arrow_schema(), primary_key=["id"], options=options
    )

    pieces = [
        [row for part in split_rows.read_pieces(other, iter([piece])) for row in part.to_pylist()]
        for piece in split_rows._split(
            split_rows.to_send(other),
            lambda table, batches: batches,
            4,
            None,
            None,
            routing_of(other),
            iter(batches),
        )
    ]

    assert len(pieces) > 8
    assert all(rises(row["id"] for row in piece) for piece in pieces)
    for key in range(50):
        mine = [row["note"] for piece in pieces for row in piece if row["id"] == key]
        assert mine == [f"{number:04}" for number in np.flatnonzero(keys == key)]


def through_pieces(table, *batches):
    """The rows of all pieces of a task, piece after piece."""
    pieces = split_rows._split(
        split_rows.to_send(table),
        lambda table, batches: batches,
        1,
        None,
        None,
        routing_of(table),
        iter(batches),
    )
    parts = split_rows.read_pieces(table, pieces)
    return [row for part in parts for row in part.to_pylist()]


def test_pieces_for_a_mixed_table_have_the_bytes_of_uuids(tmp_path):
    catalog = lake.open_catalog(str(tmp_path / "lake"), format="iceberg")
    catalog.create_database("shop")
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), ("code", pa.uuid())])
    table = catalog.create_table("shop.ids", columns, format="mixed", primary_key=["id"])
    given = pa.record_batch({"id": [1], "code": pa.array([bytes(16)], pa.uuid())})
    assert through_pieces(table, given) == [{"id": 1, "code": bytes(16)}]


def test_rows_of_keys_that_cross_partitions_stay_in_order_whatever_their_partition(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    columns = [("id", "INT"), ("dt", "STRING"), ("note", "STRING")]
    table = catalog.create_table("shop.moving", columns, primary_key=["id"], partition_by=["dt"])
    rows = [(2, "A", "x"), (1, "B", "first"), (1, "A", "second")]

    batch = pa.RecordBatch.from_pylist(
        [dict(zip(("id", "dt", "note"), row, strict=True)) for row in rows],
        pa.schema([("id", pa.int32()), ("dt", pa.string()), ("note", pa.string())]),
    )

    assert [row["note"] for row in through_pieces(table, batch)] == ["x", "first", "second"]


def test_dictionaries_with_narrow_numbers_are_brought_together(table):
    batches = [
        pa.record_batch(
            {
                "id": pa.array(range(start, start + 100), pa.int32()),
                "note": pa.DictionaryArray.from_arrays(
                    pa.array(range(100), pa.int8()), [f"{start + n}" for n in range(100)]
                ),
            }
        )
        for start in (0, 100)
    ]

    found = through_pieces(table, *batches)

    assert {row["id"]: row["note"] for row in found} == {n: str(n) for n in range(200)}


def test_rows_that_do_not_fit_into_one_piece_of_memory_go_by_pieces_of_their_own(
    table, monkeypatch
):
    monkeypatch.setattr(split_rows, "_MOST_BYTES", 2_000)
    batches = [
        pa.record_batch({"id": pa.array(ids, pa.int32()), "note": ["x" * width] * len(ids)})
        for ids, width in (([1, 2], 10), ([3], 1_990), ([4, 5], 5_000))
    ]

    found = through_pieces(table, *batches)

    assert sorted((row["id"], len(row["note"])) for row in found) == [
        (1, 10),
        (2, 10),
        (3, 1_990),
        (4, 5_000),
        (5, 5_000),
    ]


def rises(numbers):
    return all(one <= other for one, other in pairwise(numbers))


def test_a_disk_without_room_is_named_with_what_helps(table):
    writer = PieceWriter("/dev/null/nowhere")

    with pytest.raises(lake.UnavailableError, match=r"/dev/null/nowhere.*set TMPDIR"):
        writer.pack(pa.table({"id": pa.array([1], pa.int32()), "note": ["a"]}))


def test_a_prepared_worker_still_imports_from_archives_it_no_longer_looks_into(
    tmp_path, monkeypatch
):
    archive = tmp_path / "shipped.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("shipped_first.py", "VALUE = 1")
        made.writestr("shipped_later.py", "VALUE = 2")
    monkeypatch.syspath_prepend(str(archive))
    first = importlib.import_module("shipped_first")
    assert str(archive) in sys.path_importer_cache
    pool = pa.default_memory_pool()
    worker._prepare_once.cache_clear()  # this process may have been a worker of an earlier test

    try:
        prepare_worker()
        assert str(archive) not in sys.path_importer_cache
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()
        pa.set_memory_pool(pool)

    assert first.VALUE + importlib.import_module("shipped_later").VALUE == 3


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be asked to keep it")
def test_a_prepared_worker_has_the_memory_of_a_task_for_the_next_one():
    program = """
import resource
import numpy as np
import pyarrow as pa
from spark_jobs.frames.worker import prepare_worker

def faults_of_task(buffers):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    held = [pa.allocate_buffer(10 << 20) for _ in range(buffers)]
    for each in held:
        np.frombuffer(each, np.uint8)[::4096] = 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def bytes_in_memory():
    pages = int(open("/proc/self/statm").read().split()[1])
    return pages * resource.getpagesize()

prepare_worker()
faults = [faults_of_task(buffers=8) for _ in range(20)]
before = bytes_in_memory()
faults_of_task(buffers=60)
prepare_worker()
more = bytes_in_memory() - before
for _ in range(20):
    prepare_worker()
    faults.append(faults_of_task(buffers=8))
print(faults[0], max(faults[19], faults[-1]), more)
"""
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    first, last, more = map(int, answer.stdout.split())
    assert last < first / 10
    assert more < 100 << 20, "of 600 MB most go back"
