"""Scans of golden Iceberg tables read the same files, with the same deletes, as Java plans."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from lakeformat.iceberg.read.condition_fields import condition_fields
from lakeformat.iceberg.read.plan import TableState
from lakeformat.iceberg.read.scan import Scan
from lakeformat.iceberg.read.time_travel import find_state
from lakeformat.rows.conditions.filter import PredicateFilter, bind_predicate
from lakeformat.rows.conditions.predicate import Predicate, col
from tests.conformance.iceberg.test_golden_rows import opened, rows_of
from tests.golden.iceberg import ICEBERG_TABLES, iceberg_table
from tests.golden.iceberg_values import json_rows, sorted_rows


def as_predicate(written: list[Any], types: dict[str, str]) -> Predicate:
    """The condition that ``expected.json`` writes as nested lists."""
    op, *rest = written
    if op == "and":
        return as_predicate(rest[0], types) & as_predicate(rest[1], types)
    if op == "or":
        return as_predicate(rest[0], types) | as_predicate(rest[1], types)
    if op == "not":
        return ~as_predicate(rest[0], types)
    column, values = col(rest[0]), [_literal(each, types[rest[0]]) for each in rest[1:]]
    match op:
        case "is_null":
            return column.is_null()
        case "not_null":
            return column.is_not_null()
        case "is_nan":
            return column == math.nan
        case "not_nan":
            return column != math.nan
        case "starts_with":
            return column.startswith(values[0])
        case "in":
            return column.isin(values[0])
        case "not_in":
            return ~column.isin(values[0])
    compare = {"=": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__"}
    compare |= {">": "__gt__", ">=": "__ge__"}
    found = getattr(column, compare[op])(values[0])
    assert isinstance(found, Predicate)
    return found


def _literal(value: Any, kind: str) -> Any:
    if isinstance(value, list):
        return [_literal(each, kind) for each in value]
    if kind in ("uuid", "fixed", "binary"):
        return bytes.fromhex(value.replace("-", ""))
    return value.replace("T", " ") if kind.startswith("timestamp") else value


PLANS = [
    pytest.param(name, number, id=f"{name}-{number}")
    for name in ICEBERG_TABLES
    for number in range(len(iceberg_table(name).expected.get("plans") or ()))
]


def planned(name: str, number: int) -> tuple[TableState, PredicateFilter]:
    """The state that a plan reads, and its condition."""
    table, metadata, places = opened(name)
    plan = table.expected["plans"][number]
    chosen = {} if plan["snapshot_id"] is None else {"snapshot": plan["snapshot_id"]}
    state = find_state(places, metadata, **chosen)
    types = {field.name: str(field.type) for field in state.schema.fields}
    condition = as_predicate(plan["filter"], types)
    return state, bind_predicate(condition, condition_fields(state.schema))


@pytest.mark.sampled(40)
@pytest.mark.parametrize(("name", "number"), PLANS)
def test_plans_are_those_of_java(name, number):
    table = iceberg_table(name)
    plan = table.expected["plans"][number]
    state, where = planned(name, number)
    found = {
        table.relative(split.file.path): sorted(table.relative(each.path) for each in split.deletes)
        for split in Scan(state, where=where).splits()
    }
    expected = {each["file"]: sorted(each["deletes"]) for each in plan["tasks"]}
    if plan["filter"][0] in ("!=", "not_in"):
        # In SQL no comparison with a null is true; Java's expressions count it as another value.
        assert all("=null" in file for file in expected.keys() - found.keys())
        expected = {file: deletes for file, deletes in expected.items() if file in found}
    assert found == expected


@pytest.mark.sampled(40)
@pytest.mark.parametrize(("name", "number"), PLANS)
def test_a_filtered_scan_has_the_rows_of_a_full_scan_that_match(name, number):
    state, where = planned(name, number)
    everything = Scan(state).to_arrow().combine_chunks()
    matching = [batch.filter(where.mask(batch)) for batch in everything.to_batches()]
    found = Scan(state, where=where)
    assert found.count() == sum(batch.num_rows for batch in matching)
    assert rows_of(found) == sorted_rows(
        json_rows(pa.Table.from_batches(matching, everything.schema), found.fields)
    )
