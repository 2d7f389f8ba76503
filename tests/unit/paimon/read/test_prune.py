"""Pruning: a file with a row that meets the conditions is never left out."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakeformat.paimon.binary_row import encode_row, frame_row
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.manifest import FileKind, ManifestEntry
from lakeformat.paimon.metadata.manifest_columns import columns_of
from lakeformat.paimon.metadata.manifest_list import ManifestMeta, summarise
from lakeformat.paimon.metadata.simple_stats import EMPTY_ROW, EMPTY_STATS, SimpleStats
from lakeformat.paimon.read.pruning.entries import EntryPruner
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.prune import Alternatives, Bounds, ColumnTest, Op, may_meet
from lakeformat.types.types import STRING, DataField, TypeName, atomic
from tests import sampling

INT, BIGINT, DOUBLE = (atomic(name) for name in (TypeName.INT, TypeName.BIGINT, TypeName.DOUBLE))
FIELDS = (
    DataField(0, "day", INT),
    DataField(1, "id", BIGINT),
    DataField(2, "name", STRING),
    DataField(3, "price", atomic(TypeName.DECIMAL, 25, 2)),
)

TYPES = [field.type for field in FIELDS]
APPEND = TableSchema(0, FIELDS, 3, partition_keys=("day",))
KEYED = TableSchema(0, FIELDS, 3, partition_keys=("day",), primary_keys=("day", "id"))

DOMAIN = {
    "day": st.integers(0, 3),
    "id": st.integers(-5, 5),
    "name": st.sampled_from(["", "a", "ab", "abcdefghij", "z"]),
    "price": st.integers(-3, 3).map(lambda n: Decimal(n) / 4),
}
COMPARISONS = [op for op in Op if op not in (Op.IN, Op.IS_NULL, Op.IS_NOT_NULL)]


@st.composite
def conditions(draw):
    column = draw(st.sampled_from(sorted(DOMAIN)))
    op = draw(st.sampled_from(Op))
    if op in (Op.IS_NULL, Op.IS_NOT_NULL):
        return ColumnTest(column, op)
    if op is Op.IN:
        return ColumnTest(column, op, tuple(draw(st.lists(DOMAIN[column], max_size=3))))
    return ColumnTest(column, op, draw(DOMAIN[column]))


def is_met(condition: ColumnTest, value) -> bool:
    if condition.op in (Op.IS_NULL, Op.IS_NOT_NULL):
        return (value is None) is (condition.op is Op.IS_NULL)
    if value is None:
        return False
    other = condition.literal
    match condition.op:
        case Op.EQUAL:
            return value == other
        case Op.NOT_EQUAL:
            return value != other
        case Op.LESS:
            return value < other
        case Op.LESS_EQUAL:
            return value <= other
        case Op.GREATER:
            return value > other
        case Op.GREATER_EQUAL:
            return value >= other
    return value in other


def framed(values, types) -> bytes:
    return frame_row(encode_row(values, types), len(types))


ROWS = st.lists(
    st.tuples(*(st.none() | DOMAIN[field.name] for field in FIELDS[1:])), min_size=1, max_size=4
)


def bounds_of(values) -> tuple[object, object]:
    known = [value for value in values if value is not None]
    return (min(known), max(known)) if known else (None, None)


def file_of(day, rows, covered, number=0) -> ManifestEntry:
    """An entry whose statistics cover some columns, densely."""
    table = [(day, *row) for row in rows]
    columns = {field.name: [row[i] for row in table] for i, field in enumerate(FIELDS)}
    types = [field.type for field in FIELDS if field.name in covered]
    names = [field.name for field in FIELDS if field.name in covered]
    pairs = [bounds_of(columns[name]) for name in names]
    stats = SimpleStats(
        framed([least for least, _ in pairs], types),
        framed([most for _, most in pairs], types),
        tuple(columns[name].count(None) for name in names),
    )
    file = DataFileMeta(
        file_name=f"data-{number}",
        file_size=1,
        row_count=len(rows),
        min_sequence_number=0,
        max_sequence_number=0,
        schema_id=0,
        value_stats=stats if names else EMPTY_STATS,
        value_stats_cols=None if len(names) == len(FIELDS) else tuple(names),
    )
    return ManifestEntry(FileKind.ADD, framed([day], [INT]), number % 3, 3, file)


def pruner(schema, *wanted, buckets=None, schemas=None) -> EntryPruner:
    known = {0: schema} if schemas is None else schemas
    return EntryPruner(schema, wanted, buckets, known.__getitem__)


COVERED = st.sampled_from([(), ("id",), ("id", "price"), ("name",), ("day", "id", "name", "price")])


@settings(max_examples=sampling.count(8, whole=200))
@given(
    st.lists(st.tuples(st.none() | DOMAIN["day"], ROWS, COVERED), min_size=1, max_size=6),
    st.lists(conditions(), min_size=1, max_size=2),
)
def test_a_file_with_a_row_asked_for_is_kept(files, wanted):
    entries = [file_of(*file, number) for number, file in enumerate(files)]
    columns = columns_of(entries)
    asked = pruner(APPEND, *wanted)
    kept = asked.by_place(columns) & asked.by_statistics(columns)
    manifest = summarise("m", 1, entries, [INT])
    names = [field.name for field in FIELDS]
    for (day, rows, _), is_kept in zip(files, kept.tolist(), strict=True):
        for row in rows:
            values = dict(zip(names, (day, *row), strict=True))
            if all(is_met(condition, values[condition.column]) for condition in wanted):
                assert is_kept
                assert asked.pick_manifests([manifest]) == [manifest]


BRANCHES = st.lists(st.lists(conditions(), min_size=1, max_size=2), min_size=1, max_size=3)


@settings(max_examples=sampling.count(8, whole=200))
@given(
    st.lists(st.tuples(st.none() | DOMAIN["day"], ROWS, COVERED), min_size=1, max_size=6),
    st.lists(conditions(), max_size=1),
    BRANCHES,
)
def test_a_file_with_a_row_that_meets_an_alternative_is_kept(files, always, branches):
    entries = [file_of(*file, number) for number, file in enumerate(files)]
    columns = columns_of(entries)
    alternatives = Alternatives(tuple(tuple(branch) for branch in branches))
    asked = pruner(APPEND, *always, alternatives)
    kept = asked.by_place(columns) & asked.by_statistics(columns)
    manifest = summarise("m", 1, entries, [INT])
    names = [field.name for field in FIELDS]
    for (day, rows, _), is_kept in zip(files, kept.tolist(), strict=True):
        for row in rows:
            values = dict(zip(names, (day, *row), strict=True))

            def meets(wanted, values=values) -> bool:
                return all(is_met(condition, values[condition.column]) for condition in wanted)

            if meets(always) and any(map(meets, branches)):
                assert is_kept
                assert asked.pick_manifests([manifest]) == [manifest]


def kept_ids(schema, condition, *entries, schemas=None) -> list[str]:
    columns = columns_of(entries)
    mask = pruner(schema, condition, schemas=schemas).by_statistics(columns)
    return [entry.file.file_name for entry in columns.filter(mask).entries()]


ALL = ("day", "id", "name", "price")
LOW = file_of(1, [(1, "a", Decimal(1)), (3, "b", None)], ALL, 1)
HIGH = file_of(1, [(7, None, Decimal(9)), (9, None, None)], ALL, 2)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (ColumnTest("id", Op.EQUAL, 2), ["data-1"]),
        (ColumnTest("id", Op.EQUAL, 5), []),
        (ColumnTest("id", Op.LESS, 7), ["data-1"]),
        (ColumnTest("id", Op.LESS_EQUAL, 7), ["data-1", "data-2"]),
        (ColumnTest("id", Op.GREATER, 3), ["data-2"]),
        (ColumnTest("id", Op.GREATER_EQUAL, 3), ["data-1", "data-2"]),
        (ColumnTest("id", Op.NOT_EQUAL, 2), ["data-1", "data-2"]),
        (ColumnTest("id", Op.IN, (0, 8)), ["data-2"]),
        (ColumnTest("id", Op.IN, ()), []),
        (ColumnTest("id", Op.IS_NULL), []),
        (ColumnTest("name", Op.IS_NULL), ["data-2"]),
        (ColumnTest("name", Op.IS_NOT_NULL), ["data-1"]),
        (ColumnTest("name", Op.NOT_EQUAL, "x"), ["data-1"]),
        (ColumnTest("price", Op.GREATER, Decimal(2)), ["data-2"]),
    ],
)
def test_bounds_and_null_counts_rule_files_out(condition, expected):
    assert kept_ids(APPEND, condition, LOW, HIGH) == expected


def test_one_value_everywhere_rules_out_everything_else():
    same = file_of(1, [(4, "a", None), (4, "b", None)], ALL, 3)
    assert kept_ids(APPEND, ColumnTest("id", Op.NOT_EQUAL, 4), same) == []


def test_absent_statistics_rule_nothing_out():
    none = file_of(1, [(1, "a", None)], (), 1)
    old = replace(none, file=replace(none.file, value_stats_cols=None))
    assert kept_ids(APPEND, ColumnTest("id", Op.EQUAL, 99), none, old) == ["data-1", "data-1"]


def test_unknown_null_counts_rule_nothing_out():
    stats = replace(LOW.file.value_stats, null_counts=(None,) * 4)
    entry = replace(LOW, file=replace(LOW.file, value_stats=stats))
    assert kept_ids(APPEND, ColumnTest("id", Op.IS_NULL), entry) == ["data-1"]


def test_one_bound_alone_is_not_trusted():
    bounds = Bounds(pa.array([5]), pa.array([None], pa.int64()), pa.array([0]), pa.array([9]))
    assert may_meet(ColumnTest("id", Op.LESS, 3), bounds, BIGINT).tolist() == [True]


@pytest.mark.parametrize("op", [*COMPARISONS, Op.IN])
def test_bounds_in_the_wrong_order_are_not_trusted(op):
    bounds = Bounds(pa.array([5]), pa.array([2]), pa.array([0]), pa.array([9]))
    for literal in (1, 2, 3, 5, 6):
        wanted = ColumnTest("id", op, (literal,) if op is Op.IN else literal)
        assert may_meet(wanted, bounds, BIGINT).tolist() == [True]


def test_numbers_that_are_none_rule_nothing_out():
    bounds = Bounds(
        pa.array([1.0, math.nan]), pa.array([2.0, 2.0]), pa.array([0, 0]), pa.array([9, 9])
    )
    for op in (Op.GREATER, Op.GREATER_EQUAL, Op.NOT_EQUAL):
        assert may_meet(ColumnTest("x", op, 5.0), bounds, DOUBLE).all()
    assert may_meet(ColumnTest("x", Op.LESS, 0.0), bounds, DOUBLE).tolist() == [False, True]
    assert may_meet(ColumnTest("x", Op.EQUAL, math.nan), bounds, DOUBLE).all()


@pytest.mark.parametrize(
    ("op", "literal"),
    [
        (Op.GREATER, 5.0),
        (Op.GREATER_EQUAL, 5.0),
        (Op.EQUAL, math.nan),
        (Op.GREATER_EQUAL, math.nan),
    ],
)
def test_a_file_without_nan_is_skipped_where_only_nan_would_match(op, literal):
    bounds = Bounds(
        *(pa.array([value] * 3) for value in (1.0, 2.0, 0, 9)), nans=pa.array([0, 1, None])
    )
    assert may_meet(ColumnTest("x", op, literal), bounds, DOUBLE).tolist() == [False, True, True]


def test_columns_are_found_by_id_and_only_where_their_type_is_the_same():
    renamed = (DataField(1, "key", BIGINT), DataField(2, "id", STRING))
    changed = (DataField(1, "id", INT), DataField(2, "name", STRING))
    schemas = {
        0: TableSchema(0, renamed, 2),
        1: TableSchema(1, changed, 2),
        2: TableSchema(2, (DataField(1, "id", BIGINT),), 2),
    }
    stats = SimpleStats(
        framed([1, "a"], [BIGINT, STRING]), framed([3, "b"], [BIGINT, STRING]), (0, 0)
    )
    first = replace(LOW, file=replace(LOW.file, value_stats=stats))
    second = replace(first, file=replace(first.file, schema_id=1, file_name="data-2"))
    found = kept_ids(schemas[2], ColumnTest("id", Op.EQUAL, 9), first, second, schemas=schemas)
    assert found == ["data-2"]


def keyed(least, most, number) -> ManifestEntry:
    rows = [framed([value], [BIGINT]) for value in (least, most)]
    entry = file_of(1, [(0, "a", None)], ALL, number)
    file = replace(entry.file, min_key=rows[0], max_key=rows[1], key_stats=SimpleStats(*rows, (0,)))
    return replace(entry, file=file)


def test_with_a_primary_key_only_the_key_rules_out():
    files = [keyed(1, 5, 1), keyed(6, 9, 2)]
    assert kept_ids(KEYED, ColumnTest("id", Op.EQUAL, 7), *files) == ["data-2"]
    assert kept_ids(KEYED, ColumnTest("name", Op.EQUAL, "nobody"), *files) == [
        "data-1",
        "data-2",
    ]


def test_manifests_are_picked_by_bucket_and_old_ones_say_nothing_about_it():
    def manifest(least, most):
        return ManifestMeta(
            file_name="m",
            file_size=1,
            num_added_files=1,
            num_deleted_files=0,
            schema_id=0,
            min_bucket=least,
            max_bucket=most,
        )

    manifests = [manifest(0, 1), manifest(2, 5), manifest(None, None)]
    assert pruner(APPEND, buckets={3}).pick_manifests(manifests) == manifests[1:]
    assert pruner(APPEND, ColumnTest("day", Op.EQUAL, 1)).pick_manifests(manifests) == manifests


def test_entries_are_picked_by_bucket_exactly():
    columns = columns_of([LOW, HIGH])
    assert pruner(APPEND, buckets={1}).by_place(columns).tolist() == [True, False]
    assert columns_of([LOW]).min_key.values()[0] == EMPTY_ROW
    assert np.all(pruner(APPEND).by_place(columns))
