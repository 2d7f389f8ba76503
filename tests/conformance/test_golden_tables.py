"""Tables of other writers are read exactly, or refused by the trait that is missing."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass

import pytest

import lakeformat as lake
from tests.golden.tables import HOW_TO_UNSKIP, GoldenTable, golden_tables
from tests.golden.values import assert_same_rows, format_difference, rows_of


@dataclass(frozen=True, slots=True)
class Gap:
    """What this version says instead of returning the rows."""

    error: type[lake.LakeError]
    fragment: str


PRIMARY_KEY = Gap(lake.UnsupportedError, "has a primary key")
PARTITIONED = Gap(lake.UnsupportedError, "is partitioned by")
DELETION_VECTORS = Gap(lake.UnsupportedError, "has an index manifest (deletion vectors")
NOT_PARQUET = Gap(lake.UnsupportedError, "is not a Parquet file")
CHANGED_TYPE = Gap(lake.UnsupportedError, "was INT when")

# Not read yet. When a gap closes, its test fails (DID NOT RAISE) until the line here is removed.
NOT_YET = {
    "format/all_types_avro": NOT_PARQUET,
    "format/all_types_orc": NOT_PARQUET,
    "format/append_partitioned": PARTITIONED,
    "format/deletion_vectors": DELETION_VECTORS,
    "format/overwritten_partition": PARTITIONED,
    "format/pk_deletes": PRIMARY_KEY,
    "format/pk_dynamic_bucket": PRIMARY_KEY,
    "format/pk_fixed_bucket": PRIMARY_KEY,
    "format/pk_postpone_bucket": PRIMARY_KEY,
    "format/schema_evolved": CHANGED_TYPE,
    "format-java/all_types_avro": NOT_PARQUET,
    "format-java/all_types_orc": NOT_PARQUET,
    "format-java/changelog_input": PRIMARY_KEY,
    "format-java/partition_names_legacy_false": PARTITIONED,
    "format-java/partition_names_legacy_true": PARTITIONED,
    "format-java/pk_dv_bitmap32": PRIMARY_KEY,
    "format-java/pk_dv_bitmap64": PRIMARY_KEY,
    "format-java/pk_dynamic_bucket": PRIMARY_KEY,
    "format-java/thin_mode": PRIMARY_KEY,
}

TABLES = {table.name: table for table in golden_tables()}
needs_golden_tables = pytest.mark.skipif(not TABLES, reason=HOW_TO_UNSKIP)


def each(names: list[str]) -> pytest.MarkDecorator:
    """One test per table; without the tables one skipped test that says what is missing."""
    missing = pytest.param(None, id="none", marks=needs_golden_tables)
    params = [pytest.param(TABLES[name], id=name) for name in names]
    return pytest.mark.parametrize("golden", params or [missing])


READ = each([name for name in TABLES if name not in NOT_YET])
REFUSED = each([name for name in TABLES if name in NOT_YET])


@READ
def test_a_golden_table_has_exactly_the_expected_rows(golden: GoldenTable):
    rows = lake.open_table(golden.location).scan().to_arrow()
    assert rows.column_names == golden.column_names
    assert_same_rows(rows_of(rows), golden.rows())


@READ
def test_counting_a_golden_table_agrees_with_reading_it(golden: GoldenTable):
    assert lake.open_table(golden.location).scan().count() == golden.row_count


@READ
def test_one_column_of_a_golden_table_can_be_read_alone(golden: GoldenTable):
    last = golden.column_names[-1]
    rows = lake.open_table(golden.location).scan(columns=[last]).to_arrow()
    assert_same_rows(rows_of(rows), [{last: row[last]} for row in golden.rows()])


@REFUSED
def test_a_table_not_read_yet_is_refused_by_the_trait_that_is_missing(golden: GoldenTable):
    gap = NOT_YET[golden.name]
    with pytest.raises(gap.error, match=re.escape(gap.fragment)):
        lake.open_table(golden.location).scan().to_arrow()


@REFUSED
def test_a_table_not_read_yet_is_never_counted_wrongly(golden: GoldenTable):
    with contextlib.suppress(lake.UnsupportedError):
        assert lake.open_table(golden.location).scan().count() == golden.row_count


@needs_golden_tables
def test_a_comment_that_another_writer_left_null_is_no_comment():
    golden = TABLES["format/tags_and_branches"]
    assert lake.open_table(golden.location).schema.comment is None


@needs_golden_tables
def test_every_table_declared_as_not_read_yet_exists():
    assert NOT_YET.keys() <= TABLES.keys()


@needs_golden_tables
def test_an_older_snapshot_of_a_golden_table_has_its_own_rows():
    golden = TABLES["format/tags_and_branches"]
    rows = lake.open_table(golden.location).scan(snapshot=1).to_arrow()
    assert_same_rows(rows_of(rows), golden.rows("tag_v1_rows"))


def test_rows_in_another_order_do_not_differ():
    rows = [{"id": 1, "price": float("nan")}, {"id": 2, "price": 0.5}]
    assert format_difference(rows, rows[::-1]) == ""


def test_a_difference_names_the_column_of_a_row_that_is_nearly_right():
    actual = [{"id": 1, "item": "pear", "price": -0.0}]
    expected = [{"id": 1, "item": "pear", "price": 0.0}]
    assert format_difference(actual, expected).splitlines() == [
        "1 rows were read, 1 were expected:",
        "  the row with id = 1:",
        "    price: expected 0.0, got -0.0",
    ]


def test_a_difference_shows_rows_that_are_lost_or_doubled():
    actual = [{"id": 1}, {"id": 1}]
    expected = [{"id": 1}, {"id": 2}]
    assert format_difference(actual, expected).splitlines() == [
        "2 rows were read, 2 were expected:",
        "  missing    {'id': 2}",
        "  unexpected {'id': 1}",
    ]
