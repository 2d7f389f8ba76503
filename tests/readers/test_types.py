"""Other readers have the values of every type, in tables with every partition transform."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakeformat as lake
from tests.interop.test_iceberg_reader import COLUMNS, PARTITIONS, make_table
from tests.readers.known_limits import OTHER_VALUES, refusal
from tests.readers.readers import Reader


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", PARTITIONS)
@pytest.mark.parametrize("version", [2, 3])
def test_a_reader_has_the_values_of_each_type(
    tmp_path: Path, reader: Reader, version: int, name: str
):
    make_table(tmp_path, version, PARTITIONS[name])
    table = lake.open_table(str(tmp_path))
    assert isinstance(table, lake.IcebergTable)
    if reason := refusal(reader, table):
        pytest.xfail(reason)
    ours = table.scan().to_arrow().sort_by("id")
    theirs = reader.read_arrow(table).sort_by("id")
    different = {name for name in COLUMNS if theirs[name].to_pylist() != ours[name].to_pylist()}
    known = OTHER_VALUES.get(reader.name, {})
    assert different == known.keys()
    if known:
        pytest.xfail("; ".join(known.values()))
