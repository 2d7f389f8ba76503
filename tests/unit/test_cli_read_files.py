"""Files of other programs become the rows they mean, or are refused by row and column."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

import lakeformat as lake
from lakeformat.cli.read_files import read_rows

COLUMNS = [
    ("k", "BIGINT"),
    ("s", "STRING"),
    ("at", "TIMESTAMP(3)"),
    ("moment", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
    ("clock", "TIME(3)"),
    ("parts", "ARRAY<ROW<at TIMESTAMP(3)>>"),
]


@pytest.fixture
def read(tmp_path):
    catalog = lake.open_catalog(str(tmp_path / "wh"))
    catalog.create_database("shop")
    schema = catalog.create_table("shop.t", COLUMNS).schema

    def rows(name: str, content: str) -> list[dict]:
        (tmp_path / name).write_bytes(content.encode("utf-8", "surrogateescape"))
        batches = list(read_rows([str(tmp_path / name)], schema, None))
        return [row for batch in batches for row in batch.to_pylist()]

    return rows


def test_a_line_break_in_quotes_is_part_of_the_value_wherever_blocks_end(read, monkeypatch):
    lines = [f'{k},"{"a" * 20}\n{1000 + k},b"' for k in range(500)]
    expected = [{"k": k, "s": "a" * 20 + f"\n{1000 + k},b"} for k in range(500)]
    content = "k,s\n" + "\n".join(lines) + "\n"
    assert read("rows.csv", content) == expected
    monkeypatch.setattr("lakeformat.text_files.read_growing.__defaults__", (100,))
    assert read("rows.csv", content) == expected


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('k,s\n1,"open\n2,b\n', 2),
        ('k,s\n1,"a""b"\n2,"open', 3),
        ('k,s\n1,"""\n2,b\n', 2),
        ('"k,s\n1,a\n', 1),
    ],
)
def test_a_quote_that_is_never_closed_is_refused_by_its_line(read, content, line):
    with pytest.raises(lake.InvalidRequestError, match=f"opens in line {line} is never closed"):
        read("rows.csv", content)


def test_a_quote_inside_a_plain_value_opens_nothing(read):
    content = 'k,s\n1,5" pipe\n2,""\n3,"say ""hi"""\n'
    assert [row["s"] for row in read("rows.csv", content)] == ['5" pipe', "", 'say "hi"']


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("null\n", 1),
        ('{"k": 1}\n\n null\n{"k": 2}\n', 3),
        ('{"k": 1} null\n', 1),
        ('[{"k": 1}]\n', 1),
        ("7", 1),
    ],
)
def test_a_line_of_json_that_is_no_object_is_refused_by_its_number(read, content, line):
    with pytest.raises(lake.InvalidRequestError, match=rf"line {line} of .* is one JSON object"):
        read("rows.json", content)


def test_a_mark_of_utf_8_and_blank_lines_are_no_rows(read):
    rows = read("rows.json", '\ufeff{"k": 1}\n\n{"k": 2}\n')
    assert [row["k"] for row in rows] == [1, 2]


def test_a_value_longer_than_a_block_is_read(read):
    wide = "x" * 20_000_000
    rows = ["k,s", "1,a", f'2,"{wide}"', "3,b"]
    assert [row["s"] for row in read("rows.csv", "\n".join(rows))] == ["a", wide, "b"]
    lines = [json.dumps({"k": k, "s": s}) for k, s in enumerate(["a", wide, "b"])]
    assert [row["s"] for row in read("rows.json", "\n".join(lines))] == ["a", wide, "b"]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("rows.csv", "k,s\n1,a\nx,b\n", "row 2, column 'k': .*'x'"),
        ("rows.csv", "k,s\n1,\udcff\n", "column 's': .*UTF8"),
        ("rows.csv", "k,moment\n1,2024-01-01 10:00:00\n", "row 1, column 'moment'.*zone offset"),
        ("rows.json", '{"k": 1}\n{"k": "x"}\n', "/k.* in row 2"),
        ("rows.json", '{"k": 1}\n{"at": "2024-02-30 10:00:00"}\n', "row 2 .*column 'at'"),
        ("rows.json", '{"clock": "25:00:00"}\n', "row 1 .*column 'clock'"),
    ],
)
def test_what_cannot_be_read_is_told_by_row_and_column(read, name, content, told):
    with pytest.raises(lake.InvalidRequestError, match=f"{name}.*{told}"):
        read(name, content)


def test_rows_are_counted_over_blocks(read, monkeypatch):
    monkeypatch.setattr("lakeformat.text_files.read_growing.__defaults__", (200,))
    with pytest.raises(lake.InvalidRequestError, match="in row 101"):
        read("rows.json", '{"k": 1}\n' * 100 + '{"k": "x"}\n')
    with pytest.raises(lake.InvalidRequestError, match="row 101, column 'k'"):
        read("rows.csv", "k\n" + "1\n" * 100 + "x\n")


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize(
    ("column", "text", "value"),
    [
        ("at", "2024-01-01 10:00:00", datetime(2024, 1, 1, 10)),
        ("at", "2024-01-01 10:00:00Z", None),
        ("at", "2024-01-01 10:00:00+02:00", None),
        ("moment", "2024-01-01 10:00:00", None),
        ("moment", "2024-01-01 10:00:00Z", datetime(2024, 1, 1, 10, tzinfo=UTC)),
        ("moment", "2024-01-01 10:00:00+02:00", datetime(2024, 1, 1, 8, tzinfo=UTC)),
    ],
)
def test_an_instant_has_a_zone_and_a_wall_clock_has_none(read, form, column, text, value):
    line = json.dumps({column: text}) if form == "json" else f"{column}\n{text}"
    if value is None:
        with pytest.raises(lake.InvalidRequestError, match=f"column '{column}'.*zone"):
            read(f"rows.{form}", line)
    else:
        assert read(f"rows.{form}", line)[0][column] == value


def test_times_inside_lists_and_rows_are_read_the_same(read):
    [row] = read("rows.json", '{"parts": [{"at": "2024-01-01 10:00:00"}]}')
    assert row["parts"] == [{"at": datetime(2024, 1, 1, 10)}]
    with pytest.raises(lake.InvalidRequestError, match=r"column 'parts'.*zone"):
        read("rows.json", '{"parts": [{"at": "2024-01-01 10:00:00Z"}]}')
