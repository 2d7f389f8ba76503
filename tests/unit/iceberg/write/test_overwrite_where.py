"""Rows that meet a condition are replaced in one commit, by whole files."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat import col
from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.storage import Storage
from tests.unit.iceberg.write.made_tables import ids_of, made_table, stored_files

START = datetime(2024, 1, 1)
FIRST_DAY = (col("at") >= "2024-01-01") & (col("at") < "2024-01-02")


def rows(*hours: int) -> pa.Table:
    """One row for each hour since the start, which is its id."""
    times = [START + timedelta(hours=each) for each in hours]
    return pa.table({"id": pa.array(hours, pa.int64()), "at": pa.array(times, pa.timestamp("us"))})


@pytest.fixture(params=[{"at": "day"}, {}, {"id": "bucket[2]"}], ids=["days", "none", "buckets"])
def table(request, storage) -> IcebergTable:
    return filled(storage, request.param)


def filled(storage: Storage, partition: dict[str, str]) -> IcebergTable:
    """Two files of the first day, and two of the second one; more in a table with buckets."""
    columns = {"id": "long", "at": "timestamp"}
    found = IcebergTable(made_table(storage, columns=columns, partition=partition))
    for hours in ((0, 2), (4, 6), (24, 26), (28, 30)):
        found.write(rows(*hours))
    return found


def prepared(table: IcebergTable, new: pa.Table, overwrite: Any, commit: lake.CommitId) -> Any:
    with table.new_writer(overwrite=overwrite) as writer:
        writer.write(new)
        return table.commit(writer.prepare(), overwrite=overwrite, commit=commit)


def written(table: IcebergTable, new: pa.Table, overwrite: Any, commit: lake.CommitId) -> Any:
    return table.write(new, overwrite=overwrite, commit=commit)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("write", [written, prepared])
def test_the_rows_of_a_condition_are_replaced_once(table, write):
    done = [write(table, rows(1, 3), FIRST_DAY, lake.CommitId("run", 1)) for _ in range(2)]
    assert ids_of(table._handle) == [1, 3, 24, 26, 28, 30]
    assert [each.replayed for each in done] == [False, True]
    assert done[0].kind == "overwrite"
    assert table.write(rows(), overwrite=col("at") >= "2024-01-02").kind == "delete"
    assert ids_of(table._handle) == [1, 3]


@pytest.mark.parametrize("partition", [{"at": "day"}, {}])
def test_files_with_other_rows_are_refused_and_nothing_changes(storage, partition):
    table = filled(storage, partition)
    before = stored_files(storage)
    some = (col("at") >= "2024-01-01 03:00") & (col("id") < 5)
    with pytest.raises(
        UnsupportedError, match=r"met by only some rows of .*then write the new rows without"
    ):
        table.write(rows(4), overwrite=some)
    assert (ids_of(table._handle), stored_files(storage)) == ([0, 2, 4, 6, 24, 26, 28, 30], before)
    table.delete(some)
    table.write(rows(3))
    assert ids_of(table._handle) == [0, 2, 3, 6, 24, 26, 28, 30]


def test_new_rows_that_do_not_meet_the_condition_are_refused(table, storage):
    before = stored_files(storage)
    with pytest.raises(
        InvalidRequestError, match="do not prove that every new row meets the condition"
    ):
        table.write(rows(1, 25), overwrite=FIRST_DAY)
    with pytest.raises(InvalidRequestError, match=r"names 'att'.*did you mean 'at'"):
        table.write(rows(1), overwrite=col("att") == "2024-01-01")
    assert stored_files(storage) == before


def test_a_condition_as_text_is_answered_with_col(table):
    with pytest.raises(InvalidRequestError, match=r"or a condition such as col\('ts'\)"):
        table.write(rows(1), overwrite="at < '2024-01-02'")


def test_rows_added_meanwhile_are_replaced_too(table):
    def batches() -> Any:
        yield rows(1)
        table.write(rows(3))

    table.write(batches(), overwrite=FIRST_DAY)
    assert ids_of(table._handle) == [1, 24, 26, 28, 30]
