"""Merge engines that keep one whole row of a key: deduplicate and first-row."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.merge.deduplicate import Deduplicate
from lakeformat.paimon.merge.first_row import FirstRow
from lakeformat.paimon.merge.order import MergeOrder

KINDS = ("+I", "-U", "+U", "-D")


def merged(engine, *rows) -> list[tuple]:
    """Rows are (kind, key, value), in the order they came; results begin with the kind."""
    kinds, keys, values = zip(*rows, strict=True)
    table = pa.table(
        {
            "_SEQUENCE_NUMBER": pa.array(range(len(rows)), pa.int64()),
            "_VALUE_KIND": pa.array([KINDS.index(kind) for kind in kinds], pa.int8()),
            "k": pa.array(keys),
            "v": pa.array(values),
        }
    )
    result = engine.merge(table, MergeOrder(("k",)).group(table))
    assert result.schema == table.schema
    return [
        (KINDS[row["_VALUE_KIND"]], row["_SEQUENCE_NUMBER"], row["k"], row["v"])
        for row in result.to_pylist()
    ]


ROWS = [("+I", 1, "a"), ("+I", 2, "b"), ("+U", 1, None), ("-D", 2, "c"), ("-U", 3, "d")]


def test_the_last_row_stays_with_its_kind_and_its_nulls():
    kept = [("+U", 2, 1, None), ("-D", 3, 2, "c"), ("-U", 4, 3, "d")]
    assert merged(Deduplicate(), *ROWS) == kept


def test_deletes_that_are_ignored_hide_no_row():
    rows = [*ROWS, ("-D", 4, "e"), ("-U", 4, "f")]
    kept = [("+U", 2, 1, None), ("+I", 1, 2, "b"), ("-U", 4, 3, "d")]
    assert merged(Deduplicate(ignore_delete=True), *rows) == kept


def test_the_first_row_stays_also_if_it_is_null():
    rows = [("+I", 1, None), ("+I", 1, "b"), ("+I", 2, "c"), ("-D", 3, "alone")]
    kept = [("+I", 0, 1, None), ("+I", 2, 2, "c"), ("-D", 3, 3, "alone")]
    assert merged(FirstRow(), *rows) == kept


def test_a_delete_that_meets_a_row_is_refused_by_its_key():
    with pytest.raises(lake.InvalidRequestError, match=r"delete or .* key k = 2 .*'ignore-delete'"):
        merged(FirstRow(("k",)), *ROWS)


def test_the_first_row_that_is_not_ignored_stays():
    rows = [("-D", 1, "x"), ("+I", 1, "a"), ("-D", 2, "y"), ("-U", 2, "z"), ("+I", 1, "b")]
    assert merged(FirstRow(ignore_delete=True), *rows) == [("+I", 1, 1, "a")]
