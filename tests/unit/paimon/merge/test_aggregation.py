"""Engine ``aggregation``: the merge of rows of one key, for any functions."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from lakeformat import InvalidRequestError
from lakeformat.paimon.merge.aggregation import Aggregation
from lakeformat.paimon.merge.order import MergeOrder
from lakeformat.paimon.schema import TableSchema, new_schema
from tests.merge_model import MergeModel
from tests.sampling import SEED, count

KINDS = ("+I", "-U", "+U", "-D")
COLUMNS = [
    ("k", "INT"),
    ("s", "SMALLINT"),
    ("m", "INT"),
    ("f", "STRING"),
    ("l", "STRING"),
    ("n", "INT"),
    ("c", "ARRAY<INT>"),
    ("t", "INT"),
]
FUNCTIONS = {
    "fields.s.aggregate-function": "sum",
    "fields.m.aggregate-function": "max",
    "fields.m.ignore-retract": "true",
    "fields.f.aggregate-function": "first_non_null_value",
    "fields.f.ignore-retract": "true",
    "fields.l.aggregate-function": "listagg",
    "fields.l.ignore-retract": "true",
    "fields.c.aggregate-function": "collect",
    "sequence.field": "t",
}
REMOVING = {"aggregation.remove-record-on-delete": "true"}


def table(**options: str) -> TableSchema:
    given = {"bucket": "1", "merge-engine": "aggregation"}
    given |= {key.replace("__", ".").replace("_", "-"): text for key, text in options.items()}
    return schema([("k", "INT"), ("v", "INT")], given)


def schema(columns: list[tuple[str, str]], options: dict[str, str]) -> TableSchema:
    return new_schema(columns, primary_key=["k"], options=options, time_millis=0)


def merged(of: TableSchema, changes: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, Any]]:
    """One merge: the rows that come out with their kinds, system columns left out."""
    arrow = of.arrow_schema()
    rows = pa.Table.from_pylist([row for _, row in changes], arrow)
    rows = rows.append_column("_SEQUENCE_NUMBER", pa.array(range(len(changes)), pa.int64()))
    kinds = [KINDS.index(kind) for kind, _ in changes]
    rows = rows.append_column("_VALUE_KIND", pa.array(kinds, pa.int8()))
    order = MergeOrder(("k",), of.table_options.sequence_field)
    result = Aggregation.of_schema(of).merge(rows, order.group(rows))
    assert result.schema == rows.schema
    return [
        (KINDS[row.pop("_VALUE_KIND")], {n: v for n, v in row.items() if n != "_SEQUENCE_NUMBER"})
        for row in result.to_pylist()
    ]


@pytest.mark.parametrize("options", [FUNCTIONS, {"sequence.field": "t"}], ids=("functions", "none"))
@pytest.mark.parametrize("has_deletes", [False, True], ids=("adds", "retracts"))
@pytest.mark.parametrize("seed", range(SEED, SEED + count(4, whole=15)))
def test_a_merge_is_what_the_model_makes_of_each_key(
    options: dict[str, str], has_deletes: bool, seed: int
) -> None:
    r = random.Random(seed)
    of = schema(COLUMNS, {"bucket": "1", "merge-engine": "aggregation", **options})
    changes = [(drawn_kind(r, has_deletes), drawn_row(r)) for _ in range(r.randint(1, 120))]
    assert merged(of, changes) == modelled(of, changes)


@pytest.mark.parametrize("seed", range(SEED, SEED + count(4, whole=15)))
def test_deletes_that_remove_the_row_are_as_in_the_model(seed: int) -> None:
    r = random.Random(seed)
    functions = {k: v for k, v in FUNCTIONS.items() if not k.endswith("ignore-retract")}
    of = schema(COLUMNS, {"bucket": "1", "merge-engine": "aggregation", **functions, **REMOVING})
    kinds = ("+I", "+U", "-D")
    changes = [(r.choice(kinds), drawn_row(r)) for _ in range(r.randint(1, 120))]
    assert merged(of, changes) == modelled(of, changes)


def modelled(of: TableSchema, changes: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, Any]]:
    types = dict(COLUMNS)
    model = MergeModel(types, ["k"], of.options)
    model.write(changes)
    return [(kind, row) for _, (_, kind, row) in sorted(model.runs[0].items())]


def drawn_kind(r: random.Random, has_deletes: bool) -> str:
    return r.choice(KINDS) if has_deletes else r.choice(("+I", "+U"))


def drawn_row(r: random.Random) -> dict[str, Any]:
    def maybe(value: Any) -> Any:
        return None if r.random() < 0.3 else value

    return {
        "k": r.randint(0, 12),
        "s": maybe(r.randint(-99, 99)),
        "m": maybe(r.randint(-5, 5)),
        "f": maybe(r.choice("abc")),
        "l": maybe(r.choice("abc")),
        "n": maybe(r.randint(0, 9)),
        "c": maybe([r.randint(0, 3) for _ in range(r.randint(0, 3))]),
        "t": maybe(r.randint(0, 9)),
    }


def test_a_row_alone_keeps_its_kind_and_values() -> None:
    of = table(fields__v__aggregate_function="sum")
    assert merged(of, [("-D", {"k": 1, "v": 4})]) == [("-D", {"k": 1, "v": 4})]
    assert merged(of, [("-U", {"k": 1, "v": 4})]) == [("-U", {"k": 1, "v": 4})]


def test_an_array_alone_keeps_what_a_set_would_drop() -> None:
    options = {"fields.v.aggregate-function": "collect", "fields.v.distinct": "true"}
    of = schema([("k", "INT"), ("v", "ARRAY<INT>")], {"merge-engine": "aggregation", **options})
    alone = ("+I", {"k": 1, "v": [3, 3]})
    met = [("+I", {"k": 2, "v": [3, 3]}), ("+I", {"k": 2, "v": [3]})]
    assert merged(of, [alone, *met]) == [alone, ("+I", {"k": 2, "v": [3]})]


def test_retracts_that_meet_come_out_as_an_insert() -> None:
    of = table(fields__v__aggregate_function="sum")
    both = [("-D", {"k": 1, "v": 4}), ("-U", {"k": 1, "v": 5})]
    assert merged(of, both) == [("+I", {"k": 1, "v": -9})]


def test_no_rows_merge_into_no_rows() -> None:
    assert merged(table(fields__v__aggregate_function="sum"), []) == []


def test_an_overflow_names_column_and_key() -> None:
    of = table(fields__v__aggregate_function="sum")
    rows = [("+I", {"k": 7, "v": 2**31 - 1}), ("+I", {"k": 7, "v": 1})]
    with pytest.raises(InvalidRequestError, match=r"^key k = 7, column 'v': the sum does not fit"):
        merged(of, rows)


def test_a_sum_fails_at_the_first_step_that_overflows_even_if_the_whole_fits() -> None:
    of = table(fields__v__aggregate_function="sum")
    values = (2**31 - 1, 1, -5)
    with pytest.raises(InvalidRequestError, match="does not fit"):
        merged(of, [("+I", {"k": 7, "v": value}) for value in values])


def test_a_retract_no_function_takes_names_column_function_and_key() -> None:
    of = table(fields__v__aggregate_function="max")
    rows = [("+I", {"k": 7, "v": 1}), ("-D", {"k": 7, "v": 1})]
    with pytest.raises(InvalidRequestError, match=r"key k = 7, .*'v'.*'max'.*ignore-retract"):
        merged(of, rows)


def test_only_columns_that_are_read_are_aggregated() -> None:
    engine = Aggregation.of_schema(schema(COLUMNS, {"merge-engine": "aggregation", **FUNCTIONS}))
    assert engine.needs(["s", "c"]) == ("s", "c")


def test_a_hot_key_with_deletes_is_merged_row_by_row() -> None:
    of = table(fields__v__aggregate_function="sum")
    changes = [("-D" if i % 3 == 2 else "+I", {"k": 1, "v": i % 7}) for i in range(3_000)]
    expected = sum(-row["v"] if kind == "-D" else row["v"] for kind, row in changes)
    assert merged(of, changes) == [("+I", {"k": 1, "v": expected})]


def test_infinities_that_meet_in_a_sum_are_no_number():
    of = schema(
        [("k", "INT"), ("v", "DOUBLE")],
        {"bucket": "1", "merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
    )
    removing = [("+I", {"k": 1, "v": float("inf")}), ("-D", {"k": 1, "v": float("inf")})]
    [(kind, row)] = merged(of, removing)
    assert (kind, repr(row["v"])) == ("+I", "nan")


@pytest.mark.parametrize("blank", ["", " "])
def test_a_blank_text_that_a_delete_left_stays_until_there_is_more(blank: str) -> None:
    options = {
        "fields.v.aggregate-function": "listagg",
        "aggregation.remove-record-on-delete": "true",
    }
    of = schema([("k", "INT"), ("v", "STRING")], {"merge-engine": "aggregation", **options})

    def texts(*later: str | None) -> str | None:
        rows = [("+I", {"k": 1, "v": "x"}), ("-D", {"k": 1, "v": blank})]
        rows += [("+I", {"k": 1, "v": text}) for text in later]
        [(_, row)] = merged(of, rows)
        return row["v"]

    assert texts("", None, " ") == blank
    assert texts("", "a", " ", "b") == "a,b"
