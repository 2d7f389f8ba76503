"""Decimals that a writer never reads are written from 64 bits, with the same bytes."""

from __future__ import annotations

import io
from decimal import Decimal
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.files.parquet import writer as parquet_writer
from lakeformat.files.parquet.writer import ParquetFileWriter
from lakeformat.paimon.datafile.rolling_writer import file_content, table_of
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.write.input_columns import InputColumns
from lakeformat.paimon.write.passthrough_columns import (
    decimals_as_numbers,
)
from lakeformat.rows.lossless_cast import short_decimals, short_type
from lakeformat.types.arrow_types import in_full
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import DataField

COLUMNS = [
    ("id", "DECIMAL(10, 0) NOT NULL"),
    ("age", "DECIMAL(10, 0)"),
    ("price", "DECIMAL(18, 2)"),
    ("small", "DECIMAL(4, 1)"),
    ("wide", "DECIMAL(19, 2)"),
    ("must", "DECIMAL(18, 2) NOT NULL"),
    ("number", "BIGINT"),
]
PRICE = pa.decimal128(18, 2)
MOST = 10**18 - 1


@pytest.fixture
def make(keyed_table):
    return partial(keyed_table, (("id", "BIGINT"), ("price", "DECIMAL(18, 2)")))


def conformed(table, ids, prices):
    batch = pa.RecordBatch.from_arrays([pa.array(ids, pa.int64()), prices], names=["id", "price"])
    return InputColumns(table.schema.fields, decimals_as_numbers(table.schema))(batch)


def decimals(unscaled, kind=PRICE):
    values = [None if each is None else Decimal(each).scaleb(-kind.scale) for each in unscaled]
    return pa.array(values, kind)


def outgrown(unscaled, kind=PRICE):
    """Decimals whose types have no room for them, as Arrow lets a buffer hold them."""
    words = np.array([[number, number >> 63] for number in unscaled], "<i8")
    return pa.Array.from_buffers(kind, len(unscaled), [None, pa.py_buffer(words)])


def content(table):
    found = table.scan().to_arrow().to_pylist()
    return {row["id"]: row["price"] for row in found}


class TestWhichColumns:
    def test_those_nobody_looks_into_that_have_few_digits_and_may_be_null(self, keyed_table):
        table = keyed_table(COLUMNS, **{"sequence.field": "age"})

        assert decimals_as_numbers(table.schema) == {"price", "small"}

    def test_not_those_a_file_index_is_made_of(self, keyed_table):
        table = keyed_table(COLUMNS, **{"file-index.bsi.columns": "price"})

        assert decimals_as_numbers(table.schema) == {"age", "small"}

    @pytest.mark.parametrize(
        "options", [{"merge_engine": "partial-update"}, {"file.format": "avro"}, {"bucket": "-1"}]
    )
    def test_none_where_values_are_looked_at_or_written_one_by_one(self, make, options):
        assert decimals_as_numbers(make(**options).schema) == frozenset()


class TestRowsThatComeIn:
    @pytest.mark.parametrize("given", [PRICE, short_type(PRICE)])
    def test_decimals_become_short_whichever_way_they_come(self, make, given):
        prices = decimals([1, None, MOST, -MOST]).cast(given)

        rows = conformed(make(), range(4), prices)

        assert rows["price"].type == short_type(PRICE)
        assert rows["price"].cast(PRICE).equals(decimals([1, None, MOST, -MOST]))

    def test_those_of_a_slice_are_the_ones_of_the_slice(self):
        part = decimals([*range(99)])[50:53]
        assert short_decimals(part, PRICE).cast(PRICE).equals(decimals([50, 51, 52]))

    def test_of_other_columns_they_stay(self, make):
        batch = conformed(make(merge_engine="aggregation"), [1], decimals([1]))
        assert batch["price"].type == PRICE

    @pytest.mark.parametrize("number", [10**18, -(10**18), 2**62])
    def test_one_with_too_many_digits_is_refused_with_its_row(self, make, number):
        with pytest.raises(lake.InvalidRequestError, match=r"'price'.*the first .*in row 2"):
            conformed(make(), range(3), outgrown([1, 2, number]))

    @pytest.mark.parametrize("number", [10**18, -(10**18), 2**62])
    def test_so_is_a_short_one(self, make, number):
        words = pa.py_buffer(np.array([1, 2, number], "<i8"))
        short = pa.Array.from_buffers(short_type(PRICE), 3, [None, words])

        with pytest.raises(lake.InvalidRequestError, match="'price'"):
            conformed(make(), range(3), short)

    def test_texts_as_numbers_are_no_decimals(self, make):
        with pytest.raises(lake.InvalidRequestError, match=r"'price' has type dictionary.*decimal"):
            conformed(make(), [1], pa.array(["1.00"]).dictionary_encode())

    def test_what_lies_below_a_null_does_not_matter(self, make):
        words = pa.py_buffer(np.array([[1, 0], [2**62, 7]], "<i8"))
        given = pa.Array.from_buffers(PRICE, 2, [pa.py_buffer(b"\1"), words])

        assert conformed(make(), range(2), given)["price"].to_pylist() == [Decimal("0.01"), None]


@pytest.mark.parametrize("spilled", [False, True])
def test_short_and_other_decimals_meet_in_one_writer(make, spilled):
    table = make(write_buffer_size="1 kb" if spilled else "256 mb")
    plain = decimals([*range(300), None])
    rows = conformed(table, range(200, 501), plain)
    full = pa.record_batch({"id": pa.array(range(301), pa.int64()), "price": plain})

    with table.new_writer() as writer:
        writer.write([full.cast(table.schema.arrow_schema()), rows], checked=True)
        table.commit(writer.prepare())

    prices = plain.to_pylist()
    expected = dict(zip(range(301), prices, strict=True))
    expected |= zip(range(200, 501), prices, strict=True)
    assert content(table) == expected


def test_batches_of_one_file_that_differ_are_full_decimals():
    batches = [pa.record_batch({"price": decimals([n])}) for n in (1, 2)]
    short = batches[1].cast(pa.schema([("price", short_type(PRICE))]))

    assert table_of([batches[0], short]).equals(pa.Table.from_batches(batches))


class TestFiles:
    """The same to the last byte, with any encoder of a column."""

    def written(self, rows: pa.Table, digits: tuple[int, int], *, here: bool):
        field = DataField(0, "price", parse_type(f"DECIMAL({digits[0]}, {digits[1]})"))
        options = TableOptions({})
        stream = io.BytesIO()
        with pytest.MonkeyPatch.context() as choice:
            choice.setattr(parquet_writer, "WORTH_ASSEMBLING", 0)
            choice.setattr(parquet_writer, "is_worth_assembling", lambda *_: here)
            writer = ParquetFileWriter(stream, file_content((field,), options))
            writer.write(rows)
            statistics = writer.close()
        return stream.getvalue(), statistics

    def check(self, unscaled, digits):
        column = decimals(unscaled, pa.decimal128(*digits))
        full = pa.table({"price": column})
        short = pa.table({"price": column.cast(short_type(column.type))})
        expected = self.written(full, digits, here=False)
        for here in (False, True):
            assert self.written(short, digits, here=here) == expected

    @given(
        data=st.data(),
        digits=st.sampled_from([(1, 0), (4, 1), (9, 9), (10, 0), (18, 2), (18, 18)]),
    )
    def test_of_any_decimals_and_nulls(self, data, digits):
        most = 10 ** digits[0] - 1
        number = st.none() | st.integers(-most, most) | st.sampled_from([0, most, -most])
        self.check(data.draw(st.lists(number, min_size=1, max_size=50)), digits)

    @pytest.mark.parametrize("digits", [(9, 2), (18, 2)])
    @pytest.mark.parametrize("values", ["constant", "few", "all differ"])
    def test_of_several_pages(self, digits, values):
        distinct = {"constant": 1, "few": 7, "all differ": 10**8}[values]
        numbers = np.random.default_rng(1).integers(0, distinct, 50_000) + 5
        self.check(numbers.tolist(), digits)


def test_only_what_has_at_most_18_digits_is_short():
    assert short_type(pa.decimal128(18, 18)) == pa.decimal64(18, 18)
    assert short_type(pa.decimal128(19, 0)) is None
    assert short_type(pa.int64()) is None
    assert in_full(pa.decimal64(18, 18)) == pa.decimal128(18, 18)
    assert in_full(pa.int64()) == pa.int64()
