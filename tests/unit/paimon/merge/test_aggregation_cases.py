"""The golden cases of engine ``aggregation``, merged as a read does: every commit is a run."""

from __future__ import annotations

from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
import pytest

from lakeformat import LakeError
from lakeformat.paimon.aggregate_rules import check_aggregation
from lakeformat.paimon.merge.aggregation import Aggregation
from lakeformat.paimon.merge.order import MergeOrder
from lakeformat.paimon.schema import TableSchema
from tests.golden.tables import HOW_TO_UNSKIP
from tests.golden_cases import GoldenCase, golden_cases

KINDS = ("+I", "-U", "+U", "-D")
COUNTED = "agg-034"
"""Rows are counted when they are written, which only a whole table does."""
CASES = [case for case in golden_cases() if case.id.startswith("agg-") and case.id != COUNTED]


@pytest.mark.skipif(not CASES, reason=HOW_TO_UNSKIP)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_merge_gives_what_java_gives(case: GoldenCase) -> None:
    if "error" in case.expected:
        with pytest.raises(LakeError):
            read(case)
        return
    assert readable(case, read(case)) == readable(case, case.table(expected_rows(case)))


def expected_rows(case: GoldenCase) -> list[dict[str, Any]]:
    return [case.row(values) for values in case.expected["rows"]]


def read(case: GoldenCase) -> pa.Table:
    """Each batch merged by itself, then the results with one another, adds alone kept."""
    schema = schema_of(case)
    check_aggregation(schema)
    engine = Aggregation.of_schema(schema)
    order = MergeOrder(tuple(case.primary_key))
    runs, number = [], 0
    for batch in case.batches:
        rows = case.table([row for _, row in batch.rows])
        numbers = np.arange(number, number + len(rows))
        number += len(rows)
        kinds = pa.array([KINDS.index(kind) for kind, _ in batch.rows], pa.int8())
        rows = rows.append_column("_SEQUENCE_NUMBER", pa.array(numbers, pa.int64()))
        rows = rows.append_column("_VALUE_KIND", kinds)
        runs.append(engine.merge(rows, order.group(rows)))
    every = pa.concat_tables(runs)
    merged = engine.merge(every, order.group(every))
    kept = np.isin(merged["_VALUE_KIND"].to_numpy(), (KINDS.index("+I"), KINDS.index("+U")))
    return merged.filter(pa.array(kept)).drop_columns(["_SEQUENCE_NUMBER", "_VALUE_KIND"])


def schema_of(case: GoldenCase) -> TableSchema:
    return TableSchema(0, case.fields, 1000, (), tuple(case.primary_key), case.options)


def readable(case: GoldenCase, rows: pa.Table) -> list[str]:
    """Rows as sorted texts; collections too if their order has no meaning."""
    return sorted(str({k: comparable(case, v) for k, v in row.items()}) for row in rows.to_pylist())


def comparable(case: GoldenCase, value: Any) -> Any:
    if isinstance(value, list) and case.has_loose_order:
        return sorted(map(str, value))
    if isinstance(value, bytes) and case.options["fields.b.aggregate-function"] == "theta_sketch":
        # One member of the header says nothing, and the libraries of Java and C++ differ in it.
        return datasketches.compact_theta_sketch.deserialize(value).get_estimate()
    return value
