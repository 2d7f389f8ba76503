"""Append tables with partitions and buckets: each row in its place, in the order it came."""

from __future__ import annotations

import datetime
import decimal
import itertools
from contextlib import contextmanager

import numpy
import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.binary_row import encode_row, hash_row
from lakeformat.paimon.datafile import rolling_writer
from lakeformat.storage import LocalStorage
from lakeformat.types.types import TypeName, atomic

BUFFERED = {"write-buffer-for-append": "true"}
SPILLED = {**BUFFERED, "write-buffer-size": "1 kb"}
FLUSHED = {**SPILLED, "write-buffer-spillable": "false"}
WAYS = {"as they come": {}, "from memory": BUFFERED, "from disk": SPILLED, "flushed": FLUSHED}


def directories(table: lake.Table) -> list[str]:
    found = table.system_table("files").scan(["file_path"]).to_arrow()["file_path"].to_pylist()
    root = table.location.removeprefix("file://") + "/"
    return sorted({path.split(root)[-1].rpartition("/")[0] for path in found})


def test_rows_go_to_the_directories_of_their_partitions(catalog):
    table = catalog.create_table(
        "shop.logs", [("dt", "DATE"), ("h", "INT"), ("v", "STRING")], partition_by=["dt", "h"]
    )
    days = [datetime.date(2024, 1, day) for day in (1, 2, 1, 1)]
    rows = pa.table({"dt": days, "h": pa.array([1, 1, None, 1], "int32"), "v": list("abcd")})
    report = table.write(rows)
    assert report.files == 3
    assert directories(table) == [
        "dt=19723/h=1/bucket-0",
        "dt=19723/h=__DEFAULT_PARTITION__/bucket-0",
        "dt=19724/h=1/bucket-0",
    ]
    assert sorted(table.scan(["v"]).to_arrow()["v"].to_pylist()) == list("abcd")


@pytest.mark.parametrize(
    ("type_text", "values"),
    [
        ("DOUBLE", [0.0, -0.0, float("nan"), None, 1.5]),
        ("FLOAT", [0.0, -0.0, None]),
        ("BOOLEAN", [True, False, None]),
        ("STRING", ["", " ", None, "a/b", "ü"]),
        ("DECIMAL(20, 2)", [None, decimal.Decimal(1), decimal.Decimal(-1)]),
        ("TIMESTAMP(3)", [datetime.datetime(2024, 1, 1), None]),
    ],
)
def test_a_partition_is_one_exact_value(catalog, type_text, values):
    table = catalog.create_table("shop.p", [("p", type_text), ("n", "INT")], partition_by=["p"])
    kind = table.schema.arrow_schema().field("p").type
    column = pa.array([*values, *values], kind)
    assert table.write(pa.table({"p": column, "n": range(len(column))})).files == len(values)
    found = table.scan().to_arrow().sort_by("n")["p"].to_pylist()
    assert repr(found) == repr(column.to_pylist())


@pytest.mark.parametrize("way", WAYS)
def test_rows_of_a_bucket_keep_their_order_and_are_numbered(catalog, way):
    options = {"bucket": "4", "bucket-key": "k", **WAYS[way]}
    table = catalog.create_table("shop.queue", [("k", "INT"), ("n", "INT")], options=options)
    random = numpy.random.default_rng(7)
    expected: dict[int, list[int]] = {bucket: [] for bucket in range(4)}
    number = 0
    for _ in range(2):
        batches = []
        for _ in range(5):
            keys = random.integers(0, 50, 100).astype(numpy.int32)
            numbers = numpy.arange(number, number + 100, dtype=numpy.int32)
            number += 100
            batches.append(pa.table({"k": keys, "n": numbers}))
            for key, row in zip(keys.tolist(), numbers.tolist(), strict=True):
                row_hash = hash_row(encode_row([key], [atomic(TypeName.INT)]))
                expected[abs(row_hash) % 4].append(row)
        table.write(batches)
    columns = ["bucket", "min_sequence_number", "max_sequence_number"]
    numbered = table.system_table("files").scan(columns).to_arrow().to_pylist()
    for bucket, rows in expected.items():
        ranges = sorted(tuple(f.values())[1:] for f in numbered if f["bucket"] == bucket)
        assert ranges[0][0] == 0
        assert ranges[-1][1] == len(rows) - 1
        assert all(a[1] + 1 == b[0] for a, b in itertools.pairwise(ranges))
    found = table.scan(["n"]).to_arrow()["n"].to_pylist()
    place_of = {row: bucket for bucket, rows in expected.items() for row in rows}
    for bucket, rows in expected.items():
        assert [row for row in found if place_of[row] == bucket] == rows


@pytest.mark.parametrize("way", WAYS)
def test_many_partitions_have_one_file_open_at_a_time(catalog, way, monkeypatch):
    table = catalog.create_table(
        "shop.many", [("p", "INT"), ("n", "INT")], partition_by=["p"], options=WAYS[way]
    )
    rows = [
        pa.table({"p": numpy.arange(20, dtype=numpy.int32), "n": pa.array([n] * 20, pa.int32())})
        for n in range(10)
    ]
    report = table.write(rows)
    assert report.rows == 200
    assert way == "flushed" or report.files == 20
    found = table.scan().to_arrow()
    for partition in (0, 19):
        mine = found.filter(pa.compute.equal(found["p"], partition))
        assert mine["n"].to_pylist() == list(range(10))


def test_no_more_files_are_open_than_an_option_says(catalog, monkeypatch):
    is_open, most = 0, 0
    opened = LocalStorage.open_output

    @contextmanager
    def counted(storage, path):
        nonlocal is_open, most
        with opened(storage, path) as stream:
            is_open += 1
            most = max(most, is_open)
            yield stream
            is_open -= 1

    table = catalog.create_table(
        "shop.many",
        [("p", "INT"), ("n", "INT")],
        partition_by=["p"],
        options={"write-max-writers-to-spill": "3"},
    )
    monkeypatch.setattr(LocalStorage, "open_output", counted)
    monkeypatch.setattr(rolling_writer, "ROW_GROUP_ROWS", 1)  # a file is opened with its first row
    table.write([pa.table({"p": [p], "n": [n]}) for n in range(3) for p in range(20)])
    assert most == 4


def test_rows_behind_the_limit_of_open_files_follow_those_before_it(catalog):
    table = catalog.create_table(
        "shop.two",
        [("p", "INT"), ("n", "INT")],
        partition_by=["p"],
        options={"write-max-writers-to-spill": "2"},
    )
    pieces = [(1, 0), (2, 1), (3, 2), (1, 3), (2, 4), (3, 5)]
    report = table.write([pa.table({"p": [p], "n": [n]}) for p, n in pieces])
    assert report.files == 3
    found = table.scan().to_arrow().to_pylist()
    assert {p: [r["n"] for r in found if r["p"] == p] for p in (1, 2, 3)} == {
        1: [0, 3],
        2: [1, 4],
        3: [2, 5],
    }


@pytest.mark.parametrize("kind", ["-U", "-D"])
def test_nothing_can_be_taken_back_from_a_table_without_a_key(catalog, tmp_path, kind):
    table = catalog.create_table("shop.logs", [("n", "INT")])
    with pytest.raises(lake.InvalidRequestError, match=f"row 2 is {kind}, .* no primary key"):
        table.write([pa.table({"n": [1, 2]}), pa.table({"n": [3]})], ["+I", "+U", kind])
    assert list(tmp_path.rglob("*.parquet")) == []


def test_a_table_that_hashes_whole_rows_is_not_written(catalog, tmp_path):
    options = {"bucket": "2", "bucket-key": "n"}
    table = catalog.create_table("shop.old", [("n", "INT")], options=options)
    schema_file = tmp_path / "shop.db" / "old" / "schema" / "schema-0"
    schema_file.write_text(schema_file.read_text().replace('"bucket-key"', '"commit.user-prefix"'))
    with pytest.raises(lake.UnsupportedError, match="sets no 'bucket-key'"):
        lake.open_table(table.location).write(pa.table({"n": [1]}))


def test_an_overwrite_of_a_partition_leaves_the_others(catalog):
    table = catalog.create_table("shop.logs", [("p", "STRING"), ("n", "INT")], partition_by=["p"])
    table.write(pa.table({"p": ["a", "b"], "n": [1, 2]}))
    table.write(pa.table({"p": ["a"], "n": [3]}), overwrite={"p": "a"})
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == [2, 3]
    with pytest.raises(lake.InvalidRequestError, match="row 0 is in partition p=b, which this"):
        table.write(pa.table({"p": ["b"], "n": [3]}), overwrite={"p": "a"})
