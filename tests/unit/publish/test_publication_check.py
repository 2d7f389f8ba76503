"""``check_publication`` compares the rows of readers with those of the published files."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.publish.check.check import check_publication
from lakeformat.publish.check.readers import Reader
from lakeformat.storage import MemoryStorage
from tests.unit.publish.published import KEYED, published_table, rows_of, unobserved, uuids

COLUMNS = [("id", "BIGINT"), ("note", "STRING"), ("parts", "ARRAY<ROW<a INT>>")]
ROWS = rows_of(id=[1, 2], note=["a", None], parts=[[{"a": 1}], []])


@pytest.fixture
def storage(request) -> MemoryStorage:
    return MemoryStorage(request.node.name)


def pyiceberg(report: lake.PublicationCheckReport):
    return next(each for each in report.readers if each.reader == "PyIceberg")


def test_pyiceberg_has_the_rows_of_the_published_files_on_any_storage(storage):
    table = published_table(storage, COLUMNS, **KEYED)
    object.__setattr__(table._handle, "environment", uuids(7))
    table.write(ROWS)
    table.compact(strategy="full")
    table.write(rows_of(id=[3], note=["later"], parts=[[]]))
    report = lake.check_publication(table)
    assert (report.rows, report.snapshot_id, report.failed) == (2, 3, ())
    assert (pyiceberg(report).outcome, pyiceberg(report).rows) == ("equal", 2)
    assert report.reason.startswith("snapshot 3 has 2 rows in its published files; equal: PyIceb")
    names = [each.reader for each in report.readers]
    assert names == ["PyIceberg", "DuckDB", "Iceberg-Rust", "ClickHouse"]


def test_a_publication_that_is_behind_fails_although_its_rows_are_right(storage):
    table = published_table(storage, COLUMNS)
    object.__setattr__(table._handle, "environment", uuids(7))
    table.write(ROWS)
    unobserved(table).write(ROWS)
    report = lake.check_publication(table)
    assert pyiceberg(report).outcome == "equal"
    [problem] = report.failed
    assert "1 snapshot behind" in problem


def test_other_missing_and_repeated_rows_of_a_reader_are_counted(storage):
    table = published_table(storage, COLUMNS)
    table.write(ROWS)
    other = pa.concat_tables([ROWS.slice(0, 1), ROWS.slice(0, 1)])

    def refuses(_):
        raise RuntimeError("cannot read this\nfile")

    readers = [
        Reader("right", (), lambda _: ROWS.to_batches(), needs_local_files=False),
        Reader("wrong", (), lambda _: other.to_batches(), needs_local_files=False),
        Reader("broken", (), refuses, needs_local_files=False),
        Reader("absent", ("no_such_package",), refuses, needs_local_files=False),
        Reader("local", (), refuses),
    ]
    report = check_publication(table, readers)
    assert [str(each) for each in report.readers] == [
        "right: equal",
        "wrong: 1 missing, 1 other rows",
        "broken: failed: RuntimeError: cannot read this file",
        "absent: not installed: pip install no_such_package",
        "local: not checked: it gets no credentials, so it reads only tables on local disks",
    ]
    assert report.failed == tuple(map(str, report.readers[1:3]))


def test_a_table_without_publication_is_refused_and_an_empty_one_has_nothing_to_check(storage):
    table = published_table(storage, COLUMNS)
    assert lake.check_publication(table).reason == "no snapshot is published"
    with pytest.raises(lake.InvalidRequestError, match="does not publish Iceberg metadata"):
        lake.check_publication(unobserved(table))
