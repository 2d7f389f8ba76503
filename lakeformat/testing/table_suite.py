# SPDX-License-Identifier: Apache-2.0
"""The contract of a table as tests: derive a class to test a new format.

class TestMyTable(TableSuite):
    @pytest.fixture
    def table(self, tmp_path): ...  # return an empty table with the column id BIGINT
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake

__all__ = ["TableSuite"]


class TableSuite:
    """The tests of one table format. Derive ``Test<Name>Table`` from it, with the fixture
    ``table``.
    """

    @pytest.fixture
    def table(self) -> Any:
        pytest.fail("define a fixture `table` in the subclass: an empty table with id BIGINT")

    # Positions

    def test_an_empty_table_is_at_its_beginning(self, table: Any) -> None:
        begin = table.position()
        assert table.since(begin).snapshots == ()
        assert begin.before == begin

    def test_positions_grow_with_each_commit(self, table: Any) -> None:
        begin = table.position()
        found = [begin, *(_written(table, number) for number in range(3))]
        assert found == sorted(found)
        assert len({*found}) == 4
        assert [each.position for each in table.since(begin).snapshots] == found[1:]

    def test_a_kept_position_is_found_again(self, table: Any) -> None:
        first = _written(table, 1)
        second = _written(table, 2)
        kept = json.loads(json.dumps(str(first)))
        assert table.position(kept).is_exactly(first)
        since = table.since(table.position(kept))
        assert ([each.position for each in since.snapshots], since.missed) == ([second], False)
        assert not since.rewound

    def test_the_changes_of_a_commit_lie_between_its_position_and_the_one_before(
        self, table: Any
    ) -> None:
        for number in range(3):
            _written(table, number)
        position = table.snapshots()[1].position
        before = table.position_before(position)
        changes = table.changes(after=before, upto=position).to_arrow()
        assert changes["id"].to_pylist() == [1]

    def test_a_scan_takes_a_position(self, table: Any) -> None:
        first = _written(table, 1)
        _written(table, 2)
        assert table.scan(snapshot=first).to_arrow()["id"].to_pylist() == [1]

    def test_listed_positions_end_at_the_newest(self, table: Any) -> None:
        found = [_written(table, number) for number in range(4)]
        assert table.positions(limit=2) == found[2:]
        assert table.positions(after=found[0], upto=found[2], limit=9) == found[1:3]
        assert table.advance(found[0], 2) == found[2]
        assert table.advance(found[2], 2) == table.advance(found[2]) == found[3]

    # Operations

    def test_each_operation_is_there_or_refused_by_name(self, table: Any) -> None:
        assert {"scan", "write"} <= table.operations
        for name in table.operations:
            assert getattr(table, name) is not None
        for name in table.instead:
            with pytest.raises(lake.UnsupportedError, match=f"has no operation '{name}': "):
                getattr(table, name)

    def test_each_refused_argument_is_named_with_advice(self, table: Any) -> None:
        for operation, refused in table.refused_arguments.items():
            table.require_arguments(operation, **dict.fromkeys(refused))
            for name, advice in refused.items():
                with pytest.raises(lake.UnsupportedError) as error:
                    table.require_arguments(operation, **{name: 1})
                assert f"{operation} does not take {name}: {advice}" in str(error.value)

    # Descriptions

    def test_its_location_is_one_of_its_directories(self, table: Any) -> None:
        assert table.location in table.locations

    def test_it_is_a_table_of_its_format(self, table: Any) -> None:
        assert isinstance(table, lake.Table)
        assert table.format == table.format.lower() != ""


def _written(table: Any, number: int) -> Any:
    table.write(pa.table({"id": [number]}))
    return table.position()
