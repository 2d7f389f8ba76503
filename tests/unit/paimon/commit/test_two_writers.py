"""Two writers of one bucket number rows alike: which of two rows with one key is read."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakeformat as lake
from tests.keyed_rows import KeyedRows

Rows = Mapping[int, str]
"""The kind of each key's row, in the order they are written."""

KEYS = st.dictionaries(st.integers(0, 7), st.sampled_from(["+I", "-D"]), min_size=1, max_size=6)


class AtOnce:
    """Writers that all began when the table was empty."""

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self.keyed = KeyedRows(options)
        self.table = self.keyed.table

    def write(self, *writers: Rows) -> None:
        """Commit what each writer wrote, one after the other; ``v`` is the writer's number."""
        opened = [self.table.new_writer() for _ in writers]
        prepared = []
        for number, (writer, rows) in enumerate(zip(opened, writers, strict=True)):
            values = pa.table({"k": pa.array(rows, pa.int32()), "v": [str(number)] * len(rows)})
            writer.write(values, [*rows.values()])
            prepared.append(writer.prepare())
        for messages in prepared:
            self.table.commit(messages)

    def rows(self) -> dict[int, str]:
        found = self.table.scan().to_arrow().to_pylist()
        return {row["k"]: row["v"] for row in found}


def expected(*writers: Rows) -> dict[int, str]:
    """By number, then what adds before what deletes, then the file with the larger numbers."""

    def age(writer: int) -> tuple[int, int, int, int]:
        keys = writers[writer].keys()
        return len(keys), min(keys), max(keys), writer

    newest: dict[int, tuple[object, int, str]] = {}
    for writer, rows in enumerate(writers):
        for number, (key, kind) in enumerate(rows.items()):
            found = ((number, kind == "+I", age(writer)), writer, kind)
            newest[key] = max(newest.get(key, found), found)
    return {key: str(writer) for key, (_, writer, kind) in newest.items() if kind == "+I"}


@given(first=KEYS, second=KEYS)
def test_the_larger_number_wins_then_what_adds_then_the_file_with_larger_numbers(first, second):
    tied = AtOnce()
    tied.write(first, second)
    assert tied.rows() == expected(first, second)


@given(first=KEYS, second=KEYS)
def test_a_compaction_keeps_the_row_that_was_read(first, second):
    tied = AtOnce()
    tied.write(first, second)
    before = tied.rows()
    tied.table.compact()
    assert tied.rows() == before


class TestWriterThatStaysOpen:
    """It continues its own numbers, independent of other commits meanwhile."""

    def start(self, options: Mapping[str, str] | None = None) -> tuple[AtOnce, lake.TableWriter]:
        at_once = AtOnce(options)
        return at_once, at_once.table.new_writer()

    def finish(self, at_once: AtOnce, writer: lake.TableWriter) -> None:
        writer.write(pa.table({"k": pa.array([1], pa.int32()), "v": ["late"]}))
        at_once.table.commit(writer.prepare())

    def test_its_row_loses_to_one_that_another_writer_committed_before(self):
        at_once, writer = self.start()
        at_once.write(dict.fromkeys([5, 6, 1], "+I"))
        self.finish(at_once, writer)
        assert at_once.rows()[1] == "0"

    def test_its_row_loses_to_a_delete_that_came_before(self):
        at_once, writer = self.start()
        at_once.write(dict.fromkeys([5, 6, 1], "+I"))
        at_once.table.delete("k = 1")
        self.finish(at_once, writer)
        assert 1 not in at_once.rows()

    def test_with_a_sequence_field_the_larger_sequence_wins_instead(self):
        at_once, writer = self.start({"sequence.field": "v"})
        at_once.write(dict.fromkeys([5, 6, 1], "+I"))
        self.finish(at_once, writer)
        assert at_once.rows()[1] == "late"


@pytest.mark.parametrize(("producer", "left"), [("none", 37), ("lookup", None)])
def test_a_value_whose_group_has_no_sequence_is_kept_until_a_compaction_looks_rows_up(
    catalog, producer, left
):
    """As in Java: a row that is alone is merged with nothing, and looking it up is a merge."""
    table = catalog.create_table(
        "shop.grouped",
        [("k", "INT NOT NULL"), ("v", "INT"), ("seq", "INT")],
        primary_key=["k"],
        options={
            "bucket": "1",
            "merge-engine": "partial-update",
            "fields.seq.sequence-group": "v",
            "changelog-producer": producer,
        },
    )
    schema = table.schema.arrow_schema()
    for row in ({"k": 1, "v": 10, "seq": 5}, {"k": 7, "v": 37, "seq": None}):
        table.write(pa.Table.from_pylist([row], schema=schema))
    assert table.scan(where="k = 7").to_arrow()["v"].to_pylist() == [37]
    table.compact()
    assert table.scan(where="k = 7").to_arrow()["v"].to_pylist() == [left]
