"""The engines give the same rows as Java: golden cases, without files.

Every batch is merged as in a flush, and the results are merged as in a read.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.merge.merge_setup import merge_engine, merge_order
from lakeformat.paimon.schema import TableSchema, new_schema
from lakeformat.paimon.schema_changes.table_rules import check_table
from tests.golden_cases import GoldenCase, golden_cases

KINDS = ("+I", "-U", "+U", "-D")
CASES = [case for case in golden_cases() if case.id.startswith(("pu-", "first-", "seq-", "dedup-"))]
ONCE_COMPACTED = {"first-004": [(1, "a"), (2, "b")], "dedup-017": [(1, "b"), (2, "c")]}
"""Cases in which Java reads fewer rows, because level 0 is invisible before its compaction."""


def schema_of(case: GoldenCase) -> TableSchema:
    schema = new_schema(
        list(case.types.items()),
        primary_key=case.primary_key,
        partition_by=case.partition_keys,
        options={k: v for k, v in case.options.items() if k != "changelog-producer"},
        time_millis=0,
    )
    check_table(schema)
    merge_engine(schema)
    return schema


def rows_of(case: GoldenCase, schema: TableSchema, changes, first_number: int) -> pa.Table:
    """The rows a writer takes, numbered."""
    options = schema.table_options
    kinds = [row[options.row_kind_field] if options.row_kind_field else k for k, row in changes]
    dropped = {"-U"} if options.ignore_update_before else set()
    dropped |= {"-U", "-D"} if options.ignore_delete else set()
    kept = [(k, row) for k, (_, row) in zip(kinds, changes, strict=True) if k not in dropped]
    numbers = range(first_number, first_number + len(kept))
    values = case.table([row for _, row in kept])
    return pa.table(
        {
            "_SEQUENCE_NUMBER": pa.array(numbers, pa.int64()),
            "_VALUE_KIND": pa.array([KINDS.index(kind) for kind, _ in kept], pa.int8()),
            **dict(zip(values.column_names, values.columns, strict=True)),
        }
    )


def merged(schema: TableSchema, rows: pa.Table) -> pa.Table:
    """One merge, of each partition on its own."""
    order = merge_order(schema)
    order = type(order)((*schema.partition_keys, *order.keys), order.sequence, order.descending)
    return merge_engine(schema).merge(rows, order.group(rows))


def stored_and_read(case: GoldenCase, schema: TableSchema) -> tuple[list[pa.Table], list[tuple]]:
    """The rows of each flush, and those a read of all of them gives."""
    flushes: list[pa.Table] = []
    taken = 0
    for batch in case.batches:
        rows = rows_of(case, schema, batch.rows, taken)
        taken += rows.num_rows
        flushes.append(merged(schema, rows))
    result = merged(schema, pa.concat_tables(flushes))
    read = [
        tuple(row[name] for name in schema.column_names)
        for row in result.to_pylist()
        if KINDS[row["_VALUE_KIND"]] in ("+I", "+U")
    ]
    return flushes, read


def expected(case: GoldenCase, rows) -> list[tuple]:
    return [tuple(case.row(row).values()) for row in rows]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_rows_of_a_golden_case_merge_as_java_merged_them(case):
    error = case.expected.get("error")
    if error and error["phase"] == "create":
        with pytest.raises(lake.InvalidRequestError):
            schema_of(case)
        return
    schema = schema_of(case)
    if error or case.expected.get("batch_errors"):
        with pytest.raises(lake.InvalidRequestError):
            stored_and_read(case, schema)
        return
    _, read = stored_and_read(case, schema)
    wanted = ONCE_COMPACTED.get(case.id, expected(case, case.expected["rows"]))
    assert sorted(read, key=repr) == sorted(wanted, key=repr)


STORED = [
    case
    for case in CASES
    if "stream_delta" in case.expected
    and not case.id.startswith("first-")
    and not case.partition_keys
    and all(batch.content.keys() == {"rows"} for batch in case.batches)
]


@pytest.mark.parametrize("case", STORED, ids=lambda case: case.id)
def test_a_flush_stores_what_java_stored(case):
    flushes, _ = stored_and_read(case, schema_of(case))
    stored = [
        [(KINDS[row["_VALUE_KIND"]], *(row[f.name] for f in case.fields)) for row in rows]
        for rows in (flush.to_pylist() for flush in flushes)
        if rows
    ]
    assert stored == [
        [(row[0], *case.row(row[1:]).values()) for row in delta["rows"]]
        for delta in case.expected["stream_delta"]
    ]
