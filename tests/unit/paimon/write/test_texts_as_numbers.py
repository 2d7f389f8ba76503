"""Rows on their way to another writer: texts may come as dictionaries, and are checked once."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from lakeformat.files.foreign.rows import read_rows
from lakeformat.paimon.write import input_columns
from lakeformat.paimon.write.input_columns import TEXTS_AS_NUMBERS, InputColumns
from lakeformat.paimon.write.passthrough_columns import texts_as_numbers

COLUMNS = [
    ("id", "STRING NOT NULL"),
    ("dt", "STRING NOT NULL"),
    ("age", "STRING"),
    ("note", "STRING"),
    ("short", "VARCHAR(5)"),
    ("must", "STRING NOT NULL"),
    ("number", "INT"),
]


@pytest.fixture
def make(keyed_table):
    return partial(keyed_table, (("id", "BIGINT"), ("note", "STRING")))


def conformed(table, ids, notes):
    """A batch as the reader of a file leaves it; notes may be a dictionary."""
    given = pa.RecordBatch.from_arrays([pa.array(ids, pa.int64()), notes], names=["id", "note"])
    return InputColumns(table.schema.fields, texts_as_numbers(table.schema))(given)


def content(table):
    found = table.scan().to_arrow().to_pylist()
    return {row["id"]: row["note"] for row in found}


def test_columns_nobody_looks_into_may_be_numbers(keyed_table):
    table = keyed_table(COLUMNS, ("id", "dt"), **{"sequence.field": "age"})

    assert texts_as_numbers(table.schema) == {"note"}


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        (("id",), {"merge_engine": "aggregation"}),
        (("id",), {"file.format": "orc"}),
        (("id",), {"file.format.per.level": "0:avro"}),
        (("id",), {"bucket": "-1"}),
        ((), {"bucket_key": "id"}),
    ],
)
def test_no_column_may_where_texts_are_looked_at_or_written_one_by_one(make, keys, options):
    assert texts_as_numbers(make(keys=keys, **options).schema) == frozenset()


def test_small_dictionaries_stay_and_others_become_texts(make):
    table = make()
    small = pa.array(["a", None, "a"]).dictionary_encode()
    large = pa.array([f"{n:0>100}" for n in range(1000)]).dictionary_encode()
    wide = small.cast(pa.dictionary(pa.int64(), pa.string()))

    assert conformed(table, range(3), small)["note"].type == TEXTS_AS_NUMBERS
    assert conformed(table, range(1000), large)["note"].type == pa.string()
    assert conformed(table, range(3), wide)["note"].type == pa.string()
    assert InputColumns(table.schema.fields)(conformed(table, range(3), small))["note"].type == (
        pa.string()
    )


def test_a_text_in_a_dictionary_that_is_none_is_refused_with_its_row(make):
    broken = pa.array([b"fine", b"\xff"]).cast(pa.binary()).view(pa.string())
    notes = pa.DictionaryArray.from_arrays(pa.array([0, 0, 1], pa.int32()), broken)

    with pytest.raises(lake.InvalidRequestError, match=r"'note'.*the first .*in row 2"):
        conformed(make(), range(3), notes)


@pytest.mark.parametrize("spilled", [False, True])
def test_dictionaries_that_differ_and_texts_meet_in_one_writer(make, spilled):
    table = make(write_buffer_size="1 kb" if spilled else "256 mb")
    plain = [*"abc" * 100, None]
    other = [*"cde" * 100, None]
    batches = [
        conformed(table, range(301), pa.array(plain).dictionary_encode()),
        conformed(table, range(200, 501), pa.array(other).dictionary_encode()),
        conformed(table, range(400, 701), pa.array(plain)),
    ]

    with table.new_writer() as writer:
        writer.write(batches, checked=True)
        table.commit(writer.prepare())

    expected = dict(zip(range(301), plain, strict=True))
    expected |= zip(range(200, 501), other, strict=True)
    expected |= zip(range(400, 701), plain, strict=True)
    assert content(table) == expected


def test_rows_are_looked_at_once(make, monkeypatch):
    table = make()
    rows = conformed(table, [1], pa.array(["a"]))
    looked_at = []
    monkeypatch.setattr(input_columns, "check_limits", lambda *given: looked_at.append(given))

    with table.new_writer() as writer:
        writer.write(rows, checked=True)
        assert looked_at == []
        writer.write(rows)
        assert len(looked_at) == 2


def test_rows_that_only_claim_to_be_checked_are_brought_into_the_tables_columns(make):
    table = make()

    with table.new_writer() as writer:
        writer.write(pa.table({"note": ["a"], "id": pa.array([1], pa.int32())}), checked=True)
        table.commit(writer.prepare())

    assert content(table) == {1: "a"}


def test_a_file_gives_repeating_texts_as_dictionaries_where_that_is_asked_for(make, tmp_path):
    columns = make().schema.arrow_schema()
    ways = {}
    for name, notes in {
        "few": ["a", "b"] * 5000,
        "all": [f"{n:0>9}" for n in range(10000)],
    }.items():
        path = str(tmp_path / f"{name}.parquet")
        pq.write_table(pa.table({"id": range(10000), "note": notes}), path)
        for encoded in ((), ("note",)):
            [rows] = read_rows(str(path), "parquet", columns, encoded=encoded)
            assert rows["note"].to_pylist() == notes
            ways[name, encoded] = rows["note"].type == TEXTS_AS_NUMBERS

    assert ways == {
        ("few", ()): False,
        ("few", ("note",)): True,
        ("all", ()): False,
        ("all", ("note",)): False,
    }
