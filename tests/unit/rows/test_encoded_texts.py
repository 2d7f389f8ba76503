"""Repeated texts are merged as dictionary indexes, with the same result."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from lakeformat.files.check_values import check_values
from lakeformat.files.parquet.dictionary_columns import repeating_texts
from lakeformat.rows.encoded_texts import decoded, one_table

ROWS = 200
FEW = ["new", "paid", None]


def encoded(texts) -> pa.RecordBatch:
    return pa.record_batch({"s": pa.array(texts).dictionary_encode()})


def plain(texts) -> pa.RecordBatch:
    return pa.record_batch({"s": pa.array(texts, pa.string())})


class TestOneTable:
    def test_dictionaries_that_differ_become_one(self):
        table = one_table([encoded(["a", "b", None]), encoded(["b", "c"])])
        assert pa.types.is_dictionary(table.schema.field("s").type)
        assert len({chunk.dictionary.to_pylist().__repr__() for chunk in table["s"].chunks}) == 1
        assert table["s"].to_pylist() == ["a", "b", None, "b", "c"]

    def test_beside_plain_texts_they_are_texts(self):
        table = one_table([encoded(["a", None]), plain(["c"])])
        assert table.schema.field("s").type == pa.string()
        assert table["s"].to_pylist() == ["a", None, "c"]

    def test_decoding_gives_the_texts_back(self):
        batch = decoded(encoded(["a", None, "a"]).slice(1))
        assert batch.schema.field("s").type == pa.string()
        assert batch.column("s").to_pylist() == [None, "a"]


class TestWhichColumns:
    def found(self, rows: pa.Table, columns, **options) -> list[str]:
        sink = io.BytesIO()
        pq.write_table(rows, sink, **options)
        file = pq.ParquetFile(sink)
        return repeating_texts(file.metadata, file.schema_arrow, columns)

    def test_texts_in_a_small_dictionary_are_found_if_asked_for(self):
        few = pa.array(FEW * ROWS)
        rows = pa.table({"a": few, "b": few, "n": pa.array([1, 2, 3] * ROWS)})
        assert self.found(rows, {"a", "n"}) == ["a"]
        assert self.found(rows, {"a", "b"}, use_dictionary=["b"]) == ["b"]

    def test_not_those_that_hardly_repeat(self):
        many = pa.array([f"text {number}" for number in range(ROWS)])
        assert self.found(pa.table({"a": many}), {"a"}) == []

    def test_all_row_groups_must_have_them_so(self):
        texts = [*FEW * ROWS, *(f"text {number}" for number in range(3 * ROWS))]
        assert self.found(pa.table({"a": texts}), {"a"}, row_group_size=3 * ROWS) == []

    def test_a_field_of_a_row_is_no_column_though_both_have_one_name(self):
        few = pa.array(FEW * ROWS)
        rows = pa.table({"r": pa.StructArray.from_arrays([few], ["a"]), "r.a": few})
        assert self.found(rows, {"r.a"}) == []


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "aggregation"])
def test_a_scan_of_files_with_and_without_dictionaries(tmp_path, engine):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("d")
    table = catalog.create_table(
        "d.t",
        pa.schema([pa.field("k", pa.int64(), nullable=False), ("s", pa.string())]),
        primary_key=["k"],
        options={"bucket": "1", "merge-engine": engine},
    )
    expected: dict[int, str | None] = {}
    unique = [f"text {number}" for number in range(ROWS)]
    for first, texts in ((0, FEW * ROWS), (100, ["paid", "lost"] * ROWS), (300, unique)):
        keys = range(first, first + len(texts))
        table.write(pa.table({"k": keys, "s": texts}, schema=table.scan().schema))
        for key, text in zip(keys, texts, strict=True):
            if text is not None or engine == "deduplicate":
                expected[key] = text
            else:
                expected.setdefault(key, None)
        rows = table.scan().to_arrow()
        assert rows.schema == table.scan().schema
        assert dict(zip(*rows.to_pydict().values(), strict=True)) == expected
        paid = table.scan(where=lake.col("s") == "paid").to_arrow()["k"].to_pylist()
        assert paid == [key for key, text in sorted(expected.items()) if text == "paid"]


class TestCheckValues:
    """Plain texts are seen at once; what is left Arrow has to look at."""

    def texts(self, values: list[bytes | None]) -> pa.RecordBatch:
        stored = pa.array(values, pa.binary())
        return pa.record_batch(
            {"s": pa.Array.from_buffers(pa.string(), len(stored), stored.buffers())}
        )

    @pytest.mark.parametrize("place", range(17))
    def test_a_byte_that_is_no_text_is_found_wherever_it_is(self, place):
        damaged = bytearray(b"plain ASCII only!")
        damaged[place] = 0xFF
        with pytest.raises(pa.ArrowInvalid, match="UTF8"):
            check_values(self.texts([b"fine", bytes(damaged), b""]))

    def test_others_alphabets_nulls_and_no_rows_are_fine(self):
        for values in ([], [None], [b"", None, "größer 価格".encode()], [b"x" * 9]):
            batch = self.texts(values)
            check_values(batch)
            check_values(batch.slice(len(values) // 2))

    def test_a_character_cut_in_two_is_found(self):
        whole = "ö".encode()
        with pytest.raises(pa.ArrowInvalid, match="UTF8"):
            check_values(self.texts([whole[:1], whole[1:]]))
