"""Tables of other writers are read exactly."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import lakeformat as lake
from tests.golden.tables import HOW_TO_UNSKIP, GoldenTable, golden_tables
from tests.golden.values import assert_same_rows, format_difference, rows_of

TABLES = {table.name: table for table in golden_tables()}
needs_golden_tables = pytest.mark.skipif(not TABLES, reason=HOW_TO_UNSKIP)


_MISSING = pytest.param(None, id="none", marks=needs_golden_tables)
_ALL = [pytest.param(table, id=name) for name, table in TABLES.items()]
each_table = pytest.mark.parametrize("golden", _ALL or [_MISSING])


@each_table
def test_a_golden_table_has_exactly_the_expected_rows(golden: GoldenTable):
    rows = lake.open_table(golden.location).scan().to_arrow()
    assert rows.column_names == golden.column_names
    assert_same_rows(rows_of(rows), golden.rows())


@each_table
def test_counting_a_golden_table_agrees_with_reading_it(golden: GoldenTable):
    assert lake.open_table(golden.location).scan().count() == golden.row_count


@each_table
def test_one_column_of_a_golden_table_can_be_read_alone(golden: GoldenTable):
    last = golden.column_names[-1]
    rows = lake.open_table(golden.location).scan(columns=[last]).to_arrow()
    assert_same_rows(rows_of(rows), [{last: row[last]} for row in golden.rows()])


@needs_golden_tables
def test_a_comment_that_another_writer_left_null_is_no_comment():
    golden = TABLES["format/tags_and_branches"]
    assert lake.open_table(golden.location).schema.comment is None


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


@needs_golden_tables
def test_an_older_snapshot_is_read_with_the_columns_of_its_time():
    table = lake.open_table(TABLES["format/schema_evolved"].location)
    first = table.snapshots()[0]
    assert first.schema_id != table.schema.id
    columns = table.scan(snapshot=first.id).to_arrow().column_names
    assert columns != table.schema.column_names
    assert len(columns) == len(table.scan(snapshot=first.id).schema)


def with_option(table: GoldenTable, tmp_path: Path, key: str, value: str) -> lake.Table:
    """A copy of a table of another writer, with one option more."""
    root = tmp_path / "table"
    shutil.copytree(table.location, root)
    for file in (root / "schema").iterdir():
        members = json.loads(file.read_text())
        file.write_text(json.dumps({**members, "options": {**members["options"], key: value}}))
    return lake.open_table(str(root))


@needs_golden_tables
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sequence.snapshot-ordering", "true"),
        ("scan.fallback-branch", "old"),
    ],
)
def test_an_option_that_decides_the_rows_is_refused_not_ignored(tmp_path, key, value):
    table = with_option(TABLES["format/pk_deletes"], tmp_path, key, value)
    for read in (table.scan().to_arrow, table.scan().count):
        with pytest.raises(lake.UnsupportedError, match=key):
            read()


@needs_golden_tables
def test_rows_that_a_compaction_would_delete_for_their_age_are_read_and_not_compacted(tmp_path):
    golden = TABLES["format/pk_deletes"]
    table = with_option(golden, tmp_path, "record-level.expire-time", "1 d")
    assert table.scan().count() == golden.row_count
    with pytest.raises(lake.UnsupportedError, match=r"record-level\.expire-time"):
        table.compact()


@needs_golden_tables
@pytest.mark.parametrize(("key", "value"), [("ignore-delete", "false"), ("type", "table")])
def test_an_option_that_says_what_is_so_anyway_is_no_obstacle(tmp_path, key, value):
    golden = TABLES["format/pk_deletes"]
    assert with_option(golden, tmp_path, key, value).scan().count() == golden.row_count


@needs_golden_tables
@pytest.mark.parametrize("number", ["1", 1.0, True])
def test_a_snapshot_is_named_by_its_number(number):
    table = lake.open_table(TABLES["format/tags_and_branches"].location)
    with pytest.raises(lake.InvalidRequestError, match="must be a snapshot number"):
        table.scan(snapshot=number)
