"""Results of single aggregate functions beyond the model: texts, bitmaps, quotients, damage."""

from __future__ import annotations

import sys
from decimal import Context, Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from lakeformat import InvalidRequestError, UnsupportedError
from lakeformat.paimon.merge.functions.function import AggregateFunction
from lakeformat.paimon.merge.functions.long_bitmaps import (
    decode_long_bitmap,
    encode_long_bitmap,
    union_of_long_bitmaps,
)
from lakeformat.paimon.merge.functions.registry import aggregate_function
from lakeformat.paimon.options import TableOptions
from lakeformat.rows.groups import KeyGroups
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import DataField

ONE_KEY = np.zeros(1, np.int64)


def function(name: str, type_text: str, **options: str) -> AggregateFunction:
    given = {f"fields.v.{key.replace('_', '-')}": value for key, value in options.items()}
    return aggregate_function(name, DataField(0, "v", parse_type(type_text)), TableOptions(given))


def reduced(name: str, type_text: str, values: list[Any], **options: str) -> Any:
    column = pa.array(values, to_arrow_type(parse_type(type_text)))
    groups = KeyGroups(np.arange(len(values)), ONE_KEY)
    return function(name, type_text, **options).reduce(column, groups)[0]


def taken_back(name: str, type_text: str, values: list[Any], **options: str) -> Any:
    """All values added but the last, which is retracted."""
    column = pa.array(values, to_arrow_type(parse_type(type_text)))
    state = function(name, type_text, **options).accumulator(column, 1)
    for row in range(len(values) - 1):
        state.add(ONE_KEY, np.array([row]))
    state.retract(ONE_KEY, np.array([len(values) - 1]))
    return state.result()[0].as_py()


@pytest.mark.parametrize("blank", ["", " ", "\t\n\x0b\x1c ", "\u2003", "\u3000"])
def test_listagg_leaves_out_what_java_calls_blank(blank: str) -> None:
    assert reduced("listagg", "STRING", ["a", blank, "b"]).as_py() == "a,b"
    assert reduced("listagg", "STRING", [blank, "b", blank]).as_py() == "b"
    assert reduced("listagg", "STRING", [blank, None]).as_py() is None


@pytest.mark.parametrize("text", ["\u00a0", "\u2007", " x", "\u200b"])
def test_listagg_keeps_spaces_that_do_not_break(text: str) -> None:
    assert reduced("listagg", "STRING", ["a", text]).as_py() == f"a,{text}"


def test_listagg_takes_the_first_text_whole_and_drops_blank_tokens_of_others() -> None:
    values = ["a,a,,b", "c,, ,a,c", "d"]
    assert reduced("listagg", "STRING", values, distinct="true").as_py() == "a,a,,b,c,d"


def test_a_sum_of_doubles_adds_one_after_the_other() -> None:
    values = [1e16, 1.0, 1.0, -1e16] * 50
    expected = 0.0
    for value in values:
        expected += value
    assert reduced("sum", "DOUBLE", values).as_py() == expected


def test_a_short_decimal_may_outgrow_its_precision_as_in_java() -> None:
    values = [Decimal("99.99"), Decimal("0.01")]
    found = reduced("sum", "DECIMAL(4, 2)", values)
    assert found.as_py() == Decimal("100.00")


@pytest.mark.parametrize("sign", [1, -1])
def test_a_short_decimal_that_outgrows_64_bits_is_refused(sign: int) -> None:
    most = Decimal(sign * (10**18 - 1))
    assert reduced("sum", "DECIMAL(18, 0)", [most] * 9).as_py() == 9 * most
    with pytest.raises(InvalidRequestError, match=r"column 'v': the sum does not fit decimal128"):
        reduced("sum", "DECIMAL(18, 0)", [most] * 10)
    with pytest.raises(InvalidRequestError, match=r"column 'v': the sum does not fit decimal128"):
        taken_back("sum", "DECIMAL(18, 0)", [most] * 9 + [-most])


def test_a_sum_of_long_decimals_is_exact_over_all_their_digits() -> None:
    chance = Random(7)
    for digits in (19, 20, 28, 36):
        bound = 10**digits - 1
        values = [Decimal(chance.randint(-bound, bound)) for _ in range(50)]
        expected = Context(prec=60)
        total = Decimal(0)
        for value in values:
            total = expected.add(total, value)
        assert reduced("sum", "DECIMAL(38, 0)", values).as_py() == total


def test_a_long_decimal_that_overflows_is_null_and_begins_again() -> None:
    most = Decimal(10**20 - 1)
    assert reduced("sum", "DECIMAL(20, 0)", [most, Decimal(1)]).as_py() is None
    values = [most, Decimal(1), Decimal(5)]
    assert reduced("sum", "DECIMAL(20, 0)", values).as_py() == Decimal(5)


def test_a_product_of_decimals_rounds_every_step_half_up() -> None:
    values = [Decimal("0.5"), Decimal("0.5"), Decimal("0.5")]
    assert reduced("product", "DECIMAL(5, 1)", values).as_py() == Decimal("0.2")
    values[0] = -values[0]
    assert reduced("product", "DECIMAL(5, 1)", values).as_py() == Decimal("-0.2")


def test_a_product_is_divided_by_what_is_taken_back() -> None:
    assert taken_back("product", "INT", [-7, 2, 4]) == -3
    assert taken_back("product", "DOUBLE", [3.0, 0.0]) == float("inf")
    assert taken_back("product", "DECIMAL(5, 2)", [Decimal(1), Decimal(8)]) == Decimal("0.13")


@pytest.mark.parametrize("type_text", ["INT", "DECIMAL(5, 2)"])
def test_a_product_cannot_be_divided_by_zero(type_text: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"column 'v'.*product.*because the value is 0"):
        taken_back("product", type_text, [Decimal(3), Decimal(0)])


def test_a_product_of_decimals_cannot_be_divided_by_three() -> None:
    with pytest.raises(InvalidRequestError, match="infinitely many digits"):
        taken_back("product", "DECIMAL(5, 2)", [Decimal(1), Decimal(3)])
    assert taken_back("product", "DECIMAL(5, 2)", [Decimal(6), Decimal(3)]) == Decimal(2)


def test_an_entry_of_the_same_time_does_not_replace() -> None:
    maps = [[(1, {"x": i, "at": at})] for i, at in enumerate(("b", "b", "a", None))]
    found = reduced("merge_map_with_keytime", "MAP<INT, ROW<x INT, at STRING>>", maps).as_py()
    assert found == [(1, {"x": 0, "at": "b"})]


def test_arrays_that_begin_alike_are_different_elements() -> None:
    values = [[[1], [1, 2], []], [[1, 2], [1], [1, 2, 3]]]
    found = reduced("collect", "ARRAY<ARRAY<INT>>", values, distinct="true").as_py()
    assert found == [[1], [1, 2], [], [1, 2, 3]]


def test_rbm32_unites_portable_bitmaps() -> None:
    parts = [BitMap([1, 5]).serialize(), BitMap(range(5, 9)).serialize()]
    found = reduced("rbm32", "BYTES", [parts[0], None, parts[1]]).as_py()
    assert list(BitMap.deserialize(found)) == [1, 5, 6, 7, 8]


@pytest.mark.parametrize("name", ["rbm32", "rbm64", "hll_sketch", "theta_sketch"])
@pytest.mark.parametrize("damaged", [b"", b"\x07", b"nothing of the kind", b"\x01" * 40])
def test_damaged_objects_are_refused_by_column_and_function(name: str, damaged: bytes) -> None:
    with pytest.raises(InvalidRequestError, match=f"column 'v'.*{name}"):
        reduced(name, "BYTES", [damaged, damaged])


def test_a_bitmap_alone_stays_the_bytes_it_is() -> None:
    assert reduced("rbm32", "BYTES", [None, b"whatever"]).as_py() == b"whatever"


@pytest.mark.parametrize("children", [0, 1, 2, 4, 5, 16, 17, 48, 49, 200, 256])
@pytest.mark.parametrize("shift", [16, 24, 40, 56])
def test_long_bitmaps_keep_their_numbers_whatever_tree_they_need(children: int, shift: int) -> None:
    highs = np.arange(children, dtype=np.uint64) << np.uint64(shift)
    numbers = np.unique(np.concatenate([highs, highs + np.uint64(9), highs | np.uint64(1 << 16)]))
    assert np.array_equal(decode_long_bitmap(encode_long_bitmap(numbers)), numbers)


def test_long_bitmaps_keep_dense_containers_and_the_largest_numbers() -> None:
    numbers = np.append(np.arange(70_000, dtype=np.uint64), np.uint64(2**64 - 1))
    halves = [encode_long_bitmap(numbers[:40_000]), encode_long_bitmap(numbers[30_000:])]
    assert np.array_equal(decode_long_bitmap(union_of_long_bitmaps(halves)), numbers)


def test_long_bitmaps_are_read_with_runs() -> None:
    alone = encode_long_bitmap(np.arange(3, 8, dtype=np.uint64))
    values = b"\x01\x02\x05\x00\x00\x00" + np.arange(3, 8, dtype="<u2").tobytes()
    assert values in alone
    runs = b"\x01\x00\x05\x00\x00\x00" + np.array([1, 3, 4], "<u2").tobytes()
    assert decode_long_bitmap(alone.replace(values, runs)).tolist() == [3, 4, 5, 6, 7]


def test_sketches_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasketches", None)
    with pytest.raises(UnsupportedError, match=r"airflow-provider-lake\[sketches\]"):
        function("hll_sketch", "BYTES")


def test_a_null_in_a_nested_key_is_refused_where_asked() -> None:
    rows = [[{"id": 1}], [{"id": None}]]
    options = {"nested_key": "id", "nested_key_null_strategy": "error"}
    with pytest.raises(InvalidRequestError, match=r"column 'v'.*nested key \(id\)"):
        reduced("nested_update", "ARRAY<ROW<id INT>>", rows, **options)


@pytest.mark.parametrize(
    ("name", "type_text", "options", "message"),
    [
        ("summ", "INT", {}, "did you mean 'sum'"),
        ("count", "STRING", {}, "'count' takes INT or BIGINT"),
        ("sum", "STRING", {}, "'sum' takes numbers"),
        ("max", "ARRAY<INT>", {}, "whose values have an order"),
        ("listagg", "VARCHAR(9)", {}, r"STRING, not VARCHAR\(n\)"),
        ("bool_and", "INT", {}, "takes BOOLEAN"),
        ("collect", "INT", {}, "takes ARRAY"),
        ("merge_map", "INT", {}, "takes MAP"),
        ("merge_map_with_keytime", "MAP<INT, ROW<t STRING>>", {}, "two members"),
        ("merge_map_with_keytime", "MAP<INT, ROW<a INT, b INT>>", {}, "'b'.*STRING"),
        (
            "merge_map_with_keytime",
            "MAP<INT, ROW<a STRING, b INT>>",
            {"ts_field": "aa"},
            "not a member.*did you mean 'a'",
        ),
        ("nested_update", "ARRAY<INT>", {}, "ARRAY<ROW>"),
        ("nested_update", "ARRAY<ROW<a INT>>", {"nested_key": "b"}, "names 'b'"),
        ("nested_update", "ARRAY<ROW<a INT>>", {"nested_sequence_field": "a"}, "nested-key"),
        ("nested_update", "ARRAY<ROW<a INT>>", {"nested_key_null_strategy": "error"}, "needs"),
        (
            "nested_update",
            "ARRAY<ROW<a INT, b ARRAY<INT>>>",
            {"nested_key": "a", "nested_sequence_field": "b"},
            "has no order",
        ),
        ("nested_partial_update", "ARRAY<ROW<a INT>>", {}, "nested-key"),
        (
            "nested_partial_update",
            "ARRAY<ROW<a INT>>",
            {"nested_key": "a", "count_limit": "3"},
            "count-limit.*nested_update",
        ),
        ("rbm32", "BINARY(9)", {}, "takes VARBINARY"),
        ("listagg", "STRING", {"distinct": "true", "list_agg_delimiter": ""}, "empty"),
    ],
)
def test_what_a_function_cannot_take_is_refused_by_column(
    name: str, type_text: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidRequestError, match=message) as refusal:
        function(name, type_text, **options)
    assert "v" in str(refusal.value)
