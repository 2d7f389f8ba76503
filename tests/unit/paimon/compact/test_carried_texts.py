"""Repeated texts are compacted as dictionary indexes, with the same result."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.files.parquet.dictionary_columns import SAMPLE_ROWS, pick_dictionary_columns
from lakeformat.paimon.compact.carried_columns import carried_columns
from lakeformat.paimon.datafile.rolling_writer import RollingWriter, WrittenFile, table_of
from lakeformat.paimon.layout import DataFileNames
from lakeformat.paimon.options import TableOptions
from lakeformat.storage.memory import MemoryStorage
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import DataField

ROWS = 300
WIDE = "w" * 5000
"""Longer than what the footer of a file holds bounds of."""
TEXTS = st.lists(st.none() | st.sampled_from(["new", "paid", "größer", WIDE]), max_size=9)


def texts(values, *, encoded: bool) -> pa.RecordBatch:
    column = pa.array(values, pa.string())
    return pa.record_batch({"s": column.dictionary_encode() if encoded else column})


class TestTableOf:
    def test_dictionaries_that_differ_become_one(self):
        rows = table_of([texts(["a", "b", None], encoded=True), texts(["b", "c"], encoded=True)])
        assert pa.types.is_dictionary(rows["s"].type)
        assert rows["s"].chunk(0).dictionary.equals(rows["s"].chunk(1).dictionary)
        assert rows["s"].to_pylist() == ["a", "b", None, "b", "c"]

    def test_beside_plain_texts_they_are_texts(self):
        rows = table_of([texts(["a", None], encoded=True), texts(["c"], encoded=False)])
        assert rows["s"].type == pa.string()
        assert rows["s"].to_pylist() == ["a", None, "c"]


class TestWhichColumnsGetADictionary:
    def picked(self, values) -> bool:
        return pick_dictionary_columns(pa.table({"n": pa.array(values)})) == ["n"]

    def test_those_that_repeat_all_over(self):
        assert self.picked([number % 1000 for number in range(16 * SAMPLE_ROWS)])
        assert self.picked([number % 10 for number in range(100)])

    def test_twenty_thousand_values_in_a_row_group_are_few(self):
        random = np.random.default_rng(1)
        assert self.picked(random.integers(0, 20_000, 16 * SAMPLE_ROWS))
        assert self.picked(random.integers(0, 20_000, 8 * SAMPLE_ROWS).astype(np.str_))
        assert not self.picked(random.integers(0, 1 << 40, 16 * SAMPLE_ROWS))

    def test_not_those_whose_equal_values_are_neighbours(self):
        assert not self.picked([number // 4 for number in range(16 * SAMPLE_ROWS)])

    def test_not_decimals_that_are_bytes_for_java_finds_nothing_in_a_dictionary_of_those(self):
        ones = [Decimal(1)] * 100
        assert self.picked(pa.array(ones, pa.decimal128(18, 0)))
        assert not self.picked(pa.array(ones, pa.decimal128(19, 0)))

    def test_nulls_are_no_values(self):
        assert self.picked([None])
        assert not self.picked([1, 2, 3])


def written(batches: list[tuple[pa.RecordBatch, bool]]) -> tuple[WrittenFile, pa.Table]:
    """The one file of some batches, and which of them end a row group."""
    storage, options = MemoryStorage(), TableOptions({"metadata.stats-mode": "full"})
    fields = (DataField(0, "s", parse_type("STRING")),)
    writer = RollingWriter(storage, "/t", fields, options, DataFileNames(options, "u").next_data)
    for batch, ends_group in batches:
        writer.write(batch)
        if ends_group:
            writer._flush()
    [file] = writer.finish()
    with storage.open_input(file.path) as stream:
        return file, pq.read_table(stream)


@given(st.lists(st.tuples(TEXTS, st.booleans(), st.booleans()), min_size=1, max_size=4))
def test_files_say_the_same_whatever_their_texts_came_as(parts):
    parts = [*parts, (["paid"], True, True)]
    plain, rows = written([(texts(values, encoded=False), ends) for values, _, ends in parts])
    mixed, same_rows = written([(texts(values, encoded=is_), ends) for values, is_, ends in parts])
    assert same_rows["s"].to_pylist() == rows["s"].to_pylist()
    assert mixed.statistics == plain.statistics


def new_table(folder, options) -> lake.Table:
    catalog = lake.open_catalog(str(folder))
    catalog.create_database("d")
    columns = [pa.field("k", pa.int64(), nullable=False), ("s", pa.string())]
    return catalog.create_table(
        "d.t", pa.schema(columns), primary_key=["k"], options={"bucket": "1", **options}
    )


@pytest.mark.parametrize(
    ("options", "carried"),
    [
        ({}, {"s"}),
        ({"changelog-producer": "lookup"}, {"s"}),
        ({"changelog-producer": "lookup", "changelog-producer.row-deduplicate": "true"}, set()),
        ({"changelog-producer": "lookup", "changelog-file.format": "avro"}, set()),
        ({"merge-engine": "partial-update"}, set()),
        ({"sequence.field": "s"}, set()),
        ({"file-index.bloom-filter.columns": "s"}, set()),
        ({"file.format.per.level": "5:orc"}, set()),
        ({"file.format.per.level": "0:orc"}, {"s"}),
    ],
)
def test_columns_are_carried_that_nobody_looks_into(tmp_path, options, carried):
    assert carried_columns(new_table(tmp_path, options).schema, 5) == carried


@pytest.mark.parametrize("wanted", [True, False])
def test_an_option_keeps_dictionaries_out_of_new_files(tmp_path, wanted):
    table = new_table(tmp_path, {"parquet.enable.dictionary": str(wanted).lower()})
    rows = [{"k": number, "s": "paid"} for number in range(ROWS)]
    for half in (rows[::2], rows[1::2]):
        table.write(pa.Table.from_pylist(half, table.scan().schema))
        assert encodes_by_dictionary(tmp_path) == {wanted}
    table.compact(executor="serial")
    assert encodes_by_dictionary(tmp_path) == {wanted}
    assert table.scan().to_arrow().sort_by("k").to_pylist() == rows


def encodes_by_dictionary(folder) -> set[bool]:
    """True if the files below a folder have dictionaries for their texts."""
    groups = (pq.read_metadata(file).row_group(0) for file in folder.rglob("*.parquet"))
    columns = (group.column(number) for group in groups for number in range(group.num_columns))
    return {each.has_dictionary_page for each in columns if each.path_in_schema == "s"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"deletion-vectors.enabled": "true"},
        {"changelog-producer": "lookup"},
        {"changelog-producer": "lookup", "changelog-producer.row-deduplicate": "true"},
        {"changelog-producer": "lookup", "deletion-vectors.enabled": "true"},
        {"changelog-producer": "full-compaction"},
    ],
    ids=lambda options: ", ".join(options) or "plain",
)
def test_files_with_and_without_dictionaries_are_compacted(tmp_path, options):
    table = new_table(tmp_path, options)
    expected: dict[int, str | None] = {}
    few, other = ["new", "paid", None, WIDE], ["paid", "lost"]
    unique = [f"text {number}" for number in range(ROWS)]
    for first, values in ((0, few * ROWS), (100, other * ROWS), (300, unique), (1500, few * ROWS)):
        keys = range(first, first + len(values))
        table.write(pa.table({"k": keys, "s": values}, schema=table.scan().schema))
        expected.update(zip(keys, values, strict=True))
        if first == 100:
            continue
        table.compact(executor="serial")
        rows = table.scan().to_arrow()
        assert rows.schema == table.scan().schema
        assert dict(zip(*rows.to_pydict().values(), strict=True)) == expected
