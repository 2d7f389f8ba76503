"""Conditions on columns of type time compare microseconds: scans, files left out, and changes."""

from __future__ import annotations

from datetime import time

import pyarrow as pa
import pytest

from lakeformat import col
from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.table.table import IcebergTable
from tests.unit.iceberg.write.made_tables import made_table

MICROS = [0, 1, 1000, 1001, 1500, 2000, 86_399_999_999]
CONDITIONS = {
    "t = '00:00:00.0015'": [1500],
    "t <> '00:00:00.001001'": [0, 1, 1000, 1500, 2000, 86_399_999_999],
    "t > '00:00:00.001'": [1001, 1500, 2000, 86_399_999_999],
    "t >= '0:0:0.001001'": [1001, 1500, 2000, 86_399_999_999],
    "t < '00:00:00.0010010'": [0, 1, 1000],
    "t <= '00:00:00.001001'": [0, 1, 1000, 1001],
    "t IN ('00:00:00.000001', '00:00:00.001')": [1, 1000],
    "t NOT IN ('00:00:00.000001', '00:00')": [1000, 1001, 1500, 2000, 86_399_999_999],
    "t BETWEEN '00:00:00.001001' AND '00:00:00.0015'": [1001, 1500],
    "t = '23:59:59.999999' OR t = '00:00:00.000001'": [1, 86_399_999_999],
}
PARTITIONS = pytest.mark.parametrize("partition", [{}, {"t": "identity"}, {"t": "bucket[3]"}])


def times(*micros: int) -> pa.Table:
    return pa.table({"id": pa.array(micros, pa.int64()), "t": pa.array(micros, pa.time64("us"))})


def filled(storage, partition: dict[str, str]) -> IcebergTable:
    columns = {"id": "long", "t": "time"}
    table = IcebergTable(made_table(storage, columns=columns, partition=partition))
    for each in MICROS:
        table.write(times(each))
    return table


def found(table: IcebergTable, where) -> list[int]:
    return sorted(table.scan(where=where).to_arrow()["id"].to_pylist())


@PARTITIONS
def test_a_time_is_compared_in_microseconds(storage, partition):
    table = filled(storage, partition)
    assert {where: found(table, where) for where in CONDITIONS} == CONDITIONS
    assert found(table, col("t") == time(0, 0, 0, 1500)) == [1500]
    [split] = table.scan(where="t = '00:00:00.0015'").splits()
    assert split.file.record_count == 1


def test_rows_are_changed_by_times(storage):
    table = filled(storage, {})
    table.upsert(times(1500, 3), by=["t"])
    table.delete("t < '00:00:00.001001'")
    assert found(table, None) == [1001, 1500, 2000, 86_399_999_999]
    table.update("t = '00:00:00.0015'", {"t": "00:00:00.123456"})
    assert found(table, "t = '00:00:00.123456'") == [1500]
    assert table.check(accepted_values={"t": ["00:00:00.001001"]}).failed[0].bad_rows == 3


def test_a_finer_time_is_refused(storage):
    table = filled(storage, {})
    with pytest.raises(
        InvalidRequestError, match=r"TIME\(6\): the column keeps 6 fractional digits"
    ):
        table.scan(where="t > '00:00:00.0000001'")
    with pytest.raises(InvalidRequestError, match=r"is not a value of column 't'"):
        table.scan(where="t > '24:00:00'")
